/* What the walk of a trace knows: variables, blocks, loops, and the order of the loops around each block. */
#ifndef FORELOOP_SCHEDULE_WALK_STATE_H
#define FORELOOP_SCHEDULE_WALK_STATE_H

#include "schedule/trace.h"

/* No loop, block or index. */
#define FORELOOP_WALK_NONE SIZE_MAX

enum {
    FORELOOP_WALK_MAX_NEST = 512, /* loops of one block in known order; more are walked without their order */
    FORELOOP_WALK_MAX_ARGUMENTS = 64
};

typedef enum foreloop_loop_class {
    FORELOOP_LOOP_UNKNOWN,
    FORELOOP_LOOP_SPATIAL,
    FORELOOP_LOOP_REDUCTION
} foreloop_loop_class;

typedef struct foreloop_loop {
    double extent; /* 0: unknown */
    foreloop_loop_class kind;
    int axis;   /* counted from the innermost of its class, -1: unknown */
    int level;  /* letter of the tiling structure, or part of its split; -1: unknown */
    bool whole; /* an axis, or axes fused, that nothing has split yet */
    bool innermost_part;
    size_t block;  /* whose nest it is in */
    size_t output; /* see `outputs` below */
    size_t parent;
    size_t fused_first, fused_count; /* inputs of the Fuse that made it, in `fused` */
    size_t parts;                    /* that it was split into, 0: not split */
    size_t mark;                     /* of the instruction that last gathered it */
} foreloop_loop;

typedef enum foreloop_block_origin {
    FORELOOP_BLOCK_OTHER,
    FORELOOP_BLOCK_ROOT,
    FORELOOP_BLOCK_NAMED,
    FORELOOP_BLOCK_CACHE,
    FORELOOP_BLOCK_RFACTOR,
    FORELOOP_BLOCK_PRODUCER,
    FORELOOP_BLOCK_CONSUMER
} foreloop_block_origin;

typedef struct foreloop_block {
    foreloop_block_origin origin;
    const char *structure; /* of multi-level tiling, terminated; NULL: none */
    bool tiled;            /* has a structure, now or later in the trace */
    bool rfactored;        /* likewise */
    bool open;             /* its nest may go on inside of the loops that are known */
    size_t base;           /* the block that it was made from, or itself */
    size_t order;          /* of the named ones, from 0 */
    size_t output;         /* that it was made for, see `outputs` below; NONE: for none */
    bool has_axes;         /* its loops have been looked up */
    size_t *nest;          /* loops from the outermost; in the arena */
    size_t nest_count, nest_capacity;
    size_t at_block, at_depth; /* computed at this loop of that block's nest */
    size_t cache, rfactor;     /* blocks made from it by CacheWrite and RFactor */
} foreloop_block;

typedef enum foreloop_variable_type {
    FORELOOP_VARIABLE_NONE,
    FORELOOP_VARIABLE_BLOCK,
    FORELOOP_VARIABLE_LOOP,
    FORELOOP_VARIABLE_NUMBER,
    FORELOOP_VARIABLE_LOCATION
} foreloop_variable_type;

/* What a variable stands for. */
typedef struct foreloop_binding {
    foreloop_variable_type type;
    bool known;    /* the number or location was decided */
    size_t index;  /* of the loop or block */
    double number; /* sampled value, or location: -2 inline, -1 root, else loop */
} foreloop_binding;

/* Loops of a block that nothing has been done to, from the outermost. */
typedef struct foreloop_axes {
    size_t block, first, count;
} foreloop_axes;

/* Learned in a first pass, told to the second by the output that the loop or block was made for. */
typedef struct foreloop_loop_hint {
    foreloop_loop_class kind;
    int axis;
} foreloop_loop_hint;
typedef struct foreloop_block_hint {
    bool tiled;
    bool rfactored;
} foreloop_block_hint;

/* What a loop of a GPU's program is bound to. */
enum { FORELOOP_WALK_BLOCKS, FORELOOP_WALK_VTHREADS, FORELOOP_WALK_THREADS, FORELOOP_WALK_BOUND };

struct foreloop_walk {
    const foreloop_allocator *allocator;
    foreloop_arena *arena;
    foreloop_error *error;

    foreloop_binding *variables;
    size_t variable_capacity;
    foreloop_names block_names; /* of look-ups by name */
    size_t *named_blocks;       /* the block of each */
    size_t named_block_capacity;

    foreloop_loop *loops;
    size_t loop_count, loop_capacity;
    size_t *fused;
    size_t fused_count, fused_capacity;
    size_t mark;
    size_t *gathered; /* loops among the inputs of the current instruction */
    size_t gathered_count, gathered_capacity;

    foreloop_block *blocks;
    size_t block_count, block_capacity;
    size_t named_count; /* blocks with a name, without roots */
    foreloop_axes *axes;
    size_t axes_count, axes_capacity;

    foreloop_loop_hint *loop_hints;
    size_t loop_hint_capacity;
    foreloop_block_hint *block_hints;
    size_t block_hint_capacity;
    size_t hint_count;
    size_t named_total;                  /* named_count at the end of the first pass */
    size_t tiled_output;                 /* of the only tiled block, or NONE */
    size_t tiled_block;                  /* that block, or NONE as long as it is not made */
    double parallel_limit, vector_limit; /* of the annotations for parallel and vectorized loops, 0: none */
    double unroll_limit;                 /* of the annotation for unrolling, negative: none */
    /* The largest known extents that are bound to blockIdx, vthread and threadIdx, by their x, y, z. */
    double bound[FORELOOP_WALK_BOUND][3];
    bool is_bound[FORELOOP_WALK_BOUND][3];

    bool emitting;
    uint32_t place; /* of the current instruction */
    size_t outputs; /* of the instructions before: outputs are numbered through the whole trace */
    /* of the action being made; `copied`: where a text is, NULL for arguments that are complete */
    foreloop_argument arguments[FORELOOP_WALK_MAX_ARGUMENTS];
    const foreloop_value *copied[FORELOOP_WALK_MAX_ARGUMENTS];
    size_t argument_count;
    foreloop_action *actions;
    uint32_t *instructions;
    size_t action_count, action_capacity, instruction_capacity;
};

/* Forgets variables, loops and blocks, keeps hints. */
void foreloop_walk_reset(foreloop_walk *walk, size_t variable_count);
/* Makes the hints of the second pass from the state at the end of the first. */
foreloop_status foreloop_walk_learn(foreloop_walk *walk);

/* New ones, with the hints of the first pass for this output (NONE: made for no output). Their index goes to *index. */
foreloop_status foreloop_walk_new_loop(foreloop_walk *walk, size_t block, size_t output, size_t *index);
foreloop_status foreloop_walk_new_block(foreloop_walk *walk, foreloop_block_origin origin, size_t base, size_t output,
                                        size_t *index);

/* The loops from `first` on, the last ones that were made, are the axes of a block and all of its nest. */
foreloop_status foreloop_walk_add_axes(foreloop_walk *walk, size_t block, size_t first);

/* Place of a loop in its block's nest, or NONE. */
size_t foreloop_walk_depth(const foreloop_walk *walk, size_t loop);
/* Puts the loops first .. first + count - 1 into a block's nest before `depth`. A nest that grows too long is
 * forgotten. */
foreloop_status foreloop_walk_insert(foreloop_walk *walk, size_t block, size_t depth, size_t first, size_t count);
/* Replaces the loop at `depth` by the loops first .. first + count - 1. */
foreloop_status foreloop_walk_replace(foreloop_walk *walk, size_t block, size_t depth, size_t first, size_t count);

#endif
