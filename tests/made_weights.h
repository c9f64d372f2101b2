/* Random weights of an encoder of any shape, as the tensors of a file. */
#ifndef FORELOOP_TESTS_MADE_WEIGHTS_H
#define FORELOOP_TESTS_MADE_WEIGHTS_H

#include "common/alloc.h"
#include "common/safetensors.h"
#include "random.h"
#include "transformer/config.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MADE_TENSORS = 256, MADE_NAME = 96 };

typedef struct made_weights {
    foreloop_tensor tensors[MADE_TENSORS];
    char names[MADE_TENSORS][MADE_NAME];
    uint32_t by_name[MADE_TENSORS];
    size_t count;
    random_source random;
    float scale; /* of a weight, at the most */
} made_weights;

/* [rows][columns], or [columns] where rows is 0. */
static void made_add(made_weights *made, const char *name, size_t rows, size_t columns) {
    foreloop_tensor *tensor = &made->tensors[made->count];
    const size_t count = (rows ? rows : 1) * columns;
    const int norm = strstr(name, "LayerNorm.weight") != NULL;
    float *values = malloc(count * sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = ((float)random_below(&made->random, 2001) / 1000.0f - 1.0f) * made->scale + (norm ? 1.0f : 0.0f);
    snprintf(made->names[made->count], MADE_NAME, "%s", name);
    *tensor = (foreloop_tensor){.name = made->names[made->count],
                                .dtype = FORELOOP_DTYPE_F32,
                                .rank = rows ? 2 : 1,
                                .shape = {rows ? rows : columns, columns},
                                .count = count,
                                .data = (const unsigned char *)values,
                                .size = count * sizeof *values};
    size_t place = made->count;
    for (; place && strcmp(made->tensors[made->by_name[place - 1]].name, name) > 0; place--)
        made->by_name[place] = made->by_name[place - 1];
    made->by_name[place] = (uint32_t)made->count++;
}

static void made_add_layer(made_weights *made, size_t layer, const char *stem, size_t rows, size_t columns) {
    char name[MADE_NAME];
    snprintf(name, sizeof name, "encoder.layer.%zu.%s.weight", layer, stem);
    made_add(made, name, rows, columns);
    snprintf(name, sizeof name, "encoder.layer.%zu.%s.bias", layer, stem);
    made_add(made, name, 0, rows ? rows : columns);
}

/* Those of an encoder of this shape, from -scale to scale, layer norms' around 1. */
static void made_weights_make(made_weights *made, const foreloop_transformer_config *config, uint64_t seed,
                              float scale) {
    const size_t hidden = config->hidden_size, inner = config->intermediate_size;
    made->count = 0;
    made->random.state = seed;
    made->scale = scale;
    made_add(made, "embeddings.word_embeddings.weight", config->vocabulary_size, hidden);
    made_add(made, "embeddings.position_embeddings.weight", config->position_count, hidden);
    made_add(made, "embeddings.token_type_embeddings.weight", config->type_count, hidden);
    made_add(made, "embeddings.LayerNorm.weight", 0, hidden);
    made_add(made, "embeddings.LayerNorm.bias", 0, hidden);
    for (size_t i = 0; i < config->layer_count; i++) {
        made_add_layer(made, i, "attention.self.query", hidden, hidden);
        made_add_layer(made, i, "attention.self.key", hidden, hidden);
        made_add_layer(made, i, "attention.self.value", hidden, hidden);
        made_add_layer(made, i, "attention.output.dense", hidden, hidden);
        made_add_layer(made, i, "attention.output.LayerNorm", 0, hidden);
        made_add_layer(made, i, "intermediate.dense", inner, hidden);
        made_add_layer(made, i, "output.dense", hidden, inner);
        made_add_layer(made, i, "output.LayerNorm", 0, hidden);
    }
}

/* As if read from a file; not to be closed. */
static foreloop_safetensors made_weights_file(made_weights *made) {
    return (foreloop_safetensors){.allocator = foreloop_allocator_or_default(NULL),
                                  .tensors = made->tensors,
                                  .count = made->count,
                                  .by_name = made->by_name};
}

static void made_weights_free(made_weights *made) {
    for (size_t i = 0; i < made->count; i++)
        free((void *)(uintptr_t)made->tensors[i].data);
}

#endif
