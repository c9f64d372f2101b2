/* layer_norm_f32 and activation_f32 in every tier of this machine, against formulas in double. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "guarded.h"
#include "kernels_cpu/cpu.h"
#include "kernels_cpu/kernels.h"
#include "tap.h"
#include <math.h>
#include <string.h>

static const char *const tier_names[] = {"best", "ref", "avx2", "avx512"};

/* Rows around `mean` with deviation about 0.6; bit 0: right, bit 1: a row alone has the same bits, bit 2: gaps are
 * untouched. */
static int norm_result(foreloop_layer_norm_f32 *layer_norm, size_t rows, size_t width, float mean, size_t gap) {
    random_source source = {rows * 131 + width * 7 + gap + 1};
    const size_t stride = width + 3, size = (rows - 1) * stride + width;
    guarded x = guarded_make(size, gap), gamma = guarded_make(width, gap / 2), beta = guarded_make(width, 0);
    float *given = malloc(size * sizeof *given), *alone = malloc(width * sizeof *alone);
    int result = 7;
    guarded_fill(&x, &source);
    guarded_fill(&gamma, &source);
    guarded_fill(&beta, &source);
    for (size_t i = 0; i < size; i++)
        x.values[i] += mean;
    memcpy(given, x.values, size * sizeof *given);
    layer_norm(x.values, stride, gamma.values, beta.values, 1e-5, rows, width);
    for (size_t r = 0; r < rows; r++) {
        double sum = 0, squares = 0;
        for (size_t i = 0; i < width; i++)
            sum += given[r * stride + i];
        for (size_t i = 0; i < width; i++)
            squares += pow(given[r * stride + i] - sum / (double)width, 2);
        const double scale = 1 / sqrt(squares / (double)width + 1e-5);
        for (size_t i = 0; i < width; i++) {
            const double unit = (given[r * stride + i] - sum / (double)width) * scale;
            const double expected = unit * gamma.values[i] + beta.values[i];
            /* The mean is rounded to float32, and so is the distance from it. */
            if (!(fabs(x.values[r * stride + i] - expected) <= 1e-6 * (1 + fabs(unit)) + 1.2e-7 * fabs(mean) * scale))
                result &= 6;
        }
        for (size_t i = r * stride + width; i < (r + 1) * stride && i < size; i++)
            if (x.values[i] != given[i])
                result &= 3;
    }
    memcpy(alone, given + (rows - 1) * stride, width * sizeof *alone);
    layer_norm(alone, 1, gamma.values, beta.values, 1e-5, 1, width);
    if (memcmp(alone, x.values + (rows - 1) * stride, width * sizeof *alone) != 0)
        result &= 5;
    guarded_free(&x);
    guarded_free(&gamma);
    guarded_free(&beta);
    free(given);
    free(alone);
    return result;
}

static void check_norm(foreloop_layer_norm_f32 *layer_norm, const char *tier) {
    static const size_t widths[] = {1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 100, 256, 768, 1025};
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        int result = 7;
        for (size_t rows = 1; rows <= 5; rows += 2)
            for (size_t gap = 0; gap < 16; gap += 5)
                result &= norm_result(layer_norm, rows, widths[w], gap % 2 ? 0.0f : 50.0f, gap);
        CHECK(result == 7, "%s: layer norm of %zu%s%s%s", tier, widths[w], result & 1 ? "" : ": wrong",
              result & 2 ? "" : ": depends on other rows", result & 4 ? "" : ": writes elsewhere");
    }
    const float ones[2] = {1.0f, 1.0f}, zeros[2] = {0.0f, 0.0f};
    float x[2] = {0.001f, -0.001f}, y[2] = {0.001f, -0.001f}, nan[2] = {1.0f, NAN};
    layer_norm(x, 2, ones, zeros, 1e-12, 1, 2);
    layer_norm(y, 2, ones, zeros, 1e-5, 1, 2);
    layer_norm(nan, 2, ones, zeros, 1e-5, 1, 2);
    CHECK(fabsf(x[0] - 0.9999995f) < 2e-7f && x[1] == -x[0], "%s: epsilon 1e-12 leaves small numbers their scale",
          tier);
    CHECK(fabsf(y[0] - 0.3015113f) < 1e-7f && y[1] == -y[0], "%s: epsilon 1e-5 shrinks them", tier);
    CHECK(isnan(nan[0]) && isnan(nan[1]), "%s: NaN comes through", tier);
}

static double activate(foreloop_activation activation, double x) {
    if (activation == FORELOOP_ACTIVATION_GELU)
        return 0.5 * x * erfc(-x / sqrt(2));
    if (activation == FORELOOP_ACTIVATION_GELU_TANH)
        return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
    return x > 0 ? x : 0;
}

static void check_activation(foreloop_activation_f32 *function, foreloop_activation activation, const char *name,
                             const char *tier) {
    enum { COUNT = 200000 };
    static const float odd[] = {0.0f,  -0.0f,  1e-38f, -1e-38f, 1e-45f, 5.5999f, -5.5999f, 5.6f,   -5.6f, 5.6001f,
                                88.0f, -88.0f, 1e4f,   -1e4f,   1e10f,  -1e10f,  1e30f,    -1e30f, 3e38f, -3e38f};
    guarded values = guarded_make(COUNT, 0);
    double off = 0;
    for (size_t i = 0; i < COUNT; i++)
        values.values[i] = ((float)i - COUNT / 2) * (12.0f / COUNT);
    memcpy(values.values, odd, sizeof odd);
    float *given = malloc(COUNT * sizeof *given);
    memcpy(given, values.values, COUNT * sizeof *given);
    function(values.values, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        off = fmax(off, fabs(values.values[i] - activate(activation, given[i])) / fmax(1, fabs((double)given[i])));
    CHECK(off <= 3e-7, "%s: %s is off by %.1e", tier, name, off);
    /* Every length, alone: the same bits. */
    int same = 1;
    for (size_t count = 0; count < 70; count++) {
        float *part = values.values + COUNT - count;
        float expected[70];
        memcpy(expected, part, count * sizeof *part);
        memcpy(part, given + COUNT - count, count * sizeof *part);
        function(part, count);
        same &= memcmp(part, expected, count * sizeof *part) == 0;
    }
    CHECK(same, "%s: %s of every length", tier, name);
    float nan[3] = {1.0f, NAN, 2.0f};
    function(nan, 3);
    CHECK(isfinite(nan[0]) && isnan(nan[1]) && isfinite(nan[2]), "%s: %s of NaN", tier, name);
    guarded_free(&values);
    free(given);
}

int main(void) {
    static const char *const names[] = {"gelu", "gelu_tanh", "relu"};
    for (foreloop_tier tier = FORELOOP_TIER_REF; tier <= FORELOOP_TIER_AVX512; tier++) {
        foreloop_kernels kernels;
        if (tier > foreloop_cpu_tier(FORELOOP_TIER_BEST)) {
            tap_skip("this machine lacks a tier");
            continue;
        }
        foreloop_kernels_init(&kernels, tier, 0);
        check_norm(kernels.layer_norm, tier_names[tier]);
        for (size_t i = 0; i < FORELOOP_ACTIVATION_COUNT; i++)
            check_activation(kernels.activation[i], (foreloop_activation)i, names[i], tier_names[tier]);
    }
    return tap_done();
}
