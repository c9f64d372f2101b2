/* Reading JSON values into a tree. */
#include "schedule/value.h"
#include "common/error.h"
#include <string.h>

void foreloop_value_parser_open(foreloop_value_parser *parser, const char *line, size_t length, foreloop_arena *arena,
                                foreloop_error *error) {
    parser->arena = arena;
    parser->error = error;
    parser->stack_count = 0;
    parser->depth = 0;
    foreloop_json_open(&parser->json, arena->allocator, line, length, "tuning record", error);
}

void foreloop_value_parser_close(foreloop_value_parser *parser) {
    foreloop_json_close(&parser->json);
}

static inline bool is_plain(char byte) {
    return (unsigned char)(byte - ' ') < 0x80 - ' ' && byte != '"' && byte != '\\';
}

static inline bool is_digit(char byte) {
    return (unsigned char)(byte - '0') <= 9;
}

/* Most of a record: texts that stand for themselves, and short whole numbers. Anything else, malformed or not, is left
 * where it is. */
static inline bool parse_plain(foreloop_json *json, foreloop_value *value) {
    enum { DIGITS = 9 };
    const char *at = json->data + json->offset, *end = json->data + json->size;
    if (at < end && *at == '"') {
        const char *start = ++at;
        while (at < end && is_plain(*at))
            at++;
        if (at == end || *at != '"')
            return false;
        value->type = FORELOOP_VALUE_TEXT;
        value->count = (uint32_t)(at - start);
        value->text = start;
        json->offset = (size_t)(at + 1 - json->data);
        return true;
    }
    const char *start = at;
    uint32_t number = 0;
    if (end - at > DIGITS)
        end = at + DIGITS;
    while (at < end && is_digit(*at))
        number = number * 10 + (uint32_t)(*at++ - '0');
    if (at == start || at == end || (*at != ',' && *at != ']') || (*start == '0' && at - start > 1))
        return false;
    value->type = FORELOOP_VALUE_NUMBER;
    value->count = 0;
    value->number = number;
    json->offset = (size_t)(at - json->data);
    return true;
}

/* Moves over white space; the byte there, 0 at the end. */
static inline char next_byte(foreloop_json *json) {
    const char *at = json->data + json->offset, *end = json->data + json->size;
    while (at < end && (unsigned char)*at <= ' ' && (*at == ' ' || *at == '\t' || *at == '\r'))
        at++;
    json->offset = (size_t)(at - json->data);
    return at < end ? *at : '\0';
}

static foreloop_status reserve_element(foreloop_value_parser *p) {
    return foreloop_reserve_one(p->arena->allocator, &p->stack, &p->stack_capacity, p->stack_count, sizeof *p->stack,
                                p->error);
}

/* Up to the closing bracket. Elements gather on the stack until their number is known. */
static foreloop_status parse_elements(foreloop_value_parser *p) {
    foreloop_json *json = &p->json;
    if (next_byte(json) == ']')
        return FORELOOP_OK;
    for (;;) {
        FORELOOP_TRY(reserve_element(p));
        if (!parse_plain(json, &p->stack[p->stack_count])) {
            foreloop_value item;
            FORELOOP_TRY(foreloop_value_parse(p, &item));
            FORELOOP_TRY(reserve_element(p));
            p->stack[p->stack_count] = item;
        }
        p->stack_count++;
        char separator = next_byte(json);
        if (separator == ']')
            return FORELOOP_OK;
        if (separator != ',')
            return foreloop_json_fail(json, "expected a comma or ']'");
        json->offset++;
        (void)next_byte(json);
    }
}

/* Arrays are most of what is between the values, so they are read here; the reader's place is at the bracket. */
static foreloop_status parse_array(foreloop_value_parser *p, foreloop_value *value) {
    size_t first = p->stack_count;
    if (++p->depth > FORELOOP_JSON_MAX_DEPTH)
        return foreloop_json_fail(&p->json, "values are nested deeper than %d", FORELOOP_JSON_MAX_DEPTH);
    p->json.offset++;
    FORELOOP_TRY(parse_elements(p));
    p->json.offset++;
    p->depth--;
    size_t count = p->stack_count - first;
    foreloop_value *items = NULL;
    if (count > 0) {
        items = foreloop_arena_allocate(p->arena, count, sizeof *items);
        if (!items)
            return foreloop_fail_memory(p->error, count, sizeof *items, "the values of a tuning record");
        memcpy(items, p->stack + first, count * sizeof *items);
    }
    p->stack_count = first;
    *value = (foreloop_value){.type = FORELOOP_VALUE_ARRAY, .count = (uint32_t)count, .items = items};
    return FORELOOP_OK;
}

static foreloop_status parse_text(foreloop_value_parser *p, foreloop_value *value) {
    foreloop_text text;
    FORELOOP_TRY(foreloop_json_string(&p->json, &text));
    if (text.text == p->json.scratch.data) {
        text.text = foreloop_arena_text(p->arena, text.text, text.length);
        if (!text.text)
            return foreloop_fail_memory(p->error, text.length, 1, "the texts of a tuning record");
    }
    *value = (foreloop_value){.type = FORELOOP_VALUE_TEXT, .count = (uint32_t)text.length, .text = text.text};
    return FORELOOP_OK;
}

foreloop_status foreloop_value_parse(foreloop_value_parser *p, foreloop_value *value) {
    bool truth = false;
    if (next_byte(&p->json) == '[')
        return parse_array(p, value);
    *value = (foreloop_value){.type = FORELOOP_VALUE_NULL};
    switch (foreloop_json_peek(&p->json)) {
    case FORELOOP_JSON_STRING:
        return parse_text(p, value);
    case FORELOOP_JSON_NUMBER:
        value->type = FORELOOP_VALUE_NUMBER;
        return foreloop_json_double(&p->json, &value->number);
    case FORELOOP_JSON_BOOL:
        FORELOOP_TRY(foreloop_json_bool(&p->json, &truth));
        value->type = FORELOOP_VALUE_NUMBER;
        value->number = truth ? 1 : 0;
        return FORELOOP_OK;
    case FORELOOP_JSON_OBJECT:
        value->type = FORELOOP_VALUE_OTHER;
        return foreloop_json_skip(&p->json);
    case FORELOOP_JSON_ARRAY: /* read already */
    case FORELOOP_JSON_NULL:
    case FORELOOP_JSON_NONE:
        break;
    }
    return foreloop_json_null(&p->json);
}

bool foreloop_value_is(const foreloop_value *value, const char *expected) {
    return value->type == FORELOOP_VALUE_TEXT && value->count == strlen(expected) &&
           memcmp(value->text, expected, value->count) == 0;
}

bool foreloop_value_integer(const foreloop_value *value, int64_t least, int64_t most, int64_t *integer) {
    if (value->type != FORELOOP_VALUE_NUMBER || !(value->number >= (double)least && value->number <= (double)most) ||
        value->number != (double)(int64_t)value->number)
        return false;
    *integer = (int64_t)value->number;
    return true;
}
