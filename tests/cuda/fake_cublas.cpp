/*
 * cuBLAS for the emulation: the functions that src/cuda/gemm.c looks up, under their names and with their arguments, as
 * plain loops by columns, queued on the emulated stream. It is stricter than the real one: products need a workspace
 * set since the stream was, float32 the pedantic compute type, and halves sums in float32.
 */
#include "emulation.h"
#include "kernels_cuda/element.cuh"

namespace {

enum { SUCCESS = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 7, NOT_SUPPORTED = 15 };

struct matrix {
    const void *values;
    foreloop_cuda_element element;
    int stride;

    float at(int row, int column) const {
        return load_element(values, (size_t)column * (size_t)stride + (size_t)row, element);
    }
};

bool element_of(int type, foreloop_cuda_element *element) {
    *element = type == 0    ? FORELOOP_CUDA_ELEMENT_F32
               : type == 2  ? FORELOOP_CUDA_ELEMENT_F16
               : type == 14 ? FORELOOP_CUDA_ELEMENT_BF16
                            : (foreloop_cuda_element)-1;
    return type == 0 || type == 2 || type == 14;
}

} /* namespace */

struct cublasContext {
    cudaStream_t stream;
    void *workspace;
    int mode;
};

extern "C" {

int cublasCreate_v2(cublasContext **handle);
int cublasDestroy_v2(cublasContext *handle);
int cublasSetStream_v2(cublasContext *handle, cudaStream_t stream);
int cublasSetWorkspace_v2(cublasContext *handle, void *workspace, size_t size);
int cublasSetMathMode(cublasContext *handle, int mode);
int cublasGemmEx(cublasContext *handle, int a_operation, int b_operation, int m, int n, int k, const void *alpha,
                 const void *a, int a_type, int a_stride, const void *b, int b_type, int b_stride, const void *beta,
                 void *c, int c_type, int c_stride, int compute, int algorithm);
const char *cublasGetStatusString(int status);

int cublasCreate_v2(cublasContext **handle) {
    *handle = new cublasContext{};
    return SUCCESS;
}

int cublasDestroy_v2(cublasContext *handle) {
    delete handle;
    return SUCCESS;
}

int cublasSetStream_v2(cublasContext *handle, cudaStream_t stream) {
    handle->stream = stream;
    handle->workspace = nullptr;
    return SUCCESS;
}

int cublasSetWorkspace_v2(cublasContext *handle, void *workspace, size_t size) {
    if (!workspace || size < 1024 || (uintptr_t)workspace % 256 != 0)
        return INVALID_VALUE;
    handle->workspace = workspace;
    return SUCCESS;
}

int cublasSetMathMode(cublasContext *handle, int mode) {
    handle->mode = mode;
    return SUCCESS;
}

int cublasGemmEx(cublasContext *handle, int a_operation, int b_operation, int m, int n, int k, const void *alpha,
                 const void *a, int a_type, int a_stride, const void *b, int b_type, int b_stride, const void *beta,
                 void *c, int c_type, int c_stride, int compute, int algorithm) {
    matrix left = {a, FORELOOP_CUDA_ELEMENT_F32, a_stride}, right = {b, FORELOOP_CUDA_ELEMENT_F32, b_stride};
    foreloop_cuda_element result;
    float one, zero;
    memcpy(&one, alpha, sizeof one);
    memcpy(&zero, beta, sizeof zero);
    if (!handle->workspace)
        return NOT_INITIALIZED;
    if (m <= 0 || n <= 0 || k <= 0 || !element_of(a_type, &left.element) || !element_of(b_type, &right.element) ||
        !element_of(c_type, &result) || a_stride < (a_operation ? k : m) || b_stride < (b_operation ? n : k) ||
        c_stride < m || one != 1.0f || zero != 0.0f)
        return INVALID_VALUE;
    if (a_type != b_type || (c_type != a_type && c_type != 0) || compute != (a_type == 0 ? 69 : 68) ||
        (a_type != 0 && handle->mode != 16) || algorithm != -1)
        return NOT_SUPPORTED;
    emulation::queue(1, 32, 0, handle->stream, [=]() {
        if (threadIdx.x != 0)
            return;
        for (int column = 0; column < n; column++)
            for (int row = 0; row < m; row++) {
                float sum = 0.0f;
                for (int i = 0; i < k; i++)
                    sum += (a_operation ? left.at(i, row) : left.at(row, i)) *
                           (b_operation ? right.at(column, i) : right.at(i, column));
                store_element(c, (size_t)column * (size_t)c_stride + (size_t)row, result, sum);
            }
    });
    return SUCCESS;
}

const char *cublasGetStatusString(int status) {
    return status == NOT_INITIALIZED ? "the library was not initialized"
           : status == INVALID_VALUE ? "an unsupported value or parameter was passed to the function"
                                     : "the functionality requested is not supported";
}

} /* extern "C" */
