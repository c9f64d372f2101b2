/* Rounds of a search. */
#include "search.h"
#include "codegen.h"
#include "ranking.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

enum {
    GENERATION = 2048, /* candidates of one generation */
    MAX_ELITE = 8 * MAX_BATCH,
    PARENTS = 32,        /* of the measured candidates, the fastest begin a round */
    MAX_DRAWS = 1 << 14, /* to find one that has not been tried */
    FEW_TRIALS = 8,      /* too few to learn from */
    NEAR_PARENTS = 4,    /* of the measured candidates, those whose neighbours get a share of the batch */
    DIFFERENCE = 2       /* decisions that two candidates of a batch differ in at least */
};
static const float TEMPERATURE = 0.3f; /* of choosing parents by score */

typedef uint16_t candidate[MAX_DECISIONS];

typedef struct search {
    const char *operator_text;
    const search_space *space;
    const measurer *by;
    const search_options *options;
    search_result *result;
    char *message;
    size_t message_size;
    trials done;
    uint64_t *keys; /* of the schedules of those that are done, then of the batch */
    FILE *log;
    uint64_t random;
    ranking rank; /* METHOD_MODEL */
    candidate *generation, *next;
    float *scores, *weights;
    /* of this round, the best that have not been measured, best first */
    candidate elite[MAX_ELITE];
    float elite_scores[MAX_ELITE];
    uint64_t elite_keys[MAX_ELITE];
    int elite_count, elite_capacity;
    schedule *batch, *scratch; /* [MAX_BATCH], and one */
    candidate chosen[MAX_BATCH];
    int chosen_count;
    double begin;
    bool shown;
} search;

static size_t choices_size(const search *s) {
    return (size_t)s->space->count * sizeof(uint16_t);
}

static bool out_of_memory(search *s) {
    (void)snprintf(s->message, s->message_size, "not enough memory for a search");
    return false;
}

/* ---- Proposing --------------------------------------------------------------------------------------------------- */

static bool have_key(const uint64_t *keys, int count, uint64_t key) {
    for (int i = 0; i < count; i++)
        if (keys[i] == key)
            return true;
    return false;
}

/* What is one candidate: in a pool the choices, which have times of their own, else the schedule that they make, as
 * many choices make the same one. */
static uint64_t key_of(const search *s, const uint16_t *choices, const schedule *made) {
    return s->by->pool ? hash_bytes(HASH_BEGIN, choices, choices_size(s)) : schedule_key(made);
}

/* Takes a candidate into the batch, unless it has been tried, is there already, or makes no kernel. */
static bool choose(search *s, const uint16_t *choices) {
    const int taken = s->done.count + s->chosen_count;
    schedule *made = &s->batch[s->chosen_count];
    space_apply(s->space, choices, made);
    const uint64_t key = key_of(s, choices, made);
    if (made->error || have_key(s->keys, taken, key) || !can_generate_c(&made->p))
        return false;
    s->keys[taken] = key;
    memcpy(s->chosen[s->chosen_count++], choices, sizeof(candidate));
    return true;
}

/* Numbers of the fastest trials, fastest first; returns how many. */
static int fastest(const trials *t, int *numbers, int most) {
    int count = 0;
    for (int i = 0; i < t->count; i++) {
        const double seconds = t->items[i].seconds;
        if (isinf(seconds) || (count == most && t->items[numbers[most - 1]].seconds <= seconds))
            continue;
        int at = count < most ? count++ : most - 1;
        for (; at > 0 && t->items[numbers[at - 1]].seconds > seconds; at--)
            numbers[at] = numbers[at - 1];
        numbers[at] = i;
    }
    return count;
}

static void mutate_some(search *s, uint16_t *choices) {
    for (int n = 1 + draw_below(&s->random, 3); n > 0; n--)
        space_mutate(s->space, &s->random, choices);
}

/* Without a model: at random, and where `explore` is set every second one a mutation of a fast trial. */
static void propose_blind(search *s, int count, bool explore) {
    int parents[PARENTS];
    candidate drawn;
    const int parent_count = explore ? fastest(&s->done, parents, PARENTS) : 0;
    for (int draws = 0; s->chosen_count < count && draws < MAX_DRAWS; draws++) {
        if (s->by->pool)
            memcpy(drawn, s->by->pool->items[draw_below(&s->random, s->by->pool->count)].choices, sizeof drawn);
        else if (parent_count && draws % 2) {
            memcpy(drawn, s->done.items[parents[draw_below(&s->random, parent_count)]].choices, sizeof drawn);
            mutate_some(s, drawn);
        } else
            space_sample(s->space, &s->random, drawn);
        (void)choose(s, drawn);
    }
}

/* Keeps a candidate that is among the best of this round and has not been tried. */
static void consider(search *s, const uint16_t *choices, float score) {
    if (isinf(score) || (s->elite_count == s->elite_capacity && score <= s->elite_scores[s->elite_count - 1]))
        return;
    for (int i = 0; i < s->elite_count; i++)
        if (memcmp(s->elite[i], choices, choices_size(s)) == 0)
            return;
    space_apply(s->space, choices, s->scratch);
    const uint64_t key = key_of(s, choices, s->scratch);
    if (have_key(s->elite_keys, s->elite_count, key) || have_key(s->keys, s->done.count + s->chosen_count, key))
        return;
    int at = s->elite_count < s->elite_capacity ? s->elite_count++ : s->elite_count - 1;
    for (; at > 0 && s->elite_scores[at - 1] < score; at--) {
        memcpy(s->elite[at], s->elite[at - 1], sizeof(candidate));
        s->elite_scores[at] = s->elite_scores[at - 1];
        s->elite_keys[at] = s->elite_keys[at - 1];
    }
    memcpy(s->elite[at], choices, sizeof(candidate));
    s->elite_scores[at] = score;
    s->elite_keys[at] = key;
}

static bool score_generation(search *s, int count) {
    if (!ranking_score(&s->rank, s->generation, count, s->scores, s->message, s->message_size))
        return false;
    s->result->scored += count;
    for (int i = 0; i < count; i++)
        consider(s, s->generation[i], s->scores[i]);
    return true;
}

/* The first generation: random candidates, a quarter of them mutations of the fastest trials. */
static void first_generation(search *s) {
    int parents[PARENTS];
    const int parent_count = fastest(&s->done, parents, PARENTS);
    for (int i = 0; i < GENERATION; i++)
        if (parent_count && i % 4 == 0) {
            memcpy(s->generation[i], s->done.items[parents[draw_below(&s->random, parent_count)]].choices,
                   sizeof(candidate));
            mutate_some(s, s->generation[i]);
        } else
            space_sample(s->space, &s->random, s->generation[i]);
}

/* Draws a number with these running sums of weights. */
static int draw(search *s, const float *sums, int count) {
    const float at = (float)(draw_next(&s->random) >> 40) * (1.0f / (1 << 24)) * sums[count - 1];
    int low = 0, high = count - 1;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (sums[middle] > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Children of candidates drawn by score: crossed, mutated, and a few new ones. */
static bool next_generation(search *s) {
    foreloop_error error;
    int valid = 0;
    for (int i = 0; i < GENERATION; i++)
        if (!isinf(s->scores[i])) {
            memcpy(s->generation[valid], s->generation[i], sizeof(candidate));
            s->scores[valid++] = s->scores[i];
        }
    if (valid && foreloop_scores_to_weights(s->scores, (size_t)valid, TEMPERATURE, s->weights, &error) != FORELOOP_OK) {
        (void)snprintf(s->message, s->message_size, "%s", error.message);
        return false;
    }
    for (int i = 1; i < valid; i++)
        s->weights[i] += s->weights[i - 1];
    for (int i = 0; i < GENERATION; i++) {
        uint16_t *child = s->next[i];
        if (valid == 0 || i % 16 == 0)
            space_sample(s->space, &s->random, child);
        else if (i % 16 < 6)
            space_cross(s->space, &s->random, s->generation[draw(s, s->weights, valid)],
                        s->generation[draw(s, s->weights, valid)], child);
        else
            memcpy(child, s->generation[draw(s, s->weights, valid)], sizeof(candidate));
        if (i % 16 >= 4)
            mutate_some(s, child);
    }
    candidate *old = s->generation;
    s->generation = s->next;
    s->next = old;
    return true;
}

/* A pool has no others: all of it is scored. */
static bool score_pool(search *s) {
    for (int begin = 0; begin < s->by->pool->count; begin += GENERATION) {
        const int left = s->by->pool->count - begin, count = left < GENERATION ? left : GENERATION;
        for (int i = 0; i < count; i++)
            memcpy(s->generation[i], s->by->pool->items[begin + i].choices, sizeof(candidate));
        if (!score_generation(s, count))
            return false;
    }
    return true;
}

/* Whether a candidate is unlike those of the batch. */
static bool is_different(const search *s, const uint16_t *choices) {
    for (int i = 0; i < s->chosen_count; i++) {
        int differ = 0;
        for (int d = 0; d < s->space->count; d++)
            differ += s->chosen[i][d] != choices[d];
        if (differ < DIFFERENCE)
            return false;
    }
    return true;
}

/* Fills the batch up to `count` from the elite, first with candidates that are unlike each other. */
static void choose_elite(search *s, int count) {
    for (int like = 0; like < 2; like++)
        for (int i = 0; i < s->elite_count && s->chosen_count < count; i++)
            if (like || is_different(s, s->elite[i]))
                (void)choose(s, s->elite[i]);
}

/* Fills the batch up to `count` with the best neighbours of the fastest trials. */
static bool choose_neighbours(search *s, int count) {
    int parents[NEAR_PARENTS];
    const int parent_count = fastest(&s->done, parents, NEAR_PARENTS);
    if (parent_count == 0)
        return true;
    s->elite_count = 0;
    for (int i = 0; i < GENERATION; i++) {
        memcpy(s->generation[i], s->done.items[parents[i % parent_count]].choices, sizeof(candidate));
        mutate_some(s, s->generation[i]);
    }
    if (!score_generation(s, GENERATION))
        return false;
    choose_elite(s, count);
    return true;
}

/* With the model: the best of an evolution; a quarter are the best neighbours of the fastest trials; an eighth are
 * random, so that the ranker also learns what is slow. Every second round evolves nothing: the more candidates are
 * looked at, the more of the best are the ranker's errors. */
static bool propose_by_score(search *s, int count) {
    const int near = s->by->pool || s->done.count == 0 ? 0 : count / 4, blind = count / 8;
    s->elite_count = 0;
    s->elite_capacity = 8 * count;
    if (s->by->pool) {
        if (!score_pool(s))
            return false;
    } else {
        first_generation(s);
        if (!score_generation(s, GENERATION))
            return false;
        const int most = s->done.count / s->options->batch % 2 ? GENERATION : s->options->scored;
        for (int scored = GENERATION; scored + GENERATION <= most; scored += GENERATION)
            if (!next_generation(s) || !score_generation(s, GENERATION))
                return false;
    }
    choose_elite(s, count - near - blind);
    if (near && !choose_neighbours(s, count - blind))
        return false;
    propose_blind(s, count, false);
    return true;
}

/* ---- Keeping ----------------------------------------------------------------------------------------------------- */

/* Writes the kernel, with what it is at its head; the file appears whole or not at all. */
static bool write_best(search *s, const schedule *made, double seconds) {
    whole_file w;
    const char *error = NULL;
    FILE *out = whole_open(&w, s->options->output);
    if (out) {
        fprintf(
            out,
            "/* %s: %.6g ms\n * cc -O2 -ftree-vectorize -march=native -fno-math-errno -fno-trapping-math -fopenmp\n\n",
            s->operator_text, 1e3 * seconds);
        print_program(&made->p, out);
        fputs(" */\n", out);
        error = generate_c(&made->p, out);
        if (whole_close(&w, !error))
            return true;
    }
    (void)snprintf(s->message, s->message_size, "cannot write %.200s: %s", s->options->output,
                   error ? error : strerror(errno));
    return false;
}

static bool keep(search *s, const measurement *results) {
    for (int i = 0; i < s->chosen_count; i++) {
        if (results[i].host) {
            (void)snprintf(s->message, s->message_size, "a candidate cannot be measured: %s", results[i].error);
            return false;
        }
        trial t = {.seconds = median(&results[i])};
        memcpy(t.choices, s->chosen[i], sizeof t.choices);
        if (!trials_add(&s->done, &t))
            return out_of_memory(s);
        if (s->log && !log_write(s->log, s->space, t.choices, &s->batch[i], &results[i])) {
            (void)snprintf(s->message, s->message_size, "cannot write %.200s: %s", s->options->log, strerror(errno));
            return false;
        }
        s->result->failed += isinf(t.seconds) != 0;
        if (t.seconds < s->result->best) {
            s->result->best = t.seconds;
            if (s->options->output && !write_best(s, &s->batch[i], t.seconds))
                return false;
        }
    }
    s->result->trials = s->done.count;
    return true;
}

static void show(search *s) {
    FILE *out = s->options->progress;
    if (!out)
        return;
    s->shown = true;
    char best[32] = "-", line[512];
    struct winsize window;
    if (!isinf(s->result->best))
        (void)snprintf(best, sizeof best, "%.4g ms", 1e3 * s->result->best);
    (void)snprintf(line, sizeof line, "%.200s: %d of %d trials, %d failed, best %s, %.3g M scored, %.0f s",
                   s->operator_text, s->result->trials, s->options->trials, s->result->failed, best,
                   1e-6 * (double)s->result->scored, now() - s->begin);
    /* A line that goes on in the next row cannot be redrawn. */
    if (s->options->terminal && ioctl(fileno(out), TIOCGWINSZ, &window) == 0 && window.ws_col > 0 &&
        window.ws_col <= strlen(line))
        line[window.ws_col - 1] = 0;
    fprintf(out, "%s%s%s", s->options->terminal ? "\r" : "", line, s->options->terminal ? "\033[K" : "\n");
    fflush(out);
}

/* ---- Rounds ------------------------------------------------------------------------------------------------------ */

/* One round. A pool that is used up, or a space, leaves nothing to choose: the search is over then. */
static bool play_round(search *s) {
    measurement results[MAX_BATCH];
    const program *programs[MAX_BATCH];
    const search_options *o = s->options;
    const int left = o->trials - s->done.count, count = left < o->batch ? left : o->batch;
    /* The same trials lead to the same next round, also when a search goes on from its log. */
    s->random = (o->seed * 1000003u + (uint64_t)s->done.count + 1) * 0x9E3779B97F4A7C15u | 1;
    for (int i = 0; i < 4; i++)
        (void)draw_next(&s->random);
    double begin = now();
    s->chosen_count = 0;
    if (o->method == METHOD_MODEL) {
        if (s->done.count >= FEW_TRIALS && !ranking_learn(&s->rank, &s->done, s->message, s->message_size))
            return false;
        s->result->learning += now() - begin;
        begin = now();
        if (!propose_by_score(s, count))
            return false;
    } else
        propose_blind(s, count, o->method == METHOD_EXPLORE);
    s->result->proposing += now() - begin;
    s->result->over = s->chosen_count == 0;
    for (int i = 0; i < s->chosen_count; i++)
        programs[i] = &s->batch[i].p;
    memset(results, 0, sizeof results);
    s->by->measure(s->by->user, s->chosen, programs, s->chosen_count, results);
    return keep(s, results);
}

/* Takes what the log holds; its fastest kernel is written again, as this run may have another output. */
static bool go_on(search *s) {
    const search_options *o = s->options;
    int best;
    s->log = log_open(o->log, s->operator_text, s->space, &s->done, s->message, s->message_size);
    if (!s->log)
        return false;
    s->result->trials = s->done.count;
    for (int i = 0; i < s->done.count; i++)
        s->result->failed += isinf(s->done.items[i].seconds) != 0;
    if (fastest(&s->done, &best, 1) == 0)
        return true;
    s->result->best = s->done.items[best].seconds;
    space_apply(s->space, s->done.items[best].choices, &s->batch[0]);
    if (s->batch[0].error || !can_generate_c(&s->batch[0].p)) {
        (void)snprintf(s->message, s->message_size,
                       "%.200s: its fastest trial makes no kernel; mend or remove the file", o->log);
        return false;
    }
    return !o->output || write_best(s, &s->batch[0], s->result->best);
}

static bool prepare(search *s) {
    const search_options *o = s->options;
    s->generation = malloc(GENERATION * sizeof *s->generation);
    s->next = malloc(GENERATION * sizeof *s->next);
    s->scores = malloc(GENERATION * sizeof *s->scores);
    s->weights = malloc(GENERATION * sizeof *s->weights);
    s->batch = calloc(MAX_BATCH + 1, sizeof *s->batch);
    if (!s->generation || !s->next || !s->scores || !s->weights || !s->batch)
        return out_of_memory(s);
    s->scratch = &s->batch[MAX_BATCH];
    if (o->output && !can_be_written(o->output, s->message, s->message_size))
        return false;
    if (o->log && !go_on(s))
        return false;
    const int most = s->done.count > o->trials ? s->done.count : o->trials;
    s->keys = malloc(((size_t)most + MAX_BATCH) * sizeof *s->keys);
    if (!s->keys)
        return out_of_memory(s);
    for (int i = 0; i < s->done.count; i++) {
        space_apply(s->space, s->done.items[i].choices, s->scratch);
        s->keys[i] = key_of(s, s->done.items[i].choices, s->scratch);
    }
    return o->method != METHOD_MODEL || ranking_open(&s->rank, s->space, o->model, s->message, s->message_size);
}

bool search_run(const char *operator_text, const search_space *space, const measurer *by, const search_options *options,
                search_result *result, char *message, size_t message_size) {
    search *s = calloc(1, sizeof *s);
    *result = (search_result){.best = INFINITY};
    message[0] = 0;
    if (!s) {
        (void)snprintf(message, message_size, "not enough memory for a search");
        return false;
    }
    s->operator_text = operator_text;
    s->space = space;
    s->by = by;
    s->options = options;
    s->result = result;
    s->message = message;
    s->message_size = message_size;
    s->begin = now();
    bool ok = prepare(s);
    for (bool begun = !by->begin;
         ok && !result->over && s->done.count < options->trials && !(options->cancel && *options->cancel);
         begun = true) {
        ok = (begun || by->begin(by->user, message, message_size)) && play_round(s);
        if (ok)
            show(s);
    }
    if (ok && !s->shown)
        show(s);
    if (s->shown && options->terminal)
        fputc('\n', options->progress);
    ranking_close(&s->rank);
    trials_close(&s->done);
    if (s->log && fclose(s->log) != 0 && ok) {
        (void)snprintf(message, message_size, "cannot write %.200s: %s", options->log, strerror(errno));
        ok = false;
    }
    free(s->keys);
    free(s->generation);
    free(s->next);
    free(s->scores);
    free(s->weights);
    free(s->batch);
    free(s);
    return ok;
}

static void measure_by_running(void *user, uint16_t (*choices)[MAX_DECISIONS], const program *const *programs,
                               int count, measurement *results) {
    (void)choices;
    runner_measure(user, programs, count, results);
}

static bool begin_running(void *user, char *message, size_t message_size) {
    return runner_begin(user, message, message_size);
}

measurer measurer_of(runner *r) {
    return (measurer){.measure = measure_by_running, .begin = begin_running, .user = r};
}
