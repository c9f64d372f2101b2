/* Scoring on the GPU over models of several shapes: the bits of the CPU's scores, features and best candidates, by
 * every way of calling and in every order of threads. */
#include "../../tools/bench_trees.h"
#include "../api/engine.h"
#include "cuda_test.h"
#include "model/model.h"

enum { CHUNK = 48, STAGED = 500, MAX_FEATURES = 600, CAPACITY = 400, FEW = 60, BIGGEST = FORELOOP_CUDA_TOP_LIMIT };

static const bench_shape shapes[] = {{256, 32, 20, 6, NULL, 0},
                                     {100, 7, 3, 4, NULL, 0},  /* the trees read half of z and few aggregates */
                                     {16, 64, 5, 5, NULL, 0},  /* more kinds than dimensions */
                                     {300, 17, 1, 0, NULL, 0}, /* a tree that reads nothing */
                                     {64, ENGINE_REAL_KINDS, 8, 6, engine_kinds, 0},
                                     /* score networks: what trees read is a part of what they read, and nothing */
                                     {100, 7, 3, 4, NULL, 64},
                                     {37, 9, 1, 0, NULL, 17},
                                     {64, ENGINE_REAL_KINDS, 8, 6, engine_kinds, 100},
                                     {16, 5, 2, 3, NULL, 1}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

typedef struct session {
    engine cpu;
    const bench_shape *shape;
    foreloop_cuda *gpu;
    foreloop_cuda_model *model;
    foreloop_cuda_actions *actions;
    foreloop_cuda_workload *workload;
    foreloop_cuda_scorer *scorer;
    foreloop_error error;
} session;

static int open_session(session *s, const bench_shape *shape) {
    foreloop_cuda_options options;
    foreloop_cuda_scorer_options sizes;
    memset(s, 0, sizeof *s);
    s->shape = shape;
    if (!engine_open(&s->cpu, shape, FORELOOP_TIER_BEST))
        return 0;
    foreloop_cuda_options_init(&options, sizeof options);
    options.allocator = &s->cpu.allocator;
    foreloop_cuda_scorer_options_init(&sizes, sizeof sizes);
    sizes.chunk = CHUNK;
    sizes.staged_ids = STAGED;
    return foreloop_cuda_open(&s->gpu, &options, &s->error) == FORELOOP_OK &&
           foreloop_cuda_model_create(&s->model, s->gpu, s->cpu.model, NULL, &s->error) == FORELOOP_OK &&
           foreloop_cuda_actions_create(&s->actions, s->model, s->cpu.actions, CAPACITY, &s->error) == FORELOOP_OK &&
           foreloop_cuda_actions_update(s->actions, NULL, &s->error) == FORELOOP_OK &&
           foreloop_cuda_workload_create(&s->workload, s->model, s->cpu.workload, NULL, &s->error) == FORELOOP_OK &&
           foreloop_cuda_scorer_create(&s->scorer, s->model, s->actions, &s->cpu.hardware, &sizes, &s->error) ==
               FORELOOP_OK;
}

static void close_session(session *s) {
    foreloop_cuda_info info = {.size = sizeof info};
    foreloop_cuda_scorer_close(s->scorer);
    foreloop_cuda_workload_close(s->workload);
    foreloop_cuda_actions_close(s->actions);
    foreloop_cuda_model_close(s->model);
    foreloop_cuda_get_info(s->gpu, &info);
    foreloop_cuda_close(s->gpu);
    engine_close(&s->cpu);
    CHECK(info.allocated_bytes == 0 && s->cpu.memory.live == 0, "everything is released, on both sides");
}

static foreloop_cuda_batch host_batch(const session *s) {
    foreloop_cuda_batch batch;
    foreloop_cuda_batch_init(&batch, sizeof batch);
    batch.ids = s->cpu.ids;
    batch.offsets = s->cpu.offsets;
    batch.count = ENGINE_CANDIDATES;
    return batch;
}

static int wait_all(void) {
    const int good = cudaStreamSynchronize(NULL) == cudaSuccess;
    const char *fault = emulation_take_fault();
    if (fault[0])
        printf("# %s\n", fault);
    return good && !fault[0];
}

static void *to_device(const void *data, size_t bytes) {
    void *memory = NULL;
    if (cudaMalloc(&memory, bytes ? bytes : 1) != cudaSuccess)
        return NULL;
    cudaMemcpyAsync(memory, data, bytes, cudaMemcpyHostToDevice, NULL);
    return memory;
}

static void to_host(void *data, const void *memory, size_t bytes) {
    cudaMemcpyAsync(data, memory, bytes, cudaMemcpyDeviceToHost, NULL);
    cudaStreamSynchronize(NULL);
}

/* ---- From host memory ---- */

static void test_scores(session *s, unsigned long long seed) {
    static float expected[ENGINE_CANDIDATES], scores[ENGINE_CANDIDATES];
    const foreloop_cuda_batch batch = host_batch(s);
    emulation_set_seed(seed);
    foreloop_score(s->cpu.scorer, s->cpu.workload, s->cpu.ids, s->cpu.offsets, ENGINE_CANDIDATES, expected, NULL);
    CHECK(foreloop_cuda_score(s->scorer, s->workload, &batch, scores, FORELOOP_CUDA_HOST, NULL, &s->error) ==
                  FORELOOP_OK &&
              wait_all(),
          "scored, order %llu", seed);
    CHECK(memcmp(scores, expected, sizeof scores) == 0, "with the bits of the CPU");
}

static void test_features(session *s) {
    static float expected[ENGINE_CANDIDATES][MAX_FEATURES], features[ENGINE_CANDIDATES][MAX_FEATURES];
    const foreloop_cuda_batch batch = host_batch(s);
    const size_t count = s->cpu.model->manifest.plan.count;
    size_t differ = 0;
    memset(features, 0x55, sizeof features);
    foreloop_features_batch(s->cpu.scorer, s->cpu.workload, s->cpu.ids, s->cpu.offsets, ENGINE_CANDIDATES, expected[0],
                            MAX_FEATURES, NULL);
    CHECK(foreloop_cuda_features(s->scorer, s->workload, &batch, features[0], MAX_FEATURES, FORELOOP_CUDA_HOST, NULL,
                                 &s->error) == FORELOOP_OK &&
              wait_all(),
          "features: %s", s->error.message);
    for (size_t i = 0; i < ENGINE_CANDIDATES; i++)
        differ += memcmp(features[i], expected[i], count * sizeof(float)) != 0;
    CHECK(differ == 0, "%zu features with the bits of the CPU: %zu rows differ", count, differ);
    uint32_t behind;
    memcpy(&behind, &features[3][count], sizeof behind);
    CHECK(behind == 0x55555555u, "nothing is written behind a row");
    CHECK(foreloop_cuda_features(s->scorer, s->workload, &batch, features[0], count - 1, FORELOOP_CUDA_HOST, NULL,
                                 &s->error) == FORELOOP_ERROR_ARGUMENT,
          "a stride that is too small: %s", s->error.message);
}

static void test_top(session *s) {
    static const size_t ks[] = {0, 1, 7, FEW, BIGGEST}; /* the last one of all candidates */
    foreloop_cuda_batch batch = host_batch(s);
    for (size_t i = 0; i < sizeof ks / sizeof *ks; i++) {
        uint64_t expected[ENGINE_CANDIDATES] = {0}, indices[ENGINE_CANDIDATES] = {0};
        float best[ENGINE_CANDIDATES] = {0}, scores[ENGINE_CANDIDATES] = {0};
        size_t found = 0;
        batch.count = ks[i] == BIGGEST ? ENGINE_CANDIDATES : FEW;
        foreloop_rank_top(s->cpu.scorer, s->cpu.workload, batch.ids, batch.offsets, batch.count, ks[i], expected, best,
                          &found, NULL);
        CHECK(foreloop_cuda_rank_top(s->scorer, s->workload, &batch, ks[i], indices, scores, FORELOOP_CUDA_HOST, NULL,
                                     &s->error) == FORELOOP_OK &&
                  wait_all() && memcmp(indices, expected, sizeof indices) == 0 &&
                  memcmp(scores, best, sizeof scores) == 0,
              "the %zu best", ks[i]);
    }
    uint64_t indices[1];
    CHECK(foreloop_cuda_rank_top(s->scorer, s->workload, &batch, BIGGEST + 1, indices, NULL, FORELOOP_CUDA_HOST, NULL,
                                 &s->error) == FORELOOP_ERROR_LIMIT,
          "more than can be kept: %s", s->error.message);
}

/* ---- From device memory ---- */

static void test_device(session *s) {
    static float expected[ENGINE_CANDIDATES], scores[ENGINE_CANDIDATES];
    foreloop_cuda_batch batch = host_batch(s);
    const size_t id_count = s->cpu.offsets[ENGINE_CANDIDATES];
    float *device_scores = to_device(scores, sizeof scores);
    foreloop_score(s->cpu.scorer, s->cpu.workload, s->cpu.ids, s->cpu.offsets, ENGINE_CANDIDATES, expected, NULL);
    batch.ids = to_device(s->cpu.ids, id_count * sizeof *batch.ids);
    batch.offsets = to_device(s->cpu.offsets, sizeof s->cpu.offsets);
    batch.id_count = id_count;
    batch.place = FORELOOP_CUDA_DEVICE;
    CHECK(foreloop_cuda_score(s->scorer, s->workload, &batch, device_scores, FORELOOP_CUDA_DEVICE, NULL, &s->error) ==
              FORELOOP_OK,
          "queued from and to device memory");
    to_host(scores, device_scores, sizeof scores);
    CHECK(memcmp(scores, expected, sizeof scores) == 0 &&
              foreloop_cuda_scorer_check(s->scorer, &s->error) == FORELOOP_OK,
          "with the bits of the CPU");
    cudaFree((void *)batch.ids);
    cudaFree((void *)batch.offsets);
    cudaFree(device_scores);
}

/* Candidates that only the GPU can find out to be bad: each is NaN, the others as ever, and they come last. */
static void test_bad_on_device(session *s) {
    enum { COUNT = 6 };
    static const size_t offsets[COUNT + 1] = {0, 3, 2, 5, 9, 1000, 10};
    static const size_t good_offsets[] = {2, 5};
    const uint32_t ids[10] = {1, 2, 3, 4, 5, 6, 7, ENGINE_DISTINCT + 1, 1, 2};
    foreloop_cuda_batch batch;
    float expected, scores[COUNT];
    uint64_t best[COUNT];
    foreloop_cuda_batch_init(&batch, sizeof batch);
    batch.ids = to_device(ids, sizeof ids);
    batch.offsets = to_device(offsets, sizeof offsets);
    batch.count = COUNT;
    batch.id_count = 10;
    batch.place = FORELOOP_CUDA_DEVICE;
    foreloop_score(s->cpu.scorer, s->cpu.workload, ids, good_offsets, 1, &expected, NULL);
    CHECK(foreloop_cuda_score(s->scorer, s->workload, &batch, scores, FORELOOP_CUDA_HOST, NULL, &s->error) ==
                  FORELOOP_OK &&
              wait_all(),
          "bad candidates are queued");
    CHECK(scores[0] == scores[0] && scores[1] != scores[1] && memcmp(&scores[2], &expected, sizeof expected) == 0 &&
              scores[3] != scores[3] && scores[4] != scores[4] && scores[5] != scores[5],
          "falling offsets, an unknown id, offsets beyond the ids give NaN, the others their scores");
    CHECK(foreloop_cuda_scorer_check(s->scorer, &s->error) == FORELOOP_ERROR_ARGUMENT &&
              strstr(s->error.message, "candidate 1 "),
          "and are told afterwards: %s", s->error.message);
    CHECK(foreloop_cuda_scorer_check(s->scorer, &s->error) == FORELOOP_OK, "once");
    CHECK(foreloop_cuda_rank_top(s->scorer, s->workload, &batch, COUNT, best, scores, FORELOOP_CUDA_HOST, NULL,
                                 &s->error) == FORELOOP_OK &&
              wait_all() && best[0] + best[1] == 2 && best[2] == 1 && best[3] == 3 && best[5] == 5 &&
              scores[1] == scores[1] && scores[2] != scores[2],
          "they come last, in order");
    (void)foreloop_cuda_scorer_check(s->scorer, NULL);
    cudaFree((void *)batch.ids);
    cudaFree((void *)batch.offsets);
}

/* ---- Growing tables, other trees ---- */

/* Interns action number i, which is not in the table. */
static uint32_t intern_one(session *s, size_t i) {
    char name[BENCH_NAME_SIZE];
    foreloop_argument arguments[BENCH_SLOTS];
    foreloop_action action;
    uint32_t id = 0;
    bench_action(i, s->cpu.kinds, name, arguments, &action);
    if (s->shape->kind_names)
        action.kind = s->shape->kind_names[i % s->cpu.kinds];
    foreloop_actions_intern(s->cpu.actions, &action, 1, &id, NULL);
    return id;
}

static void test_growth(session *s) {
    float expected[1], scores[1] = {0};
    const size_t offsets[] = {0, 2};
    const uint32_t ids[2] = {1, intern_one(s, ENGINE_DISTINCT)};
    const foreloop_cuda_batch batch = {.size = sizeof batch, .ids = ids, .offsets = offsets, .count = 1};
    CHECK(foreloop_cuda_score(s->scorer, s->workload, &batch, scores, FORELOOP_CUDA_HOST, NULL, &s->error) ==
              FORELOOP_ERROR_ARGUMENT,
          "an id that is not on the GPU yet: %s", s->error.message);
    foreloop_score(s->cpu.scorer, s->cpu.workload, ids, offsets, 1, expected, NULL);
    CHECK(foreloop_cuda_actions_update(s->actions, NULL, &s->error) == FORELOOP_OK &&
              foreloop_cuda_score(s->scorer, s->workload, &batch, scores, FORELOOP_CUDA_HOST, NULL, &s->error) ==
                  FORELOOP_OK &&
              wait_all() && memcmp(scores, expected, sizeof scores) == 0,
          "after the update it has the CPU's score");
    for (size_t i = ENGINE_DISTINCT + 1; i < CAPACITY + 20; i++)
        intern_one(s, i);
    CHECK(foreloop_cuda_actions_update(s->actions, NULL, &s->error) == FORELOOP_ERROR_LIMIT, "a table that is full: %s",
          s->error.message);
}

/* Trees of every sort, one of 400 leaves and one that splits by category among them, on all features. */
static foreloop_gbdt *make_ranker(const session *s, size_t leaves, int categorical) {
    foreloop_buffer text = {.allocator = &s->cpu.allocator};
    const bench_forest forest = {.trees = 11,
                                 .features = s->cpu.model->manifest.plan.count,
                                 .leaves = leaves,
                                 .depth = 5,
                                 .lowest = -2,
                                 .highest = 2};
    char small[1500];
    foreloop_gbdt *ranker = NULL;
    static const char tree[] =
        "{\"left_children\":[1,-1,-1],\"right_children\":[2,-1,-1],\"split_indices\":[%zu,0,0],\"split_conditions\":"
        "[0.25,%s],\"default_left\":[0,0,0],\"split_type\":[%d,0,0],\"categories\":[%s],\"categories_nodes\":[%s],"
        "\"categories_segments\":[%s],\"categories_sizes\":[%s]}";
    char trees[3][400];
    for (int t = 0; t < 3; t++)
        snprintf(trees[t], sizeof trees[t], tree, s->cpu.model->manifest.plan.count - 1 - (size_t)t,
                 t == 1 ? "1.5,-0.5" : "0.125,2", t == 1, t == 1 ? "0,1,3,8,16" : "", t == 1 ? "0" : "",
                 t == 1 ? "0" : "", t == 1 ? "5" : "");
    snprintf(small, sizeof small,
             "{\"learner\":{\"learner_model_param\":{\"base_score\":\"5E-1\",\"num_feature\":\"%zu\"},\"objective\":"
             "{\"name\":\"rank:pairwise\"},\"gradient_booster\":{\"name\":\"gbtree\",\"model\":{\"trees\":[%s,%s,%s],"
             "\"tree_info\":[0,0,0]}}}}",
             s->cpu.model->manifest.plan.count, trees[0], trees[1], trees[2]);
    if (categorical)
        foreloop_gbdt_open_memory(&ranker, small, strlen(small), NULL, (foreloop_error *)&s->error);
    else if (bench_trees_make(&text, &forest))
        foreloop_gbdt_open_memory(&ranker, text.data, text.size, NULL, (foreloop_error *)&s->error);
    foreloop_buffer_close(&text);
    return ranker;
}

static void test_rankers(session *s) {
    static const struct {
        size_t leaves;
        int categorical;
        const char *name;
    } sorts[] = {{0, 0, "full trees"}, {60, 0, "deep trees"}, {400, 0, "large trees"}, {0, 1, "categories"}};
    for (size_t i = 0; i < sizeof sorts / sizeof *sorts; i++) {
        foreloop_gbdt *ranker = make_ranker(s, sorts[i].leaves, sorts[i].categorical);
        if (!CHECK(ranker && foreloop_scorer_set_ranker(s->cpu.scorer, ranker, &s->error) == FORELOOP_OK &&
                       foreloop_cuda_scorer_set_ranker(s->scorer, ranker, &s->error) == FORELOOP_OK,
                   "%s", sorts[i].name)) {
            printf("# %s\n", s->error.message);
            continue;
        }
        test_scores(s, 5);
        foreloop_scorer_set_ranker(s->cpu.scorer, NULL, NULL);
        CHECK(foreloop_cuda_scorer_set_ranker(s->scorer, NULL, &s->error) == FORELOOP_OK, "back to the model's own");
        foreloop_gbdt_close(ranker);
    }
    test_scores(s, 0);
}

/* ---- Wrong calls ---- */

static void test_arguments(session *s) {
    foreloop_cuda_batch batch = host_batch(s), other;
    float scores[ENGINE_CANDIDATES];
    foreloop_error error = {.message = ""};
    const size_t falling[] = {3, 1};
    const uint32_t beyond[] = {1, 100000};
#define SCORE(b) foreloop_cuda_score(s->scorer, s->workload, (b), scores, FORELOOP_CUDA_HOST, NULL, &error)
    CHECK(SCORE(NULL) == FORELOOP_ERROR_ARGUMENT, "no batch");
    CHECK(foreloop_cuda_score(NULL, s->workload, &batch, scores, FORELOOP_CUDA_HOST, NULL, &error) ==
                  FORELOOP_ERROR_ARGUMENT &&
              foreloop_cuda_score(s->scorer, NULL, &batch, scores, FORELOOP_CUDA_HOST, NULL, &error) ==
                  FORELOOP_ERROR_ARGUMENT &&
              foreloop_cuda_score(s->scorer, s->workload, &batch, NULL, FORELOOP_CUDA_HOST, NULL, &error) ==
                  FORELOOP_ERROR_ARGUMENT &&
              foreloop_cuda_score(s->scorer, s->workload, &batch, scores, (foreloop_cuda_place)7, NULL, &error) ==
                  FORELOOP_ERROR_ARGUMENT,
          "no scorer, no workload, no scores, no such place");
    other = batch;
    other.size = 0;
    CHECK(SCORE(&other) == FORELOOP_ERROR_ARGUMENT, "a batch without a size: %s", error.message);
    other = (foreloop_cuda_batch){.size = sizeof other, .ids = beyond, .offsets = falling, .count = 1};
    CHECK(SCORE(&other) == FORELOOP_ERROR_ARGUMENT, "offsets that fall: %s", error.message);
    other.offsets = (const size_t[]){0, 2};
    CHECK(SCORE(&other) == FORELOOP_ERROR_ARGUMENT, "an id that there is not: %s", error.message);
    other.ids = calloc(STAGED + 1, sizeof *other.ids);
    other.offsets = (const size_t[]){0, STAGED + 1};
    CHECK(SCORE(&other) == FORELOOP_ERROR_LIMIT, "a sequence that the staging does not hold: %s", error.message);
    free((void *)other.ids);
    other = (foreloop_cuda_batch){.size = sizeof other};
    CHECK(SCORE(&other) == FORELOOP_OK, "an empty batch");
    other = (foreloop_cuda_batch){.size = sizeof other, .count = 2, .place = FORELOOP_CUDA_DEVICE};
    CHECK(SCORE(&other) == FORELOOP_ERROR_ARGUMENT, "a batch on the GPU that is NULL");
    foreloop_cuda_scorer_close(NULL);
    foreloop_cuda_workload_close(NULL);
    foreloop_cuda_actions_close(NULL);
    foreloop_cuda_model_close(NULL);
#undef SCORE
}

static void test_latent(session *s) {
    float latent[1024], expected, score;
    const float *z0 = foreloop_workload_latent(s->cpu.workload);
    const size_t size = s->cpu.model->manifest.latent_size;
    foreloop_cuda_batch batch = host_batch(s);
    foreloop_cuda_workload *workload = NULL;
    float *device = to_device(z0, size * sizeof *z0);
    batch.count = 1;
    foreloop_score(s->cpu.scorer, s->cpu.workload, batch.ids, batch.offsets, 1, &expected, NULL);
    CHECK(foreloop_cuda_workload_from_latent(&workload, s->model, device, FORELOOP_CUDA_DEVICE, NULL, &s->error) ==
                  FORELOOP_OK &&
              foreloop_cuda_score(s->scorer, workload, &batch, &score, FORELOOP_CUDA_HOST, NULL, &s->error) ==
                  FORELOOP_OK &&
              wait_all() && memcmp(&score, &expected, sizeof score) == 0,
          "a workload from a latent state on the GPU");
    foreloop_cuda_workload_close(workload);
    cudaFree(device);
    memcpy(latent, z0, size * sizeof *z0);
    latent[1] = 1e30f;
    workload = NULL;
    CHECK(foreloop_cuda_workload_from_latent(&workload, s->model, latent, FORELOOP_CUDA_HOST, NULL, &s->error) ==
                  FORELOOP_ERROR_VALUE &&
              !workload,
          "one that is out of range: %s", s->error.message);
}

int main(void) {
    static session s;
    if (!cuda_test_has_gpu())
        return tap_done();
    for (size_t i = 0; i < SHAPES; i++) {
        printf("# latent %zu, kinds %zu, trees %zu, network %zu\n", shapes[i].latent, shapes[i].kinds, shapes[i].trees,
               shapes[i].network);
        if (!CHECK(open_session(&s, &shapes[i]), "open: %s", s.error.message))
            break;
        test_scores(&s, i);
        test_scores(&s, 1000 + i);
        test_features(&s);
        test_top(&s);
        test_device(&s);
        test_bad_on_device(&s);
        test_growth(&s);
        test_latent(&s);
        if (shapes[i].latent == 100) /* with a network, and without */
            test_rankers(&s);
        if (i == 0)
            test_arguments(&s);
        close_session(&s);
    }
    return tap_done();
}
