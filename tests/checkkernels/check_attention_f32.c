/* attention_f32 in every tier of this machine, against sums in double: random and adversarial lengths, widths and
 * scores, in place, arrays that end at a page that may not be touched; and the same bits for any cut of the queries. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "guarded.h"
#include "kernels_cpu/cpu.h"
#include "kernels_cpu/kernels.h"
#include "tap.h"
#include <math.h>
#include <string.h>

static const char *const tier_names[] = {"best", "ref", "avx2", "avx512"};

typedef struct attention_case {
    const foreloop_attention_f32 *attention;
    size_t count, width;
    float size; /* of queries and keys */
    size_t gap;
} attention_case;

/* Of row r: expected[width]. */
static void expect(const attention_case *what, const float *rows, size_t stride, size_t r, double *weights,
                   double *expected) {
    const size_t width = what->width, count = what->count;
    double largest = -INFINITY, sum = 0;
    for (size_t c = 0; c < count; c++) {
        weights[c] = 0;
        for (size_t i = 0; i < width; i++)
            weights[c] += (double)rows[r * stride + i] * rows[c * stride + width + i];
        weights[c] /= sqrt((double)width);
        largest = fmax(largest, weights[c]);
    }
    for (size_t c = 0; c < count; c++)
        sum += weights[c] = exp(weights[c] - largest);
    for (size_t i = 0; i < width; i++) {
        expected[i] = 0;
        for (size_t c = 0; c < count; c++)
            expected[i] += weights[c] / sum * rows[c * stride + 2 * width + i];
    }
}

/* Returns bit 0: right, bit 1: the same bits in parts, bit 2: what is not the context is untouched. */
static int check(const attention_case *what, double *off) {
    random_source source = {what->count * 1009 + what->width * 31 + what->gap + 1};
    const size_t width = what->width, count = what->count, stride = 3 * width + random_below(&source, 5);
    const size_t size = (count - 1) * stride + 3 * width, bytes = size * sizeof(float);
    const float scale = (float)(1 / sqrt((double)width));
    guarded rows = guarded_make(size, what->gap);
    float *given = malloc(bytes), *whole = malloc(bytes);
    const size_t scratch_size = what->attention->scratch_size(count, width);
    guarded scratch = guarded_make((scratch_size + 15) / 16 * 16, 0);
    double *weights = malloc(count * sizeof *weights), *expected = malloc(width * sizeof *expected);
    int result = 7;
    guarded_fill(&rows, &source);
    for (size_t i = 0; i < size; i++)
        if (i % stride < 2 * width)
            rows.values[i] *= what->size;
    memcpy(given, rows.values, bytes);
    what->attention->pack(scratch.values, rows.values + width, rows.values + 2 * width, stride, count, width);
    what->attention->run(rows.values, rows.values, stride, count, scratch.values, count, width, scale);
    memcpy(whole, rows.values, bytes);
    *off = 0;
    for (size_t r = 0; r < count; r++) {
        expect(what, given, stride, r, weights, expected);
        for (size_t i = 0; i < width; i++)
            *off = fmax(*off, isfinite(whole[r * stride + i]) ? fabs(whole[r * stride + i] - expected[i]) : INFINITY);
        for (size_t i = width; i < stride && r * stride + i < size; i++)
            result &= whole[r * stride + i] == given[r * stride + i] ? 7 : 3;
    }
    /* A score is off by its rounding, which exponentials make relative. */
    if (!(*off <= 1e-6 * (1 + what->size * what->size * sqrt((double)width))))
        result &= 6;
    memcpy(rows.values, given, bytes);
    for (size_t first = 0; first < count;) {
        size_t end = first + 1 + random_below(&source, 40);
        end = end < count ? end : count;
        what->attention->run(rows.values + first * stride, rows.values + first * stride, stride, end - first,
                             scratch.values, count, width, scale);
        first = end;
    }
    if (memcmp(rows.values, whole, bytes) != 0)
        result &= 5;
    guarded_free(&rows);
    guarded_free(&scratch);
    free(given);
    free(whole);
    free(weights);
    free(expected);
    return result;
}

static void report(const attention_case *what, const char *tier) {
    double off;
    const int result = check(what, &off);
    CHECK(result == 7, "%s: %zu tokens, %zu wide, size %g: off by %.1e%s%s%s", tier, what->count, what->width,
          (double)what->size, off, result & 1 ? "" : ": wrong", result & 2 ? "" : ": depends on the part",
          result & 4 ? "" : ": writes elsewhere");
}

static void check_special(const foreloop_attention_f32 *attention, const char *tier) {
    enum { COUNT = 300, WIDTH = 8 };
    static float rows[COUNT][3 * WIDTH];
    float *scratch = aligned_alloc(64, (attention->scratch_size(COUNT, WIDTH) + 15) / 16 * 64);
    for (size_t r = 0; r < COUNT; r++)
        for (size_t i = 0; i < 3 * WIDTH; i++)
            rows[r][i] = 1.0f;
    /* One key far ahead, in the second block: all weight is its own. */
    for (size_t i = 0; i < WIDTH; i++) {
        rows[280][WIDTH + i] = 1e4f;
        rows[280][2 * WIDTH + i] = 7.0f;
    }
    rows[9][0] = NAN;
    attention->pack(scratch, rows[0] + WIDTH, rows[0] + 2 * WIDTH, 3 * WIDTH, COUNT, WIDTH);
    attention->run(rows[0], rows[0], 3 * WIDTH, COUNT, scratch, COUNT, WIDTH, 1.0f);
    int right = 1, nan = 1;
    for (size_t r = 0; r < COUNT; r++)
        for (size_t i = 0; i < WIDTH; i++)
            if (r == 9)
                nan &= isnan(rows[r][i]) != 0;
            else
                right &= fabsf(rows[r][i] - 7.0f) < 1e-5f;
    CHECK(right, "%s: a key far ahead in a later block", tier);
    CHECK(nan, "%s: NaN comes through to its row alone", tier);
    free(scratch);
}

int main(void) {
    static const size_t counts[] = {1, 2, 15, 16, 17, 31, 33, 64, 129, 255, 256, 257, 511, 512, 513};
    static const size_t widths[] = {1, 5, 16, 31, 32, 33, 64, 100};
    for (foreloop_tier tier = FORELOOP_TIER_REF; tier <= FORELOOP_TIER_AVX512; tier++) {
        foreloop_kernels kernels;
        if (tier > foreloop_cpu_tier(FORELOOP_TIER_BEST)) {
            tap_skip("this machine lacks a tier");
            continue;
        }
        foreloop_kernels_init(&kernels, tier, 0);
        CHECK(kernels.attention.tier == tier, "the kernels are of the tier %s", tier_names[tier]);
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
            for (size_t w = c % 2; w < sizeof widths / sizeof *widths; w += 2) {
                const attention_case what = {&kernels.attention, counts[c], widths[w], (float)(1 << 2 * (w % 3)),
                                             (c + 3 * w) % 16};
                report(&what, tier_names[tier]);
            }
        check_special(&kernels.attention, tier_names[tier]);
    }
    return tap_done();
}
