/* Importance of features from the statistics that training left in the nodes. */
#include "gbdt/model.h"
#include <string.h>

/* Adds up, over the splits of the trees in use, what the kind asks for; `counts` may be NULL. */
static void add_splits(const foreloop_gbdt *gbdt, foreloop_gbdt_importance_kind kind, double *scores, size_t *counts) {
    for (size_t t = 0; t < gbdt->source_count; t++) {
        const foreloop_gbdt_tree *tree = &gbdt->trees[gbdt->source_trees[t]];
        for (size_t i = tree->root; i < (size_t)tree->root + tree->node_count; i++) {
            uint32_t feature = gbdt->nodes[i].feature & FORELOOP_GBDT_FEATURE;
            if (!(gbdt->nodes[i].feature & FORELOOP_GBDT_SPLIT))
                continue;
            if (kind == FORELOOP_GBDT_WEIGHT)
                scores[feature] += 1;
            else if (kind == FORELOOP_GBDT_GAIN || kind == FORELOOP_GBDT_TOTAL_GAIN)
                scores[feature] += (double)gbdt->origins[i].gain;
            else
                scores[feature] += (double)gbdt->origins[i].cover;
            if (counts)
                counts[feature]++;
        }
    }
}

foreloop_status foreloop_gbdt_importance(const foreloop_gbdt *gbdt, foreloop_gbdt_importance_kind kind, double *scores,
                                         foreloop_error *error) {
    if (!gbdt || (!scores && gbdt->feature_count > 0))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_gbdt_importance: an argument is NULL");
    if ((int)kind < FORELOOP_GBDT_WEIGHT || kind > FORELOOP_GBDT_TOTAL_COVER)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_gbdt_importance: unknown kind %d", (int)kind);
    const bool gain = kind == FORELOOP_GBDT_GAIN || kind == FORELOOP_GBDT_TOTAL_GAIN;
    if (gain ? !gbdt->has_gain : kind != FORELOOP_GBDT_WEIGHT && !gbdt->has_cover)
        return foreloop_fail(error, FORELOOP_ERROR_UNSUPPORTED,
                             "the model holds no %s: use save_model, or dump_model with statistics",
                             gain ? "gain (loss_changes)" : "cover (sum_hessian)");
    size_t *counts = NULL;
    if (kind == FORELOOP_GBDT_GAIN || kind == FORELOOP_GBDT_COVER) {
        counts = foreloop_allocate_zeroed(&gbdt->allocator, gbdt->feature_count, sizeof *counts);
        if (!counts)
            return foreloop_fail_memory(error, gbdt->feature_count, sizeof *counts, "the counts of splits");
    }
    for (size_t f = 0; f < gbdt->feature_count; f++)
        scores[f] = 0;
    add_splits(gbdt, kind, scores, counts);
    for (size_t f = 0; counts && f < gbdt->feature_count; f++)
        if (counts[f] > 0)
            scores[f] /= (double)counts[f];
    foreloop_release(&gbdt->allocator, counts);
    return FORELOOP_OK;
}
