/*
 * The kernels of the score network on AVX2 and AVX-512: fused multiply-adds in the order of the reference, whose lanes
 * are rows of a block, or outputs where a row is alone.
 *
 * Layers of blocks are near the limit of the multipliers: 158 inputs, 64, 64 and 1 outputs take .167 us a row on 64
 * rows with AVX-512, 96 % of the 89 fused multiply-adds a nanosecond that a Xeon of 2.8 GHz reaches (AVX2: .353 us, 84
 * %); standardising adds .013 us. A row alone, .59 us, is nearer to the latency of its chains: an output's
 * multiply-adds wait for one another, four cycles each, 286 of them are .41 us, and 64 outputs are only four vectors.
 * Weights that lie together tile by tile were .3 % faster on 64 rows and 8 % on 16: not worth a second copy of them.
 */
#include "kernels_cpu/mlp_f32.h"
#include "kernels_cpu/x86/vector.h"

enum {
    ROWS = FORELOOP_MLP_ROWS,
    GROUP = FORELOOP_MLP_LANES / LANES, /* vectors of the fewest rows, and of the fewest outputs */
    SUMS = VECTOR_REGISTERS / 2         /* of a tile: the others hold what they are made of */
};

VECTOR_INLINE vec standardise(vec feature, vec shift, vec scale, vec limit) {
    const vec x = vec_mul(vec_sub(feature, shift), scale);
    return vec_min(vec_max(x, vec_sub(vec_set(-0.0f), limit)), limit);
}

static void standardise_row(const float *row, const uint32_t *columns, const float *shift, const float *scale,
                            float limit, size_t count, float *x) {
    const size_t left = count % LANES, whole = count - left;
    for (size_t i = 0; i < count; i++)
        x[i] = row[columns[i]];
    for (size_t i = 0; i < whole; i += LANES)
        vec_store(x + i, standardise(vec_load(x + i), vec_load(shift + i), vec_load(scale + i), vec_set(limit)));
    const vec last = standardise(vec_load_some(x + whole, left), vec_load_some(shift + whole, left),
                                 vec_load_some(scale + whole, left), vec_set(limit));
    vec_store_some(x + whole, last, left);
}

static void standardise_block(const float *block, const uint32_t *values, const float *shift, const float *scale,
                              float limit, size_t count, size_t rows, float *x) {
    const size_t whole = foreloop_mlp_whole_rows(rows);
    for (size_t i = 0; i < count; i++)
        for (size_t r = 0; r < whole; r += LANES)
            vec_store(x + i * ROWS + r, standardise(vec_load(block + values[i] * (size_t)ROWS + r), vec_set(shift[i]),
                                                    vec_set(scale[i]), vec_set(limit)));
}

VECTOR_INLINE vec finish(vec sum, bool relu) {
    return relu ? vec_max(sum, vec_set(0)) : sum;
}

/* Outputs from `first` on, a vector of them at a time. */
VECTOR_INLINE void row_outputs(const foreloop_mlp_layer *layer, bool relu, const float *x, size_t first, size_t vectors,
                               float *y) {
    const float *weight = layer->weight + first;
    vec sum[VECTOR_REGISTERS / 2];
    VECTOR_UNROLL
    for (size_t v = 0; v < vectors; v++)
        sum[v] = vec_load(layer->bias + first + v * LANES);
    for (size_t i = 0; i < layer->in; i++, weight += layer->stride) {
        const vec factor = vec_set(x[i]);
        VECTOR_UNROLL
        for (size_t v = 0; v < vectors; v++)
            sum[v] = vec_fma(vec_load(weight + v * LANES), factor, sum[v]);
    }
    VECTOR_UNROLL
    for (size_t v = 0; v < vectors; v++)
        vec_store(y + first + v * LANES, finish(sum[v], relu));
}

static void row(const foreloop_mlp_layer *layer, bool relu, const float *x, float *y) {
    enum { WIDE = 4 * GROUP };
    size_t first = 0;
    for (; layer->stride - first >= WIDE * LANES; first += WIDE * LANES)
        row_outputs(layer, relu, x, first, WIDE, y);
    for (; first < layer->stride; first += GROUP * LANES)
        row_outputs(layer, relu, x, first, GROUP, y);
}

/* Some outputs of some vectors of rows. */
VECTOR_INLINE void tile(const foreloop_mlp_layer *layer, bool relu, const float *x, size_t first, size_t outputs,
                        size_t vectors, float *y) {
    const float *weight = layer->weight + first;
    vec sum[SUMS];
    VECTOR_UNROLL
    for (size_t s = 0; s < outputs * vectors; s++)
        sum[s] = vec_set(layer->bias[first + s / vectors]);
    for (size_t i = 0; i < layer->in; i++, weight += layer->stride, x += ROWS) {
        vec own[4];
        VECTOR_UNROLL
        for (size_t v = 0; v < vectors; v++)
            own[v] = vec_load(x + v * LANES);
        VECTOR_UNROLL
        for (size_t s = 0; s < outputs * vectors; s++)
            sum[s] = vec_fma(own[s % vectors], vec_set(weight[s / vectors]), sum[s]);
    }
    VECTOR_UNROLL
    for (size_t s = 0; s < outputs * vectors; s++)
        vec_store(y + (first + s / vectors) * ROWS + s % vectors * LANES, finish(sum[s], relu));
}

/* All outputs of some vectors of rows. */
VECTOR_INLINE void part(const foreloop_mlp_layer *layer, bool relu, const float *x, size_t vectors, float *y) {
    const size_t outputs = SUMS / vectors;
    size_t first = 0;
    for (; layer->out - first >= outputs; first += outputs)
        tile(layer, relu, x, first, outputs, vectors, y);
    for (; first < layer->out; first++)
        tile(layer, relu, x, first, 1, vectors, y);
}

/* Tiles of four outputs at least: the fewer loads for a multiply-add, the nearer they are to square. */
static void block(const foreloop_mlp_layer *layer, bool relu, const float *x, size_t rows, float *y) {
    enum { TALL = SUMS / 4 };
    const size_t whole = foreloop_mlp_whole_rows(rows);
    size_t r = 0;
    for (; whole - r >= TALL * LANES; r += TALL * LANES)
        part(layer, relu, x + r, TALL, y + r);
    for (; whole - r >= 2 * LANES; r += 2 * LANES)
        part(layer, relu, x + r, 2, y + r);
    for (; r < whole; r += LANES)
        part(layer, relu, x + r, 1, y + r);
}

void FORELOOP_X86(foreloop_mlp_f32)(foreloop_mlp_f32 *kernels) {
    *kernels = (foreloop_mlp_f32){LANES == 16 ? "avx512" : "avx2", standardise_row, standardise_block, row, block};
}
