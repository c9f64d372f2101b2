/* Matrix products on the GPU, by cuBLAS. */
#ifndef FORELOOP_CUDA_GEMM_H
#define FORELOOP_CUDA_GEMM_H

#include "cuda/gpu.h"
#include "kernels_cuda/element.h"

/* A handle of cuBLAS with a workspace of its own, so that sums are in the same order whenever sizes are the same.
 * Belongs to one thread and one stream at a time. */
typedef struct foreloop_cuda_gemm foreloop_cuda_gemm;

/* `library`: as foreloop_cuda_encoder_options.cublas. DEVICE when it cannot be loaded or does not begin. */
foreloop_status foreloop_cuda_gemm_open(foreloop_cuda_gemm **result, foreloop_cuda *gpu, const char *library,
                                        size_t workspace_size, foreloop_error *error);
void foreloop_cuda_gemm_close(foreloop_cuda_gemm *gemm);

/* Before the first product on a stream, and whenever it is another one. */
foreloop_status foreloop_cuda_gemm_set_stream(foreloop_cuda_gemm *gemm, cudaStream_t stream, foreloop_error *error);

/* y[rows][out] = x[rows][in] W[out][in]^T, with float32 sums; rows are `stride` elements apart, widths at most 2^20. */
typedef struct foreloop_cuda_gemm_call {
    size_t rows, in, out;
    foreloop_cuda_element element; /* of x and W */
    const void *x;
    size_t x_stride;
    const void *weights;
    size_t weights_stride;
    foreloop_cuda_element y_element; /* that, or float32 */
    void *y;
    size_t y_stride;
} foreloop_cuda_gemm_call;
foreloop_status foreloop_cuda_gemm_run(foreloop_cuda_gemm *gemm, const foreloop_cuda_gemm_call *call,
                                       foreloop_error *error);

#endif
