/* One line of an Ansor log: {"i": [[workload key, target, ...], [[], steps]], "r": [[costs], error, ...], "v": "v0.6"}.
 * Versions 0.2 to 0.6 differ in what follows the target, which nothing here reads. */
#include "schedule/ansor.h"
#include "common/error.h"

static foreloop_status fail_record(foreloop_value_parser *p, const char *what) {
    return foreloop_fail(p->error, FORELOOP_ERROR_FORMAT,
                         "%s; an Ansor record is {\"i\": [[key, target, ...], [[], steps]], \"r\": [[costs], error, "
                         "...], \"v\": version}",
                         what);
}

/* A terminated copy. */
static foreloop_status copy_text(foreloop_value_parser *p, const foreloop_value *value, const char **text) {
    *text = foreloop_arena_text(p->arena, value->text, value->count);
    return *text ? FORELOOP_OK : foreloop_fail_memory(p->error, value->count, 1, "the texts of a tuning record");
}

static foreloop_status read_input(foreloop_value_parser *p, const foreloop_value *input,
                                  foreloop_trace_record *record) {
    const foreloop_value *task = foreloop_value_item(input, 0), *state = foreloop_value_item(input, 1),
                         *key = foreloop_value_item(task, 0), *target = foreloop_value_item(task, 1),
                         *steps = foreloop_value_item(state, 1);
    if (key->type != FORELOOP_VALUE_TEXT || target->type != FORELOOP_VALUE_TEXT)
        return fail_record(p, "the workload's key or the target is missing");
    if (steps->type != FORELOOP_VALUE_ARRAY)
        return fail_record(p, "the steps are missing");
    record->workload = -1;
    record->key.length = key->count;
    FORELOOP_TRY(copy_text(p, key, &record->key.text));
    FORELOOP_TRY(copy_text(p, target, &record->target));
    return foreloop_ansor_translate(steps, p->arena, &record->trace, p->error);
}

static foreloop_status read_result(foreloop_value_parser *p, const foreloop_value *result,
                                   foreloop_trace_record *record) {
    const foreloop_value *costs = foreloop_value_item(result, 0), *failure = foreloop_value_item(result, 1);
    if (result->type == FORELOOP_VALUE_NULL)
        return FORELOOP_OK;
    if (result->type != FORELOOP_VALUE_ARRAY ||
        (costs->type != FORELOOP_VALUE_ARRAY && costs->type != FORELOOP_VALUE_NULL))
        return fail_record(p, "the costs are neither an array nor null");
    record->seconds = *costs;
    record->measurement_failed = failure->type == FORELOOP_VALUE_NUMBER && failure->number != 0;
    return FORELOOP_OK;
}

static foreloop_status check_version(foreloop_value_parser *p, const foreloop_value *version) {
    static const char *const known[] = {"v0.2", "v0.3", "v0.4", "v0.5", "v0.6"};
    if (version->type == FORELOOP_VALUE_NULL)
        return FORELOOP_OK;
    if (version->type != FORELOOP_VALUE_TEXT)
        return fail_record(p, "the version is no text");
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (foreloop_value_is(version, known[i]))
            return FORELOOP_OK;
    return foreloop_fail(p->error, FORELOOP_ERROR_UNSUPPORTED, "the record's version is %.*s; v0.2 to v0.6 can be read",
                         FORELOOP_QUOTED(version->text, version->count));
}

static foreloop_status read_line(foreloop_value_parser *p, foreloop_trace_record *record) {
    foreloop_value input = {.type = FORELOOP_VALUE_NULL}, result = input, version = input;
    FORELOOP_TRY(foreloop_json_object(&p->json));
    for (;;) {
        foreloop_text key;
        FORELOOP_TRY(foreloop_json_key(&p->json, &key));
        if (!key.text)
            break;
        if (foreloop_text_is(key, "i"))
            FORELOOP_TRY(foreloop_value_parse(p, &input));
        else if (foreloop_text_is(key, "r"))
            FORELOOP_TRY(foreloop_value_parse(p, &result));
        else if (foreloop_text_is(key, "v"))
            FORELOOP_TRY(foreloop_value_parse(p, &version));
        else
            FORELOOP_TRY(foreloop_json_skip(&p->json));
    }
    FORELOOP_TRY(foreloop_json_end(&p->json));
    FORELOOP_TRY(check_version(p, &version));
    FORELOOP_TRY(read_result(p, &result, record));
    return read_input(p, &input, record);
}

foreloop_status foreloop_ansor_read(foreloop_trace_reader *reader, const char *line, size_t length,
                                    foreloop_arena *arena, foreloop_trace_record *record, foreloop_error *error) {
    foreloop_trace_record read = {.key = {"", 0}, .target = ""};
    foreloop_value_parser_open(&reader->parser, line, length, arena, error);
    foreloop_status status = read_line(&reader->parser, &read);
    foreloop_value_parser_close(&reader->parser);
    if (status == FORELOOP_OK)
        *record = read;
    return status;
}
