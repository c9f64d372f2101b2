/* Tables of the walk: loops, blocks and nests; and what the first pass over a trace teaches the second.
 */
#include "schedule/walk_state.h"
#include "common/error.h"
#include <string.h>

foreloop_walk *foreloop_walk_create(const foreloop_allocator *allocator) {
    foreloop_walk *walk = foreloop_allocate_zeroed(allocator, 1, sizeof *walk);
    if (walk)
        walk->allocator = allocator;
    return walk;
}

void foreloop_walk_close(foreloop_walk *walk) {
    if (!walk)
        return;
    const foreloop_allocator *allocator = walk->allocator;
    foreloop_release(allocator, walk->variables);
    foreloop_names_close(&walk->block_names, allocator);
    foreloop_release(allocator, walk->named_blocks);
    foreloop_release(allocator, walk->loops);
    foreloop_release(allocator, walk->fused);
    foreloop_release(allocator, walk->gathered);
    foreloop_release(allocator, walk->blocks);
    foreloop_release(allocator, walk->axes);
    foreloop_release(allocator, walk->loop_hints);
    foreloop_release(allocator, walk->block_hints);
    foreloop_release(allocator, walk->actions);
    foreloop_release(allocator, walk->instructions);
    foreloop_release(allocator, walk);
}

void foreloop_walk_reset(foreloop_walk *walk, size_t variable_count) {
    if (variable_count > 0)
        memset(walk->variables, 0, variable_count * sizeof *walk->variables);
    foreloop_names_reset(&walk->block_names);
    walk->loop_count = 0;
    walk->fused_count = 0;
    walk->mark = 0;
    walk->block_count = 0;
    walk->named_count = 0;
    walk->axes_count = 0;
    walk->action_count = 0;
    walk->argument_count = 0;
    walk->place = 0;
    walk->outputs = 0;
    walk->tiled_block = FORELOOP_WALK_NONE;
    walk->parallel_limit = walk->vector_limit = 0;
    walk->unroll_limit = -1;
    memset(walk->bound, 0, sizeof walk->bound);
    memset(walk->is_bound, 0, sizeof walk->is_bound);
}

/* ---- Loops and blocks -------------------------------------------------------------------------------------------- */

foreloop_status foreloop_walk_new_loop(foreloop_walk *walk, size_t block, size_t output, size_t *index) {
    FORELOOP_TRY(foreloop_reserve_one(walk->allocator, &walk->loops, &walk->loop_capacity, walk->loop_count,
                                      sizeof *walk->loops, walk->error));
    foreloop_loop *loop = &walk->loops[walk->loop_count];
    *loop = (foreloop_loop){.axis = -1, .level = -1, .block = block, .output = output, .parent = FORELOOP_WALK_NONE};
    if (output < walk->hint_count) {
        loop->kind = walk->loop_hints[output].kind;
        loop->axis = walk->loop_hints[output].axis;
    }
    *index = walk->loop_count++;
    return FORELOOP_OK;
}

foreloop_status foreloop_walk_new_block(foreloop_walk *walk, foreloop_block_origin origin, size_t base, size_t output,
                                        size_t *index) {
    FORELOOP_TRY(foreloop_reserve_one(walk->allocator, &walk->blocks, &walk->block_capacity, walk->block_count,
                                      sizeof *walk->blocks, walk->error));
    foreloop_block *block = &walk->blocks[walk->block_count];
    *block = (foreloop_block){.origin = origin,
                              .base = base == FORELOOP_WALK_NONE ? walk->block_count : walk->blocks[base].base,
                              .order = FORELOOP_WALK_NONE,
                              .output = output,
                              .at_block = FORELOOP_WALK_NONE,
                              .cache = FORELOOP_WALK_NONE,
                              .rfactor = FORELOOP_WALK_NONE};
    if (origin == FORELOOP_BLOCK_NAMED)
        block->order = walk->named_count++;
    if (output < walk->hint_count) {
        block->tiled = walk->block_hints[output].tiled;
        block->rfactored = walk->block_hints[output].rfactored;
        if (output == walk->tiled_output)
            walk->tiled_block = walk->block_count;
    }
    *index = walk->block_count++;
    return FORELOOP_OK;
}

size_t foreloop_walk_depth(const foreloop_walk *walk, size_t loop) {
    const foreloop_block *block = &walk->blocks[walk->loops[loop].block];
    for (size_t i = 0; i < block->nest_count; i++)
        if (block->nest[i] == loop)
            return i;
    return FORELOOP_WALK_NONE;
}

/* Makes room for `count` loops in all; forgets the nest and says false when that is too many. */
static foreloop_status reserve_nest(foreloop_walk *walk, foreloop_block *block, size_t count, bool *fits) {
    *fits = count <= FORELOOP_WALK_MAX_NEST;
    if (!*fits) {
        block->nest_count = 0;
    } else if (count > block->nest_capacity) {
        size_t capacity = count * 2;
        size_t *nest = foreloop_arena_allocate(walk->arena, capacity, sizeof *nest);
        if (!nest)
            return foreloop_fail_memory(walk->error, capacity, sizeof *nest, "the loops of a block");
        if (block->nest_count > 0)
            memcpy(nest, block->nest, block->nest_count * sizeof *nest);
        block->nest = nest;
        block->nest_capacity = capacity;
    }
    return FORELOOP_OK;
}

foreloop_status foreloop_walk_insert(foreloop_walk *walk, size_t block_index, size_t depth, size_t first,
                                     size_t count) {
    foreloop_block *block = &walk->blocks[block_index];
    bool fits;
    FORELOOP_TRY(reserve_nest(walk, block, block->nest_count + count, &fits));
    if (!fits || count == 0)
        return FORELOOP_OK;
    memmove(block->nest + depth + count, block->nest + depth, (block->nest_count - depth) * sizeof *block->nest);
    for (size_t i = 0; i < count; i++)
        block->nest[depth + i] = first + i;
    block->nest_count += count;
    return FORELOOP_OK;
}

foreloop_status foreloop_walk_replace(foreloop_walk *walk, size_t block_index, size_t depth, size_t first,
                                      size_t count) {
    foreloop_block *block = &walk->blocks[block_index];
    block->nest_count--;
    memmove(block->nest + depth, block->nest + depth + 1, (block->nest_count - depth) * sizeof *block->nest);
    return foreloop_walk_insert(walk, block_index, depth, first, count);
}

foreloop_status foreloop_walk_add_axes(foreloop_walk *walk, size_t block, size_t first) {
    size_t count = walk->loop_count - first;
    FORELOOP_TRY(foreloop_reserve_one(walk->allocator, &walk->axes, &walk->axes_capacity, walk->axes_count,
                                      sizeof *walk->axes, walk->error));
    walk->axes[walk->axes_count++] = (foreloop_axes){block, first, count};
    for (size_t i = first; i < walk->loop_count; i++)
        walk->loops[i].whole = true;
    walk->blocks[block].has_axes = true;
    walk->blocks[block].nest_count = 0;
    return foreloop_walk_insert(walk, block, 0, first, count);
}

/* ---- From the first pass to the second --------------------------------------------------------------------------- */

/* A loop that RFactor takes is a reduction, and so is what it was split from or fused of. Made later means a higher
 * index, so one sweep from the end reaches everything. */
static void spread_reductions(foreloop_walk *walk) {
    for (size_t i = walk->loop_count; i-- > 0;) {
        const foreloop_loop *loop = &walk->loops[i];
        if (loop->kind != FORELOOP_LOOP_REDUCTION)
            continue;
        if (loop->parent != FORELOOP_WALK_NONE)
            walk->loops[loop->parent].kind = FORELOOP_LOOP_REDUCTION;
        for (size_t k = 0; k < loop->fused_count; k++)
            walk->loops[walk->fused[loop->fused_first + k]].kind = FORELOOP_LOOP_REDUCTION;
    }
}

/* Multi-level tiling splits a spatial axis in as many parts as its structure has S, a reduction in as many as R. */
static void class_tiled_axes(foreloop_walk *walk, const foreloop_axes *axes) {
    size_t spatial = 0, reduction = 0;
    for (const char *letter = walk->blocks[axes->block].structure; letter && *letter; letter++) {
        spatial += *letter == 'S';
        reduction += *letter == 'R';
    }
    if (spatial == reduction)
        return;
    for (size_t i = 0; i < axes->count; i++) {
        foreloop_loop *loop = &walk->loops[axes->first + i];
        size_t parts = loop->parts > 0 ? loop->parts : 1;
        if (parts == spatial)
            loop->kind = FORELOOP_LOOP_SPATIAL;
        else if (parts == reduction)
            loop->kind = FORELOOP_LOOP_REDUCTION;
    }
}

static void number_axes(foreloop_walk *walk, const foreloop_axes *axes) {
    int spatial = 0, reduction = 0;
    for (size_t i = axes->count; i-- > 0;) {
        foreloop_loop *loop = &walk->loops[axes->first + i];
        int *next = loop->kind == FORELOOP_LOOP_SPATIAL ? &spatial : &reduction;
        if (loop->kind != FORELOOP_LOOP_UNKNOWN && *next < FORELOOP_WALK_MAX_NEST)
            loop->axis = (*next)++;
    }
}

foreloop_status foreloop_walk_learn(foreloop_walk *walk) {
    size_t count = walk->outputs;
    FORELOOP_TRY(foreloop_reserve(walk->allocator, &walk->loop_hints, &walk->loop_hint_capacity, 0, count,
                                  sizeof *walk->loop_hints, walk->error));
    FORELOOP_TRY(foreloop_reserve(walk->allocator, &walk->block_hints, &walk->block_hint_capacity, 0, count,
                                  sizeof *walk->block_hints, walk->error));
    for (size_t i = 0; i < count; i++) {
        walk->loop_hints[i] = (foreloop_loop_hint){FORELOOP_LOOP_UNKNOWN, -1};
        walk->block_hints[i] = (foreloop_block_hint){false, false};
    }
    spread_reductions(walk);
    for (size_t i = 0; i < walk->axes_count; i++) {
        class_tiled_axes(walk, &walk->axes[i]);
        number_axes(walk, &walk->axes[i]);
    }
    size_t tiled_count = 0;
    for (size_t i = 0; i < walk->block_count; i++) {
        const foreloop_block *block = &walk->blocks[i];
        if (block->structure)
            walk->tiled_output = tiled_count++ == 0 ? block->output : FORELOOP_WALK_NONE;
        if (block->output < count)
            walk->block_hints[block->output] = (foreloop_block_hint){block->structure != NULL, block->rfactored};
    }
    for (size_t i = 0; i < walk->loop_count; i++) {
        const foreloop_loop *loop = &walk->loops[i];
        /* Loops that are made of others take class and axis from those. */
        if (loop->output < count && loop->parent == FORELOOP_WALK_NONE && loop->fused_count == 0)
            walk->loop_hints[loop->output] = (foreloop_loop_hint){loop->kind, loop->axis};
    }
    walk->hint_count = count;
    walk->named_total = walk->named_count;
    return FORELOOP_OK;
}
