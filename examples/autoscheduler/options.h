/* The command line. */
#ifndef AUTOSCHEDULER_OPTIONS_H
#define AUTOSCHEDULER_OPTIONS_H

#include "search.h"

typedef struct options {
    const char *command;
    int argument_count;
    char **arguments; /* what is no option */
    search_options search;
    measure_options measure;
    const char *out; /* folder, of collect and states */
    bool json;
} options;

/* Returns 0, or the exit status to end with: 2 after a complaint on standard error, 0 < 0 after --help. */
int options_read(options *o, int argc, char **argv);

#endif
