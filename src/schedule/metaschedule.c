/* One line of database_tuning_record.json: [workload, [[instructions, decisions], seconds, target, arguments]]. */
#include "common/error.h"
#include "schedule/trace.h"
#include <math.h>

typedef foreloop_value_parser parser;

void foreloop_trace_reader_close(foreloop_trace_reader *reader, const foreloop_allocator *allocator) {
    foreloop_release(allocator, reader->parser.stack);
    foreloop_release(allocator, reader->actions);
    foreloop_release(allocator, reader->arguments);
    foreloop_names_close(&reader->variables, allocator);
}

static foreloop_status read_instruction(foreloop_trace_reader *reader, foreloop_value *value, size_t index,
                                        foreloop_instruction *instruction) {
    const foreloop_value *items = value->items;
    if (value->type != FORELOOP_VALUE_ARRAY || value->count < 4 || items[0].type != FORELOOP_VALUE_TEXT ||
        items[1].type != FORELOOP_VALUE_ARRAY || items[2].type != FORELOOP_VALUE_ARRAY ||
        items[3].type != FORELOOP_VALUE_ARRAY)
        return foreloop_fail(reader->parser.error, FORELOOP_ERROR_FORMAT,
                             "instruction %zu is not [\"kind\", [inputs], [attributes], [outputs]]", index);
    *instruction = (foreloop_instruction){foreloop_walk_find_kind(items[0].text, items[0].count),
                                          items[1],
                                          items[2],
                                          items[3],
                                          NULL,
                                          (uint32_t)(index + 1)};
    foreloop_value *outputs = instruction->outputs.items;
    for (size_t i = 0; i < instruction->outputs.count; i++) {
        if (outputs[i].type != FORELOOP_VALUE_TEXT)
            return foreloop_fail(reader->parser.error, FORELOOP_ERROR_FORMAT,
                                 "output %zu of instruction %zu is not a variable's name in quotes", i, index);
        size_t variable;
        FORELOOP_TRY(foreloop_names_add(&reader->variables, reader->parser.arena->allocator, outputs[i].text,
                                        outputs[i].count, &variable, reader->parser.error));
        outputs[i] = (foreloop_value){.type = FORELOOP_VALUE_VARIABLE, .variable = variable};
    }
    return FORELOOP_OK;
}

static foreloop_status read_decision(parser *p, const foreloop_value *value, size_t index,
                                     foreloop_instruction *instructions, size_t count, size_t *twice) {
    if (value->type != FORELOOP_VALUE_ARRAY || value->count < 2 || value->items[0].type != FORELOOP_VALUE_NUMBER)
        return foreloop_fail(p->error, FORELOOP_ERROR_FORMAT, "decision %zu is not [instruction index, value]", index);
    double at = value->items[0].number;
    if (!(at >= 0 && at < (double)count) || at != floor(at))
        return foreloop_fail(p->error, FORELOOP_ERROR_FORMAT,
                             "decision %zu names an instruction that the trace of %zu does not have", index, count);
    const size_t own = (size_t)at;
    if (instructions[own].decision && (*twice == 0 || own + 1 < *twice))
        *twice = own + 1;
    instructions[own].decision = &value->items[1];
    return FORELOOP_OK;
}

/* Texts among the inputs that are an output's name, of any instruction. */
static void resolve_variables(const foreloop_names *variables, const foreloop_value *inputs) {
    for (size_t i = 0; i < inputs->count; i++) {
        foreloop_value *input = &inputs->items[i];
        size_t variable;
        if (input->type == FORELOOP_VALUE_ARRAY)
            resolve_variables(variables, input);
        else if (input->type == FORELOOP_VALUE_TEXT &&
                 foreloop_names_find(variables, input->text, input->count, &variable))
            *input = (foreloop_value){.type = FORELOOP_VALUE_VARIABLE, .variable = variable};
    }
}

static foreloop_status read_trace(foreloop_trace_reader *reader, const foreloop_value *value, foreloop_trace *trace) {
    parser *p = &reader->parser;
    const foreloop_value *list = foreloop_value_item(value, 0), *decisions = foreloop_value_item(value, 1);
    if (list->type != FORELOOP_VALUE_ARRAY || decisions->type != FORELOOP_VALUE_ARRAY)
        return foreloop_fail(p->error, FORELOOP_ERROR_FORMAT,
                             "the trace is not [[instructions], [decisions]]; is this a MetaSchedule tuning record?");
    foreloop_instruction *instructions = foreloop_arena_allocate(p->arena, list->count, sizeof *instructions);
    if (!instructions)
        return foreloop_fail_memory(p->error, list->count, sizeof *instructions, "the instructions of a trace");
    foreloop_names_reset(&reader->variables);
    for (size_t i = 0; i < list->count; i++) {
        FORELOOP_TRY(read_instruction(reader, &list->items[i], i, &instructions[i]));
        trace->unknown += !instructions[i].kind;
    }
    for (size_t i = 0; i < list->count; i++)
        resolve_variables(&reader->variables, &instructions[i].inputs);
    for (size_t i = 0; i < decisions->count; i++)
        FORELOOP_TRY(read_decision(p, &decisions->items[i], i, instructions, list->count, &trace->decided_twice));
    trace->instructions = instructions;
    trace->count = trace->length = list->count;
    trace->variable_count = reader->variables.count;
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
    FORELOOP_TRY(foreloop_value_parse(p, &record->seconds));
    if (record->seconds.type != FORELOOP_VALUE_ARRAY && record->seconds.type != FORELOOP_VALUE_NULL)
        return foreloop_json_fail(&p->json, "the run times are neither an array nor null");

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

static foreloop_status read_line(foreloop_trace_reader *reader, foreloop_trace_record *record) {
    parser *p = &reader->parser;
    bool more;
    foreloop_value value;
    FORELOOP_TRY(foreloop_json_array(&p->json));
    FORELOOP_TRY(expect_element(p, "the workload's index"));
    FORELOOP_TRY(foreloop_json_int64(&p->json, &record->workload));
    if (record->workload < 0)
        return foreloop_json_fail(&p->json, "the workload's index is negative");
    FORELOOP_TRY(expect_element(p, "the record"));
    FORELOOP_TRY(foreloop_json_array(&p->json));
    FORELOOP_TRY(expect_element(p, "the trace"));
    FORELOOP_TRY(foreloop_value_parse(p, &value));
    FORELOOP_TRY(read_trace(reader, &value, &record->trace));
    FORELOOP_TRY(read_measurement(p, record));
    FORELOOP_TRY(foreloop_json_element(&p->json, &more));
    if (more)
        return foreloop_json_fail(&p->json, "something follows the record; expected ] and the end of the line");
    return foreloop_json_end(&p->json);
}

foreloop_status foreloop_metaschedule_read(foreloop_trace_reader *reader, const char *line, size_t length,
                                           foreloop_arena *arena, foreloop_trace_record *record,
                                           foreloop_error *error) {
    foreloop_trace_record result = {.key = {"", 0}, .target = ""};
    foreloop_value_parser_open(&reader->parser, line, length, arena, error);
    foreloop_status status = read_line(reader, &result);
    foreloop_value_parser_close(&reader->parser);
    if (status == FORELOOP_OK)
        *record = result;
    return status;
}

foreloop_status foreloop_metaschedule_read_trace(foreloop_trace_reader *reader, const char *text, size_t length,
                                                 foreloop_arena *arena, foreloop_trace *trace, foreloop_error *error) {
    foreloop_trace result = {.instructions = NULL};
    foreloop_value value;
    foreloop_value_parser_open(&reader->parser, text, length, arena, error);
    foreloop_status status = foreloop_value_parse(&reader->parser, &value);
    if (status == FORELOOP_OK)
        status = read_trace(reader, &value, &result);
    if (status == FORELOOP_OK)
        status = foreloop_json_end(&reader->parser.json);
    foreloop_value_parser_close(&reader->parser);
    if (status == FORELOOP_OK)
        *trace = result;
    return status;
}
