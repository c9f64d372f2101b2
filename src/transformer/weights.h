/* The encoder's weights, checked and packed for the kernels. */
#ifndef FORELOOP_TRANSFORMER_WEIGHTS_H
#define FORELOOP_TRANSFORMER_WEIGHTS_H

#include "common/safetensors.h"
#include "kernels_cpu/kernels.h"
#include "transformer/config.h"
#include "transformer/linear_weights.h"

typedef struct foreloop_norm_weights {
    float *gamma, *beta;
} foreloop_norm_weights;

typedef struct foreloop_transformer_layer {
    foreloop_linear_weights query_key_value; /* the three stacked: [3 hidden][hidden] */
    foreloop_linear_weights attention_output;
    foreloop_norm_weights attention_norm;
    foreloop_linear_weights intermediate;
    foreloop_linear_weights output;
    foreloop_norm_weights output_norm;
} foreloop_transformer_layer;

typedef struct foreloop_transformer_weights {
    foreloop_allocator allocator;
    foreloop_kernels kernels;
    foreloop_transformer_config config;
    foreloop_tensor words; /* [vocabulary][hidden], in place: by far the largest, and only looked up */
    float *positions;      /* [position_count][hidden] */
    float *types;          /* [type_count][hidden] */
    foreloop_norm_weights embedding_norm;
    foreloop_transformer_layer *layers;
    void *packed; /* all linear layers, one behind the other: one block, so that huge pages hold nearly all of it */
} foreloop_transformer_weights;

/* Loads the tensors that foreloop_transformer_tensors_find finds, in f32, f16 or bf16. The tensors' data must outlive
 * `weights`, which keeps the word embeddings in place. The linear layers are packed for the kernels of `choice`.
 * MISMATCH for a tensor that is missing or of another shape, VALUE for one that holds a NaN or an infinity. */
foreloop_status foreloop_transformer_weights_load(foreloop_transformer_weights *weights,
                                                  const foreloop_transformer_config *config,
                                                  const foreloop_safetensors *file, const char *name_prefix,
                                                  const foreloop_kernel_choice *choice,
                                                  const foreloop_allocator *allocator, foreloop_error *error);
/* A zeroed struct may be closed. */
void foreloop_transformer_weights_close(foreloop_transformer_weights *weights);

#endif
