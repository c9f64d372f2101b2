/*
 * What the characters of 64 bytes of text are, as far as they are ASCII: the fast path of pre-tokenizers. Bit i of a
 * mask tells about byte i. Bytes from 0x80 on are in none but `beyond`.
 */
#ifndef FORELOOP_KERNELS_CPU_CLASSIFY_ASCII_H
#define FORELOOP_KERNELS_CPU_CLASSIFY_ASCII_H

#include <foreloop/foreloop.h>
#include <stdint.h>

enum { FORELOOP_CLASSIFY_BYTES = 64 };

typedef struct foreloop_ascii_masks {
    uint64_t letters; /* A to Z, a to z */
    uint64_t digits;
    uint64_t spaces; /* the blank and 9 to 13 */
    uint64_t blanks; /* the blank alone */
    uint64_t beyond; /* no ASCII */
} foreloop_ascii_masks;

typedef void foreloop_classify_ascii(const char text[FORELOOP_CLASSIFY_BYTES], foreloop_ascii_masks *masks);

/* The kernel of the given tier, which this machine must have. */
foreloop_classify_ascii *foreloop_classify_ascii_of(foreloop_tier tier);

void foreloop_classify_ascii_ref(const char text[FORELOOP_CLASSIFY_BYTES], foreloop_ascii_masks *masks);
void foreloop_classify_ascii_avx2(const char text[FORELOOP_CLASSIFY_BYTES], foreloop_ascii_masks *masks);
void foreloop_classify_ascii_avx512(const char text[FORELOOP_CLASSIFY_BYTES], foreloop_ascii_masks *masks);

#endif
