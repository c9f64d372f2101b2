/*
 * Byte-level BPE straight from the text to tokens: words by the scanner, their tokens from a cache, and no text of
 * printable characters in between. It takes the place of the last steps of the pre-tokenizer and of the model where the
 * vocabulary has a token for each of the 256 bytes and no affixes, as those of GPT-2 and RoBERTa do.
 */
#ifndef FORELOOP_TOKENIZER_BYTE_WORDS_H
#define FORELOOP_TOKENIZER_BYTE_WORDS_H

#include "tokenizer/bpe.h"
#include "tokenizer/gpt2_words.h"
#include "tokenizer/post_process.h"
#include "tokenizer/pretokenize.h"
#include "tokenizer/token_list.h"
#include "tokenizer/word_cache.h"

/* Bit b of row a: some merge joins a token that ends with byte a to one that begins with byte b. */
typedef struct foreloop_byte_joins {
    uint64_t bits[256][4];
} foreloop_byte_joins;

typedef struct foreloop_byte_words {
    bool usable;
    bool has_joins;       /* `joins` was filled in beforehand */
    bool by_pattern;      /* words by GPT-2's pattern; else every piece is a word */
    size_t steps;         /* of the pre-tokenizer that have to run before */
    uint32_t tokens[256]; /* the token of each byte */
    foreloop_byte_joins joins;
    foreloop_classify_ascii *classify;
} foreloop_byte_words;

/* After the model and the pre-tokenizer were read. */
void foreloop_byte_words_init(foreloop_byte_words *words, const foreloop_bpe *bpe,
                              const foreloop_pretokenizer *pretokenizer, foreloop_tier tier);

typedef struct foreloop_byte_run {
    const foreloop_byte_words *words;
    const foreloop_bpe *bpe;
    const foreloop_post_processor *processor;
    foreloop_bpe_scratch *scratch;
    foreloop_word_cache *cache;
    foreloop_model_tokens *long_tokens; /* scratch */
    const foreloop_aligned_text *text;
    foreloop_text input;
    foreloop_token_list *list;
    size_t first;     /* the text's first token in the list */
    bool plain_words; /* the text is the input, words come by the pattern, and offsets are trimmed once at the most */
} foreloop_byte_run;

/* Appends the tokens of text[begin .. end). */
foreloop_status foreloop_byte_words_encode(const foreloop_byte_run *run, size_t begin, size_t end,
                                           foreloop_error *error);

#endif
