/* Eight threads score with one model, workload and action table: the same bits as one thread. */
#include "fixture.h"
#include "tap.h"
#include <pthread.h>

enum { THREADS = 8, ROUNDS = 20 };

typedef struct shared {
    fixture fix;
    const foreloop_model *model;
    const foreloop_workload *workload;
    const foreloop_actions *actions;
    uint32_t ids[4096];
    size_t offsets[FIXTURE_MAX + 1];
    float expected[FIXTURE_MAX], latent[256];
} shared;

static const char text[] = "for i, j in T.grid(512, 512):\n    C[i, j] = A[i, j] * B[j]\n";

static void *work(void *argument) {
    const shared *s = argument;
    foreloop_scorer *scorer = NULL;
    foreloop_encoder *encoder = NULL;
    foreloop_workload *encoded = NULL;
    uintptr_t differ = 0;
    foreloop_model_info info = {.size = sizeof info};
    foreloop_model_get_info(s->model, &info);
    if (foreloop_scorer_create(&scorer, s->model, s->actions, &s->fix.hardware, NULL) != FORELOOP_OK ||
        foreloop_encoder_create(&encoder, foreloop_model_transformer(s->model), NULL) != FORELOOP_OK ||
        foreloop_workload_encode(&encoded, s->model, encoder, text, strlen(text), NULL) != FORELOOP_OK ||
        memcmp(foreloop_workload_latent(encoded), s->latent, info.latent_size * sizeof(float)) != 0)
        differ++;
    for (int round = 0; !differ && round < ROUNDS; round++) {
        float scores[FIXTURE_MAX];
        foreloop_score(scorer, s->workload, s->ids, s->offsets, s->fix.count, scores, NULL);
        differ += memcmp(scores, s->expected, s->fix.count * sizeof *scores) != 0;
    }
    foreloop_workload_close(encoded);
    foreloop_encoder_close(encoder);
    foreloop_scorer_close(scorer);
    return (void *)differ;
}

/* ---- Training by the caller's threads ---- */

typedef struct loop {
    void (*task)(void *argument, size_t index);
    void *argument;
    size_t begin, end;
} loop;

static void *run_share(void *argument) {
    const loop *share = argument;
    for (size_t i = share->begin; i < share->end; i++)
        share->task(share->argument, i);
    return NULL;
}

static void run_tasks(void *user, size_t count, void (*task)(void *argument, size_t index), void *argument) {
    pthread_t threads[THREADS];
    loop shares[THREADS];
    (void)user;
    for (size_t i = 0; i < THREADS; i++) {
        shares[i] = (loop){task, argument, count * i / THREADS, count * (i + 1) / THREADS};
        if (pthread_create(&threads[i], NULL, run_share, &shares[i]) != 0)
            exit(99);
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void test_training(void) {
    enum { ROWS = 300, COLUMNS = 60 };
    static float values[ROWS * COLUMNS], margins[2][ROWS];
    double seconds[ROWS];
    const size_t groups[] = {0, 100, 200, ROWS};
    const foreloop_parallel_for parallel = {run_tasks, NULL};
    uint32_t state = 1;
    for (size_t i = 0; i < ROWS * COLUMNS; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = (float)(state >> 8);
    }
    for (size_t i = 0; i < ROWS; i++)
        seconds[i] = 1.0 + (double)values[i * COLUMNS] + 0.5 * (double)values[i * COLUMNS + 1];
    for (int threaded = 0; threaded < 2; threaded++) {
        foreloop_gbdt_rows rows;
        foreloop_ranker_data data;
        foreloop_ranker_options options;
        foreloop_gbdt *ranker = NULL;
        foreloop_gbdt_rows_init(&rows, sizeof rows);
        rows.values = values;
        rows.row_count = ROWS;
        rows.column_count = COLUMNS;
        foreloop_ranker_data_init(&data, sizeof data);
        data.rows = &rows;
        data.groups = groups;
        data.group_count = 3;
        data.seconds = seconds;
        foreloop_ranker_options_init(&options, sizeof options);
        options.rounds = 4;
        options.parallel = threaded ? &parallel : NULL;
        CHECK(foreloop_ranker_train(&ranker, &data, &options, NULL) == FORELOOP_OK &&
                  foreloop_gbdt_predict(ranker, values, ROWS, COLUMNS, 1, margins[threaded], NULL) == FORELOOP_OK,
              "training by %s", threaded ? "threads" : "one thread");
        foreloop_gbdt_close(ranker);
    }
    CHECK(memcmp(margins[0], margins[1], sizeof margins[0]) == 0, "the same bits");
}

int main(int argc, char **argv) {
    static shared s;
    fixture_open(&s.fix, argc, argv);
    foreloop_model *model = NULL;
    foreloop_workload *workload = NULL, *encoded = NULL;
    foreloop_actions *actions = NULL;
    foreloop_scorer *scorer = NULL;
    foreloop_encoder *encoder = NULL;
    int ready = foreloop_model_open(&model, s.fix.directory, NULL, NULL) == FORELOOP_OK &&
                foreloop_workload_create(&workload, model, s.fix.z0, NULL) == FORELOOP_OK &&
                foreloop_actions_create(&actions, model, 0, NULL) == FORELOOP_OK &&
                fixture_intern(&s.fix, actions, s.ids, s.offsets, NULL) == FORELOOP_OK &&
                foreloop_scorer_create(&scorer, model, actions, &s.fix.hardware, NULL) == FORELOOP_OK &&
                foreloop_score(scorer, workload, s.ids, s.offsets, s.fix.count, s.expected, NULL) == FORELOOP_OK &&
                foreloop_encoder_create(&encoder, foreloop_model_transformer(model), NULL) == FORELOOP_OK &&
                foreloop_workload_encode(&encoded, model, encoder, text, strlen(text), NULL) == FORELOOP_OK;
    if (!CHECK(ready, "one thread"))
        return tap_done();
    foreloop_model_info info = {.size = sizeof info};
    foreloop_model_get_info(model, &info);
    memcpy(s.latent, foreloop_workload_latent(encoded), info.latent_size * sizeof(float));
    s.model = model;
    s.workload = workload;
    s.actions = actions;

    pthread_t threads[THREADS];
    size_t differ = 0;
    for (size_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, &s) != 0)
            return 99;
    for (size_t i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        differ += (uintptr_t)result;
    }
    CHECK(differ == 0, "%d threads give the bits of one", THREADS);
    foreloop_workload_close(encoded);
    foreloop_encoder_close(encoder);
    foreloop_scorer_close(scorer);
    foreloop_actions_close(actions);
    foreloop_workload_close(workload);
    foreloop_model_close(model);
    fixture_close(&s.fix);
    test_training();
    return tap_done();
}
