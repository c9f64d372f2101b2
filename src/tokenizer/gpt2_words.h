/* The words of GPT-2's pattern: 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
#ifndef FORELOOP_TOKENIZER_GPT2_WORDS_H
#define FORELOOP_TOKENIZER_GPT2_WORDS_H

#include "kernels_cpu/classify_ascii.h"
#include <stdbool.h>
#include <stddef.h>

/* The end of the word that begins at text[position], in a piece of valid UTF-8 that ends at `end`. */
size_t foreloop_gpt2_word_end(const char *text, size_t position, size_t end);

/* Finds the words of a piece one after the other: where a block of 64 bytes is ASCII, from masks of what its characters
 * are, else by the function above. */
typedef struct foreloop_gpt2_scanner {
    foreloop_classify_ascii *classify;
    const char *text;
    size_t begin, end; /* of the piece */
    size_t block;      /* begin of the block at hand, SIZE_MAX before the first */
    uint64_t starts;   /* where words begin in it */
    bool is_ascii;     /* the block and the characters around it; else there are no starts */
} foreloop_gpt2_scanner;

void foreloop_gpt2_scanner_begin(foreloop_gpt2_scanner *scanner, foreloop_classify_ascii *classify, const char *text,
                                 size_t begin, size_t end);
/* The end of the word that begins at `position`, the piece's begin or the last word's end: any word's, and the same for
 * the usual one, which ends in the block at hand. */
size_t foreloop_gpt2_scanner_any(foreloop_gpt2_scanner *scanner, size_t position);
static inline size_t foreloop_gpt2_scanner_next(foreloop_gpt2_scanner *scanner, size_t position) {
    const size_t at = position - scanner->block;
    /* Of two shifts, as their sum may be 64; a scalar walk may have left the block at hand behind. */
    const uint64_t behind = at < FORELOOP_CLASSIFY_BYTES ? scanner->starts & UINT64_MAX << at << 1 : 0;
    if (behind == 0 || scanner->text[position] == '\'')
        return foreloop_gpt2_scanner_any(scanner, position);
    return scanner->block + (size_t)__builtin_ctzll(behind);
}

#endif
