/* Models that XGBoost wrote: margins equal to its own to the bit, predictions within 1e-6. */
#include "gbdt_test.h"
#include <math.h>

static size_t count_wrong_margins(const foreloop_gbdt *gbdt, const foreloop_gbdt_info *info, const float *rows,
                                  size_t row_count, size_t stride, const float *table) {
    size_t wrong = 0, columns = info->output_count + info->prediction_count;
    float *outputs = malloc(row_count * info->output_count * sizeof *outputs);
    if (!outputs || foreloop_gbdt_predict(gbdt, rows, row_count, stride, 1, outputs, NULL) != FORELOOP_OK)
        exit(1);
    for (size_t r = 0; r < row_count; r++) {
        for (size_t k = 0; k < info->output_count; k++)
            wrong += bits_of(outputs[r * info->output_count + k]) != bits_of(table[r * columns + k]);
        wrong += bits_of(foreloop_gbdt_margin(gbdt, rows + r * stride)) != bits_of(table[r * columns]);
    }
    free(outputs);
    return wrong;
}

static size_t count_wrong_predictions(const foreloop_gbdt *gbdt, const foreloop_gbdt_info *info, const float *rows,
                                      size_t row_count, size_t stride, const float *table) {
    size_t wrong = 0, columns = info->output_count + info->prediction_count;
    float *outputs = malloc(row_count * info->output_count * sizeof *outputs);
    if (!outputs || foreloop_gbdt_predict(gbdt, rows, row_count, stride, 0, outputs, NULL) != FORELOOP_OK)
        exit(1);
    for (size_t r = 0; r < row_count; r++)
        for (size_t k = 0; k < info->prediction_count; k++) {
            float expected = table[r * columns + info->output_count + k];
            float difference = fabsf(outputs[r * info->prediction_count + k] - expected);
            wrong += !(difference <= 1e-6f * fmaxf(fabsf(expected), 1.0f));
        }
    free(outputs);
    return wrong;
}

static void check_case(const char *root, char *line, const float *rows, size_t row_count, size_t stride) {
    char model[128], expected[128], objective[64], base[16];
    size_t size, expected_rows, columns;
    foreloop_gbdt_options options;
    foreloop_error error = {0};
    foreloop_gbdt *gbdt = NULL;
    foreloop_gbdt_options_init(&options, sizeof options);
    if (sscanf(line, "%127s %127s %63s %15s %zu %zu", model, expected, objective, base, &options.num_class,
               &options.num_parallel_tree) != 6)
        exit(1);
    if (strcmp(base, "-") != 0) {
        options.objective = objective;
        options.has_base_score = 1;
        options.base_score = float_of((uint32_t)strtoul(base, NULL, 16));
    }
    char *data = read_file(root, model, &size);
    float *table = read_table(root, expected, &expected_rows, &columns);
    foreloop_status status = foreloop_gbdt_open_memory(&gbdt, data, size, &options, &error);
    if (!CHECK(status == FORELOOP_OK, "%s opens %s", model, error.message))
        return;
    foreloop_gbdt_info info = {.size = sizeof info};
    foreloop_gbdt_get_info(gbdt, &info);
    if (CHECK(expected_rows == row_count && columns == info.output_count + info.prediction_count, "%s: shape", model)) {
        CHECK(count_wrong_margins(gbdt, &info, rows, row_count, stride, table) == 0, "%s: margins", model);
        CHECK(count_wrong_predictions(gbdt, &info, rows, row_count, stride, table) == 0, "%s: predictions", model);
    }
    foreloop_gbdt_close(gbdt);
    foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    foreloop_release(&allocator, table);
    free(data);
}

int main(int argc, char **argv) {
    const char *root = argc > 1 ? argv[1] : ".";
    size_t row_count, stride, size;
    float *rows = read_table(root, "rows.npy", &row_count, &stride);
    char *cases = read_file(root, "cases.txt", &size), *rest = NULL;
    for (char *line = strtok_r(cases, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        check_case(root, line, rows, row_count, stride);
    foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    foreloop_release(&allocator, rows);
    free(cases);
    return tap_done();
}
