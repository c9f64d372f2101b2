/* The result of `foreloop rank` as a table with a summary, or as JSON lines. */
#include "ranking.h"
#include "metrics.h"
#include "output.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* ---- Order ---- */

static int by_line(const ranking_candidate *x, const ranking_candidate *y) {
    return (x->line > y->line) - (x->line < y->line);
}

static int by_target(const ranking_candidate *x, const ranking_candidate *y) {
    return (x->target > y->target) - (x->target < y->target);
}

static int by_score(const void *a, const void *b) {
    const ranking_candidate *x = a, *y = b;
    int order = by_target(x, y);
    if (!order)
        order = (x->score < y->score) - (x->score > y->score);
    return order ? order : by_line(x, y);
}

/* Those without a measured time last. */
static int by_time(const void *a, const void *b) {
    const ranking_candidate *x = a, *y = b;
    int order = by_target(x, y);
    if (!order)
        order = (isnan(x->seconds) != 0) - (isnan(y->seconds) != 0);
    if (!order)
        order = (x->seconds > y->seconds) - (x->seconds < y->seconds);
    return order ? order : by_line(x, y);
}

void ranking_sort(rank_result *ranking) {
    ranking_candidate *candidates = ranking->candidates;
    if (ranking->count == 0)
        return;
    qsort(candidates, ranking->count, sizeof *candidates, by_time);
    for (size_t i = 0, first = 0; i < ranking->count; i++) {
        if (candidates[i].target != candidates[first].target)
            first = i;
        bool tied = i > first && candidates[i].seconds <= candidates[i - 1].seconds;
        if (!isnan(candidates[i].seconds))
            candidates[i].measured = tied ? candidates[i - 1].measured : i - first + 1;
    }
    qsort(candidates, ranking->count, sizeof *candidates, by_score);
}

/* ---- Targets ---- */

/* The candidates of one target. */
typedef struct ranking_group {
    const ranking_candidate *candidates;
    size_t count;
} ranking_group;

/* The group that begins at a candidate. */
static ranking_group group_at(const rank_result *ranking, size_t first) {
    size_t end = first + 1;
    while (end < ranking->count && ranking->candidates[end].target == ranking->candidates[first].target)
        end++;
    return (ranking_group){ranking->candidates + first, end - first};
}

static bool several_targets(const rank_result *ranking) {
    return ranking->count > 0 && group_at(ranking, 0).count < ranking->count;
}

static const char *target_of(const rank_result *ranking, const ranking_candidate *candidate) {
    return ranking->targets.names[candidate->target].text;
}

/* ---- JSON ---- */

static bool print_json_group(const rank_result *ranking, ranking_group group, size_t top) {
    bool several = several_targets(ranking);
    for (size_t i = 0; i < top && i < group.count && output_ok(); i++) {
        const ranking_candidate *candidate = &group.candidates[i];
        cJSON *object = cJSON_CreateObject();
        bool complete = output_json_add(object, "index", output_json_count(candidate->line)) &&
                        output_json_add(object, "score", output_json_float(candidate->score)) &&
                        output_json_add(object, "actions", output_json_count(candidate->action_count)) &&
                        output_json_add(object, "seconds", output_json_double(candidate->seconds)) &&
                        output_json_add(object, "rank", output_json_count(i + 1));
        if (complete && several)
            complete = output_json_add(object, "target", cJSON_CreateString(target_of(ranking, candidate)));
        if (!complete)
            cJSON_Delete(object);
        if (!complete || !output_json_line(object))
            return false;
    }
    return true;
}

bool ranking_print_json(const rank_result *ranking, size_t top) {
    for (size_t first = 0; first < ranking->count; first += group_at(ranking, first).count)
        if (!print_json_group(ranking, group_at(ranking, first), top))
            return false;
    return true;
}

/* ---- Text ---- */

static bool print_candidates(ranking_group group, size_t top) {
    output_table table;
    output_table_begin(&table, "rrrrrr");
    output_table_row(&table, OUTPUT_BOLD);
    output_table_cell(&table, "rank");
    output_table_cell(&table, "line");
    output_table_cell(&table, "score");
    output_table_cell(&table, "actions");
    output_table_cell(&table, "measured");
    output_table_cell(&table, "true rank");
    for (size_t i = 0; i < top && i < group.count && !table.failed; i++) {
        const ranking_candidate *candidate = &group.candidates[i];
        char seconds[OUTPUT_NUMBER_SIZE];
        output_table_row(&table, candidate->measured == 1 ? OUTPUT_GREEN : OUTPUT_PLAIN);
        output_table_cell(&table, "%zu", i + 1);
        output_table_cell(&table, "%" PRIu64, candidate->line + 1);
        output_table_cell(&table, "%.4f", (double)candidate->score);
        output_table_cell(&table, "%zu", candidate->action_count);
        output_table_cell(&table, "%s", candidate->measured ? output_seconds(candidate->seconds, seconds) : "-");
        if (candidate->measured)
            output_table_cell(&table, "%zu", candidate->measured);
        else
            output_table_cell(&table, "-");
    }
    return output_table_print(&table, 0);
}

/* The least measured time among the first `count` candidates, infinite without one. */
static double best_of(ranking_group group, size_t count) {
    double best = INFINITY;
    for (size_t i = 0; i < count && i < group.count; i++)
        if (group.candidates[i].seconds < best)
            best = group.candidates[i].seconds;
    return best;
}

static void summary_row(output_table *table, const char *label) {
    output_table_row(table, OUTPUT_PLAIN);
    output_table_cell(table, "%s", label);
}

/* How fast the first `count` candidates are, against the best of all. */
static void speed_row(output_table *table, ranking_group group, const char *label, size_t count) {
    double best = best_of(group, count);
    summary_row(table, label);
    if (isinf(best))
        output_table_cell(table, "not measured");
    else
        output_table_cell(table, "%.1f %% of the best measured speed", 100 * best_of(group, group.count) / best);
}

static void accuracy_row(output_table *table, ranking_group group) {
    metrics_pair *pairs = malloc((group.count ? group.count : 1) * sizeof *pairs);
    size_t count = 0;
    double accuracy;
    if (!pairs) {
        table->failed = true;
        return;
    }
    for (size_t i = 0; i < group.count; i++)
        if (group.candidates[i].measured)
            pairs[count++] = (metrics_pair){group.candidates[i].score, group.candidates[i].seconds};
    if (metrics_pairwise(pairs, count, &accuracy)) {
        summary_row(table, "pairs in the right order");
        output_table_cell(table, "%.1f %% (50 %% by chance)", 100 * accuracy);
    }
    free(pairs);
}

static void measured_rows(output_table *table, ranking_group group) {
    char text[OUTPUT_NUMBER_SIZE];
    double best = best_of(group, group.count);
    if (isinf(best))
        return;
    summary_row(table, "best measured");
    output_table_cell(table, "%s", output_seconds(best, text));
    speed_row(table, group, "top choice", 1);
    if (group.count >= 5)
        speed_row(table, group, "best of the top 5", 5);
    if (group.count >= 10)
        speed_row(table, group, "best of the top 10", 10);
    accuracy_row(table, group);
}

static void unknown_rows(output_table *table, const rank_result *ranking) {
    const struct {
        const char *label, *meaning;
        uint64_t count;
    } rows[] = {
        {"unknown instructions", "in the traces; they are passed over", ranking->unknown_instructions},
        {"unknown kinds", "of actions, to the model; they have no effect", ranking->report.unknown_kinds},
        {"unknown arguments", "of actions, to the model; they are dropped", ranking->report.dropped_arguments},
        {"unknown values", "of arguments, to the model; they count as one", ranking->report.unknown_values},
        {"values out of range", "of arguments: beyond what the model has learned from", ranking->report.out_of_range},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].count > 0) {
            summary_row(table, rows[i].label);
            output_table_cell(table, "%" PRIu64 " %s", rows[i].count, rows[i].meaning);
        }
}

static void time_row(output_table *table, const rank_result *ranking) {
    char encoding[OUTPUT_NUMBER_SIZE], reading[OUTPUT_NUMBER_SIZE], scoring[OUTPUT_NUMBER_SIZE];
    summary_row(table, "time spent");
    output_table_cell(table, "encoding the program %s, reading the records %s, scoring %s a candidate",
                      output_seconds(ranking->encode_seconds, encoding), output_seconds(ranking->read_seconds, reading),
                      output_seconds(ranking->score_seconds / (double)ranking->count, scoring));
}

static void skipped_row(output_table *table, const rank_result *ranking) {
    if (ranking->malformed + ranking->failed + ranking->other_workloads == 0)
        return;
    summary_row(table, "skipped lines");
    output_table_cell(table,
                      "%" PRIu64 " malformed, %" PRIu64 " with a failed measurement, %" PRIu64 " of another workload",
                      ranking->malformed, ranking->failed, ranking->other_workloads);
}

static void count_row(output_table *table, const char *label, size_t count) {
    summary_row(table, label);
    output_table_cell(table, "%zu", count);
}

/* Each target's candidates with what was measured, then what is said of the whole file. */
static bool print_targets(const rank_result *ranking, size_t top) {
    output_table table;
    size_t targets = 0;
    for (size_t first = 0; first < ranking->count; targets++) {
        ranking_group group = group_at(ranking, first);
        printf("%starget%s %s\n", output_style_begin(OUTPUT_BOLD), output_style_end(OUTPUT_BOLD),
               target_of(ranking, group.candidates));
        if (!print_candidates(group, top))
            return false;
        (void)putchar('\n');
        output_table_begin(&table, "ll");
        count_row(&table, "candidates", group.count);
        measured_rows(&table, group);
        if (!output_table_print(&table, 0))
            return false;
        (void)putchar('\n');
        first += group.count;
    }
    output_table_begin(&table, "ll");
    count_row(&table, "targets", targets);
    count_row(&table, "candidates", ranking->count);
    skipped_row(&table, ranking);
    unknown_rows(&table, ranking);
    time_row(&table, ranking);
    return output_table_print(&table, 0);
}

bool ranking_print(const rank_result *ranking, size_t top) {
    ranking_group all = {ranking->candidates, ranking->count};
    output_table table;
    if (several_targets(ranking))
        return print_targets(ranking, top);
    if (!print_candidates(all, top))
        return false;
    (void)putchar('\n');
    output_table_begin(&table, "ll");
    count_row(&table, "candidates", all.count);
    skipped_row(&table, ranking);
    measured_rows(&table, all);
    unknown_rows(&table, ranking);
    time_row(&table, ranking);
    return output_table_print(&table, 0);
}
