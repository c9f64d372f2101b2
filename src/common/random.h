/* Random numbers that are functions of a seed and a place, so that what is drawn does not depend on the order in which
 * nodes are made. */
#ifndef FORELOOP_COMMON_RANDOM_H
#define FORELOOP_COMMON_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* A well-mixed function of its argument (the finaliser of SplitMix64). */
static inline uint64_t foreloop_random_mix(uint64_t x) {
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* The state of a stream of its own for `what`, number `index` of `round`. */
static inline uint64_t foreloop_random_stream(uint64_t seed, uint64_t what, uint64_t round, uint64_t index) {
    return foreloop_random_mix(foreloop_random_mix(foreloop_random_mix(seed ^ what << 56) ^ round) ^ index);
}

/* From 0 to below - 1, below > 0 and to 2^32. */
static inline size_t foreloop_random_below(uint64_t *state, size_t below) {
    *state += UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)((foreloop_random_mix(*state) >> 32) * (uint64_t)below >> 32);
}

/* What streams are for. */
enum { FORELOOP_RANDOM_ROWS = 1, FORELOOP_RANDOM_TREE, FORELOOP_RANDOM_NODE, FORELOOP_RANDOM_PAIRS };

#endif
