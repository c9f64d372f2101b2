/* One line of database_tuning_record.json: [workload, [[instructions, decisions], seconds, target, arguments]]. */
#include "common/error.h"
#include "schedule/trace.h"
#include <math.h>
#include <string.h>

typedef struct parser {
    foreloop_json json;
    foreloop_arena *arena;
    foreloop_value_stack *stack;
    foreloop_error *error;
} parser;

static foreloop_status parse_value(parser *p, foreloop_value *value);

/* Elements gather on the stack until their number is known. */
static foreloop_status parse_array(parser *p, foreloop_value *value) {
    size_t first = p->stack->count;
    FORELOOP_TRY(foreloop_json_array(&p->json));
    for (;;) {
        bool more;
        FORELOOP_TRY(foreloop_json_element(&p->json, &more));
        if (!more)
            break;
        foreloop_value item;
        FORELOOP_TRY(parse_value(p, &item));
        foreloop_value_stack *stack = p->stack;
        FORELOOP_TRY(foreloop_reserve(p->arena->allocator, &stack->values, &stack->capacity, stack->count,
                                      stack->count + 1, sizeof *stack->values, p->error));
        stack->values[stack->count++] = item;
    }
    size_t count = p->stack->count - first;
    foreloop_value *items = foreloop_arena_allocate(p->arena, count, sizeof *items);
    if (!items)
        return foreloop_fail_memory(p->error, count, sizeof *items, "the values of a tuning record");
    if (count > 0)
        memcpy(items, p->stack->values + first, count * sizeof *items);
    p->stack->count = first;
    *value = (foreloop_value){.type = FORELOOP_VALUE_ARRAY, .items = items, .count = count};
    return FORELOOP_OK;
}

static foreloop_status parse_text(parser *p, foreloop_value *value) {
    foreloop_text text;
    FORELOOP_TRY(foreloop_json_string(&p->json, &text));
    char *copy = foreloop_arena_text(p->arena, text.text, text.length);
    if (!copy)
        return foreloop_fail_memory(p->error, text.length, 1, "the texts of a tuning record");
    *value = (foreloop_value){.type = FORELOOP_VALUE_TEXT, .text = copy, .count = text.length};
    return FORELOOP_OK;
}

/* The depth of the recursion is bounded by the reader. */
static foreloop_status parse_value(parser *p, foreloop_value *value) {
    bool truth = false;
    *value = (foreloop_value){.type = FORELOOP_VALUE_NULL};
    switch (foreloop_json_peek(&p->json)) {
    case FORELOOP_JSON_ARRAY:
        return parse_array(p, value);
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
    case FORELOOP_JSON_NULL:
    case FORELOOP_JSON_NONE:
        break;
    }
    return foreloop_json_null(&p->json);
}

static foreloop_status read_instruction(parser *p, const foreloop_value *value, size_t index,
                                        foreloop_instruction *instruction) {
    if (value->type != FORELOOP_VALUE_ARRAY || value->count < 4 || value->items[0].type != FORELOOP_VALUE_TEXT ||
        value->items[1].type != FORELOOP_VALUE_ARRAY || value->items[2].type != FORELOOP_VALUE_ARRAY ||
        value->items[3].type != FORELOOP_VALUE_ARRAY)
        return foreloop_fail(p->error, FORELOOP_ERROR_FORMAT,
                             "instruction %zu is not [\"kind\", [inputs], [attributes], [outputs]]", index);
    *instruction = (foreloop_instruction){value->items[0], value->items[1], value->items[2], value->items[3], NULL};
    for (size_t i = 0; i < instruction->outputs.count; i++)
        if (instruction->outputs.items[i].type != FORELOOP_VALUE_TEXT)
            return foreloop_fail(p->error, FORELOOP_ERROR_FORMAT,
                                 "output %zu of instruction %zu is not a variable's name in quotes", i, index);
    return FORELOOP_OK;
}

static foreloop_status read_decision(parser *p, const foreloop_value *value, size_t index,
                                     foreloop_instruction *instructions, size_t count) {
    if (value->type != FORELOOP_VALUE_ARRAY || value->count < 2 || value->items[0].type != FORELOOP_VALUE_NUMBER)
        return foreloop_fail(p->error, FORELOOP_ERROR_FORMAT, "decision %zu is not [instruction index, value]", index);
    double at = value->items[0].number;
    if (!(at >= 0 && at < (double)count) || at != floor(at))
        return foreloop_fail(p->error, FORELOOP_ERROR_FORMAT,
                             "decision %zu names an instruction that the trace of %zu does not have", index, count);
    instructions[(size_t)at].decision = &value->items[1];
    return FORELOOP_OK;
}

static foreloop_status read_trace(parser *p, const foreloop_value *trace, foreloop_trace_record *record) {
    if (trace->type != FORELOOP_VALUE_ARRAY || trace->count < 2 || trace->items[0].type != FORELOOP_VALUE_ARRAY ||
        trace->items[1].type != FORELOOP_VALUE_ARRAY)
        return foreloop_fail(p->error, FORELOOP_ERROR_FORMAT,
                             "the trace is not [[instructions], [decisions]]; is this a MetaSchedule tuning record?");
    const foreloop_value *list = &trace->items[0], *decisions = &trace->items[1];
    foreloop_instruction *instructions = foreloop_arena_allocate(p->arena, list->count, sizeof *instructions);
    if (!instructions)
        return foreloop_fail_memory(p->error, list->count, sizeof *instructions, "the instructions of a trace");
    for (size_t i = 0; i < list->count; i++)
        FORELOOP_TRY(read_instruction(p, &list->items[i], i, &instructions[i]));
    for (size_t i = 0; i < decisions->count; i++)
        FORELOOP_TRY(read_decision(p, &decisions->items[i], i, instructions, list->count));
    record->instructions = instructions;
    record->instruction_count = list->count;
    return FORELOOP_OK;
}

static foreloop_status expect_element(parser *p, const char *what) {
    bool more;
    FORELOOP_TRY(foreloop_json_element(&p->json, &more));
    if (!more)
        return foreloop_json_fail(&p->json, "%s is missing; a record is [workload, [trace, seconds, target, ...]]",
                                  what);
    return FORELOOP_OK;
}

/* What follows the trace: all of it may be missing, as in candidates that nobody has measured. */
static foreloop_status read_measurement(parser *p, foreloop_trace_record *record) {
    bool more;
    FORELOOP_TRY(foreloop_json_element(&p->json, &more));
    if (!more)
        return FORELOOP_OK;
    foreloop_value seconds;
    FORELOOP_TRY(parse_value(p, &seconds));
    if (seconds.type != FORELOOP_VALUE_ARRAY && seconds.type != FORELOOP_VALUE_NULL)
        return foreloop_json_fail(&p->json, "the run times are neither an array nor null");
    record->seconds = seconds.items;
    record->seconds_count = seconds.count;

    FORELOOP_TRY(foreloop_json_element(&p->json, &more));
    if (!more)
        return FORELOOP_OK;
    foreloop_text span;
    FORELOOP_TRY(foreloop_json_span(&p->json, &span));
    record->target = foreloop_arena_text(p->arena, span.text, span.length);
    if (!record->target)
        return foreloop_fail_memory(p->error, span.length, 1, "the target of a tuning record");

    for (;;) {
        FORELOOP_TRY(foreloop_json_element(&p->json, &more));
        if (!more)
            return FORELOOP_OK;
        FORELOOP_TRY(foreloop_json_skip(&p->json));
    }
}

static foreloop_status read_line(parser *p, foreloop_trace_record *record) {
    bool more;
    foreloop_value trace;
    FORELOOP_TRY(foreloop_json_array(&p->json));
    FORELOOP_TRY(expect_element(p, "the workload's index"));
    FORELOOP_TRY(foreloop_json_int64(&p->json, &record->workload));
    if (record->workload < 0)
        return foreloop_json_fail(&p->json, "the workload's index is negative");
    FORELOOP_TRY(expect_element(p, "the record"));
    FORELOOP_TRY(foreloop_json_array(&p->json));
    FORELOOP_TRY(expect_element(p, "the trace"));
    FORELOOP_TRY(parse_value(p, &trace));
    FORELOOP_TRY(read_trace(p, &trace, record));
    FORELOOP_TRY(read_measurement(p, record));
    FORELOOP_TRY(foreloop_json_element(&p->json, &more));
    if (more)
        return foreloop_json_fail(&p->json, "something follows the record; expected ] and the end of the line");
    return foreloop_json_end(&p->json);
}

foreloop_status foreloop_trace_parse(foreloop_trace_record *record, const char *line, size_t length,
                                     foreloop_arena *arena, foreloop_value_stack *stack, foreloop_error *error) {
    parser p = {.arena = arena, .stack = stack, .error = error};
    foreloop_trace_record result = {.target = ""};
    foreloop_json_open(&p.json, arena->allocator, line, length, "tuning record", error);
    stack->count = 0;
    foreloop_status status = read_line(&p, &result);
    foreloop_json_close(&p.json);
    if (status == FORELOOP_OK)
        *record = result;
    return status;
}
