/* The score network's kernels beside the CPU's, over networks of several depths and of widths that fill no tile: with
 * features far out of range, rows that are NaN, and more numbers in a row than the network reads. And a bundle whose
 * network reads some of the features that its trees read, and some others. Usage: test_cuda_network ROOT NAME, of the
 * bundle in tests/golden */
#include "../api/fixture.h"
#include "cuda/scoring.h"
#include "cuda_test.h"
#include "model/model.h"
#include "random.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 150, MAX_HIDDEN = 8, MAX_INPUTS = 200, STRIDE = MAX_INPUTS + 11, LANES = FORELOOP_MLP_LANES };

static const struct {
    size_t inputs;
    size_t hidden[MAX_HIDDEN]; /* 0: no more */
} shapes[] = {{1, {0}},
              {158, {0}},
              {1, {1}},
              {200, {1}},
              {33, {17}},
              {158, {64}},
              {31, {100}},
              {158, {64, 64}},
              {200, {100, 17}},
              {32, {1, 100}},
              {64, {3, 2}},
              {100, {17, 1, 5}},
              {7, {9, 8, 7, 6, 5, 4, 3}},
              {5, {4096}}};

static float *allocate_floats(size_t count) {
    void *memory = NULL;
    return posix_memalign(&memory, 64, (count ? count : 1) * sizeof(float)) == 0 ? memory : NULL;
}

/* From -1 to 1. */
static float unit(random_source *source) {
    return (float)random_below(source, 2001) / 1000.0f - 1;
}

static void make_layer(foreloop_mlp_layer *layer, size_t in, size_t out, random_source *source) {
    const size_t stride = (out + LANES - 1) / LANES * LANES;
    float *weight = allocate_floats(in * stride), *bias = allocate_floats(stride);
    memset(weight, 0, in * stride * sizeof *weight);
    memset(bias, 0, stride * sizeof *bias);
    for (size_t i = 0; i < in; i++)
        for (size_t o = 0; o < out; o++)
            weight[i * stride + o] = unit(source) * (random_below(source, 50) ? 1 : 1e-38f);
    for (size_t o = 0; o < out; o++)
        bias[o] = random_below(source, 4) ? unit(source) / 4 : -0.0f;
    *layer = (foreloop_mlp_layer){.in = in, .out = out, .stride = stride, .weight = weight, .bias = bias};
}

static void make_network(foreloop_score_network *network, size_t shape, random_source *source) {
    *network = (foreloop_score_network){.input_count = shapes[shape].inputs, .limit = 4};
    size_t in = shapes[shape].inputs;
    foreloop_mlp_f32_init(&network->kernels, FORELOOP_TIER_REF);
    network->shift = allocate_floats(in);
    network->scale = allocate_floats(in);
    for (size_t i = 0; i < in; i++) {
        network->shift[i] = 3 * unit(source);
        network->scale[i] = i % 9 ? 2 * unit(source) + 1e-3f : 1e30f;
    }
    for (const size_t *out = shapes[shape].hidden; *out; in = *out++)
        make_layer(&network->layers[network->layer_count++], in, *out, source);
    make_layer(&network->layers[network->layer_count++], in, 1, source);
}

static void release_network(foreloop_score_network *network) {
    for (size_t i = 0; i < network->layer_count; i++) {
        free((void *)network->layers[i].weight);
        free((void *)network->layers[i].bias);
    }
    free(network->shift);
    free(network->scale);
}

static void *upload(const void *data, size_t bytes) {
    void *memory = NULL;
    if (cudaMalloc(&memory, bytes) != cudaSuccess)
        return NULL;
    return cudaMemcpyAsync(memory, data, bytes, cudaMemcpyHostToDevice, NULL) == cudaSuccess ? memory : NULL;
}

static float rows[ROWS * STRIDE];
static uint32_t inputs[MAX_INPUTS]; /* distinct numbers of a row, in no order */

static void fill_rows(random_source *source) {
    static const float extremes[] = {1e30f, -1e30f, 3.4e38f, -3.4e38f, 1e-42f, 0, -0.0f};
    for (size_t i = 0; i < ROWS * STRIDE; i++)
        rows[i] = random_below(source, 10) ? 5 * unit(source) : extremes[random_below(source, 7)];
    for (size_t i = 0; i < STRIDE; i++)
        rows[3 * STRIDE + i] = NAN; /* what a bad candidate has */
    for (uint32_t i = 0; i < MAX_INPUTS; i++)
        inputs[i] = i * 59 % STRIDE;
}

/* scores[count] += the network of rows, by the GPU; `widest` is that of hidden layers. */
static int add_network(const foreloop_cuda_score_network *network, size_t count, float *scores) {
    const size_t pitch = foreloop_cuda_network_pitch(count);
    float *hidden[2] = {NULL, NULL};
    foreloop_cuda_network_call call = {.network = network->network, .row_stride = STRIDE, .count = count};
    void *device_rows = upload(rows, sizeof rows), *device_inputs = upload(inputs, sizeof inputs),
         *device_scores = upload(scores, ROWS * sizeof *scores);
    int good = device_rows && device_inputs && device_scores;
    for (size_t i = 0; i < 2 && network->widest; i++)
        good = good && cudaMalloc((void **)&hidden[i], network->widest * pitch * sizeof(float)) == cudaSuccess;
    call.rows = device_rows;
    call.inputs = device_inputs;
    call.scores = device_scores;
    call.hidden[0] = hidden[0];
    call.hidden[1] = hidden[1];
    good = good && foreloop_cuda_add_network(&call, NULL) == cudaSuccess &&
           cudaMemcpyAsync(scores, device_scores, ROWS * sizeof *scores, cudaMemcpyDeviceToHost, NULL) == cudaSuccess &&
           cudaStreamSynchronize(NULL) == cudaSuccess;
    const char *fault = emulation_take_fault();
    if (fault[0])
        printf("# %s\n", fault);
    cudaFree(hidden[1]);
    cudaFree(hidden[0]);
    cudaFree(device_scores);
    cudaFree(device_inputs);
    cudaFree(device_rows);
    return good && !fault[0];
}

static void check_network(foreloop_cuda *gpu, size_t shape) {
    static const size_t counts[] = {0, 1, 63, 64, 65, ROWS};
    random_source source = {shape + 1};
    foreloop_score_network network;
    foreloop_cuda_score_network own = {0};
    foreloop_error error = {.message = ""};
    make_network(&network, shape, &source);
    float *scratch = allocate_floats(foreloop_score_network_scratch(&network));
    if (CHECK(scratch && foreloop_cuda_score_network_open(&own, gpu, &network, NULL, &error) == FORELOOP_OK,
              "%zu inputs, %zu layers: %s", network.input_count, network.layer_count, error.message))
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            float expected[ROWS], scores[ROWS];
            for (size_t r = 0; r < ROWS; r++) {
                scores[r] = expected[r] = r == 3 ? NAN : unit(&source);
                if (r < counts[i])
                    expected[r] += foreloop_score_network_row(&network, rows + r * STRIDE, inputs, scratch);
            }
            emulation_set_seed(i);
            const int good = add_network(&own, counts[i], scores);
            size_t differ = 0;
            for (size_t r = 0; r < ROWS; r++)
                differ += scores[r] != scores[r] ? r != 3 : memcmp(&scores[r], &expected[r], sizeof *scores) != 0;
            CHECK(good && differ == 0 && scores[3] != scores[3], "%zu rows: the bits of the CPU, %zu differ", counts[i],
                  differ);
        }
    foreloop_cuda_score_network_close(&own);
    free(scratch);
    release_network(&network);
}

static void check_bundle(foreloop_cuda *gpu, const fixture *fix) {
    static uint32_t ids[FIXTURE_MAX * 1024];
    size_t offsets[FIXTURE_MAX + 1];
    float expected[FIXTURE_MAX] = {0}, scores[FIXTURE_MAX] = {0};
    foreloop_error error = {.message = ""};
    foreloop_model *model = NULL;
    foreloop_workload *workload = NULL;
    foreloop_actions *actions = NULL;
    foreloop_scorer *scorer = NULL;
    foreloop_cuda_model *own_model = NULL;
    foreloop_cuda_actions *own_actions = NULL;
    foreloop_cuda_workload *own_workload = NULL;
    foreloop_cuda_scorer *own_scorer = NULL;
    const int opened =
        foreloop_model_open(&model, fix->directory, NULL, &error) == FORELOOP_OK &&
        foreloop_workload_create(&workload, model, fix->z0, &error) == FORELOOP_OK &&
        foreloop_actions_create(&actions, model, 0, &error) == FORELOOP_OK &&
        fixture_intern(fix, actions, ids, offsets, &error) == FORELOOP_OK &&
        foreloop_scorer_create(&scorer, model, actions, &fix->hardware, &error) == FORELOOP_OK &&
        foreloop_cuda_model_create(&own_model, gpu, model, NULL, &error) == FORELOOP_OK &&
        foreloop_cuda_actions_create(&own_actions, own_model, actions, 0, &error) == FORELOOP_OK &&
        foreloop_cuda_actions_update(own_actions, NULL, &error) == FORELOOP_OK &&
        foreloop_cuda_workload_create(&own_workload, own_model, workload, NULL, &error) == FORELOOP_OK &&
        foreloop_cuda_scorer_create(&own_scorer, own_model, own_actions, &fix->hardware, NULL, &error) == FORELOOP_OK;
    if (CHECK(opened && model->has_network && model->network.input_count < model->manifest.plan.count,
              "a bundle whose network leaves features out: %s", error.message)) {
        const foreloop_cuda_batch batch = {.size = sizeof batch, .ids = ids, .offsets = offsets, .count = fix->count};
        foreloop_score(scorer, workload, ids, offsets, fix->count, expected, NULL);
        CHECK(foreloop_cuda_score(own_scorer, own_workload, &batch, scores, FORELOOP_CUDA_HOST, NULL, &error) ==
                      FORELOOP_OK &&
                  cudaStreamSynchronize(NULL) == cudaSuccess && !emulation_take_fault()[0] &&
                  memcmp(scores, expected, sizeof scores) == 0,
              "its %zu candidates have the CPU's bits: %s", fix->count, error.message);
    }
    foreloop_cuda_scorer_close(own_scorer);
    foreloop_cuda_workload_close(own_workload);
    foreloop_cuda_actions_close(own_actions);
    foreloop_cuda_model_close(own_model);
    foreloop_scorer_close(scorer);
    foreloop_actions_close(actions);
    foreloop_workload_close(workload);
    foreloop_model_close(model);
}

int main(int argc, char **argv) {
    static fixture fix;
    foreloop_error error = {.message = ""};
    foreloop_cuda *gpu = NULL;
    random_source source = {5};
    if (!cuda_test_has_gpu())
        return tap_done();
    fixture_open(&fix, argc, argv);
    fill_rows(&source);
    if (CHECK(foreloop_cuda_open(&gpu, NULL, &error) == FORELOOP_OK, "a GPU: %s", error.message)) {
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            check_network(gpu, i);
        check_bundle(gpu, &fix);
    }
    foreloop_cuda_close(gpu);
    fixture_close(&fix);
    return tap_done();
}
