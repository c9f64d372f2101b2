/* Instructions that look up or sample: they emit nothing, what they find is used by those that follow. */
#include "common/error.h"
#include "schedule/walk_emit.h"
#include "schedule/walk_instruction.h"
#include "schedule/walk_state.h"
#include <math.h>
#include <string.h>

static void bind_number(foreloop_walk *walk, const foreloop_instruction *instruction, size_t index,
                        foreloop_variable_type type, bool known, double number) {
    foreloop_walk_bind_output(walk, instruction, index,
                              (foreloop_binding){.type = type, .known = known && isfinite(number), .number = number});
}

/* One block however often it is looked up: names are unique within a function. */
static foreloop_status named_block(foreloop_walk *walk, const foreloop_value *name, const foreloop_value *function,
                                   size_t *block) {
    size_t suffix = function->type == FORELOOP_VALUE_TEXT ? function->count : 0, number;
    char *key = foreloop_arena_allocate(walk->arena, name->count + 1 + suffix, 1);
    if (!key)
        return foreloop_fail_memory(walk->error, name->count + 1 + suffix, 1, "a block's name");
    memcpy(key, name->text, name->count);
    key[name->count] = '\0';
    if (suffix > 0)
        memcpy(key + name->count + 1, function->text, suffix);
    size_t known = walk->block_names.count;
    FORELOOP_TRY(
        foreloop_names_add(&walk->block_names, walk->allocator, key, name->count + 1 + suffix, &number, walk->error));
    if (number == known) {
        FORELOOP_TRY(foreloop_reserve_one(walk->allocator, &walk->named_blocks, &walk->named_block_capacity, known,
                                          sizeof *walk->named_blocks, walk->error));
        foreloop_block_origin origin = foreloop_value_is(name, "root") ? FORELOOP_BLOCK_ROOT : FORELOOP_BLOCK_NAMED;
        FORELOOP_TRY(
            foreloop_walk_new_block(walk, origin, FORELOOP_WALK_NONE, walk->outputs, &walk->named_blocks[number]));
    }
    *block = walk->named_blocks[number];
    return FORELOOP_OK;
}

foreloop_status foreloop_on_get_block(foreloop_walk *walk, const foreloop_instruction *instruction,
                                      const foreloop_kind_info *info) {
    (void)info;
    const foreloop_value *name = foreloop_value_item(&instruction->attrs, 0);
    foreloop_binding binding = {.type = FORELOOP_VARIABLE_BLOCK};
    if (name->type == FORELOOP_VALUE_TEXT)
        FORELOOP_TRY(named_block(walk, name, foreloop_value_item(&instruction->attrs, 1), &binding.index));
    else
        FORELOOP_TRY(foreloop_walk_new_block(walk, FORELOOP_BLOCK_OTHER, FORELOOP_WALK_NONE, FORELOOP_WALK_NONE,
                                             &binding.index));
    foreloop_walk_bind_output(walk, instruction, 0, binding);
    return FORELOOP_OK;
}

foreloop_status foreloop_on_get_loops(foreloop_walk *walk, const foreloop_instruction *instruction,
                                      const foreloop_kind_info *info) {
    (void)info;
    size_t block = foreloop_walk_input_block(walk, instruction, 0), count = instruction->outputs.count, first;
    if (block == FORELOOP_WALK_NONE)
        FORELOOP_TRY(
            foreloop_walk_new_block(walk, FORELOOP_BLOCK_OTHER, FORELOOP_WALK_NONE, FORELOOP_WALK_NONE, &block));
    foreloop_block *b = &walk->blocks[block];
    /* How many of these loops are known already, from the outermost: the same nest looked up again, or the loops
     * around the place where the block was put. */
    const size_t *known = b->nest;
    size_t shared = 0;
    if (b->nest_count > 0) {
        shared = b->nest_count == count ? count : 0;
    } else if (b->at_block != FORELOOP_WALK_NONE && walk->blocks[b->at_block].nest_count > b->at_depth &&
               count > b->at_depth) {
        known = walk->blocks[b->at_block].nest;
        shared = b->at_depth + 1;
    }
    bool axes = shared == 0 && b->nest_count == 0 && !b->has_axes;
    for (size_t i = 0; i < shared; i++)
        foreloop_walk_bind_output(walk, instruction, i,
                                  (foreloop_binding){.type = FORELOOP_VARIABLE_LOOP, .index = known[i]});
    if (shared == count)
        return FORELOOP_OK;
    FORELOOP_TRY(foreloop_walk_bind_loops(walk, instruction, block, shared, &first));
    if (axes)
        return foreloop_walk_add_axes(walk, block, first);
    b->nest_count = 0;
    for (size_t i = 0; i < shared; i++)
        FORELOOP_TRY(foreloop_walk_insert(walk, block, i, known[i], 1));
    return foreloop_walk_insert(walk, block, shared, first, count - shared);
}

foreloop_status foreloop_on_get_blocks(foreloop_walk *walk, const foreloop_instruction *instruction,
                                       const foreloop_kind_info *info) {
    (void)info;
    return foreloop_walk_bind_blocks(walk, instruction, FORELOOP_BLOCK_OTHER, FORELOOP_WALK_NONE);
}

/* Producers or consumers; the block that RFactor or CacheWrite has made is told by being the only one. */
static foreloop_status get_neighbours(foreloop_walk *walk, const foreloop_instruction *instruction,
                                      foreloop_block_origin origin, size_t made) {
    if (made != FORELOOP_WALK_NONE && instruction->outputs.count == 1) {
        foreloop_walk_bind_output(walk, instruction, 0,
                                  (foreloop_binding){.type = FORELOOP_VARIABLE_BLOCK, .index = made});
        return FORELOOP_OK;
    }
    return foreloop_walk_bind_blocks(walk, instruction, origin, foreloop_walk_input_block(walk, instruction, 0));
}

foreloop_status foreloop_on_get_producers(foreloop_walk *walk, const foreloop_instruction *instruction,
                                          const foreloop_kind_info *info) {
    (void)info;
    size_t block = foreloop_walk_input_block(walk, instruction, 0);
    return get_neighbours(walk, instruction, FORELOOP_BLOCK_PRODUCER,
                          block == FORELOOP_WALK_NONE ? block : walk->blocks[block].rfactor);
}

foreloop_status foreloop_on_get_consumers(foreloop_walk *walk, const foreloop_instruction *instruction,
                                          const foreloop_kind_info *info) {
    (void)info;
    size_t block = foreloop_walk_input_block(walk, instruction, 0);
    return get_neighbours(walk, instruction, FORELOOP_BLOCK_CONSUMER,
                          block == FORELOOP_WALK_NONE ? block : walk->blocks[block].cache);
}

foreloop_status foreloop_on_sample_tile(foreloop_walk *walk, const foreloop_instruction *instruction,
                                        const foreloop_kind_info *info) {
    (void)info;
    const foreloop_value *decision = instruction->decision;
    size_t count = instruction->outputs.count, loop = foreloop_walk_input_loop(walk, instruction, 0);
    bool known = decision && decision->type == FORELOOP_VALUE_ARRAY && decision->count == count && count > 0;
    double extent = 1;
    for (size_t i = 0; known && i < count; i++) {
        const foreloop_value *factor = &decision->items[i];
        known = factor->type == FORELOOP_VALUE_NUMBER && factor->number >= 1 && factor->number == floor(factor->number);
        extent *= factor->number;
    }
    for (size_t i = 0; i < count; i++)
        bind_number(walk, instruction, i, FORELOOP_VARIABLE_NUMBER, known, known ? decision->items[i].number : 0);
    if (known && isfinite(extent) && loop != FORELOOP_WALK_NONE && walk->loops[loop].extent == 0)
        walk->loops[loop].extent = extent;
    return FORELOOP_OK;
}

foreloop_status foreloop_on_sample_categorical(foreloop_walk *walk, const foreloop_instruction *instruction,
                                               const foreloop_kind_info *info) {
    (void)info;
    const foreloop_value *candidates = foreloop_value_item(&instruction->attrs, 0), *decision = instruction->decision;
    bool known = decision && decision->type == FORELOOP_VALUE_NUMBER && candidates->type == FORELOOP_VALUE_ARRAY &&
                 decision->number >= 0 && decision->number < (double)candidates->count;
    double number = 0;
    if (known) {
        const foreloop_value *chosen = &candidates->items[(size_t)decision->number];
        known = chosen->type == FORELOOP_VALUE_NUMBER;
        number = chosen->number;
    }
    bind_number(walk, instruction, 0, FORELOOP_VARIABLE_NUMBER, known, number);
    return FORELOOP_OK;
}

foreloop_status foreloop_on_sample_location(foreloop_walk *walk, const foreloop_instruction *instruction,
                                            const foreloop_kind_info *info) {
    (void)info;
    const foreloop_value *decision = instruction->decision;
    bool known = decision && decision->type == FORELOOP_VALUE_NUMBER && decision->number >= -2 &&
                 decision->number == floor(decision->number);
    bind_number(walk, instruction, 0, FORELOOP_VARIABLE_LOCATION, known, known ? decision->number : 0);
    return FORELOOP_OK;
}

/* ---- Of Ansor's steps -------------------------------------------------------------------------------------------- */

foreloop_status foreloop_on_stage(foreloop_walk *walk, const foreloop_instruction *instruction,
                                  const foreloop_kind_info *info) {
    (void)info;
    foreloop_binding binding = {.type = FORELOOP_VARIABLE_BLOCK};
    FORELOOP_TRY(
        foreloop_walk_new_block(walk, FORELOOP_BLOCK_NAMED, FORELOOP_WALK_NONE, walk->outputs, &binding.index));
    foreloop_walk_bind_output(walk, instruction, 0, binding);
    return FORELOOP_OK;
}

/* New axes in place of all loops that the block had. Attributes: whether that is all of them, the tiling's structure,
 * and each one's class. */
foreloop_status foreloop_on_axes(foreloop_walk *walk, const foreloop_instruction *instruction,
                                 const foreloop_kind_info *info) {
    (void)info;
    size_t index = foreloop_walk_input_block(walk, instruction, 0), count = instruction->outputs.count, first;
    const foreloop_value *attrs = instruction->attrs.items;
    if (index == FORELOOP_WALK_NONE)
        return FORELOOP_OK;
    FORELOOP_TRY(foreloop_walk_bind_loops(walk, instruction, index, 0, &first));
    foreloop_block *block = &walk->blocks[index];
    block->open = attrs[0].number == 0;
    block->structure = attrs[1].type == FORELOOP_VALUE_TEXT ? attrs[1].text : NULL;
    for (size_t i = 0; i < count; i++) {
        if (attrs[2 + i].number == FORELOOP_LOOP_SPATIAL)
            walk->loops[first + i].kind = FORELOOP_LOOP_SPATIAL;
        else if (attrs[2 + i].number == FORELOOP_LOOP_REDUCTION)
            walk->loops[first + i].kind = FORELOOP_LOOP_REDUCTION;
    }
    return foreloop_walk_add_axes(walk, index, first);
}
