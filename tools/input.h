/* What commands read: whole files and standard input, texts one by one, tuning records, models, matrices. */
#ifndef FORELOOP_TOOLS_INPUT_H
#define FORELOOP_TOOLS_INPUT_H

#include "cli.h"
#include "common/json.h"
#include <stdio.h>

/* ---- Whole files ---- */

typedef struct input_file {
    char *data; /* terminated behind `size` */
    size_t size;
    const char *name; /* for messages */
} input_file;

/* What is read whole is bounded, so that endless input ends with a message and not with the memory. */
#define INPUT_SETTINGS_LIMIT ((size_t)1 << 20)
#define INPUT_TEXT_LIMIT     ((size_t)64 << 20) /* of a program, a text, a line of --jsonl */
#define INPUT_MATRIX_LIMIT   ((size_t)1 << 30)  /* of features, and of records that come through a pipe */

/* Reads a file of any kind (pipes too), or standard input for "-" and NULL, of `limit` bytes at the most. Prints a
 * message on failure. */
int input_read_bytes(input_file *file, const char *path, size_t limit);
/* Reads a program: without a byte order mark, and checked by input_check_program. */
int input_read(input_file *file, const char *path);
/* A program is text and holds more than comments and blanks. */
int input_check_program(const char *text, size_t length, const char *name);
/* The length of the UTF-8 byte order mark at the text's start, 0 without one. */
size_t input_mark_length(const char *text, size_t length);
void input_drop_mark(input_file *file);
void input_close(input_file *file);
/* How messages call the file. */
const char *input_name(const char *path);

/* ---- Texts of `encode` and `tokenize` ---- */

typedef struct input_texts input_texts;

/* The whole input is one text, taken as it stands, or with `jsonl` each line is one JSON string. */
int input_texts_open(input_texts **texts, const char *path, bool jsonl);
/* What messages call the current text. */
const char *input_texts_name(const input_texts *texts);
void input_texts_close(input_texts *texts);
/* The next text, valid until the next call. *more is false behind the last one. */
int input_texts_next(input_texts *texts, const char **text, size_t *length, bool *more);

/* ---- Tuning records ---- */

typedef struct input_records {
    foreloop_records *records;
    input_file content; /* of what cannot be mapped */
    const char *name;
    uint64_t malformed; /* lines skipped so far */
} input_records;

int input_records_open(input_records *input, const char *path, bool full_trace);
void input_records_close(input_records *input);
/* The next record that can be read. Malformed lines are named on standard error, counted and passed over. */
int input_records_next(input_records *input, foreloop_record *record, bool *more);

/* ---- Models ---- */

/* The options of --precision (NULL: f32) and --amx. Prints a message for a precision that there is not. */
int input_model_options(foreloop_options *options, const cli_command *command, const char *precision, bool amx);
/* Opens the bundle at `path`, or the default bundle when it is NULL. Options may be NULL. */
int input_model_open(foreloop_model **model, const char *path, const foreloop_options *options);

/* ---- Feature rows ---- */

typedef struct input_matrix {
    float *values; /* [rows][columns] */
    size_t rows, columns;
    foreloop_text *names; /* of the columns, NULL without a header line */
    input_file content;   /* what the names point into */
} input_matrix;

/* Reads .npy or CSV, told apart by content. */
int input_matrix_read(input_matrix *matrix, const char *path);
void input_matrix_close(input_matrix *matrix);

/* ---- Hardware ---- */

typedef struct input_hardware_field {
    const char *name;
    size_t offset; /* of a double in foreloop_hardware */
} input_hardware_field;
/* Ends with a field without a name. */
extern const input_hardware_field input_hardware_fields[];
double input_hardware_get(const foreloop_hardware *hardware, const input_hardware_field *field);
/* Reads a JSON object with these fields; those that are absent are 0, unknown. */
int input_hardware_read(foreloop_hardware *hardware, const char *path);

#endif
