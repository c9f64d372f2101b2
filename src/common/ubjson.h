/* UBJSON behind the reader's interface: what json.c calls where the document is binary, and what both share. */
#ifndef FORELOOP_COMMON_UBJSON_H
#define FORELOOP_COMMON_UBJSON_H

#include "common/json.h"

/* The type of the next value; consumes only no-ops. */
foreloop_json_type foreloop_ubjson_peek(foreloop_json *json);

/* Opens a container, whose type the caller has seen. */
foreloop_status foreloop_ubjson_open(foreloop_json *json, bool is_object);
/* Moves to the innermost container's next item; *more is false when the container was closed. */
foreloop_status foreloop_ubjson_next(foreloop_json *json, bool *more);
/* A key, or the text behind a string's marker. */
foreloop_status foreloop_ubjson_text(foreloop_json *json, foreloop_text *text);

foreloop_status foreloop_ubjson_string(foreloop_json *json, foreloop_text *value);
foreloop_status foreloop_ubjson_number(foreloop_json *json, foreloop_text *value);
foreloop_status foreloop_ubjson_float(foreloop_json *json, float *value);
foreloop_status foreloop_ubjson_double(foreloop_json *json, double *value);
foreloop_status foreloop_ubjson_int64(foreloop_json *json, int64_t *value);
foreloop_status foreloop_ubjson_bool(foreloop_json *json, bool *value);
foreloop_status foreloop_ubjson_null(foreloop_json *json);
foreloop_status foreloop_ubjson_end(foreloop_json *json);

/* Skips a value that is no container. */
foreloop_status foreloop_ubjson_skip(foreloop_json *json);
/* In a typed container that was just opened: moves behind its values if they are numbers. */
void foreloop_ubjson_skip_numbers(foreloop_json *json);

/* In an array that was just opened: appends all its values to the list if they are of one numeric type. */
foreloop_status foreloop_ubjson_integers(foreloop_json *json, int64_t minimum, int64_t maximum,
                                         foreloop_integers *list);
foreloop_status foreloop_ubjson_floats(foreloop_json *json, foreloop_floats *list);

/* Of json.c: failures at a place, and because the next value is not what was wanted. */
foreloop_status foreloop_json_fail_at(foreloop_json *json, foreloop_status code, size_t offset, const char *format, ...)
    FORELOOP_PRINTF(4, 5);
foreloop_status foreloop_json_fail_type(foreloop_json *json, const char *wanted);

#endif
