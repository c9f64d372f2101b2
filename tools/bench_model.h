/* Models and candidates made up for benchmarks: the shape of a real model, random weights, nothing to download. */
#ifndef FORELOOP_TOOLS_BENCH_MODEL_H
#define FORELOOP_TOOLS_BENCH_MODEL_H

#include "common/alloc.h"
#include <stdbool.h>

typedef struct bench_shape {
    size_t latent, kinds, trees, depth;
    const char *const *kind_names; /* [kinds]; NULL: kind_0, kind_1 ... */
    size_t network;                /* the width of the score network's two hidden layers; 0: there is none */
} bench_shape;

enum { BENCH_AGGREGATES = 64, BENCH_SLOTS = 6, BENCH_NAME_SIZE = 32 };

/* Writes a packed bundle to `bundle` (zero but for its allocator): `kinds` kinds with BENCH_SLOTS numeric slots and an
 * MLP, latent + BENCH_AGGREGATES features, full trees that split on all of them, and a score network that reads all of
 * them. False when out of memory. */
bool bench_model_make(foreloop_buffer *bundle, const bench_shape *shape);

/* Distinct action number i, of kind i % kinds; the arguments' arrays are filled in. */
void bench_action(size_t i, size_t kinds, char name[BENCH_NAME_SIZE], foreloop_argument arguments[BENCH_SLOTS],
                  foreloop_action *action);

/* The kind of each step of a candidate: of a real schedule's order, or random. */
size_t bench_kind(bool trace, size_t candidate, size_t step, size_t kinds, uint64_t *random);

#endif
