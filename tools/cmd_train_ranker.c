/* foreloop train-ranker: fits the trees of a ranker to measured candidates. */
#include "common/alloc.h"
#include "measured.h"
#include "metrics.h"
#include "output.h"
#include "progress.h"
#include <math.h>
#include <string.h>

typedef struct train_options {
    const char *features, *groups, *seconds, *relevances;
    measured_records records;
    const char *output, *start, *objective, *pairs;
    bool go_on, linear_gain, json;
    cli_count rounds, depth, bins, pair_count, seed, folds, grades;
    cli_float eta, lambda, min_child_weight, subsample, columns;
} train_options;

#define OPTION_COUNT(field, name, help)                                                                                \
    { name, 0, CLI_COUNT, offsetof(train_options, field), "N", help }
#define OPTION_FLOAT(field, name, help)                                                                                \
    { name, 0, CLI_FLOAT, offsetof(train_options, field), "X", help }

static const cli_option options[] = {
    {"output", 'o', CLI_TEXT, offsetof(train_options, output), "FILE", "Where the trees go, as XGBoost's JSON."},
    {"groups", 0, CLI_TEXT, offsetof(train_options, groups), "FILE",
     "For FEATURES: a number for each row, the same for rows that are\ncompared with each other."},
    {"seconds", 0, CLI_TEXT, offsetof(train_options, seconds), "FILE",
     "For FEATURES: the time of each row, inf where it failed."},
    {"relevances", 0, CLI_TEXT, offsetof(train_options, relevances), "FILE",
     "For FEATURES: how good each row is instead, higher is better; whole\nnumbers to 31 for the objective ndcg."},
    {"model", 'm', CLI_TEXT, offsetof(train_options, records.model), "MODEL",
     "For records: the model that forms their features; the default\nbundle without -m."},
    {"workload", 'w', CLI_TEXTS, offsetof(train_options, records.workloads), "FILE",
     "For records: a program's text. May be repeated, with -r each time."},
    {"records", 'r', CLI_TEXTS, offsetof(train_options, records.records), "FILE",
     "Its measured candidates: a database_tuning_record.json of TVM\nMetaSchedule or an Ansor log, plain or gzip."},
    {"hardware", 0, CLI_TEXT, offsetof(train_options, records.hardware), "FILE",
     "For records: the machine that they were measured on, as 'foreloop\ninspect --cpu --json' prints it; this machine "
     "without it."},
    {"continue", 0, CLI_FLAG, offsetof(train_options, go_on), NULL,
     "For records: add trees to those of the model instead of beginning\nanew."},
    {"start", 0, CLI_TEXT, offsetof(train_options, start), "FILE", "Add trees to these, of the same features."},
    {"objective", 0, CLI_TEXT, offsetof(train_options, objective), "NAME",
     "ndcg (without this option), pairwise or squared-error."},
    {"pairs", 0, CLI_TEXT, offsetof(train_options, pairs), "HOW",
     "Which rows are compared: top (without this option), those\npredicted best with all others, or mean, random "
     "ones."},
    OPTION_COUNT(pair_count, "pair-count", "How many are predicted best, 32; or random ones for each row, 1."),
    OPTION_COUNT(grades, "grades",
                 "Relevance of a time for ndcg: N x the root of (best / time), rounded;\n15 without this option."),
    OPTION_COUNT(rounds, "rounds", "Trees to add, 300."),
    OPTION_COUNT(depth, "depth", "Depth of a tree at the most, 6."),
    OPTION_COUNT(bins, "bins", "Bins of a feature at the most, 255."),
    OPTION_FLOAT(eta, "eta", "Shrinkage of leaves, 0.1."),
    OPTION_FLOAT(lambda, "lambda", "L2 penalty on leaves, 1."),
    OPTION_FLOAT(min_child_weight, "min-child-weight", "Least sum of hessians in a leaf, 0."),
    OPTION_FLOAT(subsample, "subsample", "Share of rows for a tree, 1."),
    OPTION_FLOAT(columns, "columns", "Share of features for a split, 1."),
    OPTION_COUNT(seed, "seed", "Of what is drawn at random, 0."),
    OPTION_COUNT(folds, "folds",
                 "Also train N times without an Nth of the groups, and tell how well\nthose are ordered that training "
                 "did not see."),
    {"json", 0, CLI_FLAG, offsetof(train_options, json), NULL,
     "Print one object: rows, groups, features, trees, seconds, and\nbefore, after and unseen: each null, or an object "
     "of ndcg, pairwise\nand, for times, top1."},
    {NULL, 0, CLI_FLAG, 0, NULL, NULL},
};

/* How well scores order the groups: means over those whose rows differ. */
typedef struct quality {
    bool known;
    double ndcg, pairwise, top1;
} quality;

typedef struct train_run {
    const train_options *given;
    measured data;
    float *relevances;    /* [count], of tables with relevances */
    foreloop_gbdt *start; /* of --start, owned */
    foreloop_gbdt *ranker;
    foreloop_ranker_options options;
    double seconds;
    quality before, after, unseen;
} train_run;

/* ---- Options ---- */

static bool choose(const char *const *names, const char *given, int *choice) {
    for (int i = 0; names[i]; i++)
        if (strcmp(given, names[i]) == 0) {
            *choice = i;
            return true;
        }
    return false;
}

static size_t as_size(cli_count count, size_t otherwise) {
    return !count.given ? otherwise : count.value > SIZE_MAX ? SIZE_MAX : (size_t)count.value;
}

static float as_float(cli_float number, float otherwise) {
    return number.given ? number.value : otherwise;
}

static int set_options(train_run *run) {
    static const char *const objectives[] = {"ndcg", "pairwise", "squared-error", NULL};
    static const char *const pairs[] = {"top", "mean", NULL};
    const train_options *given = run->given;
    foreloop_ranker_options *own = &run->options;
    int choice = 0;
    foreloop_ranker_options_init(own, sizeof *own);
    if (given->objective && !choose(objectives, given->objective, &choice))
        return cli_fail_usage(&command_train_ranker, "--objective is ndcg, pairwise or squared-error, not '%s'",
                              given->objective);
    own->objective = (foreloop_ranker_objective)choice;
    choice = 0;
    if (given->pairs && !choose(pairs, given->pairs, &choice))
        return cli_fail_usage(&command_train_ranker, "--pairs is top or mean, not '%s'", given->pairs);
    own->pairs = (foreloop_ranker_pairs)choice;
    own->pair_count = as_size(given->pair_count, 0);
    own->grades = given->grades.given ? (unsigned)(given->grades.value < 1000 ? given->grades.value : 1000) : 15;
    own->rounds = as_size(given->rounds, own->rounds);
    own->depth = as_size(given->depth, own->depth);
    own->bins = as_size(given->bins, own->bins);
    own->eta = as_float(given->eta, own->eta);
    own->lambda = as_float(given->lambda, own->lambda);
    own->min_child_weight = as_float(given->min_child_weight, own->min_child_weight);
    own->subsample = as_float(given->subsample, own->subsample);
    own->columns_by_node = as_float(given->columns, own->columns_by_node);
    own->seed = given->seed.value;
    return CLI_DONE;
}

static int check_given(const train_options *given) {
    const bool records = given->records.workloads.count + given->records.records.count > 0;
    if (!given->output)
        return cli_fail_usage(&command_train_ranker, "name the file for the trees with -o FILE");
    if (records == (given->features != NULL))
        return cli_fail_usage(&command_train_ranker, "give FEATURES with --groups, or pairs of -w FILE and -r FILE");
    if (records && given->records.workloads.count != given->records.records.count)
        return cli_fail_usage(&command_train_ranker, "%zu times -w and %zu times -r: give each program its records",
                              given->records.workloads.count, given->records.records.count);
    if (records && (given->groups || given->seconds || given->relevances))
        return cli_fail_usage(&command_train_ranker, "--groups, --seconds and --relevances are for FEATURES");
    if (!records && (!given->groups || (given->seconds != NULL) == (given->relevances != NULL)))
        return cli_fail_usage(&command_train_ranker, "FEATURES need --groups, and one of --seconds and --relevances");
    if (!records && (given->go_on || given->records.model || given->records.hardware))
        return cli_fail_usage(&command_train_ranker, "--model, --hardware and --continue are for records");
    if (given->go_on && given->start)
        return cli_fail_usage(&command_train_ranker, "give one of --continue and --start");
    if (given->folds.given && given->folds.value < 2)
        return cli_fail_usage(&command_train_ranker, "--folds takes a whole number from 2");
    return CLI_DONE;
}

/* ---- Quality ---- */

static void describe(const train_run *run, foreloop_gbdt_rows *rows, foreloop_ranker_data *data) {
    foreloop_gbdt_rows_init(rows, sizeof *rows);
    foreloop_ranker_data_init(data, sizeof *data);
    rows->values = run->data.rows;
    rows->row_count = run->data.count;
    rows->column_count = run->data.columns;
    data->rows = rows;
    data->groups = run->data.groups;
    data->group_count = run->data.group_count;
    data->seconds = run->data.relevances ? NULL : run->data.values;
    data->relevances = run->data.relevances ? run->relevances : NULL;
}

/* Mean pairwise accuracy, and mean speed of the first predicted relative to the best. */
static bool measure_groups(const train_run *run, const float *scores, quality *result) {
    const measured *data = &run->data;
    metrics_pair *pairs = foreloop_allocate(cli_allocator(), data->count, sizeof *pairs);
    size_t counted = 0;
    if (!pairs)
        return false;
    for (size_t g = 0; g < data->group_count; g++) {
        const size_t begin = data->groups[g], end = data->groups[g + 1];
        double accuracy, best = INFINITY;
        size_t first = begin;
        for (size_t i = begin; i < end; i++) {
            pairs[i - begin] = (metrics_pair){scores[i], data->relevances ? -data->values[i] : data->values[i]};
            best = fmin(best, data->values[i]);
            first = scores[i] > scores[first] ? i : first;
        }
        const double top1 = best / data->values[first];
        if (!metrics_pairwise(pairs, end - begin, &accuracy))
            continue;
        result->pairwise += accuracy;
        result->top1 += isfinite(data->values[first]) ? top1 : 0;
        counted++;
    }
    foreloop_release(cli_allocator(), pairs);
    result->pairwise /= (double)counted;
    result->top1 /= (double)counted;
    return counted > 0;
}

/* NDCG needs grades, which other objectives do not; without them it stays unknown. */
static void measure(const train_run *run, const float *scores, quality *result) {
    foreloop_gbdt_rows rows;
    foreloop_ranker_data data;
    *result = (quality){.ndcg = NAN};
    describe(run, &rows, &data);
    if (foreloop_ranker_ndcg(&data, &run->options, scores, 0, &result->ndcg, NULL) != FORELOOP_OK)
        result->ndcg = NAN;
    result->known = measure_groups(run, scores, result);
}

/* The column of a feature of the trees: by name where both have names, else by place. */
static size_t column_of(const measured *data, const foreloop_gbdt *gbdt, size_t feature) {
    const char *name = foreloop_gbdt_feature_name(gbdt, feature);
    if (!name || !data->names || (feature < data->columns && strcmp(name, data->names[feature]) == 0))
        return feature;
    for (size_t i = 0; i < data->columns; i++)
        if (strcmp(name, data->names[i]) == 0)
            return i;
    return data->columns;
}

/* Scores of all rows; false when the trees want columns that are not there, or memory is out. */
static bool predict(const measured *data, const foreloop_gbdt *gbdt, float *scores) {
    foreloop_gbdt_info info = {.size = sizeof info};
    foreloop_gbdt_get_info(gbdt, &info);
    float *row = foreloop_allocate(cli_allocator(), info.feature_count, sizeof *row);
    size_t *columns = foreloop_allocate(cli_allocator(), info.feature_count, sizeof *columns);
    bool good = row && columns && info.output_count == 1;
    for (size_t f = 0; good && f < info.feature_count; f++) {
        columns[f] = column_of(data, gbdt, f);
        good = columns[f] < data->columns;
    }
    for (size_t i = 0; good && i < data->count; i++) {
        for (size_t f = 0; f < info.feature_count; f++)
            row[f] = data->rows[i * data->columns + columns[f]];
        good = foreloop_gbdt_predict(gbdt, row, 1, info.feature_count, 1, scores + i, NULL) == FORELOOP_OK;
    }
    foreloop_release(cli_allocator(), row);
    foreloop_release(cli_allocator(), columns);
    return good;
}

/* ---- Training ---- */

static int show_round(void *user, size_t done, size_t rounds) {
    progress_show(user, done, rounds);
    return 0;
}

static int train(train_run *run, const foreloop_ranker_data *data, const char *what, foreloop_gbdt **ranker) {
    foreloop_error error = {.code = FORELOOP_OK};
    progress bar;
    progress_begin(&bar, what);
    run->options.progress = show_round;
    run->options.progress_user = &bar;
    const foreloop_status status = foreloop_ranker_train(ranker, data, &run->options, &error);
    progress_end(&bar);
    return status == FORELOOP_OK ? CLI_DONE : cli_fail("%s", error.message);
}

/* The groups of a fold, or all others, as a list of rows. */
static size_t list_rows(const measured *data, size_t fold, size_t folds, bool inside, size_t *rows, size_t *groups,
                        size_t *group_count) {
    size_t count = 0;
    *group_count = 0;
    for (size_t g = 0; g < data->group_count; g++) {
        if ((g % folds == fold) != inside)
            continue;
        groups[(*group_count)++] = count;
        for (size_t i = data->groups[g]; i < data->groups[g + 1]; i++)
            rows[count++] = i;
    }
    groups[*group_count] = count;
    return count;
}

/* Buffers of a fold's training rows. */
typedef struct fold_memory {
    size_t *rows, *groups;
    float *values, *relevances;
    double *seconds;
} fold_memory;

static int train_fold(train_run *run, fold_memory *memory, size_t fold, size_t folds, float *scores) {
    const measured *data = &run->data;
    foreloop_gbdt_rows rows;
    foreloop_ranker_data given;
    foreloop_gbdt *ranker = NULL;
    size_t group_count;
    char what[40];
    describe(run, &rows, &given);
    rows.row_count = list_rows(data, fold, folds, false, memory->rows, memory->groups, &group_count);
    for (size_t i = 0; i < rows.row_count; i++) {
        memcpy(memory->values + i * data->columns, data->rows + memory->rows[i] * data->columns,
               data->columns * sizeof *memory->values);
        memory->seconds[i] = data->values[memory->rows[i]];
        memory->relevances[i] = (float)data->values[memory->rows[i]];
    }
    rows.values = memory->values;
    given.groups = memory->groups;
    given.group_count = group_count;
    given.seconds = data->relevances ? NULL : memory->seconds;
    given.relevances = data->relevances ? memory->relevances : NULL;
    (void)snprintf(what, sizeof what, "fold %zu of %zu ", fold + 1, folds);
    int status = train(run, &given, what, &ranker);
    const size_t count = list_rows(data, fold, folds, true, memory->rows, memory->groups, &group_count);
    for (size_t i = 0; status == CLI_DONE && i < count; i++)
        (void)foreloop_gbdt_predict(ranker, data->rows + memory->rows[i] * data->columns, 1, data->columns, 1,
                                    scores + memory->rows[i], NULL);
    foreloop_gbdt_close(ranker);
    return status;
}

/* Scores every row by trees that have not seen its group. */
static int cross_validate(train_run *run, size_t folds, float *scores) {
    const measured *data = &run->data;
    if (folds > data->group_count)
        return cli_fail("--folds %zu is more than the %zu group%s", folds, data->group_count,
                        cli_plural(data->group_count));
    fold_memory memory = {
        .rows = foreloop_allocate(cli_allocator(), data->count, sizeof *memory.rows),
        .groups = foreloop_allocate(cli_allocator(), data->group_count + 1, sizeof *memory.groups),
        .values = foreloop_allocate(cli_allocator(), data->count, data->columns * sizeof *memory.values),
        .relevances = foreloop_allocate(cli_allocator(), data->count, sizeof *memory.relevances),
        .seconds = foreloop_allocate(cli_allocator(), data->count, sizeof *memory.seconds),
    };
    int status = memory.rows && memory.groups && memory.values && memory.relevances && memory.seconds
                     ? CLI_DONE
                     : cli_fail_memory();
    for (size_t fold = 0; status == CLI_DONE && fold < folds; fold++)
        status = train_fold(run, &memory, fold, folds, scores);
    foreloop_release(cli_allocator(), memory.rows);
    foreloop_release(cli_allocator(), memory.groups);
    foreloop_release(cli_allocator(), memory.values);
    foreloop_release(cli_allocator(), memory.relevances);
    foreloop_release(cli_allocator(), memory.seconds);
    return status;
}

static int open_start(train_run *run) {
    foreloop_error error = {.code = FORELOOP_OK};
    if (run->given->go_on)
        run->options.start = foreloop_model_gbdt(run->data.model);
    if (!run->given->start)
        return CLI_DONE;
    if (foreloop_gbdt_open(&run->start, run->given->start, NULL, &error) != FORELOOP_OK)
        return cli_fail_file("cannot open the trees to go on from", run->given->start, error.message);
    run->options.start = run->start;
    return CLI_DONE;
}

static int train_all(train_run *run, float *scores) {
    const train_options *given = run->given;
    const foreloop_gbdt *old = run->start ? run->start : foreloop_model_gbdt(run->data.model);
    foreloop_error error = {.code = FORELOOP_OK};
    foreloop_gbdt_rows rows;
    foreloop_ranker_data data;
    int status = CLI_DONE;
    describe(run, &rows, &data);
    if (old && predict(&run->data, old, scores))
        measure(run, scores, &run->before);
    if (given->folds.given) {
        status = cross_validate(run, as_size(given->folds, 0), scores);
        if (status == CLI_DONE)
            measure(run, scores, &run->unseen);
    }
    const double begin = cli_clock();
    if (status == CLI_DONE)
        status = train(run, &data, "training ", &run->ranker);
    run->seconds = cli_clock() - begin;
    if (status != CLI_DONE)
        return status;
    if (predict(&run->data, run->ranker, scores))
        measure(run, scores, &run->after);
    if (foreloop_gbdt_save(run->ranker, given->output, &error) != FORELOOP_OK)
        return cli_fail_file("cannot write the trees", given->output, error.message);
    return CLI_DONE;
}

/* ---- Output ---- */

static bool add_quality(cJSON *object, const char *name, const quality *own, bool times) {
    if (!own->known)
        return output_json_add(object, name, cJSON_CreateNull());
    cJSON *numbers = cJSON_CreateObject();
    if (output_json_add(numbers, "ndcg", output_json_double(own->ndcg)) &&
        output_json_add(numbers, "pairwise", output_json_double(own->pairwise)) &&
        (!times || output_json_add(numbers, "top1", output_json_double(own->top1))))
        return output_json_add(object, name, numbers);
    cJSON_Delete(numbers);
    return false;
}

static bool print_json(const train_run *run, const foreloop_gbdt_info *info) {
    const bool times = !run->data.relevances;
    cJSON *object = cJSON_CreateObject();
    if (output_json_add(object, "rows", output_json_count(run->data.count)) &&
        output_json_add(object, "skipped", output_json_count(run->data.skipped)) &&
        output_json_add(object, "groups", output_json_count(run->data.group_count)) &&
        output_json_add(object, "features", output_json_count(run->data.columns)) &&
        output_json_add(object, "trees", output_json_count(info->tree_count)) &&
        output_json_add(object, "seconds", output_json_double(run->seconds)) &&
        add_quality(object, "before", &run->before, times) && add_quality(object, "after", &run->after, times) &&
        add_quality(object, "unseen", &run->unseen, times))
        return output_json_line(object);
    cJSON_Delete(object);
    return false;
}

static void add_number(output_table *table, bool known, double number) {
    if (known)
        output_table_cell(table, "%.4f", number);
    else
        output_table_cell(table, "-");
}

static void add_row(output_table *table, const char *name, const quality *own, bool times) {
    if (!own->known)
        return;
    output_table_row(table, OUTPUT_PLAIN);
    output_table_cell(table, "%s", name);
    add_number(table, !isnan(own->ndcg), own->ndcg);
    add_number(table, true, own->pairwise);
    add_number(table, times, own->top1);
}

static bool print(const train_run *run) {
    foreloop_gbdt_info info = {.size = sizeof info};
    char time[OUTPUT_NUMBER_SIZE];
    output_table table;
    const bool times = !run->data.relevances;
    foreloop_gbdt_get_info(run->ranker, &info);
    if (run->given->json)
        return print_json(run, &info);
    printf("%zu candidates in %zu group%s, %zu feature%s: %zu tree%s after %s, written to %s\n\n", run->data.count,
           run->data.group_count, cli_plural(run->data.group_count), run->data.columns, cli_plural(run->data.columns),
           info.tree_count, cli_plural(info.tree_count), output_seconds(run->seconds, time), run->given->output);
    output_table_begin(&table, "lrrr");
    output_table_row(&table, OUTPUT_BOLD);
    output_table_cell(&table, "trees");
    output_table_cell(&table, "NDCG");
    output_table_cell(&table, "pairwise");
    output_table_cell(&table, "top-1");
    add_row(&table, "before", &run->before, times);
    add_row(&table, "after, on what was learnt", &run->after, times);
    add_row(&table, "after, on unseen groups", &run->unseen, times);
    return output_table_print(&table, 2);
}

/* ---- The command ---- */

static int read_data(train_run *run) {
    const train_options *given = run->given;
    measured *data = &run->data;
    int status;
    if (given->features) {
        const measured_tables tables = {given->features, given->groups,
                                        given->seconds ? given->seconds : given->relevances, given->relevances != NULL};
        status = measured_read_tables(data, &tables);
    } else {
        status = measured_read_records(data, &given->records);
    }
    if (status != CLI_DONE || !data->relevances)
        return status;
    run->relevances = foreloop_allocate(cli_allocator(), data->count, sizeof *run->relevances);
    if (!run->relevances)
        return cli_fail_memory();
    for (size_t i = 0; i < data->count; i++)
        run->relevances[i] = (float)data->values[i];
    return CLI_DONE;
}

static int train_ranker(train_run *run) {
    float *scores = NULL;
    int status = read_data(run);
    run->options.feature_names = run->data.names;
    run->options.feature_name_count = run->data.names ? run->data.columns : 0;
    if (status == CLI_DONE)
        status = open_start(run);
    if (status == CLI_DONE) {
        scores = foreloop_allocate_zeroed(cli_allocator(), run->data.count, sizeof *scores);
        status = scores ? train_all(run, scores) : cli_fail_memory();
        foreloop_release(cli_allocator(), scores);
    }
    if (status == CLI_DONE && !print(run))
        status = cli_fail_memory();
    if (status == CLI_DONE && run->data.skipped > 0)
        cli_note("%llu line%s without a usable measurement", (unsigned long long)run->data.skipped,
                 run->data.skipped == 1 ? " is" : "s are");
    return status;
}

static int run_command(int argc, char **argv) {
    train_options given = {.features = NULL};
    train_run run = {.given = &given};
    int status;
    if (cli_parse(&command_train_ranker, argc, argv, &given, &status)) {
        status = check_given(&given);
        if (status == CLI_DONE)
            status = set_options(&run);
        if (status == CLI_DONE)
            status = train_ranker(&run);
    }
    foreloop_gbdt_close(run.ranker);
    foreloop_gbdt_close(run.start);
    foreloop_release(cli_allocator(), run.relevances);
    measured_close(&run.data);
    cli_texts_close(&given.records.workloads);
    cli_texts_close(&given.records.records);
    return status;
}

const cli_command command_train_ranker = {
    .name = "train-ranker",
    .summary = "Train a ranker on measured candidates.",
    .usage = "FEATURES.csv|.npy --groups FILE --seconds FILE -o FILE\n"
             "       foreloop train-ranker [-m MODEL] -w FILE -r FILE [-w FILE -r FILE]... -o FILE",
    .description = "Fits trees that put each group's fast candidates first (LambdaMART), and writes them as XGBoost\n"
                   "does. With records, a group is a program and a target, and the trees read the model's features:\n"
                   "they can stand for the model's ranker.json, or be handed to foreloop_scorer_set_ranker.\n"
                   "\n"
                   "The table tells how well the old and the new trees order the candidates: mean NDCG; pairwise,\n"
                   "the share of pairs that stand the right way round; top-1, the speed of the first predicted\n"
                   "relative to the best. What trees make of candidates that they have learnt from says little:\n"
                   "--folds tells how they do on others. It speaks of trees alone: a score network of the model\n"
                   "stays as it is beside old trees and new ones.",
    .options = options,
    .takes_operand = true,
    .operand_offset = offsetof(train_options, features),
    .run = run_command,
};
