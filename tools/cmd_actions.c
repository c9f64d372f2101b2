/* foreloop actions: what a tuning log's traces become. */
#include "common/number.h"
#include "input.h"
#include "output.h"
#include <inttypes.h>
#include <string.h>

typedef struct actions_options {
    const char *records;
    bool full_trace, json;
} actions_options;

static const cli_option options[] = {
    {"records", 'r', CLI_TEXT, offsetof(actions_options, records), "FILE",
     "A database_tuning_record.json of TVM MetaSchedule, an Ansor log, or a\nhost's own records, plain or gzip (- for "
     "standard input)."},
    {"full-trace", 0, CLI_FLAG, offsetof(actions_options, full_trace), NULL,
     "Show what follows EnterPostproc as it stands, instead of one\npostprocess action."},
    {"json", 0, CLI_FLAG, offsetof(actions_options, json), NULL,
     "Print an object a record: {\"index\":line from 0,\"workload\":w,\n\"actions\":[{\"kind\":k,\"args\":{...},"
     "\"instruction\":i}...],\n\"seconds\":[...],\"failed\":false,\"unknown_instructions\":n}."},
    {NULL, 0, CLI_FLAG, 0, NULL, NULL},
};

/* ---- JSON ---- */

static cJSON *json_arguments(const foreloop_action *action) {
    cJSON *object = cJSON_CreateObject();
    for (size_t i = 0; object && i < action->argument_count; i++) {
        const foreloop_argument *argument = &action->arguments[i];
        cJSON *value = argument->text ? cJSON_CreateString(argument->text) : output_json_double(argument->number);
        if (!output_json_add(object, argument->name, value)) {
            cJSON_Delete(object);
            return NULL;
        }
    }
    return object;
}

static cJSON *json_actions(const foreloop_record *record) {
    cJSON *array = cJSON_CreateArray();
    for (size_t i = 0; array && i < record->action_count; i++) {
        cJSON *object = cJSON_CreateObject();
        bool complete = output_json_append(array, object) &&
                        output_json_add(object, "kind", cJSON_CreateString(record->actions[i].kind)) &&
                        output_json_add(object, "args", json_arguments(&record->actions[i])) &&
                        output_json_add(object, "instruction", output_json_count(record->instructions[i]));
        if (!complete) {
            cJSON_Delete(array);
            return NULL;
        }
    }
    return array;
}

static cJSON *json_seconds(const foreloop_record *record) {
    cJSON *array = cJSON_CreateArray();
    for (size_t i = 0; array && i < record->seconds_count; i++)
        if (!output_json_append(array, output_json_double(record->seconds[i]))) {
            cJSON_Delete(array);
            return NULL;
        }
    return array;
}

static bool print_json(const foreloop_record *record) {
    cJSON *object = cJSON_CreateObject();
    if (output_json_add(object, "index", output_json_count(record->line)) &&
        output_json_add(object, "workload", output_json_double((double)record->workload)) &&
        output_json_add(object, "actions", json_actions(record)) &&
        output_json_add(object, "seconds", json_seconds(record)) &&
        output_json_add(object, "failed", cJSON_CreateBool(record->measurement_failed)) &&
        output_json_add(object, "unknown_instructions", output_json_count(record->unknown_instructions)))
        return output_json_line(object);
    cJSON_Delete(object);
    return false;
}

/* ---- Text ---- */

static void print_seconds(const foreloop_record *record) {
    char text[OUTPUT_NUMBER_SIZE];
    if (record->measurement_failed)
        printf(", the measurement failed");
    else if (record->seconds_count == 0)
        printf(", not measured");
    for (size_t i = 0; i < record->seconds_count; i++)
        printf("%s %s", i ? "," : ", measured", output_seconds(record->seconds[i], text));
}

static bool print_text(const foreloop_record *record) {
    output_table table;
    printf("%sline %" PRIu64 "%s: workload %" PRId64 ", %zu action%s", output_style_begin(OUTPUT_BOLD),
           record->line + 1, output_style_end(OUTPUT_BOLD), record->workload, record->action_count,
           cli_plural(record->action_count));
    print_seconds(record);
    if (record->unknown_instructions)
        printf(", %zu unknown instruction%s", record->unknown_instructions, cli_plural(record->unknown_instructions));
    (void)putchar('\n');
    output_table_begin(&table, "rll");
    for (size_t i = 0; i < record->action_count && !table.failed; i++) {
        const foreloop_action *action = &record->actions[i];
        char arguments[480] = "", number[FORELOOP_NUMBER_TEXT_SIZE];
        size_t used = 0;
        for (size_t j = 0; j < action->argument_count && used < sizeof arguments; j++) {
            const foreloop_argument *argument = &action->arguments[j];
            (void)foreloop_format_double(argument->number, number);
            int length = snprintf(arguments + used, sizeof arguments - used, "%s%s=%s", j ? " " : "", argument->name,
                                  argument->text ? argument->text : number);
            used += length > 0 ? (size_t)length : 0;
        }
        output_table_row(&table, OUTPUT_PLAIN);
        output_table_cell(&table, "%" PRIu32, record->instructions[i]);
        output_table_cell(&table, "%s", action->kind);
        output_table_cell(&table, "%s", arguments);
    }
    return output_table_print(&table, 2);
}

static int print_records(const actions_options *given) {
    input_records input;
    foreloop_record record;
    uint64_t count = 0;
    bool more;
    int status = input_records_open(&input, given->records, given->full_trace);
    if (status != CLI_DONE)
        return status;
    while (output_ok() && (status = input_records_next(&input, &record, &more)) == CLI_DONE && more) {
        count++;
        if (!(given->json ? print_json(&record) : print_text(&record))) {
            status = cli_fail_memory();
            break;
        }
    }
    if (status == CLI_DONE && count == 0)
        status = cli_fail("%s has no record that can be read (%" PRIu64
                          " line%s malformed): give a tuning log of TVM MetaSchedule or Ansor",
                          input.name, input.malformed, cli_plural(input.malformed));
    input_records_close(&input);
    return status;
}

static int run(int argc, char **argv) {
    actions_options given = {.records = NULL};
    int status;
    if (!cli_parse(&command_actions, argc, argv, &given, &status))
        return status;
    if (!given.records)
        return cli_fail_usage(&command_actions, "name the tuning log with -r FILE");
    return print_records(&given);
}

const cli_command command_actions = {
    .name = "actions",
    .summary = "Show the canonical actions of a tuning log's traces.",
    .usage = "-r FILE [--full-trace] [--json]",
    .description = "Prints each record's actions, one a line: after how many instructions (or steps of Ansor) the\n"
                   "action has happened, its kind, and its arguments. Lines that are malformed are named on\n"
                   "standard error and skipped; the exit status is 0 if any line could be used.",
    .options = options,
    .run = run,
};
