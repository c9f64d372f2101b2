/* Standard output: error state, JSON lines, tables. */
#include "output.h"
#include "cli.h"
#include "common/alloc.h"
#include "common/number.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Why writing failed first, 0 before it did: stdio keeps only the fact. */
static int output_errno;

/* To be called when something was just written, before errno can change. */
static void keep_errno(void) {
    if (ferror(stdout) && !output_errno)
        output_errno = errno;
}

bool output_ok(void) {
    keep_errno();
    return !ferror(stdout);
}

bool output_finish(void) {
    if (fflush(stdout) == 0 && !ferror(stdout))
        return true;
    keep_errno();
    (void)cli_fail("cannot write to standard output: %s: the output is not complete", strerror(output_errno));
    return false;
}

/* ---- JSON ---- */

static cJSON *json_number(const char *text, bool finite) {
    return finite ? cJSON_CreateRaw(text) : cJSON_CreateNull();
}

cJSON *output_json_float(float value) {
    char text[FORELOOP_NUMBER_TEXT_SIZE];
    (void)foreloop_format_float(value, text);
    return json_number(text, isfinite(value));
}

cJSON *output_json_double(double value) {
    char text[FORELOOP_NUMBER_TEXT_SIZE];
    (void)foreloop_format_double(value, text);
    return json_number(text, isfinite(value));
}

/* Not by cJSON_CreateNumber, which prints a number, reads it back and compares. */
cJSON *output_json_count(uint64_t value) {
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, value);
    return cJSON_CreateRaw(text);
}

cJSON *output_json_floats(const float *values, size_t count) {
    cJSON *array = cJSON_CreateArray();
    for (size_t i = 0; array && i < count; i++)
        if (!output_json_append(array, output_json_float(values[i]))) {
            cJSON_Delete(array);
            return NULL;
        }
    return array;
}

bool output_json_add(cJSON *object, const char *name, cJSON *item) {
    if (object && item && cJSON_AddItemToObject(object, name, item))
        return true;
    cJSON_Delete(item);
    return false;
}

bool output_json_append(cJSON *array, cJSON *item) {
    if (array && item && cJSON_AddItemToArray(array, item))
        return true;
    cJSON_Delete(item);
    return false;
}

bool output_json_text(const char *text) {
    cJSON *value = cJSON_CreateString(text);
    char *quoted = value ? cJSON_PrintUnformatted(value) : NULL;
    cJSON_Delete(value);
    if (!quoted)
        return false;
    (void)fputs(quoted, stdout);
    keep_errno();
    cJSON_free(quoted);
    return true;
}

bool output_json_line(cJSON *value) {
    char *text = value ? cJSON_PrintUnformatted(value) : NULL;
    cJSON_Delete(value);
    if (!text)
        return false;
    (void)puts(text);
    keep_errno();
    cJSON_free(text);
    return true;
}

/* ---- Numbers ---- */

const char *output_seconds(double seconds, char buffer[OUTPUT_NUMBER_SIZE]) {
    static const struct {
        double unit;
        const char *name;
    } units[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
    size_t i = 0;
    while (i + 1 < sizeof units / sizeof *units && seconds < units[i].unit)
        i++;
    (void)snprintf(buffer, OUTPUT_NUMBER_SIZE, "%.3f %s", seconds / units[i].unit, units[i].name);
    return buffer;
}

const char *output_bytes(double bytes, char buffer[OUTPUT_NUMBER_SIZE]) {
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    size_t i = 0;
    while (i + 1 < sizeof units / sizeof *units && bytes >= 1024) {
        bytes /= 1024;
        i++;
    }
    (void)snprintf(buffer, OUTPUT_NUMBER_SIZE, bytes == floor(bytes) ? "%.0f %s" : "%.1f %s", bytes, units[i]);
    return buffer;
}

void output_floats(const float *values, size_t count) {
    char text[FORELOOP_NUMBER_TEXT_SIZE];
    for (size_t i = 0; i < count; i++) {
        (void)foreloop_format_float(values[i], text);
        printf("%s%s", i ? " " : "", text);
    }
    (void)putchar('\n');
    keep_errno();
}

/* ---- Tables ---- */

struct output_row {
    size_t first_cell;
    output_style style;
};

static bool has_colour(void) {
    const char *no_colour = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    return isatty(STDOUT_FILENO) && !(no_colour && *no_colour) && terminal && strcmp(terminal, "dumb") != 0;
}

const char *output_style_begin(output_style style) {
    static const char *const sequences[OUTPUT_STYLES] = {"", "\033[1m", "\033[32m", "\033[2m"};
    return style != OUTPUT_PLAIN && has_colour() ? sequences[style] : "";
}

const char *output_style_end(output_style style) {
    return style != OUTPUT_PLAIN && has_colour() ? "\033[0m" : "";
}

void output_table_begin(output_table *table, const char *alignment) {
    memset(table, 0, sizeof *table);
    table->alignment = alignment;
    table->column_count = strlen(alignment);
    table->texts.allocator = cli_allocator();
}

void output_table_row(output_table *table, output_style style) {
    if (foreloop_reserve(cli_allocator(), &table->rows, &table->row_capacity, table->row_count, table->row_count + 1,
                         sizeof *table->rows, NULL) != FORELOOP_OK) {
        table->failed = true;
        return;
    }
    table->rows[table->row_count++] = (struct output_row){table->cell_count, style};
}

void output_table_cell(output_table *table, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    cli_clean(text);
    char *copy = foreloop_arena_text(&table->texts, text, strlen(text));
    if (!copy || foreloop_reserve(cli_allocator(), &table->cells, &table->cell_capacity, table->cell_count,
                                  table->cell_count + 1, sizeof *table->cells, NULL) != FORELOOP_OK) {
        table->failed = true;
        return;
    }
    table->cells[table->cell_count++] = copy;
}

/* Columns on a terminal: code points, near enough for the texts that occur here. */
static int text_width(const char *text) {
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xC0) != 0x80;
    return width;
}

static size_t row_end(const output_table *table, size_t row) {
    return row + 1 < table->row_count ? table->rows[row + 1].first_cell : table->cell_count;
}

static void print_row(const output_table *table, size_t row, const int *widths, int indent) {
    const char *const *cells = table->cells + table->rows[row].first_cell;
    size_t count = row_end(table, row) - table->rows[row].first_cell;
    while (count > 0 && !*cells[count - 1])
        count--;
    printf("%*s%s", indent, "", output_style_begin(table->rows[row].style));
    for (size_t i = 0; i < count; i++) {
        int padding = widths[i] - text_width(cells[i]);
        bool last = i + 1 == count;
        if (table->alignment[i] == 'r')
            printf("%*s%s", padding, "", cells[i]);
        else
            printf("%s%*s", cells[i], last ? 0 : padding, ""); /* no blanks at a line's end */
        if (!last)
            printf("  ");
    }
    printf("%s\n", output_style_end(table->rows[row].style));
    keep_errno();
}

bool output_table_print(output_table *table, int indent) {
    enum { COLUMNS_MAX = 16 };
    int widths[COLUMNS_MAX] = {0};
    bool complete = !table->failed && table->column_count <= COLUMNS_MAX;

    for (size_t row = 0; complete && row < table->row_count; row++)
        for (size_t i = table->rows[row].first_cell; i < row_end(table, row); i++) {
            int *width = &widths[i - table->rows[row].first_cell];
            int needed = text_width(table->cells[i]);
            if (needed > *width)
                *width = needed;
        }
    for (size_t row = 0; complete && row < table->row_count && output_ok(); row++)
        print_row(table, row, widths, indent);
    foreloop_arena_close(&table->texts);
    foreloop_release(cli_allocator(), table->cells);
    foreloop_release(cli_allocator(), table->rows);
    memset(table, 0, sizeof *table);
    return complete;
}
