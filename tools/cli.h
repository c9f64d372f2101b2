/* What all commands share: option tables, the help made from them, messages on standard error, exit statuses. */
#ifndef FORELOOP_TOOLS_CLI_H
#define FORELOOP_TOOLS_CLI_H

#include <foreloop/foreloop.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CLI_DONE = 0, CLI_BAD_INPUT = 1, CLI_USAGE = 2 };

/* What an option's value becomes in the command's struct. */
typedef enum cli_type {
    CLI_FLAG,     /* bool */
    CLI_TEXT,     /* const char *, never empty */
    CLI_TEXTS,    /* cli_texts: one for each time that the option is given */
    CLI_COUNT,    /* cli_count */
    CLI_POSITIVE, /* cli_count, from 1 */
    CLI_FLOAT     /* cli_float, finite */
} cli_type;

/* Texts in the order of the command line; to be released by cli_texts_close. */
typedef struct cli_texts {
    const char **items;
    size_t count, capacity;
} cli_texts;
void cli_texts_close(cli_texts *texts);

typedef struct cli_count {
    bool given;
    uint64_t value;
} cli_count;

typedef struct cli_float {
    bool given;
    float value;
} cli_float;

typedef struct cli_option {
    const char *name; /* without "--" */
    char letter;      /* 0: none */
    cli_type type;
    size_t offset;     /* into the command's struct */
    const char *value; /* the value's name in the help, NULL for flags */
    const char *help;  /* may hold line breaks */
} cli_option;

typedef struct cli_command {
    const char *name;
    const char *summary;       /* one line */
    const char *usage;         /* what follows the name */
    const char *description;   /* paragraphs, wrapped by hand at 80 columns */
    const cli_option *options; /* up to one without a name */
    bool takes_operand;        /* one at the most */
    size_t operand_offset;     /* of a const char * */
    int (*run)(int argc, char **argv);
} cli_command;

/* Parses argv[0 .. argc-1] (what follows the command's name) into *values. False when the command is over already:
 * after
 * --help, or on a usage error, whose message is printed; *status is then the exit status. */
bool cli_parse(const cli_command *command, int argc, char **argv, void *values, int *status);

/* Prints the command's help. */
void cli_print_help(const cli_command *command);

/* "foreloop: MESSAGE" as one clean line on standard error. Both return the exit status that goes with it. */
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
int cli_fail_memory(void);
/* "ACTION PATH: MESSAGE", or "PATH: MESSAGE" without an action (NULL), for a message of the library; the path is left
 * out when the message names it. */
int cli_fail_file(const char *action, const char *path, const char *message);
/* "foreloop COMMAND: MESSAGE (try 'foreloop COMMAND --help')". */
int cli_fail_usage(const cli_command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A line on standard error that changes no exit status. */
void cli_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Replaces control characters and invalid UTF-8 by '?', in place: names and texts out of files may hold anything, and
 * must neither break a line nor send commands to a terminal. */
void cli_clean(char *text);

/* The name nearest to `given` by edits, or NULL when none is near. names[i] ends with NULL. */
const char *cli_nearest(const char *given, const char *const *names);

/* The plural's ending: "" for one, "s" for other counts. */
const char *cli_plural(uint64_t count);

/* Seconds of a clock that never steps. */
double cli_clock(void);

/* The allocator of everything in the tool. */
const foreloop_allocator *cli_allocator(void);

extern const cli_command command_rank, command_encode, command_tokenize, command_predict, command_actions,
    command_inspect, command_pack, command_bench, command_train_ranker;

#endif
