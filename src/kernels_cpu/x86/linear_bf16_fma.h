/*
 * linear_bf16 by fused multiply-adds of widened numbers, for AVX2 and AVX-512. The products are exact, so a fused
 * multiply-add rounds as the reference does. Near the limit of the two multiply-add ports.
 */
#include "kernels_cpu/x86/linear_units.h"

enum { UNIT_ROWS = 2 * TILE_ROWS, NUMBER = sizeof(float) };
#include "kernels_cpu/x86/linear_bf16_units.h"

FORELOOP_INLINE void bf16_tile(const unit_work *work, size_t first, size_t rows, float *sums) {
    FORELOOP_ROLLED
    for (size_t part = 0; part < PANEL; part += TILE_WIDTH) {
        const float *x = (const float *)(work->unit + first * CHUNK);
        const uint16_t *w = (const uint16_t *)work->panel + 2 * part;
        vec_f32 sum[TILE_ROWS][2];
        FORELOOP_UNROLL
        for (size_t r = 0; r < rows; r++)
            sum[r][0] = sum[r][1] = vec_zero_f32();
        for (size_t c = 0; c < work->shape->chunks; c++, x += UNIT_ROWS * CHUNK / NUMBER) {
            FORELOOP_ROLLED
            for (size_t i = 0; i < CHUNK / NUMBER; i += 2, w += 2 * PANEL) {
                const vec_f32 odd0 = vec_upper_halves(w), odd1 = vec_upper_halves(w + 2 * LANES);
                FORELOOP_UNROLL
                for (size_t r = 0; r < rows; r++) {
                    const vec_f32 from = vec_set_f32(x[r * (CHUNK / NUMBER) + i + 1]);
                    sum[r][0] = vec_fma_f32(from, odd0, sum[r][0]);
                    sum[r][1] = vec_fma_f32(from, odd1, sum[r][1]);
                }
                const vec_f32 even0 = vec_lower_halves(w), even1 = vec_lower_halves(w + 2 * LANES);
                FORELOOP_UNROLL
                for (size_t r = 0; r < rows; r++) {
                    const vec_f32 from = vec_set_f32(x[r * (CHUNK / NUMBER) + i]);
                    sum[r][0] = vec_fma_f32(from, even0, sum[r][0]);
                    sum[r][1] = vec_fma_f32(from, even1, sum[r][1]);
                }
            }
        }
        FORELOOP_UNROLL
        for (size_t r = 0; r < rows; r++) {
            vec_store_f32(sums + r * PANEL + part, sum[r][0]);
            vec_store_f32(sums + r * PANEL + part + LANES, sum[r][1]);
        }
    }
}

static void run_unit(const unit_work *work) {
    run_tiles(work, bf16_tile);
}
