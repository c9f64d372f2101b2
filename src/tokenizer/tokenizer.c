/* The tokenizer's public functions but for those of encodings: opening, and the vocabulary. */
#include "tokenizer/tokenizer.h"
#include "common/file.h"
#include "common/sized.h"
#include "kernels_cpu/cpu.h"
#include <string.h>

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

static foreloop_tokenizer *create(const foreloop_allocator *allocator, foreloop_tier tier) {
    foreloop_tokenizer *created = foreloop_allocate_zeroed(allocator, 1, sizeof *created);

    if (!created)
        return NULL;
    created->allocator = *allocator;
    created->tier = tier;
    created->arena.allocator = &created->allocator;
    created->vocabulary.allocator = &created->allocator;
    created->bpe.allocator = &created->allocator;
    created->bpe.merges.allocator = &created->allocator;
    created->added.allocator = &created->allocator;
    created->added.arena = &created->arena;
    created->added.table.allocator = &created->allocator;
    return created;
}

/* Reads the document, and gives the tokenizer away or closes it. */
static foreloop_status finish_opening(foreloop_tokenizer *created, const void *data, size_t size, const char *name,
                                      foreloop_tokenizer **tokenizer, foreloop_error *error) {
    foreloop_status status = foreloop_tokenizer_read(created, data, size, name, error);
    if (status == FORELOOP_OK)
        *tokenizer = created;
    else
        foreloop_tokenizer_close(created);
    return status;
}

foreloop_status foreloop_tokenizer_open_named(foreloop_tokenizer **tokenizer, const void *data, size_t size,
                                              const char *name, const foreloop_allocator *allocator, foreloop_tier tier,
                                              foreloop_error *error) {
    foreloop_tokenizer *created = create(allocator, tier);
    if (!created)
        return foreloop_fail_memory(error, 1, sizeof *created, "a tokenizer");
    return finish_opening(created, data, size, name, tokenizer, error);
}

foreloop_status foreloop_tokenizer_open_compiled(foreloop_tokenizer **tokenizer, const void *data, size_t size,
                                                 const char *name, const foreloop_allocator *allocator,
                                                 foreloop_tier tier, foreloop_error *error) {
    foreloop_tokenizer *created = create(allocator, tier);
    foreloop_text rest;
    if (!created)
        return foreloop_fail_memory(error, 1, sizeof *created, "a tokenizer");
    if (foreloop_tokenizer_attach(created, data, size, &rest))
        return finish_opening(created, rest.text, rest.length, name, tokenizer, error);
    foreloop_tokenizer_close(created);
    return foreloop_fail(error, FORELOOP_ERROR_FORMAT, "%s: its compiled form is damaged: pack the model again", name);
}

foreloop_status foreloop_tokenizer_open_memory(foreloop_tokenizer **tokenizer, const void *data, size_t size,
                                               const foreloop_options *options, foreloop_error *error) {
    foreloop_options own;
    if (!tokenizer || (!data && size > 0))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_tokenizer_open_memory: an argument is NULL");
    FORELOOP_TRY(foreloop_sized_read(&own, sizeof own, options, "foreloop_options", error));
    foreloop_allocator allocator = foreloop_allocator_or_default(own.allocator);
    return foreloop_tokenizer_open_named(tokenizer, data, size, "tokenizer.json", &allocator,
                                         foreloop_cpu_tier(own.tier), error);
}

foreloop_status foreloop_tokenizer_open(foreloop_tokenizer **tokenizer, const char *path,
                                        const foreloop_options *options, foreloop_error *error) {
    foreloop_options own;
    foreloop_file file = {0};
    foreloop_status status;

    if (!tokenizer || !path)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_tokenizer_open: an argument is NULL");
    FORELOOP_TRY(foreloop_sized_read(&own, sizeof own, options, "foreloop_options", error));
    foreloop_allocator allocator = foreloop_allocator_or_default(own.allocator);
    FORELOOP_TRY(foreloop_file_open(&file, path, &allocator, own.read_into_memory != 0, error));
    status = foreloop_tokenizer_open_named(tokenizer, file.data, file.size, path, &allocator,
                                           foreloop_cpu_tier(own.tier), error);
    foreloop_file_close(&file);
    return status;
}

void foreloop_tokenizer_close(foreloop_tokenizer *tokenizer) {
    foreloop_allocator allocator;
    if (!tokenizer)
        return;
    allocator = tokenizer->allocator;
    foreloop_bpe_close(&tokenizer->bpe);
    foreloop_added_tokens_close(&tokenizer->added);
    foreloop_release(&allocator, tokenizer->normalizer.steps);
    foreloop_release(&allocator, tokenizer->pretokenizer.steps);
    foreloop_release(&allocator, tokenizer->post_processor.trims);
    foreloop_release(&allocator, tokenizer->post_processor.items);
    foreloop_release(&allocator, tokenizer->decoder.steps);
    foreloop_token_table_close(&tokenizer->vocabulary);
    foreloop_arena_close(&tokenizer->arena);
    foreloop_release(&allocator, tokenizer);
}

/* ---- Vocabulary -------------------------------------------------------------------------------------------------- */

/* The largest id + 1. */
static size_t id_bound(const foreloop_token_table *table) {
    return table->count == 0 ? 0 : (size_t)table->entries[table->by_id[table->count - 1]].id + 1;
}

size_t foreloop_tokenizer_vocabulary_size(const foreloop_tokenizer *tokenizer) {
    size_t model, added;
    if (!tokenizer)
        return 0;
    model = id_bound(&tokenizer->vocabulary);
    added = id_bound(&tokenizer->added.table);
    return model > added ? model : added;
}

/* The text of an id's token, as it stands in the vocabulary; text NULL for an id without one. */
static foreloop_text token_of(const foreloop_tokenizer *tokenizer, uint32_t id) {
    const foreloop_token_table *table = &tokenizer->added.table;
    uint32_t index = foreloop_token_table_find_id(table, id);
    if (index == FORELOOP_NO_TOKEN) {
        table = &tokenizer->vocabulary;
        index = foreloop_token_table_find_id(table, id);
    }
    if (index == FORELOOP_NO_TOKEN)
        return (foreloop_text){NULL, 0};
    return (foreloop_text){foreloop_token_text(table, index), table->entries[index].length};
}

const char *foreloop_tokenizer_token(const foreloop_tokenizer *tokenizer, uint32_t id) {
    return tokenizer ? token_of(tokenizer, id).text : NULL;
}

int foreloop_tokenizer_find(const foreloop_tokenizer *tokenizer, const char *token, uint32_t *id) {
    const foreloop_token_table *table;
    uint32_t index;
    if (!tokenizer || !token || !id)
        return 0;
    table = &tokenizer->added.table;
    index = foreloop_token_table_find(table, token, strlen(token));
    if (index == FORELOOP_NO_TOKEN) {
        table = &tokenizer->vocabulary;
        index = foreloop_token_table_find(table, token, strlen(token));
    }
    if (index == FORELOOP_NO_TOKEN)
        return 0;
    *id = table->entries[index].id;
    return 1;
}

/* ---- Decoding ---------------------------------------------------------------------------------------------------- */

static bool is_special(const foreloop_tokenizer *tokenizer, foreloop_text token) {
    const uint32_t index = foreloop_token_table_find(&tokenizer->added.table, token.text, token.length);
    return index != FORELOOP_NO_TOKEN && tokenizer->added.tokens[index].special;
}

static foreloop_status decode(const foreloop_tokenizer *tokenizer, const uint32_t *ids, size_t count, bool skip_special,
                              foreloop_pieces_text *pieces, foreloop_error *error) {
    for (size_t i = 0; i < count; i++) {
        const foreloop_text token = token_of(tokenizer, ids[i]);
        if (!token.text)
            return foreloop_fail(error, FORELOOP_ERROR_VALUE, "no token has the id %lu, item %zu of what is decoded",
                                 (unsigned long)ids[i], i);
        if (!skip_special || !is_special(tokenizer, token))
            FORELOOP_TRY(foreloop_pieces_text_add(pieces, token.text, token.length, error));
    }
    return pieces->count > 0 ? foreloop_decoder_run(&tokenizer->decoder, pieces, error) : FORELOOP_OK;
}

foreloop_status foreloop_tokenizer_decode(const foreloop_tokenizer *tokenizer, const uint32_t *ids, size_t count,
                                          int skip_special, char *text, size_t capacity, size_t *length,
                                          foreloop_error *error) {
    foreloop_pieces_text pieces;
    foreloop_status status;

    if (!tokenizer || (!ids && count > 0) || (!text && capacity > 0) || !length)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_tokenizer_decode: an argument is NULL");
    pieces = (foreloop_pieces_text){.bytes = {.allocator = &tokenizer->allocator}};
    status = decode(tokenizer, ids, count, skip_special != 0, &pieces, error);
    if (status == FORELOOP_OK && text && pieces.bytes.size > capacity)
        status = foreloop_fail(error, FORELOOP_ERROR_LIMIT, "the text has %zu bytes, the buffer room for %zu",
                               pieces.bytes.size, capacity);
    if (status == FORELOOP_OK) {
        *length = pieces.bytes.size;
        if (text && pieces.bytes.size > 0)
            memcpy(text, pieces.bytes.data, pieces.bytes.size);
    }
    foreloop_pieces_text_close(&pieces);
    return status;
}
