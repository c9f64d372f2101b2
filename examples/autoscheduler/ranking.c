/* The course of docs/EMBEDDING.md: encode once, intern the actions of each candidate, score in batches, refit. */
#include "ranking.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The packed bundle (model.S). */
extern const unsigned char autoscheduler_model[], autoscheduler_model_end[];

enum { TABLE_CAPACITY = 1 << 13 };

static bool report(const foreloop_error *error, char *message, size_t size) {
    (void)snprintf(message, size, "foreloop, %s: %.400s", foreloop_status_name(error->code), error->message);
    return false;
}

static bool open_model(ranking *r, const char *path, foreloop_error *error) {
    const size_t size = (size_t)(autoscheduler_model_end - autoscheduler_model);
    return (path ? foreloop_model_open(&r->model, path, NULL, error)
                 : foreloop_model_open_memory(&r->model, autoscheduler_model, size, NULL, error)) == FORELOOP_OK;
}

/* A fresh table of actions. A search meets more distinct actions than it needs to remember: `postprocess` differs with
 * nearly every candidate. */
static bool renew_table(ranking *r, foreloop_error *error) {
    foreloop_scorer_close(r->scorer);
    foreloop_actions_close(r->actions);
    r->scorer = NULL;
    r->actions = NULL;
    return foreloop_actions_create(&r->actions, r->model, TABLE_CAPACITY, error) == FORELOOP_OK &&
           foreloop_scorer_create(&r->scorer, r->model, r->actions, NULL, error) == FORELOOP_OK &&
           foreloop_scorer_set_ranker(r->scorer, r->learnt, error) == FORELOOP_OK;
}

bool ranking_open(ranking *r, const search_space *space, const char *path, char *message, size_t message_size) {
    foreloop_error error = {.code = FORELOOP_ERROR_MEMORY, .message = "not enough memory for a search"};
    *r = (ranking){.space = space};
    r->scratch = calloc(1, sizeof *r->scratch);
    r->ids = malloc((size_t)RANKING_BATCH * MAX_ACTIONS * sizeof *r->ids);
    r->offsets = malloc((RANKING_BATCH + 1) * sizeof *r->offsets);
    r->places = malloc(RANKING_BATCH * sizeof *r->places);
    r->batch_scores = malloc(RANKING_BATCH * sizeof *r->batch_scores);
    char *text = program_text(&space->initial);
    const bool ok =
        r->scratch && r->ids && r->offsets && r->places && r->batch_scores && text && open_model(r, path, &error) &&
        foreloop_encoder_create(&r->encoder, foreloop_model_transformer(r->model), &error) == FORELOOP_OK &&
        foreloop_workload_encode(&r->workload, r->model, r->encoder, text, strlen(text), &error) == FORELOOP_OK &&
        renew_table(r, &error);
    free(text);
    if (!ok) {
        ranking_close(r);
        return report(&error, message, message_size);
    }
    return true;
}

void ranking_close(ranking *r) {
    foreloop_scorer_close(r->scorer);
    foreloop_actions_close(r->actions);
    foreloop_gbdt_close(r->learnt);
    foreloop_workload_close(r->workload);
    foreloop_encoder_close(r->encoder);
    foreloop_model_close(r->model);
    free(r->scratch);
    free(r->ids);
    free(r->offsets);
    free(r->places);
    free(r->batch_scores);
    *r = (ranking){.space = NULL};
}

/* Interns the actions of a candidate as the next one of the batch; it takes no place when its choices do not go
 * together. */
static bool intern(ranking *r, const uint16_t *choices, int place, int *count, foreloop_error *error) {
    const size_t begin = r->offsets[*count];
    space_apply(r->space, choices, r->scratch);
    if (r->scratch->error)
        return true;
    if (foreloop_actions_intern(r->actions, r->scratch->actions, (size_t)r->scratch->action_count, r->ids + begin,
                                error) != FORELOOP_OK)
        return false;
    r->places[*count] = place;
    r->offsets[++*count] = begin + (size_t)r->scratch->action_count;
    return true;
}

static bool make_room(ranking *r, foreloop_error *error) {
    foreloop_actions_report used = {.size = sizeof used};
    foreloop_actions_get_report(r->actions, &used);
    return used.distinct + (size_t)RANKING_BATCH * 16 < TABLE_CAPACITY || renew_table(r, error);
}

bool ranking_score(ranking *r, uint16_t (*choices)[MAX_DECISIONS], int count, float *scores, char *message,
                   size_t message_size) {
    foreloop_error error = {.code = FORELOOP_OK};
    for (int begin = 0; begin < count; begin += RANKING_BATCH) {
        const int end = begin + RANKING_BATCH < count ? begin + RANKING_BATCH : count;
        int valid = 0;
        r->offsets[0] = 0;
        if (!make_room(r, &error))
            return report(&error, message, message_size);
        for (int i = begin; i < end; i++) {
            scores[i] = -INFINITY;
            if (!intern(r, choices[i], i, &valid, &error))
                return report(&error, message, message_size);
        }
        if (foreloop_score(r->scorer, r->workload, r->ids, r->offsets, (size_t)valid, r->batch_scores, &error) !=
            FORELOOP_OK)
            return report(&error, message, message_size);
        for (int i = 0; i < valid; i++)
            scores[r->places[i]] = r->batch_scores[i];
    }
    return true;
}

/* Gentle: on pools of measured candidates of which the ranker had seen some, trees that fit them closely put the others
 * into a worse order than the model's own did. */
enum { MAX_TREES = 256 };

static bool learn(ranking *r, const trials *measured, int count, float *features, double *seconds,
                  foreloop_error *error) {
    foreloop_model_info info = {.size = sizeof info};
    foreloop_gbdt_rows rows;
    foreloop_ranker_data data;
    foreloop_ranker_options options;
    foreloop_gbdt *learnt = NULL;
    foreloop_model_get_info(r->model, &info);
    size_t row_count = 0;
    for (int i = 0; i < count; i++) {
        int valid = 0;
        r->offsets[0] = 0;
        if (!make_room(r, error) || !intern(r, measured->items[i].choices, i, &valid, error))
            return false;
        if (valid == 0)
            continue;
        if (foreloop_features(r->scorer, r->workload, r->ids, r->offsets[1], features + row_count * info.feature_count,
                              error) != FORELOOP_OK)
            return false;
        seconds[row_count++] = measured->items[i].seconds;
    }
    const size_t groups[] = {0, row_count};
    foreloop_gbdt_rows_init(&rows, sizeof rows);
    rows.values = features;
    rows.row_count = row_count;
    rows.column_count = info.feature_count;
    foreloop_ranker_data_init(&data, sizeof data);
    data.rows = &rows;
    data.groups = groups;
    data.group_count = 1;
    data.seconds = seconds;
    foreloop_ranker_options_init(&options, sizeof options);
    options.start = foreloop_model_gbdt(r->model);
    options.objective = FORELOOP_RANKER_PAIRWISE;
    options.pairs = FORELOOP_RANKER_PAIRS_MEAN;
    options.pair_count = 16;
    options.rounds = count < MAX_TREES ? (size_t)count : MAX_TREES;
    options.depth = 3;
    options.eta = 0.03f;
    options.lambda = 10;
    options.columns_by_node = 0.2f;
    const foreloop_status status = foreloop_ranker_train(&learnt, &data, &options, error);
    if (status == FORELOOP_ERROR_VALUE) /* all equally fast, or all failed: nothing to learn yet */
        return true;
    if (status != FORELOOP_OK || foreloop_scorer_set_ranker(r->scorer, learnt, error) != FORELOOP_OK) {
        foreloop_gbdt_close(learnt);
        return false;
    }
    foreloop_gbdt_close(r->learnt);
    r->learnt = learnt;
    return true;
}

bool ranking_learn(ranking *r, const trials *measured, char *message, size_t message_size) {
    foreloop_error error = {.code = FORELOOP_ERROR_MEMORY, .message = "not enough memory to learn"};
    foreloop_model_info info = {.size = sizeof info};
    foreloop_model_get_info(r->model, &info);
    const size_t count = (size_t)measured->count;
    float *features = malloc(count * info.feature_count * sizeof *features);
    double *seconds = malloc(count * sizeof *seconds);
    const bool ok = features && seconds && learn(r, measured, measured->count, features, seconds, &error);
    free(features);
    free(seconds);
    return ok || report(&error, message, message_size);
}
