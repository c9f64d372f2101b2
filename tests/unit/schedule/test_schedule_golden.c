/* Real tuning records against actions on file: the vocabulary that models are trained on must not drift. */
#include "actions_text.h"
#include "tap.h"
#include <foreloop/foreloop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char text[1 << 16], expected[1 << 18];

static size_t read_file(const char *folder, const char *name, char *buffer, size_t capacity) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file)
        return 0;
    size_t size = fread(buffer, 1, capacity - 1, file);
    fclose(file);
    buffer[size] = '\0';
    return size;
}

/* Compares with the lines that follow "record N" in the file of expected actions. */
static void check_actions(const char *folder, const char *records_name, const char *name, int full_trace) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, records_name);
    foreloop_records_options options;
    foreloop_records_options_init(&options, sizeof options);
    options.full_trace = full_trace;
    foreloop_records *records = NULL;
    if (!CHECK(read_file(folder, name, expected, sizeof expected) > 0 &&
                   foreloop_records_open(&records, path, &options, NULL) == FORELOOP_OK,
               "%s and its records open", name))
        return;
    const char *at = expected;
    for (;;) {
        foreloop_record record = {.size = sizeof record};
        foreloop_error error;
        foreloop_status status = foreloop_records_next(records, &record, &error);
        if (status == FORELOOP_END)
            break;
        int distinct = status == FORELOOP_OK && actions_text(&record, text, sizeof text);
        char heading[64];
        snprintf(heading, sizeof heading, "record %u\n", (unsigned)record.line);
        size_t length = strlen(text);
        int equal =
            distinct && strncmp(at, heading, strlen(heading)) == 0 && strncmp(at + strlen(heading), text, length) == 0;
        if (!CHECK(equal && record.unknown_instructions == 0, "%s, record %u", name, (unsigned)record.line))
            printf("# %s", text);
        at += equal ? strlen(heading) + length : 0;
    }
    CHECK(*at == '\0', "%s: no more is expected", name);
    foreloop_records_close(records);
}

/* Prints what the file of expected actions should hold. */
static int print_actions(const char *path, int full_trace) {
    foreloop_records_options options;
    foreloop_records_options_init(&options, sizeof options);
    options.full_trace = full_trace;
    foreloop_records *records = NULL;
    if (foreloop_records_open(&records, path, &options, NULL) != FORELOOP_OK)
        return 1;
    foreloop_record record = {.size = sizeof record};
    while (foreloop_records_next(records, &record, NULL) == FORELOOP_OK) {
        actions_text(&record, text, sizeof text);
        printf("record %u\n%s", (unsigned)record.line, text);
    }
    foreloop_records_close(records);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 4 && strcmp(argv[1], "--print") == 0)
        return print_actions(argv[2], atoi(argv[3]));
    const char *folder = argc > 1 ? argv[1] : "tests/golden/schedule";
    check_actions(folder, "records.json", "actions.txt", 0);
    check_actions(folder, "records.json", "actions_full.txt", 1);
    check_actions(folder, "gpu_records.json", "gpu_actions.txt", 0);
    return tap_done();
}
