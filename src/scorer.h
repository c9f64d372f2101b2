/* The scorer's insides, for the files that make up the scoring half of the API. */
#ifndef FORELOOP_SCORER_H
#define FORELOOP_SCORER_H

#include "gbdt/coding.h"
#include "transh/action.h"
#include "workload.h"
#include <stdbool.h>

enum {
    FORELOOP_GROUP = FORELOOP_TRANSH_LANES, /* candidates that are rolled out together */
    FORELOOP_BLOCK = 64,                    /* that pass through the trees together */
    /* Whose sums are formed together, slice by slice: so many at the most, and fewer where their codes take more than
     * what stays in a cache of the second level; where no slice is formed, as nothing of z is read, one block. Values,
     * where they are kept, may take more: they are read once, in order. */
    FORELOOP_CHUNK = 4096,
    FORELOOP_CHUNK_CODES = 3 << 19,
    FORELOOP_CHUNK_BLOCKS = FORELOOP_CHUNK / FORELOOP_BLOCK,
    FORELOOP_CHUNK_LEAST_BLOCKS = 8,
    /* Slots of rollouts: the empty sequence, prefixes that more candidates begin with, a group's candidates. */
    FORELOOP_SLOT_BEGIN = 0,
    FORELOOP_SLOT_SAVED = 1,
    FORELOOP_SAVED_STATES = 16,
    FORELOOP_SLOT_OWN = FORELOOP_SLOT_SAVED + FORELOOP_SAVED_STATES,
    FORELOOP_SLOTS = FORELOOP_SLOT_OWN + FORELOOP_GROUP,
    FORELOOP_GROUP_SEGMENTS = FORELOOP_GROUP * (1 + FORELOOP_SAVED_STATES) /* at the most */
};

/* A candidate in the heap of the k best: the worst on top. */
typedef struct foreloop_ranked {
    float score;
    uint64_t index;
} foreloop_ranked;

/* The trees that a scorer uses, and where their columns come from. */
typedef struct foreloop_scorer_ranker {
    const foreloop_gbdt *gbdt;
    size_t column_count;
    const uint32_t *columns;    /* [column_count]: features of the model's plan */
    const unsigned char *reads; /* [column_count]: 1 for columns that a tree reads */
    bool reads_more;            /* than the model's own trees and network: rollouts form all features */
    bool owned;                 /* the arrays */
} foreloop_scorer_ranker;

struct foreloop_scorer {
    const foreloop_model *model;
    const foreloop_actions *actions;
    foreloop_hardware hardware;
    foreloop_transh_program program; /* of what is read; its rows are those of the current call */

    /* The values that a score is made of: the ranker's columns that its trees read, in order, then the features that
     * only the score network reads. Where finished states go: value value_count is for lanes that nothing reads. Values
     * of one lane are a rising list, value_count at its end. */
    size_t tree_values, value_count;
    uint32_t *value_features; /* [value_count]: of the model's plan */
    uint32_t *value_columns;  /* [value_count]: in `row`: of the ranker, then behind its columns */
    uint32_t *lane_values;    /* [program.latent + program.aggregates]: a lane's first value */
    uint32_t *next_values;    /* [value_count]: the next one of the same lane */
    uint32_t *own_values;     /* [own_count]: of no lane: lengths, then hardware */
    size_t length_count, own_count;
    foreloop_gbdt_coding coding;
    /* By input of the network: its value, and that one's column. */
    uint32_t *network_values, *network_columns;
    float *network_scratch;
    bool keeps_values; /* of blocks, besides their codes: trees that are walked, or the network, read them */
    size_t chunk_blocks, segment_limit; /* of a chunk */

    /* Candidates in blocks: their codes, and their values, hardware filled in. All blocks of a chunk share the room for
     * values where these are only read to make codes. */
    int8_t *codes;   /* [chunk_blocks][coding.codes_size] */
    float *blocks;   /* [blocks][value_count + 1][FORELOOP_BLOCK] */
    float *row;      /* of one candidate, hardware filled in: the ranker's columns, then what only the network reads */
    float *slots;    /* [FORELOOP_SLOTS][program.state_size] */
    float *sums;     /* [slices][FORELOOP_SLOTS][FORELOOP_TRANSH_SLICE] */
    float *complete; /* a state of all features, and z behind it */

    /* A chunk's rollouts: group g has segments segment_begin[g] to segment_begin[g + 1], and the kinds that occur in it
     * with their gammas. */
    foreloop_transh_segment *segments; /* [segment_limit] */
    size_t *segment_begin;             /* [groups of a chunk + 2] */
    size_t *used_counts;               /* [groups of a chunk] */
    uint32_t *used;                    /* [groups of a chunk][program.kinds] */
    float *gamma;                      /* [groups of a chunk][program.kinds][FORELOOP_GROUP] */

    /* The stream of foreloop_topk_*; heap_limit is k. */
    foreloop_ranked *heap;
    size_t heap_capacity, heap_count, heap_limit;
    uint64_t next_index;
    int streaming;
    const foreloop_workload *streamed; /* the workload of the pushes so far; NULL: none yet */

    foreloop_scorer_ranker ranker;
};

/* The model's own trees. */
FORELOOP_INTERNAL_API foreloop_scorer_ranker foreloop_ranker_of_model(const foreloop_model *model);
void foreloop_ranker_release(const foreloop_model *model, foreloop_scorer_ranker *ranker);

/* Sets up everything that depends on the ranker, which is in place. On failure foreloop_scorer_release is still due. */
foreloop_status foreloop_scorer_prepare(foreloop_scorer *scorer, foreloop_error *error);
/* Frees what preparing made, and the ranker's arrays. */
void foreloop_scorer_release(foreloop_scorer *scorer);

/* Candidate i of a batch; `ids` may be NULL when all are empty. */
static inline const uint32_t *foreloop_sequence(const uint32_t *ids, const size_t *offsets, size_t i) {
    return offsets[i + 1] > offsets[i] ? ids + offsets[i] : NULL;
}

/* Checks a whole batch, so that nothing is written before an error. `call` names the function in messages. */
foreloop_status foreloop_check_batch(const char *call, const foreloop_scorer *scorer, const foreloop_workload *workload,
                                     const uint32_t *ids, const size_t *offsets, size_t count, foreloop_error *error);

/* The same without the workload. */
FORELOOP_INTERNAL_API foreloop_status foreloop_check_sequences(const char *call, const foreloop_scorer *scorer,
                                                               const uint32_t *ids, const size_t *offsets, size_t count,
                                                               foreloop_error *error);

/* Scores a checked batch. */
void foreloop_score_checked(foreloop_scorer *scorer, const foreloop_workload *workload, const uint32_t *ids,
                            const size_t *offsets, size_t count, float *scores);

/* Interning may have moved the actions' rows since the last call. */
static inline void foreloop_take_rows(foreloop_transh_program *program, const foreloop_actions *actions) {
    program->rows = actions->rows;
    program->row_kinds = actions->kinds;
    program->slices = actions->slices;
}

static inline const foreloop_transh_f32 *foreloop_scorer_kernels(const foreloop_scorer *scorer) {
    return &scorer->model->transition.kernels;
}

/* The number of actions of known kind. */
static inline uint32_t foreloop_known_length(const uint32_t *ids, size_t count) {
    uint32_t length = 0;
    for (size_t i = 0; i < count; i++)
        length += ids[i] != FORELOOP_ACTION_UNKNOWN;
    return length;
}

/* Fewer candidates pass through the trees one by one. */
enum { FORELOOP_FEW = 8 };

/* The scores of at most a block of whole states, which hold lengths[] actions of known kind. */
void foreloop_score_states(foreloop_scorer *scorer, const float *const *states, const float *lengths, size_t count,
                           float *scores);

#endif
