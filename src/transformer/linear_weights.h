/* A linear layer's weights, packed for the kernel that multiplies by them. */
#ifndef FORELOOP_TRANSFORMER_LINEAR_WEIGHTS_H
#define FORELOOP_TRANSFORMER_LINEAR_WEIGHTS_H

#include "common/shares.h"
#include "kernels_cpu/linear.h"

/* y = x W^T + b */
typedef struct foreloop_linear_weights {
    size_t in, out;
    foreloop_linear kernel;
    void *packed;
    void *own_memory; /* of `packed`, or NULL where the caller keeps it */
    float *bias;
} foreloop_linear_weights;

/* Bytes that such a layer takes when packed, a multiple of the alignment; 0 when it would overflow. */
size_t foreloop_linear_weights_size(size_t in, size_t out, const foreloop_linear *kernel);
/* Packs matrix[out][in] into `memory`, of so many bytes and aligned to 64, which outlives `linear`, or, where it is
 * NULL, into memory of its own. Copies bias[out] (NULL: zeros). */
foreloop_status foreloop_linear_weights_pack(foreloop_linear_weights *linear, void *memory, const float *matrix,
                                             const float *bias, size_t in, size_t out, const foreloop_linear *kernel,
                                             const foreloop_allocator *allocator, foreloop_error *error);
void foreloop_linear_weights_close(foreloop_linear_weights *linear, const foreloop_allocator *allocator);

/* Bytes of scratch, aligned to 64, that a call on so many rows needs. */
size_t foreloop_linear_weights_scratch(const foreloop_linear_weights *linear, size_t rows);

/* Rows whose inputs are to keep twice as many bits as the kernel rounds them to. */
typedef struct foreloop_fine_rows {
    int32_t *rows; /* [the call's rows]: 0 for each such row, else -1; overwritten by numbers of the same sign */
    float *memory; /* foreloop_linear_weights_fine_size numbers */
} foreloop_fine_rows;

/* Numbers of memory for fine rows of a layer; 0 for kernels that do without. */
size_t foreloop_linear_weights_fine_size(const foreloop_linear_weights *linear);

/* Completes the call, of which rows, x, y, their strides, epilogue and residual are filled in, and runs it. `fine` may
 * be NULL: no such rows; kernels without `remainder` do not read it. */
void foreloop_linear_weights_run(const foreloop_linear_weights *linear, foreloop_linear_call call,
                                 const foreloop_fine_rows *fine, void *scratch, const foreloop_shares *shares);

#endif
