/* The encoder's weights where they lie: the tensors of a file, found under their Hugging Face names, shapes checked. */
#ifndef FORELOOP_TRANSFORMER_TENSORS_H
#define FORELOOP_TRANSFORMER_TENSORS_H

#include "common/internal_api.h"
#include "common/safetensors.h"
#include "transformer/config.h"

typedef struct foreloop_norm_tensors {
    const foreloop_tensor *gamma, *beta; /* [hidden] */
} foreloop_norm_tensors;

/* Up to three matrices [out][in] that are stacked to one, and their biases [out]. */
typedef struct foreloop_linear_tensors {
    size_t parts, in, out;
    const foreloop_tensor *matrices[3], *biases[3];
} foreloop_linear_tensors;

typedef struct foreloop_layer_tensors {
    foreloop_linear_tensors query_key_value; /* three parts */
    foreloop_linear_tensors attention_output;
    foreloop_linear_tensors intermediate;
    foreloop_linear_tensors output;
    foreloop_norm_tensors attention_norm, output_norm;
} foreloop_layer_tensors;

typedef struct foreloop_transformer_tensors {
    const foreloop_safetensors *file;
    const char *prefix[2]; /* of names: the caller's, then the model's */
    foreloop_transformer_config config;
    const foreloop_tensor *words;             /* [vocabulary][hidden] */
    const foreloop_tensor *positions, *types; /* [position_count][hidden], [type_count][hidden] */
    foreloop_norm_tensors embedding_norm;
} foreloop_transformer_tensors;

/* Finds NAME_PREFIX + {"", "bert.", "roberta."} + "embeddings.word_embeddings.weight" and the other embeddings; layer
 * norms also as gamma and beta. What is found borrows `file` and `name_prefix`. MISMATCH for a tensor that is missing
 * or of another shape. */
FORELOOP_INTERNAL_API foreloop_status foreloop_transformer_tensors_find(foreloop_transformer_tensors *tensors,
                                                                        const foreloop_transformer_config *config,
                                                                        const foreloop_safetensors *file,
                                                                        const char *name_prefix, foreloop_error *error);
/* Those of layer number `index`. */
FORELOOP_INTERNAL_API foreloop_status foreloop_transformer_tensors_layer(const foreloop_transformer_tensors *tensors,
                                                                         size_t index, foreloop_layer_tensors *layer,
                                                                         foreloop_error *error);

/* Converts a layer's tensors into matrix[parts x out][in] and bias[parts x out]. VALUE for one that holds a NaN or an
 * infinity. */
foreloop_status foreloop_linear_tensors_convert(const foreloop_linear_tensors *linear, float *matrix, float *bias,
                                                foreloop_error *error);

/* One row of a matrix tensor as floats. */
foreloop_status foreloop_tensor_row(const foreloop_tensor *matrix, size_t row, bool finite, float *values,
                                    foreloop_error *error);

#endif
