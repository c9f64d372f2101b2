/* Records of hosts that say canonical actions themselves: what is read, what is refused, failing allocations. */
#include "actions_text.h"
#include "failing_allocator.h"
#include "random.h"
#include "tap.h"
#include <foreloop/foreloop.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The first record of a text; its actions as lines of text. */
static foreloop_status read_first(const char *text, const foreloop_allocator *allocator, foreloop_record *record,
                                  char *actions, size_t capacity, foreloop_error *error) {
    foreloop_records_options options;
    foreloop_records *records = NULL;
    foreloop_records_options_init(&options, sizeof options);
    options.allocator = allocator;
    foreloop_status status = foreloop_records_open_memory(&records, text, strlen(text), &options, error);
    if (status != FORELOOP_OK)
        return status;
    *record = (foreloop_record){.size = sizeof *record};
    status = foreloop_records_next(records, record, error);
    if (status == FORELOOP_OK)
        (void)actions_text(record, actions, capacity);
    foreloop_records_close(records);
    return status;
}

static const char WHOLE[] =
    "{\"decisions\":[1,2],\"actions\":[[\"split_s0\",{\"extent\":512,\"parts\":2}],[\"parallel\",{\"class\":"
    "\"spatial\",\"extent\":1.5}],[\"postprocess\"],[\"fuse\",{}]],\"seconds\":[0.5,0.25],\"workload\":3,\"target\":"
    "\"a \\\"cpu\\\"\",\"more\":{\"x\":[1]}}\n";

static void test_whole(void) {
    char actions[512];
    foreloop_record record;
    foreloop_error error = {.code = FORELOOP_OK};
    const foreloop_status status = read_first(WHOLE, NULL, &record, actions, sizeof actions, &error);
    CHECK(status == FORELOOP_OK && record.format == FORELOOP_RECORDS_HOST, "a whole record is read: %s", error.message);
    CHECK(strcmp(actions,
                 "1 split_s0 extent=512 parts=2\n2 parallel class=spatial extent=1.5\n3 postprocess\n4 fuse\n") == 0,
          "its actions as they stand");
    CHECK(record.workload == 3 && record.seconds_count == 2 && record.action_count == 4 &&
              record.unknown_instructions == 0 && !record.measurement_failed,
          "its workload, times and counts");
}

static void test_measurements(void) {
    static const struct {
        const char *text;
        size_t seconds;
        int failed;
    } cases[] = {{"{\"actions\":[]}", 0, 0},
                 {"{\"actions\":[],\"seconds\":[]}", 0, 0},
                 {"{\"actions\":[],\"seconds\":null}", 0, 0},
                 {"{\"seconds\":[1],\"actions\":[]}", 1, 0},
                 {"{\"actions\":[],\"seconds\":[1,1e10]}", 0, 1},
                 {"{\"actions\":[],\"seconds\":[0]}", 0, 1},
                 {"{\"actions\":[],\"seconds\":[\"1\"]}", 0, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char actions[64];
        foreloop_record record;
        foreloop_error error = {.code = FORELOOP_OK};
        const foreloop_status status = read_first(cases[i].text, NULL, &record, actions, sizeof actions, &error);
        CHECK(status == FORELOOP_OK && record.seconds_count == cases[i].seconds &&
                  record.measurement_failed == cases[i].failed,
              "%s: %s", cases[i].text, error.message);
    }
}

static void test_malformed(void) {
    static const char *const texts[] = {
        "{\"actions\":{}}",
        "{\"actions\":[\"fuse\"]}",
        "{\"actions\":[[]]}",
        "{\"actions\":[[1]]}",
        "{\"actions\":[[\"\"]]}",
        "{\"actions\":[[\"fu\\u0000se\"]]}",
        "{\"actions\":[[\"fuse\",[]]]}",
        "{\"actions\":[[\"fuse\",{},1]]}",
        "{\"actions\":[[\"fuse\",{\"loops\":null}]]}",
        "{\"actions\":[[\"fuse\",{\"loops\":[1]}]]}",
        "{\"actions\":[[\"fuse\",{\"loops\":NaN}]]}",
        "{\"actions\":[[\"fuse\",{\"loops\":1e999}]]}",
        "{\"actions\":[[\"fuse\",{\"loops\":1,\"loops\":2}]]}",
        "{\"actions\":[[\"fuse\",{\"class\":\"a\\u0000b\"}]]}",
        "{\"actions\":[],\"actions\":[]}",
        "{\"actions\":[],\"seconds\":1}",
        "{\"actions\":[],\"workload\":-1}",
        "{\"actions\":[],\"workload\":1.5}",
        "{\"actions\":[],\"target\":1}",
        "{\"actions\":[]",
        "{\"actions\":[]} x",
        "{\"seconds\":[1]}",
        "{}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char actions[64];
        foreloop_record record;
        foreloop_error error = {.code = FORELOOP_OK};
        const foreloop_status status = read_first(texts[i], NULL, &record, actions, sizeof actions, &error);
        CHECK(status == FORELOOP_ERROR_FORMAT && error.position == 1 && strncmp(error.message, "line 1: ", 8) == 0,
              "refused: %s (%s)", texts[i], error.message);
    }
}

/* Many records through one reader, larger and smaller ones by turns: the lists of the reader are used again. */
static void test_many(void) {
    enum { RECORDS = 60, MOST = 300 };
    char *text = malloc(RECORDS * MOST * 64), *at = text;
    foreloop_records *records = NULL;
    int right = 1;
    if (!text)
        return;
    for (int i = 0; i < RECORDS; i++) {
        at += sprintf(at, "{\"actions\":[");
        for (int j = 0; j < i * 37 % MOST; j++)
            at += sprintf(at, "%s[\"kind_%d\",{\"a\":%d,\"b\":\"%d\"}]", j ? "," : "", j % 7, i, j);
        at += sprintf(at, "],\"seconds\":[1]}\n");
    }
    right = foreloop_records_open_memory(&records, text, (size_t)(at - text), NULL, NULL) == FORELOOP_OK;
    for (int i = 0; right && i < RECORDS; i++) {
        foreloop_record record = {.size = sizeof record};
        right = foreloop_records_next(records, &record, NULL) == FORELOOP_OK &&
                record.action_count == (size_t)(i * 37 % MOST);
        for (size_t j = 0; right && j < record.action_count; j++) {
            const foreloop_action *action = &record.actions[j];
            char b[16];
            sprintf(b, "%zu", j);
            right = action->kind[5] == (char)('0' + j % 7) && action->argument_count == 2 &&
                    action->arguments[0].number == i && strcmp(action->arguments[1].text, b) == 0 &&
                    record.instructions[j] == j + 1;
        }
    }
    CHECK(right, "records of many sizes through one reader");
    foreloop_records_close(records);
    free(text);
}

/* Whatever bytes there are, the reader neither crashes nor leaks (sanitizers). */
static void test_damaged(void) {
    random_source random = {.state = 7};
    char text[sizeof WHOLE], actions[4096];
    size_t read = 0;
    for (int i = 0; i < 20000; i++) {
        foreloop_record record;
        memcpy(text, WHOLE, sizeof text);
        for (int n = 0; n < 1 + i % 3; n++)
            text[random_below(&random, (uint32_t)sizeof text - 2)] = (char)(1 + random_below(&random, 255));
        read += read_first(text, NULL, &record, actions, sizeof actions, NULL) == FORELOOP_OK;
    }
    CHECK(read > 0 && read < 20000, "damaged records: %zu of 20000 are still readable", read);
}

static void test_allocations(void) {
    char actions[512];
    size_t failures = 0;
    for (size_t n = 0;; n++) {
        failing_allocator memory = {.fail_at = n};
        foreloop_record record;
        foreloop_error error = {.code = FORELOOP_OK};
        const foreloop_allocator allocator = failing_allocator_use(&memory);
        const foreloop_status status = read_first(WHOLE, &allocator, &record, actions, sizeof actions, &error);
        if (memory.live != 0) {
            CHECK(0, "allocation %zu fails: %zu blocks leak", n, memory.live);
            return;
        }
        if (status == FORELOOP_OK)
            break;
        failures += status == FORELOOP_ERROR_MEMORY;
        if (status != FORELOOP_ERROR_MEMORY || n > 1000) {
            CHECK(0, "allocation %zu fails with status %d", n, (int)status);
            return;
        }
    }
    CHECK(failures > 3, "each of %zu allocations can fail", failures);
}

int main(void) {
    test_whole();
    test_measurements();
    test_malformed();
    test_many();
    test_damaged();
    test_allocations();
    return tap_done();
}
