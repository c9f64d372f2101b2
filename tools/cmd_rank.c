/* foreloop rank: the candidates of a tuning log, best predicted first. */
#include "common/alloc.h"
#include "input.h"
#include "output.h"
#include "ranking.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct rank_options {
    const char *model, *workload, *records, *hardware, *precision;
    cli_count top, workload_index;
    bool amx, json, strict;
} rank_options;

static const cli_option options[] = {
    {"model", 'm', CLI_TEXT, offsetof(rank_options, model), "MODEL",
     "The model bundle, a directory or a packed file; the default\nbundle without -m."},
    {"workload", 'w', CLI_TEXT, offsetof(rank_options, workload), "FILE",
     "The program's text, as TVM prints it (- for standard input)."},
    {"records", 'r', CLI_TEXT, offsetof(rank_options, records), "FILE",
     "The candidates: a database_tuning_record.json of TVM MetaSchedule or\nan Ansor log, plain or gzip (- for "
     "standard input)."},
    {"top", 0, CLI_POSITIVE, offsetof(rank_options, top), "K",
     "Print the K best of each target only; the summary is of all."},
    {"workload-index", 0, CLI_COUNT, offsetof(rank_options, workload_index), "N",
     "Use the records of workload N only: its number in the database, or\nin an Ansor log its place in the order of "
     "first records, from 0.\nNeeded when the file has several."},
    {"hardware", 0, CLI_TEXT, offsetof(rank_options, hardware), "FILE",
     "The machine that the candidates run on, as 'foreloop inspect --cpu\n--json' prints it; this machine without it."},
    {"precision", 0, CLI_TEXT, offsetof(rank_options, precision), "NAME",
     "What the encoder multiplies in: f32, bf16, int8 or int8_row; f32\nwithout it."},
    {"amx", 0, CLI_FLAG, offsetof(rank_options, amx), NULL, "Use AMX for bf16 and int8 where the machine has it."},
    {"strict", 0, CLI_FLAG, offsetof(rank_options, strict), NULL,
     "Exit with status 1 when a line was malformed or its measurement\nhad failed."},
    {"json", 0, CLI_FLAG, offsetof(rank_options, json), NULL,
     "Print an object a candidate, best first: {\"index\":line from 0,\n\"score\":s,\"actions\":n,\"seconds\":mean "
     "measured or null,\"rank\":r},\nwith \"target\":t behind it when the records have several."},
    {NULL, 0, CLI_FLAG, 0, NULL, NULL},
};

/* Everything that a run holds; closed as a whole. */
typedef struct rank_run {
    const rank_options *given;
    foreloop_model *model;
    foreloop_encoder *encoder;
    foreloop_workload *workload;
    bool odd_text; /* no program, by the look of it */
    foreloop_actions *actions;
    foreloop_scorer *scorer;
    input_records input;
    rank_result ranking;
    size_t candidate_capacity;
    foreloop_arena target_texts;
    /* The candidates' actions in CSR form. */
    uint32_t *ids;
    size_t id_count, id_capacity;
    size_t *offsets;
    size_t offset_capacity;
    /* The workloads in the records, as far as it matters. */
    int64_t workloads[8];
    size_t workload_count;
} rank_run;

static void close_run(rank_run *run) {
    input_records_close(&run->input);
    foreloop_scorer_close(run->scorer);
    foreloop_actions_close(run->actions);
    foreloop_workload_close(run->workload);
    foreloop_encoder_close(run->encoder);
    foreloop_model_close(run->model);
    foreloop_release(cli_allocator(), run->ranking.candidates);
    foreloop_names_close(&run->ranking.targets, cli_allocator());
    foreloop_arena_close(&run->target_texts);
    foreloop_release(cli_allocator(), run->ids);
    foreloop_release(cli_allocator(), run->offsets);
}

/* ---- The program ---- */

static int encode_workload(rank_run *run) {
    foreloop_error error = {.code = FORELOOP_OK};
    input_file text;
    double start;
    int status = input_read(&text, run->given->workload);
    if (status != CLI_DONE)
        return status;
    if (memchr(text.data, 0, text.size))
        status = cli_fail("%s is not text: give the program as TVM prints it", text.name);
    else if (strspn(text.data, " \t\r\n") == text.size)
        status = cli_fail("%s is empty: give the program as TVM prints it", text.name);
    else if (foreloop_encoder_create(&run->encoder, foreloop_model_transformer(run->model), &error) != FORELOOP_OK)
        status = cli_fail("%s", error.message);
    if (status == CLI_DONE) {
        /* The model gives any text some state, so that nobody else would say it. */
        run->odd_text = !strstr(text.data, "def ") || !strstr(text.data, "T.");
        start = cli_clock();
        if (foreloop_workload_encode(&run->workload, run->model, run->encoder, text.data, text.size, &error) !=
            FORELOOP_OK)
            status = cli_fail("cannot encode %s: %s", text.name, error.message);
        run->ranking.encode_seconds = cli_clock() - start;
    }
    input_close(&text);
    return status;
}

/* ---- The records ---- */

/* "0, 3, 7" */
static const char *list_workloads(const rank_run *run, char *buffer, size_t size) {
    size_t used = 0;
    buffer[0] = '\0';
    for (size_t i = 0; i < run->workload_count && used < size; i++) {
        int length = snprintf(buffer + used, size - used, "%s%" PRId64, i ? ", " : "", run->workloads[i]);
        used += length > 0 ? (size_t)length : 0;
    }
    return buffer;
}

static void note_workload(rank_run *run, int64_t workload) {
    for (size_t i = 0; i < run->workload_count; i++)
        if (run->workloads[i] == workload)
            return;
    if (run->workload_count < sizeof run->workloads / sizeof *run->workloads)
        run->workloads[run->workload_count++] = workload;
}

static double mean(const double *values, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return count ? sum / (double)count : NAN;
}

/* The number of the record's target. */
static bool find_target(rank_run *run, const char *text, size_t *target) {
    size_t length = strlen(text);
    const char *copy = text;
    if (foreloop_names_find(&run->ranking.targets, text, length, target))
        return true;
    run->target_texts.allocator = cli_allocator();
    copy = foreloop_arena_text(&run->target_texts, text, length);
    return copy &&
           foreloop_names_add(&run->ranking.targets, cli_allocator(), copy, length, target, NULL) == FORELOOP_OK;
}

static int add_candidate(rank_run *run, const foreloop_record *record) {
    size_t target;
    foreloop_error error = {.code = FORELOOP_OK};
    rank_result *ranking = &run->ranking;
    size_t count = ranking->count;
    foreloop_status status;

    if (record->action_count > SIZE_MAX - run->id_count ||
        foreloop_reserve(cli_allocator(), &run->ids, &run->id_capacity, run->id_count,
                         run->id_count + record->action_count, sizeof *run->ids, NULL) != FORELOOP_OK ||
        foreloop_reserve(cli_allocator(), &run->offsets, &run->offset_capacity, count ? count + 1 : 0, count + 2,
                         sizeof *run->offsets, NULL) != FORELOOP_OK ||
        foreloop_reserve(cli_allocator(), &ranking->candidates, &run->candidate_capacity, count, count + 1,
                         sizeof *ranking->candidates, NULL) != FORELOOP_OK ||
        !find_target(run, record->target, &target))
        return cli_fail_memory();
    status =
        foreloop_actions_intern(run->actions, record->actions, record->action_count, run->ids + run->id_count, &error);
    if (status == FORELOOP_ERROR_MEMORY || status == FORELOOP_ERROR_LIMIT)
        return cli_fail("%s: line %" PRIu64 ": %s", run->input.name, record->line + 1, error.message);
    if (status != FORELOOP_OK) {
        (void)cli_fail("%s: skipped: line %" PRIu64 ": %s", run->input.name, record->line + 1, error.message);
        run->input.malformed++;
        return CLI_DONE;
    }
    run->offsets[0] = 0;
    run->id_count += record->action_count;
    run->offsets[count + 1] = run->id_count;
    ranking->candidates[count] = (ranking_candidate){
        .line = record->line,
        .target = target,
        .action_count = record->action_count,
        .seconds = mean(record->seconds, record->seconds_count),
    };
    ranking->count++;
    ranking->unknown_instructions += record->unknown_instructions;
    return CLI_DONE;
}

static int take_record(rank_run *run, const foreloop_record *record) {
    const cli_count *index = &run->given->workload_index;
    note_workload(run, record->workload);
    if (index->given && (record->workload < 0 || (uint64_t)record->workload != index->value)) {
        run->ranking.other_workloads++;
        return CLI_DONE;
    }
    if (!index->given && run->workload_count > 1)
        return CLI_DONE; /* check_workloads refuses the file; this record only adds to what it lists */
    if (record->measurement_failed) {
        (void)cli_fail("%s: skipped: line %" PRIu64 ": its measurement failed", run->input.name, record->line + 1);
        run->ranking.failed++;
        return CLI_DONE;
    }
    return add_candidate(run, record);
}

static int check_workloads(const rank_run *run) {
    const cli_count *index = &run->given->workload_index;
    char list[256];
    (void)list_workloads(run, list, sizeof list);
    if (!index->given && run->workload_count > 1)
        return cli_fail("%s has records of several workloads (%s): choose one with --workload-index N", run->input.name,
                        list);
    if (run->ranking.count > 0)
        return CLI_DONE;
    if (index->given && run->ranking.other_workloads > 0 && run->input.malformed + run->ranking.failed == 0)
        return cli_fail("%s has no record of workload %" PRIu64 ", only of %s: correct --workload-index",
                        run->input.name, index->value, list);
    return cli_fail("%s has no record that can be ranked (%" PRIu64 " line%s malformed, %" PRIu64
                    " with a failed measurement): give a tuning log of TVM MetaSchedule or Ansor",
                    run->input.name, run->input.malformed, cli_plural(run->input.malformed), run->ranking.failed);
}

static int read_candidates(rank_run *run) {
    foreloop_error error = {.code = FORELOOP_OK};
    foreloop_record record;
    double start = cli_clock();
    int status;
    bool more;

    /* Without a bound of its own: the file's size bounds the distinct actions. */
    if (foreloop_actions_create(&run->actions, run->model, UINT32_MAX - 1, &error) != FORELOOP_OK)
        return cli_fail("%s", error.message);
    status = input_records_open(&run->input, run->given->records, false);
    if (status != CLI_DONE)
        return status;
    while ((status = input_records_next(&run->input, &record, &more)) == CLI_DONE && more) {
        status = take_record(run, &record);
        if (status != CLI_DONE)
            return status;
    }
    run->ranking.malformed = run->input.malformed;
    run->ranking.read_seconds = cli_clock() - start;
    run->ranking.report.size = sizeof run->ranking.report;
    foreloop_actions_get_report(run->actions, &run->ranking.report);
    return status == CLI_DONE ? check_workloads(run) : status;
}

/* ---- Scores ---- */

static int score(rank_run *run) {
    foreloop_error error = {.code = FORELOOP_OK};
    foreloop_hardware hardware;
    rank_result *ranking = &run->ranking;
    float *scores;
    double start;
    int status = CLI_DONE;

    foreloop_hardware_init(&hardware, sizeof hardware);
    if (run->given->hardware)
        status = input_hardware_read(&hardware, run->given->hardware);
    if (status != CLI_DONE)
        return status;
    if (foreloop_scorer_create(&run->scorer, run->model, run->actions, run->given->hardware ? &hardware : NULL,
                               &error) != FORELOOP_OK)
        return cli_fail("%s", error.message);
    scores = foreloop_allocate(cli_allocator(), ranking->count, sizeof *scores);
    if (!scores)
        return cli_fail_memory();
    start = cli_clock();
    if (foreloop_score(run->scorer, run->workload, run->ids, run->offsets, ranking->count, scores, &error) !=
        FORELOOP_OK)
        status = cli_fail("cannot score the candidates: %s", error.message);
    ranking->score_seconds = cli_clock() - start;
    for (size_t i = 0; status == CLI_DONE && i < ranking->count; i++)
        ranking->candidates[i].score = scores[i];
    foreloop_release(cli_allocator(), scores);
    return status;
}

static int print(const rank_run *run) {
    const rank_result *ranking = &run->ranking;
    size_t top = run->given->top.given && run->given->top.value < ranking->count ? (size_t)run->given->top.value
                                                                                 : ranking->count;
    if (!(run->given->json ? ranking_print_json(ranking, top) : ranking_print(ranking, top)))
        return cli_fail_memory();
    return CLI_DONE;
}

static int rank(rank_run *run) {
    foreloop_options opening;
    int status = input_model_options(&opening, &command_rank, run->given->precision, run->given->amx);
    if (status == CLI_DONE)
        status = input_model_open(&run->model, run->given->model, &opening);
    if (status == CLI_DONE)
        status = encode_workload(run);
    if (status == CLI_DONE)
        status = read_candidates(run);
    if (status == CLI_DONE)
        status = score(run);
    if (status != CLI_DONE)
        return status;
    ranking_sort(&run->ranking);
    status = print(run);
    if (run->odd_text)
        cli_note("%s does not look like a program as TVM prints it ('def ...' with 'T.'): if it is none, the scores "
                 "mean nothing",
                 run->given->workload);
    if (run->given->json && run->ranking.report.unknown_kinds > 0)
        cli_note("%s: %" PRIu64 " action%s of kinds that the model does not know, without effect", run->input.name,
                 run->ranking.report.unknown_kinds, cli_plural(run->ranking.report.unknown_kinds));
    if (run->given->json && run->ranking.unknown_instructions > 0)
        cli_note("%s: %" PRIu64 " instruction%s of unknown kinds in the traces, passed over", run->input.name,
                 (uint64_t)run->ranking.unknown_instructions, cli_plural(run->ranking.unknown_instructions));
    if (run->given->json && run->ranking.report.out_of_range > 0)
        cli_note("%s: %" PRIu64 " number%s outside the range that the model has learned from", run->input.name,
                 run->ranking.report.out_of_range, cli_plural(run->ranking.report.out_of_range));
    if (status == CLI_DONE && run->given->strict && run->ranking.malformed + run->ranking.failed > 0)
        status = CLI_BAD_INPUT;
    return status;
}

static int run_command(int argc, char **argv) {
    rank_options given = {.model = NULL};
    rank_run run = {.given = &given};
    int status;

    if (!cli_parse(&command_rank, argc, argv, &given, &status))
        return status;
    if (!given.workload)
        return cli_fail_usage(&command_rank, "name the program's text with -w FILE");
    if (!given.records)
        return cli_fail_usage(&command_rank, "name the candidates with -r FILE");
    if (strcmp(given.workload, "-") == 0 && strcmp(given.records, "-") == 0)
        return cli_fail_usage(&command_rank, "only one of -w and -r can be standard input");
    status = rank(&run);
    close_run(&run);
    return status;
}

const cli_command command_rank = {
    .name = "rank",
    .summary = "Rank the candidate schedules of a tuning log.",
    .usage = "[-m MODEL] -w FILE -r FILE [--top K] [--json] [--strict]\n"
             "                     [--workload-index N] [--hardware FILE] [--precision NAME] [--amx]",
    .description = "Encodes the program, scores every candidate schedule of the records, and prints them best\n"
                   "predicted first; a higher score is faster. Candidates that have measured times show them,\n"
                   "and the summary says how well the prediction agrees. In the table lines count from 1.\n"
                   "Candidates for different targets are ranked apart.\n"
                   "\n"
                   "Lines that are malformed or whose measurement failed are named on standard error, counted\n"
                   "and skipped; the exit status is 0 if any line could be used.",
    .options = options,
    .run = run_command,
};
