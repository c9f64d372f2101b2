/*
 * The micro-kernel. It is bound by the two units for fused multiply-adds: a step of 14 rows takes 28 of them and 16
 * loads, in 14 cycles; with 6 rows 12 and 8, in 6 cycles. A panel is met first in memory or the third-level cache, then
 * in the second: `ahead` covers the first, a fixed distance the second.
 */
#include "kernels_cpu/x86/tile_f32.h"

enum { NEAR = 8 * TILE_WIDTH }; /* floats: as much as a few hundred cycles take */

/* Distances of rows in bytes. With one, three and five times the stride in registers, an address of the processor's own
 * form, base + index x (1, 2, 4), reaches seven rows; so two bases do for all, where a register for each row would be
 * more than there are, and each reload from the stack would take the place of a load that the sums wait for. */
typedef struct row_strides {
    size_t one, three, five;
} row_strides;

VECTOR_INLINE const float *row_at(const char *const bases[2], const row_strides *strides, const int r) {
    const char *base = bases[r / 7];
    const int i = r % 7;
    const size_t distance = i == 3   ? strides->three
                            : i == 5 ? strides->five
                            : i == 6 ? 2 * strides->three
                                     : (size_t)i * strides->one;
    return (const float *)(base + distance);
}

VECTOR_INLINE void add_rows(vec sum[TILE_ROWS][2], const float *from, size_t stride, const int rows) {
    VECTOR_UNROLL
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < 2; i++)
            sum[r][i] = vec_add(sum[r][i], vec_load(from + (size_t)r * stride + i * LANES));
}

VECTOR_INLINE void fetch_rows(const float *from, size_t stride, const int rows) {
    VECTOR_UNROLL
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < TILE_WIDTH; i += 16)
            _mm_prefetch((const char *)(from + (size_t)r * stride + i), _MM_HINT_T0);
}

VECTOR_INLINE void run(const foreloop_tile_f32 *tile, const int rows) {
    const size_t ahead_step = tile->ahead_step, stride = tile->x_stride * sizeof(float);
    const float *panel = tile->panel, *const end = panel + tile->depth * TILE_WIDTH;
    const char *bases[2] = {(const char *)tile->x, (const char *)tile->x + (rows > 7 ? 7 * stride : 0)};
    row_strides strides = {stride, 3 * stride, 5 * stride};
    const char *ahead = (const char *)tile->ahead;
    vec sum[TILE_ROWS][2];
    if (tile->fetch_sums)
        fetch_rows(tile->sums, tile->sums_stride, rows);
    VECTOR_UNROLL
    for (int r = 0; r < rows; r++)
        sum[r][0] = sum[r][1] = vec_set(0.0f);
    for (; panel < end; panel += TILE_WIDTH, ahead += ahead_step) {
        /* Hides the values, else the compiler takes their multiples out of the loop, into registers of their own. */
        __asm__("" : "+r"(strides.one), "+r"(strides.three), "+r"(strides.five));
        const vec first = vec_load(panel), second = vec_load(panel + LANES);
        _mm_prefetch((const char *)(panel + NEAR), _MM_HINT_T0);
        if (LANES == 16)
            _mm_prefetch((const char *)(panel + NEAR + LANES), _MM_HINT_T0);
        _mm_prefetch(ahead, _MM_HINT_T1);
        VECTOR_UNROLL
        for (int r = 0; r < rows; r++) {
            const vec one = vec_set(*row_at(bases, &strides, r));
            sum[r][0] = vec_fma(one, first, sum[r][0]);
            sum[r][1] = vec_fma(one, second, sum[r][1]);
        }
        bases[0] += sizeof(float);
        bases[1] += sizeof(float);
    }
    if (tile->former)
        add_rows(sum, tile->former, tile->former_stride, rows);
    if (tile->bias)
        add_rows(sum, tile->bias, 0, rows);
    if (tile->residual)
        add_rows(sum, tile->residual, tile->sums_stride, rows);
    VECTOR_UNROLL
    for (int r = 0; r < rows; r++) {
        vec_store(tile->sums + (size_t)r * tile->sums_stride, sum[r][0]);
        vec_store(tile->sums + (size_t)r * tile->sums_stride + LANES, sum[r][1]);
    }
}

/* A function for each number of rows, so that each has its sums in registers. */
#define TILE(rows)                                                                                                     \
    static void run_##rows(const foreloop_tile_f32 *tile) {                                                            \
        run(tile, rows);                                                                                               \
    }
TILE(1)
TILE(2)
TILE(3)
TILE(4)
TILE(5)
TILE(6)
#if defined(__AVX512F__)
TILE(7)
TILE(8)
TILE(9)
TILE(10)
TILE(11)
TILE(12)
TILE(13)
TILE(14)
#endif

void FORELOOP_X86(foreloop_tile_f32_run)(const foreloop_tile_f32 *tile, size_t rows) {
    static void (*const runs[TILE_ROWS])(const foreloop_tile_f32 *) = {
        run_1,
        run_2,
        run_3,
        run_4,
        run_5,
        run_6,
#if defined(__AVX512F__)
        run_7,
        run_8,
        run_9,
        run_10,
        run_11,
        run_12,
        run_13,
        run_14,
#endif
    };
    runs[rows - 1](tile);
}
