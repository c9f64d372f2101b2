/* The part of cuBLAS's binary interface that is used. */
#ifndef FORELOOP_CUDA_CUBLAS_H
#define FORELOOP_CUDA_CUBLAS_H

#include <cuda_runtime_api.h>
#include <stddef.h>

typedef struct cublasContext foreloop_cublas_handle;

enum {
    FORELOOP_CUBLAS_SUCCESS = 0,
    FORELOOP_CUBLAS_AS_IT_IS = 0,                        /* CUBLAS_OP_N */
    FORELOOP_CUBLAS_TRANSPOSED = 1,                      /* CUBLAS_OP_T */
    FORELOOP_CUBLAS_F32 = 0,                             /* CUDA_R_32F */
    FORELOOP_CUBLAS_F16 = 2,                             /* CUDA_R_16F */
    FORELOOP_CUBLAS_BF16 = 14,                           /* CUDA_R_16BF */
    FORELOOP_CUBLAS_COMPUTE_F32 = 68,                    /* CUBLAS_COMPUTE_32F */
    FORELOOP_CUBLAS_COMPUTE_F32_PEDANTIC = 69,           /* CUBLAS_COMPUTE_32F_PEDANTIC: no TF32, no emulation */
    FORELOOP_CUBLAS_NO_REDUCED_PRECISION_REDUCTION = 16, /* CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION */
    FORELOOP_CUBLAS_DEFAULT_ALGORITHM = -1               /* CUBLAS_GEMM_DEFAULT */
};

typedef struct foreloop_cublas_functions {
    int (*create)(foreloop_cublas_handle **handle);
    int (*destroy)(foreloop_cublas_handle *handle);
    int (*set_stream)(foreloop_cublas_handle *handle, cudaStream_t stream);
    int (*set_workspace)(foreloop_cublas_handle *handle, void *workspace, size_t size);
    int (*set_math_mode)(foreloop_cublas_handle *handle, int mode);
    /* C[m][n] = alpha op(A) op(B) + beta C, all by columns. */
    int (*gemm_ex)(foreloop_cublas_handle *handle, int a_operation, int b_operation, int m, int n, int k,
                   const void *alpha, const void *a, int a_type, int a_stride, const void *b, int b_type, int b_stride,
                   const void *beta, void *c, int c_type, int c_stride, int compute_type, int algorithm);
    const char *(*status_string)(int status);
} foreloop_cublas_functions;

#endif
