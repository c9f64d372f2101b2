/* What scoring on a GPU is made of: a model's tables, an action table's copy, trees, a workload's start. */
#ifndef FORELOOP_CUDA_SCORING_H
#define FORELOOP_CUDA_SCORING_H

#include "cuda/gpu.h"
#include "kernels_cuda/rollout.h"
#include "kernels_cuda/trees.h"
#include "scorer.h"

/* Device memory that lives and dies with an object: arrays that are uploaded one by one. */
enum { FORELOOP_CUDA_ARRAYS = 16 };
typedef struct foreloop_cuda_arrays {
    foreloop_cuda *gpu;
    struct {
        void *memory;
        size_t count, element_size;
    } arrays[FORELOOP_CUDA_ARRAYS];
    size_t count;
} foreloop_cuda_arrays;

/* Takes memory, which foreloop_cuda_arrays_close gives back; *result is the address of a pointer. */
foreloop_status foreloop_cuda_arrays_take(foreloop_cuda_arrays *arrays, void *result, size_t count, size_t element_size,
                                          const char *what, foreloop_error *error);
/* The same, and queues the copy of data[count] there, which is read before the call returns. */
foreloop_status foreloop_cuda_arrays_upload(foreloop_cuda_arrays *arrays, void *result, const void *data, size_t count,
                                            size_t element_size, const char *what, cudaStream_t stream,
                                            foreloop_error *error);
void foreloop_cuda_arrays_close(foreloop_cuda_arrays *arrays);

/* Host memory that copies read or write while the CPU goes on; pages of its own. */
typedef struct foreloop_cuda_pinned {
    void *memory; /* aligned to a page */
    void *whole;
    size_t size;
} foreloop_cuda_pinned;
foreloop_status foreloop_cuda_pinned_open(foreloop_cuda_pinned *pinned, const foreloop_cuda *gpu, size_t size,
                                          foreloop_error *error);
void foreloop_cuda_pinned_close(foreloop_cuda_pinned *pinned, const foreloop_cuda *gpu);

/* Trees, and the row that they read: number v of a row is the v-th column of the ranker that a tree reads. */
typedef struct foreloop_cuda_ranker {
    foreloop_cuda_arrays arrays;
    const foreloop_gbdt *gbdt;
    foreloop_cuda_trees trees;
    size_t row_width;
    uint32_t *features; /* [row_width]: features of the model's plan; on the host */
} foreloop_cuda_ranker;
foreloop_status foreloop_cuda_ranker_open(foreloop_cuda_ranker *ranker, foreloop_cuda *gpu,
                                          const foreloop_scorer_ranker *source, cudaStream_t stream,
                                          foreloop_error *error);
void foreloop_cuda_ranker_close(foreloop_cuda_ranker *ranker);

struct foreloop_cuda_model {
    foreloop_cuda *gpu;
    const foreloop_model *model;
    foreloop_cuda_arrays arrays;
    foreloop_transh_program used, all; /* on the device, without actions: what the model's trees read, and all */
    foreloop_cuda_ranker ranker;
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
