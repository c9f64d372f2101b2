/*
 * Programs as loop nests over blocks, after TensorIR.
 *
 * A block is one statement, `out[...] = f(loads)` or `out[...] = combine(out[...], f(loads))`, over iterators of its
 * own. The tree of loops says when it runs: each of its iterators is bound to an affine expression of loop variables.
 * Transformations (schedule.h) change the tree and the bindings and leave what blocks compute as it is. Loops may reach
 * beyond an iterator's extent: a block runs where all of its iterators are inside of theirs. Everything is
 * held in arrays of fixed size, so that a candidate of a search starts as a plain copy of the program.
 */
#ifndef AUTOSCHEDULER_PROGRAM_H
#define AUTOSCHEDULER_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum {
    MAX_DIMS = 5,     /* of a buffer */
    MAX_TERMS = 26,   /* of an affine expression */
    MAX_ITERS = 8,    /* of a block */
    MAX_BUFFERS = 12, /* of a program; likewise below */
    MAX_BLOCKS = 10,
    MAX_ACCESSES = 24,
    MAX_EXPRESSIONS = 64,
    MAX_VARIABLES = 96,
    MAX_NODES = 112,
    MAX_NEST = 32, /* loops around a block */
    MAX_FUSED = 8, /* loops in one */
    NAME_SIZE = 24,
    NONE = -1
};

/* constant + sum of factor x variable. What the variables are is said where one is used. */
typedef struct affine {
    int constant, count;
    struct {
        short variable;
        int factor;
    } terms[MAX_TERMS];
} affine;

typedef enum buffer_kind { BUFFER_INPUT, BUFFER_OUTPUT, BUFFER_INTERMEDIATE } buffer_kind;

/* A dense array of float32, row-major. */
typedef struct buffer {
    char name[NAME_SIZE];
    buffer_kind kind;
    int dims, shape[MAX_DIMS];
} buffer;

/* An element of a buffer; the variables of an index are the numbers of the block's iterators. */
typedef struct element {
    int buffer;
    affine index[MAX_DIMS];
} element;

typedef enum operation {
    OP_CONSTANT,
    OP_LOAD,
    OP_LOAD_PADDED, /* 0 where an index lies outside of the buffer */
    OP_ADD,
    OP_SUBTRACT,
    OP_MULTIPLY,
    OP_DIVIDE,
    OP_EXP,
    OP_RSQRT /* 1 / square root */
} operation;

typedef struct expression {
    operation op;
    int left, right; /* expressions */
    int access;      /* of loads */
    float value;     /* of constants */
} expression;

typedef enum combiner { COMBINE_NONE, COMBINE_SUM, COMBINE_MAX } combiner;

/* Spatial iterators come first, in the order of the output's dimensions, which they index one by one; then reductions.
 */
typedef struct iterator {
    char name[NAME_SIZE];
    int extent;
    bool reduction;
    affine binding; /* over loop variables */
} iterator;

typedef struct block {
    char name[NAME_SIZE];
    const char *role; /* docs/ACTIONS.md */
    int number;       /* likewise: `block` */
    int iters, spatial;
    iterator iter[MAX_ITERS];
    affine guard; /* over iterators: it runs where this is below guard_extent; 0: everywhere */
    int guard_extent;
    int output; /* buffer */
    combiner combine;
    int body; /* expression */
    int node; /* its place in the tree; NONE: inlined */
} block;

/* A loop variable. Fused loops have several. */
typedef struct variable {
    char name[NAME_SIZE];
    int extent;
    bool reduction;
    bool whole; /* all of an axis: nothing has split it */
    int axis;   /* counted from the block's innermost of its class */
    int level;  /* docs/ACTIONS.md */
} variable;

typedef enum loop_kind { LOOP_SERIAL, LOOP_PARALLEL, LOOP_VECTORIZED, LOOP_UNROLLED } loop_kind;

/* A loop, or a block: then `block` is its number. Node 0 is the root, a loop without variables. */
typedef struct node {
    int parent, child, next; /* NONE: no such node */
    int block;
    loop_kind kind;
    int count, variables[MAX_FUSED]; /* fused ones from the outermost */
} node;

typedef struct program {
    int buffer_count, block_count, access_count, expression_count, variable_count, node_count;
    buffer buffers[MAX_BUFFERS];
    block blocks[MAX_BLOCKS];
    element accesses[MAX_ACCESSES];
    expression expressions[MAX_EXPRESSIONS];
    variable variables[MAX_VARIABLES];
    node nodes[MAX_NODES];
} program;

/* Affine expressions. A sum that needs more terms than there is room for is cut and sets *full. */
affine affine_constant(int value);
affine affine_variable(int v);
void affine_add(affine *sum, const affine *other, int factor, bool *full);
/* Replaces each variable v by values[v]. */
affine affine_substitute(const affine *index, const affine *values, bool *full);

/* Building a program. The functions return the number of what they made, NONE when there is no room. */
int add_buffer(program *p, const char *name, buffer_kind kind, int dims, const int *shape);
int add_expression(program *p, operation op, int left, int right);
int add_constant(program *p, float value);
/* A load; the caller fills in accesses[expression's access].index. */
int add_load(program *p, operation op, int from);
/* A block over these iterators, in a loop nest of its own at the end of the root. */
int add_block(program *p, const char *name, int output, combiner combine, int body, int iters, const char *const *names,
              const int *extents);
/* Loops around block b for each iterator of an extent above 1, `parent` being the place of the outermost (as child
 * before `before`, NONE: the last), and b's node inside. Bindings become offsets[i] + the loop; NULL: 0. */
bool add_nest(program *p, int b, int parent, int before, const affine *offsets, const int *extents);

/* Looking at one. */
int loop_extent(const program *p, int loop);
bool loop_reduces(const program *p, int loop);         /* has a reduction variable */
int loops_of(const program *p, int inner, int *loops); /* from the outermost; returns their number */
bool is_inside(const program *p, int n, int loop);     /* also when they are the same */
int producer_of(const program *p, int made);           /* the block that writes it, NONE */
bool block_loads(const program *p, int b, int from);
/* Calls visit for each load of an expression; stops and returns false when it does. */
bool visit_loads(const program *p, int e, bool (*visit)(void *user, const element *a), void *user);
/* An access's index over loop variables. */
affine access_over_loops(const program *p, int b, const element *a, int dim, bool *full);
/* What has to be below *extent for block b to run, over loop variables: limit 0 ... iters - 1 are its iterators, limit
 * `iters` is its guard. False when there is no such limit. */
bool limit_of(const program *p, int b, int limit, affine *value, int *extent, bool *full);
/* The write of a block as an access. */
element output_access(const program *p, int b);

/* The part of a buffer that accesses of block b touch while the loops inside of `loop` run: in each dimension `extent`
 * elements from `offset`, an expression of variables outside. */
typedef struct region {
    affine offset[MAX_DIMS];
    int extent[MAX_DIMS];
} region;
void region_of(const program *p, int b, const element *a, int loop, region *out, bool *full);

/* Writes the program as TensorIR text; program_text into a new string, NULL without memory. */
void print_program(const program *p, FILE *out);
char *program_text(const program *p);

#endif
