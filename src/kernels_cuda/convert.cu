/* Weights on their way to the GPU: from float32 without gaps to rows of any element. Runs once, when they are loaded.
 */
#include "kernels_cuda/device_code.cuh"
#include "kernels_cuda/element.cuh"
#include "kernels_cuda/encoder_kernels.h"

enum { CONVERT_THREADS = 256 };

static __global__ void __launch_bounds__(CONVERT_THREADS) convert_kernel(foreloop_cuda_convert_call call) {
    const size_t row = blockIdx.x;
    for (size_t i = threadIdx.x; i < call.stride; i += CONVERT_THREADS)
        store_element(call.to, row * call.stride + i, call.element,
                      i < call.width ? call.from[row * call.width + i] : 0.0f);
}

cudaError_t foreloop_cuda_convert(const foreloop_cuda_convert_call *call, cudaStream_t stream) {
    FORELOOP_LAUNCH(convert_kernel, (unsigned)call->rows, CONVERT_THREADS, 0, stream, *call);
    return cudaGetLastError();
}
