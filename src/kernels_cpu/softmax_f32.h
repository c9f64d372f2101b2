/* Kernel family softmax_f32: scaled softmax of each row, in place. */
#ifndef FORELOOP_KERNELS_CPU_SOFTMAX_F32_H
#define FORELOOP_KERNELS_CPU_SOFTMAX_F32_H

#include <stddef.h>

/* For each of `rows` rows x + r * stride of `columns` >= 1 numbers: x = softmax(scale * x), with scale > 0. */
typedef void foreloop_softmax_f32(float *x, size_t stride, size_t rows, size_t columns, float scale);

foreloop_softmax_f32 foreloop_softmax_f32_ref;

#endif
