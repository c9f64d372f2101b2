/* Weights on their way to the GPU: from float32 without gaps to rows of any element. Runs once, when they are loaded.
 */
#include "kernels_cuda/device_code.cuh"
#include "kernels_cuda/element.cuh"
#include "kernels_cuda/encoder_kernels.h"

enum { CONVERT_THREADS = 256 };

extern "C" __global__ void __launch_bounds__(CONVERT_THREADS)
    foreloop_cuda_convert_kernel(foreloop_cuda_convert_call call) {
    const size_t place = (size_t)blockIdx.x * CONVERT_THREADS + threadIdx.x;
    const size_t row = place / call.stride, column = place % call.stride;
    if (row < call.rows)
        store_element(call.to, place, call.element, column < call.width ? call.from[row * call.width + column] : 0.0f);
}

cudaError_t foreloop_cuda_convert(const foreloop_cuda_convert_call *call, cudaStream_t stream) {
    const size_t blocks = (call->rows * call->stride + CONVERT_THREADS - 1) / CONVERT_THREADS;
    FORELOOP_LAUNCH(foreloop_cuda_convert_kernel, (unsigned)blocks, CONVERT_THREADS, 0, stream, *call);
    return cudaGetLastError();
}
