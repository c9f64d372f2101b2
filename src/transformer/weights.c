/* Finds, checks and packs the encoder's weights. */
#include "transformer/weights.h"

#include "common/alloc.h"
#include "common/error.h"
#include <stdio.h>
#include <string.h>

enum { NAME_SIZE = 256 };

typedef struct loader {
    const foreloop_safetensors *file;
    const char *prefix[2]; /* the caller's, then the model's */
    foreloop_transformer_weights *weights;
    foreloop_precision precision;
    foreloop_error *error;
} loader;

static const foreloop_tensor *find(const loader *load, char name[NAME_SIZE], const char *stem, const char *suffix) {
    const int length = snprintf(name, NAME_SIZE, "%s%s%s%s", load->prefix[0], load->prefix[1], stem, suffix);
    return length > 0 && length < NAME_SIZE ? foreloop_safetensors_find(load->file, name) : NULL;
}

/* The tensor "PREFIX STEM SUFFIX" or, when `other_suffix` is given, that spelling. */
static foreloop_status require(const loader *load, const char *stem, const char *suffix, const char *other_suffix,
                               const foreloop_tensor **tensor) {
    char name[NAME_SIZE];
    *tensor = other_suffix ? find(load, name, stem, other_suffix) : NULL;
    if (!*tensor)
        *tensor = find(load, name, stem, suffix);
    return *tensor
               ? FORELOOP_OK
               : foreloop_fail(load->error, FORELOOP_ERROR_MISMATCH,
                               "the encoder's weights lack the tensor \"%s\", which its configuration asks for", name);
}

/* Checks the tensor's shape, [rows][columns] or, with rows 0, [columns], and copies it into memory of its own. */
static foreloop_status copy_tensor(const loader *load, const foreloop_tensor *tensor, size_t rows, size_t columns,
                                   float **values) {
    const size_t shape[2] = {rows, columns};
    FORELOOP_TRY(foreloop_tensor_expect_shape(tensor, rows ? 2 : 1, rows ? shape : shape + 1, load->error));
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

static foreloop_status load_norm(const loader *load, const char *stem, foreloop_norm_weights *norm) {
    const size_t width = load->weights->config.hidden_size;
    const foreloop_tensor *gamma, *beta;
    FORELOOP_TRY(require(load, stem, ".weight", ".gamma", &gamma));
    FORELOOP_TRY(require(load, stem, ".bias", ".beta", &beta));
    FORELOOP_TRY(copy_tensor(load, gamma, 0, width, &norm->gamma));
    return copy_tensor(load, beta, 0, width, &norm->beta);
}

static void close_norm(foreloop_norm_weights *norm, const foreloop_allocator *allocator) {
    foreloop_release(allocator, norm->gamma);
    foreloop_release(allocator, norm->beta);
}

/* Up to three matrices [out][in], stacked to one, and their biases [out]. */
typedef struct linear_tensors {
    size_t parts, in, out;
    const foreloop_tensor *matrices[3], *biases[3];
} linear_tensors;

static foreloop_status find_linear(const loader *load, const char *const *stems, linear_tensors *tensors) {
    const size_t shape[2] = {tensors->out, tensors->in};
    for (size_t part = 0; part < tensors->parts; part++) {
        FORELOOP_TRY(require(load, stems[part], ".weight", NULL, &tensors->matrices[part]));
        FORELOOP_TRY(require(load, stems[part], ".bias", NULL, &tensors->biases[part]));
        FORELOOP_TRY(foreloop_tensor_expect_shape(tensors->matrices[part], 2, shape, load->error));
        FORELOOP_TRY(foreloop_tensor_expect_shape(tensors->biases[part], 1, shape, load->error));
    }
    return FORELOOP_OK;
}

/* Converts the tensors into matrix[parts x out][in] and bias[parts x out] and packs them. */
static foreloop_status convert_linear(const loader *load, const linear_tensors *tensors, float *matrix, float *bias,
                                      foreloop_linear_weights *linear) {
    const size_t in = tensors->in, out = tensors->out;
    for (size_t part = 0; part < tensors->parts; part++) {
        FORELOOP_TRY(foreloop_tensor_to_float(tensors->matrices[part], true, matrix + part * out * in, load->error));
        FORELOOP_TRY(foreloop_tensor_to_float(tensors->biases[part], true, bias + part * out, load->error));
    }
    return foreloop_linear_weights_pack(linear, matrix, bias, in, tensors->parts * out,
                                        &load->weights->kernels.linear[load->precision], &load->weights->allocator,
                                        load->error);
}

static foreloop_status load_linear(const loader *load, const char *const *stems, size_t parts, size_t in, size_t out,
                                   foreloop_linear_weights *linear) {
    const foreloop_allocator *allocator = &load->weights->allocator;
    linear_tensors tensors = {.parts = parts, .in = in, .out = out};
    FORELOOP_TRY(find_linear(load, stems, &tensors));
    float *block = foreloop_allocate(allocator, parts * out, (in + 1) * sizeof *block);
    if (!block)
        return foreloop_fail_memory(load->error, parts * out, (in + 1) * sizeof *block, tensors.matrices[0]->name);
    const foreloop_status status = convert_linear(load, &tensors, block, block + parts * out * in, linear);
    foreloop_release(allocator, block);
    return status;
}

static foreloop_status load_layer(const loader *load, size_t index, foreloop_transformer_layer *layer) {
    static const char *const names[] = {"attention.self.query",       "attention.self.key", "attention.self.value",
                                        "attention.output.dense",     "intermediate.dense", "output.dense",
                                        "attention.output.LayerNorm", "output.LayerNorm"};
    enum { COUNT = sizeof names / sizeof names[0] };
    char text[COUNT][64];
    const char *stems[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(text[i], sizeof text[i], "encoder.layer.%zu.%s", index, names[i]);
        stems[i] = text[i];
    }
    const size_t hidden = load->weights->config.hidden_size;
    const size_t inner = load->weights->config.intermediate_size;
    FORELOOP_TRY(load_linear(load, stems, 3, hidden, hidden, &layer->query_key_value));
    FORELOOP_TRY(load_linear(load, stems + 3, 1, hidden, hidden, &layer->attention_output));
    FORELOOP_TRY(load_linear(load, stems + 4, 1, hidden, inner, &layer->intermediate));
    FORELOOP_TRY(load_linear(load, stems + 5, 1, inner, hidden, &layer->output));
    FORELOOP_TRY(load_norm(load, stems[6], &layer->attention_norm));
    return load_norm(load, stems[7], &layer->output_norm);
}

foreloop_status foreloop_tensor_row(const foreloop_tensor *matrix, size_t row, bool finite, float *values,
                                    foreloop_error *error) {
    foreloop_tensor view = *matrix;
    view.rank = 1;
    view.shape[0] = view.count = matrix->shape[1];
    view.size = view.count * foreloop_dtype_size(matrix->dtype);
    view.data = matrix->data + row * view.size;
    return foreloop_tensor_to_float(&view, finite, values, error);
}

static foreloop_status load_words(const loader *load) {
    const foreloop_transformer_config *config = &load->weights->config;
    const size_t shape[2] = {config->vocabulary_size, config->hidden_size};
    const foreloop_tensor *words;
    FORELOOP_TRY(require(load, "embeddings.word_embeddings", ".weight", NULL, &words));
    FORELOOP_TRY(foreloop_tensor_expect_shape(words, 2, shape, load->error));
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
    static const char *const model_prefixes[] = {"bert.", "roberta.", ""};
    char name[NAME_SIZE];
    for (size_t i = 0; i < 3; i++) {
        load->prefix[1] = model_prefixes[i];
        if (find(load, name, "embeddings.word_embeddings", ".weight"))
            break;
    }
    const foreloop_tensor *tensor;
    FORELOOP_TRY(load_words(load));
    FORELOOP_TRY(require(load, "embeddings.position_embeddings", ".weight", NULL, &tensor));
    FORELOOP_TRY(copy_tensor(load, tensor, config->position_count, config->hidden_size, &weights->positions));
    FORELOOP_TRY(require(load, "embeddings.token_type_embeddings", ".weight", NULL, &tensor));
    FORELOOP_TRY(copy_tensor(load, tensor, config->type_count, config->hidden_size, &weights->types));
    FORELOOP_TRY(load_norm(load, "embeddings.LayerNorm", &weights->embedding_norm));
    weights->layers = foreloop_allocate_zeroed(&weights->allocator, config->layer_count, sizeof *weights->layers);
    if (!weights->layers)
        return foreloop_fail_memory(load->error, config->layer_count, sizeof *weights->layers, "the layers");
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
    loader load = {
        .file = file, .prefix = {name_prefix, ""}, .weights = &result, .precision = choice->precision, .error = error};
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
    close_norm(&weights->embedding_norm, allocator);
    foreloop_release(allocator, weights->positions);
    foreloop_release(allocator, weights->types);
}
