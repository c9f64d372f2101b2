/*
 * Searches the space around a tuning log's first trace, without TVM: draws candidates, keeps the best, mutates them,
 * and prints the trace of the best one for TVM to replay.
 *
 *     search_traces MODEL workload.txt database_tuning_record.json [generations]
 */
#include <foreloop/foreloop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POPULATION = 4096, KEPT = 256, MAX_DECISIONS = 256 };

static foreloop_error error;

/* Ends the program when a call has failed. */
static void need(foreloop_status status) {
    if (status == FORELOOP_OK)
        return;
    fprintf(stderr, "%s: %s\n", foreloop_status_name(error.code), error.message);
    exit(1);
}

static char *read_text(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    size_t capacity = 0;
    *length = 0;
    if (!file) {
        fprintf(stderr, "cannot open %s\n", path);
        exit(1);
    }
    do {
        capacity = 2 * capacity + 65536;
        text = realloc(text, capacity);
        if (!text)
            exit(1);
        *length += fread(text + *length, 1, capacity - *length, file);
    } while (*length == capacity);
    fclose(file);
    return text;
}

/* A space of the first line; the other lines of the same sketch show where blocks can be computed. */
static foreloop_space *open_space(foreloop_actions *actions, const char *log, size_t length) {
    foreloop_space *space = NULL;
    for (const char *line = log, *end = log + length, *stop; line < end; line = stop + 1) {
        stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop)
            stop = end;
        if (stop == line)
            continue;
        if (!space) {
            need(foreloop_space_create(&space, actions, line, (size_t)(stop - line), NULL, &error));
            continue;
        }
        foreloop_status status = foreloop_space_add(space, line, (size_t)(stop - line), NULL, &error);
        if (status != FORELOOP_ERROR_MISMATCH)
            need(status);
    }
    return space;
}

static const float *compared;

static int by_score(const void *a, const void *b) {
    const float x = compared[*(const size_t *)a], y = compared[*(const size_t *)b];
    return x < y ? 1 : x > y ? -1 : 0;
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: search_traces MODEL workload.txt database_tuning_record.json [generations]\n");
        return 2;
    }
    long generations = 16;
    if (argc > 4) {
        char *end;
        generations = strtol(argv[4], &end, 10);
        if (end == argv[4] || *end || generations < 0 || generations > 1000000) {
            fprintf(stderr, "search_traces: %s is no number of generations from 0 to 1000000\n", argv[4]);
            return 2;
        }
    }
    foreloop_model *model;
    foreloop_encoder *encoder;
    foreloop_workload *workload;
    foreloop_actions *actions;
    foreloop_scorer *scorer;
    size_t length;
    need(foreloop_model_open(&model, argv[1], NULL, &error));
    need(foreloop_encoder_create(&encoder, foreloop_model_transformer(model), &error));
    char *text = read_text(argv[2], &length);
    need(foreloop_workload_encode(&workload, model, encoder, text, length, &error));
    need(foreloop_actions_create(&actions, model, 0, &error));
    need(foreloop_scorer_create(&scorer, model, actions, NULL, &error));
    char *log = read_text(argv[3], &length);
    foreloop_space *space = open_space(actions, log, length);
    foreloop_space_info info = {.size = sizeof info};
    if (!space || (foreloop_space_get_info(space, &info), info.decision_count > MAX_DECISIONS)) {
        fprintf(stderr, "no trace that can be searched\n");
        return 1;
    }
    printf("%zu decisions, %.3g candidates\n", info.decision_count, info.points);

    /* points[0 .. KEPT - 1] are the best so far, the others their children; at first all are drawn. */
    const size_t size = info.decision_count;
    uint32_t *points = calloc(POPULATION * size + 1, sizeof *points);
    uint32_t *best = calloc(KEPT * size + 1, sizeof *best);
    float *scores = calloc(POPULATION, sizeof *scores);
    size_t *order = calloc(POPULATION, sizeof *order);
    if (!points || !best || !scores || !order)
        return 1;
    uint64_t random = 1;
    need(foreloop_space_sample(space, &random, POPULATION, points, &error));
    for (long generation = 0; generation <= generations; generation++) {
        need(foreloop_space_score(space, scorer, workload, points, POPULATION, scores, &error));
        for (size_t i = 0; i < POPULATION; i++)
            order[i] = i;
        compared = scores;
        qsort(order, POPULATION, sizeof *order, by_score);
        /* Equal points have equal scores: most copies lie side by side. New ones take their places. */
        size_t kept = 0;
        for (size_t i = 0; i < POPULATION && kept < KEPT; i++)
            if (kept == 0 || memcmp(best + (kept - 1) * size, points + order[i] * size, size * sizeof *best) != 0)
                memcpy(best + kept++ * size, points + order[i] * size, size * sizeof *best);
        need(foreloop_space_sample(space, &random, KEPT - kept, best + kept * size, &error));
        printf("generation %2ld: best %.4f of %zu kept\n", generation, (double)scores[order[0]], kept);
        for (size_t i = 0; i < POPULATION; i += KEPT)
            if (i == 0)
                memcpy(points, best, KEPT * size * sizeof *points);
            else
                need(foreloop_space_mutate(space, &random, best, KEPT, points + i * size, &error));
    }
    size_t needed;
    need(foreloop_space_trace(space, best, NULL, 0, &needed, &error));
    char *trace = malloc(needed);
    if (!trace)
        return 1;
    need(foreloop_space_trace(space, best, trace, needed, &needed, &error));
    printf("%.*s\n", (int)needed, trace);

    free(trace);
    free(order);
    free(scores);
    free(best);
    free(points);
    foreloop_space_close(space);
    foreloop_scorer_close(scorer);
    foreloop_actions_close(actions);
    foreloop_workload_close(workload);
    foreloop_encoder_close(encoder);
    foreloop_model_close(model);
    free(log);
    free(text);
    return 0;
}
