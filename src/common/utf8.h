/* UTF-8 decoding, one code point at a time. */
#ifndef FORELOOP_COMMON_UTF8_H
#define FORELOOP_COMMON_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Decodes the code point at text[size], size > 0. False for an invalid sequence: then *code_point is U+FFFD and *length
 * the longest prefix of it that could begin a valid sequence, at least one byte (what Unicode calls the maximal
 * subpart). */
static inline bool foreloop_utf8_decode(const char *text, size_t size, uint32_t *code_point, size_t *length) {
    const unsigned char *bytes = (const unsigned char *)text;
    uint32_t value = bytes[0];
    size_t wanted = 1;
    /* The second byte's range is where overlong forms, surrogates and values beyond U+10FFFF are told apart. */
    unsigned char low = 0x80, high = 0xBF;

    *length = 1;
    *code_point = value;
    if (value < 0x80)
        return true;
    *code_point = 0xFFFD;
    if (value >= 0xC2 && value <= 0xDF) {
        wanted = 2;
        value &= 0x1F;
    } else if (value >= 0xE0 && value <= 0xEF) {
        wanted = 3;
        if (value == 0xE0)
            low = 0xA0;
        if (value == 0xED)
            high = 0x9F;
        value &= 0x0F;
    } else if (value >= 0xF0 && value <= 0xF4) {
        wanted = 4;
        if (value == 0xF0)
            low = 0x90;
        if (value == 0xF4)
            high = 0x8F;
        value &= 0x07;
    } else {
        return false;
    }
    for (size_t i = 1; i < wanted; i++) {
        if (i >= size || bytes[i] < low || bytes[i] > high)
            return false;
        value = value << 6 | (bytes[i] & 0x3Fu);
        *length = i + 1;
        low = 0x80;
        high = 0xBF;
    }
    *code_point = value;
    return true;
}

/* The same for text that is known to be valid. */
static inline uint32_t foreloop_utf8_decode_valid(const char *text, size_t *length) {
    const unsigned char *bytes = (const unsigned char *)text;
    const uint32_t first = bytes[0];
    if (first < 0x80) {
        *length = 1;
        return first;
    }
    if (first < 0xE0) {
        *length = 2;
        return (first & 0x1F) << 6 | (bytes[1] & 0x3Fu);
    }
    if (first < 0xF0) {
        *length = 3;
        return (first & 0x0F) << 12 | (bytes[1] & 0x3Fu) << 6 | (bytes[2] & 0x3Fu);
    }
    *length = 4;
    return (first & 0x07) << 18 | (bytes[1] & 0x3Fu) << 12 | (bytes[2] & 0x3Fu) << 6 | (bytes[3] & 0x3Fu);
}

/* The length of the longest prefix of text[size] that is valid: `size` when all of it is. */
static inline size_t foreloop_utf8_valid_prefix(const char *text, size_t size) {
    size_t position = 0, length;
    uint32_t code_point;
    while (position < size) {
        uint64_t word;
        /* Mostly ASCII, eight at a time. */
        while (size - position >= sizeof word) {
            memcpy(&word, text + position, sizeof word);
            if (word & UINT64_C(0x8080808080808080))
                break;
            position += sizeof word;
        }
        for (size_t end = size - position < sizeof word ? size : position + sizeof word; position < end;
             position += length)
            if (!foreloop_utf8_decode(text + position, size - position, &code_point, &length))
                return position;
    }
    return size;
}

/* Writes a code point (a scalar value) as UTF-8 and returns its length. */
static inline size_t foreloop_utf8_encode(uint32_t code_point, char bytes[4]) {
    if (code_point < 0x80) {
        bytes[0] = (char)code_point;
        return 1;
    }
    if (code_point < 0x800) {
        bytes[0] = (char)(0xC0 | code_point >> 6);
        bytes[1] = (char)(0x80 | (code_point & 0x3F));
        return 2;
    }
    if (code_point < 0x10000) {
        bytes[0] = (char)(0xE0 | code_point >> 12);
        bytes[1] = (char)(0x80 | (code_point >> 6 & 0x3F));
        bytes[2] = (char)(0x80 | (code_point & 0x3F));
        return 3;
    }
    bytes[0] = (char)(0xF0 | code_point >> 18);
    bytes[1] = (char)(0x80 | (code_point >> 12 & 0x3F));
    bytes[2] = (char)(0x80 | (code_point >> 6 & 0x3F));
    bytes[3] = (char)(0x80 | (code_point & 0x3F));
    return 4;
}

#endif
