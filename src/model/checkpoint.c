/*
 * Opens a Hugging Face checkpoint directory as it lies: config.json, model.safetensors, and tokenizer.json
 * or its older forms. Where a
 * modules.json makes it a sentence-transformers model, that file's chain of Transformer, Pooling and Normalize decides
 * on the pooling; without it the mean over all tokens is taken.
 */
#include "common/alloc.h"
#include "common/error.h"
#include "common/file.h"
#include "common/json.h"
#include "common/sized.h"
#include "model/checkpoint_tokenizer.h"
#include "model/text_encoder.h"
#include <string.h>

typedef struct hf_checkpoint {
    foreloop_allocator allocator;
    bool read_into_memory;
    char *encoder_directory; /* where the Transformer module's files lie */
    char *pooling_directory; /* NULL: not a sentence-transformers model */
    size_t pooled_width;     /* that the pooling was made for; 0: not stated */
    foreloop_pooling pooling;
    foreloop_transformer_config config;
    foreloop_kernel_choice choice;
} hf_checkpoint;

typedef foreloop_status parse_function(foreloop_json *json, hf_checkpoint *checkpoint);

static foreloop_status join(const hf_checkpoint *checkpoint, const char *directory, const char *name, char **path,
                            foreloop_error *error) {
    *path = foreloop_path_join(&checkpoint->allocator, directory, name);
    return *path ? FORELOOP_OK : foreloop_fail_memory(error, 1, 1, name);
}

static foreloop_status parse_path(hf_checkpoint *checkpoint, const char *path, parse_function *parse,
                                  foreloop_error *error) {
    foreloop_file file;
    FORELOOP_TRY(foreloop_file_open(&file, path, &checkpoint->allocator, checkpoint->read_into_memory, error));
    foreloop_json json;
    foreloop_json_open(&json, &checkpoint->allocator, file.data, file.size, path, error);
    foreloop_status status = parse(&json, checkpoint);
    if (status == FORELOOP_OK)
        status = foreloop_json_end(&json);
    foreloop_json_close(&json);
    foreloop_file_close(&file);
    return status;
}

/* Parses DIRECTORY/NAME; where it is `optional` and absent, does nothing. */
static foreloop_status parse_file(hf_checkpoint *checkpoint, const char *directory, const char *name, bool optional,
                                  parse_function *parse, foreloop_error *error) {
    char *path;
    FORELOOP_TRY(join(checkpoint, directory, name, &path, error));
    foreloop_status status = FORELOOP_OK;
    if (!optional || foreloop_path_exists(path))
        status = parse_path(checkpoint, path, parse, error);
    foreloop_release(&checkpoint->allocator, path);
    return status;
}

static foreloop_status parse_config(foreloop_json *json, hf_checkpoint *checkpoint) {
    return foreloop_transformer_config_read(&checkpoint->config, json);
}

/* sentence_bert_config.json */
static foreloop_status parse_limits(foreloop_json *json, hf_checkpoint *checkpoint) {
    FORELOOP_TRY(foreloop_json_object(json));
    for (;;) {
        foreloop_text key;
        FORELOOP_TRY(foreloop_json_key(json, &key));
        if (!key.text)
            return FORELOOP_OK;
        if (foreloop_text_is(key, "max_seq_length") && foreloop_json_peek(json) == FORELOOP_JSON_NUMBER) {
            FORELOOP_TRY(foreloop_json_size(json, SIZE_MAX, &checkpoint->pooling.window_length));
        } else if (foreloop_text_is(key, "do_lower_case")) {
            bool lower;
            FORELOOP_TRY(foreloop_json_bool(json, &lower));
            if (lower)
                return foreloop_config_unsupported(json, "do_lower_case", (foreloop_text){"true", 4});
        } else {
            FORELOOP_TRY(foreloop_json_skip(json));
        }
    }
}

/* The value of "pooling_mode": a name, or a list of names that are concatenated. */
static foreloop_status parse_mode(foreloop_json *json, foreloop_pooling *pooling) {
    foreloop_text mode;
    if (foreloop_json_peek(json) == FORELOOP_JSON_ARRAY)
        return foreloop_config_unsupported(json, "a list as pooling_mode", (foreloop_text){"[...]", 5});
    FORELOOP_TRY(foreloop_json_string(json, &mode));
    if (foreloop_text_is(mode, "cls"))
        pooling->mode = FORELOOP_POOLING_FIRST;
    else if (foreloop_text_is(mode, "mean"))
        pooling->mode = FORELOOP_POOLING_MEAN;
    else
        return foreloop_config_unsupported(json, "pooling_mode", mode);
    return FORELOOP_OK;
}

/* 1_Pooling/config.json, in the older spelling (pooling_mode_*: bool) and the newer (pooling_mode: name). */
static foreloop_status parse_pooling(foreloop_json *json, hf_checkpoint *checkpoint) {
    static const char older[] = "pooling_mode_";
    bool first = false, mean = false;
    FORELOOP_TRY(foreloop_json_object(json));
    for (;;) {
        foreloop_text key;
        FORELOOP_TRY(foreloop_json_key(json, &key));
        if (!key.text)
            break;
        if (foreloop_text_is(key, "word_embedding_dimension") || foreloop_text_is(key, "embedding_dimension")) {
            FORELOOP_TRY(foreloop_json_size(json, SIZE_MAX, &checkpoint->pooled_width));
        } else if (foreloop_text_is(key, "pooling_mode")) {
            FORELOOP_TRY(parse_mode(json, &checkpoint->pooling));
        } else if (key.length >= sizeof older - 1 && memcmp(key.text, older, sizeof older - 1) == 0) {
            bool on;
            FORELOOP_TRY(foreloop_json_bool(json, &on));
            if (foreloop_text_is(key, "pooling_mode_cls_token"))
                first = on;
            else if (foreloop_text_is(key, "pooling_mode_mean_tokens"))
                mean = on;
            else if (on)
                return foreloop_config_unsupported(json, "the pooling mode", key);
        } else {
            FORELOOP_TRY(foreloop_json_skip(json));
        }
    }
    if (first && mean)
        return foreloop_config_unsupported(json, "the pooling mode", (foreloop_text){"cls and mean, concatenated", 26});
    if (first)
        checkpoint->pooling.mode = FORELOOP_POOLING_FIRST;
    return FORELOOP_OK;
}

typedef enum module_kind { MODULE_TRANSFORMER, MODULE_POOLING, MODULE_NORMALIZE, MODULE_NONE } module_kind;

typedef struct module {
    module_kind kind;
    char *path; /* relative to the checkpoint */
} module;

static foreloop_status parse_module_type(foreloop_json *json, module *found) {
    static const char *const names[] = {"Transformer", "Pooling", "Normalize"};
    foreloop_text type;
    FORELOOP_TRY(foreloop_json_string(json, &type));
    /* The class's own name: its Python package has changed over time. */
    foreloop_text name = type;
    for (size_t i = 0; i < type.length; i++)
        if (type.text[i] == '.')
            name = (foreloop_text){type.text + i + 1, type.length - i - 1};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (foreloop_text_is(name, names[i])) {
            found->kind = (module_kind)i;
            return FORELOOP_OK;
        }
    return foreloop_config_unsupported(json, "the module", name);
}

static foreloop_status parse_module(foreloop_json *json, const hf_checkpoint *checkpoint, module *found) {
    FORELOOP_TRY(foreloop_json_object(json));
    for (;;) {
        foreloop_text key;
        FORELOOP_TRY(foreloop_json_key(json, &key));
        if (!key.text)
            break;
        if (foreloop_text_is(key, "path") && !found->path) {
            foreloop_text path;
            FORELOOP_TRY(foreloop_json_string(json, &path));
            found->path = foreloop_copy_text(&checkpoint->allocator, path.text, path.length);
            if (!found->path)
                return foreloop_fail_memory(json->error, path.length, 1, "a module's path");
        } else if (foreloop_text_is(key, "type")) {
            FORELOOP_TRY(parse_module_type(json, found));
        } else {
            FORELOOP_TRY(foreloop_json_skip(json));
        }
    }
    return found->path && found->kind != MODULE_NONE ? FORELOOP_OK
                                                     : foreloop_json_fail(json, "a module lacks its path or type");
}

/* modules.json: Transformer, Pooling and perhaps Normalize, in this order. */
static foreloop_status parse_modules(foreloop_json *json, hf_checkpoint *checkpoint) {
    char **const directories[] = {&checkpoint->encoder_directory, &checkpoint->pooling_directory};
    size_t expected = MODULE_TRANSFORMER;
    FORELOOP_TRY(foreloop_json_array(json));
    for (;;) {
        bool more;
        FORELOOP_TRY(foreloop_json_element(json, &more));
        if (!more)
            break;
        module found = {MODULE_NONE, NULL};
        foreloop_status status = parse_module(json, checkpoint, &found);
        if (status == FORELOOP_OK && found.kind != expected)
            status = foreloop_config_unsupported(json, "another order of modules than",
                                                 (foreloop_text){"Transformer, Pooling, Normalize", 31});
        if (status == FORELOOP_OK && found.kind < MODULE_NORMALIZE) {
            *directories[found.kind] = found.path;
            found.path = NULL;
        } else if (status == FORELOOP_OK) {
            checkpoint->pooling.normalize = true;
        }
        foreloop_release(&checkpoint->allocator, found.path);
        FORELOOP_TRY(status);
        expected++;
    }
    return expected > MODULE_POOLING ? FORELOOP_OK : foreloop_json_fail(json, "a Pooling module is missing");
}

/* Replaces a module's relative path, if there is one, by DIRECTORY/PATH. */
static foreloop_status resolve(const hf_checkpoint *checkpoint, const char *directory, char **path,
                               foreloop_error *error) {
    char *joined;
    if (!*path)
        return FORELOOP_OK;
    FORELOOP_TRY(join(checkpoint, directory, *path, &joined, error));
    foreloop_release(&checkpoint->allocator, *path);
    *path = joined;
    return FORELOOP_OK;
}

static foreloop_status read_settings(hf_checkpoint *checkpoint, const char *directory, foreloop_error *error) {
    FORELOOP_TRY(parse_file(checkpoint, directory, "modules.json", true, parse_modules, error));
    if (checkpoint->pooling_directory) {
        FORELOOP_TRY(resolve(checkpoint, directory, &checkpoint->encoder_directory, error));
        FORELOOP_TRY(resolve(checkpoint, directory, &checkpoint->pooling_directory, error));
        FORELOOP_TRY(parse_file(checkpoint, checkpoint->pooling_directory, "config.json", false, parse_pooling, error));
        FORELOOP_TRY(parse_file(checkpoint, checkpoint->encoder_directory, "sentence_bert_config.json", true,
                                parse_limits, error));
    } else {
        checkpoint->encoder_directory = foreloop_copy_text(&checkpoint->allocator, directory, strlen(directory));
        if (!checkpoint->encoder_directory)
            return foreloop_fail_memory(error, strlen(directory), 1, "a path");
    }
    FORELOOP_TRY(parse_file(checkpoint, checkpoint->encoder_directory, "config.json", false, parse_config, error));
    const foreloop_transformer_config *config = &checkpoint->config;
    if (checkpoint->pooled_width && checkpoint->pooled_width != config->hidden_size)
        return foreloop_fail(error, FORELOOP_ERROR_MISMATCH,
                             "%s: the pooling is for %zu numbers, but the encoder's hidden_size is %zu", directory,
                             checkpoint->pooled_width, config->hidden_size);
    /* A limit beyond the positions cannot be meant. */
    if (checkpoint->pooling.window_length > foreloop_transformer_config_max_length(config))
        checkpoint->pooling.window_length = 0;
    return FORELOOP_OK;
}

/* Builds the transformer from the weights' file; takes `file` and `tokenizer` over on success. */
static foreloop_status build(foreloop_transformer **transformer, const hf_checkpoint *checkpoint,
                             const char *weights_path, foreloop_file *file, foreloop_tokenizer *tokenizer,
                             foreloop_error *error) {
    foreloop_safetensors weights;
    FORELOOP_TRY(
        foreloop_safetensors_open(&weights, file->data, file->size, weights_path, &checkpoint->allocator, error));
    foreloop_transformer *result;
    const foreloop_status status =
        foreloop_transformer_create(&result, &checkpoint->allocator, &checkpoint->choice, &checkpoint->config, &weights,
                                    "", tokenizer, &checkpoint->pooling, error);
    if (status != FORELOOP_OK) {
        foreloop_safetensors_close(&weights);
        return foreloop_error_prefix(error, status, "%s", checkpoint->encoder_directory);
    }
    result->file = *file;
    result->container = weights;
    result->tensors = &result->container;
    *transformer = result;
    return FORELOOP_OK;
}

static foreloop_status open_weights(foreloop_transformer **transformer, const hf_checkpoint *checkpoint,
                                    foreloop_tokenizer *tokenizer, foreloop_error *error) {
    char *path;
    foreloop_file file;
    FORELOOP_TRY(join(checkpoint, checkpoint->encoder_directory, "model.safetensors", &path, error));
    foreloop_status status =
        foreloop_file_open(&file, path, &checkpoint->allocator, checkpoint->read_into_memory, error);
    if (status == FORELOOP_OK) {
        status = build(transformer, checkpoint, path, &file, tokenizer, error);
        if (status != FORELOOP_OK)
            foreloop_file_close(&file);
    }
    foreloop_release(&checkpoint->allocator, path);
    return status;
}

static foreloop_status open_tokenizer(foreloop_tokenizer **tokenizer, const hf_checkpoint *checkpoint,
                                      foreloop_error *error) {
    const foreloop_options options = {
        .size = sizeof options, .allocator = &checkpoint->allocator, .read_into_memory = checkpoint->read_into_memory};
    return foreloop_checkpoint_tokenizer_open(tokenizer, checkpoint->encoder_directory, checkpoint->config.architecture,
                                              &options, error);
}

static foreloop_status open_checkpoint(foreloop_transformer **transformer, hf_checkpoint *checkpoint,
                                       const char *directory, foreloop_error *error) {
    foreloop_tokenizer *tokenizer;
    FORELOOP_TRY(read_settings(checkpoint, directory, error));
    FORELOOP_TRY(open_tokenizer(&tokenizer, checkpoint, error));
    const foreloop_status status = open_weights(transformer, checkpoint, tokenizer, error);
    if (status != FORELOOP_OK)
        foreloop_tokenizer_close(tokenizer);
    return status;
}

foreloop_status foreloop_transformer_open(foreloop_transformer **transformer, const char *directory,
                                          const foreloop_options *options, foreloop_error *error) {
    if (!transformer || !directory)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_transformer_open: an argument is NULL");
    foreloop_options own;
    FORELOOP_TRY(foreloop_sized_read(&own, sizeof own, options, "foreloop_options", error));
    hf_checkpoint checkpoint = {
        .allocator = foreloop_allocator_or_default(own.allocator),
        .read_into_memory = own.read_into_memory != 0,
        .pooling = {.mode = FORELOOP_POOLING_MEAN, .truncate = true, .include_special = true},
    };
    FORELOOP_TRY(foreloop_transformer_choose(&checkpoint.choice, &own, error));
    const foreloop_status status = open_checkpoint(transformer, &checkpoint, directory, error);
    foreloop_release(&checkpoint.allocator, checkpoint.encoder_directory);
    foreloop_release(&checkpoint.allocator, checkpoint.pooling_directory);
    return status;
}
