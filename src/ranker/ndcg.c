/* NDCG of scores, by the relevances that training uses. */
#include "ranker/gradient.h"
#include "ranker/options.h"
#include <math.h>

static double dcg(const foreloop_ranker_labels *labels, const foreloop_ranker_options *options, const size_t *order,
                  size_t count) {
    double sum = 0;
    for (size_t rank = 0; rank < count; rank++)
        sum += foreloop_ranker_gain(options, labels->relevance[order[rank]]) * foreloop_ranker_discount(rank);
    return sum;
}

static foreloop_status compute(const foreloop_ranker_labels *labels, const foreloop_ranker_options *options,
                               const float *scores, size_t k, double *ndcg, foreloop_error *error) {
    size_t *order = foreloop_allocate(labels->allocator, labels->longest, sizeof *order), counted = 0;
    double sum = 0;
    if (!order)
        return foreloop_fail_memory(error, labels->longest, sizeof *order, "the order");
    for (size_t g = 0; g < labels->group_count; g++) {
        const size_t begin = labels->groups[g], count = labels->groups[g + 1] - begin;
        const size_t limit = k && k < count ? k : count;
        for (size_t i = 0; i < count; i++)
            order[i] = begin + i;
        foreloop_ranker_order(order, count, labels->relevance);
        if (count == 0 || labels->relevance[order[0]] == labels->relevance[order[count - 1]])
            continue;
        const double ideal = dcg(labels, options, order, limit);
        foreloop_ranker_order(order, count, scores);
        sum += dcg(labels, options, order, limit) / ideal;
        counted++;
    }
    foreloop_release(labels->allocator, order);
    if (counted == 0)
        return foreloop_fail(error, FORELOOP_ERROR_VALUE,
                             "ranker_ndcg: no group has two rows that differ in relevance");
    *ndcg = sum / (double)counted;
    return FORELOOP_OK;
}

foreloop_status foreloop_ranker_ndcg(const foreloop_ranker_data *data, const foreloop_ranker_options *options,
                                     const float *scores, size_t k, double *ndcg, foreloop_error *error) {
    if (!data || !scores || !ndcg)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "ranker_ndcg: an argument is NULL");
    foreloop_ranker_options own;
    FORELOOP_TRY(foreloop_ranker_options_read(&own, options, error));
    const foreloop_allocator allocator = foreloop_allocator_or_default(own.allocator);
    foreloop_ranker_labels labels;
    /* Relevances as NDCG has them, whatever the ranker is trained for. */
    own.objective = FORELOOP_RANKER_NDCG;
    FORELOOP_TRY(foreloop_ranker_labels_create(&labels, &allocator, data, &own, error));
    for (size_t i = 0; i < labels.rows.row_count; i++)
        if (!isfinite(scores[i])) {
            foreloop_ranker_labels_close(&labels);
            return foreloop_fail(error, FORELOOP_ERROR_VALUE, "ranker_ndcg: the score of row %zu is not finite", i);
        }
    const foreloop_status status = compute(&labels, &own, scores, k, ndcg, error);
    foreloop_ranker_labels_close(&labels);
    return status;
}
