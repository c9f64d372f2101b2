/* The merges of a byte-pair encoding by pair. As the vocabulary, a bounded hash under a key of its own, built merge by
 * merge or ready-made. */
#ifndef FORELOOP_TOKENIZER_MERGE_TABLE_H
#define FORELOOP_TOKENIZER_MERGE_TABLE_H

#include "tokenizer/token_table.h"

typedef struct foreloop_merge {
    uint32_t left; /* FORELOOP_NO_TOKEN in a free slot */
    uint32_t right;
    uint32_t rank;
    uint32_t merged;
} foreloop_merge;

typedef struct foreloop_merge_table {
    const foreloop_allocator *allocator;
    const foreloop_merge *slots;
    foreloop_merge *own_slots; /* the same, NULL where they are not the table's own */
    size_t slot_count;
    size_t count;
    uint64_t key;
} foreloop_merge_table;

enum { FORELOOP_MERGE_PROBES = 64 };

void foreloop_merge_table_close(foreloop_merge_table *table);

/* Makes an empty table. */
foreloop_status foreloop_merge_table_open(foreloop_merge_table *table, uint64_t key, foreloop_error *error);

/* Of two merges of one pair the later one counts. */
foreloop_status foreloop_merge_table_add(foreloop_merge_table *table, foreloop_merge merge, foreloop_error *error);

/* Checks everything that the look-ups rely on, for slots that come from a file. */
bool foreloop_merge_table_is_sound(const foreloop_merge_table *table, size_t token_count);

static inline uint64_t foreloop_merge_hash(const foreloop_merge_table *table, uint32_t left, uint32_t right) {
    return ((((uint64_t)left << 32 | right) ^ table->key) * UINT64_C(0x9E3779B97F4A7C15)) >> 32;
}

/* The merge of a pair, or NULL. */
static inline const foreloop_merge *foreloop_merge_find(const foreloop_merge_table *table, uint32_t left,
                                                        uint32_t right) {
    const size_t mask = table->slot_count - 1;
    uint64_t hash = foreloop_merge_hash(table, left, right);
    for (size_t probe = 0; probe < FORELOOP_MERGE_PROBES; probe++) {
        const foreloop_merge *slot = &table->slots[(hash + probe) & mask];
        if (slot->left == left && slot->right == right)
            return slot;
        if (slot->left == FORELOOP_NO_TOKEN)
            break;
    }
    return NULL;
}

#endif
