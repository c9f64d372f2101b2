/* A scorer with another ranker than the model's: the same bits by every way of calling, errors that leave it as it was,
 * and a ranker that a search trains on what it measured. */
#include "failing_allocator.h"
#include "fixture.h"
#include "network_oracle.h"
#include "tap.h"
#include <stdbool.h>

enum { FEATURES_MAX = 512 };

typedef struct session {
    fixture fix;
    failing_allocator memory;
    foreloop_model *model;
    foreloop_workload *workload;
    foreloop_actions *actions;
    foreloop_scorer *scorer;
    uint32_t ids[4096];
    size_t offsets[FIXTURE_MAX + 1];
    const char *names[FEATURES_MAX];
    size_t feature_count;
    float features[FIXTURE_MAX * FEATURES_MAX];
    float before[FIXTURE_MAX]; /* scores by the model's own trees */
} session;

static void open_session(session *s, int argc, char **argv) {
    foreloop_error error = {.message = ""};
    foreloop_options options;
    memset(s, 0, sizeof *s);
    s->memory.fail_at = SIZE_MAX;
    const foreloop_allocator allocator = failing_allocator_use(&s->memory);
    foreloop_options_init(&options, sizeof options);
    options.allocator = &allocator;
    fixture_open(&s->fix, argc, argv);
    CHECK(foreloop_model_open(&s->model, s->fix.directory, &options, &error) == FORELOOP_OK &&
              foreloop_workload_create(&s->workload, s->model, s->fix.z0, &error) == FORELOOP_OK &&
              foreloop_actions_create(&s->actions, s->model, 0, &error) == FORELOOP_OK &&
              foreloop_scorer_create(&s->scorer, s->model, s->actions, &s->fix.hardware, &error) == FORELOOP_OK &&
              fixture_intern(&s->fix, s->actions, s->ids, s->offsets, &error) == FORELOOP_OK,
          "open: %s", error.message);
    while ((s->names[s->feature_count] = foreloop_model_feature_name(s->model, s->feature_count)))
        s->feature_count++;
    CHECK(foreloop_features_batch(s->scorer, s->workload, s->ids, s->offsets, s->fix.count, s->features,
                                  s->feature_count, &error) == FORELOOP_OK,
          "features of a batch: %s", error.message);
    CHECK(foreloop_features_batch(s->scorer, s->workload, s->ids, s->offsets, s->fix.count, s->features,
                                  s->feature_count - 1, &error) == FORELOOP_ERROR_ARGUMENT,
          "a stride that is too small: %s", error.message);
    CHECK(foreloop_score(s->scorer, s->workload, s->ids, s->offsets, s->fix.count, s->before, &error) == FORELOOP_OK,
          "scores by the model's own trees");
}

static void close_session(session *s) {
    foreloop_scorer_close(s->scorer);
    foreloop_actions_close(s->actions);
    foreloop_workload_close(s->workload);
    foreloop_model_close(s->model);
    fixture_close(&s->fix);
    CHECK(s->memory.live == 0, "nothing leaks");
}

/* Trains on columns `first`, first + step ... of the features, as if times were the actions' number and the index. */
static foreloop_gbdt *train(const session *s, size_t first, size_t step, const char *const *names) {
    static float rows[FIXTURE_MAX * FEATURES_MAX];
    const char *own[FEATURES_MAX];
    double seconds[FIXTURE_MAX];
    const size_t groups[] = {0, s->fix.count};
    foreloop_error error = {.message = ""};
    foreloop_gbdt_rows given;
    foreloop_ranker_data data;
    foreloop_ranker_options options;
    foreloop_gbdt *ranker = NULL;
    size_t columns = 0;
    for (size_t f = first; f < s->feature_count; f += step)
        own[columns++] = names ? names[f] : NULL;
    for (size_t i = 0; i < s->fix.count; i++) {
        for (size_t c = 0; c < columns; c++)
            rows[i * columns + c] = s->features[i * s->feature_count + first + c * step];
        seconds[i] = 1e-3 * (double)(1 + i % 7) * (double)(1 + s->offsets[i + 1] - s->offsets[i]);
    }
    foreloop_gbdt_rows_init(&given, sizeof given);
    foreloop_ranker_data_init(&data, sizeof data);
    foreloop_ranker_options_init(&options, sizeof options);
    given.values = rows;
    given.row_count = s->fix.count;
    given.column_count = columns;
    data.rows = &given;
    data.groups = groups;
    data.group_count = 1;
    data.seconds = seconds;
    options.rounds = 30;
    options.depth = 4;
    if (names) {
        options.feature_names = own;
        options.feature_name_count = columns;
    }
    if (foreloop_ranker_train(&ranker, &data, &options, &error) != FORELOOP_OK)
        printf("# %s\n", error.message);
    return ranker;
}

/* The scores of the ranker itself on the features' columns, and of the model's network beside it. */
static void predict(const session *s, const foreloop_gbdt *ranker, size_t first, size_t step, float *margins) {
    float row[FEATURES_MAX];
    for (size_t i = 0; i < s->fix.count; i++) {
        size_t columns = 0;
        for (size_t f = first; f < s->feature_count; f += step)
            row[columns++] = s->features[i * s->feature_count + f];
        (void)foreloop_gbdt_predict(ranker, row, 1, columns, 1, margins + i, NULL);
        margins[i] = oracle_score(s->model, margins[i], s->features + i * s->feature_count);
    }
}

/* Scores step by step. */
static bool score_by_steps(session *s, float *scores) {
    void *state = aligned_alloc(64, (foreloop_state_size(s->scorer) + 63) / 64 * 64);
    bool good = state != NULL;
    for (size_t i = 0; good && i < s->fix.count; i++) {
        good = foreloop_state_begin(s->scorer, s->workload, state, NULL) == FORELOOP_OK;
        for (size_t j = s->offsets[i]; good && j < s->offsets[i + 1]; j++)
            good = foreloop_state_step(s->scorer, state, s->ids[j], NULL) == FORELOOP_OK;
        good = good && foreloop_state_score(s->scorer, state, scores + i, NULL) == FORELOOP_OK;
    }
    free(state);
    return good;
}

/* Whether the candidates again and again, from another one on each time, score as they should: several blocks. */
static bool blocks_agree(session *s, const float *expected) {
    enum { ROUNDS = 150 };
    static uint32_t ids[ROUNDS * 4096];
    static size_t offsets[ROUNDS * FIXTURE_MAX + 1];
    static float scores[ROUNDS * FIXTURE_MAX];
    const size_t count = s->fix.count, all = ROUNDS * count;
    bool agree = true;
    for (size_t i = 0; i < all; i++) {
        const size_t own = (i + i / count) % count, length = s->offsets[own + 1] - s->offsets[own];
        memcpy(ids + offsets[i], s->ids + s->offsets[own], length * sizeof *ids);
        offsets[i + 1] = offsets[i] + length;
    }
    agree &= foreloop_score(s->scorer, s->workload, ids, offsets, all, scores, NULL) == FORELOOP_OK;
    for (size_t i = 0; i < all; i++)
        agree &= memcmp(&scores[i], &expected[(i + i / count) % count], sizeof *scores) == 0;
    return agree;
}

static void check_scores(session *s, const foreloop_gbdt *ranker, size_t first, size_t step, const char *what) {
    float expected[FIXTURE_MAX], batch[FIXTURE_MAX], single[FIXTURE_MAX], steps[FIXTURE_MAX];
    foreloop_error error = {.message = ""};
    const size_t bytes = s->fix.count * sizeof(float);
    predict(s, ranker, first, step, expected);
    CHECK(foreloop_scorer_set_ranker(s->scorer, ranker, &error) == FORELOOP_OK, "%s: set: %s", what, error.message);
    CHECK(foreloop_score(s->scorer, s->workload, s->ids, s->offsets, s->fix.count, batch, NULL) == FORELOOP_OK &&
              memcmp(batch, expected, bytes) == 0,
          "%s: scores are what the ranker and the network make of the features", what);
    for (size_t i = 0; i < s->fix.count; i++)
        (void)foreloop_score(s->scorer, s->workload, s->ids, s->offsets + i, 1, single + i, NULL);
    CHECK(memcmp(single, expected, bytes) == 0, "%s: one by one", what);
    CHECK(blocks_agree(s, expected), "%s: in blocks", what);
    CHECK(score_by_steps(s, steps) && memcmp(steps, expected, bytes) == 0, "%s: step by step", what);
    CHECK(foreloop_scorer_set_ranker(s->scorer, NULL, &error) == FORELOOP_OK &&
              foreloop_score(s->scorer, s->workload, s->ids, s->offsets, s->fix.count, batch, NULL) == FORELOOP_OK &&
              memcmp(batch, s->before, bytes) == 0,
          "%s: back to the model's own", what);
}

static void test_scores(session *s, size_t first, size_t step, const char *const *names, const char *what) {
    foreloop_gbdt *ranker = train(s, first, step, names);
    check_scores(s, ranker, first, step, what);
    foreloop_gbdt_close(ranker);
}

/* A ranker as text: trees that are chains of splits, on all features in turn, at values that candidates have. Trees of
 * more than 256 leaves are walked on the values themselves; where both ways of missing values occur, a feature has two
 * columns of codes, and many thresholds make more of them. */
static foreloop_gbdt *chains(const session *s, size_t trees, size_t splits, foreloop_error *error) {
    static const char *const columns[] = {"left_children", "right_children", "default_left", "split_indices",
                                          "split_conditions"};
    static char text[1 << 21];
    foreloop_gbdt *ranker = NULL;
    size_t used = 0, next = 0;
#define PUT(...) (used += (size_t)snprintf(text + used, sizeof text - used, __VA_ARGS__))
    PUT("{\"learner\":{\"learner_model_param\":{\"base_score\":\"0\",\"num_feature\":\"%zu\"},\"objective\":{\"name\":"
        "\"rank:ndcg\"},\"gradient_booster\":{\"name\":\"gbtree\",\"model\":{\"trees\":[",
        s->feature_count);
    for (size_t t = 0; t < trees; t++, next += splits) {
        for (size_t c = 0; c < 5; c++) {
            PUT("%s\"%s\":[", c > 0 ? "," : t > 0 ? ",{" : "{", columns[c]);
            /* Split k is node 2 k; its left child is a leaf, its right one the next split, or a leaf at the end. */
            for (size_t i = 0; i < 2 * splits + 1; i++) {
                const bool split = i % 2 == 0 && i < 2 * splits;
                const size_t k = next + i / 2, feature = k * 7 % s->feature_count;
                const char *comma = i > 0 ? "," : "";
                if (c < 2)
                    PUT("%s%lld", comma, split ? (long long)(i + 1 + c) : -1LL);
                else if (c < 4)
                    PUT("%s%zu", comma, !split ? 0 : c == 2 ? k / 3 % 2 : feature);
                else
                    PUT("%s%.9g", comma,
                        split ? (double)s->features[k * 13 % s->fix.count * s->feature_count + feature]
                              : (double)(i % 97) / 8 - 6);
            }
            PUT("]");
        }
        PUT("}");
    }
    PUT("],\"tree_info\":[");
    for (size_t t = 0; t < trees; t++)
        PUT("%s0", t > 0 ? "," : "");
    PUT("]}}}}");
#undef PUT
    return foreloop_gbdt_open_memory(&ranker, text, used, NULL, error) == FORELOOP_OK ? ranker : NULL;
}

static void test_shapes(session *s) {
    static const struct {
        size_t trees, splits;
        const char *what;
    } shapes[] = {{3, 400, "trees that are walked"}, {5, 0, "trees without splits"}, {60, 40, "trees in many columns"}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        foreloop_error error = {.message = ""};
        foreloop_gbdt *ranker = chains(s, shapes[i].trees, shapes[i].splits, &error);
        if (CHECK(ranker != NULL, "%s: %s", shapes[i].what, error.message))
            check_scores(s, ranker, 0, 1, shapes[i].what);
        foreloop_gbdt_close(ranker);
    }
}

static void test_errors(session *s) {
    const char *strange[FEATURES_MAX];
    uint64_t best[2];
    size_t found;
    float scores[FIXTURE_MAX];
    foreloop_error error = {.message = ""};
    for (size_t f = 0; f < s->feature_count; f++)
        strange[f] = s->names[f];
    strange[1] = "count.of_nothing";
    foreloop_gbdt *unknown = train(s, 0, 1, strange), *unnamed = train(s, 0, 2, NULL), *good = train(s, 0, 1, NULL);
    CHECK(foreloop_scorer_set_ranker(s->scorer, unknown, &error) == FORELOOP_ERROR_MISMATCH, "unknown feature: %s",
          error.message);
    CHECK(foreloop_scorer_set_ranker(s->scorer, unnamed, &error) == FORELOOP_ERROR_MISMATCH,
          "fewer features without names: %s", error.message);
    CHECK(foreloop_scorer_set_ranker(NULL, good, &error) == FORELOOP_ERROR_ARGUMENT, "no scorer");
    CHECK(foreloop_topk_begin(s->scorer, 2, NULL) == FORELOOP_OK &&
              foreloop_scorer_set_ranker(s->scorer, good, &error) == FORELOOP_ERROR_ARGUMENT,
          "within a stream: %s", error.message);
    CHECK(foreloop_topk_push(s->scorer, s->workload, s->ids, s->offsets, s->fix.count, NULL) == FORELOOP_OK &&
              foreloop_topk_finish(s->scorer, best, NULL, &found, NULL) == FORELOOP_OK,
          "which goes on");
    size_t wrong = 0, n = 0;
    for (;; n++) {
        s->memory.calls = 0;
        s->memory.fail_at = n;
        const foreloop_status status = foreloop_scorer_set_ranker(s->scorer, good, NULL);
        s->memory.fail_at = SIZE_MAX;
        if (status == FORELOOP_OK)
            break;
        wrong +=
            status != FORELOOP_ERROR_MEMORY ||
            foreloop_score(s->scorer, s->workload, s->ids, s->offsets, s->fix.count, scores, NULL) != FORELOOP_OK ||
            memcmp(scores, s->before, s->fix.count * sizeof *scores) != 0;
    }
    CHECK(n > 5 && wrong == 0, "memory runs out at each of %zu allocations: the scorer stays as it was", n);
    CHECK(foreloop_topk_begin(s->scorer, 2, NULL) == FORELOOP_OK &&
              foreloop_topk_push(s->scorer, s->workload, s->ids, s->offsets, s->fix.count, NULL) == FORELOOP_OK &&
              foreloop_topk_finish(s->scorer, best, NULL, &found, NULL) == FORELOOP_OK && found == 2,
          "a stream with the new ranker");
    (void)foreloop_scorer_set_ranker(s->scorer, NULL, NULL);
    foreloop_gbdt_close(unknown);
    foreloop_gbdt_close(unnamed);
    foreloop_gbdt_close(good);
}

/* States are bound to the features that are formed. */
static void test_states(session *s) {
    static _Alignas(64) unsigned char state[1 << 16];
    foreloop_error error = {.message = ""};
    float score;
    foreloop_gbdt *ranker = chains(s, 60, 40, &error); /* which read all features */
    const size_t before = foreloop_state_size(s->scorer);
    CHECK(before < sizeof state && foreloop_state_begin(s->scorer, s->workload, state, NULL) == FORELOOP_OK &&
              foreloop_state_score(s->scorer, state, &score, NULL) == FORELOOP_OK,
          "a state of %zu bytes", before);
    CHECK(foreloop_scorer_set_ranker(s->scorer, ranker, NULL) == FORELOOP_OK && foreloop_state_size(s->scorer) > before,
          "a ranker that reads more needs larger ones");
    CHECK(foreloop_state_score(s->scorer, state, &score, &error) == FORELOOP_ERROR_ARGUMENT, "an old one: %s",
          error.message);
    CHECK(foreloop_state_step(s->scorer, state, s->ids[0], &error) == FORELOOP_ERROR_ARGUMENT, "nor can it step");
    CHECK(foreloop_scorer_set_ranker(s->scorer, NULL, NULL) == FORELOOP_OK &&
              foreloop_state_score(s->scorer, state, &score, NULL) == FORELOOP_OK,
          "the model's own ranker takes it again");
    foreloop_gbdt_close(ranker);
}

int main(int argc, char **argv) {
    static session s;
    open_session(&s, argc, argv);
    test_scores(&s, 0, 1, s.names, "all features by name");
    test_scores(&s, 0, 1, NULL, "all features in order");
    test_scores(&s, 1, 3, s.names, "some features by name");
    test_shapes(&s);
    test_states(&s);
    test_errors(&s);
    close_session(&s);
    return tap_done();
}
