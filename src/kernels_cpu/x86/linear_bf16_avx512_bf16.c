/*
 * linear_bf16 by vdpbf16ps, two products and additions a lane. Near the limit of its port where it runs at full rate
 * (Zen 4 and later); cpu.c tells where it does not.
 */
#include "kernels_cpu/x86/linear_units.h"

enum { UNIT_ROWS = 2 * TILE_ROWS, NUMBER = sizeof(uint16_t), CHUNK_STEPS = CHUNK / NUMBER / 2 };
#include "kernels_cpu/x86/linear_bf16_units.h"

FORELOOP_INLINE __m512 dot(__m512 sum, __m512i a, __m512i b) {
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}

FORELOOP_INLINE void bf16_tile(const unit_work *work, size_t first, size_t rows, float *sums) {
    const size_t steps = work->shape->chunks * CHUNK_STEPS; /* pairs */
    const unsigned char *x = work->unit + first * CHUNK;
    const unsigned char *w = work->panel;
#define BEGIN(r) __m512 a##r = vec_zero_f32(), b##r = vec_zero_f32();
#define STEP(r)                                                                                                        \
    if (r < rows) {                                                                                                    \
        const __m512i from = vec_spread_i32(at + r * CHUNK);                                                           \
        a##r = dot(a##r, from, w0);                                                                                    \
        b##r = dot(b##r, from, w1);                                                                                    \
    }
#define END(r)                                                                                                         \
    if (r < rows) {                                                                                                    \
        vec_store_f32(sums + r * PANEL, a##r);                                                                         \
        vec_store_f32(sums + r * PANEL + LANES, b##r);                                                                 \
    }
    FOR_ROWS(BEGIN)
    FORELOOP_ROLLED
    for (size_t s = 0; s < steps; s++, w += 2 * CHUNK) {
        const unsigned char *at = x + s / CHUNK_STEPS * (UNIT_ROWS * CHUNK) + s % CHUNK_STEPS * (2 * NUMBER);
        const __m512i w0 = vec_load_i32(w), w1 = vec_load_i32(w + CHUNK);
        fetch_ahead(w, work->panel_size, 2 * CHUNK);
        FOR_ROWS(STEP)
    }
    FOR_ROWS(END)
#undef BEGIN
#undef STEP
#undef END
}

static void run_unit(const unit_work *work) {
    run_tiles(work, bf16_tile);
}

void foreloop_linear_bf16_avx512_bf16(foreloop_linear *linear) {
    bf16_kernel(linear, "bf16, vdpbf16ps");
}
