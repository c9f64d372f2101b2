/* Reference kernels of the score network: they define the bits. */
#include "kernels_cpu/mlp_f32.h"
#include <math.h>
#include <string.h>

enum { ROWS = FORELOOP_MLP_ROWS };

static float standardise(float feature, float shift, float scale, float limit) {
    const float x = (feature - shift) * scale, low = x > -limit ? x : -limit;
    return low < limit ? low : limit;
}

static void standardise_row(const float *row, const uint32_t *columns, const float *shift, const float *scale,
                            float limit, size_t count, float *x) {
    for (size_t i = 0; i < count; i++)
        x[i] = standardise(row[columns[i]], shift[i], scale[i], limit);
}

static void standardise_block(const float *block, const uint32_t *values, const float *shift, const float *scale,
                              float limit, size_t count, size_t rows, float *x) {
    const size_t whole = foreloop_mlp_whole_rows(rows);
    for (size_t i = 0; i < count; i++)
        for (size_t r = 0; r < whole; r++)
            x[i * ROWS + r] = standardise(block[values[i] * (size_t)ROWS + r], shift[i], scale[i], limit);
}

static float finish(float sum, bool relu) {
    return relu && !(sum > 0) ? 0 : sum;
}

static void row(const foreloop_mlp_layer *layer, bool relu, const float *x, float *y) {
    memcpy(y, layer->bias, layer->stride * sizeof *y);
    for (size_t i = 0; i < layer->in; i++)
        for (size_t o = 0; o < layer->stride; o++)
            y[o] = fmaf(layer->weight[i * layer->stride + o], x[i], y[o]);
    for (size_t o = 0; o < layer->stride; o++)
        y[o] = finish(y[o], relu);
}

static void block(const foreloop_mlp_layer *layer, bool relu, const float *x, size_t rows, float *y) {
    const size_t whole = foreloop_mlp_whole_rows(rows);
    for (size_t o = 0; o < layer->out; o++, y += ROWS) {
        for (size_t r = 0; r < whole; r++)
            y[r] = layer->bias[o];
        for (size_t i = 0; i < layer->in; i++)
            for (size_t r = 0; r < whole; r++)
                y[r] = fmaf(layer->weight[i * layer->stride + o], x[i * ROWS + r], y[r]);
        for (size_t r = 0; r < whole; r++)
            y[r] = finish(y[r], relu);
    }
}

void foreloop_mlp_f32_ref(foreloop_mlp_f32 *kernels) {
    *kernels = (foreloop_mlp_f32){"ref", standardise_row, standardise_block, row, block};
}
