/*
 * A host that scores candidates on an NVIDIA GPU: encodes a program on the CPU, brings model, actions and program to
 * the GPU, and asks for the best of a million candidates.
 *
 *     score_on_gpu MODEL WORKLOAD.txt [CANDIDATES]
 *
 * Link with libforeloop_cuda and libforeloop (pkg-config foreloop_cuda). Where there is no GPU it says so and scores
 * on the CPU: the scores have the same bits.
 */
#include <foreloop/cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 6, BEST = 5, TILES = 10 };

/* What a host has of each search. */
typedef struct search {
    foreloop_model *model;
    foreloop_encoder *encoder;
    foreloop_workload *workload;
    foreloop_actions *actions;
    foreloop_cuda *gpu;
    foreloop_cuda_model *gpu_model;
    foreloop_cuda_actions *gpu_actions;
    foreloop_cuda_workload *gpu_workload;
    foreloop_cuda_scorer *gpu_scorer;
    foreloop_error error;
} search;

static char *read_file(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    char *text = malloc(1 << 20);
    *length = file && text ? fread(text, 1, 1 << 20, file) : 0;
    if (file)
        fclose(file);
    return text;
}

/* The actions that candidates choose from: tiles of two axes, then what all of them end with. */
static foreloop_status intern(search *s, uint32_t tiles[2][TILES], uint32_t ends[LENGTH - 2]) {
    static const char *const kinds[] = {"split_s0", "split_s1"};
    static const double limits[] = {16, 64, 256, 1024};
    for (size_t axis = 0; axis < 2; axis++)
        for (size_t i = 0; i < TILES; i++) {
            const double tile = (double)(1u << i);
            const foreloop_argument split[] = {
                {"extent", NULL, 512}, {"parts", NULL, 2}, {"factor_0", NULL, 512 / tile}, {"factor_1", NULL, tile}};
            const foreloop_action action = {kinds[axis], split, 4};
            const foreloop_status status = foreloop_actions_intern(s->actions, &action, 1, &tiles[axis][i], &s->error);
            if (status != FORELOOP_OK)
                return status;
        }
    for (size_t i = 0; i < LENGTH - 2; i++) {
        const foreloop_argument value[] = {{"value", NULL, limits[i]}};
        const foreloop_action action = {i + 1 < LENGTH - 2 ? "annotate_unroll" : "postprocess", value,
                                        i + 1 < LENGTH - 2};
        const foreloop_status status = foreloop_actions_intern(s->actions, &action, 1, &ends[i], &s->error);
        if (status != FORELOOP_OK)
            return status;
    }
    return FORELOOP_OK;
}

/* Once for a GPU and model; the action table is updated whenever something new was interned. */
static foreloop_status open_gpu(search *s) {
    foreloop_hardware hardware;
    foreloop_status status = foreloop_cuda_open(&s->gpu, NULL, &s->error);
    if (status == FORELOOP_OK)
        status = foreloop_cuda_model_create(&s->gpu_model, s->gpu, s->model, NULL, &s->error);
    if (status == FORELOOP_OK)
        status = foreloop_cuda_actions_create(&s->gpu_actions, s->gpu_model, s->actions, 0, &s->error);
    if (status == FORELOOP_OK)
        status = foreloop_cuda_actions_update(s->gpu_actions, NULL, &s->error);
    if (status == FORELOOP_OK)
        status = foreloop_cuda_workload_create(&s->gpu_workload, s->gpu_model, s->workload, NULL, &s->error);
    /* The machine that the candidates will run on. The default bundle was trained on CPUs. */
    foreloop_hardware_init(&hardware, sizeof hardware);
    if (status == FORELOOP_OK)
        status = foreloop_hardware_detect(&hardware, &s->error);
    if (status == FORELOOP_OK)
        status = foreloop_cuda_scorer_create(&s->gpu_scorer, s->gpu_model, s->gpu_actions, &hardware, NULL, &s->error);
    return status;
}

static foreloop_status rank(search *s, const uint32_t *ids, const size_t *offsets, size_t count, uint64_t best[BEST],
                            float scores[BEST]) {
    foreloop_status status = open_gpu(s);
    if (status == FORELOOP_OK) {
        foreloop_cuda_batch batch;
        foreloop_cuda_batch_init(&batch, sizeof batch);
        batch.ids = ids;
        batch.offsets = offsets;
        batch.count = count;
        /* Results in host memory: the call waits for them. On the default stream; any cudaStream_t will do. */
        return foreloop_cuda_rank_top(s->gpu_scorer, s->gpu_workload, &batch, BEST, best, scores, FORELOOP_CUDA_HOST,
                                      NULL, &s->error);
    }
    if (status != FORELOOP_ERROR_DEVICE)
        return status;
    printf("on the CPU: %s\n", s->error.message);
    foreloop_scorer *scorer = NULL;
    size_t found = 0;
    status = foreloop_scorer_create(&scorer, s->model, s->actions, NULL, &s->error);
    if (status == FORELOOP_OK)
        status = foreloop_rank_top(scorer, s->workload, ids, offsets, count, BEST, best, scores, &found, &s->error);
    foreloop_scorer_close(scorer);
    return status;
}

static foreloop_status run(search *s, const char *model, const char *text, size_t length, size_t count, uint32_t *ids,
                           size_t *offsets) {
    uint32_t tiles[2][TILES], ends[LENGTH - 2];
    uint64_t best[BEST] = {0};
    float scores[BEST] = {0};
    foreloop_status status = foreloop_model_open(&s->model, model, NULL, &s->error);
    if (status == FORELOOP_OK)
        status = foreloop_encoder_create(&s->encoder, foreloop_model_transformer(s->model), &s->error);
    if (status == FORELOOP_OK)
        status = foreloop_workload_encode(&s->workload, s->model, s->encoder, text, length, &s->error);
    if (status == FORELOOP_OK)
        status = foreloop_actions_create(&s->actions, s->model, 0, &s->error);
    if (status == FORELOOP_OK)
        status = intern(s, tiles, ends);
    for (size_t i = 0; i < count; i++) {
        uint32_t *own = ids + i * LENGTH;
        own[0] = tiles[0][i % TILES];
        own[1] = tiles[1][i / TILES % TILES];
        memcpy(own + 2, ends, sizeof ends);
        offsets[i + 1] = (i + 1) * LENGTH;
    }
    if (status == FORELOOP_OK)
        status = rank(s, ids, offsets, count, best, scores);
    for (size_t i = 0; status == FORELOOP_OK && i < BEST && i < count; i++)
        printf("candidate %llu: score %f\n", (unsigned long long)best[i], (double)scores[i]);
    return status;
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: score_on_gpu MODEL WORKLOAD.txt [CANDIDATES]\n");
        return 2;
    }
    search s = {0};
    size_t length, count = argc > 3 ? strtoul(argv[3], NULL, 10) : 100000;
    char *text = read_file(argv[2], &length);
    uint32_t *ids = malloc((count * LENGTH + 1) * sizeof *ids);
    size_t *offsets = calloc(count + 1, sizeof *offsets);
    int failed = 1;
    if (text && ids && offsets)
        failed = run(&s, argv[1], text, length, count, ids, offsets) != FORELOOP_OK;
    if (failed)
        fprintf(stderr, "%s: %s\n", foreloop_status_name(s.error.code), s.error.message);
    foreloop_cuda_scorer_close(s.gpu_scorer);
    foreloop_cuda_workload_close(s.gpu_workload);
    foreloop_cuda_actions_close(s.gpu_actions);
    foreloop_cuda_model_close(s.gpu_model);
    foreloop_cuda_close(s.gpu);
    foreloop_actions_close(s.actions);
    foreloop_workload_close(s.workload);
    foreloop_encoder_close(s.encoder);
    foreloop_model_close(s.model);
    free(text);
    free(ids);
    free(offsets);
    return failed;
}
