/*
 * From points to actions. Most actions of a sketch depend on one decision or on none (a split on its own tile, an
 * annotation on nothing), so their ids can be kept by decision and value, and only the others are made anew for each
 * point. What an action depends on is told by its instruction; where that is not plain, it depends on much.
 */
#include "common/error.h"
#include "schedule/sketch.h"
#include "schedule/walk_instruction.h"

/* The decision of a number of the trace at this instruction, or NONE. */
static size_t decision_at(const foreloop_sketch *sketch, size_t instruction) {
    for (size_t d = 0; d < sketch->decision_count; d++) {
        const foreloop_sketch_decision *decision = &sketch->decisions[d];
        for (size_t i = 0; i < decision->width; i++)
            if (sketch->numbers[decision->first_number + i].instruction == instruction)
                return d;
    }
    return FORELOOP_SKETCH_NONE;
}

/* The decision whose sample made this variable, or NONE. */
static size_t decision_of(const foreloop_sketch *sketch, const foreloop_value *variable) {
    for (size_t i = 0; variable->type == FORELOOP_VALUE_VARIABLE && i < sketch->trace.count; i++) {
        const foreloop_value *outputs = &sketch->trace.instructions[i].outputs;
        for (size_t k = 0; k < outputs->count; k++)
            if (outputs->items[k].type == FORELOOP_VALUE_VARIABLE && outputs->items[k].variable == variable->variable)
                return decision_at(sketch, i);
    }
    return FORELOOP_SKETCH_NONE;
}

static bool is_block(const foreloop_sketch *sketch, const foreloop_value *input) {
    return foreloop_walk_variable(sketch->walk, input).type == FORELOOP_VARIABLE_BLOCK;
}

/* What is said of a block does not depend on decisions, nor does a constant. */
static size_t annotation_depends(const foreloop_sketch *sketch, size_t index) {
    const foreloop_instruction *instruction = &sketch->trace.instructions[index];
    const foreloop_value *value = foreloop_value_item(&instruction->inputs, 1);
    if (!is_block(sketch, foreloop_value_item(&instruction->inputs, 0)))
        return FORELOOP_SKETCH_MUCH;
    if (value->type == FORELOOP_VALUE_VARIABLE)
        return decision_of(sketch, value); /* NONE is MUCH */
    if (value->type == FORELOOP_VALUE_ARRAY)
        return FORELOOP_SKETCH_MUCH;
    size_t own = decision_at(sketch, index);
    return own == FORELOOP_SKETCH_NONE ? FORELOOP_SKETCH_NOTHING : own;
}
_Static_assert(FORELOOP_SKETCH_NONE == FORELOOP_SKETCH_MUCH, "a variable of no decision depends on much");

/* A whole axis cut by a tile that was sampled for it, the only one: its extent is the product, which never changes. */
static size_t split_depends(const foreloop_sketch *sketch, const foreloop_instruction *split) {
    const foreloop_walk *walk = sketch->walk;
    size_t loop = foreloop_walk_input_loop(walk, split, 0), found = FORELOOP_SKETCH_NONE;
    if (loop == FORELOOP_WALK_NONE || !walk->loops[loop].whole || walk->loops[loop].fused_count > 0 ||
        walk->loops[loop].parent != FORELOOP_WALK_NONE || split->inputs.count < 2)
        return FORELOOP_SKETCH_MUCH;
    for (size_t i = 1; i < split->inputs.count; i++) {
        size_t decision = decision_of(sketch, &split->inputs.items[i]);
        if (decision == FORELOOP_SKETCH_NONE || (i > 1 && decision != found))
            return FORELOOP_SKETCH_MUCH;
        found = decision;
    }
    size_t samples = 0;
    for (size_t i = 0; i < sketch->trace.count; i++) {
        const foreloop_instruction *other = &sketch->trace.instructions[i];
        if (other->kind && other->kind->handle == foreloop_on_sample_tile &&
            foreloop_walk_input_loop(walk, other, 0) == loop)
            samples += decision_at(sketch, i) == found ? 1 : 2;
    }
    return samples == 1 ? found : FORELOOP_SKETCH_MUCH;
}

/* `settled`: no block has been put at a sampled place before, so loops are the same for every point. */
static size_t depends_on(const foreloop_sketch *sketch, size_t index, bool settled) {
    const foreloop_instruction *instruction = &sketch->trace.instructions[index];
    foreloop_walk_handler *handler = instruction->kind->handle;
    if (handler == foreloop_on_block || handler == foreloop_on_cache)
        return FORELOOP_SKETCH_NOTHING;
    if (handler == foreloop_on_annotate || handler == foreloop_on_unannotate)
        return annotation_depends(sketch, index);
    if (handler == foreloop_on_split && settled)
        return split_depends(sketch, instruction);
    return FORELOOP_SKETCH_MUCH;
}

foreloop_status foreloop_sketch_find_actions(foreloop_sketch *sketch, foreloop_error *error) {
    foreloop_walk_result result;
    FORELOOP_TRY(foreloop_walk_decided(sketch->walk, &sketch->trace, NULL, &sketch->scratch, &result, error));
    const size_t count = result.action_count;
    sketch->action_instructions = foreloop_arena_allocate(&sketch->arena, count, sizeof *sketch->action_instructions);
    sketch->action_depends = foreloop_arena_allocate(&sketch->arena, count, sizeof *sketch->action_depends);
    if (!sketch->action_instructions || !sketch->action_depends)
        return foreloop_fail_memory(error, count, sizeof *sketch->action_depends, "the actions of a sketch");
    sketch->action_count = count;
    bool settled = true;
    for (size_t i = 0, action = 0; i < sketch->trace.count; i++) {
        const foreloop_instruction *instruction = &sketch->trace.instructions[i];
        for (size_t k = 0; k < instruction->inputs.count; k++)
            settled = settled && foreloop_walk_variable(sketch->walk, &instruction->inputs.items[k]).type !=
                                     FORELOOP_VARIABLE_LOCATION;
        if (action + 1 >= count || result.instructions[action] != i + 1)
            continue;
        sketch->action_instructions[action] = i;
        sketch->action_depends[action++] = depends_on(sketch, i, settled);
    }
    sketch->action_instructions[count - 1] = sketch->trace.count;
    sketch->action_depends[count - 1] = FORELOOP_SKETCH_MUCH;
    return FORELOOP_OK;
}

foreloop_status foreloop_sketch_walk(foreloop_sketch *sketch, const uint32_t *point, const unsigned char *silent,
                                     foreloop_arena *arena, foreloop_walk_result *result, foreloop_error *error) {
    for (size_t d = 0, i = 0; d < sketch->decision_count; d++) {
        const double *numbers = foreloop_sketch_value(&sketch->decisions[d], point[d]);
        for (size_t k = 0; k < sketch->decisions[d].width; k++)
            *sketch->numbers[i++].target = numbers[k];
    }
    return foreloop_walk_decided(sketch->walk, &sketch->trace, silent, arena, result, error);
}
