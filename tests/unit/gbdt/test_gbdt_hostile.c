/* Damaged files and failing allocations: an error or a valid model, no leak, nothing read out of bounds (the last two
 * by the sanitizers). */
#include "gbdt_test.h"

/* Long files are damaged at every n-th place only. */
static size_t step_of(size_t size) {
    return size > 1600 ? size / 400 : 1;
}

static void explain(const foreloop_gbdt *gbdt, const foreloop_gbdt_info *info, const float *row) {
    size_t contribution_count = (info->feature_count + 1) * info->output_count;
    float *outputs = calloc(info->tree_count + contribution_count, sizeof *outputs);
    double *scores = calloc(info->feature_count + 1, sizeof *scores);
    foreloop_gbdt_explainer *explainer = NULL;
    foreloop_gbdt_rows rows;
    if (!outputs || !scores)
        exit(1);
    foreloop_gbdt_rows_init(&rows, sizeof rows);
    rows.values = row;
    rows.row_count = 1;
    rows.column_count = info->feature_count;
    foreloop_gbdt_predict_rows(gbdt, &rows, FORELOOP_GBDT_LEAF_INDEX, outputs, NULL);
    foreloop_gbdt_importance(gbdt, FORELOOP_GBDT_GAIN, scores, NULL);
    if (foreloop_gbdt_explainer_create(&explainer, gbdt, NULL) == FORELOOP_OK)
        foreloop_gbdt_explain(explainer, &rows, outputs, NULL);
    foreloop_gbdt_explainer_close(explainer);
    free(outputs);
    free(scores);
}

/* Uses a model that may be anything, as long as it is valid. */
static void use(const foreloop_gbdt *gbdt) {
    foreloop_gbdt_info info = {.size = sizeof info};
    foreloop_gbdt_get_info(gbdt, &info);
    if (info.feature_count > 1000 || info.output_count > 1000)
        return;
    float *row = calloc(info.feature_count + 1, sizeof *row);
    float *outputs = calloc(info.output_count + 1, sizeof *outputs);
    unsigned char *used = calloc(info.feature_count + 1, 1);
    if (!row || !outputs || !used)
        exit(1);
    foreloop_gbdt_predict(gbdt, row, 1, info.feature_count, 0, outputs, NULL);
    foreloop_gbdt_margin(gbdt, row);
    foreloop_gbdt_used_features(gbdt, used);
    for (size_t i = 0; i < info.feature_count; i++)
        foreloop_gbdt_feature_name(gbdt, i);
    explain(gbdt, &info, row);
    free(row);
    free(outputs);
    free(used);
}

/* Opens data[size] from memory of just that size, so that reading past it is seen. */
static foreloop_status open_exactly(const char *data, size_t size, foreloop_error *error) {
    char *copy = malloc(size > 0 ? size : 1);
    foreloop_gbdt *gbdt = NULL;
    if (!copy)
        exit(1);
    memcpy(copy, data, size);
    memset(error, 0, sizeof *error);
    foreloop_status status = foreloop_gbdt_open_memory(&gbdt, copy, size, NULL, error);
    free(copy);
    if (status == FORELOOP_OK)
        use(gbdt);
    foreloop_gbdt_close(gbdt);
    return status;
}

static void check_truncations(const char *name, const char *data, size_t size) {
    size_t accepted = 0, silent = 0, end = size;
    foreloop_error error;
    while (end > 0 && (data[end - 1] == ' ' || data[end - 1] == '\n'))
        end--;
    for (size_t length = 0; length < end; length += step_of(size)) {
        foreloop_status status = open_exactly(data, length, &error);
        accepted += status == FORELOOP_OK;
        silent += status != FORELOOP_OK && (error.code != status || error.message[0] == '\0');
    }
    CHECK(accepted == 0, "%s: truncations are an error", name);
    CHECK(silent == 0, "%s: every error has a message", name);
}

static void check_changes(const char *name, const char *data, size_t size) {
    static const char replacements[] = {'0', '9', '-', '"', '[', ']', '{', '}', ',', ':', 'e', ' ', '\0', '\xff'};
    size_t good = 0, bad = 0, silent = 0;
    foreloop_error error;
    char *copy = malloc(size);
    if (!copy)
        exit(1);
    memcpy(copy, data, size);
    for (size_t i = 0; i < size; i += step_of(size)) {
        /* A few at each place, other ones at the next. */
        for (size_t r = i % 3; r < sizeof replacements; r += 3) {
            copy[i] = replacements[r];
            foreloop_status status = open_exactly(copy, size, &error);
            good += status == FORELOOP_OK;
            bad += status != FORELOOP_OK;
            silent += status != FORELOOP_OK && error.message[0] == '\0';
        }
        copy[i] = data[i];
    }
    free(copy);
    CHECK(bad > 0 && silent == 0, "%s: %zu changed bytes: %zu errors, %zu models", name, good + bad, bad, good);
}

static void check_allocations(const char *name, const char *data, size_t size) {
    counting state = {.fail_at = SIZE_MAX};
    foreloop_allocator allocator = {counting_allocate, counting_release, &state};
    foreloop_gbdt_options options;
    foreloop_gbdt *gbdt = NULL;
    foreloop_gbdt_options_init(&options, sizeof options);
    options.allocator = &allocator;
    CHECK(foreloop_gbdt_open_memory(&gbdt, data, size, &options, NULL) == FORELOOP_OK, "%s: opens", name);
    foreloop_gbdt_close(gbdt);
    size_t needed = state.calls, wrong = 0;
    CHECK(state.live == 0, "%s: all memory is released", name);
    for (size_t n = 0; n < needed; n++) {
        foreloop_gbdt *untouched = (foreloop_gbdt *)&state;
        foreloop_error error = {0};
        state = (counting){.fail_at = n};
        foreloop_status status = foreloop_gbdt_open_memory(&untouched, data, size, &options, &error);
        wrong += status != FORELOOP_ERROR_MEMORY || error.code != status || state.live != 0 ||
                 untouched != (foreloop_gbdt *)&state;
    }
    CHECK(wrong == 0, "%s: each of %zu allocations may fail", name, needed);
}

/* `begin`, 100,000 opening brackets, and nothing more. */
static void check_nesting(const char *begin, char bracket, const char *what) {
    enum { DEPTH = 100000 };
    const size_t length = strlen(begin);
    char *text = malloc(length + DEPTH);
    foreloop_error error;
    if (!text)
        exit(1);
    memcpy(text, begin, length);
    memset(text + length, bracket, DEPTH);
    foreloop_status status = open_exactly(text, length + DEPTH, &error);
    CHECK(status == FORELOOP_ERROR_LIMIT || status == FORELOOP_ERROR_FORMAT, "%s: %s", what, error.message);
    free(text);
}

int main(int argc, char **argv) {
    static const char *const damaged[] = {"stump.json",       "stump.dump.json", "v1_7_categories.json",
                                          "onehot.dump.json", "vectors.json",    "v3_1_vectors.ubj",
                                          "named.ubj",        "dart_forest.ubj", "stump.ubj"};
    static const char *const others[] = {"dart.json", "targets.json", "named.json", "vectors.ubj"};
    const char *root = argc > 1 ? argv[1] : ".";
    size_t size;
    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
        char *data = read_file(root, damaged[i], &size);
        check_allocations(damaged[i], data, size);
        check_truncations(damaged[i], data, size);
        check_changes(damaged[i], data, size);
        free(data);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        char *data = read_file(root, others[i], &size);
        check_allocations(others[i], data, size);
        free(data);
    }
    check_nesting("", '[', "nested arrays");
    check_nesting("[{\"nodeid\":", '[', "nested arrays in a dump");
    check_nesting("{\"learner\":{\"more\":", '[', "nested arrays under an unknown key");
    check_nesting("{\"learner\":{\"gradient_booster\":{\"model\":{\"trees\":[{\"left_children\":", '[',
                  "nested arrays in a tree");
    check_nesting("{U\004more", '[', "nested arrays of UBJSON");
    check_nesting("{U\007learner", '{', "nested objects of UBJSON");
    return tap_done();
}
