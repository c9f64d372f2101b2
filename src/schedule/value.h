/* JSON values of a tuning record, as a tree in the arena of the record. */
#ifndef FORELOOP_SCHEDULE_VALUE_H
#define FORELOOP_SCHEDULE_VALUE_H

#include "common/alloc.h"
#include "common/json.h"
#include <foreloop/foreloop.h>
#include <stdbool.h>

typedef enum foreloop_value_type {
    FORELOOP_VALUE_NULL,
    FORELOOP_VALUE_NUMBER, /* truth values are the numbers 0 and 1 */
    FORELOOP_VALUE_TEXT,
    FORELOOP_VALUE_ARRAY,
    FORELOOP_VALUE_VARIABLE, /* a text that names a variable of the trace; not made by the parser */
    FORELOOP_VALUE_OTHER     /* an object; nothing reads those */
} foreloop_value_type;

typedef struct foreloop_value {
    foreloop_value_type type;
    uint32_t count; /* of items, or bytes of text: a line is not longer than FORELOOP_LINE_MAX */
    union {
        double number;
        const char *text; /* not terminated; in the line or in the arena */
        struct foreloop_value *items;
        size_t variable;
    };
} foreloop_value;

/* What reading a line needs. */
typedef struct foreloop_value_parser {
    foreloop_json json;
    foreloop_arena *arena;
    foreloop_error *error;
    /* elements of open arrays, until their number is known; kept from line to line */
    foreloop_value *stack;
    size_t stack_count, stack_capacity;
    int depth; /* of open arrays */
} foreloop_value_parser;

/* Begins with a line, whose length is at most FORELOOP_LINE_MAX; it is borrowed as long as the values are used. */
void foreloop_value_parser_open(foreloop_value_parser *parser, const char *line, size_t length, foreloop_arena *arena,
                                foreloop_error *error);
/* Ends with the line; the stack stays. */
void foreloop_value_parser_close(foreloop_value_parser *parser);

/* Any value. Texts stay in the line unless they have escapes. */
foreloop_status foreloop_value_parse(foreloop_value_parser *parser, foreloop_value *value);

/* An element of an array; a null value when there is none, or no array. */
static inline const foreloop_value *foreloop_value_item(const foreloop_value *array, size_t index) {
    static const foreloop_value nothing = {.type = FORELOOP_VALUE_NULL};
    return array->type == FORELOOP_VALUE_ARRAY && index < array->count ? &array->items[index] : &nothing;
}
bool foreloop_value_is(const foreloop_value *value, const char *expected);
/* A whole number from `least` to `most`. */
bool foreloop_value_integer(const foreloop_value *value, int64_t least, int64_t most, int64_t *integer);

#endif
