/* Text with alignments to the input, its pieces, and the two kinds of passes over them. */
#include "tokenizer/aligned_text.h"
#include <string.h>

void foreloop_aligned_close(foreloop_aligned_text *text) {
    foreloop_release(text->allocator, text->bytes);
    foreloop_release(text->allocator, text->spans);
    memset(text, 0, sizeof *text);
}

foreloop_status foreloop_aligned_reserve(foreloop_aligned_text *text, size_t extra, foreloop_error *error) {
    size_t needed = text->size + extra;
    if (extra > FORELOOP_TEXT_LIMIT - text->size)
        return foreloop_fail(error, FORELOOP_ERROR_LIMIT,
                             "the text grows beyond %zu bytes in the tokenizer: give it in parts", FORELOOP_TEXT_LIMIT);
    if (needed <= text->byte_capacity && needed <= text->span_capacity)
        return FORELOOP_OK;
    FORELOOP_TRY(foreloop_reserve(text->allocator, &text->bytes, &text->byte_capacity, text->size, needed, 1, error));
    return foreloop_reserve(text->allocator, &text->spans, &text->span_capacity, text->size, needed,
                            sizeof *text->spans, error);
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

foreloop_status foreloop_aligned_copy(foreloop_aligned_text *text, const foreloop_aligned_text *source, size_t begin,
                                      size_t end, foreloop_error *error) {
    size_t length = end - begin;
    FORELOOP_TRY(foreloop_aligned_reserve(text, length, error));
    if (length > 0) {
        memcpy(text->bytes + text->size, source->bytes + begin, length);
        memcpy(text->spans + text->size, source->spans + begin, length * sizeof *text->spans);
        text->size += length;
    }
    return FORELOOP_OK;
}

foreloop_status foreloop_aligned_import(foreloop_aligned_text *text, const char *input, size_t length,
                                        foreloop_error *error) {
    text->size = 0;
    FORELOOP_TRY(foreloop_aligned_reserve(text, length, error));
    for (size_t position = 0; position < length;) {
        uint32_t code_point;
        size_t size;
        bool valid = foreloop_utf8_decode(input + position, length - position, &code_point, &size);
        foreloop_span span = {(uint32_t)position, (uint32_t)(position + size)};
        if (valid && size == 1 && text->size < text->span_capacity && text->size < text->byte_capacity)
            foreloop_aligned_put_byte(text, input[position], span);
        else
            FORELOOP_TRY(foreloop_aligned_append_bytes(text, valid ? input + position : "\xEF\xBF\xBD",
                                                       valid ? size : 3, span, error));
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
}

foreloop_status foreloop_workspace_begin(foreloop_workspace *work, const char *input, size_t length,
                                         foreloop_error *error) {
    foreloop_piece whole = {0};
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
    foreloop_aligned_text text;

    work->next_text.size = 0;
    for (size_t i = 0; i < work->pieces.count; i++) {
        foreloop_piece *piece = &work->pieces.items[i];
        size_t begin = work->next_text.size;
        if (piece->is_token)
            continue;
        FORELOOP_TRY(rewrite(context, work, piece->begin, piece->end, error));
        piece->begin = (uint32_t)begin;
        piece->end = (uint32_t)work->next_text.size;
    }
    text = work->text;
    work->text = work->next_text;
    work->next_text = text;
    return FORELOOP_OK;
}
