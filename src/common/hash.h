/* Hashing: 64-bit FNV-1a for names and keys, and a word-wise relative of it for the content of large files. */
#ifndef FORELOOP_COMMON_HASH_H
#define FORELOOP_COMMON_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FORELOOP_HASH_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t foreloop_hash(uint64_t state, const void *data, size_t size) {
    const unsigned char *bytes = (const unsigned char *)data;
    for (size_t i = 0; i < size; i++)
        state = (state ^ bytes[i]) * UINT64_C(0x100000001b3);
    return state;
}

/* The same bits on every machine: words are read as little-endian. */
static inline uint64_t foreloop_hash_content(uint64_t state, const void *data, size_t size) {
    const unsigned char *bytes = (const unsigned char *)data;
    size_t i = 0;
    for (; i + 8 <= size; i += 8) {
        uint64_t word;
        memcpy(&word, bytes + i, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        word = __builtin_bswap64(word);
#endif
        state = (state ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        state ^= state >> 32;
    }
    return foreloop_hash(state, bytes + i, size - i);
}

/* Takes every bit of a hash to every other: for tables that use a part of it, and for the next one of a row of keys. */
static inline uint64_t foreloop_hash_spread(uint64_t hash) {
    hash = (hash ^ hash >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return hash ^ hash >> 32;
}

/* A checksum of large content in four lanes, at the speed of memory. Not the hash above, which models are known by. */
static inline uint64_t foreloop_hash_lanes(const void *data, size_t size) {
    const unsigned char *bytes = (const unsigned char *)data;
    uint64_t lanes[4] = {1, 2, 3, 4}, state = FORELOOP_HASH_START ^ size;
    size_t i = 0;
    for (; i + 32 <= size; i += 32) {
        for (size_t j = 0; j < 4; j++) {
            uint64_t word;
            memcpy(&word, bytes + i + 8 * j, 8);
            lanes[j] = (lanes[j] ^ word) * UINT64_C(0x9e3779b97f4a7c15);
            lanes[j] ^= lanes[j] >> 32;
        }
    }
    for (size_t j = 0; j < 4; j++)
        state = foreloop_hash_spread(state + lanes[j]);
    return foreloop_hash(state, bytes + i, size - i);
}

#endif
