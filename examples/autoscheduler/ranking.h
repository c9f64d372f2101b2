/* What foreloop does in the search: scores candidates, and learns from measured ones. */
#ifndef AUTOSCHEDULER_RANKING_H
#define AUTOSCHEDULER_RANKING_H

#include "log.h"

typedef struct ranking {
    const search_space *space;
    foreloop_model *model;
    foreloop_encoder *encoder;
    foreloop_workload *workload;
    foreloop_actions *actions;
    foreloop_scorer *scorer;
    foreloop_gbdt *learnt; /* trees refitted on what was measured; NULL: the model's own */
    schedule *scratch;
    uint32_t *ids; /* of a batch, in CSR form */
    size_t *offsets;
    int *places; /* of its candidates among those given */
    float *batch_scores;
} ranking;

enum { RANKING_BATCH = 256 };

/* `path`: a bundle; NULL: the one that is linked in. */
bool ranking_open(ranking *r, const search_space *space, const char *path, char *message, size_t message_size);
void ranking_close(ranking *r);

/* Scores, higher is faster; -INFINITY for choices that do not go together. */
bool ranking_score(ranking *r, uint16_t (*choices)[MAX_DECISIONS], int count, float *scores, char *message,
                   size_t message_size);

/* Adds trees to the model's own that put these trials into order. */
bool ranking_learn(ranking *r, const trials *measured, char *message, size_t message_size);

#endif
