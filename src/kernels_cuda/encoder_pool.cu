/*
 * From hidden states to a text's vector: the mean over its windows, and what is left to do behind the projection. Of a
 * text's mean a block has 32 columns, each lane one, and its warps take turns at the rows; sums are in double, which
 * GeForces add at a 64th of the rate of float32, and still rows x width of them are a small part of a forward pass.
 */
#include "kernels_cuda/device_code.cuh"
#include "kernels_cuda/encoder_kernels.h"

enum { POOL_WARPS = 8, POOL_THREADS = POOL_WARPS * 32, FINISH_THREADS = 128 };

extern "C" __global__ void __launch_bounds__(POOL_THREADS) foreloop_cuda_pool_kernel(foreloop_cuda_pool_call call) {
    FORELOOP_SHARED(double) parts[POOL_WARPS][32];
    const foreloop_cuda_pool_text text = call.texts[blockIdx.x];
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, column = blockIdx.y * 32 + lane;
    double sum = 0.0;
    if (column < call.width)
        for (unsigned w = text.window; w < text.window_end; w++) {
            const foreloop_cuda_pool_window window = call.windows[w];
            const float *states = call.states + (size_t)window.first * call.stride + column;
            FORELOOP_UNROLL(4)
            for (unsigned row = warp; row < window.count; row += POOL_WARPS)
                sum += (double)states[row * call.stride];
        }
    parts[warp][lane] = sum;
    __syncthreads();
    if (warp > 0 || column >= call.width)
        return;
    double total = text.carried ? call.carried[column] : 0.0;
    for (int i = 0; i < POOL_WARPS; i++)
        total += parts[i][lane];
    if (text.unfinished)
        call.carry[column] = total;
    else
        call.means[blockIdx.x * call.stride + column] = text.count ? (float)(total / (double)text.count) : 0.0f;
}

/* A block has a text. */
extern "C" __global__ void __launch_bounds__(FINISH_THREADS)
    foreloop_cuda_finish_kernel(foreloop_cuda_finish_call call) {
    FORELOOP_SHARED(double) parts[FINISH_THREADS / 32];
    const foreloop_cuda_pool_text text = call.texts[blockIdx.x];
    const float *values = call.values + blockIdx.x * call.stride;
    float *result = call.results + (size_t)blockIdx.x * call.width;
    const bool empty = text.count == 0, biased = call.bias && !empty;
    double square = 0.0;
    for (unsigned i = threadIdx.x; i < call.width; i += FINISH_THREADS) {
        const float value = empty ? 0.0f : biased ? values[i] + call.bias[i] : values[i];
        square += (double)value * (double)value;
    }
    FORELOOP_UNROLL(8)
    for (int half = 16; half > 0; half /= 2)
        square += __shfl_xor_sync(FORELOOP_WARP, square, half);
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = square;
    __syncthreads();
    square = 0.0;
    for (int i = 0; i < FINISH_THREADS / 32; i++)
        square += parts[i];
    const double norm = sqrt(square);
    const double scale = call.normalize ? 1.0 / (norm > 1e-12 ? norm : 1e-12) : 1.0;
    for (unsigned i = threadIdx.x; i < call.width; i += FINISH_THREADS) {
        const float value = empty ? 0.0f : biased ? values[i] + call.bias[i] : values[i];
        result[i] = (float)((double)value * scale);
    }
    /* The squares of float32 do not overflow in double: the sum is finite when all values are. */
    if (threadIdx.x == 0 && !(square <= 1.7976931348623157e308))
        atomicMin(call.failed, call.first_text + blockIdx.x);
}

cudaError_t foreloop_cuda_pool(const foreloop_cuda_pool_call *call, cudaStream_t stream) {
    const dim3 blocks(call->text_count, (call->width + 31) / 32);
    FORELOOP_LAUNCH(foreloop_cuda_pool_kernel, blocks, POOL_THREADS, 0, stream, *call);
    return cudaGetLastError();
}

cudaError_t foreloop_cuda_finish(const foreloop_cuda_finish_call *call, cudaStream_t stream) {
    FORELOOP_LAUNCH(foreloop_cuda_finish_kernel, call->text_count, FINISH_THREADS, 0, stream, *call);
    return cudaGetLastError();
}
