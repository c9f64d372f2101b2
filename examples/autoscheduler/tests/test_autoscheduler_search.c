/* The whole search on small shapes: finding, logging, going on after an interruption, damaged logs, kernels and
 * compilers that fail, and replay. */
#include "measure.h"
#include "operators.h"
#include "search.h"
#include "tap.h"
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[256];

static void in_directory(char *path, const char *name) {
    (void)snprintf(path, 512, "%s/%s", directory, name);
}

static long size_of(const char *path) {
    FILE *in = fopen(path, "rb");
    long size = -1;
    if (in && fseek(in, 0, SEEK_END) == 0)
        size = ftell(in);
    if (in)
        (void)fclose(in);
    return size;
}

static void write_file(const char *path, const char *text) {
    FILE *out = fopen(path, "w");
    if (out) {
        (void)fputs(text, out);
        (void)fclose(out);
    }
}

static measure_options measuring(void) {
    return (measure_options){.compiler = "cc", .directory = directory, .threads = 1, .jobs = 2, .timeout = 30};
}

/* ---- Searching --------------------------------------------------------------------------------------------------- */

static void test_search(const char *text) {
    char log[512], output[512], message[512] = "";
    program *initial = calloc(1, sizeof *initial);
    runner *r = calloc(1, sizeof *r);
    search_space space;
    search_result found = {.trials = 0};
    const measure_options how = measuring();
    in_directory(log, "search.jsonl");
    in_directory(output, "best.c");
    (void)remove(log);
    (void)remove(output);
    if (!initial || !r || !operator_build(text, initial, message, sizeof message) || !space_open(&space, initial) ||
        !runner_open(r, initial, &how, message, sizeof message)) {
        CHECK(0, "%s: cannot begin: %s", text, message);
        return;
    }
    const measurer by = measurer_of(r);
    search_options options = {
        .method = METHOD_MODEL, .trials = 12, .batch = 6, .scored = 4096, .seed = 5, .log = log, .output = output};
    CHECK(search_run(text, &space, &by, &options, &found, message, sizeof message), "%s: a search ends: %s", text,
          message);
    CHECK(found.trials == 12 && found.failed == 0 && found.best > 0 && isfinite(found.best) && found.scored >= 8192,
          "%s: %d trials, %d failed, %ld scored", text, found.trials, found.failed, found.scored);

    /* The kernel stands alone. */
    measurement m;
    runner_measure_file(r, output, NULL, &m);
    CHECK(m.count > 0, "%s: the kernel that was kept compiles and is right: %s", text, m.error);

    /* Killed while a line was written: what is whole is kept, and the search goes on to where it was to end. */
    const long size = size_of(log);
    CHECK(truncate(log, size - 40) == 0, "%s: the log is cut off", text);
    options.trials = 18;
    options.method = METHOD_RANDOM;
    CHECK(search_run(text, &space, &by, &options, &found, message, sizeof message) && found.trials == 18,
          "%s: goes on from a log that was cut off: %s", text, message);
    trials kept = {.items = NULL};
    CHECK(log_read(log, text, &space, &kept, message, sizeof message) && kept.count == 18,
          "%s: the log has %d trials: %s", text, kept.count, message);
    bool distinct = true;
    for (int i = 0; i < kept.count; i++)
        for (int j = 0; j < i; j++)
            distinct = distinct && memcmp(kept.items[i].choices, kept.items[j].choices,
                                          (size_t)space.count * sizeof(uint16_t)) != 0;
    CHECK(distinct, "%s: no candidate is measured twice", text);
    uint64_t keys[18];
    schedule *made = calloc(1, sizeof *made);
    for (int i = 0; made && i < kept.count && i < 18; i++) {
        space_apply(&space, kept.items[i].choices, made);
        keys[i] = schedule_key(made);
        for (int j = 0; j < i; j++)
            distinct = distinct && keys[i] != keys[j];
    }
    CHECK(made && distinct, "%s: nor is another one with the same schedule", text);
    free(made);
    const long whole = size_of(log);
    CHECK(search_run(text, &space, &by, &options, &found, message, sizeof message) && found.trials == 18 &&
              size_of(log) == whole,
          "%s: a finished search is left alone", text);
    trials_close(&kept);
    runner_close(r);
    space_close(&space);
    free(initial);
    free(r);
}

/* ---- Damaged logs ------------------------------------------------------------------------------------------------ */

static void test_logs(void) {
    static const struct {
        const char *text;
        bool good;
    } cases[] = {
        {"# foreloop autoscheduler log 1: matmul 4 4 4\n", true},
        {"# foreloop autoscheduler log 1: matmul 4 4 "
         "4\n{\"decisions\":[0,0,0,0,0,0],\"seconds\":[0.1],\"actions\":[]}\n",
         true},
        {"# foreloop autoscheduler log 1: matmul 4 4 4\n{\"decisions\":[0,0,0,0,0,0],\"seconds\":[]}\n{\"decis", true},
        {"", true},
        {"# foreloop autosch", true},
        {"a file of another kind, in one line", false},
        {"# foreloop autoscheduler log 1: softmax", false},
        {"# foreloop autoscheduler log 1: matmul 4 4 8\n", false},
        {"[1,2]\n", false},
        {"# foreloop autoscheduler log 1: matmul 4 4 4\n{}\n", false},
        {"# foreloop autoscheduler log 1: matmul 4 4 4\nnull\n", false},
        {"# foreloop autoscheduler log 1: matmul 4 4 4\n\n", false},
        {"# foreloop autoscheduler log 1: matmul 4 4 4\n{\"decisions\":[0,0,0,0,0],\"seconds\":[0.1]}\n", false},
        {"# foreloop autoscheduler log 1: matmul 4 4 4\n{\"decisions\":[0,0,0,0,0,99],\"seconds\":[0.1]}\n", false},
        {"# foreloop autoscheduler log 1: matmul 4 4 4\n{\"decisions\":[0,0,0,0,0,-1],\"seconds\":[0.1]}\n", false},
        {"# foreloop autoscheduler log 1: matmul 4 4 4\n{\"decisions\":[0,0,0,0,0,1e300],\"seconds\":[0.1]}\n", false},
        {"# foreloop autoscheduler log 1: matmul 4 4 4\n{\"decisions\":[0,0,0,0,0,0],\"seconds\":[-1]}\n", false},
        {"# foreloop autoscheduler log 1: matmul 4 4 4\n{\"decisions\":[0,0,0,0,0,0],\"seconds\":[\"x\"]}\n", false},
        {"# foreloop autoscheduler log 1: matmul 4 4 4\n{\"decisions\":{},\"seconds\":1}\n", false},
    };
    char path[512], message[512];
    program *initial = calloc(1, sizeof *initial);
    search_space space;
    in_directory(path, "damaged.jsonl");
    if (!initial || !operator_build("matmul 4 4 4", initial, message, sizeof message) || !space_open(&space, initial))
        return;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        trials kept = {.items = NULL};
        message[0] = 0;
        write_file(path, cases[i].text);
        const long size = size_of(path);
        FILE *log = log_open(path, "matmul 4 4 4", &space, &kept, message, sizeof message);
        CHECK((log != NULL) == cases[i].good && (log || (message[0] && (size == 0 || size_of(path) == size))),
              "log %zu is %s: %s", i, cases[i].good ? "read" : "refused and left alone", message);
        if (log)
            (void)fclose(log);
        trials_close(&kept);
    }
    FILE *out = fopen(path, "w");
    for (int i = 0; out && i < 3000000; i++)
        (void)fputc('[', out);
    if (out)
        (void)fclose(out);
    trials kept = {.items = NULL};
    CHECK(!log_read(path, "matmul 4 4 4", &space, &kept, message, sizeof message), "a line without end is refused: %s",
          message);
    trials_close(&kept);
    CHECK(!log_read("/nonexistent/log", "matmul 4 4 4", &space, &kept, message, sizeof message), "no log: %s", message);
    static const char *const impossible[] = {"/nonexistent/log", "/dev/null", "/tmp"};
    for (size_t i = 0; i < sizeof impossible / sizeof *impossible; i++)
        CHECK(!log_open(impossible[i], "matmul 4 4 4", &space, &kept, message, sizeof message),
              "a log that cannot be written: %s", message);
    (void)remove(path);
    FILE *mine = log_open(path, "matmul 4 4 4", &space, &kept, message, sizeof message);
    CHECK(mine && !log_open(path, "matmul 4 4 4", &space, &kept, message, sizeof message) &&
              strstr(message, "another run"),
          "a log is one run's at a time: %s", message);
    if (mine)
        (void)fclose(mine);
    mine = log_open(path, "matmul 4 4 4", &space, &kept, message, sizeof message);
    CHECK(mine != NULL, "and the next one's after it: %s", message);
    if (mine)
        (void)fclose(mine);
    space_close(&space);
    free(initial);
}

/* ---- Failures ---------------------------------------------------------------------------------------------------- */

static void test_failures(void) {
    static const struct {
        const char *code, *error;
    } cases[] = {{"void kernel(float *const *b) { *(volatile int *)0 = 1; }", "crashes"},
                 {"void kernel(float *const *b) { for (volatile int i = 0;; i++) ; }", "takes too long"},
                 {"void kernel(float *const *b) { b[2][0] = 1; }", "computes something else"},
                 {"void kernel(float *const *b) { _Exit(0); }", "crashes"},
                 {"void other(void) {}", "cannot be loaded"},
                 {"void kernel(", "does not compile"}};
    char path[512], message[512] = "";
    program *initial = calloc(1, sizeof *initial);
    runner *r = calloc(1, sizeof *r);
    measure_options how = measuring();
    in_directory(path, "failing.c");
    if (!initial || !r || !operator_build("matmul 4 4 4", initial, message, sizeof message) ||
        !runner_open(r, initial, &how, message, sizeof message) || !runner_begin(r, message, sizeof message)) {
        CHECK(0, "cannot begin: %s", message);
        return;
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        measurement m;
        write_file(path, cases[i].code);
        r->options.timeout = strcmp(cases[i].error, "takes too long") == 0 ? 6 : 60;
        runner_measure_file(r, path, NULL, &m);
        CHECK(m.count == 0 && strcmp(m.error, cases[i].error) == 0, "\"%s\": %s", cases[i].code, m.error);
    }
    runner_close(r);
    static const char *const compilers[] = {"false", "no-such-compiler"};
    for (int i = 0; i < 2; i++) {
        how.compiler = compilers[i];
        CHECK(runner_open(r, initial, &how, message, sizeof message) && !runner_begin(r, message, sizeof message),
              "the compiler %s: %s", compilers[i], message);
        runner_close(r);
    }
    how.compiler = "cc";
    char missing[512];
    in_directory(missing, "missing");
    how.directory = missing;
    CHECK(!runner_open(r, initial, &how, message, sizeof message) && access(missing, F_OK) != 0,
          "a folder that does not exist is not made: %s", message);
    free(initial);
    free(r);
}

/* The folder of a run that was killed goes when the next one begins; that of one which is there does not. */
static void test_scratch(void) {
    char killed[512], file[FILE_PATH_SIZE + 64];
    scratch_folder first, second;
    in_directory(killed, "foreloop-autoscheduler-killed");
    (void)snprintf(file, sizeof file, "%s/kernel_0.c", killed);
    CHECK(mkdir(killed, 0700) == 0 && scratch_open(&first, directory), "a folder for generated files");
    CHECK(access(killed, F_OK) != 0, "an empty one that nobody holds is gone");
    (void)mkdir(killed, 0700);
    write_file(file, "void kernel(");
    CHECK(scratch_open(&second, directory) && access(killed, F_OK) != 0, "so is one with a file in it");
    CHECK(access(first.path, F_OK) == 0 && strcmp(first.path, second.path) != 0, "one that is held is left alone");
    (void)snprintf(file, sizeof file, "%s/kernel_0.c", first.path);
    write_file(file, "void kernel(");
    scratch_close(&first);
    scratch_close(&second);
    CHECK(access(first.path, F_OK) != 0 && access(second.path, F_OK) != 0, "both go at the end");
}

/* ---- Replay ------------------------------------------------------------------------------------------------------ */

static void measure_by_number(void *user, uint16_t (*choices)[MAX_DECISIONS], const program *const *programs, int count,
                              measurement *results) {
    (void)programs;
    double *sum = user;
    for (int i = 0; i < count; i++) {
        results[i] = (measurement){.count = 1, .seconds = {1e-3 * (1 + choices[i][0])}};
        *sum = *sum * 1.25 + choices[i][0] + 3 * choices[i][1];
    }
}

/* Nothing is measured for a search whose files cannot be written, or whose measurer cannot begin. */
static bool never_begins(void *user, char *message, size_t message_size) {
    *(double *)user += 1;
    (void)snprintf(message, message_size, "no processor");
    return false;
}

static void test_begin(void) {
    static const struct {
        const char *output, *log;
        double begun;
    } cases[] = {{"/nonexistent/x.c", NULL, 0},
                 {"/tmp", NULL, 0},
                 {"/dev/null", NULL, 0},
                 {NULL, "/nonexistent/x", 0},
                 {NULL, NULL, 1}};
    char message[512] = "";
    program *initial = calloc(1, sizeof *initial);
    search_space space;
    search_result found;
    if (!initial || !operator_build("matmul 4 4 4", initial, message, sizeof message) || !space_open(&space, initial))
        return;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double sum = 0;
        const measurer by = {.measure = measure_by_number, .begin = never_begins, .user = &sum};
        const search_options options = {
            .method = METHOD_RANDOM, .trials = 4, .batch = 4, .output = cases[i].output, .log = cases[i].log};
        CHECK(!search_run("matmul 4 4 4", &space, &by, &options, &found, message, sizeof message) &&
                  sum == cases[i].begun && message[0],
              "%s", message);
    }
    space_close(&space);
    free(initial);
}

/* On a disk that takes no more bytes, nothing is left behind. */
static void test_full_disk(void) {
    char path[512], partial[1400], message[512] = "", log_message[512] = "";
    program *initial = calloc(1, sizeof *initial);
    search_space space;
    trials kept = {.items = NULL};
    whole_file w;
    struct rlimit before, none;
    in_directory(path, "full.c");
    partial_name(path, partial, sizeof partial);
    if (!initial || !operator_build("matmul 4 4 4", initial, message, sizeof message) || !space_open(&space, initial) ||
        getrlimit(RLIMIT_FSIZE, &before) != 0)
        return;
    none = before;
    none.rlim_cur = 0;
    (void)signal(SIGXFSZ, SIG_IGN);
    (void)setrlimit(RLIMIT_FSIZE, &none);
    const bool possible = can_be_written(path, message, sizeof message);
    FILE *log = log_open(path, "matmul 4 4 4", &space, &kept, log_message, sizeof log_message);
    const bool opened = whole_open(&w, path) && fputs("void", w.out) >= 0;
    errno = 0;
    const bool closed = opened && whole_close(&w, true);
    const int reason = errno;
    (void)setrlimit(RLIMIT_FSIZE, &before);
    CHECK(!possible && strstr(message, strerror(EFBIG)), "it is found out beforehand: %s", message);
    CHECK(!log && strstr(log_message, strerror(EFBIG)), "no log: %s", log_message);
    CHECK(opened && !closed && reason == EFBIG, "no file: %s", strerror(reason));
    CHECK(access(path, F_OK) != 0 && access(partial, F_OK) != 0, "nothing is left behind");
    space_close(&space);
    free(initial);
}

/* What is proposed depends on the seed and the times alone. */
static void test_deterministic(void) {
    char message[512] = "";
    program *initial = calloc(1, sizeof *initial);
    search_space space;
    search_result found;
    double sums[3] = {0};
    if (!initial || !operator_build("matmul 24 36 20", initial, message, sizeof message) ||
        !space_open(&space, initial))
        return;
    for (int i = 0; i < 3; i++) {
        const measurer by = {.measure = measure_by_number, .user = &sums[i]};
        const search_options options = {
            .method = METHOD_MODEL, .trials = 40, .batch = 10, .scored = 4096, .seed = i == 2 ? 8 : 7};
        CHECK(search_run("matmul 24 36 20", &space, &by, &options, &found, message, sizeof message), "search %d: %s", i,
              message);
    }
    CHECK(sums[0] == sums[1] && sums[0] != sums[2],
          "the same search twice proposes the same, another seed something else");
    space_close(&space);
    free(initial);
}

int main(int argc, char **argv) {
    (void)snprintf(directory, sizeof directory, "%.200s/kernels_search", argc > 1 ? argv[1] : "/tmp");
    (void)mkdir(directory, 0777);
    test_search("matmul 16 16 12");
    test_search("softmax 6 16");
    test_logs();
    test_failures();
    test_scratch();
    test_begin();
    test_full_disk();
    test_deterministic();
    return tap_done();
}
