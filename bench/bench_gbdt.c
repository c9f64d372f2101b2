/*
 * Time of the trees on their own: opening a model, a batch of rows, single rows; medians of repeated runs, one thread.
 *
 *     bench_gbdt [--trees N] [--depth N] [--features N] [--batch N] [--json]
 *
 * The model is full trees with random features and thresholds, made in memory, so that every walk takes all steps and
 * no branch can be guessed.
 */
#include <foreloop/foreloop.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RUNS = 51, MAX_DEPTH = 16 };

typedef struct bench_settings {
    size_t trees, depth, features, batch;
    int json;
} bench_settings;

typedef struct bench_text {
    char *data;
    size_t size, capacity;
} bench_text;

static void fail(const char *what) {
    fprintf(stderr, "bench_gbdt: %s\n", what);
    exit(1);
}

__attribute__((format(printf, 2, 3))) static void append(bench_text *text, const char *format, ...) {
    va_list arguments;
    if (text->capacity - text->size < 256) {
        text->capacity = text->capacity * 2 + 4096;
        text->data = realloc(text->data, text->capacity);
        if (!text->data)
            fail("out of memory");
    }
    va_start(arguments, format);
    text->size += (size_t)vsnprintf(text->data + text->size, 256, format, arguments);
    va_end(arguments);
}

static uint32_t draw(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

/* One array of a full tree in breadth-first order, whose split nodes are the first `splits`. */
static void append_column(bench_text *text, const char *name, size_t splits, size_t which,
                          const bench_settings *settings, uint64_t *state) {
    append(text, "\"%s\":[", name);
    for (size_t i = 0; i < 2 * splits + 1; i++) {
        const char *comma = i > 0 ? "," : "";
        if (which < 2)
            append(text, "%s%lld", comma, i < splits ? (long long)(2 * i + 1 + which) : -1LL);
        else if (which == 2)
            append(text, "%s%u", comma, draw(state) & 1u);
        else if (which == 3)
            append(text, "%s%zu", comma, i < splits ? draw(state) % settings->features : 0);
        else
            append(text, "%s0.%07u", comma, draw(state) % 10000000u);
    }
    append(text, "]%s", which < 4 ? "," : "");
}

static bench_text make_model(const bench_settings *settings) {
    static const char *const columns[] = {"left_children", "right_children", "default_left", "split_indices",
                                          "split_conditions"};
    bench_text text = {NULL, 0, 0};
    uint64_t state = 1;
    append(&text, "{\"learner\":{\"learner_model_param\":{\"base_score\":\"0E0\",\"num_feature\":\"%zu\"},",
           settings->features);
    append(&text, "\"objective\":{\"name\":\"rank:ndcg\"},\"gradient_booster\":{\"name\":\"gbtree\",\"model\":{"
                  "\"trees\":[");
    for (size_t t = 0; t < settings->trees; t++) {
        append(&text, "%s{", t > 0 ? "," : "");
        for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
            append_column(&text, columns[i], ((size_t)1 << settings->depth) - 1, i, settings, &state);
        append(&text, "}");
    }
    append(&text, "],\"tree_info\":[");
    for (size_t t = 0; t < settings->trees; t++)
        append(&text, "%s0", t > 0 ? "," : "");
    append(&text, "]}}}}");
    return text;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double times[RUNS]) {
    qsort(times, RUNS, sizeof *times, compare);
    return times[RUNS / 2];
}

static double time_opening(const bench_text *model, foreloop_gbdt **gbdt) {
    double times[RUNS];
    for (int run = 0; run < RUNS; run++) {
        foreloop_error error;
        foreloop_gbdt_close(*gbdt);
        *gbdt = NULL;
        times[run] = now();
        if (foreloop_gbdt_open_memory(gbdt, model->data, model->size, NULL, &error) != FORELOOP_OK)
            fail(error.message);
        times[run] = now() - times[run];
    }
    return median(times);
}

/* Seconds for a row, when `at_once` rows are predicted in a call. */
static double time_rows(const foreloop_gbdt *gbdt, const bench_settings *settings, const float *rows, size_t at_once,
                        float *outputs) {
    double times[RUNS];
    for (int run = 0; run < RUNS; run++) {
        times[run] = now();
        for (size_t r = 0; r < settings->batch; r += at_once)
            foreloop_gbdt_predict(gbdt, rows + r * settings->features,
                                  settings->batch - r < at_once ? settings->batch - r : at_once, settings->features, 1,
                                  outputs + r, NULL);
        times[run] = (now() - times[run]) / (double)settings->batch;
    }
    return median(times);
}

static bench_settings read_arguments(int argc, char **argv) {
    bench_settings settings = {300, 6, 320, 512, 0};
    for (int i = 1; i < argc; i++) {
        size_t *number = strcmp(argv[i], "--trees") == 0      ? &settings.trees
                         : strcmp(argv[i], "--depth") == 0    ? &settings.depth
                         : strcmp(argv[i], "--features") == 0 ? &settings.features
                         : strcmp(argv[i], "--batch") == 0    ? &settings.batch
                                                              : NULL;
        if (strcmp(argv[i], "--json") == 0)
            settings.json = 1;
        else if (number && i + 1 < argc)
            *number = (size_t)strtoul(argv[++i], NULL, 10);
        else
            fail("usage: bench_gbdt [--trees N] [--depth N] [--features N] [--batch N] [--json]");
    }
    if (settings.trees < 1 || settings.depth > MAX_DEPTH || settings.features < 1 || settings.batch < 1)
        fail("a number is out of range");
    return settings;
}

int main(int argc, char **argv) {
    const bench_settings settings = read_arguments(argc, argv);
    bench_text model = make_model(&settings);
    float *rows = malloc(settings.batch * settings.features * sizeof *rows);
    float *outputs = malloc(settings.batch * sizeof *outputs);
    foreloop_gbdt *gbdt = NULL;
    uint64_t state = 2;
    if (!rows || !outputs)
        fail("out of memory");
    for (size_t i = 0; i < settings.batch * settings.features; i++)
        rows[i] = (float)(draw(&state) >> 7) / 16777216.0f;
    double open = time_opening(&model, &gbdt);
    double batch = time_rows(gbdt, &settings, rows, settings.batch, outputs);
    double single = time_rows(gbdt, &settings, rows, 1, outputs);
    if (settings.json) {
        printf("{\"bench\":\"gbdt\",\"trees\":%zu,\"depth\":%zu,\"features\":%zu,\"batch\":%zu,\"open_ms\":%.3f,"
               "\"batch_us_per_row\":%.4f,\"single_us_per_row\":%.4f}\n",
               settings.trees, settings.depth, settings.features, settings.batch, 1e3 * open, 1e6 * batch,
               1e6 * single);
    } else {
        printf("%zu trees of depth %zu, %zu features\n", settings.trees, settings.depth, settings.features);
        printf("open                %10.3f ms\n", 1e3 * open);
        printf("batch of %-6zu     %10.3f us/row\n", settings.batch, 1e6 * batch);
        printf("single row          %10.3f us\n", 1e6 * single);
    }
    foreloop_gbdt_close(gbdt);
    free(model.data);
    free(rows);
    free(outputs);
    return 0;
}
