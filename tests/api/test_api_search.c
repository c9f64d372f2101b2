/* What a search needs besides scores: threads, how well a candidate is known, weights for samplers, long streams, and
 * the same score for a trace with and without its postprocessing. */
#include "engine.h"
#include "tap.h"
#include <cjson/cJSON.h>
#include <float.h>
#include <math.h>
#include <pthread.h>

static engine own;

/* ---- A caller's parallel-for ---- */

typedef struct pool_task {
    pthread_t thread;
    void (*task)(void *argument, size_t index);
    void *argument;
    size_t index;
} pool_task;

static void *run_task(void *argument) {
    pool_task *task = argument;
    task->task(task->argument, task->index);
    return NULL;
}

static void run_threads(void *user, size_t count, void (*task)(void *argument, size_t index), void *argument) {
    pool_task tasks[16];
    (void)user;
    for (size_t i = 0; i < count; i++) {
        tasks[i] = (pool_task){.task = task, .argument = argument, .index = i};
        if (pthread_create(&tasks[i].thread, NULL, run_task, &tasks[i]) != 0)
            exit(99);
    }
    for (size_t i = 0; i < count; i++)
        pthread_join(tasks[i].thread, NULL);
}

static void test_parallel(void) {
    enum { MOST = 8 };
    const foreloop_parallel_for parallel = {run_threads, NULL};
    foreloop_scorer *scorers[MOST] = {own.scorer};
    float expected[ENGINE_CANDIDATES], scores[ENGINE_CANDIDATES];
    foreloop_error error = {0};
    size_t differ = 0;
    for (size_t i = 1; i < MOST; i++)
        if (foreloop_scorer_create(&scorers[i], own.model, own.actions, &own.hardware, NULL) != FORELOOP_OK)
            exit(99);
    foreloop_score(own.scorer, own.workload, own.ids, own.offsets, ENGINE_CANDIDATES, expected, NULL);
    for (size_t count = 1; count <= MOST; count++)
        for (size_t candidates = 0; candidates <= ENGINE_CANDIDATES; candidates += 29) {
            memset(scores, 0, sizeof scores);
            differ += foreloop_score_parallel(scorers, count, &parallel, own.workload, own.ids, own.offsets, candidates,
                                              scores, &error) != FORELOOP_OK ||
                      memcmp(scores, expected, candidates * sizeof *scores) != 0;
        }
    CHECK(differ == 0, "1 to 8 threads give the bits of one: %zu differ", differ);

    scores[0] = 42;
    foreloop_scorer *twice[2] = {scorers[0], scorers[0]};
    CHECK(foreloop_score_parallel(twice, 2, &parallel, own.workload, own.ids, own.offsets, 5, scores, &error) ==
                  FORELOOP_ERROR_ARGUMENT &&
              scores[0] == 42,
          "a scorer given twice: %s", error.message);
    foreloop_hardware other = own.hardware;
    other.cores = 99;
    foreloop_scorer *mixed[2] = {scorers[0], NULL};
    CHECK(foreloop_score_parallel(mixed, 2, &parallel, own.workload, own.ids, own.offsets, 5, scores, &error) ==
              FORELOOP_ERROR_ARGUMENT,
          "a scorer that is NULL");
    CHECK(foreloop_scorer_create(&mixed[1], own.model, own.actions, &other, NULL) == FORELOOP_OK &&
              foreloop_score_parallel(mixed, 2, &parallel, own.workload, own.ids, own.offsets, 5, scores, &error) ==
                  FORELOOP_ERROR_ARGUMENT,
          "scorers of different hardware: %s", error.message);
    CHECK(foreloop_score_parallel(scorers, 0, &parallel, own.workload, own.ids, own.offsets, 5, scores, &error) ==
              FORELOOP_ERROR_ARGUMENT,
          "no scorer");
    uint32_t wrong = 1u << 30;
    const size_t offsets[2] = {0, 1};
    CHECK(foreloop_score_parallel(scorers, 2, &parallel, own.workload, &wrong, offsets, 1, scores, &error) ==
                  FORELOOP_ERROR_ARGUMENT &&
              scores[0] == 42,
          "an id out of range, before any task runs");
    foreloop_scorer_close(mixed[1]);
    for (size_t i = 1; i < MOST; i++)
        foreloop_scorer_close(scorers[i]);
}

/* ---- Honesty ---- */

static void test_details(void) {
    const foreloop_argument known[] = {{"extent", NULL, 12}, {"inner", NULL, 65536}};
    const foreloop_argument far[] = {{"extent", NULL, -3}, {"inner", NULL, 65537}, {"colour", "red", 0}};
    const foreloop_action list[] = {{"split_s0", known, 2}, {"split_s0", far, 3}, {"never_heard_of", NULL, 0}};
    CHECK(strcmp(foreloop_model_kind_name(own.model, 2), "split_s0") == 0 &&
              strcmp(foreloop_model_slot_name(own.model, 2, 4), "inner") == 0 &&
              !foreloop_model_slot_name(own.model, 2, BENCH_SLOTS) &&
              !foreloop_model_slot_name(own.model, ENGINE_REAL_KINDS, 0),
          "names of kinds and arguments");
    uint32_t ids[3];
    foreloop_actions_report before = {.size = sizeof before}, after = {.size = sizeof after};
    foreloop_actions_get_report(own.actions, &before);
    CHECK(foreloop_actions_intern(own.actions, list, 3, ids, NULL) == FORELOOP_OK, "intern");
    foreloop_actions_get_report(own.actions, &after);
    CHECK(after.out_of_range == before.out_of_range + 2, "numbers outside the training range are counted");
    const uint32_t sequence[] = {ids[0], ids[0], ids[1], ids[2], ids[1], ids[2]};
    const size_t offsets[] = {0, 2, 6, 6};
    foreloop_candidate_details details[3];
    memset(details, 0xff, sizeof details);
    CHECK(foreloop_score_details(own.scorer, sequence, offsets, 3, details, NULL) == FORELOOP_OK, "details");
    CHECK(details[0].actions == 2 && details[0].unknown_kinds == 0 && details[0].dropped_arguments == 0 &&
              details[0].unknown_values == 0 && details[0].out_of_range == 0,
          "a candidate that is known in full");
    CHECK(details[1].actions == 4 && details[1].unknown_kinds == 2 && details[1].dropped_arguments == 2 &&
              details[1].out_of_range == 4,
          "one that is half known");
    CHECK(details[2].actions == 0 && details[2].out_of_range == 0, "an empty one");
    const uint32_t wrong = 1u << 30;
    details[0].actions = 77;
    CHECK(foreloop_score_details(own.scorer, &wrong, (const size_t[]){0, 1}, 1, details, NULL) ==
                  FORELOOP_ERROR_ARGUMENT &&
              details[0].actions == 77,
          "an id out of range");
}

/* ---- Arguments in any order ---- */

/* Interns an action of kind 2 with these arguments. */
static foreloop_status intern_one(const foreloop_argument *arguments, size_t count, uint32_t *id) {
    const foreloop_action action = {foreloop_model_kind_name(own.model, 2), arguments, count};
    return foreloop_actions_intern(own.actions, &action, 1, id, NULL);
}

/* Arguments by the model's own names are expected where they were the last time: whatever was there, the action is what
 * its arguments say. */
static void test_argument_order(void) {
    foreloop_argument a[BENCH_SLOTS], b[BENCH_SLOTS], texts[BENCH_SLOTS];
    char names[BENCH_SLOTS][32];
    uint32_t id = 0, other = 0;
    for (size_t i = 0; i < BENCH_SLOTS; i++) {
        const char *name = foreloop_model_slot_name(own.model, 2, i);
        a[i] = b[BENCH_SLOTS - 1 - i] = (foreloop_argument){name, NULL, (double)(3 * i + 5)};
        (void)snprintf(names[i], sizeof names[i], "%s", name);
        texts[i] = (foreloop_argument){names[i], NULL, a[i].number};
    }
    const foreloop_argument twice[] = {b[0], b[0]};
    CHECK(intern_one(a, BENCH_SLOTS, &id) == FORELOOP_OK && intern_one(a, BENCH_SLOTS, &other) == FORELOOP_OK &&
              id == other,
          "the same arguments again");
    CHECK(intern_one(b, BENCH_SLOTS, &other) == FORELOOP_OK && id == other &&
              intern_one(b, BENCH_SLOTS, &other) == FORELOOP_OK && id == other,
          "in another order, and again in that");
    CHECK(intern_one(texts, BENCH_SLOTS, &other) == FORELOOP_OK && id == other, "by names of the host's");
    CHECK(intern_one(b + 1, 2, &id) == FORELOOP_OK && intern_one(a + BENCH_SLOTS - 3, 2, &other) == FORELOOP_OK &&
              id == other && intern_one(b + 1, 2, &other) == FORELOOP_OK && id == other,
          "a few of them in both orders");
    /* Each of these places was last the slot's, one after the other. */
    CHECK(intern_one(a, 2, &id) == FORELOOP_OK && intern_one(a + 1, 1, &id) == FORELOOP_OK, "one at the other's place");
    const foreloop_argument both[] = {a[1], a[1]};
    CHECK(intern_one(both, 2, &other) == FORELOOP_ERROR_ARGUMENT &&
              intern_one(twice, 2, &other) == FORELOOP_ERROR_ARGUMENT,
          "one given twice");
    foreloop_argument zero = {a[0].name, NULL, 0.0}, bad = zero;
    CHECK(intern_one(&zero, 1, &id) == FORELOOP_OK && intern_one(&zero, 1, &id) == FORELOOP_OK, "zero");
    zero.number = -0.0;
    CHECK(intern_one(&zero, 1, &other) == FORELOOP_OK && id == other, "-0 is 0");
    bad.number = (double)NAN;
    CHECK(intern_one(&bad, 1, &other) == FORELOOP_ERROR_VALUE, "NaN where a number was");
    bad.number = -(double)INFINITY;
    CHECK(intern_one(&bad, 1, &other) == FORELOOP_ERROR_VALUE, "-infinity where a number was");
    bad = (foreloop_argument){a[0].name, "12", 0.0};
    CHECK(intern_one(&bad, 1, &other) == FORELOOP_ERROR_ARGUMENT, "a string where a number was");
    bad = (foreloop_argument){NULL, NULL, 0.0};
    CHECK(intern_one(&bad, 1, &other) == FORELOOP_ERROR_ARGUMENT, "no name");
    foreloop_actions_report before = {.size = sizeof before}, after = {.size = sizeof after};
    foreloop_actions_get_report(own.actions, &before);
    bad = (foreloop_argument){a[0].name, NULL, 65537};
    CHECK(intern_one(&bad, 1, &other) == FORELOOP_OK, "out of the training range where a number was");
    foreloop_actions_get_report(own.actions, &after);
    CHECK(after.out_of_range == before.out_of_range + 1, "and counted");
}

static void test_weights(void) {
    float scores[] = {-3, 5, 5, 0, -1000}, weights[5];
    double sum = 0;
    foreloop_error error = {0};
    CHECK(foreloop_scores_to_weights(scores, 5, 1, weights, NULL) == FORELOOP_OK, "weights");
    for (size_t i = 0; i < 5; i++)
        sum += weights[i];
    CHECK(fabs(sum - 1) < 1e-6, "they add up to 1");
    CHECK(weights[1] == weights[2] && weights[1] > weights[3] && weights[3] > weights[0] && weights[0] > weights[4],
          "they rise with the score");
    CHECK(weights[4] >= FLT_MIN, "a hopeless one is positive still");
    CHECK(fabs(log((double)weights[1] / weights[3]) - 5) < 1e-5, "their odds are e^difference at temperature 1");
    CHECK(foreloop_scores_to_weights(scores, 5, 1e30f, weights, NULL) == FORELOOP_OK &&
              fabsf(weights[0] - weights[1]) < 1e-6f,
          "a high temperature makes them alike");
    CHECK(foreloop_scores_to_weights(scores, 5, 0, weights, &error) == FORELOOP_ERROR_ARGUMENT, "temperature 0: %s",
          error.message);
    scores[3] = NAN;
    CHECK(foreloop_scores_to_weights(scores, 5, 1, weights, &error) == FORELOOP_ERROR_VALUE, "NaN: %s", error.message);
}

/* ---- Streams ---- */

static void test_long_stream(void) {
    enum { ROUNDS = 50, K = 5 };
    uint64_t best[K];
    float scores[ENGINE_CANDIDATES], best_scores[K];
    size_t found = 0, highest = 0;
    foreloop_score(own.scorer, own.workload, own.ids, own.offsets, ENGINE_CANDIDATES, scores, NULL);
    for (size_t i = 0; i < ENGINE_CANDIDATES; i++)
        highest = scores[i] > scores[highest] ? i : highest;
    foreloop_topk_begin(own.scorer, K, NULL);
    for (size_t round = 0; round < ROUNDS; round++)
        foreloop_topk_push(own.scorer, own.workload, own.ids, own.offsets, ENGINE_CANDIDATES, NULL);
    foreloop_topk_finish(own.scorer, best, best_scores, &found, NULL);
    size_t wrong = 0;
    for (size_t i = 0; i < found; i++)
        wrong += best[i] != highest + i * ENGINE_CANDIDATES || best_scores[i] != scores[highest];
    CHECK(found == K && wrong == 0, "equal scores keep the order of the stream");
}

/* ---- A trace with and without its postprocessing ---- */

/* Interns the record's actions; returns their number. */
static size_t intern_record(const char *line, uint32_t *ids) {
    foreloop_records *records = NULL;
    foreloop_record record = {.size = sizeof record};
    size_t count = 0;
    if (foreloop_records_open_memory(&records, line, strlen(line), NULL, &own.error) == FORELOOP_OK &&
        foreloop_records_next(records, &record, &own.error) == FORELOOP_OK && record.action_count < 64 &&
        foreloop_actions_intern(own.actions, record.actions, record.action_count, ids, &own.error) == FORELOOP_OK)
        count = record.action_count;
    foreloop_records_close(records);
    return count;
}

/* The line without the instructions from EnterPostproc on. */
static char *without_postprocessing(const char *line) {
    cJSON *json = cJSON_Parse(line);
    cJSON *trace = cJSON_GetArrayItem(cJSON_GetArrayItem(json, 1), 0), *instructions = cJSON_GetArrayItem(trace, 0);
    int count = cJSON_GetArraySize(instructions), at = 0;
    while (at < count &&
           strcmp(cJSON_GetArrayItem(cJSON_GetArrayItem(instructions, at), 0)->valuestring, "EnterPostproc") != 0)
        at++;
    for (int i = at; i < count; i++)
        cJSON_DeleteItemFromArray(instructions, at);
    char *text = at < count ? cJSON_PrintUnformatted(json) : NULL;
    cJSON_Delete(json);
    return text;
}

static void test_postprocessing(const char *root) {
    char path[2048];
    static char line[1 << 16];
    size_t records = 0, differ = 0;
    snprintf(path, sizeof path, "%s/examples/data/conv3x3_96/database_tuning_record.json", root);
    FILE *file = fopen(path, "rb");
    if (!CHECK(file != NULL, "%s", path))
        return;
    while (fgets(line, sizeof line, file) && records < 20) {
        uint32_t ids[128];
        size_t offsets[3] = {0};
        float scores[2] = {1, 2};
        char *shorter = without_postprocessing(line);
        offsets[1] = intern_record(line, ids);
        offsets[2] = offsets[1] + (shorter ? intern_record(shorter, ids + offsets[1]) : 0);
        free(shorter);
        records++;
        differ += offsets[1] < 5 || offsets[2] == offsets[1] ||
                  foreloop_score(own.scorer, own.workload, ids, offsets, 2, scores, NULL) != FORELOOP_OK ||
                  memcmp(&scores[0], &scores[1], sizeof *scores) != 0;
    }
    fclose(file);
    CHECK(records == 20 && differ == 0, "a trace and the same without postprocessing: %zu of %zu differ", differ,
          records);
}

int main(int argc, char **argv) {
    const bench_shape shape = {64, ENGINE_REAL_KINDS, 20, 6, engine_kinds, 24};
    if (argc < 2)
        return 99;
    if (CHECK(engine_open(&own, &shape, FORELOOP_TIER_BEST), "open: %s", own.error.message)) {
        test_parallel();
        test_details();
        test_argument_order();
        test_weights();
        test_long_stream();
        test_postprocessing(argv[1]);
    }
    engine_close(&own);
    return tap_done();
}
