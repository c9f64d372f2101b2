/* Results on standard output: tables that line up, JSON lines, and numbers for people. */
#ifndef FORELOOP_TOOLS_OUTPUT_H
#define FORELOOP_TOOLS_OUTPUT_H

#include "common/alloc.h"
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* False after an output error: a command that writes much stops then. */
bool output_ok(void);
/* Flushes standard output; false, with a message, when anything could not be written. */
bool output_finish(void);

/* ---- JSON ---- */

/* The shortest text that reads back to the same bits; null for what is not finite. NULL when out of memory. */
cJSON *output_json_float(float value);
cJSON *output_json_double(double value);
cJSON *output_json_count(uint64_t value);
cJSON *output_json_floats(const float *values, size_t count);
/* Adds the item under the name. Frees it and returns false when it is NULL or memory is out. */
bool output_json_add(cJSON *object, const char *name, cJSON *item);
bool output_json_append(cJSON *array, cJSON *item);
/* Prints the text as a JSON string, for what is written piece by piece. False when out of memory. */
bool output_json_text(const char *text);
/* Prints the value as one line and frees it. False when out of memory. */
bool output_json_line(cJSON *value);

/* ---- Numbers ---- */

enum { OUTPUT_NUMBER_SIZE = 40 };
/* "1.234 ms" */
const char *output_seconds(double seconds, char buffer[OUTPUT_NUMBER_SIZE]);
/* "48 KiB" */
const char *output_bytes(double bytes, char buffer[OUTPUT_NUMBER_SIZE]);
/* The values as one line, separated by spaces, each in its shortest form. */
void output_floats(const float *values, size_t count);

/* ---- Tables ---- */

typedef enum output_style { OUTPUT_PLAIN, OUTPUT_BOLD, OUTPUT_GREEN, OUTPUT_DIM, OUTPUT_STYLES } output_style;
/* The escape sequence, or "" unless standard output is a terminal that shows colours and NO_COLOR is unset. */
const char *output_style_begin(output_style style);
const char *output_style_end(output_style style);

typedef struct output_table {
    size_t column_count;
    const char *alignment; /* a letter for each column: l or r */
    struct output_row *rows;
    size_t row_count, row_capacity;
    const char **cells;
    size_t cell_count, cell_capacity;
    foreloop_arena texts; /* of the cells */
    bool failed;          /* out of memory: cells are missing */
} output_table;

/* `alignment` is borrowed. */
void output_table_begin(output_table *table, const char *alignment);
void output_table_row(output_table *table, output_style style);
void output_table_cell(output_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints the table, indented, and frees it. False when out of memory. */
bool output_table_print(output_table *table, int indent);

#endif
