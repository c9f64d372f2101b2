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
enum { UNIT_ROWS = 2 * TILE_ROWS };
#include "kernels_cpu/x86/linear_int8_units.h"

/* -zero times the sum of w. A group's sum has 16 bits, so a pair product does, with nothing in its upper half. */
FORELOOP_INLINE vec_i32 begin_sum(vec_i32 total, int32_t zero, bool whole_rows) {
    return whole_rows ? vec_mul_i32(total, vec_set_i32(-zero)) : vec_pairs_i32(total, vec_set_i32(-zero & 0xffff));
}

FORELOOP_INLINE void int8_tile(const unit_work *work, size_t first, size_t rows, float *sums, bool whole_rows) {
    const size_t groups = whole_rows ? 1 : foreloop_int8_groups(work->call->in);
    const size_t chunks = whole_rows ? work->shape->chunks : GROUP_CHUNKS;
    const size_t data_size = chunks * (CHUNK / NUMBER) * PANEL;
    memset(sums, 0, rows * PANEL * sizeof *sums);
    FORELOOP_ROLLED
    for (size_t g = 0; g < groups; g++) {
        const unsigned char *block = work->panel + g * (data_size + FORELOOP_INT8_BLOCK_END);
        const float *weight_scales = (const float *)(block + data_size);
        const int32_t *totals = (const int32_t *)(weight_scales + PANEL);
        const float *scales = unit_scales(work, g) + first;
        const int32_t *zeros = unit_zeros(work, g, groups) + first;
        FORELOOP_ROLLED
        for (size_t part = 0; part < PANEL; part += TILE_WIDTH) {
            const unsigned char *x = work->unit + g * chunks * UNIT_ROWS * CHUNK + first * CHUNK;
            const unsigned char *w = block + part * UNIT;
            const vec_i32 total0 = vec_load_i32(totals + part), total1 = vec_load_i32(totals + part + LANES);
            vec_i32 sum[TILE_ROWS][2];
            FORELOOP_UNROLL
            for (size_t r = 0; r < rows; r++) {
                sum[r][0] = begin_sum(total0, zeros[r], whole_rows);
                sum[r][1] = begin_sum(total1, zeros[r], whole_rows);
            }
            FORELOOP_ROLLED
            for (size_t c = 0; c < chunks; c++, x += UNIT_ROWS * CHUNK) {
                FORELOOP_ROLLED
                for (size_t i = 0; i < CHUNK; i += UNIT * NUMBER, w += PANEL * UNIT) {
                    const vec_i32 w0 = load_weights(w), w1 = load_weights(w + LANES * UNIT);
                    FORELOOP_UNROLL
                    for (size_t r = 0; r < rows; r++) {
                        const vec_i32 from = vec_spread_i32(x + r * CHUNK + i);
                        sum[r][0] = dot(sum[r][0], from, w0);
                        sum[r][1] = dot(sum[r][1], from, w1);
                    }
                }
            }
            const vec_f32 scale0 = vec_load_f32(weight_scales + part);
            const vec_f32 scale1 = vec_load_f32(weight_scales + part + LANES);
            FORELOOP_UNROLL
            for (size_t r = 0; r < rows; r++) {
                const vec_f32 scale = vec_set_f32(scales[r]);
                float *to = sums + r * PANEL + part;
                vec_store_f32(to, vec_fma_f32(vec_f32_of_i32(sum[r][0]), vec_mul_f32(scale, scale0), vec_load_f32(to)));
                to += LANES;
                vec_store_f32(to, vec_fma_f32(vec_f32_of_i32(sum[r][1]), vec_mul_f32(scale, scale1), vec_load_f32(to)));
            }
        }
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
