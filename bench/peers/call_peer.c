/*
 * Times peers that have a C interface from C, so that Python's own cost is not counted against them; called by gbdt.py.
 *
 *     call_peer xgboost LIBXGBOOST MODEL ROWS FEATURES BATCH...
 *     call_peer tl2cgen COMPILED_MODEL - ROWS FEATURES BATCH...
 *
 * ROWS is a file of float32 numbers, row by row. Prints microseconds of processor time for a row, the median of the
 * runs, for each batch, then the first row's prediction.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_RUNS = 51, MIN_RUNS = 5 };

typedef void *handle;

static int (*xgb_create)(const handle *, uint64_t, handle *);
static int (*xgb_load)(handle, const char *);
static int (*xgb_set)(handle, const char *, const char *);
static int (*xgb_predict)(handle, const char *, const char *, handle, const uint64_t **, uint64_t *, const float **);
static handle booster;

/* tl2cgen's rows: a number, or the mark of a missing value, which these rows have not. */
typedef union entry {
    int missing;
    float value;
} entry;
static void (*compiled)(entry *, int, float *);

static float *rows;
static size_t features;

static void fail(const char *what) {
    fprintf(stderr, "call_peer: %s\n", what);
    exit(1);
}

static void find(handle library, const char *name, void *function) {
    void *symbol = dlsym(library, name);
    if (!symbol)
        fail(name);
    memcpy(function, &symbol, sizeof symbol);
}

static float run_xgboost(size_t first, size_t count) {
    static const char config[] = "{\"type\":1,\"training\":false,\"iteration_begin\":0,\"iteration_end\":0,"
                                 "\"strict_shape\":false,\"cache_id\":0,\"missing\":NaN}";
    char values[160];
    const uint64_t *shape;
    uint64_t dimensions;
    const float *result;
    snprintf(values, sizeof values,
             "{\"data\":[%zu,true],\"shape\":[%zu,%zu],\"typestr\":\"<f4\",\"version\":3,\"strides\":null}",
             (size_t)(uintptr_t)(rows + first * features), count, features);
    if (xgb_predict(booster, values, config, NULL, &shape, &dimensions, &result) != 0)
        fail("XGBoosterPredictFromDense");
    return result[0];
}

static float run_compiled(size_t first, size_t count) {
    float result = 0, kept = 0;
    for (size_t r = 0; r < count; r++) {
        result = 0;
        compiled((entry *)(rows + (first + r) * features), 1, &result);
        if (r == 0)
            kept = result;
    }
    return kept;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double time_batch(float (*run)(size_t, size_t), size_t batch) {
    const size_t count = batch < 512 ? 512 / batch * batch : batch;
    double times[MAX_RUNS], begin = now();
    int runs = 0;
    for (; runs < MIN_RUNS || (runs < MAX_RUNS && now() - begin < 0.25); runs++) {
        times[runs] = now();
        for (size_t r = 0; r < count; r += batch)
            run(r, batch);
        times[runs] = 1e6 * (now() - times[runs]) / (double)count;
    }
    qsort(times, (size_t)runs, sizeof *times, compare);
    return times[runs / 2];
}

int main(int argc, char **argv) {
    if (argc < 7)
        fail("too few arguments");
    const int xgboost = strcmp(argv[1], "xgboost") == 0;
    handle library = dlopen(argv[2], RTLD_NOW);
    FILE *file = fopen(argv[4], "rb");
    if (!library || !file)
        fail(library ? argv[4] : dlerror());
    fseek(file, 0, SEEK_END);
    const size_t size = (size_t)ftell(file);
    rewind(file);
    rows = malloc(size);
    if (!rows || fread(rows, 1, size, file) != size)
        fail(argv[4]);
    fclose(file);
    features = (size_t)strtoul(argv[5], NULL, 10);
    if (xgboost) {
        find(library, "XGBoosterCreate", &xgb_create);
        find(library, "XGBoosterLoadModel", &xgb_load);
        find(library, "XGBoosterSetParam", &xgb_set);
        find(library, "XGBoosterPredictFromDense", &xgb_predict);
        if (xgb_create(NULL, 0, &booster) != 0 || xgb_load(booster, argv[3]) != 0 ||
            xgb_set(booster, "nthread", "1") != 0)
            fail(argv[3]);
    } else {
        find(library, "predict", &compiled);
    }
    float (*run)(size_t, size_t) = xgboost ? run_xgboost : run_compiled;
    for (int i = 6; i < argc; i++)
        printf("%.6f\n", time_batch(run, (size_t)strtoul(argv[i], NULL, 10)));
    printf("%.9g\n", (double)run(0, 1));
    free(rows);
    return 0;
}
