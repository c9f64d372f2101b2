/* The micro-kernel of every matrix product in float32: a tile of TILE_ROWS x TILE_WIDTH sums, held in registers. */
#ifndef FORELOOP_KERNELS_CPU_X86_TILE_F32_H
#define FORELOOP_KERNELS_CPU_X86_TILE_F32_H

#include "kernels_cpu/x86/vector.h"
#include <stdbool.h>

/* 14 x 2 or 6 x 2 registers of sums; two of the panel and one of x are the others that are needed. */
enum { TILE_WIDTH = 2 * LANES, TILE_ROWS = VECTOR_REGISTERS / 2 - 2 };

/* sums[r][w] <- sum over k < depth of x[r][k] panel[k][w], by fused multiply-adds onto 0 in order of k, to which what
 * `former`, `bias` and `residual` hold is added, in this order. Each of them is NULL where there is nothing to add. */
typedef struct foreloop_tile_f32 {
    const float *x;
    size_t x_stride;
    const float *panel; /* [depth][TILE_WIDTH] */
    size_t depth;
    /* A cache line for each k, ahead_step bytes apart, is brought to the second-level cache meanwhile. */
    const float *ahead;
    size_t ahead_step;
    float *sums; /* [rows][sums_stride], TILE_WIDTH of each row */
    size_t sums_stride;
    bool fetch_sums;     /* `sums` is not in the cache: brings it there meanwhile */
    const float *former; /* [rows][former_stride], may be `sums` */
    size_t former_stride;
    const float *bias;     /* [TILE_WIDTH] */
    const float *residual; /* [rows][sums_stride], may be `sums` */
} foreloop_tile_f32;

/* 1 to TILE_ROWS rows. */
void FORELOOP_X86(foreloop_tile_f32_run)(const foreloop_tile_f32 *tile, size_t rows);

#endif
