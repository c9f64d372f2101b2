/* The trees once more, in the layouts that the kernels of trees_f32 take, made from the checked model when it is
 * opened.
 *
 * Each tree has one of three shapes, by this rule:
 *   complete   depth at most 8, and a complete tree of its depth has at most 4 times its splits;
 *   pieces     at most 256 leaves;
 *   walk       every other tree, and every tree with a categorical split, a threshold that is NaN or a feature from
 * 2^21 on: such trees are walked in the model itself. */
#ifndef FORELOOP_GBDT_LAYOUT_H
#define FORELOOP_GBDT_LAYOUT_H

#include "gbdt/model.h"
#include "kernels_cpu/trees_f32.h"

/* Neighbouring trees that share columns of codes. */
typedef struct foreloop_gbdt_chunk {
    size_t tree_begin, tree_end;
    size_t feature_begin, feature_end;
} foreloop_gbdt_chunk;

struct foreloop_gbdt_layout {
    foreloop_trees_f32 kernels;
    size_t min_rows;            /* from so many on a block is faster than row by row */
    foreloop_trees_tree *trees; /* of gbdt->trees, one by one */

    foreloop_gbdt_chunk *chunks;
    size_t chunk_count, chunk_capacity;
    foreloop_trees_feature *features; /* ascending by feature in each chunk */
    size_t feature_count, feature_capacity;
    float *tables;
    size_t table_size, table_capacity;

    /* Arrays of foreloop_trees_data. */
    int8_t *thresholds;
    uint16_t *columns;
    uint8_t *exits;
    float *leaves;
    size_t test_count, threshold_capacity, column_capacity;
    size_t exit_count, exit_capacity;
    size_t leaf_count, leaf_capacity;

    /* For single rows. */
    foreloop_trees_node *nodes;
    size_t node_count, node_capacity;
    uint32_t *roots; /* by tree */
    unsigned depth;  /* of the deepest tree that is not walked in the model */
    bool has_walks;  /* some tree is */

    uint32_t *used; /* the features that the trees read, ascending */
    size_t used_count, used_capacity;
};

/* Makes gbdt->layout for the highest tier of the machine that is not above `limit`. */
foreloop_status foreloop_gbdt_layout_make(foreloop_gbdt *gbdt, foreloop_tier limit, foreloop_error *error);
/* The number of a feature that trees read among those that they read. */
size_t foreloop_gbdt_used_place(const foreloop_gbdt_layout *layout, uint32_t feature);
void foreloop_gbdt_layout_close(foreloop_gbdt *gbdt);

/* From a column of a block's codes to the next. */
static inline size_t foreloop_gbdt_code_stride(const foreloop_gbdt_layout *layout, size_t row_count) {
    return row_count <= FORELOOP_TREES_GROUP ? layout->kernels.group_stride : FORELOOP_TREES_ROWS;
}

/* The first and last step of making it: an empty one, with its kernels; what only the kernels and the trees tell. */
foreloop_status foreloop_gbdt_layout_create(foreloop_gbdt *gbdt, foreloop_tier limit, foreloop_error *error);
void foreloop_gbdt_layout_choose(foreloop_gbdt *gbdt);

#endif
