/* Encodings: foreloop_tokenize as the pipeline that the other files of this folder make up, and windows of its result.
 */
#include "common/sized.h"
#include "tokenizer/tokenizer.h"
#include <string.h>

/* ---- Encodings --------------------------------------------------------------------------------------------------- */

foreloop_status foreloop_encoding_create(foreloop_encoding **encoding, const foreloop_tokenizer *tokenizer,
                                         foreloop_error *error) {
    foreloop_encoding *created;
    if (!encoding || !tokenizer)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_encoding_create: an argument is NULL");
    created = foreloop_allocate_zeroed(&tokenizer->allocator, 1, sizeof *created);
    if (!created)
        return foreloop_fail_memory(error, 1, sizeof *created, "an encoding");
    created->tokenizer = tokenizer;
    foreloop_workspace_init(&created->work, &tokenizer->allocator);
    *encoding = created;
    return FORELOOP_OK;
}

void foreloop_encoding_close(foreloop_encoding *encoding) {
    const foreloop_allocator *allocator;
    if (!encoding)
        return;
    allocator = &encoding->tokenizer->allocator;
    foreloop_workspace_close(&encoding->work);
    foreloop_bpe_scratch_close(&encoding->bpe, allocator);
    foreloop_word_cache_close(&encoding->cache, allocator);
    foreloop_release(allocator, encoding->word_tokens.items);
    foreloop_token_list_close(&encoding->sequence, allocator);
    foreloop_token_list_close(&encoding->result, allocator);
    foreloop_release(allocator, encoding->as_first);
    foreloop_release(allocator, encoding->windows);
    foreloop_release(allocator, encoding);
}

size_t foreloop_encoding_count(const foreloop_encoding *encoding) {
    return encoding && encoding->window_count > 0 ? encoding->windows[0].count : 0;
}

const uint32_t *foreloop_encoding_ids(const foreloop_encoding *encoding) {
    return encoding ? encoding->result.ids : NULL;
}

const size_t *foreloop_encoding_offsets(const foreloop_encoding *encoding) {
    return encoding ? encoding->result.offsets : NULL;
}

size_t foreloop_encoding_window_count(const foreloop_encoding *encoding) {
    return encoding ? encoding->window_count : 0;
}

int foreloop_encoding_window(const foreloop_encoding *encoding, size_t index, foreloop_window *window) {
    const foreloop_window_range *range;
    foreloop_window full;
    if (!encoding || !window || index >= encoding->window_count)
        return 0;
    range = &encoding->windows[index];
    full = (foreloop_window){.ids = encoding->result.ids ? encoding->result.ids + range->first : NULL,
                             .offsets = encoding->result.offsets ? encoding->result.offsets + 2 * range->first : NULL,
                             .count = range->count,
                             .content_begin = range->content_begin,
                             .content_end = range->content_end};
    foreloop_sized_write(window, &full, sizeof full);
    return 1;
}

/* ---- The text's own tokens --------------------------------------------------------------------------------------- */

/* Where the tokens of a text go. */
typedef struct token_sink {
    foreloop_encoding *encoding;
    foreloop_text input;
    foreloop_token_list *list;
    size_t first;       /* the text's first token in the list */
    bool with_as_first; /* encoding->as_first is wanted */
} token_sink;

static foreloop_status add_token(const token_sink *sink, uint32_t id, foreloop_span span, uint32_t leading,
                                 uint32_t trailing, foreloop_error *error) {
    foreloop_encoding *encoding = sink->encoding;
    const foreloop_post_processor *processor = &encoding->tokenizer->post_processor;
    const foreloop_allocator *allocator = &encoding->tokenizer->allocator;
    const size_t number = sink->list->count - sink->first;
    const foreloop_span own = foreloop_post_processor_trim(processor, sink->input.text, sink->input.length, span,
                                                           leading, trailing, number == 0);

    if (sink->with_as_first) {
        FORELOOP_TRY(foreloop_reserve_one(allocator, &encoding->as_first, &encoding->as_first_capacity, number,
                                          sizeof *encoding->as_first, error));
        encoding->as_first[number] = foreloop_post_processor_trim(processor, sink->input.text, sink->input.length, span,
                                                                  leading, trailing, true);
    }
    return foreloop_token_list_add(sink->list, allocator, id, own, error);
}

/* Runs the model on one word and adds its tokens with their place in the input. */
static foreloop_status add_word(const token_sink *sink, foreloop_piece piece, foreloop_error *error) {
    foreloop_encoding *encoding = sink->encoding;
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
        foreloop_span span = {foreloop_aligned_span(text, piece.begin + token->begin).begin,
                              foreloop_aligned_span(text, piece.begin + token->end - 1).end};
        uint32_t leading = 0, trailing = 0;
        if (tokenizer->post_processor.trim_count > 0)
            foreloop_count_edge_spaces(tokenizer->vocabulary.texts + entry->begin, entry->length, &leading, &trailing);
        FORELOOP_TRY(add_token(sink, entry->id, span, leading, trailing, error));
    }
    return FORELOOP_OK;
}

static foreloop_status add_text(const token_sink *sink, foreloop_error *error) {
    foreloop_encoding *encoding = sink->encoding;
    const foreloop_tokenizer *tokenizer = encoding->tokenizer;
    foreloop_workspace *work = &encoding->work;
    const bool by_bytes = tokenizer->byte_words.usable && !sink->with_as_first;
    const size_t steps = by_bytes                    ? tokenizer->byte_words.steps
                         : tokenizer->has_bert_words ? 0
                                                     : tokenizer->pretokenizer.count;
    const foreloop_bert_run bert_run = {.wordpiece = &tokenizer->wordpiece,
                                        .cache = &encoding->cache,
                                        .tokens = &encoding->word_tokens,
                                        .text = &work->text,
                                        .list = sink->list};
    foreloop_byte_run run = {.words = &tokenizer->byte_words,
                             .bpe = &tokenizer->bpe,
                             .processor = &tokenizer->post_processor,
                             .scratch = &encoding->bpe,
                             .cache = &encoding->cache,
                             .long_tokens = &encoding->word_tokens,
                             .text = &work->text,
                             .input = sink->input,
                             .list = sink->list,
                             .first = sink->first};

    FORELOOP_TRY(foreloop_workspace_begin(work, sink->input.text, sink->input.length, error));
    FORELOOP_TRY(foreloop_added_tokens_split(&tokenizer->added.raw, work, error));
    FORELOOP_TRY(foreloop_normalizer_run(&tokenizer->normalizer, work, error));
    FORELOOP_TRY(foreloop_added_tokens_split(&tokenizer->added.normalized, work, error));
    FORELOOP_TRY(foreloop_pretokenizer_run(&tokenizer->pretokenizer, steps, work, error));
    run.plain_words = work->text.is_input && run.words->by_pattern && run.processor->trim_count <= 1;
    for (size_t i = 0; i < work->pieces.count; i++) {
        foreloop_piece piece = work->pieces.items[i];
        const foreloop_span span = {piece.begin, piece.end};
        if (piece.is_token)
            FORELOOP_TRY(add_token(sink, piece.id, span, piece.leading, piece.trailing, error));
        else if (by_bytes)
            FORELOOP_TRY(foreloop_byte_words_encode(&run, piece.begin, piece.end, error));
        else if (tokenizer->has_bert_words)
            FORELOOP_TRY(foreloop_bert_words_encode(&bert_run, piece.begin, piece.end, error));
        else if (piece.begin < piece.end)
            FORELOOP_TRY(add_word(sink, piece, error));
    }
    return FORELOOP_OK;
}

/* ---- Results ----------------------------------------------------------------------------------------------------- */

/* The post-processor's items, or the text alone. */
static size_t template_of(const foreloop_tokenizer *tokenizer, const foreloop_template_item **items) {
    static const foreloop_template_item plain = {true, 0};
    const foreloop_post_processor *processor = &tokenizer->post_processor;
    *items = processor->item_count > 0 ? processor->items : &plain;
    return processor->item_count > 0 ? processor->item_count : 1;
}

static foreloop_status copy_tokens(foreloop_token_list *to, const foreloop_token_list *from, size_t begin, size_t end,
                                   const foreloop_allocator *allocator, foreloop_error *error) {
    const size_t count = end - begin;
    FORELOOP_TRY(foreloop_token_list_reserve(to, allocator, count, error));
    if (count == 0)
        return FORELOOP_OK;
    /* `from` may be `to`, which the reservation may have moved. */
    memcpy(to->ids + to->count, from->ids + begin, count * sizeof *to->ids);
    memcpy(to->offsets + 2 * to->count, from->offsets + 2 * begin, 2 * count * sizeof *to->offsets);
    to->count += count;
    return FORELOOP_OK;
}

static foreloop_status add_window(foreloop_encoding *encoding, size_t first, foreloop_error *error) {
    const size_t count = encoding->result.count - first;
    FORELOOP_TRY(foreloop_reserve_one(&encoding->tokenizer->allocator, &encoding->windows, &encoding->window_capacity,
                                      encoding->window_count, sizeof *encoding->windows, error));
    encoding->windows[encoding->window_count++] =
        (foreloop_window_range){.first = first, .count = count, .content_end = count};
    return FORELOOP_OK;
}

/* The whole text as one window: its tokens go where they stay. */
static foreloop_status compose_whole(foreloop_encoding *encoding, foreloop_text input, bool add_special,
                                     foreloop_error *error) {
    const foreloop_allocator *allocator = &encoding->tokenizer->allocator;
    foreloop_token_list *result = &encoding->result;
    token_sink sink = {.encoding = encoding, .input = input, .list = result};
    const foreloop_template_item *items;
    const size_t item_count = template_of(encoding->tokenizer, &items);
    const foreloop_span nowhere = {0, 0};
    size_t end = 0;
    bool done = false;

    for (size_t i = 0; i < item_count; i++) {
        if (!items[i].is_sequence) {
            if (add_special)
                FORELOOP_TRY(foreloop_token_list_add(result, allocator, items[i].id, nowhere, error));
        } else if (done) {
            FORELOOP_TRY(copy_tokens(result, result, sink.first, end, allocator, error));
        } else {
            sink.first = result->count;
            FORELOOP_TRY(add_text(&sink, error));
            end = result->count;
            done = true;
        }
    }
    return add_window(encoding, 0, error);
}

/* One window of sequence[begin .. end) with its special tokens. */
static foreloop_status compose_window(foreloop_encoding *encoding, size_t begin, size_t end, bool add_special,
                                      bool with_as_first, foreloop_error *error) {
    const foreloop_allocator *allocator = &encoding->tokenizer->allocator;
    foreloop_token_list *result = &encoding->result;
    const size_t first = result->count;
    const foreloop_template_item *items;
    const size_t item_count = template_of(encoding->tokenizer, &items);
    const foreloop_span nowhere = {0, 0};

    for (size_t i = 0; i < item_count; i++) {
        const size_t at = result->count;
        if (!items[i].is_sequence) {
            if (add_special)
                FORELOOP_TRY(foreloop_token_list_add(result, allocator, items[i].id, nowhere, error));
            continue;
        }
        FORELOOP_TRY(copy_tokens(result, &encoding->sequence, begin, end, allocator, error));
        if (with_as_first && begin < end) {
            result->offsets[2 * at] = encoding->as_first[begin].begin;
            result->offsets[2 * at + 1] = encoding->as_first[begin].end;
        }
    }
    return add_window(encoding, first, error);
}

/* Pads the last window to `length`. */
static foreloop_status pad_window(foreloop_encoding *encoding, const foreloop_padding *padding, size_t length,
                                  foreloop_error *error) {
    foreloop_window_range *window = &encoding->windows[encoding->window_count - 1];
    foreloop_token_list *result = &encoding->result;
    const foreloop_span nowhere = {0, 0};
    const size_t extra = window->count < length ? length - window->count : 0;

    FORELOOP_TRY(foreloop_token_list_reserve(result, &encoding->tokenizer->allocator, extra, error));
    for (size_t i = 0; i < extra; i++)
        foreloop_token_list_put(result, padding->id, nowhere);
    if (extra > 0 && padding->on_left) {
        uint32_t *ids = result->ids + window->first;
        size_t *offsets = result->offsets + 2 * window->first;
        memmove(ids + extra, ids, window->count * sizeof *ids);
        memmove(offsets + 2 * extra, offsets, 2 * window->count * sizeof *offsets);
        for (size_t i = 0; i < extra; i++) {
            ids[i] = padding->id;
            offsets[2 * i] = offsets[2 * i + 1] = 0;
        }
        window->content_begin = extra;
        window->content_end = extra + window->count;
    }
    window->count += extra;
    return FORELOOP_OK;
}

/* The length of windows after padding. */
static size_t padded_length(const foreloop_padding *padding, size_t first_length) {
    size_t length = padding->fixed ? padding->length : first_length;
    if (padding->multiple > 0 && length % padding->multiple > 0)
        length += padding->multiple - length % padding->multiple;
    return padding->present ? length : 0;
}

/* Tokens of text that a window holds, from the length that it has with its special tokens. */
static foreloop_status content_length(const foreloop_encoding *encoding, const foreloop_truncation *truncation,
                                      bool add_special, size_t *length, foreloop_error *error) {
    const foreloop_template_item *items;
    const size_t item_count = template_of(encoding->tokenizer, &items);
    size_t special = 0, sequences = 0;

    for (size_t i = 0; i < item_count; i++) {
        special += !items[i].is_sequence;
        sequences += items[i].is_sequence;
    }
    if (sequences != 1)
        return foreloop_fail(error, FORELOOP_ERROR_UNSUPPORTED,
                             "truncation and padding of a template that has the text %zu times are not supported",
                             sequences);
    if (!truncation->present)
        return FORELOOP_OK;
    special = add_special ? special : 0;
    /* A file may ask for windows of nothing but special tokens. */
    const bool has_room = truncation->max_length > special ? truncation->stride < truncation->max_length - special
                                                           : truncation->from_file && truncation->max_length == special;
    if (!has_room)
        return foreloop_fail(
            error, FORELOOP_ERROR_VALUE,
            "windows of %zu tokens have no room for %zu special tokens and more than the %zu that they "
            "share; make them longer",
            truncation->max_length, special, truncation->stride);
    *length = truncation->max_length - special;
    return FORELOOP_OK;
}

static foreloop_status compose_windows(foreloop_encoding *encoding, foreloop_text input, bool add_special,
                                       const foreloop_truncation *truncation, const foreloop_padding *padding,
                                       foreloop_error *error) {
    const foreloop_post_processor *processor = &encoding->tokenizer->post_processor;
    token_sink sink = {.encoding = encoding, .input = input, .list = &encoding->sequence};
    size_t length = SIZE_MAX, count, at, target = 0;
    bool more = true;

    for (size_t i = 0; i < processor->trim_count; i++)
        sink.with_as_first = sink.with_as_first || processor->trims[i];
    FORELOOP_TRY(content_length(encoding, truncation, add_special, &length, error));
    FORELOOP_TRY(add_text(&sink, error));
    count = encoding->sequence.count;
    if (count > length && truncation->second_only)
        return foreloop_fail(error, FORELOOP_ERROR_UNSUPPORTED,
                             "the truncation strategy OnlySecond needs a second text, and the only one has %zu tokens",
                             count);
    for (at = truncation->from_end ? count : 0; more;) {
        size_t begin = at, end = length < count - begin ? begin + length : count;
        if (truncation->from_end) {
            end = at;
            begin = end > length ? end - length : 0;
            more = begin > 0;
            at -= length - truncation->stride < at ? length - truncation->stride : at;
        } else {
            more = end < count;
            at += length - truncation->stride;
        }
        if (length == 0) { /* as in the reference: an empty window, then all of it */
            more = encoding->window_count == 0 && count > 0;
            begin = 0;
            end = encoding->window_count == 0 ? 0 : count;
        }
        FORELOOP_TRY(compose_window(encoding, begin, end, add_special, sink.with_as_first, error));
        if (encoding->window_count == 1)
            target = padded_length(padding, encoding->windows[0].count);
        FORELOOP_TRY(pad_window(encoding, padding, target, error));
    }
    return FORELOOP_OK;
}

/* ---- Tokenizing -------------------------------------------------------------------------------------------------- */

static foreloop_status check_utf8(foreloop_text input, foreloop_error *error) {
    const size_t valid = foreloop_utf8_valid_prefix(input.text, input.length);
    return valid == input.length ? FORELOOP_OK
                                 : foreloop_fail_at(error, FORELOOP_ERROR_FORMAT, FORELOOP_POSITION_BYTE, valid,
                                                    "the text is not UTF-8: byte %zu begins no character", valid);
}

static foreloop_status tokenize(foreloop_encoding *encoding, foreloop_text input,
                                const foreloop_tokenize_options *options, foreloop_error *error) {
    const foreloop_tokenizer *tokenizer = encoding->tokenizer;
    const bool add_special = !options->no_special;
    foreloop_truncation truncation = {
        .present = options->window_length > 0, .max_length = options->window_length, .stride = options->window_overlap};
    foreloop_padding padding = {.present = false};

    if (options->as_file) {
        truncation = tokenizer->truncation;
        padding = tokenizer->padding;
    }
    if (options->strict)
        FORELOOP_TRY(check_utf8(input, error));
    return truncation.present || padding.present
               ? compose_windows(encoding, input, add_special, &truncation, &padding, error)
               : compose_whole(encoding, input, add_special, error);
}

void foreloop_tokenize_options_init(foreloop_tokenize_options *options, size_t size) {
    foreloop_sized_init(options, size);
}

foreloop_status foreloop_tokenize_with(foreloop_encoding *encoding, const char *text, size_t length,
                                       const foreloop_tokenize_options *options, foreloop_error *error) {
    const foreloop_text input = {length > 0 ? text : "", length};
    foreloop_tokenize_options own;
    foreloop_status status;

    if (!encoding || (!text && length > 0))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_tokenize: an argument is NULL");
    FORELOOP_TRY(foreloop_sized_read(&own, sizeof own, options, "foreloop_tokenize_options", error));
    if (own.as_file && own.window_length > 0)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "foreloop_tokenize_options: as_file and window_length exclude each other");
    encoding->sequence.count = 0;
    encoding->result.count = 0;
    encoding->window_count = 0;
    status = tokenize(encoding, input, &own, error);
    if (status != FORELOOP_OK) {
        encoding->result.count = 0;
        encoding->window_count = 0;
    }
    return status;
}

foreloop_status foreloop_tokenize(foreloop_encoding *encoding, const char *text, size_t length, int add_special,
                                  foreloop_error *error) {
    const foreloop_tokenize_options options = {.size = sizeof options, .no_special = !add_special};
    return foreloop_tokenize_with(encoding, text, length, &options, error);
}
