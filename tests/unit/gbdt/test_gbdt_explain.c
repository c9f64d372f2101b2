/* Leaf indices, rows of any layout, importance and contributions: against XGBoost's own, and by hand. */
#include "gbdt_test.h"
#include <math.h>

static foreloop_gbdt *opened(const char *data, size_t size) {
    foreloop_gbdt *gbdt = NULL;
    foreloop_error error = {0};
    if (foreloop_gbdt_open_memory(&gbdt, data, size, NULL, &error) != FORELOOP_OK) {
        printf("Bail out! %s\n", error.message);
        exit(1);
    }
    return gbdt;
}

static foreloop_gbdt_rows rows_of(const float *values, size_t count, size_t columns) {
    foreloop_gbdt_rows rows;
    foreloop_gbdt_rows_init(&rows, sizeof rows);
    rows.values = values;
    rows.row_count = count;
    rows.column_count = columns;
    return rows;
}

static size_t count_far(const float *values, const float *expected, size_t count, double bound) {
    size_t far = 0;
    for (size_t i = 0; i < count; i++)
        far += !(fabs((double)values[i] - (double)expected[i]) <= bound * fmax(1.0, fabs((double)expected[i])));
    return far;
}

/* ---- XGBoost's own numbers --------------------------------------------------------------------------------------- */

static void check_contributions(const char *root, const char *model, const char *expected, const foreloop_gbdt *gbdt,
                                const foreloop_gbdt_rows *rows) {
    foreloop_gbdt_info info = {.size = sizeof info};
    foreloop_gbdt_get_info(gbdt, &info);
    const foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    const size_t width = info.feature_count + 1, count = rows->row_count * info.output_count;
    float *values = malloc(count * width * sizeof *values), *margins = malloc(count * sizeof *margins);
    foreloop_gbdt_explainer *explainer = NULL;
    foreloop_error error = {0};
    if (!values || !margins)
        exit(1);
    if (!CHECK(foreloop_gbdt_explainer_create(&explainer, gbdt, &error) == FORELOOP_OK, "%s: %s", model, error.message))
        exit(1);
    foreloop_gbdt_explain(explainer, rows, values, NULL);
    foreloop_gbdt_predict_rows(gbdt, rows, FORELOOP_GBDT_MARGIN, margins, NULL);
    size_t wrong_sums = 0;
    for (size_t i = 0; i < count; i++) {
        double sum = 0;
        for (size_t f = 0; f < width; f++)
            sum += (double)values[i * width + f];
        wrong_sums += !(fabs(sum - (double)margins[i]) <= 1e-5);
    }
    CHECK(wrong_sums == 0, "%s: contributions add up to the margins", model);
    if (strcmp(expected, "-") != 0) {
        size_t expected_rows, columns;
        float *table = read_table(root, expected, &expected_rows, &columns);
        CHECK(expected_rows * columns == count * width && count_far(values, table, count * width, 2e-5) == 0,
              "%s: contributions", model);
        foreloop_release(&allocator, table);
    }
    foreloop_gbdt_explainer_close(explainer);
    free(values);
    free(margins);
}

static void check_model(const char *root, char *line, const foreloop_gbdt_rows *rows) {
    char model[128], leaves[128], contributions[128], importance[128];
    size_t size, expected_rows, columns, wrong = 0;
    const foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    if (sscanf(line, "%127s %127s %127s %127s", model, leaves, contributions, importance) != 4)
        exit(1);
    char *data = read_file(root, model, &size);
    foreloop_gbdt *gbdt = opened(data, size);
    foreloop_gbdt_info info = {.size = sizeof info};
    foreloop_gbdt_get_info(gbdt, &info);

    float *table = read_table(root, leaves, &expected_rows, &columns);
    float *indices = malloc(rows->row_count * info.tree_count * sizeof *indices);
    if (!indices || columns != info.tree_count)
        exit(1);
    foreloop_gbdt_predict_rows(gbdt, rows, FORELOOP_GBDT_LEAF_INDEX, indices, NULL);
    CHECK(memcmp(indices, table, rows->row_count * columns * sizeof *table) == 0, "%s: leaf indices", model);
    foreloop_release(&allocator, table);
    free(indices);

    table = read_table(root, importance, &expected_rows, &columns);
    for (int kind = 0; kind <= FORELOOP_GBDT_TOTAL_COVER; kind++) {
        double scores[64];
        if (foreloop_gbdt_importance(gbdt, (foreloop_gbdt_importance_kind)kind, scores, NULL) != FORELOOP_OK)
            exit(1);
        for (size_t f = 0; f < columns; f++) {
            double expected = (double)table[(size_t)kind * columns + f];
            wrong += !(fabs(scores[f] - expected) <= 1e-5 * fmax(1.0, expected));
        }
    }
    CHECK(wrong == 0 && expected_rows == 5 && columns == info.feature_count, "%s: importance", model);
    foreloop_release(&allocator, table);
    check_contributions(root, model, contributions, gbdt, rows);
    foreloop_gbdt_close(gbdt);
    free(data);
}

/* ---- By hand ----------------------------------------------------------------------------------------------------- */

#define LEARNER(trees, features)                                                                                       \
    "{\"learner\":{\"gradient_booster\":{\"model\":{\"trees\":[" trees "],\"tree_info\":[0]},\"name\":\"gbtree\"},"    \
    "\"learner_model_param\":{\"base_score\":\"1E0\",\"num_feature\":\"" features "\"},"                               \
    "\"objective\":{\"name\":\"reg:squarederror\"}}}"
/* Feature 1 below 1: 2, else feature 0 below 1: 4, else 8. */
#define TREE(statistics)                                                                                               \
    "{\"left_children\":[1,-1,3,-1,-1],\"right_children\":[2,-1,4,-1,-1],\"default_left\":[0,0,0,0,0],"                \
    "\"split_indices\":[1,0,0,0,0],\"split_conditions\":[1,2,1,4,8]" statistics "}"
#define STATISTICS ",\"loss_changes\":[10,0,5,0,0],\"sum_hessian\":[8,4,4,1,3]"

static void test_by_hand(void) {
    static const char text[] = LEARNER(TREE(STATISTICS), "3");
    static const float row[3] = {1, 1, 77};
    float values[4] = {0};
    double scores[3] = {9, 9, 9};
    foreloop_gbdt *gbdt = opened(text, strlen(text));
    foreloop_gbdt_explainer *explainer = NULL;
    foreloop_gbdt_rows rows = rows_of(row, 1, 3);
    foreloop_gbdt_explainer_create(&explainer, gbdt, NULL);
    CHECK(foreloop_gbdt_explain(explainer, &rows, values, NULL) == FORELOOP_OK, "explains");
    /* Nothing known: 4/8 x 2 + 4/8 x (1/4 x 4 + 3/4 x 8) = 4.5. Only feature 1: 7, only 0: 5, both: 8. */
    CHECK(fabsf(values[0] - 0.75f) < 1e-6f && fabsf(values[1] - 2.75f) < 1e-6f && values[2] == 0 &&
              fabsf(values[3] - 5.5f) < 1e-6f,
          "contributions %g %g %g, bias %g", (double)values[0], (double)values[1], (double)values[2],
          (double)values[3]);
    foreloop_gbdt_importance(gbdt, FORELOOP_GBDT_TOTAL_GAIN, scores, NULL);
    CHECK(scores[0] == 5 && scores[1] == 10 && scores[2] == 0, "total gain");
    foreloop_gbdt_importance(gbdt, FORELOOP_GBDT_COVER, scores, NULL);
    CHECK(scores[0] == 4 && scores[1] == 8 && scores[2] == 0, "cover");
    foreloop_gbdt_explainer_close(explainer);
    foreloop_gbdt_close(gbdt);
}

/* One feature on a path twice, and a node that no training row reached. */
static void test_repeated_feature(void) {
    static const char text[] =
        LEARNER("{\"left_children\":[1,3,-1,-1,-1],\"right_children\":[2,4,-1,-1,-1],\"default_left\":[0,0,0,0,0],"
                "\"split_indices\":[0,0,0,0,0],\"split_conditions\":[5,2,8,1,3],\"sum_hessian\":[4,2,2,0,2]}",
                "1");
    static const float row[3] = {0, 3, 9};
    static const float expected[6] = {-4.5f, 6.5f, -2.5f, 6.5f, 2.5f, 6.5f};
    float values[6] = {0};
    foreloop_gbdt *gbdt = opened(text, strlen(text));
    foreloop_gbdt_explainer *explainer = NULL;
    foreloop_gbdt_rows rows = rows_of(row, 3, 1);
    foreloop_gbdt_explainer_create(&explainer, gbdt, NULL);
    foreloop_gbdt_explain(explainer, &rows, values, NULL);
    /* The mean is 2/4 x (0/2 x 1 + 2/2 x 3) + 2/4 x 8 = 5.5, and all of the rest is the feature's. */
    CHECK(count_far(values, expected, 6, 1e-6) == 0, "a feature twice on a path, a child without cover");
    foreloop_gbdt_explainer_close(explainer);
    foreloop_gbdt_close(gbdt);
}

/* A tree that is a leaf has no ratios: what training wrote for its cover does not matter. */
static void test_root_only(void) {
    static const char text[] =
        LEARNER("{\"left_children\":[-1],\"right_children\":[-1],\"default_left\":[0],\"split_indices\":[0],"
                "\"split_conditions\":[0.5],\"sum_hessian\":[NaN]}",
                "1");
    float row = 0, values[2] = {9, 9};
    foreloop_gbdt *gbdt = opened(text, strlen(text));
    foreloop_gbdt_explainer *explainer = NULL;
    foreloop_gbdt_rows rows = rows_of(&row, 1, 1);
    CHECK(foreloop_gbdt_explainer_create(&explainer, gbdt, NULL) == FORELOOP_OK &&
              foreloop_gbdt_explain(explainer, &rows, values, NULL) == FORELOOP_OK && values[0] == 0 &&
              values[1] == 1.5f,
          "a tree that is a leaf");
    foreloop_gbdt_explainer_close(explainer);
    foreloop_gbdt_close(gbdt);
}

static void check_no_explainer(const char *text, foreloop_status status, const char *word) {
    foreloop_gbdt *gbdt = opened(text, strlen(text));
    foreloop_gbdt_explainer *explainer = NULL;
    foreloop_error error = {0};
    foreloop_status result = foreloop_gbdt_explainer_create(&explainer, gbdt, &error);
    CHECK(result == status && error.code == status && !explainer && strstr(error.message, word), "no explanation: %s",
          error.message);
    foreloop_gbdt_close(gbdt);
}

static void test_without_statistics(void) {
    static const char text[] = LEARNER(TREE(""), "2");
    foreloop_gbdt_info info = {.size = sizeof info};
    double scores[2] = {7, 7};
    foreloop_error error = {0};
    foreloop_gbdt *gbdt = opened(text, strlen(text));
    foreloop_gbdt_get_info(gbdt, &info);
    CHECK(!info.has_gain && !info.has_cover, "a model without statistics says so");
    CHECK(foreloop_gbdt_importance(gbdt, FORELOOP_GBDT_GAIN, scores, &error) == FORELOOP_ERROR_UNSUPPORTED &&
              strstr(error.message, "gain") && scores[0] == 7,
          "no gain: %s", error.message);
    CHECK(foreloop_gbdt_importance(gbdt, FORELOOP_GBDT_TOTAL_COVER, scores, &error) == FORELOOP_ERROR_UNSUPPORTED &&
              strstr(error.message, "cover") && scores[0] == 7,
          "no cover: %s", error.message);
    CHECK(foreloop_gbdt_importance(gbdt, FORELOOP_GBDT_WEIGHT, scores, NULL) == FORELOOP_OK && scores[0] == 1,
          "the weight needs none");
    CHECK(foreloop_gbdt_importance(gbdt, (foreloop_gbdt_importance_kind)5, scores, NULL) == FORELOOP_ERROR_ARGUMENT,
          "unknown kind");
    foreloop_gbdt_close(gbdt);
    check_no_explainer(text, FORELOOP_ERROR_UNSUPPORTED, "cover");
    check_no_explainer(LEARNER(TREE(",\"sum_hessian\":[8,4,-4,1,3]"), "2"), FORELOOP_ERROR_VALUE, "node 0");
    check_no_explainer(LEARNER(TREE(",\"sum_hessian\":[NaN,4,4,1,3]"), "2"), FORELOOP_ERROR_VALUE, "node 0");
    check_no_explainer(LEARNER(TREE(",\"sum_hessian\":[8,4,4,1,Infinity]"), "2"), FORELOOP_ERROR_VALUE, "node 2");
    foreloop_gbdt *refused = NULL;
    static const char short_list[] = LEARNER(TREE(",\"sum_hessian\":[8,4,4]"), "2");
    CHECK(foreloop_gbdt_open_memory(&refused, short_list, strlen(short_list), NULL, &error) == FORELOOP_ERROR_FORMAT &&
              strstr(error.message, "3 sum_hessian"),
          "too few covers: %s", error.message);
}

/* A chain of splits: an unbounded recursion would not survive the deepest. */
static char *chain(size_t depth, size_t *size) {
    static const char *const names[] = {"left_children", "right_children",   "default_left",
                                        "split_indices", "split_conditions", "sum_hessian"};
    char *text = malloc(depth * 200 + 1000), *end = text;
    if (!text)
        exit(1);
    end += sprintf(end, "{\"learner\":{\"gradient_booster\":{\"model\":{\"trees\":[{\"id\":0");
    for (int column = 0; column < 6; column++) {
        end += sprintf(end, ",\"%s\":[", names[column]);
        for (size_t i = 0; i <= 2 * depth; i++) {
            long long split = i % 2 == 0 && i < 2 * depth, place = (long long)i;
            long long cells[] = {
                split ? place + 1 : -1,      split ? place + 2 : -1, 0,
                split ? place / 2 % 700 : 0, split ? 0 : place % 7,  (long long)(2 * depth + 1) - place};
            end += sprintf(end, "%s%lld", i ? "," : "", cells[column]);
        }
        end += sprintf(end, "]");
    }
    end += sprintf(end, "}],\"tree_info\":[0]},\"name\":\"gbtree\"},\"learner_model_param\":{\"base_score\":\"0E0\","
                        "\"num_feature\":\"700\"},\"objective\":{\"name\":\"reg:squarederror\"}}}");
    *size = (size_t)(end - text);
    return text;
}

static void test_deep(void) {
    static float row[700], values[701];
    size_t size;
    double sum = 0;
    char *text = chain(900, &size);
    foreloop_gbdt *gbdt = opened(text, size);
    foreloop_gbdt_explainer *explainer = NULL;
    foreloop_gbdt_rows rows = rows_of(row, 1, 700);
    float margin = 0;
    for (size_t f = 0; f < 700; f++)
        row[f] = f % 97 == 96 ? -1.0f : 1.0f;
    CHECK(foreloop_gbdt_explainer_create(&explainer, gbdt, NULL) == FORELOOP_OK, "trees of depth 900");
    foreloop_gbdt_explain(explainer, &rows, values, NULL);
    foreloop_gbdt_predict(gbdt, row, 1, 700, 1, &margin, NULL);
    for (size_t f = 0; f < 701; f++)
        sum += (double)values[f];
    CHECK(fabs(sum - (double)margin) < 1e-4, "their contributions add up: %.6f, %.6f", sum, (double)margin);
    foreloop_gbdt_explainer_close(explainer);
    foreloop_gbdt_close(gbdt);
    free(text);
    text = chain(40000, &size);
    check_no_explainer(text, FORELOOP_ERROR_LIMIT, "1024");
    free(text);
}

static void test_rows(const char *root, const float *values, size_t count, size_t columns) {
    size_t size, differing = 0;
    char *data = read_file(root, "softprob.json", &size);
    foreloop_gbdt *gbdt = opened(data, size);
    foreloop_gbdt_rows rows = rows_of(values, count, columns);
    float *turned = malloc(count * columns * sizeof *turned), *marked = malloc(count * columns * sizeof *marked);
    float expected[64 * 4], outputs[64 * 4];
    if (!turned || !marked || count > 64)
        exit(1);
    for (size_t r = 0; r < count; r++)
        for (size_t f = 0; f < columns; f++) {
            turned[f * count + r] = values[r * columns + f];
            marked[r * columns + f] = isnan(values[r * columns + f]) ? -999.0f : values[r * columns + f];
        }
    for (int output = FORELOOP_GBDT_PREDICTION; output <= FORELOOP_GBDT_MARGIN; output++) {
        foreloop_gbdt_predict(gbdt, values, count, columns, output, expected, NULL);
        foreloop_gbdt_predict_rows(gbdt, &rows, (foreloop_gbdt_output)output, outputs, NULL);
        differing += memcmp(outputs, expected, count * 4 * sizeof *outputs) != 0;
        foreloop_gbdt_rows other = rows_of(turned, count, columns);
        other.row_stride = 1;
        other.column_stride = count;
        foreloop_gbdt_predict_rows(gbdt, &other, (foreloop_gbdt_output)output, outputs, NULL);
        differing += memcmp(outputs, expected, count * 4 * sizeof *outputs) != 0;
        other = rows_of(marked, count, columns);
        other.has_missing = 1;
        other.missing = -999.0f;
        foreloop_gbdt_predict_rows(gbdt, &other, (foreloop_gbdt_output)output, outputs, NULL);
        differing += memcmp(outputs, expected, count * 4 * sizeof *outputs) != 0;
    }
    CHECK(differing == 0, "row-major, column-major and rows with a sentinel give the same bits");
    foreloop_gbdt_close(gbdt);
    free(turned);
    free(marked);
    free(data);
}

static void test_row_errors(void) {
    static const char text[] = LEARNER(TREE(STATISTICS), "3");
    static const float row[2] = {1, 1};
    float outputs[4] = {5, 5, 5, 5};
    foreloop_gbdt *gbdt = opened(text, strlen(text));
    foreloop_gbdt_explainer *explainer = NULL;
    foreloop_error error = {0};
    foreloop_gbdt_rows rows = rows_of(row, 1, 2);
    CHECK(foreloop_gbdt_predict_rows(gbdt, &rows, FORELOOP_GBDT_MARGIN, outputs, NULL) == FORELOOP_OK &&
              outputs[0] == 9 && outputs[1] == 5,
          "the column that no tree reads need not exist");
    CHECK(foreloop_gbdt_predict_rows(gbdt, &rows, FORELOOP_GBDT_LEAF_SUM, outputs, NULL) == FORELOOP_OK &&
              outputs[0] == 8,
          "the leaves alone");
    foreloop_gbdt_explainer_create(&explainer, gbdt, NULL);
    outputs[0] = 5;
    rows.column_count = 1;
    CHECK(foreloop_gbdt_predict_rows(gbdt, &rows, FORELOOP_GBDT_MARGIN, outputs, &error) == FORELOOP_ERROR_ARGUMENT &&
              outputs[0] == 5 && strstr(error.message, "number 1"),
          "but others must: %s", error.message);
    CHECK(foreloop_gbdt_explain(explainer, &rows, outputs, &error) == FORELOOP_ERROR_ARGUMENT && outputs[0] == 5,
          "so for contributions: %s", error.message);
    rows.column_count = SIZE_MAX;
    rows.column_stride = 2;
    CHECK(foreloop_gbdt_predict_rows(gbdt, &rows, FORELOOP_GBDT_MARGIN, outputs, &error) == FORELOOP_ERROR_ARGUMENT,
          "rows longer than memory: %s", error.message);
    rows = rows_of(row, 1, 2);
    CHECK(foreloop_gbdt_predict_rows(gbdt, &rows, (foreloop_gbdt_output)4, outputs, NULL) == FORELOOP_ERROR_ARGUMENT &&
              outputs[0] == 5,
          "unknown output");
    rows.values = NULL;
    CHECK(foreloop_gbdt_predict_rows(gbdt, &rows, FORELOOP_GBDT_MARGIN, outputs, NULL) == FORELOOP_ERROR_ARGUMENT &&
              outputs[0] == 5,
          "no rows");
    CHECK(foreloop_gbdt_explain(NULL, &rows, outputs, NULL) == FORELOOP_ERROR_ARGUMENT, "no explainer");
    rows.row_count = 0;
    CHECK(foreloop_gbdt_predict_rows(gbdt, &rows, FORELOOP_GBDT_MARGIN, NULL, NULL) == FORELOOP_OK, "zero rows");
    foreloop_gbdt_explainer_close(explainer);
    foreloop_gbdt_explainer_close(NULL);
    foreloop_gbdt_close(gbdt);
}

static void test_allocation_failures(void) {
    static const char text[] = LEARNER(TREE(STATISTICS), "2");
    counting state = {.fail_at = SIZE_MAX};
    foreloop_allocator allocator = {counting_allocate, counting_release, &state};
    foreloop_gbdt_options options;
    foreloop_gbdt *gbdt = NULL;
    foreloop_gbdt_options_init(&options, sizeof options);
    options.allocator = &allocator;
    foreloop_gbdt_open_memory(&gbdt, text, strlen(text), &options, NULL);
    const size_t before = state.live;
    size_t wrong = 0, needed = 0;
    for (bool done = false; !done; needed++) {
        foreloop_gbdt_explainer *explainer = NULL;
        foreloop_error error = {0};
        state.calls = 0;
        state.fail_at = needed;
        foreloop_status status = foreloop_gbdt_explainer_create(&explainer, gbdt, &error);
        done = status == FORELOOP_OK;
        wrong += !done && (status != FORELOOP_ERROR_MEMORY || error.code != status || explainer);
        state.calls = 0;
        state.fail_at = 0;
        static const float row[2] = {1, 1};
        float values[3];
        foreloop_gbdt_rows rows = rows_of(row, 1, 2);
        wrong += done && foreloop_gbdt_explain(explainer, &rows, values, NULL) != FORELOOP_OK;
        foreloop_gbdt_explainer_close(explainer);
        wrong += state.live != before;
    }
    CHECK(wrong == 0 && needed > 5, "each of %zu allocations of an explainer may fail, and explaining has none",
          needed - 1);
    double scores[2] = {3, 3};
    state.calls = 0;
    state.fail_at = 0;
    CHECK(foreloop_gbdt_importance(gbdt, FORELOOP_GBDT_GAIN, scores, NULL) == FORELOOP_ERROR_MEMORY && scores[0] == 3 &&
              foreloop_gbdt_importance(gbdt, FORELOOP_GBDT_TOTAL_GAIN, scores, NULL) == FORELOOP_OK,
          "means need memory, totals none");
    static const float turned[4] = {1, 1, 1, 1};
    float outputs[2] = {3, 3};
    foreloop_gbdt_rows rows = rows_of(turned, 2, 2);
    rows.row_stride = 1;
    rows.column_stride = 2;
    CHECK(foreloop_gbdt_predict_rows(gbdt, &rows, FORELOOP_GBDT_MARGIN, outputs, NULL) == FORELOOP_ERROR_MEMORY &&
              outputs[0] == 3 &&
              foreloop_gbdt_predict_rows(gbdt, &rows, FORELOOP_GBDT_LEAF_INDEX, outputs, NULL) == FORELOOP_OK,
          "column-major margins need memory, leaf indices none");
    foreloop_gbdt_close(gbdt);
    CHECK(state.live == 0, "all memory is released");
}

int main(int argc, char **argv) {
    const char *root = argc > 1 ? argv[1] : ".";
    size_t row_count, columns, size;
    float *values = read_table(root, "rows.npy", &row_count, &columns);
    foreloop_gbdt_rows rows = rows_of(values, row_count, columns);
    char *list = read_file(root, "explained.txt", &size), *rest = NULL;
    for (char *line = strtok_r(list, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        check_model(root, line, &rows);
    test_by_hand();
    test_repeated_feature();
    test_root_only();
    test_without_statistics();
    test_deep();
    test_rows(root, values, row_count, columns);
    test_row_errors();
    test_allocation_failures();
    const foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    foreloop_release(&allocator, values);
    free(list);
    return tap_done();
}
