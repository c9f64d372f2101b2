/* linear_bf16: every kernel that this machine has, and AMX emulated, against a plain computation and each other. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "kernels_cpu/convert_bf16.h"
#include "kernels_cpu/cpu.h"
#include "kernels_cpu/linear_bf16.h"
#include "linear_case.h"
#include <math.h>

#if defined(FORELOOP_X86_KERNELS)
void foreloop_linear_bf16_amx_emulated(foreloop_linear *linear);
#endif

typedef struct kernel_entry {
    const char *name;
    void (*init)(foreloop_linear *linear);
    unsigned features;
    bool pairs; /* sums pair by pair; else as AMX does */
} kernel_entry;

static const kernel_entry kernels[] = {
    {"ref", foreloop_linear_bf16_ref, 0, true},
#if defined(FORELOOP_X86_KERNELS)
    {"avx2", foreloop_linear_bf16_avx2, FORELOOP_CPU_AVX2, true},
    {"avx512", foreloop_linear_bf16_avx512, FORELOOP_CPU_AVX512, true},
    {"avx512_bf16", foreloop_linear_bf16_avx512_bf16, FORELOOP_CPU_AVX512_BF16, true},
    {"amx emulated", foreloop_linear_bf16_amx_emulated, FORELOOP_CPU_AVX512, false},
    {"amx", foreloop_linear_bf16_amx, FORELOOP_CPU_AMX_BF16, false},
#endif
};

/* The contract, word for word. */
static float plain(const linear_case *c, size_t r, size_t o, bool pairs) {
    const float *x = c->x + r * c->in, *w = c->weight + o * c->in;
    float sum = 0;
    for (size_t block = 0; block < c->in; block += pairs ? 2 : 32) {
        float even = 0, odd = 0;
        for (size_t i = block; i < c->in && i < block + (pairs ? 2 : 32); i++) {
            const float a = foreloop_bf16_float(foreloop_bf16_of(x[i]));
            const float b = foreloop_bf16_float(foreloop_bf16_of(w[i]));
            float *half = i % 2 == 0 ? &even : &odd;
            *half = fmaf(a, b, *half);
        }
        sum = pairs ? sum + odd + even : sum + (even + odd);
    }
    return sum + c->bias[o];
}

static void check_shape(const kernel_entry *entry, const foreloop_linear *kernel, size_t rows, size_t in, size_t out) {
    random_source random = {rows * 1000003 + in * 1009 + out};
    linear_case c = case_open(rows, in, out);
    float *y = malloc(rows * out * sizeof(float)), *expected = malloc(rows * out * sizeof(float));
    fill(&random, c.x, rows * in, 3);
    fill(&random, c.weight, out * in, 0.25f);
    fill(&random, c.bias, out, 1);
    fill(&random, c.residual, rows * out, 1);
    for (size_t r = 0; r < rows; r++)
        for (size_t o = 0; o < out; o++)
            expected[r * out + o] = plain(&c, r, o, entry->pairs);
    case_run(&c, kernel, FORELOOP_EPILOGUE_NONE, NULL, y);
    CHECK(same_numbers(y, expected, rows * out), "%s: %zu rows, %zu to %zu", entry->name, rows, in, out);
    CHECK(parts_agree(&c, kernel, &random, y), "%s: %zu rows, %zu to %zu: in parts", entry->name, rows, in, out);
    CHECK(epilogues_agree(&c, kernel, y), "%s: %zu rows, %zu to %zu: epilogues", entry->name, rows, in, out);
    case_close(&c);
    free(y);
    free(expected);
}

/* NaN and infinity stay in their row; huge numbers round as bfloat16 does. */
static void check_extremes(const kernel_entry *entry, const foreloop_linear *kernel) {
    enum { ROWS = 9, IN = 70, OUT = 33 };
    random_source random = {77};
    linear_case c = case_open(ROWS, IN, OUT);
    float y[ROWS * OUT];
    fill(&random, c.x, ROWS * IN, 1);
    fill(&random, c.weight, OUT * IN, 1);
    fill(&random, c.bias, OUT, 1);
    for (size_t i = 0; i < OUT * IN; i++)
        c.weight[i] = c.weight[i] < 0 ? c.weight[i] - 0.1f : c.weight[i] + 0.1f;
    c.x[1 * IN + 69] = NAN;
    c.x[3 * IN + 0] = INFINITY;
    c.x[5 * IN + 33] = 3.4e38f; /* beyond the largest bfloat16 */
    memset(c.x + 7 * IN, 0, IN * sizeof(float));
    case_run(&c, kernel, FORELOOP_EPILOGUE_NONE, NULL, y);
    bool right[ROWS] = {true, true, true, true, true, true, true, true, true};
    for (size_t r = 0; r < ROWS; r++)
        for (size_t o = 0; o < OUT; o++) {
            const float value = y[r * OUT + o];
            right[r] &= r == 1 ? isnan(value) : r == 3 || r == 5 ? isinf(value) : isfinite(value);
            right[r] &= r != 7 || value == c.bias[o];
        }
    CHECK(right[1], "%s: a NaN gives NaN", entry->name);
    CHECK(right[3] && right[5], "%s: infinity, and what rounds to it, give infinity", entry->name);
    CHECK(right[7], "%s: zeros give the bias", entry->name);
    CHECK(right[0] && right[2] && right[4] && right[6] && right[8], "%s: other rows stay finite", entry->name);
    case_close(&c);
}

static void check_rounding(void) {
    static const struct {
        uint32_t bits;
        uint16_t expected;
    } cases[] = {{0x3f800000, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f818000, 0x3f82}, {0x3f808001, 0x3f81},
                 {0xbf818000, 0xbf82}, {0x7f7fffff, 0x7f80}, {0xff7fffff, 0xff80}, {0x7f800000, 0x7f80},
                 {0xff800000, 0xff80}, {0x7f800001, 0x7fc0}, {0xffbfffff, 0xffff}, {0x7fc12345, 0x7fc1},
                 {0x00000000, 0x0000}, {0x80000000, 0x8000}, {0x00008001, 0x0001}, {0x00018000, 0x0002}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK(foreloop_bf16_of(foreloop_float_of_bits(cases[i].bits)) == cases[i].expected, "%08x rounds to %04x",
              (unsigned)cases[i].bits, (unsigned)cases[i].expected);
}

static void check_kernel(const kernel_entry *entry, const foreloop_linear *kernel) {
    static const size_t rows[] = {1, 2, 3, 5, 6, 7, 9, 12, 13, 16, 17, 24, 25, 32, 33, 49};
    static const size_t widths[][2] = {{1, 1}, {31, 33}, {32, 32}, {64, 31}, {65, 64}, {130, 95}, {384, 7}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_shape(entry, kernel, rows[i], widths[i % 7][0], widths[i % 7][1]);
    for (size_t i = 0; i < 7; i++)
        check_shape(entry, kernel, 10, widths[i][0], widths[i][1]);
    check_shape(entry, kernel, 200, 3072, 40); /* more rows than a cache holds */
    check_extremes(entry, kernel);
}

/* The kernel that each choice of features gives. */
static void check_choice(void) {
    foreloop_linear chosen, expected;
    foreloop_linear_bf16_init(&chosen, 0);
    CHECK(chosen.tier == FORELOOP_TIER_REF, "no features: the reference");
    for (size_t i = 1; i < sizeof kernels / sizeof *kernels; i++) {
        if (strstr(kernels[i].name, "emulated"))
            continue;
        kernels[i].init(&expected);
        foreloop_linear_bf16_init(&chosen, FORELOOP_CPU_AVX2 | kernels[i].features);
        CHECK(strcmp(chosen.name, expected.name) == 0 && chosen.tier == expected.tier, "%s is chosen", kernels[i].name);
    }
}

int main(void) {
    const foreloop_cpu_limits limits = {.use_amx = true};
    const unsigned granted = foreloop_cpu_choose(&limits);
    check_rounding();
    check_choice();
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        const unsigned amx = FORELOOP_CPU_AMX_BF16;
        const unsigned there = (foreloop_cpu_features() & ~amx) | (granted & amx);
        foreloop_linear kernel;
        kernels[i].init(&kernel);
        if ((kernels[i].features & ~there) == 0)
            check_kernel(&kernels[i], &kernel);
        else
            tap_skip(kernels[i].name); /* this machine lacks it */
    }
    return tap_done();
}
