/* Opening an operator, and the commands `search` and `show`. */
#include "commands.h"
#include "codegen.h"
#include "operators.h"
#include <math.h>
#include <stdlib.h>

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

bool open_only_operator(const options *o, search_space *space) {
    if (o->argument_count == 1)
        return open_operator(o->arguments[0], space);
    fprintf(stderr, "autoscheduler: %s takes one operator, in quotes\n", o->command);
    return false;
}

static void print_result(const options *o, const search_result *found, const measure_clock *clock) {
    if (!o->json) {
        if (isinf(found->best))
            printf("nothing works after");
        else
            printf("best %.6g ms after", 1e3 * found->best);
        printf(" %d trials, %d of them failed; %ld candidates scored\n", found->trials, found->failed, found->scored);
        if (found->over)
            printf("there are no other candidates\n");
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

int command_search(const options *o) {
    search_space space;
    search_result found;
    char message[512];
    int status = 1;
    if (!open_only_operator(o, &space))
        return 2;
    runner *r = calloc(1, sizeof *r);
    if (!r)
        fprintf(stderr, "autoscheduler: not enough memory\n");
    else if (runner_open(r, &space.initial, &o->measure, message, sizeof message)) {
        const measurer by = measurer_of(r);
        if (search_run(o->arguments[0], &space, &by, &o->search, &found, message, sizeof message)) {
            print_result(o, &found, &r->clock);
            status = isinf(found.best) || (o->search.cancel && *o->search.cancel);
        } else
            fprintf(stderr, "autoscheduler: %s\n", message);
        runner_close(r);
    } else
        fprintf(stderr, "autoscheduler: %s\n", message);
    free(r);
    space_close(&space);
    return status;
}

int command_show(const options *o) {
    search_space space;
    double candidates = 1;
    if (!open_only_operator(o, &space))
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
