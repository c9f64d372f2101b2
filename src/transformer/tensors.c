/* Finds the encoder's tensors and checks their shapes. */
#include "transformer/tensors.h"

#include "common/error.h"
#include <stdio.h>

enum { NAME_SIZE = 256 };

/* Behind the caller's prefix. */
static const char *name_of(const foreloop_transformer_tensors *tensors, char name[NAME_SIZE], const char *stem,
                           const char *suffix) {
    snprintf(name, NAME_SIZE, "%s%s%s", tensors->prefix[1], stem, suffix);
    return name;
}

/* The tensor "PREFIX STEM SUFFIX" or, when `other_suffix` is given, that spelling; of the shape [rows][columns] or,
 * with rows 0, [columns]. */
static foreloop_status require(const foreloop_transformer_tensors *tensors, const char *stem, const char *suffix,
                               const char *other_suffix, size_t rows, size_t columns, const foreloop_tensor **tensor,
                               foreloop_error *error) {
    const size_t shape[2] = {rows, columns};
    const char *prefix = tensors->prefix[0];
    char name[NAME_SIZE];
    *tensor = other_suffix
                  ? foreloop_safetensors_find_part(tensors->file, prefix, name_of(tensors, name, stem, other_suffix))
                  : NULL;
    if (!*tensor)
        FORELOOP_TRY(foreloop_safetensors_require(tensors->file, prefix, name_of(tensors, name, stem, suffix),
                                                  "the encoder of this configuration", tensor, error));
    return foreloop_tensor_expect_shape(*tensor, rows ? 2 : 1, rows ? shape : shape + 1, error);
}

static foreloop_status find_norm(const foreloop_transformer_tensors *tensors, const char *stem,
                                 foreloop_norm_tensors *norm, foreloop_error *error) {
    const size_t width = tensors->config.hidden_size;
    FORELOOP_TRY(require(tensors, stem, ".weight", ".gamma", 0, width, &norm->gamma, error));
    return require(tensors, stem, ".bias", ".beta", 0, width, &norm->beta, error);
}

static foreloop_status find_linear(const foreloop_transformer_tensors *tensors, const char *const *stems,
                                   foreloop_linear_tensors *linear, foreloop_error *error) {
    for (size_t part = 0; part < linear->parts; part++) {
        FORELOOP_TRY(
            require(tensors, stems[part], ".weight", NULL, linear->out, linear->in, &linear->matrices[part], error));
        FORELOOP_TRY(require(tensors, stems[part], ".bias", NULL, 0, linear->out, &linear->biases[part], error));
    }
    return FORELOOP_OK;
}

foreloop_status foreloop_transformer_tensors_find(foreloop_transformer_tensors *tensors,
                                                  const foreloop_transformer_config *config,
                                                  const foreloop_safetensors *file, const char *name_prefix,
                                                  foreloop_error *error) {
    static const char *const model_prefixes[] = {"bert.", "roberta.", ""};
    static const char words[] = "embeddings.word_embeddings";
    foreloop_transformer_tensors found = {.file = file, .prefix = {name_prefix, ""}, .config = *config};
    const size_t hidden = config->hidden_size;
    char name[NAME_SIZE];
    for (size_t i = 0; i < 3; i++) {
        found.prefix[1] = model_prefixes[i];
        if (foreloop_safetensors_find_part(file, name_prefix, name_of(&found, name, words, ".weight")))
            break;
    }
    FORELOOP_TRY(require(&found, words, ".weight", NULL, config->vocabulary_size, hidden, &found.words, error));
    FORELOOP_TRY(require(&found, "embeddings.position_embeddings", ".weight", NULL, config->position_count, hidden,
                         &found.positions, error));
    FORELOOP_TRY(require(&found, "embeddings.token_type_embeddings", ".weight", NULL, config->type_count, hidden,
                         &found.types, error));
    FORELOOP_TRY(find_norm(&found, "embeddings.LayerNorm", &found.embedding_norm, error));
    *tensors = found;
    return FORELOOP_OK;
}

foreloop_status foreloop_transformer_tensors_layer(const foreloop_transformer_tensors *tensors, size_t index,
                                                   foreloop_layer_tensors *layer, foreloop_error *error) {
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
    const size_t hidden = tensors->config.hidden_size, inner = tensors->config.intermediate_size;
    foreloop_layer_tensors found = {.query_key_value = {.parts = 3, .in = hidden, .out = hidden},
                                    .attention_output = {.parts = 1, .in = hidden, .out = hidden},
                                    .intermediate = {.parts = 1, .in = hidden, .out = inner},
                                    .output = {.parts = 1, .in = inner, .out = hidden}};
    FORELOOP_TRY(find_linear(tensors, stems, &found.query_key_value, error));
    FORELOOP_TRY(find_linear(tensors, stems + 3, &found.attention_output, error));
    FORELOOP_TRY(find_linear(tensors, stems + 4, &found.intermediate, error));
    FORELOOP_TRY(find_linear(tensors, stems + 5, &found.output, error));
    FORELOOP_TRY(find_norm(tensors, stems[6], &found.attention_norm, error));
    FORELOOP_TRY(find_norm(tensors, stems[7], &found.output_norm, error));
    *layer = found;
    return FORELOOP_OK;
}

foreloop_status foreloop_linear_tensors_convert(const foreloop_linear_tensors *linear, float *matrix, float *bias,
                                                foreloop_error *error) {
    const size_t in = linear->in, out = linear->out;
    for (size_t part = 0; part < linear->parts; part++) {
        FORELOOP_TRY(foreloop_tensor_to_float(linear->matrices[part], true, matrix + part * out * in, error));
        FORELOOP_TRY(foreloop_tensor_to_float(linear->biases[part], true, bias + part * out, error));
    }
    return FORELOOP_OK;
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
