/* Memory: overflow-checked arrays, a growable byte buffer and an arena, all over the caller's allocator. */
#define _DEFAULT_SOURCE /* madvise */
#include "common/alloc.h"
#include "common/error.h"
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

enum { HUGE_PAGE = 1 << 21 };

/* Large blocks are weights, which every forward pass reads from end to end, and the rows of actions, which scoring
 * reads in no order. In huge pages that takes up to a third less time: fewer address translations, and prefetchers stop
 * at the end of a page. Asks for those that fit into a block, which begins with one. */
static void ask_for_huge_pages(void *pointer, size_t size) {
#if defined(MADV_HUGEPAGE)
    const int former = errno;
    (void)madvise(pointer, size / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
    errno = former;
#else
    (void)pointer;
    (void)size;
#endif
}

static void *allocate_default(void *user, size_t size, size_t alignment) {
    void *pointer = NULL;
    (void)user;
    const bool huge = size >= HUGE_PAGE && alignment <= HUGE_PAGE;
    const size_t wanted = huge ? HUGE_PAGE : alignment < sizeof(void *) ? sizeof(void *) : alignment;
    if (posix_memalign(&pointer, wanted, size) != 0)
        return NULL;
    if (huge)
        ask_for_huge_pages(pointer, size);
    return pointer;
}

static void release_default(void *user, void *pointer) {
    (void)user;
    free(pointer);
}

foreloop_allocator foreloop_allocator_or_default(const foreloop_allocator *given) {
    const foreloop_allocator fallback = {allocate_default, release_default, NULL};
    return given ? *given : fallback;
}

/* The product in bytes, 0 when it overflows; never 0 otherwise. */
static size_t array_size(size_t count, size_t element_size) {
    if (count == 0)
        count = 1;
    if (element_size == 0)
        element_size = 1;
    /* Factors of half a word cannot overflow, and need no division. */
    if ((count | element_size) >> (sizeof(size_t) * 4) != 0 && count > SIZE_MAX / element_size)
        return 0;
    return count * element_size;
}

void *foreloop_allocate(const foreloop_allocator *allocator, size_t count, size_t element_size) {
    size_t size = array_size(count, element_size);
    return size == 0 ? NULL : allocator->allocate(allocator->user, size, FORELOOP_ALIGNMENT);
}

void *foreloop_allocate_zeroed(const foreloop_allocator *allocator, size_t count, size_t element_size) {
    void *pointer = foreloop_allocate(allocator, count, element_size);
    if (pointer)
        memset(pointer, 0, array_size(count, element_size));
    return pointer;
}

void foreloop_release(const foreloop_allocator *allocator, void *pointer) {
    if (pointer)
        allocator->release(allocator->user, pointer);
}

foreloop_status foreloop_reserve(const foreloop_allocator *allocator, void *array, size_t *capacity, size_t used,
                                 size_t needed, size_t element_size, foreloop_error *error) {
    void *old, *grown;
    size_t new_capacity = *capacity > SIZE_MAX / 2 ? SIZE_MAX : *capacity * 2;

    if (needed <= *capacity)
        return FORELOOP_OK;
    if (new_capacity < needed)
        new_capacity = needed;
    if (new_capacity < 16)
        new_capacity = 16;
    grown = foreloop_allocate(allocator, new_capacity, element_size);
    if (!grown)
        return foreloop_fail_memory(error, new_capacity, element_size, "a growing array");
    /* Through memcpy, because the caller's pointer has a type of its own. */
    memcpy(&old, array, sizeof old);
    if (used > 0)
        memcpy(grown, old, used * element_size);
    foreloop_release(allocator, old);
    memcpy(array, &grown, sizeof grown);
    *capacity = new_capacity;
    return FORELOOP_OK;
}

foreloop_status foreloop_fail_memory(foreloop_error *error, size_t count, size_t element_size, const char *what) {
    return foreloop_fail(error, FORELOOP_ERROR_MEMORY, "out of memory: %zu x %zu bytes for %s", count, element_size,
                         what);
}

char *foreloop_copy_text(const foreloop_allocator *allocator, const char *text, size_t length) {
    char *copy = length == SIZE_MAX ? NULL : foreloop_allocate(allocator, length + 1, 1);
    if (!copy)
        return NULL;
    if (length > 0)
        memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

/* ---- Arena ------------------------------------------------------------------------------------------------------- */

enum { ARENA_FIRST_CHUNK = 4096, ARENA_LARGEST_CHUNK = 1 << 20 };

/* Lies at the start of its own memory, padded so that items behind it are aligned. The newest chunk is the list's
 * first. */
struct foreloop_arena_chunk {
    _Alignas(FORELOOP_ARENA_ALIGNMENT) struct foreloop_arena_chunk *next;
    size_t size; /* of the items' space */
};
_Static_assert(sizeof(struct foreloop_arena_chunk) % FORELOOP_ARENA_ALIGNMENT == 0,
               "items behind a chunk's header are aligned");

void *foreloop_arena_allocate_any(foreloop_arena *arena, size_t count, size_t element_size) {
    struct foreloop_arena_chunk *chunk = arena->chunks;
    size_t size = array_size(count, element_size);
    void *item;

    if (size == 0 || size > SIZE_MAX / 2)
        return NULL;
    size = (size + FORELOOP_ARENA_ALIGNMENT - 1) / FORELOOP_ARENA_ALIGNMENT * FORELOOP_ARENA_ALIGNMENT;
    if (size > arena->left) {
        /* Doubling keeps the number of chunks small, the bound keeps the last one from wasting much. */
        size_t space = !chunk                                   ? ARENA_FIRST_CHUNK
                       : chunk->size >= ARENA_LARGEST_CHUNK / 2 ? ARENA_LARGEST_CHUNK
                                                                : chunk->size * 2;
        if (space < size)
            space = size;
        chunk = foreloop_allocate(arena->allocator, sizeof *chunk + space, 1);
        if (!chunk)
            return NULL;
        chunk->next = arena->chunks;
        chunk->size = space;
        arena->chunks = chunk;
        arena->next = (unsigned char *)(chunk + 1);
        arena->left = space;
    }
    item = arena->next;
    arena->next += size;
    arena->left -= size;
    return item;
}

char *foreloop_arena_text(foreloop_arena *arena, const char *text, size_t length) {
    char *copy = length == SIZE_MAX ? NULL : foreloop_arena_allocate(arena, length + 1, 1);
    if (!copy)
        return NULL;
    if (length > 0)
        memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

void foreloop_arena_reset(foreloop_arena *arena) {
    struct foreloop_arena_chunk *largest = arena->chunks, *chunk = arena->chunks;

    for (struct foreloop_arena_chunk *other = arena->chunks; other; other = other->next)
        if (other->size > largest->size)
            largest = other;
    while (chunk) {
        struct foreloop_arena_chunk *next = chunk->next;
        if (chunk != largest)
            foreloop_release(arena->allocator, chunk);
        chunk = next;
    }
    arena->chunks = largest;
    if (largest) {
        largest->next = NULL;
        arena->next = (unsigned char *)(largest + 1);
        arena->left = largest->size;
    }
}

void foreloop_arena_close(foreloop_arena *arena) {
    while (arena->chunks) {
        struct foreloop_arena_chunk *next = arena->chunks->next;
        foreloop_release(arena->allocator, arena->chunks);
        arena->chunks = next;
    }
    arena->next = NULL;
    arena->left = 0;
}

/* ---- Buffer ------------------------------------------------------------------------------------------------------ */

foreloop_status foreloop_buffer_append(foreloop_buffer *buffer, const void *data, size_t size, foreloop_error *error) {
    if (size >= SIZE_MAX - buffer->size)
        return foreloop_fail_memory(error, size, 1, "a growing text");
    FORELOOP_TRY(foreloop_reserve(buffer->allocator, &buffer->data, &buffer->capacity, buffer->size,
                                  buffer->size + size + 1, 1, error));
    if (size > 0)
        memcpy(buffer->data + buffer->size, data, size);
    buffer->size += size;
    buffer->data[buffer->size] = '\0';
    return FORELOOP_OK;
}

void foreloop_buffer_close(foreloop_buffer *buffer) {
    if (buffer->data)
        foreloop_release(buffer->allocator, buffer->data);
    buffer->data = NULL;
    buffer->size = 0;
    buffer->capacity = 0;
}
