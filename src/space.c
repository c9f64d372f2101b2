/* Search spaces: opening, what can be decided, and points. */
#include "space.h"
#include "common/error.h"
#include "common/sized.h"
#include <string.h>

void foreloop_space_close(foreloop_space *space) {
    if (!space)
        return;
    foreloop_allocator allocator = space->allocator;
    for (size_t i = 0; space->kept && i < space->sketch.action_count; i++)
        foreloop_release(&allocator, space->kept[i].ids);
    foreloop_release(&allocator, space->kept);
    foreloop_release(&allocator, space->much_silent);
    foreloop_release(&allocator, space->wanted_silent);
    foreloop_release(&allocator, space->list);
    foreloop_release(&allocator, space->list_at);
    foreloop_release(&allocator, space->list_ids);
    foreloop_release(&allocator, space->ids);
    foreloop_release(&allocator, space->offsets);
    foreloop_arena_close(&space->arena);
    foreloop_sketch_close(&space->sketch);
    foreloop_release(&allocator, space);
}

/* What interning and scoring need. */
static foreloop_status allocate_tables(foreloop_space *space, foreloop_error *error) {
    const foreloop_sketch *sketch = &space->sketch;
    const size_t actions = sketch->action_count, count = sketch->trace.count;
    space->kept = foreloop_allocate_zeroed(&space->allocator, actions, sizeof *space->kept);
    space->much_silent = foreloop_allocate_zeroed(&space->allocator, count, 1);
    space->wanted_silent = foreloop_allocate_zeroed(&space->allocator, count, 1);
    FORELOOP_TRY(foreloop_reserve(&space->allocator, &space->ids, &space->point_ids_capacity, 0,
                                  actions * FORELOOP_SPACE_CHUNK, sizeof *space->ids, error));
    space->offsets = foreloop_allocate(&space->allocator, FORELOOP_SPACE_CHUNK + 1, sizeof *space->offsets);
    if (!space->kept || !space->much_silent || !space->wanted_silent || !space->offsets)
        return foreloop_fail_memory(error, count, 2, "a search space");
    for (size_t i = 0; i < actions; i++)
        if (sketch->action_depends[i] != FORELOOP_SKETCH_MUCH)
            space->much_silent[sketch->action_instructions[i]] = 1;
    for (size_t i = 0; i <= FORELOOP_SPACE_CHUNK; i++)
        space->offsets[i] = i * actions;
    return FORELOOP_OK;
}

foreloop_status foreloop_space_create(foreloop_space **space, foreloop_actions *actions, const char *text,
                                      size_t length, const foreloop_options *options, foreloop_error *error) {
    if (!space || !text)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_space_create: space and text must not be NULL");
    foreloop_options given;
    FORELOOP_TRY(foreloop_sized_read(&given, sizeof given, options, "foreloop_options", error));
    foreloop_allocator allocator = foreloop_allocator_or_default(given.allocator);
    foreloop_space *own = foreloop_allocate_zeroed(&allocator, 1, sizeof *own);
    if (!own)
        return foreloop_fail_memory(error, 1, sizeof *own, "a search space");
    own->allocator = allocator;
    own->actions = actions;
    own->arena.allocator = &own->allocator;
    foreloop_status status = foreloop_sketch_open(&own->sketch, &own->allocator, text, length, error);
    if (status == FORELOOP_OK)
        status = allocate_tables(own, error);
    if (status != FORELOOP_OK) {
        foreloop_space_close(own);
        return status;
    }
    *space = own;
    return FORELOOP_OK;
}

foreloop_status foreloop_space_add(foreloop_space *space, const char *text, size_t length, uint32_t *point,
                                   foreloop_error *error) {
    if (!space || !text)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_space_add: space and text must not be NULL");
    return foreloop_sketch_add(&space->sketch, text, length, point, error);
}

/* ---- What can be decided ----------------------------------------------------------------------------------------- */

void foreloop_space_get_info(const foreloop_space *space, foreloop_space_info *info) {
    if (!space || !info)
        return;
    const foreloop_sketch *sketch = &space->sketch;
    foreloop_space_info full = {.decision_count = sketch->decision_count,
                                .action_count = sketch->action_count,
                                .instruction_count = sketch->trace.count,
                                .trace_count = sketch->point_count,
                                .points = 1};
    for (size_t i = 0; i < sketch->decision_count; i++)
        full.points *= (double)sketch->decisions[i].count;
    foreloop_sized_write(info, &full, sizeof full);
}

foreloop_status foreloop_space_get_decision(const foreloop_space *space, size_t index,
                                            foreloop_space_decision *decision, foreloop_error *error) {
    if (!space || !decision || index >= space->sketch.decision_count)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "foreloop_space_get_decision: an argument is NULL, or there is no decision %zu", index);
    const foreloop_sketch_decision *own = &space->sketch.decisions[index];
    foreloop_space_decision full = {.kind = own->kind,
                                    .instruction = space->sketch.numbers[own->first_number].instruction,
                                    .numbers = own->width,
                                    .values = own->count};
    foreloop_sized_write(decision, &full, sizeof full);
    return FORELOOP_OK;
}

foreloop_status foreloop_space_get_value(const foreloop_space *space, size_t index, uint32_t value, double *numbers,
                                         foreloop_error *error) {
    if (!space || !numbers || index >= space->sketch.decision_count || value >= space->sketch.decisions[index].count)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "foreloop_space_get_value: an argument is NULL, or decision %zu has no value %lu", index,
                             (unsigned long)value);
    const foreloop_sketch_decision *decision = &space->sketch.decisions[index];
    memcpy(numbers, foreloop_sketch_value(decision, value), decision->width * sizeof *numbers);
    return FORELOOP_OK;
}

/* ---- Points ------------------------------------------------------------------------------------------------------ */

foreloop_status foreloop_space_check(const char *function, const foreloop_space *space, const uint32_t *points,
                                     size_t count, foreloop_error *error) {
    if (!space || (!points && count > 0))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "%s: an argument is NULL", function);
    const foreloop_sketch *sketch = &space->sketch;
    for (size_t i = 0; i < count; i++)
        for (size_t d = 0; d < sketch->decision_count; d++)
            if (points[i * sketch->decision_count + d] >= sketch->decisions[d].count)
                return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                                     "%s: point %zu is not of this space: decision %zu has %zu values, not one "
                                     "numbered %lu",
                                     function, i, d, sketch->decisions[d].count,
                                     (unsigned long)points[i * sketch->decision_count + d]);
    return FORELOOP_OK;
}

foreloop_status foreloop_space_get_trace_point(const foreloop_space *space, size_t index, uint32_t *point,
                                               foreloop_error *error) {
    if (!space || !point || index >= space->sketch.point_count)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "foreloop_space_get_trace_point: an argument is NULL, or there is no trace %zu", index);
    const size_t size = space->sketch.decision_count;
    if (size > 0)
        memcpy(point, space->sketch.points + index * size, size * sizeof *point);
    return FORELOOP_OK;
}

int foreloop_space_is_legal(const foreloop_space *space, const uint32_t *point) {
    return foreloop_space_check("foreloop_space_is_legal", space, point, 1, NULL) == FORELOOP_OK &&
           foreloop_sketch_legal(&space->sketch, point);
}

foreloop_status foreloop_space_sample(const foreloop_space *space, uint64_t *random, size_t count, uint32_t *points,
                                      foreloop_error *error) {
    if (!space || !random || (!points && count > 0))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_space_sample: an argument is NULL");
    for (size_t i = 0; i < count; i++)
        foreloop_sketch_sample(&space->sketch, random, points + i * space->sketch.decision_count);
    return FORELOOP_OK;
}

foreloop_status foreloop_space_mutate(const foreloop_space *space, uint64_t *random, const uint32_t *points,
                                      size_t count, uint32_t *mutated, foreloop_error *error) {
    FORELOOP_TRY(foreloop_space_check("foreloop_space_mutate", space, points, count, error));
    if (!random || (!mutated && count > 0))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_space_mutate: an argument is NULL");
    const size_t size = space->sketch.decision_count;
    for (size_t i = 0; i < count; i++)
        foreloop_sketch_mutate(&space->sketch, random, points + i * size, mutated + i * size);
    return FORELOOP_OK;
}

foreloop_status foreloop_space_cross(const foreloop_space *space, uint64_t *random, const uint32_t *first,
                                     const uint32_t *second, size_t count, uint32_t *crossed, foreloop_error *error) {
    FORELOOP_TRY(foreloop_space_check("foreloop_space_cross", space, first, count, error));
    FORELOOP_TRY(foreloop_space_check("foreloop_space_cross", space, second, count, error));
    if (!random || (!crossed && count > 0))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_space_cross: an argument is NULL");
    const size_t size = space->sketch.decision_count;
    for (size_t i = 0; i < count; i++)
        foreloop_sketch_cross(&space->sketch, random, first + i * size, second + i * size, crossed + i * size);
    return FORELOOP_OK;
}

foreloop_status foreloop_space_first(const foreloop_space *space, uint32_t *point, foreloop_error *error) {
    if (!space || !point)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_space_first: an argument is NULL");
    foreloop_sketch_first(&space->sketch, point);
    return FORELOOP_OK;
}

foreloop_status foreloop_space_next(const foreloop_space *space, uint32_t *point, foreloop_error *error) {
    FORELOOP_TRY(foreloop_space_check("foreloop_space_next", space, point, 1, error));
    foreloop_status status = foreloop_sketch_next(&space->sketch, point);
    return status == FORELOOP_ERROR_ARGUMENT
               ? foreloop_fail(error, status, "foreloop_space_next: the point is not legal; begin with one that is")
               : status;
}

foreloop_status foreloop_space_trace(const foreloop_space *space, const uint32_t *point, char *buffer, size_t capacity,
                                     size_t *needed, foreloop_error *error) {
    FORELOOP_TRY(foreloop_space_check("foreloop_space_trace", space, point, 1, error));
    if (!needed || (!buffer && capacity > 0))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_space_trace: an argument is NULL");
    *needed = foreloop_sketch_write(&space->sketch, point, buffer, 0);
    if (capacity == 0)
        return FORELOOP_OK;
    if (capacity < *needed)
        return foreloop_fail(error, FORELOOP_ERROR_LIMIT, "foreloop_space_trace: the trace needs %zu bytes, not %zu",
                             *needed, capacity);
    foreloop_sketch_write(&space->sketch, point, buffer, capacity);
    return FORELOOP_OK;
}
