/* Vocabulary: an open-addressing hash by text, a sorted array by id (ids may have gaps of any size). */
#include "tokenizer/token_table.h"
#include "common/sort.h"
#include "common/utf8.h"
#include <string.h>

enum { KEYS = 8 }; /* tried before a vocabulary counts as made to collide */

void foreloop_token_table_close(foreloop_token_table *table) {
    foreloop_release(table->allocator, table->own_entries);
    foreloop_release(table->allocator, table->own_texts);
    foreloop_release(table->allocator, table->own_slots);
    foreloop_release(table->allocator, table->own_by_id);
    memset(table, 0, sizeof *table);
}

static bool entry_is(const foreloop_token_table *table, uint32_t index, foreloop_text head, foreloop_text tail) {
    const foreloop_token_entry *entry = &table->entries[index];
    const char *text = table->texts + entry->begin;
    return entry->length == head.length + tail.length &&
           (head.length == 0 || memcmp(text, head.text, head.length) == 0) &&
           (tail.length == 0 || memcmp(text + head.length, tail.text, tail.length) == 0);
}

uint32_t foreloop_token_table_find_hashed(const foreloop_token_table *table, uint64_t hash, foreloop_text head,
                                          foreloop_text tail) {
    if (table->slot_count == 0)
        return FORELOOP_NO_TOKEN;
    hash = foreloop_hash_spread(hash);
    for (size_t probe = 0; probe < FORELOOP_TOKEN_PROBES; probe++) {
        uint64_t slot = table->slots[(hash + probe) & (table->slot_count - 1)];
        uint32_t index = (uint32_t)slot;
        if (index == 0)
            break;
        if (slot >> 32 == hash >> 32 && entry_is(table, index - 1, head, tail))
            return index - 1;
    }
    return FORELOOP_NO_TOKEN;
}

uint32_t foreloop_token_table_find(const foreloop_token_table *table, const char *text, size_t length) {
    const foreloop_text whole = {text, length}, nothing = {NULL, 0};
    return foreloop_token_table_find_hashed(table, foreloop_hash(table->key, text, length), whole, nothing);
}

/* False when there is no free slot near enough. */
static bool insert_slot(foreloop_token_table *table, uint32_t index) {
    const foreloop_token_entry *entry = &table->entries[index];
    uint64_t hash = foreloop_hash_spread(foreloop_hash(table->key, table->texts + entry->begin, entry->length));
    for (size_t probe = 0; probe < FORELOOP_TOKEN_PROBES; probe++) {
        uint64_t *slot = &table->own_slots[(hash + probe) & (table->slot_count - 1)];
        if (*slot == 0) {
            *slot = hash >> 32 << 32 | (index + 1);
            return true;
        }
    }
    return false;
}

/* Inserts all entries under one key after the other until all lie near enough. */
static foreloop_status fill_slots(foreloop_token_table *table, foreloop_error *error) {
    for (int tried = 0; tried < KEYS; tried++) {
        size_t i = 0;
        while (i < table->count && insert_slot(table, (uint32_t)i))
            i++;
        if (i == table->count)
            return FORELOOP_OK;
        memset(table->own_slots, 0, table->slot_count * sizeof *table->own_slots);
        table->key = foreloop_hash_spread(table->key + 1);
    }
    return foreloop_fail(error, FORELOOP_ERROR_LIMIT,
                         "the vocabulary's tokens collide under %d hash keys: it was made "
                         "to",
                         KEYS);
}

/* Keeps the slots at most half full. */
static foreloop_status grow_slots(foreloop_token_table *table, foreloop_error *error) {
    size_t slot_count = table->slot_count == 0 ? 64 : table->slot_count * 2;
    uint64_t *slots;

    if (table->count + 1 <= table->slot_count / 2)
        return FORELOOP_OK;
    slots = foreloop_allocate_zeroed(table->allocator, slot_count, sizeof *slots);
    if (!slots)
        return foreloop_fail_memory(error, slot_count, sizeof *slots, "the vocabulary's index");
    foreloop_release(table->allocator, table->own_slots);
    table->own_slots = slots;
    table->slots = slots;
    table->slot_count = slot_count;
    return fill_slots(table, error);
}

static foreloop_status add_text(foreloop_token_table *table, foreloop_text text, foreloop_error *error) {
    const size_t end = table->text_size + text.length;
    if (text.length >= UINT32_MAX || end >= UINT32_MAX || table->count >= UINT32_MAX - 1)
        return foreloop_fail(error, FORELOOP_ERROR_LIMIT, "the vocabulary has too many or too long tokens");
    FORELOOP_TRY(foreloop_reserve(table->allocator, &table->own_texts, &table->text_capacity, table->text_size, end + 1,
                                  1, error));
    table->texts = table->own_texts;
    if (text.length > 0)
        memcpy(table->own_texts + table->text_size, text.text, text.length);
    table->own_texts[end] = '\0';
    return FORELOOP_OK;
}

foreloop_status foreloop_token_table_put(foreloop_token_table *table, foreloop_text text, uint32_t id, uint32_t *index,
                                         foreloop_error *error) {
    *index = foreloop_token_table_find(table, text.text, text.length);
    if (*index != FORELOOP_NO_TOKEN) {
        table->own_entries[*index].id = id;
        return FORELOOP_OK;
    }
    FORELOOP_TRY(grow_slots(table, error));
    FORELOOP_TRY(foreloop_reserve_one(table->allocator, &table->own_entries, &table->entry_capacity, table->count,
                                      sizeof *table->own_entries, error));
    table->entries = table->own_entries;
    FORELOOP_TRY(add_text(table, text, error));
    *index = (uint32_t)table->count;
    table->own_entries[table->count++] =
        (foreloop_token_entry){.begin = (uint32_t)table->text_size, .length = (uint32_t)text.length, .id = id};
    table->text_size += text.length + 1;
    if (text.length > table->longest)
        table->longest = text.length;
    if (insert_slot(table, *index))
        return FORELOOP_OK;
    memset(table->own_slots, 0, table->slot_count * sizeof *table->own_slots);
    table->key = foreloop_hash_spread(table->key + 1);
    return fill_slots(table, error);
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
    bool sorted = true;

    if (!by_id)
        return foreloop_fail_memory(error, table->count, sizeof *by_id, "the vocabulary's order");
    for (size_t i = 0; i < table->count; i++) {
        by_id[i] = (uint32_t)i;
        sorted = sorted && (i == 0 || table->entries[i - 1].id <= table->entries[i].id);
    }
    if (!sorted)
        foreloop_sort(by_id, table->count, sizeof *by_id, compare_ids, table);
    foreloop_release(table->allocator, table->own_by_id);
    table->own_by_id = by_id;
    table->by_id = by_id;
    return FORELOOP_OK;
}

bool foreloop_token_table_is_sound(foreloop_token_table *table) {
    const size_t count = table->count;
    table->longest = 0;
    if (count == 0 && table->slot_count == 0)
        return true;
    if (table->slot_count < FORELOOP_TOKEN_PROBES || (table->slot_count & (table->slot_count - 1)) != 0)
        return false;
    if (foreloop_utf8_valid_prefix(table->texts, table->text_size) < table->text_size)
        return false;
    for (size_t i = 0; i < count; i++) {
        const foreloop_token_entry *entry = &table->entries[i];
        if (entry->begin >= table->text_size || entry->length >= table->text_size - entry->begin ||
            table->texts[(size_t)entry->begin + entry->length] != '\0' || table->by_id[i] >= count ||
            ((unsigned char)table->texts[entry->begin] & 0xC0) == 0x80)
            return false;
        if (entry->length > table->longest)
            table->longest = entry->length;
    }
    for (size_t i = 1; i < count; i++)
        if (table->entries[table->by_id[i - 1]].id >= table->entries[table->by_id[i]].id)
            return false;
    for (size_t i = 0; i < table->slot_count; i++)
        if ((uint32_t)table->slots[i] > count)
            return false;
    return true;
}

uint32_t foreloop_token_table_find_id(const foreloop_token_table *table, uint32_t id) {
    size_t low = 0, high = table->count;
    /* Where the ids have no gaps, the place is the id itself. */
    if (id < table->count && table->entries[table->by_id[id]].id == id &&
        (id + 1 == table->count || table->entries[table->by_id[id + 1]].id != id))
        return table->by_id[id];
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

    if (table->by_id)
        return foreloop_json_fail(json, "the field \"vocab\" stands here twice");
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
        uint32_t a = table->by_id[i - 1], b = table->by_id[i];
        if (table->entries[a].id == table->entries[b].id)
            return foreloop_json_fail(json, "the tokens \"%.*s\" and \"%.*s\" have the same id %lu; give each its own",
                                      FORELOOP_QUOTED(foreloop_token_text(table, a), table->entries[a].length),
                                      FORELOOP_QUOTED(foreloop_token_text(table, b), table->entries[b].length),
                                      (unsigned long)table->entries[a].id);
    }
    return FORELOOP_OK;
}
