/* Checks and packs the encoder's weights. */
#include "transformer/weights.h"

#include "common/alloc.h"
#include "common/error.h"
#include "transformer/tensors.h"

typedef struct loader {
    foreloop_transformer_tensors tensors;
    foreloop_transformer_weights *weights;
    const foreloop_linear *kernel; /* of the linear layers */
    unsigned char *place;          /* where the next one is packed */
    foreloop_error *error;
} loader;

/* Copies the tensor into memory of its own. */
static foreloop_status copy_tensor(const loader *load, const foreloop_tensor *tensor, float **values) {
    float *copy = foreloop_allocate(&load->weights->allocator, tensor->count, sizeof *copy);
    if (!copy)
        return foreloop_fail_memory(load->error, tensor->count, sizeof *copy, tensor->name);
    const foreloop_status status = foreloop_tensor_to_float(tensor, true, copy, load->error);
    if (status != FORELOOP_OK) {
        foreloop_release(&load->weights->allocator, copy);
        return status;
    }
    *values = copy;
    return FORELOOP_OK;
}

static foreloop_status load_norm(const loader *load, const foreloop_norm_tensors *tensors,
                                 foreloop_norm_weights *norm) {
    FORELOOP_TRY(copy_tensor(load, tensors->gamma, &norm->gamma));
    return copy_tensor(load, tensors->beta, &norm->beta);
}

static void close_norm(foreloop_norm_weights *norm, const foreloop_allocator *allocator) {
    foreloop_release(allocator, norm->gamma);
    foreloop_release(allocator, norm->beta);
}

static foreloop_status load_linear(loader *load, const foreloop_linear_tensors *tensors,
                                   foreloop_linear_weights *linear) {
    const foreloop_allocator *allocator = &load->weights->allocator;
    const size_t rows = tensors->parts * tensors->out, in = tensors->in;
    float *matrix = foreloop_allocate(allocator, rows, (in + 1) * sizeof *matrix);
    if (!matrix)
        return foreloop_fail_memory(load->error, rows, (in + 1) * sizeof *matrix, tensors->matrices[0]->name);
    float *bias = matrix + rows * in;
    foreloop_status status = foreloop_linear_tensors_convert(tensors, matrix, bias, load->error);
    if (status == FORELOOP_OK)
        status = foreloop_linear_weights_pack(linear, load->place, matrix, bias, in, rows, load->kernel, allocator,
                                              load->error);
    foreloop_release(allocator, matrix);
    load->place += foreloop_linear_weights_size(in, rows, load->kernel);
    return status;
}

static foreloop_status load_layer(loader *load, size_t index, foreloop_transformer_layer *layer) {
    foreloop_layer_tensors tensors;
    FORELOOP_TRY(foreloop_transformer_tensors_layer(&load->tensors, index, &tensors, load->error));
    FORELOOP_TRY(load_linear(load, &tensors.query_key_value, &layer->query_key_value));
    FORELOOP_TRY(load_linear(load, &tensors.attention_output, &layer->attention_output));
    FORELOOP_TRY(load_linear(load, &tensors.intermediate, &layer->intermediate));
    FORELOOP_TRY(load_linear(load, &tensors.output, &layer->output));
    FORELOOP_TRY(load_norm(load, &tensors.attention_norm, &layer->attention_norm));
    return load_norm(load, &tensors.output_norm, &layer->output_norm);
}

/* Memory for all linear layers, whose tensors are there: else a wrong number of layers would be an error of memory. */
static foreloop_status make_place(loader *load) {
    const foreloop_transformer_config *config = &load->weights->config;
    foreloop_layer_tensors tensors;
    for (size_t i = 0; i < config->layer_count; i++)
        FORELOOP_TRY(foreloop_transformer_tensors_layer(&load->tensors, i, &tensors, load->error));
    const size_t hidden = config->hidden_size, inner = config->intermediate_size;
    const size_t sizes[] = {foreloop_linear_weights_size(hidden, 3 * hidden, load->kernel),
                            foreloop_linear_weights_size(hidden, hidden, load->kernel),
                            foreloop_linear_weights_size(hidden, inner, load->kernel),
                            foreloop_linear_weights_size(inner, hidden, load->kernel)};
    size_t sum = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        sum = sizes[i] && sum <= SIZE_MAX - sizes[i] ? sum + sizes[i] : SIZE_MAX;
    load->place = load->weights->packed = foreloop_allocate(&load->weights->allocator, config->layer_count, sum);
    return load->place ? FORELOOP_OK : foreloop_fail_memory(load->error, config->layer_count, sum, "packed weights");
}

static foreloop_status load_words(const loader *load) {
    const foreloop_transformer_config *config = &load->weights->config;
    const foreloop_tensor *words = load->tensors.words;
    float *row = foreloop_allocate(&load->weights->allocator, config->hidden_size, sizeof *row);
    if (!row)
        return foreloop_fail_memory(load->error, config->hidden_size, sizeof *row, "a word embedding");
    foreloop_status status = FORELOOP_OK;
    for (size_t i = 0; i < config->vocabulary_size && status == FORELOOP_OK; i++) {
        status = foreloop_tensor_row(words, i, true, row, load->error);
        if (status != FORELOOP_OK)
            foreloop_error_prefix(load->error, status, "row %zu", i);
    }
    foreloop_release(&load->weights->allocator, row);
    FORELOOP_TRY(status);
    load->weights->words = *words;
    load->weights->words.name = "word embeddings"; /* the tensor's own name goes with `file` */
    return FORELOOP_OK;
}

static foreloop_status load_all(loader *load) {
    foreloop_transformer_weights *weights = load->weights;
    const foreloop_transformer_config *config = &weights->config;
    FORELOOP_TRY(load_words(load));
    FORELOOP_TRY(copy_tensor(load, load->tensors.positions, &weights->positions));
    FORELOOP_TRY(copy_tensor(load, load->tensors.types, &weights->types));
    FORELOOP_TRY(load_norm(load, &load->tensors.embedding_norm, &weights->embedding_norm));
    weights->layers = foreloop_allocate_zeroed(&weights->allocator, config->layer_count, sizeof *weights->layers);
    if (!weights->layers)
        return foreloop_fail_memory(load->error, config->layer_count, sizeof *weights->layers, "the layers");
    FORELOOP_TRY(make_place(load));
    for (size_t i = 0; i < config->layer_count; i++)
        FORELOOP_TRY(load_layer(load, i, &weights->layers[i]));
    return FORELOOP_OK;
}

foreloop_status foreloop_transformer_weights_load(foreloop_transformer_weights *weights,
                                                  const foreloop_transformer_config *config,
                                                  const foreloop_safetensors *file, const char *name_prefix,
                                                  const foreloop_kernel_choice *choice,
                                                  const foreloop_allocator *allocator, foreloop_error *error) {
    foreloop_transformer_weights result = {.allocator = *allocator, .config = *config};
    foreloop_kernels_init(&result.kernels, choice->tier, choice->features);
    loader load = {.weights = &result, .kernel = &result.kernels.linear[choice->precision], .error = error};
    FORELOOP_TRY(foreloop_transformer_tensors_find(&load.tensors, config, file, name_prefix, error));
    const foreloop_status status = load_all(&load);
    if (status != FORELOOP_OK) {
        foreloop_transformer_weights_close(&result);
        return status;
    }
    *weights = result;
    return FORELOOP_OK;
}

void foreloop_transformer_weights_close(foreloop_transformer_weights *weights) {
    const foreloop_allocator *allocator = &weights->allocator;
    for (size_t i = 0; weights->layers && i < weights->config.layer_count; i++) {
        foreloop_transformer_layer *layer = &weights->layers[i];
        foreloop_linear_weights_close(&layer->query_key_value, allocator);
        foreloop_linear_weights_close(&layer->attention_output, allocator);
        foreloop_linear_weights_close(&layer->intermediate, allocator);
        foreloop_linear_weights_close(&layer->output, allocator);
        close_norm(&layer->attention_norm, allocator);
        close_norm(&layer->output_norm, allocator);
    }
    foreloop_release(allocator, weights->layers);
    foreloop_release(allocator, weights->packed);
    close_norm(&weights->embedding_norm, allocator);
    foreloop_release(allocator, weights->positions);
    foreloop_release(allocator, weights->types);
}
