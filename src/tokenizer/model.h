/* What the two models, BPE and WordPiece, have in common: words in, tokens out. */
#ifndef FORELOOP_TOKENIZER_MODEL_H
#define FORELOOP_TOKENIZER_MODEL_H

#include "tokenizer/token_table.h"

typedef struct foreloop_model_token {
    uint32_t index; /* in the model's vocabulary */
    uint32_t begin; /* bytes of the word */
    uint32_t end;
} foreloop_model_token;

typedef struct foreloop_model_tokens {
    foreloop_model_token *items;
    size_t count;
    size_t capacity;
} foreloop_model_tokens;

static inline foreloop_status foreloop_model_add(foreloop_model_tokens *tokens, const foreloop_allocator *allocator,
                                                 foreloop_model_token token, foreloop_error *error) {
    FORELOOP_TRY(foreloop_reserve(allocator, &tokens->items, &tokens->capacity, tokens->count, tokens->count + 1,
                                  sizeof token, error));
    tokens->items[tokens->count++] = token;
    return FORELOOP_OK;
}

/* An unknown word or character where the unknown token itself is missing: an error only when it is needed. */
static inline foreloop_status foreloop_model_fail_unknown(foreloop_text unknown, foreloop_error *error) {
    return foreloop_fail(error, FORELOOP_ERROR_VALUE,
                         "the text has a word that the vocabulary does not cover, and the vocabulary lacks the unknown "
                         "token \"%.*s\"; add it to the tokenizer",
                         FORELOOP_QUOTED(unknown.text, unknown.length));
}

#endif
