/* The bar is drawn anew in its line when the percentage changes. */
#include "progress.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WIDTH = 40 };

void progress_begin(progress *bar, const char *what) {
    const char *terminal = getenv("TERM");
    *bar = (progress){.what = what, .percent = 101};
    bar->shown = isatty(STDERR_FILENO) && terminal && strcmp(terminal, "dumb") != 0;
}

void progress_show(progress *bar, size_t done, size_t total) {
    const size_t percent = total ? (size_t)(100.0 * (double)done / (double)total) : 100;
    char line[WIDTH + 1];
    if (!bar->shown || percent == bar->percent)
        return;
    bar->percent = percent;
    for (size_t i = 0; i < WIDTH; i++)
        line[i] = i * 100 < percent * WIDTH ? '#' : '.';
    line[WIDTH] = '\0';
    (void)fprintf(stderr, "\r%s [%s] %3zu %%", bar->what, line, percent);
    (void)fflush(stderr);
}

void progress_end(progress *bar) {
    if (bar->shown && bar->percent <= 100)
        (void)fprintf(stderr, "\r\033[K");
    bar->shown = false;
}
