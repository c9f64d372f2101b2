/* Interning: arguments to slot values, look-up, and the row of a new action, computed once. */
#include "transh/action.h"
#include "common/error.h"
#include "common/sized.h"
#include <math.h>
#include <string.h>

enum { DEFAULT_LIMIT = 65536, FIRST_SLOTS = 64 };

/* Room for one more entry; the arrays grow by doubling, each with its own capacity in elements. */
static foreloop_status reserve_entry(foreloop_actions *actions, foreloop_error *error) {
    const foreloop_allocator *allocator = &actions->allocator;
    size_t count = actions->count, slots = actions->vocabulary->max_slot_count, stride = actions->plan->row_stride;
    FORELOOP_TRY(foreloop_reserve(allocator, &actions->kinds, &actions->kinds_capacity, count, count + 1,
                                  sizeof *actions->kinds, error));
    FORELOOP_TRY(foreloop_reserve(allocator, &actions->values, &actions->values_capacity, count * slots,
                                  (count + 1) * slots, sizeof *actions->values, error));
    FORELOOP_TRY(foreloop_reserve(allocator, &actions->notes, &actions->notes_capacity, count, count + 1,
                                  sizeof *actions->notes, error));
    for (size_t i = 0; i < actions->plan->slice_count; i++)
        FORELOOP_TRY(foreloop_reserve(allocator, &actions->slices[i], &actions->slice_capacities[i],
                                      count * FORELOOP_TRANSH_SLICE, (count + 1) * FORELOOP_TRANSH_SLICE,
                                      sizeof **actions->slices, error));
    return foreloop_reserve(allocator, &actions->rows, &actions->rows_capacity, count * stride, (count + 1) * stride,
                            sizeof *actions->rows, error);
}

/* ---- Look-up ---- */

static inline uint64_t mix(uint64_t word) {
    word ^= word >> 32;
    word *= UINT64_C(0x9e3779b97f4a7c15);
    return word ^ word >> 29;
}

/* The words are multiplied apart from each other, so that their latencies overlap. */
static uint64_t hash_key(uint32_t kind, const double *values, size_t count) {
    uint64_t hash = mix(kind + UINT64_C(1)), factor = UINT64_C(0xd6e8feb86659fd93);
    for (size_t i = 0; i < count; i++) {
        uint64_t word;
        memcpy(&word, &values[i], sizeof word);
        hash += (word ^ word >> 32) * factor;
        factor += UINT64_C(0x9e3779b97f4a7c16);
    }
    return mix(hash);
}

/* Equal numbers have equal bits here: there is neither NaN nor -0 among them. */
static bool same_values(const double *a, const double *b, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

static size_t find_slot(const foreloop_actions *actions, uint32_t kind, const double *values, uint64_t hash) {
    const size_t width = actions->vocabulary->max_slot_count, count = actions->vocabulary->kinds[kind].slot_count;
    size_t slot = (size_t)hash & actions->slot_mask;
    for (uint64_t found; (found = actions->slots[slot]) != 0; slot = (slot + 1) & actions->slot_mask) {
        const uint32_t entry = (uint32_t)found;
        if (found >> 32 == hash >> 32 && actions->kinds[entry] == kind &&
            same_values(actions->values + entry * width, values, count))
            break;
    }
    return slot;
}

static foreloop_status grow_slots(foreloop_actions *actions, foreloop_error *error) {
    const size_t size = actions->slots ? 2 * (actions->slot_mask + 1) : FIRST_SLOTS;
    uint64_t *slots = foreloop_allocate_zeroed(&actions->allocator, size, sizeof *slots);
    if (!slots)
        return foreloop_fail_memory(error, size, sizeof *slots, "the action table");
    foreloop_release(&actions->allocator, actions->slots);
    actions->slots = slots;
    actions->slot_mask = size - 1;
    for (size_t entry = 1; entry < actions->count; entry++) {
        const uint32_t kind = actions->kinds[entry];
        const double *values = actions->values + entry * actions->vocabulary->max_slot_count;
        const uint64_t hash = hash_key(kind, values, actions->vocabulary->kinds[kind].slot_count);
        slots[find_slot(actions, kind, values, hash)] = hash >> 32 << 32 | entry;
    }
    return FORELOOP_OK;
}

/* ---- The table ---- */

static foreloop_status allocate_scratch(foreloop_actions *actions, foreloop_error *error) {
    const foreloop_allocator *allocator = &actions->allocator;
    const foreloop_vocabulary *vocabulary = actions->vocabulary;
    const size_t orders = vocabulary->kind_count * FORELOOP_ORDER_HINTS, slices = actions->plan->slice_count;
    actions->hidden = foreloop_allocate(allocator, actions->transition->max_hidden, sizeof *actions->hidden);
    actions->phi = foreloop_allocate(allocator, vocabulary->max_element_count, sizeof *actions->phi);
    actions->embedding = foreloop_allocate(allocator, actions->transition->stride, sizeof *actions->embedding);
    actions->key = foreloop_allocate(allocator, vocabulary->max_slot_count, sizeof *actions->key);
    actions->hints = foreloop_allocate_zeroed(allocator, FORELOOP_TEXT_HINTS, sizeof *actions->hints);
    actions->order = foreloop_allocate_zeroed(allocator, orders, sizeof *actions->order);
    actions->slices = foreloop_allocate_zeroed(allocator, slices, sizeof *actions->slices);
    actions->slice_capacities = foreloop_allocate_zeroed(allocator, slices, sizeof *actions->slice_capacities);
    if (!actions->hidden || !actions->phi || !actions->embedding || !actions->key || !actions->hints ||
        !actions->order || !actions->slices || !actions->slice_capacities)
        return foreloop_fail_memory(error, orders, sizeof *actions->order, "the action table");
    FORELOOP_TRY(grow_slots(actions, error));
    return reserve_entry(actions, error);
}

foreloop_status foreloop_action_table_create(foreloop_actions **result, const foreloop_allocator *allocator,
                                             const foreloop_rollout_plan *plan, uint64_t fingerprint, size_t capacity,
                                             foreloop_error *error) {
    if (capacity > UINT32_MAX - 1)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "the capacity of an action table is at most 2^32 - 2");
    foreloop_actions *actions = foreloop_allocate_zeroed(allocator, 1, sizeof *actions);
    if (!actions)
        return foreloop_fail_memory(error, 1, sizeof *actions, "the action table");
    actions->allocator = *allocator;
    actions->plan = plan;
    actions->vocabulary = plan->vocabulary;
    actions->transition = plan->transition;
    actions->fingerprint = fingerprint;
    actions->limit = capacity ? capacity : DEFAULT_LIMIT;
    foreloop_status status = allocate_scratch(actions, error);
    if (status != FORELOOP_OK) {
        foreloop_actions_close(actions);
        return status;
    }
    actions->kinds[0] = UINT32_MAX;
    actions->notes[0] = (foreloop_action_note){0};
    memset(actions->rows, 0, plan->row_stride * sizeof *actions->rows);
    for (size_t i = 0; i < plan->slice_count; i++)
        memset(actions->slices[i], 0, FORELOOP_TRANSH_SLICE * sizeof **actions->slices);
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
    foreloop_release(&allocator, actions->rows);
    for (size_t i = 0; actions->slices && i < actions->plan->slice_count; i++)
        foreloop_release(&allocator, actions->slices[i]);
    foreloop_release(&allocator, actions->slices);
    foreloop_release(&allocator, actions->slice_capacities);
    foreloop_release(&allocator, actions->notes);
    foreloop_release(&allocator, actions->slots);
    foreloop_release(&allocator, actions->hidden);
    foreloop_release(&allocator, actions->phi);
    foreloop_release(&allocator, actions->embedding);
    foreloop_release(&allocator, actions->key);
    foreloop_release(&allocator, actions->hints);
    foreloop_release(&allocator, actions->order);
    foreloop_release(&allocator, actions->batch);
    foreloop_release(&allocator, actions);
}

/* ---- Arguments ---- */

/* Names are short: no call is worth it. */
static inline bool same_text(const char *a, const char *b) {
    if (a == b)
        return true;
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

static foreloop_text_hint *hint_of(const foreloop_actions *actions, const char *text) {
    const uintptr_t address = (uintptr_t)text;
    return &actions->hints[(address ^ address >> 8) % FORELOOP_TEXT_HINTS];
}

/* The kind's index, or kind_count. */
static size_t find_kind(const foreloop_actions *actions, const char *name) {
    const foreloop_vocabulary *vocabulary = actions->vocabulary;
    foreloop_text_hint *hint = hint_of(actions, name);
    if (hint->text == name && hint->where == vocabulary && same_text(name, vocabulary->kinds[hint->index].name))
        return hint->index;
    const size_t index = foreloop_vocabulary_find(vocabulary, name, strlen(name));
    if (index < vocabulary->kind_count)
        *hint = (foreloop_text_hint){name, vocabulary, (uint32_t)index};
    return index;
}

/* The category's index, or category_count. */
static size_t find_category(const foreloop_actions *actions, const foreloop_slot *slot, const char *text) {
    foreloop_text_hint *hint = hint_of(actions, text);
    if (hint->text == text && hint->where == slot && same_text(text, slot->categories[hint->index].text))
        return hint->index;
    size_t category = 0;
    while (category < slot->category_count && !same_text(slot->categories[category].text, text))
        category++;
    if (category < slot->category_count)
        *hint = (foreloop_text_hint){text, slot, (uint32_t)category};
    return category;
}

/* Hosts pass the arguments of a kind in one order: argument i is tried at the slot where it was the last time. */
static const foreloop_slot *find_argument(const foreloop_actions *actions, size_t kind_index, size_t i,
                                          const char *name) {
    const foreloop_kind *kind = &actions->vocabulary->kinds[kind_index];
    uint16_t *order = i < FORELOOP_ORDER_HINTS ? &actions->order[kind_index * FORELOOP_ORDER_HINTS + i] : NULL;
    if (order && *order < kind->slot_count && same_text(name, kind->slots[*order].name))
        return &kind->slots[*order];
    for (size_t slot = 0; slot < kind->slot_count; slot++)
        if (same_text(name, kind->slots[slot].name)) {
            if (order)
                *order = (uint16_t)slot;
            return &kind->slots[slot];
        }
    return NULL;
}

/* One argument to the comparable form of a slot's value (vocabulary.h). */
static foreloop_status slot_value(const foreloop_actions *actions, const foreloop_kind *kind, const foreloop_slot *slot,
                                  const foreloop_argument *argument, foreloop_action_note *note, double *value,
                                  foreloop_error *error) {
    const bool texts = slot->encoding == FORELOOP_SLOT_VOCABULARY;
    if (texts != (argument->text != NULL))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "the argument '%.40s' of kind '%.40s' must be a %s",
                             slot->name, kind->name, texts ? "string" : "number");
    if (texts) {
        const size_t category = find_category(actions, slot, argument->text);
        note->unknown_values += category == slot->category_count;
        *value = (double)category;
        return FORELOOP_OK;
    }
    const double number = argument->number + 0.0; /* -0 becomes 0 */
    if (!isfinite(number))
        return foreloop_fail(error, FORELOOP_ERROR_VALUE, "the argument '%.40s' of kind '%.40s' must be finite",
                             slot->name, kind->name);
    *value = number;
    const bool one_hot = slot->encoding == FORELOOP_SLOT_ONE_HOT;
    const bool outside = !(number >= slot->range_min && number <= slot->range_max);
    if (!one_hot && !outside)
        return FORELOOP_OK;
    size_t category = 0;
    while (category < slot->category_count && slot->categories[category].number != number)
        category++;
    if (category == slot->category_count) {
        note->unknown_values += one_hot;
        note->out_of_range += !one_hot && outside;
    }
    return FORELOOP_OK;
}

static foreloop_status read_arguments(const foreloop_actions *actions, size_t kind_index, const foreloop_action *action,
                                      double *values, foreloop_action_note *note, foreloop_error *error) {
    const foreloop_kind *kind = &actions->vocabulary->kinds[kind_index];
    if (action->argument_count && !action->arguments)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "an action has no array of arguments");
    for (size_t i = 0; i < action->argument_count; i++) {
        const foreloop_argument *argument = &action->arguments[i];
        if (!argument->name)
            return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                                 "argument %zu of an action of kind '%.40s' has no name", i, kind->name);
        const foreloop_slot *slot = find_argument(actions, kind_index, i, argument->name);
        if (!slot) {
            note->dropped_arguments++;
            continue;
        }
        double *value = &values[slot - kind->slots];
        if (*value != FORELOOP_SLOT_ABSENT)
            return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "the argument '%.40s' of kind '%.40s' is given twice",
                                 slot->name, kind->name);
        FORELOOP_TRY(slot_value(actions, kind, slot, argument, note, value, error));
    }
    return FORELOOP_OK;
}

/* ---- Interning ---- */

/* Writes the entry behind the last one; it counts only when the caller counts it. */
static foreloop_status fill_entry(foreloop_actions *actions, uint32_t kind_index, const double *values,
                                  foreloop_error *error) {
    const foreloop_vocabulary *vocabulary = actions->vocabulary;
    const foreloop_kind *kind = &vocabulary->kinds[kind_index];
    const size_t entry = actions->count, width = vocabulary->max_slot_count;
    FORELOOP_TRY(reserve_entry(actions, error));
    foreloop_vocabulary_encode(kind, values, actions->phi);
    for (size_t i = 0; i < kind->element_count; i++)
        if (!(fabsf(actions->phi[i]) <= FORELOOP_MAX_LATENT_VALUE))
            return foreloop_fail(error, FORELOOP_ERROR_VALUE, "an argument of kind '%.40s' is too large", kind->name);
    FORELOOP_TRY(foreloop_transition_embed(actions->transition, vocabulary, kind_index, actions->phi, actions->hidden,
                                           actions->embedding, error));
    foreloop_rollout_fill_row(actions->plan, kind_index, actions->embedding, actions->phi,
                              actions->rows + entry * actions->plan->row_stride);
    for (size_t i = 0; i < actions->plan->slice_count; i++)
        foreloop_rollout_fill_slice(actions->plan, i, actions->embedding,
                                    actions->slices[i] + entry * FORELOOP_TRANSH_SLICE);
    actions->kinds[entry] = kind_index;
    for (size_t i = 0; i < width; i++)
        actions->values[entry * width + i] = i < kind->slot_count ? values[i] : FORELOOP_SLOT_ABSENT;
    return FORELOOP_OK;
}

static foreloop_status intern_one(foreloop_actions *actions, const foreloop_action *action, uint32_t *id,
                                  foreloop_error *error) {
    if (!action->kind)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "an action has no kind");
    const size_t kind_index = find_kind(actions, action->kind);
    if (kind_index == actions->vocabulary->kind_count) {
        actions->report.unknown_kinds++;
        *id = FORELOOP_ACTION_UNKNOWN;
        return FORELOOP_OK;
    }
    const size_t slot_count = actions->vocabulary->kinds[kind_index].slot_count;
    foreloop_action_note note = {0};
    double *values = actions->key;
    for (size_t i = 0; i < slot_count; i++)
        values[i] = FORELOOP_SLOT_ABSENT;
    FORELOOP_TRY(read_arguments(actions, kind_index, action, values, &note, error));

    const uint64_t hash = hash_key((uint32_t)kind_index, values, slot_count);
    size_t slot = find_slot(actions, (uint32_t)kind_index, values, hash);
    uint32_t entry = (uint32_t)actions->slots[slot];
    if (!entry) {
        if (actions->count > actions->limit)
            return foreloop_fail(error, FORELOOP_ERROR_LIMIT,
                                 "the action table is full at %zu distinct actions: create it with a larger capacity",
                                 actions->limit);
        FORELOOP_TRY(fill_entry(actions, (uint32_t)kind_index, values, error));
        if (2 * (actions->count + 1) > actions->slot_mask) {
            FORELOOP_TRY(grow_slots(actions, error));
            slot = find_slot(actions, (uint32_t)kind_index, values, hash);
        }
        entry = (uint32_t)actions->count;
        actions->notes[entry] = note;
        actions->slots[slot] = hash >> 32 << 32 | entry;
        actions->count++;
    }
    foreloop_action_note *kept = &actions->notes[entry];
    if (note.dropped_arguments > kept->dropped_arguments)
        kept->dropped_arguments = note.dropped_arguments;
    actions->report.dropped_arguments += note.dropped_arguments;
    actions->report.unknown_values += note.unknown_values;
    actions->report.out_of_range += note.out_of_range;
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
