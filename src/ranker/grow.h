/* Growing one tree on packed gradients. */
#ifndef FORELOOP_RANKER_GROW_H
#define FORELOOP_RANKER_GROW_H

#include "ranker/bins.h"
#include "ranker/gradient.h"

typedef struct foreloop_ranker_node {
    size_t begin, end; /* its rows */
    uint64_t sum;      /* packed */
    uint64_t path;     /* 1 for the root, 2 path and 2 path + 1 for the children */
    size_t depth;
    size_t left; /* the children are left and left + 1; 0: a leaf */
    /* Of a split. */
    uint32_t feature; /* of the bins */
    uint32_t code;    /* the highest that goes left, besides 0 */
    bool missing_left;
    double gain;
    float value; /* of a leaf; elsewhere what it would have been */
} foreloop_ranker_node;

/* A list of blocks, and where their histograms stand in a buffer. */
typedef struct foreloop_ranker_blocks {
    foreloop_boost_block *blocks;
    size_t count;
    size_t size; /* of all histograms */
} foreloop_ranker_blocks;

/* The best split that a block has for a node. */
typedef struct foreloop_ranker_split {
    float gain;
    uint32_t feature, code;
    bool missing_left;
    size_t place; /* of the feature's first sum in the node's histograms */
} foreloop_ranker_split;

typedef struct foreloop_ranker_grower {
    const foreloop_allocator *allocator;
    const foreloop_ranker_bins *bins;
    const foreloop_ranker_options *options;
    const foreloop_boost *kernels;
    const foreloop_ranker_gradients *gradients;

    uint32_t *rows;    /* [row_count]: of the tree, by node; then those that it does not learn from */
    size_t used_count; /* of the former */
    uint32_t *scratch; /* [row_count] */

    uint32_t *drawn;               /* [2][feature_count]: features of a tree, and of a node */
    foreloop_ranker_blocks tree;   /* of all features that the tree may read */
    foreloop_ranker_blocks own[2]; /* of those that a node may read, for columns_by_node < 1 */
    foreloop_ranker_split *splits; /* [2][blocks] */

    uint64_t **buffers; /* of histograms; the free ones stand first */
    size_t buffer_count, buffer_capacity, buffer_free;
    struct foreloop_ranker_pending *pending; /* nodes to be expanded */
    size_t pending_count, pending_capacity;

    /* The tree: nodes[0] is the root. */
    foreloop_ranker_node *nodes;
    size_t node_count, node_capacity;
} foreloop_ranker_grower;

/* Borrows all that it is given until close. On failure nothing is owned. */
foreloop_status foreloop_ranker_grower_create(foreloop_ranker_grower *grower, const foreloop_allocator *allocator,
                                              const foreloop_ranker_bins *bins, const foreloop_ranker_options *options,
                                              const foreloop_boost *kernels, const foreloop_ranker_gradients *gradients,
                                              foreloop_error *error);
void foreloop_ranker_grower_close(foreloop_ranker_grower *grower);

/* Grows the tree of a round, and adds its leaves to scores[row_count]. */
foreloop_status foreloop_ranker_grow(foreloop_ranker_grower *grower, size_t round, float *scores,
                                     foreloop_error *error);

#endif
