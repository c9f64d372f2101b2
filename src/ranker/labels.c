/* Options and data: every check of what the caller gives, and the rule that makes relevances from times. */
#include "ranker/labels.h"
#include "common/number.h"
#include "common/sized.h"
#include "ranker/options.h"
#include <math.h>
#include <string.h>

/* ---- Options ----------------------------------------------------------------------------------------------------- */

void foreloop_ranker_options_init(foreloop_ranker_options *options, size_t size) {
    foreloop_ranker_options full = {.grades = 15,
                                    .grade_power = 0.5f,
                                    .rounds = 300,
                                    .depth = 6,
                                    .bins = 255,
                                    .eta = 0.1f,
                                    .lambda = 1.0f,
                                    .subsample = 1.0f,
                                    .columns_by_tree = 1.0f,
                                    .columns_by_node = 1.0f};
    if (!options || size < sizeof size)
        return;
    foreloop_sized_init(options, size);
    full.size = size;
    memcpy(options, &full, size < sizeof full ? size : sizeof full);
}

void foreloop_ranker_data_init(foreloop_ranker_data *data, size_t size) {
    foreloop_sized_init(data, size);
}

static bool is_share(float value) {
    return value > 0.0f && value <= 1.0f;
}

static bool is_penalty(float value) {
    return value >= 0.0f && value <= 1e18f;
}

static const char *wrong_option(const foreloop_ranker_options *options) {
    if ((unsigned)options->objective > FORELOOP_RANKER_SQUARED_ERROR)
        return "objective is not one of foreloop_ranker_objective";
    if ((unsigned)options->pairs > FORELOOP_RANKER_PAIRS_MEAN)
        return "pairs is not one of foreloop_ranker_pairs";
    if (options->tier < FORELOOP_TIER_BEST || options->tier > FORELOOP_TIER_AVX512)
        return "tier is not one of foreloop_tier";
    if (options->grades < 1 || options->grades > FORELOOP_RANKER_MAX_GRADE)
        return "grades must be from 1 to 31";
    if (!(options->grade_power > 0.0f && options->grade_power <= 100.0f))
        return "grade_power must be above 0, to 100";
    if (options->rounds < 1 || options->rounds > 1000000)
        return "rounds must be from 1 to 1,000,000";
    if (options->depth < 1 || options->depth > FORELOOP_RANKER_MAX_DEPTH)
        return "depth must be from 1 to 24";
    if (options->bins < 2 || options->bins > 255)
        return "bins must be from 2 to 255";
    if (!is_share(options->eta))
        return "eta must be above 0, to 1";
    if (!is_penalty(options->lambda) || !is_penalty(options->min_child_weight) || !is_penalty(options->min_split_gain))
        return "lambda, min_child_weight and min_split_gain must be from 0 to 1e18";
    if (!is_share(options->subsample) || !is_share(options->columns_by_tree) || !is_share(options->columns_by_node))
        return "subsample, columns_by_tree and columns_by_node must be above 0, to 1";
    if (!(fabsf(options->base_score) <= 1e18f))
        return "base_score must be a number within 1e18 of 0";
    if (options->feature_name_count && !options->feature_names)
        return "feature_name_count is given without feature_names";
    if (options->parallel && !options->parallel->run)
        return "parallel has no run function";
    return NULL;
}

foreloop_status foreloop_ranker_options_read(foreloop_ranker_options *own, const foreloop_ranker_options *given,
                                             foreloop_error *error) {
    foreloop_ranker_options_init(own, sizeof *own);
    if (given) {
        foreloop_ranker_options checked;
        FORELOOP_TRY(foreloop_sized_read(&checked, sizeof checked, given, "foreloop_ranker_options", error));
        memcpy(own, given, given->size < sizeof *own ? given->size : sizeof *own);
    }
    const char *wrong = wrong_option(own);
    return wrong ? foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_ranker_options: %s", wrong) : FORELOOP_OK;
}

/* ---- Relevances -------------------------------------------------------------------------------------------------- */

double foreloop_ranker_gain(const foreloop_ranker_options *options, float relevance) {
    return options->linear_gain ? (double)relevance : ldexp(1.0, (int)relevance) - 1.0;
}

double foreloop_ranker_discount(size_t rank) {
    return 1.0 / log2((double)rank + 2.0);
}

/* `best` is the group's least time. */
static foreloop_status relevance_of_time(const foreloop_ranker_options *options, double best, double time,
                                         float *relevance) {
    if (options->objective == FORELOOP_RANKER_NDCG)
        *relevance = (float)floor((double)options->grades * pow(best / time, (double)options->grade_power) + 0.5);
    else
        *relevance = (float)(log(best) - log(time));
    /* Pairs only ask which is higher. */
    return isfinite(*relevance) || options->objective == FORELOOP_RANKER_PAIRWISE ? FORELOOP_OK : FORELOOP_ERROR_VALUE;
}

static foreloop_status relevances_of_times(foreloop_ranker_labels *labels, const foreloop_ranker_options *options,
                                           const double *seconds, size_t begin, size_t end, foreloop_error *error) {
    double best = INFINITY;
    for (size_t i = begin; i < end; i++) {
        if (!(seconds[i] > 0.0))
            return foreloop_fail(error, FORELOOP_ERROR_VALUE,
                                 "row %zu: its time must be above 0 seconds, or infinite where it failed", i);
        best = seconds[i] < best ? seconds[i] : best;
    }
    for (size_t i = begin; i < end; i++) {
        /* Of a group in which all failed nothing is known but that they are alike. */
        const double time = isinf(best) ? 1.0 : seconds[i];
        if (relevance_of_time(options, isinf(best) ? 1.0 : best, time, &labels->relevance[i]) != FORELOOP_OK)
            return foreloop_fail(error, FORELOOP_ERROR_VALUE,
                                 "row %zu: it has no finite time, which squared error needs: leave it out", i);
    }
    return FORELOOP_OK;
}

static foreloop_status check_relevance(const foreloop_ranker_options *options, float relevance, size_t row,
                                       foreloop_error *error) {
    if (!(fabsf(relevance) <= 1e18f))
        return foreloop_fail(error, FORELOOP_ERROR_VALUE, "row %zu: its relevance must be a number within 1e18 of 0",
                             row);
    if (options->objective != FORELOOP_RANKER_NDCG)
        return FORELOOP_OK;
    if (relevance < 0.0f)
        return foreloop_fail(error, FORELOOP_ERROR_VALUE, "row %zu: its relevance must not be negative for NDCG", row);
    if (!options->linear_gain && (relevance > (float)FORELOOP_RANKER_MAX_GRADE || relevance != floorf(relevance)))
        return foreloop_fail(error, FORELOOP_ERROR_VALUE,
                             "row %zu: its relevance must be a whole number to 31 for NDCG with its exponential gain: "
                             "scale it, or choose linear_gain",
                             row);
    return FORELOOP_OK;
}

/* ---- Data -------------------------------------------------------------------------------------------------------- */

static foreloop_status check_rows(foreloop_gbdt_rows *rows, foreloop_error *error) {
    if (rows->row_count == 0 || rows->column_count == 0 || !rows->values)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "ranker_train: there are no rows, or no columns");
    if (rows->row_count > FORELOOP_RANKER_MAX_ROWS || rows->column_count > FORELOOP_RANKER_MAX_COLUMNS)
        return foreloop_fail(error, FORELOOP_ERROR_LIMIT, "ranker_train: more than 2^28 rows or 2^24 columns");
    rows->column_stride = rows->column_stride ? rows->column_stride : 1;
    if (rows->column_count > SIZE_MAX / rows->column_stride)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "ranker_train: the column stride is too large");
    rows->row_stride = rows->row_stride ? rows->row_stride : rows->column_count * rows->column_stride;
    return FORELOOP_OK;
}

static foreloop_status check_groups(foreloop_ranker_labels *labels, foreloop_error *error) {
    const size_t *groups = labels->groups;
    if (groups[0] != 0 || groups[labels->group_count] != labels->rows.row_count)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "ranker_train: groups must begin at row 0 and end at %zu, the number of rows",
                             labels->rows.row_count);
    for (size_t g = 0; g < labels->group_count; g++) {
        if (groups[g] > groups[g + 1])
            return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "ranker_train: group %zu ends before it begins", g);
        labels->longest = groups[g + 1] - groups[g] > labels->longest ? groups[g + 1] - groups[g] : labels->longest;
    }
    return FORELOOP_OK;
}

static foreloop_status fill(foreloop_ranker_labels *labels, const foreloop_ranker_data *data,
                            const foreloop_ranker_options *options, foreloop_error *error) {
    for (size_t i = 0; data->relevances && i < labels->rows.row_count; i++) {
        FORELOOP_TRY(check_relevance(options, data->relevances[i], i, error));
        labels->relevance[i] = data->relevances[i];
    }
    for (size_t g = 0; g < labels->group_count; g++) {
        const size_t begin = labels->groups[g], end = labels->groups[g + 1];
        if (data->seconds)
            FORELOOP_TRY(relevances_of_times(labels, options, data->seconds, begin, end, error));
        for (size_t i = begin; i < end; i++)
            labels->comparable |= labels->relevance[i] != labels->relevance[begin];
    }
    return FORELOOP_OK;
}

foreloop_status foreloop_ranker_labels_create(foreloop_ranker_labels *labels, const foreloop_allocator *allocator,
                                              const foreloop_ranker_data *data, const foreloop_ranker_options *options,
                                              foreloop_error *error) {
    foreloop_ranker_data own;
    FORELOOP_TRY(foreloop_sized_read(&own, sizeof own, data, "foreloop_ranker_data", error));
    if (!own.rows || !own.groups || own.group_count == 0 || (own.seconds != NULL) == (own.relevances != NULL))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "foreloop_ranker_data: rows, groups, and one of seconds and relevances are needed");
    foreloop_ranker_labels made = {.allocator = allocator, .groups = own.groups, .group_count = own.group_count};
    FORELOOP_TRY(foreloop_sized_read(&made.rows, sizeof made.rows, own.rows, "foreloop_gbdt_rows", error));
    FORELOOP_TRY(check_rows(&made.rows, error));
    FORELOOP_TRY(check_groups(&made, error));
    made.relevance = foreloop_allocate(allocator, made.rows.row_count, sizeof *made.relevance);
    if (!made.relevance)
        return foreloop_fail_memory(error, made.rows.row_count, sizeof *made.relevance, "the relevances");
    const foreloop_status status = fill(&made, &own, options, error);
    if (status != FORELOOP_OK)
        foreloop_ranker_labels_close(&made);
    else
        *labels = made;
    return status;
}

void foreloop_ranker_labels_close(foreloop_ranker_labels *labels) {
    foreloop_release(labels->allocator, labels->relevance);
}
