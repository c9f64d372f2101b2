/*
 * The search: rounds of proposing candidates, measuring them and learning from them, until a number of trials is
 * reached.
 */
#ifndef AUTOSCHEDULER_SEARCH_H
#define AUTOSCHEDULER_SEARCH_H

#include "log.h"
#include <signal.h>

typedef enum method {
    METHOD_MODEL,  /* evolution over scored candidates; the ranker is refitted on what has been measured */
    METHOD_RANDOM, /* drawn at random */
    METHOD_EXPLORE /* half drawn at random, half mutations of the best measured: data to train a model on */
} method;

typedef struct search_options {
    method method;
    int trials, batch;
    int scored;                          /* candidates to score in a round */
    uint64_t seed;                       /* of what is drawn; with the trials so far it fixes a round */
    const char *model;                   /* bundle; NULL: the one that is linked in */
    const char *log;                     /* file; NULL: none */
    const char *output;                  /* C file of the fastest kernel; NULL: none */
    FILE *progress;                      /* for people; NULL: none */
    bool terminal;                       /* `progress` is one: redraw a line */
    const volatile sig_atomic_t *cancel; /* not 0: stop after the current round; NULL: never */
} search_options;

typedef struct search_result {
    int trials, failed;
    long scored;                /* by this run */
    bool over;                  /* no candidate is left that has not been measured */
    double best;                /* seconds; INFINITY: nothing worked */
    double proposing, learning; /* seconds of this run; where the rest went: runner's clock */
} search_result;

/* How a batch gets its times: by running it, or by looking it up. */
typedef struct measurer {
    void (*measure)(void *user, uint16_t (*choices)[MAX_DECISIONS], const program *const *programs, int count,
                    measurement *results);
    bool (*begin)(void *user, char *message, size_t message_size); /* before the first batch; NULL: nothing to do */
    void *user;
    const trials *pool; /* if there is one, the only candidates that there are */
} measurer;

/* False with a message; what has been measured is in the log then too. */
bool search_run(const char *operator_text, const search_space *space, const measurer *by, const search_options *options,
                search_result *result, char *message, size_t message_size);

/* A measurer that runs kernels; the runner is open. */
measurer measurer_of(runner *r);

#endif
