/* The scoring API on the golden bundle: equal to numpy and xgboost, the same bits by every way of calling, and errors
 * for every wrong argument with outputs untouched. */
#include "fixture.h"
#include "tap.h"
#include <math.h>

typedef struct session {
    fixture fix;
    foreloop_model *model;
    foreloop_workload *workload;
    foreloop_actions *actions;
    foreloop_scorer *scorer;
    uint32_t ids[4096];
    size_t offsets[FIXTURE_MAX + 1];
    size_t latent_size, feature_count;
} session;

static void open_session(session *s, int argc, char **argv) {
    foreloop_error error = {0};
    memset(s, 0, sizeof *s);
    fixture_open(&s->fix, argc, argv);
    CHECK(foreloop_model_open(&s->model, s->fix.directory, NULL, &error) == FORELOOP_OK, "open: %s", error.message);
    CHECK(foreloop_workload_create(&s->workload, s->model, s->fix.z0, &error) == FORELOOP_OK, "workload from z0");
    CHECK(foreloop_actions_create(&s->actions, s->model, 0, &error) == FORELOOP_OK, "action table");
    CHECK(foreloop_scorer_create(&s->scorer, s->model, s->actions, &s->fix.hardware, &error) == FORELOOP_OK, "scorer");
    CHECK(fixture_intern(&s->fix, s->actions, s->ids, s->offsets, &error) == FORELOOP_OK, "intern: %s", error.message);
    foreloop_model_info info = {.size = sizeof info};
    foreloop_model_get_info(s->model, &info);
    s->latent_size = info.latent_size;
    s->feature_count = info.feature_count;
}

static void close_session(session *s) {
    foreloop_scorer_close(s->scorer);
    foreloop_actions_close(s->actions);
    foreloop_workload_close(s->workload);
    foreloop_model_close(s->model);
    fixture_close(&s->fix);
}

static const uint32_t *ids_of(const session *s, size_t i) {
    return s->ids + s->offsets[i];
}

static size_t length_of(const session *s, size_t i) {
    return s->offsets[i + 1] - s->offsets[i];
}

/* The largest difference over the largest element. */
static double relative_error(const float *actual, const float *expected, size_t size) {
    double scale = 1e-30, difference = 0;
    for (size_t i = 0; i < size; i++) {
        scale = fmax(scale, fabs((double)expected[i]));
        difference = fmax(difference, fabs((double)actual[i] - (double)expected[i]));
    }
    return difference / scale;
}

static void test_golden(session *s) {
    float latent[256], features[512], scores[FIXTURE_MAX];
    double worst = 0;
    size_t unequal = 0, wrong_scores = 0;
    foreloop_status status = foreloop_score(s->scorer, s->workload, s->ids, s->offsets, s->fix.count, scores, NULL);
    CHECK(status == FORELOOP_OK, "score a batch");
    for (size_t i = 0; i < s->fix.count; i++) {
        const fixture_candidate *candidate = &s->fix.candidates[i];
        status = foreloop_rollout(s->scorer, s->workload, ids_of(s, i), length_of(s, i), latent, NULL);
        if (status != FORELOOP_OK ||
            foreloop_features(s->scorer, s->workload, ids_of(s, i), length_of(s, i), features, NULL) != FORELOOP_OK) {
            unequal++;
            continue;
        }
        worst = fmax(worst, relative_error(latent, candidate->latent, s->latent_size));
        for (size_t j = 0; j < s->feature_count; j++)
            if (foreloop_model_feature_name(s->model, j)[0] != 'z' && features[j] != candidate->features[j])
                unequal++;
        if (fabsf(scores[i] - candidate->score) > 1e-6f)
            wrong_scores++;
    }
    CHECK(worst < 1e-5, "end states agree with numpy: %.2e", worst);
    CHECK(unequal == 0, "aggregates equal numpy's: %zu differ", unequal);
    CHECK(wrong_scores == 0, "scores agree with xgboost: %zu differ", wrong_scores);
}

/* Scores of two workloads do not compare: a stream keeps to one. */
static void test_second_workload(session *s) {
    foreloop_workload *other = NULL;
    foreloop_error error = {0};
    uint64_t best[2];
    size_t found = 0;
    CHECK(foreloop_workload_create(&other, s->model, foreloop_workload_latent(s->workload), NULL) == FORELOOP_OK,
          "a second workload");
    foreloop_topk_begin(s->scorer, 2, NULL);
    foreloop_topk_push(s->scorer, s->workload, s->ids, s->offsets, 1, NULL);
    CHECK(foreloop_topk_push(s->scorer, other, s->ids, s->offsets, 1, &error) == FORELOOP_ERROR_ARGUMENT,
          "refused in the same stream: %s", error.message);
    foreloop_topk_finish(s->scorer, best, NULL, &found, NULL);
    CHECK(found == 1, "of which the rest stays");
    CHECK(foreloop_topk_begin(s->scorer, 2, NULL) == FORELOOP_OK &&
              foreloop_topk_push(s->scorer, other, s->ids, s->offsets, 1, NULL) == FORELOOP_OK &&
              foreloop_topk_finish(s->scorer, best, NULL, &found, NULL) == FORELOOP_OK,
          "taken in the next one");
    foreloop_workload_close(other);
}

/* Scores by batch, one by one, from unaligned arrays, step by step and by top-k have the same bits. */
static void test_same_bits(session *s) {
    float scores[FIXTURE_MAX], single, stepped, top_scores[FIXTURE_MAX];
    uint64_t top[FIXTURE_MAX];
    size_t count = s->fix.count, differ = 0, found = 0;
    foreloop_score(s->scorer, s->workload, s->ids, s->offsets, count, scores, NULL);
    void *state = NULL, *copy = NULL;
    size_t state_size = foreloop_state_size(s->scorer);
    if (posix_memalign(&state, 16, state_size) != 0 || posix_memalign(&copy, 16, state_size) != 0)
        return;
    for (size_t i = 0; i < count; i++) {
        size_t offsets[2] = {0, length_of(s, i)};
        foreloop_score(s->scorer, s->workload, ids_of(s, i), offsets, 1, &single, NULL);
        foreloop_state_begin(s->scorer, s->workload, state, NULL);
        memcpy(copy, state, state_size);
        for (size_t j = 0; j < length_of(s, i); j++) {
            foreloop_state_step(s->scorer, state, ids_of(s, i)[j], NULL);
            memcpy(copy, state, state_size); /* a state moves by memcpy */
            memcpy(state, copy, state_size);
        }
        foreloop_state_score(s->scorer, copy, &stepped, NULL);
        differ += memcmp(&single, &scores[i], 4) != 0 || memcmp(&stepped, &scores[i], 4) != 0;
    }
    free(state);
    free(copy);
    CHECK(differ == 0, "batch, single and step-wise scores have the same bits");

    CHECK(foreloop_rank_top(s->scorer, s->workload, s->ids, s->offsets, count, 7, top, top_scores, &found, NULL) ==
                  FORELOOP_OK &&
              found == 7,
          "the 7 best");
    size_t misplaced = 0;
    for (size_t i = 0; i < found; i++) {
        size_t better = 0;
        for (size_t j = 0; j < count; j++)
            better += scores[j] > scores[top[i]] || (scores[j] == scores[top[i]] && j < top[i]);
        misplaced += better != i || memcmp(&top_scores[i], &scores[top[i]], 4) != 0;
    }
    CHECK(misplaced == 0, "ordered by score, then by place");

    uint64_t streamed[FIXTURE_MAX];
    size_t stream_found = 0;
    foreloop_topk_begin(s->scorer, 7, NULL);
    for (size_t i = 0; i < count; i += 3)
        foreloop_topk_push(s->scorer, s->workload, s->ids, s->offsets + i, count - i < 3 ? count - i : 3, NULL);
    foreloop_topk_finish(s->scorer, streamed, NULL, &stream_found, NULL);
    CHECK(stream_found == found && memcmp(streamed, top, found * sizeof *top) == 0, "a stream gives the same k");

    CHECK(foreloop_rank_top(s->scorer, s->workload, s->ids, s->offsets, count, 1000, top, NULL, &found, NULL) ==
                  FORELOOP_OK &&
              found == count,
          "k larger than the batch");
    CHECK(foreloop_rank_top(s->scorer, s->workload, NULL, NULL, 0, 5, top, NULL, &found, NULL) == FORELOOP_OK &&
              found == 0,
          "an empty batch");
    CHECK(foreloop_rank_top(s->scorer, s->workload, s->ids, s->offsets, count, 0, NULL, NULL, &found, NULL) ==
                  FORELOOP_OK &&
              found == 0,
          "the best none");
    found = 1;
    CHECK(foreloop_topk_begin(s->scorer, 0, NULL) == FORELOOP_OK &&
              foreloop_topk_push(s->scorer, s->workload, s->ids, s->offsets, count, NULL) == FORELOOP_OK &&
              foreloop_topk_finish(s->scorer, NULL, NULL, &found, NULL) == FORELOOP_OK && found == 0,
          "of a stream too");
    test_second_workload(s);
}

/* An action whose embedding is too large, in the middle of a list: those before it are interned, those behind it not.
 */
static void test_large_arguments(session *s, const foreloop_action *any) {
    foreloop_argument arguments[4][16];
    foreloop_action list[4];
    uint32_t ids[4] = {70, 71, 72, 73}, again[2];
    foreloop_error error = {0};
    size_t place = 0;
    foreloop_actions_report before = {.size = sizeof before}, after = {.size = sizeof after};
    for (size_t i = 0; i < 4; i++) {
        memcpy(arguments[i], any->arguments, any->argument_count * sizeof *any->arguments);
        list[i] = (foreloop_action){any->kind, arguments[i], any->argument_count};
    }
    for (; place < any->argument_count; place++) {
        const double kept = arguments[2][place].number;
        arguments[2][place].number = 1e300;
        if (!any->arguments[place].text &&
            foreloop_actions_intern(s->actions, &list[2], 1, again, &error) == FORELOOP_ERROR_VALUE)
            break;
        arguments[2][place].number = kept;
    }
    CHECK(place < any->argument_count && strstr(error.message, "action 0"), "too large: %s", error.message);
    for (size_t i = 0; i < 4; i++)
        if (i != 2)
            arguments[i][place].number = 1000.25 + (double)i;
    foreloop_actions_get_report(s->actions, &before);
    CHECK(foreloop_actions_intern(s->actions, list, 4, ids, &error) == FORELOOP_ERROR_VALUE &&
              strstr(error.message, "action 2") && ids[0] == 70 && ids[3] == 73,
          "in the middle of a list: %s", error.message);
    foreloop_actions_get_report(s->actions, &after);
    CHECK(after.distinct == before.distinct + 2, "two are interned");
    CHECK(foreloop_actions_intern(s->actions, list, 2, again, NULL) == FORELOOP_OK && again[0] == before.distinct + 1 &&
              again[1] == before.distinct + 2,
          "and found again");
    CHECK(foreloop_actions_intern(s->actions, &list[3], 1, again, NULL) == FORELOOP_OK &&
              again[0] == before.distinct + 3,
          "the one behind is new");
}

static void test_interning(session *s) {
    const foreloop_action *first = NULL;
    for (size_t i = 0; i < s->fix.count && !first; i++)
        for (size_t j = 0; j < s->fix.candidates[i].count && !first; j++)
            if (s->fix.candidates[i].actions[j].argument_count >= 3 &&
                strcmp(s->fix.candidates[i].actions[j].kind, "no_such_kind") != 0)
                first = &s->fix.candidates[i].actions[j];
    foreloop_argument reversed[16];
    for (size_t i = 0; i < first->argument_count; i++)
        reversed[i] = first->arguments[first->argument_count - 1 - i];
    foreloop_action pair[2] = {*first, {first->kind, reversed, first->argument_count}};
    uint32_t ids[2] = {77, 78};
    CHECK(foreloop_actions_intern(s->actions, pair, 2, ids, NULL) == FORELOOP_OK && ids[0] == ids[1],
          "the order of arguments does not matter");

    foreloop_error error = {0};
    reversed[0] = reversed[1];
    ids[0] = 77;
    CHECK(foreloop_actions_intern(s->actions, pair, 2, ids, &error) == FORELOOP_ERROR_ARGUMENT && ids[0] == 77,
          "an argument given twice: %s", error.message);

    foreloop_action unknown = {"never_heard_of", NULL, 0};
    foreloop_actions_report before = {.size = sizeof before}, after = {.size = sizeof after};
    foreloop_actions_get_report(s->actions, &before);
    CHECK(foreloop_actions_intern(s->actions, &unknown, 1, ids, NULL) == FORELOOP_OK &&
              ids[0] == FORELOOP_ACTION_UNKNOWN,
          "an unknown kind is no error");
    foreloop_actions_get_report(s->actions, &after);
    CHECK(after.unknown_kinds == before.unknown_kinds + 1 && after.distinct == before.distinct, "but it is counted");

    foreloop_argument extra[2] = {{"not_a_slot", NULL, 1}, {"not_a_slot_either", "x", 0}};
    foreloop_action dropped = {first->kind, extra, 2};
    CHECK(foreloop_actions_intern(s->actions, &dropped, 1, ids, NULL) == FORELOOP_OK, "unknown arguments are dropped");
    foreloop_actions_get_report(s->actions, &after);
    CHECK(after.dropped_arguments == before.dropped_arguments + 2, "and counted");

    foreloop_argument bad[1] = {first->arguments[0]};
    foreloop_action wrong = {first->kind, bad, 1};
    for (size_t i = 0; i < first->argument_count; i++) {
        bad[0] = first->arguments[i];
        if (strcmp(bad[0].name, "no_such_slot") == 0)
            continue;
        if (bad[0].text) {
            bad[0].text = NULL;
            CHECK(foreloop_actions_intern(s->actions, &wrong, 1, ids, &error) == FORELOOP_ERROR_ARGUMENT,
                  "a number for a string: %s", error.message);
        } else {
            bad[0].number = NAN;
            CHECK(foreloop_actions_intern(s->actions, &wrong, 1, ids, &error) == FORELOOP_ERROR_VALUE, "NaN: %s",
                  error.message);
            bad[0].number = -INFINITY;
            CHECK(foreloop_actions_intern(s->actions, &wrong, 1, ids, &error) == FORELOOP_ERROR_VALUE, "infinity");
            bad[0].text = "text";
            CHECK(foreloop_actions_intern(s->actions, &wrong, 1, ids, &error) == FORELOOP_ERROR_ARGUMENT,
                  "a string for a number");
        }
    }

    test_large_arguments(s, first);

    foreloop_actions *small = NULL;
    CHECK(foreloop_actions_create(&small, s->model, 3, NULL) == FORELOOP_OK, "a table for 3 actions");
    uint32_t many[4096];
    size_t offsets[FIXTURE_MAX + 1];
    CHECK(fixture_intern(&s->fix, small, many, offsets, &error) == FORELOOP_ERROR_LIMIT, "full: %s", error.message);
    foreloop_actions_get_report(small, &after);
    CHECK(after.distinct == 3, "3 are in it");
    foreloop_actions_close(small);
}

static void test_bad_arguments(session *s) {
    foreloop_error error = {0};
    float score = 42;
    size_t offsets[3] = {0, 2, 1};
    uint32_t ids[2] = {1, 1u << 30};
    CHECK(foreloop_score(s->scorer, s->workload, ids, offsets, 1, &score, &error) == FORELOOP_ERROR_ARGUMENT &&
              score == 42,
          "an id out of range: %s", error.message);
    ids[1] = 1;
    CHECK(foreloop_score(s->scorer, s->workload, ids, offsets, 2, &score, &error) == FORELOOP_ERROR_ARGUMENT &&
              score == 42,
          "falling offsets: %s", error.message);
    CHECK(foreloop_score(NULL, s->workload, ids, offsets, 1, &score, NULL) == FORELOOP_ERROR_ARGUMENT, "no scorer");
    CHECK(foreloop_score(s->scorer, NULL, ids, offsets, 1, &score, NULL) == FORELOOP_ERROR_ARGUMENT, "no workload");
    CHECK(foreloop_score(s->scorer, s->workload, NULL, offsets, 1, &score, NULL) == FORELOOP_ERROR_ARGUMENT, "no ids");
    CHECK(foreloop_score(s->scorer, s->workload, ids, offsets, 1, NULL, NULL) == FORELOOP_ERROR_ARGUMENT, "no scores");
    CHECK(foreloop_topk_begin(NULL, 1, NULL) == FORELOOP_ERROR_ARGUMENT, "a stream of no scorer");
    CHECK(foreloop_topk_push(s->scorer, s->workload, ids, offsets, 1, NULL) == FORELOOP_ERROR_ARGUMENT,
          "push without begin");
    foreloop_hardware hardware;
    foreloop_hardware_init(&hardware, sizeof hardware);
    hardware.cores = NAN;
    foreloop_scorer *scorer = NULL;
    CHECK(foreloop_scorer_create(&scorer, s->model, s->actions, &hardware, &error) == FORELOOP_ERROR_VALUE && !scorer,
          "hardware NaN: %s", error.message);
    foreloop_workload *workload = NULL;
    float latent[256] = {0};
    latent[1] = INFINITY;
    CHECK(foreloop_workload_create(&workload, s->model, latent, &error) == FORELOOP_ERROR_VALUE && !workload,
          "an infinite latent state: %s", error.message);
    _Alignas(16) unsigned char blank[1 << 14] = {0};
    CHECK(foreloop_state_step(s->scorer, blank, 1, &error) == FORELOOP_ERROR_ARGUMENT, "a state never begun: %s",
          error.message);
    foreloop_model_close(NULL);
    foreloop_scorer_close(NULL);
    foreloop_actions_close(NULL);
    foreloop_workload_close(NULL);
}

static void test_saved_workload(session *s) {
    foreloop_error error = {0};
    unsigned char saved[4096];
    size_t size = foreloop_workload_saved_size(s->workload);
    CHECK(foreloop_workload_save(s->workload, saved, size - 1, &error) == FORELOOP_ERROR_LIMIT, "too small a buffer");
    CHECK(foreloop_workload_save(s->workload, saved, sizeof saved, &error) == FORELOOP_OK, "save");
    foreloop_workload *loaded = NULL;
    CHECK(foreloop_workload_load(&loaded, s->model, saved, size, &error) == FORELOOP_OK, "load: %s", error.message);
    CHECK(memcmp(foreloop_workload_latent(loaded), foreloop_workload_latent(s->workload),
                 s->latent_size * sizeof(float)) == 0,
          "the same bits");
    foreloop_workload_close(loaded);
    size_t accepted = 0;
    loaded = NULL;
    for (size_t i = 0; i < size; i++)
        accepted += foreloop_workload_load(&loaded, s->model, saved, i, NULL) == FORELOOP_OK;
    for (size_t i = 0; i < size; i++) {
        saved[i] ^= 1;
        accepted += foreloop_workload_load(&loaded, s->model, saved, size, NULL) == FORELOOP_OK;
        saved[i] ^= 1;
    }
    CHECK(accepted == 0 && !loaded, "every truncation and every changed byte is refused");
}

static void test_encoding(session *s) {
    foreloop_encoder *encoder = NULL, *foreign = NULL;
    foreloop_model *other = NULL;
    foreloop_workload *a = NULL, *b = NULL;
    const char *text = "for i in range(512):\n    C[i] = A[i] + B[i]\n",
               *commented = "# x\nfor i in range(512):\n\n    C[i] = A[i] + B[i]\n";
    CHECK(foreloop_encoder_create(&encoder, foreloop_model_transformer(s->model), NULL) == FORELOOP_OK, "encoder");
    CHECK(foreloop_workload_encode(&a, s->model, encoder, text, strlen(text), NULL) == FORELOOP_OK, "encode");
    CHECK(foreloop_workload_encode(&b, s->model, encoder, commented, strlen(commented), NULL) == FORELOOP_OK,
          "encode with a comment");
    CHECK(a && b &&
              memcmp(foreloop_workload_latent(a), foreloop_workload_latent(b), s->latent_size * sizeof(float)) == 0,
          "comments do not matter");
    foreloop_workload_close(b);
    b = NULL;
    CHECK(foreloop_workload_encode(&b, s->model, encoder, "", 0, NULL) == FORELOOP_OK, "an empty program");
    foreloop_workload_close(b);
    foreloop_workload_close(a);
    CHECK(foreloop_model_open(&other, s->fix.directory, NULL, NULL) == FORELOOP_OK &&
              foreloop_encoder_create(&foreign, foreloop_model_transformer(other), NULL) == FORELOOP_OK &&
              foreloop_workload_encode(&b, s->model, foreign, text, strlen(text), NULL) == FORELOOP_ERROR_ARGUMENT,
          "an encoder of another model");
    foreloop_encoder_close(foreign);
    foreloop_model_close(other);
    foreloop_encoder_close(encoder);
}

int main(int argc, char **argv) {
    static session s;
    open_session(&s, argc, argv);
    test_golden(&s);
    test_same_bits(&s);
    test_interning(&s);
    test_bad_arguments(&s);
    test_saved_workload(&s);
    test_encoding(&s);
    close_session(&s);
    return tap_done();
}
