/* One line of a host that says canonical actions itself: {"actions": [["kind", {"name": number or "text", ...}], ...],
 * "seconds": [...], "workload": 0, "target": "..."}. All but the actions may be missing; other members are the host's.
 */
#include "common/error.h"
#include "schedule/trace.h"
#include <math.h>
#include <string.h>

/* Texts in JSON may hold zero bytes, names in C may not. */
static foreloop_status copy_text(foreloop_value_parser *p, foreloop_text text, const char *what, const char **copy) {
    if (text.length == 0 || memchr(text.text, '\0', text.length))
        return foreloop_json_fail(&p->json, "%s is empty or holds a zero byte", what);
    *copy = foreloop_arena_text(p->arena, text.text, text.length);
    return *copy ? FORELOOP_OK : foreloop_fail_memory(p->error, text.length, 1, "the texts of a tuning record");
}

static foreloop_status read_argument(foreloop_value_parser *p, foreloop_text name, foreloop_argument *argument) {
    *argument = (foreloop_argument){.name = NULL};
    FORELOOP_TRY(copy_text(p, name, "an argument's name", &argument->name));
    if (foreloop_json_peek(&p->json) == FORELOOP_JSON_STRING) {
        foreloop_text text;
        FORELOOP_TRY(foreloop_json_string(&p->json, &text));
        return copy_text(p, text, "an argument's text", &argument->text);
    }
    FORELOOP_TRY(foreloop_json_double(&p->json, &argument->number));
    if (!isfinite(argument->number))
        return foreloop_json_fail(&p->json, "argument %s is not finite; leave out what is not known", argument->name);
    return FORELOOP_OK;
}

/* ["kind", {arguments}]; the arguments may be missing. */
static foreloop_status read_action(foreloop_trace_reader *reader, foreloop_action *action) {
    foreloop_value_parser *p = &reader->parser;
    const foreloop_allocator *allocator = p->arena->allocator;
    bool more;
    foreloop_text text;
    *action = (foreloop_action){.kind = NULL};
    FORELOOP_TRY(foreloop_json_array(&p->json));
    FORELOOP_TRY(foreloop_json_element(&p->json, &more));
    if (!more)
        return foreloop_json_fail(&p->json, "an action is [\"kind\", {arguments}]");
    FORELOOP_TRY(foreloop_json_string(&p->json, &text));
    FORELOOP_TRY(copy_text(p, text, "an action's kind", &action->kind));
    FORELOOP_TRY(foreloop_json_element(&p->json, &more));
    if (!more)
        return FORELOOP_OK;
    foreloop_json_keys keys = {.count = 0};
    FORELOOP_TRY(foreloop_json_object(&p->json));
    for (;;) {
        FORELOOP_TRY(foreloop_json_key_once(&p->json, &keys, &text));
        if (!text.text)
            break;
        FORELOOP_TRY(foreloop_reserve_one(allocator, &reader->arguments, &reader->argument_capacity,
                                          reader->argument_count, sizeof *reader->arguments, p->error));
        FORELOOP_TRY(read_argument(p, text, &reader->arguments[reader->argument_count]));
        reader->argument_count++;
        action->argument_count++;
    }
    FORELOOP_TRY(foreloop_json_element(&p->json, &more));
    return more ? foreloop_json_fail(&p->json, "an action is [\"kind\", {arguments}], and nothing more") : FORELOOP_OK;
}

static foreloop_status read_actions(foreloop_trace_reader *reader) {
    foreloop_value_parser *p = &reader->parser;
    reader->action_count = reader->argument_count = 0;
    FORELOOP_TRY(foreloop_json_array(&p->json));
    for (;;) {
        bool more;
        FORELOOP_TRY(foreloop_json_element(&p->json, &more));
        if (!more)
            return FORELOOP_OK;
        FORELOOP_TRY(foreloop_reserve_one(p->arena->allocator, &reader->actions, &reader->action_capacity,
                                          reader->action_count, sizeof *reader->actions, p->error));
        FORELOOP_TRY(read_action(reader, &reader->actions[reader->action_count]));
        reader->action_count++;
    }
}

static foreloop_status read_member(foreloop_trace_reader *reader, foreloop_text key, foreloop_trace_record *record,
                                   bool *has_actions) {
    foreloop_value_parser *p = &reader->parser;
    if (foreloop_text_is(key, "actions")) {
        *has_actions = true;
        return read_actions(reader);
    }
    if (foreloop_text_is(key, "seconds")) {
        FORELOOP_TRY(foreloop_value_parse(p, &record->seconds));
        if (record->seconds.type != FORELOOP_VALUE_ARRAY && record->seconds.type != FORELOOP_VALUE_NULL)
            return foreloop_json_fail(&p->json, "the run times are neither an array nor null");
        return FORELOOP_OK;
    }
    if (foreloop_text_is(key, "workload"))
        return foreloop_json_bounded(&p->json, 0, INT64_MAX, &record->workload);
    if (foreloop_text_is(key, "target")) {
        foreloop_text text;
        FORELOOP_TRY(foreloop_json_string(&p->json, &text));
        return copy_text(p, text, "the target", &record->target);
    }
    return foreloop_json_skip(&p->json);
}

static foreloop_status read_line(foreloop_trace_reader *reader, foreloop_trace_record *record) {
    foreloop_value_parser *p = &reader->parser;
    foreloop_json_keys keys = {.count = 0};
    bool has_actions = false;
    FORELOOP_TRY(foreloop_json_object(&p->json));
    for (;;) {
        foreloop_text key;
        FORELOOP_TRY(foreloop_json_key_once(&p->json, &keys, &key));
        if (!key.text)
            break;
        FORELOOP_TRY(read_member(reader, key, record, &has_actions));
    }
    if (!has_actions)
        return foreloop_json_fail(&p->json, "the record has no \"actions\"");
    return foreloop_json_end(&p->json);
}

/* Arguments have moved while their list grew; instruction i is action i. */
static foreloop_status finish(foreloop_trace_reader *reader, foreloop_walk_result *result) {
    const foreloop_argument *arguments = reader->arguments;
    uint32_t *instructions = foreloop_arena_allocate(reader->parser.arena, reader->action_count, sizeof *instructions);
    if (!instructions)
        return foreloop_fail_memory(reader->parser.error, reader->action_count, sizeof *instructions,
                                    "the actions of a tuning record");
    for (size_t i = 0; i < reader->action_count; i++) {
        instructions[i] = (uint32_t)(i + 1);
        reader->actions[i].arguments = arguments;
        if (arguments)
            arguments += reader->actions[i].argument_count;
    }
    *result = (foreloop_walk_result){reader->actions, instructions, reader->action_count};
    return FORELOOP_OK;
}

foreloop_status foreloop_host_read(foreloop_trace_reader *reader, const char *line, size_t length,
                                   foreloop_arena *arena, foreloop_trace_record *record, foreloop_walk_result *actions,
                                   foreloop_error *error) {
    foreloop_trace_record result = {.key = {"", 0}, .target = ""};
    foreloop_value_parser_open(&reader->parser, line, length, arena, error);
    foreloop_status status = read_line(reader, &result);
    if (status == FORELOOP_OK)
        status = finish(reader, actions);
    foreloop_value_parser_close(&reader->parser);
    if (status == FORELOOP_OK)
        *record = result;
    return status;
}

/* Ansor's records have a member "i" in their place. */
bool foreloop_host_wrote(foreloop_trace_reader *reader, const char *line, size_t length, foreloop_arena *arena) {
    foreloop_value_parser *p = &reader->parser;
    bool wrote = false;
    foreloop_value_parser_open(p, line, length, arena, NULL);
    for (foreloop_status status = foreloop_json_object(&p->json); status == FORELOOP_OK && !wrote;) {
        foreloop_text key;
        status = foreloop_json_key(&p->json, &key);
        if (status != FORELOOP_OK || !key.text || foreloop_text_is(key, "i"))
            break;
        wrote = foreloop_text_is(key, "actions");
        if (!wrote)
            status = foreloop_json_skip(&p->json);
    }
    foreloop_value_parser_close(p);
    return wrote;
}
