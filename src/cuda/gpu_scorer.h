/* The scorer on a GPU: its scratch, and how a batch is cut into pieces. */
#ifndef FORELOOP_CUDA_GPU_SCORER_H
#define FORELOOP_CUDA_GPU_SCORER_H

#include "cuda/scoring.h"
#include "kernels_cuda/top_k.h"

/* Where the numbers of rows come from, for one sort of rows. */
typedef struct foreloop_cuda_rows {
    foreloop_cuda_arrays arrays;
    const uint32_t *sources; /* [width], and constants; on the device */
    const float *constants;
    size_t width;
} foreloop_cuda_rows;

enum { FORELOOP_CUDA_STAGINGS = 2 };

struct foreloop_cuda_scorer {
    const foreloop_cuda_model *model;
    const foreloop_cuda_actions *actions;
    foreloop_scorer *host; /* hardware, ranker and checks */
    size_t chunk, staged_ids;

    foreloop_cuda_ranker own_ranker; /* of foreloop_cuda_scorer_set_ranker */
    const foreloop_cuda_ranker *ranker;
    foreloop_transh_program program; /* of what its trees and the score network read */
    foreloop_cuda_rows rows;         /* of that: the values of `host` */
    const uint32_t *network_inputs;  /* [the network's]: their numbers in a row; among the arrays of `rows` */
    foreloop_cuda_rows features;     /* of all features */
    float *feature_values;           /* [feature_chunk][features.width]: on their way to the host */
    size_t feature_chunk;

    foreloop_cuda_arrays arrays;
    uint32_t *ids;   /* [staged_ids] */
    size_t *offsets; /* [chunk + 1] */
    unsigned char *bad;
    float *scores;                 /* [chunk] */
    float *hidden[2];              /* [the network's widest hidden layer][chunk, in whole blocks]; NULL: it has none */
    uint64_t *keys[2];             /* [kept keys + chunk, in whole tiles] */
    uint64_t *indices;             /* [kept keys]: results on their way to the host */
    float *best;                   /* the same */
    unsigned long long *first_bad; /* ~0: none */
    foreloop_cuda_arrays value_arrays;
    float *values; /* [chunk][rows.width] */

    /* Pieces of host batches on their way, in turns. */
    foreloop_cuda_pinned staging[FORELOOP_CUDA_STAGINGS];
    cudaEvent_t copied[FORELOOP_CUDA_STAGINGS];
    size_t turn;
    cudaStream_t stream; /* of the last call */
};

/* A piece of a batch, on the device. */
typedef struct foreloop_cuda_piece {
    size_t first, count; /* candidates */
    const uint32_t *ids;
    const size_t *offsets; /* of its candidates */
    size_t id_base, id_count;
} foreloop_cuda_piece;

/* The batch as the caller gave it, checked; `call` names the function in messages. */
foreloop_status foreloop_cuda_read_batch(foreloop_cuda_batch *own, const char *call, const foreloop_cuda_scorer *scorer,
                                         const foreloop_cuda_workload *workload, const foreloop_cuda_batch *batch,
                                         foreloop_error *error);

/* The piece that begins at piece->first, at most `limit` <= chunk candidates; a host batch's is brought to the device,
 * on scorer->stream. */
foreloop_status foreloop_cuda_next_piece(foreloop_cuda_scorer *scorer, const foreloop_cuda_batch *batch,
                                         foreloop_cuda_piece *piece, size_t limit, foreloop_error *error);

#endif
