/* Reading config.json: defaults, limits, and refusal by name of what the encoder does not do. */
#include "common/alloc.h"
#include "tap.h"
#include "transformer/config.h"
#include <string.h>

static foreloop_status read_text(foreloop_transformer_config *config, const char *text, foreloop_error *error) {
    const foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    foreloop_json json;
    foreloop_json_open(&json, &allocator, text, strlen(text), "config.json", error);
    const foreloop_status status = foreloop_transformer_config_read(config, &json);
    foreloop_json_close(&json);
    return status;
}

static void check_refused(const char *text, foreloop_status expected, const char *named) {
    foreloop_transformer_config config, before;
    foreloop_error error = {.message = ""};
    memset(&config, 0x5A, sizeof config);
    before = config;
    const foreloop_status status = read_text(&config, text, &error);
    CHECK(status == expected && strstr(error.message, named) && memcmp(&before, &config, sizeof config) == 0,
          "%s is refused (%d): %s", text, (int)status, error.message);
}

int main(void) {
    foreloop_transformer_config config;
    foreloop_error error = {.message = ""};
    CHECK(read_text(&config, "{\"model_type\": \"roberta\"}", &error) == FORELOOP_OK, "RoBERTa by default: %s",
          error.message);
    CHECK(config.vocabulary_size == 50265 && config.hidden_size == 768 && config.layer_count == 12 &&
              config.head_count == 12 && config.intermediate_size == 3072 && config.position_count == 512 &&
              config.type_count == 2 && config.padding_id == 1 && config.layer_norm_epsilon == 1e-12,
          "its defaults");
    CHECK(config.position_offset == 2 && foreloop_transformer_config_max_length(&config) == 510,
          "its positions start behind the padding's");
    CHECK(read_text(&config, "{\"hidden_size\": 12, \"model_type\": \"bert\", \"num_attention_heads\": 3, \"x\": [{}]}",
                    &error) == FORELOOP_OK,
          "keys in any order, unknown ones skipped: %s", error.message);
    CHECK(config.vocabulary_size == 30522 && config.hidden_size == 12 && config.head_count == 3 &&
              config.position_offset == 0 && foreloop_transformer_config_max_length(&config) == 512,
          "BERT's defaults and positions");
    CHECK(read_text(&config,
                    "{\"model_type\": \"roberta\", \"layer_norm_eps\": 1e-05, \"pad_token_id\": 3, "
                    "\"max_position_embeddings\": 514, \"hidden_act\": \"gelu_pytorch_tanh\", \"is_decoder\": false, "
                    "\"position_embedding_type\": \"absolute\", \"quantization_config\": null}",
                    &error) == FORELOOP_OK &&
              config.layer_norm_epsilon == 1e-5 && config.position_offset == 4 &&
              foreloop_transformer_config_max_length(&config) == 510 &&
              config.activation == FORELOOP_ACTIVATION_GELU_TANH,
          "epsilon, padding, activation; options that change nothing: %s", error.message);

    const foreloop_status unsupported = FORELOOP_ERROR_UNSUPPORTED, value = FORELOOP_ERROR_VALUE;
    check_refused("{\"model_type\": \"gpt2\"}", unsupported, "model_type \"gpt2\"");
    check_refused("{\"hidden_size\": 8}", FORELOOP_ERROR_FORMAT, "model_type");
    check_refused("{\"model_type\": \"bert\", \"hidden_act\": \"silu\"}", unsupported, "hidden_act \"silu\"");
    check_refused("{\"model_type\": \"bert\", \"position_embedding_type\": \"relative_key\"}", unsupported,
                  "position_embedding_type \"relative_key\"");
    check_refused("{\"model_type\": \"bert\", \"is_decoder\": true}", unsupported, "is_decoder");
    check_refused("{\"model_type\": \"bert\", \"add_cross_attention\": true}", unsupported, "add_cross_attention");
    check_refused("{\"model_type\": \"bert\", \"quantization_config\": {\"bits\": 4}}", unsupported,
                  "quantization_config");
    check_refused("{\"model_type\": \"roberta\", \"pad_token_id\": null}", unsupported, "pad_token_id");
    check_refused("{\"model_type\": \"roberta\", \"pad_token_id\": 511}", value, "max_position_embeddings");
    check_refused("{\"model_type\": \"bert\", \"num_attention_heads\": 7}", value, "num_attention_heads");
    check_refused("{\"model_type\": \"bert\", \"num_attention_heads\": 0}", value, "num_attention_heads");
    check_refused("{\"model_type\": \"bert\", \"hidden_size\": -8}", value, "");
    check_refused("{\"model_type\": \"bert\", \"hidden_size\": 1e300}", value, "");
    check_refused("{\"model_type\": \"bert\", \"num_hidden_layers\": 1000000}", value, "");
    check_refused("{\"model_type\": \"bert\", \"layer_norm_eps\": 0}", value, "layer_norm_eps");
    check_refused("{\"model_type\": \"bert\", \"layer_norm_eps\": NaN}", value, "layer_norm_eps");
    check_refused("{\"model_type\": 3}", FORELOOP_ERROR_FORMAT, "");
    check_refused("{\"model_type\": \"bert\"", FORELOOP_ERROR_FORMAT, "");
    check_refused("[]", FORELOOP_ERROR_FORMAT, "");
    return tap_done();
}
