/* The tokenizer of a checkpoint: tokenizer.json, or the older files beside it with the settings that go with them. */
#include "model/checkpoint_tokenizer.h"
#include "common/alloc.h"
#include "common/error.h"
#include "common/file.h"
#include "common/json.h"
#include "tokenizer/tokenizer.h"
#include <string.h>

static foreloop_status read_settings(foreloop_json *json, foreloop_vocabulary_options *settings) {
    FORELOOP_TRY(foreloop_json_object(json));
    for (;;) {
        foreloop_text key;
        bool value = false;
        FORELOOP_TRY(foreloop_json_key(json, &key));
        if (!key.text)
            return foreloop_json_end(json);
        if (foreloop_json_peek(json) != FORELOOP_JSON_BOOL) {
            FORELOOP_TRY(foreloop_json_skip(json));
            continue;
        }
        bool prefix = foreloop_text_is(key, "add_prefix_space"), lower = foreloop_text_is(key, "do_lower_case"),
             strip = foreloop_text_is(key, "strip_accents"), chinese = foreloop_text_is(key, "tokenize_chinese_chars");
        FORELOOP_TRY(foreloop_json_bool(json, &value));
        if (prefix)
            settings->add_prefix_space = value;
        else if (lower)
            settings->keep_case = !value;
        else if (strip)
            settings->accents = value ? FORELOOP_ACCENTS_STRIP : FORELOOP_ACCENTS_KEEP;
        else if (chinese)
            settings->join_chinese = !value;
    }
}

/* tokenizer_config.json, which may be absent. */
static foreloop_status open_settings(const char *path, const foreloop_options *options,
                                     foreloop_vocabulary_options *settings, foreloop_error *error) {
    foreloop_file file = {0};
    foreloop_json json;
    if (!foreloop_path_exists(path))
        return FORELOOP_OK;
    FORELOOP_TRY(foreloop_file_open(&file, path, options->allocator, options->read_into_memory != 0, error));
    foreloop_json_open(&json, options->allocator, file.data, file.size, "tokenizer_config.json", error);
    foreloop_status status = read_settings(&json, settings);
    foreloop_json_close(&json);
    foreloop_file_close(&file);
    return status;
}

enum { TOKENIZER, SETTINGS, VOCABULARY, MERGES, PATHS };

static foreloop_status open_paths(foreloop_tokenizer **tokenizer, char *const paths[PATHS], bool is_bpe,
                                  const foreloop_options *options, foreloop_error *error) {
    foreloop_vocabulary_options settings = {.size = sizeof settings,
                                            .allocator = options->allocator,
                                            .read_into_memory = options->read_into_memory,
                                            .tier = options->tier};
    if (foreloop_path_exists(paths[TOKENIZER]) || !foreloop_path_exists(paths[VOCABULARY]))
        return foreloop_tokenizer_open(tokenizer, paths[TOKENIZER], options, error);
    FORELOOP_TRY(open_settings(paths[SETTINGS], options, &settings, error));
    return foreloop_tokenizer_open_files(tokenizer, paths[VOCABULARY], is_bpe ? paths[MERGES] : NULL, &settings, true,
                                         error);
}

foreloop_status foreloop_checkpoint_tokenizer_open(foreloop_tokenizer **tokenizer, const char *directory,
                                                   foreloop_architecture architecture, const foreloop_options *options,
                                                   foreloop_error *error) {
    const bool is_bpe = architecture == FORELOOP_ARCHITECTURE_ROBERTA;
    const char *const names[PATHS] = {"tokenizer.json", "tokenizer_config.json", is_bpe ? "vocab.json" : "vocab.txt",
                                      "merges.txt"};
    char *paths[PATHS];
    bool joined = true;
    foreloop_status status;

    for (int i = 0; i < PATHS; i++) {
        paths[i] = foreloop_path_join(options->allocator, directory, names[i]);
        joined = joined && paths[i];
    }
    status = joined ? open_paths(tokenizer, paths, is_bpe, options, error)
                    : foreloop_fail_memory(error, strlen(directory), PATHS, "paths");
    for (int i = 0; i < PATHS; i++)
        foreloop_release(options->allocator, paths[i]);
    return status;
}
