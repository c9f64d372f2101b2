/*
 * Kernel family linear: y = epilogue(x W^T + b). x, b and y are float32; W is packed beforehand in the precision and
 * the layout of the kernel that runs it.
 *
 * Every number of the result is a function of its row of x (and of the residual), its row of W and its bias alone:
 * neither the other rows, nor their number, nor how the work is cut into parts, nor any pointer's alignment changes a
 * bit.
 */
#ifndef FORELOOP_KERNELS_CPU_LINEAR_H
#define FORELOOP_KERNELS_CPU_LINEAR_H

#include "kernels_cpu/activation_f32.h"
#include <foreloop/foreloop.h>
#include <stddef.h>
#include <stdint.h>

/* What happens to each number of x W^T + b before it is stored. */
typedef enum foreloop_epilogue {
    FORELOOP_EPILOGUE_GELU = FORELOOP_ACTIVATION_GELU,
    FORELOOP_EPILOGUE_GELU_TANH = FORELOOP_ACTIVATION_GELU_TANH,
    FORELOOP_EPILOGUE_RELU = FORELOOP_ACTIVATION_RELU,
    FORELOOP_EPILOGUE_NONE = FORELOOP_ACTIVATION_COUNT,
    FORELOOP_EPILOGUE_RESIDUAL /* the number in the same place of `residual` is added */
} foreloop_epilogue;

typedef struct foreloop_linear_call {
    size_t rows, in, out; /* each at least 1 */
    const float *x;       /* [rows][x_stride] */
    size_t x_stride;
    const void *prepared; /* what `prepare` made of x; NULL for kernels without it */
    const void *packed;
    const float *bias; /* [out] */
    foreloop_epilogue epilogue;
    const float *residual; /* [rows][y_stride], may be y itself; read for FORELOOP_EPILOGUE_RESIDUAL only */
    float *y;              /* [rows][y_stride], overlaps nothing else */
    size_t y_stride;
    /* For kernels with `remainder`, else NULL: correction[k][out] is added to a row's sums before the bias, where
     * correction_of[row] is k; a negative one: nothing. */
    const int32_t *correction_of;
    const float *correction;
} foreloop_linear_call;

typedef struct foreloop_linear {
    foreloop_tier tier; /* the instructions that it uses */
    size_t largest_in;  /* inputs that a layer may have; 0: any number */
    const char *name;   /* for people: how it computes, as "f32" */
    /* Bytes that a packed W of `out` x `in` takes; the caller has checked that (out + 64) x (in + 64) x 8 fits size_t.
     * Packed weights are aligned to 64. */
    size_t (*packed_size)(size_t in, size_t out);
    /* Packs weight[out][in]. */
    void (*pack)(void *packed, const float *weight, size_t in, size_t out);
    /* Both NULL for kernels that read x as it is. Else `prepare` brings rows row_begin <= r < row_end of x into the
     * form that `run` reads, in memory of prepared_size(rows, in) bytes aligned to 64; row_begin is a multiple of
     * row_unit, and row_end too unless it is `rows`. Different ranges may be prepared at the same time. */
    size_t (*prepared_size)(size_t rows, size_t in);
    void (*prepare)(void *prepared, const float *x, size_t x_stride, size_t rows, size_t in, size_t row_begin,
                    size_t row_end);
    /* For kernels whose inputs are rounded coarsely, else NULL: rest[in] <- a row of x less what `prepare` makes of it.
     * The row's sums and the rest's together are those of inputs with twice as many bits. */
    void (*remainder)(float *rest, const float *x, size_t in);
    /* Computes the rows row_begin <= r < row_end and of these the outputs out_begin <= o < out_end. Begins are
     * multiples of row_unit and out_unit, and so are ends unless they are the call's. Different parts of a call may run
     * at the same time. */
    size_t row_unit, out_unit;
    void (*run)(const foreloop_linear_call *call, size_t row_begin, size_t row_end, size_t out_begin, size_t out_end);
} foreloop_linear;

void foreloop_linear_f32_ref(foreloop_linear *linear);
void foreloop_linear_f32_avx2(foreloop_linear *linear);
void foreloop_linear_f32_avx512(foreloop_linear *linear);

#endif
