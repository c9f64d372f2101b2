/* Memory of the library for GPUs: every allocation that fails, on the host and on the device, gives a status and leaks
 * nothing; the caller's functions and the caller's arena are all that device memory comes from. */
#include "../api/engine.h"
#include "cuda_test.h"
#include "failing_device.h"

static engine cpu;

/* Opens everything, scores one candidate, changes the trees, closes everything. */
static foreloop_status run(const foreloop_cuda_options *options, size_t *held, foreloop_error *error) {
    foreloop_cuda *gpu = NULL;
    foreloop_cuda_model *model = NULL;
    foreloop_cuda_actions *actions = NULL;
    foreloop_cuda_workload *workload = NULL, *second = NULL;
    foreloop_cuda_scorer *scorer = NULL;
    foreloop_cuda_scorer_options sizes;
    foreloop_cuda_info info = {.size = sizeof info};
    float score = 77;
    const foreloop_cuda_batch batch = {.size = sizeof batch, .ids = cpu.ids, .offsets = cpu.offsets + 1, .count = 1};
    foreloop_cuda_scorer_options_init(&sizes, sizeof sizes);
    sizes.chunk = 100;
    sizes.staged_ids = 1000;
    foreloop_status status = foreloop_cuda_open(&gpu, options, error);
    if (status == FORELOOP_OK)
        status = foreloop_cuda_model_create(&model, gpu, cpu.model, NULL, error);
    if (status == FORELOOP_OK)
        status = foreloop_cuda_actions_create(&actions, model, cpu.actions, 500, error);
    if (status == FORELOOP_OK)
        status = foreloop_cuda_actions_update(actions, NULL, error);
    if (status == FORELOOP_OK)
        status = foreloop_cuda_workload_create(&workload, model, cpu.workload, NULL, error);
    if (status == FORELOOP_OK)
        status = foreloop_cuda_workload_from_latent(&second, model, foreloop_workload_latent(cpu.workload),
                                                    FORELOOP_CUDA_HOST, NULL, error);
    if (status == FORELOOP_OK)
        status = foreloop_cuda_scorer_create(&scorer, model, actions, &cpu.hardware, &sizes, error);
    if (status == FORELOOP_OK)
        status = foreloop_cuda_scorer_set_ranker(scorer, foreloop_model_gbdt(cpu.model), error);
    if (status == FORELOOP_OK)
        status = foreloop_cuda_score(scorer, workload, &batch, &score, FORELOOP_CUDA_HOST, NULL, error);
    foreloop_cuda_get_info(gpu, &info);
    *held = info.allocated_bytes;
    cudaStreamSynchronize(NULL);
    foreloop_cuda_scorer_close(scorer);
    foreloop_cuda_workload_close(second);
    foreloop_cuda_workload_close(workload);
    foreloop_cuda_actions_close(actions);
    foreloop_cuda_model_close(model);
    foreloop_cuda_close(gpu);
    return status;
}

static void failing_host(void) {
    size_t n = 0, held, good = 0;
    for (;; n++) {
        failing_allocator memory = {.fail_at = n};
        const foreloop_allocator allocator = failing_allocator_use(&memory);
        foreloop_cuda_options options;
        foreloop_error error = {.message = ""};
        foreloop_cuda_options_init(&options, sizeof options);
        options.allocator = &allocator;
        const foreloop_status status = run(&options, &held, &error);
        good += memory.live == 0 &&
                (memory.failed ? status == FORELOOP_ERROR_MEMORY && error.message[0] : status == FORELOOP_OK);
        if (!memory.failed)
            break;
    }
    CHECK(good == n + 1 && n > 10, "each of %zu host allocations may fail", n);
}

static void failing_device(void) {
    size_t n = 0, held, good = 0;
    for (;; n++) {
        failing_allocator memory = {.fail_at = n};
        const foreloop_cuda_allocator allocator = failing_device_use(&memory);
        foreloop_cuda_options options;
        foreloop_error error = {.message = ""};
        foreloop_cuda_options_init(&options, sizeof options);
        options.device_allocator = &allocator;
        const foreloop_status status = run(&options, &held, &error);
        good += memory.live == 0 &&
                (memory.failed ? status == FORELOOP_ERROR_MEMORY && error.message[0] : status == FORELOOP_OK);
        if (!memory.failed)
            break;
    }
    CHECK(good == n + 1 && n > 10, "each of %zu device allocations may fail", n);
}

static void arena(void) {
    void *memory = NULL;
    size_t held = 0, again = 0;
    foreloop_cuda_options options;
    foreloop_error error = {.message = ""};
    foreloop_cuda_options_init(&options, sizeof options);
    const foreloop_status status = run(&options, &held, &error);
    CHECK(status == FORELOOP_OK && held > 0, "everything takes %zu bytes", held);
    options.arena_size = 2 * held;
    if (!CHECK(cudaMalloc(&memory, options.arena_size) == cudaSuccess, "an arena"))
        return;
    options.arena = memory;
    CHECK(run(&options, &again, &error) == FORELOOP_OK && again == held, "all of it from the arena: %s", error.message);
    options.arena_size = held / 2;
    CHECK(run(&options, &again, &error) == FORELOOP_ERROR_MEMORY && strstr(error.message, "arena"),
          "an arena that is too small: %s", error.message);
    options.arena = (char *)memory + 8;
    CHECK(run(&options, &again, &error) == FORELOOP_ERROR_ARGUMENT, "one that is not aligned: %s", error.message);
    cudaFree(memory);
}

int main(void) {
    static const bench_shape shape = {32, 9, 3, 3, NULL, 20};
    if (!cuda_test_has_gpu())
        return tap_done();
    if (CHECK(engine_open(&cpu, &shape, FORELOOP_TIER_BEST), "a model: %s", cpu.error.message)) {
        failing_host();
        failing_device();
        arena();
        engine_close(&cpu);
    }
    CHECK(emulation_take_fault()[0] == 0, "no kernel had a fault");
    return tap_done();
}
