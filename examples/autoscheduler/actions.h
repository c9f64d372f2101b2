/* The canonical action of each transformation, appended to the schedule after the program has changed. */
#ifndef AUTOSCHEDULER_ACTIONS_H
#define AUTOSCHEDULER_ACTIONS_H

#include "schedule.h"

void action_split(schedule *s, const variable *axis, const int *factors, int parts);
void action_reorder(schedule *s, int b, int count);
void action_fuse(schedule *s, int loop, int count);
void action_loop_kind(schedule *s, int loop);
void action_cache_write(schedule *s, int b);
/* `beside`: the block whose nest the loop belongs to. */
void action_compute_at(schedule *s, const char *kind, int b, int beside, int loop);
void action_block(schedule *s, const char *kind, int b);
void action_rfactor(schedule *s, int b, int extent, int rest, int part);

#endif
