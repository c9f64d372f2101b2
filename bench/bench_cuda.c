/*
 * Scoring on the GPU: candidates a second of the shape that docs/KERNELS.md states its estimates for (latent 256, 32
 * kinds, 20 actions out of 4,096, 300 trees of depth 6 that read all 320 features), from device memory, from host
 * memory, and the 100 best; checked against the CPU. Prints a JSON object for the model without a score network, and
 * one for it with a network of two hidden layers of 64; without a GPU one that says so.
 *
 *     bench_cuda [CANDIDATES]
 */
#include "../tools/bench.h"
#include "../tools/bench_model.h"
#include <cuda_runtime_api.h>
#include <foreloop/cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    LATENT = 256,
    KINDS = 32,
    TREES = 300,
    DEPTH = 6,
    ACTIONS = 4096,
    LENGTH = 20,
    BEST = 100,
    REPEATS = 9,
    WIDTH = 64
};

typedef struct session {
    foreloop_buffer bundle;
    foreloop_model *model;
    foreloop_workload *workload;
    foreloop_actions *actions;
    foreloop_scorer *scorer;
    foreloop_cuda *gpu;
    foreloop_cuda_model *gpu_model;
    foreloop_cuda_actions *gpu_actions;
    foreloop_cuda_workload *gpu_workload;
    foreloop_cuda_scorer *gpu_scorer;
    uint32_t *ids;
    size_t *offsets;
    size_t count;
    float *scores, *expected;
    void *device_ids, *device_offsets, *device_scores;
    foreloop_error error;
} session;

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int intern_actions(session *s) {
    for (size_t i = 0; i < ACTIONS; i++) {
        char name[BENCH_NAME_SIZE];
        foreloop_argument arguments[BENCH_SLOTS];
        foreloop_action action;
        uint32_t id;
        bench_action(i, KINDS, name, arguments, &action);
        if (foreloop_actions_intern(s->actions, &action, 1, &id, &s->error) != FORELOOP_OK)
            return 0;
    }
    return 1;
}

static int open_cpu(session *s, size_t network) {
    const bench_shape shape = {LATENT, KINDS, TREES, DEPTH, NULL, network};
    static foreloop_allocator allocator;
    float latent[LATENT];
    uint64_t random = 7;
    allocator = foreloop_allocator_or_default(NULL);
    s->bundle.allocator = &allocator;
    for (size_t i = 0; i < LATENT; i++)
        latent[i] = (float)(i % 17) / 8.0f - 1.0f;
    s->ids = malloc(s->count * LENGTH * sizeof *s->ids);
    s->offsets = malloc((s->count + 1) * sizeof *s->offsets);
    s->scores = malloc(s->count * sizeof *s->scores);
    s->expected = malloc(s->count * sizeof *s->expected);
    if (!s->ids || !s->offsets || !s->scores || !s->expected)
        return 0;
    for (size_t i = 0; i <= s->count; i++)
        s->offsets[i] = i * LENGTH;
    for (size_t i = 0; i < s->count * LENGTH; i++)
        s->ids[i] = 1 + bench_draw(&random) % ACTIONS;
    return bench_model_make(&s->bundle, &shape) &&
           foreloop_model_open_memory(&s->model, s->bundle.data, s->bundle.size, NULL, &s->error) == FORELOOP_OK &&
           foreloop_workload_create(&s->workload, s->model, latent, &s->error) == FORELOOP_OK &&
           foreloop_actions_create(&s->actions, s->model, 0, &s->error) == FORELOOP_OK && intern_actions(s) &&
           foreloop_scorer_create(&s->scorer, s->model, s->actions, NULL, &s->error) == FORELOOP_OK;
}

static int open_gpu(session *s) {
    return foreloop_cuda_open(&s->gpu, NULL, &s->error) == FORELOOP_OK &&
           foreloop_cuda_model_create(&s->gpu_model, s->gpu, s->model, NULL, &s->error) == FORELOOP_OK &&
           foreloop_cuda_actions_create(&s->gpu_actions, s->gpu_model, s->actions, 0, &s->error) == FORELOOP_OK &&
           foreloop_cuda_actions_update(s->gpu_actions, NULL, &s->error) == FORELOOP_OK &&
           foreloop_cuda_workload_create(&s->gpu_workload, s->gpu_model, s->workload, NULL, &s->error) == FORELOOP_OK &&
           foreloop_cuda_scorer_create(&s->gpu_scorer, s->gpu_model, s->gpu_actions, NULL, NULL, &s->error) ==
               FORELOOP_OK &&
           cudaMalloc(&s->device_ids, s->count * LENGTH * sizeof *s->ids) == cudaSuccess &&
           cudaMalloc(&s->device_offsets, (s->count + 1) * sizeof *s->offsets) == cudaSuccess &&
           cudaMalloc(&s->device_scores, s->count * sizeof *s->scores) == cudaSuccess &&
           cudaMemcpy(s->device_ids, s->ids, s->count * LENGTH * sizeof *s->ids, cudaMemcpyHostToDevice) ==
               cudaSuccess &&
           cudaMemcpy(s->device_offsets, s->offsets, (s->count + 1) * sizeof *s->offsets, cudaMemcpyHostToDevice) ==
               cudaSuccess;
}

/* One way of calling; waits for the result. */
typedef enum way { FROM_DEVICE, FROM_HOST, THE_BEST } way;

static int run(session *s, way how) {
    uint64_t indices[BEST];
    foreloop_cuda_batch batch;
    foreloop_cuda_batch_init(&batch, sizeof batch);
    batch.ids = how == FROM_HOST ? s->ids : s->device_ids;
    batch.offsets = how == FROM_HOST ? s->offsets : s->device_offsets;
    batch.count = s->count;
    batch.id_count = s->count * LENGTH;
    batch.place = how == FROM_HOST ? FORELOOP_CUDA_HOST : FORELOOP_CUDA_DEVICE;
    const foreloop_status status =
        how == THE_BEST
            ? foreloop_cuda_rank_top(s->gpu_scorer, s->gpu_workload, &batch, BEST, indices, NULL, FORELOOP_CUDA_HOST,
                                     NULL, &s->error)
            : foreloop_cuda_score(s->gpu_scorer, s->gpu_workload, &batch,
                                  how == FROM_HOST ? s->scores : s->device_scores,
                                  how == FROM_HOST ? FORELOOP_CUDA_HOST : FORELOOP_CUDA_DEVICE, NULL, &s->error);
    return status == FORELOOP_OK && cudaStreamSynchronize(NULL) == cudaSuccess;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Candidates a second, the median; 0 when something failed. */
static double measure(session *s, way how) {
    double times[REPEATS];
    if (!run(s, how))
        return 0;
    for (size_t i = 0; i < REPEATS; i++) {
        const double begun = seconds();
        if (!run(s, how))
            return 0;
        times[i] = seconds() - begun;
    }
    qsort(times, REPEATS, sizeof *times, compare);
    return (double)s->count / times[REPEATS / 2];
}

static void close_all(session *s) {
    cudaFree(s->device_ids);
    cudaFree(s->device_offsets);
    cudaFree(s->device_scores);
    foreloop_cuda_scorer_close(s->gpu_scorer);
    foreloop_cuda_workload_close(s->gpu_workload);
    foreloop_cuda_actions_close(s->gpu_actions);
    foreloop_cuda_model_close(s->gpu_model);
    foreloop_cuda_close(s->gpu);
    foreloop_scorer_close(s->scorer);
    foreloop_actions_close(s->actions);
    foreloop_workload_close(s->workload);
    foreloop_model_close(s->model);
    if (s->bundle.allocator)
        foreloop_buffer_close(&s->bundle);
    free(s->ids);
    free(s->offsets);
    free(s->scores);
    free(s->expected);
}

/* One model, the network's hidden layers of this width or none; 1 when something failed. */
static int bench(size_t count, size_t network) {
    session s = {.count = count};
    foreloop_cuda_info info = {.size = sizeof info};
    int failed = 1;
    if (!open_cpu(&s, network) || !open_gpu(&s)) {
        fprintf(stderr, "bench_cuda: %s\n", s.error.message);
    } else {
        const double device = measure(&s, FROM_DEVICE), host = measure(&s, FROM_HOST), best = measure(&s, THE_BEST);
        const double begun = seconds();
        foreloop_score(s.scorer, s.workload, s.ids, s.offsets, s.count, s.expected, NULL);
        const double cpu = (double)s.count / (seconds() - begun);
        const int same = memcmp(s.scores, s.expected, s.count * sizeof *s.scores) == 0;
        foreloop_cuda_get_info(s.gpu, &info);
        printf("{\"bench\":\"cuda\",\"gpu\":\"%s\",\"network\":%zu,\"candidates\":%zu,\"from_device_per_second\":%.0f,"
               "\"from_host_per_second\":%.0f,\"best_100_per_second\":%.0f,\"cpu_core_per_second\":%.0f,"
               "\"bits_of_the_cpu\":%s}\n",
               info.name, network, s.count, device, host, best, cpu, same ? "true" : "false");
        failed = !same || device == 0 || host == 0 || best == 0;
    }
    close_all(&s);
    return failed;
}

int main(int argc, char **argv) {
    foreloop_error error = {.message = ""};
    size_t devices = 0;
    const size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 1u << 20;
    const foreloop_status found = foreloop_cuda_device_count(&devices, &error);
    if (found != FORELOOP_OK || devices == 0) {
        printf("{\"bench\":\"cuda\",\"skipped\":\"%s\"}\n", found == FORELOOP_OK ? "no GPU" : error.message);
        return 0;
    }
    if (count == 0) {
        fprintf(stderr, "bench_cuda: the number of candidates must be 1 at least\n");
        return 1;
    }
    const int failed = bench(count, 0);
    return bench(count, WIDTH) || failed;
}
