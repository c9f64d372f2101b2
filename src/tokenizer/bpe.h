/* Byte-pair encoding: a word's characters, merged pair by pair in order of the merges' ranks. */
#ifndef FORELOOP_TOKENIZER_BPE_H
#define FORELOOP_TOKENIZER_BPE_H

#include "tokenizer/component.h"
#include "tokenizer/merge_table.h"
#include "tokenizer/model.h"

typedef struct foreloop_bpe {
    const foreloop_allocator *allocator;
    const foreloop_token_table *vocabulary; /* borrowed */
    foreloop_merge_table merges;
    foreloop_text unknown;      /* text NULL: unknown characters are dropped */
    uint32_t unknown_index;     /* FORELOOP_NO_TOKEN: not in the vocabulary */
    foreloop_text prefix;       /* before every character but a word's first */
    foreloop_text suffix;       /* behind a word's last character */
    bool fuse_unknown;          /* neighbouring unknown characters give one token */
    bool ignore_merges;         /* a word in the vocabulary is taken whole */
    bool byte_fallback;         /* unknown characters become the tokens <0x00> to <0xFF> of their bytes */
    uint32_t fallback[256];     /* those tokens */
    uint32_t characters[0x180]; /* indices of the characters of the byte-level alphabet, for lack of affixes */
} foreloop_bpe;

/* Scratch of one thread: for merging, and for the symbols of one word (tokens, and their lengths in bytes). */
typedef struct foreloop_bpe_scratch {
    uint32_t *symbols, *lengths;
    size_t symbol_capacity, length_capacity;
    struct foreloop_bpe_link *links;
    uint64_t *candidates;
    uint32_t *merged, *sizes; /* what merging gave: tokens, and the number of symbols in each */
    size_t link_capacity, candidate_capacity, merged_capacity, size_capacity;
    char *affixed; /* a character with prefix and suffix */
    size_t affixed_capacity;
} foreloop_bpe_scratch;

/* bpe_read.c: reads a model of type BPE, and its vocabulary into the table. A vocabulary and merges that are there
 * already are not read. */
foreloop_status foreloop_bpe_read(foreloop_bpe *bpe, foreloop_json *component, foreloop_token_table *vocabulary,
                                  foreloop_arena *arena);
void foreloop_bpe_close(foreloop_bpe *bpe);
void foreloop_bpe_scratch_close(foreloop_bpe_scratch *scratch, const foreloop_allocator *allocator);

/* Appends the tokens of one word. Time: linear in its length for all but made-up vocabularies. */
foreloop_status foreloop_bpe_tokenize(const foreloop_bpe *bpe, foreloop_bpe_scratch *scratch, const char *word,
                                      size_t length, foreloop_model_tokens *tokens, foreloop_error *error);

/* Merges symbols[count] and appends the tokens; their places are in bytes, by `lengths`, or in symbols where it is
 * NULL. */
foreloop_status foreloop_bpe_merge(const foreloop_bpe *bpe, foreloop_bpe_scratch *scratch, const uint32_t *symbols,
                                   const uint32_t *lengths, size_t count, foreloop_model_tokens *tokens,
                                   foreloop_error *error);

/* The same for at most FORELOOP_BPE_SHORT symbols, in place: returns the number of tokens, and writes the number of
 * symbols in each to sizes[count]. */
enum { FORELOOP_BPE_SHORT = 48 };
size_t foreloop_bpe_merge_short(const foreloop_merge_table *merges, uint32_t *symbols, uint32_t *sizes, size_t count);

#endif
