/* A vocabulary: tokens by text and by id. */
#ifndef FORELOOP_TOKENIZER_TOKEN_TABLE_H
#define FORELOOP_TOKENIZER_TOKEN_TABLE_H

#include "common/alloc.h"
#include "common/error.h"
#include "common/hash.h"
#include "common/json.h"
#include <foreloop/foreloop.h>

#define FORELOOP_NO_TOKEN UINT32_MAX

typedef struct foreloop_token_entry {
    const char *text; /* terminated; lives in the arena, may hold zero bytes */
    uint32_t length;
    uint32_t id;
} foreloop_token_entry;

typedef struct foreloop_token_table {
    const foreloop_allocator *allocator;
    foreloop_arena *arena;         /* borrowed */
    foreloop_token_entry *entries; /* by index, in order of insertion */
    size_t count;
    size_t capacity;
    uint32_t *slots; /* open addressing: index + 1, 0 for free */
    size_t slot_count;
    uint32_t *by_id; /* indices in order of id, after foreloop_token_table_sort */
    size_t longest;  /* token, in bytes */
} foreloop_token_table;

void foreloop_token_table_close(foreloop_token_table *table);

/* Adds a token or, where its text is known, changes its id. Writes its index. */
foreloop_status foreloop_token_table_put(foreloop_token_table *table, foreloop_text text, uint32_t id, uint32_t *index,
                                         foreloop_error *error);

/* After the last token: the order for look-ups by id. */
foreloop_status foreloop_token_table_sort(foreloop_token_table *table, foreloop_error *error);

/* Index by text, FORELOOP_NO_TOKEN when there is none. */
uint32_t foreloop_token_table_find(const foreloop_token_table *table, const char *text, size_t length);
/* The same with foreloop_hash(FORELOOP_HASH_START, text, length) at hand, for a text in two parts. */
uint32_t foreloop_token_table_find_hashed(const foreloop_token_table *table, uint64_t hash, foreloop_text head,
                                          foreloop_text tail);
/* Index by id (the last one in order of insertion when several share it), or FORELOOP_NO_TOKEN. */
uint32_t foreloop_token_table_find_id(const foreloop_token_table *table, uint32_t id);

/* Reads {"token": id, ...} into the table. Two tokens with one id are an error. */
foreloop_status foreloop_token_table_read(foreloop_token_table *table, foreloop_json *json);

#endif
