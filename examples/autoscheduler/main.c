/*
 * autoscheduler: finds fast C kernels for tensor operators, with foreloop telling which candidates are worth measuring.
 * README.md says how to use it and how it is made.
 */
#include "codegen.h"
#include "commands.h"
#include "operators.h"
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static volatile sig_atomic_t interrupted;
static volatile int cancel;

static void on_interrupt(int signal_number) {
    (void)signal_number;
    cancel = 1;
    interrupted = 1;
}

bool open_operator(const char *text, search_space *space) {
    program *initial = malloc(sizeof *initial);
    char message[256];
    bool ok = initial != NULL;
    if (!ok)
        fprintf(stderr, "autoscheduler: not enough memory\n");
    else if (!operator_build(text, initial, message, sizeof message)) {
        fprintf(stderr, "autoscheduler: %s; the operators are\n%s", message, operators_help);
        ok = false;
    } else if (!space_open(space, initial)) {
        fprintf(stderr, "autoscheduler: not enough memory\n");
        ok = false;
    }
    free(initial);
    return ok;
}

static void print_result(const options *o, const search_result *found, const measure_clock *clock) {
    if (!o->json) {
        printf("best %.6g ms after %d trials, %d of them failed; %ld candidates scored\n", 1e3 * found->best,
               found->trials, found->failed, found->scored);
        printf("seconds: proposing %.2f, learning %.2f, generating %.2f, compiling %.2f, waiting %.2f, running %.2f\n",
               found->proposing, found->learning, clock->generating, clock->compiling, clock->waiting, clock->running);
        if (!isinf(found->best))
            printf("the kernel is in %s\n", o->search.output);
        return;
    }
    printf("{\"best\":");
    if (isinf(found->best))
        printf("null");
    else
        printf("%.9g", found->best);
    printf(",\"trials\":%d,\"failed\":%d,\"scored\":%ld,\"seconds\":{\"proposing\":%.3f,\"learning\":%.3f,"
           "\"generating\":%.3f,\"compiling\":%.3f,\"waiting\":%.3f,\"running\":%.3f}}\n",
           found->trials, found->failed, found->scored, found->proposing, found->learning, clock->generating,
           clock->compiling, clock->waiting, clock->running);
}

static int command_search(options *o) {
    search_space space;
    search_result found;
    char message[512];
    runner *r = calloc(1, sizeof *r);
    int status = 1;
    if (o->argument_count != 1 || !r) {
        fprintf(stderr, "autoscheduler: search takes one operator, in quotes\n");
        free(r);
        return 2;
    }
    if (!open_operator(o->arguments[0], &space)) {
        free(r);
        return 2;
    }
    if (runner_open(r, &space.initial, &o->measure, message, sizeof message)) {
        const measurer by = measurer_of(r);
        o->search.cancel = &cancel;
        if (search_run(o->arguments[0], &space, &by, &o->search, &found, message, sizeof message)) {
            print_result(o, &found, &r->clock);
            status = isinf(found.best) || interrupted;
        } else
            fprintf(stderr, "autoscheduler: %s\n", message);
        runner_close(r);
    } else
        fprintf(stderr, "autoscheduler: %s\n", message);
    free(r);
    space_close(&space);
    return status;
}

static int command_show(const options *o) {
    search_space space;
    double candidates = 1;
    if (o->argument_count != 1 || !open_operator(o->arguments[0], &space))
        return 2;
    print_program(&space.initial, stdout);
    printf("\n# decisions:");
    for (int d = 0; d < space.count; d++) {
        printf("%s %s (%d)", d ? "," : "", space.decisions[d].name, space.decisions[d].options);
        candidates *= space.decisions[d].options;
    }
    printf("; %.3g candidates\n\n", candidates);
    const char *error = generate_c(&space.initial, stdout);
    if (error)
        fprintf(stderr, "autoscheduler: %s\n", error);
    space_close(&space);
    return error != NULL;
}

int main(int argc, char **argv) {
    options o;
    const int status = options_read(&o, argc, argv);
    if (status)
        return status < 0 ? 0 : status;
    const struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    (void)sigaction(SIGINT, &action, NULL); /* the first one ends the search after the round, the second one at once */
    if (strcmp(o.command, "search") == 0)
        return command_search(&o);
    if (strcmp(o.command, "show") == 0)
        return command_show(&o);
    if (strcmp(o.command, "baseline") == 0)
        return command_baseline(&o);
    if (strcmp(o.command, "collect") == 0)
        return command_collect(&o);
    if (strcmp(o.command, "states") == 0)
        return command_states(&o);
    if (strcmp(o.command, "replay") == 0)
        return command_replay(&o);
    fprintf(stderr, "autoscheduler: unknown command %s; --help lists them\n", o.command);
    return 2;
}
