/* foreloop_records_*: lines, gzip, malformed input, run times, sizes of structs, failing allocations. */
#include "failing_allocator.h"
#include "random.h"
#include "tap.h"
#include <foreloop/foreloop.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define TRACE  "[[[\"GetSBlock\",[],[\"a\",\"main\"],[\"b0\"]],[\"ComputeInline\",[\"b0\"],[],[]]],[]]"
#define TARGET "{\"kind\":\"llvm\",\"mcpu\":\"x\"}"
#define LINE   "[0,[" TRACE ",[0.5,0.25]," TARGET ",[]]]"

/* What came out of a whole file. */
typedef struct outcome {
    size_t records, failures, calls;
    foreloop_status first_failure;
    uint64_t failure_position, last_line;
    char message[496];
} outcome;

static foreloop_records *open_bytes(const void *data, size_t size) {
    foreloop_records *records = NULL;
    foreloop_records_open_memory(&records, data, size, NULL, NULL);
    return records;
}

static outcome read_bytes(const void *data, size_t size) {
    outcome result = {0};
    foreloop_records *records = open_bytes(data, size);
    if (!records)
        return result;
    for (; result.calls < 100000; result.calls++) {
        foreloop_record record = {.size = sizeof record};
        foreloop_error error = {.code = FORELOOP_OK};
        foreloop_status status = foreloop_records_next(records, &record, &error);
        if (status == FORELOOP_END)
            break;
        if (status == FORELOOP_OK) {
            result.records++;
            result.last_line = record.line;
        } else if (result.failures++ == 0) {
            result.first_failure = status;
            result.failure_position = error.position;
            memcpy(result.message, error.message, sizeof result.message);
            if (error.code != status || error.position_kind != FORELOOP_POSITION_LINE)
                result.failure_position = UINT64_MAX;
        }
    }
    foreloop_records_close(records);
    return result;
}

static outcome read_text(const char *text) {
    return read_bytes(text, strlen(text));
}

/* ---- Plain files ------------------------------------------------------------------------------------------------- */

static void test_record(void) {
    foreloop_records *records = open_bytes(LINE, strlen(LINE));
    foreloop_record record = {.size = sizeof record};
    foreloop_error error;
    CHECK(foreloop_records_next(records, &record, &error) == FORELOOP_OK, "one line");
    CHECK(record.line == 0 && record.workload == 0 && record.seconds_count == 2 && record.seconds[0] == 0.5 &&
              record.seconds[1] == 0.25,
          "line, workload and run times");
    CHECK(strcmp(record.target, TARGET) == 0, "the target's text");
    CHECK(record.action_count == 2 && strcmp(record.actions[0].kind, "compute_inline") == 0 &&
              record.instructions[0] == 2 && strcmp(record.actions[1].kind, "postprocess") == 0 &&
              record.instructions[1] == 2 && record.actions[1].argument_count == 0,
          "its actions");
    CHECK(foreloop_records_next(records, &record, &error) == FORELOOP_END &&
              foreloop_records_next(records, &record, &error) == FORELOOP_END,
          "the end, and again");
    foreloop_records_close(records);
    foreloop_records_close(NULL);
}

static void test_lines(void) {
    outcome result = read_text("");
    CHECK(result.records == 0 && result.failures == 0, "an empty file");
    result = read_text("\n \t\r\n\n");
    CHECK(result.records == 0 && result.failures == 0, "blank lines alone");
    result = read_text(LINE "\r\n\r\n  " LINE "  \r\n\n" LINE);
    CHECK(result.records == 3 && result.failures == 0 && result.last_line == 4, "CRLF, blank lines, no last newline");
    result = read_text("# a comment\n" LINE "\n  # another\n#\n" LINE "\n#");
    CHECK(result.records == 2 && result.failures == 0 && result.last_line == 4, "comment lines");
    result = read_text(LINE "\n" LINE "\n");
    CHECK(result.records == 2 && result.failures == 0 && result.last_line == 1, "a last newline");
    result = read_text(LINE "\n[0,[\n" LINE);
    CHECK(result.records == 2 && result.failures == 1 && result.first_failure == FORELOOP_ERROR_FORMAT &&
              result.failure_position == 2 && result.last_line == 2,
          "a malformed line is told by its number and passed over");
}

static void test_malformed(void) {
    static const struct {
        const char *name, *line, *message;
    } cases[] = {
        {"no JSON", "hello", ""},
        {"an object that is no Ansor record", "{\"input\": [], \"config\": {}}", "Ansor record"},
        {"an empty array", "[]", "workload's index is missing"},
        {"no record", "[0]", "the record is missing"},
        {"an empty record", "[0,[]]", "the trace is missing"},
        {"text for the workload", "[\"0\",[" TRACE "]]", ""},
        {"a negative workload", "[-1,[" TRACE "]]", "negative"},
        {"a fractional workload", "[0.5,[" TRACE "]]", ""},
        {"a trace that is null", "[0,[null,null]]", "[[instructions], [decisions]]"},
        {"a trace without decisions", "[0,[[[]]]]", "[[instructions], [decisions]]"},
        {"instructions of another type", "[0,[[{},[]]]]", "[[instructions], [decisions]]"},
        {"decisions of another type", "[0,[[[],0]]]", "[[instructions], [decisions]]"},
        {"an instruction that is a text", "[0,[[[\"GetLoops\"],[]]]]", "instruction 0"},
        {"an instruction of three parts", "[0,[[[[\"Fuse\",[],[]]],[]]]]", "instruction 0"},
        {"a kind that is a number", "[0,[[[[\"Fuse\",[],[],[]],[1,[],[],[]]],[]]]]", "instruction 1"},
        {"inputs that are null", "[0,[[[[\"Fuse\",null,[],[]]],[]]]]", "instruction 0"},
        {"attributes that are a text", "[0,[[[[\"Fuse\",[],\"\",[]]],[]]]]", "instruction 0"},
        {"outputs that are an object", "[0,[[[[\"Fuse\",[],[],{}]],[]]]]", "instruction 0"},
        {"an output that is a number", "[0,[[[[\"Fuse\",[],[],[\"l1\",7]]],[]]]]", "output 1 of instruction 0"},
        {"a decision that is a number", "[0,[[[],[5]]]]", "decision 0"},
        {"a decision of one part", "[0,[[[],[[0]]]]]", "decision 0"},
        {"a decision for a text", "[0,[[[],[[\"0\",1]]]]]", "decision 0"},
        {"a decision past the end", "[0,[[[[\"Fuse\",[],[],[]]],[[0,1],[1,1]]]]]", "decision 1"},
        {"a decision before the start", "[0,[[[[\"Fuse\",[],[],[]]],[[-1,1]]]]]", "decision 0"},
        {"a decision between two", "[0,[[[[\"Fuse\",[],[],[]]],[[0.5,1]]]]]", "decision 0"},
        {"a decision for NaN", "[0,[[[[\"Fuse\",[],[],[]]],[[NaN,1]]]]]", "decision 0"},
        {"run times that are a number", "[0,[" TRACE ",0.5]]", "run times"},
        {"something behind the record", "[0,[" TRACE ",[1]],1]", "follows"},
        {"something behind the line", LINE " 1", ""},
        {"two records in a line", LINE LINE, ""},
        {"a trailing comma", "[0,[" TRACE ",[1],]]", ""},
        {"half a line", "[0,[[[[\"GetSBlock\",[],[\"a\",\"ma", ""},
        {"a zero escape cut off", "[0,[\"\\u00", ""},
        {"invalid UTF-8", "[0,[[[[\"\xff\",[],[],[]]],[]]]]", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[1024];
        snprintf(text, sizeof text, "%s\n%s\n", cases[i].line, LINE);
        outcome result = read_text(text);
        if (!CHECK(result.records == 1 && result.failures == 1 && result.first_failure == FORELOOP_ERROR_FORMAT &&
                       result.failure_position == 1 && strstr(result.message, "line 1: ") == result.message &&
                       strstr(result.message, cases[i].message),
                   "%s", cases[i].name))
            printf("# %zu records, %zu failures, %s\n", result.records, result.failures, result.message);
    }
}

/* Every prefix of a line is malformed or blank, and the line after it is read. */
static void test_truncations(void) {
    size_t wrong = 0;
    for (size_t length = 1; length < strlen(LINE); length++) {
        char text[1024];
        snprintf(text, sizeof text, "%.*s\n%s", (int)length, LINE, LINE);
        outcome result = read_text(text);
        wrong += !(result.records == 1 && result.failures == 1 && result.failure_position == 1);
    }
    CHECK(wrong == 0, "every truncation of a line");
}

static void test_leniency(void) {
    outcome result = read_text("[0,[" TRACE "]]\n[0,[" TRACE ",null]]\n[0,[" TRACE ",[1],null,null,{\"x\":[]}]]");
    CHECK(result.records == 3 && result.failures == 0, "what follows the trace may be missing or more");
    const char *line = "[7,[[[],[]]]]";
    foreloop_records *records = open_bytes(line, strlen(line));
    foreloop_record record = {.size = sizeof record};
    CHECK(foreloop_records_next(records, &record, NULL) == FORELOOP_OK && record.workload == 7 &&
              strcmp(record.target, "") == 0 && record.action_count == 1 && record.instructions[0] == 0,
          "an empty trace still ends in postprocess");
    foreloop_records_close(records);
}

static size_t count_seconds(const char *seconds) {
    char line[512];
    snprintf(line, sizeof line, "[0,[" TRACE ",%s,null,[]]]", seconds);
    foreloop_records *records = open_bytes(line, strlen(line));
    foreloop_record record = {.size = sizeof record};
    size_t count = foreloop_records_next(records, &record, NULL) == FORELOOP_OK ? record.seconds_count : SIZE_MAX;
    foreloop_records_close(records);
    return count;
}

static void test_seconds(void) {
    static const char *const failed[] = {"null",    "[]",         "[0]",    "[-1]",    "[1e10]", "[1e9]",     "[1,NaN]",
                                         "[1e400]", "[Infinity]", "[null]", "[\"1\"]", "[[1]]",  "[1,2,1e10]"};
    for (size_t i = 0; i < sizeof failed / sizeof failed[0]; i++)
        CHECK(count_seconds(failed[i]) == 0, "%s is a failed measurement", failed[i]);
    CHECK(count_seconds("[0.1,2e-7,999999999]") == 3, "three run times");
}

/* ---- Large and hostile lines ------------------------------------------------------------------------------------- */

typedef struct builder {
    char *text;
    size_t size, capacity;
} builder;

static void append(builder *b, const char *text) {
    size_t length = strlen(text);
    if (b->size + length + 1 > b->capacity) {
        b->capacity = (b->size + length + 1) * 2;
        b->text = realloc(b->text, b->capacity);
        if (!b->text)
            abort();
    }
    memcpy(b->text + b->size, text, length + 1);
    b->size += length;
}

static void test_large(void) {
    builder b = {0};
    append(&b, "[0,[[[[\"GetLoops\",[\"b0\"],[],[");
    for (int i = 0; i < 300000; i++) {
        char name[24];
        snprintf(name, sizeof name, "%s\"l%d\"", i ? "," : "", i);
        append(&b, name);
    }
    append(&b, "]],[\"Fuse\",[");
    for (int i = 0; i < 300000; i++) {
        char name[24];
        snprintf(name, sizeof name, "%s\"l%d\"", i ? "," : "", i);
        append(&b, name);
    }
    append(&b, "],[1],[\"f\"]]");
    for (int i = 0; i < 20000; i++) {
        char text[96];
        snprintf(text, sizeof text, ",[\"Split\",[\"l%d\",\"None\",4],[1,0],[\"l%d\",\"m%d\"]]", i % 7, (i + 1) % 7, i);
        append(&b, text);
        append(&b, ",[\"Reorder\",[\"l1\",\"l2\",\"m1\",\"m5\"],[],[]]");
    }
    append(&b, "],[]]]]\n" LINE "\n");
    outcome result = read_bytes(b.text, b.size);
    CHECK(result.records == 2 && result.failures == 0 && result.last_line == 1,
          "a line of %zu bytes with 600,000 inputs and 40,000 instructions", b.size);

    b.size = 0;
    append(&b, "[0,[");
    for (int i = 0; i < 100000; i++)
        append(&b, "[");
    append(&b, "\n" LINE "\n");
    result = read_bytes(b.text, b.size);
    CHECK(result.records == 1 && result.failures == 1 && result.first_failure == FORELOOP_ERROR_FORMAT,
          "100,000 open brackets");
    free(b.text);
}

/* Bytes of a sound record changed at random: any status, no harm, and the sound line behind is read. */
static void test_mutations(void) {
    static const char sound[] =
        "[0,[[[[\"GetSBlock\",[],[\"c\",\"main\"],[\"b1\"]],[\"Annotate\",[\"b1\",\"\\\"SSRSRS\\\"\"],[\"meta_schedule."
        "tiling_structure\"],[]],[\"GetLoops\",[\"b1\"],[],[\"l1\",\"l2\"]],[\"SamplePerfectTile\",[\"l1\"],[4,64],"
        "[\"v1\",\"v2\",\"v3\",\"v4\"]],[\"Split\",[\"l1\",\"v1\",\"v2\",\"v3\",\"v4\"],[1,0],[\"l3\",\"l4\",\"l5\","
        "\"l6\"]],"
        "[\"SamplePerfectTile\",[\"l2\"],[2,64],[\"v5\",\"v6\"]],[\"Split\",[\"l2\",\"v5\",\"v6\"],[1,0],[\"l7\","
        "\"l8\"]],"
        "[\"Reorder\",[\"l3\",\"l4\",\"l7\",\"l5\",\"l8\",\"l6\"],[],[]],[\"RFactor\",[\"l7\"],[1],[\"b2\"]],[\"Fuse\","
        "[\"l3\","
        "\"l4\"],[1],[\"l9\"]],[\"CacheWrite\",[\"b1\",[]],[0,\"global\"],[\"b3\"]],[\"ReverseComputeAt\",[\"b3\","
        "\"l4\"],[1,"
        "-1],[]]],[[3,[1,2,3,4]],[5,[6,7]]]],[0.1],{},[]]]";
    random_source random = {99};
    size_t wrong = 0;
    for (int round = 0; round < 20000; round++) {
        char text[sizeof sound + sizeof LINE + 2];
        memcpy(text, sound, sizeof sound - 1);
        text[sizeof sound - 1] = '\n';
        memcpy(text + sizeof sound, LINE, sizeof LINE);
        for (uint32_t k = 1 + random_below(&random, 4); k > 0; k--) {
            uint32_t at = random_below(&random, sizeof sound - 1);
            if (random_below(&random, 2))
                text[at] = text[random_below(&random, sizeof sound - 1)];
            else
                text[at] = "[]{},:\"\\0129-lvbn"[random_below(&random, 17)];
            if (text[at] == '\n')
                text[at] = ' ';
        }
        outcome result = read_text(text);
        wrong += !(result.records + result.failures == 2 && result.last_line == 1 && result.records >= 1);
    }
    CHECK(wrong == 0, "20,000 damaged lines: each one record or one failure");
}

/* ---- gzip -------------------------------------------------------------------------------------------------------- */

static size_t compress_gzip(const void *data, size_t size, unsigned char *out, size_t capacity) {
    z_stream stream = {0};
    if (deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return 0;
    stream.next_in = (Bytef *)(uintptr_t)data;
    stream.avail_in = (uInt)size;
    stream.next_out = out;
    stream.avail_out = (uInt)capacity;
    deflate(&stream, Z_FINISH);
    size_t written = stream.total_out;
    deflateEnd(&stream);
    return written;
}

static void test_gzip(void) {
    static unsigned char packed[1 << 16];
    builder b = {0};
    for (int i = 0; i < 2000; i++)
        append(&b, LINE "\n");
    size_t size = compress_gzip(b.text, b.size, packed, sizeof packed);
    outcome result = read_bytes(packed, size);
    CHECK(result.records == 2000 && result.failures == 0 && result.last_line == 1999, "2,000 compressed lines");

    /* Cut in the middle of a line, so that the line runs on into the second member. */
    size_t half = b.size / 2 + 7, first = compress_gzip(b.text, half, packed, sizeof packed);
    size_t both = first + compress_gzip(b.text + half, b.size - half, packed + first, sizeof packed - first);
    result = read_bytes(packed, both);
    CHECK(result.records == 2000 && result.failures == 0, "two members");
    memset(packed + both, 0, 512);
    result = read_bytes(packed, both + 512);
    CHECK(result.records == 2000 && result.failures == 0, "zero padding behind the members");
    packed[both] = 'x';
    result = read_bytes(packed, both + 1);
    CHECK(result.records == 2000 && result.failures == 1 && result.first_failure == FORELOOP_ERROR_IO &&
              result.failure_position == 2001 && strstr(result.message, "behind"),
          "something else behind the members");
    result = read_bytes("\xef\xbb\xbf" LINE "\n", strlen(LINE) + 4);
    CHECK(result.records == 1 && result.failures == 0, "a byte order mark before the first line");
    size_t empty = compress_gzip("", 0, packed, sizeof packed);
    result = read_bytes(packed, empty);
    CHECK(result.records == 0 && result.failures == 0, "an empty compressed file");

    size_t wrong = 0, whole = 0;
    size = compress_gzip(b.text, 4 * strlen(LINE "\n"), packed, sizeof packed);
    for (size_t cut = 2; cut < size; cut++) {
        result = read_bytes(packed, cut);
        whole += result.records;
        wrong += !(result.failures == 1 && result.first_failure == FORELOOP_ERROR_IO &&
                   result.failure_position == result.records + 1 && strstr(result.message, "cut off"));
    }
    CHECK(wrong == 0 && whole > 0,
          "every truncation of a compressed file: the whole lines, then one error with its line");
    wrong = 0;
    for (size_t at = 2; at < size; at++) {
        packed[at] ^= 0x55;
        result = read_bytes(packed, size);
        wrong += result.calls > 10;
        packed[at] ^= 0x55;
    }
    CHECK(wrong == 0, "every damaged byte of a compressed file: an end");
    free(b.text);
}

/* A small compressed file must not ask for any amount of memory: lines are bounded. */
static void test_bomb(void) {
    enum { CHUNK = 1 << 20, CHUNKS = 70 };
    size_t capacity = 1 << 22, size = 0;
    unsigned char *packed = malloc(capacity);
    char *chunk = malloc(CHUNK);
    z_stream stream = {0};
    if (!packed || !chunk || deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        abort();
    memset(chunk, '[', CHUNK);
    stream.next_out = packed;
    stream.avail_out = (uInt)capacity;
    for (int i = 0; i <= CHUNKS; i++) {
        stream.next_in = (Bytef *)(i < CHUNKS ? chunk : (char *)(uintptr_t) "\n" LINE "\n");
        stream.avail_in = i < CHUNKS ? CHUNK : (uInt)strlen("\n" LINE "\n");
        deflate(&stream, i < CHUNKS ? Z_NO_FLUSH : Z_FINISH);
    }
    size = stream.total_out;
    deflateEnd(&stream);
    outcome result = read_bytes(packed, size);
    CHECK(result.records == 1 && result.failures == 1 && result.first_failure == FORELOOP_ERROR_LIMIT &&
              result.failure_position == 1 && result.last_line == 1,
          "a line of 70 MiB in a file of %zu bytes is refused, the next one is read", size);
    free(packed);
    free(chunk);
}

/* ---- The interface ----------------------------------------------------------------------------------------------- */

static void test_interface(const char *folder) {
    foreloop_records *records = NULL;
    foreloop_record record = {.size = sizeof record};
    foreloop_error error = {.code = FORELOOP_OK};
    char path[1024];
    snprintf(path, sizeof path, "%s/records.json", folder);
    CHECK(foreloop_records_open(&records, path, NULL, &error) == FORELOOP_OK &&
              foreloop_records_next(records, &record, &error) == FORELOOP_OK,
          "a file by its path");
    foreloop_records_close(records);
    records = NULL;
    snprintf(path, sizeof path, "%s/absent.json", folder);
    CHECK(foreloop_records_open(&records, path, NULL, &error) == FORELOOP_ERROR_IO && !records && error.message[0],
          "an absent file");
    CHECK(foreloop_records_open(&records, folder, NULL, &error) == FORELOOP_ERROR_IO && !records, "a folder");
    CHECK(foreloop_records_open(NULL, path, NULL, &error) == FORELOOP_ERROR_ARGUMENT &&
              foreloop_records_open(&records, NULL, NULL, &error) == FORELOOP_ERROR_ARGUMENT &&
              foreloop_records_open_memory(&records, NULL, 1, NULL, &error) == FORELOOP_ERROR_ARGUMENT &&
              foreloop_records_next(NULL, &record, &error) == FORELOOP_ERROR_ARGUMENT && !records,
          "NULL arguments");
    foreloop_records_options options = {0};
    CHECK(foreloop_records_open_memory(&records, LINE, 1, &options, &error) == FORELOOP_ERROR_ARGUMENT,
          "options without a size");
    foreloop_records_options_init(&options, sizeof options);
    CHECK(options.size == sizeof options && !options.allocator && options.full_trace == 0, "the options' defaults");

    records = open_bytes(LINE, strlen(LINE));
    record = (foreloop_record){.size = 0};
    CHECK(foreloop_records_next(records, &record, &error) == FORELOOP_ERROR_ARGUMENT, "a record without a size");
    memset(&record, 0x5a, sizeof record);
    record.size = offsetof(foreloop_record, actions);
    const foreloop_action *untouched = record.actions;
    CHECK(foreloop_records_next(records, &record, &error) == FORELOOP_OK && record.workload == 0 &&
              record.size == offsetof(foreloop_record, actions) && record.actions == untouched,
          "an older header's record: only its fields are written");
    foreloop_records_close(records);
}

/* Reads all of it with the allocation number n failing; returns how many things went wrong. */
static size_t read_failing(const void *data, size_t size, size_t n, int *failed) {
    failing_allocator memory = {.fail_at = n};
    foreloop_allocator allocator = failing_allocator_use(&memory);
    foreloop_records_options options;
    foreloop_records_options_init(&options, sizeof options);
    options.allocator = &allocator;
    options.full_trace = 1;
    foreloop_records *records = NULL;
    foreloop_error error = {.code = FORELOOP_OK};
    size_t wrong = 0;
    foreloop_status status = foreloop_records_open_memory(&records, data, size, &options, &error);
    while (status == FORELOOP_OK) {
        foreloop_record record = {.size = sizeof record};
        status = foreloop_records_next(records, &record, &error);
        wrong += status != FORELOOP_OK && record.actions;
    }
    foreloop_records_close(records);
    *failed = memory.failed;
    wrong += memory.live != 0;
    return wrong + (memory.failed ? status != FORELOOP_ERROR_MEMORY || error.code != status : status != FORELOOP_END);
}

static void test_failing_allocations(const char *folder) {
    static unsigned char packed[1 << 15];
    static char text[1 << 16];
    char path[1024];
    snprintf(path, sizeof path, "%s/records.json", folder);
    FILE *file = fopen(path, "rb");
    size_t size = file ? fread(text, 1, sizeof text, file) : 0;
    if (file)
        fclose(file);
    size_t packed_size = compress_gzip(text, size, packed, sizeof packed), wrong = 0, rounds = 0;
    for (int compressed = 0; compressed < 2; compressed++) {
        int failed = 1;
        for (size_t n = 0; failed; n++, rounds++)
            wrong += read_failing(compressed ? packed : (void *)text, compressed ? packed_size : size, n, &failed);
    }
    CHECK(size > 0 && wrong == 0 && rounds > 60, "each of %zu allocations fails: MEMORY, no leak", rounds);
}

int main(int argc, char **argv) {
    const char *folder = argc > 1 ? argv[1] : "tests/golden/schedule";
    test_record();
    test_lines();
    test_malformed();
    test_truncations();
    test_leniency();
    test_seconds();
    test_large();
    test_mutations();
    test_gzip();
    test_bomb();
    test_interface(folder);
    test_failing_allocations(folder);
    return tap_done();
}
