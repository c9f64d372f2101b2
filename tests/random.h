/* Reproducible random numbers for tests (xorshift64*). */
#ifndef FORELOOP_TESTS_RANDOM_H
#define FORELOOP_TESTS_RANDOM_H

#include <stdint.h>

typedef struct random_source {
    uint64_t state; /* the seed, not 0 */
} random_source;

__attribute__((unused)) static uint64_t random_u64(random_source *source) {
    source->state ^= source->state >> 12;
    source->state ^= source->state << 25;
    source->state ^= source->state >> 27;
    return source->state * UINT64_C(0x2545F4914F6CDD1D);
}

/* From 0 to below - 1. */
__attribute__((unused)) static uint32_t random_below(random_source *source, uint32_t below) {
    return (uint32_t)((random_u64(source) >> 32) * below >> 32);
}

#endif
