/* Byte-pair encoding: a word's characters, merged pair by pair in order of the merges' ranks. */
#ifndef FORELOOP_TOKENIZER_BPE_H
#define FORELOOP_TOKENIZER_BPE_H

#include "tokenizer/component.h"
#include "tokenizer/model.h"

typedef struct foreloop_bpe_merge {
    uint32_t left; /* FORELOOP_NO_TOKEN in a free slot */
    uint32_t right;
    uint32_t rank;
    uint32_t merged;
} foreloop_bpe_merge;

typedef struct foreloop_bpe {
    const foreloop_allocator *allocator;
    const foreloop_token_table *vocabulary; /* borrowed */
    foreloop_bpe_merge *merges;             /* open addressing by pair */
    size_t merge_slots;
    size_t merge_count;
    foreloop_text unknown;      /* text NULL: unknown characters are dropped */
    uint32_t unknown_index;     /* FORELOOP_NO_TOKEN: not in the vocabulary */
    foreloop_text prefix;       /* before every character but a word's first */
    foreloop_text suffix;       /* behind a word's last character */
    bool fuse_unknown;          /* neighbouring unknown characters give one token */
    bool ignore_merges;         /* a word in the vocabulary is taken whole */
    uint32_t characters[0x180]; /* indices of the characters of the byte-level alphabet, for lack of affixes */
} foreloop_bpe;

/* Scratch of one thread. */
typedef struct foreloop_bpe_scratch {
    struct foreloop_bpe_symbol *symbols;
    struct foreloop_bpe_candidate *candidates;
    char *affixed; /* a character with prefix and suffix */
    size_t symbol_capacity;
    size_t candidate_capacity;
    size_t affixed_capacity;
} foreloop_bpe_scratch;

/* Reads the fields of a model of type BPE but for the vocabulary, which the table holds already. */
foreloop_status foreloop_bpe_read(foreloop_bpe *bpe, foreloop_json *component, const foreloop_token_table *vocabulary,
                                  foreloop_arena *arena);
void foreloop_bpe_close(foreloop_bpe *bpe);
void foreloop_bpe_scratch_close(foreloop_bpe_scratch *scratch, const foreloop_allocator *allocator);

/* Appends the tokens of one word. Time: length x log length. */
foreloop_status foreloop_bpe_tokenize(const foreloop_bpe *bpe, foreloop_bpe_scratch *scratch, const char *word,
                                      size_t length, foreloop_model_tokens *tokens, foreloop_error *error);

#endif
