/* What scoring on a GPU is made of: a model's tables, an action table's copy, trees, a workload's start. */
#ifndef FORELOOP_CUDA_SCORING_H
#define FORELOOP_CUDA_SCORING_H

#include "cuda/arrays.h"
#include "kernels_cuda/rollout.h"
#include "kernels_cuda/score_network.h"
#include "kernels_cuda/trees.h"
#include "score_network/score_network.h"
#include "scorer.h"

/* Trees, and the row that they read: number v of a row is the v-th column of the ranker that a tree reads. */
typedef struct foreloop_cuda_ranker {
    foreloop_cuda_arrays arrays;
    const foreloop_gbdt *gbdt;
    foreloop_cuda_trees trees;
    size_t row_width;
} foreloop_cuda_ranker;
foreloop_status foreloop_cuda_ranker_open(foreloop_cuda_ranker *ranker, foreloop_cuda *gpu,
                                          const foreloop_scorer_ranker *source, cudaStream_t stream,
                                          foreloop_error *error);
void foreloop_cuda_ranker_close(foreloop_cuda_ranker *ranker);

/* The score network; zero where a model has none. */
typedef struct foreloop_cuda_score_network {
    foreloop_cuda_arrays arrays;
    foreloop_cuda_network network;
    size_t widest; /* outputs of a hidden layer; 0: there is none */
} foreloop_cuda_score_network;
foreloop_status foreloop_cuda_score_network_open(foreloop_cuda_score_network *own, foreloop_cuda *gpu,
                                                 const foreloop_score_network *network, cudaStream_t stream,
                                                 foreloop_error *error);
void foreloop_cuda_score_network_close(foreloop_cuda_score_network *own);

struct foreloop_cuda_model {
    foreloop_cuda *gpu;
    const foreloop_model *model;
    foreloop_cuda_arrays arrays;
    foreloop_transh_program used, all; /* on the device, without actions: what the model's trees and score network read,
                                          and all */
    foreloop_cuda_ranker ranker;
    foreloop_cuda_score_network network;
};

struct foreloop_cuda_actions {
    const foreloop_cuda_model *model;
    const foreloop_actions *actions;
    foreloop_cuda_arrays arrays;
    size_t capacity;          /* with FORELOOP_ACTION_UNKNOWN */
    size_t count;             /* on the device */
    float *rows, *embeddings; /* embeddings: [slices][capacity][FORELOOP_TRANSH_SLICE] */
    uint32_t *kinds;
    foreloop_cuda_pinned staging;
    cudaEvent_t copied; /* what the staging holds */
};

struct foreloop_cuda_workload {
    const foreloop_cuda_model *model;
    foreloop_cuda_arrays arrays;
    float *start;
};

#endif
