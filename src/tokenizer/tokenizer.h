/* The tokenizer and an encoding as they lie in memory. */
#ifndef FORELOOP_TOKENIZER_TOKENIZER_H
#define FORELOOP_TOKENIZER_TOKENIZER_H

#include "tokenizer/bert_words.h"
#include "tokenizer/bpe.h"
#include "tokenizer/byte_words.h"
#include "tokenizer/decode.h"
#include "tokenizer/normalize.h"
#include "tokenizer/post_process.h"
#include "tokenizer/pretokenize.h"
#include "tokenizer/special_tokens.h"
#include "tokenizer/token_list.h"
#include "tokenizer/windows.h"
#include "tokenizer/wordpiece.h"

struct foreloop_tokenizer {
    foreloop_allocator allocator;
    foreloop_arena arena; /* texts of everything below */
    foreloop_token_table vocabulary;
    bool is_wordpiece; /* else BPE */
    foreloop_bpe bpe;
    foreloop_wordpiece wordpiece;
    foreloop_added_tokens added;
    foreloop_normalizer normalizer;
    foreloop_pretokenizer pretokenizer;
    foreloop_post_processor post_processor;
    foreloop_truncation truncation;
    foreloop_padding padding;
    foreloop_decoder decoder;
    foreloop_byte_words byte_words;
    bool has_bert_words; /* bert_words.h takes the place of the pre-tokenizer and the model */
    foreloop_tier tier;
};

/* A window of a text: items first to first + count of the result; of these, the tokens that are no padding. */
typedef struct foreloop_window_range {
    size_t first, count;
    size_t content_begin, content_end;
} foreloop_window_range;

struct foreloop_encoding {
    const foreloop_tokenizer *tokenizer;
    foreloop_workspace work;
    foreloop_bpe_scratch bpe;
    foreloop_word_cache cache;
    foreloop_model_tokens word_tokens;
    foreloop_token_list sequence; /* the text's own tokens, where windows are made of them */
    foreloop_span *as_first;      /* and the offsets that each has at the beginning of a window, if they differ */
    size_t as_first_capacity;
    foreloop_token_list result; /* with special tokens and padding */
    foreloop_window_range *windows;
    size_t window_count;
    size_t window_capacity;
};

/* read.c: fills a zeroed tokenizer, whose allocators are set, from tokenizer.json. */
foreloop_status foreloop_tokenizer_read(foreloop_tokenizer *tokenizer, const void *data, size_t size, const char *name,
                                        foreloop_error *error);

/* compiled.c: appends the compiled form of a tokenizer that was read from source[size], which begins at a multiple of
 * FORELOOP_ALIGNMENT in the buffer. The version changes with every change of its layout or of what is derived. */
#define FORELOOP_TOKENIZER_COMPILED_VERSION 1
foreloop_status foreloop_tokenizer_compile(const foreloop_tokenizer *tokenizer, const void *source, size_t size,
                                           foreloop_buffer *out, foreloop_error *error);
/* Lets the tables be those of a compiled form, data[size], which is borrowed, and gives the rest of its tokenizer.json.
 * False for content that the tables cannot be used with. */
bool foreloop_tokenizer_attach(foreloop_tokenizer *tokenizer, const void *data, size_t size, foreloop_text *rest);
foreloop_status foreloop_tokenizer_open_compiled(foreloop_tokenizer **tokenizer, const void *data, size_t size,
                                                 const char *name, const foreloop_allocator *allocator,
                                                 foreloop_tier tier, foreloop_error *error);

/* foreloop_tokenizer_open_memory with the document's name for messages, and a tier that this machine has. */
foreloop_status foreloop_tokenizer_open_named(foreloop_tokenizer **tokenizer, const void *data, size_t size,
                                              const char *name, const foreloop_allocator *allocator, foreloop_tier tier,
                                              foreloop_error *error);

/* from_files.c: opens vocab.json and merges.txt, or without merges a vocab.txt. With need_special RoBERTa's <s> and
 * </s> may not be missing. */
foreloop_status foreloop_tokenizer_open_files(foreloop_tokenizer **tokenizer, const char *vocabulary_path,
                                              const char *merges_path, const foreloop_vocabulary_options *options,
                                              bool need_special, foreloop_error *error);

#endif
