/*
 * The trees on their own: predicts one row with an XGBoost model, and prints the features that matter most for it.
 *
 *     explain_trees MODEL.json|.ubj VALUE...
 *
 * VALUE... are the row's features in the model's order; nan stands for a missing one.
 */
#include <foreloop/foreloop.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SHOWN = 5 };

static int fail(const foreloop_error *error) {
    fprintf(stderr, "%s: %s\n", foreloop_status_name(error->code), error->message);
    return 1;
}

/* Prints the largest contributions and sets them to 0. */
static void print_largest(const foreloop_gbdt *gbdt, float *contributions, size_t count) {
    for (int shown = 0; shown < SHOWN; shown++) {
        size_t largest = 0;
        for (size_t f = 1; f < count; f++)
            if (fabsf(contributions[f]) > fabsf(contributions[largest]))
                largest = f;
        if (count == 0 || contributions[largest] == 0.0f)
            return;
        const char *name = foreloop_gbdt_feature_name(gbdt, largest);
        printf("  %+.6g  ", (double)contributions[largest]);
        if (name)
            printf("%s\n", name);
        else
            printf("f%zu\n", largest);
        contributions[largest] = 0.0f;
    }
}

/* The row's margins and contributions, output by output. */
static foreloop_status explain(const foreloop_gbdt *gbdt, const foreloop_gbdt_rows *rows, float *margins,
                               float *contributions, foreloop_error *error) {
    foreloop_gbdt_explainer *explainer;
    foreloop_status status = foreloop_gbdt_predict_rows(gbdt, rows, FORELOOP_GBDT_MARGIN, margins, error);
    if (status == FORELOOP_OK)
        status = foreloop_gbdt_explainer_create(&explainer, gbdt, error);
    if (status != FORELOOP_OK)
        return status;
    status = foreloop_gbdt_explain(explainer, rows, contributions, error);
    foreloop_gbdt_explainer_close(explainer);
    return status;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: explain_trees MODEL.json|.ubj VALUE...\n");
        return 2;
    }
    foreloop_error error;
    foreloop_gbdt *gbdt;
    if (foreloop_gbdt_open(&gbdt, argv[1], NULL, &error) != FORELOOP_OK)
        return fail(&error);
    foreloop_gbdt_info info = {.size = sizeof info};
    foreloop_gbdt_get_info(gbdt, &info);

    const size_t given = (size_t)argc - 2, width = info.feature_count + 1;
    float *row = malloc((given + 1) * sizeof *row);
    float *margins = malloc(info.output_count * sizeof *margins);
    float *contributions = malloc(info.output_count * width * sizeof *contributions);
    if (!row || !margins || !contributions)
        return 1;
    for (size_t f = 0; f < given; f++)
        row[f] = strtof(argv[f + 2], NULL);

    foreloop_gbdt_rows rows;
    foreloop_gbdt_rows_init(&rows, sizeof rows);
    rows.values = row;
    rows.row_count = 1;
    rows.column_count = given;
    foreloop_status status = explain(gbdt, &rows, margins, contributions, &error);
    for (size_t k = 0; status == FORELOOP_OK && k < info.output_count; k++) {
        float *own = contributions + k * width;
        printf("output %zu: margin %.6g, on average %.6g\n", k, (double)margins[k], (double)own[width - 1]);
        print_largest(gbdt, own, info.feature_count);
    }
    free(row);
    free(margins);
    free(contributions);
    foreloop_gbdt_close(gbdt);
    return status == FORELOOP_OK ? 0 : fail(&error);
}
