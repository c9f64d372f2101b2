/* Whole files, texts and tuning records. */
#include "input.h"
#include "common/alloc.h"
#include "common/json.h"
#include "output.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Whole files ---- */

static bool is_standard_input(const char *path) {
    return !path || strcmp(path, "-") == 0;
}

const char *input_name(const char *path) {
    return is_standard_input(path) ? "standard input" : path;
}

static int fail_read(const char *name) {
    return cli_fail("cannot read %s: %s", name, strerror(errno));
}

static int fail_limit(const char *name, size_t limit) {
    char text[OUTPUT_NUMBER_SIZE];
    return cli_fail("%s is too large: more than %s", name, output_bytes((double)limit, text));
}

/* Reads up to the end. */
static int read_all(input_file *file, int descriptor, size_t limit) {
    size_t capacity = 0;
    for (;;) {
        ssize_t step;
        if (foreloop_reserve(cli_allocator(), &file->data, &capacity, file->size, file->size + 65536, 1, NULL) !=
            FORELOOP_OK)
            return cli_fail("out of memory: %s is too large", file->name);
        step = read(descriptor, file->data + file->size, capacity - file->size - 1);
        if (step < 0 && errno == EINTR)
            continue;
        if (step < 0)
            return fail_read(file->name);
        if (step == 0)
            break;
        file->size += (size_t)step;
        if (file->size > limit)
            return fail_limit(file->name, limit);
    }
    file->data[file->size] = '\0';
    return CLI_DONE;
}

int input_read_bytes(input_file *file, const char *path, size_t limit) {
    int descriptor = STDIN_FILENO, status;
    memset(file, 0, sizeof *file);
    file->name = input_name(path);
    if (!is_standard_input(path) && (descriptor = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        return fail_read(path);
    status = read_all(file, descriptor, limit);
    if (descriptor != STDIN_FILENO)
        (void)close(descriptor);
    if (status != CLI_DONE)
        input_close(file);
    return status;
}

size_t input_mark_length(const char *text, size_t length) {
    return length >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
}

void input_drop_mark(input_file *file) {
    size_t mark = input_mark_length(file->data, file->size);
    if (mark == 0)
        return;
    file->size -= mark;
    memmove(file->data, file->data + mark, file->size + 1);
}

int input_check_program(const char *text, size_t length, const char *name) {
    foreloop_error error = {.code = FORELOOP_OK};
    size_t needed = 0;
    if (length > 0 && memchr(text, 0, length))
        return cli_fail("%s is not text: give the program as TVM prints it", name);
    if (foreloop_canonical_text(text, length, NULL, 0, &needed, &error) != FORELOOP_OK)
        return cli_fail_file(NULL, name, error.message);
    if (needed > 0)
        return CLI_DONE;
    return cli_fail("%s %sholds no program text: give the program as TVM prints it", name,
                    length == 0 ? "is empty: it " : "");
}

int input_read(input_file *file, const char *path) {
    int status = input_read_bytes(file, path, INPUT_TEXT_LIMIT);
    if (status != CLI_DONE)
        return status;
    input_drop_mark(file);
    status = input_check_program(file->data, file->size, file->name);
    if (status != CLI_DONE)
        input_close(file);
    return status;
}

void input_close(input_file *file) {
    foreloop_release(cli_allocator(), file->data);
    memset(file, 0, sizeof *file);
}

/* ---- Texts ---- */

struct input_texts {
    bool jsonl, over;
    input_file whole;
    FILE *lines;
    const char *name;
    char *line;
    size_t line_size, line_capacity;
    unsigned long long line_number;
    char place[40];     /* the line's name in messages */
    foreloop_json json; /* of the current line; owns the text */
};

int input_texts_open(input_texts **texts, const char *path, bool jsonl) {
    input_texts *t = calloc(1, sizeof *t);
    if (!t)
        return cli_fail_memory();
    t->jsonl = jsonl;
    t->name = input_name(path);
    if (!jsonl) {
        int status = input_read_bytes(&t->whole, path, INPUT_TEXT_LIMIT);
        if (status != CLI_DONE) {
            input_texts_close(t);
            return status;
        }
    } else {
        t->lines = is_standard_input(path) ? stdin : fopen(path, "r");
        if (!t->lines) {
            int status = fail_read(path);
            input_texts_close(t);
            return status;
        }
    }
    *texts = t;
    return CLI_DONE;
}

void input_texts_close(input_texts *texts) {
    if (!texts)
        return;
    input_close(&texts->whole);
    foreloop_json_close(&texts->json);
    if (texts->lines && texts->lines != stdin)
        (void)fclose(texts->lines);
    foreloop_release(cli_allocator(), texts->line);
    free(texts);
}

const char *input_texts_name(const input_texts *texts) {
    return texts->jsonl ? texts->place : texts->name;
}

static bool is_blank(const char *line, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r' && line[i] != '\n')
            return false;
    return true;
}

/* Reads the next line, without its end, into t->line; *more is false behind the last one. */
static int next_line(input_texts *t, bool *more) {
    int c;
    t->line_size = 0;
    while ((c = getc(t->lines)) != EOF && c != '\n') {
        if (t->line_size == INPUT_TEXT_LIMIT)
            return fail_limit("a line of --jsonl", INPUT_TEXT_LIMIT);
        if (foreloop_reserve(cli_allocator(), &t->line, &t->line_capacity, t->line_size, t->line_size + 1, 1, NULL) !=
            FORELOOP_OK)
            return cli_fail_memory();
        t->line[t->line_size++] = (char)c;
    }
    if (c == EOF && ferror(t->lines))
        return fail_read(t->name);
    *more = c != EOF || t->line_size > 0;
    return CLI_DONE;
}

static int next_json_text(input_texts *t, const char **text, size_t *length, bool *more) {
    foreloop_error error = {.code = FORELOOP_OK};
    foreloop_text value = {NULL, 0};
    char *line;
    size_t size, mark;

    do {
        int status = next_line(t, more);
        if (status != CLI_DONE || !*more)
            return status;
        t->line_number++;
        mark = t->line_number == 1 ? input_mark_length(t->line, t->line_size) : 0;
        line = t->line + mark;
        size = t->line_size - mark;
    } while (is_blank(line, size));
    (void)snprintf(t->place, sizeof t->place, "line %llu", t->line_number);
    foreloop_json_close(&t->json);
    foreloop_json_open(&t->json, cli_allocator(), line, size, t->place, &error);
    if (foreloop_json_string(&t->json, &value) != FORELOOP_OK || foreloop_json_end(&t->json) != FORELOOP_OK)
        return cli_fail("%s: %s (--jsonl takes one JSON string a line)", t->name, error.message);
    *text = value.text;
    *length = value.length;
    *more = true;
    return CLI_DONE;
}

int input_texts_next(input_texts *texts, const char **text, size_t *length, bool *more) {
    if (texts->jsonl)
        return next_json_text(texts, text, length, more);
    *more = !texts->over;
    texts->over = true;
    *text = texts->whole.data;
    *length = texts->whole.size;
    return CLI_DONE;
}

/* ---- Tuning records ---- */

static bool is_regular_file(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

int input_records_open(input_records *input, const char *path, bool full_trace) {
    foreloop_error error = {.code = FORELOOP_OK};
    foreloop_records_options options;
    foreloop_status status;

    memset(input, 0, sizeof *input);
    input->name = input_name(path);
    foreloop_records_options_init(&options, sizeof options);
    options.full_trace = full_trace;
    if (is_regular_file(path)) {
        status = foreloop_records_open(&input->records, path, &options, &error);
    } else {
        int read_status = input_read_bytes(&input->content, path, INPUT_MATRIX_LIMIT);
        if (read_status != CLI_DONE)
            return read_status;
        status =
            foreloop_records_open_memory(&input->records, input->content.data, input->content.size, &options, &error);
    }
    if (status == FORELOOP_OK)
        return CLI_DONE;
    input_close(&input->content);
    return cli_fail_file(NULL, input->name, error.message);
}

void input_records_close(input_records *input) {
    foreloop_records_close(input->records);
    input_close(&input->content);
}

int input_records_next(input_records *input, foreloop_record *record, bool *more) {
    for (;;) {
        foreloop_error error = {.code = FORELOOP_OK};
        record->size = sizeof *record;
        foreloop_status status = foreloop_records_next(input->records, record, &error);
        *more = status == FORELOOP_OK;
        if (status == FORELOOP_OK || status == FORELOOP_END)
            return CLI_DONE;
        /* These are not the line's fault, and the next line would meet them again. */
        if (status == FORELOOP_ERROR_MEMORY || status == FORELOOP_ERROR_IO || status == FORELOOP_ERROR_ARGUMENT)
            return cli_fail("%s: %s", input->name, error.message);
        (void)cli_fail("%s: skipped: %s", input->name, error.message);
        input->malformed++;
    }
}
