/* What `foreloop rank` found out, and how it is printed. */
#ifndef FORELOOP_TOOLS_RANKING_H
#define FORELOOP_TOOLS_RANKING_H

#include <foreloop/foreloop.h>
#include <stdbool.h>

typedef struct ranking_candidate {
    uint64_t line; /* in the records, from 0 */
    size_t action_count;
    double seconds;  /* mean of the measured times, NaN without any */
    float score;     /* higher is predicted faster */
    size_t measured; /* rank by measured time, from 1; 0 without one */
} ranking_candidate;

typedef struct rank_result {
    ranking_candidate *candidates; /* best predicted first */
    size_t count;
    /* lines that are not candidates */
    uint64_t malformed, failed, other_workloads;
    /* what the model does not know */
    uint64_t unknown_instructions;
    foreloop_actions_report report;
    /* time spent */
    double encode_seconds, read_seconds, score_seconds;
} rank_result;

/* Sorts by score, equal scores by line, and ranks the measured times. */
void ranking_sort(rank_result *ranking);
/* The first `top` candidates as a table, with a summary of all. False when out of memory. */
bool ranking_print(const rank_result *ranking, size_t top);
/* The same as JSON, a line each. */
bool ranking_print_json(const rank_result *ranking, size_t top);

#endif
