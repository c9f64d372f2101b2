/* foreloop bench encoder: what a forward pass costs, beside what the machine can do at most. */
#include "bench.h"
#include "bench_machine.h"
#include "bench_model.h"
#include "cli.h"
#include "kernels_cpu/cpu.h"
#include "output.h"
#include "transformer/encoder.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct encoder_shape {
    const char *name;
    size_t layers, hidden, heads, inner;
} encoder_shape;

static const encoder_shape shapes[] = {{"12x768", 12, 768, 12, 3072}, {"4x256", 4, 256, 4, 1024}};
static const size_t lengths[] = {16, 128, 512};

enum { SHAPES = 2, LENGTHS = 3, MAX_THREADS = 2, VOCABULARY = 512, POSITIONS = 514, MAX_TENSORS = 256, NAME = 80 };

/* A model's tensors. Values do not matter to time, so all lie in the same memory. */
typedef struct made_weights {
    foreloop_tensor tensors[MAX_TENSORS];
    uint32_t by_name[MAX_TENSORS];
    char names[MAX_TENSORS][NAME];
    size_t count;
    float *values;
} made_weights;

typedef struct encoder_times {
    double seconds;   /* of a forward pass, the best of all runs */
    double peak;      /* multiply-add operations a second of one thread, measured at the same time */
    double bandwidth; /* bytes a second of one thread */
} encoder_times;

static void add_tensor(made_weights *made, const char *name, size_t rows, size_t columns) {
    foreloop_tensor *tensor = &made->tensors[made->count];
    (void)snprintf(made->names[made->count], NAME, "%s", name);
    *tensor = (foreloop_tensor){.name = made->names[made->count],
                                .dtype = FORELOOP_DTYPE_F32,
                                .rank = rows ? 2 : 1,
                                .shape = {rows ? rows : columns, columns},
                                .count = (rows ? rows : 1) * columns,
                                .data = (const unsigned char *)made->values};
    tensor->size = tensor->count * sizeof(float);
    /* Names in order, as a reader has them. */
    size_t place = made->count;
    for (; place && strcmp(made->tensors[made->by_name[place - 1]].name, tensor->name) > 0; place--)
        made->by_name[place] = made->by_name[place - 1];
    made->by_name[place] = (uint32_t)made->count++;
}

static void add_pair(made_weights *made, const char *stem, size_t layer, size_t rows, size_t columns) {
    char name[NAME];
    (void)snprintf(name, sizeof name, "encoder.layer.%zu.%s.weight", layer, stem);
    add_tensor(made, name, rows, columns);
    (void)snprintf(name, sizeof name, "encoder.layer.%zu.%s.bias", layer, stem);
    add_tensor(made, name, 0, rows ? rows : columns);
}

static void add_tensors(made_weights *made, const encoder_shape *shape) {
    const size_t hidden = shape->hidden;
    add_tensor(made, "embeddings.word_embeddings.weight", VOCABULARY, hidden);
    add_tensor(made, "embeddings.position_embeddings.weight", POSITIONS, hidden);
    add_tensor(made, "embeddings.token_type_embeddings.weight", 1, hidden);
    add_tensor(made, "embeddings.LayerNorm.weight", 0, hidden);
    add_tensor(made, "embeddings.LayerNorm.bias", 0, hidden);
    for (size_t i = 0; i < shape->layers; i++) {
        add_pair(made, "attention.self.query", i, hidden, hidden);
        add_pair(made, "attention.self.key", i, hidden, hidden);
        add_pair(made, "attention.self.value", i, hidden, hidden);
        add_pair(made, "attention.output.dense", i, hidden, hidden);
        add_pair(made, "attention.output.LayerNorm", i, 0, hidden);
        add_pair(made, "intermediate.dense", i, shape->inner, hidden);
        add_pair(made, "output.dense", i, hidden, shape->inner);
        add_pair(made, "output.LayerNorm", i, 0, hidden);
    }
}

static int load(foreloop_transformer_weights *weights, made_weights *made, const encoder_shape *shape,
                const bench_options *given) {
    const foreloop_allocator *allocator = cli_allocator();
    const size_t largest = shape->hidden * (shape->inner > POSITIONS ? shape->inner : POSITIONS);
    const foreloop_transformer_config config = {.architecture = FORELOOP_ARCHITECTURE_ROBERTA,
                                                .vocabulary_size = VOCABULARY,
                                                .hidden_size = shape->hidden,
                                                .layer_count = shape->layers,
                                                .head_count = shape->heads,
                                                .intermediate_size = shape->inner,
                                                .position_count = POSITIONS,
                                                .position_offset = 2,
                                                .type_count = 1,
                                                .padding_id = 1,
                                                .activation = FORELOOP_ACTIVATION_GELU,
                                                .layer_norm_epsilon = 1e-5};
    foreloop_error error;
    uint64_t random = 5;
    made->count = 0;
    made->values = foreloop_allocate(allocator, largest, sizeof *made->values);
    if (!made->values)
        return cli_fail_memory();
    for (size_t i = 0; i < largest; i++)
        made->values[i] = ((float)bench_draw(&random) / 1073741824.0f - 1) * 0.05f;
    add_tensors(made, shape);
    const foreloop_safetensors file = {
        .allocator = *allocator, .tensors = made->tensors, .count = made->count, .by_name = made->by_name};
    const foreloop_cpu_limits limits = {.tier = given->tier, .use_amx = given->amx};
    const foreloop_kernel_choice choice = {
        .tier = given->tier, .precision = given->precision, .features = foreloop_cpu_choose(&limits)};
    if (foreloop_transformer_weights_load(weights, &config, &file, "", &choice, allocator, &error) == FORELOOP_OK)
        return CLI_DONE;
    foreloop_release(allocator, made->values);
    return cli_fail("%s", error.message);
}

static size_t packed_bytes(const foreloop_linear_weights *linear) {
    return linear->kernel.packed_size(linear->in, linear->out);
}

/* Bytes of weights that every forward pass reads. */
static size_t streamed_bytes(const foreloop_transformer_weights *weights) {
    const foreloop_transformer_layer *layer = &weights->layers[0];
    return weights->config.layer_count *
           (packed_bytes(&layer->query_key_value) + packed_bytes(&layer->attention_output) +
            packed_bytes(&layer->intermediate) + packed_bytes(&layer->output));
}

/* Bytes a second that one thread reads of these weights. */
static double weight_bandwidth(const foreloop_transformer_weights *weights) {
    const double start = bench_wall_clock();
    for (size_t i = 0; i < weights->config.layer_count; i++) {
        const foreloop_transformer_layer *layer = &weights->layers[i];
        const foreloop_linear_weights *const all[] = {&layer->query_key_value, &layer->attention_output,
                                                      &layer->intermediate, &layer->output};
        for (size_t j = 0; j < sizeof all / sizeof *all; j++)
            bench_read(all[j]->packed, packed_bytes(all[j]));
    }
    return (double)streamed_bytes(weights) / (bench_wall_clock() - start);
}

static double operations(const encoder_shape *shape, size_t tokens) {
    const double linear = (double)(4 * shape->hidden * shape->hidden + 2 * shape->hidden * shape->inner);
    return 2.0 * (double)shape->layers * (double)tokens * (linear + 2.0 * (double)(tokens * shape->hidden));
}

/* By turns with the ceilings, so that all see the same machine. */
static int time_pass(const foreloop_transformer_weights *weights, const foreloop_shares *shares, size_t tokens,
                     int runs, encoder_times *times) {
    foreloop_transformer_scratch scratch;
    foreloop_error error;
    uint32_t ids[POSITIONS];
    const size_t offsets[2] = {0, tokens};
    const foreloop_token_batch batch = {.ids = ids, .offsets = offsets, .count = 1};
    foreloop_status status = foreloop_transformer_scratch_open(&scratch, weights, shares, &error);
    if (status != FORELOOP_OK)
        return cli_fail("%s", error.message);
    for (size_t i = 0; i < tokens; i++)
        ids[i] = (uint32_t)(i * 7 % (VOCABULARY - 2) + 2);
    *times = (encoder_times){.seconds = INFINITY};
    for (int i = 0; i <= runs && status == FORELOOP_OK; i++) {
        const double start = bench_wall_clock();
        status = foreloop_transformer_forward(weights, &scratch, &batch, &error);
        if (i > 0) /* the first one warms up */
            times->seconds = fmin(times->seconds, bench_wall_clock() - start);
        times->peak = fmax(times->peak, bench_peak(weights->kernels.tier));
        times->bandwidth = fmax(times->bandwidth, weight_bandwidth(weights));
    }
    foreloop_transformer_scratch_close(&scratch, cli_allocator());
    return status == FORELOOP_OK ? CLI_DONE : cli_fail("%s", error.message);
}

/* The least time that the machine allows: that of the multiply-adds, or of reading the weights once. */
static double floor_seconds(const encoder_times *times, double work, double bytes, size_t threads) {
    return fmax(work / times->peak, bytes / times->bandwidth) / (double)threads;
}

static bool print_json(const encoder_shape *shape, const foreloop_transformer_weights *weights, size_t tokens,
                       size_t threads, const encoder_times *times) {
    cJSON *line = cJSON_CreateObject();
    const double work = operations(shape, tokens), bytes = (double)streamed_bytes(weights);
    const bool good =
        output_json_add(line, "bench", cJSON_CreateString("encoder")) &&
        output_json_add(line, "model", cJSON_CreateString(shape->name)) &&
        output_json_add(line, "tier", cJSON_CreateString(foreloop_tier_name(weights->kernels.tier))) &&
        output_json_add(line, "precision", cJSON_CreateString(weights->layers[0].output.kernel.name)) &&
        output_json_add(line, "tokens", output_json_count(tokens)) &&
        output_json_add(line, "threads", output_json_count(threads)) &&
        output_json_add(line, "ms", output_json_double(times->seconds * 1e3)) &&
        output_json_add(line, "gflops", output_json_double(work / times->seconds * 1e-9)) &&
        output_json_add(line, "peak_gflops", output_json_double(times->peak * (double)threads * 1e-9)) &&
        output_json_add(line, "of_peak", output_json_double(work / times->seconds / times->peak / (double)threads)) &&
        output_json_add(line, "weight_bytes", output_json_double(bytes)) &&
        output_json_add(line, "weight_gb_s", output_json_double(bytes / times->seconds * 1e-9)) &&
        output_json_add(line, "read_gb_s", output_json_double(times->bandwidth * (double)threads * 1e-9)) &&
        output_json_add(line, "of_roofline",
                        output_json_double(floor_seconds(times, work, bytes, threads) / times->seconds));
    return output_json_line(line) && good;
}

static void add_row(output_table *table, const encoder_shape *shape, const foreloop_transformer_weights *weights,
                    size_t tokens, size_t threads, const encoder_times *times) {
    const double work = operations(shape, tokens), bytes = (double)streamed_bytes(weights);
    output_table_row(table, OUTPUT_PLAIN);
    output_table_cell(table, "%s", shape->name);
    output_table_cell(table, "%zu", tokens);
    output_table_cell(table, "%zu", threads);
    output_table_cell(table, "%.2f", times->seconds * 1e3);
    output_table_cell(table, "%.0f", work / times->seconds * 1e-9);
    output_table_cell(table, "%.1f %%", 100 * work / times->seconds / times->peak / (double)threads);
    output_table_cell(table, "%.1f", bytes / times->seconds * 1e-9);
    output_table_cell(table, "%.1f %%", 100 * floor_seconds(times, work, bytes, threads) / times->seconds);
}

static int bench_shape_all(const bench_options *given, const encoder_shape *shape, output_table *table) {
    foreloop_transformer_weights weights;
    foreloop_error error;
    made_weights *made = malloc(sizeof *made);
    int status = made ? load(&weights, made, shape, given) : cli_fail_memory();
    if (status != CLI_DONE) {
        free(made);
        return status;
    }
    for (size_t threads = 1; threads <= MAX_THREADS && status == CLI_DONE; threads++) {
        foreloop_thread_pool *pool;
        if (foreloop_thread_pool_create(&pool, threads, NULL, &error) != FORELOOP_OK) {
            status = cli_fail("%s", error.message);
            break;
        }
        const foreloop_shares shares = {.parallel = *foreloop_thread_pool_parallel(pool), .count = threads};
        for (size_t i = 0; i < LENGTHS && status == CLI_DONE; i++) {
            encoder_times times = {INFINITY, 0, 0};
            status = time_pass(&weights, &shares, lengths[i], given->runs, &times);
            if (status == CLI_DONE && !given->json)
                add_row(table, shape, &weights, lengths[i], threads, &times);
            else if (status == CLI_DONE && !print_json(shape, &weights, lengths[i], threads, &times))
                status = cli_fail_memory();
        }
        foreloop_thread_pool_close(pool);
    }
    foreloop_transformer_weights_close(&weights);
    foreloop_release(cli_allocator(), made->values);
    free(made);
    return status;
}

int bench_encoder(const bench_options *given) {
    static const char *const headings[] = {"model",   "tokens",  "threads",      "ms",
                                           "GFLOP/s", "of peak", "weights GB/s", "of roofline"};
    output_table table;
    int status = CLI_DONE;
    if (!given->json) {
        output_table_begin(&table, "lrrrrrrr");
        output_table_row(&table, OUTPUT_BOLD);
        for (size_t i = 0; i < sizeof headings / sizeof *headings; i++)
            output_table_cell(&table, "%s", headings[i]);
    }
    for (size_t i = 0; i < SHAPES && status == CLI_DONE && output_ok(); i++)
        status = bench_shape_all(given, &shapes[i], &table);
    if (given->json)
        return status;
    if (status == CLI_DONE)
        printf("A forward pass of one sequence in %s, tier %s. Peak: multiply-adds of float32 in registers; roofline: "
               "the lesser\nof that and of reading the weights once; both measured by turns with the passes.\n\n",
               foreloop_precision_name(given->precision), foreloop_tier_name(given->tier));
    return output_table_print(&table, 0) ? status : cli_fail_memory();
}
