/* A MetaSchedule trace as it lies in a tuning record, and its walk into canonical actions. */
#ifndef FORELOOP_SCHEDULE_TRACE_H
#define FORELOOP_SCHEDULE_TRACE_H

#include "common/alloc.h"
#include "common/json.h"
#include <foreloop/foreloop.h>
#include <stdbool.h>

typedef enum foreloop_value_type {
    FORELOOP_VALUE_NULL,
    FORELOOP_VALUE_NUMBER, /* truth values are the numbers 0 and 1 */
    FORELOOP_VALUE_TEXT,
    FORELOOP_VALUE_ARRAY,
    FORELOOP_VALUE_OTHER /* an object; nothing reads those */
} foreloop_value_type;

/* A JSON value in the arena of its record. */
typedef struct foreloop_value {
    foreloop_value_type type;
    double number;
    const char *text; /* terminated */
    const struct foreloop_value *items;
    size_t count; /* of items, or bytes of text */
} foreloop_value;

typedef struct foreloop_instruction {
    foreloop_value kind;            /* text */
    foreloop_value inputs;          /* array */
    foreloop_value attrs;           /* array */
    foreloop_value outputs;         /* array of texts */
    const foreloop_value *decision; /* of a Sample instruction; NULL when the record has none */
} foreloop_instruction;

/* One line of a tuning-record file. */
typedef struct foreloop_trace_record {
    int64_t workload;
    const foreloop_instruction *instructions;
    size_t instruction_count;
    const foreloop_value *seconds; /* as in the file, unchecked */
    size_t seconds_count;
    const char *target; /* JSON text, terminated, or "" */
} foreloop_trace_record;

/* Growable scratch of the parser, reused from line to line. Zero-initialise. */
typedef struct foreloop_value_stack {
    foreloop_value *values;
    size_t count;
    size_t capacity;
} foreloop_value_stack;

/* Parses one line into `arena`. Positions in errors are bytes of the line. */
foreloop_status foreloop_trace_parse(foreloop_trace_record *record, const char *line, size_t length,
                                     foreloop_arena *arena, foreloop_value_stack *stack, foreloop_error *error);

/* Turns traces into actions; keeps its tables from trace to trace. */
typedef struct foreloop_walk foreloop_walk;
foreloop_walk *foreloop_walk_create(const foreloop_allocator *allocator);
void foreloop_walk_close(foreloop_walk *walk);

typedef struct foreloop_walk_result {
    const foreloop_action *actions;
    const uint32_t *instructions;
    size_t action_count;
    size_t unknown_instructions;
} foreloop_walk_result;

/* Walks a trace. The result lives in `arena` and in `walk` until its next use. Fails only for want of memory. Cost:
 * linear in the trace, with a bounded number of loops looked at for each instruction. */
foreloop_status foreloop_walk_trace(foreloop_walk *walk, const foreloop_instruction *instructions, size_t count,
                                    bool full_trace, foreloop_arena *arena, foreloop_walk_result *result,
                                    foreloop_error *error);

#endif
