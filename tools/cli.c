/* Option parsing from tables, help, and messages. */
#include "cli.h"
#include "common/alloc.h"
#include "common/number.h"
#include "common/utf8.h"
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MESSAGE_MAX_LENGTH = 1200, PATH_HEAD = 160, NAME_MAX_LENGTH = 32, OPTIONS_MAX = 32, HELP_COLUMN = 28 };

/* ---- Messages ---- */

void cli_clean(char *text) {
    size_t length = strlen(text), kept = 0, step;
    for (size_t i = 0; i < length; i += step) {
        uint32_t code_point;
        bool valid = foreloop_utf8_decode(text + i, length - i, &code_point, &step);
        if (!valid || code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0) || code_point == 0x2028 ||
            code_point == 0x2029) {
            text[kept++] = '?';
        } else {
            memmove(text + kept, text + i, step);
            kept += step;
        }
    }
    text[kept] = '\0';
}

/* Leaves out the middle of a clean text that is too long: a message names its file at either end, and must keep the
 * cause at the other. */
static void shorten(char *text) {
    static const char gap[] = " ... ";
    size_t length = strlen(text), head = MESSAGE_MAX_LENGTH / 2, tail = length - head;
    if (length <= MESSAGE_MAX_LENGTH + sizeof gap)
        return;
    while (((unsigned char)text[head] & 0xC0) == 0x80)
        head--;
    while (((unsigned char)text[tail] & 0xC0) == 0x80)
        tail++;
    memcpy(text + head, gap, sizeof gap - 1);
    memmove(text + head + sizeof gap - 1, text + tail, length - tail + 1);
}

/* The message in memory of malloc, clean and short; NULL when memory is out. */
static char *format_message(const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    char *message = length < 0 ? NULL : malloc((size_t)length + 1);
    if (message) {
        (void)vsnprintf(message, (size_t)length + 1, format, again);
        cli_clean(message);
        shorten(message);
    }
    va_end(again);
    return message;
}

static void print_line(const char *prefix, const char *format, va_list arguments) {
    char *message = format_message(format, arguments);
    (void)fprintf(stderr, "%s: %s\n", prefix, message ? message : "out of memory");
    free(message);
}

int cli_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_line("foreloop", format, arguments);
    va_end(arguments);
    return CLI_BAD_INPUT;
}

int cli_fail_memory(void) {
    return cli_fail("out of memory");
}

int cli_fail_file(const char *action, const char *path, const char *message) {
    static const char opening[] = "cannot open: ";
    char *name = malloc(strlen(path) + 1);
    bool named;
    if (!name)
        return cli_fail_memory();
    /* The library cleans paths too, and leaves the middle out of long ones. */
    memcpy(name, path, strlen(path) + 1);
    cli_clean(name);
    if (strlen(name) > PATH_HEAD)
        name[PATH_HEAD] = '\0';
    named = strstr(message, name) != NULL;
    free(name);
    if (action && strncmp(message, opening, sizeof opening - 1) == 0)
        message += sizeof opening - 1;
    if (!action)
        return named ? cli_fail("%s", message) : cli_fail("%s: %s", path, message);
    return named ? cli_fail("%s: %s", action, message) : cli_fail("%s %s: %s", action, path, message);
}

int cli_fail_usage(const cli_command *command, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *message = format_message(format, arguments);
    va_end(arguments);
    (void)cli_fail("%s: %s (try 'foreloop %s --help')", command->name, message ? message : "out of memory",
                   command->name);
    free(message);
    return CLI_USAGE;
}

void cli_note(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_line("foreloop: note", format, arguments);
    va_end(arguments);
}

const char *cli_plural(uint64_t count) {
    return count == 1 ? "" : "s";
}

double cli_clock(void) {
    struct timespec now;
    return clock_gettime(CLOCK_MONOTONIC, &now) == 0 ? (double)now.tv_sec + 1e-9 * (double)now.tv_nsec : 0;
}

const foreloop_allocator *cli_allocator(void) {
    static foreloop_allocator allocator;
    if (!allocator.allocate)
        allocator = foreloop_allocator_or_default(NULL);
    return &allocator;
}

/* ---- Hints ---- */

/* The number of insertions, deletions and replacements that turn a into b; names that are too long are far. */
static size_t edit_distance(const char *a, const char *b) {
    size_t row[NAME_MAX_LENGTH + 1];
    size_t length = strlen(b);
    if (strlen(a) > NAME_MAX_LENGTH || length > NAME_MAX_LENGTH)
        return NAME_MAX_LENGTH;
    for (size_t j = 0; j <= length; j++)
        row[j] = j;
    for (size_t i = 0; a[i]; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < length; j++) {
            size_t best = diagonal + (a[i] != b[j]);
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j + 1] + 1 < best)
                best = row[j + 1] + 1;
            diagonal = row[j + 1];
            row[j + 1] = best;
        }
    }
    return row[length];
}

const char *cli_nearest(const char *given, const char *const *names) {
    const char *nearest = NULL;
    size_t least = 3; /* more edits than two are another word, not a slip */
    for (; *names; names++) {
        size_t distance = edit_distance(given, *names);
        if (distance < least && distance < strlen(*names)) {
            least = distance;
            nearest = *names;
        }
    }
    return nearest;
}

/* ---- Options ---- */

static const cli_option *find_option(const cli_command *command, const char *name, size_t length) {
    for (const cli_option *option = command->options; option->name; option++)
        if (strlen(option->name) == length && memcmp(option->name, name, length) == 0)
            return option;
    return NULL;
}

static const cli_option *find_letter(const cli_command *command, char letter) {
    for (const cli_option *option = command->options; option->name; option++)
        if (option->letter == letter)
            return option;
    return NULL;
}

static int fail_unknown(const cli_command *command, const char *argument, const char *name, size_t length) {
    const char *names[OPTIONS_MAX + 2];
    char typed[NAME_MAX_LENGTH + 2];
    size_t count = 0;
    const char *hint;

    for (const cli_option *option = command->options; option->name && count < OPTIONS_MAX; option++)
        names[count++] = option->name;
    names[count++] = "help";
    names[count] = NULL;
    (void)snprintf(typed, sizeof typed, "%.*s", length > NAME_MAX_LENGTH ? NAME_MAX_LENGTH + 1 : (int)length, name);
    hint = cli_nearest(typed, names);
    return hint ? cli_fail_usage(command, "unknown option '%s', did you mean '--%s'?", argument, hint)
                : cli_fail_usage(command, "unknown option '%s'", argument);
}

static int set_count(const cli_command *command, const cli_option *option, const char *text, char *target) {
    cli_count count = {true, 0};
    int64_t parsed = 0;
    size_t length = strlen(text);
    bool positive = option->type == CLI_POSITIVE;
    bool is_number = length > 0 && strspn(text, "0123456789") == length;
    bool in_range = is_number && foreloop_parse_int64(text, length, &parsed);
    if (is_number && !in_range)
        return cli_fail_usage(command, "--%s takes a whole number up to %" PRId64 ", not '%.40s'", option->name,
                              INT64_MAX, text);
    if (!in_range || (positive && parsed == 0))
        return cli_fail_usage(command, "--%s takes a whole number%s, not '%.40s'", option->name,
                              positive ? " from 1" : " in digits", text);
    count.value = (uint64_t)parsed;
    memcpy(target, &count, sizeof count);
    return CLI_DONE;
}

static int set_float(const cli_command *command, const cli_option *option, const char *text, char *target) {
    cli_float number = {true, 0};
    bool is_number = foreloop_parse_float(text, strlen(text), &number.value);
    if (is_number && isinf(number.value) && strpbrk(text, "0123456789"))
        return cli_fail_usage(command, "--%s takes a number from -3.4028235e38 to 3.4028235e38, not '%.40s'",
                              option->name, text);
    if (!is_number || !isfinite(number.value))
        return cli_fail_usage(command, "--%s takes a finite number, not '%.40s'", option->name, text);
    memcpy(target, &number, sizeof number);
    return CLI_DONE;
}

void cli_texts_close(cli_texts *texts) {
    foreloop_release(cli_allocator(), (void *)texts->items);
    memset(texts, 0, sizeof *texts);
}

static int add_text(char *target, const char *text) {
    cli_texts texts;
    memcpy(&texts, target, sizeof texts);
    if (foreloop_reserve(cli_allocator(), (void *)&texts.items, &texts.capacity, texts.count, texts.count + 1,
                         sizeof *texts.items, NULL) != FORELOOP_OK)
        return cli_fail_memory();
    texts.items[texts.count++] = text;
    memcpy(target, &texts, sizeof texts);
    return CLI_DONE;
}

/* Stores an option's value; returns CLI_DONE or CLI_USAGE. */
static int set_value(const cli_command *command, const cli_option *option, const char *text, void *values) {
    char *target = (char *)values + option->offset;
    bool flag = true;

    switch (option->type) {
    case CLI_FLAG:
        memcpy(target, &flag, sizeof flag);
        return CLI_DONE;
    case CLI_TEXT:
    case CLI_TEXTS:
        if (!*text)
            return cli_fail_usage(command, "the value of --%s is empty", option->name);
        if (option->type == CLI_TEXTS)
            return add_text(target, text);
        memcpy(target, &text, sizeof text);
        return CLI_DONE;
    case CLI_COUNT:
    case CLI_POSITIVE:
        return set_count(command, option, text, target);
    case CLI_FLOAT:
        return set_float(command, option, text, target);
    }
    return CLI_USAGE;
}

/* Parses the option at argv[*index] and moves *index to its last argument. */
static int parse_option(const cli_command *command, int argc, char **argv, int *index, void *values) {
    const char *argument = argv[*index];
    const char *value = NULL;
    const cli_option *option;

    if (argument[1] == '-') {
        const char *name = argument + 2;
        size_t length = strcspn(name, "=");
        option = find_option(command, name, length);
        if (!option)
            return fail_unknown(command, argument, name, length);
        if (name[length] == '=')
            value = name + length + 1;
    } else {
        option = find_letter(command, argument[1]);
        if (!option)
            return fail_unknown(command, argument, argument + 1, strlen(argument + 1));
        if (argument[2])
            value = argument + 2;
    }
    if (option->type == CLI_FLAG && value)
        return cli_fail_usage(command, "--%s takes no value", option->name);
    if (option->type != CLI_FLAG && !value) {
        if (*index + 1 >= argc)
            return cli_fail_usage(command, "'%s' needs a value: %s", argument, option->value);
        value = argv[++*index];
    }
    return set_value(command, option, value, values);
}

bool cli_parse(const cli_command *command, int argc, char **argv, void *values, int *status) {
    const char *operand = NULL;
    bool only_operands = false;

    for (int i = 0; i < argc; i++) {
        const char *argument = argv[i];
        if (only_operands || argument[0] != '-' || !argument[1]) {
            if (!command->takes_operand || operand) {
                *status = cli_fail_usage(command, "unexpected argument '%s'", argument);
                return false;
            }
            operand = argument;
            if (!*operand) {
                *status = cli_fail_usage(command, "an argument is empty");
                return false;
            }
        } else if (strcmp(argument, "--") == 0) {
            only_operands = true;
        } else if (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0) {
            cli_print_help(command);
            *status = CLI_DONE;
            return false;
        } else {
            *status = parse_option(command, argc, argv, &i, values);
            if (*status != CLI_DONE)
                return false;
        }
    }
    if (command->takes_operand)
        memcpy((char *)values + command->operand_offset, &operand, sizeof operand);
    return true;
}

/* ---- Help ---- */

static void print_option(const char *name, char letter, const char *value, const char *help) {
    char left[80];
    char short_form[5] = "    ";
    if (letter)
        (void)snprintf(short_form, sizeof short_form, "-%c, ", letter);
    int width = snprintf(left, sizeof left, "  %s--%s%s%s", short_form, name, value ? " " : "", value ? value : "");
    printf("%-*s", HELP_COLUMN, left);
    if (width >= HELP_COLUMN)
        printf("\n%*s", HELP_COLUMN, "");
    for (; *help; help++) {
        (void)putchar(*help);
        if (*help == '\n')
            printf("%*s", HELP_COLUMN, "");
    }
    (void)putchar('\n');
}

void cli_print_help(const cli_command *command) {
    printf("Usage: foreloop %s %s\n\n%s\n\nOptions:\n", command->name, command->usage, command->description);
    for (const cli_option *option = command->options; option->name; option++)
        print_option(option->name, option->letter, option->value, option->help);
    print_option("help", 'h', NULL, "Print this help.");
}
