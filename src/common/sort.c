/* Heap sort. */
#include "common/sort.h"

static void swap_items(unsigned char *a, unsigned char *b, size_t size) {
    for (size_t i = 0; i < size; i++) {
        unsigned char moved = a[i];
        a[i] = b[i];
        b[i] = moved;
    }
}

void foreloop_sort(void *items, size_t count, size_t item_size, foreloop_compare compare, const void *context) {
    unsigned char *base = items;
    size_t start = count / 2, end = count;

    while (end > 1) {
        size_t root;

        if (start > 0)
            start--; /* building the heap from its last parent on */
        else
            swap_items(base, base + --end * item_size, item_size); /* the largest goes to its place */
        for (root = start; root * 2 + 1 < end;) {
            size_t child = root * 2 + 1;
            if (child + 1 < end && compare(base + child * item_size, base + (child + 1) * item_size, context) < 0)
                child++;
            if (compare(base + root * item_size, base + child * item_size, context) >= 0)
                break;
            swap_items(base + root * item_size, base + child * item_size, item_size);
            root = child;
        }
    }
}
