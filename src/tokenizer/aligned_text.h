/*
 * Text under way through the pipeline: UTF-8 whose every byte knows which bytes of the input it stands for, and the
 * pieces that it is cut into. Every stage either rewrites the text piece by piece or cuts pieces into smaller ones.
 */
#ifndef FORELOOP_TOKENIZER_ALIGNED_TEXT_H
#define FORELOOP_TOKENIZER_ALIGNED_TEXT_H

#include "common/alloc.h"
#include "common/error.h"
#include "common/utf8.h"
#include <foreloop/foreloop.h>

/* A range of bytes. 32 bits, because there is one for each byte of text. */
typedef struct foreloop_span {
    uint32_t begin;
    uint32_t end;
} foreloop_span;

/* Longest input, and longest text after a stage; positions fit 32 bits with room for small sums. */
#define FORELOOP_TEXT_LIMIT ((size_t)1 << 31)

typedef struct foreloop_aligned_text {
    const foreloop_allocator *allocator;
    const char *bytes; /* valid UTF-8 */
    size_t size;
    bool is_input; /* the bytes are the input itself, and stand for themselves */
    char *own_bytes;
    foreloop_span *own_spans; /* for each byte: the input's bytes that its character stands for */
    size_t byte_capacity;
    size_t span_capacity;
} foreloop_aligned_text;

void foreloop_aligned_close(foreloop_aligned_text *text);

/* Replaces the content by the input: by the input itself, which is borrowed, where it is valid UTF-8, else by a copy
 * with each maximal invalid prefix of a sequence turned into one U+FFFD. */
foreloop_status foreloop_aligned_import(foreloop_aligned_text *text, const char *input, size_t length,
                                        foreloop_error *error);

/* Empties the text, to be written. */
void foreloop_aligned_clear(foreloop_aligned_text *text);
/* Makes room for `extra` more bytes. */
foreloop_status foreloop_aligned_reserve(foreloop_aligned_text *text, size_t extra, foreloop_error *error);
/* Appends one byte of a character where there is room. */
static inline void foreloop_aligned_put_byte(foreloop_aligned_text *text, char byte, foreloop_span span) {
    text->own_bytes[text->size] = byte;
    text->own_spans[text->size] = span;
    text->size++;
}

/* Where a character of valid UTF-8 that some byte belongs to begins and ends. */
static inline size_t foreloop_character_begin(const char *bytes, size_t position) {
    while (((unsigned char)bytes[position] & 0xC0) == 0x80)
        position--;
    return position;
}
static inline size_t foreloop_character_end(const char *bytes, size_t size, size_t position) {
    do
        position++;
    while (position < size && ((unsigned char)bytes[position] & 0xC0) == 0x80);
    return position;
}

/* The input's bytes that the character at any of its bytes stands for. */
static inline foreloop_span foreloop_aligned_span(const foreloop_aligned_text *text, size_t position) {
    if (!text->is_input)
        return text->own_spans[position];
    return (foreloop_span){(uint32_t)foreloop_character_begin(text->bytes, position),
                           (uint32_t)foreloop_character_end(text->bytes, text->size, position)};
}

/* Appends one character that stands for `span`. */
foreloop_status foreloop_aligned_append(foreloop_aligned_text *text, uint32_t code_point, foreloop_span span,
                                        foreloop_error *error);
/* Appends bytes[length], whole characters, all of which stand for `span`. */
foreloop_status foreloop_aligned_append_bytes(foreloop_aligned_text *text, const char *bytes, size_t length,
                                              foreloop_span span, foreloop_error *error);
/* Appends source[begin .. end) with its spans. */
foreloop_status foreloop_aligned_copy(foreloop_aligned_text *text, const foreloop_aligned_text *source, size_t begin,
                                      size_t end, foreloop_error *error);

/* The character at `position`, and its length. */
static inline uint32_t foreloop_aligned_decode(const foreloop_aligned_text *text, size_t position, size_t *length) {
    return foreloop_utf8_decode_valid(text->bytes + position, length);
}

typedef struct foreloop_piece {
    uint32_t begin; /* bytes of the text; of an added token: bytes of the input */
    uint32_t end;
    bool is_token; /* an added token: later stages leave it alone */
    uint32_t id;
    uint32_t leading; /* white space that the token took in on its left and right, in characters */
    uint32_t trailing;
} foreloop_piece;

typedef struct foreloop_pieces {
    foreloop_piece *items;
    size_t count;
    size_t capacity;
} foreloop_pieces;

/* The current text and pieces, and the ones that the running stage makes of them. */
typedef struct foreloop_workspace {
    const foreloop_allocator *allocator;
    foreloop_aligned_text text, next_text;
    foreloop_pieces pieces, next_pieces;
    bool texts_swapped, pieces_swapped;           /* against how they were at the start */
    struct foreloop_normal_character *characters; /* of normal forms */
    struct foreloop_normal_character *sorted;
    size_t character_capacity;
    size_t sorted_capacity;
} foreloop_workspace;

/* Zeroed with `allocator` before the first use; the allocator is borrowed. */
void foreloop_workspace_init(foreloop_workspace *work, const foreloop_allocator *allocator);
void foreloop_workspace_close(foreloop_workspace *work);

/* Starts with the input, which is borrowed until the next start, as the only piece. */
foreloop_status foreloop_workspace_begin(foreloop_workspace *work, const char *input, size_t length,
                                         foreloop_error *error);

/* Adds a piece to next_pieces; empty ones that are not tokens are dropped. */
foreloop_status foreloop_workspace_add(foreloop_workspace *work, foreloop_piece piece, foreloop_error *error);

/* Makes next_text and next_pieces the current ones. */
void foreloop_workspace_take(foreloop_workspace *work);

/* Runs `split` on every piece that is no token; it adds what comes of it by foreloop_workspace_add. */
typedef foreloop_status foreloop_split_function(const void *context, foreloop_workspace *work, foreloop_piece piece,
                                                foreloop_error *error);
foreloop_status foreloop_workspace_split(foreloop_workspace *work, foreloop_split_function *split, const void *context,
                                         foreloop_error *error);

/* Runs `rewrite` on every piece that is no token; it appends the piece's new text to next_text. */
typedef foreloop_status foreloop_rewrite_function(const void *context, foreloop_workspace *work, size_t begin,
                                                  size_t end, foreloop_error *error);
foreloop_status foreloop_workspace_rewrite(foreloop_workspace *work, foreloop_rewrite_function *rewrite,
                                           const void *context, foreloop_error *error);

#endif
