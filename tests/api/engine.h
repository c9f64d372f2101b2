/* A made-up model with actions and candidates, for the tests of the scoring engine: kinds of real schedules, random
 * weights. */
#ifndef FORELOOP_TESTS_API_ENGINE_H
#define FORELOOP_TESTS_API_ENGINE_H

#include "../../tools/bench_model.h"
#include "random.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENGINE_CANDIDATES = 203, ENGINE_LONGEST = 40, ENGINE_DISTINCT = 300, ENGINE_REAL_KINDS = 10 };

static const char *const engine_kinds[ENGINE_REAL_KINDS] = {
    "annotate_tiling",    "split_s1",          "split_s0",           "split_r0",        "reorder",
    "reverse_compute_at", "annotate_parallel", "annotate_vectorize", "annotate_unroll", "postprocess"};

/* Counts what is allocated and not released, and all allocations. */
typedef struct engine_memory {
    size_t live, calls;
} engine_memory;

typedef struct engine {
    engine_memory memory;
    foreloop_allocator allocator;
    foreloop_buffer bundle;
    foreloop_model *model;
    foreloop_workload *workload;
    foreloop_actions *actions;
    foreloop_scorer *scorer;
    foreloop_hardware hardware;
    foreloop_error error;
    size_t kinds;
    uint32_t ids[ENGINE_CANDIDATES * ENGINE_LONGEST];
    size_t offsets[ENGINE_CANDIDATES + 1];
} engine;

static void *engine_allocate(void *user, size_t size, size_t alignment) {
    engine_memory *memory = user;
    void *block = NULL;
    if (posix_memalign(&block, alignment < 16 ? 16 : alignment, size) != 0)
        return NULL;
    memory->live++;
    memory->calls++;
    return block;
}

static void engine_release(void *user, void *pointer) {
    ((engine_memory *)user)->live--;
    free(pointer);
}

/* Opens a model of this shape on a tier, with an action table and candidates that share prefixes here and there. */
static int engine_open(engine *own, const bench_shape *shape, foreloop_tier tier) {
    float latent[1024];
    random_source source = {17};
    memset(own, 0, sizeof *own);
    own->allocator = (foreloop_allocator){engine_allocate, engine_release, &own->memory};
    own->bundle.allocator = &own->allocator;
    own->kinds = shape->kinds;
    foreloop_options options;
    foreloop_options_init(&options, sizeof options);
    options.allocator = &own->allocator;
    options.tier = tier;
    for (size_t i = 0; i < shape->latent; i++)
        latent[i] = (float)random_below(&source, 2001) / 1000.0f - 1;
    foreloop_hardware_init(&own->hardware, sizeof own->hardware);
    own->hardware.cores = 8;
    if (!bench_model_make(&own->bundle, shape) ||
        foreloop_model_open_memory(&own->model, own->bundle.data, own->bundle.size, &options, &own->error) !=
            FORELOOP_OK ||
        foreloop_workload_create(&own->workload, own->model, latent, &own->error) != FORELOOP_OK ||
        foreloop_actions_create(&own->actions, own->model, 0, &own->error) != FORELOOP_OK ||
        foreloop_scorer_create(&own->scorer, own->model, own->actions, &own->hardware, &own->error) != FORELOOP_OK)
        return 0;
    for (size_t i = 0; i < ENGINE_DISTINCT; i++) {
        char name[BENCH_NAME_SIZE];
        foreloop_argument arguments[BENCH_SLOTS];
        foreloop_action action;
        uint32_t id;
        bench_action(i, shape->kinds, name, arguments, &action);
        if (shape->kind_names)
            action.kind = shape->kind_names[i % shape->kinds];
        if (foreloop_actions_intern(own->actions, &action, 1, &id, &own->error) != FORELOOP_OK || id != i + 1)
            return 0;
    }
    for (size_t i = 0; i < ENGINE_CANDIDATES; i++) {
        uint32_t *ids = own->ids + own->offsets[i];
        size_t length = random_below(&source, ENGINE_LONGEST + 1), shared = 0;
        if (i > 0 && random_below(&source, 3) > 0) {
            const size_t before = own->offsets[i] - own->offsets[i - 1];
            shared = random_below(&source, (uint32_t)(before < length ? before : length) + 1);
            memcpy(ids, own->ids + own->offsets[i - 1], shared * sizeof *ids);
        }
        for (size_t t = shared; t < length; t++)
            ids[t] = random_below(&source, ENGINE_DISTINCT + 1);
        own->offsets[i + 1] = own->offsets[i] + length;
    }
    return 1;
}

static void engine_close(engine *own) {
    foreloop_scorer_close(own->scorer);
    foreloop_actions_close(own->actions);
    foreloop_workload_close(own->workload);
    foreloop_model_close(own->model);
    foreloop_buffer_close(&own->bundle);
}

#endif
