/* The intern table: distinct actions, each with its kind, phi and embedding, found by exact comparison. */
#ifndef FORELOOP_TRANSH_ACTION_H
#define FORELOOP_TRANSH_ACTION_H

#include "transh/transition.h"

struct foreloop_actions {
    foreloop_allocator allocator;
    const foreloop_vocabulary *vocabulary;
    const foreloop_transition *transition;
    uint64_t fingerprint; /* of the model */
    size_t limit;         /* distinct actions at the most */
    size_t count;         /* entries in use, with entry 0: FORELOOP_ACTION_UNKNOWN */
    uint32_t *kinds;      /* [capacity] */
    double *values;       /* [capacity][max_slot_count], FORELOOP_SLOT_ABSENT behind the kind's slots */
    float *phi;           /* [capacity][max_element_count] */
    float *embeddings;    /* [capacity][stride] */
    size_t kinds_capacity, values_capacity, phi_capacity, embeddings_capacity; /* in elements */
    uint32_t *slots;                                                           /* open addressing: entry, 0 for free */
    size_t slot_mask;
    float *hidden;   /* scratch of the MLP */
    double *key;     /* the slot values that are looked up */
    uint32_t *batch; /* ids of the batch that is being interned */
    size_t batch_capacity;
    foreloop_actions_report report;
};

/* vocabulary and transition are borrowed. */
foreloop_status foreloop_action_table_create(foreloop_actions **actions, const foreloop_allocator *allocator,
                                             const foreloop_vocabulary *vocabulary,
                                             const foreloop_transition *transition, uint64_t fingerprint,
                                             size_t capacity, foreloop_error *error);

static inline const float *foreloop_action_phi(const foreloop_actions *actions, uint32_t id) {
    return actions->phi + id * actions->vocabulary->max_element_count;
}

static inline const float *foreloop_action_embedding(const foreloop_actions *actions, uint32_t id) {
    return actions->embeddings + id * actions->transition->stride;
}

#endif
