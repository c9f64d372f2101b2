/*
 * linear_int8 by dot products in each lane. The file that includes this has defined NUMBER and UNIT, and
 *
 *   vec_i32 load_weights(const unsigned char *from)       UNIT inputs of LANES outputs
 *   vec_i32 dot(vec_i32 sum, vec_i32 x, vec_i32 weights)  adds UNIT exact products in each lane
 *
 * Near the limit of the ports that dot takes; what a group costs besides (zeros, scales, the sum in float32) is about a
 * fifth for groups of 64.
 */
#ifndef FORELOOP_KERNELS_CPU_X86_LINEAR_INT8_DOT_H
#define FORELOOP_KERNELS_CPU_X86_LINEAR_INT8_DOT_H

#include "kernels_cpu/x86/linear_units.h"
enum { UNIT_ROWS = 2 * TILE_ROWS, CHUNK_STEPS = CHUNK / (UNIT * NUMBER) };
#include "kernels_cpu/x86/linear_int8_units.h"

/* Exact sums of q w: exact[rows][PANEL] from `chunks` chunks of x, and what of the panel's block meets them. */
FORELOOP_INLINE void multiply(const unsigned char *x, const unsigned char *block, size_t chunks, size_t rows,
                              size_t panel_size, int32_t *exact) {
    const size_t steps = chunks * CHUNK_STEPS;
    FORELOOP_ROLLED
    for (size_t part = 0; part < PANEL; part += TILE_WIDTH) {
        const unsigned char *w = block + part * UNIT;
#define BEGIN(r) vec_i32 a##r = vec_set_i32(0), b##r = vec_set_i32(0);
#define STEP(r)                                                                                                        \
    if (r < rows) {                                                                                                    \
        const vec_i32 from = vec_spread_i32(at + r * CHUNK);                                                           \
        a##r = dot(a##r, from, w0);                                                                                    \
        b##r = dot(b##r, from, w1);                                                                                    \
    }
#define END(r)                                                                                                         \
    if (r < rows) {                                                                                                    \
        vec_store_i32(exact + r * PANEL + part, a##r);                                                                 \
        vec_store_i32(exact + r * PANEL + part + LANES, b##r);                                                         \
    }
        FOR_ROWS(BEGIN)
        FORELOOP_ROLLED
        for (size_t s = 0; s < steps; s++, w += PANEL * UNIT) {
            const unsigned char *at = x + s / CHUNK_STEPS * (UNIT_ROWS * CHUNK) + s % CHUNK_STEPS * (UNIT * NUMBER);
            const vec_i32 w0 = load_weights(w), w1 = load_weights(w + LANES * UNIT);
            fetch_ahead(w, panel_size, TILE_WIDTH * UNIT);
            FOR_ROWS(STEP)
        }
        FOR_ROWS(END)
#undef BEGIN
#undef STEP
#undef END
    }
}

FORELOOP_INLINE void int8_tile(const unit_work *work, size_t first, size_t rows, float *sums, bool whole_rows) {
    const size_t groups = whole_rows ? 1 : foreloop_int8_groups(work->call->in);
    const size_t chunks = work->shape->chunks / groups; /* of a group; no constant, for which compilers spill sums */
    int32_t exact[TILE_ROWS * PANEL];
    memset(sums, 0, rows * PANEL * sizeof *sums);
    FORELOOP_ROLLED
    for (size_t g = 0; g < groups; g++) {
        const group_work group = group_of(work, g, groups, chunks);
        multiply(group.x + first * CHUNK, group.block, chunks, rows, work->panel_size, exact);
        add_scaled(&group, first, rows, exact, sums, whole_rows);
    }
}

FORELOOP_INLINE void int8_tile_groups(const unit_work *work, size_t first, size_t rows, float *sums) {
    int8_tile(work, first, rows, sums, false);
}

FORELOOP_INLINE void int8_tile_rows(const unit_work *work, size_t first, size_t rows, float *sums) {
    int8_tile(work, first, rows, sums, true);
}

static void run_unit_groups(const unit_work *work) {
    run_tiles(work, int8_tile_groups);
}

static void run_unit_rows(const unit_work *work) {
    run_tiles(work, int8_tile_rows);
}

#endif
