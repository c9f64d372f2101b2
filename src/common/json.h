/*
 * Pull reader for JSON in memory, and for UBJSON behind the same functions. Keeps the text of numbers, counts string
 * lengths (zero bytes are data), accepts NaN, Infinity and -Infinity as numbers, bounds the depth and allocates only
 * for strings with escapes, by the caller's allocator. Strict otherwise (RFC 8259): no comments, no trailing commas,
 * nothing behind the value. Unescaped control characters in strings and invalid UTF-8 are errors; lone surrogate
 * escapes become U+FFFD.
 *
 * The caller walks the value that it expects:
 *
 *     FORELOOP_TRY(foreloop_json_object(&json));
 *     for (;;) {
 *         FORELOOP_TRY(foreloop_json_key(&json, &key));     // key.text == NULL at the closing brace
 *         if (!key.text) break;
 *         if (foreloop_text_is(key, "size")) FORELOOP_TRY(foreloop_json_int64(&json, &size));
 *         else FORELOOP_TRY(foreloop_json_skip(&json));
 *     }
 *
 * Every function consumes exactly one value (or opens one container) and fails with FORELOOP_ERROR_FORMAT, the byte
 * offset and a message with the reader's name, when the value has another type.
 *
 * UBJSON (draft 12): every width of number, high-precision numbers, characters as strings of one character, counted
 * and typed containers, no-ops. What has no counterpart there is said at the function.
 */
#ifndef FORELOOP_COMMON_JSON_H
#define FORELOOP_COMMON_JSON_H

#include "common/alloc.h"
#include "common/error.h"
#include <foreloop/foreloop.h>
#include <stdbool.h>

enum { FORELOOP_JSON_MAX_DEPTH = 256 };

typedef struct foreloop_text {
    const char *text; /* not terminated */
    size_t length;
} foreloop_text;
bool foreloop_text_is(foreloop_text text, const char *terminated);

typedef enum foreloop_json_type {
    FORELOOP_JSON_OBJECT,
    FORELOOP_JSON_ARRAY,
    FORELOOP_JSON_STRING,
    FORELOOP_JSON_NUMBER,
    FORELOOP_JSON_BOOL,
    FORELOOP_JSON_NULL,
    FORELOOP_JSON_NONE /* no value here: end of container or of text, or a malformed byte */
} foreloop_json_type;

typedef struct foreloop_json {
    const char *data;
    size_t size;
    size_t offset;    /* of the next unread byte */
    size_t base;      /* added to offsets in errors: where `data` lies in its file */
    const char *name; /* of the document, for messages; borrowed */
    foreloop_error *error;
    foreloop_buffer scratch;     /* the last string, unescaped */
    foreloop_buffer key_scratch; /* the last key, unescaped */
    bool binary;                 /* UBJSON */
    size_t depth;
    unsigned char first[FORELOOP_JSON_MAX_DEPTH]; /* per open container: nothing read in it yet */
    unsigned char is_object[FORELOOP_JSON_MAX_DEPTH];
    unsigned char element_type[FORELOOP_JSON_MAX_DEPTH]; /* UBJSON: the marker of all its values; 0: each has its own */
    size_t remaining[FORELOOP_JSON_MAX_DEPTH];           /* UBJSON: of a counted one; SIZE_MAX: a bracket ends it */
} foreloop_json;

/* `data` and `name` are borrowed. */
void foreloop_json_open(foreloop_json *json, const foreloop_allocator *allocator, const void *data, size_t size,
                        const char *name, foreloop_error *error);
void foreloop_json_open_ubjson(foreloop_json *json, const foreloop_allocator *allocator, const void *data, size_t size,
                               const char *name, foreloop_error *error);
/* Whether the document, that starts with `{`, is UBJSON: there a key begins with the type of its length. */
bool foreloop_json_is_ubjson(const void *data, size_t size);
void foreloop_json_close(foreloop_json *json);

/* The type of the next value, consuming nothing but white space. Inside a container, after the key or element call. */
foreloop_json_type foreloop_json_peek(foreloop_json *json);

foreloop_status foreloop_json_object(foreloop_json *json);                  /* opens an object */
foreloop_status foreloop_json_key(foreloop_json *json, foreloop_text *key); /* next key; text NULL: object closed */
/* The same where a key may stand but once in its object: FORMAT when it has been before. `keys` is of the object,
 * zeroed at its beginning. */
typedef struct foreloop_json_keys {
    uint64_t hashes[64]; /* an object with more keys is refused */
    size_t count;
} foreloop_json_keys;
foreloop_status foreloop_json_key_once(foreloop_json *json, foreloop_json_keys *keys, foreloop_text *key);
/* A whole object whose keys stand but once: `read` consumes the value of one after the other. */
typedef foreloop_status (*foreloop_json_field)(void *user, foreloop_text key);
foreloop_status foreloop_json_fields(foreloop_json *json, foreloop_json_field read, void *user);
foreloop_status foreloop_json_array(foreloop_json *json);               /* opens an array */
foreloop_status foreloop_json_element(foreloop_json *json, bool *more); /* false: array closed */

/* Strings are valid until the next string (or, for keys, the next key) is read. */
foreloop_status foreloop_json_string(foreloop_json *json, foreloop_text *value);
/* The number's own text; in UBJSON only a high-precision number has one. */
foreloop_status foreloop_json_number(foreloop_json *json, foreloop_text *value);
foreloop_status foreloop_json_float(foreloop_json *json, float *value);
foreloop_status foreloop_json_double(foreloop_json *json, double *value);
foreloop_status foreloop_json_int64(foreloop_json *json, int64_t *value);
/* A whole number within the bounds, else FORELOOP_ERROR_VALUE. */
foreloop_status foreloop_json_bounded(foreloop_json *json, int64_t minimum, int64_t maximum, int64_t *value);
/* A count or index: a whole number from 0 to `maximum`, else FORELOOP_ERROR_VALUE. */
foreloop_status foreloop_json_size(foreloop_json *json, size_t maximum, size_t *value);
foreloop_status foreloop_json_bool(foreloop_json *json, bool *value);
foreloop_status foreloop_json_null(foreloop_json *json);
foreloop_status foreloop_json_skip(foreloop_json *json); /* any value, any depth up to the bound */
/* Skips a value and gives its text, to be read later by a reader of its own (with base set to the span's place). Not
 * for UBJSON, where a value of a typed container is no document. */
foreloop_status foreloop_json_span(foreloop_json *json, foreloop_text *span);
/* Whole arrays of numbers into lists that grow and are used again; zero-initialise. Typed arrays of UBJSON are read
 * without a call for each number. true and false count as 1 and 0 among integers; one that is not within the bounds
 * gives FORELOOP_ERROR_VALUE. The lists' memory is of the reader's allocator and released by the caller. */
typedef struct foreloop_integers {
    int64_t *items;
    size_t count, capacity;
} foreloop_integers;
typedef struct foreloop_floats {
    float *items;
    size_t count, capacity;
} foreloop_floats;
foreloop_status foreloop_json_integers(foreloop_json *json, int64_t minimum, int64_t maximum, foreloop_integers *list);
foreloop_status foreloop_json_floats(foreloop_json *json, foreloop_floats *list);

/* Writing: appends `before`, then the text as a JSON string. */
foreloop_status foreloop_buffer_append_json(foreloop_buffer *buffer, const char *before, foreloop_text text,
                                            foreloop_error *error);

/* After the last value: nothing but white space may follow. */
foreloop_status foreloop_json_end(foreloop_json *json);

/* A format error at the reader's place, for the caller's own checks. */
foreloop_status foreloop_json_fail(foreloop_json *json, const char *format, ...) FORELOOP_PRINTF(2, 3);

#endif
