/* Other trees than the model's own in a scorer. */
#include "common/alloc.h"
#include "common/error.h"
#include "gbdt/model.h"
#include "scorer.h"
#include <string.h>

foreloop_scorer_ranker foreloop_ranker_of_model(const foreloop_model *model) {
    return (foreloop_scorer_ranker){.gbdt = model->gbdt,
                                    .column_count = model->gbdt_info.feature_count,
                                    .columns = model->ranker_columns,
                                    .reads = model->ranker_reads};
}

void foreloop_ranker_release(const foreloop_model *model, foreloop_scorer_ranker *ranker) {
    if (!ranker->owned)
        return;
    foreloop_release(&model->allocator, (void *)ranker->columns);
    foreloop_release(&model->allocator, (void *)ranker->reads);
}

/* Whether the trees read a feature that is formed by rolling out, and that neither the model's own trees nor its
 * network read. */
static foreloop_status compare_reads(const foreloop_model *model, const uint32_t *columns, const unsigned char *reads,
                                     size_t column_count, bool *reads_more, foreloop_error *error) {
    const foreloop_feature_plan *plan = &model->manifest.plan;
    unsigned char *known = foreloop_allocate_zeroed(&model->allocator, plan->count, sizeof *known);
    if (!known)
        return foreloop_fail_memory(error, plan->count, sizeof *known, "the ranker's features");
    foreloop_model_mark_read(model, known);
    *reads_more = false;
    for (size_t i = 0; i < column_count; i++) {
        const foreloop_feature_source source = plan->features[columns[i]].source;
        *reads_more |=
            reads[i] && !known[columns[i]] && source != FORELOOP_FEATURE_HARDWARE && source != FORELOOP_FEATURE_LENGTH;
    }
    foreloop_release(&model->allocator, known);
    return FORELOOP_OK;
}

static foreloop_status match(const foreloop_model *model, const foreloop_gbdt *gbdt, foreloop_scorer_ranker *ranker,
                             foreloop_error *error) {
    foreloop_gbdt_info info = {.size = sizeof info};
    foreloop_gbdt_get_info(gbdt, &info);
    const size_t count = info.feature_count;
    uint32_t *columns = NULL;
    if (count != model->manifest.plan.count && count > 0 && !foreloop_gbdt_feature_name(gbdt, 0))
        return foreloop_fail(error, FORELOOP_ERROR_MISMATCH,
                             "the ranker has %zu features without names, but the model has %zu: train it on all of "
                             "them, or give them names",
                             count, model->manifest.plan.count);
    FORELOOP_TRY(foreloop_model_match_ranker(model, gbdt, "the ranker", &columns, error));
    unsigned char *reads = foreloop_allocate_zeroed(&model->allocator, count, sizeof *reads);
    foreloop_scorer_ranker made = {
        .gbdt = gbdt, .column_count = count, .columns = columns, .reads = reads, .owned = true};
    foreloop_status status = FORELOOP_OK;
    if (reads) {
        foreloop_gbdt_used_features(gbdt, reads);
        status = compare_reads(model, columns, reads, count, &made.reads_more, error);
    } else {
        status = foreloop_fail_memory(error, count, sizeof *reads, "the ranker's features");
    }
    if (status == FORELOOP_OK)
        *ranker = made;
    else
        foreloop_ranker_release(model, &made);
    return status;
}

foreloop_status foreloop_scorer_set_ranker(foreloop_scorer *scorer, const foreloop_gbdt *ranker,
                                           foreloop_error *error) {
    if (!scorer)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_scorer_set_ranker: the scorer is NULL");
    if (scorer->streaming)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "foreloop_scorer_set_ranker: a stream is open: call foreloop_topk_finish first");
    /* A second scorer takes the first one's place when it is complete. */
    foreloop_scorer made = {.model = scorer->model, .actions = scorer->actions, .hardware = scorer->hardware};
    made.ranker = foreloop_ranker_of_model(scorer->model);
    if (ranker)
        FORELOOP_TRY(match(scorer->model, ranker, &made.ranker, error));
    const foreloop_status status = foreloop_scorer_prepare(&made, error);
    if (status != FORELOOP_OK) {
        foreloop_scorer_release(&made);
        return status;
    }
    made.heap = scorer->heap;
    made.heap_capacity = scorer->heap_capacity;
    foreloop_scorer_release(scorer);
    *scorer = made;
    return FORELOOP_OK;
}
