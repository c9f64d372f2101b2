/* Building one action: arguments gathered by name, then emitted; unknown values are left out. */
#ifndef FORELOOP_SCHEDULE_WALK_EMIT_H
#define FORELOOP_SCHEDULE_WALK_EMIT_H

#include "schedule/walk_state.h"

/* Names must outlive the records: string constants. Numbers that are not finite are left out. */
void foreloop_walk_add_number(foreloop_walk *walk, const char *name, double number);
void foreloop_walk_add_text(foreloop_walk *walk, const char *name, const char *text);
/* A text that need not be terminated; it is copied when the action is emitted. */
void foreloop_walk_add_copy(foreloop_walk *walk, const char *name, const foreloop_value *text);
void foreloop_walk_add_extent(foreloop_walk *walk, const char *name, double extent); /* 0 is unknown */
void foreloop_walk_add_class(foreloop_walk *walk, foreloop_loop_class kind);

/* `role` and `block`: which block an action is about. */
void foreloop_walk_add_block(foreloop_walk *walk, size_t block);
/* `location`, `depth` and what is known of the loop there and of the loops outside and inside of it. */
void foreloop_walk_add_location(foreloop_walk *walk, size_t block, size_t depth);
/* The shape of a block's whole nest: products of extents by place, class and tile level. */
void foreloop_walk_add_nest(foreloop_walk *walk, size_t block);

/* What the nest of the only tiled block has become: products of its loops from each level inward, and what will run in
 * parallel. Nothing when there is none, or its loops are not all known. */
void foreloop_walk_add_summary(foreloop_walk *walk);

/* Emits the gathered arguments as an action of this kind, or drops them in the first pass. */
foreloop_status foreloop_walk_emit(foreloop_walk *walk, const char *kind);

#endif
