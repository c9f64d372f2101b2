/* Reading the components of tokenizer.json. */
#include "tokenizer/component.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

foreloop_status foreloop_component_open(foreloop_json *component, foreloop_json *parent,
                                        const foreloop_allocator *allocator) {
    foreloop_text span;
    FORELOOP_TRY(foreloop_json_span(parent, &span));
    foreloop_json_open(component, allocator, span.text, span.length, parent->name, parent->error);
    component->base = parent->base + (size_t)(span.text - parent->data);
    return FORELOOP_OK;
}

void foreloop_component_rewind(foreloop_json *component) {
    component->offset = 0;
    component->depth = 0;
}

foreloop_status foreloop_component_type(foreloop_json *component, char type[FORELOOP_COMPONENT_TYPE_SIZE]) {
    foreloop_text key, value;

    FORELOOP_TRY(foreloop_json_object(component));
    for (;;) {
        FORELOOP_TRY(foreloop_json_key(component, &key));
        if (!key.text)
            return foreloop_json_fail(component,
                                      "this component has no \"type\"; save the file anew with tokenizers 0.23");
        if (foreloop_text_is(key, "type"))
            break;
        FORELOOP_TRY(foreloop_json_skip(component));
    }
    FORELOOP_TRY(foreloop_json_string(component, &value));
    if (value.length == 0 || value.length >= FORELOOP_COMPONENT_TYPE_SIZE || memchr(value.text, '\0', value.length))
        return foreloop_component_unsupported(component, "the component type \"%.*s\" is not supported",
                                              FORELOOP_QUOTED(value.text, value.length));
    memcpy(type, value.text, value.length);
    type[value.length] = '\0';
    foreloop_component_rewind(component);
    return FORELOOP_OK;
}

foreloop_status foreloop_component_fields(foreloop_json *component, foreloop_field_function *read, void *context) {
    foreloop_text key;

    FORELOOP_TRY(foreloop_json_object(component));
    for (;;) {
        FORELOOP_TRY(foreloop_json_key(component, &key));
        if (!key.text)
            return FORELOOP_OK;
        FORELOOP_TRY(read(component, key, context));
    }
}

foreloop_status foreloop_component_read(foreloop_json *parent, const foreloop_allocator *allocator,
                                        char type[FORELOOP_COMPONENT_TYPE_SIZE], foreloop_field_function *read,
                                        foreloop_finish_function *finish, void *context) {
    foreloop_json component;
    foreloop_status status;

    if (foreloop_json_peek(parent) == FORELOOP_JSON_NULL)
        return foreloop_json_null(parent);
    FORELOOP_TRY(foreloop_component_open(&component, parent, allocator));
    status = foreloop_component_type(&component, type);
    if (status == FORELOOP_OK)
        status = foreloop_component_fields(&component, read, context);
    if (status == FORELOOP_OK)
        status = finish(&component, context);
    foreloop_json_close(&component);
    return status;
}

foreloop_status foreloop_component_unsupported(foreloop_json *component, const char *format, ...) {
    uint64_t position = (uint64_t)component->base + component->offset;
    char message[sizeof(((foreloop_error *)0)->message)];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return foreloop_fail_at(component->error, FORELOOP_ERROR_UNSUPPORTED, FORELOOP_POSITION_BYTE, position,
                            "%s: byte %" PRIu64 ": %s", component->name, position, message);
}

foreloop_status foreloop_component_text(foreloop_json *component, foreloop_arena *arena, foreloop_text *copy) {
    foreloop_text value;
    char *text;

    FORELOOP_TRY(foreloop_json_string(component, &value));
    text = foreloop_arena_text(arena, value.text, value.length);
    if (!text)
        return foreloop_fail_memory(component->error, value.length + 1, 1, "a string of the tokenizer");
    copy->text = text;
    copy->length = value.length;
    return FORELOOP_OK;
}

foreloop_status foreloop_component_optional_text(foreloop_json *component, foreloop_arena *arena, foreloop_text *copy) {
    if (foreloop_json_peek(component) == FORELOOP_JSON_NULL) {
        copy->text = NULL;
        copy->length = 0;
        return foreloop_json_null(component);
    }
    return foreloop_component_text(component, arena, copy);
}

foreloop_status foreloop_component_pattern(foreloop_json *component, foreloop_arena *arena, foreloop_text *pattern,
                                           bool *is_regex) {
    foreloop_text key;

    FORELOOP_TRY(foreloop_json_object(component));
    FORELOOP_TRY(foreloop_json_key(component, &key));
    *is_regex = foreloop_text_is(key, "Regex");
    if (!*is_regex && !foreloop_text_is(key, "String"))
        return foreloop_json_fail(component, "a pattern is {\"String\": ...} or {\"Regex\": ...}");
    FORELOOP_TRY(foreloop_component_text(component, arena, pattern));
    FORELOOP_TRY(foreloop_json_key(component, &key));
    return key.text ? foreloop_json_fail(component, "a pattern has one field, String or Regex") : FORELOOP_OK;
}

foreloop_status foreloop_component_flag(foreloop_json *component, foreloop_flag *flag) {
    bool value;
    FORELOOP_TRY(foreloop_json_bool(component, &value));
    *flag = value;
    return FORELOOP_OK;
}

foreloop_status foreloop_component_require(foreloop_json *component, foreloop_flag flag, const char *type,
                                           const char *field) {
    if (flag == FORELOOP_FLAG_ABSENT)
        return foreloop_json_fail(component, "%s has no field \"%s\"", type, field);
    return FORELOOP_OK;
}
