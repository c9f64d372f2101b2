/*
 * The compiled form of a tokenizer: the tables of vocabulary and merges as they lie in memory, and what else stands in
 * tokenizer.json as JSON without them. It is used where it lies. Whoever opens it has made sure that it is what was
 * written (model/compiled.h); it is checked here all the same, so that no content leads out of bounds.
 */
#include "common/file.h"
#include "common/sections.h"
#include "tokenizer/tokenizer.h"
#include <string.h>

enum {
    SECTION_REST,
    SECTION_ENTRIES,
    SECTION_BY_ID,
    SECTION_SLOTS,
    SECTION_MERGES,
    SECTION_JOINS,
    SECTION_TEXTS,
    SECTIONS
};
static const size_t element_sizes[SECTIONS] = {1,
                                               sizeof(foreloop_token_entry),
                                               sizeof(uint32_t),
                                               sizeof(uint64_t),
                                               sizeof(foreloop_merge),
                                               sizeof(foreloop_byte_joins),
                                               1};

/* In front; behind it the sections, each at a multiple of FORELOOP_ALIGNMENT. */
typedef struct compiled_head {
    uint64_t counts[SECTIONS]; /* of elements */
    uint64_t key, merge_key;
    uint64_t merge_count;
    uint64_t is_bpe;
} compiled_head;

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

static foreloop_status put(foreloop_buffer *out, const void *data, size_t size, foreloop_error *error) {
    return size > 0 ? foreloop_buffer_append(out, data, size, error) : FORELOOP_OK;
}

/* Copies the next value, an object, without some of its fields; `into` names one to be copied in the same way. */
static foreloop_status copy_object(foreloop_json *json, foreloop_buffer *out, const char *const *without,
                                   const char *into) {
    bool first = true;
    foreloop_text key;

    FORELOOP_TRY(put(out, "{", 1, json->error));
    FORELOOP_TRY(foreloop_json_object(json));
    for (;;) {
        foreloop_text value;
        bool left_out = false, is_into;
        FORELOOP_TRY(foreloop_json_key(json, &key));
        if (!key.text)
            return put(out, "}", 1, json->error);
        for (const char *const *name = without; *name; name++)
            left_out = left_out || foreloop_text_is(key, *name);
        is_into = into && foreloop_text_is(key, into);
        if (left_out) {
            FORELOOP_TRY(foreloop_json_skip(json));
            continue;
        }
        FORELOOP_TRY(foreloop_buffer_append_json(out, first ? "" : ",", key, json->error));
        FORELOOP_TRY(put(out, ":", 1, json->error));
        first = false;
        if (is_into) {
            static const char *const tables[] = {"vocab", "merges", NULL};
            FORELOOP_TRY(copy_object(json, out, tables, NULL));
        } else {
            FORELOOP_TRY(foreloop_json_span(json, &value));
            FORELOOP_TRY(put(out, value.text, value.length, json->error));
        }
    }
}

static foreloop_status put_rest(const foreloop_tokenizer *tokenizer, const void *source, size_t size,
                                foreloop_buffer *out, foreloop_error *error) {
    static const char *const nothing[] = {NULL};
    foreloop_json json;
    foreloop_status status;

    foreloop_json_open(&json, &tokenizer->allocator, source, size, "tokenizer.json", error);
    status = copy_object(&json, out, nothing, "model");
    foreloop_json_close(&json);
    return status;
}

foreloop_status foreloop_tokenizer_compile(const foreloop_tokenizer *tokenizer, const void *source, size_t size,
                                           foreloop_buffer *out, foreloop_error *error) {
    const foreloop_token_table *table = &tokenizer->vocabulary;
    const foreloop_merge_table *merges = &tokenizer->bpe.merges;
    const size_t start = out->size;
    compiled_head head = {.counts = {[SECTION_ENTRIES] = table->count,
                                     [SECTION_BY_ID] = table->count,
                                     [SECTION_SLOTS] = table->slot_count,
                                     [SECTION_MERGES] = merges->slot_count,
                                     [SECTION_JOINS] = tokenizer->byte_words.usable,
                                     [SECTION_TEXTS] = table->text_size},
                          .key = table->key,
                          .merge_key = merges->key,
                          .merge_count = merges->count,
                          .is_bpe = !tokenizer->is_wordpiece};
    const void *sections[SECTIONS] = {
        NULL, table->entries, table->by_id, table->slots, merges->slots, &tokenizer->byte_words.joins, table->texts};

    FORELOOP_TRY(put(out, &head, sizeof head, error));                /* known at the end */
    FORELOOP_TRY(foreloop_sections_append(out, start, "", 0, error)); /* the place of the first */
    head.counts[SECTION_REST] = out->size;
    FORELOOP_TRY(put_rest(tokenizer, source, size, out, error));
    head.counts[SECTION_REST] = out->size - head.counts[SECTION_REST];
    for (int i = SECTION_ENTRIES; i < SECTIONS; i++) {
        const size_t bytes = (size_t)head.counts[i] * element_sizes[i];
        FORELOOP_TRY(foreloop_sections_append(out, start, bytes > 0 ? sections[i] : "", bytes, error));
    }
    memcpy(out->data + start, &head, sizeof head);
    return FORELOOP_OK;
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

bool foreloop_tokenizer_attach(foreloop_tokenizer *tokenizer, const void *data, size_t size, foreloop_text *rest) {
    foreloop_token_table *table = &tokenizer->vocabulary;
    foreloop_merge_table *merges = &tokenizer->bpe.merges;
    const void *sections[SECTIONS];
    compiled_head head;

    if (size < sizeof head || (uintptr_t)data % sizeof(uint64_t) != 0)
        return false;
    memcpy(&head, data, sizeof head);
    if (!foreloop_sections_find(data, size, sizeof head, head.counts, element_sizes, sections, SECTIONS) ||
        head.counts[SECTION_BY_ID] != head.counts[SECTION_ENTRIES] || head.counts[SECTION_ENTRIES] >= UINT32_MAX - 1 ||
        head.counts[SECTION_TEXTS] > UINT32_MAX)
        return false;
    table->entries = sections[SECTION_ENTRIES];
    table->by_id = sections[SECTION_BY_ID];
    table->slots = sections[SECTION_SLOTS];
    table->texts = sections[SECTION_TEXTS];
    table->count = (size_t)head.counts[SECTION_ENTRIES];
    table->slot_count = (size_t)head.counts[SECTION_SLOTS];
    table->text_size = (size_t)head.counts[SECTION_TEXTS];
    table->key = head.key;
    if (head.is_bpe) {
        merges->slots = sections[SECTION_MERGES];
        merges->slot_count = (size_t)head.counts[SECTION_MERGES];
        merges->count = (size_t)head.merge_count;
        merges->key = head.merge_key;
    }
    if (head.counts[SECTION_JOINS] == 1) {
        memcpy(&tokenizer->byte_words.joins, sections[SECTION_JOINS], sizeof tokenizer->byte_words.joins);
        tokenizer->byte_words.has_joins = true;
    }
    rest->text = sections[SECTION_REST];
    rest->length = (size_t)head.counts[SECTION_REST];
    return foreloop_token_table_is_sound(table) &&
           (!head.is_bpe || foreloop_merge_table_is_sound(merges, table->count));
}
