/* Vocabulary: an open-addressing hash by text, a sorted array by id (ids may have gaps of any size). */
#include "tokenizer/token_table.h"
#include "common/sort.h"
#include <string.h>

void foreloop_token_table_close(foreloop_token_table *table) {
    foreloop_release(table->allocator, table->entries);
    foreloop_release(table->allocator, table->slots);
    foreloop_release(table->allocator, table->by_id);
    memset(table, 0, sizeof *table);
}

/* FNV's low bits change little between short texts. */
static size_t first_slot(const foreloop_token_table *table, uint64_t hash) {
    return (size_t)(hash ^ hash >> 32) & (table->slot_count - 1);
}

static bool entry_is(const foreloop_token_entry *entry, foreloop_text head, foreloop_text tail) {
    return entry->length == head.length + tail.length &&
           (head.length == 0 || memcmp(entry->text, head.text, head.length) == 0) &&
           (tail.length == 0 || memcmp(entry->text + head.length, tail.text, tail.length) == 0);
}

uint32_t foreloop_token_table_find_hashed(const foreloop_token_table *table, uint64_t hash, foreloop_text head,
                                          foreloop_text tail) {
    if (table->slot_count == 0)
        return FORELOOP_NO_TOKEN;
    for (size_t slot = first_slot(table, hash);; slot = (slot + 1) & (table->slot_count - 1)) {
        uint32_t index = table->slots[slot];
        if (index == 0)
            return FORELOOP_NO_TOKEN;
        if (entry_is(&table->entries[index - 1], head, tail))
            return index - 1;
    }
}

uint32_t foreloop_token_table_find(const foreloop_token_table *table, const char *text, size_t length) {
    const foreloop_text whole = {text, length}, nothing = {NULL, 0};
    return foreloop_token_table_find_hashed(table, foreloop_hash(FORELOOP_HASH_START, text, length), whole, nothing);
}

static void insert_slot(foreloop_token_table *table, uint32_t index) {
    const foreloop_token_entry *entry = &table->entries[index];
    size_t slot = first_slot(table, foreloop_hash(FORELOOP_HASH_START, entry->text, entry->length));
    while (table->slots[slot] != 0)
        slot = (slot + 1) & (table->slot_count - 1);
    table->slots[slot] = index + 1;
}

/* Keeps the slots at most half full. */
static foreloop_status grow_slots(foreloop_token_table *table, foreloop_error *error) {
    size_t slot_count = table->slot_count == 0 ? 64 : table->slot_count * 2;
    uint32_t *slots;

    if (table->count + 1 <= table->slot_count / 2)
        return FORELOOP_OK;
    slots = foreloop_allocate_zeroed(table->allocator, slot_count, sizeof *slots);
    if (!slots)
        return foreloop_fail_memory(error, slot_count, sizeof *slots, "the vocabulary's index");
    foreloop_release(table->allocator, table->slots);
    table->slots = slots;
    table->slot_count = slot_count;
    for (size_t i = 0; i < table->count; i++)
        insert_slot(table, (uint32_t)i);
    return FORELOOP_OK;
}

foreloop_status foreloop_token_table_put(foreloop_token_table *table, foreloop_text text, uint32_t id, uint32_t *index,
                                         foreloop_error *error) {
    foreloop_token_entry entry;

    *index = foreloop_token_table_find(table, text.text, text.length);
    if (*index != FORELOOP_NO_TOKEN) {
        table->entries[*index].id = id;
        return FORELOOP_OK;
    }
    if (text.length >= UINT32_MAX || table->count >= UINT32_MAX - 1)
        return foreloop_fail(error, FORELOOP_ERROR_LIMIT, "the vocabulary has too many or too long tokens");
    FORELOOP_TRY(grow_slots(table, error));
    FORELOOP_TRY(foreloop_reserve(table->allocator, &table->entries, &table->capacity, table->count, table->count + 1,
                                  sizeof entry, error));
    entry.text = foreloop_arena_text(table->arena, text.text, text.length);
    if (!entry.text)
        return foreloop_fail_memory(error, text.length + 1, 1, "a token");
    entry.length = (uint32_t)text.length;
    entry.id = id;
    *index = (uint32_t)table->count;
    table->entries[table->count++] = entry;
    insert_slot(table, *index);
    if (text.length > table->longest)
        table->longest = text.length;
    return FORELOOP_OK;
}

/* By id, then in order of insertion. */
static int compare_ids(const void *left, const void *right, const void *context) {
    const foreloop_token_table *table = context;
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    if (table->entries[a].id != table->entries[b].id)
        return table->entries[a].id < table->entries[b].id ? -1 : 1;
    return a < b ? -1 : a > b;
}

foreloop_status foreloop_token_table_sort(foreloop_token_table *table, foreloop_error *error) {
    uint32_t *by_id = foreloop_allocate(table->allocator, table->count, sizeof *by_id);

    if (!by_id)
        return foreloop_fail_memory(error, table->count, sizeof *by_id, "the vocabulary's order");
    for (size_t i = 0; i < table->count; i++)
        by_id[i] = (uint32_t)i;
    foreloop_sort(by_id, table->count, sizeof *by_id, compare_ids, table);
    foreloop_release(table->allocator, table->by_id);
    table->by_id = by_id;
    return FORELOOP_OK;
}

uint32_t foreloop_token_table_find_id(const foreloop_token_table *table, uint32_t id) {
    size_t low = 0, high = table->count;
    /* The first place behind all ids up to this one. */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (table->entries[table->by_id[middle]].id <= id)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || table->entries[table->by_id[low - 1]].id != id)
        return FORELOOP_NO_TOKEN;
    return table->by_id[low - 1];
}

foreloop_status foreloop_token_table_read(foreloop_token_table *table, foreloop_json *json) {
    foreloop_text key;
    size_t id;
    uint32_t index;

    FORELOOP_TRY(foreloop_json_object(json));
    for (;;) {
        FORELOOP_TRY(foreloop_json_key(json, &key));
        if (!key.text)
            break;
        FORELOOP_TRY(foreloop_json_size(json, UINT32_MAX, &id));
        FORELOOP_TRY(foreloop_token_table_put(table, key, (uint32_t)id, &index, json->error));
    }
    FORELOOP_TRY(foreloop_token_table_sort(table, json->error));
    for (size_t i = 1; i < table->count; i++) {
        const foreloop_token_entry *a = &table->entries[table->by_id[i - 1]], *b = &table->entries[table->by_id[i]];
        if (a->id == b->id)
            return foreloop_json_fail(json, "the tokens \"%.*s\" and \"%.*s\" have the same id %lu; give each its own",
                                      FORELOOP_QUOTED(a->text, a->length), FORELOOP_QUOTED(b->text, b->length),
                                      (unsigned long)a->id);
    }
    return FORELOOP_OK;
}
