/* Decoders: tokens back to text. */
#ifndef FORELOOP_TOKENIZER_DECODE_H
#define FORELOOP_TOKENIZER_DECODE_H

#include "tokenizer/component.h"

typedef enum foreloop_decode_kind {
    FORELOOP_DECODE_BYTES,         /* printable characters to the bytes that they stand for */
    FORELOOP_DECODE_WORDPIECE,     /* blanks between words, none before continuing tokens */
    FORELOOP_DECODE_SUFFIX,        /* a suffix becomes the blank between words */
    FORELOOP_DECODE_BYTE_FALLBACK, /* <0xE4> becomes a byte */
    FORELOOP_DECODE_FUSE           /* all tokens become one */
} foreloop_decode_kind;

typedef struct foreloop_decode_step {
    foreloop_decode_kind kind;
    bool cleanup;        /* WORDPIECE: no blanks before punctuation */
    foreloop_text affix; /* the prefix of WORDPIECE, the suffix of SUFFIX */
} foreloop_decode_step;

typedef struct foreloop_decoder {
    bool present; /* else tokens are joined by blanks */
    foreloop_decode_step *steps;
    size_t count;
    size_t capacity;
    char unsupported[FORELOOP_COMPONENT_TYPE_SIZE]; /* a decoder that is not known, an error only when it is needed */
} foreloop_decoder;

/* Reads the next value, a decoder or null. `steps` is the caller's to release by the arena's allocator, on failure too.
 */
foreloop_status foreloop_decoder_read(foreloop_decoder *decoder, foreloop_json *json, foreloop_arena *arena);

/* Texts in a row. */
typedef struct foreloop_pieces_text {
    foreloop_buffer bytes;
    size_t *ends;
    size_t count;
    size_t capacity;
} foreloop_pieces_text;
foreloop_status foreloop_pieces_text_add(foreloop_pieces_text *pieces, const char *text, size_t length,
                                         foreloop_error *error);
void foreloop_pieces_text_close(foreloop_pieces_text *pieces);

/* Turns tokens into the pieces whose concatenation is the text. */
foreloop_status foreloop_decoder_run(const foreloop_decoder *decoder, foreloop_pieces_text *tokens,
                                     foreloop_error *error);

#endif
