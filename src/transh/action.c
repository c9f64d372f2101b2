/* Interning: arguments to slot values, look-up, and the embedding of a new action, computed once. */
#include "transh/action.h"
#include "common/error.h"
#include "common/hash.h"
#include "common/sized.h"
#include <math.h>
#include <string.h>

enum { DEFAULT_LIMIT = 65536, FIRST_SLOTS = 64 };

/* Room for one more entry; the arrays grow by doubling, each with its own capacity in elements. */
static foreloop_status reserve_entry(foreloop_actions *actions, foreloop_error *error) {
    const foreloop_allocator *allocator = &actions->allocator;
    size_t count = actions->count, slots = actions->vocabulary->max_slot_count,
           elements = actions->vocabulary->max_element_count, stride = actions->transition->stride;
    FORELOOP_TRY(foreloop_reserve(allocator, &actions->kinds, &actions->kinds_capacity, count, count + 1,
                                  sizeof *actions->kinds, error));
    FORELOOP_TRY(foreloop_reserve(allocator, &actions->values, &actions->values_capacity, count * slots,
                                  (count + 1) * slots, sizeof *actions->values, error));
    FORELOOP_TRY(foreloop_reserve(allocator, &actions->phi, &actions->phi_capacity, count * elements,
                                  (count + 1) * elements, sizeof *actions->phi, error));
    return foreloop_reserve(allocator, &actions->embeddings, &actions->embeddings_capacity, count * stride,
                            (count + 1) * stride, sizeof *actions->embeddings, error);
}

static size_t find_slot(const foreloop_actions *actions, uint32_t kind, const double *values) {
    size_t width = actions->vocabulary->max_slot_count;
    uint64_t hash = foreloop_hash(FORELOOP_HASH_START, &kind, sizeof kind);
    hash = foreloop_hash(hash, values, width * sizeof *values);
    size_t slot = (size_t)hash & actions->slot_mask;
    for (uint32_t entry; (entry = actions->slots[slot]) != 0; slot = (slot + 1) & actions->slot_mask)
        if (actions->kinds[entry] == kind &&
            (width == 0 || memcmp(actions->values + entry * width, values, width * sizeof *values) == 0))
            break;
    return slot;
}

static foreloop_status grow_slots(foreloop_actions *actions, foreloop_error *error) {
    size_t size = actions->slots ? 2 * (actions->slot_mask + 1) : FIRST_SLOTS;
    uint32_t *slots = foreloop_allocate_zeroed(&actions->allocator, size, sizeof *slots);
    if (!slots)
        return foreloop_fail_memory(error, size, sizeof *slots, "the action table");
    foreloop_release(&actions->allocator, actions->slots);
    actions->slots = slots;
    actions->slot_mask = size - 1;
    for (size_t entry = 1; entry < actions->count; entry++) {
        const double *values = actions->values + entry * actions->vocabulary->max_slot_count;
        slots[find_slot(actions, actions->kinds[entry], values)] = (uint32_t)entry;
    }
    return FORELOOP_OK;
}

foreloop_status foreloop_action_table_create(foreloop_actions **result, const foreloop_allocator *allocator,
                                             const foreloop_vocabulary *vocabulary,
                                             const foreloop_transition *transition, uint64_t fingerprint,
                                             size_t capacity, foreloop_error *error) {
    if (capacity > UINT32_MAX - 1)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "the capacity of an action table is at most 2^32 - 2");
    foreloop_actions *actions = foreloop_allocate_zeroed(allocator, 1, sizeof *actions);
    if (!actions)
        return foreloop_fail_memory(error, 1, sizeof *actions, "the action table");
    actions->allocator = *allocator;
    actions->vocabulary = vocabulary;
    actions->transition = transition;
    actions->fingerprint = fingerprint;
    actions->limit = capacity ? capacity : DEFAULT_LIMIT;
    foreloop_status status = grow_slots(actions, error);
    if (status == FORELOOP_OK)
        status = reserve_entry(actions, error);
    if (status == FORELOOP_OK) {
        actions->hidden = foreloop_allocate(allocator, transition->max_hidden, sizeof *actions->hidden);
        actions->key = foreloop_allocate(allocator, vocabulary->max_slot_count, sizeof *actions->key);
        if (!actions->hidden || !actions->key)
            status = foreloop_fail_memory(error, transition->max_hidden, sizeof *actions->hidden, "the action table");
    }
    if (status != FORELOOP_OK) {
        foreloop_actions_close(actions);
        return status;
    }
    actions->kinds[0] = UINT32_MAX;
    actions->count = 1;
    *result = actions;
    return FORELOOP_OK;
}

void foreloop_actions_close(foreloop_actions *actions) {
    if (!actions)
        return;
    foreloop_allocator allocator = actions->allocator;
    foreloop_release(&allocator, actions->kinds);
    foreloop_release(&allocator, actions->values);
    foreloop_release(&allocator, actions->phi);
    foreloop_release(&allocator, actions->embeddings);
    foreloop_release(&allocator, actions->slots);
    foreloop_release(&allocator, actions->hidden);
    foreloop_release(&allocator, actions->key);
    foreloop_release(&allocator, actions->batch);
    foreloop_release(&allocator, actions);
}

static const foreloop_slot *find_argument(const foreloop_kind *kind, const char *name) {
    for (size_t i = 0; i < kind->slot_count; i++)
        if (strcmp(kind->slots[i].name, name) == 0)
            return &kind->slots[i];
    return NULL;
}

/* One argument to the comparable form of a slot's value (vocabulary.h). */
static foreloop_status slot_value(const foreloop_kind *kind, const foreloop_slot *slot,
                                  const foreloop_argument *argument, foreloop_actions_report *report, double *value,
                                  foreloop_error *error) {
    bool texts = slot->encoding == FORELOOP_SLOT_VOCABULARY;
    if (texts != (argument->text != NULL))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "the argument '%.40s' of kind '%.40s' must be a %s",
                             slot->name, kind->name, texts ? "string" : "number");
    size_t category = 0;
    if (texts) {
        while (category < slot->category_count && strcmp(slot->categories[category].text, argument->text) != 0)
            category++;
        *value = (double)category;
    } else {
        if (!isfinite(argument->number))
            return foreloop_fail(error, FORELOOP_ERROR_VALUE, "the argument '%.40s' of kind '%.40s' must be finite",
                                 slot->name, kind->name);
        *value = argument->number + 0.0; /* -0 becomes 0 */
        if (slot->encoding == FORELOOP_SLOT_ONE_HOT)
            while (category < slot->category_count && slot->categories[category].number != *value)
                category++;
    }
    if (category == slot->category_count && (texts || slot->encoding == FORELOOP_SLOT_ONE_HOT))
        report->unknown_values++;
    return FORELOOP_OK;
}

static foreloop_status read_arguments(const foreloop_kind *kind, const foreloop_action *action, double *values,
                                      foreloop_actions_report *report, foreloop_error *error) {
    if (action->argument_count && !action->arguments)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "an action has no array of arguments");
    for (size_t i = 0; i < action->argument_count; i++) {
        const foreloop_argument *argument = &action->arguments[i];
        if (!argument->name)
            return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                                 "argument %zu of an action of kind '%.40s' has no name", i, kind->name);
        const foreloop_slot *slot = find_argument(kind, argument->name);
        if (!slot) {
            report->dropped_arguments++;
            continue;
        }
        double *value = &values[slot - kind->slots];
        if (*value != FORELOOP_SLOT_ABSENT)
            return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "the argument '%.40s' of kind '%.40s' is given twice",
                                 slot->name, kind->name);
        FORELOOP_TRY(slot_value(kind, slot, argument, report, value, error));
    }
    return FORELOOP_OK;
}

/* A new entry is written behind the last one and counted only when it is whole. */
static foreloop_status intern_one(foreloop_actions *actions, const foreloop_action *action, uint32_t *id,
                                  foreloop_error *error) {
    if (!action->kind)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "an action has no kind");
    const foreloop_vocabulary *vocabulary = actions->vocabulary;
    size_t kind_index = foreloop_vocabulary_find(vocabulary, action->kind, strlen(action->kind));
    if (kind_index == vocabulary->kind_count) {
        actions->report.unknown_kinds++;
        *id = FORELOOP_ACTION_UNKNOWN;
        return FORELOOP_OK;
    }
    const foreloop_kind *kind = &vocabulary->kinds[kind_index];
    foreloop_actions_report report = actions->report;
    double *values = actions->key;
    for (size_t i = 0; i < vocabulary->max_slot_count; i++)
        values[i] = FORELOOP_SLOT_ABSENT;
    FORELOOP_TRY(read_arguments(kind, action, values, &report, error));

    size_t slot = find_slot(actions, (uint32_t)kind_index, values);
    uint32_t entry = actions->slots[slot];
    if (!entry) {
        if (actions->count > actions->limit)
            return foreloop_fail(error, FORELOOP_ERROR_LIMIT,
                                 "the action table is full at %zu distinct actions: create it with a larger capacity",
                                 actions->limit);
        FORELOOP_TRY(reserve_entry(actions, error));
        float *phi = actions->phi + actions->count * vocabulary->max_element_count;
        float *embedding = actions->embeddings + actions->count * actions->transition->stride;
        foreloop_vocabulary_encode(kind, values, phi);
        FORELOOP_TRY(foreloop_transition_embed(actions->transition, vocabulary, kind_index, phi, actions->hidden,
                                               embedding, error));
        if (2 * (actions->count + 1) > actions->slot_mask) {
            FORELOOP_TRY(grow_slots(actions, error));
            slot = find_slot(actions, (uint32_t)kind_index, values);
        }
        entry = (uint32_t)actions->count;
        if (vocabulary->max_slot_count)
            memcpy(actions->values + entry * vocabulary->max_slot_count, values,
                   vocabulary->max_slot_count * sizeof *values);
        actions->kinds[entry] = (uint32_t)kind_index;
        actions->slots[slot] = entry;
        actions->count++;
    }
    actions->report = report;
    *id = entry;
    return FORELOOP_OK;
}

foreloop_status foreloop_actions_intern(foreloop_actions *actions, const foreloop_action *list, size_t count,
                                        uint32_t *ids, foreloop_error *error) {
    if (!actions || (count && (!list || !ids)))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "actions_intern: an argument is NULL");
    /* `ids` must stay untouched on failure, so they are gathered apart. */
    FORELOOP_TRY(foreloop_reserve(&actions->allocator, &actions->batch, &actions->batch_capacity, 0, count,
                                  sizeof *actions->batch, error));
    for (size_t i = 0; i < count; i++) {
        foreloop_status status = intern_one(actions, &list[i], &actions->batch[i], error);
        if (status != FORELOOP_OK)
            return foreloop_error_prefix(error, status, "action %zu", i);
    }
    if (count)
        memcpy(ids, actions->batch, count * sizeof *ids);
    return FORELOOP_OK;
}

void foreloop_actions_get_report(const foreloop_actions *actions, foreloop_actions_report *report) {
    if (!actions || !report)
        return;
    foreloop_actions_report full = actions->report;
    full.distinct = actions->count - 1;
    foreloop_sized_write(report, &full, sizeof full);
}
