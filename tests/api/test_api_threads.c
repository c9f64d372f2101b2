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
    return tap_done();
}
