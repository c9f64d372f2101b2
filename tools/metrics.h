/* How well predicted scores order measured times. */
#ifndef FORELOOP_TOOLS_METRICS_H
#define FORELOOP_TOOLS_METRICS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct metrics_pair {
    float score;    /* higher is predicted faster */
    double seconds; /* measured */
} metrics_pair;

/* The share of pairs with different times whose faster one has the higher score; equal scores count one half. False
 * when there is no such pair or memory is out. Reorders the pairs. n log n. */
bool metrics_pairwise(metrics_pair *pairs, size_t count, double *accuracy);

#endif
