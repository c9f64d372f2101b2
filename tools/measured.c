/* Measured candidates from tables, and their arrangement in groups. */
#include "measured.h"
#include "common/sort.h"
#include <math.h>
#include <string.h>

/* ---- Rows ---- */

int measured_add(measured *data, double value, uint64_t id, float **row) {
    const size_t used = data->count * data->columns;
    if (data->columns > SIZE_MAX / sizeof(float) - used ||
        foreloop_reserve(cli_allocator(), &data->rows, &data->row_capacity, used, used + data->columns, sizeof(float),
                         NULL) != FORELOOP_OK ||
        foreloop_reserve(cli_allocator(), &data->values, &data->value_capacity, data->count, data->count + 1,
                         sizeof *data->values, NULL) != FORELOOP_OK ||
        foreloop_reserve(cli_allocator(), &data->ids, &data->id_capacity, data->count, data->count + 1,
                         sizeof *data->ids, NULL) != FORELOOP_OK)
        return cli_fail_memory();
    *row = data->rows + used;
    data->values[data->count] = value;
    data->ids[data->count] = id;
    data->count++;
    return CLI_DONE;
}

static int by_id(const void *a, const void *b, const void *context) {
    const uint64_t *ids = context;
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return ids[x] != ids[y] ? (ids[x] > ids[y]) - (ids[x] < ids[y]) : (x > y) - (x < y);
}

static void move_rows(measured *data, const size_t *order, float *rows, double *values) {
    for (size_t i = 0; i < data->count; i++) {
        memcpy(rows + i * data->columns, data->rows + order[i] * data->columns, data->columns * sizeof *rows);
        values[i] = data->values[order[i]];
        if (i == 0 || data->ids[order[i]] != data->ids[order[i - 1]])
            data->groups[data->group_count++] = i;
    }
    data->groups[data->group_count] = data->count;
}

int measured_arrange(measured *data) {
    size_t *order = foreloop_allocate(cli_allocator(), data->count, sizeof *order);
    float *rows = foreloop_allocate(cli_allocator(), data->count, data->columns * sizeof *rows);
    double *values = foreloop_allocate(cli_allocator(), data->count, sizeof *values);
    data->groups = foreloop_allocate(cli_allocator(), data->count + 1, sizeof *data->groups);
    const bool done = order && rows && values && data->groups;
    if (done) {
        for (size_t i = 0; i < data->count; i++)
            order[i] = i;
        foreloop_sort(order, data->count, sizeof *order, by_id, data->ids);
        move_rows(data, order, rows, values);
        foreloop_release(cli_allocator(), data->rows);
        foreloop_release(cli_allocator(), data->values);
        data->rows = rows;
        data->values = values;
    } else {
        foreloop_release(cli_allocator(), rows);
        foreloop_release(cli_allocator(), values);
    }
    foreloop_release(cli_allocator(), order);
    return done ? CLI_DONE : cli_fail_memory();
}

void measured_close(measured *data) {
    foreloop_release(cli_allocator(), data->rows);
    foreloop_release(cli_allocator(), data->values);
    foreloop_release(cli_allocator(), data->ids);
    foreloop_release(cli_allocator(), data->groups);
    foreloop_release(cli_allocator(), (void *)data->names);
    foreloop_arena_close(&data->texts);
    foreloop_model_close(data->model);
    memset(data, 0, sizeof *data);
}

/* ---- Tables ---- */

static int copy_names(measured *data, const input_matrix *features) {
    data->texts.allocator = cli_allocator();
    data->names = foreloop_allocate(cli_allocator(), features->columns, sizeof *data->names);
    if (!data->names)
        return cli_fail_memory();
    for (size_t i = 0; i < features->columns; i++) {
        data->names[i] = foreloop_arena_text(&data->texts, features->names[i].text, features->names[i].length);
        if (!data->names[i])
            return cli_fail_memory();
    }
    return CLI_DONE;
}

/* Equal numbers have equal ids. */
static uint64_t id_of(float number) {
    uint32_t bits;
    number += 0.0f;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static int fill(measured *data, const input_matrix *features, const input_matrix *groups, const input_matrix *values) {
    data->columns = features->columns;
    for (size_t i = 0; i < features->rows; i++) {
        float *row;
        /* Beyond, float32 takes neighbouring numbers for one. */
        if (!(fabsf(groups->values[i]) < 16777216.0f))
            return cli_fail("%s: row %zu: its group must be a number below 2^24, the same for the rows of a group",
                            groups->content.name, i + 1);
        int status = measured_add(data, (double)values->values[i], id_of(groups->values[i]), &row);
        if (status != CLI_DONE)
            return status;
        memcpy(row, features->values + i * features->columns, features->columns * sizeof *row);
    }
    return features->names ? copy_names(data, features) : CLI_DONE;
}

/* A number for each row. */
static int read_column(input_matrix *matrix, const char *path, size_t rows) {
    int status = input_matrix_read(matrix, path);
    if (status == CLI_DONE && (matrix->rows * matrix->columns != rows || (matrix->rows > 1 && matrix->columns > 1))) {
        status = cli_fail("%s has %zu x %zu numbers, but there are %zu rows of features: give one for each row",
                          matrix->content.name, matrix->rows, matrix->columns, rows);
        input_matrix_close(matrix);
    }
    return status;
}

int measured_read_tables(measured *data, const measured_tables *tables) {
    input_matrix features, groups, values;
    int status = input_matrix_read(&features, tables->features);
    if (status != CLI_DONE)
        return status;
    status = read_column(&groups, tables->groups, features.rows);
    if (status == CLI_DONE) {
        status = read_column(&values, tables->values, features.rows);
        if (status == CLI_DONE) {
            data->relevances = tables->relevances;
            status = fill(data, &features, &groups, &values);
            input_matrix_close(&values);
        }
        input_matrix_close(&groups);
    }
    input_matrix_close(&features);
    return status == CLI_DONE ? measured_arrange(data) : status;
}
