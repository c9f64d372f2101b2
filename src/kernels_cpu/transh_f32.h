/*
 * Kernels of the latent state: the dot product and the TransH step, with bits that every tier must give.
 *
 * Vectors have `size` elements, a multiple of FORELOOP_TRANSH_LANES (padding is zero), any alignment, and do not
 * overlap. The dot product runs in 16 lanes: lane i takes elements i, i + 16, ... by fused multiply-adds from 0; then
 * lanes i and i + 8 are added, then i and i + 4, i + 2, i + 1.
 */
#ifndef FORELOOP_KERNELS_CPU_TRANSH_F32_H
#define FORELOOP_KERNELS_CPU_TRANSH_F32_H

#include <stddef.h>

enum { FORELOOP_TRANSH_LANES = 16 };

float foreloop_transh_dot_f32_ref(const float *a, const float *b, size_t size);

/* z <- fma(-beta (w . z), w, z) + d, element by element: one step of TransH. */
void foreloop_transh_step_f32_ref(float *z, const float *w, float beta, const float *d, size_t size);

/* y[rows] <- b + A x with A[columns][rows] (a column of the matrix is contiguous): columns in order, one fused
 * multiply-add each. */
void foreloop_transh_affine_f32_ref(const float *matrix, const float *bias, const float *x, size_t rows, size_t columns,
                                    float *y);

#endif
