/* WordPiece straight from the normalized text: a word is looked up in the cache, else tokenized and put there. */
#include "tokenizer/bert_words.h"
#include "tokenizer/unicode.h"

bool foreloop_is_bert_pretokenizer(const foreloop_pretokenizer *pretokenizer) {
    const foreloop_pretokenize_step *steps = pretokenizer->steps;
    for (size_t i = 0; i < pretokenizer->count; i++)
        if (steps[i].kind != FORELOOP_PRETOKENIZE_SPLIT || steps[i].match != FORELOOP_MATCH_CLASSES || steps[i].invert)
            return false;
    return pretokenizer->count == 2 && steps[0].classes == FORELOOP_CLASS_SPACE &&
           steps[0].behavior == FORELOOP_SPLIT_REMOVED && steps[1].classes == FORELOOP_CLASS_PUNCTUATION &&
           steps[1].behavior == FORELOOP_SPLIT_ISOLATED;
}

/* The list has room. */
static inline void put_token(const foreloop_bert_run *run, uint32_t id, size_t begin, size_t end) {
    const foreloop_span span = {foreloop_aligned_span(run->text, begin).begin,
                                foreloop_aligned_span(run->text, end - 1).end};
    foreloop_token_list_put(run->list, id, span);
}

/* Adds a word that is not in the cache; `entry` gets its tokens if they are few enough. */
static foreloop_status add_new(const foreloop_bert_run *run, size_t begin, size_t end, foreloop_cached_word *entry,
                               foreloop_error *error) {
    const foreloop_token_table *vocabulary = run->wordpiece->vocabulary;
    foreloop_model_tokens *tokens = run->tokens;

    tokens->count = 0;
    FORELOOP_TRY(foreloop_wordpiece_tokenize(run->wordpiece, run->text->bytes + begin, end - begin, tokens, error));
    FORELOOP_TRY(foreloop_token_list_reserve(run->list, run->wordpiece->allocator, tokens->count, error));
    for (size_t i = 0; i < tokens->count; i++) {
        const foreloop_model_token *token = &tokens->items[i];
        put_token(run, vocabulary->entries[token->index].id, begin + token->begin, begin + token->end);
        if (tokens->count <= FORELOOP_CACHED_TOKENS)
            foreloop_cached_word_add(entry, vocabulary->entries[token->index].id, token->end - token->begin);
    }
    return FORELOOP_OK;
}

static foreloop_status add_word(const foreloop_bert_run *run, size_t begin, size_t end, foreloop_error *error) {
    foreloop_cached_word added = {.count = 0}, *set;
    const foreloop_cached_word *found;

    if (end - begin > FORELOOP_CACHED_BYTES)
        return add_new(run, begin, end, &added, error);
    /* Also for a new word, so that a text once seen needs no more room. */
    FORELOOP_TRY(foreloop_token_list_reserve(run->list, run->wordpiece->allocator, FORELOOP_CACHED_TOKENS, error));
    const foreloop_word_key key = foreloop_word_key_of(run->text, begin, end - begin);
    set = foreloop_word_set(run->cache, &key);
    found = foreloop_is_word(&set[0], &key) ? &set[0] : foreloop_is_word(&set[1], &key) ? &set[1] : NULL;
    if (!found) {
        memcpy(added.key, key.parts, sizeof added.key);
        FORELOOP_TRY(add_new(run, begin, end, &added, error));
        if (added.count > 0)
            foreloop_word_set_add(set, &added);
        return FORELOOP_OK;
    }
    for (size_t i = 0; i < found->count; begin += found->sizes[i++])
        put_token(run, found->ids[i], begin, begin + found->sizes[i]);
    return FORELOOP_OK;
}

static inline uint32_t classes_at(const foreloop_aligned_text *text, size_t position, size_t *length) {
    return foreloop_character_classes(foreloop_aligned_decode(text, position, length));
}

foreloop_status foreloop_bert_words_encode(const foreloop_bert_run *run, size_t begin, size_t end,
                                           foreloop_error *error) {
    const uint32_t space = FORELOOP_CLASS_SPACE, punctuation = FORELOOP_CLASS_PUNCTUATION;

    FORELOOP_TRY(foreloop_word_cache_open(run->cache, run->wordpiece->allocator, error));
    for (size_t next; begin < end; begin = next) {
        size_t length;
        uint32_t classes = classes_at(run->text, begin, &length);
        next = begin + length;
        if (classes & space)
            continue;
        while (!(classes & punctuation) && next < end) {
            if (classes_at(run->text, next, &length) & (space | punctuation))
                break;
            next += length;
        }
        FORELOOP_TRY(add_word(run, begin, next, error));
    }
    return FORELOOP_OK;
}
