/* linear_int8: every kernel that this machine has, and AMX emulated, against a plain computation and each other. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "kernels_cpu/cpu.h"
#include "kernels_cpu/linear_int8.h"
#include "linear_case.h"
#include <math.h>

#if defined(FORELOOP_X86_KERNELS)
void foreloop_linear_int8_amx_emulated(foreloop_linear *linear, bool whole_rows);
#endif

typedef struct kernel_entry {
    const char *name;
    void (*init)(foreloop_linear *linear, bool whole_rows);
    unsigned features;
} kernel_entry;

static const kernel_entry kernels[] = {
    {"ref", foreloop_linear_int8_ref, 0},
#if defined(FORELOOP_X86_KERNELS)
    {"avx2", foreloop_linear_int8_avx2, FORELOOP_CPU_AVX2},
    {"avx512", foreloop_linear_int8_avx512, FORELOOP_CPU_AVX512},
    {"avx512_vnni", foreloop_linear_int8_avx512_vnni, FORELOOP_CPU_AVX512_VNNI},
    {"amx emulated", foreloop_linear_int8_amx_emulated, FORELOOP_CPU_AVX512},
    {"amx", foreloop_linear_int8_amx, FORELOOP_CPU_AMX_INT8},
#endif
};

/* ---- The contract, word for word --------------------------------------------------------------------------------- */

typedef struct quantised {
    float scale;
    int zero;
    bool finite;
    int q[4096];
} quantised;

static void quantise_inputs(quantised *to, const float *x, size_t count) {
    float low = 0, high = 0;
    to->finite = true;
    for (size_t i = 0; i < count; i++) {
        to->finite &= isfinite(x[i]) != 0;
        low = fminf(low, x[i]);
        high = fmaxf(high, x[i]);
    }
    to->scale = high / 255 - low / 255;
    to->zero = 0;
    const bool none = to->scale < 1e-30f / 255;
    if (none)
        to->scale = 0;
    const float inverse = none ? 0 : 1 / to->scale;
    to->zero = (int)rintf(-low * inverse);
    for (size_t i = 0; i < count && to->finite; i++) {
        const int q = (int)rintf(x[i] * inverse) + to->zero;
        to->q[i] = q < 0 ? 0 : q > 255 ? 255 : q;
    }
}

static void quantise_weights(quantised *to, const float *w, size_t count) {
    float largest = 0;
    for (size_t i = 0; i < count; i++)
        largest = fmaxf(largest, fabsf(w[i]));
    to->scale = largest / 127;
    for (size_t i = 0; i < count; i++)
        to->q[i] = to->scale < 1e-30f ? 0 : (int)rintf(w[i] / to->scale);
    if (to->scale < 1e-30f)
        to->scale = 0;
}

static float plain(const linear_case *c, size_t r, size_t o, bool whole_rows) {
    static quantised x, w;
    const size_t length = whole_rows ? c->in : 64;
    float sum = 0;
    for (size_t first = 0; first < c->in; first += length) {
        const size_t count = c->in - first < length ? c->in - first : length;
        quantise_inputs(&x, c->x + r * c->in + first, count);
        quantise_weights(&w, c->weight + o * c->in + first, count);
        if (!x.finite)
            return NAN;
        int64_t exact = 0;
        for (size_t i = 0; i < count; i++)
            exact += (int64_t)(x.q[i] - x.zero) * w.q[i];
        sum = fmaf((float)exact, x.scale * w.scale, sum);
    }
    return sum + c->bias[o];
}

/* ---- Checks ------------------------------------------------------------------------------------------------------ */

typedef enum numbers { ORDINARY, LARGEST, ONE_SIDED, SPARSE, EXTREME_SCALES, NUMBERS } numbers;

static void fill_case(linear_case *c, random_source *random, numbers kind) {
    fill(random, c->x, c->rows * c->in, 3);
    fill(random, c->weight, c->out * c->in, 0.25f);
    fill(random, c->bias, c->out, 1);
    fill(random, c->residual, c->rows * c->out, 1);
    for (size_t i = 0; i < c->rows * c->in; i++) {
        const size_t row = i / c->in, column = i % c->in;
        if (kind == LARGEST) /* q 255 or 0 everywhere: the sums that overflow 16 bits, and reach furthest in 32 */
            c->x[i] = row % 3 == 0 ? 2 : row % 3 == 1 ? -2 : column % 2 ? 2 : -2;
        if (kind == ONE_SIDED)
            c->x[i] = 100 + c->x[i];
        if (kind == SPARSE)
            c->x[i] = random_below(random, 40) == 0 ? c->x[i] : 0;
        if (kind == EXTREME_SCALES)
            c->x[i] *= row % 4 == 0 ? 1e-33f : row % 4 == 1 ? 1e-29f : row % 4 == 2 ? 1e30f : 0;
    }
    for (size_t i = 0; i < c->out * c->in; i++) {
        const size_t out = i / c->in, column = i % c->in;
        if (kind == LARGEST)
            c->weight[i] = out % 3 == 0 ? 1 : out % 3 == 1 ? -1 : column % 2 ? 1 : -1;
        if (kind == SPARSE)
            c->weight[i] = random_below(random, 40) == 0 ? c->weight[i] : 0;
        if (kind == EXTREME_SCALES)
            c->weight[i] *= out % 3 == 0 ? 1e-35f : out % 3 == 1 ? 1e-20f : 1;
    }
}

static void check_shape(const kernel_entry *entry, bool whole_rows, size_t rows, size_t in, size_t out, numbers kind) {
    random_source random = {rows * 1000003 + in * 1009 + out + (size_t)kind};
    linear_case c = case_open(rows, in, out);
    float *y = malloc(rows * out * sizeof(float)), *expected = malloc(rows * out * sizeof(float));
    foreloop_linear kernel;
    entry->init(&kernel, whole_rows);
    fill_case(&c, &random, kind);
    for (size_t r = 0; r < rows; r++)
        for (size_t o = 0; o < out; o++)
            expected[r * out + o] = plain(&c, r, o, whole_rows);
    case_run(&c, &kernel, FORELOOP_EPILOGUE_NONE, NULL, y);
    CHECK(same_numbers(y, expected, rows * out), "%s: %zu rows, %zu to %zu, numbers %d", kernel.name, rows, in, out,
          (int)kind);
    CHECK(parts_agree(&c, &kernel, &random, y), "%s: in parts", kernel.name);
    if (kind == ORDINARY)
        CHECK(epilogues_agree(&c, &kernel, y), "%s: epilogues", kernel.name);
    case_close(&c);
    free(y);
    free(expected);
}

/* NaN and infinity make their row NaN, whatever else is in it, and no other. */
static void check_not_finite(const kernel_entry *entry, bool whole_rows) {
    enum { ROWS = 15, IN = 150, OUT = 40 };
    static const float odd[] = {NAN, INFINITY, -INFINITY};
    random_source random = {5};
    linear_case c = case_open(ROWS, IN, OUT);
    float y[ROWS * OUT];
    foreloop_linear kernel;
    entry->init(&kernel, whole_rows);
    fill_case(&c, &random, ORDINARY);
    for (size_t r = 1; r < ROWS; r += 2)
        c.x[r * IN + (r * 31) % IN] = odd[r / 2 % 3];
    case_run(&c, &kernel, FORELOOP_EPILOGUE_NONE, NULL, y);
    bool right = true;
    for (size_t i = 0; i < ROWS * OUT; i++)
        right &= (isnan(y[i]) != 0) == (i / OUT % 2 == 1);
    CHECK(right, "%s: a row with NaN or infinity is NaN, the others are not", kernel.name);
    case_close(&c);
}

/* Corrections come to the rows that have one, in whole calls and in parts. */
static void check_correction(const kernel_entry *entry, bool whole_rows) {
    enum { ROWS = 29, IN = 150, OUT = 40, CORRECTIONS = 9 };
    random_source random = {11};
    linear_case c = case_open(ROWS, IN, OUT);
    float y[ROWS * OUT], expected[ROWS * OUT], correction[CORRECTIONS * OUT];
    int32_t correction_of[ROWS];
    foreloop_linear kernel;
    entry->init(&kernel, whole_rows);
    fill_case(&c, &random, ORDINARY);
    fill(&random, correction, CORRECTIONS * OUT, 1);
    memset(c.bias, 0, OUT * sizeof *c.bias);
    case_run(&c, &kernel, FORELOOP_EPILOGUE_NONE, NULL, expected);
    for (size_t r = 0; r < ROWS; r++) {
        correction_of[r] = r % 3 == 0 ? (int32_t)(r * 5 / 3 % CORRECTIONS) : -1;
        for (size_t o = 0; o < OUT && r % 3 == 0; o++)
            expected[r * OUT + o] += correction[(size_t)correction_of[r] * OUT + o];
    }
    c.correction_of = correction_of;
    c.correction = correction;
    case_run(&c, &kernel, FORELOOP_EPILOGUE_NONE, NULL, y);
    CHECK(same_numbers(y, expected, ROWS * OUT), "%s: corrections", kernel.name);
    CHECK(parts_agree(&c, &kernel, &random, y), "%s: corrections, in parts", kernel.name);
    CHECK(epilogues_agree(&c, &kernel, y), "%s: corrections come before the epilogue", kernel.name);
    case_close(&c);
}

/* What the rounding to bytes leaves over: by the contract, and half a step at the most. */
static void check_remainder(const kernel_entry *entry, bool whole_rows) {
    enum { IN = 150 };
    static quantised part;
    random_source random = {12};
    foreloop_linear kernel;
    entry->init(&kernel, whole_rows);
    for (int scale = -20; scale <= 20; scale += 10) {
        float x[IN], rest[IN];
        bool right = true;
        fill(&random, x, IN, ldexpf(1, scale));
        kernel.remainder(rest, x, IN);
        for (size_t first = 0; first < IN; first += whole_rows ? IN : 64) {
            const size_t length = whole_rows ? IN : 64, count = IN - first < length ? IN - first : length;
            quantise_inputs(&part, x + first, count);
            for (size_t i = 0; i < count; i++) {
                const float made = part.scale * (float)(part.q[i] - part.zero);
                right &= rest[first + i] == x[first + i] - made && fabsf(rest[first + i]) <= 0.501f * part.scale;
            }
        }
        CHECK(right, "%s: remainders of numbers up to 2^%d", kernel.name, scale);
    }
}

static void check_kernel(const kernel_entry *entry, bool whole_rows) {
    static const size_t rows[] = {1, 2, 3, 5, 6, 7, 9, 12, 13, 16, 17, 24, 25, 32, 33, 49};
    static const size_t widths[][2] = {{1, 1}, {63, 33}, {64, 32}, {65, 31}, {128, 64}, {200, 95}, {384, 7}};
    foreloop_linear kernel;
    entry->init(&kernel, whole_rows);
    printf("# %s: %s\n", entry->name, kernel.name);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_shape(entry, whole_rows, rows[i], widths[i % 7][0], widths[i % 7][1], (numbers)(i % NUMBERS));
    for (size_t i = 0; i < 7; i++)
        check_shape(entry, whole_rows, 10, widths[i][0], widths[i][1], ORDINARY);
    for (numbers kind = ORDINARY; kind < NUMBERS; kind = (numbers)(kind + 1))
        check_shape(entry, whole_rows, 13, 130, 33, kind);
    check_shape(entry, whole_rows, 6, 4096, 33, LARGEST);
    check_not_finite(entry, whole_rows);
    check_correction(entry, whole_rows);
    check_remainder(entry, whole_rows);
}

/* The kernel that each choice of features gives. */
static void check_choice(void) {
    foreloop_linear chosen, expected;
    foreloop_linear_int8_init(&chosen, 0, false);
    CHECK(chosen.tier == FORELOOP_TIER_REF, "no features: the reference");
    for (size_t i = 1; i < sizeof kernels / sizeof *kernels; i++) {
        if (strstr(kernels[i].name, "emulated"))
            continue;
        for (int whole_rows = 0; whole_rows < 2; whole_rows++) {
            kernels[i].init(&expected, whole_rows);
            foreloop_linear_int8_init(&chosen, FORELOOP_CPU_AVX2 | kernels[i].features, whole_rows);
            CHECK(strcmp(chosen.name, expected.name) == 0 && chosen.tier == expected.tier, "%s is chosen",
                  expected.name);
        }
    }
}

int main(void) {
    const foreloop_cpu_limits limits = {.use_amx = true};
    const unsigned amx = FORELOOP_CPU_AMX_INT8;
    const unsigned there = (foreloop_cpu_features() & ~amx) | (foreloop_cpu_choose(&limits) & amx);
    check_choice();
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        if (kernels[i].features & ~there) {
            tap_skip(kernels[i].name); /* this machine lacks it */
            continue;
        }
        check_kernel(&kernels[i], false);
        check_kernel(&kernels[i], true);
    }
    return tap_done();
}
