/*
 * linear_bf16 by vdpbf16ps, two products and additions a lane. Near the limit of its port where it runs at full rate
 * (Zen 4 and later); cpu.c tells where it does not.
 */
#include "kernels_cpu/x86/linear_units.h"

enum { UNIT_ROWS = 2 * TILE_ROWS, NUMBER = sizeof(uint16_t) };
#include "kernels_cpu/x86/linear_bf16_units.h"

FORELOOP_INLINE __m512 dot(__m512 sum, __m512i a, __m512i b) {
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}

FORELOOP_INLINE void bf16_tile(const unit_work *work, size_t first, size_t rows, float *sums) {
    const unsigned char *x = work->unit + first * CHUNK;
    const unsigned char *w = work->panel;
    __m512 sum[TILE_ROWS][2];
    FORELOOP_UNROLL
    for (size_t r = 0; r < rows; r++)
        sum[r][0] = sum[r][1] = vec_zero_f32();
    for (size_t c = 0; c < work->shape->chunks; c++, x += UNIT_ROWS * CHUNK) {
        FORELOOP_ROLLED
        for (size_t i = 0; i < CHUNK; i += 2 * NUMBER, w += 2 * CHUNK) {
            const __m512i w0 = vec_load_i32(w), w1 = vec_load_i32(w + CHUNK);
            FORELOOP_UNROLL
            for (size_t r = 0; r < rows; r++) {
                const __m512i from = vec_spread_i32(x + r * CHUNK + i);
                sum[r][0] = dot(sum[r][0], from, w0);
                sum[r][1] = dot(sum[r][1], from, w1);
            }
        }
    }
    FORELOOP_UNROLL
    for (size_t r = 0; r < rows; r++) {
        vec_store_f32(sums + r * PANEL, sum[r][0]);
        vec_store_f32(sums + r * PANEL + LANES, sum[r][1]);
    }
}

static void run_unit(const unit_work *work) {
    run_tiles(work, bf16_tile);
}

void foreloop_linear_bf16_avx512_bf16(foreloop_linear *linear) {
    bf16_kernel(linear, "bf16, vdpbf16ps");
}
