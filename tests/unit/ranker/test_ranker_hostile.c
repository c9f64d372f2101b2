/* Data that cannot be learnt from, wrong options, and memory that runs out at every point. */
#include "failing_allocator.h"
#include "ranker_test.h"
#include "tap.h"
#include <float.h>

static test_data base;

/* Trains on a copy of the data that `change` has spoilt; checks the status, the message and the untouched output. */
static void expect(foreloop_status expected, const char *what, const foreloop_ranker_data *data,
                   const foreloop_ranker_options *options) {
    foreloop_error error = {.message = ""};
    foreloop_gbdt *const untouched = (foreloop_gbdt *)&base;
    foreloop_gbdt *ranker = untouched;
    const foreloop_status status = foreloop_ranker_train(&ranker, data, options, &error);
    CHECK(status == expected && ranker == untouched && error.message[0], "%s: %s", what, error.message);
    if (status == FORELOOP_OK)
        foreloop_gbdt_close(ranker);
}

static foreloop_ranker_options defaults(void) {
    foreloop_ranker_options options;
    foreloop_ranker_options_init(&options, sizeof options);
    options.rounds = 4;
    options.depth = 3;
    return options;
}

static void test_data_errors(void) {
    static test_data bad;
    foreloop_ranker_options options = defaults();
    size_t offsets[TEST_GROUPS + 1];
    foreloop_ranker_data data = base.data;

    bad = base;
    bad.rows.values = bad.values;
    data.rows = &bad.rows;
    bad.values[5 * TEST_COLUMNS + 7] = INFINITY;
    expect(FORELOOP_ERROR_VALUE, "an infinite feature", &data, &options);
    bad.values[5 * TEST_COLUMNS + 7] = -FLT_MAX;
    expect(FORELOOP_ERROR_VALUE, "a feature at the end of the range", &data, &options);

    data = base.data;
    data.relevances = bad.relevances;
    const float wrong[] = {NAN, INFINITY, -1.0f, 32.0f, 1.5f, 1e30f};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        bad.relevances[9] = wrong[i];
        expect(FORELOOP_ERROR_VALUE, "a relevance that cannot be", &data, &options);
    }
    for (size_t i = 0; i < TEST_ROWS; i++)
        bad.relevances[i] = 3.0f;
    expect(FORELOOP_ERROR_VALUE, "all relevances equal", &data, &options);

    data.relevances = NULL;
    data.seconds = bad.seconds;
    const double times[] = {NAN, 0.0, -1.0, -INFINITY};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        bad.seconds[9] = times[i];
        expect(FORELOOP_ERROR_VALUE, "a time that cannot be", &data, &options);
    }
    bad.seconds[9] = INFINITY;
    options.objective = FORELOOP_RANKER_SQUARED_ERROR;
    expect(FORELOOP_ERROR_VALUE, "a failed candidate in regression", &data, &options);
    options.objective = FORELOOP_RANKER_NDCG;

    data = base.data;
    data.seconds = base.seconds;
    expect(FORELOOP_ERROR_ARGUMENT, "times and relevances", &data, &options);
    data.seconds = NULL;
    data.relevances = NULL;
    expect(FORELOOP_ERROR_ARGUMENT, "neither", &data, &options);
    data = base.data;
    data.group_count = 0;
    expect(FORELOOP_ERROR_ARGUMENT, "no groups", &data, &options);
    data = base.data;
    memcpy(offsets, base.offsets, sizeof offsets);
    data.groups = offsets;
    offsets[TEST_GROUPS] = TEST_ROWS - 1;
    expect(FORELOOP_ERROR_ARGUMENT, "groups that end early", &data, &options);
    offsets[TEST_GROUPS] = TEST_ROWS;
    offsets[4] = SIZE_MAX;
    expect(FORELOOP_ERROR_ARGUMENT, "groups that fall", &data, &options);
    offsets[4] = base.offsets[4];
    offsets[0] = 1;
    expect(FORELOOP_ERROR_ARGUMENT, "groups that begin late", &data, &options);
    data = base.data;
    data.size = 0;
    expect(FORELOOP_ERROR_ARGUMENT, "a struct without its size", &data, &options);
    data = base.data;
    bad.rows = base.rows;
    data.rows = &bad.rows;
    bad.rows.column_count = 0;
    expect(FORELOOP_ERROR_ARGUMENT, "no columns", &data, &options);
    bad.rows.column_count = SIZE_MAX;
    expect(FORELOOP_ERROR_LIMIT, "too many columns", &data, &options);
    bad.rows.column_count = TEST_COLUMNS;
    bad.rows.row_count = SIZE_MAX;
    expect(FORELOOP_ERROR_LIMIT, "too many rows", &data, &options);
}

/* Single rows, and groups in which nothing differs, are fine where another group teaches. */
static void test_little_data(void) {
    const float values[] = {1, 2, 3};
    const double seconds[] = {INFINITY, 1.0, 2.0}, alike[] = {1.0, 1.0, 1.0};
    const size_t groups[] = {0, 1, 3}, single[] = {0, 1, 2, 3};
    foreloop_gbdt_rows rows;
    foreloop_ranker_data data;
    foreloop_ranker_options options = defaults();
    foreloop_gbdt *ranker = NULL;
    float margins[3];
    foreloop_gbdt_rows_init(&rows, sizeof rows);
    foreloop_ranker_data_init(&data, sizeof data);
    rows.values = values;
    rows.row_count = 3;
    rows.column_count = 1;
    data.rows = &rows;
    data.groups = groups;
    data.group_count = 2;
    data.seconds = seconds;
    CHECK(foreloop_ranker_train(&ranker, &data, &options, NULL) == FORELOOP_OK &&
              foreloop_gbdt_predict(ranker, values, 3, 1, 1, margins, NULL) == FORELOOP_OK && margins[1] > margins[2],
          "two rows, and one alone that failed");
    foreloop_gbdt_close(ranker);
    data.seconds = alike;
    expect(FORELOOP_ERROR_VALUE, "equal times", &data, &options);
    data.groups = single;
    data.group_count = 3;
    data.seconds = seconds;
    expect(FORELOOP_ERROR_VALUE, "groups of one row", &data, &options);
    /* A constant feature: nothing to split, but no error. */
    const float constant[] = {7, 7, 7};
    rows.values = constant;
    data.groups = groups;
    data.group_count = 2;
    CHECK(foreloop_ranker_train(&ranker, &data, &options, NULL) == FORELOOP_OK, "a constant feature");
    foreloop_gbdt_close(ranker);
    /* Extreme labels. */
    const float huge[] = {1e18f, -1e18f, 0.0f};
    rows.values = values;
    data.seconds = NULL;
    data.relevances = huge;
    options.objective = FORELOOP_RANKER_SQUARED_ERROR;
    options.lambda = 0;
    options.eta = 1;
    CHECK(foreloop_ranker_train(&ranker, &data, &options, NULL) == FORELOOP_OK &&
              foreloop_gbdt_predict(ranker, values, 3, 1, 1, margins, NULL) == FORELOOP_OK && isfinite(margins[0]),
          "huge relevances: %g", (double)margins[0]);
    foreloop_gbdt_close(ranker);
}

static void test_option_errors(void) {
    const float nan = NAN;
    foreloop_ranker_options options;
#define WRONG(field, value)                                                                                            \
    options = defaults();                                                                                              \
    options.field = value;                                                                                             \
    expect(FORELOOP_ERROR_ARGUMENT, #field " = " #value, &base.data, &options)
    WRONG(rounds, 0);
    WRONG(rounds, SIZE_MAX);
    WRONG(depth, 0);
    WRONG(depth, 25);
    WRONG(bins, 1);
    WRONG(bins, 256);
    WRONG(eta, 0.0f);
    WRONG(eta, nan);
    WRONG(eta, 1.5f);
    WRONG(lambda, -1.0f);
    WRONG(lambda, INFINITY);
    WRONG(min_child_weight, nan);
    WRONG(min_split_gain, -1.0f);
    WRONG(subsample, 0.0f);
    WRONG(columns_by_tree, 2.0f);
    WRONG(columns_by_node, nan);
    WRONG(grades, 0);
    WRONG(grades, 32);
    WRONG(grade_power, 0.0f);
    WRONG(base_score, INFINITY);
    WRONG(objective, (foreloop_ranker_objective)3);
    WRONG(pairs, (foreloop_ranker_pairs)2);
    WRONG(tier, (foreloop_tier)9);
    WRONG(feature_name_count, 3);
    WRONG(size, 0);
#undef WRONG
    const char *const names[] = {"a", "b"};
    options = defaults();
    options.feature_names = names;
    options.feature_name_count = 2;
    expect(FORELOOP_ERROR_MISMATCH, "too few names", &base.data, &options);
    CHECK(foreloop_ranker_train(NULL, &base.data, NULL, NULL) == FORELOOP_ERROR_ARGUMENT, "nowhere to write");
    /* An older caller's struct ends before its last fields. */
    foreloop_gbdt *ranker = NULL;
    options = defaults();
    options.size = offsetof(foreloop_ranker_options, depth);
    CHECK(foreloop_ranker_train(&ranker, &base.data, &options, NULL) == FORELOOP_OK, "an older header's options");
    foreloop_gbdt_info info = {.size = sizeof info};
    foreloop_gbdt_get_info(ranker, &info);
    CHECK(info.tree_count == 4 && info.max_depth == 6, "fields that it lacks take their defaults");
    foreloop_gbdt_close(ranker);
}

static void test_start_errors(void) {
    static const char *const names[TEST_COLUMNS] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k",
                                                    "l", "m", "n", "o", "p", "q", "r", "s", "t", "u"};
    const char *others[TEST_COLUMNS];
    foreloop_ranker_options options = defaults();
    foreloop_gbdt *start = NULL;
    foreloop_gbdt_rows rows = base.rows;
    foreloop_ranker_data data = base.data;
    options.feature_names = names;
    options.feature_name_count = TEST_COLUMNS;
    CHECK(foreloop_ranker_train(&start, &base.data, &options, NULL) == FORELOOP_OK, "a start");
    memcpy((void *)others, (const void *)names, sizeof others);
    others[3] = "x";
    options.start = start;
    options.feature_names = others;
    expect(FORELOOP_ERROR_MISMATCH, "another name", &base.data, &options);
    options.feature_name_count = 0;
    rows.column_count--;
    rows.row_stride = TEST_COLUMNS;
    data.rows = &rows;
    expect(FORELOOP_ERROR_MISMATCH, "too few columns", &data, &options);
    foreloop_gbdt *ranker = NULL;
    CHECK(foreloop_ranker_train(&ranker, &base.data, &options, NULL) == FORELOOP_OK &&
              strcmp(foreloop_gbdt_feature_name(ranker, 3), "d") == 0,
          "the start's names stay");
    foreloop_gbdt_close(ranker);
    foreloop_gbdt_close(start);
}

/* Serial: the order of allocations is then the same. */
static void run_tasks(void *user, size_t count, void (*task)(void *argument, size_t index), void *argument) {
    (void)user;
    for (size_t i = 0; i < count; i++)
        task(argument, i);
}

static void test_memory(void) {
    const foreloop_parallel_for parallel = {run_tasks, NULL};
    for (int variant = 0; variant < 3; variant++) {
        foreloop_ranker_options options = defaults();
        foreloop_gbdt *start = NULL;
        size_t n = 0, leaks = 0, wrong = 0;
        options.columns_by_node = variant == 1 ? 0.5f : 1.0f;
        options.subsample = variant == 1 ? 0.5f : 1.0f;
        options.parallel = variant == 2 ? &parallel : NULL;
        (void)foreloop_ranker_train(&start, &base.data, &options, NULL);
        options.start = variant == 2 ? start : NULL;
        for (;; n++) {
            failing_allocator memory = {.fail_at = n};
            const foreloop_allocator allocator = failing_allocator_use(&memory);
            foreloop_gbdt *ranker = NULL;
            size_t size;
            options.allocator = &allocator;
            foreloop_status status = foreloop_ranker_train(&ranker, &base.data, &options, NULL);
            if (status == FORELOOP_OK)
                status = foreloop_gbdt_save_memory(ranker, NULL, 0, &size, NULL);
            wrong += memory.failed ? status != FORELOOP_ERROR_MEMORY : status != FORELOOP_OK;
            foreloop_gbdt_close(ranker);
            leaks += memory.live;
            if (!memory.failed)
                break;
        }
        CHECK(n > 20 && leaks == 0 && wrong == 0, "variant %d: memory runs out at each of %zu allocations", variant, n);
        foreloop_gbdt_close(start);
    }
}

static void test_ndcg_errors(void) {
    float scores[TEST_ROWS] = {0};
    double ndcg = 7;
    foreloop_error error = {.message = ""};
    CHECK(foreloop_ranker_ndcg(&base.data, NULL, scores, 0, &ndcg, NULL) == FORELOOP_OK && ndcg > 0 && ndcg < 1,
          "NDCG of equal scores: %.3f", ndcg);
    CHECK(foreloop_ranker_ndcg(&base.data, NULL, base.relevances, 0, &ndcg, NULL) == FORELOOP_OK && ndcg == 1.0,
          "NDCG of the relevances themselves: %.3f", ndcg);
    scores[3] = NAN;
    ndcg = 7;
    CHECK(foreloop_ranker_ndcg(&base.data, NULL, scores, 0, &ndcg, &error) == FORELOOP_ERROR_VALUE && ndcg == 7,
          "a score that is not a number: %s", error.message);
    CHECK(foreloop_ranker_ndcg(&base.data, NULL, NULL, 0, &ndcg, &error) == FORELOOP_ERROR_ARGUMENT, "no scores");
}

int main(void) {
    test_data_make(&base, 3);
    test_data_errors();
    test_little_data();
    test_option_errors();
    test_start_errors();
    test_memory();
    test_ndcg_errors();
    return tap_done();
}
