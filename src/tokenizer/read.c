/* tokenizer.json as a whole: which parts there are, and the order in which they need each other. */
#include "tokenizer/tokenizer.h"
#include <string.h>

/* The parts of the document, each with its place; read after all are known. */
enum {
    PART_MODEL,
    PART_NORMALIZER,
    PART_PRE_TOKENIZER,
    PART_ADDED_TOKENS,
    PART_POST_PROCESSOR,
    PART_DECODER,
    PART_TRUNCATION,
    PART_PADDING,
    PART_COUNT
};
static const char *const part_names[PART_COUNT] = {"model",          "normalizer", "pre_tokenizer", "added_tokens",
                                                   "post_processor", "decoder",    "truncation",    "padding"};

typedef struct part_spans {
    foreloop_text spans[PART_COUNT];
} part_spans;

static foreloop_status find_parts(foreloop_json *json, part_spans *parts) {
    foreloop_text key, version;

    FORELOOP_TRY(foreloop_json_object(json));
    for (;;) {
        size_t part = 0;
        FORELOOP_TRY(foreloop_json_key(json, &key));
        if (!key.text)
            break;
        if (foreloop_text_is(key, "version")) {
            FORELOOP_TRY(foreloop_json_string(json, &version));
            if (!foreloop_text_is(version, "1.0"))
                return foreloop_component_unsupported(json, "version \"%.*s\" of tokenizer.json is not supported",
                                                      FORELOOP_QUOTED(version.text, version.length));
            continue;
        }
        while (part < PART_COUNT && !foreloop_text_is(key, part_names[part]))
            part++;
        if (part < PART_COUNT)
            FORELOOP_TRY(foreloop_json_span(json, &parts->spans[part]));
        else
            FORELOOP_TRY(foreloop_json_skip(json));
    }
    return foreloop_json_end(json);
}

static foreloop_status read_model(foreloop_tokenizer *tokenizer, foreloop_json *json) {
    char type[FORELOOP_COMPONENT_TYPE_SIZE];

    FORELOOP_TRY(foreloop_component_type(json, type));
    tokenizer->is_wordpiece = strcmp(type, "WordPiece") == 0;
    if (tokenizer->is_wordpiece)
        return foreloop_wordpiece_read(&tokenizer->wordpiece, json, &tokenizer->vocabulary, &tokenizer->arena);
    if (strcmp(type, "BPE") == 0)
        return foreloop_bpe_read(&tokenizer->bpe, json, &tokenizer->vocabulary, &tokenizer->arena);
    return foreloop_component_unsupported(json, "the model \"%s\" is not supported", type);
}

static foreloop_status read_added_tokens(foreloop_tokenizer *tokenizer, foreloop_json *json) {
    foreloop_workspace work;
    foreloop_status status;

    foreloop_workspace_init(&work, &tokenizer->allocator);
    status = foreloop_added_tokens_read(&tokenizer->added, json, &tokenizer->vocabulary, &tokenizer->normalizer, &work);
    foreloop_workspace_close(&work);
    return status;
}

static foreloop_status read_part(foreloop_tokenizer *tokenizer, foreloop_json *json, size_t part) {
    switch (part) {
    case PART_MODEL:
        return read_model(tokenizer, json);
    case PART_NORMALIZER:
        return foreloop_normalizer_read(&tokenizer->normalizer, json, &tokenizer->arena);
    case PART_PRE_TOKENIZER:
        return foreloop_pretokenizer_read(&tokenizer->pretokenizer, json, &tokenizer->arena);
    case PART_ADDED_TOKENS:
        return read_added_tokens(tokenizer, json);
    case PART_POST_PROCESSOR:
        return foreloop_post_processor_read(&tokenizer->post_processor, json, &tokenizer->arena);
    case PART_DECODER:
        return foreloop_decoder_read(&tokenizer->decoder, json, &tokenizer->arena);
    case PART_TRUNCATION:
        return foreloop_truncation_read(&tokenizer->truncation, json);
    default:
        return foreloop_padding_read(&tokenizer->padding, json);
    }
}

foreloop_status foreloop_tokenizer_read(foreloop_tokenizer *tokenizer, const void *data, size_t size, const char *name,
                                        foreloop_error *error) {
    static const char absent_tokens[] = "[]", absent_component[] = "null";
    part_spans parts = {{{NULL, 0}}};
    foreloop_json json;
    foreloop_status status;

    if (!tokenizer->vocabulary.by_id)
        tokenizer->vocabulary.key = foreloop_hash_spread(foreloop_hash_lanes(data, size));
    tokenizer->added.table.key = tokenizer->vocabulary.key;
    foreloop_json_open(&json, &tokenizer->allocator, data, size, name, error);
    status = find_parts(&json, &parts);
    if (status == FORELOOP_OK && !parts.spans[PART_MODEL].text)
        status = foreloop_json_fail(&json, "there is no field \"model\"; is this a tokenizer.json of Hugging Face?");
    foreloop_json_close(&json);
    for (size_t part = 0; status == FORELOOP_OK && part < PART_COUNT; part++) {
        const char *absent = part == PART_ADDED_TOKENS ? absent_tokens : absent_component;
        foreloop_text span = parts.spans[part];
        size_t base = 0;
        if (span.text) {
            base = (size_t)(span.text - (const char *)data);
        } else {
            span.text = absent;
            span.length = strlen(absent);
        }
        foreloop_json_open(&json, &tokenizer->allocator, span.text, span.length, name, error);
        json.base = base;
        status = read_part(tokenizer, &json, part);
        foreloop_json_close(&json);
        if (part == PART_NORMALIZER)
            tokenizer->normalizer.is_bert = foreloop_bert_rule_find(
                &tokenizer->normalizer.bert, tokenizer->normalizer.steps, tokenizer->normalizer.count);
    }
    tokenizer->has_bert_words = tokenizer->is_wordpiece && tokenizer->post_processor.trim_count == 0 &&
                                foreloop_is_bert_pretokenizer(&tokenizer->pretokenizer);
    if (status == FORELOOP_OK && !tokenizer->is_wordpiece)
        foreloop_byte_words_init(&tokenizer->byte_words, &tokenizer->bpe, &tokenizer->pretokenizer, tokenizer->tier);
    return status;
}
