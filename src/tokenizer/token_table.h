/* A vocabulary: tokens by text and by id. Its arrays are built token by token, or lie ready-made in a packed model. */
#ifndef FORELOOP_TOKENIZER_TOKEN_TABLE_H
#define FORELOOP_TOKENIZER_TOKEN_TABLE_H

#include "common/alloc.h"
#include "common/error.h"
#include "common/hash.h"
#include "common/json.h"
#include <foreloop/foreloop.h>

#define FORELOOP_NO_TOKEN UINT32_MAX

typedef struct foreloop_token_entry {
    uint32_t begin; /* of its text, which is terminated and may hold zero bytes */
    uint32_t length;
    uint32_t id;
} foreloop_token_entry;

/*
 * The index by text is an open-addressing hash with a key of its own and a bounded number of probes: a key with which
 * some token lies farther away is replaced by another one. The key comes from the whole document, so that whoever
 * writes one cannot choose tokens that collide.
 */
typedef struct foreloop_token_table {
    const foreloop_allocator *allocator;
    const foreloop_token_entry *entries; /* by index, in order of insertion */
    const char *texts;
    const uint64_t *slots; /* high half: of the hash; low half: index + 1, 0 for free */
    const uint32_t *by_id; /* indices in order of id, after foreloop_token_table_sort */
    size_t count;
    size_t text_size;
    size_t slot_count;
    uint64_t key;
    size_t longest; /* token, in bytes */
    /* The same arrays where they are the table's own, else NULL. */
    foreloop_token_entry *own_entries;
    char *own_texts;
    uint64_t *own_slots;
    uint32_t *own_by_id;
    size_t entry_capacity, text_capacity;
} foreloop_token_table;

enum { FORELOOP_TOKEN_PROBES = 64 };

void foreloop_token_table_close(foreloop_token_table *table);

/* Adds a token or, where its text is known, changes its id. Writes its index. */
foreloop_status foreloop_token_table_put(foreloop_token_table *table, foreloop_text text, uint32_t id, uint32_t *index,
                                         foreloop_error *error);

/* After the last token: the order for look-ups by id. */
foreloop_status foreloop_token_table_sort(foreloop_token_table *table, foreloop_error *error);

/* Checks everything that the look-ups rely on, for arrays that come from a file; ids must differ. */
bool foreloop_token_table_is_sound(foreloop_token_table *table);

/* Valid until the next put. */
static inline const char *foreloop_token_text(const foreloop_token_table *table, uint32_t index) {
    return table->texts + table->entries[index].begin;
}

/* Index by text, FORELOOP_NO_TOKEN when there is none. */
uint32_t foreloop_token_table_find(const foreloop_token_table *table, const char *text, size_t length);
/* The same with foreloop_hash(table->key, text, length) at hand, for a text in two parts. */
uint32_t foreloop_token_table_find_hashed(const foreloop_token_table *table, uint64_t hash, foreloop_text head,
                                          foreloop_text tail);
/* Index by id (the last one in order of insertion when several share it), or FORELOOP_NO_TOKEN. */
uint32_t foreloop_token_table_find_id(const foreloop_token_table *table, uint32_t id);

/* Reads the field "vocab" of a model, {"token": id, ...}, into the table. Two tokens with one id are an error, and so
 * is a table that was read before. */
foreloop_status foreloop_token_table_read(foreloop_token_table *table, foreloop_json *json);

#endif
