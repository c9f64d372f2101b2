/* XGBoost models made up for benchmarks. */
#ifndef FORELOOP_TOOLS_BENCH_TREES_H
#define FORELOOP_TOOLS_BENCH_TREES_H

#include "common/alloc.h"
#include <stdbool.h>

typedef struct bench_forest {
    size_t trees, features;
    size_t depth;        /* of full trees */
    size_t leaves;       /* not 0: of trees that grow by splitting any of their leaves, as growth by loss does */
    int lowest, highest; /* thresholds and leaves are drawn from between these */
} bench_forest;

enum { BENCH_TREE_DEPTH = 12, BENCH_TREE_NODES = 2 << BENCH_TREE_DEPTH }; /* at the most */

/* Appends a model of save_model's JSON. Splits take the features in turns, so that few trees read all of them, and
 * thresholds and default directions at random, so that no branch can be guessed. False when out of memory. */
bool bench_trees_make(foreloop_buffer *text, const bench_forest *what);

#endif
