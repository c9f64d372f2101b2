/* Interning: look-up of actions by their values, and the rows of new ones, computed once. */
#include "transh/action.h"
#include "common/error.h"
#include "common/sized.h"
#include <math.h>
#include <string.h>

enum {
    DEFAULT_LIMIT = 65536,
    FIRST_SLOTS = 64,
    RUN = 16 /* actions that are looked up together, so that the table's cache misses overlap */
};

/* Room for one more key; the arrays grow by doubling, each with its own capacity in elements. */
static foreloop_status reserve_key(foreloop_actions *actions, foreloop_error *error) {
    const foreloop_allocator *allocator = &actions->allocator;
    const size_t count = actions->count, slots = actions->vocabulary->max_slot_count;
    FORELOOP_TRY(foreloop_reserve(allocator, &actions->kinds, &actions->kinds_capacity, count, count + 1,
                                  sizeof *actions->kinds, error));
    FORELOOP_TRY(foreloop_reserve(allocator, &actions->values, &actions->values_capacity, count * slots,
                                  (count + 1) * slots, sizeof *actions->values, error));
    return foreloop_reserve(allocator, &actions->notes, &actions->notes_capacity, count, count + 1,
                            sizeof *actions->notes, error);
}

/* Room for the rows of `count` actions, of which the first `filled` are there: rows and slices behind each other in one
 * block, which for some thousand actions is large enough for huge pages. */
static foreloop_status reserve_rows(foreloop_actions *actions, size_t filled, size_t count, foreloop_error *error) {
    const size_t stride = actions->plan->row_stride, slices = actions->plan->slice_count;
    const size_t size = stride + slices * FORELOOP_TRANSH_SLICE;
    if (count <= actions->rows_capacity)
        return FORELOOP_OK;
    const size_t capacity = count < 2 * actions->rows_capacity ? 2 * actions->rows_capacity : count;
    float *grown = foreloop_allocate(&actions->allocator, capacity, size * sizeof *grown);
    if (!grown)
        return foreloop_fail_memory(error, capacity, size * sizeof *grown, "the rows of actions");
    float *at = grown + capacity * stride;
    if (filled)
        memcpy(grown, actions->rows, filled * stride * sizeof *grown);
    for (size_t i = 0; i < slices; i++, at += capacity * FORELOOP_TRANSH_SLICE) {
        if (filled)
            memcpy(at, actions->slices[i], filled * FORELOOP_TRANSH_SLICE * sizeof *at);
        actions->slices[i] = at;
    }
    foreloop_release(&actions->allocator, actions->rows);
    actions->rows = grown;
    actions->rows_capacity = capacity;
    return FORELOOP_OK;
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

/* Equal numbers have equal bits here: there is neither NaN nor -0 among them. All are compared, as where they begin to
 * differ cannot be foreseen. */
static bool same_values(const double *a, const double *b, size_t count) {
    uint64_t difference = 0, own, other;
    for (size_t i = 0; i < count; i++) {
        memcpy(&own, &a[i], sizeof own);
        memcpy(&other, &b[i], sizeof other);
        difference |= own ^ other;
    }
    return difference == 0;
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

static void fill_slots(foreloop_actions *actions) {
    memset(actions->slots, 0, (actions->slot_mask + 1) * sizeof *actions->slots);
    for (size_t entry = 1; entry < actions->count; entry++) {
        const uint32_t kind = actions->kinds[entry];
        const double *values = actions->values + entry * actions->vocabulary->max_slot_count;
        const uint64_t hash = hash_key(kind, values, actions->vocabulary->kinds[kind].slot_count);
        actions->slots[find_slot(actions, kind, values, hash)] = hash >> 32 << 32 | entry;
    }
}

static foreloop_status grow_slots(foreloop_actions *actions, foreloop_error *error) {
    const size_t size = actions->slots ? 2 * (actions->slot_mask + 1) : FIRST_SLOTS;
    uint64_t *slots = foreloop_allocate(&actions->allocator, size, sizeof *slots);
    if (!slots)
        return foreloop_fail_memory(error, size, sizeof *slots, "the action table");
    foreloop_release(&actions->allocator, actions->slots);
    actions->slots = slots;
    actions->slot_mask = size - 1;
    fill_slots(actions);
    return FORELOOP_OK;
}

/* ---- The table ---- */

static foreloop_status allocate_scratch(foreloop_actions *actions, foreloop_error *error) {
    const foreloop_allocator *allocator = &actions->allocator;
    const foreloop_vocabulary *vocabulary = actions->vocabulary;
    const size_t arguments = vocabulary->kind_count * FORELOOP_ARGUMENT_HINTS, slices = actions->plan->slice_count;
    actions->hidden = foreloop_allocate(allocator, actions->transition->max_hidden, sizeof *actions->hidden);
    actions->phi = foreloop_allocate(allocator, vocabulary->max_element_count, sizeof *actions->phi);
    actions->embedding = foreloop_allocate(allocator, actions->transition->stride, sizeof *actions->embedding);
    actions->keys = foreloop_allocate(allocator, vocabulary->max_slot_count, RUN * sizeof *actions->keys);
    actions->kind_ends = foreloop_allocate(allocator, vocabulary->kind_count, sizeof *actions->kind_ends);
    actions->hints = foreloop_allocate_zeroed(allocator, FORELOOP_TEXT_HINTS, sizeof *actions->hints);
    actions->arguments = foreloop_allocate(allocator, arguments, sizeof *actions->arguments);
    actions->slices = foreloop_allocate_zeroed(allocator, slices, sizeof *actions->slices);
    if (!actions->hidden || !actions->phi || !actions->embedding || !actions->keys || !actions->kind_ends ||
        !actions->hints || !actions->arguments || !actions->slices)
        return foreloop_fail_memory(error, arguments, sizeof *actions->arguments, "the action table");
    for (size_t i = 0; i < arguments; i++)
        actions->arguments[i] = foreloop_no_argument_hint;
    FORELOOP_TRY(grow_slots(actions, error));
    FORELOOP_TRY(reserve_key(actions, error));
    return reserve_rows(actions, 0, 1, error);
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
    foreloop_release(&allocator, actions->slices);
    foreloop_release(&allocator, actions->notes);
    foreloop_release(&allocator, actions->slots);
    foreloop_release(&allocator, actions->hidden);
    foreloop_release(&allocator, actions->phi);
    foreloop_release(&allocator, actions->embedding);
    foreloop_release(&allocator, actions->keys);
    foreloop_release(&allocator, actions->kind_ends);
    foreloop_release(&allocator, actions->by_kind);
    foreloop_release(&allocator, actions->hints);
    foreloop_release(&allocator, actions->arguments);
    foreloop_release(&allocator, actions->batch);
    foreloop_release(&allocator, actions);
}

/* Without marks for what is gone: the last entry that came in has no other behind it in its row of slots. */
void foreloop_action_table_forget(foreloop_actions *actions, size_t count, const foreloop_actions_report *report) {
    const size_t width = actions->vocabulary->max_slot_count;
    while (actions->count > count) {
        const size_t entry = --actions->count;
        const uint32_t kind = actions->kinds[entry];
        const double *values = actions->values + entry * width;
        const uint64_t hash = hash_key(kind, values, actions->vocabulary->kinds[kind].slot_count);
        actions->slots[find_slot(actions, kind, values, hash)] = 0;
    }
    actions->report = *report;
}

/* ---- Rows of new actions ---- */

static foreloop_status fill_row(foreloop_actions *actions, size_t entry, foreloop_error *error) {
    const foreloop_vocabulary *vocabulary = actions->vocabulary;
    const uint32_t kind_index = actions->kinds[entry];
    const foreloop_kind *kind = &vocabulary->kinds[kind_index];
    foreloop_vocabulary_encode(kind, actions->values + entry * vocabulary->max_slot_count, actions->phi);
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
    return FORELOOP_OK;
}

/* Fills in the rows of the actions from `first` on, kind by kind: the weights of one kind's network fit a cache, those
 * of all kinds do not. */
static foreloop_status fill_rows(foreloop_actions *actions, size_t first, foreloop_error *error) {
    const size_t count = actions->count - first, kinds = actions->vocabulary->kind_count;
    uint32_t *ends = actions->kind_ends;
    if (count == 0)
        return FORELOOP_OK;
    FORELOOP_TRY(reserve_rows(actions, first, actions->count, error));
    if (count == 1)
        return fill_row(actions, first, error);
    FORELOOP_TRY(foreloop_reserve(&actions->allocator, &actions->by_kind, &actions->by_kind_capacity, 0, count,
                                  sizeof *actions->by_kind, error));
    memset(ends, 0, kinds * sizeof *ends);
    for (size_t entry = first; entry < actions->count; entry++)
        ends[actions->kinds[entry]]++;
    for (size_t kind = 0, begin = 0; kind < kinds; kind++) {
        const size_t own = ends[kind];
        ends[kind] = (uint32_t)begin;
        begin += own;
    }
    for (size_t entry = first; entry < actions->count; entry++)
        actions->by_kind[ends[actions->kinds[entry]]++] = (uint32_t)entry;
    for (size_t i = 0; i < count; i++)
        FORELOOP_TRY(fill_row(actions, actions->by_kind[i], error));
    return FORELOOP_OK;
}

/* ---- Interning ---- */

/* An action's key besides its values. */
typedef struct action_key {
    uint64_t hash;
    size_t kind; /* kind_count: unknown */
    foreloop_action_note note;
} action_key;

static foreloop_status read_key(foreloop_actions *actions, const foreloop_action *action, action_key *key,
                                double *values, foreloop_error *error) {
    FORELOOP_TRY(foreloop_read_action(actions, action, &key->kind, values, &key->note, error));
    if (key->kind < actions->vocabulary->kind_count) {
        key->hash = hash_key((uint32_t)key->kind, values, actions->vocabulary->kinds[key->kind].slot_count);
        __builtin_prefetch(&actions->slots[key->hash & actions->slot_mask]);
    }
    return FORELOOP_OK;
}

/* Adds the key of a new action, whose row is yet to be filled in. */
static foreloop_status add_key(foreloop_actions *actions, const action_key *key, const double *values, size_t slot,
                               foreloop_error *error) {
    const size_t entry = actions->count, width = actions->vocabulary->max_slot_count;
    const size_t slot_count = actions->vocabulary->kinds[key->kind].slot_count;
    if (entry > actions->limit)
        return foreloop_fail(error, FORELOOP_ERROR_LIMIT,
                             "the action table is full at %zu distinct actions: create it with a larger capacity",
                             actions->limit);
    FORELOOP_TRY(reserve_key(actions, error));
    if (2 * (entry + 1) > actions->slot_mask) {
        FORELOOP_TRY(grow_slots(actions, error));
        slot = find_slot(actions, (uint32_t)key->kind, values, key->hash);
    }
    actions->kinds[entry] = (uint32_t)key->kind;
    for (size_t i = 0; i < width; i++)
        actions->values[entry * width + i] = i < slot_count ? values[i] : FORELOOP_SLOT_ABSENT;
    actions->notes[entry] = key->note;
    actions->slots[slot] = key->hash >> 32 << 32 | entry;
    actions->count++;
    return FORELOOP_OK;
}

static foreloop_status find_or_add(foreloop_actions *actions, const action_key *key, const double *values, uint32_t *id,
                                   foreloop_error *error) {
    const foreloop_action_note *note = &key->note;
    if (key->kind == actions->vocabulary->kind_count) {
        actions->report.unknown_kinds++;
        *id = FORELOOP_ACTION_UNKNOWN;
        return FORELOOP_OK;
    }
    const size_t slot = find_slot(actions, (uint32_t)key->kind, values, key->hash);
    uint32_t entry = (uint32_t)actions->slots[slot];
    if (!entry) {
        entry = (uint32_t)actions->count;
        FORELOOP_TRY(add_key(actions, key, values, slot, error));
    }
    if (note->dropped_arguments > 0 && note->dropped_arguments > actions->notes[entry].dropped_arguments)
        actions->notes[entry].dropped_arguments = note->dropped_arguments;
    actions->report.dropped_arguments += note->dropped_arguments;
    actions->report.unknown_values += note->unknown_values;
    actions->report.out_of_range += note->out_of_range;
    *id = entry;
    return FORELOOP_OK;
}

/* What the host's action and the table's entry for it will be read from is fetched as soon as it is known where it is.
 */
static inline void fetch_arguments(const foreloop_action *action) {
    for (uintptr_t line = 0; line < 3; line++)
        __builtin_prefetch((const void *)((uintptr_t)action->arguments + 64 * line));
}

static inline void fetch_entry(const foreloop_actions *actions, const action_key *key) {
    if (key->kind == actions->vocabulary->kind_count)
        return;
    const uint32_t entry = (uint32_t)actions->slots[key->hash & actions->slot_mask];
    __builtin_prefetch(&actions->kinds[entry]);
    __builtin_prefetch(actions->values + entry * actions->vocabulary->max_slot_count);
}

/* Interns the keys of the first RUN of `left` actions, up to the first that fails; *done is their number. */
static foreloop_status intern_run(foreloop_actions *actions, const foreloop_action *list, size_t left, uint32_t *ids,
                                  size_t *done, foreloop_error *error) {
    enum { AHEAD = 8 };
    const size_t width = actions->vocabulary->max_slot_count, count = left < RUN ? left : RUN;
    foreloop_status status = FORELOOP_OK;
    action_key keys[RUN];
    size_t read = 0;
    for (; read < count; read++) {
        if (left - read > AHEAD)
            fetch_arguments(&list[read + AHEAD]);
        status = read_key(actions, &list[read], &keys[read], actions->keys + read * width, error);
        if (status != FORELOOP_OK)
            break;
    }
    for (size_t i = 0; i < read; i++)
        fetch_entry(actions, &keys[i]);
    for (*done = 0; *done < read; ++*done)
        FORELOOP_TRY(find_or_add(actions, &keys[*done], actions->keys + *done * width, &ids[*done], error));
    return status;
}

/* Interns the actions up to the first that fails, all of their rows together; *done is their number. When one of the
 * rows fails, none is interned. */
static foreloop_status intern_together(foreloop_actions *actions, const foreloop_action *list, size_t count,
                                       uint32_t *ids, size_t *done, foreloop_error *error) {
    const foreloop_actions_report report = actions->report;
    const size_t first = actions->count;
    foreloop_status status = FORELOOP_OK;
    for (*done = 0; *done < count && status == FORELOOP_OK;) {
        size_t own;
        status = intern_run(actions, list + *done, count - *done, ids + *done, &own, error);
        *done += own;
    }
    const foreloop_status filled = fill_rows(actions, first, error);
    if (filled == FORELOOP_OK)
        return status;
    actions->count = first;
    actions->report = report;
    fill_slots(actions);
    *done = 0;
    return filled;
}

foreloop_status foreloop_actions_intern(foreloop_actions *actions, const foreloop_action *list, size_t count,
                                        uint32_t *ids, foreloop_error *error) {
    if (!actions || (count && (!list || !ids)))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_actions_intern: an argument is NULL");
    /* `ids` must stay untouched on failure, so they are gathered apart. */
    FORELOOP_TRY(foreloop_reserve(&actions->allocator, &actions->batch, &actions->batch_capacity, 0, count,
                                  sizeof *actions->batch, error));
    size_t done;
    foreloop_status status = intern_together(actions, list, count, actions->batch, &done, error);
    if (status == FORELOOP_ERROR_VALUE && done == 0) {
        /* One after the other, so that those before the failing one are interned. */
        status = FORELOOP_OK;
        for (size_t own; done < count && status == FORELOOP_OK; done += own)
            status = intern_together(actions, list + done, 1, actions->batch + done, &own, error);
    }
    if (status != FORELOOP_OK)
        return foreloop_error_prefix(error, status, "action %zu", done);
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
