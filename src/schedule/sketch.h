/*
 * A sketch: a MetaSchedule trace whose decisions are open. What can be decided, the legal values of each decision, and
 * the walk of a choice of them (a point) into actions.
 *
 * Values of tiles and categories follow from the instructions. Places to compute at do not: TVM finds them in the
 * program. So they are those that traces of the sketch show, and all places of a trace are one decision: where a block
 * can go depends on where the others went.
 */
#ifndef FORELOOP_SCHEDULE_SKETCH_H
#define FORELOOP_SCHEDULE_SKETCH_H

#include "schedule/trace.h"

typedef struct foreloop_sketch_decision {
    foreloop_decision_kind kind;
    size_t first_number;  /* of its numbers among those of the trace */
    size_t width;         /* numbers of a value */
    size_t count;         /* of values */
    size_t ruled;         /* of them, those that follow from the instruction: in lexicographic order */
    double *values;       /* [count][width] */
    size_t capacity;      /* of `values`, in numbers */
    const double *shares; /* categories: sum of the probabilities up to each one; NULL: all alike */
    double product;       /* tiles: of the factors of any value */
    double innermost;     /* tiles: the largest last factor; 0: any */
    bool perfect;         /* tiles: its values follow from the extent */
} foreloop_sketch_decision;

/* A number of the trace that is decided, in the order of the decisions. */
typedef struct foreloop_sketch_number {
    uint32_t instruction;
    uint32_t part;  /* of a tile */
    double *target; /* where the sketch's own trace has it */
} foreloop_sketch_number;

/* The factor of a tile that is a loop's extent. */
typedef struct foreloop_sketch_factor {
    size_t decision; /* FORELOOP_SKETCH_NONE: not known */
    size_t part;
} foreloop_sketch_factor;

/* The loops that a place counts, from the outermost. */
typedef struct foreloop_sketch_nest {
    bool known; /* as long as no trace contradicts */
    const foreloop_sketch_factor *loops;
    size_t count;
} foreloop_sketch_nest;

/* Of the text of the instructions: a part that stays, and the number behind it. */
typedef struct foreloop_sketch_piece {
    const char *text;
    size_t length;
    size_t number; /* FORELOOP_SKETCH_NONE: none */
} foreloop_sketch_piece;

#define FORELOOP_SKETCH_NONE SIZE_MAX
/* What an action depends on, besides a decision's index: */
#define FORELOOP_SKETCH_NOTHING (SIZE_MAX - 1)
#define FORELOOP_SKETCH_MUCH    SIZE_MAX

typedef struct foreloop_sketch {
    const foreloop_allocator *allocator;
    foreloop_arena arena;   /* what stays */
    foreloop_arena scratch; /* of the trace that is being added */
    foreloop_trace_reader reader;
    foreloop_walk *walk;

    foreloop_trace trace; /* cut before EnterPostproc; its decided numbers are those of the last walk */
    foreloop_sketch_number *numbers;
    size_t number_count;
    foreloop_sketch_decision *decisions;
    size_t decision_count;
    size_t listed;                       /* factors of perfect tiles, all together */
    const foreloop_sketch_piece *pieces; /* of the instructions */
    size_t piece_count;

    size_t locations;            /* the decision of the places, or NONE */
    foreloop_sketch_nest *nests; /* [its width] */
    bool by_pattern;             /* not all nests are known: see sketch_places.c */
    uint64_t *patterns;          /* with `patterned`: pairs that traces show */
    uint32_t *patterned;         /* value of the places' decision */
    size_t *pattern_points;      /* a point of each, see `points` */
    size_t pattern_count, pattern_capacity, patterned_capacity, pattern_points_capacity;

    uint32_t *points; /* of the traces that were added, the first one first: [point_count][decision_count] */
    size_t point_count, point_capacity;

    size_t *action_instructions; /* [action_count]: of each action; for `postprocess` trace.count */
    size_t *action_depends;      /* [action_count]: a decision, NOTHING or MUCH */
    size_t action_count;
} foreloop_sketch;

/* Whether the text is a trace alone, and not a record. */
bool foreloop_sketch_is_trace(const char *text, size_t length);

/* Reads the first trace: a record's line, or a trace alone. Zero-initialise; on failure close. `allocator` is
 * borrowed. */
foreloop_status foreloop_sketch_open(foreloop_sketch *sketch, const foreloop_allocator *allocator, const char *text,
                                     size_t length, foreloop_error *error);
void foreloop_sketch_close(foreloop_sketch *sketch);
/* Adds what a further trace shows, and its point unless it is there; its point goes to point[decision_count].
 * MISMATCH for a trace of another sketch. On failure nothing has changed. */
foreloop_status foreloop_sketch_add(foreloop_sketch *sketch, const char *text, size_t length, uint32_t *point,
                                    foreloop_error *error);

static inline const double *foreloop_sketch_value(const foreloop_sketch_decision *decision, uint32_t value) {
    return decision->values + value * decision->width;
}
/* The value of these numbers, or `count`. */
size_t foreloop_sketch_find(const foreloop_sketch_decision *decision, const double *numbers);
foreloop_status foreloop_sketch_append(foreloop_sketch *sketch, foreloop_sketch_decision *decision,
                                       const double *numbers, foreloop_error *error);

/* sketch_check.c: what a trace must say. Every name is defined once, before its use; attributes of Sample instructions
 * fit; one decision each at the most. */
foreloop_status foreloop_sketch_check_size(const foreloop_trace *trace, size_t numbers, size_t places,
                                           foreloop_error *error);
foreloop_status foreloop_sketch_check_names(const foreloop_trace *trace, const foreloop_names *names,
                                            foreloop_arena *arena, foreloop_error *error);
foreloop_status foreloop_sketch_check_decisions(const foreloop_trace *trace, foreloop_error *error);

/* sketch_tiles.c: the values of a perfect tile. None when there are too many. */
foreloop_status foreloop_sketch_fill_tiles(foreloop_sketch *sketch, foreloop_sketch_decision *decision,
                                           foreloop_error *error);

/* sketch_places.c: which places are legal beside the tiles of a point. */
foreloop_status foreloop_sketch_find_nests(foreloop_sketch *sketch, foreloop_error *error);
/* Takes in that a trace has shown this point, which is to be that numbered point_count; room has been reserved. */
void foreloop_sketch_show_places(foreloop_sketch *sketch, const uint32_t *point);
/* The tile's factor that is the extent of the loop at a place of the sample `index`; NULL: none that is known. */
const foreloop_sketch_factor *foreloop_sketch_place_factor(const foreloop_sketch *sketch, size_t index, double place);
bool foreloop_sketch_legal(const foreloop_sketch *sketch, const uint32_t *point);
/* Draws among the legal values of the places; false when there is none. */
bool foreloop_sketch_place(const foreloop_sketch *sketch, uint64_t *random, uint32_t *point);

/* sketch_next.c: all legal points. `next` gives ARGUMENT for a point that is not legal, END behind the last one. */
void foreloop_sketch_first(const foreloop_sketch *sketch, uint32_t *point);
foreloop_status foreloop_sketch_next(const foreloop_sketch *sketch, uint32_t *point);

/* sketch_walk.c: what each action depends on, and the actions of a point. */
foreloop_status foreloop_sketch_find_actions(foreloop_sketch *sketch, foreloop_error *error);
foreloop_status foreloop_sketch_walk(foreloop_sketch *sketch, const uint32_t *point, const unsigned char *silent,
                                     foreloop_arena *arena, foreloop_walk_result *result, foreloop_error *error);

/* sketch_text.c: the trace as JSON. */
foreloop_status foreloop_sketch_find_pieces(foreloop_sketch *sketch, const char *text, size_t length,
                                            foreloop_error *error);
/* Writes at most `capacity` bytes; the length is returned. */
size_t foreloop_sketch_write(const foreloop_sketch *sketch, const uint32_t *point, char *buffer, size_t capacity);

/* sketch_draw.c: points from random numbers. `point` and `from` may be the same. */
void foreloop_sketch_sample(const foreloop_sketch *sketch, uint64_t *random, uint32_t *point);
void foreloop_sketch_mutate(const foreloop_sketch *sketch, uint64_t *random, const uint32_t *from, uint32_t *point);
void foreloop_sketch_cross(const foreloop_sketch *sketch, uint64_t *random, const uint32_t *a, const uint32_t *b,
                           uint32_t *point);

#endif
