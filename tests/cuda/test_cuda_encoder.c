/* The encoder on the GPU against the CPU's: shapes, ragged batches, runs, precisions, places, failures. Usage:
 * test_cuda_encoder SOURCE-ROOT [CUBLAS] */
#include "cuda_test.h"
#include "made_transformer.h"
#include <math.h>

static const char *root, *cublas;
static foreloop_cuda *gpu;

#define BERT    FORELOOP_ARCHITECTURE_BERT
#define ROBERTA FORELOOP_ARCHITECTURE_ROBERTA
#define ERF     FORELOOP_ACTIVATION_GELU
#define TANH    FORELOOP_ACTIVATION_GELU_TANH
#define RELU    FORELOOP_ACTIVATION_RELU

/* Heads of 32, 64 and between, narrow and odd ones, and wider than a tile. */
static const made_shape shapes[] = {
    {"heads of 6", ROBERTA, ERF, 24, 4, 40, 2, 70},   {"heads of 32", BERT, ERF, 64, 2, 96, 2, 131},
    {"heads of 64", ROBERTA, TANH, 64, 1, 72, 1, 67}, {"a width of 15", BERT, TANH, 15, 5, 7, 2, 20},
    {"heads of 33", ROBERTA, ERF, 66, 2, 31, 1, 65},  {"heads of 72", BERT, RELU, 72, 1, 50, 1, 64},
    {"heads of 130", BERT, ERF, 130, 1, 33, 1, 66},   {"a width of 1", BERT, ERF, 1, 1, 1, 1, 5},
    {"no layers", ROBERTA, ERF, 40, 4, 8, 0, 9},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static const made_shape small = {"small", ROBERTA, ERF, 24, 3, 40, 1, 24};

/* An encoder on the GPU, with its weights. */
typedef struct device_encoder {
    foreloop_cuda_transformer *transformer;
    foreloop_cuda_encoder *encoder;
} device_encoder;

static foreloop_status open_encoder(device_encoder *made, const foreloop_transformer *transformer,
                                    foreloop_cuda_precision precision, size_t tokens, size_t texts,
                                    foreloop_error *error) {
    foreloop_cuda_encoder_options options;
    *made = (device_encoder){NULL, NULL};
    foreloop_cuda_encoder_options_init(&options, sizeof options);
    options.tokens = tokens;
    options.texts = texts;
    options.cublas = cublas;
    options.gemm_workspace = 1 << 16;
    foreloop_status status =
        foreloop_cuda_transformer_create(&made->transformer, gpu, transformer, precision, NULL, error);
    if (status == FORELOOP_OK)
        status = foreloop_cuda_encoder_create(&made->encoder, made->transformer, &options, error);
    return status;
}

static void close_encoder(device_encoder *made) {
    foreloop_cuda_encoder_close(made->encoder);
    foreloop_cuda_transformer_close(made->transformer);
}

static int no_fault(void) {
    const char *fault = emulation_take_fault();
    if (fault[0])
        printf("# %s\n", fault);
    return !fault[0];
}

static double largest_difference(const float *a, const float *b, size_t count) {
    double largest = 0;
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, isfinite(a[i]) ? fabs((double)a[i] - b[i]) : 1e9);
    return largest;
}

/* ---- Ids ---- */

static void check_length(const made_shape *shape, device_encoder *device, foreloop_encoder *encoder, size_t count,
                         double *worst, foreloop_status *status) {
    static float expected[200 * 130], found[200 * 130];
    uint32_t ids[200], types[200];
    random_source random = {count + 1};
    foreloop_error error = {.message = ""};
    for (size_t t = 0; t < count; t++) {
        ids[t] = t % 7 == 3 ? 1 : random_below(&random, MADE_VOCABULARY); /* RoBERTa's padding among them */
        types[t] = random_below(&random, 2);
    }
    const uint32_t *given = count % 2 ? types : NULL;
    foreloop_status made = foreloop_encode_ids(encoder, ids, given, count, expected, &error);
    if (made == FORELOOP_OK)
        made = foreloop_cuda_encode_ids(device->encoder, ids, given, count, found, FORELOOP_CUDA_HOST, NULL, &error);
    if (made == FORELOOP_OK)
        made = foreloop_cuda_encoder_check(device->encoder, &error);
    if (made != FORELOOP_OK) {
        *status = made;
        printf("# %s, %zu tokens: %s\n", shape->name, count, error.message);
    }
    *worst = fmax(*worst, largest_difference(found, expected, count * shape->hidden));
}

static void test_shapes(void) {
    static made_transformer made;
    for (size_t i = 0; i < SHAPES; i++) {
        const made_shape *shape = &shapes[i];
        device_encoder device;
        foreloop_encoder *encoder = NULL;
        foreloop_error error = {.message = ""};
        double worst = 0;
        if (!made_transformer_open(&made, root, shape, (foreloop_pooling){.truncate = true}, i + 1, 0.3f))
            continue;
        emulation_set_seed(i);
        foreloop_status status = open_encoder(&device, made.transformer, FORELOOP_CUDA_PRECISION_F32, 1, 1, &error);
        if (status == FORELOOP_OK)
            status = foreloop_encoder_create(&encoder, made.transformer, &error);
        if (status == FORELOOP_OK) {
            check_length(shape, &device, encoder, 1, &worst, &status);
            check_length(shape, &device, encoder, shape->positions / 2, &worst, &status);
            check_length(shape, &device, encoder, shape->positions, &worst, &status);
        }
        CHECK(status == FORELOOP_OK && worst < 1e-4 && no_fault(), "%s: off by %.1e %s", shape->name, worst,
              error.message);
        foreloop_encoder_close(encoder);
        close_encoder(&device);
        made_transformer_close(&made);
    }
}

static void test_ids_errors(void) {
    static made_transformer made;
    device_encoder device;
    foreloop_error error = {.message = ""};
    uint32_t ids[30] = {0}, types[30] = {0};
    float hidden[30 * 24], before[30 * 24];
    memset(hidden, 7, sizeof hidden);
    memcpy(before, hidden, sizeof hidden);
    if (!made_transformer_open(&made, root, &small, (foreloop_pooling){.truncate = true}, 1, 0.3f))
        return;
    CHECK(open_encoder(&device, made.transformer, FORELOOP_CUDA_PRECISION_F32, 0, 0, &error) == FORELOOP_OK,
          "default options %s", error.message);
    foreloop_cuda_encoder *encoder = device.encoder;
    CHECK(foreloop_cuda_encode_ids(encoder, ids, NULL, 0, hidden, FORELOOP_CUDA_HOST, NULL, &error) ==
              FORELOOP_ERROR_ARGUMENT,
          "no ids: %s", error.message);
    CHECK(foreloop_cuda_encode_ids(encoder, ids, NULL, 25, hidden, FORELOOP_CUDA_HOST, NULL, &error) ==
              FORELOOP_ERROR_LIMIT,
          "too many: %s", error.message);
    ids[3] = MADE_VOCABULARY;
    CHECK(foreloop_cuda_encode_ids(encoder, ids, NULL, 5, hidden, FORELOOP_CUDA_HOST, NULL, &error) ==
              FORELOOP_ERROR_ARGUMENT,
          "an id out of range: %s", error.message);
    ids[3] = 0;
    types[2] = 2;
    CHECK(foreloop_cuda_encode_ids(encoder, ids, types, 5, hidden, FORELOOP_CUDA_HOST, NULL, &error) ==
              FORELOOP_ERROR_ARGUMENT,
          "a type out of range: %s", error.message);
    CHECK(foreloop_cuda_encode_ids(encoder, ids, NULL, 5, NULL, FORELOOP_CUDA_HOST, NULL, &error) ==
                  FORELOOP_ERROR_ARGUMENT &&
              foreloop_cuda_encode_ids(NULL, ids, NULL, 5, hidden, FORELOOP_CUDA_HOST, NULL, &error) ==
                  FORELOOP_ERROR_ARGUMENT &&
              foreloop_cuda_encode_texts(encoder, NULL, NULL, 1, hidden, FORELOOP_CUDA_HOST, NULL, &error) ==
                  FORELOOP_ERROR_ARGUMENT &&
              foreloop_cuda_encoder_check(NULL, &error) == FORELOOP_ERROR_ARGUMENT,
          "NULL");
    CHECK(foreloop_cuda_encode_ids(encoder, ids, NULL, 5, hidden, (foreloop_cuda_place)2, NULL, &error) ==
              FORELOOP_ERROR_ARGUMENT,
          "no such place: %s", error.message);
    CHECK(memcmp(hidden, before, sizeof hidden) == 0, "outputs are untouched");
    close_encoder(&device);
    made_transformer_close(&made);
}

/* ---- Texts ---- */

enum { TEXTS = 9 };

/* Ragged: empty ones, one of a single token, and one of many windows. */
static const char *const texts[TEXTS] = {
    "",
    "a",
    ("for i, j, k in T.grid(128, 128, 128): with T.block(\"C\"): vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k]); "
     "C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj] and so on until many windows are full of this one text's tokens"),
    "x = 1",
    "",
    "b",
    "def main(a: T.handle) -> None:",
    "cc",
    "",
};

static const struct {
    const char *name;
    foreloop_pooling pooling;
} poolings[] = {
    {"windows that overlap", {.window_length = 12, .window_stride = 4}},
    {"windows, projected and normalised", {.window_length = 15, .normalize = true, .projection_size = 10}},
    {"one window, special tokens", {.truncate = true, .include_special = true, .normalize = true}},
    {"the first token", {.mode = FORELOOP_POOLING_FIRST, .truncate = true, .projection_size = 33}},
};

typedef struct run_limits {
    size_t tokens, texts;
} run_limits;

static void check_texts(const char *name, foreloop_transformer *transformer, const float *expected, size_t size,
                        run_limits limits, int seed) {
    device_encoder device;
    foreloop_error error = {.message = ""};
    size_t lengths[TEXTS];
    float found[TEXTS * 40], again[TEXTS * 40];
    for (size_t i = 0; i < TEXTS; i++)
        lengths[i] = strlen(texts[i]);
    emulation_set_seed((unsigned long long)seed);
    foreloop_status status =
        open_encoder(&device, transformer, FORELOOP_CUDA_PRECISION_F32, limits.tokens, limits.texts, &error);
    for (int i = 0; i < 2 && status == FORELOOP_OK; i++)
        status = foreloop_cuda_encode_texts(device.encoder, texts, lengths, TEXTS, i ? again : found,
                                            FORELOOP_CUDA_HOST, NULL, &error);
    if (status == FORELOOP_OK)
        status = foreloop_cuda_encoder_check(device.encoder, &error);
    const double off = largest_difference(found, expected, TEXTS * size);
    CHECK(status == FORELOOP_OK && off < 1e-4 && no_fault(), "%s, runs of %zu tokens and %zu texts: off by %.1e %s",
          name, limits.tokens, limits.texts, off, error.message);
    CHECK(memcmp(found, again, TEXTS * size * sizeof *found) == 0, "%s: the same bits again", name);
    close_encoder(&device);
}

static void test_texts(void) {
    static made_transformer made;
    static const run_limits limits[] = {{25, 2}, {0, 0}, {64, 1}, {40, 1000}};
#ifdef FORELOOP_CUDA_EMULATED
    enum { LIMITS = sizeof limits / sizeof *limits };
#else
    enum { LIMITS = 2 }; /* a handle of cuBLAS takes long under compute-sanitizer */
#endif
    for (size_t i = 0; i < sizeof poolings / sizeof *poolings; i++) {
        foreloop_encoder *encoder = NULL;
        foreloop_error error = {.message = ""};
        size_t lengths[TEXTS];
        float expected[TEXTS * 40];
        for (size_t t = 0; t < TEXTS; t++)
            lengths[t] = strlen(texts[t]);
        if (!made_transformer_open(&made, root, &small, poolings[i].pooling, 77 + i, 0.3f))
            continue;
        if (CHECK(foreloop_encoder_create(&encoder, made.transformer, &error) == FORELOOP_OK &&
                      foreloop_encode_texts(encoder, texts, lengths, TEXTS, expected, &error) == FORELOOP_OK,
                  "%s: on the CPU %s", poolings[i].name, error.message))
            for (size_t k = 0; k < LIMITS; k++)
                check_texts(poolings[i].name, made.transformer, expected,
                            foreloop_transformer_embedding_size(made.transformer), limits[k], (int)k);
        foreloop_encoder_close(encoder);
        made_transformer_close(&made);
    }
}

/* Results on the GPU, and in registered memory, are there when the stream has come so far. */
static void test_places(void) {
    static made_transformer made;
    static float expected[TEXTS * 24], found[TEXTS * 24];
    device_encoder device;
    foreloop_error error = {.message = ""};
    void *memory = NULL;
    size_t lengths[TEXTS];
    for (size_t t = 0; t < TEXTS; t++)
        lengths[t] = strlen(texts[t]);
    const foreloop_pooling pooling = {.window_length = 12, .window_stride = 4};
    if (!made_transformer_open(&made, root, &small, pooling, 5, 0.3f))
        return;
    CHECK(open_encoder(&device, made.transformer, FORELOOP_CUDA_PRECISION_F32, 0, 0, &error) == FORELOOP_OK &&
              foreloop_cuda_encode_texts(device.encoder, texts, lengths, TEXTS, expected, FORELOOP_CUDA_HOST, NULL,
                                         &error) == FORELOOP_OK,
          "encoded %s", error.message);
    CHECK(cudaMalloc(&memory, sizeof found) == cudaSuccess &&
              foreloop_cuda_encode_texts(device.encoder, texts, lengths, TEXTS, memory, FORELOOP_CUDA_DEVICE, NULL,
                                         &error) == FORELOOP_OK &&
              cudaMemcpyAsync(found, memory, sizeof found, cudaMemcpyDeviceToHost, NULL) == cudaSuccess &&
              cudaStreamSynchronize(NULL) == cudaSuccess && memcmp(found, expected, sizeof found) == 0,
          "the same bits on the GPU");
    memset(found, 0, sizeof found);
    CHECK(cudaHostRegister(found, sizeof found, cudaHostRegisterDefault) == cudaSuccess &&
              foreloop_cuda_encode_texts(device.encoder, texts, lengths, TEXTS, found, FORELOOP_CUDA_HOST, NULL,
                                         &error) == FORELOOP_OK,
          "into registered memory");
#ifdef FORELOOP_CUDA_EMULATED
    const float untouched = found[24 * 2]; /* of a text that is not empty */
    CHECK(untouched == 0.0f, "the call has not waited");
#endif
    CHECK(cudaStreamSynchronize(NULL) == cudaSuccess && memcmp(found, expected, sizeof found) == 0, "the same bits");
    cudaHostUnregister(found);
    cudaFree(memory);
    close_encoder(&device);
    made_transformer_close(&made);
}

/* ---- Precisions ---- */

static double cosine(const float *a, const float *b, size_t count) {
    double ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < count; i++) {
        ab += (double)a[i] * b[i];
        aa += (double)a[i] * a[i];
        bb += (double)b[i] * b[i];
    }
    return ab / sqrt(aa * bb);
}

static void test_precisions(void) {
    static const made_shape shape = {"two layers", ROBERTA, ERF, 64, 2, 130, 2, 60};
    static made_transformer made;
    static const double least[] = {0.9999999, 0.99999, 0.9995};
    static const char *const names[] = {"f32", "f16", "bf16"};
    foreloop_encoder *encoder = NULL;
    foreloop_error error = {.message = ""};
    float expected[60 * 64], found[60 * 64];
    uint32_t ids[60];
    for (size_t t = 0; t < 60; t++)
        ids[t] = (uint32_t)(t * t % MADE_VOCABULARY);
    if (!made_transformer_open(&made, root, &shape, (foreloop_pooling){.truncate = true}, 8, 0.15f))
        return;
    CHECK(foreloop_encoder_create(&encoder, made.transformer, &error) == FORELOOP_OK &&
              foreloop_encode_ids(encoder, ids, NULL, 60, expected, &error) == FORELOOP_OK,
          "on the CPU %s", error.message);
    for (int i = 0; i < 3; i++) {
        device_encoder device;
        const foreloop_status opened =
            open_encoder(&device, made.transformer, (foreloop_cuda_precision)i, 60, 1, &error);
        CHECK(opened == FORELOOP_OK && foreloop_cuda_encode_ids(device.encoder, ids, NULL, 60, found,
                                                                FORELOOP_CUDA_HOST, NULL, &error) == FORELOOP_OK,
              "%s %s", names[i], error.message);
        const double angle = cosine(found, expected, 60 * 64);
        CHECK(angle >= least[i] && no_fault(), "%s: cosine 1 - %.1e", names[i], 1 - angle);
        close_encoder(&device);
    }
    foreloop_encoder_close(encoder);
    made_transformer_close(&made);
}

/* Weights beyond float16 are refused, states that overflow told. */
static void test_overflow(void) {
    static made_transformer made;
    device_encoder device;
    foreloop_error error = {.message = ""};
    const char *two[] = {"", "a"};
    const size_t lengths[] = {0, 1};
    float found[2 * 24];
    if (!made_transformer_open(&made, root, &small, (foreloop_pooling){.truncate = true}, 3, 0.3f))
        return;
    float *weights = NULL;
    for (size_t i = 0; i < made.weights.count; i++)
        if (strstr(made.weights.names[i], "intermediate.dense.weight"))
            weights = (float *)(uintptr_t)made.weights.tensors[i].data;
    weights[5] = 65520.0f;
    CHECK(open_encoder(&device, made.transformer, FORELOOP_CUDA_PRECISION_F16, 0, 0, &error) == FORELOOP_ERROR_VALUE &&
              strstr(error.message, "intermediate.dense.weight") && !device.transformer,
          "a weight beyond float16: %s", error.message);
    weights[5] = 65519.0f; /* still a float16, but what it makes is not */
    weights[6] = 65519.0f;
    CHECK(open_encoder(&device, made.transformer, FORELOOP_CUDA_PRECISION_F16, 0, 0, &error) == FORELOOP_OK,
          "the largest one");
    CHECK(foreloop_cuda_encode_texts(device.encoder, two, lengths, 2, found, FORELOOP_CUDA_HOST, NULL, &error) ==
              FORELOOP_OK,
          "an overflow is found on the GPU");
    CHECK(foreloop_cuda_encoder_check(device.encoder, &error) == FORELOOP_ERROR_VALUE &&
              strstr(error.message, "text 1") && strstr(error.message, "bf16"),
          "and told: %s", error.message);
    CHECK(foreloop_cuda_encoder_check(device.encoder, &error) == FORELOOP_OK, "once");
    close_encoder(&device);
    CHECK(open_encoder(&device, made.transformer, FORELOOP_CUDA_PRECISION_BF16, 0, 0, &error) == FORELOOP_OK &&
              foreloop_cuda_encode_texts(device.encoder, two, lengths, 2, found, FORELOOP_CUDA_HOST, NULL, &error) ==
                  FORELOOP_OK &&
              foreloop_cuda_encoder_check(device.encoder, &error) == FORELOOP_OK,
          "bfloat16 has room for it %s", error.message);
    close_encoder(&device);
    made_transformer_close(&made);
}

/* ---- Workloads ---- */

static void test_workloads(void) {
    foreloop_model *model = NULL;
    foreloop_encoder *encoder = NULL;
    device_encoder device;
    foreloop_error error = {.message = ""};
    foreloop_workload *expected[TEXTS] = {NULL}, *found[TEXTS] = {NULL};
    foreloop_model_info info = {.size = sizeof info};
    size_t lengths[TEXTS];
    char path[600];
    for (size_t t = 0; t < TEXTS; t++)
        lengths[t] = strlen(texts[t]);
    snprintf(path, sizeof path, "%s/tests/golden/bundle", root);
    if (!CHECK(foreloop_model_open(&model, path, NULL, &error) == FORELOOP_OK, "model %s", error.message))
        return;
    const foreloop_transformer *transformer = foreloop_model_transformer(model);
    foreloop_model_get_info(model, &info);
    CHECK(foreloop_encoder_create(&encoder, transformer, &error) == FORELOOP_OK &&
              foreloop_workload_encode_batch(expected, model, encoder, texts, lengths, TEXTS, &error) == FORELOOP_OK,
          "workloads of the CPU %s", error.message);
    CHECK(open_encoder(&device, transformer, FORELOOP_CUDA_PRECISION_F32, 0, 0, &error) == FORELOOP_OK &&
              foreloop_cuda_encode_workloads(found, model, device.encoder, texts, lengths, TEXTS, NULL, &error) ==
                  FORELOOP_OK,
          "workloads of the GPU %s", error.message);
    double off = 0;
    for (size_t t = 0; t < TEXTS && found[t]; t++)
        off = fmax(off, largest_difference(foreloop_workload_latent(found[t]), foreloop_workload_latent(expected[t]),
                                           info.latent_size));
    CHECK(found[0] && off < 1e-4, "their latent states are off by %.1e", off);
    for (size_t t = 0; t < TEXTS; t++) {
        foreloop_workload_close(expected[t]);
        foreloop_workload_close(found[t]);
    }
    close_encoder(&device);

    static made_transformer made;
    if (made_transformer_open(&made, root, &small, (foreloop_pooling){.truncate = true}, 1, 0.3f)) {
        found[0] = NULL;
        CHECK(open_encoder(&device, made.transformer, FORELOOP_CUDA_PRECISION_F32, 0, 0, &error) == FORELOOP_OK &&
                  foreloop_cuda_encode_workloads(found, model, device.encoder, texts, lengths, 1, NULL, &error) ==
                      FORELOOP_ERROR_ARGUMENT &&
                  !found[0],
              "another transformer's encoder: %s", error.message);
        close_encoder(&device);
        made_transformer_close(&made);
    }
    foreloop_encoder_close(encoder);
    foreloop_model_close(model);
}

/* ---- Failures ---- */

static void test_creation_errors(void) {
    static made_transformer made;
    foreloop_cuda_transformer *transformer = NULL;
    foreloop_cuda_encoder *encoder = NULL;
    foreloop_cuda_encoder_options options;
    foreloop_error error = {.message = ""};
    if (!made_transformer_open(&made, root, &small, (foreloop_pooling){.truncate = true}, 1, 0.3f))
        return;
    CHECK(foreloop_cuda_transformer_create(&transformer, gpu, made.transformer, (foreloop_cuda_precision)3, NULL,
                                           &error) == FORELOOP_ERROR_ARGUMENT &&
              foreloop_cuda_transformer_create(&transformer, NULL, made.transformer, FORELOOP_CUDA_PRECISION_F32, NULL,
                                               &error) == FORELOOP_ERROR_ARGUMENT &&
              !transformer,
          "bad arguments: %s", error.message);
    CHECK(foreloop_cuda_transformer_create(&transformer, gpu, made.transformer, FORELOOP_CUDA_PRECISION_F32, NULL,
                                           &error) == FORELOOP_OK,
          "weights %s", error.message);
    foreloop_cuda_encoder_options_init(&options, sizeof options);
    options.cublas = "/nowhere/libcublas.so";
    CHECK(foreloop_cuda_encoder_create(&encoder, transformer, &options, &error) == FORELOOP_ERROR_DEVICE &&
              strstr(error.message, "/nowhere") && !encoder,
          "no cuBLAS: %s", error.message);
    options.cublas = "libm.so.6";
    CHECK(foreloop_cuda_encoder_create(&encoder, transformer, &options, &error) == FORELOOP_ERROR_DEVICE &&
              strstr(error.message, "cublasCreate") && !encoder,
          "another library: %s", error.message);
    options.cublas = cublas;
    options.tokens = (size_t)1 << 40;
    CHECK(foreloop_cuda_encoder_create(&encoder, transformer, &options, &error) == FORELOOP_ERROR_ARGUMENT && !encoder,
          "too large a run: %s", error.message);
    options.size = 0;
    CHECK(foreloop_cuda_encoder_create(&encoder, transformer, &options, &error) == FORELOOP_ERROR_ARGUMENT && !encoder,
          "options without a size: %s", error.message);
    foreloop_cuda_transformer_close(transformer);
    foreloop_cuda_transformer_close(NULL);
    foreloop_cuda_encoder_close(NULL);
    made_transformer_close(&made);
}

#ifdef FORELOOP_CUDA_EMULATED
#include "failing_device.h"

/* Every allocation on the host and on the GPU fails once. */
static void test_memory(void) {
    static made_transformer made;
    static const char *const names[] = {"host", "GPU"};
    foreloop_cuda *own_gpu = gpu;
    if (!made_transformer_open(&made, root, &small, (foreloop_pooling){.window_length = 12}, 1, 0.3f))
        return;
    for (int which = 0; which < 2; which++) {
        int clean = 1;
        size_t n = 0;
        for (;; n++) {
            failing_allocator host = {.fail_at = which == 0 ? n : SIZE_MAX};
            failing_allocator device_memory = {.fail_at = which == 1 ? n : SIZE_MAX};
            const foreloop_allocator allocator = failing_allocator_use(&host);
            const foreloop_cuda_allocator device_allocator = failing_device_use(&device_memory);
            foreloop_cuda_options options;
            foreloop_error error = {.message = ""};
            device_encoder device = {NULL, NULL};
            size_t lengths[TEXTS];
            float found[TEXTS * 24];
            foreloop_cuda_info info = {.size = sizeof info};
            for (size_t t = 0; t < TEXTS; t++)
                lengths[t] = strlen(texts[t]);
            foreloop_cuda_options_init(&options, sizeof options);
            options.allocator = &allocator;
            options.device_allocator = &device_allocator;
            gpu = NULL;
            foreloop_status status = foreloop_cuda_open(&gpu, &options, &error);
            if (status == FORELOOP_OK)
                status = open_encoder(&device, made.transformer, FORELOOP_CUDA_PRECISION_BF16, 0, 0, &error);
            if (status == FORELOOP_OK)
                status = foreloop_cuda_encode_texts(device.encoder, texts, lengths, 2, found, FORELOOP_CUDA_HOST, NULL,
                                                    &error);
            close_encoder(&device);
            if (gpu) {
                foreloop_cuda_get_info(gpu, &info);
                clean &= info.allocated_bytes == 0;
            }
            foreloop_cuda_close(gpu);
            const int failed = host.failed || device_memory.failed;
            clean &= host.live == 0 && device_memory.live == 0;
            clean &= status == (failed ? FORELOOP_ERROR_MEMORY : FORELOOP_OK) && (!failed || error.message[0]);
            if (!failed)
                break;
        }
        CHECK(clean && n > 8, "%zu allocations on the %s fail one after the other", n, names[which]);
    }
    gpu = own_gpu;
    made_transformer_close(&made);
}

#else
static void test_memory(void) {
    tap_skip("failing allocations are tested under emulation");
}
#endif

int main(int argument_count, char **arguments) {
    foreloop_error error = {.message = ""};
    root = argument_count > 1 ? arguments[1] : ".";
    cublas = argument_count > 2 ? arguments[2] : NULL;
    if (!cuda_test_has_gpu())
        return tap_done();
    if (!CHECK(foreloop_cuda_open(&gpu, NULL, &error) == FORELOOP_OK, "GPU %s", error.message))
        return tap_done();
    test_shapes();
    test_ids_errors();
    test_texts();
    test_places();
    test_precisions();
    test_overflow();
    test_workloads();
    test_creation_errors();
    test_memory();
    foreloop_cuda_info info = {.size = sizeof info};
    foreloop_cuda_get_info(gpu, &info);
    CHECK(info.allocated_bytes == 0, "all of the GPU's memory was given back");
    foreloop_cuda_close(gpu);
    return tap_done();
}
