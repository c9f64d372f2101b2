/* WordPiece: the longest token that a word begins with, then the longest continuation, and so on. */
#ifndef FORELOOP_TOKENIZER_WORDPIECE_H
#define FORELOOP_TOKENIZER_WORDPIECE_H

#include "tokenizer/component.h"
#include "tokenizer/model.h"

typedef struct foreloop_wordpiece {
    const foreloop_allocator *allocator;
    const foreloop_token_table *vocabulary; /* borrowed */
    foreloop_text unknown;
    uint32_t unknown_index; /* FORELOOP_NO_TOKEN: not in the vocabulary */
    foreloop_text prefix;   /* of continuing tokens */
    size_t max_characters;  /* longer words are unknown */
} foreloop_wordpiece;

/* Reads a model of type WordPiece, and its vocabulary into the table unless it is there already. */
foreloop_status foreloop_wordpiece_read(foreloop_wordpiece *wordpiece, foreloop_json *component,
                                        foreloop_token_table *vocabulary, foreloop_arena *arena);

/* Appends the tokens of one word: one unknown token for all of it when any part fails. Time: length x the longest
 * token's. */
foreloop_status foreloop_wordpiece_tokenize(const foreloop_wordpiece *wordpiece, const char *word, size_t length,
                                            foreloop_model_tokens *tokens, foreloop_error *error);

#endif
