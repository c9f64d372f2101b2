/* foreloop bench: what each part of the library costs on this machine. */
#include "bench.h"
#include "cli.h"
#include "input.h"
#include <stdio.h>
#include <string.h>

typedef struct command_options {
    const char *part, *tier, *precision, *model, *tokenizer;
    cli_count runs;
    bool amx, json;
} command_options;

static const cli_option options[] = {
    {"tier", 0, CLI_TEXT, offsetof(command_options, tier), "TIER",
     "The highest instruction set to use: ref, avx2 or avx512."},
    {"precision", 0, CLI_TEXT, offsetof(command_options, precision), "NAME",
     "encoder: what it multiplies in: f32, bf16, int8 or int8_row; f32\nwithout it."},
    {"amx", 0, CLI_FLAG, offsetof(command_options, amx), NULL,
     "encoder: use AMX for bf16 and int8 where the machine has it."},
    {"model", 'm', CLI_TEXT, offsetof(command_options, model), "FILE",
     "gbdt: measure this XGBoost model instead of made-up ones."},
    {"tokenizer", 0, CLI_TEXT, offsetof(command_options, tokenizer), "FILE",
     "tokenizer: a tokenizer.json instead of the default bundle's."},
    {"runs", 0, CLI_COUNT, offsetof(command_options, runs), "N", "Take N runs instead of 15."},
    {"json", 0, CLI_FLAG, offsetof(command_options, json), NULL, "Print an object a measurement."},
    {NULL, 0, CLI_FLAG, 0, NULL, NULL},
};

enum { RUNS = 15, MAX_RUNS = 1000000 };

static const struct bench_part {
    const char *name;
    int (*run)(const bench_options *given);
} parts[] = {
    {"encoder", bench_encoder}, {"rollout", bench_scoring},     {"score", bench_scoring},
    {"gbdt", bench_gbdt},       {"tokenizer", bench_tokenizer},
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

/* An option that only one part reads must not be given to another: it would be taken in silence. */
static int check_options(const command_options *given, const struct bench_part *part) {
    const struct {
        const char *name;
        bool given;
        int (*run)(const bench_options *given);
    } special[] = {
        {"precision", given->precision != NULL, bench_encoder},
        {"amx", given->amx, bench_encoder},
        {"model", given->model != NULL, bench_gbdt},
        {"tokenizer", given->tokenizer != NULL, bench_tokenizer},
    };
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if (special[i].given && part->run != special[i].run)
            return cli_fail_usage(&command_bench, "%s takes no --%s", part->name, special[i].name);
    if (given->runs.given && (given->runs.value < 1 || given->runs.value > MAX_RUNS))
        return cli_fail_usage(&command_bench, "--runs takes a number from 1 to %d", MAX_RUNS);
    return CLI_DONE;
}

static int run(int argc, char **argv) {
    command_options given = {.part = NULL};
    foreloop_options opening = {.precision = FORELOOP_PRECISION_F32};
    int status;
    if (!cli_parse(&command_bench, argc, argv, &given, &status))
        return status;
    const struct bench_part *part = find_part(given.part);
    if (!part)
        return cli_fail_usage(&command_bench, "name the part to measure: encoder, rollout, score, gbdt or tokenizer");
    status = check_options(&given, part);
    bench_options chosen = {.part = given.part,
                            .model = given.model,
                            .tokenizer = given.tokenizer,
                            .amx = given.amx,
                            .runs = given.runs.given ? (int)given.runs.value : RUNS,
                            .json = given.json};
    if (status == CLI_DONE)
        status = read_tier(given.tier, &chosen.tier);
    if (status == CLI_DONE)
        status = input_model_options(&opening, &command_bench, given.precision, given.amx);
    chosen.precision = opening.precision;
    return status == CLI_DONE ? part->run(&chosen) : status;
}

const cli_command command_bench = {
    .name = "bench",
    .summary = "Measure what the parts of the library cost on this machine.",
    .usage = "encoder|rollout|score|gbdt|tokenizer [OPTION...]",
    .description = "encoder measures forward passes of two made-up encoders, of CodeBERT's size and of 4\n"
                   "layers of 256, over 16, 128 and 512 tokens, on one and two threads, beside the\n"
                   "machine's peak of multiply-adds and the time to read the weights once.\n\n"
                   "rollout and score measure a made-up model of ordinary size (d 256, 300 trees of depth 6\n"
                   "that read all 320 features) on sequences that are random or ordered as real schedules\n"
                   "are. In microseconds for a candidate:\n\n"
                   "  rollout     from interned ids to features: everything but the trees\n"
                   "  empty       the same for a sequence without actions\n"
                   "  trees       the walk through the trees\n"
                   "  score       all of it, from ids to score\n"
                   "  intern      looking the candidate's actions up in the table\n"
                   "  intern text the same when the host has its own copies of kinds' and arguments' names\n"
                   "  new action  interning an action that the table does not have yet\n\n"
                   "and two threads, how many times faster they score 16384 candidates than one (of the\n"
                   "wall clock). Each other figure is processor time, the best of the runs over 4096\n"
                   "candidates, all by turns. The time without trees is measured with 6 of them.\n\n"
                   "gbdt measures trees on their own: made-up models of 300 and 1,000 trees of depth 4, 6\n"
                   "and 8 and of 255 leaves, on 320 random features, or the model that you name. Time to\n"
                   "open it, and microseconds for a row by the size of the batch; medians of the runs.\n\n"
                   "tokenizer measures text to ids, in nanoseconds for a byte: programs of several lengths,\n"
                   "English, C, Chinese, and the worst: one word, random letters and blanks of 10 KB and 10\n"
                   "MB.",
    .options = options,
    .takes_operand = true,
    .operand_offset = offsetof(command_options, part),
    .run = run,
};
