/* The intern table: distinct actions, found by exact comparison, each with its row: all that a rollout step needs. */
#ifndef FORELOOP_TRANSH_ACTION_H
#define FORELOOP_TRANSH_ACTION_H

#include "transh/rollout.h"

/* How well the model knows an action. */
typedef struct foreloop_action_note {
    uint32_t unknown_values, out_of_range;
    uint32_t dropped_arguments; /* the most that an interning dropped: equal actions may differ in them */
} foreloop_action_note;

/* Where a string was found the last time that it came from the same address; compared again before it is believed. */
typedef struct foreloop_text_hint {
    const char *text;
    const void *where; /* the kind, or the slot */
    uint32_t index;    /* of the kind, or the category */
} foreloop_text_hint;

/* What the i-th argument of a kind was the last time. When that was an ordinary number, `name` is the slot's own and
 * low <= number <= high makes it one again; else it is no argument's name. */
typedef struct foreloop_argument_hint {
    const char *name;
    double low, high;
    size_t place; /* the slot's number */
} foreloop_argument_hint;

enum { FORELOOP_TEXT_HINTS = 256, FORELOOP_ARGUMENT_HINTS = 64 };

struct foreloop_actions {
    foreloop_allocator allocator;
    const foreloop_rollout_plan *plan;
    const foreloop_vocabulary *vocabulary;
    const foreloop_transition *transition;
    uint64_t fingerprint; /* of the model */
    size_t limit;         /* distinct actions at the most */
    size_t count;         /* entries in use, with entry 0: FORELOOP_ACTION_UNKNOWN */
    uint32_t *kinds;      /* [capacity] */
    double *values;       /* [capacity][max_slot_count], FORELOOP_SLOT_ABSENT behind the kind's slots */
    float *rows;          /* [capacity][row_stride], and all slices behind; row 0 is zero */
    float **slices;       /* [slices][capacity][FORELOOP_TRANSH_SLICE]: d; row 0 is zero */
    foreloop_action_note *notes;
    size_t kinds_capacity, values_capacity, notes_capacity; /* in elements */
    size_t rows_capacity;                                   /* in actions */
    uint64_t *slots; /* open addressing: upper half of the hash and entry, 0 for free */
    size_t slot_mask;

    /* Scratch of interning: */
    float *hidden, *phi, *embedding;
    double *keys;        /* values of the actions that are looked up together */
    uint32_t *kind_ends; /* [kinds] */
    uint32_t *by_kind;   /* new actions, kind by kind */
    size_t by_kind_capacity;
    uint32_t *batch; /* ids of the batch that is being interned */
    size_t batch_capacity;
    foreloop_text_hint *hints;         /* [FORELOOP_TEXT_HINTS], by address */
    foreloop_argument_hint *arguments; /* [kinds][FORELOOP_ARGUMENT_HINTS] */
    foreloop_actions_report report;
};

/* `plan` is borrowed. */
foreloop_status foreloop_action_table_create(foreloop_actions **actions, const foreloop_allocator *allocator,
                                             const foreloop_rollout_plan *plan, uint64_t fingerprint, size_t capacity,
                                             foreloop_error *error);

/* The kind of an action, kind_count when the model does not know it, and the values of its slots (vocabulary.h) in
 * values[slot_count]. Errors as of foreloop_actions_intern. */
foreloop_status foreloop_read_action(foreloop_actions *actions, const foreloop_action *action, size_t *kind_found,
                                     double *values, foreloop_action_note *note, foreloop_error *error);

/* A hint of nothing. */
extern const foreloop_argument_hint foreloop_no_argument_hint;

/* Forgets all actions but the first `count` entries, and sets the report. Nobody may know the ids of the others. */
void foreloop_action_table_forget(foreloop_actions *actions, size_t count, const foreloop_actions_report *report);

#endif
