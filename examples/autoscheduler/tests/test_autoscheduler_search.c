/* The whole search on small shapes: finding, logging, going on after an interruption, damaged logs, kernels and
 * compilers that fail, and replay. */
#include "codegen.h"
#include "commands.h"
#include "measure.h"
#include "operators.h"
#include "search.h"
#include "tap.h"
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pty.h>
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
    search_options wanted = {
        .method = METHOD_MODEL, .trials = 12, .batch = 6, .scored = 4096, .seed = 5, .log = log, .output = output};
    CHECK(search_run(text, &space, &by, &wanted, &found, message, sizeof message), "%s: a search ends: %s", text,
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
    wanted.trials = 18;
    wanted.method = METHOD_RANDOM;
    CHECK(search_run(text, &space, &by, &wanted, &found, message, sizeof message) && found.trials == 18,
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
    CHECK(search_run(text, &space, &by, &wanted, &found, message, sizeof message) && found.trials == 18 &&
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
                 {"void kernel(float *const *b) { b[0][0] = 1; }", "crashes"}, /* an input, which others need */
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

/* What counts as right: numbers as small as theirs are in softmax over long rows, sums of many terms in any order. */
static void test_tolerance(void) {
    static const struct {
        const char *name, *code, *error;
    } cases[] = {{"softmax 2 40000", "void kernel(float *const *b) { for (int i = 0; i < 80000; i++) b[1][i] = 0; }",
                  "computes something else"},
                 {"matmul 64 4 200000",
                  "void kernel(float *const *b) {\n"
                  "    for (int i = 0; i < 64; i++)\n"
                  "        for (int j = 0; j < 4; j++) {\n"
                  "            float sum = 0;\n"
                  "            for (int k = 200000; k-- > 0;)\n"
                  "                sum += b[0][i * 200000 + k] * b[1][k * 4 + j];\n"
                  "            b[2][i * 4 + j] = sum;\n"
                  "        }\n"
                  "}\n",
                  ""},
                 {"matmul 64 4 200000",
                  "void kernel(float *const *b) {\n"
                  "    for (int i = 0; i < 64; i++)\n"
                  "        for (int j = 0; j < 4; j++) {\n"
                  "            float sum = 0;\n"
                  "            for (int k = 1; k < 200000; k++)\n"
                  "                sum += b[0][i * 200000 + k] * b[1][k * 4 + j];\n"
                  "            b[2][i * 4 + j] = sum;\n"
                  "        }\n"
                  "}\n",
                  "computes something else"}};
    const measure_options how = measuring();
    char path[512], message[512] = "";
    program *initial = calloc(1, sizeof *initial);
    runner *r = calloc(1, sizeof *r);
    in_directory(path, "tolerance.c");
    for (size_t i = 0; initial && r && i < sizeof cases / sizeof *cases; i++) {
        measurement m = {.count = 0};
        write_file(path, cases[i].code);
        if (operator_build(cases[i].name, initial, message, sizeof message) &&
            runner_open(r, initial, &how, message, sizeof message) && runner_begin(r, message, sizeof message))
            runner_measure_file(r, path, NULL, &m);
        CHECK(!message[0] && (m.count > 0) == !cases[i].error[0] && strcmp(m.error, cases[i].error) == 0,
              "%s, kernel %zu: %s%s", cases[i].name, i, m.count ? "right" : m.error, message);
        runner_close(r);
    }
    free(initial);
    free(r);
}

/* A compiler as a script. */
static void write_compiler(char *path, const char *name, const char *text) {
    in_directory(path, name);
    write_file(path, text);
    (void)chmod(path, 0777);
}

/* A compiler that no longer works fails the search, and no candidate; it writes where --tmp says. */
static void test_failing_compiler(void) {
    char compiler[512], log[512], text[1024], message[512] = "";
    program *initial = calloc(1, sizeof *initial);
    runner *r = calloc(1, sizeof *r);
    search_space space;
    search_result found = {.trials = 0};
    trials kept = {.items = NULL};
    measure_options how = measuring();
    in_directory(log, "compiler.jsonl");
    (void)remove(log);
    (void)snprintf(text, sizeof text,
                   "#!/bin/sh\n[ -e '%s/compiled' ] && exit 1\n"
                   "case $TMPDIR in '%s'/*) touch '%s/compiled'; exec cc \"$@\" ;; esac\n",
                   directory, directory, directory);
    write_compiler(compiler, "compiles_once", text);
    (void)snprintf(text, sizeof text, "%s/compiled", directory);
    (void)remove(text);
    how.compiler = compiler;
    if (!initial || !r || !operator_build("matmul 4 4 4", initial, message, sizeof message) ||
        !space_open(&space, initial) || !runner_open(r, initial, &how, message, sizeof message))
        return;
    const measurer by = measurer_of(r);
    const search_options wanted = {.method = METHOD_RANDOM, .trials = 4, .batch = 2, .log = log};
    CHECK(!search_run("matmul 4 4 4", &space, &by, &wanted, &found, message, sizeof message) &&
              strstr(message, "compiled again"),
          "a compiler that has gone ends the search: %s", message);
    CHECK(log_read(log, "matmul 4 4 4", &space, &kept, message, sizeof message) && kept.count == 0,
          "and is no trial: %d", kept.count);
    trials_close(&kept);
    runner_close(r);
    space_close(&space);
    free(initial);
    free(r);
}

/* A compiler that takes too long ends with the processes that it has started, which hold the end of a pipe here. */
static void test_hanging_compiler(void) {
    char compiler[512], message[512] = "";
    int ends[2];
    program *initial = calloc(1, sizeof *initial);
    runner *r = calloc(1, sizeof *r);
    measure_options how = measuring();
    write_compiler(compiler, "hangs", "#!/bin/sh\nsleep 600\nexit 1\n");
    how.compiler = compiler;
    how.timeout = 0.02; /* ten times as long for the first program */
    if (!initial || !r || !operator_build("matmul 4 4 4", initial, message, sizeof message) ||
        !runner_open(r, initial, &how, message, sizeof message) || pipe(ends) != 0)
        return;
    CHECK(!runner_begin(r, message, sizeof message) && strstr(message, "takes too long"), "a compiler hangs: %s",
          message);
    (void)close(ends[1]);
    struct pollfd closed = {.fd = ends[0], .events = POLLIN};
    CHECK(poll(&closed, 1, 20000) == 1 && closed.revents & POLLHUP, "nothing is left of it");
    (void)close(ends[0]);
    runner_close(r);
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
    const char *const parent = getenv("TMPDIR");
    char *const before = parent ? strdup(parent) : NULL;
    (void)setenv("TMPDIR", "", 1);
    CHECK(scratch_open(&first, NULL) && strncmp(first.path, "/tmp/", 5) == 0, "an empty $TMPDIR is none: %s",
          first.path);
    scratch_close(&first);
    (void)(before ? setenv("TMPDIR", before, 1) : unsetenv("TMPDIR"));
    free(before);
}

/* Names of one file, which is not there. */
static void test_same_file(void) {
    char a[512], b[512], c[512];
    in_directory(a, "unmade");
    in_directory(b, "../kernels_search/./unmade");
    in_directory(c, "unmade_too");
    CHECK(same_file(a, b) && !same_file(a, c) && same_file("unmade", "./unmade") && !same_file("unmade", a),
          "names of one file");
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
        const search_options wanted = {
            .method = METHOD_RANDOM, .trials = 4, .batch = 4, .output = cases[i].output, .log = cases[i].log};
        CHECK(!search_run("matmul 4 4 4", &space, &by, &wanted, &found, message, sizeof message) &&
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

/* A matrix product and its space; NULL, and a check that fails, when there is none. The caller frees and closes. */
static program *open_space(search_space *space, const char *text) {
    char message[512] = "";
    program *initial = calloc(1, sizeof *initial);
    const bool good = initial && operator_build(text, initial, message, sizeof message) && space_open(space, initial);
    if (!good) {
        CHECK(false, "%s: no space: %s", text, message);
        free(initial);
        return NULL;
    }
    return initial;
}

/* What is proposed depends on the seed and the times alone. */
static void test_deterministic(void) {
    char message[512] = "";
    search_space space;
    program *const initial = open_space(&space, "matmul 24 36 20");
    search_result found;
    double sums[3] = {0};
    if (!initial)
        return;
    for (int i = 0; i < 3; i++) {
        const measurer by = {.measure = measure_by_number, .user = &sums[i]};
        const search_options wanted = {
            .method = METHOD_MODEL, .trials = 40, .batch = 10, .scored = 4096, .seed = i == 2 ? 8 : 7};
        CHECK(search_run("matmul 24 36 20", &space, &by, &wanted, &found, message, sizeof message), "search %d: %s", i,
              message);
    }
    CHECK(sums[0] == sums[1] && sums[0] != sums[2],
          "the same search twice proposes the same, another seed something else");
    space_close(&space);
    free(initial);
}

/* Times that differ by a billionth. */
static void measure_alike(void *user, uint16_t (*choices)[MAX_DECISIONS], const program *const *programs, int count,
                          measurement *results) {
    measure_by_number(user, choices, programs, count, results);
    for (int i = 0; i < count; i++)
        results[i].seconds[0] = 1e-3 + 1e-9 * results[i].seconds[0];
}

/* A search that was interrupted goes on as it would have gone on. */
static void test_resumed(void) {
    char log[512], message[512] = "";
    search_space space;
    program *const initial = open_space(&space, "matmul 24 36 20");
    search_result found;
    double sums[2] = {0};
    bool good = true;
    in_directory(log, "resumed.jsonl");
    (void)remove(log);
    if (!initial)
        return;
    for (int i = 0; i < 3; i++) {
        const measurer by = {.measure = measure_alike, .user = &sums[i > 0]};
        const search_options wanted = {.method = METHOD_MODEL,
                                       .trials = i == 1 ? 20 : 40,
                                       .batch = 10,
                                       .scored = 4096,
                                       .seed = 7,
                                       .log = i ? log : NULL};
        good = good && search_run("matmul 24 36 20", &space, &by, &wanted, &found, message, sizeof message);
    }
    CHECK(good && sums[0] == sums[1], "a search goes on from its log as without an interruption: %s", message);
    space_close(&space);
    free(initial);
}

/* A space that is smaller than the number of trials. */
static void test_small_space(void) {
    char message[512] = "";
    search_space space;
    program *const initial = open_space(&space, "matmul 1 1 2");
    search_result found;
    double sum = 0;
    if (!initial)
        return;
    const measurer by = {.measure = measure_by_number, .user = &sum};
    search_options wanted = {.method = METHOD_RANDOM, .trials = 50, .batch = 4};
    const bool good = search_run("matmul 1 1 2", &space, &by, &wanted, &found, message, sizeof message);
    CHECK(good && found.over && found.trials > 0 && found.trials < 50,
          "a search ends when nothing is left, after %d trials: %s", found.trials, message);
    wanted.trials = 1;
    CHECK(search_run("matmul 1 1 2", &space, &by, &wanted, &found, message, sizeof message) && !found.over &&
              found.trials == 1,
          "and before, when its trials are done: %s", message);
    space_close(&space);
    free(initial);
}

/* The line of progress fits the terminal. */
static void test_progress(void) {
    char message[512] = "", shown[4096] = "";
    struct winsize narrow = {.ws_row = 5, .ws_col = 20};
    int ours, theirs;
    double sum = 0;
    search_space space;
    program *const initial = open_space(&space, "matmul 24 36 20");
    search_result found;
    FILE *out;
    if (!initial || openpty(&ours, &theirs, NULL, NULL, &narrow) != 0 || !(out = fdopen(theirs, "w")))
        return;
    const measurer by = {.measure = measure_by_number, .user = &sum};
    const search_options wanted = {.method = METHOD_RANDOM, .trials = 4, .batch = 4, .progress = out, .terminal = true};
    const bool good = search_run("matmul 24 36 20", &space, &by, &wanted, &found, message, sizeof message);
    (void)fflush(out);
    const ssize_t count = read(ours, shown, sizeof shown - 1);
    CHECK(good && count > 0 && strncmp(shown, "\rmatmul 24 36 20: 4 \033[K", 23) == 0, "20 columns: %s", shown + 1);
    (void)fclose(out);
    (void)close(ours);
    space_close(&space);
    free(initial);
}

/* A log whose choices do not go together, which no run has written. */
static void test_impossible_replay(void) {
    static const char text[] = "matmul 1024 1024 1024";
    char path[512], message[512] = "", *logs[] = {path};
    uint16_t choices[MAX_DECISIONS];
    uint64_t random = 5;
    const measurement m = {.count = 1, .seconds = {1e-3}};
    program *initial = calloc(1, sizeof *initial);
    schedule *made = calloc(1, sizeof *made);
    search_space space;
    trials kept = {.items = NULL};
    in_directory(path, "impossible.jsonl");
    (void)remove(path);
    if (!initial || !made || !operator_build(text, initial, message, sizeof message) || !space_open(&space, initial))
        return;
    FILE *log = log_open(path, text, &space, &kept, message, sizeof message);
    int written = 0;
    for (int draws = 0; log && written < 3 && draws < 5000; draws++) {
        space_sample(&space, &random, choices);
        space_apply(&space, choices, made);
        if (made->error || !can_generate_c(&made->p))
            written += log_write(log, &space, choices, made, &m);
    }
    if (log)
        (void)fclose(log);
    const options o = {.command = "replay",
                       .arguments = logs,
                       .argument_count = 1,
                       .json = true,
                       .search = {.method = METHOD_MODEL, .batch = 8}};
    CHECK(written == 3 && command_replay(&o) == 1, "a replay of %d candidates without a kernel fails", written);
    space_close(&space);
    free(initial);
    free(made);
}

/* An interrupted replay says nothing of what it has not looked up. */
static void test_interrupted_replay(void) {
    char log[512], *logs[] = {log};
    const volatile sig_atomic_t interrupted = 1;
    in_directory(log, "search.jsonl");
    const options o = {.command = "replay",
                       .arguments = logs,
                       .argument_count = 1,
                       .json = true,
                       .search = {.method = METHOD_MODEL, .batch = 8, .cancel = &interrupted}};
    CHECK(command_replay(&o) == 1, "an interrupted replay fails");
}

int main(int argc, char **argv) {
    (void)snprintf(directory, sizeof directory, "%.200s/kernels_search", argc > 1 ? argv[1] : "/tmp");
    (void)mkdir(directory, 0777);
    test_search("matmul 16 16 12");
    test_search("softmax 6 16");
    test_logs();
    test_failures();
    test_tolerance();
    test_failing_compiler();
    test_hanging_compiler();
    test_scratch();
    test_same_file();
    test_begin();
    test_full_disk();
    test_deterministic();
    test_resumed();
    test_small_space();
    test_progress();
    test_impossible_replay();
    test_interrupted_replay();
    return tap_done();
}
