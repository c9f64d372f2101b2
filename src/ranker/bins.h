/* Features as codes of a byte: 0 for a missing value, then quantile bins in rising order (kernels_cpu/boost.h). */
#ifndef FORELOOP_RANKER_BINS_H
#define FORELOOP_RANKER_BINS_H

#include "kernels_cpu/boost.h"
#include "ranker/labels.h"

typedef struct foreloop_ranker_feature {
    uint32_t column; /* of the rows */
    uint32_t bins;   /* codes 1 to `bins` occur */
    float *cuts;     /* [bins]: values below cuts[i] have codes to i + 1; the last lies above all of them */
} foreloop_ranker_feature;

typedef struct foreloop_ranker_bins {
    const foreloop_allocator *allocator;
    size_t row_count;
    foreloop_ranker_feature *features; /* that vary; those with most bins first, so that blocks are of alike ones */
    size_t feature_count;
    float *cuts;
    uint8_t *codes; /* [lines][row_count][FORELOOP_BOOST_LINE] */
} foreloop_ranker_bins;

/* `parallel` may be NULL. VALUE for an infinite value. On failure nothing is owned. */
foreloop_status foreloop_ranker_bins_create(foreloop_ranker_bins *bins, const foreloop_allocator *allocator,
                                            const foreloop_gbdt_rows *rows, size_t max_bins,
                                            const foreloop_parallel_for *parallel, foreloop_error *error);
void foreloop_ranker_bins_close(foreloop_ranker_bins *bins);

/* Where the codes of a feature stand, FORELOOP_BOOST_LINE apart. */
static inline const uint8_t *foreloop_ranker_codes(const foreloop_ranker_bins *bins, size_t feature) {
    return bins->codes + feature / FORELOOP_BOOST_LINE * bins->row_count * FORELOOP_BOOST_LINE +
           feature % FORELOOP_BOOST_LINE;
}

/* Runs the tasks by the caller's loop, or one after the other. */
static inline void foreloop_ranker_parallel(const foreloop_parallel_for *parallel, size_t count,
                                            void (*task)(void *argument, size_t index), void *argument) {
    if (parallel && count > 1) {
        parallel->run(parallel->user, count, task, argument);
        return;
    }
    for (size_t i = 0; i < count; i++)
        task(argument, i);
}

#endif
