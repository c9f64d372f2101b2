/*
 * Tokenizers in older files than tokenizer.json: vocab.json with merges.txt, or vocab.txt. They are put together to the
 * tokenizer.json that Hugging Face's conversion would give, in memory, so that there is one loader of tokenizers.
 */
#include "common/file.h"
#include "common/sized.h"
#include "kernels_cpu/cpu.h"
#include "tokenizer/tokenizer.h"
#include <stdio.h>
#include <string.h>

enum { SPECIAL_TOKENS = 5, CLS = 0, SEP = 2 };

static const char *const roberta_special[SPECIAL_TOKENS] = {"<s>", "<pad>", "</s>", "<unk>", "<mask>"};
static const char *const bert_special[SPECIAL_TOKENS] = {"[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"};
static const char gpt2_special[] = "<|endoftext|>";

typedef struct maker {
    const foreloop_vocabulary_options *options;
    foreloop_allocator allocator;
    foreloop_error *error;
    const char *name, *merges_name; /* of the files, for messages */
    foreloop_buffer json;           /* the tokenizer.json that is being made */
    size_t vocabulary_begin;        /* where in it the vocabulary's content stands: as it is, or a line a line */
    size_t merges_begin;            /* and the merges, a line a line */
    const char *const *special;
    int64_t special_ids[SPECIAL_TOKENS]; /* -1: not in the vocabulary */
    int64_t end_of_text;                 /* GPT-2's */
} maker;

static foreloop_status put(maker *make, const char *text) {
    return foreloop_buffer_append(&make->json, text, strlen(text), make->error);
}

static foreloop_status put_string(maker *make, const char *before, foreloop_text text) {
    return foreloop_buffer_append_json(&make->json, before, text, make->error);
}

static foreloop_status put_name(maker *make, const char *before, const char *name) {
    return put_string(make, before, (foreloop_text){name, strlen(name)});
}

static foreloop_status put_integer(maker *make, int64_t value) {
    char text[24];
    (void)snprintf(text, sizeof text, "%lld", (long long)value);
    return put(make, text);
}

static void note_special(maker *make, foreloop_text token, int64_t id) {
    for (int i = 0; i < SPECIAL_TOKENS; i++)
        if (foreloop_text_is(token, make->special[i]))
            make->special_ids[i] = id;
    if (foreloop_text_is(token, gpt2_special))
        make->end_of_text = id;
}

/* The special tokens of vocab.json. */
static foreloop_status find_special(foreloop_json *json, maker *make) {
    FORELOOP_TRY(foreloop_json_object(json));
    for (;;) {
        foreloop_text key;
        char name[16];
        size_t id = 0;
        FORELOOP_TRY(foreloop_json_key(json, &key));
        if (!key.text)
            return foreloop_json_end(json);
        const size_t length = key.length < sizeof name ? key.length : 0;
        memcpy(name, key.text, length); /* reading the id may take the key's place */
        FORELOOP_TRY(foreloop_json_size(json, UINT32_MAX, &id));
        note_special(make, (foreloop_text){name, length}, (int64_t)id);
    }
}

/* The next line of text[*at..length), without its end; false at the end of the text. */
static bool next_line(const foreloop_file *file, size_t *at, foreloop_text *line) {
    const char *text = (const char *)file->data;
    if (*at >= file->size)
        return false;
    const char *start = text + *at, *end = memchr(start, '\n', file->size - *at);
    size_t size = end ? (size_t)(end - start) : file->size - *at;
    *at += size + 1;
    if (size && start[size - 1] == '\r')
        size--;
    *line = (foreloop_text){start, size};
    return true;
}

static foreloop_status put_added_token(maker *make, const char *before, const char *content, int64_t id) {
    FORELOOP_TRY(put(make, before));
    FORELOOP_TRY(put(make, "{\"id\":"));
    FORELOOP_TRY(put_integer(make, id));
    FORELOOP_TRY(put_name(make, ",\"content\":", content));
    /* RoBERTa's mask token takes the space before it. */
    FORELOOP_TRY(put(make, strcmp(content, "<mask>") == 0 ? ",\"lstrip\":true" : ",\"lstrip\":false"));
    return put(make, ",\"rstrip\":false,\"single_word\":false,\"normalized\":false,\"special\":true}");
}

static foreloop_status put_added_tokens(maker *make) {
    bool first = true;
    FORELOOP_TRY(put(make, ",\"added_tokens\":["));
    for (int i = 0; i < SPECIAL_TOKENS; i++) {
        if (make->special_ids[i] < 0)
            continue;
        FORELOOP_TRY(put_added_token(make, first ? "" : ",", make->special[i], make->special_ids[i]));
        first = false;
    }
    if (make->end_of_text >= 0)
        FORELOOP_TRY(put_added_token(make, first ? "" : ",", gpt2_special, make->end_of_text));
    return put(make, "]");
}

static foreloop_status put_processor(maker *make, const char *type, const char *rest) {
    FORELOOP_TRY(put_name(make, ",\"post_processor\":{\"type\":", type));
    for (int i = CLS; i <= SEP; i += SEP - CLS) {
        FORELOOP_TRY(put_name(make, i == CLS ? ",\"cls\":[" : ",\"sep\":[", make->special[i]));
        FORELOOP_TRY(put(make, ","));
        FORELOOP_TRY(put_integer(make, make->special_ids[i]));
        FORELOOP_TRY(put(make, "]"));
    }
    FORELOOP_TRY(put(make, rest));
    return put(make, "}");
}

static foreloop_status fail_special(maker *make) {
    const char *missing = make->special[make->special_ids[CLS] < 0 ? CLS : SEP];
    return foreloop_fail(make->error, FORELOOP_ERROR_MISMATCH, "%s: the vocabulary lacks the token '%s'", make->name,
                         missing);
}

static foreloop_status put_merges(maker *make, const foreloop_file *merges) {
    bool first = true;
    foreloop_text line;
    uint64_t number = 0;
    for (size_t at = 0; next_line(merges, &at, &line);) {
        number++;
        if (line.length == 0 || (line.length >= 8 && memcmp(line.text, "#version", 8) == 0)) {
            FORELOOP_TRY(put(make, "\n"));
            continue;
        }
        const char *space = memchr(line.text, ' ', line.length);
        size_t left = space ? (size_t)(space - line.text) : 0;
        if (left == 0 || left + 1 == line.length || memchr(space + 1, ' ', line.length - left - 1))
            return foreloop_fail_at(make->error, FORELOOP_ERROR_FORMAT, FORELOOP_POSITION_LINE, number,
                                    "%s: line %llu: a merge is two tokens with a space between, not '%.*s'",
                                    make->merges_name, (unsigned long long)number,
                                    FORELOOP_QUOTED(line.text, line.length));
        FORELOOP_TRY(put_string(make, first ? "" : ",", line));
        FORELOOP_TRY(put(make, "\n"));
        first = false;
    }
    return FORELOOP_OK;
}

/* With <s> and </s> in the vocabulary as RoBERTa's, else as GPT-2's. */
static foreloop_status make_bpe(maker *make, const foreloop_file *vocabulary, const foreloop_file *merges,
                                bool need_special) {
    const char *const prefix =
        make->options->add_prefix_space ? ",\"add_prefix_space\":true" : ",\"add_prefix_space\":false";
    foreloop_json json;

    make->special = roberta_special;
    foreloop_json_open(&json, &make->allocator, vocabulary->data, vocabulary->size, make->name, make->error);
    foreloop_status status = find_special(&json, make);
    foreloop_json_close(&json);
    FORELOOP_TRY(status);
    const bool is_roberta = make->special_ids[CLS] >= 0 && make->special_ids[SEP] >= 0;
    if (need_special && !is_roberta)
        return fail_special(make);
    FORELOOP_TRY(put(make, "{\"decoder\":{\"type\":\"ByteLevel\"},\"pre_tokenizer\":{\"type\":\"ByteLevel\","
                           "\"trim_offsets\":true"));
    FORELOOP_TRY(put(make, prefix));
    FORELOOP_TRY(put(make, "}"));
    FORELOOP_TRY(put_added_tokens(make));
    if (is_roberta) {
        FORELOOP_TRY(put_processor(make, "RobertaProcessing",
                                   make->options->add_prefix_space
                                       ? ",\"trim_offsets\":true,\"add_prefix_space\":true"
                                       : ",\"trim_offsets\":true,\"add_prefix_space\":false"));
    }
    FORELOOP_TRY(put(make, ",\"model\":{\"type\":\"BPE\",\"vocab\":"));
    make->vocabulary_begin = make->json.size;
    FORELOOP_TRY(foreloop_buffer_append(&make->json, vocabulary->data, vocabulary->size, make->error));
    FORELOOP_TRY(put(make, ",\"merges\":["));
    make->merges_begin = make->json.size;
    FORELOOP_TRY(put_merges(make, merges));
    return put(make, "]}}");
}

static foreloop_status make_wordpiece(maker *make, const foreloop_file *vocabulary) {
    const foreloop_vocabulary_options *options = make->options;
    foreloop_text line;
    int64_t id = 0;

    make->special = bert_special;
    FORELOOP_TRY(put(make, "{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":"
                           "\"##\",\"max_input_chars_per_word\":100,\"vocab\":{"));
    make->vocabulary_begin = make->json.size;
    for (size_t at = 0; next_line(vocabulary, &at, &line); id++) {
        note_special(make, line, id);
        FORELOOP_TRY(put_string(make, id ? "," : "", line));
        FORELOOP_TRY(put(make, ":"));
        FORELOOP_TRY(put_integer(make, id));
        FORELOOP_TRY(put(make, "\n"));
    }
    make->end_of_text = -1;
    if (make->special_ids[CLS] < 0 || make->special_ids[SEP] < 0)
        return fail_special(make);
    FORELOOP_TRY(put(make, "}},\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true},"
                           "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"normalizer\":{\"type\":"
                           "\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":"));
    FORELOOP_TRY(put(make, options->join_chinese ? "false" : "true"));
    FORELOOP_TRY(put(make, ",\"strip_accents\":"));
    FORELOOP_TRY(put(make, options->accents == FORELOOP_ACCENTS_BY_CASE ? "null"
                           : options->accents == FORELOOP_ACCENTS_STRIP ? "true"
                                                                        : "false"));
    FORELOOP_TRY(put(make, options->keep_case ? ",\"lowercase\":false}" : ",\"lowercase\":true}"));
    FORELOOP_TRY(put_added_tokens(make));
    FORELOOP_TRY(put_processor(make, "BertProcessing", ""));
    return put(make, "}");
}

/* An error at a byte of what was made becomes one at the line or byte of the file that it comes from. */
static foreloop_status fail_in_file(const maker *make, bool has_merges, const foreloop_error *found) {
    const bool in_merges = has_merges && found->position >= make->merges_begin;
    const size_t begin = in_merges ? make->merges_begin : make->vocabulary_begin;
    const char *name = in_merges ? make->merges_name : make->name, *message = strstr(found->message, ": ");
    unsigned long long line = 1;

    if (found->position_kind != FORELOOP_POSITION_BYTE || found->position < begin || !message)
        return foreloop_fail(make->error, found->code, "%s: %s", make->name, found->message);
    message += 2; /* "byte N: " was before it */
    if (has_merges && !in_merges)
        return foreloop_fail_at(make->error, found->code, FORELOOP_POSITION_BYTE, found->position - begin,
                                "%s: byte %llu: %s", name, (unsigned long long)(found->position - begin), message);
    for (size_t i = begin; i < found->position && i < make->json.size; i++)
        line += make->json.data[i] == '\n';
    return foreloop_fail_at(make->error, found->code, FORELOOP_POSITION_LINE, line, "%s: line %llu: %s", name, line,
                            message);
}

foreloop_status foreloop_tokenizer_open_files(foreloop_tokenizer **tokenizer, const char *vocabulary_path,
                                              const char *merges_path, const foreloop_vocabulary_options *options,
                                              bool need_special, foreloop_error *error) {
    const bool read = options->read_into_memory != 0;
    maker make = {.options = options,
                  .allocator = foreloop_allocator_or_default(options->allocator),
                  .error = error,
                  .name = vocabulary_path,
                  .merges_name = merges_path,
                  .special_ids = {-1, -1, -1, -1, -1},
                  .end_of_text = -1};
    foreloop_file vocabulary = {0}, merges = {0};

    make.json.allocator = &make.allocator;
    foreloop_status status = foreloop_file_open(&vocabulary, vocabulary_path, &make.allocator, read, error);
    if (status == FORELOOP_OK && merges_path)
        status = foreloop_file_open(&merges, merges_path, &make.allocator, read, error);
    if (status == FORELOOP_OK)
        status = merges_path ? make_bpe(&make, &vocabulary, &merges, need_special) : make_wordpiece(&make, &vocabulary);
    foreloop_file_close(&merges);
    foreloop_file_close(&vocabulary);
    if (status == FORELOOP_OK) {
        foreloop_error found = {.code = FORELOOP_OK};
        status = foreloop_tokenizer_open_named(tokenizer, make.json.data, make.json.size, NULL, &make.allocator,
                                               foreloop_cpu_tier(options->tier), &found);
        if (status != FORELOOP_OK)
            status = fail_in_file(&make, merges_path != NULL, &found);
    }
    foreloop_buffer_close(&make.json);
    return status;
}

/* ---- Public ------------------------------------------------------------------------------------------------------ */

void foreloop_vocabulary_options_init(foreloop_vocabulary_options *options, size_t size) {
    foreloop_sized_init(options, size);
}

static foreloop_status open_checked(foreloop_tokenizer **tokenizer, const char *vocabulary, const char *merges,
                                    const foreloop_vocabulary_options *options, foreloop_error *error) {
    foreloop_vocabulary_options own;
    FORELOOP_TRY(foreloop_sized_read(&own, sizeof own, options, "foreloop_vocabulary_options", error));
    return foreloop_tokenizer_open_files(tokenizer, vocabulary, merges, &own, false, error);
}

foreloop_status foreloop_tokenizer_open_bpe(foreloop_tokenizer **tokenizer, const char *vocabulary, const char *merges,
                                            const foreloop_vocabulary_options *options, foreloop_error *error) {
    if (!tokenizer || !vocabulary || !merges)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_tokenizer_open_bpe: NULL argument");
    return open_checked(tokenizer, vocabulary, merges, options, error);
}

foreloop_status foreloop_tokenizer_open_wordpiece(foreloop_tokenizer **tokenizer, const char *vocabulary,
                                                  const foreloop_vocabulary_options *options, foreloop_error *error) {
    if (!tokenizer || !vocabulary)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_tokenizer_open_wordpiece: NULL argument");
    return open_checked(tokenizer, vocabulary, NULL, options, error);
}
