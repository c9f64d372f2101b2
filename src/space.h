/* A search space's insides: a sketch, and the ids of its actions in a table. */
#ifndef FORELOOP_SPACE_H
#define FORELOOP_SPACE_H

#include "schedule/sketch.h"
#include "transh/action.h"

enum {
    FORELOOP_SPACE_RUN = 32,   /* points whose actions are interned together */
    FORELOOP_SPACE_CHUNK = 256 /* points that are scored together: their new actions stay in the caches */
};

/* Ids of an action by the value of the decision that it depends on. */
typedef struct foreloop_space_ids {
    uint32_t *ids; /* UINT32_MAX: not interned yet */
    size_t count, capacity;
} foreloop_space_ids;

struct foreloop_space {
    foreloop_allocator allocator;
    foreloop_sketch sketch;
    foreloop_actions *actions; /* NULL: points only */

    foreloop_space_ids *kept;     /* [action_count] */
    unsigned char *much_silent;   /* [trace.count]: 1 for instructions whose action's id is kept */
    unsigned char *wanted_silent; /* [trace.count] */

    /* Of a run: */
    foreloop_arena arena;
    foreloop_action *list;
    size_t *list_at; /* where each one's id goes */
    uint32_t *list_ids;
    size_t list_count, list_capacity, at_capacity, ids_capacity;

    /* Of a chunk, or of the points of one call: */
    uint32_t *ids; /* [FORELOOP_SPACE_CHUNK][action_count] at least */
    size_t point_ids_capacity;
    size_t *offsets; /* [FORELOOP_SPACE_CHUNK + 1] */
};

/* ERROR_ARGUMENT unless every point has values that its decisions have. */
foreloop_status foreloop_space_check(const char *function, const foreloop_space *space, const uint32_t *points,
                                     size_t count, foreloop_error *error);

#endif
