/*
 * linear_bf16 by fused multiply-adds of widened numbers, for AVX2 and AVX-512. The products are exact, so a fused
 * multiply-add rounds as the reference does. Near the limit of the two multiply-add ports.
 */
#include "kernels_cpu/x86/linear_units.h"

enum { UNIT_ROWS = 2 * TILE_ROWS, NUMBER = sizeof(float), CHUNK_STEPS = CHUNK / NUMBER / 2 };
#include "kernels_cpu/x86/linear_bf16_units.h"

FORELOOP_INLINE void bf16_tile(const unit_work *work, size_t first, size_t rows, float *sums) {
    const size_t steps = work->shape->chunks * CHUNK_STEPS; /* pairs */
    FORELOOP_ROLLED
    for (size_t part = 0; part < PANEL; part += TILE_WIDTH) {
        const float *x = (const float *)(work->unit + first * CHUNK);
        const uint16_t *w = (const uint16_t *)work->panel + 2 * part;
#define BEGIN(r) vec_f32 a##r = vec_zero_f32(), b##r = vec_zero_f32();
#define STEP(r)                                                                                                        \
    if (r < rows) {                                                                                                    \
        const vec_f32 from = vec_set_f32(at[r * (CHUNK / NUMBER)]);                                                    \
        a##r = vec_fma_f32(from, w0, a##r);                                                                            \
        b##r = vec_fma_f32(from, w1, b##r);                                                                            \
    }
#define FETCH(r)                                                                                                       \
    if (r < rows)                                                                                                      \
        _mm_prefetch((const char *)(at + (UNIT_ROWS + r) * (CHUNK / NUMBER)), _MM_HINT_T0);
#define END(r)                                                                                                         \
    if (r < rows) {                                                                                                    \
        vec_store_f32(sums + r * PANEL + part, a##r);                                                                  \
        vec_store_f32(sums + r * PANEL + part + LANES, b##r);                                                          \
    }
        FOR_ROWS(BEGIN)
        FORELOOP_ROLLED
        for (size_t s = 0; s < steps; s++, w += 2 * PANEL) {
            const float *at = x + s / CHUNK_STEPS * (UNIT_ROWS * CHUNK / NUMBER) + s % CHUNK_STEPS * 2 + 1;
            const vec_i32 pair0 = vec_load_i32(w), pair1 = vec_load_i32(w + 2 * LANES);
            vec_f32 w0 = vec_upper_half(pair0), w1 = vec_upper_half(pair1);
            fetch_ahead(w, work->panel_size, 4 * TILE_WIDTH);
            FOR_ROWS(FETCH)
            FOR_ROWS(STEP)
            at--;
            w0 = vec_lower_half(pair0);
            w1 = vec_lower_half(pair1);
            FOR_ROWS(STEP)
        }
        FOR_ROWS(END)
#undef BEGIN
#undef STEP
#undef FETCH
#undef END
    }
}

static void run_unit(const unit_work *work) {
    run_tiles(work, bf16_tile);
}
