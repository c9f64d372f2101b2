/* Hashing: 64-bit FNV-1a for fingerprints, checksums and name tables. */
#ifndef FORELOOP_COMMON_HASH_H
#define FORELOOP_COMMON_HASH_H

#include <stddef.h>
#include <stdint.h>

#define FORELOOP_HASH_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t foreloop_hash(uint64_t state, const void *data, size_t size) {
    const unsigned char *bytes = (const unsigned char *)data;
    for (size_t i = 0; i < size; i++)
        state = (state ^ bytes[i]) * UINT64_C(0x100000001b3);
    return state;
}

#endif
