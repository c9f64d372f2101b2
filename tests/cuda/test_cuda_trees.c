/* The trees' kernels beside foreloop_gbdt_predict, over models of XGBoost with every sort of split: rows with missing
 * and infinite values, in shared memory and where they lie. Usage: test_cuda_trees GOLDEN-FOLDER */
#include "cuda/scoring.h"
#include "cuda_test.h"
#include "gbdt/model.h"
#include "random.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 150, MAX_COLUMNS = 256 };

static float random_value(random_source *source) {
    const uint32_t drawn = random_below(source, 100);
    if (drawn < 15)
        return NAN;
    if (drawn < 20)
        return drawn % 2 ? INFINITY : -INFINITY;
    if (drawn < 60)
        return (float)random_below(source, 14) - 1; /* categories, and none */
    return (float)random_below(source, 8000) / 1000.0f - 4;
}

/* The margins of rows that hold the columns which trees read, by the GPU. */
static int add_trees(const foreloop_cuda_ranker *ranker, const float *rows, size_t shared_bytes, float *margins) {
    const size_t bytes = ROWS * ranker->row_width * sizeof *rows;
    float *device_rows = NULL, *device_margins = NULL;
    unsigned char *bad = NULL;
    int good = cudaMalloc((void **)&device_rows, bytes + 4) == cudaSuccess &&
               cudaMalloc((void **)&device_margins, ROWS * sizeof *margins) == cudaSuccess &&
               cudaMalloc((void **)&bad, ROWS) == cudaSuccess &&
               cudaMemcpyAsync(device_rows, rows, bytes, cudaMemcpyHostToDevice, NULL) == cudaSuccess &&
               cudaMemsetAsync(bad, 0, ROWS, NULL) == cudaSuccess;
    const foreloop_cuda_trees_call call = {.trees = ranker->trees,
                                           .rows = device_rows,
                                           .row_stride = ranker->row_width,
                                           .row_width = ranker->row_width,
                                           .count = ROWS,
                                           .bad = bad,
                                           .scores = device_margins};
    good =
        good && foreloop_cuda_add_trees(&call, shared_bytes, NULL) == cudaSuccess &&
        cudaMemcpyAsync(margins, device_margins, ROWS * sizeof *margins, cudaMemcpyDeviceToHost, NULL) == cudaSuccess &&
        cudaStreamSynchronize(NULL) == cudaSuccess;
    const char *fault = emulation_take_fault();
    if (fault[0])
        printf("# %s\n", fault);
    cudaFree(bad);
    cudaFree(device_margins);
    cudaFree(device_rows);
    return good && !fault[0];
}

static void check_model(foreloop_cuda *gpu, const char *folder, const char *name) {
    static float rows[ROWS * MAX_COLUMNS], read[ROWS * MAX_COLUMNS];
    static const size_t shared_bytes[] = {0, 8 << 10, 48 << 10};
    float expected[ROWS], margins[ROWS];
    char path[1024];
    unsigned char reads[MAX_COLUMNS] = {0};
    uint32_t columns[MAX_COLUMNS];
    random_source source = {99};
    foreloop_gbdt *gbdt = NULL;
    foreloop_error error = {.message = ""};
    foreloop_gbdt_info info = {.size = sizeof info};
    foreloop_cuda_ranker ranker = {0};
    snprintf(path, sizeof path, "%s/%s.json", folder, name);
    if (!CHECK(foreloop_gbdt_open(&gbdt, path, NULL, &error) == FORELOOP_OK, "%s: %s", name, error.message))
        return;
    foreloop_gbdt_get_info(gbdt, &info);
    for (size_t i = 0; i < info.feature_count; i++)
        columns[i] = (uint32_t)i;
    foreloop_gbdt_used_features(gbdt, reads);
    const foreloop_scorer_ranker given = {
        .gbdt = gbdt, .column_count = info.feature_count, .columns = columns, .reads = reads};
    CHECK(info.feature_count <= MAX_COLUMNS && info.output_count == 1 &&
              foreloop_cuda_ranker_open(&ranker, gpu, &given, NULL, &error) == FORELOOP_OK,
          "%s: %zu trees over", name, info.tree_count);
    for (size_t i = 0; i < ROWS * info.feature_count; i++)
        rows[i] = random_value(&source);
    for (size_t r = 0, at = 0; r < ROWS; r++)
        for (size_t i = 0; i < info.feature_count; i++)
            if (reads[i])
                read[at++] = rows[r * info.feature_count + i];
    foreloop_gbdt_predict(gbdt, rows, ROWS, info.feature_count, 1, expected, NULL);
    for (size_t i = 0; i < sizeof shared_bytes / sizeof *shared_bytes; i++) {
        emulation_set_seed(i);
        CHECK(add_trees(&ranker, read, shared_bytes[i], margins) && memcmp(margins, expected, sizeof margins) == 0,
              "%s: the bits of the CPU, with %zu bytes of shared memory", name, shared_bytes[i]);
    }
    foreloop_cuda_ranker_close(&ranker);
    foreloop_gbdt_close(gbdt);
}

int main(int argc, char **argv) {
    static const char *const models[] = {"categories", "lossguide",     "pruned",        "root_only",      "stump",
                                         "rank_ndcg",  "base_score",    "dart",          "forest",         "named",
                                         "onehot",     "v1_0_logistic", "v2_1_logistic", "v1_7_categories"};
    foreloop_error error = {.message = ""};
    foreloop_cuda *gpu = NULL;
    if (!cuda_test_has_gpu())
        return tap_done();
    if (CHECK(argc > 1 && foreloop_cuda_open(&gpu, NULL, &error) == FORELOOP_OK, "a GPU: %s", error.message))
        for (size_t i = 0; i < sizeof models / sizeof *models; i++)
            check_model(gpu, argv[1], models[i]);
    foreloop_cuda_close(gpu);
    return tap_done();
}
