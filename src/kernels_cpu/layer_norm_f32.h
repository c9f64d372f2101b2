/* Kernel family layer_norm_f32: layer normalisation of each row, with the residual added before. */
#ifndef FORELOOP_KERNELS_CPU_LAYER_NORM_F32_H
#define FORELOOP_KERNELS_CPU_LAYER_NORM_F32_H

#include <stddef.h>

/* For each of `rows` contiguous rows of `width` numbers: v = x + residual; y = (v - mean) / sqrt(variance + epsilon) *
 * gamma + beta, with the biased variance. `residual` may be NULL for zeros. y may be x or residual; no other overlap.
 */
typedef void foreloop_layer_norm_f32(float *y, const float *x, const float *residual, const float *gamma,
                                     const float *beta, double epsilon, size_t rows, size_t width);

foreloop_layer_norm_f32 foreloop_layer_norm_f32_ref;

#endif
