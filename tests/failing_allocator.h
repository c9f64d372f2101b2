/*
 * An allocator for tests: counts calls and live blocks, fills new memory with a pattern so that reading it before
 * writing shows, and returns NULL from the call number `fail_at` on.
 *
 *     for (size_t n = 0;; n++) {
 *         failing_allocator memory = {.fail_at = n};
 *         foreloop_allocator allocator = failing_allocator_use(&memory);
 *         ... run; on success close everything ...
 *         CHECK(memory.live == 0, ...);
 *         if (!memory.failed) break;       // the run needed no more than n allocations
 *     }
 */
#ifndef FORELOOP_TESTS_FAILING_ALLOCATOR_H
#define FORELOOP_TESTS_FAILING_ALLOCATOR_H

#include <foreloop/foreloop.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct failing_allocator {
    size_t fail_at; /* SIZE_MAX: never */
    size_t calls;
    size_t live;
    size_t largest; /* request */
    int failed;     /* NULL was returned */
} failing_allocator;

static void *failing_allocate(void *user, size_t size, size_t alignment) {
    failing_allocator *memory = user;
    void *pointer = NULL;

    if (size > memory->largest)
        memory->largest = size;
    if (memory->calls++ >= memory->fail_at ||
        posix_memalign(&pointer, alignment < sizeof(void *) ? sizeof(void *) : alignment, size) != 0) {
        memory->failed = 1;
        return NULL;
    }
    memset(pointer, 0xA5, size);
    memory->live++;
    return pointer;
}

static void failing_release(void *user, void *pointer) {
    failing_allocator *memory = user;
    memory->live--;
    free(pointer);
}

static foreloop_allocator failing_allocator_use(failing_allocator *memory) {
    foreloop_allocator allocator = {failing_allocate, failing_release, memory};
    return allocator;
}

#endif
