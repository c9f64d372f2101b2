/* The foreloop command: finds the command that the first argument names, and answers for the state of the output. */
#include "cli.h"
#include "output.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>

static const cli_command *const commands[] = {
    &command_rank,    &command_encode, &command_tokenize, &command_predict,      &command_actions,
    &command_inspect, &command_pack,   &command_bench,    &command_train_ranker,
};
enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

static const cli_command *find_command(const char *name) {
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static void print_overview(FILE *file) {
    (void)fprintf(file, "Usage: foreloop COMMAND [OPTION]... [ARGUMENT]\n\n"
                        "Ranks a compiler's candidate schedules without compiling or measuring them.\n\n"
                        "Commands:\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        (void)fprintf(file, "  %-12s %s\n", commands[i]->name, commands[i]->summary);
    (void)fprintf(file,
                  "  %-12s %s\n\n"
                  "Options:\n"
                  "  --version  Print the version.\n"
                  "  -h, --help Print this overview; 'foreloop COMMAND --help' tells about a command.\n\n"
                  "Exit status: 0 done, 1 the input is bad, 2 the command line is wrong.\n",
                  "help", "Print this overview, or the help of a command.");
}

static int fail_unknown_command(const char *name) {
    const char *names[COMMAND_COUNT + 2];
    const char *hint;
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        names[i] = commands[i]->name;
    names[COMMAND_COUNT] = "help";
    names[COMMAND_COUNT + 1] = NULL;
    hint = cli_nearest(name, names);
    if (hint)
        (void)cli_fail("unknown command '%s', did you mean '%s'? (try 'foreloop help')", name, hint);
    else
        (void)cli_fail("unknown command '%s' (try 'foreloop help')", name);
    return CLI_USAGE;
}

static int run_help(int argc, char **argv) {
    const cli_command *command;
    if (argc > 1) {
        (void)cli_fail("help takes one command's name (try 'foreloop help')");
        return CLI_USAGE;
    }
    if (argc == 0) {
        print_overview(stdout);
        return CLI_DONE;
    }
    command = find_command(argv[0]);
    if (!command)
        return fail_unknown_command(argv[0]);
    cli_print_help(command);
    return CLI_DONE;
}

static int run(int argc, char **argv) {
    const cli_command *command;
    const char *name;
    if (argc < 2) {
        print_overview(stderr);
        return CLI_USAGE;
    }
    name = argv[1];
    if (strcmp(name, "--version") == 0) {
        if (argc > 2) {
            (void)cli_fail("unexpected argument '%s' behind --version (try 'foreloop help')", argv[2]);
            return CLI_USAGE;
        }
        printf("foreloop %s\n", foreloop_version());
        return CLI_DONE;
    }
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return run_help(argc - 2, argv + 2);
    command = find_command(name);
    return command ? command->run(argc - 2, argv + 2) : fail_unknown_command(name);
}

int main(int argc, char **argv) {
    int status;
    /* A reader that closes its end early wants no more, and no message either: the signal ends the command, also where
     * the parent had it ignored. */
    (void)signal(SIGPIPE, SIG_DFL);
    status = run(argc, argv);
    if (!output_finish() && status == CLI_DONE)
        status = CLI_BAD_INPUT;
    return status;
}
