/*
 * autoscheduler: finds fast C kernels for tensor operators, with foreloop telling which candidates are worth measuring.
 * README.md says how to use it and how it is made.
 */
#include "commands.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number) {
    (void)signal_number;
    interrupted = 1;
}

static const struct {
    const char *name;
    int (*run)(const options *o);
    bool rounds; /* it looks at o->search.cancel between them */
} COMMANDS[] = {{"search", command_search, true},      {"show", command_show, false},
                {"baseline", command_baseline, false}, {"collect", command_collect, true},
                {"states", command_states, false},     {"replay", command_replay, true}};

/* What was printed may not have arrived. */
static int finish(int status) {
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fprintf(stderr, "autoscheduler: cannot write the output: %s\n", strerror(errno));
    return status ? status : 1;
}

int main(int argc, char **argv) {
    options o;
    const int status = options_read(&o, argc, argv);
    if (status)
        return status < 0 ? 0 : status;
    /* The first interrupt ends a search after its round, the second one at once. */
    const struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    o.search.cancel = &interrupted;
    for (size_t i = 0; i < sizeof COMMANDS / sizeof *COMMANDS; i++)
        if (strcmp(COMMANDS[i].name, o.command) == 0) {
            if (COMMANDS[i].rounds)
                (void)sigaction(SIGINT, &action, NULL);
            return finish(COMMANDS[i].run(&o));
        }
    fprintf(stderr, "autoscheduler: unknown command %s; --help lists them\n", o.command);
    return 2;
}
