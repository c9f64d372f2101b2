/* foreloop bench rollout|score: what a candidate costs, on a model made up for the purpose. */
#include "bench.h"
#include "bench_model.h"
#include "cli.h"
#include "output.h"
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum {
    LATENT = 256,
    TREES = 300,
    DEPTH = 6,
    FEW_TREES = 6,
    NETWORK = 64,
    CANDIDATES = 4096,
    /* Those of two threads, the same ones four times: a chunk of 4,096 for each of them and another, so that handing
     * the batch over and reading the actions for the first time weigh as little as in a search's large batches. */
    SHARED = 4 * CANDIDATES
};

/* One measurement: what the candidates are like. */
typedef struct bench_case {
    size_t kinds, actions, distinct;
    bool trace;
} bench_case;

static const bench_case cases[] = {
    {32, 10, 4096, false}, {32, 20, 4096, false},  {32, 40, 4096, false}, {32, 80, 4096, false},
    {32, 20, 64, false},   {32, 20, 65536, false}, {64, 20, 4096, false}, {64, 20, 65536, false},
    {32, 10, 4096, true},  {32, 20, 4096, true},   {32, 40, 4096, true},  {32, 80, 4096, true},
    {32, 20, 64, true},    {32, 20, 65536, true},  {64, 20, 4096, true},  {64, 20, 65536, true},
};

/* The models: with all trees; with few; with all trees and a score network of two hidden layers. */
enum { MODEL, MODEL_FEW, MODEL_NETWORK, MODELS };

/* Microseconds for a candidate. `few` is for a ranker of 6 trees, which still read all features: all but the trees.
 * `with_network` is of the third model.
 * `intern` is with the model's own names, `intern_text` with names of the host's. `alone` and `pair` are of the wall
 * clock, on one thread and on two. */
typedef struct bench_times {
    double score, few, with_network, empty, intern, intern_text, intern_new, alone, pair;
} bench_times;

typedef struct bench_run {
    foreloop_options options;
    const char *part;
    int runs;
    foreloop_buffer bundles[MODELS]; /* the models borrow them */
    foreloop_model *models[MODELS];
    foreloop_workload *workloads[MODELS];
    size_t kinds; /* of the models; 0 before there are any */
    foreloop_actions *actions[MODELS];
    foreloop_scorer *scorers[MODELS];
    foreloop_scorer *second; /* a further one of the first model, for a thread of its own */
    /* The case's candidates: with names of the host's, with the model's own. */
    foreloop_action *lists[2]; /* [distinct] */
    foreloop_argument *arguments[2];
    char (*names)[BENCH_NAME_SIZE]; /* [kinds] */
    foreloop_action *sequences[2];  /* [CANDIDATES][actions] */
    uint32_t *ids;
    size_t *offsets;
    float *scores;
    foreloop_error error;
} bench_run;

static void close_case(bench_run *run) {
    const foreloop_allocator *allocator = cli_allocator();
    foreloop_scorer_close(run->second);
    run->second = NULL;
    for (int i = 0; i < MODELS; i++) {
        foreloop_scorer_close(run->scorers[i]);
        foreloop_actions_close(run->actions[i]);
        run->scorers[i] = NULL;
        run->actions[i] = NULL;
    }
    for (int i = 0; i < 2; i++) {
        foreloop_release(allocator, run->lists[i]);
        foreloop_release(allocator, run->arguments[i]);
        foreloop_release(allocator, run->sequences[i]);
        run->lists[i] = run->sequences[i] = NULL;
        run->arguments[i] = NULL;
    }
    foreloop_release(allocator, run->names);
    foreloop_release(allocator, run->ids);
    foreloop_release(allocator, run->offsets);
    foreloop_release(allocator, run->scores);
    run->names = NULL;
    run->ids = NULL;
    run->offsets = NULL;
    run->scores = NULL;
}

static void close_models(bench_run *run) {
    for (int i = 0; i < MODELS; i++) {
        foreloop_workload_close(run->workloads[i]);
        foreloop_model_close(run->models[i]);
        run->workloads[i] = NULL;
        run->models[i] = NULL;
        foreloop_buffer_close(&run->bundles[i]);
    }
}

static int open_models(bench_run *run, size_t kinds) {
    float latent[LATENT];
    uint64_t random = 3;
    if (run->kinds == kinds)
        return CLI_DONE;
    close_models(run);
    for (size_t i = 0; i < LATENT; i++)
        latent[i] = (float)bench_draw(&random) / 1073741824.0f - 1;
    for (int i = 0; i < MODELS; i++) {
        const bench_shape shape = {LATENT, kinds, i == MODEL_FEW ? FEW_TREES : TREES,
                                   DEPTH,  NULL,  i == MODEL_NETWORK ? NETWORK : 0};
        run->bundles[i] = (foreloop_buffer){.allocator = cli_allocator()};
        if (!bench_model_make(&run->bundles[i], &shape))
            return cli_fail_memory();
        if (foreloop_model_open_memory(&run->models[i], run->bundles[i].data, run->bundles[i].size, &run->options,
                                       &run->error) != FORELOOP_OK ||
            foreloop_workload_create(&run->workloads[i], run->models[i], latent, &run->error) != FORELOOP_OK)
            return cli_fail("%s", run->error.message);
    }
    run->kinds = kinds;
    return CLI_DONE;
}

/* The same actions by the names that the model has, which are found by their addresses. */
static void use_own_names(bench_run *run, const bench_case *what) {
    memcpy(run->lists[1], run->lists[0], what->distinct * sizeof *run->lists[0]);
    memcpy(run->arguments[1], run->arguments[0], what->distinct * BENCH_SLOTS * sizeof *run->arguments[0]);
    for (size_t i = 0; i < what->distinct; i++) {
        run->lists[1][i].kind = foreloop_model_kind_name(run->models[0], i % what->kinds);
        run->lists[1][i].arguments = run->arguments[1] + i * BENCH_SLOTS;
        for (size_t slot = 0; slot < BENCH_SLOTS; slot++)
            run->arguments[1][i * BENCH_SLOTS + slot].name =
                foreloop_model_slot_name(run->models[0], i % what->kinds, slot);
    }
}

/* Draws the candidates. */
static int prepare_case(bench_run *run, const bench_case *what) {
    const foreloop_allocator *allocator = cli_allocator();
    const size_t total = CANDIDATES * what->actions, per_kind = what->distinct / what->kinds;
    uint64_t random = 7;
    for (int i = 0; i < 2; i++) {
        run->lists[i] = foreloop_allocate(allocator, what->distinct, sizeof *run->lists[i]);
        run->arguments[i] = foreloop_allocate(allocator, what->distinct * BENCH_SLOTS, sizeof *run->arguments[i]);
        run->sequences[i] = foreloop_allocate(allocator, total, sizeof *run->sequences[i]);
        if (!run->lists[i] || !run->arguments[i] || !run->sequences[i])
            return cli_fail_memory();
    }
    run->names = foreloop_allocate(allocator, what->kinds, sizeof *run->names);
    const size_t shared = SHARED * what->actions;
    run->ids = foreloop_allocate(allocator, shared > what->distinct ? shared : what->distinct, sizeof *run->ids);
    run->offsets = foreloop_allocate(allocator, SHARED + 1, sizeof *run->offsets);
    run->scores = foreloop_allocate(allocator, SHARED, sizeof *run->scores);
    if (!run->names || !run->ids || !run->offsets || !run->scores)
        return cli_fail_memory();
    for (size_t i = 0; i < what->distinct; i++)
        bench_action(i, what->kinds, run->names[i % what->kinds], run->arguments[0] + i * BENCH_SLOTS,
                     &run->lists[0][i]);
    use_own_names(run, what);
    for (size_t c = 0; c < CANDIDATES; c++) {
        run->offsets[c] = c * what->actions;
        for (size_t t = 0; t < what->actions; t++) {
            const size_t kind = bench_kind(what->trace, c, t, what->kinds, &random);
            const size_t action = bench_draw(&random) % per_kind * what->kinds + kind;
            for (int i = 0; i < 2; i++)
                run->sequences[i][c * what->actions + t] = run->lists[i][action];
        }
    }
    for (size_t c = CANDIDATES; c <= SHARED; c++)
        run->offsets[c] = c * what->actions;
    return CLI_DONE;
}

static void time_score(bench_run *run, int model, const size_t *offsets, double *best) {
    const double start = bench_clock();
    (void)foreloop_score(run->scorers[model], run->workloads[model], run->ids, offsets, CANDIDATES, run->scores, NULL);
    *best = fmin(*best, 1e6 * (bench_clock() - start) / CANDIDATES);
}

static void time_intern(bench_run *run, int names, size_t total, double *best) {
    const double start = bench_clock();
    (void)foreloop_actions_intern(run->actions[0], run->sequences[names], total, run->ids, NULL);
    *best = fmin(*best, 1e6 * (bench_clock() - start) / CANDIDATES);
}

/* The other of two threads, which waits for its part of a batch. */
typedef struct bench_helper {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    void (*task)(void *argument, size_t index); /* NULL: none, or done */
    void *argument;
    bool over;
} bench_helper;

static void *help(void *user) {
    bench_helper *helper = user;
    (void)pthread_mutex_lock(&helper->mutex);
    while (!helper->over) {
        if (!helper->task) {
            (void)pthread_cond_wait(&helper->changed, &helper->mutex);
            continue;
        }
        helper->task(helper->argument, 1);
        helper->task = NULL;
        (void)pthread_cond_broadcast(&helper->changed);
    }
    (void)pthread_mutex_unlock(&helper->mutex);
    return NULL;
}

static void run_pair(void *user, size_t count, void (*task)(void *argument, size_t index), void *argument) {
    bench_helper *helper = user;
    (void)count; /* 2, as there are two scorers */
    (void)pthread_mutex_lock(&helper->mutex);
    helper->task = task;
    helper->argument = argument;
    (void)pthread_cond_broadcast(&helper->changed);
    (void)pthread_mutex_unlock(&helper->mutex);
    task(argument, 0);
    (void)pthread_mutex_lock(&helper->mutex);
    while (helper->task)
        (void)pthread_cond_wait(&helper->changed, &helper->mutex);
    (void)pthread_mutex_unlock(&helper->mutex);
}

static void time_threads(bench_run *run, bench_times *times) {
    bench_helper helper = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    const foreloop_parallel_for pair = {run_pair, &helper};
    foreloop_scorer *const scorers[2] = {run->scorers[0], run->second};
    if (pthread_create(&helper.thread, NULL, help, &helper) != 0)
        return;
    for (int i = 0; i < run->runs; i++)
        for (size_t threads = 1; threads <= 2; threads++) {
            double *const best = threads == 1 ? &times->alone : &times->pair;
            const double start = cli_clock();
            (void)(threads == 1 ? foreloop_score(scorers[0], run->workloads[0], run->ids, run->offsets, SHARED,
                                                 run->scores, NULL)
                                : foreloop_score_parallel(scorers, 2, &pair, run->workloads[0], run->ids, run->offsets,
                                                          SHARED, run->scores, NULL));
            *best = fmin(*best, 1e6 * (cli_clock() - start) / SHARED);
        }
    (void)pthread_mutex_lock(&helper.mutex);
    helper.over = true;
    (void)pthread_cond_broadcast(&helper.changed);
    (void)pthread_mutex_unlock(&helper.mutex);
    (void)pthread_join(helper.thread, NULL);
}

/* By turns, so that all see the same machine. */
static void time_all(bench_run *run, size_t total, bench_times *times) {
    static const size_t none[CANDIDATES + 1];
    for (int i = 0; i < run->runs; i++) {
        time_score(run, MODEL, run->offsets, &times->score);
        time_score(run, MODEL_FEW, run->offsets, &times->few);
        time_score(run, MODEL_FEW, none, &times->empty);
        if (strcmp(run->part, "score") == 0)
            time_score(run, MODEL_NETWORK, run->offsets, &times->with_network);
        time_intern(run, 0, total, &times->intern_text);
        time_intern(run, 1, total, &times->intern);
    }
}

static int measure(bench_run *run, const bench_case *what, bench_times *times) {
    const size_t total = CANDIDATES * what->actions;
    int status = open_models(run, what->kinds);
    if (status == CLI_DONE)
        status = prepare_case(run, what);
    if (status != CLI_DONE)
        return status;
    foreloop_hardware hardware;
    foreloop_hardware_init(&hardware, sizeof hardware);
    for (int i = 0; i < MODELS; i++) {
        if (foreloop_actions_create(&run->actions[i], run->models[i], what->distinct, &run->error) != FORELOOP_OK ||
            foreloop_scorer_create(&run->scorers[i], run->models[i], run->actions[i], &hardware, &run->error) !=
                FORELOOP_OK)
            return cli_fail("%s", run->error.message);
        const double start = bench_clock();
        if (foreloop_actions_intern(run->actions[i], run->lists[0], what->distinct, run->ids, &run->error) !=
            FORELOOP_OK)
            return cli_fail("%s", run->error.message);
        times->intern_new = fmin(times->intern_new, 1e6 * (bench_clock() - start) / (double)what->distinct);
        if (foreloop_actions_intern(run->actions[i], run->sequences[0], total, run->ids, &run->error) != FORELOOP_OK)
            return cli_fail("%s", run->error.message);
    }
    if (foreloop_scorer_create(&run->second, run->models[0], run->actions[0], &hardware, &run->error) != FORELOOP_OK)
        return cli_fail("%s", run->error.message);
    time_all(run, total, times);
    for (size_t i = total; i < SHARED * what->actions; i++)
        run->ids[i] = run->ids[i - total];
    if (strcmp(run->part, "score") == 0)
        time_threads(run, times);
    return CLI_DONE;
}

static bool print_json(const bench_options *given, const bench_case *what, const bench_times *times) {
    cJSON *line = cJSON_CreateObject();
    const double per_tree = (times->score - times->few) / (TREES - FEW_TREES);
    bool good = output_json_add(line, "bench", cJSON_CreateString(given->part)) &&
                output_json_add(line, "kinds", output_json_count(what->kinds)) &&
                output_json_add(line, "actions", output_json_count(what->actions)) &&
                output_json_add(line, "distinct", output_json_count(what->distinct)) &&
                output_json_add(line, "sequences", cJSON_CreateString(what->trace ? "trace" : "random")) &&
                output_json_add(line, "rollout_us", output_json_double(times->few - FEW_TREES * per_tree)) &&
                output_json_add(line, "empty_us", output_json_double(times->empty));
    if (strcmp(given->part, "score") == 0)
        good = good && output_json_add(line, "score_us", output_json_double(times->score)) &&
               output_json_add(line, "trees_us", output_json_double(TREES * per_tree)) &&
               output_json_add(line, "network_us", output_json_double(times->with_network - times->score)) &&
               output_json_add(line, "intern_us", output_json_double(times->intern)) &&
               output_json_add(line, "intern_text_us", output_json_double(times->intern_text)) &&
               output_json_add(line, "intern_new_us", output_json_double(times->intern_new)) &&
               output_json_add(line, "two_threads", output_json_double(times->alone / times->pair));
    return output_json_line(line) && good;
}

static void add_row(const bench_options *given, output_table *table, const bench_case *what, const bench_times *times) {
    const double per_tree = (times->score - times->few) / (TREES - FEW_TREES);
    output_table_row(table, OUTPUT_PLAIN);
    output_table_cell(table, "%s", what->trace ? "trace" : "random");
    output_table_cell(table, "%zu", what->kinds);
    output_table_cell(table, "%zu", what->actions);
    output_table_cell(table, "%zu", what->distinct);
    output_table_cell(table, "%.3f", times->few - FEW_TREES * per_tree);
    output_table_cell(table, "%.3f", times->empty);
    if (strcmp(given->part, "score") == 0) {
        output_table_cell(table, "%.3f", TREES * per_tree);
        output_table_cell(table, "%.3f", times->score);
        output_table_cell(table, "%.3f", times->with_network - times->score);
        output_table_cell(table, "%.3f", times->intern);
        output_table_cell(table, "%.3f", times->intern_text);
        output_table_cell(table, "%.3f", times->intern_new);
        output_table_cell(table, "%.2f", times->alone / times->pair);
    }
}

static void begin_table(const bench_options *given, output_table *table) {
    static const char *const headings[] = {"sequences",   "kinds",      "actions",    "distinct", "rollout",
                                           "empty",       "trees",      "score",      "network",  "intern",
                                           "intern text", "new action", "two threads"};
    const bool score = strcmp(given->part, "score") == 0;
    output_table_begin(table, score ? "lrrrrrrrrrrrr" : "lrrrrr");
    output_table_row(table, OUTPUT_BOLD);
    for (size_t i = 0; i < (score ? sizeof headings / sizeof *headings : 6); i++)
        output_table_cell(table, "%s", headings[i]);
}

int bench_scoring(const bench_options *given) {
    bench_run state = {.options = {.size = sizeof state.options, .allocator = cli_allocator(), .tier = given->tier},
                       .part = given->part,
                       .runs = given->runs};
    output_table table;
    int status = CLI_DONE;
    if (!given->json)
        begin_table(given, &table);
    for (size_t i = 0; i < sizeof cases / sizeof *cases && status == CLI_DONE && output_ok(); i++) {
        bench_times times = {INFINITY, INFINITY, INFINITY, INFINITY, INFINITY, INFINITY, INFINITY, INFINITY, INFINITY};
        status = measure(&state, &cases[i], &times);
        close_case(&state);
        if (status != CLI_DONE)
            break;
        if (!given->json)
            add_row(given, &table, &cases[i], &times);
        else if (!print_json(given, &cases[i], &times))
            status = cli_fail_memory();
    }
    close_models(&state);
    if (given->json)
        return status;
    if (status == CLI_DONE)
        printf(
            "Microseconds of processor time for a candidate; d %d, %d trees of depth %d that read all %d features, a "
            "score network of 2 x %d beside them where the bundle has one; tier %s.\n\n",
            LATENT, TREES, DEPTH, LATENT + BENCH_AGGREGATES, NETWORK, foreloop_tier_name(given->tier));
    return output_table_print(&table, 0) ? status : cli_fail_memory();
}
