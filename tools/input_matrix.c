/* Rows of features: NumPy's .npy, or CSV with commas, an optional header line, and empty fields for missing values. */
#include "common/alloc.h"
#include "common/npy.h"
#include "common/number.h"
#include "input.h"
#include <math.h>
#include <string.h>

/* The fields of one CSV line. */
typedef struct csv_line {
    foreloop_text *fields;
    size_t count, capacity;
} csv_line;

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

/* Reads the field at *cursor, without blanks around it, and stops at the comma or the line's end. A field in quotes
 * holds commas, and two quotes for one; it is rewritten in place. False when the quotes do not match. */
static bool read_field(char **cursor, const char *end, foreloop_text *field) {
    char *at = *cursor, *start, *stop;
    while (at < end && is_space(*at))
        at++;
    if (at < end && *at == '"') {
        start = stop = ++at;
        while (at < end && (*at != '"' || (at + 1 < end && at[1] == '"'))) {
            at += *at == '"';
            *stop++ = *at++;
        }
        if (at++ == end)
            return false;
        while (at < end && is_space(*at))
            at++;
        if (at < end && *at != ',')
            return false;
    } else {
        start = at;
        while (at < end && *at != ',')
            at++;
        stop = at;
        while (stop > start && is_space(stop[-1]))
            stop--;
    }
    *field = (foreloop_text){start, (size_t)(stop - start)};
    *cursor = at;
    return true;
}

static int split_line(csv_line *line, char *start, const char *end, const char *name, size_t number) {
    line->count = 0;
    for (char *cursor = start;; cursor++) {
        if (foreloop_reserve(cli_allocator(), &line->fields, &line->capacity, line->count, line->count + 1,
                             sizeof *line->fields, NULL) != FORELOOP_OK)
            return cli_fail_memory();
        if (!read_field(&cursor, end, &line->fields[line->count]))
            return cli_fail("%s: line %zu, column %zu: the quotes do not match", name, number, line->count + 1);
        line->count++;
        if (cursor >= end)
            return CLI_DONE;
    }
}

/* An empty field is a missing value, which is NaN. */
static bool parse_value(foreloop_text field, float *value) {
    *value = NAN;
    return field.length == 0 || foreloop_parse_float(field.text, field.length, value);
}

static bool is_header(const csv_line *line) {
    float value;
    for (size_t i = 0; i < line->count; i++)
        if (!parse_value(line->fields[i], &value))
            return true;
    return false;
}

static int append_row(input_matrix *matrix, size_t *capacity, const csv_line *line, const char *name, size_t number) {
    size_t used = matrix->rows * matrix->columns;
    if (line->count != matrix->columns)
        return cli_fail("%s: line %zu has %zu columns, the first line has %zu", name, number, line->count,
                        matrix->columns);
    if (line->count > SIZE_MAX - used || foreloop_reserve(cli_allocator(), &matrix->values, capacity, used,
                                                          used + line->count, sizeof(float), NULL) != FORELOOP_OK)
        return cli_fail_memory();
    for (size_t i = 0; i < line->count; i++)
        if (!parse_value(line->fields[i], &matrix->values[used + i]))
            return cli_fail("%s: line %zu, column %zu: '%.*s' is not a number (an empty field or nan means missing)",
                            name, number, i + 1, FORELOOP_QUOTED(line->fields[i].text, line->fields[i].length));
    matrix->rows++;
    return CLI_DONE;
}

static int read_csv(input_matrix *matrix) {
    const char *name = matrix->content.name;
    char *next = matrix->content.data, *end = next + matrix->content.size;
    csv_line line = {NULL, 0, 0};
    size_t capacity = 0;
    bool first = true;
    int status = CLI_DONE;

    if (matrix->content.size >= 3 && memcmp(next, "\xEF\xBB\xBF", 3) == 0)
        next += 3; /* the byte order mark that spreadsheets write */
    for (size_t number = 1; status == CLI_DONE && next < end; number++) {
        char *start = next, *stop = memchr(next, '\n', (size_t)(end - next));
        if (!stop)
            stop = end;
        next = stop + 1;
        while (start < stop && is_space(*start))
            start++;
        if (start == stop)
            continue;
        status = split_line(&line, start, stop, name, number);
        if (status != CLI_DONE)
            break;
        if (first)
            matrix->columns = line.count;
        if (first && is_header(&line)) {
            matrix->names = line.fields;
            line = (csv_line){NULL, 0, 0};
        } else {
            status = append_row(matrix, &capacity, &line, name, number);
        }
        first = false;
    }
    foreloop_release(cli_allocator(), line.fields);
    return status;
}

int input_matrix_read(input_matrix *matrix, const char *path) {
    static const char npy_magic[] = "\x93NUMPY";
    foreloop_error error = {.code = FORELOOP_OK};
    int status;

    memset(matrix, 0, sizeof *matrix);
    status = input_read(&matrix->content, path);
    if (status != CLI_DONE)
        return status;
    if (matrix->content.size < 6 || memcmp(matrix->content.data, npy_magic, 6) != 0)
        status = read_csv(matrix);
    else if (foreloop_npy_read(matrix->content.data, matrix->content.size, matrix->content.name, cli_allocator(),
                               &matrix->values, &matrix->rows, &matrix->columns, &error) != FORELOOP_OK)
        status = cli_fail("%s", error.message);
    if (status == CLI_DONE && matrix->rows == 0)
        status = cli_fail("%s: no rows of features in it", matrix->content.name);
    if (status != CLI_DONE)
        input_matrix_close(matrix);
    return status;
}

void input_matrix_close(input_matrix *matrix) {
    foreloop_release(cli_allocator(), matrix->values);
    foreloop_release(cli_allocator(), matrix->names);
    input_close(&matrix->content);
    memset(matrix, 0, sizeof *matrix);
}
