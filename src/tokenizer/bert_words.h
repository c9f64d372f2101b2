/*
 * WordPiece straight from the normalized text to tokens: the words of BertPreTokenizer, which end at white space and
 * punctuation, and their tokens from a cache.
 */
#ifndef FORELOOP_TOKENIZER_BERT_WORDS_H
#define FORELOOP_TOKENIZER_BERT_WORDS_H

#include "tokenizer/pretokenize.h"
#include "tokenizer/token_list.h"
#include "tokenizer/word_cache.h"
#include "tokenizer/wordpiece.h"

/* Whether the pre-tokenizer is BertPreTokenizer alone. */
bool foreloop_is_bert_pretokenizer(const foreloop_pretokenizer *pretokenizer);

typedef struct foreloop_bert_run {
    const foreloop_wordpiece *wordpiece;
    foreloop_word_cache *cache;
    foreloop_model_tokens *tokens; /* scratch */
    const foreloop_aligned_text *text;
    foreloop_token_list *list;
} foreloop_bert_run;

/* Appends the tokens of text[begin .. end), with offsets that no post-processor trims. */
foreloop_status foreloop_bert_words_encode(const foreloop_bert_run *run, size_t begin, size_t end,
                                           foreloop_error *error);

#endif
