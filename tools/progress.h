/* A progress bar on standard error, when that is a terminal. */
#ifndef FORELOOP_TOOLS_PROGRESS_H
#define FORELOOP_TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct progress {
    const char *what;
    bool shown;
    size_t percent; /* as last drawn */
} progress;

/* `what` is borrowed. */
void progress_begin(progress *bar, const char *what);
void progress_show(progress *bar, size_t done, size_t total);
/* Removes the bar. */
void progress_end(progress *bar);

#endif
