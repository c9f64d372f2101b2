/* What src/cuda/cublas.h takes from cuBLAS's binary interface, against its headers: compiled where they are at hand. */
#include "cuda/cublas.h"
#include <cublas_v2.h>
#include <library_types.h>

#define SAME(own, theirs) _Static_assert((int)(own) == (int)(theirs), #theirs)
SAME(FORELOOP_CUBLAS_SUCCESS, CUBLAS_STATUS_SUCCESS);
SAME(FORELOOP_CUBLAS_AS_IT_IS, CUBLAS_OP_N);
SAME(FORELOOP_CUBLAS_TRANSPOSED, CUBLAS_OP_T);
SAME(FORELOOP_CUBLAS_F32, CUDA_R_32F);
SAME(FORELOOP_CUBLAS_F16, CUDA_R_16F);
SAME(FORELOOP_CUBLAS_BF16, CUDA_R_16BF);
SAME(FORELOOP_CUBLAS_COMPUTE_F32, CUBLAS_COMPUTE_32F);
SAME(FORELOOP_CUBLAS_COMPUTE_F32_PEDANTIC, CUBLAS_COMPUTE_32F_PEDANTIC);
SAME(FORELOOP_CUBLAS_NO_REDUCED_PRECISION_REDUCTION, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
SAME(FORELOOP_CUBLAS_DEFAULT_ALGORITHM, CUBLAS_GEMM_DEFAULT);
_Static_assert(sizeof(cublasStatus_t) == sizeof(int) && sizeof(cublasOperation_t) == sizeof(int) &&
                   sizeof(cudaDataType) == sizeof(int) && sizeof(cublasComputeType_t) == sizeof(int) &&
                   sizeof(cublasGemmAlgo_t) == sizeof(int) && sizeof(cublasMath_t) == sizeof(int),
               "enumerations are passed as int");

/* The arguments in their order: these calls compile only if they are what the headers say. */
cublasStatus_t foreloop_check_cublas(cublasHandle_t handle, void *workspace, size_t size, cudaStream_t stream);
cublasStatus_t foreloop_check_cublas(cublasHandle_t handle, void *workspace, size_t size, cudaStream_t stream) {
    cublasStatus_t (*create)(cublasHandle_t *) = cublasCreate_v2;
    cublasStatus_t (*destroy)(cublasHandle_t) = cublasDestroy_v2;
    cublasStatus_t (*set_stream)(cublasHandle_t, cudaStream_t) = cublasSetStream_v2;
    cublasStatus_t (*set_workspace)(cublasHandle_t, void *, size_t) = cublasSetWorkspace_v2;
    cublasStatus_t (*set_math_mode)(cublasHandle_t, cublasMath_t) = cublasSetMathMode;
    cublasStatus_t (*gemm_ex)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void *,
                              const void *, cudaDataType, int, const void *, cudaDataType, int, const void *, void *,
                              cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t) = cublasGemmEx;
    const char *(*status_string)(cublasStatus_t) = cublasGetStatusString;
    return create && destroy && set_workspace && set_math_mode && gemm_ex && status_string && workspace && size
               ? set_stream(handle, stream)
               : CUBLAS_STATUS_SUCCESS;
}
