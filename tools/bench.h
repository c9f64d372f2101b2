/* The parts of `foreloop bench`: one file for each, bench_PART.c; and what they share. */
#ifndef FORELOOP_TOOLS_BENCH_H
#define FORELOOP_TOOLS_BENCH_H

#include "common/alloc.h"
#include <foreloop/foreloop.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct bench_options {
    const char *part;             /* its name, as given */
    const char *model;            /* the file to measure instead of made-up models, or NULL; for parts that take one */
    foreloop_tier tier;           /* one that this machine has */
    foreloop_precision precision; /* of the encoder */
    bool amx;
    int runs; /* at least 1 */
    bool json;
    const char *tokenizer; /* a file, NULL: the default bundle's */
} bench_options;

/* Each measures one part, prints a table or a JSON object a line, and returns the exit status. */
int bench_encoder(const bench_options *given);
int bench_scoring(const bench_options *given);
int bench_gbdt(const bench_options *given);
int bench_tokenizer(const bench_options *given);

/* Seconds of processor time: what else the machine does matters less. */
double bench_clock(void);

/* 31 random bits. */
uint32_t bench_draw(uint64_t *random);

/* Appends formatted text of at most 511 bytes. False when out of memory. */
bool bench_print(foreloop_buffer *text, const char *format, va_list arguments);

#endif
