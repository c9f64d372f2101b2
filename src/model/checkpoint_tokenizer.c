/*
 * Older checkpoints have no tokenizer.json but the files that it was later made from. They are put together to the
 * tokenizer.json that Hugging Face's conversion would give, in memory, so that there is one loader of tokenizers.
 */
#include "model/checkpoint_tokenizer.h"
#include "common/alloc.h"
#include "common/error.h"
#include "common/file.h"
#include "common/json.h"
#include "kernels_cpu/cpu.h"
#include "tokenizer/tokenizer.h"
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { SPECIAL_TOKENS = 5, CLS = 0, SEP = 2 };

static const char *const roberta_special[SPECIAL_TOKENS] = {"<s>", "<pad>", "</s>", "<unk>", "<mask>"};
static const char *const bert_special[SPECIAL_TOKENS] = {"[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"};

typedef struct maker {
    const foreloop_allocator *allocator;
    const foreloop_options *options;
    const char *directory;
    foreloop_error *error;
    foreloop_buffer json; /* the tokenizer.json that is being made */
    const char *const *special;
    int64_t special_ids[SPECIAL_TOKENS]; /* -1: not in the vocabulary */
    /* From tokenizer_config.json. */
    bool add_prefix_space, lowercase, chinese;
    int strip_accents; /* -1: null */
} maker;

static foreloop_status open_file(const maker *make, const char *name, foreloop_file *file) {
    char *path = foreloop_path_join(make->allocator, make->directory, name);
    if (!path)
        return foreloop_fail_memory(make->error, strlen(name), 1, "a path");
    foreloop_status status =
        foreloop_file_open(file, path, make->allocator, make->options->read_into_memory != 0, make->error);
    foreloop_release(make->allocator, path);
    return status;
}

static foreloop_status look_for(const maker *make, const char *name, bool *found) {
    char *path = foreloop_path_join(make->allocator, make->directory, name);
    if (!path)
        return foreloop_fail_memory(make->error, strlen(name), 1, "a path");
    *found = foreloop_path_exists(path);
    foreloop_release(make->allocator, path);
    return FORELOOP_OK;
}

static foreloop_status put(maker *make, const char *text) {
    return foreloop_buffer_append(&make->json, text, strlen(text), make->error);
}

static foreloop_status put_string(maker *make, const char *text, size_t length) {
    FORELOOP_TRY(put(make, "\""));
    for (size_t i = 0; i < length; i++) {
        char escaped[8];
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\')
            (void)snprintf(escaped, sizeof escaped, "\\%c", c);
        else if (c < 0x20)
            (void)snprintf(escaped, sizeof escaped, "\\u%04x", c);
        else
            escaped[0] = (char)c, escaped[1] = 0;
        FORELOOP_TRY(put(make, escaped));
    }
    return put(make, "\"");
}

static foreloop_status put_integer(maker *make, int64_t value) {
    char text[24];
    (void)snprintf(text, sizeof text, "%lld", (long long)value);
    return put(make, text);
}

static foreloop_status read_settings(foreloop_json *json, maker *make) {
    FORELOOP_TRY(foreloop_json_object(json));
    for (;;) {
        foreloop_text key;
        bool value = false;
        FORELOOP_TRY(foreloop_json_key(json, &key));
        if (!key.text)
            return FORELOOP_OK;
        if (foreloop_json_peek(json) != FORELOOP_JSON_BOOL) {
            FORELOOP_TRY(foreloop_json_skip(json));
            continue;
        }
        bool prefix = foreloop_text_is(key, "add_prefix_space"), lower = foreloop_text_is(key, "do_lower_case"),
             strip = foreloop_text_is(key, "strip_accents"), chinese = foreloop_text_is(key, "tokenize_chinese_chars");
        FORELOOP_TRY(foreloop_json_bool(json, &value));
        if (prefix)
            make->add_prefix_space = value;
        else if (lower)
            make->lowercase = value;
        else if (strip)
            make->strip_accents = value;
        else if (chinese)
            make->chinese = value;
    }
}

static foreloop_status find_special(foreloop_json *json, maker *make) {
    FORELOOP_TRY(foreloop_json_object(json));
    for (;;) {
        foreloop_text key;
        size_t id = 0;
        FORELOOP_TRY(foreloop_json_key(json, &key));
        if (!key.text)
            return FORELOOP_OK;
        int special = -1;
        for (int i = 0; i < SPECIAL_TOKENS; i++)
            if (foreloop_text_is(key, make->special[i]))
                special = i;
        FORELOOP_TRY(foreloop_json_size(json, UINT32_MAX, &id));
        if (special >= 0)
            make->special_ids[special] = (int64_t)id;
    }
}

static foreloop_status parse(maker *make, const foreloop_file *file, const char *name,
                             foreloop_status (*read)(foreloop_json *json, maker *make)) {
    foreloop_json json;
    foreloop_json_open(&json, make->allocator, file->data, file->size, name, make->error);
    foreloop_status status = read(&json, make);
    if (status == FORELOOP_OK)
        status = foreloop_json_end(&json);
    foreloop_json_close(&json);
    return status;
}

/* The next line of text[*at..length), without its end; false at the end of the text. */
static bool next_line(const char *text, size_t length, size_t *at, foreloop_text *line) {
    if (*at >= length)
        return false;
    const char *start = text + *at, *end = memchr(start, '\n', length - *at);
    size_t size = end ? (size_t)(end - start) : length - *at;
    *at += size + 1;
    if (size && start[size - 1] == '\r')
        size--;
    *line = (foreloop_text){start, size};
    return true;
}

static foreloop_status put_added_tokens(maker *make) {
    for (int i = 0; i < SPECIAL_TOKENS; i++)
        if (make->special_ids[i] < 0 && (i == CLS || i == SEP))
            return foreloop_fail(make->error, FORELOOP_ERROR_MISMATCH, "%s: the vocabulary lacks the token '%s'",
                                 make->directory, make->special[i]);
    bool first = true;
    FORELOOP_TRY(put(make, ",\"added_tokens\":["));
    for (int i = 0; i < SPECIAL_TOKENS; i++) {
        if (make->special_ids[i] < 0)
            continue;
        FORELOOP_TRY(put(make, first ? "{\"id\":" : ",{\"id\":"));
        FORELOOP_TRY(put_integer(make, make->special_ids[i]));
        FORELOOP_TRY(put(make, ",\"content\":"));
        FORELOOP_TRY(put_string(make, make->special[i], strlen(make->special[i])));
        /* RoBERTa's mask token takes the space before it. */
        FORELOOP_TRY(put(make, strcmp(make->special[i], "<mask>") == 0 ? ",\"lstrip\":true" : ",\"lstrip\":false"));
        FORELOOP_TRY(put(make, ",\"rstrip\":false,\"single_word\":false,\"normalized\":false,\"special\":true}"));
        first = false;
    }
    return put(make, "]");
}

static foreloop_status put_processor(maker *make, const char *type, const char *rest) {
    FORELOOP_TRY(put(make, ",\"post_processor\":{\"type\":\""));
    FORELOOP_TRY(put(make, type));
    for (int i = CLS; i <= SEP; i += SEP - CLS) {
        FORELOOP_TRY(put(make, i == CLS ? "\",\"cls\":[" : ",\"sep\":["));
        FORELOOP_TRY(put_string(make, make->special[i], strlen(make->special[i])));
        FORELOOP_TRY(put(make, ","));
        FORELOOP_TRY(put_integer(make, make->special_ids[i]));
        FORELOOP_TRY(put(make, "]"));
    }
    FORELOOP_TRY(put(make, rest));
    return put(make, "}");
}

static foreloop_status make_bpe(maker *make, const foreloop_file *vocabulary, const foreloop_file *merges) {
    const char *prefix = make->add_prefix_space ? "true" : "false";
    make->special = roberta_special;
    FORELOOP_TRY(parse(make, vocabulary, "vocab.json", find_special));
    FORELOOP_TRY(put(make, "{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"trim_offsets\":true,\"add_prefix_space\":"));
    FORELOOP_TRY(put(make, prefix));
    FORELOOP_TRY(put(make, "}"));
    FORELOOP_TRY(put_added_tokens(make));
    FORELOOP_TRY(put_processor(make, "RobertaProcessing",
                               make->add_prefix_space ? ",\"trim_offsets\":true,\"add_prefix_space\":true"
                                                      : ",\"trim_offsets\":true,\"add_prefix_space\":false"));
    FORELOOP_TRY(put(make, ",\"model\":{\"type\":\"BPE\",\"vocab\":"));
    FORELOOP_TRY(foreloop_buffer_append(&make->json, vocabulary->data, vocabulary->size, make->error));
    FORELOOP_TRY(put(make, ",\"merges\":["));
    bool first = true;
    foreloop_text line;
    uint64_t number = 0;
    for (size_t at = 0; next_line((const char *)merges->data, merges->size, &at, &line);) {
        number++;
        if (line.length == 0 || (line.length >= 8 && memcmp(line.text, "#version", 8) == 0))
            continue;
        const char *space = memchr(line.text, ' ', line.length);
        size_t left = space ? (size_t)(space - line.text) : 0;
        if (left == 0 || left + 1 == line.length || memchr(space + 1, ' ', line.length - left - 1))
            return foreloop_fail_at(make->error, FORELOOP_ERROR_FORMAT, FORELOOP_POSITION_LINE, number,
                                    "merges.txt: line %llu: a merge is two tokens with a space between, not '%.*s'",
                                    (unsigned long long)number, FORELOOP_QUOTED(line.text, line.length));
        FORELOOP_TRY(put(make, first ? "" : ","));
        FORELOOP_TRY(put_string(make, line.text, line.length));
        first = false;
    }
    return put(make, "]}}");
}

static foreloop_status make_wordpiece(maker *make, const foreloop_file *vocabulary) {
    make->special = bert_special;
    FORELOOP_TRY(put(make, "{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":"
                           "\"##\",\"max_input_chars_per_word\":100,\"vocab\":{"));
    foreloop_text line;
    int64_t id = 0;
    for (size_t at = 0; next_line((const char *)vocabulary->data, vocabulary->size, &at, &line); id++) {
        for (int i = 0; i < SPECIAL_TOKENS; i++)
            if (foreloop_text_is(line, make->special[i]))
                make->special_ids[i] = id;
        FORELOOP_TRY(put(make, id ? "," : ""));
        FORELOOP_TRY(put_string(make, line.text, line.length));
        FORELOOP_TRY(put(make, ":"));
        FORELOOP_TRY(put_integer(make, id));
    }
    FORELOOP_TRY(put(make, "}},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"normalizer\":{\"type\":"
                           "\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":"));
    FORELOOP_TRY(put(make, make->chinese ? "true" : "false"));
    FORELOOP_TRY(put(make, ",\"strip_accents\":"));
    FORELOOP_TRY(put(make, make->strip_accents < 0 ? "null" : make->strip_accents ? "true" : "false"));
    FORELOOP_TRY(put(make, make->lowercase ? ",\"lowercase\":true}" : ",\"lowercase\":false}"));
    FORELOOP_TRY(put_added_tokens(make));
    FORELOOP_TRY(put_processor(make, "BertProcessing", ""));
    return put(make, "}");
}

/* The two files of a byte-level BPE, or the one of a WordPiece, to make->json. */
static foreloop_status make_json(maker *make, bool bpe) {
    foreloop_file file = {0}, merges = {0};
    foreloop_status status = FORELOOP_OK;
    bool settings = false;
    FORELOOP_TRY(look_for(make, "tokenizer_config.json", &settings));
    if (settings) {
        FORELOOP_TRY(open_file(make, "tokenizer_config.json", &file));
        status = parse(make, &file, "tokenizer_config.json", read_settings);
        foreloop_file_close(&file);
        file = (foreloop_file){0};
    }
    if (status == FORELOOP_OK)
        status = open_file(make, bpe ? "vocab.json" : "vocab.txt", &file);
    if (status == FORELOOP_OK && bpe)
        status = open_file(make, "merges.txt", &merges);
    if (status == FORELOOP_OK)
        status = bpe ? make_bpe(make, &file, &merges) : make_wordpiece(make, &file);
    foreloop_file_close(&merges);
    foreloop_file_close(&file);
    return status;
}

foreloop_status foreloop_checkpoint_tokenizer_open(foreloop_tokenizer **tokenizer, const char *directory,
                                                   foreloop_architecture architecture, const foreloop_options *options,
                                                   foreloop_error *error) {
    maker make = {.allocator = options->allocator,
                  .options = options,
                  .directory = directory,
                  .error = error,
                  .json = {.allocator = options->allocator},
                  .special_ids = {-1, -1, -1, -1, -1},
                  .lowercase = true,
                  .chinese = true,
                  .strip_accents = -1};
    bool bpe = architecture == FORELOOP_ARCHITECTURE_ROBERTA;
    const char *older = bpe ? "vocab.json" : "vocab.txt";
    bool newer_found = false, older_found = false;
    FORELOOP_TRY(look_for(&make, "tokenizer.json", &newer_found));
    FORELOOP_TRY(look_for(&make, older, &older_found));
    if (newer_found || !older_found) {
        char *path = foreloop_path_join(options->allocator, directory, "tokenizer.json");
        if (!path)
            return foreloop_fail_memory(error, strlen(directory), 1, "a path");
        foreloop_status status = foreloop_tokenizer_open(tokenizer, path, options, error);
        foreloop_release(options->allocator, path);
        return status;
    }
    foreloop_status status = make_json(&make, bpe);
    if (status == FORELOOP_OK)
        status = foreloop_tokenizer_open_named(tokenizer, make.json.data, make.json.size,
                                               bpe ? "vocab.json and merges.txt, put together"
                                                   : "vocab.txt, put into a tokenizer.json",
                                               options->allocator, foreloop_cpu_tier(options->tier), error);
    foreloop_buffer_close(&make.json);
    return status == FORELOOP_OK ? status : foreloop_error_prefix(error, status, "%.200s", directory);
}
