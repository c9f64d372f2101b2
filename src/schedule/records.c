/* The public reader of tuning records: lines -> traces -> canonical actions. Each line tells its format: an array is of
 * MetaSchedule, an object is of Ansor, or of a host that says the actions itself.
 */
#include "common/error.h"
#include "common/file.h"
#include "common/sized.h"
#include "schedule/lines.h"
#include "schedule/trace.h"
#include <string.h>

/* TVM writes 1e10 for a candidate that did not build or run. */
static const double FAILED_SECONDS = 1e9;

struct foreloop_records {
    foreloop_allocator allocator;
    int full_trace;
    foreloop_file file; /* zero when the data are the caller's */
    foreloop_lines *lines;
    foreloop_walk *walk;
    foreloop_arena arena; /* of the current record */
    foreloop_trace_reader reader;
    foreloop_names workloads; /* keys of Ansor's records, in copies of their own */
};

void foreloop_records_options_init(foreloop_records_options *options, size_t size) {
    foreloop_sized_init(options, size);
}

void foreloop_records_close(foreloop_records *records) {
    if (!records)
        return;
    foreloop_allocator allocator = records->allocator;
    foreloop_lines_close(records->lines);
    foreloop_walk_close(records->walk);
    foreloop_arena_close(&records->arena);
    foreloop_trace_reader_close(&records->reader, &allocator);
    for (size_t i = 0; i < records->workloads.count; i++)
        foreloop_release(&allocator, (char *)(uintptr_t)records->workloads.names[i].text);
    foreloop_names_close(&records->workloads, &allocator);
    foreloop_file_close(&records->file);
    foreloop_release(&allocator, records);
}

static foreloop_status create(foreloop_records **records, const foreloop_records_options *options,
                              foreloop_error *error) {
    foreloop_records_options given;
    FORELOOP_TRY(foreloop_sized_read(&given, sizeof given, options, "foreloop_records_options", error));
    foreloop_allocator allocator = foreloop_allocator_or_default(given.allocator);
    foreloop_records *r = foreloop_allocate_zeroed(&allocator, 1, sizeof *r);
    if (!r)
        return foreloop_fail_memory(error, 1, sizeof *r, "a reader of tuning records");
    r->allocator = allocator;
    r->full_trace = given.full_trace;
    r->arena.allocator = &r->allocator;
    r->walk = foreloop_walk_create(&r->allocator);
    if (!r->walk) {
        foreloop_records_close(r);
        return foreloop_fail_memory(error, 1, 1, "a reader of tuning records");
    }
    *records = r;
    return FORELOOP_OK;
}

foreloop_status foreloop_records_open(foreloop_records **records, const char *path,
                                      const foreloop_records_options *options, foreloop_error *error) {
    if (!records || !path)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "foreloop_records_open: records and path must not be NULL");
    foreloop_records *r = NULL;
    FORELOOP_TRY(create(&r, options, error));
    foreloop_status status = foreloop_file_open(&r->file, path, &r->allocator, false, error);
    if (status == FORELOOP_OK)
        status = foreloop_lines_open(&r->lines, r->file.data, r->file.size, &r->allocator, error);
    if (status != FORELOOP_OK) {
        foreloop_records_close(r);
        return status;
    }
    *records = r;
    return FORELOOP_OK;
}

foreloop_status foreloop_records_open_memory(foreloop_records **records, const void *data, size_t size,
                                             const foreloop_records_options *options, foreloop_error *error) {
    if (!records || (!data && size > 0))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "foreloop_records_open_memory: records and data must not be NULL");
    foreloop_records *r = NULL;
    FORELOOP_TRY(create(&r, options, error));
    foreloop_status status = foreloop_lines_open(&r->lines, data ? data : "", size, &r->allocator, error);
    if (status != FORELOOP_OK) {
        foreloop_records_close(r);
        return status;
    }
    *records = r;
    return FORELOOP_OK;
}

/* The first byte that is not blank; '#' for a line without one, which says as little as a comment. */
static char first_byte(const char *line, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
            return line[i];
    return '#';
}

/* Workloads that the file has no numbers for are numbered as they come. */
static foreloop_status number_workload(foreloop_records *r, foreloop_text key, int64_t *workload,
                                       foreloop_error *error) {
    size_t number;
    if (!foreloop_names_find(&r->workloads, key.text, key.length, &number)) {
        char *copy = foreloop_copy_text(&r->allocator, key.text, key.length);
        if (!copy)
            return foreloop_fail_memory(error, key.length, 1, "the workloads of a tuning log");
        foreloop_status status = foreloop_names_add(&r->workloads, &r->allocator, copy, key.length, &number, error);
        if (status != FORELOOP_OK) {
            foreloop_release(&r->allocator, copy);
            return status;
        }
    }
    *workload = (int64_t)number;
    return FORELOOP_OK;
}

/* All run times, or none when one of them tells of a failure. */
static foreloop_status take_seconds(foreloop_records *r, const foreloop_trace_record *trace, foreloop_record *record,
                                    foreloop_error *error) {
    size_t count = trace->seconds.type == FORELOOP_VALUE_ARRAY ? trace->seconds.count : 0;
    double *seconds = foreloop_arena_allocate(&r->arena, count, sizeof *seconds);
    if (!seconds)
        return foreloop_fail_memory(error, count, sizeof *seconds, "the run times of a tuning record");
    record->seconds = seconds;
    record->seconds_count = 0;
    record->measurement_failed = trace->measurement_failed;
    if (record->measurement_failed)
        return FORELOOP_OK;
    for (size_t i = 0; i < count; i++) {
        const foreloop_value *value = &trace->seconds.items[i];
        if (value->type != FORELOOP_VALUE_NUMBER || !(value->number > 0 && value->number < FAILED_SECONDS)) {
            record->measurement_failed = 1;
            return FORELOOP_OK;
        }
        seconds[i] = value->number;
    }
    record->seconds_count = count;
    return FORELOOP_OK;
}

/* Reads a line into its measurement and its actions. */
static foreloop_status read_line(foreloop_records *r, const char *line, size_t length, foreloop_records_format format,
                                 foreloop_trace_record *trace, foreloop_walk_result *actions, foreloop_error *error) {
    if (format == FORELOOP_RECORDS_HOST)
        return foreloop_host_read(&r->reader, line, length, &r->arena, trace, actions, error);
    FORELOOP_TRY((format == FORELOOP_RECORDS_ANSOR ? foreloop_ansor_read : foreloop_metaschedule_read)(
        &r->reader, line, length, &r->arena, trace, error));
    return foreloop_walk_trace(r->walk, &trace->trace, r->full_trace != 0, &r->arena, actions, error);
}

static foreloop_status read_record(foreloop_records *r, const char *line, size_t length, foreloop_record *record,
                                   foreloop_error *error) {
    foreloop_trace_record trace;
    foreloop_walk_result walked;
    foreloop_arena_reset(&r->arena);
    record->format = first_byte(line, length) != '{'                            ? FORELOOP_RECORDS_METASCHEDULE
                     : foreloop_host_wrote(&r->reader, line, length, &r->arena) ? FORELOOP_RECORDS_HOST
                                                                                : FORELOOP_RECORDS_ANSOR;
    FORELOOP_TRY(read_line(r, line, length, record->format, &trace, &walked, error));
    record->workload = trace.workload;
    if (record->format == FORELOOP_RECORDS_ANSOR)
        FORELOOP_TRY(number_workload(r, trace.key, &record->workload, error));
    FORELOOP_TRY(take_seconds(r, &trace, record, error));
    record->workload_key = trace.key.text;
    record->target = trace.target;
    record->actions = walked.actions;
    record->action_count = walked.action_count;
    record->instructions = walked.instructions;
    record->unknown_instructions = trace.trace.unknown;
    return FORELOOP_OK;
}

foreloop_status foreloop_records_next(foreloop_records *records, foreloop_record *record, foreloop_error *error) {
    if (!records || !record || record->size < sizeof record->size)
        return foreloop_fail(
            error, FORELOOP_ERROR_ARGUMENT,
            "foreloop_records_next: records and record must not be NULL, and record->size must be set");
    const char *line;
    size_t length;
    foreloop_record result = {.size = record->size};
    do
        FORELOOP_TRY(foreloop_lines_next(records->lines, &line, &length, &result.line, error));
    while (first_byte(line, length) == '#');
    foreloop_error detail = {.code = FORELOOP_OK};
    foreloop_status status = read_record(records, line, length, &result, &detail);
    if (status != FORELOOP_OK && status != FORELOOP_ERROR_MEMORY)
        status = FORELOOP_ERROR_FORMAT; /* whatever the JSON reader finds amiss, the line is malformed */
    if (status != FORELOOP_OK)
        return foreloop_fail_at(error, status, FORELOOP_POSITION_LINE, result.line + 1, "line %llu: %s",
                                (unsigned long long)result.line + 1, detail.message);
    memcpy(record, &result, record->size < sizeof result ? record->size : sizeof result);
    return FORELOOP_OK;
}
