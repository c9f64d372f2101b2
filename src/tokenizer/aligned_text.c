/* Text with alignments to the input, its pieces, and the two kinds of passes over them. */
#include "tokenizer/aligned_text.h"
#include <string.h>

void foreloop_aligned_close(foreloop_aligned_text *text) {
    foreloop_release(text->allocator, text->own_bytes);
    foreloop_release(text->allocator, text->own_spans);
    memset(text, 0, sizeof *text);
}

void foreloop_aligned_clear(foreloop_aligned_text *text) {
    text->bytes = text->own_bytes;
    text->size = 0;
    text->is_input = false;
}

foreloop_status foreloop_aligned_reserve(foreloop_aligned_text *text, size_t extra, foreloop_error *error) {
    size_t needed = text->size + extra;
    if (extra > FORELOOP_TEXT_LIMIT - text->size)
        return foreloop_fail(error, FORELOOP_ERROR_LIMIT,
                             "the text grows beyond %zu bytes in the tokenizer: give it in parts", FORELOOP_TEXT_LIMIT);
    if (needed <= text->byte_capacity && needed <= text->span_capacity)
        return FORELOOP_OK;
    FORELOOP_TRY(
        foreloop_reserve(text->allocator, &text->own_bytes, &text->byte_capacity, text->size, needed, 1, error));
    text->bytes = text->own_bytes;
    return foreloop_reserve(text->allocator, &text->own_spans, &text->span_capacity, text->size, needed,
                            sizeof *text->own_spans, error);
}

foreloop_status foreloop_aligned_append_bytes(foreloop_aligned_text *text, const char *bytes, size_t length,
                                              foreloop_span span, foreloop_error *error) {
    FORELOOP_TRY(foreloop_aligned_reserve(text, length, error));
    for (size_t i = 0; i < length; i++)
        foreloop_aligned_put_byte(text, bytes[i], span);
    return FORELOOP_OK;
}

foreloop_status foreloop_aligned_append(foreloop_aligned_text *text, uint32_t code_point, foreloop_span span,
                                        foreloop_error *error) {
    char bytes[4];
    size_t length = foreloop_utf8_encode(code_point, bytes);
    return foreloop_aligned_append_bytes(text, bytes, length, span, error);
}

/* Whole characters of the input with their own places. */
static void copy_input(foreloop_aligned_text *text, const foreloop_aligned_text *source, size_t begin, size_t end) {
    while (begin < end) {
        const foreloop_span span = foreloop_aligned_span(source, begin);
        for (; begin < span.end && begin < end; begin++)
            foreloop_aligned_put_byte(text, source->bytes[begin], span);
    }
}

foreloop_status foreloop_aligned_copy(foreloop_aligned_text *text, const foreloop_aligned_text *source, size_t begin,
                                      size_t end, foreloop_error *error) {
    size_t length = end - begin;
    FORELOOP_TRY(foreloop_aligned_reserve(text, length, error));
    if (source->is_input) {
        copy_input(text, source, begin, end);
    } else if (length > 0) {
        memcpy(text->own_bytes + text->size, source->own_bytes + begin, length);
        memcpy(text->own_spans + text->size, source->own_spans + begin, length * sizeof *text->own_spans);
        text->size += length;
    }
    return FORELOOP_OK;
}

foreloop_status foreloop_aligned_import(foreloop_aligned_text *text, const char *input, size_t length,
                                        foreloop_error *error) {
    const foreloop_aligned_text whole = {.bytes = input, .size = length, .is_input = true};
    size_t position;

    foreloop_aligned_clear(text);
    if (length > FORELOOP_TEXT_LIMIT)
        return foreloop_aligned_reserve(text, length, error); /* which says why not */
    position = foreloop_utf8_valid_prefix(input, length);
    if (position == length) {
        text->bytes = input;
        text->size = length;
        text->is_input = true;
        return FORELOOP_OK;
    }
    FORELOOP_TRY(foreloop_aligned_reserve(text, length, error));
    copy_input(text, &whole, 0, position);
    while (position < length) {
        uint32_t code_point;
        size_t size;
        bool valid = foreloop_utf8_decode(input + position, length - position, &code_point, &size);
        foreloop_span span = {(uint32_t)position, (uint32_t)(position + size)};
        FORELOOP_TRY(foreloop_aligned_append_bytes(text, valid ? input + position : "\xEF\xBF\xBD", valid ? size : 3,
                                                   span, error));
        position += size;
    }
    return FORELOOP_OK;
}

void foreloop_workspace_init(foreloop_workspace *work, const foreloop_allocator *allocator) {
    memset(work, 0, sizeof *work);
    work->allocator = allocator;
    work->text.allocator = allocator;
    work->next_text.allocator = allocator;
}

void foreloop_workspace_close(foreloop_workspace *work) {
    foreloop_aligned_close(&work->text);
    foreloop_aligned_close(&work->next_text);
    foreloop_release(work->allocator, work->pieces.items);
    foreloop_release(work->allocator, work->next_pieces.items);
    foreloop_release(work->allocator, work->characters);
    foreloop_release(work->allocator, work->sorted);
    memset(work, 0, sizeof *work);
}

static void swap_pieces(foreloop_workspace *work) {
    foreloop_pieces pieces = work->pieces;
    work->pieces = work->next_pieces;
    work->next_pieces = pieces;
    work->pieces_swapped = !work->pieces_swapped;
}

static void swap_texts(foreloop_workspace *work) {
    foreloop_aligned_text text = work->text;
    work->text = work->next_text;
    work->next_text = text;
    work->texts_swapped = !work->texts_swapped;
}

foreloop_status foreloop_workspace_begin(foreloop_workspace *work, const char *input, size_t length,
                                         foreloop_error *error) {
    foreloop_piece whole = {0};
    /* Every text starts with the same buffers, so that the second one like it needs no larger ones. */
    if (work->texts_swapped)
        swap_texts(work);
    if (work->pieces_swapped)
        swap_pieces(work);
    work->pieces.count = 0;
    work->next_pieces.count = 0;
    FORELOOP_TRY(foreloop_aligned_import(&work->text, input, length, error));
    whole.end = (uint32_t)work->text.size;
    FORELOOP_TRY(foreloop_workspace_add(work, whole, error));
    swap_pieces(work);
    return FORELOOP_OK;
}

foreloop_status foreloop_workspace_add(foreloop_workspace *work, foreloop_piece piece, foreloop_error *error) {
    foreloop_pieces *pieces = &work->next_pieces;
    if (!piece.is_token && piece.begin >= piece.end)
        return FORELOOP_OK;
    FORELOOP_TRY(foreloop_reserve(work->allocator, &pieces->items, &pieces->capacity, pieces->count, pieces->count + 1,
                                  sizeof *pieces->items, error));
    pieces->items[pieces->count++] = piece;
    return FORELOOP_OK;
}

foreloop_status foreloop_workspace_split(foreloop_workspace *work, foreloop_split_function *split, const void *context,
                                         foreloop_error *error) {
    work->next_pieces.count = 0;
    for (size_t i = 0; i < work->pieces.count; i++) {
        foreloop_piece piece = work->pieces.items[i];
        if (piece.is_token)
            FORELOOP_TRY(foreloop_workspace_add(work, piece, error));
        else
            FORELOOP_TRY(split(context, work, piece, error));
    }
    swap_pieces(work);
    return FORELOOP_OK;
}

foreloop_status foreloop_workspace_rewrite(foreloop_workspace *work, foreloop_rewrite_function *rewrite,
                                           const void *context, foreloop_error *error) {
    foreloop_aligned_clear(&work->next_text);
    for (size_t i = 0; i < work->pieces.count; i++) {
        foreloop_piece *piece = &work->pieces.items[i];
        size_t begin = work->next_text.size;
        if (piece->is_token)
            continue;
        FORELOOP_TRY(rewrite(context, work, piece->begin, piece->end, error));
        piece->begin = (uint32_t)begin;
        piece->end = (uint32_t)work->next_text.size;
    }
    swap_texts(work);
    return FORELOOP_OK;
}

void foreloop_workspace_take(foreloop_workspace *work) {
    swap_texts(work);
    swap_pieces(work);
}
