/*
 * Numbers in device memory that are read and written as float32: float32 itself, float16 or bfloat16. Rows of matrices
 * begin at multiples of FORELOOP_CUDA_ROW_UNIT elements, so that eight neighbours are read at once.
 */
#ifndef FORELOOP_KERNELS_CUDA_ELEMENT_H
#define FORELOOP_KERNELS_CUDA_ELEMENT_H

#include <stddef.h>

/* In the order of foreloop_cuda_precision. */
typedef enum foreloop_cuda_element {
    FORELOOP_CUDA_ELEMENT_F32,
    FORELOOP_CUDA_ELEMENT_F16,
    FORELOOP_CUDA_ELEMENT_BF16
} foreloop_cuda_element;

enum { FORELOOP_CUDA_ROW_UNIT = 8 };

static inline size_t foreloop_cuda_element_size(foreloop_cuda_element element) {
    return element == FORELOOP_CUDA_ELEMENT_F32 ? 4 : 2;
}

/* Elements from one row to the next. */
static inline size_t foreloop_cuda_row_stride(size_t width) {
    return (width + FORELOOP_CUDA_ROW_UNIT - 1) / FORELOOP_CUDA_ROW_UNIT * FORELOOP_CUDA_ROW_UNIT;
}

#endif
