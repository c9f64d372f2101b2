/* The transformer with its tokenizer and pooling rule: text to vector. */
#ifndef FORELOOP_MODEL_TEXT_ENCODER_H
#define FORELOOP_MODEL_TEXT_ENCODER_H

#include "common/file.h"
#include "common/safetensors.h"
#include "transformer/config.h"
#include "transformer/weights.h"
#include "transformer/window_pool.h"
#include <foreloop/foreloop.h>

struct foreloop_transformer {
    foreloop_allocator allocator;
    foreloop_transformer_weights weights;
    foreloop_tokenizer *tokenizer;
    foreloop_pooling pooling;           /* lengths filled in; its projection pointers are not kept */
    foreloop_linear_weights projection; /* of pooling.projection_size rows; empty when 0 */
    uint32_t *special;                  /* the prefix's ids, then the suffix's */
    size_t prefix_count, suffix_count;
    /* Where the weights lie as they were read, for other devices than this one: borrowed, or those of `container`. */
    const foreloop_safetensors *tensors;
    const char *name_prefix;
    /* The weights' file where the transformer owns it, else zero. */
    foreloop_file file;
    foreloop_safetensors container;
};

/* The kernels that this machine and the options allow. Asks for AMX where they want it. ARGUMENT for a tier or
 * precision that there is not. */
foreloop_status foreloop_transformer_choose(foreloop_kernel_choice *choice, const foreloop_options *options,
                                            foreloop_error *error);

/* Builds a transformer from its parts. The tensors are found as foreloop_transformer_weights_load says; `weights` and
 * `name_prefix` must outlive the transformer. Takes the tokenizer over on success; copies all else.
 * MISMATCH when tokenizer and configuration differ in their ids; VALUE for a window that does not fit the positions, or
 * a stride outside the window. */
foreloop_status foreloop_transformer_create(foreloop_transformer **transformer, const foreloop_allocator *allocator,
                                            const foreloop_kernel_choice *choice,
                                            const foreloop_transformer_config *config,
                                            const foreloop_safetensors *weights, const char *name_prefix,
                                            foreloop_tokenizer *tokenizer, const foreloop_pooling *pooling,
                                            foreloop_error *error);

/* The transformer that an encoder was created from. */
const foreloop_transformer *foreloop_encoder_transformer(const foreloop_encoder *encoder);

#endif
