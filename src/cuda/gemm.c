/*
 * cuBLAS, loaded when an encoder is created: a host that only scores needs no copy of it, and one that lacks it gets a
 * status. The functions and constants are those of cublas_api.h and library_types.h, whose values are part of the
 * library's binary interface (tests/cuda/check_cublas.c compares them where the headers are at hand).
 */
#include "cuda/gemm.h"
#include "cuda/cublas.h"
#include <dlfcn.h>
#include <string.h>

struct foreloop_cuda_gemm {
    foreloop_cuda *gpu;
    void *library;
    foreloop_cublas_functions functions;
    foreloop_cublas_handle *handle;
    void *workspace;
    size_t workspace_size;
};

static foreloop_status check(const foreloop_cuda_gemm *gemm, int status, const char *doing, foreloop_error *error) {
    if (status == FORELOOP_CUBLAS_SUCCESS)
        return FORELOOP_OK;
    return foreloop_fail(error, FORELOOP_ERROR_DEVICE, "cuBLAS, %s: %.80s", doing,
                         gemm->functions.status_string(status));
}

static foreloop_status load(foreloop_cuda_gemm *gemm, const char *path, foreloop_error *error) {
    static const char *const known[] = {"libcublas.so.13", "libcublas.so.12"};
    static const struct {
        const char *name;
        size_t place;
    } symbols[] = {
        {"cublasCreate_v2", offsetof(foreloop_cublas_functions, create)},
        {"cublasDestroy_v2", offsetof(foreloop_cublas_functions, destroy)},
        {"cublasSetStream_v2", offsetof(foreloop_cublas_functions, set_stream)},
        {"cublasSetWorkspace_v2", offsetof(foreloop_cublas_functions, set_workspace)},
        {"cublasSetMathMode", offsetof(foreloop_cublas_functions, set_math_mode)},
        {"cublasGemmEx", offsetof(foreloop_cublas_functions, gemm_ex)},
        {"cublasGetStatusString", offsetof(foreloop_cublas_functions, status_string)},
    };
    /* It stays in the process: to unload and load its hundreds of megabytes again takes longer than to encode. */
    for (size_t i = 0; i < (path ? 1 : sizeof known / sizeof *known) && !gemm->library; i++)
        gemm->library = dlopen(path ? path : known[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!gemm->library)
        return foreloop_fail(error, FORELOOP_ERROR_DEVICE,
                             "the encoder needs cuBLAS, but the loader finds no %s: install it (libcublas of the CUDA "
                             "toolkit), add its folder to LD_LIBRARY_PATH, or name it in the options",
                             path ? path : "libcublas.so.13 or libcublas.so.12");
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *symbol = dlsym(gemm->library, symbols[i].name);
        if (!symbol)
            return foreloop_fail(error, FORELOOP_ERROR_DEVICE, "%s lacks %s: it is no cuBLAS 11 or newer",
                                 path ? path : "libcublas", symbols[i].name);
        memcpy((char *)&gemm->functions + symbols[i].place, &symbol, sizeof symbol);
    }
    return FORELOOP_OK;
}

static foreloop_status open(foreloop_cuda_gemm *gemm, const char *library, foreloop_error *error) {
    FORELOOP_TRY(load(gemm, library, error));
    FORELOOP_TRY(foreloop_cuda_allocate(gemm->gpu, &gemm->workspace, gemm->workspace_size, 1, "cuBLAS", error));
    FORELOOP_TRY(check(gemm, gemm->functions.create(&gemm->handle), "opening it", error));
    /* Tensor cores may add halves in float32 only. Products of float32 ask for more in their compute type. */
    return check(gemm, gemm->functions.set_math_mode(gemm->handle, FORELOOP_CUBLAS_NO_REDUCED_PRECISION_REDUCTION),
                 "setting its mode", error);
}

foreloop_status foreloop_cuda_gemm_open(foreloop_cuda_gemm **result, foreloop_cuda *gpu, const char *library,
                                        size_t workspace_size, foreloop_error *error) {
    foreloop_cuda_gemm *gemm = foreloop_allocate_zeroed(&gpu->allocator, 1, sizeof *gemm);
    if (!gemm)
        return foreloop_fail_memory(error, 1, sizeof *gemm, "a handle of cuBLAS");
    gemm->gpu = gpu;
    gemm->workspace_size = workspace_size;
    const foreloop_status status = open(gemm, library, error);
    if (status != FORELOOP_OK) {
        foreloop_cuda_gemm_close(gemm);
        return status;
    }
    *result = gemm;
    return FORELOOP_OK;
}

void foreloop_cuda_gemm_close(foreloop_cuda_gemm *gemm) {
    if (!gemm)
        return;
    if (gemm->handle)
        (void)gemm->functions.destroy(gemm->handle);
    foreloop_cuda_release(gemm->gpu, gemm->workspace, gemm->workspace_size, 1);
    if (gemm->library)
        (void)dlclose(gemm->library);
    foreloop_release(&gemm->gpu->allocator, gemm);
}

foreloop_status foreloop_cuda_gemm_set_stream(foreloop_cuda_gemm *gemm, cudaStream_t stream, foreloop_error *error) {
    FORELOOP_TRY(check(gemm, gemm->functions.set_stream(gemm->handle, stream), "setting its stream", error));
    /* A new stream has cuBLAS take its own workspace again. */
    return check(gemm, gemm->functions.set_workspace(gemm->handle, gemm->workspace, gemm->workspace_size),
                 "setting its workspace", error);
}

static int data_type(foreloop_cuda_element element) {
    switch (element) {
    case FORELOOP_CUDA_ELEMENT_F16:
        return FORELOOP_CUBLAS_F16;
    case FORELOOP_CUDA_ELEMENT_BF16:
        return FORELOOP_CUBLAS_BF16;
    default:
        return FORELOOP_CUBLAS_F32;
    }
}

/* cuBLAS counts by columns: our rows are its columns, so it is asked for y^T = W x^T. */
foreloop_status foreloop_cuda_gemm_run(foreloop_cuda_gemm *gemm, const foreloop_cuda_gemm_call *call,
                                       foreloop_error *error) {
    const float one = 1.0f, zero = 0.0f;
    const int type = data_type(call->element);
    const int compute =
        call->element == FORELOOP_CUDA_ELEMENT_F32 ? FORELOOP_CUBLAS_COMPUTE_F32_PEDANTIC : FORELOOP_CUBLAS_COMPUTE_F32;
    const int status = gemm->functions.gemm_ex(
        gemm->handle, FORELOOP_CUBLAS_TRANSPOSED, FORELOOP_CUBLAS_AS_IT_IS, (int)call->out, (int)call->rows,
        (int)call->in, &one, call->weights, type, (int)call->weights_stride, call->x, type, (int)call->x_stride, &zero,
        call->y, data_type(call->y_element), (int)call->y_stride, compute, FORELOOP_CUBLAS_DEFAULT_ALGORITHM);
    return check(gemm, status, "a matrix product", error);
}
