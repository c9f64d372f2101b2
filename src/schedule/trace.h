/* A trace of schedule instructions, read from a line of a tuning log, and its walk into canonical actions. */
#ifndef FORELOOP_SCHEDULE_TRACE_H
#define FORELOOP_SCHEDULE_TRACE_H

#include "schedule/names.h"
#include "schedule/value.h"

typedef struct foreloop_kind_info foreloop_kind_info;

typedef struct foreloop_instruction {
    const foreloop_kind_info *kind; /* NULL: not known */
    foreloop_value inputs;          /* array */
    foreloop_value attrs;           /* array */
    foreloop_value outputs;         /* array of variables */
    const foreloop_value *decision; /* of a Sample instruction; NULL when the record has none */
    uint32_t place;                 /* number of the record's instructions up to and with this one */
} foreloop_instruction;

typedef struct foreloop_trace {
    const foreloop_instruction *instructions;
    size_t count;
    size_t length; /* the record's instructions, all of them */
    size_t variable_count;
    size_t unknown;       /* instructions of the record whose kind is not known */
    size_t decided_twice; /* the first instruction with two decisions, counted from 1; 0: none */
    bool classes_stated;  /* with the axes: nothing else tells any */
} foreloop_trace;

/* One line of a tuning log. */
typedef struct foreloop_trace_record {
    foreloop_trace trace;
    int64_t workload;        /* number in the database; -1 when the record has a key instead */
    foreloop_text key;       /* of the workload; terminated, "" without one */
    const char *target;      /* terminated, "" without one */
    foreloop_value seconds;  /* array, as in the file, unchecked; null: not measured */
    bool measurement_failed; /* whatever `seconds` says */
} foreloop_trace_record;

/* What reading needs, kept from line to line. Zero-initialise. */
typedef struct foreloop_trace_reader {
    foreloop_value_parser parser;
    foreloop_names variables;
    /* of a host's record */
    foreloop_action *actions;
    size_t action_count, action_capacity;
    foreloop_argument *arguments; /* of all actions, one after the other */
    size_t argument_count, argument_capacity;
} foreloop_trace_reader;
void foreloop_trace_reader_close(foreloop_trace_reader *reader, const foreloop_allocator *allocator);

/* Reads a line of a MetaSchedule database or of an Ansor log. The record lives in `arena` and in the line. Positions in
 * errors are bytes of the line. */
foreloop_status foreloop_metaschedule_read(foreloop_trace_reader *reader, const char *line, size_t length,
                                           foreloop_arena *arena, foreloop_trace_record *record, foreloop_error *error);

/* A trace on its own: [[instructions], [decisions]]. */
foreloop_status foreloop_metaschedule_read_trace(foreloop_trace_reader *reader, const char *text, size_t length,
                                                 foreloop_arena *arena, foreloop_trace *trace, foreloop_error *error);

foreloop_status foreloop_ansor_read(foreloop_trace_reader *reader, const char *line, size_t length,
                                    foreloop_arena *arena, foreloop_trace_record *record, foreloop_error *error);

/* Turns traces into actions; keeps its tables from trace to trace. */
typedef struct foreloop_walk foreloop_walk;
foreloop_walk *foreloop_walk_create(const foreloop_allocator *allocator);
void foreloop_walk_close(foreloop_walk *walk);

/* The kind of a MetaSchedule instruction, NULL when it is not known. */
const foreloop_kind_info *foreloop_walk_find_kind(const char *name, size_t length);

typedef struct foreloop_walk_result {
    const foreloop_action *actions;
    const uint32_t *instructions;
    size_t action_count;
} foreloop_walk_result;

/* Reads a line of a host that says actions itself. The actions live in `reader` and `arena`. */
foreloop_status foreloop_host_read(foreloop_trace_reader *reader, const char *line, size_t length,
                                   foreloop_arena *arena, foreloop_trace_record *record, foreloop_walk_result *actions,
                                   foreloop_error *error);
/* Whether a line that is an object is such a one, as far as it can be told. */
bool foreloop_host_wrote(foreloop_trace_reader *reader, const char *line, size_t length, foreloop_arena *arena);

/* Walks a trace. The result lives in `arena` and in `walk` until its next use. Fails only for want of memory. Cost:
 * linear in the trace, with a bounded number of loops looked at for each instruction. */
foreloop_status foreloop_walk_trace(foreloop_walk *walk, const foreloop_trace *trace, bool full_trace,
                                    foreloop_arena *arena, foreloop_walk_result *result, foreloop_error *error);

/* The same in two steps, for a trace that is walked with many decisions. What the first pass learns does not depend on
 * them. The second, any number of times, walks the instructions before EnterPostproc and emits the actions of those
 * that are not silent[instruction], then `postprocess`. */
foreloop_status foreloop_walk_learn_trace(foreloop_walk *walk, const foreloop_trace *trace, foreloop_arena *arena,
                                          foreloop_error *error);
foreloop_status foreloop_walk_decided(foreloop_walk *walk, const foreloop_trace *trace, const unsigned char *silent,
                                      foreloop_arena *arena, foreloop_walk_result *result, foreloop_error *error);
/* The number of instructions before EnterPostproc. */
size_t foreloop_walk_search_length(const foreloop_trace *trace);

#endif
