/* What handlers of instructions have in common: reading inputs, binding outputs, attributes as arguments. */
#include "schedule/walk_instruction.h"
#include "common/error.h"
#include "schedule/walk_emit.h"
#include <math.h>
#include <string.h>

foreloop_status foreloop_walk_quoted(foreloop_walk *walk, const foreloop_value *value, const char **text) {
    *text = NULL;
    if (value->type != FORELOOP_VALUE_TEXT || value->count < 2 || value->text[0] != '"' ||
        value->text[value->count - 1] != '"')
        return FORELOOP_OK;
    *text = foreloop_arena_text(walk->arena, value->text + 1, value->count - 2);
    if (!*text)
        return foreloop_fail_memory(walk->error, value->count, 1, "a text of a trace");
    return FORELOOP_OK;
}

foreloop_binding foreloop_walk_variable(const foreloop_walk *walk, const foreloop_value *value) {
    if (value->type != FORELOOP_VALUE_VARIABLE)
        return (foreloop_binding){.type = FORELOOP_VARIABLE_NONE};
    return walk->variables[value->variable];
}

static size_t input_of_type(const foreloop_walk *walk, const foreloop_value *value, foreloop_variable_type type) {
    foreloop_binding binding = foreloop_walk_variable(walk, value);
    return binding.type == type ? binding.index : FORELOOP_WALK_NONE;
}

size_t foreloop_walk_input_block(const foreloop_walk *walk, const foreloop_instruction *instruction, size_t index) {
    return input_of_type(walk, foreloop_value_item(&instruction->inputs, index), FORELOOP_VARIABLE_BLOCK);
}

size_t foreloop_walk_input_loop(const foreloop_walk *walk, const foreloop_instruction *instruction, size_t index) {
    return input_of_type(walk, foreloop_value_item(&instruction->inputs, index), FORELOOP_VARIABLE_LOOP);
}

/* A finite number, written out or sampled. */
bool foreloop_walk_input_number(const foreloop_walk *walk, const foreloop_value *value, double *number) {
    if (value->type == FORELOOP_VALUE_NUMBER) {
        *number = value->number;
    } else {
        foreloop_binding binding = foreloop_walk_variable(walk, value);
        if (binding.type != FORELOOP_VARIABLE_NUMBER || !binding.known)
            return false;
        *number = binding.number;
    }
    return isfinite(*number);
}

void foreloop_walk_bind_output(foreloop_walk *walk, const foreloop_instruction *instruction, size_t index,
                               foreloop_binding binding) {
    const foreloop_value *name = foreloop_value_item(&instruction->outputs, index);
    if (name->type == FORELOOP_VALUE_VARIABLE)
        walk->variables[name->variable] = binding;
}

/* Field by field into its place: a binding put together apart and copied has to wait for its own stores. */
static void bind_index(foreloop_walk *walk, const foreloop_instruction *instruction, size_t output,
                       foreloop_variable_type type, size_t index) {
    const foreloop_value *name = foreloop_value_item(&instruction->outputs, output);
    if (name->type != FORELOOP_VALUE_VARIABLE)
        return;
    foreloop_binding *binding = &walk->variables[name->variable];
    binding->type = type;
    binding->known = false;
    binding->index = index;
    binding->number = 0;
}

foreloop_status foreloop_walk_bind_loops(foreloop_walk *walk, const foreloop_instruction *instruction, size_t block,
                                         size_t first_output, size_t *first_loop) {
    *first_loop = walk->loop_count;
    for (size_t i = first_output; i < instruction->outputs.count; i++) {
        size_t loop;
        FORELOOP_TRY(foreloop_walk_new_loop(walk, block, walk->outputs + i, &loop));
        bind_index(walk, instruction, i, FORELOOP_VARIABLE_LOOP, loop);
    }
    return FORELOOP_OK;
}

foreloop_status foreloop_walk_bind_blocks(foreloop_walk *walk, const foreloop_instruction *instruction,
                                          foreloop_block_origin origin, size_t base) {
    for (size_t i = 0; i < instruction->outputs.count; i++) {
        size_t block;
        FORELOOP_TRY(foreloop_walk_new_block(walk, origin, base, walk->outputs + i, &block));
        bind_index(walk, instruction, i, FORELOOP_VARIABLE_BLOCK, block);
    }
    return FORELOOP_OK;
}

void foreloop_walk_add_attributes(foreloop_walk *walk, const foreloop_instruction *instruction,
                                  const foreloop_kind_info *info) {
    for (size_t i = 0; i < FORELOOP_WALK_MAX_ATTRIBUTES; i++) {
        const foreloop_value *value = foreloop_value_item(&instruction->attrs, i);
        const char *name = info->attributes[i];
        if (name && name[0] == '#' && value->type == FORELOOP_VALUE_NUMBER)
            foreloop_walk_add_number(walk, name + 1, value->number);
        else if (name && name[0] == '$' && value->type == FORELOOP_VALUE_TEXT)
            foreloop_walk_add_copy(walk, name + 1, value);
    }
}

/* The first numbers of an array, under names[FORELOOP_WALK_LISTED]. */
void foreloop_walk_add_listed(foreloop_walk *walk, const foreloop_value *array, const char *const *names) {
    for (size_t i = 0; i < FORELOOP_WALK_LISTED; i++)
        if (foreloop_value_item(array, i)->type == FORELOOP_VALUE_NUMBER)
            foreloop_walk_add_number(walk, names[i], foreloop_value_item(array, i)->number);
}

void foreloop_walk_add_loop(foreloop_walk *walk, size_t loop) {
    if (loop == FORELOOP_WALK_NONE)
        return;
    foreloop_walk_add_extent(walk, "extent", walk->loops[loop].extent);
    foreloop_walk_add_class(walk, walk->loops[loop].kind);
}
