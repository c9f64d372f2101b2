/* foreloop predict: an XGBoost model on rows of features. */
#include "common/alloc.h"
#include "input.h"
#include "output.h"
#include "ranker.h"
#include <inttypes.h>
#include <string.h>

typedef struct predict_options {
    const char *features;
    const char *ranker;
    ranker_options trees;
    bool margin, json;
} predict_options;

static const cli_option options[] = {
    {"ranker", 0, CLI_TEXT, offsetof(predict_options, ranker), "FILE",
     "The trees, as XGBoost's save_model or dump_model writes them."},
    {"base-score", 0, CLI_FLOAT, offsetof(predict_options, trees.base_score), "X",
     "Start the sums from X (a margin) instead of the file's base score.\n"
     "A dump has none in it: 0.5 without this option."},
    {"objective", 0, CLI_TEXT, offsetof(predict_options, trees.objective), "NAME",
     "The objective of a dump, for the transform of the sums, such as\nbinary:logistic; none without it."},
    {"num-class", 0, CLI_POSITIVE, offsetof(predict_options, trees.num_class), "N",
     "The outputs of a dump, between which the trees take turns; 1\nwithout it."},
    {"num-parallel-tree", 0, CLI_POSITIVE, offsetof(predict_options, trees.num_parallel_tree), "N",
     "The trees that an iteration of a dump adds to each output; 1\nwithout it."},
    {"tree-weights", 0, CLI_TEXT, offsetof(predict_options, trees.tree_weights), "FILE",
     "The DART weights of a dump, .csv or .npy, a number for each tree;\nall 1 without it."},
    {"margin", 0, CLI_FLAG, offsetof(predict_options, margin), NULL,
     "Print the raw sums, without the objective's transform."},
    {"json", 0, CLI_FLAG, offsetof(predict_options, json), NULL,
     "Print an object a row: {\"row\":0,\"prediction\":[...]}."},
    {NULL, 0, CLI_FLAG, 0, NULL, NULL},
};

enum { BATCH_ROWS = 512 };

/* What the file left open, and how it was taken. */
static void print_notes(const foreloop_gbdt *gbdt, const char *name) {
    foreloop_gbdt_info info = {.size = sizeof info};
    foreloop_gbdt_get_info(gbdt, &info);
    if (*info.notes)
        cli_note("%s: %s", name, info.notes);
}

/* As many columns as the model's: a file with other ones would be scored silently and wrongly. */
static int check_columns(const foreloop_gbdt_info *info, const input_matrix *matrix, const predict_options *given) {
    /* A dump, which alone may be given an objective, does not say how many columns there were, only which the trees
     * read. */
    bool may_have_more = given->trees.objective || strcmp(info->objective, "unknown") == 0;
    if (matrix->columns < info->feature_count || (matrix->columns > info->feature_count && !may_have_more))
        return cli_fail("%s has %zu column%s, the ranker reads %zu: give one column for each feature",
                        matrix->content.name, matrix->columns, cli_plural(matrix->columns), info->feature_count);
    return CLI_DONE;
}

static bool print_row(size_t row, const float *prediction, size_t count, bool json) {
    cJSON *object;
    if (!json) {
        output_floats(prediction, count);
        return true;
    }
    object = cJSON_CreateObject();
    if (output_json_add(object, "row", output_json_count(row)) &&
        output_json_add(object, "prediction", output_json_floats(prediction, count)))
        return output_json_line(object);
    cJSON_Delete(object);
    return false;
}

static int predict(const foreloop_gbdt *gbdt, const input_matrix *matrix, const predict_options *given) {
    foreloop_error error = {.code = FORELOOP_OK};
    foreloop_gbdt_info info = {.size = sizeof info};
    size_t count;
    float *outputs;
    int status;

    foreloop_gbdt_get_info(gbdt, &info);
    status = check_columns(&info, matrix, given);
    if (status != CLI_DONE)
        return status;
    count = given->margin ? info.output_count : info.prediction_count;
    outputs = foreloop_allocate(cli_allocator(), count, BATCH_ROWS * sizeof *outputs);
    if (!outputs)
        return cli_fail_memory();
    for (size_t row = 0; status == CLI_DONE && row < matrix->rows && output_ok(); row += BATCH_ROWS) {
        size_t rows = matrix->rows - row < BATCH_ROWS ? matrix->rows - row : BATCH_ROWS;
        if (foreloop_gbdt_predict(gbdt, matrix->values + row * matrix->columns, rows, matrix->columns, given->margin,
                                  outputs, &error) != FORELOOP_OK)
            status = cli_fail_file(NULL, matrix->content.name, error.message);
        for (size_t i = 0; status == CLI_DONE && i < rows; i++)
            if (!print_row(row + i, outputs + i * count, count, given->json))
                status = cli_fail_memory();
    }
    foreloop_release(cli_allocator(), outputs);
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
    status = ranker_open(&gbdt, given.ranker, &given.trees);
    if (status != CLI_DONE)
        return status;
    status = input_matrix_read(&matrix, given.features);
    if (status == CLI_DONE) {
        status = ranker_fit_columns(&gbdt, given.ranker, &given.trees, &matrix);
        if (status == CLI_DONE)
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
    .usage = "--ranker FILE [OPTION]... FEATURES.csv|.npy|- [--margin] [--json]",
    .description = "Prints the prediction for each row of features, one row a line. FEATURES is NumPy's .npy\n"
                   "(f4 or f8, C or Fortran order) or CSV with commas. An empty field or nan is missing. A header\n"
                   "line, one without any number, is optional: the columns are then taken by its names, or as\n"
                   "f0, f1 ... where the model names no features.\n"
                   "\n"
                   "A dump holds the trees only: the options say what it leaves out.",
    .options = options,
    .takes_operand = true,
    .operand_offset = offsetof(predict_options, features),
    .run = run,
};
