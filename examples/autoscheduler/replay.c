/* A search over what has been measured: the candidates of a log are all that there are, and their times are looked up.
 * It gives the same at each run and takes a second, so that models can be compared. */
#include "commands.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MARKS = 5, MAX_OPERATOR = 256, RANDOM_ORDERS = 200 };
static const int MARK[MARKS] = {1, 8, 16, 32, 64};

typedef struct lookup {
    const search_space *space;
    const trials *pool;
    int count;
    double best, at[MARKS]; /* the best time after so many trials */
} lookup;

static void count_trial(lookup *l, double seconds) {
    l->best = fmin(l->best, seconds);
    l->count++;
    for (int i = 0; i < MARKS; i++)
        if (l->count <= MARK[i])
            l->at[i] = l->best;
}

static void measure_by_lookup(void *user, uint16_t (*choices)[MAX_DECISIONS], const program *const *programs, int count,
                              measurement *results) {
    lookup *l = user;
    (void)programs;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < l->pool->count; j++)
            if (memcmp(l->pool->items[j].choices, choices[i], (size_t)l->space->count * sizeof **choices) == 0) {
                const double seconds = l->pool->items[j].seconds;
                results[i] = (measurement){.count = !isinf(seconds), .seconds = {seconds}};
                count_trial(l, seconds);
                break;
            }
}

/* The mean over random orders of what the best after so many trials reaches. */
static void random_orders(const trials *pool, double fastest, double *reached) {
    uint64_t random = 20240229;
    int *order = malloc((size_t)pool->count * sizeof *order);
    memset(reached, 0, MARKS * sizeof *reached);
    for (int n = 0; order && n < RANDOM_ORDERS; n++) {
        lookup l = {.best = INFINITY};
        for (int i = 0; i < pool->count; i++) {
            const int j = draw_below(&random, i + 1);
            order[i] = order[j];
            order[j] = i;
        }
        for (int i = 0; i < pool->count; i++)
            count_trial(&l, pool->items[order[i]].seconds);
        for (int i = 0; i < MARKS; i++)
            reached[i] += fastest / l.at[i] / RANDOM_ORDERS;
    }
    free(order);
}

/* What an interrupted replay has not looked up is not known. */
static bool is_cancelled(const options *o) {
    return o->search.cancel && *o->search.cancel;
}

static bool replay(const options *o, const char *operator_text, const search_space *space, const trials *pool,
                   double fastest, double *reached, char *message, size_t message_size) {
    lookup l = {.space = space, .pool = pool, .best = INFINITY};
    const measurer by = {.measure = measure_by_lookup, .user = &l, .pool = pool};
    search_options how = o->search;
    search_result found;
    how.log = how.output = NULL;
    how.progress = NULL;
    how.trials = pool->count;
    how.batch = o->search.batch < 8 ? o->search.batch : 8;
    if (!search_run(operator_text, space, &by, &how, &found, message, message_size))
        return false;
    if (l.count == 0) {
        (void)snprintf(message, message_size, "%.100s: %s", operator_text,
                       is_cancelled(o) ? "interrupted" : "no candidate of the log makes a kernel");
        return false;
    }
    for (int i = 0; i < MARKS; i++)
        reached[i] = fastest / l.at[i];
    return true;
}

static void print(const options *o, const char *name, int count, const double *reached, const double *random) {
    if (o->json) {
        printf("{\"operator\":\"%s\",\"candidates\":%d", name, count);
        for (int i = 0; i < MARKS; i++)
            printf(",\"reached_%d\":%.4f,\"random_%d\":%.4f", MARK[i], reached[i], MARK[i], random[i]);
        printf("}\n");
        return;
    }
    printf("%-36s %5d", name, count);
    for (int i = 0; i < MARKS; i++)
        printf("  %.3f %.3f", reached[i], random[i]);
    printf("\n");
}

int command_replay(const options *o) {
    double mean[MARKS] = {0}, mean_random[MARKS] = {0};
    int logs = 0, status = 0;
    if (o->argument_count < 1) {
        fprintf(stderr, "autoscheduler: replay takes logs\n");
        return 2;
    }
    if (!o->json)
        printf("share of the pool's best speed after so many trials, beside that of random orders\n%-36s %5s"
               "  %5d       %5d       %5d       %5d       %5d\n",
               "operator", "", MARK[0], MARK[1], MARK[2], MARK[3], MARK[4]);
    for (int i = 0; i < o->argument_count && !is_cancelled(o); i++) {
        char operator_text[MAX_OPERATOR], message[512] = "";
        search_space space;
        trials pool = {.items = NULL};
        double reached[MARKS], random[MARKS], fastest = INFINITY;
        if (!log_operator(o->arguments[i], operator_text, sizeof operator_text, message, sizeof message)) {
            fprintf(stderr, "autoscheduler: %s\n", message);
            status = 1;
            continue;
        }
        if (!open_operator(operator_text, &space)) {
            status = 1;
            continue;
        }
        bool ok = log_read(o->arguments[i], operator_text, &space, &pool, message, sizeof message);
        for (int j = 0; j < pool.count; j++)
            fastest = fmin(fastest, pool.items[j].seconds);
        if (ok && (pool.count < 2 || isinf(fastest))) {
            (void)snprintf(message, sizeof message, "%.200s: a replay takes two candidates or more, one that worked",
                           o->arguments[i]);
            ok = false;
        }
        if (ok && (ok = replay(o, operator_text, &space, &pool, fastest, reached, message, sizeof message)) &&
            !is_cancelled(o)) {
            random_orders(&pool, fastest, random);
            print(o, operator_text, pool.count, reached, random);
            for (int j = 0; j < MARKS; j++) {
                mean[j] += reached[j];
                mean_random[j] += random[j];
            }
            logs++;
        }
        if (!ok) {
            fprintf(stderr, "autoscheduler: %s\n", message);
            status = 1;
        }
        trials_close(&pool);
        space_close(&space);
    }
    for (int j = 0; logs && j < MARKS; j++) {
        mean[j] /= logs;
        mean_random[j] /= logs;
    }
    if (is_cancelled(o))
        return 1;
    if (logs > 1)
        print(o, "mean", logs, mean, mean_random);
    return status;
}
