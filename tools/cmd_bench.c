/* foreloop bench: what each part of the library costs on this machine. */
#include "bench.h"
#include "cli.h"
#include <stdio.h>
#include <string.h>

typedef struct command_options {
    const char *part, *tier, *model;
    cli_count runs;
    bool json;
} command_options;

static const cli_option options[] = {
    {"tier", 0, CLI_TEXT, offsetof(command_options, tier), "TIER",
     "The highest instruction set to use: ref, avx2 or avx512."},
    {"runs", 0, CLI_COUNT, offsetof(command_options, runs), "N", "Take N runs instead of 15."},
    {"model", 'm', CLI_TEXT, offsetof(command_options, model), "FILE",
     "gbdt: measure this XGBoost model instead of made-up ones."},
    {"json", 0, CLI_FLAG, offsetof(command_options, json), NULL, "Print an object a measurement."},
    {NULL, 0, CLI_FLAG, 0, NULL, NULL},
};

enum { RUNS = 15, MAX_RUNS = 1000000 };

static const struct bench_part {
    const char *name;
    int (*run)(const bench_options *given);
    bool takes_model;
} parts[] = {
    {"rollout", bench_scoring, false},
    {"score", bench_scoring, false},
    {"gbdt", bench_gbdt, true},
};

static const struct bench_part *find_part(const char *name) {
    for (size_t i = 0; name && i < sizeof parts / sizeof *parts; i++)
        if (strcmp(name, parts[i].name) == 0)
            return &parts[i];
    return NULL;
}

static int read_tier(const char *name, foreloop_tier *tier) {
    *tier = foreloop_tier_detect();
    if (!name)
        return CLI_DONE;
    for (*tier = FORELOOP_TIER_REF; *tier <= FORELOOP_TIER_AVX512; *tier = (foreloop_tier)(*tier + 1))
        if (strcmp(name, foreloop_tier_name(*tier)) == 0)
            return *tier <= foreloop_tier_detect() ? CLI_DONE : cli_fail("this machine has no %s", name);
    return cli_fail_usage(&command_bench, "--tier is ref, avx2 or avx512, not '%s'", name);
}

static int run(int argc, char **argv) {
    command_options given = {.part = NULL};
    bench_options chosen;
    int status;
    if (!cli_parse(&command_bench, argc, argv, &given, &status))
        return status;
    const struct bench_part *part = find_part(given.part);
    if (!part)
        return cli_fail_usage(&command_bench, "name the part to measure: rollout, score or gbdt");
    if (given.model && !part->takes_model)
        return cli_fail_usage(&command_bench, "%s takes no --model", part->name);
    if (given.runs.given && (given.runs.value < 1 || given.runs.value > MAX_RUNS))
        return cli_fail_usage(&command_bench, "--runs takes a number from 1 to %d", MAX_RUNS);
    chosen = (bench_options){.part = given.part,
                             .model = given.model,
                             .runs = given.runs.given ? (int)given.runs.value : RUNS,
                             .json = given.json};
    status = read_tier(given.tier, &chosen.tier);
    return status == CLI_DONE ? part->run(&chosen) : status;
}

const cli_command command_bench = {
    .name = "bench",
    .summary = "Measure what candidates and trees cost on this machine.",
    .usage = "rollout|score|gbdt [-m FILE] [--tier TIER] [--runs N] [--json]",
    .description =
        "All parts run on one thread. rollout and score measure a made-up model of ordinary\n"
        "size (d 256, 300 trees of depth 6 that read all 320 features) on sequences that are\n"
        "random or ordered as real schedules are. In microseconds for a candidate:\n\n"
        "  rollout     from interned ids to features: everything but the trees\n"
        "  empty       the same for a sequence without actions\n"
        "  trees       the walk through the trees\n"
        "  score       all of it, from ids to score\n"
        "  intern      looking the candidate's actions up in the table\n"
        "  new action  interning an action that the table does not have yet\n\n"
        "Each is processor time, the best of 15 runs over 4096 candidates, all by turns. The\n"
        "time without trees is measured with 6 of them.\n\n"
        "gbdt measures trees on their own: made-up models of 300 and 1,000 trees of depth 4, 6\n"
        "and 8 and of 255 leaves, on 320 random features, or the model that you name. Time to\n"
        "open it, and microseconds for a row by the size of the batch; medians of the runs.",
    .options = options,
    .takes_operand = true,
    .operand_offset = offsetof(command_options, part),
    .run = run,
};
