/* The trees in memory: flat arrays that prediction walks without checks, and the builder through which every loader
 * passes its trees, so that the checks exist once. */
#ifndef FORELOOP_GBDT_MODEL_H
#define FORELOOP_GBDT_MODEL_H

#include "common/alloc.h"
#include "common/json.h"
#include "gbdt/objective.h"
#include <foreloop/foreloop.h>
#include <stdbool.h>

/* A node's feature number and flags in one word. */
#define FORELOOP_GBDT_DEFAULT_LEFT UINT32_C(0x80000000) /* a missing value goes left */
#define FORELOOP_GBDT_CATEGORICAL  UINT32_C(0x40000000) /* `set` instead of `threshold` */
#define FORELOOP_GBDT_SPLIT        UINT32_C(0x20000000) /* not a leaf */
#define FORELOOP_GBDT_FEATURE      UINT32_C(0x1fffffff)
#define FORELOOP_GBDT_MAX_COUNT    ((size_t)1 << 29) /* of features, nodes and trees */
#define FORELOOP_GBDT_MAX_OUTPUTS  ((size_t)1 << 20)

/* Children are neighbours, left before right. A leaf is its own child, so that walks may take too many steps. */
typedef struct foreloop_gbdt_node {
    union {
        float threshold; /* less goes left, else right */
        uint32_t set;    /* a category in the set goes right, else left */
        float leaf;      /* its value */
    } split;
    uint32_t left;
    uint32_t feature; /* with flags */
} foreloop_gbdt_node;

typedef struct foreloop_gbdt_tree {
    uint32_t root;
    uint32_t depth; /* steps from the root to the deepest leaf */
    uint32_t output;
    uint32_t categorical; /* 1: some node is */
    uint32_t node_count;  /* from the root on */
    uint32_t source;      /* its number among the file's trees; those with vector leaves stand here once an output */
} foreloop_gbdt_tree;

/* The trees once more, for the kernels: gbdt/layout.h. */
typedef struct foreloop_gbdt_layout foreloop_gbdt_layout;
/* What predictions do not need of a node. */
typedef struct foreloop_gbdt_origin {
    uint32_t id; /* its number in the file */
    float gain;  /* of the split; 0 when the file does not say */
    float cover; /* sum of the hessians of the training rows that came here; 0 when the file does not say */
} foreloop_gbdt_origin;

struct foreloop_gbdt {
    foreloop_allocator allocator;
    bool borrowed; /* the arrays, and those of the layout, are a compiled form's */
    const foreloop_gbdt_objective *objective;
    size_t feature_count;
    size_t output_count;
    size_t iteration_count;
    int64_t best_iteration;

    foreloop_gbdt_node *nodes;
    size_t node_count, node_capacity;
    foreloop_gbdt_origin *origins; /* of the nodes */
    size_t origin_capacity;
    bool has_gain, has_cover; /* for every tree */

    /* Sorted by output, in the file's order within each: the trees of output k are output_trees[k] to
     * output_trees[k + 1] - 1. While loading: in the file's order. */
    foreloop_gbdt_tree *trees;
    size_t tree_count, tree_capacity;
    size_t *output_trees;
    uint32_t *source_trees; /* for each tree of the file in use, in its order: the first in `trees` that it became */
    size_t source_count;    /* while loading: of all trees of the file */
    size_t read_end;        /* behind the last feature that a tree in use reads */
    float *base_margins;    /* by output */
    size_t max_depth;

    /* Category sets: set s is the ascending categories[sets[s]] to categories[sets[s + 1] - 1]. */
    uint32_t *categories;
    size_t category_count, category_capacity;
    uint32_t *sets;
    size_t set_count, set_capacity;

    const char **feature_names; /* NULL when the model names none */
    const char **feature_types; /* the same */
    foreloop_arena texts;
    foreloop_buffer notes;

    foreloop_gbdt_layout *layout; /* made when loading has ended */
};

/* A node as a file has it; `left` and `right` are places in the tree's list of such nodes. */
typedef struct foreloop_gbdt_source_node {
    int64_t left; /* -1: a leaf */
    int64_t right;
    float value;     /* threshold, or leaf that is one number */
    uint32_t vector; /* leaf that is several numbers: its place among the tree's vectors */
    uint32_t feature;
    foreloop_gbdt_origin origin;
    bool default_left;
    bool categorical;
    bool reached;          /* false at first; for foreloop_gbdt_add_tree */
    size_t category_begin; /* of a categorical node, in the tree's list of categories */
    size_t category_count; /* not 0 */
} foreloop_gbdt_source_node;

/* A tree as a file has it. */
typedef struct foreloop_gbdt_source_tree {
    foreloop_gbdt_source_node *nodes;
    size_t node_count;
    const uint32_t *categories;
    size_t width;         /* numbers in a leaf */
    const float *vectors; /* more than one in a leaf: width numbers for each vector */
    bool has_gain, has_cover;
} foreloop_gbdt_source_tree;

/* An empty model over the allocator. */
foreloop_status foreloop_gbdt_create(foreloop_gbdt **gbdt, const foreloop_allocator *allocator, foreloop_error *error);

/* Adds a tree whose root is nodes[0]. Checks that children are in range and that each node is reached once at the most,
 * and leaves out those that are not reached. A leaf of several numbers makes it so many trees, whose outputs count from
 * 0: prediction knows only one number in a leaf. */
foreloop_status foreloop_gbdt_add_tree(foreloop_gbdt *gbdt, const foreloop_gbdt_source_tree *tree,
                                       foreloop_error *error);

/* Ends loading, when counts, base margins and the trees' outputs are set: checks features against feature_count,
 * multiplies the leaves of the file's tree t by weights[t] unless NULL, drops the file's trees before `begin` and from
 * `end` on, sorts the rest by output. */
foreloop_status foreloop_gbdt_finish(foreloop_gbdt *gbdt, const float *weights, size_t weight_count, size_t begin,
                                     size_t end, foreloop_error *error);

/* The range of iterations that the options ask for, checked against their number. */
foreloop_status foreloop_gbdt_select(const foreloop_gbdt_options *options, size_t iteration_count, size_t *begin,
                                     size_t *end, foreloop_error *error);

/* Hands on a status of the functions above: on failure names the document, and the offset of what was being read. */
foreloop_status foreloop_gbdt_locate(foreloop_json *json, size_t offset, foreloop_status status);

/* An array of categories, from 0 to 2^24 - 1: beyond, a float32 cannot tell them apart. Appends them to a list. */
foreloop_status foreloop_gbdt_read_categories(foreloop_json *json, const foreloop_allocator *allocator, uint32_t **list,
                                              size_t *capacity, size_t *count);

/* Adds a sentence to the notes. */
foreloop_status foreloop_gbdt_note(foreloop_gbdt *gbdt, foreloop_error *error, const char *format, ...)
    FORELOOP_PRINTF(3, 4);

/* The loaders: fill `gbdt`, fresh from create, from the document in `json`. */
foreloop_status foreloop_gbdt_load_json(foreloop_gbdt *gbdt, foreloop_json *json, const foreloop_gbdt_options *options);
foreloop_status foreloop_gbdt_load_dump(foreloop_gbdt *gbdt, foreloop_json *json, const foreloop_gbdt_options *options);

/* For the scorer: foreloop_gbdt_open_memory with the document's name for messages. `options` may be NULL. */
foreloop_status foreloop_gbdt_open_named(foreloop_gbdt **gbdt, const void *data, size_t size, const char *name,
                                         const foreloop_gbdt_options *options, foreloop_error *error);

/* Appends the compiled form of a model of all iterations, which is to begin at a multiple of FORELOOP_ALIGNMENT. It is
 * for this layout of the structs: change the version with them. */
#define FORELOOP_GBDT_COMPILED_VERSION 1
foreloop_status foreloop_gbdt_compile(const foreloop_gbdt *gbdt, foreloop_buffer *out, foreloop_error *error);
/* Opens a compiled form where it lies: data[size] is borrowed. FORMAT for one that is not sound. `name` is of the text
 * that it was made of, for the message. */
foreloop_status foreloop_gbdt_open_compiled(foreloop_gbdt **gbdt, const void *data, size_t size, const char *name,
                                            const foreloop_allocator *allocator, foreloop_tier tier,
                                            foreloop_error *error);

/* For the scorer: the margin of output 0 for one row of feature_count values, the same bits as
 * foreloop_gbdt_predict. */
float foreloop_gbdt_margin(const foreloop_gbdt *gbdt, const float *row);

/* foreloop_gbdt_predict after its checks, for rows of at least read_end columns. */
void foreloop_gbdt_predict_checked(const foreloop_gbdt *gbdt, const float *rows, size_t row_count, size_t stride,
                                   int margin, float *outputs);

/* For the scorer: used[feature_count] = 1 for each feature that a tree in use reads, 0 for the others. */
void foreloop_gbdt_used_features(const foreloop_gbdt *gbdt, unsigned char *used);

#endif
