/* The commands: each returns an exit status. */
#ifndef AUTOSCHEDULER_COMMANDS_H
#define AUTOSCHEDULER_COMMANDS_H

#include "options.h"

int command_search(const options *o);
int command_show(const options *o);
int command_baseline(const options *o);
int command_collect(const options *o);
int command_states(const options *o);
int command_replay(const options *o);

/* Builds the operator and its space, complaining on standard error. */
bool open_operator(const char *text, search_space *space);
/* Of a command that takes one operator and no more. */
bool open_only_operator(const options *o, search_space *space);

#endif
