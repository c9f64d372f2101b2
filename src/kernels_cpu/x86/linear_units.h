/*
 * What the bf16 and int8 linear kernels share: how prepared rows lie in memory, and in which order a call's parts run.
 *
 * Rows are prepared in units of UNIT_ROWS. A unit is [chunks][UNIT_ROWS][64 bytes], a chunk being 64 bytes of each row,
 * and then what the kernel keeps for each row. So the rows of a register tile lie at constant distances, whatever the
 * width, a tile of AMX is 1 KiB in one piece, and no two rows compete for a set of the cache.
 */
#ifndef FORELOOP_KERNELS_CPU_X86_LINEAR_UNITS_H
#define FORELOOP_KERNELS_CPU_X86_LINEAR_UNITS_H

#include "kernels_cpu/linear_finish.h"
#include "kernels_cpu/x86/lanes.h"

#if defined(__AVX512F__)
/* A register tile is 12 x 32: 24 registers of sums, 2 of weights, 1 of inputs. */
enum { TILE_ROWS = 12 };
static foreloop_activation_f32 *const tier_activations[] = {foreloop_gelu_f32_avx512, foreloop_gelu_tanh_f32_avx512,
                                                            foreloop_relu_f32_avx512};
#define TIER FORELOOP_TIER_AVX512
#else
/* A register tile is 6 x 16: 12 registers of sums, 2 of weights, 1 of inputs, 1 of products. */
enum { TILE_ROWS = 6 };
static foreloop_activation_f32 *const tier_activations[] = {foreloop_gelu_f32_avx2, foreloop_gelu_tanh_f32_avx2,
                                                            foreloop_relu_f32_avx2};
#define TIER FORELOOP_TIER_AVX2
#endif

enum { PANEL = FORELOOP_LINEAR_PANEL, CHUNK = 64, TILE_WIDTH = 2 * LANES };

/* The rows that share a pass over a panel fill half of a second-level cache at the most. */
enum { CACHED_ROWS_SIZE = 1 << 20 };

typedef struct unit_shape {
    size_t rows; /* of a unit */
    size_t chunks;
    size_t size; /* bytes of a unit */
} unit_shape;

/* `row_end` bytes are kept for each row behind the chunks. */
FORELOOP_INLINE unit_shape unit_shape_of(size_t rows, size_t chunks, size_t row_end) {
    const size_t size = rows * (chunks * CHUNK + row_end);
    return (unit_shape){rows, chunks, (size + 63) / 64 * 64};
}

FORELOOP_INLINE size_t unit_memory(const unit_shape *shape, size_t rows) {
    return (rows + shape->rows - 1) / shape->rows * shape->size;
}

/* Zeros for the rows that the last unit lacks, when the range that ends at row_end is the last one. */
static inline void clear_rest(const unit_shape *shape, void *prepared, size_t rows, size_t row_end) {
    if (row_end == rows && rows % shape->rows != 0)
        memset((unsigned char *)prepared + rows / shape->rows * shape->size, 0, shape->size);
}

/* A piece of a call: one unit's rows times one panel. */
typedef struct unit_work {
    const foreloop_linear_call *call;
    const unit_shape *shape;
    const unsigned char *unit, *panel;
    size_t panel_size;
    size_t first;     /* the unit's first row of the call */
    size_t rows, out; /* how many there are; the panel's first output */
} unit_work;

/* Calls unit(work) for every piece: panel after panel for as many rows as a cache holds, so that weights come from
 * memory once for all of these. */
FORELOOP_INLINE void for_each_unit(const foreloop_linear_call *call, const unit_shape *shape, const void *panels,
                                   size_t panel_size, size_t row_begin, size_t row_end, size_t out_begin,
                                   size_t out_end, void (*unit)(const unit_work *work)) {
    const size_t cached = CACHED_ROWS_SIZE / shape->size, units = cached > 0 ? cached : 1;
    for (size_t begin = row_begin; begin < row_end; begin += units * shape->rows) {
        const size_t end = row_end - begin < units * shape->rows ? row_end : begin + units * shape->rows;
        for (size_t out = out_begin; out < out_end; out += PANEL)
            for (size_t row = begin; row < end; row += shape->rows) {
                const unit_work work = {.call = call,
                                        .shape = shape,
                                        .unit = (const unsigned char *)call->prepared + row / shape->rows * shape->size,
                                        .panel = (const unsigned char *)panels + out / PANEL * panel_size,
                                        .first = row,
                                        .rows = end - row < shape->rows ? end - row : shape->rows,
                                        .panel_size = panel_size,
                                        .out = out};
                unit(&work);
            }
    }
}

/* Not inline: it is long, and called from many places. */
__attribute__((noinline)) static void finish_tile(const unit_work *work, size_t first, size_t rows, float *sums) {
    foreloop_linear_finish(work->call, sums, work->first + first, rows, work->out, tier_activations);
}

#if !defined(FORELOOP_UNITS_IN_TILES)
/* What a call needs before and after its pieces: nothing. */
FORELOOP_INLINE void begin_units(void) {
}

FORELOOP_INLINE void end_units(void) {
}
#endif

/* X(r) for each row r of a tile. Sums are variables of their own, not arrays: compilers do not always keep arrays in
 * registers, and `if (r < rows)` with constant rows leaves no trace. */
#define FOR_ROWS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)

/* Brings the lines of weights in that a step of the tile will need: soon, from the second-level cache, and from memory
 * what lies at the same place of the next panel, `panel_size` further. `bytes` is what a step reads, 64 or 128. */
FORELOOP_INLINE void fetch_ahead(const void *weights, size_t panel_size, size_t bytes) {
    enum { NEAR = 1024 };
    const char *at = weights;
    for (size_t i = 0; i < bytes; i += 64) {
        _mm_prefetch(at + NEAR + i, _MM_HINT_T0);
        _mm_prefetch(at + panel_size + i, _MM_HINT_T1);
    }
}

/* Computes the sums[rows][PANEL] of the rows from `first` on of a unit. */
typedef void unit_tile(const unit_work *work, size_t first, size_t rows, float *sums);

/* `tile` for a constant number of rows: the next larger one for which there is code. Rows that a unit lacks are
 * prepared as zeros. */
FORELOOP_INLINE void run_tile(const unit_work *work, size_t first, size_t rows, float *sums, unit_tile *tile) {
    if (rows > 8)
        tile(work, first, 12 < TILE_ROWS ? 12 : TILE_ROWS, sums);
    else if (rows > 4)
        tile(work, first, 8 < TILE_ROWS ? 8 : TILE_ROWS, sums);
    else if (rows > 2)
        tile(work, first, 4, sums);
    else if (rows == 2)
        tile(work, first, 2, sums);
    else
        tile(work, first, 1, sums);
}

/* A unit in at most two tiles. One that is not full is cut in halves: two tiles of 8 rows are faster than one of 12
 * and one of 4. */
FORELOOP_INLINE void run_tiles(const unit_work *work, unit_tile *tile) {
    const size_t half = work->rows > TILE_ROWS ? (work->rows + 1) / 2 : work->rows;
    FORELOOP_ROLLED
    for (size_t first = 0; first < work->rows; first += half) {
        const size_t rows = work->rows - first < half ? work->rows - first : half;
        float sums[TILE_ROWS * PANEL];
        run_tile(work, first, rows, sums, tile);
        finish_tile(work, first, rows, sums);
    }
}

#endif
