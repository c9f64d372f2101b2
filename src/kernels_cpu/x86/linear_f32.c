/*
 * linear_f32 by tiles (tile_f32.h). W is packed in panels of TILE_WIDTH outputs, each stored [in][TILE_WIDTH].
 *
 * A block of rows meets one panel after the other, in pieces of DEPTH inputs: the piece, and what of x belongs to it,
 * stay in the second-level cache while the block's tiles pass, and the sums of the block in the first-level one. So
 * each weight comes from memory once for every BLOCK_ROWS rows, brought ahead by the tiles themselves. With many rows
 * the kernel is near the limit of the multiply-add units, with few near that of the memory.
 */
#include "kernels_cpu/linear.h"
#include "kernels_cpu/x86/math_f32.h"
#include "kernels_cpu/x86/tile_f32.h"
#include "kernels_cpu/x86/transpose_f32.h"
#include <string.h>

/* Inputs of a piece. Each piece has a sum of its own, so that the rounding errors of a long sum stay small: results
 * depend on DEPTH in their last bits, and on no other block size. A piece is 48 KiB (AVX-512), and what of x belongs to
 * it 84 KiB: they fit every second-level cache. Twice the rows, two thirds or twice the inputs, and half or twice the
 * distance of the tile's prefetches change its speed by less than it varies (3 %) on a machine with 2 MiB of that
 * cache. */
enum { DEPTH = 384, BLOCK_TILES = LANES == 16 ? 4 : 8, BLOCK_ROWS = BLOCK_TILES * TILE_ROWS };

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

static size_t panels(size_t out) {
    return (out + TILE_WIDTH - 1) / TILE_WIDTH;
}

static size_t packed_size(size_t in, size_t out) {
    return panels(out) * in * TILE_WIDTH * sizeof(float);
}

/* panel[j][o] = weight[o][j] for LANES inputs j and outputs o, fewer where the matrix ends. */
static void pack_square(float *panel, const float *weight, size_t stride, size_t inputs, size_t outputs) {
    vec rows[LANES];
    if (inputs < LANES || outputs < LANES) {
        for (size_t o = 0; o < outputs; o++)
            for (size_t j = 0; j < inputs; j++)
                panel[j * TILE_WIDTH + o] = weight[o * stride + j];
        return;
    }
    for (size_t o = 0; o < LANES; o++)
        rows[o] = vec_load(weight + o * stride);
    vec_transpose(rows);
    for (size_t j = 0; j < LANES; j++)
        vec_store(panel + j * TILE_WIDTH, rows[j]);
}

static void pack(void *packed, const float *weight, size_t in, size_t out) {
    float *panel = packed;
    for (size_t first = 0; first < out; first += TILE_WIDTH, panel += in * TILE_WIDTH) {
        const size_t width = smaller(TILE_WIDTH, out - first);
        if (width < TILE_WIDTH)
            memset(panel, 0, in * TILE_WIDTH * sizeof *panel);
        /* A few inputs at a time, so that the panel's lines are filled while they are in the first-level cache. */
        for (size_t i = 0; i < in; i += LANES)
            for (size_t o = 0; o < width; o += LANES)
                pack_square(panel + i * TILE_WIDTH + o, weight + (first + o) * in + i, in, smaller(LANES, in - i),
                            smaller(LANES, width - o));
    }
}

/* y <- epilogue(sums + bias) for a vector of `count` outputs. */
VECTOR_INLINE void finish_vector(const foreloop_linear_call *call, size_t row, size_t out, const float *sums, vec bias,
                                 foreloop_epilogue epilogue, size_t count) {
    const size_t place = row * call->y_stride + out;
    vec y = vec_add(vec_load(sums), bias);
    if (epilogue == FORELOOP_EPILOGUE_RESIDUAL)
        y = vec_add(y,
                    count == LANES ? vec_load(call->residual + place) : vec_load_some(call->residual + place, count));
    else if (epilogue != FORELOOP_EPILOGUE_NONE)
        y = vec_activate(y, (foreloop_activation)epilogue);
    if (count == LANES)
        vec_store(call->y + place, y);
    else
        vec_store_some(call->y + place, y, count);
}

VECTOR_INLINE void finish_rows(const foreloop_linear_call *call, size_t row, size_t rows, size_t out, const float *sums,
                               foreloop_epilogue epilogue) {
    const size_t width = smaller(TILE_WIDTH, call->out - out);
    for (size_t i = 0; i < width; i += LANES) {
        const size_t count = smaller(LANES, width - i);
        const vec bias = vec_load_some(call->bias + out + i, count);
        if (count == LANES)
            for (size_t r = 0; r < rows; r++)
                finish_vector(call, row + r, out + i, sums + r * TILE_WIDTH + i, bias, epilogue, LANES);
        else
            for (size_t r = 0; r < rows; r++)
                finish_vector(call, row + r, out + i, sums + r * TILE_WIDTH + i, bias, epilogue, count);
    }
}

/* A loop for each epilogue. */
static void finish(const foreloop_linear_call *call, size_t row, size_t rows, size_t out, const float *sums) {
    switch (call->epilogue) {
    case FORELOOP_EPILOGUE_GELU:
        finish_rows(call, row, rows, out, sums, FORELOOP_EPILOGUE_GELU);
        return;
    case FORELOOP_EPILOGUE_GELU_TANH:
        finish_rows(call, row, rows, out, sums, FORELOOP_EPILOGUE_GELU_TANH);
        return;
    case FORELOOP_EPILOGUE_RELU:
        finish_rows(call, row, rows, out, sums, FORELOOP_EPILOGUE_RELU);
        return;
    case FORELOOP_EPILOGUE_RESIDUAL:
        finish_rows(call, row, rows, out, sums, FORELOOP_EPILOGUE_RESIDUAL);
        return;
    case FORELOOP_EPILOGUE_NONE:
        finish_rows(call, row, rows, out, sums, FORELOOP_EPILOGUE_NONE);
        return;
    }
}

/* Rows of one block, outputs of one panel. A tile of a whole panel's last piece leaves the result itself, unless an
 * activation is to follow; else `finish` makes it of the block's sums. */
static void run_panel(const foreloop_linear_call *call, size_t row, size_t rows, size_t out, float *sums) {
    const size_t in = call->in, tiles = (rows + TILE_ROWS - 1) / TILE_ROWS;
    const float *panel = (const float *)call->packed + out * in;
    const bool activates = call->epilogue < FORELOOP_EPILOGUE_NONE, whole = call->out - out >= TILE_WIDTH;
    for (size_t k = 0; k < in; k += DEPTH) {
        const size_t depth = smaller(DEPTH, in - k), lines = depth * TILE_WIDTH / 16;
        const bool completes = whole && !activates && k + depth == in;
        foreloop_tile_f32 tile = {.x_stride = call->x_stride,
                                  .panel = panel + k * TILE_WIDTH,
                                  .depth = depth,
                                  .sums_stride = completes ? call->y_stride : TILE_WIDTH,
                                  .fetch_sums = completes,
                                  .former_stride = TILE_WIDTH,
                                  .bias = completes ? call->bias + out : NULL};
        /* The piece that comes next lies right behind; each tile brings in its share, so that few lines are on their
         * way at a time. A lone tile is too short for that, and leaves every other line to the hardware, which
         * completes pairs. */
        tile.ahead_step = tiles == 1 ? 64 : (TILE_WIDTH * sizeof(float) + tiles - 1) / tiles;
        for (size_t t = 0; t < tiles; t++) {
            /* Tiles of even height. */
            const size_t first = rows * t / tiles, end = rows * (t + 1) / tiles;
            const size_t place = (row + first) * call->y_stride + out;
            tile.x = call->x + (row + first) * call->x_stride + k;
            tile.ahead = tile.panel + depth * TILE_WIDTH + lines * t / tiles * 16;
            tile.former = k > 0 ? sums + first * TILE_WIDTH : NULL;
            tile.residual = completes && call->epilogue == FORELOOP_EPILOGUE_RESIDUAL ? call->residual + place : NULL;
            tile.sums = completes ? call->y + place : sums + first * TILE_WIDTH;
            FORELOOP_X86(foreloop_tile_f32_run)(&tile, end - first);
        }
    }
    if (activates || !whole)
        finish(call, row, rows, out, sums);
}

static void run(const foreloop_linear_call *call, size_t row_begin, size_t row_end, size_t out_begin, size_t out_end) {
    _Alignas(64) float sums[BLOCK_ROWS * TILE_WIDTH];
    const size_t rows = row_end - row_begin, blocks = (rows + BLOCK_ROWS - 1) / BLOCK_ROWS;
    for (size_t b = 0; b < blocks; b++) {
        const size_t first = row_begin + rows * b / blocks, end = row_begin + rows * (b + 1) / blocks;
        for (size_t out = out_begin; out < out_end; out += TILE_WIDTH)
            run_panel(call, first, end - first, out, sums);
    }
}

void FORELOOP_X86(foreloop_linear_f32)(foreloop_linear *linear) {
    *linear = (foreloop_linear){.tier = VECTOR_TIER,
                                .name = "f32",
                                .packed_size = packed_size,
                                .pack = pack,
                                .row_unit = 1,
                                .out_unit = TILE_WIDTH,
                                .run = run};
}
