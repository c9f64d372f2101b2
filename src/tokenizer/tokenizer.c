/* The tokenizer's public functions, and foreloop_tokenize as the pipeline that the other files of this folder make up.
 */
#include "tokenizer/tokenizer.h"
#include "common/file.h"
#include "common/sized.h"
#include <string.h>

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

foreloop_status foreloop_tokenizer_open_named(foreloop_tokenizer **tokenizer, const void *data, size_t size,
                                              const char *name, const foreloop_allocator *allocator,
                                              foreloop_error *error) {
    foreloop_tokenizer *opened = foreloop_allocate_zeroed(allocator, 1, sizeof *opened);
    foreloop_status status;

    if (!opened)
        return foreloop_fail_memory(error, 1, sizeof *opened, "a tokenizer");
    opened->allocator = *allocator;
    opened->arena.allocator = &opened->allocator;
    opened->vocabulary.allocator = &opened->allocator;
    opened->vocabulary.arena = &opened->arena;
    opened->bpe.allocator = &opened->allocator;
    opened->added.allocator = &opened->allocator;
    opened->added.table.allocator = &opened->allocator;
    opened->added.table.arena = &opened->arena;
    status = foreloop_tokenizer_read(opened, data, size, name, error);
    if (status != FORELOOP_OK) {
        foreloop_tokenizer_close(opened);
        return status;
    }
    *tokenizer = opened;
    return FORELOOP_OK;
}

foreloop_status foreloop_tokenizer_open_memory(foreloop_tokenizer **tokenizer, const void *data, size_t size,
                                               const foreloop_options *options, foreloop_error *error) {
    foreloop_options own;
    if (!tokenizer || (!data && size > 0))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_tokenizer_open_memory: NULL argument");
    FORELOOP_TRY(foreloop_sized_read(&own, sizeof own, options, "foreloop_options", error));
    foreloop_allocator allocator = foreloop_allocator_or_default(own.allocator);
    return foreloop_tokenizer_open_named(tokenizer, data, size, "tokenizer.json", &allocator, error);
}

foreloop_status foreloop_tokenizer_open(foreloop_tokenizer **tokenizer, const char *path,
                                        const foreloop_options *options, foreloop_error *error) {
    foreloop_options own;
    foreloop_file file = {0};
    foreloop_status status;

    if (!tokenizer || !path)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_tokenizer_open: NULL argument");
    FORELOOP_TRY(foreloop_sized_read(&own, sizeof own, options, "foreloop_options", error));
    foreloop_allocator allocator = foreloop_allocator_or_default(own.allocator);
    FORELOOP_TRY(foreloop_file_open(&file, path, &allocator, own.read_into_memory != 0, error));
    status = foreloop_tokenizer_open_named(tokenizer, file.data, file.size, path, &allocator, error);
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

const char *foreloop_tokenizer_token(const foreloop_tokenizer *tokenizer, uint32_t id) {
    const foreloop_token_table *table;
    uint32_t index;
    if (!tokenizer)
        return NULL;
    table = &tokenizer->added.table;
    index = foreloop_token_table_find_id(table, id);
    if (index == FORELOOP_NO_TOKEN) {
        table = &tokenizer->vocabulary;
        index = foreloop_token_table_find_id(table, id);
    }
    return index == FORELOOP_NO_TOKEN ? NULL : table->entries[index].text;
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

/* ---- Encodings --------------------------------------------------------------------------------------------------- */

foreloop_status foreloop_encoding_create(foreloop_encoding **encoding, const foreloop_tokenizer *tokenizer,
                                         foreloop_error *error) {
    foreloop_encoding *created;
    if (!encoding || !tokenizer)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_encoding_create: NULL argument");
    created = foreloop_allocate_zeroed(&tokenizer->allocator, 1, sizeof *created);
    if (!created)
        return foreloop_fail_memory(error, 1, sizeof *created, "an encoding");
    created->tokenizer = tokenizer;
    foreloop_workspace_init(&created->work, &tokenizer->allocator);
    *encoding = created;
    return FORELOOP_OK;
}

static void release_list(foreloop_token_list *list, const foreloop_allocator *allocator) {
    foreloop_release(allocator, list->ids);
    foreloop_release(allocator, list->offsets);
}

void foreloop_encoding_close(foreloop_encoding *encoding) {
    const foreloop_allocator *allocator;
    if (!encoding)
        return;
    allocator = &encoding->tokenizer->allocator;
    foreloop_workspace_close(&encoding->work);
    foreloop_bpe_scratch_close(&encoding->bpe, allocator);
    foreloop_release(allocator, encoding->word_tokens.items);
    release_list(&encoding->sequence, allocator);
    release_list(&encoding->result, allocator);
    foreloop_release(allocator, encoding);
}

size_t foreloop_encoding_count(const foreloop_encoding *encoding) {
    return encoding ? encoding->result.count : 0;
}

const uint32_t *foreloop_encoding_ids(const foreloop_encoding *encoding) {
    return encoding ? encoding->result.ids : NULL;
}

const size_t *foreloop_encoding_offsets(const foreloop_encoding *encoding) {
    return encoding ? encoding->result.offsets : NULL;
}

/* Makes room for `extra` more tokens. */
static foreloop_status reserve_tokens(foreloop_token_list *list, const foreloop_allocator *allocator, size_t extra,
                                      foreloop_error *error) {
    size_t needed = list->count + extra;
    if (extra > SIZE_MAX / 4 - list->count)
        return foreloop_fail_memory(error, extra, sizeof *list->offsets, "tokens");
    FORELOOP_TRY(
        foreloop_reserve(allocator, &list->ids, &list->id_capacity, list->count, needed, sizeof *list->ids, error));
    return foreloop_reserve(allocator, &list->offsets, &list->offset_capacity, 2 * list->count, 2 * needed,
                            sizeof *list->offsets, error);
}

static foreloop_status add_token(foreloop_token_list *list, const foreloop_allocator *allocator, uint32_t id,
                                 foreloop_span span, foreloop_error *error) {
    FORELOOP_TRY(reserve_tokens(list, allocator, 1, error));
    list->ids[list->count] = id;
    list->offsets[2 * list->count] = span.begin;
    list->offsets[2 * list->count + 1] = span.end;
    list->count++;
    return FORELOOP_OK;
}

/* ---- Tokenizing -------------------------------------------------------------------------------------------------- */

typedef struct input_text {
    const char *text;
    size_t length;
} input_text;

static foreloop_status add_piece_token(foreloop_encoding *encoding, input_text input, uint32_t id, foreloop_span span,
                                       uint32_t leading, uint32_t trailing, foreloop_error *error) {
    const foreloop_tokenizer *tokenizer = encoding->tokenizer;
    foreloop_token_list *list = &encoding->sequence;
    span = foreloop_post_processor_trim(&tokenizer->post_processor, input.text, input.length, span, leading, trailing,
                                        list->count == 0);
    return add_token(list, &tokenizer->allocator, id, span, error);
}

/* Runs the model on one word and adds its tokens with their place in the input. */
static foreloop_status add_word(foreloop_encoding *encoding, input_text input, foreloop_piece piece,
                                foreloop_error *error) {
    const foreloop_tokenizer *tokenizer = encoding->tokenizer;
    const foreloop_aligned_text *text = &encoding->work.text;
    foreloop_model_tokens *tokens = &encoding->word_tokens;
    const char *word = text->bytes + piece.begin;
    size_t length = piece.end - piece.begin;

    tokens->count = 0;
    if (tokenizer->is_wordpiece)
        FORELOOP_TRY(foreloop_wordpiece_tokenize(&tokenizer->wordpiece, word, length, tokens, error));
    else
        FORELOOP_TRY(foreloop_bpe_tokenize(&tokenizer->bpe, &encoding->bpe, word, length, tokens, error));
    for (size_t i = 0; i < tokens->count; i++) {
        const foreloop_model_token *token = &tokens->items[i];
        const foreloop_token_entry *entry = &tokenizer->vocabulary.entries[token->index];
        foreloop_span span = {text->spans[piece.begin + token->begin].begin,
                              text->spans[piece.begin + token->end - 1].end};
        uint32_t leading = 0, trailing = 0;
        if (tokenizer->post_processor.trim_count > 0)
            foreloop_count_edge_spaces(entry->text, entry->length, &leading, &trailing);
        FORELOOP_TRY(add_piece_token(encoding, input, entry->id, span, leading, trailing, error));
    }
    return FORELOOP_OK;
}

/* Puts the special tokens around the sequence. */
static foreloop_status compose(foreloop_encoding *encoding, bool add_special, foreloop_error *error) {
    static const foreloop_template_item plain = {true, 0};
    const foreloop_tokenizer *tokenizer = encoding->tokenizer;
    const foreloop_post_processor *processor = &tokenizer->post_processor;
    const foreloop_template_item *items = processor->item_count > 0 ? processor->items : &plain;
    size_t item_count = processor->item_count > 0 ? processor->item_count : 1;
    const foreloop_token_list *sequence = &encoding->sequence;
    foreloop_token_list *result = &encoding->result;
    const foreloop_span nowhere = {0, 0};

    for (size_t i = 0; i < item_count; i++) {
        if (!items[i].is_sequence) {
            if (add_special)
                FORELOOP_TRY(add_token(result, &tokenizer->allocator, items[i].id, nowhere, error));
            continue;
        }
        FORELOOP_TRY(reserve_tokens(result, &tokenizer->allocator, sequence->count, error));
        if (sequence->count > 0) {
            memcpy(result->ids + result->count, sequence->ids, sequence->count * sizeof *result->ids);
            memcpy(result->offsets + 2 * result->count, sequence->offsets,
                   2 * sequence->count * sizeof *result->offsets);
            result->count += sequence->count;
        }
    }
    return FORELOOP_OK;
}

static foreloop_status tokenize(foreloop_encoding *encoding, input_text input, bool add_special,
                                foreloop_error *error) {
    const foreloop_tokenizer *tokenizer = encoding->tokenizer;
    foreloop_workspace *work = &encoding->work;

    FORELOOP_TRY(foreloop_workspace_begin(work, input.text, input.length, error));
    FORELOOP_TRY(foreloop_added_tokens_split(&tokenizer->added.raw, work, error));
    FORELOOP_TRY(foreloop_normalizer_run(&tokenizer->normalizer, work, error));
    FORELOOP_TRY(foreloop_added_tokens_split(&tokenizer->added.normalized, work, error));
    FORELOOP_TRY(foreloop_pretokenizer_run(&tokenizer->pretokenizer, work, error));
    for (size_t i = 0; i < work->pieces.count; i++) {
        foreloop_piece piece = work->pieces.items[i];
        if (piece.is_token) {
            const foreloop_span span = {piece.begin, piece.end};
            FORELOOP_TRY(add_piece_token(encoding, input, piece.id, span, piece.leading, piece.trailing, error));
        } else if (piece.begin < piece.end) {
            FORELOOP_TRY(add_word(encoding, input, piece, error));
        }
    }
    return compose(encoding, add_special, error);
}

foreloop_status foreloop_tokenize(foreloop_encoding *encoding, const char *text, size_t length, int add_special,
                                  foreloop_error *error) {
    const input_text input = {text, length};
    foreloop_status status;

    if (!encoding || (!text && length > 0))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_tokenize: NULL argument");
    encoding->sequence.count = 0;
    encoding->result.count = 0;
    status = tokenize(encoding, input, add_special != 0, error);
    if (status != FORELOOP_OK)
        encoding->result.count = 0;
    return status;
}
