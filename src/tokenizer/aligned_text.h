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
    char *bytes;          /* valid UTF-8 */
    foreloop_span *spans; /* for each byte: the input's bytes that its character stands for */
    size_t size;
    size_t byte_capacity;
    size_t span_capacity;
} foreloop_aligned_text;

void foreloop_aligned_close(foreloop_aligned_text *text);

/* Replaces the content by the input itself, each maximal invalid prefix of a sequence turned into one U+FFFD. */
foreloop_status foreloop_aligned_import(foreloop_aligned_text *text, const char *input, size_t length,
                                        foreloop_error *error);

/* Makes room for `extra` more bytes. */
foreloop_status foreloop_aligned_reserve(foreloop_aligned_text *text, size_t extra, foreloop_error *error);
/* Appends one byte of a character where there is room. */
static inline void foreloop_aligned_put_byte(foreloop_aligned_text *text, char byte, foreloop_span span) {
    text->bytes[text->size] = byte;
    text->spans[text->size] = span;
    text->size++;
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
    uint32_t code_point = (unsigned char)text->bytes[position];
    *length = 1;
    if (code_point >= 0x80)
        (void)foreloop_utf8_decode(text->bytes + position, text->size - position, &code_point, length);
    return code_point;
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
    struct foreloop_normal_character *characters; /* of normal forms */
    struct foreloop_normal_character *sorted;
    size_t character_capacity;
    size_t sorted_capacity;
} foreloop_workspace;

/* Zeroed with `allocator` before the first use; the allocator is borrowed. */
void foreloop_workspace_init(foreloop_workspace *work, const foreloop_allocator *allocator);
void foreloop_workspace_close(foreloop_workspace *work);

/* Starts with the input as the only piece. */
foreloop_status foreloop_workspace_begin(foreloop_workspace *work, const char *input, size_t length,
                                         foreloop_error *error);

/* Adds a piece to next_pieces; empty ones that are not tokens are dropped. */
foreloop_status foreloop_workspace_add(foreloop_workspace *work, foreloop_piece piece, foreloop_error *error);

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
