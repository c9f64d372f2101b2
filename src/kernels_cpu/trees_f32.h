/*
 * Kernel family trees_f32: adds the leaves that a block of rows, or a single row, reaches to the rows' sums, tree by
 * tree.
 *
 * For a block: a split asks whether x < t. Of all thresholds of a feature, sorted and distinct, a value's code is the
 * number of those that are not above it, so that x < t[i] is the same as code <= i. Codes are bytes (less 128, to be
 * signed), laid out [column][row]. All codes that a tree may ask for are read for all rows, a register of rows at a
 * time, which is cheaper than branches or gathers. A feature has a column for the splits that send a missing value
 * left, whose code is then 0, and another for those that send it right, whose code is then the number of the
 * thresholds.
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
    FORELOOP_TREES_COLUMN_UNIT = 8,  /* tests hold a column's number times this, which addresses multiply further */
    FORELOOP_TREES_THRESHOLDS = 255, /* of a column at the most; a feature with more has several pairs of columns */
    FORELOOP_TREES_DEPTH = 8,        /* of a complete tree at the most */
    FORELOOP_TREES_LEAVES = 256,     /* of a tree at the most */
    FORELOOP_TREES_TABLE = 16        /* bytes that a look-up in a register reads: so many may be read behind a table */
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

/* In a complete (sub)tree the nodes of a level, the leaves too, are numbered by the decisions that lead there: bit k is
 * 1 when they go right at level k. A row's number among the nodes of one level makes a test of one look-up of a
 * threshold, while the column of the row's node is chosen from all columns of the level.
 *
 * A tree that is far from complete is cut into pieces, complete subtrees of 3 levels and, at its fringe, of 2. A row's
 * state is the piece where it is, and in the end its leaf: piece p takes the rows of state p to one of its 8 or 4
 * exits. All pieces of 3 levels come first, parents before children; state 0 is the root. Leaves are numbered so that
 * none that a piece leads to has the number of a later piece. */
typedef enum foreloop_trees_shape {
    FORELOOP_TREES_WALK,     /* not for these kernels */
    FORELOOP_TREES_COMPLETE, /* 2^depth - 1 tests, level by level, and 2^depth leaves */
    FORELOOP_TREES_PIECES    /* 2^levels - 1 tests and 2^levels exits for each piece, and leaves */
} foreloop_trees_shape;

typedef struct foreloop_trees_tree {
    uint32_t test, exit, leaf; /* the first of its */
    uint16_t test_count;
    uint8_t shape;
    uint8_t depth;     /* below 256, as there are at most 256 leaves */
    uint8_t pieces[3]; /* of 3 levels, of 2, of 1 */
    uint8_t unused;    /* 0: a compiled form holds all bytes */
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

/* Test i sends right the rows whose code in column columns[i] / FORELOOP_TREES_COLUMN_UNIT is above thresholds[i]. */
typedef struct foreloop_trees_data {
    const int8_t *thresholds; /* FORELOOP_TREES_TABLE bytes of any value follow the last one */
    const uint16_t *columns;
    const uint8_t *exits; /* the same */
    const float *leaves;  /* FORELOOP_TREES_LEAVES floats of any value follow the last one */
} foreloop_trees_data;

/* What kernels take, measured, in units of a tenth of a nanosecond: for a block, each test of a complete tree, each
 * test of a piece, and each feature for a group of rows; for a single row, each step of a walk. */
typedef struct foreloop_trees_costs {
    uint16_t test, piece_test, feature, step;
} foreloop_trees_costs;

typedef struct foreloop_trees_f32 {
    foreloop_tier tier;
    foreloop_trees_costs costs;
    size_t group_stride; /* from a column of codes to the next, for at most 16 rows; for more, it is 64 */
    /* tile[16][64] = the first feature_count <= 16 values of row_count <= 64 rows, which have row_stride floats; what
     * is not given becomes 0 up to a whole group of rows and features. */
    void (*transpose)(float *tile, const float *rows, size_t row_stride, size_t row_count, size_t feature_count);
    /* The codes of one feature for group_count <= 4 groups of rows, whose values are given: those of column c are at
     * codes + c * stride. */
    void (*quantise)(int8_t *codes, size_t stride, const float *values, size_t group_count,
                     const foreloop_trees_feature *feature, const float *tables);
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
