/* Reads a Hugging Face config.json of a RoBERTa or BERT encoder. */
#include "transformer/config.h"

#include "common/error.h"
#include <stdbool.h>
#include <string.h>

/* Bounds that no real encoder reaches: with them, sums and small products of sizes cannot overflow. */
enum { MAX_WIDTH = 1 << 20, MAX_LAYERS = 1 << 12, MAX_VOCABULARY = 1 << 28 };

typedef struct size_key {
    const char *key;
    size_t field; /* offset in the config */
    size_t minimum, maximum;
    size_t absent; /* the default, the same for both architectures */
} size_key;

#define FIELD(name) offsetof(foreloop_transformer_config, name)
static const size_key size_keys[] = {
    {"vocab_size", FIELD(vocabulary_size), 1, MAX_VOCABULARY, 0},
    {"hidden_size", FIELD(hidden_size), 1, MAX_WIDTH, 768},
    {"num_hidden_layers", FIELD(layer_count), 0, MAX_LAYERS, 12},
    {"num_attention_heads", FIELD(head_count), 1, MAX_WIDTH, 12},
    {"intermediate_size", FIELD(intermediate_size), 1, MAX_WIDTH, 3072},
    {"max_position_embeddings", FIELD(position_count), 1, MAX_WIDTH, 512},
    {"type_vocab_size", FIELD(type_count), 1, MAX_WIDTH, 2},
};
enum { SIZE_KEY_COUNT = sizeof size_keys / sizeof size_keys[0] };

static size_t *size_field(foreloop_transformer_config *config, const size_key *key) {
    return (size_t *)(void *)((char *)config + key->field);
}

size_t foreloop_transformer_config_max_length(const foreloop_transformer_config *config) {
    return config->position_count - config->position_offset;
}

foreloop_status foreloop_config_unsupported(const foreloop_json *json, const char *option, foreloop_text value) {
    return foreloop_fail_at(json->error, FORELOOP_ERROR_UNSUPPORTED, FORELOOP_POSITION_BYTE, json->base + json->offset,
                            "%s: %s \"%.*s\" is not supported", json->name, option,
                            FORELOOP_QUOTED(value.text, value.length));
}

static foreloop_status read_activation(foreloop_json *json, foreloop_activation *activation) {
    static const struct {
        const char *name;
        foreloop_activation activation;
    } known[] = {
        {"gelu", FORELOOP_ACTIVATION_GELU},
        {"gelu_python", FORELOOP_ACTIVATION_GELU},
        {"gelu_new", FORELOOP_ACTIVATION_GELU_TANH},
        {"gelu_fast", FORELOOP_ACTIVATION_GELU_TANH},
        {"gelu_pytorch_tanh", FORELOOP_ACTIVATION_GELU_TANH},
        {"relu", FORELOOP_ACTIVATION_RELU},
    };
    foreloop_text value;
    FORELOOP_TRY(foreloop_json_string(json, &value));
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (foreloop_text_is(value, known[i].name)) {
            *activation = known[i].activation;
            return FORELOOP_OK;
        }
    return foreloop_config_unsupported(json, "hidden_act", value);
}

static foreloop_status read_architecture(foreloop_json *json, foreloop_architecture *architecture) {
    foreloop_text value;
    FORELOOP_TRY(foreloop_json_string(json, &value));
    if (foreloop_text_is(value, "bert"))
        *architecture = FORELOOP_ARCHITECTURE_BERT;
    else if (foreloop_text_is(value, "roberta"))
        *architecture = FORELOOP_ARCHITECTURE_ROBERTA;
    else
        return foreloop_config_unsupported(json, "model_type", value);
    return FORELOOP_OK;
}

/* Options that must have the value under which the encoder is a plain post-norm encoder. */
static foreloop_status read_fixed_option(foreloop_json *json, foreloop_text key, bool *known) {
    *known = true;
    if (foreloop_text_is(key, "position_embedding_type")) {
        foreloop_text value;
        FORELOOP_TRY(foreloop_json_string(json, &value));
        return foreloop_text_is(value, "absolute")
                   ? FORELOOP_OK
                   : foreloop_config_unsupported(json, "position_embedding_type", value);
    }
    const char *option = foreloop_text_is(key, "is_decoder")            ? "is_decoder"
                         : foreloop_text_is(key, "add_cross_attention") ? "add_cross_attention"
                                                                        : NULL;
    if (option) {
        bool value;
        FORELOOP_TRY(foreloop_json_bool(json, &value));
        return value ? foreloop_config_unsupported(json, option, (foreloop_text){"true", 4}) : FORELOOP_OK;
    }
    if (foreloop_text_is(key, "quantization_config")) {
        const bool absent = foreloop_json_peek(json) == FORELOOP_JSON_NULL;
        FORELOOP_TRY(foreloop_json_skip(json));
        return absent ? FORELOOP_OK
                      : foreloop_config_unsupported(json, "quantization_config", (foreloop_text){"{...}", 5});
    }
    *known = false;
    return FORELOOP_OK;
}

typedef struct seen_keys {
    bool size[SIZE_KEY_COUNT];
    bool architecture;
    bool padding;      /* the key stands there */
    bool padding_null; /* with null */
} seen_keys;

static foreloop_status read_value(foreloop_transformer_config *config, foreloop_json *json, foreloop_text key,
                                  seen_keys *seen) {
    for (size_t i = 0; i < SIZE_KEY_COUNT; i++)
        if (foreloop_text_is(key, size_keys[i].key)) {
            seen->size[i] = true;
            FORELOOP_TRY(foreloop_json_size(json, size_keys[i].maximum, size_field(config, &size_keys[i])));
            if (*size_field(config, &size_keys[i]) < size_keys[i].minimum)
                return foreloop_fail_at(json->error, FORELOOP_ERROR_VALUE, FORELOOP_POSITION_BYTE,
                                        json->base + json->offset, "%s: %s must be at least %zu", json->name,
                                        size_keys[i].key, size_keys[i].minimum);
            return FORELOOP_OK;
        }
    if (foreloop_text_is(key, "model_type")) {
        seen->architecture = true;
        return read_architecture(json, &config->architecture);
    }
    if (foreloop_text_is(key, "hidden_act"))
        return read_activation(json, &config->activation);
    if (foreloop_text_is(key, "pad_token_id")) {
        seen->padding = true;
        seen->padding_null = foreloop_json_peek(json) == FORELOOP_JSON_NULL;
        return seen->padding_null ? foreloop_json_null(json)
                                  : foreloop_json_size(json, MAX_VOCABULARY, &config->padding_id);
    }
    if (foreloop_text_is(key, "layer_norm_eps")) {
        FORELOOP_TRY(foreloop_json_double(json, &config->layer_norm_epsilon));
        if (!(config->layer_norm_epsilon > 0.0 && config->layer_norm_epsilon <= 1.0))
            return foreloop_fail_at(json->error, FORELOOP_ERROR_VALUE, FORELOOP_POSITION_BYTE,
                                    json->base + json->offset, "%s: layer_norm_eps must be above 0 and at most 1",
                                    json->name);
        return FORELOOP_OK;
    }
    bool known;
    FORELOOP_TRY(read_fixed_option(json, key, &known));
    return known ? FORELOOP_OK : foreloop_json_skip(json);
}

/* What follows from the keys together, once all are read. */
static foreloop_status complete(foreloop_transformer_config *config, foreloop_json *json, const seen_keys *seen) {
    if (!seen->architecture)
        return foreloop_json_fail(json, "the encoder's configuration has no model_type (\"roberta\" or \"bert\")");
    const bool roberta = config->architecture == FORELOOP_ARCHITECTURE_ROBERTA;
    for (size_t i = 0; i < SIZE_KEY_COUNT; i++)
        if (!seen->size[i])
            *size_field(config, &size_keys[i]) = size_keys[i].absent;
    if (!config->vocabulary_size)
        config->vocabulary_size = roberta ? 50265 : 30522;
    if (!seen->padding)
        config->padding_id = roberta ? 1 : 0;
    if (roberta && seen->padding_null)
        return foreloop_fail(json->error, FORELOOP_ERROR_UNSUPPORTED,
                             "%s: pad_token_id is null, but RoBERTa's positions are counted from it", json->name);
    config->position_offset = roberta ? config->padding_id + 1 : 0;
    if (config->position_offset >= config->position_count)
        return foreloop_fail(json->error, FORELOOP_ERROR_VALUE,
                             "%s: max_position_embeddings %zu leaves no position behind pad_token_id %zu", json->name,
                             config->position_count, config->padding_id);
    if (config->hidden_size % config->head_count)
        return foreloop_fail(json->error, FORELOOP_ERROR_VALUE,
                             "%s: hidden_size %zu is not a multiple of num_attention_heads %zu", json->name,
                             config->hidden_size, config->head_count);
    return FORELOOP_OK;
}

foreloop_status foreloop_transformer_config_read(foreloop_transformer_config *config, foreloop_json *json) {
    foreloop_transformer_config result = {.activation = FORELOOP_ACTIVATION_GELU, .layer_norm_epsilon = 1e-12};
    seen_keys seen = {{false}, false, false, false};
    FORELOOP_TRY(foreloop_json_object(json));
    for (;;) {
        foreloop_text key;
        FORELOOP_TRY(foreloop_json_key(json, &key));
        if (!key.text)
            break;
        FORELOOP_TRY(read_value(&result, json, key, &seen));
    }
    FORELOOP_TRY(complete(&result, json, &seen));
    *config = result;
    return FORELOOP_OK;
}
