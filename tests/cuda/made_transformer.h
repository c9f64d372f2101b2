/* A transformer of random weights and any shape, with one of the tokenizers of tests/golden/transformer. */
#ifndef FORELOOP_TESTS_CUDA_MADE_TRANSFORMER_H
#define FORELOOP_TESTS_CUDA_MADE_TRANSFORMER_H

#include "kernels_cpu/cpu.h"
#include "made_weights.h"
#include "model/text_encoder.h"
#include "tap.h"

typedef struct made_shape {
    const char *name;
    foreloop_architecture architecture;
    foreloop_activation activation;
    size_t hidden, heads, inner, layers, positions;
} made_shape;

typedef struct made_transformer {
    made_weights weights;
    foreloop_safetensors file;
    foreloop_transformer *transformer;
} made_transformer;

enum { MADE_VOCABULARY = 266 };

/* Of the CPU's kernels. */
static foreloop_tier made_tier = FORELOOP_TIER_REF;

static foreloop_transformer_config made_config(const made_shape *shape) {
    const int roberta = shape->architecture == FORELOOP_ARCHITECTURE_ROBERTA;
    return (foreloop_transformer_config){.architecture = shape->architecture,
                                         .vocabulary_size = MADE_VOCABULARY,
                                         .hidden_size = shape->hidden,
                                         .layer_count = shape->layers,
                                         .head_count = shape->heads,
                                         .intermediate_size = shape->inner,
                                         .position_count = shape->positions + (roberta ? 2 : 0),
                                         .position_offset = roberta ? 2 : 0,
                                         .type_count = 2,
                                         .padding_id = roberta ? 1 : 0,
                                         .activation = shape->activation,
                                         .layer_norm_epsilon = 1e-5};
}

/* `root`: the source tree. With pooling->projection_size, the projection is random too. */
static int made_transformer_open(made_transformer *made, const char *root, const made_shape *shape,
                                 foreloop_pooling pooling, uint64_t seed, float scale) {
    const foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    const foreloop_transformer_config config = made_config(shape);
    const foreloop_kernel_choice choice = {.tier = made_tier};
    foreloop_error error = {.message = ""};
    foreloop_tokenizer *tokenizer;
    char path[600];
    made->transformer = NULL;
    made_weights_make(&made->weights, &config, seed, scale);
    if (pooling.projection_size) {
        made_add(&made->weights, "pooling.weight", pooling.projection_size, config.hidden_size);
        made_add(&made->weights, "pooling.bias", 0, pooling.projection_size);
        pooling.projection = (const void *)made->weights.tensors[made->weights.count - 2].data;
        pooling.projection_bias = (const void *)made->weights.tensors[made->weights.count - 1].data;
    }
    made->file = made_weights_file(&made->weights);
    snprintf(path, sizeof path, "%s/tests/golden/transformer/roberta/tokenizer.json", root);
    if (!CHECK(foreloop_tokenizer_open(&tokenizer, path, NULL, &error) == FORELOOP_OK, "tokenizer %s", error.message))
        return 0;
    if (foreloop_transformer_create(&made->transformer, &allocator, &choice, &config, &made->file, "", tokenizer,
                                    &pooling, &error) == FORELOOP_OK)
        return 1;
    foreloop_tokenizer_close(tokenizer);
    return CHECK(0, "%s: %s", shape->name, error.message);
}

static void made_transformer_close(made_transformer *made) {
    foreloop_transformer_close(made->transformer);
    made_weights_free(&made->weights);
}

#endif
