/*
 * A program being scheduled. Each transformation changes the program and writes down the canonical foreloop action for
 * it (docs/ACTIONS.md): what is scored and what is compiled come from the same calls.
 *
 * The first transformation that is not possible sets `error`; those after it do nothing.
 */
#ifndef AUTOSCHEDULER_SCHEDULE_H
#define AUTOSCHEDULER_SCHEDULE_H

#include "program.h"
#include <foreloop/foreloop.h>
#include <stdint.h>

enum { MAX_ACTIONS = 96, MAX_ARGUMENTS = 1024, MAX_PARTS = 4 };

typedef struct schedule {
    program p;
    const char *error; /* NULL: none */
    int action_count, argument_count;
    foreloop_action actions[MAX_ACTIONS];
    foreloop_argument arguments[MAX_ARGUMENTS]; /* of the actions, one after the other */
    /* Called after each action, for who wants to see the states on the way. */
    void (*observe)(void *user, const struct schedule *s);
    void *observer;
} schedule;

/* Begins with a program; keeps the observer. */
void schedule_begin(schedule *s, const program *p);
/* A hash of the actions: schedules of the same program that have the same make the same kernel. */
uint64_t schedule_key(const schedule *s);
/* FNV-1a of bytes, going on from HASH_BEGIN or another hash. */
#define HASH_BEGIN 14695981039346656037u
uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size);

/* Cuts a loop of one variable into `parts` loops, whose extents `factors` multiply up to its own, or to more if the
 * loop is all of an axis: the last tiles are cut off then. `levels` are theirs in a tiling structure, NULL: 0, 1 ...
 * The new loops' nodes go to loops[parts]. */
void split(schedule *s, int loop, const int *factors, const int *levels, int parts, int *loops);
/* Puts loops around block b, which nothing else is in, into this order. */
void reorder(schedule *s, int b, const int *loops, int count);
/* Makes one loop of loops that lie directly inside of each other; returns it. */
int fuse(schedule *s, const int *loops, int count);
/* parallel, vectorize, unroll. Parallel loops are outermost, spatial. Vectorized ones are innermost. */
void annotate(schedule *s, int loop, loop_kind kind);

/* Lets block b compute into a new local buffer; returns the block that copies it to where b wrote before. */
int cache_write(schedule *s, int b);
/* Computes block b, or for the reverse one a block that reads what the loop makes, where a loop needs it. */
void compute_at(schedule *s, int b, int loop);
void reverse_compute_at(schedule *s, int b, int loop);
/* Computes an elementwise block where it is read. */
void compute_inline(schedule *s, int b);
/* Makes a reduction loop of block b spatial: a new block reduces over the other loops, and b over this one. Returns the
 * new block. */
int rfactor(schedule *s, int b, int loop);

/* The last action: what the nest of block b, tiled by a structure of `levels` (0: none), has come to. */
void postprocess(schedule *s, int b, int levels);

#endif
