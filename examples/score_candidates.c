/*
 * The smallest useful host: scores three candidate schedules of one program and prints the best.
 *
 *     score_candidates MODEL WORKLOAD.txt
 *
 * MODEL is a bundle (weights/default), WORKLOAD.txt a program as TVM prints it. A host emits actions of its own
 * schedules in the vocabulary of docs/ACTIONS.md; here three tilings of the innermost spatial axis stand for them.
 */
#include <foreloop/foreloop.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(const foreloop_error *error) {
    fprintf(stderr, "%s: %s\n", foreloop_status_name(error->code), error->message);
    return 1;
}

/* The whole file, or NULL with errno set. */
static char *read_file(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    char *text = NULL;
    size_t capacity = 0, got = 1;
    for (*length = 0; got; *length += got) {
        if (*length == capacity) {
            capacity = 2 * capacity + 4096;
            char *larger = realloc(text, capacity);
            if (!larger)
                break;
            text = larger;
        }
        got = fread(text + *length, 1, capacity - *length, file);
    }
    if (got || ferror(file)) {
        free(text);
        text = NULL;
    }
    fclose(file);
    return text;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: score_candidates MODEL WORKLOAD.txt\n");
        return 2;
    }
    size_t length;
    char *text = read_file(argv[2], &length);
    if (!text) {
        perror(argv[2]);
        return 1;
    }

    foreloop_error error;
    foreloop_model *model = NULL;
    foreloop_encoder *encoder = NULL;
    foreloop_workload *workload = NULL;
    foreloop_actions *actions = NULL;
    foreloop_scorer *scorer = NULL;
    int failed = 1;

    /* Once: the model, the encoded program, the table of actions. */
    if (foreloop_model_open(&model, argv[1], NULL, &error) != FORELOOP_OK ||
        foreloop_encoder_create(&encoder, foreloop_model_transformer(model), &error) != FORELOOP_OK ||
        foreloop_workload_encode(&workload, model, encoder, text, length, &error) != FORELOOP_OK ||
        foreloop_actions_create(&actions, model, 0, &error) != FORELOOP_OK ||
        foreloop_scorer_create(&scorer, model, actions, NULL, &error) != FORELOOP_OK) {
        fail(&error);
        goto done;
    }

    /* Three candidates: the same axis of 512 in tiles of 4, 16 and 64, then parallel, vectorize, postprocess. */
    enum { CANDIDATES = 3, ACTIONS = 4 };
    const double tiles[CANDIDATES] = {4, 16, 64};
    uint32_t ids[CANDIDATES * ACTIONS];
    size_t offsets[CANDIDATES + 1] = {0};
    for (size_t i = 0; i < CANDIDATES; i++) {
        const foreloop_argument split[] = {{"extent", NULL, 512},
                                           {"parts", NULL, 2},
                                           {"factor_0", NULL, 512 / tiles[i]},
                                           {"factor_1", NULL, tiles[i]}};
        const foreloop_argument value[] = {{"value", NULL, 64}};
        const foreloop_action sequence[ACTIONS] = {{"split_s0", split, 4},
                                                   {"annotate_parallel", value, 1},
                                                   {"annotate_vectorize", value, 1},
                                                   {"postprocess", NULL, 0}};
        if (foreloop_actions_intern(actions, sequence, ACTIONS, ids + offsets[i], &error) != FORELOOP_OK) {
            fail(&error);
            goto done;
        }
        offsets[i + 1] = offsets[i] + ACTIONS;
    }

    float scores[CANDIDATES];
    if (foreloop_score(scorer, workload, ids, offsets, CANDIDATES, scores, &error) != FORELOOP_OK) {
        fail(&error);
        goto done;
    }
    size_t best = 0;
    for (size_t i = 0; i < CANDIDATES; i++) {
        printf("tile %3.0f: score %f\n", tiles[i], (double)scores[i]);
        if (scores[i] > scores[best])
            best = i;
    }
    printf("best: tile %.0f\n", tiles[best]);
    failed = 0;

done:
    foreloop_scorer_close(scorer);
    foreloop_actions_close(actions);
    foreloop_workload_close(workload);
    foreloop_encoder_close(encoder);
    foreloop_model_close(model);
    free(text);
    return failed;
}
