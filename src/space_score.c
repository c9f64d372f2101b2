/*
 * From points to ids and scores. The ids of actions that depend on one decision are kept for good; the others, most of
 * which are new with every point, are only interned as long as a chunk is scored, so the table stays small however long
 * a search is, and what is made anew lies in the caches.
 */
#include "common/error.h"
#include "scorer.h"
#include "space.h"
#include <string.h>

static foreloop_status reserve_list(foreloop_space *space, size_t count, foreloop_error *error) {
    FORELOOP_TRY(foreloop_reserve(&space->allocator, &space->list, &space->list_capacity, space->list_count, count,
                                  sizeof *space->list, error));
    FORELOOP_TRY(foreloop_reserve(&space->allocator, &space->list_at, &space->at_capacity, space->list_count, count,
                                  sizeof *space->list_at, error));
    return foreloop_reserve(&space->allocator, &space->list_ids, &space->ids_capacity, 0, count,
                            sizeof *space->list_ids, error);
}

/* Puts a point's actions on the list. `at` is where the ids of the point begin. */
static foreloop_status list_actions(foreloop_space *space, const uint32_t *point, const unsigned char *silent,
                                    size_t at, foreloop_error *error) {
    const foreloop_sketch *sketch = &space->sketch;
    foreloop_walk_result result;
    FORELOOP_TRY(foreloop_sketch_walk(&space->sketch, point, silent, &space->arena, &result, error));
    FORELOOP_TRY(reserve_list(space, space->list_count + result.action_count, error));
    for (size_t i = 0, action = 0; i < result.action_count; i++, action++) {
        while (sketch->action_instructions[action] + 1 < result.instructions[i])
            action++;
        if (i + 1 == result.action_count)
            action = sketch->action_count - 1;
        space->list[space->list_count] = result.actions[i];
        space->list_at[space->list_count++] = at + action;
    }
    return FORELOOP_OK;
}

static foreloop_status intern_list(foreloop_space *space, foreloop_error *error) {
    return foreloop_actions_intern(space->actions, space->list, space->list_count, space->list_ids, error);
}

static void begin_list(foreloop_space *space) {
    foreloop_arena_reset(&space->arena);
    space->list_count = 0;
}

/* ---- Actions whose ids are kept ---------------------------------------------------------------------------------- */

/* Where the id of a point's action is kept. */
static uint32_t *kept_id(const foreloop_space *space, size_t action, const uint32_t *point) {
    const size_t depends = space->sketch.action_depends[action];
    return &space->kept[action].ids[depends == FORELOOP_SKETCH_NOTHING ? 0 : point[depends]];
}

/* Room for an id of each value that decisions have by now. */
static foreloop_status reserve_kept(foreloop_space *space, foreloop_error *error) {
    const foreloop_sketch *sketch = &space->sketch;
    for (size_t i = 0; i < sketch->action_count; i++) {
        foreloop_space_ids *kept = &space->kept[i];
        const size_t depends = sketch->action_depends[i];
        if (depends == FORELOOP_SKETCH_MUCH)
            continue;
        const size_t count = depends == FORELOOP_SKETCH_NOTHING ? 1 : sketch->decisions[depends].count;
        FORELOOP_TRY(foreloop_reserve(&space->allocator, &kept->ids, &kept->capacity, kept->count, count,
                                      sizeof *kept->ids, error));
        while (kept->count < count)
            kept->ids[kept->count++] = UINT32_MAX;
    }
    return FORELOOP_OK;
}

/* Interns those of a point's actions whose ids are to be kept and are not there yet. */
static foreloop_status keep_missing(foreloop_space *space, const uint32_t *point, foreloop_error *error) {
    const foreloop_sketch *sketch = &space->sketch;
    size_t missing = 0;
    for (size_t i = 0; i < sketch->action_count; i++)
        if (sketch->action_depends[i] != FORELOOP_SKETCH_MUCH)
            missing += *kept_id(space, i, point) == UINT32_MAX;
    if (missing == 0)
        return FORELOOP_OK;
    memset(space->wanted_silent, 1, sketch->trace.count);
    for (size_t i = 0; i < sketch->action_count; i++)
        if (sketch->action_depends[i] != FORELOOP_SKETCH_MUCH && *kept_id(space, i, point) == UINT32_MAX)
            space->wanted_silent[sketch->action_instructions[i]] = 0;
    begin_list(space);
    FORELOOP_TRY(list_actions(space, point, space->wanted_silent, 0, error));
    space->list_count--; /* `postprocess` depends on much */
    FORELOOP_TRY(intern_list(space, error));
    for (size_t i = 0; i < space->list_count; i++)
        *kept_id(space, space->list_at[i], point) = space->list_ids[i];
    return FORELOOP_OK;
}

static foreloop_status keep_all(foreloop_space *space, const uint32_t *points, size_t count, foreloop_error *error) {
    FORELOOP_TRY(reserve_kept(space, error));
    for (size_t i = 0; i < count; i++)
        FORELOOP_TRY(keep_missing(space, points + i * space->sketch.decision_count, error));
    return FORELOOP_OK;
}

/* ---- All actions ------------------------------------------------------------------------------------------------- */

/* ids[count][action_count] of points whose kept ids are there. */
static foreloop_status intern_points(foreloop_space *space, const uint32_t *points, size_t count, uint32_t *ids,
                                     foreloop_error *error) {
    const foreloop_sketch *sketch = &space->sketch;
    for (size_t done = 0; done < count;) {
        const size_t run = count - done < FORELOOP_SPACE_RUN ? count - done : FORELOOP_SPACE_RUN;
        begin_list(space);
        for (size_t i = done; i < done + run; i++) {
            const uint32_t *point = points + i * sketch->decision_count;
            FORELOOP_TRY(list_actions(space, point, space->much_silent, i * sketch->action_count, error));
            for (size_t k = 0; k < sketch->action_count; k++)
                if (sketch->action_depends[k] != FORELOOP_SKETCH_MUCH)
                    ids[i * sketch->action_count + k] = *kept_id(space, k, point);
        }
        FORELOOP_TRY(intern_list(space, error));
        for (size_t i = 0; i < space->list_count; i++)
            ids[space->list_at[i]] = space->list_ids[i];
        done += run;
    }
    return FORELOOP_OK;
}

static foreloop_status check_actions(const char *function, const foreloop_space *space, foreloop_error *error) {
    if (!space->actions)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "%s: the space was made without an action table: give one to foreloop_space_create",
                             function);
    return FORELOOP_OK;
}

foreloop_status foreloop_space_intern(foreloop_space *space, const uint32_t *points, size_t count, uint32_t *ids,
                                      foreloop_error *error) {
    FORELOOP_TRY(foreloop_space_check("foreloop_space_intern", space, points, count, error));
    if (!ids && count > 0)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_space_intern: an argument is NULL");
    FORELOOP_TRY(check_actions("foreloop_space_intern", space, error));
    const size_t actions = space->sketch.action_count;
    if (count > SIZE_MAX / actions)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_space_intern: too many points");
    FORELOOP_TRY(keep_all(space, points, count, error));
    /* Apart, because ids must stay untouched on failure. */
    FORELOOP_TRY(foreloop_reserve(&space->allocator, &space->ids, &space->point_ids_capacity, 0, count * actions,
                                  sizeof *space->ids, error));
    FORELOOP_TRY(intern_points(space, points, count, space->ids, error));
    if (count > 0)
        memcpy(ids, space->ids, count * actions * sizeof *ids);
    return FORELOOP_OK;
}

static foreloop_status score_chunk(foreloop_space *space, foreloop_scorer *scorer, const foreloop_workload *workload,
                                   const uint32_t *points, size_t count, float *scores, foreloop_error *error) {
    FORELOOP_TRY(keep_all(space, points, count, error));
    const size_t mark = space->actions->count;
    const foreloop_actions_report report = space->actions->report;
    foreloop_status status = intern_points(space, points, count, space->ids, error);
    if (status == FORELOOP_OK)
        status = foreloop_score(scorer, workload, space->ids, space->offsets, count, scores, error);
    foreloop_action_table_forget(space->actions, mark, &report);
    return status;
}

foreloop_status foreloop_space_score(foreloop_space *space, foreloop_scorer *scorer, const foreloop_workload *workload,
                                     const uint32_t *points, size_t count, float *scores, foreloop_error *error) {
    FORELOOP_TRY(foreloop_space_check("foreloop_space_score", space, points, count, error));
    if (!scorer || !workload || (!scores && count > 0))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_space_score: an argument is NULL");
    FORELOOP_TRY(check_actions("foreloop_space_score", space, error));
    if (scorer->actions != space->actions)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "foreloop_space_score: the scorer is of another action table than the space");
    for (size_t done = 0; done < count;) {
        const size_t own = count - done < FORELOOP_SPACE_CHUNK ? count - done : FORELOOP_SPACE_CHUNK;
        FORELOOP_TRY(score_chunk(space, scorer, workload, points + done * space->sketch.decision_count, own,
                                 scores + done, error));
        done += own;
    }
    return FORELOOP_OK;
}
