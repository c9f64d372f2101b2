/* Boosting: rounds of gradients and trees, and the trees as a foreloop_gbdt. */
#include "common/sized.h"
#include "gbdt/layout.h"
#include "gbdt/model.h"
#include "kernels_cpu/cpu.h"
#include "ranker/grow.h"
#include "ranker/options.h"
#include <math.h>
#include <string.h>

typedef struct ranker_trainer {
    foreloop_allocator allocator;
    foreloop_ranker_options options;
    foreloop_boost kernels;
    foreloop_ranker_labels labels;
    foreloop_ranker_bins bins;
    foreloop_ranker_gradients gradients;
    foreloop_ranker_grower grower;
    float *scores;
    foreloop_gbdt *gbdt;
    foreloop_gbdt_source_node *source; /* the nodes of one tree, breadth first */
    size_t source_capacity;
    uint32_t *queue; /* their numbers in the grower, or in `start` */
    size_t queue_capacity;
} ranker_trainer;

/* ---- Trees ------------------------------------------------------------------------------------------------------- */

static foreloop_status reserve_source(ranker_trainer *trainer, size_t count, foreloop_error *error) {
    FORELOOP_TRY(foreloop_reserve(&trainer->allocator, &trainer->source, &trainer->source_capacity, 0, count,
                                  sizeof *trainer->source, error));
    return foreloop_reserve(&trainer->allocator, &trainer->queue, &trainer->queue_capacity, 0, count,
                            sizeof *trainer->queue, error);
}

/* `start` is where the tree comes from, NULL for a new one. */
static foreloop_status add_source(ranker_trainer *trainer, size_t count, const foreloop_gbdt *start,
                                  foreloop_error *error) {
    const foreloop_gbdt_source_tree tree = {.nodes = trainer->source,
                                            .node_count = count,
                                            .width = 1,
                                            .has_gain = !start || start->has_gain,
                                            .has_cover = !start || start->has_cover};
    return foreloop_gbdt_add_tree(trainer->gbdt, &tree, error);
}

/* Adds the tree that was grown. */
static foreloop_status add_grown(ranker_trainer *trainer, foreloop_error *error) {
    const foreloop_ranker_grower *grower = &trainer->grower;
    FORELOOP_TRY(reserve_source(trainer, grower->node_count, error));
    uint32_t *queue = trainer->queue;
    size_t count = 1;
    queue[0] = 0;
    for (size_t i = 0; i < count; i++) {
        const foreloop_ranker_node *node = &grower->nodes[queue[i]];
        foreloop_gbdt_source_node *made = &trainer->source[i];
        *made = (foreloop_gbdt_source_node){
            .left = -1,
            .right = -1,
            .value = node->value,
            .origin = {.id = (uint32_t)i,
                       .cover = (float)((double)foreloop_boost_hessian(node->sum) * trainer->gradients.hessian_unit)}};
        if (node->left == 0)
            continue;
        const foreloop_ranker_feature *feature = &trainer->bins.features[node->feature];
        made->left = (int64_t)count;
        made->right = (int64_t)count + 1;
        made->value = feature->cuts[node->code - 1];
        made->feature = feature->column;
        made->default_left = node->missing_left;
        made->origin.gain = (float)node->gain;
        queue[count++] = (uint32_t)node->left;
        queue[count++] = (uint32_t)node->left + 1;
    }
    return add_source(trainer, count, NULL, error);
}

/* Adds a tree of the ranker that training goes on from. */
static foreloop_status add_old(ranker_trainer *trainer, const foreloop_gbdt *start, const foreloop_gbdt_tree *tree,
                               foreloop_error *error) {
    FORELOOP_TRY(reserve_source(trainer, tree->node_count, error));
    for (size_t i = 0; i < tree->node_count; i++) {
        const foreloop_gbdt_node *node = &start->nodes[tree->root + i];
        const bool split = (node->feature & FORELOOP_GBDT_SPLIT) != 0;
        trainer->source[i] =
            (foreloop_gbdt_source_node){.left = split ? (int64_t)(node->left - tree->root) : -1,
                                        .right = split ? (int64_t)(node->left - tree->root) + 1 : -1,
                                        .value = split ? node->split.threshold : node->split.leaf,
                                        .feature = node->feature & FORELOOP_GBDT_FEATURE,
                                        .origin = start->origins[tree->root + i],
                                        .default_left = (node->feature & FORELOOP_GBDT_DEFAULT_LEFT) != 0};
        trainer->source[i].origin.id = (uint32_t)i;
    }
    return add_source(trainer, tree->node_count, start, error);
}

/* ---- The start --------------------------------------------------------------------------------------------------- */

static foreloop_status check_names(const ranker_trainer *trainer, foreloop_error *error) {
    const foreloop_ranker_options *options = &trainer->options;
    const size_t columns = trainer->labels.rows.column_count;
    if (options->feature_name_count && options->feature_name_count != columns)
        return foreloop_fail(error, FORELOOP_ERROR_MISMATCH, "foreloop_ranker_train: %zu feature names for %zu columns",
                             options->feature_name_count, columns);
    for (size_t i = 0; i < options->feature_name_count; i++) {
        const char *old = options->start ? foreloop_gbdt_feature_name(options->start, i) : NULL;
        if (!options->feature_names[i])
            return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                                 "foreloop_ranker_train: the name of feature %zu is NULL", i);
        if (old && strcmp(old, options->feature_names[i]) != 0)
            return foreloop_fail(
                error, FORELOOP_ERROR_MISMATCH,
                "foreloop_ranker_train: feature %zu is '%.60s', but the trees to go on from call it '%.60s'", i,
                options->feature_names[i], old);
    }
    return FORELOOP_OK;
}

static foreloop_status check_start(const ranker_trainer *trainer, foreloop_error *error) {
    const foreloop_gbdt *start = trainer->options.start;
    const size_t columns = trainer->labels.rows.column_count;
    if (start->output_count != 1)
        return foreloop_fail(error, FORELOOP_ERROR_UNSUPPORTED,
                             "foreloop_ranker_train: the trees to go on from have %zu outputs, not one",
                             start->output_count);
    for (size_t t = 0; t < start->tree_count; t++)
        if (start->trees[t].categorical)
            return foreloop_fail(error, FORELOOP_ERROR_UNSUPPORTED,
                                 "foreloop_ranker_train: the trees to go on from have categorical splits");
    /* A dump does not tell columns that it does not read. */
    if (start->feature_count > columns ||
        (start->feature_count < columns && start->objective != foreloop_gbdt_unknown_objective()))
        return foreloop_fail(error, FORELOOP_ERROR_MISMATCH,
                             "foreloop_ranker_train: %zu columns, but the trees to go on from have %zu", columns,
                             start->feature_count);
    return FORELOOP_OK;
}

/* What loaders set. */
static foreloop_status begin_gbdt(ranker_trainer *trainer, foreloop_error *error) {
    static const char *const objectives[] = {"rank:ndcg", "rank:pairwise", "reg:squarederror"};
    const foreloop_ranker_options *options = &trainer->options;
    const foreloop_gbdt *start = options->start;
    FORELOOP_TRY(foreloop_gbdt_create(&trainer->gbdt, &trainer->allocator, error));
    foreloop_gbdt *gbdt = trainer->gbdt;
    const char *objective = objectives[options->objective];
    gbdt->objective = foreloop_gbdt_find_objective((foreloop_text){objective, strlen(objective)});
    gbdt->feature_count = trainer->labels.rows.column_count;
    gbdt->output_count = 1;
    gbdt->base_margins = foreloop_allocate(&gbdt->allocator, 1, sizeof *gbdt->base_margins);
    if (!gbdt->base_margins)
        return foreloop_fail_memory(error, 1, sizeof *gbdt->base_margins, "the trees");
    gbdt->base_margins[0] = start ? start->base_margins[0] : options->base_score;
    const bool named = options->feature_name_count > 0 || (start && start->feature_names);
    if (named) {
        gbdt->feature_names = foreloop_allocate(&gbdt->allocator, gbdt->feature_count, sizeof *gbdt->feature_names);
        if (!gbdt->feature_names)
            return foreloop_fail_memory(error, gbdt->feature_count, sizeof *gbdt->feature_names, "the feature names");
    }
    for (size_t i = 0; named && i < gbdt->feature_count; i++) {
        const char *name = options->feature_name_count ? options->feature_names[i] : start->feature_names[i];
        gbdt->feature_names[i] = foreloop_arena_text(&gbdt->texts, name, strlen(name));
        if (!gbdt->feature_names[i])
            return foreloop_fail_memory(error, strlen(name), 1, "a feature name");
    }
    for (size_t t = 0; start && t < start->tree_count; t++)
        FORELOOP_TRY(add_old(trainer, start, &start->trees[t], error));
    return FORELOOP_OK;
}

/* Where the rows stand before the first round. */
static foreloop_status begin_scores(ranker_trainer *trainer, foreloop_error *error) {
    const size_t rows = trainer->labels.rows.row_count;
    trainer->scores = foreloop_allocate(&trainer->allocator, rows, sizeof *trainer->scores);
    if (!trainer->scores)
        return foreloop_fail_memory(error, rows, sizeof *trainer->scores, "the scores");
    if (trainer->options.start)
        return foreloop_gbdt_predict_rows(trainer->options.start, &trainer->labels.rows, FORELOOP_GBDT_MARGIN,
                                          trainer->scores, error);
    for (size_t i = 0; i < rows; i++)
        trainer->scores[i] = trainer->options.base_score;
    return FORELOOP_OK;
}

static foreloop_status begin(ranker_trainer *trainer, const foreloop_ranker_data *data, foreloop_error *error) {
    const foreloop_ranker_options *options = &trainer->options;
    FORELOOP_TRY(foreloop_ranker_labels_create(&trainer->labels, &trainer->allocator, data, options, error));
    FORELOOP_TRY(check_names(trainer, error));
    if (options->start)
        FORELOOP_TRY(check_start(trainer, error));
    if (!trainer->labels.comparable && options->objective != FORELOOP_RANKER_SQUARED_ERROR)
        return foreloop_fail(
            error, FORELOOP_ERROR_VALUE,
            "foreloop_ranker_train: no group has two rows that differ in relevance: there is nothing to learn");
    foreloop_boost_init(&trainer->kernels, foreloop_cpu_tier(options->tier));
    FORELOOP_TRY(foreloop_ranker_bins_create(&trainer->bins, &trainer->allocator, &trainer->labels.rows, options->bins,
                                             options->parallel, error));
    FORELOOP_TRY(foreloop_ranker_gradients_create(&trainer->gradients, &trainer->allocator, &trainer->labels, options,
                                                  &trainer->kernels, error));
    FORELOOP_TRY(foreloop_ranker_grower_create(&trainer->grower, &trainer->allocator, &trainer->bins, options,
                                               &trainer->kernels, &trainer->gradients, error));
    FORELOOP_TRY(begin_scores(trainer, error));
    return begin_gbdt(trainer, error);
}

/* ---- Rounds ------------------------------------------------------------------------------------------------------ */

static foreloop_status check_scores(const ranker_trainer *trainer, foreloop_error *error) {
    for (size_t i = 0; i < trainer->labels.rows.row_count; i++)
        if (!(fabsf(trainer->scores[i]) <= 1e30f))
            return foreloop_fail(error, FORELOOP_ERROR_VALUE,
                                 "foreloop_ranker_train: the scores overflow: raise lambda, or lower eta");
    return FORELOOP_OK;
}

static foreloop_status train(ranker_trainer *trainer, const foreloop_ranker_data *data, foreloop_error *error) {
    const foreloop_ranker_options *options = &trainer->options;
    FORELOOP_TRY(begin(trainer, data, error));
    const size_t old = trainer->gbdt->source_count;
    FORELOOP_TRY(check_scores(trainer, error));
    for (size_t round = 0; round < options->rounds; round++) {
        /* What is drawn goes on where the earlier rounds ended. */
        foreloop_ranker_gradients_compute(&trainer->gradients, trainer->scores, old + round);
        FORELOOP_TRY(foreloop_ranker_grow(&trainer->grower, old + round, trainer->scores, error));
        FORELOOP_TRY(add_grown(trainer, error));
        FORELOOP_TRY(check_scores(trainer, error));
        if (options->progress && options->progress(options->progress_user, round + 1, options->rounds))
            break;
    }
    foreloop_gbdt *gbdt = trainer->gbdt;
    gbdt->iteration_count = gbdt->source_count;
    FORELOOP_TRY(foreloop_gbdt_finish(gbdt, NULL, 0, 0, gbdt->source_count, error));
    return foreloop_gbdt_layout_make(gbdt, options->tier, error);
}

foreloop_status foreloop_ranker_train(foreloop_gbdt **ranker, const foreloop_ranker_data *data,
                                      const foreloop_ranker_options *options, foreloop_error *error) {
    if (!ranker || !data)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_ranker_train: an argument is NULL");
    ranker_trainer trainer = {.gbdt = NULL};
    FORELOOP_TRY(foreloop_ranker_options_read(&trainer.options, options, error));
    const foreloop_allocator *allocator = &trainer.allocator;
    trainer.allocator = foreloop_allocator_or_default(trainer.options.allocator);
    trainer.labels.allocator = trainer.bins.allocator = allocator;
    trainer.gradients.allocator = trainer.grower.allocator = allocator;
    const foreloop_status status = train(&trainer, data, error);
    if (status == FORELOOP_OK)
        *ranker = trainer.gbdt;
    else
        foreloop_gbdt_close(trainer.gbdt);
    foreloop_release(allocator, trainer.queue);
    foreloop_release(allocator, trainer.source);
    foreloop_release(allocator, trainer.scores);
    foreloop_ranker_grower_close(&trainer.grower);
    foreloop_ranker_gradients_close(&trainer.gradients);
    foreloop_ranker_bins_close(&trainer.bins);
    foreloop_ranker_labels_close(&trainer.labels);
    return status;
}
