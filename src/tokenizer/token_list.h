/* The tokens of a text: ids, and two offsets for each. */
#ifndef FORELOOP_TOKENIZER_TOKEN_LIST_H
#define FORELOOP_TOKENIZER_TOKEN_LIST_H

#include "common/alloc.h"
#include "common/error.h"
#include "tokenizer/aligned_text.h"

typedef struct foreloop_token_list {
    uint32_t *ids;
    size_t *offsets;
    size_t count;
    size_t room; /* for so many tokens in both */
    size_t id_capacity;
    size_t offset_capacity;
} foreloop_token_list;

static inline void foreloop_token_list_close(foreloop_token_list *list, const foreloop_allocator *allocator) {
    foreloop_release(allocator, list->ids);
    foreloop_release(allocator, list->offsets);
}

/* Makes room for `extra` more tokens. */
static inline foreloop_status foreloop_token_list_reserve(foreloop_token_list *list,
                                                          const foreloop_allocator *allocator, size_t extra,
                                                          foreloop_error *error) {
    const size_t needed = list->count + extra;
    if (extra <= list->room - list->count)
        return FORELOOP_OK;
    if (extra > SIZE_MAX / 4 - list->count)
        return foreloop_fail_memory(error, extra, sizeof *list->offsets, "tokens");
    FORELOOP_TRY(
        foreloop_reserve(allocator, &list->ids, &list->id_capacity, list->count, needed, sizeof *list->ids, error));
    FORELOOP_TRY(foreloop_reserve(allocator, &list->offsets, &list->offset_capacity, 2 * list->count, 2 * needed,
                                  sizeof *list->offsets, error));
    list->room = list->id_capacity < list->offset_capacity / 2 ? list->id_capacity : list->offset_capacity / 2;
    return FORELOOP_OK;
}

/* Adds a token where there is room. */
static inline void foreloop_token_list_put(foreloop_token_list *list, uint32_t id, foreloop_span span) {
    list->ids[list->count] = id;
    list->offsets[2 * list->count] = span.begin;
    list->offsets[2 * list->count + 1] = span.end;
    list->count++;
}

static inline foreloop_status foreloop_token_list_add(foreloop_token_list *list, const foreloop_allocator *allocator,
                                                      uint32_t id, foreloop_span span, foreloop_error *error) {
    FORELOOP_TRY(foreloop_token_list_reserve(list, allocator, 1, error));
    foreloop_token_list_put(list, id, span);
    return FORELOOP_OK;
}

#endif
