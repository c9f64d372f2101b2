/* Added tokens: cutting them out of the text before anything else sees it. */
#ifndef FORELOOP_TOKENIZER_SPECIAL_TOKENS_H
#define FORELOOP_TOKENIZER_SPECIAL_TOKENS_H

#include "tokenizer/aligned_text.h"
#include "tokenizer/normalize.h"
#include "tokenizer/token_table.h"

typedef struct foreloop_added_token {
    foreloop_text pattern; /* the content, or for normalized tokens what the normalizer makes of it */
    uint32_t id;
    bool single_word, left_strip, right_strip, normalized, special;
} foreloop_added_token;

/* Patterns in order of their bytes, to be narrowed byte by byte. */
typedef struct foreloop_added_matcher {
    const foreloop_added_token **patterns;
    size_t count;
    int only_first;    /* the byte that all begin with, or -1 */
    size_t first[257]; /* patterns that begin with byte b: first[b] .. first[b + 1] - 1 */
} foreloop_added_matcher;

typedef struct foreloop_added_tokens {
    const foreloop_allocator *allocator;
    foreloop_arena *arena;        /* of the patterns; borrowed */
    foreloop_token_table table;   /* contents and ids */
    foreloop_added_token *tokens; /* by the table's index */
    size_t capacity;
    foreloop_added_matcher raw;        /* searched for in the input */
    foreloop_added_matcher normalized; /* searched for in the normalized text */
} foreloop_added_tokens;

/*
 * Reads the array of "added_tokens". As in Hugging Face tokenizers, the ids in the file do not count: a token that the
 * model knows has its id there, the others are numbered on from the size of the model's vocabulary, and of two tokens
 * that come to one id the later one is in force. Two that the normalizer makes equal leave Hugging Face to chance; here
 * the one with the lower id wins. `work` is scratch.
 */
foreloop_status foreloop_added_tokens_read(foreloop_added_tokens *added, foreloop_json *json,
                                           const foreloop_token_table *model, const foreloop_normalizer *normalizer,
                                           foreloop_workspace *work);
void foreloop_added_tokens_close(foreloop_added_tokens *added);

/* Cuts the matches of one matcher out of every piece. */
foreloop_status foreloop_added_tokens_split(const foreloop_added_matcher *matcher, foreloop_workspace *work,
                                            foreloop_error *error);

/* White space (or the byte-level sign for a space) at the ends of a token's text, in characters. */
void foreloop_count_edge_spaces(const char *text, size_t length, uint32_t *leading, uint32_t *trailing);

#endif
