/* The operators that the auto-scheduler knows, as programs of any shape. */
#ifndef AUTOSCHEDULER_OPERATORS_H
#define AUTOSCHEDULER_OPERATORS_H

#include "program.h"

/* Reads "matmul 512 512 512" and the like (operators_help) and builds the program, not scheduled. On failure returns
 * false and a message. */
bool operator_build(const char *text, program *p, char *message, size_t message_size);

/* One line for each operator, for a usage message. */
extern const char operators_help[];

/* A name for files: the text with _ for blanks. */
void operator_name(const char *text, char *name, size_t size);

#endif
