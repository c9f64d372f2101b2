/* The parts of `foreloop bench`: one file for each, bench_PART.c. */
#ifndef FORELOOP_TOOLS_BENCH_H
#define FORELOOP_TOOLS_BENCH_H

#include <foreloop/foreloop.h>
#include <stdbool.h>

typedef struct bench_options {
    const char *part;             /* its name, as given */
    foreloop_tier tier;           /* one that this machine has */
    foreloop_precision precision; /* of the encoder */
    bool amx;
    int runs; /* at least 1 */
    bool json;
} bench_options;

/* Each measures one part, prints a table or a JSON object a line, and returns the exit status. */
int bench_encoder(const bench_options *given);
int bench_scoring(const bench_options *given);

#endif
