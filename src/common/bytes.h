/* Integers of fixed byte order in memory of any alignment, whatever the machine's own order. */
#ifndef FORELOOP_COMMON_BYTES_H
#define FORELOOP_COMMON_BYTES_H

#include <stdint.h>

static inline uint16_t foreloop_load_le16(const unsigned char *bytes) {
    return (uint16_t)(bytes[0] | bytes[1] << 8);
}

static inline uint32_t foreloop_load_le32(const unsigned char *bytes) {
    return foreloop_load_le16(bytes) | (uint32_t)foreloop_load_le16(bytes + 2) << 16;
}

static inline uint64_t foreloop_load_le64(const unsigned char *bytes) {
    return foreloop_load_le32(bytes) | (uint64_t)foreloop_load_le32(bytes + 4) << 32;
}

static inline uint16_t foreloop_load_be16(const unsigned char *bytes) {
    return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

static inline uint32_t foreloop_load_be32(const unsigned char *bytes) {
    return (uint32_t)foreloop_load_be16(bytes) << 16 | foreloop_load_be16(bytes + 2);
}

static inline uint64_t foreloop_load_be64(const unsigned char *bytes) {
    return (uint64_t)foreloop_load_be32(bytes) << 32 | foreloop_load_be32(bytes + 4);
}

static inline void foreloop_store_le32(unsigned char *bytes, uint32_t value) {
    for (int i = 0; i < 4; i++)
        bytes[i] = (unsigned char)(value >> 8 * i);
}

static inline void foreloop_store_le64(unsigned char *bytes, uint64_t value) {
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(value >> 8 * i);
}

#endif
