/* The compiled form: the same model again, and no content of it leads out of bounds. */
#include "gbdt_test.h"
#include <math.h>

enum { ROWS = 40 };

/* Everything that reads the arrays; outputs may be whatever a damaged form makes of them. */
static void use(const foreloop_gbdt *gbdt, float *margins, float *contributions) {
    foreloop_gbdt_info info = {.size = sizeof info};
    foreloop_gbdt_get_info(gbdt, &info);
    if (info.feature_count > 100 || info.output_count > 100 || info.tree_count > 1000)
        return;
    float *rows = calloc(ROWS * (info.feature_count + 1), sizeof *rows);
    float *outputs = calloc(ROWS * (info.output_count + info.tree_count + 1), sizeof *outputs);
    float *explained = calloc((info.feature_count + 1) * info.output_count, sizeof *explained);
    double *scores = calloc(info.feature_count + 1, sizeof *scores);
    unsigned char *used = calloc(info.feature_count + 1, 1);
    foreloop_gbdt_explainer *explainer = NULL;
    foreloop_gbdt_rows given;
    if (!rows || !outputs || !explained || !scores || !used)
        exit(1);
    for (size_t i = 0; i < ROWS * info.feature_count; i++)
        rows[i] = i % 7 == 0 ? NAN : (float)(i * 37 % 100) / 20.0f - 2.5f;
    foreloop_gbdt_predict(gbdt, rows, ROWS, info.feature_count, 0, outputs, NULL);
    foreloop_gbdt_predict(gbdt, rows, ROWS, info.feature_count, 1, outputs, NULL);
    if (margins)
        memcpy(margins, outputs, ROWS * info.output_count * sizeof *margins);
    foreloop_gbdt_margin(gbdt, rows);
    foreloop_gbdt_used_features(gbdt, used);
    foreloop_gbdt_rows_init(&given, sizeof given);
    given.values = rows;
    given.row_count = ROWS;
    given.column_count = info.feature_count;
    foreloop_gbdt_predict_rows(gbdt, &given, FORELOOP_GBDT_LEAF_INDEX, outputs, NULL);
    foreloop_gbdt_importance(gbdt, FORELOOP_GBDT_GAIN, scores, NULL);
    given.row_count = 1;
    if (foreloop_gbdt_explainer_create(&explainer, gbdt, NULL) == FORELOOP_OK)
        foreloop_gbdt_explain(explainer, &given, explained, NULL);
    if (contributions)
        memcpy(contributions, explained, (info.feature_count + 1) * info.output_count * sizeof *explained);
    foreloop_gbdt_explainer_close(explainer);
    free(rows);
    free(outputs);
    free(explained);
    free(scores);
    free(used);
}

/* Opens a copy of just that size, so that reading past it is seen. */
static bool open_copy(const char *data, size_t size, const foreloop_allocator *allocator) {
    foreloop_gbdt *gbdt = NULL;
    foreloop_error error = {0};
    void *copy = malloc(size > 0 ? size : 1);
    if (!copy)
        exit(1);
    memcpy(copy, data, size);
    const foreloop_status status =
        foreloop_gbdt_open_compiled(&gbdt, copy, size, "test", allocator, FORELOOP_TIER_BEST, &error);
    if (status == FORELOOP_OK)
        use(gbdt, NULL, NULL);
    foreloop_gbdt_close(gbdt);
    free(copy);
    return status == FORELOOP_OK;
}

static void check_same(const char *name, const foreloop_gbdt *a, const foreloop_gbdt *b) {
    static float margins[2][ROWS * 16], contributions[2][400];
    foreloop_gbdt_info one = {.size = sizeof one}, other = {.size = sizeof other};
    foreloop_gbdt_get_info(a, &one);
    foreloop_gbdt_get_info(b, &other);
    use(a, margins[0], contributions[0]);
    use(b, margins[1], contributions[1]);
    CHECK(memcmp(margins[0], margins[1], sizeof margins[0]) == 0, "%s: the same margins", name);
    CHECK(memcmp(contributions[0], contributions[1], sizeof contributions[0]) == 0, "%s: the same contributions", name);
    CHECK(one.tree_count == other.tree_count && one.feature_count == other.feature_count &&
              one.max_depth == other.max_depth && one.iteration_count == other.iteration_count &&
              one.best_iteration == other.best_iteration && one.tier == other.tier &&
              strcmp(one.objective, other.objective) == 0 && strcmp(one.notes, other.notes) == 0,
          "%s: the same numbers", name);
    for (size_t i = 0; i <= one.feature_count; i++) {
        const char *names[] = {foreloop_gbdt_feature_name(a, i), foreloop_gbdt_feature_name(b, i)};
        const char *types[] = {foreloop_gbdt_feature_type(a, i), foreloop_gbdt_feature_type(b, i)};
        CHECK(!names[0] == !names[1] && (!names[0] || strcmp(names[0], names[1]) == 0) && !types[0] == !types[1] &&
                  (!types[0] || strcmp(types[0], types[1]) == 0),
              "%s: feature %zu", name, i);
    }
}

static void check_damage(const char *name, const foreloop_buffer *form, const foreloop_allocator *allocator) {
    size_t opened = 0, survived = 0, changed = 0;
    for (size_t size = 0; size < form->size; size += size < 512 ? 1 : 61)
        opened += open_copy(form->data, size, allocator);
    CHECK(opened == 0, "%s: no truncation opens", name);
    char *copy = malloc(form->size);
    if (!copy)
        exit(1);
    for (size_t i = 0; i < form->size; i += i < 512 ? 1 : 7, changed++) {
        memcpy(copy, form->data, form->size);
        copy[i] = (char)(copy[i] ^ (i % 3 == 0 ? 0xff : 1 << i % 8));
        survived += open_copy(copy, form->size, allocator);
    }
    free(copy);
    CHECK(survived < changed, "%s: %zu of %zu changed bytes leave a model", name, survived, changed);
}

static void check_allocations(const char *name, const foreloop_buffer *form) {
    counting state = {.fail_at = SIZE_MAX};
    const foreloop_allocator allocator = {counting_allocate, counting_release, &state};
    size_t opened = 0;
    CHECK(open_copy(form->data, form->size, &allocator) && state.live == 0, "%s: opens, releases all", name);
    for (size_t needed = state.calls, i = 0; i < needed; i++) {
        state = (counting){.fail_at = i};
        foreloop_gbdt *gbdt = NULL;
        opened += foreloop_gbdt_open_compiled(&gbdt, form->data, form->size, "test", &allocator, FORELOOP_TIER_BEST,
                                              NULL) == FORELOOP_OK;
        foreloop_gbdt_close(gbdt);
        if (state.live != 0)
            CHECK(0, "%s: allocation %zu leaks", name, i);
    }
    CHECK(opened <= 16, "%s: failing allocations are told", name); /* those of an explanation come later */
}

static void check_model(const char *root, const char *name) {
    const foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    foreloop_gbdt *gbdt = NULL, *again = NULL;
    foreloop_buffer form = {.allocator = &allocator};
    size_t size;
    char *text = read_file(root, name, &size);
    if (foreloop_gbdt_open_memory(&gbdt, text, size, NULL, NULL) != FORELOOP_OK ||
        foreloop_gbdt_compile(gbdt, &form, NULL) != FORELOOP_OK)
        exit(1);
    free(text);
    CHECK(foreloop_gbdt_open_compiled(&again, form.data, form.size, "test", &allocator, FORELOOP_TIER_BEST, NULL) ==
              FORELOOP_OK,
          "%s: opens", name);
    if (again)
        check_same(name, gbdt, again);
    foreloop_gbdt_close(again);
    foreloop_gbdt_close(gbdt);
    check_damage(name, &form, &allocator);
    check_allocations(name, &form);
    foreloop_buffer_close(&form);
}

int main(int argc, char **argv) {
    static const char *const models[] = {"stump.json",   "categories.json",    "lossguide.json", "dart_forest.json",
                                         "vectors.json", "named.json",         "pruned.json",    "root_only.json",
                                         "softmax.json", "root_only.dump.json"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        check_model(argc > 1 ? argv[1] : ".", models[i]);
    return tap_done();
}
