/* Byte-pair encoding: reading it from tokenizer.json. */
#include "common/utf8.h"
#include "tokenizer/bpe.h"
#include <stdio.h>
#include <string.h>

static foreloop_status fail_token(foreloop_json *json, const char *what, foreloop_text token) {
    return foreloop_json_fail(json, "%s \"%.*s\" is not in the vocabulary", what,
                              FORELOOP_QUOTED(token.text, token.length));
}

static foreloop_status check_merge(foreloop_bpe *bpe, foreloop_json *json, foreloop_text left, foreloop_text right,
                                   uint32_t rank) {
    const foreloop_token_table *vocabulary = bpe->vocabulary;
    foreloop_merge merge = {.rank = rank};
    foreloop_text tail;
    uint64_t hash;

    merge.left = foreloop_token_table_find(vocabulary, left.text, left.length);
    if (merge.left == FORELOOP_NO_TOKEN)
        return fail_token(json, "the merge's left part", left);
    merge.right = foreloop_token_table_find(vocabulary, right.text, right.length);
    if (merge.right == FORELOOP_NO_TOKEN)
        return fail_token(json, "the merge's right part", right);
    if (right.length < bpe->prefix.length)
        return foreloop_json_fail(json, "the merge's right part \"%.*s\" lacks the continuing_subword_prefix",
                                  FORELOOP_QUOTED(right.text, right.length));
    tail.text = right.text + bpe->prefix.length;
    tail.length = right.length - bpe->prefix.length;
    hash = foreloop_hash(foreloop_hash(vocabulary->key, left.text, left.length), tail.text, tail.length);
    merge.merged = foreloop_token_table_find_hashed(vocabulary, hash, left, tail);
    if (merge.merged == FORELOOP_NO_TOKEN)
        return foreloop_json_fail(json, "the result of the merge of \"%.*s\" and \"%.*s\" is not in the vocabulary",
                                  FORELOOP_QUOTED(left.text, left.length), FORELOOP_QUOTED(right.text, right.length));
    return foreloop_merge_table_add(&bpe->merges, merge, json->error);
}

/* A merge as one string, "left right". A "#version" line is no merge and leaves *rank alone. */
static foreloop_status read_merge_text(foreloop_bpe *bpe, foreloop_json *json, uint32_t *rank) {
    foreloop_text line, left, right;
    const char *space;

    FORELOOP_TRY(foreloop_json_string(json, &line));
    if (line.length >= 8 && memcmp(line.text, "#version", 8) == 0)
        return FORELOOP_OK;
    space = memchr(line.text, ' ', line.length);
    if (!space)
        return foreloop_json_fail(json, "a merge is two tokens with a space between them");
    left.text = line.text;
    left.length = (size_t)(space - line.text);
    right.text = space + 1;
    right.length = line.length - left.length - 1;
    if (memchr(right.text, ' ', right.length))
        return foreloop_json_fail(json,
                                  "a merge of tokens with spaces in them must be written as a pair, [\"a\", \"b\"]");
    return check_merge(bpe, json, left, right, (*rank)++);
}

/* A merge as a pair of strings. Both are needed at once, the reader keeps one. */
static foreloop_status read_merge_pair(foreloop_bpe *bpe, foreloop_json *json, foreloop_buffer *left_copy,
                                       uint32_t *rank) {
    foreloop_text left, right;
    bool more;

    FORELOOP_TRY(foreloop_json_array(json));
    FORELOOP_TRY(foreloop_json_element(json, &more));
    if (!more)
        return foreloop_json_fail(json, "a merge has two tokens");
    FORELOOP_TRY(foreloop_json_string(json, &left));
    left_copy->size = 0;
    FORELOOP_TRY(foreloop_buffer_append(left_copy, left.text, left.length, json->error));
    left.text = left_copy->data;
    FORELOOP_TRY(foreloop_json_element(json, &more));
    if (!more)
        return foreloop_json_fail(json, "a merge has two tokens");
    FORELOOP_TRY(foreloop_json_string(json, &right));
    FORELOOP_TRY(check_merge(bpe, json, left, right, (*rank)++));
    FORELOOP_TRY(foreloop_json_element(json, &more));
    return more ? foreloop_json_fail(json, "a merge has two tokens") : FORELOOP_OK;
}

static foreloop_status read_merges(foreloop_bpe *bpe, foreloop_json *json, foreloop_buffer *left_copy) {
    uint32_t rank = 0;
    bool more;

    FORELOOP_TRY(foreloop_json_array(json));
    for (;;) {
        FORELOOP_TRY(foreloop_json_element(json, &more));
        if (!more)
            return FORELOOP_OK;
        if (rank == UINT32_MAX)
            return foreloop_json_fail(json, "there are too many merges");
        if (foreloop_json_peek(json) == FORELOOP_JSON_ARRAY)
            FORELOOP_TRY(read_merge_pair(bpe, json, left_copy, &rank));
        else
            FORELOOP_TRY(read_merge_text(bpe, json, &rank));
    }
}

typedef struct field_set {
    foreloop_bpe *bpe;
    foreloop_token_table *vocabulary;
    foreloop_arena *arena;
    foreloop_text merges; /* the field's span: merges need all else */
} field_set;

static foreloop_status read_flag(foreloop_json *json, bool *flag) {
    if (foreloop_json_peek(json) == FORELOOP_JSON_NULL)
        return foreloop_json_null(json);
    return foreloop_json_bool(json, flag);
}

static foreloop_status read_dropout(foreloop_json *json) {
    double dropout;
    if (foreloop_json_peek(json) == FORELOOP_JSON_NULL)
        return foreloop_json_null(json);
    FORELOOP_TRY(foreloop_json_double(json, &dropout));
    return dropout == 0 ? FORELOOP_OK
                        : foreloop_component_unsupported(json, "BPE with dropout is not supported; set it to null");
}

static foreloop_status read_field(foreloop_json *json, foreloop_text key, void *context) {
    field_set *fields = context;
    foreloop_bpe *bpe = fields->bpe;

    if (foreloop_text_is(key, "vocab"))
        return foreloop_token_table_read(fields->vocabulary, json);
    if (foreloop_text_is(key, "merges") && fields->merges.text)
        return foreloop_json_fail(json, "the field \"merges\" stands here twice");
    if (foreloop_text_is(key, "merges"))
        return foreloop_json_span(json, &fields->merges);
    if (foreloop_text_is(key, "unk_token"))
        return foreloop_component_optional_text(json, fields->arena, &bpe->unknown);
    if (foreloop_text_is(key, "continuing_subword_prefix"))
        return foreloop_component_optional_text(json, fields->arena, &bpe->prefix);
    if (foreloop_text_is(key, "end_of_word_suffix"))
        return foreloop_component_optional_text(json, fields->arena, &bpe->suffix);
    if (foreloop_text_is(key, "fuse_unk"))
        return read_flag(json, &bpe->fuse_unknown);
    if (foreloop_text_is(key, "ignore_merges"))
        return read_flag(json, &bpe->ignore_merges);
    if (foreloop_text_is(key, "dropout"))
        return read_dropout(json);
    if (foreloop_text_is(key, "byte_fallback"))
        return read_flag(json, &bpe->byte_fallback);
    return foreloop_json_skip(json);
}

static foreloop_status read_merges_span(foreloop_bpe *bpe, const foreloop_json *component, foreloop_text span) {
    foreloop_buffer left_copy = {.allocator = bpe->allocator};
    foreloop_json json;
    foreloop_status status;

    foreloop_json_open(&json, bpe->allocator, span.text, span.length, component->name, component->error);
    json.base = component->base + (size_t)(span.text - component->data);
    status = read_merges(bpe, &json, &left_copy);
    foreloop_buffer_close(&left_copy);
    foreloop_json_close(&json);
    return status;
}

foreloop_status foreloop_bpe_read(foreloop_bpe *bpe, foreloop_json *component, foreloop_token_table *vocabulary,
                                  foreloop_arena *arena) {
    field_set fields = {.bpe = bpe, .vocabulary = vocabulary, .arena = arena};

    bpe->allocator = arena->allocator;
    bpe->vocabulary = vocabulary;
    FORELOOP_TRY(foreloop_component_fields(component, read_field, &fields));
    if (!vocabulary->by_id)
        return foreloop_json_fail(component, "the model has no field \"vocab\"");
    if (!bpe->merges.slots) {
        if (!fields.merges.text)
            return foreloop_json_fail(component, "the model BPE has no field \"merges\"");
        FORELOOP_TRY(foreloop_merge_table_open(&bpe->merges, vocabulary->key, component->error));
        FORELOOP_TRY(read_merges_span(bpe, component, fields.merges));
    }
    if (bpe->byte_fallback && bpe->prefix.length + bpe->suffix.length > 0)
        return foreloop_component_unsupported(component, "BPE with byte_fallback and affixes is not supported");
    bpe->unknown_index = FORELOOP_NO_TOKEN;
    if (bpe->unknown.text)
        bpe->unknown_index = foreloop_token_table_find(vocabulary, bpe->unknown.text, bpe->unknown.length);
    for (uint32_t i = 0; i < 256; i++) {
        char text[8];
        int length = snprintf(text, sizeof text, "<0x%02X>", i);
        bpe->fallback[i] = foreloop_token_table_find(vocabulary, text, (size_t)length);
    }
    for (uint32_t i = 0; i < sizeof bpe->characters / sizeof *bpe->characters; i++) {
        char bytes[4];
        bpe->characters[i] = foreloop_token_table_find(vocabulary, bytes, foreloop_utf8_encode(i, bytes));
    }
    return FORELOOP_OK;
}

void foreloop_bpe_close(foreloop_bpe *bpe) {
    foreloop_merge_table_close(&bpe->merges);
    memset(bpe, 0, sizeof *bpe);
}
