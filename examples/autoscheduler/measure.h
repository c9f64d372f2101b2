/*
 * Compiling kernels with the system's compiler, and running them: each in a process of its own, so that one which
 * crashes or hangs is a failed candidate and no more. A kernel is checked against the program as it was before
 * scheduling, compiled likewise, then timed.
 */
#ifndef AUTOSCHEDULER_MEASURE_H
#define AUTOSCHEDULER_MEASURE_H

#include "files.h"
#include "program.h"

enum { MAX_REPEATS = 5, MAX_BATCH = 64 };

typedef struct measure_options {
    const char *compiler;  /* "cc" */
    const char *directory; /* where the folder of generated files is made; NULL: $TMPDIR, else /tmp */
    int threads;           /* of kernels */
    int jobs;              /* compilers at a time */
    double timeout;        /* seconds, for a compiler and for a kernel */
    const char *lock;      /* file to hold while timing, shared with others who measure on the machine; NULL: none */
    bool realtime;         /* run kernels with real-time priority, where the system allows it */
} measure_options;

typedef struct measurement {
    int count; /* of times; 0: failed */
    double seconds[MAX_REPEATS];
    char error[96];
    bool host; /* the fault is the host's: it says nothing about the candidate */
} measurement;

/* Where a search's time goes, in seconds. */
typedef struct measure_clock {
    double generating, compiling, waiting, running;
} measure_clock;

typedef struct runner {
    measure_options options;
    scratch_folder scratch;
    program initial;
    float *buffers[MAX_BUFFERS]; /* inputs and expected outputs, by number */
    float *expected[MAX_BUFFERS];
    double typical[MAX_BUFFERS]; /* of the expected numbers that are not 0, the root of the mean square */
    double tolerance;
    int lock; /* descriptor, -1: none */
    bool locked, ready;
    double locked_since;
    measure_clock clock;
} runner;

/* Finds the folder and the lock. False with a message. */
bool runner_open(runner *r, const program *initial, const measure_options *options, char *message, size_t message_size);
/* Compiles and runs the program as it is, for the expected outputs, unless that has been done; what measures comes
 * after it. False with a message. */
bool runner_begin(runner *r, char *message, size_t message_size);
void runner_close(runner *r);

/* Measures scheduled forms of the program, at most MAX_BATCH. A candidate that fails has count 0 and says why. */
void runner_measure(runner *r, const program *const *candidates, int count, measurement *results);

/* Measures code that is given as C files: a kernel as codegen.h says, for inputs and outputs alone. `flags` go to the
 * compiler in addition; NULL: none. */
void runner_measure_file(runner *r, const char *path, const char *flags, measurement *result);
/* Measures a function of the host. */
void runner_measure_function(runner *r, void (*kernel)(float *const *buffers), measurement *result);

double now(void);                    /* seconds */
double median(const measurement *m); /* INFINITY for a failed one */

#endif
