/* A table of names: each distinct text gets a number, from 0 in the order of first use. */
#ifndef FORELOOP_SCHEDULE_NAMES_H
#define FORELOOP_SCHEDULE_NAMES_H

#include "common/alloc.h"
#include <foreloop/foreloop.h>
#include <stdbool.h>

typedef struct foreloop_name {
    const char *text; /* borrowed */
    size_t length;
    uint64_t hash;
    size_t slot;
} foreloop_name;

/* Zero-initialise. */
typedef struct foreloop_names {
    foreloop_name *names;
    size_t count, capacity;
    uint32_t *slots; /* index into names + 1 */
    size_t slot_count;
} foreloop_names;

/* Forgets all names and keeps the memory. */
void foreloop_names_reset(foreloop_names *names);
void foreloop_names_close(foreloop_names *names, const foreloop_allocator *allocator);

/* The number of a name, which is new when it is names->count before the call. `text` is borrowed until the reset. */
foreloop_status foreloop_names_add(foreloop_names *names, const foreloop_allocator *allocator, const char *text,
                                   size_t length, size_t *number, foreloop_error *error);
bool foreloop_names_find(const foreloop_names *names, const char *text, size_t length, size_t *number);

#endif
