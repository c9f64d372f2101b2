/* Search spaces: points and traces say the same, scores are those of records, draws are legal and repeatable. */
#include "../tap.h"
#include <foreloop/foreloop.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { MAX_SPACES = 16, MAX_LINES = 128, MAX_DECISIONS = 64 };

typedef struct engine {
    foreloop_model *model;
    foreloop_actions *actions;
    foreloop_scorer *scorer;
    foreloop_workload *workload;
    size_t latent_size;
} engine;

static foreloop_error error;

static void engine_open(engine *e, const char *root) {
    char path[1024];
    snprintf(path, sizeof path, "%s/weights/default", root);
    foreloop_model_info info = {.size = sizeof info};
    if (foreloop_model_open(&e->model, path, NULL, &error) != FORELOOP_OK ||
        foreloop_actions_create(&e->actions, e->model, 0, &error) != FORELOOP_OK) {
        fprintf(stderr, "%s\n", error.message);
        exit(99);
    }
    foreloop_model_get_info(e->model, &info);
    float *latent = calloc(info.latent_size, sizeof *latent);
    for (size_t i = 0; i < info.latent_size; i++)
        latent[i] = (float)(i % 7) * 0.05f - 0.15f;
    if (foreloop_workload_create(&e->workload, e->model, latent, &error) != FORELOOP_OK ||
        foreloop_scorer_create(&e->scorer, e->model, e->actions, NULL, &error) != FORELOOP_OK)
        exit(99);
    free(latent);
    e->latent_size = info.latent_size;
}

static void engine_close(engine *e) {
    foreloop_scorer_close(e->scorer);
    foreloop_workload_close(e->workload);
    foreloop_actions_close(e->actions);
    foreloop_model_close(e->model);
}

/* The lines of a database, plain or gzip, each terminated. */
static size_t read_lines(const char *root, const char *name, char *lines[MAX_LINES]) {
    char path[1024];
    static char line[1 << 20];
    size_t count = 0;
    snprintf(path, sizeof path, "%s/%s", root, name);
    gzFile file = gzopen(path, "rb");
    if (!file)
        exit(99);
    while (count < MAX_LINES && gzgets(file, line, sizeof line)) {
        lines[count] = malloc(strlen(line) + 1);
        strcpy(lines[count++], line);
    }
    gzclose(file);
    return count;
}

/* The score of a text by the reader of records. */
static float score_record(engine *e, const char *text, size_t length, int *ok) {
    foreloop_records *records = NULL;
    foreloop_record record = {.size = sizeof record};
    float score = NAN;
    *ok = foreloop_records_open_memory(&records, text, length, NULL, &error) == FORELOOP_OK &&
          foreloop_records_next(records, &record, &error) == FORELOOP_OK;
    if (*ok) {
        uint32_t ids[256];
        size_t offsets[2] = {0, record.action_count};
        *ok = record.action_count <= 256 &&
              foreloop_actions_intern(e->actions, record.actions, record.action_count, ids, &error) == FORELOOP_OK &&
              foreloop_score(e->scorer, e->workload, ids, offsets, 1, &score, &error) == FORELOOP_OK;
    }
    foreloop_records_close(records);
    return score;
}

/* The same of a point, by way of its trace's text in a record. */
static float score_trace(engine *e, const foreloop_space *space, const uint32_t *point, int *ok) {
    size_t needed = 0;
    *ok = foreloop_space_trace(space, point, NULL, 0, &needed, &error) == FORELOOP_OK;
    char *text = malloc(needed + 16);
    memcpy(text, "[0,[", 4);
    *ok = *ok && foreloop_space_trace(space, point, text + 4, needed, &needed, &error) == FORELOOP_OK;
    memcpy(text + 4 + needed, "]]", 2);
    int read;
    float score = score_record(e, text, needed + 6, &read);
    *ok = *ok && read;
    free(text);
    return score;
}

static int same(float a, float b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

/* A space for each sketch of a database; returns how many. */
static size_t open_spaces(engine *e, char **lines, size_t count, foreloop_space **spaces,
                          uint32_t (*points)[MAX_DECISIONS], size_t *space_of) {
    size_t made = 0;
    for (size_t i = 0; i < count; i++) {
        size_t s = 0;
        foreloop_status status = FORELOOP_ERROR_MISMATCH;
        while (s < made && (status = foreloop_space_add(spaces[s], lines[i], strlen(lines[i]), points[i], &error)) ==
                               FORELOOP_ERROR_MISMATCH)
            s++;
        if (s == made && made < MAX_SPACES) {
            status = foreloop_space_create(&spaces[made], e->actions, lines[i], strlen(lines[i]), NULL, &error);
            if (status == FORELOOP_OK)
                status = foreloop_space_add(spaces[made++], lines[i], strlen(lines[i]), points[i], &error);
        }
        if (status != FORELOOP_OK) {
            fprintf(stderr, "line %zu: %s\n", i, error.message);
            exit(99);
        }
        space_of[i] = s;
    }
    return made;
}

static void check_database(engine *e, const char *root, const char *name) {
    char *lines[MAX_LINES];
    foreloop_space *spaces[MAX_SPACES];
    static uint32_t points[MAX_LINES][MAX_DECISIONS];
    size_t space_of[MAX_LINES], count = read_lines(root, name, lines), wrong = 0, illegal = 0;
    size_t made = open_spaces(e, lines, count, spaces, points, space_of);
    for (size_t i = 0; i < count; i++) {
        int ok;
        float expected = score_record(e, lines[i], strlen(lines[i]), &ok), score;
        if (!ok || foreloop_space_score(spaces[space_of[i]], e->scorer, e->workload, points[i], 1, &score, &error) !=
                       FORELOOP_OK)
            wrong++;
        else
            wrong += !same(expected, score);
        illegal += !foreloop_space_is_legal(spaces[space_of[i]], points[i]);
    }
    CHECK(wrong == 0, "%s: %zu records, %zu sketches: points score as records do (%zu wrong)", name, count, made,
          wrong);
    CHECK(illegal == 0, "%s: TVM's own candidates are legal", name);

    enum { DRAWN = 600 };
    for (size_t s = 0; s < made; s++) {
        foreloop_space_info info = {.size = sizeof info};
        foreloop_space_get_info(spaces[s], &info);
        uint32_t *drawn = calloc(2 * DRAWN * info.decision_count + 1, sizeof *drawn);
        uint32_t *again = calloc(DRAWN * info.decision_count + 1, sizeof *again);
        float *scores = calloc(DRAWN, sizeof *scores);
        uint64_t random = 1, repeated = 1;
        const size_t third = DRAWN / 3, size = info.decision_count;
        int done =
            foreloop_space_sample(spaces[s], &random, third, drawn, &error) == FORELOOP_OK &&
            foreloop_space_mutate(spaces[s], &random, drawn, third, drawn + third * size, &error) == FORELOOP_OK &&
            foreloop_space_cross(spaces[s], &random, drawn, drawn + third * size, third, drawn + 2 * third * size,
                                 &error) == FORELOOP_OK &&
            foreloop_space_score(spaces[s], e->scorer, e->workload, drawn, DRAWN, scores, &error) == FORELOOP_OK;
        if (!done)
            fprintf(stderr, "%s\n", error.message);
        size_t different = 0, changed = 0;
        illegal = 0;
        for (size_t i = 0; done && i < DRAWN; i++) {
            int ok;
            float expected = score_trace(e, spaces[s], drawn + i * size, &ok);
            different += !ok || !same(expected, scores[i]);
            illegal += !foreloop_space_is_legal(spaces[s], drawn + i * size);
            changed += i >= third && i < 2 * third &&
                       memcmp(drawn + i * size, drawn + (i - third) * size, size * sizeof *drawn) != 0;
        }
        foreloop_space_sample(spaces[s], &repeated, third, again, &error);
        CHECK(done && different == 0, "%s, sketch %zu (%zu decisions, %.3g points): drawn points score as their traces",
              name, s, info.decision_count, info.points);
        CHECK(illegal == 0, "drawn points are legal");
        CHECK(memcmp(drawn, again, third * size * sizeof *drawn) == 0, "the same seed draws the same points");
        CHECK(info.points < 2 || changed > 0, "mutation changes points (%zu of %zu)", changed, third);
        free(drawn);
        free(again);
        free(scores);
    }
    for (size_t s = 0; s < made; s++)
        foreloop_space_close(spaces[s]);
    for (size_t i = 0; i < count; i++)
        free(lines[i]);
}

int main(int argc, char **argv) {
    if (argc < 2)
        return 99;
    engine e;
    engine_open(&e, argv[1]);
    check_database(&e, argv[1], "examples/data/conv3x3_96/database_tuning_record.json");
    check_database(&e, argv[1], "train/data/emeraldrapids/softmax_2048_384/database_tuning_record.json.gz");
    check_database(&e, argv[1], "train/data/emeraldrapids/dense_196_gelu/database_tuning_record.json.gz");
    check_database(&e, argv[1], "train/data/emeraldrapids/conv2d_add_64_28_64_3/database_tuning_record.json.gz");
    engine_close(&e);
    return tap_done();
}
