/*
 * The k best on the GPU. A candidate is a key of 64 bits: its score as a number that ascends as scores do (0 for NaN,
 * -0 as 0), and below the complement of its index; so the largest keys are the best, equal scores in order of index.
 * Key 0 is none.
 */
#ifndef FORELOOP_KERNELS_CUDA_TOP_K_H
#define FORELOOP_KERNELS_CUDA_TOP_K_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    FORELOOP_CUDA_TOP_KEYS = 1024,                      /* that are kept of a tile */
    FORELOOP_CUDA_TOP_TILE = 2 * FORELOOP_CUDA_TOP_KEYS /* keys that a block sorts */
};

/* keys[count] of scores[count], which are numbered from index_base on. */
cudaError_t foreloop_cuda_make_keys(const float *scores, size_t count, uint32_t index_base, uint64_t *keys,
                                    cudaStream_t stream);

/* Writes the best FORELOOP_CUDA_TOP_KEYS of each tile of keys[count], sorted, to best[tiles][...]; with one tile these
 * are the best of all. */
cudaError_t foreloop_cuda_keep_best(const uint64_t *keys, size_t count, uint64_t *best, cudaStream_t stream);
static inline size_t foreloop_cuda_top_tiles(size_t count) {
    return (count + FORELOOP_CUDA_TOP_TILE - 1) / FORELOOP_CUDA_TOP_TILE;
}

/* Sorted keys back to indices[count] and scores[count] (may be NULL). */
cudaError_t foreloop_cuda_read_keys(const uint64_t *keys, size_t count, uint64_t *indices, float *scores,
                                    cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
