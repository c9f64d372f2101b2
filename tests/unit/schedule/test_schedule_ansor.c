/* Ansor logs: every kind of step, every version of the record, measurements, several workloads, malformed lines. */
#include "actions_text.h"
#include "failing_allocator.h"
#include "random.h"
#include "tap.h"
#include <foreloop/foreloop.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define TASK   "[\"[\\\"key\\\", 4, 8]\", \"llvm -keys=cpu\"]"
#define RESULT "[[0.5, 0.25], 0, 1.5, 1600000000]"

static char text[1 << 16];

static void make_line(char *line, size_t size, const char *steps) {
    snprintf(line, size, "{\"i\": [" TASK ", [[], [%s]]], \"r\": " RESULT ", \"v\": \"v0.6\"}", steps);
}

/* Reads one line; the actions go to `text`, an error's message too. */
static foreloop_status read_line(const char *line, int full_trace, foreloop_record *record,
                                 foreloop_records **records) {
    foreloop_records_options options;
    foreloop_error error = {.code = FORELOOP_OK};
    foreloop_records_options_init(&options, sizeof options);
    options.full_trace = full_trace;
    *records = NULL;
    *record = (foreloop_record){.size = sizeof *record};
    text[0] = '\0';
    foreloop_status status = foreloop_records_open_memory(records, line, strlen(line), &options, &error);
    if (status == FORELOOP_OK)
        status = foreloop_records_next(*records, record, &error);
    if (status == FORELOOP_OK && !actions_text(record, text, sizeof text))
        CHECK(0, "an argument is given twice");
    if (status != FORELOOP_OK)
        snprintf(text, sizeof text, "%s", error.message);
    return status;
}

/* ---- Steps ------------------------------------------------------------------------------------------------------- */

static void check_steps(const char *name, const char *steps, const char *expected) {
    static char line[1 << 14];
    foreloop_records *records;
    foreloop_record record;
    make_line(line, sizeof line, steps);
    foreloop_status status = read_line(line, 1, &record, &records);
    if (!CHECK(status == FORELOOP_OK && strcmp(text, expected) == 0 && record.unknown_instructions == 0, "%s", name))
        printf("# got (status %d)\n# %s\n# expected\n# %s\n", (int)status, text, expected);
    foreloop_records_close(records);
}

/* A tiled matrix product with a consumer: two spatial axes in four parts and a reduction in two. */
#define TILING                                                                                                         \
    "[\"SP\", 2, 0, 64, [2, 1, 4], 1], [\"SP\", 2, 4, 96, [1, 3, 8], 1], [\"SP\", 2, 8, 128, [4], 1],"                 \
    "[\"RE\", 2, [0, 4, 1, 5, 8, 2, 6, 9, 3, 7]]"
#define TILING_ACTIONS                                                                                                 \
    "1 split_s1 extent=64 parts=4 factor_0=8 factor_1=2 factor_2=1 factor_3=4 inner=8 innermost=4\n"                   \
    "2 split_s0 extent=96 parts=4 factor_0=4 factor_1=1 factor_2=3 factor_3=8 inner=24 innermost=8\n"                  \
    "3 split_r0 extent=128 parts=2 factor_0=32 factor_1=4 inner=4 innermost=4\n"                                       \
    "4 reorder loops=10 innermost=8 spatial_outer=64 spatial_inner=32 reduction_inner=4 tile_0=32 tile_1=2 "           \
    "tile_2=32 tile_3=3 tile_4=4 tile_5=32 role=tiled block="

static void test_steps(void) {
    check_steps("no steps", "", "");
    check_steps("AN: every annotation",
                "[\"AN\", 0, 0, 0], [\"AN\", 0, 0, 1], [\"AN\", 0, 1, 2], [\"AN\", 0, 2, 3], [\"AN\", 0, 3, 4], "
                "[\"AN\", 0, 3, 5], [\"AN\", 0, 3, 6], [\"AN\", 0, 3, 7], [\"AN\", 0, 3, 8], [\"AN\", 0, 3, 9], "
                "[\"AN\", 0, 3, 10], [\"AN\", 0, 3, 11]",
                "2 unroll\n3 vectorize\n4 parallel\n5 bind thread=vthread.x\n6 bind thread=blockIdx.x\n"
                "7 bind thread=threadIdx.x\n8 bind thread=blockIdx.y\n9 bind thread=threadIdx.y\n"
                "10 bind thread=blockIdx.z\n11 bind thread=threadIdx.z\n"
                "12 tensorize role=other block=0 location=3 depth=3\n");
    check_steps("FU and SP: iterators move up and down",
                "[\"SP\", 3, 1, 12, [4], 1], [\"FU\", 3, [0, 1]], [\"AN\", 3, 1, 2], [\"SP\", 3, 2, 10, [3], 1], "
                "[\"AN\", 3, 3, 1]",
                "1 split extent=12 parts=2 factor_0=3 factor_1=4 inner=4 innermost=4\n2 fuse loops=2\n"
                "3 vectorize extent=4\n4 split extent=10 parts=2 factor_0=4 factor_1=3 inner=3 innermost=3\n"
                "5 unroll extent=3\n");
    check_steps("FU of nothing", "[\"FU\", 0, []], [\"AN\", 0, 0, 3]", "1 fuse loops=0\n2 parallel\n");
    check_steps("SP from outside in, of an unknown extent, with a length that is null",
                "[\"SP\", 0, 0, 100, [2, 5], 0], [\"SP\", 0, 3, 0, [4], 1], [\"SP\", 0, 5, 8, [null, 2], 1]",
                "1 split extent=100 parts=3 factor_0=2 factor_1=5 factor_2=10 inner=50 innermost=10\n"
                "2 split parts=2 factor_1=4 inner=4 innermost=4\n"
                "3 split extent=8 parts=3 factor_2=2 innermost=2\n");
    check_steps("RE and a tiling", TILING, TILING_ACTIONS "0\n");
    check_steps("FSP: factors of the split that it follows, the innermost taken together",
                TILING ", [\"FSP\", 3, 0, 0, 2], [\"FSP\", 3, 3, 1, 4], [\"FSP\", 3, 8, 2, 1]",
                TILING_ACTIONS
                "1\n"
                "5 split_s1 extent=64 parts=3 factor_0=8 factor_1=2 factor_2=4 inner=8 innermost=4\n"
                "6 split_s0 extent=96 parts=5 factor_0=4 factor_1=1 factor_2=3 factor_3=8 factor_4=1 inner=24 "
                "innermost=1\n"
                "7 split_r0 extent=128 parts=2 factor_0=32 factor_1=4 inner=4 innermost=4\n");
    check_steps("FFSP: the product of one level",
                TILING ", [\"FU\", 3, [0, 1]], [\"SP\", 3, 0, 500, [2], 1], [\"FFSP\", 3, 0, [0, 1], 2, 1], "
                       "[\"FFSP\", 3, 0, [0, 1], 0, 0]",
                TILING_ACTIONS "1\n5 fuse loops=2\n6 split extent=500 parts=2 factor_0=250 factor_1=2 inner=2 "
                               "innermost=2\n"
                               "7 split extent=250 parts=2 factor_0=8 factor_1=32 inner=32 innermost=32\n"
                               "8 split extent=8 parts=2 factor_0=2 factor_1=4 inner=4 innermost=4\n");
    check_steps("PR: unrolling and other pragmas",
                "[\"PR\", 1, 0, \"auto_unroll_max_step$512\"], [\"PR\", 1, 0, \"debug_skip_region\"], "
                "[\"PR\", 1, 1, \"auto_unroll_max_step$-1\"]",
                "1 annotate_unroll explicit=1 value=512\n2 annotate key=debug_skip_region\n"
                "3 annotate key=auto_unroll_max_step$-1\n");
    check_steps("SA", "[\"SA\", 1, 2, 16, 8]",
                "1 storage_align role=other block=0 buffer=0 axis=2 factor=16 offset=8\n");
    check_steps("CI and CR", "[\"CI\", 1], [\"CR\", 2]",
                "1 compute_inline role=other block=1\n2 compute_at role=other block=0 location=-1\n");
    check_steps("CA: the place, and what is known of the loops behind it",
                TILING ", [\"CA\", 2, 3, 1], [\"AN\", 2, 9, 2], [\"AN\", 2, 2, 1], [\"CA\", 1, 2, 3]",
                TILING_ACTIONS "1\n5 compute_at role=tiled block=1 location=1 depth=1\n"
                               "6 vectorize extent=8 class=spatial\n7 unroll class=spatial\n"
                               "8 compute_at role=producer block=2 location=3 depth=3 level=1 axis=0 class=spatial\n");
    check_steps("a loop's place after a split in front of it",
                "[\"SP\", 0, 1, 6, [2], 1], [\"AN\", 0, 3, 3], [\"CA\", 1, 0, 2]",
                "1 split extent=6 parts=2 factor_0=3 factor_1=2 inner=2 innermost=2\n2 parallel\n"
                "3 compute_at role=other block=0 location=2 depth=2 level=1\n");
}

/* Steps that insert a stage move those behind it. */
static void test_stages(void) {
    check_steps("CHR: the cache comes behind what is read, and is about the reader",
                "[\"CI\", 3], [\"CHR\", 1, \"shared\", [3, 4]], [\"CA\", 2, 4, 0], [\"CI\", 4], [\"CI\", 5], "
                "[\"CI\", 0]",
                "1 compute_inline role=other block=1\n2 cache_read role=other block=1 scope=shared\n"
                "3 compute_at role=cache block=1 location=0 depth=0\n4 compute_inline role=other block=1\n"
                "5 compute_inline role=other block=0\n6 compute_inline role=other block=2\n");
    check_steps("CHW: the stage that computes comes first, the copy behind it",
                "[\"CHW\", 2, \"local\"], " TILING ", [\"FSP\", 3, 0, 1, 1], [\"CI\", 3], [\"CI\", 4]",
                "1 cache_write role=tiled block=1 buffer=0 scope=local\n"
                "2 split_s1 extent=64 parts=4 factor_0=8 factor_1=2 factor_2=1 factor_3=4 inner=8 innermost=4\n"
                "3 split_s0 extent=96 parts=4 factor_0=4 factor_1=1 factor_2=3 factor_3=8 inner=24 innermost=8\n"
                "4 split_r0 extent=128 parts=2 factor_0=32 factor_1=4 inner=4 innermost=4\n"
                "5 reorder loops=10 innermost=8 spatial_outer=64 spatial_inner=32 reduction_inner=4 tile_0=32 "
                "tile_1=2 tile_2=32 tile_3=3 tile_4=4 tile_5=32 role=tiled block=1\n"
                "6 split_s0 extent=64 parts=2 factor_0=8 factor_1=8 inner=8 innermost=8\n"
                "7 compute_inline role=cache block=1\n8 compute_inline role=consumer block=0\n");
    check_steps("RF: the partial sums come first, both stages have new axes",
                "[\"SP\", 2, 1, 512, [16], 1], [\"RF\", 2, 2, 1], [\"FU\", 2, [0, 1]], [\"SP\", 3, 1, 16, [4], 1], "
                "[\"CI\", 4]",
                "1 split_r0 extent=512 parts=2 factor_0=32 factor_1=16 inner=16 innermost=16\n"
                "2 rfactor role=reduction block=1 extent=16 part=1 rest=32 factor_axis=1\n3 fuse loops=2\n"
                "4 split extent=16 parts=2 factor_0=4 factor_1=4 inner=4 innermost=4\n"
                "5 compute_inline role=other block=0\n");
}

/* ---- Records ----------------------------------------------------------------------------------------------------- */

static void test_versions(void) {
    static const struct {
        const char *version, *task;
    } versions[] = {
        {"v0.2", "[\"[\\\"f\\\"]\", \"cuda -keys=cuda,gpu\"]"},
        {"v0.3", "[\"[\\\"f\\\"]\", \"cuda -keys=cuda,gpu\", [-1, 16, 64, 49152, 2147483647, 1024, 8, 32]]"},
        {"v0.4", "[\"[\\\"f\\\"]\", \"cuda -keys=cuda,gpu\", 0, [-1, 16, 64, 49152, 2147483647, 1024, 8, 32], \"\"]"},
        {"v0.5", "[\"[\\\"f\\\"]\", \"cuda -keys=cuda,gpu\", [-1, 16, 64, 49152, 2147483647, 1024, 8, 32], \"\", 0]"},
        {"v0.6",
         "[\"[\\\"f\\\"]\", \"cuda -keys=cuda,gpu\", [-1, 16, 64, 49152, 2147483647, 1024, 8, 32], \"llvm\", 2, "
         "[\"a\", \"b\"]]"},
    };
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        char line[1024];
        foreloop_records *records;
        foreloop_record record;
        snprintf(line, sizeof line, "{\"i\": [%s, [[], [[\"CI\", 1]]]], \"r\": " RESULT ", \"v\": \"%s\"}",
                 versions[i].task, versions[i].version);
        foreloop_status status = read_line(line, 0, &record, &records);
        CHECK(status == FORELOOP_OK && record.format == FORELOOP_RECORDS_ANSOR && record.workload == 0 &&
                  strcmp(record.workload_key, "[\"f\"]") == 0 && strcmp(record.target, "cuda -keys=cuda,gpu") == 0 &&
                  record.seconds_count == 2 && record.seconds[1] == 0.25 && !record.measurement_failed &&
                  strcmp(text, "1 compute_inline role=other block=0\n1 postprocess\n") == 0,
              "%s", versions[i].version);
        foreloop_records_close(records);
    }
}

static void test_workloads(void) {
    static const char lines[] =
        "# two workloads, one of them on two targets\n"
        "{\"i\": [[\"b\", \"llvm\"], [[], []]], \"r\": " RESULT ", \"v\": \"v0.5\"}\n"
        "{\"i\": [[\"a\", \"llvm\"], [[], []]], \"r\": " RESULT ", \"v\": \"v0.5\"}\n"
        "[5,[[[],[]],[1],{\"kind\":\"llvm\"},[]]]\n"
        "{\"v\": \"v0.5\", \"r\": " RESULT ", \"more\": {\"x\": [1]}, \"i\": [[\"b\", \"cuda\"], [[], []]]}\n";
    static const struct {
        int64_t workload;
        const char *target, *key;
        foreloop_records_format format;
    } expected[] = {{0, "llvm", "b", FORELOOP_RECORDS_ANSOR},
                    {1, "llvm", "a", FORELOOP_RECORDS_ANSOR},
                    {5, "{\"kind\":\"llvm\"}", "", FORELOOP_RECORDS_METASCHEDULE},
                    {0, "cuda", "b", FORELOOP_RECORDS_ANSOR}};
    foreloop_records *records = NULL;
    foreloop_record record = {.size = sizeof record};
    foreloop_records_open_memory(&records, lines, strlen(lines), NULL, NULL);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        CHECK(foreloop_records_next(records, &record, NULL) == FORELOOP_OK && record.line == i + 1 &&
                  record.workload == expected[i].workload && record.format == expected[i].format &&
                  strcmp(record.target, expected[i].target) == 0 && strcmp(record.workload_key, expected[i].key) == 0,
              "record %zu of a mixed file", i);
    CHECK(foreloop_records_next(records, &record, NULL) == FORELOOP_END, "its end");
    foreloop_records_close(records);
}

static void test_measurements(void) {
    static const struct {
        const char *result;
        size_t seconds;
        int failed;
    } cases[] = {
        {"[[0.1, 0.2], 0, 1, 2]", 2, 0},
        {"[[1e10], 2, 1, 2]", 0, 1},
        {"[[1e10], 0, 1, 2]", 0, 1},
        {"[[0.1], 1, 1, 2]", 0, 1},
        {"[[0], 0, 1, 2]", 0, 1},
        {"[[0.1, null], 0, 1, 2]", 0, 1},
        {"[[], 0, 1, 2]", 0, 0},
        {"[null, 0, 1, 2]", 0, 0},
        {"[[], 4, 1, 2]", 0, 1},
        {"null", 0, 0},
        {"[[0.1]]", 1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[512];
        foreloop_records *records;
        foreloop_record record;
        snprintf(line, sizeof line, "{\"i\": [" TASK ", [[], []]], \"r\": %s}", cases[i].result);
        CHECK(read_line(line, 0, &record, &records) == FORELOOP_OK && record.seconds_count == cases[i].seconds &&
                  record.measurement_failed == cases[i].failed,
              "result %s", cases[i].result);
        foreloop_records_close(records);
    }
}

static void test_gzip(void) {
    static char plain[1 << 16];
    static unsigned char packed[1 << 16];
    size_t size = 0, count = 0;
    for (int i = 0; i < 100; i++) {
        make_line(plain + size, sizeof plain - size, TILING);
        size += strlen(plain + size);
        plain[size++] = '\n';
    }
    z_stream stream = {0};
    stream.next_in = (Bytef *)plain;
    stream.avail_in = (uInt)size;
    stream.next_out = packed;
    stream.avail_out = sizeof packed;
    int result = deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK
                     ? deflate(&stream, Z_FINISH)
                     : Z_MEM_ERROR;
    deflateEnd(&stream);
    foreloop_records *records = NULL;
    foreloop_record record = {.size = sizeof record};
    foreloop_records_open_memory(&records, packed, stream.total_out, NULL, NULL);
    while (foreloop_records_next(records, &record, NULL) == FORELOOP_OK)
        count += record.action_count == 5;
    CHECK(result == Z_STREAM_END && count == 100, "a compressed log");
    foreloop_records_close(records);
}

/* ---- Malformed and hostile lines --------------------------------------------------------------------------------- */

static void test_malformed_steps(void) {
    static const struct {
        const char *steps, *message;
    } cases[] = {
        {"5", "step 0"},
        {"[]", "step 0"},
        {"[\"CI\", 0], [7, 0]", "step 1 is not"},
        {"[\"CI\"]", "the stage"},
        {"[\"CI\", -1]", "the stage"},
        {"[\"CI\", 1.5]", "the stage"},
        {"[\"CI\", 1024]", "the stage"},
        {"[\"CI\", \"1\"]", "the stage"},
        {"[\"AN\", 0, 512, 1]", "the iterator"},
        {"[\"AN\", 0, 0, 12]", "the annotation"},
        {"[\"AN\", 0, 0]", "the annotation"},
        {"[\"FU\", 0, [0, 2]]", "list of iterators"},
        {"[\"FU\", 0, [1, 0]]", "list of iterators"},
        {"[\"FU\", 0, 3]", "list of iterators"},
        {"[\"FU\", 0, [511, 512]]", "list of iterators"},
        {"[\"PR\", 0, 0, 5]", "pragma"},
        {"[\"RE\", 0, [0, 0]]", "each of the stage's 2 iterators once"},
        {"[\"RE\", 0, [1, 2]]", "each of the stage's 2 iterators once"},
        {"[\"AN\", 0, 2, 1], [\"RE\", 0, [1, 0]]", "each of the stage's 3 iterators once"},
        {"[\"RE\", 0, [1, 0]], [\"AN\", 0, 2, 1]", "iterator 2 of a stage that has 2"},
        {"[\"SP\", 0, 0, 8, [0], 1]", "a length"},
        {"[\"SP\", 0, 0, 8, [2.5], 1]", "a length"},
        {"[\"SP\", 0, 0, 8, [\"2\"], 1]", "a length"},
        {"[\"SP\", 0, 0, -8, [2], 1]", "the extent"},
        {"[\"SP\", 0, 0, 8, [2], 2]", "the direction"},
        {"[\"SP\", 0, 0, 8, 2, 1]", "list of lengths"},
        {"[\"FSP\", 0, 0, 0, 1]", "the split that it follows"},
        {"[\"SP\", 0, 0, 8, [2], 1], [\"FSP\", 0, 0, 2, 1]", "the split that it follows"},
        {"[\"SP\", 0, 0, 8, [2], 1], [\"FSP\", 0, 0, 0, 0]", "number of parts"},
        {"[\"SP\", 0, 0, 8, [2], 1], [\"FSP\", 0, 0, 0, 3]", "number of parts"},
        {"[\"SP\", 0, 0, 8, [2], 1], [\"FFSP\", 0, 0, [0, 1], 0, 1]", "the split that it follows"},
        {"[\"SP\", 0, 0, 8, [2], 1], [\"FFSP\", 0, 0, [0], 1, 1]", "the level"},
        {"[\"SA\", 0, 0, 1]", "the offset"},
        {"[\"CA\", 0, 1]", "the iterator"},
        {"[\"CA\", 0]", "the stage"},
        {"[\"CHR\", 0, \"shared\", []]", "list of readers"},
        {"[\"CHR\", 0, \"shared\"]", "list of readers"},
        {"[\"CHR\", 0, 1, [1]]", "memory scope"},
        {"[\"CHR\", 1023, \"shared\", [0]]", "the stage"},
        {"[\"CI\", 1023], [\"CHR\", 0, \"shared\", [1]]", "more than 1024 stages"},
        {"[\"CHW\", 0]", "memory scope"},
        {"[\"RF\", 0, 1, -1]", "the new axis"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[1024];
        foreloop_records *records;
        foreloop_record record;
        make_line(line, sizeof line, cases[i].steps);
        foreloop_status status = read_line(line, 0, &record, &records);
        if (!CHECK(status == FORELOOP_ERROR_FORMAT && strstr(text, "line 1: ") == text &&
                       strstr(text, cases[i].message) && !record.actions,
                   "%s", cases[i].steps))
            printf("# status %d: %s\n", (int)status, text);
        foreloop_records_close(records);
    }
}

static void test_malformed_records(void) {
    static const struct {
        const char *line, *message;
    } cases[] = {
        {"{}", "key or the target is missing"},
        {"{\"i\": null}", "key or the target is missing"},
        {"{\"i\": [[], []], \"r\": [[0.1], 0, 0, 0], \"v\": \"v0.6\"}", "key or the target is missing"},
        {"{\"i\": [[\"k\"], [[], []]]}", "key or the target is missing"},
        {"{\"i\": [[\"k\", \"llvm\"], [[]]]}", "the steps are missing"},
        {"{\"i\": [[\"k\", \"llvm\"], [[], {}]]}", "the steps are missing"},
        {"{\"i\": [[\"k\", \"llvm\"], [[], []]], \"r\": 5}", "the costs"},
        {"{\"i\": [[\"k\", \"llvm\"], [[], []]], \"r\": [5]}", "the costs"},
        {"{\"i\": [[\"k\", \"llvm\"], [[], []]], \"v\": \"v0.1\"}", "v0.2 to v0.6"},
        {"{\"i\": [[\"k\", \"llvm\"], [[], []]], \"v\": 6}", "version"},
        {"{\"i\": [[\"k\", \"llvm\"], [[], []]]} {", "end of the text"},
        {"{\"i\": [[\"k\", \"llvm\"], [[], []]]", ""},
        {"{\"i\": [[\"k\", \"llvm\"], [[], [[\"CI\", 01]]]]}", ""},
        {"{\"i\": [[\"k\xff\", \"llvm\"], [[], []]]}", "UTF-8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        foreloop_records *records;
        foreloop_record record;
        foreloop_status status = read_line(cases[i].line, 0, &record, &records);
        if (!CHECK(status == FORELOOP_ERROR_FORMAT && strstr(text, cases[i].message), "%s", cases[i].line))
            printf("# status %d: %s\n", (int)status, text);
        foreloop_records_close(records);
    }
    foreloop_records *records;
    foreloop_record record;
    CHECK(read_line("{\"i\": [[\"k\", \"llvm\"], [[], [[\"CI\", 0], [\"XY\", 0, {}], [\"CI\", 0]]]]}", 0, &record,
                    &records) == FORELOOP_OK &&
              record.unknown_instructions == 1 && record.action_count == 3 && record.instructions[1] == 3,
          "a step of a kind that is not known is counted");
    foreloop_records_close(records);
}

static const char whole[] =
    "{\"i\": [" TASK ", [[], [[\"CHW\", 2, \"local\"], " TILING ", [\"FSP\", 3, 0, 1, 2], [\"CA\", 2, 3, 1], [\"CHR\", "
    "0, \"shared\", [2]], [\"FFSP\", 4, 2, [1, 2], 1, 1], [\"RF\", 4, 1, 0], [\"FU\", 4, [0, 1]], [\"AN\", 4, 0, 3], "
    "[\"PR\", 4, 0, \"auto_unroll_max_step$16\"], [\"SA\", 1, 0, 2, 3], [\"CI\", 5], [\"CR\", 6]]]], \"r\": " RESULT
    ", \"v\": \"v0.6\"}";

/* Reads all of it, whatever it is; every status is one that a line can have. */
static size_t read_hostile(const char *line, size_t length) {
    foreloop_records *records = NULL;
    size_t wrong = 0;
    foreloop_records_open_memory(&records, line, length, NULL, NULL);
    for (size_t calls = 0; calls < 100; calls++) {
        foreloop_record record = {.size = sizeof record};
        foreloop_status status = foreloop_records_next(records, &record, NULL);
        if (status == FORELOOP_END)
            break;
        wrong += status != FORELOOP_OK && status != FORELOOP_ERROR_FORMAT;
        for (size_t i = 0; status == FORELOOP_OK && i < record.action_count; i++)
            for (size_t k = 0; k < record.actions[i].argument_count; k++)
                wrong += record.actions[i].arguments[k].name[0] == '\0';
    }
    foreloop_records_close(records);
    return wrong;
}

static void test_hostile(void) {
    char line[sizeof whole];
    size_t wrong = 0, length = strlen(whole);
    foreloop_records *records;
    foreloop_record record;
    if (!CHECK(read_line(whole, 0, &record, &records) == FORELOOP_OK && record.action_count == 17,
               "a line of all kinds"))
        printf("# %s\n", text);
    foreloop_records_close(records);
    for (size_t cut = 1; cut < length; cut++)
        wrong += read_hostile(whole, cut);
    CHECK(wrong == 0, "every truncation");
    static const char bytes[] = "0123456789[],\"-.e{}nA \xff";
    random_source random = {5};
    for (size_t round = 0; round < 30000; round++) {
        memcpy(line, whole, sizeof whole);
        for (uint32_t changes = 1 + random_below(&random, 4); changes > 0; changes--)
            line[random_below(&random, (uint32_t)length)] = bytes[random_below(&random, sizeof bytes - 1)];
        wrong += read_hostile(line, length);
    }
    CHECK(wrong == 0, "30,000 lines with changed bytes");
}

/* Many steps that each ask for as much as a step can. */
static void test_large(void) {
    enum { STEPS = 3000 };
    size_t size = (size_t)STEPS * 64 + 1024, used = 0;
    char *line = malloc(size);
    if (!line)
        abort();
    used += (size_t)snprintf(line, size, "{\"i\": [" TASK ", [[], [[\"CI\", 0]");
    for (int i = 0; i < STEPS; i++)
        used += (size_t)snprintf(line + used, size - used, ", [\"AN\", %d, 511, 1], [\"SP\", %d, 0, 8, [], 1]",
                                 i % 1024, i % 1024);
    snprintf(line + used, size - used, "]]]}");
    foreloop_records *records;
    foreloop_record record;
    CHECK(read_line(line, 0, &record, &records) == FORELOOP_OK && record.action_count == 2 * STEPS + 2,
          "1,024 stages of 512 iterators");
    foreloop_records_close(records);
    used = (size_t)snprintf(line, size, "{\"i\": [" TASK ", [[], [[\"CI\", 0]");
    for (int i = 0; i < STEPS / 2; i++)
        used += (size_t)snprintf(line + used, size - used, ", [\"SP\", 0, 0, 8, [2, 2], 1]");
    snprintf(line + used, size - used, "]]]}");
    CHECK(read_line(line, 0, &record, &records) == FORELOOP_ERROR_FORMAT && strstr(text, "512 iterators"),
          "splits beyond any number of iterators");
    foreloop_records_close(records);
    free(line);
}

static size_t read_failing(size_t n, int *failed) {
    failing_allocator memory = {.fail_at = n};
    foreloop_allocator allocator = failing_allocator_use(&memory);
    foreloop_records_options options;
    foreloop_records_options_init(&options, sizeof options);
    options.allocator = &allocator;
    foreloop_records *records = NULL;
    foreloop_record record = {.size = sizeof record};
    foreloop_error error = {.code = FORELOOP_OK};
    foreloop_status status = foreloop_records_open_memory(&records, whole, strlen(whole), &options, &error);
    while (status == FORELOOP_OK)
        status = foreloop_records_next(records, &record, &error);
    foreloop_records_close(records);
    *failed = memory.failed;
    return (size_t)(memory.live != 0) +
           (size_t)(memory.failed ? status != FORELOOP_ERROR_MEMORY : status != FORELOOP_END);
}

static void test_failing_allocations(void) {
    size_t wrong = 0, n = 0;
    for (int failed = 1; failed; n++)
        wrong += read_failing(n, &failed);
    CHECK(wrong == 0 && n > 20, "each of %zu allocations fails: MEMORY, no leak", n);
}

/* Reads `count` records, one like the other, of which the last holds no more blocks of memory than an early one;
 * returns the largest block. */
static size_t read_many(const void *data, size_t size, size_t count) {
    enum { EARLY = 16 };
    failing_allocator memory = {.fail_at = SIZE_MAX};
    const foreloop_allocator allocator = failing_allocator_use(&memory);
    foreloop_records_options options;
    foreloop_records *records = NULL;
    foreloop_record record = {.size = sizeof record};
    foreloop_records_options_init(&options, sizeof options);
    options.allocator = &allocator;
    size_t read = 0, early = 0, late = 0;
    if (foreloop_records_open_memory(&records, data, size, &options, NULL) == FORELOOP_OK)
        while (foreloop_records_next(records, &record, NULL) == FORELOOP_OK) {
            early = read++ == EARLY ? memory.live : early;
            late = memory.live;
        }
    foreloop_records_close(records);
    CHECK(read == count && late == early && memory.live == 0, "%zu records in %zu blocks", count, late);
    return memory.largest;
}

/* Memory is constant in the file's length, plain and as gzip. */
static void test_memory(void) {
    enum { FEW = 64, MANY = 8192 };
    static char line[1 << 12];
    make_line(line, sizeof line, TILING);
    const size_t length = strlen(line) + 1, room = MANY * length;
    unsigned char *plain = malloc(room), *packed = malloc(room);
    size_t largest[2];
    for (size_t i = 0; i < MANY; i++) {
        memcpy(plain + i * length, line, length - 1);
        plain[(i + 1) * length - 1] = '\n';
    }
    CHECK(read_many(plain, FEW * length, FEW) == read_many(plain, MANY * length, MANY), "the largest block, plain");
    for (int i = 0; i < 2; i++) {
        const size_t count = i == 0 ? FEW : MANY;
        z_stream stream = {
            .next_in = plain, .avail_in = (uInt)(count * length), .next_out = packed, .avail_out = (uInt)room};
        deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
        CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END, "packed");
        largest[i] = read_many(packed, (size_t)stream.total_out, count);
        deflateEnd(&stream);
    }
    CHECK(largest[0] == largest[1], "the largest block, gzip: %zu bytes", largest[1]);
    free(packed);
    free(plain);
}

int main(void) {
    test_steps();
    test_stages();
    test_versions();
    test_workloads();
    test_measurements();
    test_gzip();
    test_malformed_steps();
    test_malformed_records();
    test_hostile();
    test_large();
    test_memory();
    test_failing_allocations();
    return tap_done();
}
