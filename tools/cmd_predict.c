/* foreloop predict: an XGBoost model on rows of features. */
#include "common/alloc.h"
#include "input.h"
#include "output.h"
#include <inttypes.h>
#include <string.h>

typedef struct predict_options {
    const char *features;
    const char *ranker;
    cli_float base_score;
    bool margin, leaves, contributions, json;
} predict_options;

static const cli_option options[] = {
    {"ranker", 0, CLI_TEXT, offsetof(predict_options, ranker), "FILE",
     "The trees, as XGBoost's save_model (JSON or UBJSON) or dump_model (JSON)\n"
     "writes them."},
    {"base-score", 0, CLI_FLOAT, offsetof(predict_options, base_score), "X",
     "Start the sums from X (a margin) instead of the file's base score.\n"
     "A dump has none in it: 0.5 without this option."},
    {"margin", 0, CLI_FLAG, offsetof(predict_options, margin), NULL,
     "Print the raw sums, without the objective's transform."},
    {"leaves", 0, CLI_FLAG, offsetof(predict_options, leaves), NULL,
     "Print the number of the leaf that the row reaches in each tree."},
    {"contributions", 0, CLI_FLAG, offsetof(predict_options, contributions), NULL,
     "Print what each feature adds to the margin (TreeSHAP), and last the bias;\n"
     "so for one output after the other."},
    {"json", 0, CLI_FLAG, offsetof(predict_options, json), NULL,
     "Print an object a row: {\"row\":0,\"prediction\":[...]}, with --leaves or\n"
     "--contributions under that name."},
    {NULL, 0, CLI_FLAG, 0, NULL, NULL},
};

enum { BATCH_ROWS = 512 };

/* What is printed for each row. */
typedef struct predict_task {
    foreloop_gbdt *gbdt;
    foreloop_gbdt_explainer *explainer; /* of contributions, else NULL */
    foreloop_gbdt_output output;
    const char *name; /* for JSON */
    size_t count;     /* numbers for a row */
    bool json;
} predict_task;

static int open_ranker(foreloop_gbdt **gbdt, const predict_options *given) {
    foreloop_error error = {.code = FORELOOP_OK};
    foreloop_gbdt_options gbdt_options;

    foreloop_gbdt_options_init(&gbdt_options, sizeof gbdt_options);
    gbdt_options.has_base_score = given->base_score.given;
    gbdt_options.base_score = given->base_score.value;
    if (foreloop_gbdt_open(gbdt, given->ranker, &gbdt_options, &error) != FORELOOP_OK)
        return cli_fail("cannot open the ranker %s: %s", given->ranker, error.message);
    return CLI_DONE;
}

/* What the file left open, and how it was taken. */
static void print_notes(const foreloop_gbdt *gbdt, const char *name) {
    foreloop_gbdt_info info = {.size = sizeof info};
    foreloop_gbdt_get_info(gbdt, &info);
    if (*info.notes)
        cli_note("%s: %s", name, info.notes);
}

/* The columns must be the model's: a file with other ones would be scored silently and wrongly. */
static int check_columns(const foreloop_gbdt *gbdt, const foreloop_gbdt_info *info, const input_matrix *matrix) {
    const char *name = matrix->content.name;
    /* A dump does not say how many columns there were, only which the trees read. */
    bool may_have_more = strcmp(info->objective, "unknown") == 0;
    if (matrix->columns < info->feature_count || (matrix->columns > info->feature_count && !may_have_more))
        return cli_fail("%s has %zu columns, the ranker reads %zu: give one column for each feature", name,
                        matrix->columns, info->feature_count);
    for (size_t i = 0; matrix->names && i < info->feature_count; i++) {
        const char *wanted = foreloop_gbdt_feature_name(gbdt, i);
        if (wanted && !foreloop_text_is(matrix->names[i], wanted))
            return cli_fail("%s: column %zu is '%.*s', the ranker wants '%s' there", name, i + 1,
                            FORELOOP_QUOTED(matrix->names[i].text, matrix->names[i].length), wanted);
    }
    return CLI_DONE;
}

static bool print_row(const predict_task *task, size_t row, const float *numbers) {
    cJSON *object;
    if (!task->json) {
        output_floats(numbers, task->count);
        return true;
    }
    object = cJSON_CreateObject();
    if (output_json_add(object, "row", output_json_count(row)) &&
        output_json_add(object, task->name, output_json_floats(numbers, task->count)))
        return output_json_line(object);
    cJSON_Delete(object);
    return false;
}

static int set_task(predict_task *task, const foreloop_gbdt_info *info, const predict_options *given) {
    foreloop_error error = {.code = FORELOOP_OK};
    task->json = given->json;
    task->output = given->margin ? FORELOOP_GBDT_MARGIN : FORELOOP_GBDT_PREDICTION;
    task->name = "prediction";
    task->count = given->margin ? info->output_count : info->prediction_count;
    if (given->leaves) {
        task->output = FORELOOP_GBDT_LEAF_INDEX;
        task->name = "leaves";
        task->count = info->tree_count;
    }
    if (given->contributions) {
        if (foreloop_gbdt_explainer_create(&task->explainer, task->gbdt, &error) != FORELOOP_OK)
            return cli_fail("%s: %s", given->ranker, error.message);
        task->name = "contributions";
        task->count = info->output_count * (info->feature_count + 1);
    }
    return CLI_DONE;
}

static int print_rows(const predict_task *task, const input_matrix *matrix, float *numbers) {
    foreloop_error error = {.code = FORELOOP_OK};
    foreloop_gbdt_rows rows;
    int status = CLI_DONE;

    foreloop_gbdt_rows_init(&rows, sizeof rows);
    rows.column_count = matrix->columns;
    for (size_t row = 0; status == CLI_DONE && row < matrix->rows && output_ok(); row += BATCH_ROWS) {
        foreloop_status computed;
        rows.values = matrix->values + row * matrix->columns;
        rows.row_count = matrix->rows - row < BATCH_ROWS ? matrix->rows - row : BATCH_ROWS;
        computed = task->explainer ? foreloop_gbdt_explain(task->explainer, &rows, numbers, &error)
                                   : foreloop_gbdt_predict_rows(task->gbdt, &rows, task->output, numbers, &error);
        if (computed != FORELOOP_OK)
            status = cli_fail("%s: %s", matrix->content.name, error.message);
        for (size_t i = 0; status == CLI_DONE && i < rows.row_count; i++)
            if (!print_row(task, row + i, numbers + i * task->count))
                status = cli_fail_memory();
    }
    return status;
}

static int predict(foreloop_gbdt *gbdt, const input_matrix *matrix, const predict_options *given) {
    foreloop_gbdt_info info = {.size = sizeof info};
    predict_task task = {.gbdt = gbdt};
    float *numbers;
    int status;

    foreloop_gbdt_get_info(gbdt, &info);
    status = check_columns(gbdt, &info, matrix);
    if (status == CLI_DONE)
        status = set_task(&task, &info, given);
    if (status != CLI_DONE)
        return status;
    numbers = foreloop_allocate(cli_allocator(), task.count, BATCH_ROWS * sizeof *numbers);
    status = numbers ? print_rows(&task, matrix, numbers) : cli_fail_memory();
    foreloop_release(cli_allocator(), numbers);
    foreloop_gbdt_explainer_close(task.explainer);
    return status;
}

static int run(int argc, char **argv) {
    predict_options given = {.ranker = NULL};
    foreloop_gbdt *gbdt = NULL;
    input_matrix matrix;
    int status;

    if (!cli_parse(&command_predict, argc, argv, &given, &status))
        return status;
    if (!given.ranker)
        return cli_fail_usage(&command_predict, "name the trees with --ranker FILE");
    if (!given.features)
        return cli_fail_usage(&command_predict, "name the features: a .csv or .npy file, or - for standard input");
    if (given.margin + given.leaves + given.contributions > 1)
        return cli_fail_usage(&command_predict, "give one of --margin, --leaves and --contributions");
    status = open_ranker(&gbdt, &given);
    if (status != CLI_DONE)
        return status;
    status = input_matrix_read(&matrix, given.features);
    if (status == CLI_DONE) {
        status = predict(gbdt, &matrix, &given);
        input_matrix_close(&matrix);
    }
    if (status == CLI_DONE)
        print_notes(gbdt, given.ranker);
    foreloop_gbdt_close(gbdt);
    return status;
}

const cli_command command_predict = {
    .name = "predict",
    .summary = "Evaluate an XGBoost model on rows of features.",
    .usage = "--ranker FILE [--base-score X] FEATURES.csv|.npy|-\n"
             "                        [--margin | --leaves | --contributions] [--json]",
    .description = "Prints the prediction for each row of features, one row a line. FEATURES is NumPy's .npy\n"
                   "(f4 or f8, C or Fortran order) or CSV with commas: a header line is optional (its names must\n"
                   "then be the model's, where the model names its features), an empty field or nan is missing.",
    .options = options,
    .takes_operand = true,
    .operand_offset = offsetof(predict_options, features),
    .run = run,
};
