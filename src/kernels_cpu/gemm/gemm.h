/*
 * Matrix products by a library, for builds with -Dgemm=openblas or -Dgemm=onednn. Then the layers in float32 promise
 * less: bits may depend on the number of rows and on how the work is cut, and the library allocates and keeps state as
 * it likes. It is called for one thread's share of the work, and uses no threads of its own.
 */
#ifndef FORELOOP_KERNELS_CPU_GEMM_GEMM_H
#define FORELOOP_KERNELS_CPU_GEMM_GEMM_H

#include "kernels_cpu/linear.h"

/* y[r][o] = sum over i of x[r][i] w[o][i], w dense with `in` numbers in each row; added to what is there if `add`. */
void foreloop_gemm_f32(float *y, size_t y_stride, const float *x, size_t x_stride, const float *w, size_t rows,
                       size_t in, size_t out, int add);

/* Layers by foreloop_gemm_f32, with the activations of the tier. */
void foreloop_linear_f32_gemm(foreloop_linear *linear, foreloop_tier tier);

#endif
