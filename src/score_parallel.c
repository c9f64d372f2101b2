/* A batch spread over the caller's threads, and scores as weights for samplers. */
#include "common/error.h"
#include "scorer.h"
#include <float.h>
#include <math.h>

typedef struct share {
    foreloop_scorer *const *scorers;
    size_t scorer_count;
    const foreloop_workload *workload;
    const uint32_t *ids;
    const size_t *offsets;
    size_t count;
    float *scores;
} share;

/* Task i has the i-th of even shares, whole blocks each, and the i-th scorer. */
static void score_share(void *argument, size_t index) {
    const share *all = argument;
    const size_t blocks = (all->count + FORELOOP_BLOCK - 1) / FORELOOP_BLOCK, base = blocks / all->scorer_count;
    const size_t longer = blocks % all->scorer_count, before = index < longer ? index : longer;
    const size_t first = (index * base + before) * FORELOOP_BLOCK;
    const size_t end = first + (base + (index < longer)) * FORELOOP_BLOCK;
    if (first < all->count)
        foreloop_score_checked(all->scorers[index], all->workload, all->ids, all->offsets + first,
                               (end < all->count ? end : all->count) - first, all->scores + first);
}

foreloop_status foreloop_score_parallel(foreloop_scorer *const *scorers, size_t scorer_count,
                                        const foreloop_parallel_for *parallel, const foreloop_workload *workload,
                                        const uint32_t *ids, const size_t *offsets, size_t count, float *scores,
                                        foreloop_error *error) {
    if (!scorers || scorer_count == 0 || !parallel || !parallel->run || (count && !scores))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_score_parallel: an argument is NULL or 0");
    for (size_t i = 0; i < scorer_count; i++) {
        if (!scorers[i] || scorers[i]->model != scorers[0]->model || scorers[i]->actions != scorers[0]->actions)
            return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                                 "foreloop_score_parallel: scorer %zu is NULL, or of another model or action table", i);
        if (scorers[i]->ranker.gbdt != scorers[0]->ranker.gbdt)
            return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                                 "foreloop_score_parallel: scorer %zu uses another ranker", i);
        for (size_t j = 0; j < i; j++)
            if (scorers[i] == scorers[j])
                return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                                     "foreloop_score_parallel: scorers %zu and %zu are the same", j, i);
        for (size_t j = 0; j < FORELOOP_HARDWARE_FIELDS; j++)
            if (foreloop_hardware_field(&scorers[i]->hardware, j) != foreloop_hardware_field(&scorers[0]->hardware, j))
                return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                                     "foreloop_score_parallel: scorer %zu is of other hardware", i);
    }
    FORELOOP_TRY(foreloop_check_batch("foreloop_score_parallel", scorers[0], workload, ids, offsets, count, error));
    share all = {scorers, scorer_count, workload, ids, offsets, count, scores};
    if (count)
        parallel->run(parallel->user, scorer_count, score_share, &all);
    return FORELOOP_OK;
}

foreloop_status foreloop_scores_to_weights(const float *scores, size_t count, float temperature, float *weights,
                                           foreloop_error *error) {
    if (count && (!scores || !weights))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_scores_to_weights: an argument is NULL");
    if (!(temperature > 0) || !isfinite(temperature))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "foreloop_scores_to_weights: the temperature must be positive and finite");
    double best = -INFINITY, total = 0;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(scores[i]))
            return foreloop_fail(error, FORELOOP_ERROR_VALUE, "foreloop_scores_to_weights: score %zu is not finite", i);
        best = scores[i] > best ? scores[i] : best;
    }
    for (size_t i = 0; i < count; i++)
        total += exp((scores[i] - best) / temperature);
    for (size_t i = 0; i < count; i++) {
        const double weight = exp((scores[i] - best) / temperature) / total;
        weights[i] = weight > FLT_MIN ? (float)weight : FLT_MIN;
    }
    return FORELOOP_OK;
}
