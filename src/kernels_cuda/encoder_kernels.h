/*
 * The encoder's kernels on the GPU. They know nothing of models; the matrix products between them are gemm.h's.
 *
 * All tokens of a batch lie one behind the other, sequence after sequence, without padding: a matrix has one row a
 * token, and its rows begin at multiples of foreloop_cuda_row_stride. Sums are float32 and their order is fixed, so
 * that a number has the same bits whatever else is in the batch. States, tables, biases and norms are float32; what a
 * matrix product reads and writes is float32, float16 or bfloat16.
 *
 * Every function queues one kernel on `stream` and returns what the launch gave.
 */
#ifndef FORELOOP_KERNELS_CUDA_ENCODER_KERNELS_H
#define FORELOOP_KERNELS_CUDA_ENCODER_KERNELS_H

#include "kernels_cuda/element.h"
#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A layer normalisation of rows[count][stride], each of `width` numbers, and where the result goes. */
typedef struct foreloop_cuda_norm {
    const float *gamma, *beta; /* [width] */
    float epsilon;
    unsigned rows, width;
    size_t stride;
    float *states;                 /* [rows][stride] */
    void *narrow;                  /* the same in narrow_element, or NULL */
    foreloop_cuda_element element; /* of narrow */
} foreloop_cuda_norm;

/* states = norm(words[ids] + types[types] + positions[positions]) */
typedef struct foreloop_cuda_embed_call {
    foreloop_cuda_norm norm;
    const uint32_t *ids, *position_rows; /* [rows] */
    const uint32_t *type_rows;           /* [rows], or NULL for zeros */
    const void *words;
    foreloop_cuda_element words_element;
    const float *positions, *types;
} foreloop_cuda_embed_call;
cudaError_t foreloop_cuda_embed(const foreloop_cuda_embed_call *call, cudaStream_t stream);

/* states = norm(states + product + bias) */
typedef struct foreloop_cuda_residual_call {
    foreloop_cuda_norm norm;
    const float *product; /* [rows][stride] */
    const float *bias;    /* [width] */
} foreloop_cuda_residual_call;
cudaError_t foreloop_cuda_residual(const foreloop_cuda_residual_call *call, cudaStream_t stream);

typedef enum foreloop_cuda_activation {
    FORELOOP_CUDA_GELU,
    FORELOOP_CUDA_GELU_TANH,
    FORELOOP_CUDA_RELU
} foreloop_cuda_activation;

/* values = activation(values + bias), in place */
typedef struct foreloop_cuda_activation_call {
    void *values; /* [rows][stride] */
    foreloop_cuda_element element;
    const float *bias; /* [width] */
    unsigned rows, width;
    size_t stride;
    foreloop_cuda_activation activation;
} foreloop_cuda_activation_call;
cudaError_t foreloop_cuda_activate(const foreloop_cuda_activation_call *call, cudaStream_t stream);

/* A block's work in attention: FORELOOP_CUDA_QUERIES queries from number `query` on of the sequence whose `count` rows
 * begin at `first`. */
typedef struct foreloop_cuda_attention_tile {
    uint32_t first, count, query;
} foreloop_cuda_attention_tile;
enum { FORELOOP_CUDA_QUERIES = 64, FORELOOP_CUDA_MAX_HEADS = 65535 };

/* context = softmax((q + bias) (k + bias)^T / sqrt(head_width)) (v + bias) for each head of each sequence. */
typedef struct foreloop_cuda_attention_call {
    const void *query_key_value; /* [rows][stride]: the heads' queries, then their keys, then their values */
    const float *bias;           /* [3 x hidden] */
    size_t stride;
    void *context; /* [rows][context_stride] */
    size_t context_stride;
    foreloop_cuda_element element; /* of both */
    unsigned heads, head_width;    /* at most FORELOOP_CUDA_MAX_HEADS */
    const foreloop_cuda_attention_tile *tiles;
    unsigned tile_count;
} foreloop_cuda_attention_call;
cudaError_t foreloop_cuda_attention(const foreloop_cuda_attention_call *call, cudaStream_t stream);

/* Rows of states that are pooled together, and the texts that they belong to. */
typedef struct foreloop_cuda_pool_window {
    uint32_t first, count;
} foreloop_cuda_pool_window;
typedef struct foreloop_cuda_pool_text {
    uint32_t window, window_end;
    uint32_t carried, unfinished; /* 1: begins with the carried sum; 1: its sum is carried on, and has no mean yet */
    uint64_t count;               /* rows of all its windows, those of earlier calls too */
} foreloop_cuda_pool_text;

/* means[text] = sum of the rows of its windows / count, zeros where count is 0; sums in double. */
typedef struct foreloop_cuda_pool_call {
    const float *states;
    size_t stride;
    unsigned width;
    const foreloop_cuda_pool_window *windows;
    const foreloop_cuda_pool_text *texts;
    unsigned text_count;
    const double *carried; /* [width] */
    double *carry;         /* [width]; another than `carried` */
    float *means;          /* [texts][stride] */
} foreloop_cuda_pool_call;
cudaError_t foreloop_cuda_pool(const foreloop_cuda_pool_call *call, cudaStream_t stream);

/* results[text] = (values + bias), normalised; zeros for a text without rows. */
typedef struct foreloop_cuda_finish_call {
    const float *values; /* [texts][stride] */
    size_t stride;
    unsigned width;
    const float *bias; /* [width], or NULL */
    int normalize;     /* 1: divided by max(L2 norm, 1e-12) */
    const foreloop_cuda_pool_text *texts;
    unsigned text_count;
    unsigned first_text; /* the number of the first one in the caller's batch */
    float *results;      /* [texts][width], without gaps */
    uint32_t *failed;    /* becomes the least number of a text with a result that is not finite */
} foreloop_cuda_finish_call;
cudaError_t foreloop_cuda_finish(const foreloop_cuda_finish_call *call, cudaStream_t stream);

/* to[rows][stride] in `element` = from[rows][width] in float32, without gaps; zeros up to the stride. At most 2^31
 * numbers. */
typedef struct foreloop_cuda_convert_call {
    const float *from;
    void *to;
    foreloop_cuda_element element;
    size_t rows, width, stride;
} foreloop_cuda_convert_call;
cudaError_t foreloop_cuda_convert(const foreloop_cuda_convert_call *call, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
