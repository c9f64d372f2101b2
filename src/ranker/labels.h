/* The measured candidates, checked, with relevances in place of times. */
#ifndef FORELOOP_RANKER_LABELS_H
#define FORELOOP_RANKER_LABELS_H

#include "common/alloc.h"
#include "common/error.h"
#include <stdbool.h>

#define FORELOOP_RANKER_MAX_ROWS    ((size_t)1 << 28)
#define FORELOOP_RANKER_MAX_COLUMNS ((size_t)1 << 24)

typedef struct foreloop_ranker_labels {
    const foreloop_allocator *allocator;
    foreloop_gbdt_rows rows; /* strides filled in */
    const size_t *groups;
    size_t group_count;
    size_t longest;   /* rows of a group */
    float *relevance; /* [row_count] */
    bool comparable;  /* some group has rows of different relevance */
} foreloop_ranker_labels;

/* `options` have been read. Borrows the data's arrays and the allocator until close; on failure nothing is owned. */
foreloop_status foreloop_ranker_labels_create(foreloop_ranker_labels *labels, const foreloop_allocator *allocator,
                                              const foreloop_ranker_data *data, const foreloop_ranker_options *options,
                                              foreloop_error *error);
void foreloop_ranker_labels_close(foreloop_ranker_labels *labels);

/* The gain of a relevance in NDCG, and the discount of a rank from 0. */
double foreloop_ranker_gain(const foreloop_ranker_options *options, float relevance);
double foreloop_ranker_discount(size_t rank);

#endif
