/*
 * Boosted trees on the GPU: the sum of the base and the leaves that a row reaches, tree after tree, with the bits of
 * kernels_cpu/trees_f32.h. All pointers are to device memory.
 */
#ifndef FORELOOP_KERNELS_CUDA_TREES_H
#define FORELOOP_KERNELS_CUDA_TREES_H

#include "kernels_cpu/trees_f32.h"
#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A node of a tree that foreloop_trees_node cannot hold: one of many leaves, or with categories. A leaf is its own
 * child. Split words, as of the model's nodes: the feature, and */
#define FORELOOP_CUDA_NODE_DEFAULT_LEFT UINT32_C(0x80000000)
#define FORELOOP_CUDA_NODE_CATEGORICAL  UINT32_C(0x40000000)
#define FORELOOP_CUDA_NODE_SPLIT        UINT32_C(0x20000000)
#define FORELOOP_CUDA_NODE_FEATURE      UINT32_C(0x1fffffff)
typedef struct foreloop_cuda_node {
    float value;  /* threshold or leaf */
    uint32_t set; /* of a categorical split */
    uint32_t left, split;
} foreloop_cuda_node;

/* Neighbouring trees of one sort. */
typedef struct foreloop_cuda_run {
    uint32_t begin, end; /* trees */
    uint32_t compact;    /* 1: foreloop_trees_node from roots[tree] on; 0: foreloop_cuda_node number roots[tree] */
} foreloop_cuda_run;

typedef struct foreloop_cuda_trees {
    const foreloop_trees_node *nodes; /* features are numbers of a row */
    const foreloop_cuda_node *large;
    const uint32_t *roots; /* by tree */
    const uint32_t *sets;  /* set s is the ascending categories[sets[s]] to categories[sets[s + 1] - 1] */
    const uint32_t *categories;
    const foreloop_cuda_run *runs;
    uint32_t run_count;
    float base;
} foreloop_cuda_trees;

typedef struct foreloop_cuda_trees_call {
    foreloop_cuda_trees trees;
    const float *rows; /* [count][row_stride] */
    size_t row_stride, row_width, count;
    const unsigned char *bad; /* [count]: rows with 1 get NaN */
    float *scores;            /* [count] */
} foreloop_cuda_trees_call;

/* `block_shared_bytes`: that a block may have; rows that do not fit there are read where they lie. Cost: count x trees
 * x depth visits; the limit is the latency of a visit, which rows of a block and trees side by side hide. */
cudaError_t foreloop_cuda_add_trees(const foreloop_cuda_trees_call *call, size_t block_shared_bytes,
                                    cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
