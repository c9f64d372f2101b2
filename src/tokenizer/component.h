/*
 * A component of tokenizer.json: an object with a "type" and fields. Its fields may come before its type and before the
 * fields that they depend on, so a component is read through spans: find the type, then walk the fields.
 */
#ifndef FORELOOP_TOKENIZER_COMPONENT_H
#define FORELOOP_TOKENIZER_COMPONENT_H

#include "common/json.h"

/* Takes the next value of `parent` as a document of its own, to be closed by foreloop_json_close. */
foreloop_status foreloop_component_open(foreloop_json *component, foreloop_json *parent,
                                        const foreloop_allocator *allocator);

/* Goes back to the start, to walk the value again. */
void foreloop_component_rewind(foreloop_json *component);

/* Copies the value of the first "type" and rewinds. An error when there is none, or when it does not fit. */
enum { FORELOOP_COMPONENT_TYPE_SIZE = 64 };
foreloop_status foreloop_component_type(foreloop_json *component, char type[FORELOOP_COMPONENT_TYPE_SIZE]);

/* Walks the fields: calls `read` for each, which reads the value or skips it. */
typedef foreloop_status foreloop_field_function(foreloop_json *component, foreloop_text key, void *context);
foreloop_status foreloop_component_fields(foreloop_json *component, foreloop_field_function *read, void *context);

/* Reads the next value of `parent`, a component or null (which is skipped): finds its type, walks its fields and then
 * calls `finish`. Both get `context`, which may hold the type. */
typedef foreloop_status foreloop_finish_function(foreloop_json *component, void *context);
foreloop_status foreloop_component_read(foreloop_json *parent, const foreloop_allocator *allocator,
                                        char type[FORELOOP_COMPONENT_TYPE_SIZE], foreloop_field_function *read,
                                        foreloop_finish_function *finish, void *context);

/* FORELOOP_ERROR_UNSUPPORTED at the reader's place. */
foreloop_status foreloop_component_unsupported(foreloop_json *component, const char *format, ...) FORELOOP_PRINTF(2, 3);

/* A string's copy in the arena. */
foreloop_status foreloop_component_text(foreloop_json *component, foreloop_arena *arena, foreloop_text *copy);
/* A string, or null: then copy->text is NULL. */
foreloop_status foreloop_component_optional_text(foreloop_json *component, foreloop_arena *arena, foreloop_text *copy);
/* A pattern, {"String": text} or {"Regex": text}. */
foreloop_status foreloop_component_pattern(foreloop_json *component, foreloop_arena *arena, foreloop_text *pattern,
                                           bool *is_regex);

/* A boolean field whose presence is checked afterwards: -1 is absent. */
typedef int foreloop_flag;
#define FORELOOP_FLAG_ABSENT (-1)
foreloop_status foreloop_component_flag(foreloop_json *component, foreloop_flag *flag);
/* A format error that names the field when the flag is absent. */
foreloop_status foreloop_component_require(foreloop_json *component, foreloop_flag flag, const char *type,
                                           const char *field);

#endif
