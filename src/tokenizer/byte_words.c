/* Byte-level BPE straight from the text: a word is looked up in the cache, else merged. */
#include "tokenizer/byte_words.h"
#include "common/utf8.h"
#include <string.h>

/* ---- Preparation ------------------------------------------------------------------------------------------------- */

/* The byte that the last character of a token of the byte level stands for, or -1. */
static int last_byte(const int *bytes, const char *text, size_t length) {
    uint32_t code_point;
    size_t size;
    if (length == 0)
        return -1;
    code_point = foreloop_utf8_decode_valid(text + foreloop_character_begin(text, length - 1), &size);
    return code_point < 0x180 ? bytes[code_point] : -1;
}

static int first_byte(const int *bytes, const char *text, size_t length) {
    uint32_t code_point;
    size_t size;
    if (length == 0)
        return -1;
    code_point = foreloop_utf8_decode_valid(text, &size);
    return code_point < 0x180 ? bytes[code_point] : -1;
}

static void find_joins(foreloop_byte_joins *joins, const foreloop_bpe *bpe) {
    const foreloop_token_table *table = bpe->vocabulary;
    int bytes[0x180]; /* that the characters of the byte level stand for */

    for (size_t i = 0; i < 0x180; i++)
        bytes[i] = -1;
    for (int i = 0; i < 256; i++)
        bytes[foreloop_byte_character((unsigned char)i)] = i;
    for (size_t i = 0; i < bpe->merges.slot_count; i++) {
        const foreloop_merge *merge = &bpe->merges.slots[i];
        int a, b;
        if (merge->left == FORELOOP_NO_TOKEN)
            continue;
        a = last_byte(bytes, foreloop_token_text(table, merge->left), table->entries[merge->left].length);
        b = first_byte(bytes, foreloop_token_text(table, merge->right), table->entries[merge->right].length);
        if (a >= 0 && b >= 0)
            joins->bits[a][b / 64] |= UINT64_C(1) << b % 64;
    }
}

void foreloop_byte_words_init(foreloop_byte_words *words, const foreloop_bpe *bpe,
                              const foreloop_pretokenizer *pretokenizer, foreloop_tier tier) {
    const size_t count = pretokenizer->count;
    const foreloop_pretokenize_step *steps = pretokenizer->steps;

    if (count == 0 || steps[count - 1].kind != FORELOOP_PRETOKENIZE_BYTES ||
        bpe->prefix.length + bpe->suffix.length > 0)
        return;
    for (int i = 0; i < 256; i++) {
        words->tokens[i] = bpe->characters[foreloop_byte_character((unsigned char)i)];
        if (words->tokens[i] == FORELOOP_NO_TOKEN)
            return;
    }
    words->by_pattern = count > 1 && steps[count - 2].kind == FORELOOP_PRETOKENIZE_SPLIT &&
                        steps[count - 2].match == FORELOOP_MATCH_GPT2 && !steps[count - 2].invert &&
                        steps[count - 2].behavior == FORELOOP_SPLIT_ISOLATED;
    words->steps = count - 1 - words->by_pattern;
    if (!words->has_joins)
        find_joins(&words->joins, bpe);
    words->classify = foreloop_classify_ascii_of(tier);
    words->usable = true;
}

/* ---- Keys ------------------------------------------------------------------------------------------------------- */

typedef foreloop_cached_word cached_word;
typedef foreloop_word_key word_key;

/* Longer runs of one byte, as of blanks, have a key as well: their length tells them from words. */
static inline bool is_run(const foreloop_byte_run *run, size_t begin, size_t length) {
    const char *bytes = run->text->bytes + begin;
    return length <= UINT8_MAX && memcmp(bytes, bytes + 1, length - 1) == 0;
}

static inline word_key make_run_key(const foreloop_byte_run *run, size_t begin, size_t length) {
    const uint64_t bytes = UINT64_C(0x0101010101010101) * (unsigned char)run->text->bytes[begin];
    return (word_key){{bytes, bytes, bytes >> 8 | (uint64_t)length << 56}};
}

/* ---- Tokens ------------------------------------------------------------------------------------------------------ */

/* Trimming as the post-processor does it: a token's white space is that of its bytes, of which only the blank counts.
 */
static foreloop_span trim(const foreloop_byte_run *run, foreloop_span span, size_t begin, size_t end) {
    const char *bytes = run->text->bytes;
    uint32_t leading = 0, trailing = 0;
    while (begin + leading < end && bytes[begin + leading] == ' ')
        leading++;
    while (begin + trailing < end && bytes[end - 1 - trailing] == ' ')
        trailing++;
    if (run->plain_words && begin > 0 && run->list->count > run->first) { /* each blank is one byte of the input */
        span.begin += leading;
        span.end = span.end - trailing > span.begin ? span.end - trailing : span.begin;
        return span;
    }
    return foreloop_post_processor_trim(run->processor, run->input.text, run->input.length, span, leading, trailing,
                                        run->list->count == run->first);
}

/* Adds a token where there is room: it stands for all bytes of the characters that it has a part in. */
static inline void put_token(const foreloop_byte_run *run, uint32_t id, size_t begin, size_t end) {
    const foreloop_aligned_text *text = run->text;
    foreloop_span span;

    if (text->is_input) {
        span = (foreloop_span){(uint32_t)foreloop_character_begin(text->bytes, begin), (uint32_t)end};
        if (end < text->size && ((unsigned char)text->bytes[end] & 0xC0) == 0x80)
            span.end = (uint32_t)foreloop_character_end(text->bytes, text->size, end);
    } else {
        span = (foreloop_span){text->own_spans[begin].begin, text->own_spans[end - 1].end};
    }
    if (run->processor->trim_count > 0 && (text->bytes[begin] == ' ' || text->bytes[end - 1] == ' '))
        span = trim(run, span, begin, end);
    foreloop_token_list_put(run->list, id, span);
}

/* The tokens of a word in the input that need no look at their edges: it is ASCII, and has no white space but perhaps a
 * blank in front, which trimming takes off. There is room for the whole entry. */
static inline void put_plain(foreloop_token_list *list, const cached_word *entry, size_t begin, size_t trimmed) {
    const size_t count = entry->count;
    size_t *offsets = list->offsets + 2 * list->count, end = begin + entry->sizes[0];

    /* Results are written once, beyond what caches hold: the lines and pages of a while ahead. */
    __builtin_prefetch((const void *)((uintptr_t)offsets + 4096), 1);
    __builtin_prefetch((const void *)((uintptr_t)(list->ids + list->count) + 1024), 1);
    memcpy(list->ids + list->count, entry->ids, sizeof entry->ids);
    offsets[0] = begin + trimmed;
    offsets[1] = end;
    for (size_t i = 1; i < count; i++) {
        offsets[2 * i] = end;
        end += entry->sizes[i];
        offsets[2 * i + 1] = end;
    }
    list->count += count;
}

static inline void put_cached(const foreloop_byte_run *run, const cached_word *entry, size_t begin) {
    const uint64_t high_bits = UINT64_C(0x8080808080808080), head = entry->key[0];
    const unsigned char first = (unsigned char)run->text->bytes[begin];
    const bool is_plain = run->plain_words && ((head | entry->key[1] | entry->key[2]) & high_bits) == 0;

    if (is_plain && first > ' ') {
        put_plain(run->list, entry, begin, 0);
        return;
    }
    if (is_plain && first == ' ' && entry->sizes[0] > 1 && (unsigned char)run->text->bytes[begin + 1] > ' ' &&
        begin > 0 && run->list->count > run->first) {
        put_plain(run->list, entry, begin, run->processor->trim_count);
        return;
    }
    for (size_t i = 0; i < entry->count; i++) {
        put_token(run, entry->ids[i], begin, begin + entry->sizes[i]);
        begin += entry->sizes[i];
    }
}

/* Merges text[begin .. end) and adds its tokens. Where `entry` is not NULL, it keeps them if they are few enough. */
static foreloop_status merge_word(const foreloop_byte_run *run, size_t begin, size_t end, cached_word *entry,
                                  foreloop_error *error) {
    const foreloop_token_entry *tokens = run->bpe->vocabulary->entries;
    const char *bytes = run->text->bytes;
    uint32_t symbols[FORELOOP_BPE_SHORT], sizes[FORELOOP_BPE_SHORT];
    const size_t length = end - begin;

    if (length <= FORELOOP_BPE_SHORT) {
        for (size_t i = 0; i < length; i++)
            symbols[i] = run->words->tokens[(unsigned char)bytes[begin + i]];
        size_t count = foreloop_bpe_merge_short(&run->bpe->merges, symbols, sizes, length);
        FORELOOP_TRY(foreloop_token_list_reserve(run->list, run->bpe->allocator, count, error));
        for (size_t i = 0; i < count; begin += sizes[i++])
            put_token(run, tokens[symbols[i]].id, begin, begin + sizes[i]);
        for (size_t i = 0; entry && count <= FORELOOP_CACHED_TOKENS && i < count; i++)
            foreloop_cached_word_add(entry, tokens[symbols[i]].id, sizes[i]);
        return FORELOOP_OK;
    }
    FORELOOP_TRY(foreloop_reserve(run->bpe->allocator, &run->scratch->symbols, &run->scratch->symbol_capacity, 0,
                                  length, sizeof *symbols, error));
    for (size_t i = 0; i < length; i++)
        run->scratch->symbols[i] = run->words->tokens[(unsigned char)bytes[begin + i]];
    run->long_tokens->count = 0;
    FORELOOP_TRY(
        foreloop_bpe_merge(run->bpe, run->scratch, run->scratch->symbols, NULL, length, run->long_tokens, error));
    FORELOOP_TRY(foreloop_token_list_reserve(run->list, run->bpe->allocator, run->long_tokens->count, error));
    const bool keeps = entry && run->long_tokens->count <= FORELOOP_CACHED_TOKENS;
    for (size_t i = 0; i < run->long_tokens->count; i++) {
        const foreloop_model_token *token = &run->long_tokens->items[i];
        put_token(run, tokens[token->index].id, begin + token->begin, begin + token->end);
        if (keeps)
            foreloop_cached_word_add(entry, tokens[token->index].id, token->end - token->begin);
    }
    return FORELOOP_OK;
}

/* The token of a whole word, for models that look for that first. */
static foreloop_status find_whole(const foreloop_byte_run *run, size_t begin, size_t end, uint32_t *index,
                                  foreloop_error *error) {
    foreloop_word_cache *cache = run->cache;
    size_t length = 0;
    *index = FORELOOP_NO_TOKEN;
    if (!run->bpe->ignore_merges)
        return FORELOOP_OK;
    FORELOOP_TRY(
        foreloop_reserve(run->bpe->allocator, &cache->mapped, &cache->mapped_capacity, 0, 2 * (end - begin), 1, error));
    for (size_t i = begin; i < end; i++) {
        char bytes[4];
        size_t size = foreloop_utf8_encode(foreloop_byte_character((unsigned char)run->text->bytes[i]), bytes);
        memcpy(cache->mapped + length, bytes, size); /* 1 or 2 */
        length += size;
    }
    *index = foreloop_token_table_find(run->bpe->vocabulary, cache->mapped, length);
    return FORELOOP_OK;
}

/* The end of the part of a word that begins at `begin`: no merge joins it to what follows. */
static size_t part_end(const foreloop_byte_run *run, size_t begin, size_t end) {
    const unsigned char *bytes = (const unsigned char *)run->text->bytes;
    size_t at = begin + 1;
    while (at < end && (run->words->joins.bits[bytes[at - 1]][bytes[at] / 64] >> bytes[at] % 64 & 1))
        at++;
    return at;
}

static foreloop_status add_parts(const foreloop_byte_run *run, size_t begin, size_t end, cached_word *entry,
                                 foreloop_error *error);

/* Adds a word that is not in the cache, and puts it there. */
static foreloop_status add_new(const foreloop_byte_run *run, size_t begin, size_t end, const word_key *key,
                               cached_word *set, foreloop_error *error) {
    cached_word added = {.key = {key->parts[0], key->parts[1], key->parts[2]}};
    uint32_t whole;

    FORELOOP_TRY(find_whole(run, begin, end, &whole, error));
    if (whole != FORELOOP_NO_TOKEN) {
        foreloop_cached_word_add(&added, run->bpe->vocabulary->entries[whole].id, end - begin);
        put_cached(run, &added, begin);
    } else if (!run->bpe->ignore_merges && part_end(run, begin, end) < end) {
        FORELOOP_TRY(add_parts(run, begin, end, &added, error));
    } else {
        FORELOOP_TRY(merge_word(run, begin, end, &added, error));
    }
    if (added.count > 0)
        foreloop_word_set_add(set, &added);
    return FORELOOP_OK;
}

static inline foreloop_status add_keyed(const foreloop_byte_run *run, size_t begin, size_t end, word_key key,
                                        foreloop_error *error) {
    cached_word *set = foreloop_word_set(run->cache, &key);

    FORELOOP_TRY(foreloop_token_list_reserve(run->list, run->bpe->allocator, FORELOOP_CACHED_TOKENS + 1, error));
    if (foreloop_is_word(&set[0], &key))
        put_cached(run, &set[0], begin);
    else if (foreloop_is_word(&set[1], &key))
        put_cached(run, &set[1], begin);
    else
        return add_new(run, begin, end, &key, set, error);
    return FORELOOP_OK;
}

static inline foreloop_status add_short(const foreloop_byte_run *run, size_t begin, size_t end, foreloop_error *error) {
    return add_keyed(run, begin, end, foreloop_word_key_of(run->text, begin, end - begin), error);
}

/* The entry of a word in the cache, or NULL. */
static const cached_word *find_cached(const foreloop_word_cache *cache, const word_key *key) {
    const cached_word *set = foreloop_word_set(cache, key);
    return foreloop_is_word(&set[0], key) ? &set[0] : foreloop_is_word(&set[1], key) ? &set[1] : NULL;
}

/* Adds a word part by part. `entry` gets the tokens of all if they are few enough, else none. */
static foreloop_status add_parts(const foreloop_byte_run *run, size_t begin, size_t end, cached_word *entry,
                                 foreloop_error *error) {
    bool fits = true;
    for (size_t part; begin < end; begin = part) {
        part = part_end(run, begin, end);
        const word_key key = foreloop_word_key_of(run->text, begin, part - begin);
        FORELOOP_TRY(add_keyed(run, begin, part, key, error));
        const cached_word *kept = find_cached(run->cache, &key);
        fits = fits && kept && entry->count + kept->count <= FORELOOP_CACHED_TOKENS;
        for (size_t i = 0; fits && i < kept->count; i++)
            foreloop_cached_word_add(entry, kept->ids[i], kept->sizes[i]);
    }
    if (!fits)
        entry->count = 0;
    return FORELOOP_OK;
}

/* A word too long for the cache; its parts may be short enough. Where whole words come first, the cache is for these.
 */
static foreloop_status add_long(const foreloop_byte_run *run, size_t begin, size_t end, foreloop_error *error) {
    uint32_t whole;
    FORELOOP_TRY(find_whole(run, begin, end, &whole, error));
    if (whole != FORELOOP_NO_TOKEN) {
        FORELOOP_TRY(foreloop_token_list_reserve(run->list, run->bpe->allocator, 1, error));
        put_token(run, run->bpe->vocabulary->entries[whole].id, begin, end);
        return FORELOOP_OK;
    }
    if (run->bpe->ignore_merges)
        return merge_word(run, begin, end, NULL, error);
    for (size_t part; begin < end; begin = part) {
        part = part_end(run, begin, end);
        if (part - begin <= FORELOOP_CACHED_BYTES)
            FORELOOP_TRY(add_short(run, begin, part, error));
        else if (is_run(run, begin, part - begin))
            FORELOOP_TRY(add_keyed(run, begin, part, make_run_key(run, begin, part - begin), error));
        else
            FORELOOP_TRY(merge_word(run, begin, part, NULL, error));
    }
    return FORELOOP_OK;
}

static inline foreloop_status add_word(const foreloop_byte_run *run, size_t begin, size_t end, foreloop_error *error) {
    return end - begin <= FORELOOP_CACHED_BYTES ? add_short(run, begin, end, error) : add_long(run, begin, end, error);
}

foreloop_status foreloop_byte_words_encode(const foreloop_byte_run *run, size_t begin, size_t end,
                                           foreloop_error *error) {
    foreloop_gpt2_scanner scanner;

    FORELOOP_TRY(foreloop_word_cache_open(run->cache, run->bpe->allocator, error));
    if (!run->words->by_pattern)
        return begin < end ? add_word(run, begin, end, error) : FORELOOP_OK;
    foreloop_gpt2_scanner_begin(&scanner, run->words->classify, run->text->bytes, begin, end);
    for (size_t next; begin < end; begin = next) {
        next = foreloop_gpt2_scanner_next(&scanner, begin);
        FORELOOP_TRY(add_word(run, begin, next, error));
    }
    return FORELOOP_OK;
}
