/* WordPiece. */
#include "tokenizer/wordpiece.h"
#include "common/utf8.h"
#include <string.h>

typedef struct field_set {
    foreloop_wordpiece *wordpiece;
    foreloop_token_table *vocabulary;
    foreloop_arena *arena;
    bool has_max_characters;
} field_set;

static foreloop_status read_field(foreloop_json *json, foreloop_text key, void *context) {
    field_set *fields = context;

    if (foreloop_text_is(key, "vocab"))
        return foreloop_token_table_read(fields->vocabulary, json);
    if (foreloop_text_is(key, "unk_token"))
        return foreloop_component_text(json, fields->arena, &fields->wordpiece->unknown);
    if (foreloop_text_is(key, "continuing_subword_prefix"))
        return foreloop_component_text(json, fields->arena, &fields->wordpiece->prefix);
    if (foreloop_text_is(key, "max_input_chars_per_word")) {
        fields->has_max_characters = true;
        return foreloop_json_size(json, SIZE_MAX, &fields->wordpiece->max_characters);
    }
    return foreloop_json_skip(json);
}

foreloop_status foreloop_wordpiece_read(foreloop_wordpiece *wordpiece, foreloop_json *component,
                                        foreloop_token_table *vocabulary, foreloop_arena *arena) {
    field_set fields = {.wordpiece = wordpiece, .vocabulary = vocabulary, .arena = arena};

    wordpiece->allocator = arena->allocator;
    wordpiece->vocabulary = vocabulary;
    FORELOOP_TRY(foreloop_component_fields(component, read_field, &fields));
    if (!vocabulary->by_id)
        return foreloop_json_fail(component, "the model has no field \"vocab\"");
    if (!wordpiece->unknown.text || !wordpiece->prefix.text || !fields.has_max_characters)
        return foreloop_json_fail(component, "the model WordPiece needs the fields \"unk_token\", "
                                             "\"continuing_subword_prefix\" and \"max_input_chars_per_word\"");
    wordpiece->unknown_index =
        foreloop_token_table_find(vocabulary, wordpiece->unknown.text, wordpiece->unknown.length);
    return FORELOOP_OK;
}

static bool has_more_characters(const char *word, size_t length, size_t maximum) {
    size_t count = 0;
    for (size_t i = 0; i < length; i++)
        count += ((unsigned char)word[i] & 0xC0) != 0x80;
    return count > maximum;
}

/* The longest token at `begin`: its index and end, or FORELOOP_NO_TOKEN. */
static uint32_t longest_token(const foreloop_wordpiece *wordpiece, const char *word, size_t begin, size_t length,
                              size_t *end) {
    const foreloop_text nothing = {NULL, 0}, prefix = begin > 0 ? wordpiece->prefix : nothing;
    uint64_t hash = foreloop_hash(wordpiece->vocabulary->key, prefix.text, prefix.length);
    uint32_t longest = FORELOOP_NO_TOKEN;
    size_t size;

    for (size_t position = begin; position < length; position += size) {
        foreloop_text tail = {word + begin, 0};
        uint32_t code_point, index;

        (void)foreloop_utf8_decode(word + position, length - position, &code_point, &size);
        tail.length = position + size - begin;
        if (prefix.length + tail.length > wordpiece->vocabulary->longest)
            break;
        hash = foreloop_hash(hash, word + position, size);
        index = foreloop_token_table_find_hashed(wordpiece->vocabulary, hash, prefix, tail);
        if (index != FORELOOP_NO_TOKEN) {
            longest = index;
            *end = position + size;
        }
    }
    return longest;
}

foreloop_status foreloop_wordpiece_tokenize(const foreloop_wordpiece *wordpiece, const char *word, size_t length,
                                            foreloop_model_tokens *tokens, foreloop_error *error) {
    const size_t count_before = tokens->count;
    bool is_known = !has_more_characters(word, length, wordpiece->max_characters);

    for (size_t begin = 0, end = 0; is_known && begin < length; begin = end) {
        foreloop_model_token token = {.begin = (uint32_t)begin};
        token.index = longest_token(wordpiece, word, begin, length, &end);
        token.end = (uint32_t)end;
        is_known = token.index != FORELOOP_NO_TOKEN;
        if (is_known)
            FORELOOP_TRY(foreloop_model_add(tokens, wordpiece->allocator, token, error));
    }
    if (!is_known) {
        const foreloop_model_token unknown = {wordpiece->unknown_index, 0, (uint32_t)length};
        if (unknown.index == FORELOOP_NO_TOKEN)
            return foreloop_model_fail_unknown(wordpiece->unknown, error);
        tokens->count = count_before;
        return foreloop_model_add(tokens, wordpiece->allocator, unknown, error);
    }
    return FORELOOP_OK;
}
