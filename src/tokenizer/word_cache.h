/* Words and their tokens, kept from word to word and text to text: bounded, and owned by an encoding. */
#ifndef FORELOOP_TOKENIZER_WORD_CACHE_H
#define FORELOOP_TOKENIZER_WORD_CACHE_H

#include "common/alloc.h"
#include "common/error.h"
#include "tokenizer/aligned_text.h"
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { FORELOOP_CACHED_BYTES = 23, FORELOOP_CACHED_TOKENS = 7, FORELOOP_CACHE_SETS = 4096, FORELOOP_CACHE_WAYS = 2 };

/* One cache line. */
typedef struct foreloop_cached_word {
    uint64_t key[3]; /* the word, filled up with zeros; the highest byte is its length, 0 in a free entry */
    uint32_t ids[FORELOOP_CACHED_TOKENS + 1];
    uint8_t sizes[FORELOOP_CACHED_TOKENS]; /* of the tokens, in bytes */
    uint8_t count;
} foreloop_cached_word;
_Static_assert(FORELOOP_CACHE_SETS == 1 << 12, "foreloop_word_set takes 12 bits");
_Static_assert(sizeof(foreloop_cached_word) == FORELOOP_ALIGNMENT, "an entry is one line of the processor's cache");

typedef struct foreloop_word_cache {
    foreloop_cached_word *words; /* NULL before the first use */
    char *mapped;                /* a word in printable characters */
    size_t mapped_capacity;
} foreloop_word_cache;

static inline foreloop_status foreloop_word_cache_open(foreloop_word_cache *cache, const foreloop_allocator *allocator,
                                                       foreloop_error *error) {
    const size_t count = FORELOOP_CACHE_SETS * FORELOOP_CACHE_WAYS;
    if (cache->words)
        return FORELOOP_OK;
    cache->words = foreloop_allocate_zeroed(allocator, count, sizeof *cache->words);
    return cache->words ? FORELOOP_OK : foreloop_fail_memory(error, count, sizeof *cache->words, "the cache of words");
}

static inline void foreloop_word_cache_close(foreloop_word_cache *cache, const foreloop_allocator *allocator) {
    foreloop_release(allocator, cache->words);
    foreloop_release(allocator, cache->mapped);
    memset(cache, 0, sizeof *cache);
}

typedef struct foreloop_word_key {
    uint64_t parts[3];
} foreloop_word_key;

/* The bytes below `length` of a little-endian word of eight. */
static inline uint64_t foreloop_keep_bytes(uint64_t word, size_t length) {
    return length >= 8 ? word : word & ((UINT64_C(1) << 8 * length) - 1);
}

static inline uint64_t foreloop_load_word(const char *bytes) {
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

static inline foreloop_word_key foreloop_word_key_of(const foreloop_aligned_text *text, size_t begin, size_t length) {
    const char *bytes = text->bytes + begin;
    foreloop_word_key key = {{0, 0, 0}};
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    /* Reads beyond the word where there is more of the text. */
    if (text->size - begin >= sizeof key) {
        key.parts[0] = foreloop_keep_bytes(foreloop_load_word(bytes), length);
        key.parts[1] = length > 8 ? foreloop_keep_bytes(foreloop_load_word(bytes + 8), length - 8) : 0;
        key.parts[2] = (length > 16 ? foreloop_keep_bytes(foreloop_load_word(bytes + 16), length - 16) : 0) |
                       (uint64_t)length << 56;
        return key;
    }
#endif
    char padded[sizeof key] = {0};
    memcpy(padded, bytes, length);
    padded[sizeof key - 1] = (char)length;
    for (size_t i = 0; i < 3; i++)
        key.parts[i] = foreloop_load_word(padded + 8 * i);
    return key;
}

/* The set of a word. Whoever chooses words to fill one set gains no more than that they are merged each time. */
static inline foreloop_cached_word *foreloop_word_set(const foreloop_word_cache *cache, const foreloop_word_key *key) {
    uint64_t hash =
        key->parts[0] * UINT64_C(0x9E3779B97F4A7C15) ^ (key->parts[1] + key->parts[2]) * UINT64_C(0xD6E8FEB86659FD93);
    hash = (hash ^ hash >> 29) * UINT64_C(0xBF58476D1CE4E5B9);
    return cache->words + FORELOOP_CACHE_WAYS * (hash >> 52); /* 12 bits */
}

static inline bool foreloop_is_word(const foreloop_cached_word *entry, const foreloop_word_key *key) {
    return entry->key[0] == key->parts[0] && entry->key[1] == key->parts[1] && entry->key[2] == key->parts[2];
}

/* Adds a token to an entry that has room. */
static inline void foreloop_cached_word_add(foreloop_cached_word *entry, uint32_t id, size_t size) {
    entry->ids[entry->count] = id;
    entry->sizes[entry->count++] = (uint8_t)size;
}

/* Puts an entry into its set: the newest first, the oldest out. */
static inline void foreloop_word_set_add(foreloop_cached_word *set, const foreloop_cached_word *entry) {
    set[1] = set[0];
    set[0] = *entry;
}

#endif
