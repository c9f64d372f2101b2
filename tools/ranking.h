/* What `foreloop rank` found out, and how it is printed. */
#ifndef FORELOOP_TOOLS_RANKING_H
#define FORELOOP_TOOLS_RANKING_H

#include "schedule/names.h"
#include <foreloop/foreloop.h>
#include <stdbool.h>

typedef struct ranking_candidate {
    uint64_t line; /* in the records, from 0 */
    size_t target; /* in the order of the records, from 0 */
    size_t action_count;
    double seconds;  /* mean of the measured times, NaN without any */
    float score;     /* higher is predicted faster */
    size_t measured; /* rank by measured time among those of its target, from 1; 0 without one */
} ranking_candidate;

typedef struct rank_result {
    ranking_candidate *candidates; /* target by target, best predicted first */
    size_t count;
    foreloop_names targets; /* texts as the records have them; "" where they say none */
    /* lines that are not candidates */
    uint64_t malformed, failed, other_workloads;
    /* what the model does not know */
    uint64_t unknown_instructions;
    foreloop_actions_report report;
    /* time spent */
    double encode_seconds, read_seconds, score_seconds;
} rank_result;

/* Sorts by target, those by score, and equal scores by line; ranks the measured times. */
void ranking_sort(rank_result *ranking);
/* The first `top` candidates of each target as a table, with a summary of all. False when out of memory. */
bool ranking_print(const rank_result *ranking, size_t top);
/* The same as JSON, a line each; they name the target when there are several. */
bool ranking_print_json(const rank_result *ranking, size_t top);

#endif
