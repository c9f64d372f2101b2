/* Arrays of floats that end at a page that may not be touched, so that a kernel that reads or writes behind one
 * crashes; and reads before one show as the odd numbers there. */
#ifndef FORELOOP_TESTS_GUARDED_H
#define FORELOOP_TESTS_GUARDED_H

#include "random.h"
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Needs _DEFAULT_SOURCE for MAP_ANONYMOUS. */
typedef struct guarded {
    float *values; /* [count]; ends at the page */
    size_t count;
    void *pages;
    size_t size;
} guarded;

/* `gap` floats, fewer than 16, lie between the array's end and the page: they give it another alignment. */
__attribute__((unused)) static guarded guarded_make(size_t count, size_t gap) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = ((count + gap) * sizeof(float) / page + 2) * page;
    char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + size - page, page, PROT_NONE) != 0)
        abort();
    const guarded result = {(float *)(pages + size - page) - count - gap, count, pages, size};
    for (float *p = (float *)pages; p < (float *)(pages + size - page); p++)
        *p = 1e30f;
    return result;
}

__attribute__((unused)) static void guarded_free(guarded *array) {
    munmap(array->pages, array->size);
}

/* Even from -1 to 1. */
__attribute__((unused)) static float guarded_draw(random_source *source) {
    return (float)random_below(source, 2000001) / 1000000.0f - 1.0f;
}

__attribute__((unused)) static void guarded_fill(guarded *array, random_source *source) {
    for (size_t i = 0; i < array->count; i++)
        array->values[i] = guarded_draw(source);
}

#endif
