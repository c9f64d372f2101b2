/* A transformer's weights on the GPU. */
#ifndef FORELOOP_CUDA_TRANSFORMER_H
#define FORELOOP_CUDA_TRANSFORMER_H

#include "cuda/gpu.h"
#include "kernels_cuda/element.h"
#include "model/text_encoder.h"

/* y = x W^T + b; b goes to the kernel behind the product. */
typedef struct foreloop_cuda_linear {
    size_t in, out, stride; /* of rows of `weights` */
    void *weights;          /* [out][stride] */
    float *bias;            /* [out] */
} foreloop_cuda_linear;

typedef struct foreloop_cuda_norm_weights {
    float *gamma, *beta; /* [hidden] */
} foreloop_cuda_norm_weights;

typedef struct foreloop_cuda_layer {
    foreloop_cuda_linear query_key_value, attention_output, intermediate, output;
    foreloop_cuda_norm_weights attention_norm, output_norm;
} foreloop_cuda_layer;

struct foreloop_cuda_transformer {
    foreloop_cuda *gpu;
    const foreloop_transformer *transformer;
    foreloop_cuda_element element; /* of the layers' weights, and what they multiply */
    size_t stride;                 /* of rows of hidden_size */
    void *memory;                  /* one block, in which all of what follows lies */
    size_t memory_size;
    void *words; /* [vocabulary][stride] */
    foreloop_cuda_element words_element;
    float *positions, *types; /* [..][stride] */
    foreloop_cuda_norm_weights embedding_norm;
    foreloop_cuda_layer *layers;     /* [layer_count], on the host */
    foreloop_cuda_linear projection; /* in float32; its weights are NULL when there is none */
};

#endif
