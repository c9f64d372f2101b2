/* Reads save_model JSON and UBJSON of XGBoost 1.0 to 3.4. Keys may come in any order; unknown ones are skipped at any
 * depth. */
#include "common/number.h"
#include "gbdt/load_tree.h"
#include <string.h>

typedef struct text_list {
    const char **items;
    size_t count, capacity;
} text_list;

typedef struct json_loader {
    foreloop_json *json;
    foreloop_gbdt *gbdt;
    const foreloop_gbdt_options *options;

    bool has_learner, has_trees, has_booster, has_objective;
    size_t version[2]; /* major, minor; 0 when absent */
    size_t num_class, num_target, num_parallel_tree, num_trees;
    bool has_num_trees, is_dart, has_weights, has_named_categories;
    foreloop_floats base_scores, weights;
    foreloop_integers tree_info, iteration_indptr;
    text_list names, types;
    foreloop_gbdt_tree_loader trees;
} json_loader;

/* ---- Values ------------------------------------------------------------------------------------------------------ */

/* A list of counts or indices. */
static foreloop_status read_sizes(json_loader *loader, foreloop_integers *list) {
    return foreloop_json_integers(loader->json, 0, (int64_t)FORELOOP_GBDT_MAX_COUNT, list);
}

/* A number or an array of numbers. */
static foreloop_status read_floats(foreloop_json *json, foreloop_floats *list) {
    if (foreloop_json_peek(json) == FORELOOP_JSON_ARRAY)
        return foreloop_json_floats(json, list);
    FORELOOP_TRY(foreloop_reserve(json->scratch.allocator, &list->items, &list->capacity, 0, 1, sizeof *list->items,
                                  json->error));
    FORELOOP_TRY(foreloop_json_float(json, list->items));
    list->count = 1;
    return FORELOOP_OK;
}

/* "5E-1", "[5E-1]", "[1E-1,2E-1]", or the same without the quotes. */
static foreloop_status read_base_score(json_loader *loader) {
    foreloop_json *json = loader->json;
    if (foreloop_json_peek(json) != FORELOOP_JSON_STRING)
        return read_floats(json, &loader->base_scores);
    foreloop_text text;
    FORELOOP_TRY(foreloop_json_string(json, &text));
    foreloop_json inner;
    foreloop_json_open(&inner, &loader->gbdt->allocator, text.text, text.length, json->name, json->error);
    inner.base = json->base + json->offset - text.length - (json->binary ? 0 : 1);
    foreloop_status status = read_floats(&inner, &loader->base_scores);
    if (status == FORELOOP_OK)
        status = foreloop_json_end(&inner);
    foreloop_json_close(&inner);
    return status;
}

static foreloop_status read_objective_field(void *user, foreloop_text key) {
    json_loader *loader = user;
    foreloop_json *json = loader->json;
    foreloop_text name;
    if (!foreloop_text_is(key, "name"))
        return foreloop_json_skip(json);
    FORELOOP_TRY(foreloop_json_string(json, &name));
    loader->gbdt->objective = foreloop_gbdt_find_objective(name);
    if (!loader->gbdt->objective)
        return foreloop_fail(json->error, FORELOOP_ERROR_UNSUPPORTED, "%s: the objective \"%.*s\" is not supported",
                             json->name, FORELOOP_QUOTED(name.text, name.length));
    loader->has_objective = true;
    return FORELOOP_OK;
}

/* ---- Booster ----------------------------------------------------------------------------------------------------- */

static foreloop_status read_trees(json_loader *loader) {
    foreloop_json *json = loader->json;
    if (loader->has_trees)
        return foreloop_json_fail(json, "the trees stand here a second time");
    loader->has_trees = true;
    FORELOOP_TRY(foreloop_json_array(json));
    for (;;) {
        bool more;
        FORELOOP_TRY(foreloop_json_element(json, &more));
        if (!more)
            return FORELOOP_OK;
        FORELOOP_TRY(foreloop_gbdt_load_tree(&loader->trees));
    }
}

static foreloop_status read_ensemble_parameter(void *user, foreloop_text key) {
    json_loader *loader = user;
    if (foreloop_text_is(key, "num_trees")) {
        loader->has_num_trees = true;
        return foreloop_gbdt_read_count(loader->json, FORELOOP_GBDT_MAX_COUNT, &loader->num_trees);
    }
    if (foreloop_text_is(key, "num_parallel_tree"))
        return foreloop_gbdt_read_count(loader->json, FORELOOP_GBDT_MAX_COUNT, &loader->num_parallel_tree);
    return foreloop_json_skip(loader->json);
}

/* The names that data frames gave to categories: only whether there are any matters. */
static foreloop_status read_category_field(void *user, foreloop_text key) {
    json_loader *loader = user;
    foreloop_json *json = loader->json;
    if (!foreloop_text_is(key, "enc") || foreloop_json_peek(json) != FORELOOP_JSON_ARRAY)
        return foreloop_json_skip(json);
    FORELOOP_TRY(foreloop_json_array(json));
    for (bool more;; loader->has_named_categories = true) {
        FORELOOP_TRY(foreloop_json_element(json, &more));
        if (!more)
            return FORELOOP_OK;
        FORELOOP_TRY(foreloop_json_skip(json));
    }
}

/* An empty list stands for weights of 1. */
static foreloop_status read_weights(json_loader *loader) {
    FORELOOP_TRY(foreloop_json_floats(loader->json, &loader->weights));
    loader->has_weights = loader->weights.count > 0;
    return FORELOOP_OK;
}

static foreloop_status read_ensemble_field(void *user, foreloop_text key) {
    json_loader *loader = user;
    if (foreloop_text_is(key, "trees"))
        return read_trees(loader);
    if (foreloop_text_is(key, "tree_info"))
        return read_sizes(loader, &loader->tree_info);
    if (foreloop_text_is(key, "iteration_indptr"))
        return read_sizes(loader, &loader->iteration_indptr);
    if (foreloop_text_is(key, "gbtree_model_param"))
        return foreloop_json_fields(loader->json, read_ensemble_parameter, loader);
    if (foreloop_text_is(key, "cats"))
        return foreloop_json_fields(loader->json, read_category_field, loader);
    if (foreloop_text_is(key, "weight_drop"))
        return read_weights(loader);
    return foreloop_json_skip(loader->json);
}

/* {"model": ..., "name": "gbtree"}, or {"gbtree": the same, "name": "dart", "weight_drop": ...}. */
static foreloop_status read_booster_field(void *user, foreloop_text key) {
    json_loader *loader = user;
    foreloop_json *json = loader->json;
    foreloop_text name;
    if (foreloop_text_is(key, "model"))
        return foreloop_json_fields(loader->json, read_ensemble_field, loader);
    if (foreloop_text_is(key, "gbtree"))
        return foreloop_json_fields(loader->json, read_booster_field, loader);
    if (foreloop_text_is(key, "weight_drop"))
        return read_weights(loader);
    if (!foreloop_text_is(key, "name"))
        return foreloop_json_skip(json);
    FORELOOP_TRY(foreloop_json_string(json, &name));
    if (!foreloop_text_is(name, "gbtree") && !foreloop_text_is(name, "dart"))
        return foreloop_fail(json->error, FORELOOP_ERROR_UNSUPPORTED, "%s: the booster \"%.*s\" is not supported",
                             json->name, FORELOOP_QUOTED(name.text, name.length));
    loader->has_booster = true;
    loader->is_dart |= foreloop_text_is(name, "dart");
    return FORELOOP_OK;
}

/* ---- Learner ----------------------------------------------------------------------------------------------------- */

static foreloop_status read_parameter(void *user, foreloop_text key) {
    json_loader *loader = user;
    if (foreloop_text_is(key, "base_score"))
        return read_base_score(loader);
    if (foreloop_text_is(key, "num_feature"))
        return foreloop_gbdt_read_count(loader->json, FORELOOP_GBDT_FEATURE, &loader->gbdt->feature_count);
    if (foreloop_text_is(key, "num_class"))
        return foreloop_gbdt_read_count(loader->json, FORELOOP_GBDT_MAX_OUTPUTS, &loader->num_class);
    if (foreloop_text_is(key, "num_target"))
        return foreloop_gbdt_read_count(loader->json, FORELOOP_GBDT_MAX_OUTPUTS, &loader->num_target);
    return foreloop_json_skip(loader->json);
}

/* The caller's own, as many as there may be: only one of them is looked at. */
static foreloop_status read_attributes(json_loader *loader) {
    foreloop_json *json = loader->json;
    bool has_best = false;
    FORELOOP_TRY(foreloop_json_object(json));
    for (;;) {
        foreloop_text key, value;
        int64_t number;
        FORELOOP_TRY(foreloop_json_key(json, &key));
        if (!key.text)
            return FORELOOP_OK;
        if (!foreloop_text_is(key, "best_iteration") || foreloop_json_peek(json) != FORELOOP_JSON_STRING) {
            FORELOOP_TRY(foreloop_json_skip(json));
            continue;
        }
        if (has_best)
            return foreloop_json_fail(json, "the attribute best_iteration stands twice");
        has_best = true;
        FORELOOP_TRY(foreloop_json_string(json, &value));
        if (foreloop_parse_int64(value.text, value.length, &number) && number >= 0)
            loader->gbdt->best_iteration = number;
    }
}

static foreloop_status read_texts(json_loader *loader, text_list *list) {
    foreloop_json *json = loader->json;
    foreloop_gbdt *gbdt = loader->gbdt;
    list->count = 0;
    FORELOOP_TRY(foreloop_json_array(json));
    for (;;) {
        bool more;
        foreloop_text text;
        FORELOOP_TRY(foreloop_json_element(json, &more));
        if (!more)
            return FORELOOP_OK;
        FORELOOP_TRY(foreloop_json_string(json, &text));
        FORELOOP_TRY(foreloop_reserve(&gbdt->allocator, &list->items, &list->capacity, list->count, list->count + 1,
                                      sizeof *list->items, json->error));
        const char *kept = foreloop_arena_text(&gbdt->texts, text.text, text.length);
        if (!kept)
            return foreloop_fail_memory(json->error, text.length, 1, "a feature name or type");
        list->items[list->count++] = kept;
    }
}

static foreloop_status read_learner_field(void *user, foreloop_text key) {
    json_loader *loader = user;
    if (foreloop_text_is(key, "learner_model_param"))
        return foreloop_json_fields(loader->json, read_parameter, loader);
    if (foreloop_text_is(key, "gradient_booster"))
        return foreloop_json_fields(loader->json, read_booster_field, loader);
    if (foreloop_text_is(key, "objective"))
        return foreloop_json_fields(loader->json, read_objective_field, loader);
    if (foreloop_text_is(key, "attributes"))
        return read_attributes(loader);
    if (foreloop_text_is(key, "feature_names"))
        return read_texts(loader, &loader->names);
    if (foreloop_text_is(key, "feature_types"))
        return read_texts(loader, &loader->types);
    return foreloop_json_skip(loader->json);
}

static foreloop_status read_version(json_loader *loader) {
    foreloop_json *json = loader->json;
    FORELOOP_TRY(foreloop_json_array(json));
    for (size_t i = 0;; i++) {
        bool more;
        size_t part = 0;
        FORELOOP_TRY(foreloop_json_element(json, &more));
        if (!more)
            return FORELOOP_OK;
        FORELOOP_TRY(foreloop_json_size(json, FORELOOP_GBDT_MAX_COUNT, &part));
        if (i < 2)
            loader->version[i] = part;
    }
}

static foreloop_status read_document_field(void *user, foreloop_text key) {
    json_loader *loader = user;
    if (foreloop_text_is(key, "learner")) {
        loader->has_learner = true;
        return foreloop_json_fields(loader->json, read_learner_field, loader);
    }
    if (foreloop_text_is(key, "version"))
        return read_version(loader);
    return foreloop_json_skip(loader->json);
}

/* ---- What only the whole document tells -------------------------------------------------------------------------- */

static foreloop_status check_complete(json_loader *loader) {
    const char *missing = NULL;
    if (!loader->has_learner)
        missing = "\"learner\": it is not a model of XGBoost's save_model";
    else if (loader->base_scores.count == 0)
        missing = "\"learner_model_param\" with a \"base_score\"";
    else if (!loader->has_objective)
        missing = "\"objective\" with a \"name\"";
    else if (!loader->has_booster || !loader->has_trees)
        missing = "\"gradient_booster\" with a \"name\" and \"trees\"";
    if (missing)
        return foreloop_json_fail(loader->json, "the document has no %s", missing);
    if (loader->num_class > 1 && loader->num_target > 1)
        return foreloop_fail(loader->json->error, FORELOOP_ERROR_UNSUPPORTED,
                             "%s: several classes and several targets at once are not supported", loader->json->name);
    return FORELOOP_OK;
}

/* Checks what must agree, and gives the trees their outputs; those of vector leaves count from the tree's own. */
static foreloop_status check_counts(json_loader *loader) {
    foreloop_gbdt *gbdt = loader->gbdt;
    if (loader->has_num_trees && loader->num_trees != gbdt->source_count)
        return foreloop_json_fail(loader->json, "num_trees is %zu, but there are %zu trees", loader->num_trees,
                                  gbdt->source_count);
    if (loader->tree_info.count != gbdt->source_count)
        return foreloop_json_fail(loader->json, "tree_info has %zu elements, but there are %zu trees",
                                  loader->tree_info.count, gbdt->source_count);
    if (loader->trees.has_features && loader->trees.feature_count != gbdt->feature_count)
        return foreloop_json_fail(loader->json, "num_feature is %zu in the trees, but %zu in learner_model_param",
                                  loader->trees.feature_count, gbdt->feature_count);
    for (size_t t = 0; t < gbdt->tree_count; t++) {
        foreloop_gbdt_tree *tree = &gbdt->trees[t];
        size_t output = tree->output + (size_t)loader->tree_info.items[tree->source];
        if (output >= gbdt->output_count)
            return foreloop_json_fail(loader->json, "tree %u adds to output %zu, but there are %zu outputs",
                                      (unsigned)tree->source, output, gbdt->output_count);
        tree->output = (uint32_t)output;
    }
    if (loader->base_scores.count != 1 && loader->base_scores.count != gbdt->output_count)
        return foreloop_json_fail(loader->json, "base_score has %zu elements, but there are %zu outputs",
                                  loader->base_scores.count, gbdt->output_count);
    if ((loader->is_dart && loader->weights.count < gbdt->source_count) || loader->weights.count > gbdt->source_count)
        return foreloop_json_fail(loader->json, "weight_drop has %zu elements, but there are %zu trees",
                                  loader->weights.count, gbdt->source_count);
    if (loader->names.count != 0 && loader->names.count != gbdt->feature_count)
        return foreloop_json_fail(loader->json, "%zu feature_names, but num_feature is %zu", loader->names.count,
                                  gbdt->feature_count);
    if (loader->types.count != 0 && loader->types.count != gbdt->feature_count)
        return foreloop_json_fail(loader->json, "%zu feature_types, but num_feature is %zu", loader->types.count,
                                  gbdt->feature_count);
    return FORELOOP_OK;
}

static foreloop_status set_base_margins(json_loader *loader) {
    foreloop_gbdt *gbdt = loader->gbdt;
    foreloop_error *error = loader->json->error;
    gbdt->base_margins = foreloop_allocate(&gbdt->allocator, gbdt->output_count, sizeof *gbdt->base_margins);
    if (!gbdt->base_margins)
        return foreloop_fail_memory(error, gbdt->output_count, sizeof *gbdt->base_margins, "the base scores");
    foreloop_floats *scores = &loader->base_scores;
    FORELOOP_TRY(foreloop_reserve(&gbdt->allocator, &scores->items, &scores->capacity, scores->count,
                                  gbdt->output_count, sizeof *scores->items, error));
    for (; scores->count < gbdt->output_count; scores->count++)
        scores->items[scores->count] = scores->items[0];
    for (size_t k = 0; k < gbdt->output_count; k++) {
        if (loader->options->has_base_score)
            gbdt->base_margins[k] = loader->options->base_score;
        else if (!foreloop_gbdt_base_margin(gbdt->objective, scores->items, k, &gbdt->base_margins[k]))
            return foreloop_fail(error, FORELOOP_ERROR_VALUE,
                                 "%s: the base_score of output %zu is out of the range of %s", loader->json->name, k,
                                 gbdt->objective->name);
    }
    return FORELOOP_OK;
}

/* Trees that were added to a DART model without dropping any weigh 1, and the list may end before them. */
static foreloop_status fill_weights(json_loader *loader) {
    foreloop_floats *weights = &loader->weights;
    if (!loader->has_weights)
        return FORELOOP_OK;
    FORELOOP_TRY(foreloop_reserve(&loader->gbdt->allocator, &weights->items, &weights->capacity, weights->count,
                                  loader->gbdt->source_count, sizeof *weights->items, loader->json->error));
    while (weights->count < loader->gbdt->source_count)
        weights->items[weights->count++] = 1.0f;
    return FORELOOP_OK;
}

/* Files before XGBoost 2.0 do not say where iterations begin: they are equally long. */
static foreloop_status fill_indptr(json_loader *loader) {
    size_t parallel = loader->num_parallel_tree, groups = 0;
    foreloop_integers *indptr = &loader->iteration_indptr;
    if (parallel == 0)
        parallel = loader->options->num_parallel_tree > 0 ? loader->options->num_parallel_tree : 1;
    for (size_t t = 0; t < loader->tree_info.count; t++)
        if ((size_t)loader->tree_info.items[t] >= groups)
            groups = (size_t)loader->tree_info.items[t] + 1;
    size_t trees = loader->tree_info.count, step = groups * parallel;
    if (groups > 0 && (step / groups != parallel || trees % step != 0))
        return foreloop_json_fail(loader->json, "%zu trees are not whole iterations of %zu trees for %zu outputs",
                                  trees, parallel, groups);
    size_t iterations = groups > 0 ? trees / step : 0;
    FORELOOP_TRY(foreloop_reserve(&loader->gbdt->allocator, &indptr->items, &indptr->capacity, 0, iterations + 1,
                                  sizeof *indptr->items, loader->json->error));
    for (size_t i = 0; i <= iterations; i++)
        indptr->items[i] = (int64_t)(i * step);
    indptr->count = iterations + 1;
    return FORELOOP_OK;
}

static foreloop_status check_indptr(json_loader *loader) {
    const foreloop_integers *indptr = &loader->iteration_indptr;
    bool good = indptr->items[0] == 0 && (uint64_t)indptr->items[indptr->count - 1] == loader->gbdt->source_count;
    for (size_t i = 1; i < indptr->count; i++)
        good = good && indptr->items[i - 1] <= indptr->items[i];
    return good ? FORELOOP_OK
                : foreloop_json_fail(loader->json, "iteration_indptr does not rise from 0 to the number of trees");
}

static foreloop_status add_notes(json_loader *loader) {
    foreloop_error *error = loader->json->error;
    if (loader->has_named_categories)
        FORELOOP_TRY(foreloop_gbdt_note(loader->gbdt, error,
                                        "trained on named categories: rows must hold the numbers that training used"));
    if (strcmp(loader->gbdt->objective->name, "binary:logitraw") == 0 && loader->version[0] == 1 &&
        loader->version[1] < 4)
        FORELOOP_TRY(foreloop_gbdt_note(loader->gbdt, error,
                                        "base_score of binary:logitraw is read as a margin, as XGBoost does since 1.4; "
                                        "the version that wrote this file took it for a probability"));
    return FORELOOP_OK;
}

static foreloop_status complete(json_loader *loader) {
    foreloop_json *json = loader->json;
    foreloop_gbdt *gbdt = loader->gbdt;
    size_t begin = 0, end = 0;
    FORELOOP_TRY(check_complete(loader));
    gbdt->output_count = loader->num_class > loader->num_target ? loader->num_class : loader->num_target;
    if (gbdt->output_count == 0)
        gbdt->output_count = 1;
    FORELOOP_TRY(check_counts(loader));
    if (loader->names.count > 0) {
        gbdt->feature_names = loader->names.items;
        loader->names.items = NULL;
    }
    if (loader->types.count > 0) {
        gbdt->feature_types = loader->types.items;
        loader->types.items = NULL;
    }
    FORELOOP_TRY(set_base_margins(loader));
    FORELOOP_TRY(fill_weights(loader));
    if (loader->iteration_indptr.count == 0)
        FORELOOP_TRY(fill_indptr(loader));
    FORELOOP_TRY(check_indptr(loader));
    gbdt->iteration_count = loader->iteration_indptr.count - 1;
    FORELOOP_TRY(add_notes(loader));
    foreloop_status status = foreloop_gbdt_select(loader->options, gbdt->iteration_count, &begin, &end, json->error);
    if (status == FORELOOP_OK)
        status = foreloop_gbdt_finish(gbdt, loader->has_weights ? loader->weights.items : NULL, loader->weights.count,
                                      (size_t)loader->iteration_indptr.items[begin],
                                      (size_t)loader->iteration_indptr.items[end], json->error);
    return foreloop_gbdt_locate(json, json->offset, status);
}

foreloop_status foreloop_gbdt_load_json(foreloop_gbdt *gbdt, foreloop_json *json,
                                        const foreloop_gbdt_options *options) {
    json_loader loader = {.json = json, .gbdt = gbdt, .options = options};
    loader.trees = (foreloop_gbdt_tree_loader){.json = json, .gbdt = gbdt};
    foreloop_status status = foreloop_json_fields(json, read_document_field, &loader);
    if (status == FORELOOP_OK)
        status = foreloop_json_end(json);
    if (status == FORELOOP_OK)
        status = complete(&loader);
    const foreloop_allocator *allocator = &gbdt->allocator;
    foreloop_release(allocator, loader.base_scores.items);
    foreloop_release(allocator, loader.weights.items);
    foreloop_release(allocator, loader.tree_info.items);
    foreloop_release(allocator, loader.iteration_indptr.items);
    foreloop_release(allocator, (void *)loader.names.items);
    foreloop_release(allocator, (void *)loader.types.items);
    foreloop_gbdt_tree_loader_close(&loader.trees);
    return status;
}
