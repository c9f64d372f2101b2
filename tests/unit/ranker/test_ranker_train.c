/* Training: what it learns, and that the bits depend on data, options and seed alone. */
#include "kernels_cpu/cpu.h"
#include "ranker_test.h"
#include "tap.h"

static foreloop_gbdt *train(const foreloop_ranker_data *data, const foreloop_ranker_options *options) {
    foreloop_error error = {.message = ""};
    foreloop_gbdt *ranker = NULL;
    if (foreloop_ranker_train(&ranker, data, options, &error) != FORELOOP_OK)
        printf("# %s\n", error.message);
    return ranker;
}

static char *save(const foreloop_gbdt *ranker, size_t *size) {
    if (!ranker || foreloop_gbdt_save_memory(ranker, NULL, 0, size, NULL) != FORELOOP_OK)
        return NULL;
    char *text = malloc(*size);
    if (text && foreloop_gbdt_save_memory(ranker, text, *size, size, NULL) != FORELOOP_OK) {
        free(text);
        text = NULL;
    }
    return text;
}

/* The same document; closes both. */
static bool same(foreloop_gbdt *a, foreloop_gbdt *b) {
    size_t a_size = 0, b_size = 0;
    char *a_text = save(a, &a_size), *b_text = save(b, &b_size);
    const bool result = a_text && b_text && a_size == b_size && memcmp(a_text, b_text, a_size) == 0;
    free(a_text);
    free(b_text);
    foreloop_gbdt_close(a);
    foreloop_gbdt_close(b);
    return result;
}

static foreloop_ranker_options defaults(void) {
    foreloop_ranker_options options;
    foreloop_ranker_options_init(&options, sizeof options);
    options.rounds = 20;
    options.depth = 4;
    return options;
}

/* ---- Bits -------------------------------------------------------------------------------------------------------- */

/* Runs the tasks from the last to the first. */
static void run_backwards(void *user, size_t count, void (*task)(void *argument, size_t index), void *argument) {
    (void)user;
    for (size_t i = count; i-- > 0;)
        task(argument, i);
}

static void vary(foreloop_ranker_options *options, int variant) {
    static const foreloop_ranker_objective objectives[] = {FORELOOP_RANKER_NDCG, FORELOOP_RANKER_PAIRWISE,
                                                           FORELOOP_RANKER_SQUARED_ERROR};
    options->objective = objectives[variant % 3];
    options->pairs = variant / 3 % 2 ? FORELOOP_RANKER_PAIRS_MEAN : FORELOOP_RANKER_PAIRS_TOP;
    if (variant / 6 % 2) {
        options->subsample = 0.6f;
        options->columns_by_tree = 0.7f;
    }
    options->columns_by_node = variant / 12 % 2 ? 0.4f : 1.0f;
    options->bins = variant % 5 == 4 ? 7 : 255;
    options->seed = 42;
}

static void test_bits(const test_data *data) {
    const foreloop_parallel_for parallel = {run_backwards, NULL};
    for (int variant = 0; variant < 24; variant++) {
        foreloop_ranker_options options = defaults();
        vary(&options, variant);
        options.tier = FORELOOP_TIER_REF;
        foreloop_gbdt *once = train(&data->data, &options), *reference = train(&data->data, &options);
        bool good = same(once, reference);
        for (foreloop_tier tier = FORELOOP_TIER_REF; tier <= foreloop_cpu_tier(FORELOOP_TIER_BEST); tier++) {
            options.tier = FORELOOP_TIER_REF;
            options.parallel = NULL;
            reference = train(&data->data, &options);
            options.tier = tier;
            options.parallel = &parallel;
            good = good && same(train(&data->data, &options), reference);
        }
        CHECK(good, "variant %d: the same bits twice, in every tier, and in any order of tasks", variant);
        options.parallel = NULL;
        options.tier = FORELOOP_TIER_BEST;
        options.rounds = 12;
        foreloop_gbdt *begun = train(&data->data, &options);
        options.start = begun;
        options.rounds = 8;
        foreloop_gbdt *gone_on = train(&data->data, &options);
        options.start = NULL;
        options.rounds = 20;
        CHECK(same(gone_on, train(&data->data, &options)), "variant %d: 12 rounds and 8 more are 20 rounds", variant);
        foreloop_gbdt_close(begun);
    }
}

/* The layout of the rows does not matter, nor what stands for a missing value. */
static void test_layout(const test_data *data) {
    static float columns[TEST_ROWS * TEST_COLUMNS];
    const foreloop_ranker_options options = defaults();
    foreloop_gbdt_rows rows = data->rows;
    foreloop_ranker_data other = data->data;
    for (size_t r = 0; r < TEST_ROWS; r++)
        for (size_t c = 0; c < TEST_COLUMNS; c++) {
            const float value = data->values[r * TEST_COLUMNS + c];
            columns[c * TEST_ROWS + r] = isnan(value) ? -99.0f : value;
        }
    rows.values = columns;
    rows.row_stride = 1;
    rows.column_stride = TEST_ROWS;
    rows.has_missing = 1;
    rows.missing = -99.0f;
    other.rows = &rows;
    CHECK(same(train(&data->data, &options), train(&other, &options)), "by columns, with a sentinel: the same trees");
}

/* ---- What is learnt ---------------------------------------------------------------------------------------------- */

static double ndcg_of(const foreloop_gbdt *ranker, const test_data *data) {
    static float margins[TEST_ROWS];
    double result = -1;
    if (!ranker ||
        foreloop_gbdt_predict(ranker, data->values, TEST_ROWS, TEST_COLUMNS, 1, margins, NULL) != FORELOOP_OK ||
        foreloop_ranker_ndcg(&data->data, NULL, margins, 10, &result, NULL) != FORELOOP_OK)
        return -1;
    return result;
}

static void test_learning(const test_data *data, const test_data *unseen) {
    static const char *const names[] = {"ndcg", "pairwise", "squared error"};
    for (int objective = 0; objective < 3; objective++)
        for (int mean = 0; mean < 2; mean++) {
            foreloop_ranker_options options = defaults();
            options.objective = (foreloop_ranker_objective)objective;
            options.pairs = (foreloop_ranker_pairs)mean;
            options.pair_count = mean ? 8 : 0;
            options.rounds = 60;
            foreloop_gbdt *ranker = train(&data->data, &options);
            const double seen = ndcg_of(ranker, data), other = ndcg_of(ranker, unseen);
            CHECK(seen > 0.95 && other > 0.7, "%s, %s: NDCG@10 %.3f, on unseen groups %.3f", names[objective],
                  mean ? "mean" : "top", seen, other);
            foreloop_gbdt_close(ranker);
        }
}

/* The best single split by trying all, for squared error: gain and side of missing values. */
static void test_split(const test_data *data) {
    foreloop_ranker_options options = defaults();
    options.objective = FORELOOP_RANKER_SQUARED_ERROR;
    options.rounds = options.depth = 1;
    options.eta = 1.0f;
    foreloop_gbdt *ranker = train(&data->data, &options);
    double best = 0, total = 0;
    size_t best_column = 0;
    for (size_t r = 0; r < TEST_ROWS; r++)
        total += (double)data->relevances[r];
    const double own = total * total / (TEST_ROWS + 1.0);
    for (size_t c = 0; c < TEST_COLUMNS; c++)
        for (size_t r = 0; r < TEST_ROWS; r++)
            for (int missing_left = 0; missing_left < 2; missing_left++) {
                double sum = 0, count = 0;
                for (size_t i = 0; i < TEST_ROWS; i++) {
                    const float value = data->values[i * TEST_COLUMNS + c];
                    if (isnan(value) ? missing_left : value <= data->values[r * TEST_COLUMNS + c]) {
                        sum += (double)data->relevances[i];
                        count++;
                    }
                }
                const double gain =
                    sum * sum / (count + 1.0) + (total - sum) * (total - sum) / (TEST_ROWS - count + 1.0) - own;
                if (count > 0 && count < TEST_ROWS && gain > best) {
                    best = gain;
                    best_column = c;
                }
            }
    double gains[TEST_COLUMNS] = {0};
    CHECK(ranker && foreloop_gbdt_importance(ranker, FORELOOP_GBDT_TOTAL_GAIN, gains, NULL) == FORELOOP_OK, "gains");
    /* 600 values in 255 bins: the best cut may fall within a bin. */
    CHECK(gains[best_column] > 0.98 * best && gains[best_column] < 1.0001 * best,
          "the best split: column %zu, gain %.2f of %.2f", best_column, gains[best_column], best);
    foreloop_gbdt_close(ranker);
}

/* A missing value alone can be worth a split, and one that training does not know goes with most. */
static void test_missing(void) {
    float values[] = {1, 1, 1, NAN, NAN, NAN}, margins[6];
    const float relevances[] = {0, 0, 0, 1, 1, 1}, known[] = {1, 2, 3, 4, 5, 6}, unknown = NAN;
    const float rising[] = {0, 1, 1, 1, 1, 1};
    const size_t groups[] = {0, 6};
    foreloop_gbdt_rows rows;
    foreloop_ranker_data data;
    foreloop_ranker_options options = defaults();
    foreloop_gbdt_rows_init(&rows, sizeof rows);
    foreloop_ranker_data_init(&data, sizeof data);
    rows.values = values;
    rows.row_count = 6;
    rows.column_count = 1;
    data.rows = &rows;
    data.groups = groups;
    data.group_count = 1;
    data.relevances = relevances;
    foreloop_gbdt *ranker = train(&data, &options);
    CHECK(ranker && foreloop_gbdt_predict(ranker, values, 6, 1, 1, margins, NULL) == FORELOOP_OK, "one value, or none");
    CHECK(margins[3] > margins[0], "missing values are told from others: %g and %g", (double)margins[0],
          (double)margins[3]);
    foreloop_gbdt_close(ranker);
    rows.values = known;
    data.relevances = rising;
    options.rounds = options.depth = 1;
    ranker = train(&data, &options);
    CHECK(ranker && foreloop_gbdt_predict(ranker, known, 6, 1, 1, margins, NULL) == FORELOOP_OK &&
              foreloop_gbdt_predict(ranker, &unknown, 1, 1, 1, margins + 1, NULL) == FORELOOP_OK &&
              margins[1] > margins[0],
          "a missing value that training had not goes with most");
    foreloop_gbdt_close(ranker);
}

/* Times become relevances by the documented rule. */
static void test_times(const test_data *data) {
    static float relevances[TEST_ROWS];
    foreloop_ranker_options options = defaults();
    foreloop_ranker_data by_time = data->data, by_relevance = data->data;
    for (size_t g = 0; g < TEST_GROUPS; g++) {
        double best = INFINITY;
        for (size_t i = data->offsets[g]; i < data->offsets[g + 1]; i++)
            best = fmin(best, data->seconds[i]);
        for (size_t i = data->offsets[g]; i < data->offsets[g + 1]; i++)
            relevances[i] = (float)floor(31.0 * pow(best / data->seconds[i], 0.25) + 0.5);
    }
    by_time.relevances = NULL;
    by_time.seconds = data->seconds;
    by_relevance.relevances = relevances;
    options.grades = 31;
    options.grade_power = 0.25f;
    CHECK(same(train(&by_time, &options), train(&by_relevance, &options)), "grades of times");
    options.objective = FORELOOP_RANKER_PAIRWISE;
    for (size_t i = 0; i < TEST_ROWS; i++)
        relevances[i] = (float)-data->seconds[i];
    CHECK(same(train(&by_time, &options), train(&by_relevance, &options)), "pairs only ask which time is less");
}

/* ---- Options ----------------------------------------------------------------------------------------------------- */

static int stop_after_five(void *user, size_t done, size_t rounds) {
    *(size_t *)user = rounds;
    return done == 5;
}

static void test_options(const test_data *data) {
    static const char *const names[TEST_COLUMNS] = {"a", "b", "c\"\\\n", "d", "e", "f", "g", "h", "i", "j", "k",
                                                    "l", "m", "n",       "o", "p", "q", "r", "s", "t", "u"};
    foreloop_ranker_options options = defaults();
    foreloop_gbdt_info info = {.size = sizeof info};
    size_t rounds = 0, size = 0;
    options.progress = stop_after_five;
    options.progress_user = &rounds;
    options.feature_names = names;
    options.feature_name_count = TEST_COLUMNS;
    options.base_score = 0.25f;
    options.depth = 2;
    foreloop_gbdt *ranker = train(&data->data, &options);
    foreloop_gbdt_get_info(ranker, &info);
    CHECK(ranker && info.tree_count == 5 && rounds == 20, "progress ends training: %zu trees", info.tree_count);
    CHECK(info.max_depth == 2 && info.has_cover && info.has_gain && strcmp(info.objective, "rank:ndcg") == 0,
          "depth, statistics and objective");
    char *text = save(ranker, &size);
    foreloop_gbdt *read = NULL;
    foreloop_error error = {.message = ""};
    float a[TEST_ROWS], b[TEST_ROWS];
    CHECK(text && foreloop_gbdt_open_memory(&read, text, size, NULL, &error) == FORELOOP_OK, "reads back: %s",
          error.message);
    CHECK(read && strcmp(foreloop_gbdt_feature_name(read, 2), "c\"\\\n") == 0, "names read back");
    CHECK(read && foreloop_gbdt_predict(ranker, data->values, TEST_ROWS, TEST_COLUMNS, 1, a, NULL) == FORELOOP_OK &&
              foreloop_gbdt_predict(read, data->values, TEST_ROWS, TEST_COLUMNS, 1, b, NULL) == FORELOOP_OK &&
              memcmp(a, b, sizeof a) == 0,
          "the same margins, read back");
    CHECK(foreloop_gbdt_save_memory(ranker, a, 10, &size, &error) == FORELOOP_ERROR_LIMIT && size > 10,
          "a small buffer: %s", error.message);
    free(text);
    CHECK(same(read, ranker), "saved again, the same text");
    options = defaults();
    options.min_split_gain = 1e9f;
    ranker = train(&data->data, &options);
    foreloop_gbdt_get_info(ranker, &info);
    CHECK(ranker && info.max_depth == 0, "no split gains enough");
    foreloop_gbdt_close(ranker);
    options = defaults();
    options.min_child_weight = 1e12f;
    ranker = train(&data->data, &options);
    foreloop_gbdt_get_info(ranker, &info);
    CHECK(ranker && info.max_depth == 0, "no child weighs enough");
    foreloop_gbdt_close(ranker);
}

/* What the old trees do not tell, the new ones cannot either. */
static void test_start_without_statistics(const test_data *data) {
    static const char dump[] =
        "[{\"nodeid\":0,\"split\":\"f1\",\"split_condition\":0.5,\"yes\":1,\"no\":2,\"missing\":1,"
        "\"children\":[{\"nodeid\":1,\"leaf\":0.5},{\"nodeid\":2,\"leaf\":-0.5}]}]";
    foreloop_ranker_options options = defaults();
    foreloop_gbdt_info info = {.size = sizeof info};
    foreloop_error error = {.message = ""};
    foreloop_gbdt *start = NULL;
    CHECK(foreloop_gbdt_open_memory(&start, dump, sizeof dump - 1, NULL, &error) == FORELOOP_OK, "a dump: %s",
          error.message);
    options.start = start;
    options.rounds = 2;
    foreloop_gbdt *ranker = train(&data->data, &options);
    foreloop_gbdt_get_info(ranker, &info);
    CHECK(ranker && info.tree_count == 3 && !info.has_gain && !info.has_cover && info.feature_count == TEST_COLUMNS,
          "goes on from a dump without statistics");
    foreloop_gbdt_close(ranker);
    foreloop_gbdt_close(start);
}

int main(void) {
    static test_data data, unseen;
    test_data_make(&data, 1);
    test_data_make(&unseen, 2);
    test_bits(&data);
    test_layout(&data);
    test_learning(&data, &unseen);
    test_split(&data);
    test_missing();
    test_times(&data);
    test_options(&data);
    test_start_without_statistics(&data);
    return tap_done();
}
