/* Ansor's transform steps, which name stages and iterators by their current places, and what those places stand for. */
#ifndef FORELOOP_SCHEDULE_ANSOR_H
#define FORELOOP_SCHEDULE_ANSOR_H

#include "schedule/walk_state.h"

enum {
    FORELOOP_ANSOR_MAX_STAGES = 1024,
    FORELOOP_ANSOR_MAX_ITERATORS = 512 /* of one stage */
};

/* No axis, stage or source. */
#define FORELOOP_ANSOR_NONE SIZE_MAX

typedef struct foreloop_ansor_axis {
    size_t variable;
    size_t parts;  /* that it was split into, 0: not split */
    size_t source; /* step that its split follows, or NONE */
    foreloop_loop_class kind;
} foreloop_ansor_axis;

/* The axes that a stage has from one point on. They show one by one as steps name them. */
typedef struct foreloop_ansor_axes {
    size_t block;       /* variable */
    size_t instruction; /* that makes them: place in the list, or NONE for those that are there from the start */
    foreloop_ansor_axis *items;
    size_t count, capacity;
    const char *structure; /* of multi-level tiling; NULL: none */
    bool closed;           /* a reordering has named them all */
} foreloop_ansor_axes;

typedef struct foreloop_ansor_iterator {
    size_t variable;
    size_t axis; /* place among the stage's axes when it is one, or a part of one; else NONE */
    size_t part; /* of the axis, from the outermost */
} foreloop_ansor_iterator;

typedef struct foreloop_ansor_stage {
    size_t block; /* variable */
    size_t axes;  /* the current ones, in the list of axes */
    foreloop_ansor_iterator *iterators;
    size_t iterator_count, iterator_capacity;
    bool original; /* of the program, not made by a step */
    bool used;     /* scheduled by a step */
} foreloop_ansor_stage;

/* A split, for those that follow it. */
typedef struct foreloop_ansor_split {
    const foreloop_value *lengths; /* array; NULL: the step is no split */
    double extent;
    size_t axes, axis; /* the whole axis that it cuts, or NONE */
} foreloop_ansor_split;

/* Translation of one record. Its memory is the arena's. */
typedef struct foreloop_ansor_state {
    foreloop_arena *arena;
    foreloop_error *error;
    size_t step; /* the current one, for messages */
    foreloop_ansor_stage *stages;
    size_t stage_count, stage_capacity;
    size_t *order; /* the stage at each place */
    size_t order_count, order_capacity;
    foreloop_ansor_axes *axes;
    size_t axes_count, axes_capacity;
    size_t variable_count;
} foreloop_ansor_state;

/* Makes room for one more element of an array in the arena. */
foreloop_status foreloop_ansor_grow(foreloop_ansor_state *state, void *array, size_t *capacity, size_t count,
                                    size_t element_size);

/* The stage at a place. Those of the program show as they are named, so any place below the bound has one. */
foreloop_status foreloop_ansor_stage_at(foreloop_ansor_state *state, size_t place, size_t *stage);
/* A new stage at a place, which moves those from there on by one. `instruction`: see foreloop_ansor_axes. */
foreloop_status foreloop_ansor_insert_stage(foreloop_ansor_state *state, size_t place, size_t instruction,
                                            size_t *stage);
/* Gives a stage new axes and forgets its iterators. */
foreloop_status foreloop_ansor_renew_axes(foreloop_ansor_state *state, size_t stage, size_t instruction);
/* Makes sure that a stage has the iterators before `count`. */
foreloop_status foreloop_ansor_reach(foreloop_ansor_state *state, size_t stage, size_t count);
/* Replaces `removed` iterators at `place` by `added` new ones, whose variables are consecutive from *first. */
foreloop_status foreloop_ansor_replace(foreloop_ansor_state *state, size_t stage, size_t place, size_t removed,
                                       size_t added, size_t *first);
/* Puts the iterators into the order that a permutation of all of them gives, and tells multi-level tiling by it. */
foreloop_status foreloop_ansor_reorder(foreloop_ansor_state *state, size_t stage, const foreloop_value *order);

/* Turns the steps of a record into a trace. */
foreloop_status foreloop_ansor_translate(const foreloop_value *steps, foreloop_arena *arena, foreloop_trace *trace,
                                         foreloop_error *error);

#endif
