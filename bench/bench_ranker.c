/*
 * Time of training a ranker, as a table: medians of repeated runs, wall time, on random rows whose relevance depends on
 * a tenth of the features.
 *
 *     bench_ranker [--rows N] [--features N] [--group N] [--rounds N] [--depth N] [--columns X] [--threads N]
 *                  [--tier T] [--runs N] [--json]
 *     bench_ranker --rows-file FILE.f32 --labels-file FILE.f32 ...: rows and relevances from raw files instead
 *
 * --columns: the share of features that each split may read. With several threads the library is handed a pool of them
 * that waits busily between tasks.
 */
#include <foreloop/foreloop.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_RUNS = 31, MAX_THREADS = 64 };

typedef struct bench_settings {
    size_t rows, features, group, rounds, depth, threads, runs;
    float columns;
    foreloop_tier tier;
    const char *rows_file, *labels_file;
    int json;
} bench_settings;

static void fail(const char *what) {
    fprintf(stderr, "bench_ranker: %s\n", what);
    exit(1);
}

static double seconds(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- A pool ------------------------------------------------------------------------------------------------------ */

typedef struct bench_pool {
    size_t workers; /* besides the calling thread */
    pthread_t threads[MAX_THREADS];
    void (*task)(void *argument, size_t index);
    void *argument;
    size_t count;
    atomic_size_t next, finished;
    atomic_uint generation;
    atomic_bool over;
} bench_pool;

static void work_off(bench_pool *pool) {
    for (size_t i; (i = atomic_fetch_add(&pool->next, 1)) < pool->count;)
        pool->task(pool->argument, i);
}

static void *run_worker(void *argument) {
    bench_pool *pool = argument;
    for (unsigned seen = 0;;) {
        while (atomic_load(&pool->generation) == seen)
            if (atomic_load(&pool->over))
                return NULL;
        seen++;
        work_off(pool);
        atomic_fetch_add(&pool->finished, 1);
    }
}

static void run_tasks(void *user, size_t count, void (*task)(void *argument, size_t index), void *argument) {
    bench_pool *pool = user;
    pool->task = task;
    pool->argument = argument;
    pool->count = count;
    atomic_store(&pool->next, 0);
    atomic_store(&pool->finished, 0);
    atomic_fetch_add(&pool->generation, 1);
    work_off(pool);
    while (atomic_load(&pool->finished) < pool->workers)
        ;
}

static void start_pool(bench_pool *pool, size_t threads) {
    memset(pool, 0, sizeof *pool);
    for (pool->workers = 0; pool->workers + 1 < threads; pool->workers++)
        if (pthread_create(&pool->threads[pool->workers], NULL, run_worker, pool) != 0)
            fail("cannot start a thread");
}

static void stop_pool(bench_pool *pool) {
    atomic_store(&pool->over, true);
    for (size_t i = 0; i < pool->workers; i++)
        (void)pthread_join(pool->threads[i], NULL);
}

/* ---- Data -------------------------------------------------------------------------------------------------------- */

static uint32_t draw(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

/* Near enough to a normal distribution. */
static float draw_normal(uint64_t *state) {
    float sum = 0;
    for (int i = 0; i < 4; i++)
        sum += (float)draw(state) * (1.0f / 2147483648.0f) - 0.5f;
    return sum * 1.7f;
}

static void make_data(const bench_settings *settings, float *rows, float *relevances) {
    uint64_t state = 1;
    for (size_t r = 0; r < settings->rows; r++) {
        float sum = 0;
        for (size_t f = 0; f < settings->features; f++) {
            rows[r * settings->features + f] = draw_normal(&state);
            sum += f % 10 == 0 ? rows[r * settings->features + f] : 0;
        }
        const float grade = roundf(7.0f + 2.0f * sum / sqrtf((float)(settings->features + 9) / 10.0f) +
                                   fabsf(rows[r * settings->features]) + draw_normal(&state));
        relevances[r] = fminf(fmaxf(grade, 0.0f), 15.0f);
    }
}

static void read_floats(const char *path, float *values, size_t count) {
    FILE *file = fopen(path, "rb");
    if (!file || fread(values, sizeof *values, count, file) != count)
        fail("a file of numbers cannot be read, or is too short");
    (void)fclose(file);
}

/* ---- The run ----------------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double train_once(const foreloop_ranker_data *data, const foreloop_ranker_options *options) {
    foreloop_error error = {.code = FORELOOP_OK};
    foreloop_gbdt *ranker;
    const double start = seconds();
    if (foreloop_ranker_train(&ranker, data, options, &error) != FORELOOP_OK)
        fail(error.message);
    const double time = seconds() - start;
    foreloop_gbdt_close(ranker);
    return time;
}

static void run(const bench_settings *settings) {
    const size_t group_count = (settings->rows + settings->group - 1) / settings->group;
    float *values = malloc(settings->rows * settings->features * sizeof *values);
    float *relevances = malloc(settings->rows * sizeof *relevances);
    size_t *groups = malloc((group_count + 1) * sizeof *groups);
    double times[MAX_RUNS];
    bench_pool pool;
    const foreloop_parallel_for parallel = {run_tasks, &pool};
    foreloop_gbdt_rows rows;
    foreloop_ranker_data data;
    foreloop_ranker_options options;

    if (!values || !relevances || !groups)
        fail("out of memory");
    if (settings->rows_file && settings->labels_file) {
        read_floats(settings->rows_file, values, settings->rows * settings->features);
        read_floats(settings->labels_file, relevances, settings->rows);
    } else {
        make_data(settings, values, relevances);
    }
    for (size_t g = 0; g <= group_count; g++)
        groups[g] = g * settings->group < settings->rows ? g * settings->group : settings->rows;
    foreloop_gbdt_rows_init(&rows, sizeof rows);
    rows.values = values;
    rows.row_count = settings->rows;
    rows.column_count = settings->features;
    foreloop_ranker_data_init(&data, sizeof data);
    data.rows = &rows;
    data.groups = groups;
    data.group_count = group_count;
    data.relevances = relevances;
    foreloop_ranker_options_init(&options, sizeof options);
    options.rounds = settings->rounds;
    options.depth = settings->depth;
    options.columns_by_node = settings->columns;
    options.tier = settings->tier;
    start_pool(&pool, settings->threads);
    if (settings->threads > 1)
        options.parallel = &parallel;
    for (size_t i = 0; i < settings->runs; i++)
        times[i] = train_once(&data, &options);
    stop_pool(&pool);
    qsort(times, settings->runs, sizeof *times, by_value);
    const double median = times[settings->runs / 2];
    if (settings->json)
        printf("{\"rows\":%zu,\"features\":%zu,\"rounds\":%zu,\"depth\":%zu,\"threads\":%zu,\"seconds\":%.4f}\n",
               settings->rows, settings->features, settings->rounds, settings->depth, settings->threads, median);
    else
        printf(
            "%zu rows x %zu features, %zu rounds of depth %zu, %zu thread%s: %.3f s, %.2f ms a round (best %.3f s)\n",
            settings->rows, settings->features, settings->rounds, settings->depth, settings->threads,
            settings->threads > 1 ? "s" : "", median, 1e3 * median / (double)settings->rounds, times[0]);
    free(values);
    free(relevances);
    free(groups);
}

static size_t read_count(const char *text) {
    char *end;
    const long long value = strtoll(text ? text : "", &end, 10);
    if (!text || *end || value < 1)
        fail("a count is missing or not a whole number from 1");
    return (size_t)value;
}

static foreloop_tier read_tier(const char *text) {
    for (foreloop_tier tier = FORELOOP_TIER_REF; tier <= FORELOOP_TIER_AVX512; tier++)
        if (text && strcmp(text, foreloop_tier_name(tier)) == 0)
            return tier;
    fail("--tier is ref, avx2 or avx512");
    return FORELOOP_TIER_BEST;
}

int main(int argc, char **argv) {
    bench_settings settings = {
        .rows = 10000, .features = 320, .group = 50, .rounds = 300, .depth = 6, .threads = 1, .runs = 3, .columns = 1};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--json") == 0) {
            settings.json = 1;
            continue;
        }
        if (strcmp(argv[i], "--rows") == 0)
            settings.rows = read_count(value);
        else if (strcmp(argv[i], "--features") == 0)
            settings.features = read_count(value);
        else if (strcmp(argv[i], "--group") == 0)
            settings.group = read_count(value);
        else if (strcmp(argv[i], "--rounds") == 0)
            settings.rounds = read_count(value);
        else if (strcmp(argv[i], "--depth") == 0)
            settings.depth = read_count(value);
        else if (strcmp(argv[i], "--threads") == 0)
            settings.threads = read_count(value);
        else if (strcmp(argv[i], "--runs") == 0)
            settings.runs = read_count(value);
        else if (strcmp(argv[i], "--columns") == 0 && value)
            settings.columns = strtof(value, NULL);
        else if (strcmp(argv[i], "--tier") == 0)
            settings.tier = read_tier(value);
        else if (strcmp(argv[i], "--rows-file") == 0)
            settings.rows_file = value;
        else if (strcmp(argv[i], "--labels-file") == 0)
            settings.labels_file = value;
        else
            fail("unknown option; see the comment at the top of bench_ranker.c");
        i++;
    }
    if (settings.runs > MAX_RUNS || settings.threads > MAX_THREADS)
        fail("31 runs and 64 threads at the most");
    run(&settings);
    return 0;
}
