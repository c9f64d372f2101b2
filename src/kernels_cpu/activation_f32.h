/* Kernel family activation_f32: a function of each number, in place. As functions of their argument the GELUs are off
 * by 3e-7 x max(1, |x|) at the most. A NaN stays one. */
#ifndef FORELOOP_KERNELS_CPU_ACTIVATION_F32_H
#define FORELOOP_KERNELS_CPU_ACTIVATION_F32_H

#include <stddef.h>

typedef enum foreloop_activation {
    FORELOOP_ACTIVATION_GELU,      /* x Phi(x), by the error function */
    FORELOOP_ACTIVATION_GELU_TANH, /* its approximation by tanh: another function, off by up to 5e-4 */
    FORELOOP_ACTIVATION_RELU,
    FORELOOP_ACTIVATION_COUNT
} foreloop_activation;

typedef void foreloop_activation_f32(float *values, size_t count);

foreloop_activation_f32 foreloop_gelu_f32_ref, foreloop_gelu_f32_avx2, foreloop_gelu_f32_avx512;
foreloop_activation_f32 foreloop_gelu_tanh_f32_ref, foreloop_gelu_tanh_f32_avx2, foreloop_gelu_tanh_f32_avx512;
foreloop_activation_f32 foreloop_relu_f32_ref, foreloop_relu_f32_avx2, foreloop_relu_f32_avx512;

#endif
