/*
 * The encoder on a GPU: its distance from the CPU's, milliseconds of a forward pass, and each kernel of its own beside
 * what the GPU can do at most. Prints JSON lines. Usage: bench_cuda_encoder SOURCE-ROOT [CUBLAS]
 */
#include "cuda/encoder.h"
#include "cuda/made_transformer.h"
#include <math.h>
#include <time.h>

static const char *root, *cublas;
static foreloop_cuda *gpu;

static const made_shape bench_shapes[] = {
    {"12x768", FORELOOP_ARCHITECTURE_ROBERTA, FORELOOP_ACTIVATION_GELU, 768, 12, 3072, 12, 512},
    {"4x256", FORELOOP_ARCHITECTURE_ROBERTA, FORELOOP_ACTIVATION_GELU, 256, 4, 1024, 4, 512},
};
static const char *const precisions[] = {"f32", "f16", "bf16"};
/* Sequences and tokens of each. */
static const struct { size_t windows, tokens; } loads[] = {{1, 16}, {1, 128}, {1, 512}, {8, 512}, {32, 512}};
enum { RUNS = 21, LOADS = sizeof loads / sizeof *loads, LONGEST = 512, MOST_WINDOWS = 32 };

static int fail(const char *what, const char *message) {
    fprintf(stderr, "%s: %s\n", what, message);
    return 1;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The multiply-adds of a forward pass, times two. */
static double operations(const made_shape *shape, size_t windows, size_t tokens) {
    const double rows = (double)windows * (double)tokens, hidden = (double)shape->hidden;
    const double layer = 2.0 * rows * hidden * (4.0 * hidden + 2.0 * (double)shape->inner);
    return (double)shape->layers * (layer + 4.0 * rows * (double)tokens * hidden);
}

/* The batch as the encoder would make it of texts: windows of `tokens` ids. */
static foreloop_status make_batch(foreloop_cuda_encoder *encoder, size_t windows, size_t tokens,
                                  foreloop_error *error) {
    static uint32_t ids[MOST_WINDOWS * LONGEST];
    for (size_t i = 0; i < windows * tokens; i++)
        ids[i] = (uint32_t)(5 + i * 7 % 200);
    foreloop_cuda_text_batch_begin(&encoder->batch);
    for (size_t w = 0; w < windows; w++)
        FORELOOP_TRY(foreloop_cuda_text_batch_add_ids(&encoder->batch, ids + w * tokens, tokens, error));
    return FORELOOP_OK;
}

static foreloop_status time_load(foreloop_cuda_encoder *encoder, size_t load, float *results, double *seconds,
                                 foreloop_error *error) {
    double times[RUNS];
    for (int i = -3; i < RUNS; i++) {
        FORELOOP_TRY(make_batch(encoder, loads[load].windows, loads[load].tokens, error));
        const double begun = now();
        FORELOOP_TRY(foreloop_cuda_encode_batch(encoder, results, NULL, error));
        FORELOOP_CUDA_TRY(cudaStreamSynchronize(NULL), "waiting");
        if (i >= 0)
            times[i] = now() - begun;
    }
    qsort(times, RUNS, sizeof *times, compare);
    *seconds = times[RUNS / 2];
    return FORELOOP_OK;
}

/* The largest distance of hidden states from the CPU's, and 1 - cosine. */
static foreloop_status measure_distance(foreloop_cuda_encoder *device, foreloop_encoder *encoder, size_t hidden,
                                        double *off, double *angle, foreloop_error *error) {
    enum { TOKENS = 130 };
    static float expected[TOKENS * 768], found[TOKENS * 768];
    uint32_t ids[TOKENS];
    double ab = 0, aa = 0, bb = 0;
    for (size_t t = 0; t < TOKENS; t++)
        ids[t] = (uint32_t)(t * t % MADE_VOCABULARY);
    FORELOOP_TRY(foreloop_encode_ids(encoder, ids, NULL, TOKENS, expected, error));
    FORELOOP_TRY(foreloop_cuda_encode_ids(device, ids, NULL, TOKENS, found, FORELOOP_CUDA_HOST, NULL, error));
    FORELOOP_TRY(foreloop_cuda_encoder_check(device, error));
    for (size_t i = 0; i < TOKENS * hidden; i++) {
        *off = fmax(*off, fabs((double)found[i] - expected[i]));
        ab += (double)found[i] * expected[i];
        aa += (double)found[i] * found[i];
        bb += (double)expected[i] * expected[i];
    }
    *angle = 1 - ab / sqrt(aa * bb);
    return FORELOOP_OK;
}

/* ---- Single kernels ---- */

typedef struct kernel_bench {
    foreloop_cuda_encoder *encoder;
    const made_shape *shape;
    foreloop_cuda_run run;
    cudaEvent_t begin, end;
} kernel_bench;

static cudaError_t attend(const kernel_bench *bench) {
    const foreloop_cuda_encoder *encoder = bench->encoder;
    const foreloop_cuda_transformer *transformer = encoder->transformer;
    const foreloop_cuda_attention_call call = {
        .query_key_value = encoder->wide,
        .bias = transformer->layers[0].query_key_value.bias,
        .stride = foreloop_cuda_row_stride(3 * bench->shape->hidden),
        .context = encoder->narrow,
        .context_stride = transformer->stride,
        .element = transformer->element,
        .heads = (unsigned)bench->shape->heads,
        .head_width = (unsigned)(bench->shape->hidden / bench->shape->heads),
        .tiles = (const void *)(encoder->inputs + bench->run.tiles_at),
        .tile_count = (unsigned)bench->run.tiles,
    };
    return foreloop_cuda_attention(&call, NULL);
}

static cudaError_t activate(const kernel_bench *bench) {
    const foreloop_cuda_encoder *encoder = bench->encoder;
    const foreloop_cuda_activation_call call = {.values = encoder->wide,
                                                .element = encoder->transformer->element,
                                                .bias = encoder->transformer->layers[0].intermediate.bias,
                                                .rows = (unsigned)bench->run.tokens,
                                                .width = (unsigned)bench->shape->inner,
                                                .stride = foreloop_cuda_row_stride(bench->shape->inner),
                                                .activation = FORELOOP_CUDA_GELU};
    return foreloop_cuda_activate(&call, NULL);
}

static cudaError_t add_and_normalize(const kernel_bench *bench) {
    const foreloop_cuda_encoder *encoder = bench->encoder;
    const foreloop_cuda_transformer *transformer = encoder->transformer;
    const foreloop_cuda_residual_call call = {
        .norm = {.gamma = transformer->layers[0].output_norm.gamma,
                 .beta = transformer->layers[0].output_norm.beta,
                 .epsilon = 1e-5f,
                 .rows = (unsigned)bench->run.tokens,
                 .width = (unsigned)bench->shape->hidden,
                 .stride = transformer->stride,
                 .states = encoder->states,
                 .narrow = transformer->element == FORELOOP_CUDA_ELEMENT_F32 ? NULL : encoder->narrow,
                 .element = transformer->element},
        .product = encoder->product,
        .bias = transformer->layers[0].output.bias};
    return foreloop_cuda_residual(&call, NULL);
}

static foreloop_status time_kernel(kernel_bench *bench, cudaError_t (*kernel)(const kernel_bench *), double *seconds,
                                   foreloop_error *error) {
    enum { REPEATS = 50 };
    float milliseconds = 0;
    FORELOOP_CUDA_TRY(kernel(bench), "a kernel");
    FORELOOP_CUDA_TRY(cudaEventRecord(bench->begin, NULL), "an event");
    for (int i = 0; i < REPEATS; i++)
        FORELOOP_CUDA_TRY(kernel(bench), "a kernel");
    FORELOOP_CUDA_TRY(cudaEventRecord(bench->end, NULL), "an event");
    FORELOOP_CUDA_TRY(cudaEventSynchronize(bench->end), "an event");
    FORELOOP_CUDA_TRY(cudaEventElapsedTime(&milliseconds, bench->begin, bench->end), "an event");
    *seconds = milliseconds * 1e-3 / REPEATS;
    return FORELOOP_OK;
}

/* After a forward pass over the last load, whose tiles are still on the GPU. */
static foreloop_status time_kernels(foreloop_cuda_encoder *encoder, const made_shape *shape, const char *precision,
                                    foreloop_error *error) {
    const double rows = LONGEST * 8, hidden = (double)shape->hidden, inner = (double)shape->inner;
    const double element_size = (double)foreloop_cuda_element_size(encoder->transformer->element);
    const double narrow = element_size < 4 ? element_size : 0;
    kernel_bench bench = {.encoder = encoder, .shape = shape};
    double attention, activation, norm;
    FORELOOP_TRY(make_batch(encoder, 8, LONGEST, error));
    foreloop_cuda_text_batch batch = encoder->batch;
    (void)foreloop_cuda_run_next(&batch, encoder->tokens, encoder->texts, &bench.run);
    FORELOOP_TRY(foreloop_cuda_encode_batch(encoder, NULL, NULL, error));
    FORELOOP_CUDA_TRY(cudaEventCreate(&bench.begin), "an event");
    FORELOOP_CUDA_TRY(cudaEventCreate(&bench.end), "an event");
    FORELOOP_TRY(time_kernel(&bench, attend, &attention, error));
    FORELOOP_TRY(time_kernel(&bench, activate, &activation, error));
    FORELOOP_TRY(time_kernel(&bench, add_and_normalize, &norm, error));
    printf("{\"bench\": \"cuda_encoder_kernels\", \"model\": \"%s\", \"precision\": \"%s\", \"tokens\": 4096, "
           "\"attention_ms\": %.4f, \"attention_tflops\": %.1f, \"activation_ms\": %.4f, \"activation_gb_s\": %.0f, "
           "\"norm_ms\": %.4f, \"norm_gb_s\": %.0f}\n",
           shape->name, precision, attention * 1e3, 4 * rows * LONGEST * hidden / attention * 1e-12, activation * 1e3,
           2 * rows * inner * element_size / activation * 1e-9, norm * 1e3,
           rows * hidden * (12 + narrow) / norm * 1e-9);
    (void)cudaEventDestroy(bench.begin);
    (void)cudaEventDestroy(bench.end);
    return FORELOOP_OK;
}

/* ---- */

static foreloop_status bench_precision(const made_shape *shape, const foreloop_transformer *transformer,
                                       foreloop_encoder *encoder, int precision, foreloop_error *error) {
    foreloop_cuda_encoder_options options;
    foreloop_cuda_transformer *weights = NULL;
    foreloop_cuda_encoder *device = NULL;
    double off = 0, angle = 0, seconds = 0;
    float *results = NULL;
    foreloop_cuda_encoder_options_init(&options, sizeof options);
    options.cublas = cublas;
    options.tokens = MOST_WINDOWS * LONGEST;
    FORELOOP_TRY(
        foreloop_cuda_transformer_create(&weights, gpu, transformer, (foreloop_cuda_precision)precision, NULL, error));
    FORELOOP_TRY(foreloop_cuda_encoder_create(&device, weights, &options, error));
    FORELOOP_CUDA_TRY(cudaMalloc((void **)&results, MOST_WINDOWS * shape->hidden * sizeof *results), "memory");
    FORELOOP_TRY(measure_distance(device, encoder, shape->hidden, &off, &angle, error));
    printf(
        "{\"bench\": \"cuda_encoder_parity\", \"model\": \"%s\", \"precision\": \"%s\", \"largest_difference\": %.2e, "
        "\"one_minus_cosine\": %.2e}\n",
        shape->name, precisions[precision], off, angle);
    for (size_t load = 0; load < LOADS; load++) {
        const size_t windows = loads[load].windows, tokens = loads[load].tokens;
        FORELOOP_TRY(time_load(device, load, results, &seconds, error));
        printf("{\"bench\": \"cuda_encoder\", \"model\": \"%s\", \"precision\": \"%s\", \"windows\": %zu, \"tokens\": "
               "%zu, \"ms\": %.4f, \"tflops\": %.2f}\n",
               shape->name, precisions[precision], windows, tokens, seconds * 1e3,
               operations(shape, windows, tokens) / seconds * 1e-12);
    }
    FORELOOP_TRY(time_kernels(device, shape, precisions[precision], error));
    (void)cudaFree(results);
    foreloop_cuda_encoder_close(device);
    foreloop_cuda_transformer_close(weights);
    fflush(stdout);
    return FORELOOP_OK;
}

int main(int argument_count, char **arguments) {
    static made_transformer made;
    foreloop_error error = {.message = ""};
    root = argument_count > 1 ? arguments[1] : ".";
    cublas = argument_count > 2 ? arguments[2] : NULL;
    made_tier = foreloop_cpu_tier(FORELOOP_TIER_BEST);
    if (foreloop_cuda_open(&gpu, NULL, &error) != FORELOOP_OK)
        return fail("bench_cuda_encoder", error.message);
    for (size_t i = 0; i < sizeof bench_shapes / sizeof *bench_shapes; i++) {
        foreloop_encoder *encoder = NULL;
        if (!made_transformer_open(&made, root, &bench_shapes[i], (foreloop_pooling){.include_special = true}, 1,
                                   0.05f))
            return 1;
        if (foreloop_encoder_create(&encoder, made.transformer, &error) != FORELOOP_OK)
            return fail("bench_cuda_encoder", error.message);
        for (int precision = 0; precision < 3; precision++)
            if (bench_precision(&bench_shapes[i], made.transformer, encoder, precision, &error) != FORELOOP_OK)
                return fail("bench_cuda_encoder", error.message);
        foreloop_encoder_close(encoder);
        made_transformer_close(&made);
    }
    foreloop_cuda_close(gpu);
    return 0;
}
