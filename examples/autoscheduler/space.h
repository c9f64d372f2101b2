/*
 * The search space of a program: a list of decisions, each a choice among a number of options. A candidate is one
 * choice for each. Two sketches make schedules of them:
 *
 *   tiles   for a block that reduces (matmul, convolution): its axes cut into tiles ordered S S R S R S (S: spatial
 *           loops, R: reduction loops), the outer ones in parallel, the innermost one vectorized, those around it
 *           unrolled, the result gathered in a local buffer or not, padding computed at one of several places
 *   rows    for chains of reductions over the rows of a matrix (softmax, layer norm): all blocks computed for some rows
 *           at a time, reductions factored into vectors, elementwise blocks inlined or not
 */
#ifndef AUTOSCHEDULER_SPACE_H
#define AUTOSCHEDULER_SPACE_H

#include "schedule.h"
#include <stdint.h>

enum { MAX_DECISIONS = 24 };

/* Ways to cut an axis into `parts` whose product is its extent. */
typedef struct tilings {
    int parts, count;
    int (*factors)[MAX_PARTS];
} tilings;

typedef struct decision {
    char name[NAME_SIZE];
    int options;
    tilings tiles; /* of a decision on an axis; else empty */
} decision;

typedef struct search_space {
    program initial;
    int count;
    decision decisions[MAX_DECISIONS];
    int main_block; /* tiled, or the last one of the rows */
    bool tiled;
} search_space;

/* False without memory. */
bool space_open(search_space *space, const program *initial);
void space_close(search_space *space);

/* Makes the schedule; s->error is set when the choices do not go together. */
void space_apply(const search_space *space, const uint16_t *choices, schedule *s);

/* xorshift64*; the state is not 0. */
uint64_t draw_next(uint64_t *state);
int draw_below(uint64_t *state, int bound);

void space_sample(const search_space *space, uint64_t *random, uint16_t *choices);
/* Changes one decision, a tiling mostly by moving one factor from one part to another. */
void space_mutate(const search_space *space, uint64_t *random, uint16_t *choices);
/* Each decision from one of the two. */
void space_cross(const search_space *space, uint64_t *random, const uint16_t *a, const uint16_t *b, uint16_t *child);

#endif
