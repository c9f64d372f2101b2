/* foreloop bench gbdt: what opening a model of trees and predicting a row costs, by the size of the batch. */
#include "bench.h"
#include "bench_trees.h"
#include "cli.h"
#include "common/file.h"
#include "output.h"
#include <stdlib.h>
#include <string.h>

enum { FEATURES = 320, LEAVES = 255, LEAST_ROWS = 512 };

static const size_t batches[] = {1, 16, 64, 512, 4096};
enum { BATCHES = sizeof batches / sizeof *batches };

typedef struct gbdt_times {
    double open, rows[BATCHES]; /* seconds of an opening, of a row */
} gbdt_times;

typedef struct gbdt_bench {
    const bench_options *given;
    double *times; /* [runs] */
    foreloop_gbdt *gbdt;
    foreloop_gbdt_info info;
    float *rows, *outputs;
    output_table table;
} gbdt_bench;

static int compare_times(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Of all runs. */
static double median(gbdt_bench *bench) {
    qsort(bench->times, (size_t)bench->given->runs, sizeof *bench->times, compare_times);
    return bench->times[bench->given->runs / 2];
}

/* Leaves the model open. */
static int time_opening(gbdt_bench *bench, const void *model, size_t size, double *seconds) {
    foreloop_gbdt_options options;
    foreloop_error error;
    foreloop_gbdt_options_init(&options, sizeof options);
    options.allocator = cli_allocator();
    options.tier = bench->given->tier;
    for (int run = 0; run < bench->given->runs; run++) {
        foreloop_gbdt_close(bench->gbdt);
        bench->gbdt = NULL;
        const double start = bench_clock();
        if (foreloop_gbdt_open_memory(&bench->gbdt, model, size, &options, &error) != FORELOOP_OK)
            return cli_fail_file(NULL, bench->given->model ? bench->given->model : "the model", error.message);
        bench->times[run] = bench_clock() - start;
    }
    *seconds = median(bench);
    bench->info.size = sizeof bench->info;
    foreloop_gbdt_get_info(bench->gbdt, &bench->info);
    return CLI_DONE;
}

/* A run predicts LEAST_ROWS different rows at least. */
static void time_batch(gbdt_bench *bench, size_t batch, double *seconds) {
    const size_t columns = bench->info.feature_count;
    const size_t count = batch < LEAST_ROWS ? LEAST_ROWS / batch * batch : batch;
    for (int run = -1; run < bench->given->runs; run++) { /* the first one warms up */
        const double start = bench_clock();
        for (size_t r = 0; r < count; r += batch)
            (void)foreloop_gbdt_predict(bench->gbdt, bench->rows + r * columns, batch, columns, 1, bench->outputs,
                                        NULL);
        bench->times[run < 0 ? 0 : run] = (bench_clock() - start) / (double)count;
    }
    *seconds = median(bench);
}

/* Rows of numbers from 0 to 1. */
static bool make_rows(gbdt_bench *bench) {
    const size_t most = batches[BATCHES - 1], columns = bench->info.feature_count;
    uint64_t random = 2;
    if (columns > SIZE_MAX / most / sizeof(float))
        return false;
    bench->rows = foreloop_allocate(cli_allocator(), most, (columns > 0 ? columns : 1) * sizeof(float));
    bench->outputs = foreloop_allocate(cli_allocator(), most, bench->info.output_count * sizeof(float));
    if (!bench->rows || !bench->outputs)
        return false;
    for (size_t i = 0; i < most * columns; i++)
        bench->rows[i] = (float)(bench_draw(&random) >> 7) / 16777216.0f;
    return true;
}

static void close_model(gbdt_bench *bench) {
    foreloop_release(cli_allocator(), bench->rows);
    foreloop_release(cli_allocator(), bench->outputs);
    foreloop_gbdt_close(bench->gbdt);
    bench->rows = bench->outputs = NULL;
    bench->gbdt = NULL;
}

static bool print_json(const gbdt_bench *bench, size_t leaves, const gbdt_times *times) {
    bool good = true;
    for (size_t b = 0; good && b < BATCHES; b++) {
        cJSON *line = cJSON_CreateObject();
        good = output_json_add(line, "bench", cJSON_CreateString("gbdt")) &&
               output_json_add(line, "trees", output_json_count(bench->info.tree_count)) &&
               output_json_add(line, "depth", output_json_count(bench->info.max_depth)) &&
               (leaves == 0 || output_json_add(line, "leaves", output_json_count(leaves))) &&
               output_json_add(line, "features", output_json_count(bench->info.feature_count)) &&
               output_json_add(line, "tier", cJSON_CreateString(foreloop_tier_name(bench->info.tier))) &&
               output_json_add(line, "open_ms", output_json_double(1e3 * times->open)) &&
               output_json_add(line, "batch", output_json_count(batches[b])) &&
               output_json_add(line, "us_per_row", output_json_double(1e6 * times->rows[b]));
        good = output_json_line(line) && good;
    }
    return good;
}

static void begin_table(output_table *table) {
    static const char *const headings[] = {"trees", "depth", "features", "open ms", "1", "16", "64", "512", "4096"};
    output_table_begin(table, "rrrrrrrrr");
    output_table_row(table, OUTPUT_BOLD);
    for (size_t i = 0; i < sizeof headings / sizeof *headings; i++)
        output_table_cell(table, "%s", headings[i]);
}

static void add_row(gbdt_bench *bench, const gbdt_times *times) {
    output_table *table = &bench->table;
    if (table->row_count == 0)
        begin_table(table);
    output_table_row(table, OUTPUT_PLAIN);
    output_table_cell(table, "%zu", bench->info.tree_count);
    output_table_cell(table, "%zu", bench->info.max_depth);
    output_table_cell(table, "%zu", bench->info.feature_count);
    output_table_cell(table, "%.2f", 1e3 * times->open);
    for (size_t b = 0; b < BATCHES; b++)
        output_table_cell(table, "%.3f", 1e6 * times->rows[b]);
}

/* `leaves` are for JSON: 0 when they are not what the model is made by. */
static int bench_model(gbdt_bench *bench, const void *model, size_t size, size_t leaves) {
    gbdt_times times;
    int status = time_opening(bench, model, size, &times.open);
    if (status == CLI_DONE && !make_rows(bench))
        status = cli_fail_memory();
    for (size_t b = 0; status == CLI_DONE && b < BATCHES; b++)
        time_batch(bench, batches[b], &times.rows[b]);
    if (status == CLI_DONE && bench->given->json && !print_json(bench, leaves, &times))
        status = cli_fail_memory();
    if (status == CLI_DONE && !bench->given->json)
        add_row(bench, &times);
    close_model(bench);
    return status;
}

static int bench_file(gbdt_bench *bench) {
    foreloop_file file;
    foreloop_error error;
    if (foreloop_file_open(&file, bench->given->model, cli_allocator(), false, &error) != FORELOOP_OK)
        return cli_fail_file(NULL, bench->given->model, error.message);
    const int status = bench_model(bench, file.data, file.size, 0);
    foreloop_file_close(&file);
    return status;
}

static int bench_made_up(gbdt_bench *bench) {
    static const bench_forest shapes[] = {
        {.depth = 4, .features = FEATURES, .highest = 1},
        {.depth = 6, .features = FEATURES, .highest = 1},
        {.depth = 8, .features = FEATURES, .highest = 1},
        {.leaves = LEAVES, .features = FEATURES, .highest = 1},
    };
    int status = CLI_DONE;
    for (size_t trees = 300; trees <= 1000; trees += 700)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes && status == CLI_DONE && output_ok(); i++) {
            foreloop_buffer text = {.allocator = cli_allocator()};
            bench_forest forest = shapes[i];
            forest.trees = trees;
            status = bench_trees_make(&text, &forest) ? bench_model(bench, text.data, text.size, forest.leaves)
                                                      : cli_fail_memory();
            foreloop_buffer_close(&text);
        }
    return status;
}

int bench_gbdt(const bench_options *given) {
    gbdt_bench bench = {.given = given};
    bench.times = foreloop_allocate(cli_allocator(), (size_t)given->runs, sizeof *bench.times);
    if (!bench.times)
        return cli_fail_memory();
    const int status = given->model ? bench_file(&bench) : bench_made_up(&bench);
    foreloop_release(cli_allocator(), bench.times);
    if (bench.table.row_count == 0)
        return status;
    printf("Microseconds of processor time for a row in batches of 1 to 4096 rows; tier %s.\n\n",
           foreloop_tier_name(given->tier));
    return output_table_print(&bench.table, 0) ? status : cli_fail_memory();
}
