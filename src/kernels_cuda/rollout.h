/*
 * Rollouts on the GPU: sequences of actions to rows of features, with the bits of kernels_cpu/transh_f32.h, whose
 * program it takes with all pointers to device memory, but for the slices.
 */
#ifndef FORELOOP_KERNELS_CUDA_ROLLOUT_H
#define FORELOOP_KERNELS_CUDA_ROLLOUT_H

#include "kernels_cpu/transh_f32.h"
#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where a number of a row comes from: an element of z in the program's order, then the aggregates, or else: */
#define FORELOOP_CUDA_SOURCE_LENGTH   UINT32_C(0x80000000) /* the number of actions of known kind */
#define FORELOOP_CUDA_SOURCE_CONSTANT UINT32_C(0x40000000) /* constants[source - this] */

typedef struct foreloop_cuda_rollout {
    foreloop_transh_program program;
    const float *start;      /* W z0[kinds], z0[latent] */
    const float *embeddings; /* [slices][slice_stride], by action FORELOOP_TRANSH_SLICE numbers of d */
    size_t slice_stride;
    uint32_t action_count; /* ids are below it */
    uint32_t longest;      /* sequences have so many actions at the most */
    const uint32_t *ids;   /* [id_count] */
    const size_t *offsets; /* [count + 1], less id_base of `ids` */
    size_t id_base, id_count;
    size_t count;            /* of candidates */
    const uint32_t *sources; /* [source_count] of the row's numbers */
    size_t source_count;
    const float *constants;
    float *rows; /* [count][row_stride] */
    size_t row_stride;
    unsigned char *bad; /* [count]: 1 for a candidate with falling offsets, an unknown id or too many actions, whose
                           row becomes NaN */
    unsigned long long *first_bad; /* the least of index_base + its number, where that is less than what stands here */
    size_t index_base;
} foreloop_cuda_rollout;

/* Shared memory of a warp, which rolls out one candidate. */
size_t foreloop_cuda_rollout_shared_bytes(const foreloop_transh_program *program);

/* `block_shared_bytes`: that a block may have, at least those of a warp. Cost: each action reads row and embedding, 4 x
 * (row_stride + latent) bytes, from the cache of the second level; the limit is that cache's bandwidth. */
cudaError_t foreloop_cuda_roll_out(const foreloop_cuda_rollout *rollout, size_t block_shared_bytes,
                                   cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
