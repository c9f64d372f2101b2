/*
 * The score network on the GPU: its output for rows of features is added to their scores, with the bits of
 * kernels_cpu/mlp_f32.h. All pointers are to device memory.
 */
#ifndef FORELOOP_KERNELS_CUDA_SCORE_NETWORK_H
#define FORELOOP_KERNELS_CUDA_SCORE_NETWORK_H

#include "kernels_cpu/mlp_f32.h"
#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { FORELOOP_CUDA_NETWORK_LAYERS = 8 /* at the most */, FORELOOP_CUDA_NETWORK_ROWS = 64 /* of a block */ };

typedef struct foreloop_cuda_network {
    const float *shift, *scale; /* [inputs of the first layer] */
    float limit;
    size_t layer_count;
    foreloop_mlp_layer layers[FORELOOP_CUDA_NETWORK_LAYERS];
} foreloop_cuda_network;

typedef struct foreloop_cuda_network_call {
    foreloop_cuda_network network;
    const uint32_t *inputs;   /* [inputs of the first layer]: their numbers in a row */
    const float *rows;        /* [count][row_stride] */
    size_t row_stride, count; /* below 2^32 */
    float *hidden[2]; /* [the widest hidden layer's outputs][foreloop_cuda_network_pitch(count)]: what two layers pass
                         on, output by output; unused where there is no hidden layer */
    float *scores;    /* [count]; NaN stays NaN */
} foreloop_cuda_network_call;

/* `count` rounded up to whole blocks. */
static inline size_t foreloop_cuda_network_pitch(size_t count) {
    return (count + FORELOOP_CUDA_NETWORK_ROWS - 1) / FORELOOP_CUDA_NETWORK_ROWS * FORELOOP_CUDA_NETWORK_ROWS;
}

/* A launch for each layer. Cost: a multiply-add for each weight and row, which is the limit too. */
cudaError_t foreloop_cuda_add_network(const foreloop_cuda_network_call *call, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
