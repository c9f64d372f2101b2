/* Reading one tree of save_model JSON or UBJSON: its columns, in any order, and what they make. */
#ifndef FORELOOP_GBDT_LOAD_TREE_H
#define FORELOOP_GBDT_LOAD_TREE_H

#include "gbdt/model.h"

/* The columns of a tree, one element for each node unless said otherwise. */
typedef enum foreloop_gbdt_integer_column {
    FORELOOP_GBDT_LEFT,
    FORELOOP_GBDT_RIGHT,
    FORELOOP_GBDT_DEFAULT,
    FORELOOP_GBDT_INDEX,
    FORELOOP_GBDT_SPLIT_TYPE,          /* absent before XGBoost 1.3 */
    FORELOOP_GBDT_PARENTS,             /* may be absent */
    FORELOOP_GBDT_CATEGORIES_NODES,    /* one for each categorical node */
    FORELOOP_GBDT_CATEGORIES_SEGMENTS, /* one for each categorical node */
    FORELOOP_GBDT_CATEGORIES_SIZES,    /* one for each categorical node */
    FORELOOP_GBDT_INTEGER_COLUMNS
} foreloop_gbdt_integer_column;

typedef enum foreloop_gbdt_float_column {
    FORELOOP_GBDT_CONDITION,
    FORELOOP_GBDT_LOSS_CHANGES, /* may be absent */
    FORELOOP_GBDT_SUM_HESSIAN,  /* may be absent */
    FORELOOP_GBDT_BASE_WEIGHT,  /* vector leaves up to XGBoost 3.1: of all nodes, each a vector */
    FORELOOP_GBDT_LEAF_WEIGHT,  /* vector leaves since 3.2: of the leaves, which tell their places as right children */
    FORELOOP_GBDT_FLOAT_COLUMNS
} foreloop_gbdt_float_column;

/* Memory that goes from tree to tree. Zero-initialise with the reader and the model. */
typedef struct foreloop_gbdt_tree_loader {
    foreloop_json *json;
    foreloop_gbdt *gbdt;
    foreloop_integers integers[FORELOOP_GBDT_INTEGER_COLUMNS];
    foreloop_floats floats[FORELOOP_GBDT_FLOAT_COLUMNS];
    uint32_t *categories;
    size_t category_count, category_capacity;
    size_t leaf_size; /* numbers in a leaf; 0: not said, 1 */
    bool has_nodes, has_deleted;
    size_t num_nodes, num_deleted; /* as tree_param says */
    bool has_features;             /* of any tree */
    size_t feature_count;          /* as they all say */
    foreloop_gbdt_source_node *nodes;
    size_t node_capacity;
} foreloop_gbdt_tree_loader;

/* Reads the tree that stands next and adds it to the model. */
foreloop_status foreloop_gbdt_load_tree(foreloop_gbdt_tree_loader *loader);
void foreloop_gbdt_tree_loader_close(foreloop_gbdt_tree_loader *loader);

/* A count that files spell as a number or as a string with a number in it. */
foreloop_status foreloop_gbdt_read_count(foreloop_json *json, size_t maximum, size_t *value);

#endif
