/* Building, opening and describing a model of trees. Every loader passes its trees through foreloop_gbdt_add_tree and
 * foreloop_gbdt_finish, which check all that prediction relies on. */
#include "gbdt/model.h"
#include "common/file.h"
#include "common/sized.h"
#include "common/sort.h"
#include "gbdt/layout.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void foreloop_gbdt_options_init(foreloop_gbdt_options *options, size_t size) {
    foreloop_sized_init(options, size);
}

foreloop_status foreloop_gbdt_create(foreloop_gbdt **gbdt, const foreloop_allocator *allocator, foreloop_error *error) {
    foreloop_allocator own = foreloop_allocator_or_default(allocator);
    foreloop_gbdt *made = foreloop_allocate_zeroed(&own, 1, sizeof *made);
    if (!made)
        return foreloop_fail_memory(error, 1, sizeof *made, "the trees");
    made->allocator = own;
    made->texts.allocator = &made->allocator;
    made->notes.allocator = &made->allocator;
    made->objective = foreloop_gbdt_unknown_objective();
    made->output_count = 1;
    made->best_iteration = -1;
    made->has_gain = made->has_cover = true;
    *gbdt = made;
    return FORELOOP_OK;
}

void foreloop_gbdt_close(foreloop_gbdt *gbdt) {
    if (!gbdt)
        return;
    foreloop_allocator allocator = gbdt->allocator;
    foreloop_gbdt_layout_close(gbdt);
    if (!gbdt->borrowed) {
        foreloop_release(&allocator, gbdt->nodes);
        foreloop_release(&allocator, gbdt->origins);
        foreloop_release(&allocator, gbdt->trees);
        foreloop_release(&allocator, gbdt->output_trees);
        foreloop_release(&allocator, gbdt->source_trees);
        foreloop_release(&allocator, gbdt->base_margins);
        foreloop_release(&allocator, gbdt->categories);
        foreloop_release(&allocator, gbdt->sets);
    }
    foreloop_release(&allocator, (void *)gbdt->feature_names);
    foreloop_release(&allocator, (void *)gbdt->feature_types);
    foreloop_arena_close(&gbdt->texts);
    foreloop_buffer_close(&gbdt->notes);
    foreloop_release(&allocator, gbdt);
}

foreloop_status foreloop_gbdt_note(foreloop_gbdt *gbdt, foreloop_error *error, const char *format, ...) {
    char sentence[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    if (gbdt->notes.size > 0)
        FORELOOP_TRY(foreloop_buffer_append(&gbdt->notes, "; ", 2, error));
    return foreloop_buffer_append(&gbdt->notes, sentence, strlen(sentence), error);
}

/* ---- Adding trees ------------------------------------------------------------------------------------------------ */

static foreloop_status reserve_nodes(foreloop_gbdt *gbdt, size_t count, foreloop_error *error) {
    size_t used = gbdt->node_count;
    if (count > FORELOOP_GBDT_MAX_COUNT - used)
        return foreloop_fail(error, FORELOOP_ERROR_LIMIT, "the trees have more than 2^29 nodes");
    FORELOOP_TRY(foreloop_reserve(&gbdt->allocator, &gbdt->nodes, &gbdt->node_capacity, used, used + count,
                                  sizeof *gbdt->nodes, error));
    return foreloop_reserve(&gbdt->allocator, &gbdt->origins, &gbdt->origin_capacity, used, used + count,
                            sizeof *gbdt->origins, error);
}

/* Appends a node, for which there is room, that until its turn comes holds the place of its source in `left`. */
static void push_node(foreloop_gbdt *gbdt, const foreloop_gbdt_source_tree *tree, size_t place) {
    gbdt->nodes[gbdt->node_count] = (foreloop_gbdt_node){.left = (uint32_t)place};
    gbdt->origins[gbdt->node_count] = tree->nodes[place].origin;
    gbdt->node_count++;
}

static int compare_categories(const void *a, const void *b, const void *context) {
    (void)context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static foreloop_status push_set(foreloop_gbdt *gbdt, const uint32_t *categories, size_t count, uint32_t *set,
                                foreloop_error *error) {
    size_t begin = gbdt->category_count;
    if (count > FORELOOP_GBDT_MAX_COUNT - begin)
        return foreloop_fail(error, FORELOOP_ERROR_LIMIT, "the trees have more than 2^29 categories");
    FORELOOP_TRY(foreloop_reserve(&gbdt->allocator, &gbdt->categories, &gbdt->category_capacity, begin, begin + count,
                                  sizeof *gbdt->categories, error));
    FORELOOP_TRY(foreloop_reserve(&gbdt->allocator, &gbdt->sets, &gbdt->set_capacity,
                                  gbdt->set_count > 0 ? gbdt->set_count + 1 : 0, gbdt->set_count + 2,
                                  sizeof *gbdt->sets, error));
    memcpy(gbdt->categories + begin, categories, count * sizeof *categories);
    foreloop_sort(gbdt->categories + begin, count, sizeof *categories, compare_categories, NULL);
    gbdt->category_count += count;
    gbdt->sets[gbdt->set_count] = (uint32_t)begin;
    gbdt->sets[gbdt->set_count + 1] = (uint32_t)gbdt->category_count;
    *set = (uint32_t)gbdt->set_count++;
    return FORELOOP_OK;
}

static foreloop_status push_child(foreloop_gbdt *gbdt, const foreloop_gbdt_source_tree *tree, size_t parent,
                                  int64_t child, foreloop_error *error) {
    if (child < 0 || (uint64_t)child >= tree->node_count)
        return foreloop_fail(error, FORELOOP_ERROR_FORMAT, "tree %zu: node %zu has child %lld, but there are %zu nodes",
                             gbdt->source_count, parent, (long long)child, tree->node_count);
    if (tree->nodes[child].reached)
        return foreloop_fail(error, FORELOOP_ERROR_FORMAT, "tree %zu: node %lld has two parents, or is in a cycle",
                             gbdt->source_count, (long long)child);
    tree->nodes[child].reached = true;
    push_node(gbdt, tree, (size_t)child);
    return FORELOOP_OK;
}

/* Fills in node `index` and appends its children. A leaf that is a vector gets the vector's place as its `set`. */
static foreloop_status build_node(foreloop_gbdt *gbdt, const foreloop_gbdt_source_tree *tree, size_t index,
                                  foreloop_gbdt_tree *made, foreloop_error *error) {
    size_t place = gbdt->nodes[index].left;
    const foreloop_gbdt_source_node *source = &tree->nodes[place];
    if (source->left == -1) {
        gbdt->nodes[index] = (foreloop_gbdt_node){.split.leaf = source->value, .left = (uint32_t)index};
        if (tree->width > 1)
            gbdt->nodes[index].split.set = source->vector;
        else if (!isfinite(source->value))
            return foreloop_fail(error, FORELOOP_ERROR_VALUE, "tree %zu: the leaf at node %zu is NaN or infinite",
                                 gbdt->source_count, place);
        return FORELOOP_OK;
    }
    foreloop_gbdt_node node = {.split.threshold = source->value, .left = (uint32_t)gbdt->node_count};
    node.feature = FORELOOP_GBDT_SPLIT | source->feature | (source->default_left ? FORELOOP_GBDT_DEFAULT_LEFT : 0);
    if (source->categorical) {
        if (source->category_count == 0)
            return foreloop_fail(error, FORELOOP_ERROR_FORMAT,
                                 "tree %zu: node %zu is categorical but has no categories", gbdt->source_count, place);
        FORELOOP_TRY(
            push_set(gbdt, tree->categories + source->category_begin, source->category_count, &node.split.set, error));
        node.feature |= FORELOOP_GBDT_CATEGORICAL;
        made->categorical = 1;
    }
    FORELOOP_TRY(push_child(gbdt, tree, place, source->left, error));
    FORELOOP_TRY(push_child(gbdt, tree, place, source->right, error));
    gbdt->nodes[index] = node;
    return FORELOOP_OK;
}

/* Puts number `output` of the vectors into the leaves, which hold their vectors' places. */
static foreloop_status fill_leaves(foreloop_gbdt *gbdt, const foreloop_gbdt_source_tree *tree,
                                   const foreloop_gbdt_tree *made, foreloop_error *error) {
    for (size_t i = made->root; i < (size_t)made->root + made->node_count; i++) {
        foreloop_gbdt_node *node = &gbdt->nodes[i];
        if (node->feature & FORELOOP_GBDT_SPLIT)
            continue;
        node->split.leaf = tree->vectors[node->split.set * tree->width + made->output];
        if (!isfinite(node->split.leaf))
            return foreloop_fail(error, FORELOOP_ERROR_VALUE, "tree %zu: a leaf is NaN or infinite",
                                 gbdt->source_count);
    }
    return FORELOOP_OK;
}

/* Makes the last tree, whose leaves are vectors, into one for each of their numbers. */
static foreloop_status split_outputs(foreloop_gbdt *gbdt, const foreloop_gbdt_source_tree *tree,
                                     foreloop_error *error) {
    const foreloop_gbdt_tree first = gbdt->trees[gbdt->tree_count - 1];
    for (size_t output = 1; output < tree->width; output++) {
        foreloop_gbdt_tree copy = first;
        copy.root = (uint32_t)gbdt->node_count;
        copy.output = (uint32_t)output;
        FORELOOP_TRY(reserve_nodes(gbdt, first.node_count, error));
        FORELOOP_TRY(foreloop_reserve(&gbdt->allocator, &gbdt->trees, &gbdt->tree_capacity, gbdt->tree_count,
                                      gbdt->tree_count + 1, sizeof *gbdt->trees, error));
        for (size_t i = 0; i < first.node_count; i++) {
            gbdt->nodes[copy.root + i] = gbdt->nodes[first.root + i];
            gbdt->nodes[copy.root + i].left += copy.root - first.root;
            gbdt->origins[copy.root + i] = gbdt->origins[first.root + i];
        }
        gbdt->node_count += first.node_count;
        gbdt->trees[gbdt->tree_count++] = copy;
        FORELOOP_TRY(fill_leaves(gbdt, tree, &copy, error));
    }
    return fill_leaves(gbdt, tree, &first, error);
}

foreloop_status foreloop_gbdt_add_tree(foreloop_gbdt *gbdt, const foreloop_gbdt_source_tree *tree,
                                       foreloop_error *error) {
    if (tree->node_count == 0)
        return foreloop_fail(error, FORELOOP_ERROR_FORMAT, "tree %zu has no nodes", gbdt->source_count);
    if (tree->node_count > FORELOOP_GBDT_MAX_COUNT || gbdt->tree_count >= FORELOOP_GBDT_MAX_COUNT)
        return foreloop_fail(error, FORELOOP_ERROR_LIMIT, "more than 2^29 trees, or nodes in tree %zu",
                             gbdt->source_count);
    FORELOOP_TRY(foreloop_reserve(&gbdt->allocator, &gbdt->trees, &gbdt->tree_capacity, gbdt->tree_count,
                                  gbdt->tree_count + 1, sizeof *gbdt->trees, error));
    foreloop_gbdt_tree made = {.root = (uint32_t)gbdt->node_count, .source = (uint32_t)gbdt->source_count};
    FORELOOP_TRY(reserve_nodes(gbdt, tree->node_count, error)); /* each node is reached once at the most */
    tree->nodes[0].reached = true;
    push_node(gbdt, tree, 0);
    /* Breadth first: the nodes behind `index` are the queue. */
    size_t level_end = gbdt->node_count;
    for (size_t index = made.root; index < gbdt->node_count; index++) {
        if (index == level_end) {
            made.depth++;
            level_end = gbdt->node_count;
        }
        FORELOOP_TRY(build_node(gbdt, tree, index, &made, error));
    }
    made.node_count = (uint32_t)(gbdt->node_count - made.root);
    gbdt->trees[gbdt->tree_count++] = made;
    if (tree->width > 1)
        FORELOOP_TRY(split_outputs(gbdt, tree, error));
    gbdt->source_count++;
    gbdt->has_gain &= tree->has_gain;
    gbdt->has_cover &= tree->has_cover;
    return FORELOOP_OK;
}

/* ---- Finishing --------------------------------------------------------------------------------------------------- */

static foreloop_status check_features(const foreloop_gbdt *gbdt, const foreloop_gbdt_tree *tree,
                                      foreloop_error *error) {
    for (size_t i = tree->root; i < (size_t)tree->root + tree->node_count; i++) {
        uint32_t feature = gbdt->nodes[i].feature & FORELOOP_GBDT_FEATURE;
        if ((gbdt->nodes[i].feature & FORELOOP_GBDT_SPLIT) && feature >= gbdt->feature_count)
            return foreloop_fail(error, FORELOOP_ERROR_FORMAT, "tree %u splits on feature %u, but the model has %zu",
                                 (unsigned)tree->source, (unsigned)feature, gbdt->feature_count);
    }
    return FORELOOP_OK;
}

static foreloop_status weigh_tree(foreloop_gbdt *gbdt, const foreloop_gbdt_tree *tree, float weight,
                                  foreloop_error *error) {
    for (size_t i = tree->root; i < (size_t)tree->root + tree->node_count; i++) {
        foreloop_gbdt_node *node = &gbdt->nodes[i];
        if (node->feature & FORELOOP_GBDT_SPLIT)
            continue;
        /* XGBoost adds the leaf to a zero before it multiplies: a leaf of -0 becomes 0. */
        node->split.leaf = (0.0f + node->split.leaf) * weight;
        if (!isfinite(node->split.leaf))
            return foreloop_fail(error, FORELOOP_ERROR_VALUE, "the weight of tree %u makes a leaf NaN or infinite",
                                 (unsigned)tree->source);
    }
    return FORELOOP_OK;
}

/* Moves the trees that the file's begin <= tree < end became to a new list, sorted by output and otherwise in order. */
static foreloop_status sort_trees(foreloop_gbdt *gbdt, size_t begin, size_t end, foreloop_error *error) {
    size_t *starts = foreloop_allocate_zeroed(&gbdt->allocator, gbdt->output_count + 1, sizeof *starts);
    foreloop_gbdt_tree *sorted = foreloop_allocate(&gbdt->allocator, gbdt->tree_count, sizeof *sorted);
    if (!starts || !sorted) {
        foreloop_release(&gbdt->allocator, starts);
        foreloop_release(&gbdt->allocator, sorted);
        return foreloop_fail_memory(error, gbdt->tree_count, sizeof *sorted, "the trees");
    }
    size_t first = 0, last;
    while (first < gbdt->tree_count && gbdt->trees[first].source < begin)
        first++;
    for (last = first; last < gbdt->tree_count && gbdt->trees[last].source < end; last++)
        starts[gbdt->trees[last].output + 1]++;
    for (size_t k = 0; k < gbdt->output_count; k++)
        starts[k + 1] += starts[k];
    for (size_t t = first; t < last; t++)
        sorted[starts[gbdt->trees[t].output]++] = gbdt->trees[t];
    for (size_t k = gbdt->output_count; k > 0; k--)
        starts[k] = starts[k - 1];
    starts[0] = 0;
    foreloop_release(&gbdt->allocator, gbdt->trees);
    gbdt->trees = sorted;
    gbdt->tree_count = last - first;
    gbdt->output_trees = starts;
    return FORELOOP_OK;
}

/* Finds the file's trees among the sorted ones. */
static foreloop_status index_sources(foreloop_gbdt *gbdt, size_t begin, size_t end, foreloop_error *error) {
    gbdt->source_count = end - begin;
    gbdt->source_trees = foreloop_allocate(&gbdt->allocator, gbdt->source_count, sizeof *gbdt->source_trees);
    if (!gbdt->source_trees)
        return foreloop_fail_memory(error, gbdt->source_count, sizeof *gbdt->source_trees, "the trees");
    /* From the last to the first, so that the first output's remains. */
    for (size_t t = gbdt->tree_count; t-- > 0;) {
        gbdt->trees[t].source -= (uint32_t)begin;
        gbdt->source_trees[gbdt->trees[t].source] = (uint32_t)t;
    }
    return FORELOOP_OK;
}

foreloop_status foreloop_gbdt_finish(foreloop_gbdt *gbdt, const float *weights, size_t weight_count, size_t begin,
                                     size_t end, foreloop_error *error) {
    if (weights && weight_count != gbdt->source_count)
        return foreloop_fail(error, FORELOOP_ERROR_MISMATCH, "%zu tree weights for %zu trees", weight_count,
                             gbdt->source_count);
    for (size_t t = 0; t < gbdt->tree_count; t++) {
        FORELOOP_TRY(check_features(gbdt, &gbdt->trees[t], error));
        if (weights)
            FORELOOP_TRY(weigh_tree(gbdt, &gbdt->trees[t], weights[gbdt->trees[t].source], error));
    }
    FORELOOP_TRY(sort_trees(gbdt, begin, end, error));
    FORELOOP_TRY(index_sources(gbdt, begin, end, error));
    for (size_t t = 0; t < gbdt->tree_count; t++) {
        const foreloop_gbdt_tree *tree = &gbdt->trees[t];
        gbdt->max_depth = tree->depth > gbdt->max_depth ? tree->depth : gbdt->max_depth;
        for (size_t i = tree->root; i < (size_t)tree->root + tree->node_count; i++) {
            size_t behind = (gbdt->nodes[i].feature & FORELOOP_GBDT_FEATURE) + (size_t)1;
            if ((gbdt->nodes[i].feature & FORELOOP_GBDT_SPLIT) && behind > gbdt->read_end)
                gbdt->read_end = behind;
        }
    }
    /* So that the text is there even when there is nothing to say. */
    return foreloop_buffer_append(&gbdt->notes, "", 0, error);
}

foreloop_status foreloop_gbdt_select(const foreloop_gbdt_options *options, size_t iteration_count, size_t *begin,
                                     size_t *end, foreloop_error *error) {
    size_t first = options->iteration_begin;
    size_t last = options->iteration_end > 0 ? options->iteration_end : iteration_count;
    if (first > last || last > iteration_count)
        return foreloop_fail(error, FORELOOP_ERROR_MISMATCH, "iterations %zu to %zu are asked for, but there are %zu",
                             first, last, iteration_count);
    *begin = first;
    *end = last;
    return FORELOOP_OK;
}

foreloop_status foreloop_gbdt_locate(foreloop_json *json, size_t offset, foreloop_status status) {
    if (status == FORELOOP_OK || !json->error)
        return status;
    foreloop_error_prefix(json->error, status, "%s", json->name);
    json->error->position_kind = FORELOOP_POSITION_BYTE;
    json->error->position = offset;
    return status;
}

foreloop_status foreloop_gbdt_read_categories(foreloop_json *json, const foreloop_allocator *allocator, uint32_t **list,
                                              size_t *capacity, size_t *count) {
    FORELOOP_TRY(foreloop_json_array(json));
    for (;;) {
        bool more;
        size_t category = 0;
        FORELOOP_TRY(foreloop_json_element(json, &more));
        if (!more)
            return FORELOOP_OK;
        FORELOOP_TRY(foreloop_json_size(json, ((size_t)1 << 24) - 1, &category));
        FORELOOP_TRY(foreloop_reserve(allocator, list, capacity, *count, *count + 1, sizeof **list, json->error));
        (*list)[(*count)++] = (uint32_t)category;
    }
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

static foreloop_status load(foreloop_gbdt *gbdt, foreloop_json *json, const foreloop_gbdt_options *options) {
    switch (foreloop_json_peek(json)) {
    case FORELOOP_JSON_ARRAY:
        return foreloop_gbdt_load_dump(gbdt, json, options);
    case FORELOOP_JSON_OBJECT:
        return foreloop_gbdt_load_json(gbdt, json, options);
    default:
        if (json->size >= 4 && memcmp(json->data, "binf", 4) == 0)
            return foreloop_fail(json->error, FORELOOP_ERROR_UNSUPPORTED,
                                 "%s is in XGBoost's old binary format: load it with XGBoost 1.0 to 3.0 and save it as "
                                 ".json or .ubj",
                                 json->name);
        return foreloop_json_fail(json, "neither save_model JSON or UBJSON (an object) nor dump_model JSON (an array)");
    }
}

static foreloop_status check_options(const foreloop_gbdt_options *options, foreloop_error *error) {
    if (options->has_base_score && !isfinite(options->base_score))
        return foreloop_fail(error, FORELOOP_ERROR_VALUE, "foreloop_gbdt_options: the base score is not finite");
    if ((options->tree_weight_count && !options->tree_weights) ||
        (options->feature_name_count && !options->feature_names))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_gbdt_options: a count without its array");
    if (options->tier < FORELOOP_TIER_BEST || options->tier > FORELOOP_TIER_AVX512)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_gbdt_options: there is no tier %d",
                             (int)options->tier);
    return FORELOOP_OK;
}

foreloop_status foreloop_gbdt_open_named(foreloop_gbdt **gbdt, const void *data, size_t size, const char *name,
                                         const foreloop_gbdt_options *options, foreloop_error *error) {
    if (!gbdt || (!data && size > 0))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_gbdt_open: an argument is NULL");
    foreloop_gbdt_options full;
    FORELOOP_TRY(foreloop_sized_read(&full, sizeof full, options, "foreloop_gbdt_options", error));
    FORELOOP_TRY(check_options(&full, error));
    foreloop_gbdt *made = NULL;
    FORELOOP_TRY(foreloop_gbdt_create(&made, full.allocator, error));
    foreloop_json json;
    if (foreloop_json_is_ubjson(data, size))
        foreloop_json_open_ubjson(&json, &made->allocator, data, size, name, error);
    else
        foreloop_json_open(&json, &made->allocator, data, size, name, error);
    foreloop_status status = load(made, &json, &full);
    foreloop_json_close(&json);
    if (status == FORELOOP_OK)
        status = foreloop_gbdt_layout_make(made, full.tier, error);
    if (status != FORELOOP_OK) {
        foreloop_gbdt_close(made);
        return status;
    }
    *gbdt = made;
    return FORELOOP_OK;
}

foreloop_status foreloop_gbdt_open_memory(foreloop_gbdt **gbdt, const void *data, size_t size,
                                          const foreloop_gbdt_options *options, foreloop_error *error) {
    return foreloop_gbdt_open_named(gbdt, data, size, "trees", options, error);
}

foreloop_status foreloop_gbdt_open(foreloop_gbdt **gbdt, const char *path, const foreloop_gbdt_options *options,
                                   foreloop_error *error) {
    if (!gbdt || !path)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_gbdt_open: an argument is NULL");
    foreloop_gbdt_options own;
    FORELOOP_TRY(foreloop_sized_read(&own, sizeof own, options, "foreloop_gbdt_options", error));
    foreloop_allocator allocator = foreloop_allocator_or_default(own.allocator);
    foreloop_file file;
    FORELOOP_TRY(foreloop_file_open(&file, path, &allocator, false, error));
    foreloop_status status = foreloop_gbdt_open_named(gbdt, file.data, file.size, path, options, error);
    foreloop_file_close(&file);
    return status;
}

/* ---- Describing -------------------------------------------------------------------------------------------------- */

void foreloop_gbdt_get_info(const foreloop_gbdt *gbdt, foreloop_gbdt_info *info) {
    if (!gbdt || !info)
        return;
    foreloop_gbdt_info full = {
        .feature_count = gbdt->feature_count,
        .output_count = gbdt->output_count,
        .tree_count = gbdt->source_count,
        .max_depth = gbdt->max_depth,
        .objective = gbdt->objective->name,
        .notes = gbdt->notes.data,
        .prediction_count = gbdt->objective->transform == FORELOOP_TRANSFORM_CLASS ? 1 : gbdt->output_count,
        .iteration_count = gbdt->iteration_count,
        .best_iteration = gbdt->best_iteration,
        .has_gain = gbdt->has_gain,
        .has_cover = gbdt->has_cover,
        .tier = gbdt->layout->kernels.tier,
    };
    foreloop_sized_write(info, &full, sizeof full);
}

const char *foreloop_gbdt_feature_name(const foreloop_gbdt *gbdt, size_t index) {
    return gbdt && gbdt->feature_names && index < gbdt->feature_count ? gbdt->feature_names[index] : NULL;
}

const char *foreloop_gbdt_feature_type(const foreloop_gbdt *gbdt, size_t index) {
    return gbdt && gbdt->feature_types && index < gbdt->feature_count ? gbdt->feature_types[index] : NULL;
}

void foreloop_gbdt_used_features(const foreloop_gbdt *gbdt, unsigned char *used) {
    memset(used, 0, gbdt->feature_count);
    for (size_t t = 0; t < gbdt->tree_count; t++) {
        const foreloop_gbdt_tree *tree = &gbdt->trees[t];
        for (size_t i = tree->root; i < (size_t)tree->root + tree->node_count; i++)
            if (gbdt->nodes[i].feature & FORELOOP_GBDT_SPLIT)
                used[gbdt->nodes[i].feature & FORELOOP_GBDT_FEATURE] = 1;
    }
}
