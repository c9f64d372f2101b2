/* Stages and iterators of an Ansor state as far as its steps tell: places move when stages are inserted and iterators
 * split, fused or reordered. */
#include "common/error.h"
#include "schedule/ansor.h"
#include <string.h>

foreloop_status foreloop_ansor_grow(foreloop_ansor_state *state, void *array, size_t *capacity, size_t count,
                                    size_t element_size) {
    if (count < *capacity)
        return FORELOOP_OK;
    size_t grown = count < 4 ? 8 : count * 2;
    void *old, *items = foreloop_arena_allocate(state->arena, grown, element_size);
    if (!items)
        return foreloop_fail_memory(state->error, grown, element_size, "the steps of a tuning record");
    /* Through memcpy, because the caller's pointer has a type of its own. */
    memcpy(&old, array, sizeof old);
    if (count > 0)
        memcpy(items, old, count * element_size);
    memcpy(array, &items, sizeof items);
    *capacity = grown;
    return FORELOOP_OK;
}

/* ---- Stages ------------------------------------------------------------------------------------------------------ */

foreloop_status foreloop_ansor_renew_axes(foreloop_ansor_state *state, size_t stage, size_t instruction) {
    FORELOOP_TRY(
        foreloop_ansor_grow(state, &state->axes, &state->axes_capacity, state->axes_count, sizeof *state->axes));
    state->axes[state->axes_count] =
        (foreloop_ansor_axes){.block = state->stages[stage].block, .instruction = instruction};
    state->stages[stage].axes = state->axes_count++;
    state->stages[stage].iterator_count = 0;
    return FORELOOP_OK;
}

static foreloop_status new_stage(foreloop_ansor_state *state, size_t instruction, size_t *stage) {
    FORELOOP_TRY(
        foreloop_ansor_grow(state, &state->stages, &state->stage_capacity, state->stage_count, sizeof *state->stages));
    state->stages[state->stage_count] = (foreloop_ansor_stage){.block = state->variable_count++};
    *stage = state->stage_count++;
    return foreloop_ansor_renew_axes(state, *stage, instruction);
}

static foreloop_status fail_stages(foreloop_ansor_state *state) {
    return foreloop_fail(state->error, FORELOOP_ERROR_LIMIT, "step %zu needs more than %d stages", state->step,
                         FORELOOP_ANSOR_MAX_STAGES);
}

foreloop_status foreloop_ansor_stage_at(foreloop_ansor_state *state, size_t place, size_t *stage) {
    if (place >= FORELOOP_ANSOR_MAX_STAGES)
        return fail_stages(state);
    while (state->order_count <= place) {
        FORELOOP_TRY(foreloop_ansor_grow(state, &state->order, &state->order_capacity, state->order_count,
                                         sizeof *state->order));
        FORELOOP_TRY(new_stage(state, FORELOOP_ANSOR_NONE, stage));
        state->stages[*stage].original = true;
        state->order[state->order_count++] = *stage;
    }
    *stage = state->order[place];
    return FORELOOP_OK;
}

foreloop_status foreloop_ansor_insert_stage(foreloop_ansor_state *state, size_t place, size_t instruction,
                                            size_t *stage) {
    if (state->order_count == FORELOOP_ANSOR_MAX_STAGES)
        return fail_stages(state);
    FORELOOP_TRY(
        foreloop_ansor_grow(state, &state->order, &state->order_capacity, state->order_count, sizeof *state->order));
    FORELOOP_TRY(new_stage(state, instruction, stage));
    memmove(state->order + place + 1, state->order + place, (state->order_count - place) * sizeof *state->order);
    state->order[place] = *stage;
    state->order_count++;
    return FORELOOP_OK;
}

/* ---- Iterators --------------------------------------------------------------------------------------------------- */

foreloop_status foreloop_ansor_reach(foreloop_ansor_state *state, size_t index, size_t count) {
    foreloop_ansor_stage *stage = &state->stages[index];
    foreloop_ansor_axes *axes = &state->axes[stage->axes];
    if (count > FORELOOP_ANSOR_MAX_ITERATORS || (axes->closed && count > stage->iterator_count))
        return foreloop_fail(state->error, FORELOOP_ERROR_FORMAT,
                             "step %zu names iterator %zu of a stage that has %zu at the most", state->step, count - 1,
                             axes->closed ? stage->iterator_count : (size_t)FORELOOP_ANSOR_MAX_ITERATORS);
    while (stage->iterator_count < count) {
        FORELOOP_TRY(foreloop_ansor_grow(state, &axes->items, &axes->capacity, axes->count, sizeof *axes->items));
        FORELOOP_TRY(foreloop_ansor_grow(state, &stage->iterators, &stage->iterator_capacity, stage->iterator_count,
                                         sizeof *stage->iterators));
        size_t variable = state->variable_count++;
        axes->items[axes->count] = (foreloop_ansor_axis){.variable = variable, .source = FORELOOP_ANSOR_NONE};
        stage->iterators[stage->iterator_count++] = (foreloop_ansor_iterator){variable, axes->count++, 0};
    }
    return FORELOOP_OK;
}

foreloop_status foreloop_ansor_replace(foreloop_ansor_state *state, size_t index, size_t place, size_t removed,
                                       size_t added, size_t *first) {
    foreloop_ansor_stage *stage = &state->stages[index];
    size_t behind = stage->iterator_count - place - removed;
    if (place + added + behind > FORELOOP_ANSOR_MAX_ITERATORS)
        return foreloop_fail(state->error, FORELOOP_ERROR_LIMIT, "step %zu gives a stage more than %d iterators",
                             state->step, FORELOOP_ANSOR_MAX_ITERATORS);
    while (stage->iterator_capacity < place + added + behind)
        FORELOOP_TRY(foreloop_ansor_grow(state, &stage->iterators, &stage->iterator_capacity, stage->iterator_capacity,
                                         sizeof *stage->iterators));
    *first = state->variable_count;
    state->variable_count += added;
    if (behind > 0)
        memmove(stage->iterators + place + added, stage->iterators + place + removed,
                behind * sizeof *stage->iterators);
    for (size_t i = 0; i < added; i++)
        stage->iterators[place + i] = (foreloop_ansor_iterator){*first + i, FORELOOP_ANSOR_NONE, 0};
    stage->iterator_count = place + added + behind;
    return FORELOOP_OK;
}

/* ---- Multi-level tiling ------------------------------------------------------------------------------------------ */

static size_t parts_of(const foreloop_ansor_axes *axes, const foreloop_ansor_iterator *iterator) {
    return iterator->axis == FORELOOP_ANSOR_NONE ? 0 : axes->items[iterator->axis].parts;
}

/* In how many parts the spatial and the reduction axes are split, when it is two numbers and all axes are: tilings
 * begin and end with spatial loops and cut those finer. */
static bool tiling_parts(const foreloop_ansor_stage *stage, const foreloop_ansor_axes *axes, size_t *spatial,
                         size_t *reduction) {
    if (stage->iterator_count == 0)
        return false;
    *spatial = parts_of(axes, &stage->iterators[0]);
    *reduction = 0;
    if (*spatial != parts_of(axes, &stage->iterators[stage->iterator_count - 1]))
        return false;
    for (size_t i = 0; i < axes->count; i++) {
        size_t parts = axes->items[i].parts;
        if (parts == *spatial)
            continue;
        if (*reduction != 0 && parts != *reduction)
            return false;
        *reduction = parts;
    }
    return *reduction >= 2 && *spatial > *reduction;
}

/* The tiling's structure, a letter for each run of loops of one class and part; every part has one run, in order. */
static foreloop_status find_structure(foreloop_ansor_state *state, const foreloop_ansor_stage *stage,
                                      foreloop_ansor_axes *axes) {
    size_t spatial, reduction, next[2] = {0, 0}, length = 0;
    if (axes->structure || !tiling_parts(stage, axes, &spatial, &reduction))
        return FORELOOP_OK;
    char *structure = foreloop_arena_allocate(state->arena, spatial + reduction + 1, 1);
    if (!structure)
        return foreloop_fail_memory(state->error, spatial + reduction, 1, "the tiling of a stage");
    for (size_t i = 0; i < stage->iterator_count; i++) {
        const foreloop_ansor_iterator *iterator = &stage->iterators[i];
        size_t parts = parts_of(axes, iterator);
        bool is_reduction = parts == reduction;
        if (parts == 0)
            return FORELOOP_OK;
        char letter = is_reduction ? 'R' : 'S';
        bool same_run = length > 0 && structure[length - 1] == letter && iterator->part + 1 == next[is_reduction];
        if (same_run)
            continue;
        if (iterator->part != next[is_reduction] || length == spatial + reduction)
            return FORELOOP_OK;
        next[is_reduction]++;
        structure[length++] = letter;
    }
    structure[length] = '\0';
    if (length == spatial + reduction)
        axes->structure = structure;
    return FORELOOP_OK;
}

foreloop_status foreloop_ansor_reorder(foreloop_ansor_state *state, size_t index, const foreloop_value *order) {
    foreloop_ansor_stage *stage = &state->stages[index];
    FORELOOP_TRY(foreloop_ansor_reach(state, index, order->count));
    size_t count = stage->iterator_count;
    foreloop_ansor_iterator *before = foreloop_arena_allocate(state->arena, count, sizeof *before);
    if (!before)
        return foreloop_fail_memory(state->error, count, sizeof *before, "the iterators of a stage");
    if (count > 0)
        memcpy(before, stage->iterators, count * sizeof *before);
    bool named[FORELOOP_ANSOR_MAX_ITERATORS] = {false};
    for (size_t i = 0; i < count; i++) {
        int64_t from;
        if (order->count != count || !foreloop_value_integer(&order->items[i], 0, (int64_t)count - 1, &from) ||
            named[from])
            return foreloop_fail(state->error, FORELOOP_ERROR_FORMAT,
                                 "step %zu does not name each of the stage's %zu iterators once", state->step, count);
        named[from] = true;
        stage->iterators[i] = before[from];
    }
    state->axes[stage->axes].closed = true;
    return find_structure(state, stage, &state->axes[stage->axes]);
}
