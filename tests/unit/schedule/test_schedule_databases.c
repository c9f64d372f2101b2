/* Every database of the training data parses: no malformed line, no unknown instruction, a bounded vocabulary. */
#include "tap.h"
#include <dirent.h>
#include <foreloop/foreloop.h>
#include <stdio.h>
#include <string.h>

enum { MAX_KINDS = 64 };
static const char *kinds[MAX_KINDS];
static size_t kind_count;

static void note_kind(const char *kind) {
    for (size_t i = 0; i < kind_count; i++)
        if (strcmp(kinds[i], kind) == 0)
            return;
    if (kind_count < MAX_KINDS)
        kinds[kind_count++] = kind; /* kinds are constants of the library */
}

static void check_database(const char *folder, const char *name) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s/database_tuning_record.json.gz", folder, name);
    foreloop_records *records = NULL;
    foreloop_error error = {.code = FORELOOP_OK};
    if (foreloop_records_open(&records, path, NULL, &error) != FORELOOP_OK) {
        CHECK(0, "%s opens: %s", path, error.message);
        return;
    }
    size_t count = 0, failures = 0, unknown = 0, misplaced = 0;
    for (;;) {
        foreloop_record record = {.size = sizeof record};
        foreloop_status status = foreloop_records_next(records, &record, &error);
        if (status == FORELOOP_END)
            break;
        failures += status != FORELOOP_OK;
        if (status != FORELOOP_OK)
            continue;
        count++;
        unknown += record.unknown_instructions;
        for (size_t i = 0; i < record.action_count; i++) {
            note_kind(record.actions[i].kind);
            misplaced += i > 0 && record.instructions[i] < record.instructions[i - 1];
        }
        misplaced += strcmp(record.actions[record.action_count - 1].kind, "postprocess") != 0;
    }
    foreloop_records_close(records);
    CHECK(count > 0 && failures == 0 && unknown == 0 && misplaced == 0, "%s: %zu records", name, count);
}

int main(int argc, char **argv) {
    const char *folder = argc > 1 ? argv[1] : "train/data/zen5";
    DIR *directory = opendir(folder);
    if (!directory) {
        tap_skip("the training data are not in this checkout");
        return tap_done();
    }
    for (struct dirent *entry; (entry = readdir(directory));)
        if (entry->d_name[0] != '.')
            check_database(folder, entry->d_name);
    closedir(directory);
    CHECK(kind_count > 8 && kind_count <= 32, "%zu kinds of actions", kind_count);
    return tap_done();
}
