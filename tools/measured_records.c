/* Measured candidates from tuning records, their features formed by a model. */
#include "measured.h"
#include "progress.h"
#include "schedule/names.h"
#include <inttypes.h>
#include <string.h>

typedef struct record_reader {
    measured *data;
    foreloop_encoder *encoder;
    foreloop_actions *actions;
    foreloop_scorer *scorer;
    foreloop_workload *workload; /* of the present pair */
    foreloop_names targets;      /* of all records */
    foreloop_arena texts;
    uint32_t *ids;
    size_t id_capacity;
} record_reader;

static int fail_library(const char *name, const foreloop_error *error) {
    return cli_fail("%s: %s", name, error->message);
}

static int encode(record_reader *reader, const char *path) {
    foreloop_error error = {.code = FORELOOP_OK};
    input_file text;
    int status = input_read(&text, path);
    if (status != CLI_DONE)
        return status;
    foreloop_workload_close(reader->workload);
    reader->workload = NULL;
    status = input_check_program(text.data, text.size, text.name);
    if (status == CLI_DONE && foreloop_workload_encode(&reader->workload, reader->data->model, reader->encoder,
                                                       text.data, text.size, &error) != FORELOOP_OK)
        status = fail_library(text.name, &error);
    input_close(&text);
    return status;
}

/* The number of the record's target: candidates for different ones are not compared. */
static int find_target(record_reader *reader, const char *text, size_t *target) {
    const size_t length = strlen(text);
    if (foreloop_names_find(&reader->targets, text, length, target))
        return CLI_DONE;
    const char *copy = foreloop_arena_text(&reader->texts, text, length);
    if (!copy || foreloop_names_add(&reader->targets, cli_allocator(), copy, length, target, NULL) != FORELOOP_OK)
        return cli_fail_memory();
    return CLI_DONE;
}

static double mean(const double *values, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum / (double)count;
}

static int add_record(record_reader *reader, const foreloop_record *record, size_t pair, const char *name) {
    measured *data = reader->data;
    foreloop_error error = {.code = FORELOOP_OK};
    size_t target = 0;
    float *row;
    if (record->seconds_count == 0) {
        data->skipped++;
        return CLI_DONE;
    }
    if (foreloop_reserve(cli_allocator(), &reader->ids, &reader->id_capacity, 0, record->action_count,
                         sizeof *reader->ids, NULL) != FORELOOP_OK)
        return cli_fail_memory();
    foreloop_status interned =
        foreloop_actions_intern(reader->actions, record->actions, record->action_count, reader->ids, &error);
    if (interned == FORELOOP_ERROR_MEMORY || interned == FORELOOP_ERROR_LIMIT)
        return fail_library(name, &error);
    if (interned != FORELOOP_OK) {
        (void)cli_fail("%s: skipped: line %" PRIu64 ": %s", name, record->line + 1, error.message);
        data->skipped++;
        return CLI_DONE;
    }
    int status = find_target(reader, record->target, &target);
    if (status == CLI_DONE)
        status = measured_add(data, mean(record->seconds, record->seconds_count), (uint64_t)pair << 32 | target, &row);
    if (status == CLI_DONE && foreloop_features(reader->scorer, reader->workload, reader->ids, record->action_count,
                                                row, &error) != FORELOOP_OK)
        status = fail_library(name, &error);
    return status;
}

static int read_records(record_reader *reader, const char *path, size_t pair) {
    input_records input;
    foreloop_record record;
    int64_t workload = -1;
    bool more;
    int status = input_records_open(&input, path, false);
    if (status != CLI_DONE)
        return status;
    while ((status = input_records_next(&input, &record, &more)) == CLI_DONE && more) {
        if (workload >= 0 && record.workload != workload) {
            status =
                cli_fail("%s has records of several workloads: split it, and name each with its program", input.name);
            break;
        }
        workload = record.workload;
        status = add_record(reader, &record, pair, input.name);
        if (status != CLI_DONE)
            break;
    }
    reader->data->skipped += input.malformed;
    input_records_close(&input);
    return status;
}

static int open_reader(record_reader *reader, const measured_records *given) {
    measured *data = reader->data;
    foreloop_error error = {.code = FORELOOP_OK};
    foreloop_model_info info = {.size = sizeof info};
    foreloop_hardware hardware;
    int status = input_model_open(&data->model, given->model, NULL);
    foreloop_hardware_init(&hardware, sizeof hardware);
    if (status == CLI_DONE && given->hardware)
        status = input_hardware_read(&hardware, given->hardware);
    if (status != CLI_DONE)
        return status;
    if (foreloop_encoder_create(&reader->encoder, foreloop_model_transformer(data->model), &error) != FORELOOP_OK ||
        foreloop_actions_create(&reader->actions, data->model, UINT32_MAX - 1, &error) != FORELOOP_OK ||
        foreloop_scorer_create(&reader->scorer, data->model, reader->actions, given->hardware ? &hardware : NULL,
                               &error) != FORELOOP_OK)
        return cli_fail("%s", error.message);
    foreloop_model_get_info(data->model, &info);
    data->columns = info.feature_count;
    data->names = foreloop_allocate(cli_allocator(), data->columns, sizeof *data->names);
    if (!data->names)
        return cli_fail_memory();
    for (size_t i = 0; i < data->columns; i++)
        data->names[i] = foreloop_model_feature_name(data->model, i);
    return CLI_DONE;
}

int measured_read_records(measured *data, const measured_records *given) {
    record_reader reader = {.data = data, .texts = {.allocator = cli_allocator()}};
    progress bar;
    int status = open_reader(&reader, given);
    progress_begin(&bar, "reading ");
    for (size_t i = 0; status == CLI_DONE && i < given->workloads.count; i++) {
        progress_show(&bar, i, given->workloads.count);
        status = encode(&reader, given->workloads.items[i]);
        if (status == CLI_DONE)
            status = read_records(&reader, given->records.items[i], i);
    }
    progress_end(&bar);
    foreloop_scorer_close(reader.scorer);
    foreloop_actions_close(reader.actions);
    foreloop_workload_close(reader.workload);
    foreloop_encoder_close(reader.encoder);
    foreloop_names_close(&reader.targets, cli_allocator());
    foreloop_arena_close(&reader.texts);
    foreloop_release(cli_allocator(), reader.ids);
    if (status == CLI_DONE && data->count == 0)
        status =
            cli_fail("no record has a measured time (%" PRIu64 " skipped): give tuning logs of measured candidates",
                     data->skipped);
    return status == CLI_DONE ? measured_arrange(data) : status;
}
