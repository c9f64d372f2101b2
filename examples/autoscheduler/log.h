/*
 * The log of a search: a first line that names the operator, then a line for each trial, in the format of records that
 * foreloop reads (docs/ACTIONS.md, "Records of other hosts") with the decisions added. A search goes on from it, a
 * replay looks times up in it, and train/ learns from it.
 */
#ifndef AUTOSCHEDULER_LOG_H
#define AUTOSCHEDULER_LOG_H

#include "measure.h"
#include "space.h"

typedef struct trial {
    uint16_t choices[MAX_DECISIONS];
    double seconds; /* median; INFINITY: failed */
} trial;

typedef struct trials {
    trial *items;
    int count, capacity;
} trials;

/* Adds a copy; false without memory. */
bool trials_add(trials *t, const trial *item);
void trials_close(trials *t);

/* Reads what a log, plain or gzip, holds; a last line that was cut off is forgotten. False with a message when it
 * cannot be read, is no log of this operator, or a line is damaged. */
bool log_read(const char *path, const char *operator_text, const search_space *space, trials *t, char *message,
              size_t message_size);
/* The operator that a log is of, by its first line. False with a message. */
bool log_operator(const char *path, char *operator_text, size_t size, char *message, size_t message_size);
/* Opens a plain log, made if it is missing, to go on from it: reads it, and cuts off a line that is not whole. It is
 * this process's alone until it is closed or the process ends, however that comes. NULL with a message. */
FILE *log_open(const char *path, const char *operator_text, const search_space *space, trials *t, char *message,
               size_t message_size);
/* Appends one trial; false with errno when it could not be written. */
bool log_write(FILE *log, const search_space *space, const uint16_t *choices, const schedule *s, const measurement *m);

#endif
