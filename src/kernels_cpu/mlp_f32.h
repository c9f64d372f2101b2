/*
 * Kernels of a small multilayer perceptron over features: the score network. A row alone and rows in blocks have the
 * same bits, which every tier must give:
 *
 *     x = min(max((feature - shift) * scale, -limit), limit)                        each operation rounded
 *     acc = bias[o];  for i = 0, 1, ... in - 1: acc = fma(weight[i][o], x[i], acc)   output o of a layer
 *     relu: acc > 0 ? acc : 0
 *
 * max(a, b) is a > b ? a : b and min(a, b) is a < b ? a : b, so that even NaN would become a number.
 *
 * In blocks number i of row r lies at [i * FORELOOP_MLP_ROWS + r], aligned to 64. Rows are computed in whole groups of
 * FORELOOP_MLP_LANES: those behind `rows` are read and written too, whatever they hold. Outputs do not overlap inputs.
 */
#ifndef FORELOOP_KERNELS_CPU_MLP_F32_H
#define FORELOOP_KERNELS_CPU_MLP_F32_H

#include <foreloop/foreloop.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FORELOOP_MLP_ROWS = 64, FORELOOP_MLP_LANES = 16 };

typedef struct foreloop_mlp_layer {
    size_t in, out;
    size_t stride;       /* `out` rounded up to FORELOOP_MLP_LANES */
    const float *weight; /* [in][stride], padding 0, aligned to 64 */
    const float *bias;   /* [stride], padding 0, aligned to 64 */
} foreloop_mlp_layer;

typedef struct foreloop_mlp_f32 {
    const char *tier;
    /* x[i] from the feature row[columns[i]], for i < count. */
    void (*standardise_row)(const float *row, const uint32_t *columns, const float *shift, const float *scale,
                            float limit, size_t count, float *x);
    /* The rows of x[count] from features in blocks: row r of block[values[i] * FORELOOP_MLP_ROWS + r]. */
    void (*standardise_block)(const float *block, const uint32_t *values, const float *shift, const float *scale,
                              float limit, size_t count, size_t rows, float *x);
    /* y[stride] of x[in]. */
    void (*row)(const foreloop_mlp_layer *layer, bool relu, const float *x, float *y);
    /* The rows of y[out] of those of x[in]. */
    void (*block)(const foreloop_mlp_layer *layer, bool relu, const float *x, size_t rows, float *y);
} foreloop_mlp_f32;

/* The kernels of the given tier, which this machine must have. */
void foreloop_mlp_f32_init(foreloop_mlp_f32 *kernels, foreloop_tier tier);

void foreloop_mlp_f32_ref(foreloop_mlp_f32 *kernels);
void foreloop_mlp_f32_avx2(foreloop_mlp_f32 *kernels);
void foreloop_mlp_f32_avx512(foreloop_mlp_f32 *kernels);

/* The rows that are computed for so many. */
static inline size_t foreloop_mlp_whole_rows(size_t rows) {
    return (rows + FORELOOP_MLP_LANES - 1) / FORELOOP_MLP_LANES * FORELOOP_MLP_LANES;
}

#endif
