/*
 * attention_f32 by tiles (tile_f32.h): for a tile's rows of queries, the scores of a block of keys, their softmax so
 * far, and its product with the values, block after block. Scores and results of a tile stay in the first-level cache,
 * packed keys and values in the second. With heads of 64 numbers two thirds of the time are multiply-adds.
 */
#include "kernels_cpu/attention_f32.h"
#include "kernels_cpu/x86/math_f32.h"
#include "kernels_cpu/x86/tile_f32.h"
#include <math.h>
#include <string.h>

/* Keys of a block. Results depend on it in their last bits: it is no matter of tuning. */
enum { KEYS = 256 };

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

static size_t padded(size_t count) {
    return (count + TILE_WIDTH - 1) / TILE_WIDTH * TILE_WIDTH;
}

/* Scratch: keys in panels of TILE_WIDTH, each [width][TILE_WIDTH]; values in panels of as many numbers, each
 * [count][TILE_WIDTH]; a tile's scores [TILE_ROWS][KEYS] and sums [TILE_ROWS][padded(width)]. */
static size_t scratch_size(size_t count, size_t width) {
    return padded(count) * width + padded(width) * count + TILE_ROWS * (KEYS + padded(width));
}

/* panel[width][TILE_WIDTH] <- the transpose of keys[count][width], with zeros behind the last key. */
static void pack_keys(float *panel, const float *keys, size_t stride, size_t count, size_t width) {
    const size_t whole = width / 4 * 4;
    for (size_t c = 0; c < count / 4 * 4; c += 4)
        for (size_t i = 0; i < whole; i += 4) {
            const float *from = keys + c * stride + i;
            __m128 a = _mm_loadu_ps(from), b = _mm_loadu_ps(from + stride);
            __m128 d = _mm_loadu_ps(from + 2 * stride), e = _mm_loadu_ps(from + 3 * stride);
            _MM_TRANSPOSE4_PS(a, b, d, e);
            float *to = panel + i * TILE_WIDTH + c;
            _mm_storeu_ps(to, a);
            _mm_storeu_ps(to + TILE_WIDTH, b);
            _mm_storeu_ps(to + 2 * TILE_WIDTH, d);
            _mm_storeu_ps(to + 3 * TILE_WIDTH, e);
        }
    for (size_t i = 0; i < width; i++) {
        for (size_t c = i < whole ? count / 4 * 4 : 0; c < count; c++)
            panel[i * TILE_WIDTH + c] = keys[c * stride + i];
        for (size_t c = count; c < TILE_WIDTH; c++)
            panel[i * TILE_WIDTH + c] = 0.0f;
    }
}

static void pack(float *scratch, const float *keys, const float *values, size_t stride, size_t count, size_t width) {
    float *panel = scratch;
    for (size_t first = 0; first < count; first += TILE_WIDTH, panel += width * TILE_WIDTH)
        pack_keys(panel, keys + first * stride, stride, smaller(TILE_WIDTH, count - first), width);
    for (size_t first = 0; first < width; first += TILE_WIDTH, panel += count * TILE_WIDTH)
        for (size_t c = 0; c < count; c++)
            for (size_t i = 0; i < TILE_WIDTH; i += LANES) {
                const size_t left = first + i < width ? smaller(LANES, width - first - i) : 0;
                const float *from = left ? values + c * stride + first + i : values;
                vec_store(panel + c * TILE_WIDTH + i, vec_load_some(from, left));
            }
}

/* A row's softmax so far: what its exponents are moved by, and the sum of the exponentials. */
typedef struct softmax {
    float centre, sum;
} softmax;

/* scores[count] <- exp(scale scores + centre), the centre being such that no exponential of this block or the former
 * ones exceeds 1. Returns what former sums must be multiplied with, as they were made with another centre. */
VECTOR_INLINE float add_scores(softmax *row, float *scores, size_t count, float scale, bool first) {
    vec largest = vec_set(-INFINITY);
    const size_t whole = count / LANES * LANES, rest = count - whole;
    for (size_t c = 0; c < whole; c += LANES)
        largest = vec_max(largest, vec_load(scores + c));
    if (rest)
        largest = vec_max(largest, vec_join(vec_load(scores + whole), vec_set(-INFINITY), rest));
    float centre = -vec_largest(largest) * scale;
    if (!first && row->centre < centre)
        centre = row->centre;
    const vec factor = vec_set(scale), centres = vec_set(centre);
    vec sum = vec_set(0.0f);
    for (size_t c = 0; c < whole; c += LANES) {
        const vec e = vec_exp(vec_fma(vec_load(scores + c), factor, centres));
        vec_store(scores + c, e);
        sum = vec_add(sum, e);
    }
    if (rest) {
        const vec e = vec_exp(vec_fma(vec_load(scores + whole), factor, centres));
        vec_store(scores + whole, e);
        sum = vec_add(sum, vec_join(e, vec_set(0.0f), rest));
    }
    const float former = first ? 0.0f : vec_first(vec_exp(vec_set(centre - row->centre)));
    row->sum = (first ? 0.0f : row->sum * former) + vec_sum(sum);
    row->centre = centre;
    return former;
}

/* What a call works with. */
typedef struct attention {
    const float *keys, *values;
    float *scores, *sums;
    size_t stride, count, width;
    float scale;
} attention;

/* sums (+)= softmax so far x values, for the keys from `first` on. */
static void add_keys(const attention *all, const float *queries, size_t rows, size_t first, softmax *softmaxes) {
    const size_t count = smaller(KEYS, all->count - first), width = padded(all->width);
    foreloop_tile_f32 tile = {.x = queries, .x_stride = all->stride, .depth = all->width, .sums_stride = KEYS};
    for (size_t c = 0; c < count; c += TILE_WIDTH) {
        tile.panel = all->keys + (first + c) * all->width;
        tile.sums = all->scores + c;
        FORELOOP_X86(foreloop_tile_f32_run)(&tile, rows);
    }
    for (size_t r = 0; r < rows; r++) {
        const float former = add_scores(&softmaxes[r], all->scores + r * KEYS, count, all->scale, first == 0);
        for (size_t i = 0; i < width && first; i += LANES) {
            float *sums = all->sums + r * width + i;
            vec_store(sums, vec_mul(vec_load(sums), vec_set(former)));
        }
    }
    tile = (foreloop_tile_f32){
        .x = all->scores, .x_stride = KEYS, .depth = count, .sums_stride = width, .former_stride = width};
    for (size_t i = 0; i < width; i += TILE_WIDTH) {
        tile.panel = all->values + i * all->count + first * TILE_WIDTH;
        tile.sums = all->sums + i;
        tile.former = first > 0 ? tile.sums : NULL;
        FORELOOP_X86(foreloop_tile_f32_run)(&tile, rows);
    }
}

static void run_tile(const attention *all, float *context, const float *queries, size_t rows) {
    softmax softmaxes[TILE_ROWS];
    for (size_t first = 0; first < all->count; first += KEYS)
        add_keys(all, queries, rows, first, softmaxes);
    for (size_t r = 0; r < rows; r++) {
        const vec sum = vec_set(softmaxes[r].sum);
        const float *sums = all->sums + r * padded(all->width);
        for (size_t i = 0; i < all->width; i += LANES)
            vec_store_some(context + r * all->stride + i, vec_div(vec_load(sums + i), sum),
                           smaller(LANES, all->width - i));
    }
}

static void run(float *context, const float *queries, size_t stride, size_t rows, float *scratch, size_t count,
                size_t width, float scale) {
    const attention all = {.keys = scratch,
                           .values = scratch + padded(count) * width,
                           .scores = scratch + padded(count) * width + padded(width) * count,
                           .sums = scratch + padded(count) * width + padded(width) * count + TILE_ROWS * KEYS,
                           .stride = stride,
                           .count = count,
                           .width = width,
                           .scale = scale};
    const size_t tiles = (rows + TILE_ROWS - 1) / TILE_ROWS;
    for (size_t t = 0; t < tiles; t++) {
        const size_t first = rows * t / tiles, end = rows * (t + 1) / tiles;
        run_tile(&all, context + first * stride, queries + first * stride, end - first);
    }
}

void FORELOOP_X86(foreloop_attention_f32)(foreloop_attention_f32 *attention_f32) {
    *attention_f32 = (foreloop_attention_f32){
        .tier = VECTOR_TIER, .query_unit = 2 * TILE_ROWS, .scratch_size = scratch_size, .pack = pack, .run = run};
}
