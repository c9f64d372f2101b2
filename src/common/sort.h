/* Sorting in place, without memory of its own (the C library's qsort may allocate) and in n log n steps whatever the
 * data, so that a hostile file cannot make it slow. Not stable. */
#ifndef FORELOOP_COMMON_SORT_H
#define FORELOOP_COMMON_SORT_H

#include <stddef.h>

/* Negative, zero or positive, as for qsort; `context` is the caller's. */
typedef int (*foreloop_compare)(const void *a, const void *b, const void *context);

void foreloop_sort(void *items, size_t count, size_t item_size, foreloop_compare compare, const void *context);

#endif
