/* Writes trees as XGBoost's save_model JSON. The form is that of XGBoost 2, which later versions read as well. */
#include "common/file.h"
#include "common/number.h"
#include "gbdt/model.h"
#include "gbdt/objective.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct tree_writer {
    const foreloop_gbdt *gbdt;
    foreloop_buffer out;
    foreloop_error *error;
    foreloop_status status; /* the first failure: what follows it is not written */
} tree_writer;

/* ---- Text -------------------------------------------------------------------------------------------------------- */

static void put_bytes(tree_writer *writer, const char *text, size_t length) {
    if (writer->status == FORELOOP_OK)
        writer->status = foreloop_buffer_append(&writer->out, text, length, writer->error);
}

static void put(tree_writer *writer, const char *text) {
    put_bytes(writer, text, strlen(text));
}

static void put_integer(tree_writer *writer, int64_t value) {
    char text[24];
    put_bytes(writer, text, (size_t)snprintf(text, sizeof text, "%lld", (long long)value));
}

/* XGBoost takes a number without fraction and exponent for an integer; what is not finite it spells as JavaScript does.
 */
static void put_float(tree_writer *writer, float value) {
    char text[FORELOOP_NUMBER_TEXT_SIZE];
    if (!isfinite(value)) {
        put(writer, isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
        return;
    }
    const size_t length = foreloop_format_float(value, text);
    put_bytes(writer, text, length);
    if (strcspn(text, ".eE") == length)
        put(writer, ".0");
}

static void put_string(tree_writer *writer, const char *text) {
    put(writer, "\"");
    for (; *text; text++) {
        char escape[8];
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            put_bytes(writer, escape, (size_t)snprintf(escape, sizeof escape, "\\%c", c));
        else if (c < 0x20)
            put_bytes(writer, escape, (size_t)snprintf(escape, sizeof escape, "\\u%04x", c));
        else
            put_bytes(writer, text, 1);
    }
    put(writer, "\"");
}

/* ---- Trees ------------------------------------------------------------------------------------------------------- */

typedef enum tree_column {
    BASE_WEIGHTS,
    DEFAULT_LEFT,
    LEFT_CHILDREN,
    LOSS_CHANGES,
    PARENTS,
    RIGHT_CHILDREN,
    SPLIT_CONDITIONS,
    SPLIT_INDICES,
    SPLIT_TYPE,
    SUM_HESSIAN,
    COLUMNS
} tree_column;

static const char *const column_names[COLUMNS] = {"base_weights", "default_left",   "left_children",    "loss_changes",
                                                  "parents",      "right_children", "split_conditions", "split_indices",
                                                  "split_type",   "sum_hessian"};

static void put_value(tree_writer *writer, const foreloop_gbdt_tree *tree, const uint32_t *parents, size_t i,
                      tree_column column) {
    const foreloop_gbdt_node *node = &writer->gbdt->nodes[tree->root + i];
    const foreloop_gbdt_origin *origin = &writer->gbdt->origins[tree->root + i];
    const bool split = (node->feature & FORELOOP_GBDT_SPLIT) != 0;
    const int64_t left = (int64_t)node->left - (int64_t)tree->root;
    switch (column) {
    case BASE_WEIGHTS:
        put_float(writer, split ? 0.0f : node->split.leaf);
        break;
    case DEFAULT_LEFT:
        put(writer, split && (node->feature & FORELOOP_GBDT_DEFAULT_LEFT) ? "1" : "0");
        break;
    case LEFT_CHILDREN:
        put_integer(writer, split ? left : -1);
        break;
    case RIGHT_CHILDREN:
        put_integer(writer, split ? left + 1 : -1);
        break;
    case LOSS_CHANGES:
        put_float(writer, origin->gain);
        break;
    case PARENTS:
        put_integer(writer, parents[i]);
        break;
    case SPLIT_CONDITIONS:
        put_float(writer, split ? node->split.threshold : node->split.leaf);
        break;
    case SPLIT_INDICES:
        put_integer(writer, split ? node->feature & FORELOOP_GBDT_FEATURE : 0);
        break;
    case SPLIT_TYPE:
        put(writer, "0");
        break;
    default:
        put_float(writer, origin->cover);
        break;
    }
}

static void put_tree(tree_writer *writer, size_t index, uint32_t *parents) {
    const foreloop_gbdt *gbdt = writer->gbdt;
    const foreloop_gbdt_tree *tree = &gbdt->trees[index];
    parents[0] = INT32_MAX; /* what XGBoost writes for none */
    for (size_t i = 0; i < tree->node_count; i++) {
        const foreloop_gbdt_node *node = &gbdt->nodes[tree->root + i];
        if (node->feature & FORELOOP_GBDT_SPLIT)
            parents[node->left - tree->root] = parents[node->left - tree->root + 1] = (uint32_t)i;
    }
    put(writer, index ? ",{" : "{");
    for (tree_column column = 0; column < COLUMNS; column++) {
        put(writer, "\"");
        put(writer, column_names[column]);
        put(writer, "\":[");
        for (size_t i = 0; i < tree->node_count; i++) {
            if (i)
                put(writer, ",");
            put_value(writer, tree, parents, i, column);
        }
        put(writer, "],");
    }
    put(writer, "\"categories\":[],\"categories_nodes\":[],\"categories_segments\":[],\"categories_sizes\":[],\"id\":");
    put_integer(writer, (int64_t)index);
    put(writer, ",\"tree_param\":{\"num_deleted\":\"0\",\"num_feature\":\"");
    put_integer(writer, (int64_t)gbdt->feature_count);
    put(writer, "\",\"num_nodes\":\"");
    put_integer(writer, tree->node_count);
    put(writer, "\",\"size_leaf_vector\":\"1\"}}");
}

/* ---- The document ------------------------------------------------------------------------------------------------ */

static void put_trees(tree_writer *writer, uint32_t *parents) {
    const size_t count = writer->gbdt->tree_count;
    put(writer,
        "\"gradient_booster\":{\"model\":{\"gbtree_model_param\":{\"num_parallel_tree\":\"1\",\"num_trees\":\"");
    put_integer(writer, (int64_t)count);
    put(writer, "\"},\"iteration_indptr\":[0");
    for (size_t t = 1; t <= count; t++) {
        put(writer, ",");
        put_integer(writer, (int64_t)t);
    }
    put(writer, "],\"tree_info\":[");
    for (size_t t = 0; t < count; t++)
        put(writer, t ? ",0" : "0");
    put(writer, "],\"trees\":[");
    for (size_t t = 0; t < count && writer->status == FORELOOP_OK; t++)
        put_tree(writer, t, parents);
    put(writer, "]},\"name\":\"gbtree\"}");
}

static void put_objective(tree_writer *writer) {
    const char *name = writer->gbdt->objective->name;
    const bool ranking = strncmp(name, "rank:", 5) == 0;
    put(writer, ",\"objective\":{\"name\":");
    put_string(writer, name);
    /* XGBoost wants the section; what does not stand in it takes its default there. */
    put(writer, ranking                                     ? ",\"lambdarank_param\":{}}"
                : strcmp(name, "reg:pseudohubererror") == 0 ? ",\"pseudo_huber_param\":{\"huber_slope\":\"1\"}}"
                                                            : ",\"reg_loss_param\":{\"scale_pos_weight\":\"1\"}}");
}

static void put_document(tree_writer *writer, uint32_t *parents) {
    const foreloop_gbdt *gbdt = writer->gbdt;
    put(writer, "{\"learner\":{\"attributes\":{},\"feature_names\":[");
    for (size_t i = 0; gbdt->feature_names && i < gbdt->feature_count; i++) {
        if (i)
            put(writer, ",");
        put_string(writer, gbdt->feature_names[i]);
    }
    put(writer, "],\"feature_types\":[],");
    put_trees(writer, parents);
    put(writer, ",\"learner_model_param\":{\"base_score\":\"");
    put_float(writer, gbdt->base_margins[0]);
    put(writer, "\",\"boost_from_average\":\"0\",\"num_class\":\"0\",\"num_feature\":\"");
    put_integer(writer, (int64_t)gbdt->feature_count);
    put(writer, "\",\"num_target\":\"1\"}");
    put_objective(writer);
    put(writer, "},\"version\":[2,1,0]}");
}

static foreloop_status check(const foreloop_gbdt *gbdt, foreloop_error *error) {
    if (gbdt->output_count != 1)
        return foreloop_fail(error, FORELOOP_ERROR_UNSUPPORTED, "gbdt_save: trees of %zu outputs cannot be saved",
                             gbdt->output_count);
    /* XGBoost reads a quantile beside reg:quantileerror, which is not kept. */
    if (gbdt->objective == foreloop_gbdt_unknown_objective() ||
        strcmp(gbdt->objective->name, "reg:quantileerror") == 0 || gbdt->objective->link != FORELOOP_LINK_IDENTITY ||
        gbdt->objective->transform != FORELOOP_TRANSFORM_NONE)
        return foreloop_fail(error, FORELOOP_ERROR_UNSUPPORTED, "gbdt_save: the objective %s cannot be saved",
                             gbdt->objective->name);
    for (size_t t = 0; t < gbdt->tree_count; t++)
        if (gbdt->trees[t].categorical)
            return foreloop_fail(error, FORELOOP_ERROR_UNSUPPORTED,
                                 "gbdt_save: tree %zu has categorical splits, which cannot be saved", t);
    return FORELOOP_OK;
}

/* The document in writer->out, to be closed by the caller in any case. */
static foreloop_status write(tree_writer *writer) {
    const foreloop_gbdt *gbdt = writer->gbdt;
    size_t largest = 0;
    FORELOOP_TRY(check(gbdt, writer->error));
    for (size_t t = 0; t < gbdt->tree_count; t++)
        largest = gbdt->trees[t].node_count > largest ? gbdt->trees[t].node_count : largest;
    uint32_t *parents = foreloop_allocate(&gbdt->allocator, largest, sizeof *parents);
    if (!parents)
        return foreloop_fail_memory(writer->error, largest, sizeof *parents, "the document");
    put_document(writer, parents);
    foreloop_release(&gbdt->allocator, parents);
    return writer->status;
}

static tree_writer begin(const foreloop_gbdt *gbdt, foreloop_error *error) {
    return (tree_writer){.gbdt = gbdt, .out = {.allocator = &gbdt->allocator}, .error = error, .status = FORELOOP_OK};
}

foreloop_status foreloop_gbdt_save(const foreloop_gbdt *gbdt, const char *path, foreloop_error *error) {
    if (!gbdt || !path)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "gbdt_save: an argument is NULL");
    tree_writer writer = begin(gbdt, error);
    foreloop_status status = write(&writer);
    if (status == FORELOOP_OK) {
        const foreloop_bytes part = {writer.out.data, writer.out.size};
        status = foreloop_file_write(path, &part, 1, &gbdt->allocator, error);
    }
    foreloop_buffer_close(&writer.out);
    return status;
}

foreloop_status foreloop_gbdt_save_memory(const foreloop_gbdt *gbdt, void *buffer, size_t capacity, size_t *needed,
                                          foreloop_error *error) {
    if (!gbdt || !needed || (capacity && !buffer))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "gbdt_save_memory: an argument is NULL");
    tree_writer writer = begin(gbdt, error);
    foreloop_status status = write(&writer);
    if (status == FORELOOP_OK) {
        *needed = writer.out.size;
        if (capacity >= writer.out.size)
            memcpy(buffer, writer.out.data, writer.out.size);
        else if (capacity > 0)
            status =
                foreloop_fail(error, FORELOOP_ERROR_LIMIT, "gbdt_save_memory: the buffer has %zu bytes, %zu are needed",
                              capacity, writer.out.size);
    }
    foreloop_buffer_close(&writer.out);
    return status;
}
