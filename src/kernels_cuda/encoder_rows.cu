/*
 * Layer normalisation of sums: of a token's embeddings, and of a state, a product and its bias. A warp has a row, and
 * goes over it three times: for the mean, for the deviations, for the result; from the second time on it lies in the
 * first-level cache. Near the limit of: memory, or the second-level cache where that holds the batch.
 */
#include "kernels_cuda/device_code.cuh"
#include "kernels_cuda/element.cuh"
#include "kernels_cuda/encoder_kernels.h"

enum { ROWS = 4, ROW_THREADS = ROWS * 32 }; /* of a block */

/* The sum over the warp, in every lane. */
static __device__ __forceinline__ float row_sum(float value) {
    FORELOOP_UNROLL(8)
    for (int half = 16; half > 0; half /= 2)
        value += __shfl_xor_sync(FORELOOP_WARP, value, half);
    return value;
}

/* The row's addends: (first + second) + third. */
typedef struct row_addends {
    const void *first;
    foreloop_cuda_element element; /* of first */
    const float *second, *third;
} row_addends;

static __device__ __forceinline__ float addend_sum(const row_addends *row, unsigned i) {
    return (load_element(row->first, i, row->element) + row->second[i]) + row->third[i];
}

static __device__ __forceinline__ void normalize_row(const foreloop_cuda_norm *norm, size_t row,
                                                     const row_addends *addends) {
    const unsigned lane = threadIdx.x % 32, width = norm->width;
    const float count = (float)width;
    float sum = 0.0f, deviation = 0.0f, square = 0.0f;
    FORELOOP_UNROLL(4)
    for (unsigned i = lane; i < width; i += 32)
        sum += addend_sum(addends, i);
    const float rough = row_sum(sum) / count;
    FORELOOP_UNROLL(4)
    for (unsigned i = lane; i < width; i += 32) {
        const float distance = addend_sum(addends, i) - rough;
        deviation += distance;
        square = __fmaf_rn(distance, distance, square);
    }
    /* The rough mean's rounding error is what the deviations from it still sum up to. */
    const float error = row_sum(deviation) / count;
    const float variance = fmaxf(row_sum(square) / count - error * error, 0.0f);
    const float mean = rough + error, scale = 1.0f / sqrtf(variance + norm->epsilon);
    FORELOOP_UNROLL(4)
    for (unsigned i = lane; i < width; i += 32) {
        const float value = __fmaf_rn((addend_sum(addends, i) - mean) * scale, norm->gamma[i], norm->beta[i]);
        norm->states[row * norm->stride + i] = value;
        if (norm->narrow)
            store_element(norm->narrow, row * norm->stride + i, norm->element, value);
    }
}

extern "C" __global__ void __launch_bounds__(ROW_THREADS) foreloop_cuda_embed_kernel(foreloop_cuda_embed_call call) {
    const size_t row = (size_t)blockIdx.x * ROWS + threadIdx.x / 32, stride = call.norm.stride;
    if (row >= call.norm.rows)
        return;
    const size_t type = call.type_rows ? call.type_rows[row] : 0;
    const row_addends addends = {
        (const char *)call.words + call.ids[row] * stride * (call.words_element == FORELOOP_CUDA_ELEMENT_F32 ? 4 : 2),
        call.words_element, call.types + type * stride, call.positions + call.position_rows[row] * stride};
    normalize_row(&call.norm, row, &addends);
}

extern "C" __global__ void __launch_bounds__(ROW_THREADS)
    foreloop_cuda_residual_kernel(foreloop_cuda_residual_call call) {
    const size_t row = (size_t)blockIdx.x * ROWS + threadIdx.x / 32, stride = call.norm.stride;
    if (row >= call.norm.rows)
        return;
    const row_addends addends = {call.product + row * stride, FORELOOP_CUDA_ELEMENT_F32, call.bias,
                                 call.norm.states + row * stride};
    normalize_row(&call.norm, row, &addends);
}

cudaError_t foreloop_cuda_embed(const foreloop_cuda_embed_call *call, cudaStream_t stream) {
    FORELOOP_LAUNCH(foreloop_cuda_embed_kernel, (call->norm.rows + ROWS - 1) / ROWS, ROW_THREADS, 0, stream, *call);
    return cudaGetLastError();
}

cudaError_t foreloop_cuda_residual(const foreloop_cuda_residual_call *call, cudaStream_t stream) {
    FORELOOP_LAUNCH(foreloop_cuda_residual_kernel, (call->norm.rows + ROWS - 1) / ROWS, ROW_THREADS, 0, stream, *call);
    return cudaGetLastError();
}
