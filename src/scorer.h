/* The scorer's insides, for the files that make up the scoring half of the API. */
#ifndef FORELOOP_SCORER_H
#define FORELOOP_SCORER_H

#include "transh/action.h"
#include "workload.h"
#include <stdbool.h>

/* Candidates that pass through the trees together, and groups of them that are rolled out together. */
enum { FORELOOP_BLOCK = 64, FORELOOP_GROUP = FORELOOP_TRANSH_LANES, FORELOOP_SAVED_STATES = 16 };

/* A candidate in the heap of the k best: the worst on top. */
typedef struct foreloop_ranked {
    float score;
    uint64_t index;
} foreloop_ranked;

typedef struct foreloop_copy {
    uint32_t from, to;
} foreloop_copy;

/* The trees that a scorer uses, and where their columns come from. */
typedef struct foreloop_scorer_ranker {
    const foreloop_gbdt *gbdt;
    size_t column_count;
    const uint32_t *columns;    /* [column_count]: features of the model's plan */
    const unsigned char *reads; /* [column_count]: 1 for columns that a tree reads */
    bool reads_more;            /* than the model's own trees: rollouts form all features */
    bool owned;                 /* the arrays */
} foreloop_scorer_ranker;

struct foreloop_scorer {
    const foreloop_model *model;
    const foreloop_actions *actions;
    foreloop_hardware hardware;
    foreloop_transh_program program; /* of what the trees read; its rows are those of the current call */

    /* The values that trees read are the ranker's columns that they read, in order. Where finished states go: value
     * value_count is for lanes that no tree reads. */
    size_t value_count;
    uint32_t *value_columns; /* [value_count + 1]: of the ranker; the last is a column too many */
    uint32_t *lane_values;   /* [program.latent + program.aggregates] */
    foreloop_copy *copies;   /* values that are the same as another */
    size_t copy_count;
    uint32_t *length_values;
    size_t length_count;

    float *block;    /* [value_count + 1][FORELOOP_BLOCK], hardware filled in */
    float *row;      /* [columns + 1], hardware filled in */
    float *states;   /* [FORELOOP_GROUP][program.state_size] */
    float *saved;    /* [FORELOOP_SAVED_STATES][program.state_size]: prefixes that more candidates begin with */
    float *begin;    /* [program.state_size]: of the empty sequence */
    float *complete; /* a state of all features, and z behind it */
    uint32_t *used;  /* scratch of finish_block */
    float *gamma;

    /* The stream of foreloop_topk_*; heap_limit is k. */
    foreloop_ranked *heap;
    size_t heap_capacity, heap_count, heap_limit;
    uint64_t next_index;
    int streaming;

    foreloop_scorer_ranker ranker;
};

/* The model's own trees. */
foreloop_scorer_ranker foreloop_ranker_of_model(const foreloop_model *model);
void foreloop_ranker_release(const foreloop_model *model, foreloop_scorer_ranker *ranker);

/* Sets up everything that depends on the ranker, which is in place. On failure foreloop_scorer_release is still due. */
foreloop_status foreloop_scorer_prepare(foreloop_scorer *scorer, foreloop_error *error);
/* Frees what preparing made, and the ranker's arrays. */
void foreloop_scorer_release(foreloop_scorer *scorer);

/* Candidate i of a batch; `ids` may be NULL when all are empty. */
static inline const uint32_t *foreloop_sequence(const uint32_t *ids, const size_t *offsets, size_t i) {
    return offsets[i + 1] > offsets[i] ? ids + offsets[i] : NULL;
}

/* Checks a whole batch, so that nothing is written before an error. */
foreloop_status foreloop_check_batch(const foreloop_scorer *scorer, const foreloop_workload *workload,
                                     const uint32_t *ids, const size_t *offsets, size_t count, foreloop_error *error);

/* Scores a checked batch. */
void foreloop_score_checked(foreloop_scorer *scorer, const foreloop_workload *workload, const uint32_t *ids,
                            const size_t *offsets, size_t count, float *scores);

#endif
