/* Merges by pair: building the table, and checking one that was built elsewhere. */
#include "tokenizer/merge_table.h"
#include <string.h>

enum { KEYS = 8, LEAST_SLOTS = 64 };

void foreloop_merge_table_close(foreloop_merge_table *table) {
    foreloop_release(table->allocator, table->own_slots);
    memset(table, 0, sizeof *table);
}

/* Puts a merge into its slot; false when there is none near enough. */
static bool insert(foreloop_merge_table *table, foreloop_merge merge) {
    uint64_t hash = foreloop_merge_hash(table, merge.left, merge.right);
    for (size_t probe = 0; probe < FORELOOP_MERGE_PROBES; probe++) {
        foreloop_merge *slot = &table->own_slots[(hash + probe) & (table->slot_count - 1)];
        bool is_same = slot->left == merge.left && slot->right == merge.right;
        if (slot->left != FORELOOP_NO_TOKEN && !is_same)
            continue;
        table->count += !is_same;
        *slot = merge;
        return true;
    }
    return false;
}

static bool insert_all(foreloop_merge_table *table, const foreloop_merge *merges, size_t slot_count) {
    table->count = 0;
    for (size_t i = 0; i < table->slot_count; i++)
        table->own_slots[i].left = FORELOOP_NO_TOKEN;
    for (size_t i = 0; i < slot_count; i++)
        if (merges[i].left != FORELOOP_NO_TOKEN && !insert(table, merges[i]))
            return false;
    return true;
}

/* Moves the merges to `slot_count` slots, under another key where the one at hand puts some too far away. */
static foreloop_status resize(foreloop_merge_table *table, size_t slot_count, foreloop_error *error) {
    foreloop_merge *old = table->own_slots, *slots = foreloop_allocate(table->allocator, slot_count, sizeof *slots);
    const size_t old_count = table->slot_count;
    bool done = false;

    if (!slots)
        return foreloop_fail_memory(error, slot_count, sizeof *slots, "the merges");
    table->own_slots = slots;
    table->slots = slots;
    table->slot_count = slot_count;
    for (int tried = 0; tried < KEYS && !done; tried++) {
        done = insert_all(table, old, old_count);
        if (!done)
            table->key = foreloop_hash_spread(table->key + 1);
    }
    foreloop_release(table->allocator, old);
    return done ? FORELOOP_OK
                : foreloop_fail(error, FORELOOP_ERROR_LIMIT, "the merges collide under %d hash keys: they were made to",
                                KEYS);
}

foreloop_status foreloop_merge_table_open(foreloop_merge_table *table, uint64_t key, foreloop_error *error) {
    table->key = key;
    return resize(table, LEAST_SLOTS, error);
}

foreloop_status foreloop_merge_table_add(foreloop_merge_table *table, foreloop_merge merge, foreloop_error *error) {
    /* A third of the slots in use: most look-ups are for pairs that have no merge, and end at the first free slot. */
    if (3 * (table->count + 1) > table->slot_count)
        FORELOOP_TRY(resize(table, 2 * table->slot_count, error));
    for (int tried = 0; tried < KEYS; tried++) {
        if (insert(table, merge))
            return FORELOOP_OK;
        table->key = foreloop_hash_spread(table->key + 1);
        FORELOOP_TRY(resize(table, table->slot_count, error));
    }
    return foreloop_fail(error, FORELOOP_ERROR_LIMIT, "the merges collide under %d hash keys: they were made to", KEYS);
}

bool foreloop_merge_table_is_sound(const foreloop_merge_table *table, size_t token_count) {
    if (table->slot_count < LEAST_SLOTS || (table->slot_count & (table->slot_count - 1)) != 0)
        return false;
    for (size_t i = 0; i < table->slot_count; i++) {
        const foreloop_merge *merge = &table->slots[i];
        if (merge->left != FORELOOP_NO_TOKEN &&
            (merge->left >= token_count || merge->right >= token_count || merge->merged >= token_count))
            return false;
    }
    return true;
}
