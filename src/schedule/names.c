/* Open addressing over an array of names. */
#include "schedule/names.h"
#include "common/error.h"
#include "common/hash.h"
#include <string.h>

enum { FIRST_SLOTS = 64 };

void foreloop_names_reset(foreloop_names *names) {
    /* Only the used slots: one huge trace must not make every later reset slow. */
    for (size_t i = 0; i < names->count; i++)
        names->slots[names->names[i].slot] = 0;
    names->count = 0;
}

void foreloop_names_close(foreloop_names *names, const foreloop_allocator *allocator) {
    foreloop_release(allocator, names->names);
    foreloop_release(allocator, names->slots);
}

/* Names are short and differ in their last digits. */
static uint64_t hash_name(const char *text, size_t length) {
    uint64_t hash = foreloop_hash(FORELOOP_HASH_START, text, length);
    return hash ^ (hash >> 32);
}

/* The slot of the name, or the free one where it would go. */
static size_t find_slot(const foreloop_names *names, uint64_t hash, const char *text, size_t length) {
    size_t slot = (size_t)hash & (names->slot_count - 1);
    while (names->slots[slot] != 0) {
        const foreloop_name *name = &names->names[names->slots[slot] - 1];
        if (name->hash == hash && name->length == length && memcmp(name->text, text, length) == 0)
            break;
        slot = (slot + 1) & (names->slot_count - 1);
    }
    return slot;
}

static foreloop_status grow_slots(foreloop_names *names, const foreloop_allocator *allocator, foreloop_error *error) {
    if (names->slot_count / 2 > names->count)
        return FORELOOP_OK;
    size_t count = names->slot_count ? names->slot_count * 2 : FIRST_SLOTS;
    uint32_t *slots = foreloop_allocate_zeroed(allocator, count, sizeof *slots);
    if (!slots)
        return foreloop_fail_memory(error, count, sizeof *slots, "the variables of a trace");
    foreloop_release(allocator, names->slots);
    names->slots = slots;
    names->slot_count = count;
    for (size_t i = 0; i < names->count; i++) {
        foreloop_name *name = &names->names[i];
        name->slot = find_slot(names, name->hash, name->text, name->length);
        slots[name->slot] = (uint32_t)(i + 1);
    }
    return FORELOOP_OK;
}

foreloop_status foreloop_names_add(foreloop_names *names, const foreloop_allocator *allocator, const char *text,
                                   size_t length, size_t *number, foreloop_error *error) {
    FORELOOP_TRY(grow_slots(names, allocator, error));
    uint64_t hash = hash_name(text, length);
    size_t slot = find_slot(names, hash, text, length);
    if (names->slots[slot] == 0) {
        FORELOOP_TRY(foreloop_reserve_one(allocator, &names->names, &names->capacity, names->count,
                                          sizeof *names->names, error));
        names->names[names->count++] = (foreloop_name){.text = text, .length = length, .hash = hash, .slot = slot};
        names->slots[slot] = (uint32_t)names->count;
    }
    *number = names->slots[slot] - 1;
    return FORELOOP_OK;
}

bool foreloop_names_find(const foreloop_names *names, const char *text, size_t length, size_t *number) {
    if (names->slot_count == 0)
        return false;
    size_t slot = find_slot(names, hash_name(text, length), text, length);
    if (names->slots[slot] == 0)
        return false;
    *number = names->slots[slot] - 1;
    return true;
}
