/* What the parts of the code generator share: codegen.c writes loops and the file, statements.c what is inside. */
#ifndef AUTOSCHEDULER_GENERATOR_H
#define AUTOSCHEDULER_GENERATOR_H

#include "program.h"

/* What is known of a loop variable while its loop is written. */
typedef struct value {
    bool constant;
    int number; /* of a constant */
    int most;   /* it is at most this */
} value;

typedef struct generator {
    const program *p;
    FILE *out;
    const char *error;
    int depth, statements;
    value values[MAX_VARIABLES];
    int lane;  /* the variable that vectors run over, or NONE */
    int width; /* of the vectors */
    /* of each intermediate buffer: the loop around its uses (0: root), and its part there */
    int home[MAX_BUFFERS];
    region part[MAX_BUFFERS];
} generator;

/* Of the iterations of a loop: in those below `all` every block inside runs, in those from `some` on none does. */
typedef struct span {
    int all, some;
} span;

/* Of variable v of a loop. `initial`: the block whose initial values are written, NONE: all that is inside. */
span span_of(generator *g, int loop, int v, int initial);

/* Begins a line. */
void line_begin(const generator *g);
/* Variables whose value is known go into the constant; the lane counts as 0. */
affine settle(const generator *g, const affine *index);
/* Whether a block can be written with vectors along a variable: all its lanes lie side by side, or fit otherwise. */
bool vectors_fit(generator *g, int b, int v);
/* One statement of a block: its initial value, or its body; nothing where the block does not run. */
void print_statement(generator *g, int b, bool initial);

#endif
