/*
 * Kernel family trees_f32: adds the leaves that a block of rows, or a single row, reaches to the rows' sums, tree by
 * tree.
 *
 * For a block: a split asks whether x < t. Of all thresholds of a feature, sorted and distinct, a value's code is the
 * number of those that are not above it, so that x < t[i] is the same as code <= i. Codes are bytes (less 128, to be
 * signed), laid out [column][row]: each test is one subtraction of bytes for a whole register of rows, cheap enough
 * that all tests of a tree are made for all rows, without branches and without gathers. A feature has a column for the
 * splits that send a missing value left, whose code is then 0, and another for those that send it right, whose code is
 * then the number of the thresholds.
 *
 * Every sum is a function of its row alone: sums[r] + leaf in float32, tree after tree, so that all tiers give the same
 * bits.
 */
#ifndef FORELOOP_KERNELS_CPU_TREES_F32_H
#define FORELOOP_KERNELS_CPU_TREES_F32_H

#include <foreloop/foreloop.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FORELOOP_TREES_ROWS = 64,        /* of a block */
    FORELOOP_TREES_GROUP = 16,       /* rows and features are read in groups of so many */
    FORELOOP_TREES_COLUMNS = 768,    /* at the most: 48 KiB of codes */
    FORELOOP_TREES_THRESHOLDS = 255, /* of a column at the most; a feature with more has several pairs of columns */
    FORELOOP_TREES_DEPTH = 8,        /* of a complete tree at the most */
    FORELOOP_TREES_LEAVES = 256,     /* of a tree at the most */
    FORELOOP_TREES_SLOTS = 10        /* of joins at the most */
};

/* How to make a feature's codes. The thresholds t[0] < t[1] < ... stand in a search tree table[1] to
 * table[2^levels - 1], where the children of table[m] are 2m, the lower one, and 2m + 1; places to spare hold NaN. */
typedef struct foreloop_trees_feature {
    uint32_t feature;
    uint32_t used; /* its number among the features that trees read */
    uint32_t table;
    uint16_t levels; /* 4 to 8 */
    uint16_t count;  /* of thresholds */
    uint16_t lefts;  /* column where a missing value goes left; FORELOOP_TREES_COLUMNS: none */
    uint16_t rights; /* column where it goes right */
} foreloop_trees_feature;

/* Evaluation of any tree by its splits from the leaves up: the result of a split is the number of the leaf among the
 * leaves under it, which is `left`'s when the test says left, else `right`'s + left_leaves. Results stand in slots, the
 * result of a leaf, 0, in slot 0; the tree's result is in slot 1 at the end. */
typedef struct foreloop_trees_join {
    uint32_t left_leaves; /* the byte four times */
    uint16_t left, right, into;
} foreloop_trees_join;

typedef enum foreloop_trees_shape {
    FORELOOP_TREES_WALK,     /* not for these kernels */
    FORELOOP_TREES_COMPLETE, /* 2^depth - 1 tests, breadth first, and 2^depth leaves from left to right */
    FORELOOP_TREES_JOINS     /* a test and a join for each split, and leaves from left to right */
} foreloop_trees_shape;

typedef struct foreloop_trees_tree {
    uint32_t test, join, leaf; /* the first of its */
    uint16_t test_count;
    uint8_t shape;
    uint8_t depth; /* below 256, as there are at most 256 leaves */
} foreloop_trees_tree;

/* A tree's node as a single row's walk takes it. Children are neighbours, left before right. */
typedef struct foreloop_trees_node {
    float value; /* threshold, or the leaf */
    uint32_t word;
} foreloop_trees_node;

enum {
    FORELOOP_TREES_LEFT = 0x1ff,         /* bits of the left child, counted from the root; a leaf is its own */
    FORELOOP_TREES_IS_LEAF = 0x200,      /* the row stays here */
    FORELOOP_TREES_DEFAULT_LEFT = 0x400, /* a missing value goes left */
    FORELOOP_TREES_FEATURE_SHIFT = 11,   /* where the feature's number begins */
    FORELOOP_TREES_FEATURES = 1 << 21    /* of nodes at the most */
};

/* Test i sends right the rows whose code in the column at codes + column[i] is above the byte of which threshold[i] is
 * four copies. */
typedef struct foreloop_trees_data {
    const uint32_t *thresholds;
    const uint16_t *columns;
    const foreloop_trees_join *joins;
    const float *leaves; /* 16 floats of any value follow the last one */
} foreloop_trees_data;

/* What kernels take, measured, in units of a tenth of a nanosecond: for a block, each test of a complete tree, each
 * test with its join, and each feature for a group of rows; for a single row, each step of a walk. */
typedef struct foreloop_trees_costs {
    uint16_t test, join, feature, step;
} foreloop_trees_costs;

typedef struct foreloop_trees_f32 {
    foreloop_tier tier;
    foreloop_trees_costs costs;
    /* tile[16][64] = the first feature_count <= 16 values of row_count <= 64 rows, which have row_stride floats; what
     * is not given becomes 0 up to a whole group of rows and features. */
    void (*transpose)(float *tile, const float *rows, size_t row_stride, size_t row_count, size_t feature_count);
    /* The codes of one feature for group_count <= 4 groups of rows, whose values are given. */
    void (*quantise)(int8_t *codes, const float *values, size_t group_count, const foreloop_trees_feature *feature,
                     const float *tables);
    /* Adds the leaves of trees, none of them to be walked, to sums[64], of which only row_count matter: the other sums
     * and codes may be anything, and the sums are anything afterwards. `codes` is aligned to 64 bytes. */
    void (*add)(float *sums, const int8_t *codes, size_t row_count, const foreloop_trees_data *data,
                const foreloop_trees_tree *trees, size_t tree_count);
    /* `sum` and the leaves that one row reaches by walks from nodes[roots[t]], which take at most `depth` steps. Nodes
     * start at a tree's root, so that nodes[0] is one. */
    float (*add_row)(float sum, const float *row, const foreloop_trees_node *nodes, const uint32_t *roots,
                     size_t tree_count, unsigned depth);
} foreloop_trees_f32;

float foreloop_trees_f32_add_row_ref(float sum, const float *row, const foreloop_trees_node *nodes,
                                     const uint32_t *roots, size_t tree_count, unsigned depth);
void foreloop_trees_f32_ref(foreloop_trees_f32 *kernels);
void foreloop_trees_f32_avx2(foreloop_trees_f32 *kernels);
void foreloop_trees_f32_avx512(foreloop_trees_f32 *kernels);

/* The kernels of the highest tier that is not above `tier`, one of those that foreloop_cpu_tier gives. */
void foreloop_trees_f32_init(foreloop_trees_f32 *kernels, foreloop_tier tier);

#endif
