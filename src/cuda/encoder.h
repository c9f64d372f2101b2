/* An encoder on the GPU: its scratch, and the forward pass over a run of windows. */
#ifndef FORELOOP_CUDA_ENCODER_H
#define FORELOOP_CUDA_ENCODER_H

#include "cuda/arrays.h"
#include "cuda/gemm.h"
#include "cuda/staging.h"
#include "cuda/text_batch.h"
#include "cuda/transformer.h"

struct foreloop_cuda_encoder {
    const foreloop_cuda_transformer *transformer;
    size_t tokens, texts; /* of a run, at the most */
    foreloop_cuda_text_batch batch;
    foreloop_cuda_staging staging;
    foreloop_cuda_gemm *gemm;
    cudaStream_t stream;         /* of the last call */
    foreloop_cuda_arrays arrays; /* all that follows, on the GPU */
    unsigned char *inputs;       /* of a run */
    float *states;               /* [tokens][stride]: the residual stream */
    float *product;              /* [tokens][stride]: what is added to it next, without its bias */
    void *narrow; /* [tokens][stride] of the transformer's element: what products read: context, and states where
                     these are not float32 */
    void *wide;   /* [tokens][wide_stride] of it: query, key and value, or the intermediate states */
    size_t wide_stride;
    float *means, *projected; /* [texts][stride], [texts][row stride of the projection] */
    float *results;           /* [texts][hidden, or of the projection], without gaps */
    double *carry;            /* [2][hidden]: the sums that go from run to run, in turn */
    uint32_t *failed;         /* the least text of its call that overflowed, or UINT32_MAX */
    uint32_t earlier_failure; /* one that was found, but not yet told */
};

/* Queues the encoding of what encoder->batch holds: embeddings[texts][embedding_size] on the GPU, or NULL. */
foreloop_status foreloop_cuda_encode_batch(foreloop_cuda_encoder *encoder, float *embeddings, cudaStream_t stream,
                                           foreloop_error *error);

/* Queues the forward pass over a run whose inputs are on the GPU: encoder->states. `types`: whether there are token
 * types. */
foreloop_status foreloop_cuda_forward(const foreloop_cuda_encoder *encoder, const foreloop_cuda_run *run, bool types,
                                      cudaStream_t stream, foreloop_error *error);

#endif
