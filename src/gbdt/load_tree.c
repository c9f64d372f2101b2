/* Reading one tree of save_model JSON or UBJSON: columns first, since they come in any order, then nodes. */
#include "gbdt/load_tree.h"
#include "common/number.h"
#include <string.h>

static const char *const integer_names[FORELOOP_GBDT_INTEGER_COLUMNS] = {
    "left_children", "right_children",   "default_left",        "split_indices",   "split_type",
    "parents",       "categories_nodes", "categories_segments", "categories_sizes"};
static const char *const float_names[FORELOOP_GBDT_FLOAT_COLUMNS] = {"split_conditions", "loss_changes", "sum_hessian",
                                                                     "base_weights", "leaf_weights"};

foreloop_status foreloop_gbdt_read_count(foreloop_json *json, size_t maximum, size_t *value) {
    if (foreloop_json_peek(json) != FORELOOP_JSON_STRING)
        return foreloop_json_size(json, maximum, value);
    foreloop_text text;
    int64_t number;
    FORELOOP_TRY(foreloop_json_string(json, &text));
    if (!foreloop_parse_int64(text.text, text.length, &number) || number < 0 || (uint64_t)number > maximum)
        return foreloop_json_fail(json, "expected a whole number from 0 to %zu, found \"%.*s\"", maximum,
                                  FORELOOP_QUOTED(text.text, text.length));
    *value = (size_t)number;
    return FORELOOP_OK;
}

/* ---- Columns ----------------------------------------------------------------------------------------------------- */

static foreloop_status read_integers(foreloop_gbdt_tree_loader *loader, foreloop_gbdt_integer_column column) {
    int64_t minimum = INT64_MIN, maximum = INT64_MAX;
    if (column == FORELOOP_GBDT_DEFAULT || column == FORELOOP_GBDT_SPLIT_TYPE) {
        minimum = 0;
        maximum = 1;
    } else if (column >= FORELOOP_GBDT_CATEGORIES_NODES) {
        minimum = 0;
        maximum = (int64_t)FORELOOP_GBDT_MAX_COUNT;
    }
    return foreloop_json_integers(loader->json, minimum, maximum, &loader->integers[column]);
}

static foreloop_status read_categories(foreloop_gbdt_tree_loader *loader) {
    loader->category_count = 0;
    return foreloop_gbdt_read_categories(loader->json, &loader->gbdt->allocator, &loader->categories,
                                         &loader->category_capacity, &loader->category_count);
}

static foreloop_status read_features(foreloop_gbdt_tree_loader *loader) {
    size_t count;
    FORELOOP_TRY(foreloop_gbdt_read_count(loader->json, FORELOOP_GBDT_FEATURE, &count));
    if (loader->has_features && count != loader->feature_count)
        return foreloop_json_fail(loader->json, "num_feature of tree %zu is %zu, of those before %zu",
                                  loader->gbdt->source_count, count, loader->feature_count);
    loader->has_features = true;
    loader->feature_count = count;
    return FORELOOP_OK;
}

static foreloop_status read_parameter(void *user, foreloop_text key) {
    foreloop_gbdt_tree_loader *loader = user;
    foreloop_json *json = loader->json;
    if (foreloop_text_is(key, "size_leaf_vector"))
        return foreloop_gbdt_read_count(json, FORELOOP_GBDT_MAX_OUTPUTS, &loader->leaf_size);
    if (foreloop_text_is(key, "num_feature"))
        return read_features(loader);
    if (foreloop_text_is(key, "num_nodes")) {
        loader->has_nodes = true;
        return foreloop_gbdt_read_count(json, FORELOOP_GBDT_MAX_COUNT, &loader->num_nodes);
    }
    if (foreloop_text_is(key, "num_deleted")) {
        loader->has_deleted = true;
        return foreloop_gbdt_read_count(json, FORELOOP_GBDT_MAX_COUNT, &loader->num_deleted);
    }
    return foreloop_json_skip(json);
}

/* XGBoost places trees by their ids. Files hold them in order; a file that does not would be another model. */
static foreloop_status read_id(foreloop_gbdt_tree_loader *loader) {
    size_t id;
    FORELOOP_TRY(foreloop_gbdt_read_count(loader->json, FORELOOP_GBDT_MAX_COUNT, &id));
    if (id == loader->gbdt->source_count)
        return FORELOOP_OK;
    return foreloop_json_fail(loader->json, "tree %zu has the id %zu: trees stand in the order of their ids",
                              loader->gbdt->source_count, id);
}

static foreloop_status read_field(void *user, foreloop_text key) {
    foreloop_gbdt_tree_loader *loader = user;
    for (int i = 0; i < FORELOOP_GBDT_INTEGER_COLUMNS; i++)
        if (foreloop_text_is(key, integer_names[i]))
            return read_integers(loader, (foreloop_gbdt_integer_column)i);
    for (int i = 0; i < FORELOOP_GBDT_FLOAT_COLUMNS; i++)
        if (foreloop_text_is(key, float_names[i]))
            return foreloop_json_floats(loader->json, &loader->floats[i]);
    if (foreloop_text_is(key, "categories"))
        return read_categories(loader);
    if (foreloop_text_is(key, "id"))
        return read_id(loader);
    if (foreloop_text_is(key, "tree_param"))
        return foreloop_json_fields(loader->json, read_parameter, loader);
    return foreloop_json_skip(loader->json);
}

static foreloop_status read_columns(foreloop_gbdt_tree_loader *loader) {
    for (int i = 0; i < FORELOOP_GBDT_INTEGER_COLUMNS; i++)
        loader->integers[i].count = 0;
    for (int i = 0; i < FORELOOP_GBDT_FLOAT_COLUMNS; i++)
        loader->floats[i].count = 0;
    loader->category_count = 0;
    loader->leaf_size = 0;
    loader->has_nodes = loader->has_deleted = false;
    return foreloop_json_fields(loader->json, read_field, loader);
}

/* ---- Nodes ------------------------------------------------------------------------------------------------------- */

static foreloop_status check_column(const foreloop_gbdt_tree_loader *loader, const char *name, size_t count,
                                    bool optional) {
    size_t nodes = loader->integers[FORELOOP_GBDT_LEFT].count;
    if (count == nodes || (optional && count == 0))
        return FORELOOP_OK;
    return foreloop_json_fail(loader->json, "tree %zu has %zu nodes, but %zu %s", loader->gbdt->source_count, nodes,
                              count, name);
}

static foreloop_status check_columns(const foreloop_gbdt_tree_loader *loader) {
    for (int i = FORELOOP_GBDT_LEFT; i <= FORELOOP_GBDT_PARENTS; i++)
        FORELOOP_TRY(check_column(loader, integer_names[i], loader->integers[i].count, i >= FORELOOP_GBDT_SPLIT_TYPE));
    for (int i = FORELOOP_GBDT_CONDITION; i <= FORELOOP_GBDT_SUM_HESSIAN; i++)
        FORELOOP_TRY(check_column(loader, float_names[i], loader->floats[i].count, i != FORELOOP_GBDT_CONDITION));
    return FORELOOP_OK;
}

/* What files say twice must agree: one of the two is wrong otherwise, and nobody knows which. */
static foreloop_status check_counts(const foreloop_gbdt_tree_loader *loader) {
    enum { DELETED = INT32_MAX }; /* the feature of nodes that pruning deleted */
    const foreloop_integers *left = &loader->integers[FORELOOP_GBDT_LEFT];
    const foreloop_integers *right = &loader->integers[FORELOOP_GBDT_RIGHT];
    const foreloop_integers *parents = &loader->integers[FORELOOP_GBDT_PARENTS];
    const int64_t *features = loader->integers[FORELOOP_GBDT_INDEX].items;
    const size_t tree = loader->gbdt->source_count, nodes = left->count;
    size_t deleted = 0;
    if (loader->has_nodes && loader->num_nodes != nodes)
        return foreloop_json_fail(loader->json, "num_nodes of tree %zu is %zu, but it has %zu nodes", tree,
                                  loader->num_nodes, nodes);
    for (size_t i = 0; i < nodes; i++) {
        deleted += features[i] >= DELETED;
        if (parents->count == 0 || left->items[i] == -1)
            continue;
        const int64_t children[] = {left->items[i], right->items[i]};
        for (int side = 0; side < 2; side++)
            if (children[side] >= 0 && (uint64_t)children[side] < nodes && parents->items[children[side]] != (int64_t)i)
                return foreloop_json_fail(loader->json, "tree %zu: node %zu leads to node %lld, whose parent is %lld",
                                          tree, i, (long long)children[side],
                                          (long long)parents->items[children[side]]);
    }
    if (loader->has_deleted && loader->num_deleted != deleted)
        return foreloop_json_fail(loader->json, "num_deleted of tree %zu is %zu, but %zu nodes are marked as deleted",
                                  tree, loader->num_deleted, deleted);
    return FORELOOP_OK;
}

static foreloop_gbdt_source_node node_of(const foreloop_gbdt_tree_loader *loader, size_t i) {
    const foreloop_integers *integers = loader->integers;
    const foreloop_floats *floats = loader->floats;
    int64_t feature = integers[FORELOOP_GBDT_INDEX].items[i];
    foreloop_gbdt_source_node node = {
        .left = integers[FORELOOP_GBDT_LEFT].items[i],
        .right = integers[FORELOOP_GBDT_RIGHT].items[i],
        .value = floats[FORELOOP_GBDT_CONDITION].items[i],
        /* Nodes that pruning deleted have a huge number; for one that is in use the largest one is out of range. */
        .feature = feature >= 0 && feature < FORELOOP_GBDT_FEATURE ? (uint32_t)feature : FORELOOP_GBDT_FEATURE,
        .origin.id = (uint32_t)i,
        .default_left = integers[FORELOOP_GBDT_DEFAULT].items[i] != 0,
    };
    if (integers[FORELOOP_GBDT_SPLIT_TYPE].count > 0)
        node.categorical = integers[FORELOOP_GBDT_SPLIT_TYPE].items[i] != 0;
    if (floats[FORELOOP_GBDT_LOSS_CHANGES].count > 0)
        node.origin.gain = floats[FORELOOP_GBDT_LOSS_CHANGES].items[i];
    if (floats[FORELOOP_GBDT_SUM_HESSIAN].count > 0)
        node.origin.cover = floats[FORELOOP_GBDT_SUM_HESSIAN].items[i];
    return node;
}

/* Gives the categorical nodes their parts of the list of categories. */
static foreloop_status assign_categories(foreloop_gbdt_tree_loader *loader, size_t node_count) {
    const foreloop_integers *nodes = &loader->integers[FORELOOP_GBDT_CATEGORIES_NODES];
    const foreloop_integers *segments = &loader->integers[FORELOOP_GBDT_CATEGORIES_SEGMENTS];
    const foreloop_integers *sizes = &loader->integers[FORELOOP_GBDT_CATEGORIES_SIZES];
    size_t used = 0;
    if (segments->count != nodes->count || sizes->count != nodes->count)
        return foreloop_json_fail(loader->json, "%zu categories_nodes, %zu categories_segments, %zu categories_sizes",
                                  nodes->count, segments->count, sizes->count);
    for (size_t i = 0; i < nodes->count; i++) {
        size_t node = (size_t)nodes->items[i], begin = (size_t)segments->items[i], size = (size_t)sizes->items[i];
        /* Parts that overlapped could add up to far more than the file's size. */
        used += size;
        if (node >= node_count || used > loader->category_count || begin > loader->category_count - size)
            return foreloop_json_fail(loader->json, "the categories of node %zu lie outside the tree's", node);
        loader->nodes[node].category_begin = begin;
        loader->nodes[node].category_count = size;
    }
    return FORELOOP_OK;
}

/* Finds the vectors of a tree with vector leaves, and gives each leaf its own. */
static foreloop_status assign_vectors(foreloop_gbdt_tree_loader *loader, foreloop_gbdt_source_tree *tree) {
    const foreloop_floats *leaves = &loader->floats[FORELOOP_GBDT_LEAF_WEIGHT];
    const foreloop_floats *all = &loader->floats[FORELOOP_GBDT_BASE_WEIGHT];
    const bool by_leaf = leaves->count > 0;
    const size_t count = (by_leaf ? leaves->count : all->count) / tree->width;
    if (count * tree->width != (by_leaf ? leaves->count : all->count) || (!by_leaf && count != tree->node_count))
        return foreloop_json_fail(
            loader->json,
            "tree %zu has leaves of %zu numbers, but %zu leaf_weights and %zu base_weights for %zu "
            "nodes",
            loader->gbdt->source_count, tree->width, leaves->count, all->count, tree->node_count);
    tree->vectors = by_leaf ? leaves->items : all->items;
    for (size_t i = 0; i < tree->node_count; i++) {
        foreloop_gbdt_source_node *node = &loader->nodes[i];
        if (node->left != -1)
            continue;
        int64_t vector = by_leaf ? node->right : (int64_t)i;
        if (vector < 0 || (uint64_t)vector >= count)
            return foreloop_json_fail(loader->json,
                                      "tree %zu: node %zu is leaf %lld, but there are leaf_weights for %zu",
                                      loader->gbdt->source_count, i, (long long)vector, count);
        node->vector = (uint32_t)vector;
    }
    return FORELOOP_OK;
}

foreloop_status foreloop_gbdt_load_tree(foreloop_gbdt_tree_loader *loader) {
    foreloop_json *json = loader->json;
    size_t offset = json->offset;
    FORELOOP_TRY(read_columns(loader));
    FORELOOP_TRY(check_columns(loader));
    FORELOOP_TRY(check_counts(loader));
    foreloop_gbdt_source_tree tree = {
        .node_count = loader->integers[FORELOOP_GBDT_LEFT].count,
        .width = loader->leaf_size > 1 ? loader->leaf_size : 1,
        .has_gain = loader->floats[FORELOOP_GBDT_LOSS_CHANGES].count > 0,
        .has_cover = loader->floats[FORELOOP_GBDT_SUM_HESSIAN].count > 0,
    };
    FORELOOP_TRY(foreloop_reserve(&loader->gbdt->allocator, &loader->nodes, &loader->node_capacity, 0, tree.node_count,
                                  sizeof *loader->nodes, json->error));
    for (size_t i = 0; i < tree.node_count; i++)
        loader->nodes[i] = node_of(loader, i);
    FORELOOP_TRY(assign_categories(loader, tree.node_count));
    if (tree.width > 1)
        FORELOOP_TRY(assign_vectors(loader, &tree));
    tree.nodes = loader->nodes;
    tree.categories = loader->categories;
    return foreloop_gbdt_locate(json, offset, foreloop_gbdt_add_tree(loader->gbdt, &tree, json->error));
}

void foreloop_gbdt_tree_loader_close(foreloop_gbdt_tree_loader *loader) {
    const foreloop_allocator *allocator = &loader->gbdt->allocator;
    for (int i = 0; i < FORELOOP_GBDT_INTEGER_COLUMNS; i++)
        foreloop_release(allocator, loader->integers[i].items);
    for (int i = 0; i < FORELOOP_GBDT_FLOAT_COLUMNS; i++)
        foreloop_release(allocator, loader->floats[i].items);
    foreloop_release(allocator, loader->categories);
    foreloop_release(allocator, loader->nodes);
}
