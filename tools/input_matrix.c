/* Rows of features: NumPy's .npy, or CSV with commas, an optional header line, and empty fields for missing values. */
#include "common/alloc.h"
#include "common/npy.h"
#include "common/number.h"
#include "input.h"
#include <math.h>
#include <string.h>

enum { COLUMNS_MAX = 1 << 20, QUOTE_SIZE = 41 };

/* The fields of one CSV line. */
typedef struct csv_line {
    foreloop_text *fields;
    size_t count, capacity;
    size_t number; /* in the file, from 1 */
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

static int split_line(csv_line *line, char *start, const char *end, const char *name) {
    line->count = 0;
    for (char *cursor = start;; cursor++) {
        if (line->count == COLUMNS_MAX)
            return cli_fail("%s: line %zu has more than %d columns", name, line->number, COLUMNS_MAX);
        if (foreloop_reserve(cli_allocator(), &line->fields, &line->capacity, line->count, line->count + 1,
                             sizeof *line->fields, NULL) != FORELOOP_OK)
            return cli_fail_memory();
        if (!read_field(&cursor, end, &line->fields[line->count]))
            return cli_fail("%s: line %zu, column %zu: the quotes do not match", name, line->number, line->count + 1);
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

/* No number, but meant as a value and not as a column's name: "0x10", "1;2", a number with a tab or a zero byte in it,
 * and what other programs write for a missing value. */
static bool is_bad_value(foreloop_text field) {
    static const char *const missing[] = {"na", "n/a", "#n/a", "<na>", "null", "none", "nil", "?", "-", "."};
    char lower[8];
    size_t digits = field.length > 1 && (field.text[0] == '-' || field.text[0] == '+' || field.text[0] == '.');
    if (field.length == 0 || memchr(field.text, 0, field.length))
        return field.length > 0;
    if (field.text[digits] >= '0' && field.text[digits] <= '9') {
        static const char parts[] = "0123456789+-.,;:'%eE \t\v\f";
        size_t i = digits;
        if (digits + 1 < field.length && (field.text[digits + 1] == 'x' || field.text[digits + 1] == 'X'))
            return true;
        while (i < field.length && strchr(parts, field.text[i]))
            i++;
        return i == field.length;
    }
    if (field.length >= sizeof lower)
        return false;
    for (size_t i = 0; i < field.length; i++)
        lower[i] = (char)(field.text[i] >= 'A' && field.text[i] <= 'Z' ? field.text[i] + ('a' - 'A') : field.text[i]);
    lower[field.length] = '\0';
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        if (strcmp(lower, missing[i]) == 0)
            return true;
    return false;
}

/* A header names columns and holds no value: a row with one bad field among numbers is a bad row. Empty fields and nan
 * are neutral, unless there is nothing else. */
static bool is_header(const csv_line *line) {
    bool has_name = false;
    for (size_t i = 0; i < line->count; i++) {
        float value;
        bool is_value = parse_value(line->fields[i], &value);
        if (is_value ? !isnan(value) : is_bad_value(line->fields[i]))
            return false;
        has_name |= !is_value;
    }
    return has_name;
}

/* 0,1,2 ...: what pandas writes above columns without names, or a row. */
static bool is_numbering(const csv_line *line) {
    for (size_t i = 0; i < line->count; i++) {
        char text[24];
        (void)snprintf(text, sizeof text, "%zu", i);
        if (!foreloop_text_is(line->fields[i], text))
            return false;
    }
    return line->count > 1;
}

/* The field for a message: cut, and whole in spite of zero bytes. */
static const char *quote(foreloop_text field, char text[QUOTE_SIZE]) {
    size_t length = field.length < QUOTE_SIZE ? field.length : QUOTE_SIZE - 1;
    for (size_t i = 0; i < length; i++)
        text[i] = field.text[i] ? field.text[i] : '?';
    text[length] = '\0';
    return text;
}

static int fail_field(const char *name, const char *what, const csv_line *line, size_t column) {
    foreloop_text field = line->fields[column];
    char text[QUOTE_SIZE];
    bool separated = memchr(field.text, ';', field.length) || memchr(field.text, '\t', field.length);
    return cli_fail("%s: %sline %zu, column %zu: '%s' is not a number; %s", name, what, line->number, column + 1,
                    quote(field, text),
                    separated ? "separate columns by commas" : "leave it empty or write NaN for a missing value");
}

/* A header line and nothing else is more likely a row that went wrong. */
static int fail_header_only(const char *name, const csv_line *line) {
    float value;
    size_t column = 0;
    while (parse_value(line->fields[column], &value))
        column++;
    return fail_field(name, "no rows of features in it, only a header, or a row that went wrong: ", line, column);
}

static int append_row(input_matrix *matrix, size_t *capacity, const csv_line *line, const char *name) {
    size_t used = matrix->rows * matrix->columns;
    if (line->count != matrix->columns)
        return cli_fail("%s: line %zu has %zu column%s, the first line has %zu", name, line->number, line->count,
                        cli_plural(line->count), matrix->columns);
    if (line->count > SIZE_MAX - used || foreloop_reserve(cli_allocator(), &matrix->values, capacity, used,
                                                          used + line->count, sizeof(float), NULL) != FORELOOP_OK)
        return cli_fail_memory();
    for (size_t i = 0; i < line->count; i++)
        if (!parse_value(line->fields[i], &matrix->values[used + i]))
            return fail_field(name, "", line, i);
    matrix->rows++;
    return CLI_DONE;
}

static int read_csv(input_matrix *matrix) {
    const char *name = matrix->content.name;
    csv_line line = {NULL, 0, 0, 0}, header = {NULL, 0, 0, 0};
    size_t capacity = 0;
    bool first = true, numbered = false;
    int status = CLI_DONE;

    input_drop_mark(&matrix->content); /* which spreadsheets write */
    char *next = matrix->content.data, *end = next + matrix->content.size;
    while (status == CLI_DONE && next < end) {
        char *start = next, *stop = memchr(next, '\n', (size_t)(end - next));
        if (!stop)
            stop = end;
        next = stop + 1;
        line.number++;
        while (start < stop && is_space(*start))
            start++;
        if (start == stop)
            continue;
        status = split_line(&line, start, stop, name);
        if (status != CLI_DONE)
            break;
        if (first) {
            matrix->columns = line.count;
            numbered = is_numbering(&line);
        }
        if (first && is_header(&line)) {
            header = line;
            matrix->names = header.fields;
            line = (csv_line){NULL, 0, 0, header.number};
        } else {
            status = append_row(matrix, &capacity, &line, name);
        }
        first = false;
    }
    if (status == CLI_DONE && matrix->names && matrix->rows == 0)
        status = fail_header_only(name, &header);
    if (status == CLI_DONE && numbered && matrix->rows > 1)
        cli_note("%s: the first row counts 0, 1, 2 ...: it is taken as features, remove it if it is a header", name);
    foreloop_release(cli_allocator(), line.fields);
    return status;
}

int input_matrix_read(input_matrix *matrix, const char *path) {
    static const char npy_magic[] = "\x93NUMPY";
    foreloop_error error = {.code = FORELOOP_OK};
    int status;

    memset(matrix, 0, sizeof *matrix);
    status = input_read_bytes(&matrix->content, path, INPUT_MATRIX_LIMIT);
    if (status != CLI_DONE)
        return status;
    if (matrix->content.size < 6 || memcmp(matrix->content.data, npy_magic, 6) != 0)
        status = read_csv(matrix);
    else if (foreloop_npy_read(matrix->content.data, matrix->content.size, matrix->content.name, cli_allocator(),
                               &matrix->values, &matrix->rows, &matrix->columns, &error) != FORELOOP_OK)
        status = cli_fail_file(NULL, matrix->content.name, error.message);
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
