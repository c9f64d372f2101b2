/* Gradients of the objective at the present scores, as packed whole numbers (kernels_cpu/boost.h). */
#ifndef FORELOOP_RANKER_GRADIENT_H
#define FORELOOP_RANKER_GRADIENT_H

#include "kernels_cpu/boost.h"
#include "ranker/labels.h"

typedef struct foreloop_ranker_gradients {
    const foreloop_allocator *allocator;
    const foreloop_ranker_labels *labels;
    const foreloop_ranker_options *options;
    const foreloop_boost *kernels;
    size_t *order;                      /* by group: its rows, best predicted first, from the group's first row on */
    float *gain;                        /* by row: gain / ideal DCG, of NDCG */
    float *discounts;                   /* by rank */
    float *gradient, *hessian;          /* by row */
    uint64_t *packed;                   /* by row */
    double gradient_unit, hessian_unit; /* what 1 stands for in packed sums; powers of two */

    /* Of one group after the other, in the order of ranks, padded to whole lanes; of tasks each has its own. */
    size_t padded, task_count;
    float *ranked;       /* [task_count][6][padded] */
    size_t *by_label;    /* [task_count][longest]: ranks, best labels first, for drawn pairs */
    const float *scores; /* of the round, for the tasks */
    size_t round;
} foreloop_ranker_gradients;

/* Borrows all that it is given until close. On failure nothing is owned. */
foreloop_status foreloop_ranker_gradients_create(foreloop_ranker_gradients *gradients,
                                                 const foreloop_allocator *allocator,
                                                 const foreloop_ranker_labels *labels,
                                                 const foreloop_ranker_options *options, const foreloop_boost *kernels,
                                                 foreloop_error *error);
void foreloop_ranker_gradients_close(foreloop_ranker_gradients *gradients);

/* Computes them for scores[row_count], which are finite, in round number `round`. */
void foreloop_ranker_gradients_compute(foreloop_ranker_gradients *gradients, const float *scores, size_t round);

/* Orders rows[count] by falling score, equal ones by rising row. */
void foreloop_ranker_order(size_t *rows, size_t count, const float *scores);

#endif
