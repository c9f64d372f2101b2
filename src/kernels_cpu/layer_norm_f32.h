/* Kernel family layer_norm_f32: layer normalisation of each row. */
#ifndef FORELOOP_KERNELS_CPU_LAYER_NORM_F32_H
#define FORELOOP_KERNELS_CPU_LAYER_NORM_F32_H

#include <stddef.h>

/* For each row x + r * stride, in place: x = (x - mean) / sqrt(variance + epsilon) * gamma + beta, with the biased
 * variance. A row's result is a function of the row alone. Off by 1e-6 x max(1, |x|) x |gamma| at the most where
 * epsilon or the variance is not tiny beside the numbers' squares. */
typedef void foreloop_layer_norm_f32(float *x, size_t stride, const float *gamma, const float *beta, double epsilon,
                                     size_t rows, size_t width);

foreloop_layer_norm_f32 foreloop_layer_norm_f32_ref, foreloop_layer_norm_f32_avx2, foreloop_layer_norm_f32_avx512;

#endif
