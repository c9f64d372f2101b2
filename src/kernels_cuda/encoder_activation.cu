/* Bias and activation between the two products of a feed-forward layer, eight neighbours a thread. Near the limit of:
 * memory, or the second-level cache. */
#include "kernels_cuda/device_code.cuh"
#include "kernels_cuda/element.cuh"
#include "kernels_cuda/encoder_kernels.h"

enum { ACTIVATION_THREADS = 128, ACTIVATION_WIDTH = ACTIVATION_THREADS * FORELOOP_CUDA_ROW_UNIT };

static __device__ __forceinline__ float activated(float x, foreloop_cuda_activation activation) {
    const float root_half = 0.70710678118654752f, root_two_over_pi = 0.79788456080286536f;
    if (activation == FORELOOP_CUDA_GELU)
        return 0.5f * x * (1.0f + erff(x * root_half));
    if (activation == FORELOOP_CUDA_GELU_TANH)
        return 0.5f * x * (1.0f + tanhf(root_two_over_pi * __fmaf_rn(0.044715f * x * x, x, x)));
    return x < 0.0f ? 0.0f : x; /* a NaN stays one */
}

/* A block has ACTIVATION_WIDTH columns of a row. */
extern "C" __global__ void __launch_bounds__(ACTIVATION_THREADS)
    foreloop_cuda_activation_kernel(foreloop_cuda_activation_call call) {
    const unsigned first = (blockIdx.y * ACTIVATION_THREADS + threadIdx.x) * FORELOOP_CUDA_ROW_UNIT;
    const size_t place = blockIdx.x * call.stride + first;
    if (first >= call.width)
        return;
    if (call.width - first < FORELOOP_CUDA_ROW_UNIT) { /* behind these lies what nobody has written */
        for (unsigned i = 0; first + i < call.width; i++)
            store_element(
                call.values, place + i, call.element,
                activated(load_element(call.values, place + i, call.element) + call.bias[first + i], call.activation));
        return;
    }
    float values[FORELOOP_CUDA_ROW_UNIT], bias[FORELOOP_CUDA_ROW_UNIT];
    load_eight(call.values, place, call.element, values);
    load_eight(call.bias, first, FORELOOP_CUDA_ELEMENT_F32, bias);
    FORELOOP_UNROLL(8)
    for (int i = 0; i < FORELOOP_CUDA_ROW_UNIT; i++)
        values[i] = activated(values[i] + bias[i], call.activation);
    store_eight(call.values, place, call.element, values);
}

cudaError_t foreloop_cuda_activate(const foreloop_cuda_activation_call *call, cudaStream_t stream) {
    const dim3 blocks(call->rows, (call->width + ACTIVATION_WIDTH - 1) / ACTIVATION_WIDTH);
    FORELOOP_LAUNCH(foreloop_cuda_activation_kernel, blocks, ACTIVATION_THREADS, 0, stream, *call);
    return cudaGetLastError();
}
