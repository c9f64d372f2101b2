/* Pre-tokenizers: cutting the normalized text into the words that the model sees. */
#ifndef FORELOOP_TOKENIZER_PRETOKENIZE_H
#define FORELOOP_TOKENIZER_PRETOKENIZE_H

#include "tokenizer/aligned_text.h"
#include "tokenizer/component.h"

typedef enum foreloop_pretokenize_kind {
    FORELOOP_PRETOKENIZE_SPLIT,        /* at the matches of a pattern */
    FORELOOP_PRETOKENIZE_PREFIX_SPACE, /* puts ' ' before pieces that have none */
    FORELOOP_PRETOKENIZE_BYTES         /* turns each byte into the printable character that byte-level models use */
} foreloop_pretokenize_kind;

typedef enum foreloop_match_kind {
    FORELOOP_MATCH_CLASSES, /* each character of `classes` is a match */
    FORELOOP_MATCH_LITERAL, /* the text `literal` */
    FORELOOP_MATCH_WORDS,   /* \w+|[^\w\s]+ */
    FORELOOP_MATCH_GPT2     /* the pattern of ByteLevel; every character belongs to a match */
} foreloop_match_kind;

/* What becomes of the matches: dropped, pieces of their own, or joined to neighbours. */
typedef enum foreloop_split_behavior {
    FORELOOP_SPLIT_REMOVED,
    FORELOOP_SPLIT_ISOLATED,
    FORELOOP_SPLIT_MERGED_WITH_PREVIOUS,
    FORELOOP_SPLIT_MERGED_WITH_NEXT,
    FORELOOP_SPLIT_CONTIGUOUS
} foreloop_split_behavior;

typedef struct foreloop_pretokenize_step {
    foreloop_pretokenize_kind kind;
    foreloop_match_kind match;
    foreloop_split_behavior behavior;
    bool invert; /* matches and what is between them change roles */
    uint32_t classes;
    foreloop_text literal;
} foreloop_pretokenize_step;

typedef struct foreloop_pretokenizer {
    foreloop_pretokenize_step *steps;
    size_t count;
    size_t capacity;
} foreloop_pretokenizer;

/* Adds the steps of the next value, a pre-tokenizer or null. Ownership as with foreloop_normalizer_read. */
foreloop_status foreloop_pretokenizer_read(foreloop_pretokenizer *pretokenizer, foreloop_json *json,
                                           foreloop_arena *arena);

/* Runs the first `count` steps. */
foreloop_status foreloop_pretokenizer_run(const foreloop_pretokenizer *pretokenizer, size_t count,
                                          foreloop_workspace *work, foreloop_error *error);

/* The character that stands for a byte at byte level: the printable ones of Latin-1 stand for themselves, the other 68
 * bytes are U+0100 and up in order. */
uint32_t foreloop_byte_character(unsigned char byte);

#endif
