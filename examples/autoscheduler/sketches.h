/* The two sketches, and what their decisions mean. */
#ifndef AUTOSCHEDULER_SKETCHES_H
#define AUTOSCHEDULER_SKETCHES_H

#include "space.h"

enum {
    SPATIAL_PARTS = 4,    /* S S R S R S: an axis has a part in each of the four S ... */
    REDUCTION_PARTS = 2,  /* ... or in each of the two R */
    MAX_INNERMOST = 64,   /* extent of an innermost part */
    MAX_VECTOR = 256,     /* of a vectorized row */
    PARALLEL_OPTIONS = 3, /* no loop; the spatial loops of the first S; of the first two */
    CACHE_OPTIONS = 3,    /* no local buffer; one for each iteration of the first S; of the first two */
    UNROLL_OPTIONS = 4,   /* see UNROLL_LIMITS */
    PAD_OPTIONS = 5,      /* inline; at the root; inside of the first S; the second; the first R */
    PLACE_OPTIONS = 3     /* at the root; for each part of the rows; for each row */
};

/* Statements that unrolling may make of an innermost one. */
static const int UNROLL_LIMITS[UNROLL_OPTIONS] = {1, 4, 16, 64};

void sketch_tiles(const search_space *space, const uint16_t *choices, schedule *s);
void sketch_rows(const search_space *space, const uint16_t *choices, schedule *s);

#endif
