/*
 * Kernel family linear_f32: y = x W^T + b in float32, with W packed beforehand in the layout of the tier that runs it.
 *
 * Every number of the result is a function of its row of x, its row of W and its bias alone: neither the other rows,
 * nor their number, nor any pointer's alignment changes a bit.
 */
#ifndef FORELOOP_KERNELS_CPU_LINEAR_F32_H
#define FORELOOP_KERNELS_CPU_LINEAR_F32_H

#include <stddef.h>

typedef struct foreloop_linear_f32 {
    const char *tier;
    /* Floats that a packed W of `out` x `in` takes; the caller has checked that out x in x 4 fits size_t. */
    size_t (*packed_size)(size_t in, size_t out);
    /* Packs W, whose element (o, i) is weight[o * out_stride + i * in_stride]. `packed` does not overlap `weight`. */
    void (*pack)(float *packed, const float *weight, size_t out_stride, size_t in_stride, size_t in, size_t out);
    /* y[r * y_stride + o] = bias[o] + sum over i of x[r * x_stride + i] W(o, i), for `rows` rows. `bias` may be NULL
     * for zeros. y overlaps nothing else. */
    void (*run)(float *y, size_t y_stride, const float *x, size_t x_stride, const float *packed, const float *bias,
                size_t rows, size_t in, size_t out);
} foreloop_linear_f32;

void foreloop_linear_f32_ref(foreloop_linear_f32 *linear);

#endif
