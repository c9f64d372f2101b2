/* Building one action out of what the walk knows. */
#include "schedule/walk_emit.h"
#include "common/error.h"
#include <math.h>

/* ---- Arguments --------------------------------------------------------------------------------------------------- */

static void add(foreloop_walk *walk, foreloop_argument argument, const foreloop_value *copied) {
    if (walk->emitting && walk->argument_count < FORELOOP_WALK_MAX_ARGUMENTS) {
        walk->copied[walk->argument_count] = copied;
        walk->arguments[walk->argument_count++] = argument;
    }
}

void foreloop_walk_add_number(foreloop_walk *walk, const char *name, double number) {
    if (isfinite(number))
        add(walk, (foreloop_argument){.name = name, .number = number}, NULL);
}

void foreloop_walk_add_text(foreloop_walk *walk, const char *name, const char *text) {
    if (text)
        add(walk, (foreloop_argument){.name = name, .text = text}, NULL);
}

void foreloop_walk_add_copy(foreloop_walk *walk, const char *name, const foreloop_value *text) {
    add(walk, (foreloop_argument){.name = name}, text);
}

void foreloop_walk_add_extent(foreloop_walk *walk, const char *name, double extent) {
    if (extent > 0)
        foreloop_walk_add_number(walk, name, extent);
}

void foreloop_walk_add_class(foreloop_walk *walk, foreloop_loop_class kind) {
    if (kind != FORELOOP_LOOP_UNKNOWN)
        foreloop_walk_add_text(walk, "class", kind == FORELOOP_LOOP_SPATIAL ? "spatial" : "reduction");
}

static const char *role_of(const foreloop_walk *walk, size_t index) {
    const foreloop_block *block = &walk->blocks[index];
    if (block->tiled)
        return "tiled";
    if (block->rfactored)
        return "reduction";
    switch (block->origin) {
    case FORELOOP_BLOCK_ROOT:
        return "root";
    case FORELOOP_BLOCK_CACHE:
        return "cache";
    case FORELOOP_BLOCK_RFACTOR:
        return "rfactor";
    case FORELOOP_BLOCK_PRODUCER:
        return "producer";
    case FORELOOP_BLOCK_CONSUMER:
        return "consumer";
    case FORELOOP_BLOCK_NAMED:
        /* Traces name blocks in the program's order, until EnterPostproc. */
        if (walk->tiled_output != FORELOOP_WALK_NONE && block->order < walk->named_total)
            return block->output < walk->tiled_output ? "producer" : "consumer";
        break;
    case FORELOOP_BLOCK_OTHER:
        break;
    }
    return "other";
}

void foreloop_walk_add_block(foreloop_walk *walk, size_t index) {
    if (index == FORELOOP_WALK_NONE || !walk->emitting)
        return;
    foreloop_walk_add_text(walk, "role", role_of(walk, index));
    size_t order = walk->blocks[walk->blocks[index].base].order;
    if (order < walk->named_total)
        foreloop_walk_add_number(walk, "block", (double)(walk->named_total - 1 - order));
}

/* ---- Products of extents ----------------------------------------------------------------------------------------- */

/* The product over the loops [first, end) of a nest; of one class alone unless `kind` is UNKNOWN. 0 when an extent or a
 * class that matters is unknown. Loops of extent 1 count for nothing, whatever their class. */
static double product(const foreloop_walk *walk, const foreloop_block *block, size_t first, size_t end,
                      foreloop_loop_class kind) {
    double result = 1;
    for (size_t i = first; i < end; i++) {
        const foreloop_loop *loop = &walk->loops[block->nest[i]];
        if (loop->extent == 1 || (kind != FORELOOP_LOOP_UNKNOWN && loop->kind != kind && loop->kind))
            continue;
        if (kind != FORELOOP_LOOP_UNKNOWN && loop->kind == FORELOOP_LOOP_UNKNOWN)
            return 0;
        result *= loop->extent;
    }
    return result;
}

void foreloop_walk_add_location(foreloop_walk *walk, size_t block_index, size_t depth) {
    if (!walk->emitting)
        return;
    const foreloop_block *block = &walk->blocks[block_index];
    const foreloop_loop *loop = &walk->loops[block->nest[depth]];
    foreloop_walk_add_number(walk, "location", (double)depth);
    foreloop_walk_add_number(walk, "depth", (double)depth);
    if (loop->level >= 0)
        foreloop_walk_add_number(walk, "level", loop->level);
    if (loop->axis >= 0)
        foreloop_walk_add_number(walk, "axis", loop->axis);
    foreloop_walk_add_class(walk, loop->kind);
    foreloop_walk_add_extent(walk, "outer", product(walk, block, 0, depth + 1, FORELOOP_LOOP_UNKNOWN));
    if (!block->open)
        foreloop_walk_add_extent(walk, "spatial_inner",
                                 product(walk, block, depth + 1, block->nest_count, FORELOOP_LOOP_SPATIAL));
}

/* The start of the run of loops of one class that ends before `end`; loops of extent 1 belong to any run. */
static size_t run_start(const foreloop_walk *walk, const foreloop_block *block, size_t end, foreloop_loop_class kind) {
    while (end > 0) {
        const foreloop_loop *loop = &walk->loops[block->nest[end - 1]];
        if (loop->kind != kind && loop->extent != 1)
            break;
        end--;
    }
    return end;
}

/* Leading spatial loops can run in parallel; trailing spatial loops are the register tile; the reduction run before
 * those streams through it. */
static void add_runs(foreloop_walk *walk, const foreloop_block *block) {
    size_t count = block->nest_count, lead = 0;
    while (lead < count) {
        const foreloop_loop *loop = &walk->loops[block->nest[lead]];
        if (loop->kind != FORELOOP_LOOP_SPATIAL && loop->extent != 1)
            break;
        lead++;
    }
    for (size_t i = 0; i < count; i++)
        if (walk->loops[block->nest[i]].kind == FORELOOP_LOOP_UNKNOWN && walk->loops[block->nest[i]].extent != 1)
            return;
    size_t tile = run_start(walk, block, count, FORELOOP_LOOP_SPATIAL);
    size_t stream = run_start(walk, block, tile, FORELOOP_LOOP_REDUCTION);
    foreloop_walk_add_extent(walk, "spatial_outer", product(walk, block, 0, lead, FORELOOP_LOOP_UNKNOWN));
    foreloop_walk_add_extent(walk, "spatial_inner", product(walk, block, tile, count, FORELOOP_LOOP_UNKNOWN));
    foreloop_walk_add_extent(walk, "reduction_inner", product(walk, block, stream, tile, FORELOOP_LOOP_UNKNOWN));
}

void foreloop_walk_add_nest(foreloop_walk *walk, size_t block_index) {
    static const char *const names[] = {"tile_0", "tile_1", "tile_2", "tile_3", "tile_4", "tile_5", "tile_6", "tile_7"};
    enum { LEVELS = sizeof names / sizeof names[0] };
    const foreloop_block *block = &walk->blocks[block_index];
    if (block->nest_count == 0 || !walk->emitting)
        return;
    const foreloop_loop *last = &walk->loops[block->nest[block->nest_count - 1]];
    foreloop_walk_add_extent(walk, "innermost", last->extent);
    add_runs(walk, block);
    if (!block->structure)
        return;
    double tiles[LEVELS];
    bool seen[LEVELS] = {false};
    for (size_t level = 0; level < LEVELS; level++)
        tiles[level] = 1;
    for (size_t i = 0; i < block->nest_count; i++) {
        const foreloop_loop *loop = &walk->loops[block->nest[i]];
        if (loop->level >= 0 && loop->level < LEVELS) {
            tiles[loop->level] *= loop->extent;
            seen[loop->level] = true;
        }
    }
    for (size_t level = 0; level < LEVELS; level++)
        if (seen[level])
            foreloop_walk_add_extent(walk, names[level], tiles[level]);
}

/* ---- Emission ---------------------------------------------------------------------------------------------------- */

foreloop_status foreloop_walk_emit(foreloop_walk *walk, const char *kind) {
    size_t count = walk->argument_count;
    walk->argument_count = 0;
    if (!walk->emitting)
        return FORELOOP_OK;
    FORELOOP_TRY(foreloop_reserve_one(walk->allocator, &walk->actions, &walk->action_capacity, walk->action_count,
                                      sizeof *walk->actions, walk->error));
    FORELOOP_TRY(foreloop_reserve_one(walk->allocator, &walk->instructions, &walk->instruction_capacity,
                                      walk->action_count, sizeof *walk->instructions, walk->error));
    foreloop_argument *arguments = foreloop_arena_allocate(walk->arena, count, sizeof *arguments);
    if (!arguments)
        return foreloop_fail_memory(walk->error, count, sizeof *arguments, "the arguments of an action");
    for (size_t i = 0; i < count; i++) {
        const foreloop_value *copied = walk->copied[i];
        arguments[i] = walk->arguments[i];
        if (copied) {
            arguments[i].text = foreloop_arena_text(walk->arena, copied->text, copied->count);
            if (!arguments[i].text)
                return foreloop_fail_memory(walk->error, copied->count, 1, "a text of a trace");
        }
    }
    walk->actions[walk->action_count] = (foreloop_action){kind, arguments, count};
    walk->instructions[walk->action_count] = walk->place;
    walk->action_count++;
    return FORELOOP_OK;
}
