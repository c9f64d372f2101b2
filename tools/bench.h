/* The parts of `foreloop bench`: one file for each, bench_PART.c. */
#ifndef FORELOOP_TOOLS_BENCH_H
#define FORELOOP_TOOLS_BENCH_H

#include <foreloop/foreloop.h>
#include <stdbool.h>

typedef struct bench_options {
    const char *part;   /* its name, as given */
    foreloop_tier tier; /* one that this machine has */
    int runs;           /* at least 1 */
    bool json;
    const char *tokenizer; /* a file, NULL: the default bundle's */
} bench_options;

/* Each measures one part, prints a table or a JSON object a line, and returns the exit status. */
int bench_scoring(const bench_options *given);
int bench_tokenizer(const bench_options *given);

#endif
