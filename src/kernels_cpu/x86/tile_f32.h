/* The micro-kernel of every matrix product in float32: a tile of TILE_ROWS x TILE_WIDTH sums, held in registers. */
#ifndef FORELOOP_KERNELS_CPU_X86_TILE_F32_H
#define FORELOOP_KERNELS_CPU_X86_TILE_F32_H

#include "kernels_cpu/x86/vector.h"
#include <stdbool.h>

/* 14 x 2 or 6 x 2 registers of sums; two of the panel and one of x are the others that are needed. */
enum { TILE_WIDTH = 2 * LANES, TILE_ROWS = VECTOR_REGISTERS / 2 - 2 };

/* sums[r][w] (+)= sum over k < depth of x[r][k] panel[k][w], by fused multiply-adds onto 0 in order of k. */
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
    bool go_on; /* add to the sums that are there */
} foreloop_tile_f32;

/* 1 to TILE_ROWS rows. */
void FORELOOP_X86(foreloop_tile_f32_run)(const foreloop_tile_f32 *tile, size_t rows);

#endif
