/* Option parsing from tables, help, and messages. */
#include "cli.h"
#include "common/alloc.h"
#include "common/number.h"
#include "common/utf8.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { MESSAGE_SIZE = 2048, NAME_MAX_LENGTH = 32, OPTIONS_MAX = 32, HELP_COLUMN = 28 };

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

static void print_line(const char *prefix, const char *format, va_list arguments) {
    char message[MESSAGE_SIZE] = "";
    (void)vsnprintf(message, sizeof message, format, arguments);
    cli_clean(message);
    (void)fprintf(stderr, "%s: %s\n", prefix, message);
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

int cli_fail_usage(const cli_command *command, const char *format, ...) {
    char message[MESSAGE_SIZE / 2];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    (void)cli_fail("%s: %s (try 'foreloop %s --help')", command->name, message, command->name);
    return CLI_USAGE;
}

void cli_note(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_line("foreloop: note", format, arguments);
    va_end(arguments);
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

static bool parse_count(const char *text, uint64_t *value) {
    int64_t parsed;
    size_t length = strlen(text);
    if (length == 0 || strspn(text, "0123456789") != length || !foreloop_parse_int64(text, length, &parsed))
        return false;
    *value = (uint64_t)parsed;
    return true;
}

/* Stores an option's value; returns CLI_DONE or CLI_USAGE. */
static int set_value(const cli_command *command, const cli_option *option, const char *text, void *values) {
    char *target = (char *)values + option->offset;
    cli_count count = {true, 0};
    cli_float number = {true, 0};
    bool flag = true;

    switch (option->type) {
    case CLI_FLAG:
        memcpy(target, &flag, sizeof flag);
        return CLI_DONE;
    case CLI_TEXT:
        if (!*text)
            return cli_fail_usage(command, "the value of --%s is empty", option->name);
        memcpy(target, &text, sizeof text);
        return CLI_DONE;
    case CLI_COUNT:
        if (!parse_count(text, &count.value))
            return cli_fail_usage(command, "--%s takes a whole number from 0, not '%.40s'", option->name, text);
        memcpy(target, &count, sizeof count);
        return CLI_DONE;
    case CLI_FLOAT:
        if (!foreloop_parse_float(text, strlen(text), &number.value) || !isfinite(number.value))
            return cli_fail_usage(command, "--%s takes a finite number, not '%.40s'", option->name, text);
        memcpy(target, &number, sizeof number);
        return CLI_DONE;
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
