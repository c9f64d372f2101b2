/* Memory: overflow-checked arrays, a growable byte buffer and an arena, all over the caller's allocator. */
#ifndef FORELOOP_COMMON_ALLOC_H
#define FORELOOP_COMMON_ALLOC_H

#include "common/internal_api.h"

/* Alignment of every array from foreloop_allocate: a cache line, and the widest vector register. */
enum { FORELOOP_ALIGNMENT = 64 };

/* The allocator to use for an options field: *given, or malloc and free when NULL. Returned by value, to be kept in the
 * object that is being made. */
FORELOOP_INTERNAL_API foreloop_allocator foreloop_allocator_or_default(const foreloop_allocator *given);

/* count x element_size bytes aligned to FORELOOP_ALIGNMENT (one element when count is 0), or NULL when the product
 * overflows or the allocator fails. */
FORELOOP_INTERNAL_API void *foreloop_allocate(const foreloop_allocator *allocator, size_t count, size_t element_size);
FORELOOP_INTERNAL_API void *foreloop_allocate_zeroed(const foreloop_allocator *allocator, size_t count,
                                                     size_t element_size);
/* NULL is allowed. */
FORELOOP_INTERNAL_API void foreloop_release(const foreloop_allocator *allocator, void *pointer);

/* Makes room for at least `needed` elements in *array (capacity *capacity, first `used` elements kept), growing by
 * doubling. ERROR_MEMORY with nothing changed on failure. `array` is the address of a pointer to elements. */
FORELOOP_INTERNAL_API foreloop_status foreloop_reserve(const foreloop_allocator *allocator, void *array,
                                                       size_t *capacity, size_t used, size_t needed,
                                                       size_t element_size, foreloop_error *error);

/* The same for one more element, and no call where there is room: for arrays that grow element by element. */
static inline foreloop_status foreloop_reserve_one(const foreloop_allocator *allocator, void *array, size_t *capacity,
                                                   size_t used, size_t element_size, foreloop_error *error) {
    return used < *capacity ? FORELOOP_OK
                            : foreloop_reserve(allocator, array, capacity, used, used + 1, element_size, error);
}

/* The status for an allocation that returned NULL. */
FORELOOP_INTERNAL_API foreloop_status foreloop_fail_memory(foreloop_error *error, size_t count, size_t element_size,
                                                           const char *what);

/* A terminated copy of text[length]. */
char *foreloop_copy_text(const foreloop_allocator *allocator, const char *text, size_t length);

/* Chunked allocation of things that live and die together; no per-item release. Zero-initialise with the allocator. */
typedef struct foreloop_arena {
    const foreloop_allocator *allocator;
    struct foreloop_arena_chunk *chunks;
    unsigned char *next; /* the free bytes of the newest chunk */
    size_t left;
} foreloop_arena;
enum { FORELOOP_ARENA_ALIGNMENT = 16 };
/* For foreloop_arena_allocate: any size, with a new chunk where it is needed. */
void *foreloop_arena_allocate_any(foreloop_arena *arena, size_t count, size_t element_size);
/* Aligned to 16. NULL on failure. */
static inline void *foreloop_arena_allocate(foreloop_arena *arena, size_t count, size_t element_size) {
    const size_t mask = FORELOOP_ARENA_ALIGNMENT - 1;
    size_t size = (count * element_size + mask) & ~mask;
    /* Small factors, whose product cannot overflow; and room for it. */
    if (((count | element_size) >> 16) != 0 || size == 0 || size > arena->left)
        return foreloop_arena_allocate_any(arena, count, element_size);
    void *item = arena->next;
    arena->next += size;
    arena->left -= size;
    return item;
}
char *foreloop_arena_text(foreloop_arena *arena, const char *text, size_t length);
/* Forgets all items but keeps the largest chunk for reuse. */
void foreloop_arena_reset(foreloop_arena *arena);
void foreloop_arena_close(foreloop_arena *arena);

/* Growable bytes. Zero-initialise with the allocator. `data` is terminated by a zero byte behind `size`. */
typedef struct foreloop_buffer {
    const foreloop_allocator *allocator;
    char *data;
    size_t size;
    size_t capacity;
} foreloop_buffer;
foreloop_status foreloop_buffer_append(foreloop_buffer *buffer, const void *data, size_t size, foreloop_error *error);
void foreloop_buffer_close(foreloop_buffer *buffer);

#endif
