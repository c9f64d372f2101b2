/* The shape and the options of an encoder, as a Hugging Face config.json states them. */
#ifndef FORELOOP_TRANSFORMER_CONFIG_H
#define FORELOOP_TRANSFORMER_CONFIG_H

#include "common/internal_api.h"
#include "common/json.h"
#include "kernels_cpu/activation_f32.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum foreloop_architecture { FORELOOP_ARCHITECTURE_BERT, FORELOOP_ARCHITECTURE_ROBERTA } foreloop_architecture;

typedef struct foreloop_transformer_config {
    foreloop_architecture architecture;
    size_t vocabulary_size;
    size_t hidden_size;
    size_t layer_count;
    size_t head_count; /* divides hidden_size */
    size_t intermediate_size;
    size_t position_count;  /* rows of the position table */
    size_t position_offset; /* the first token's row: 0 for BERT, padding_id + 1 for RoBERTa */
    size_t type_count;
    size_t padding_id; /* RoBERTa: tokens with this id take row padding_id and do not advance the position */
    foreloop_activation activation;
    double layer_norm_epsilon;
} foreloop_transformer_config;

/* The longest sequence that the positions allow. */
FORELOOP_INTERNAL_API size_t foreloop_transformer_config_max_length(const foreloop_transformer_config *config);

/* The row of the position table for a token of this id, *next being the next token's (at first position_offset). As in
 * the reference, RoBERTa's padding tokens take the padding's own row, and the others are counted without them. */
static inline size_t foreloop_transformer_position(const foreloop_transformer_config *config, uint32_t id,
                                                   size_t *next) {
    const bool padding = config->architecture == FORELOOP_ARCHITECTURE_ROBERTA && id == config->padding_id;
    return padding ? config->padding_id : (*next)++;
}

/* Reads the object at which `json` stands. Absent keys take the defaults of Hugging Face's configuration class.
 * UNSUPPORTED, by name, for another model_type or an option that changes the computation; VALUE for sizes that are out
 * of range or do not fit each other. */
foreloop_status foreloop_transformer_config_read(foreloop_transformer_config *config, foreloop_json *json);

/* The failure for an option of this or a companion file that the encoder does not do: UNSUPPORTED at the reader's
 * place, naming option and value. */
foreloop_status foreloop_config_unsupported(const foreloop_json *json, const char *option, foreloop_text value);

#endif
