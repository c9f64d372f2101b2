/* Arrays, buffer and arena: alignment, growth, overflow, failing allocations; and sorting in place. */
#include "common/alloc.h"
#include "common/error.h"
#include "common/sort.h"
#include "failing_allocator.h"
#include "random.h"
#include "tap.h"
#include <stdint.h>
#include <string.h>

static void test_arrays(void) {
    foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    failing_allocator memory = {.fail_at = SIZE_MAX};
    foreloop_allocator counting = failing_allocator_use(&memory);
    foreloop_allocator given = foreloop_allocator_or_default(&counting);
    int *zeroed;
    void *pointer;

    CHECK(given.user == &memory && given.allocate == counting.allocate, "a given allocator is used");
    pointer = foreloop_allocate(&allocator, 3, 5);
    CHECK(pointer && (uintptr_t)pointer % FORELOOP_ALIGNMENT == 0, "arrays are aligned");
    foreloop_release(&allocator, pointer);
    foreloop_release(&allocator, NULL);
    pointer = foreloop_allocate(&counting, 0, 24);
    CHECK(pointer && memory.largest == 24, "an empty array has room for one element");
    foreloop_release(&counting, pointer);
    zeroed = foreloop_allocate_zeroed(&counting, 4, sizeof zeroed[0]);
    CHECK(zeroed && !zeroed[0] && !zeroed[3], "zeroed");
    foreloop_release(&counting, zeroed);
    memory.calls = 0;
    CHECK(!foreloop_allocate(&counting, SIZE_MAX / 2, 3) && !foreloop_allocate_zeroed(&counting, 3, SIZE_MAX / 2) &&
              !foreloop_copy_text(&counting, "", SIZE_MAX) && memory.calls == 0,
          "a product that overflows is not asked for");
    memory.fail_at = 0;
    CHECK(!foreloop_allocate_zeroed(&counting, 1, 1) && !foreloop_copy_text(&counting, "a", 1), "no memory");
}

static void test_text(void) {
    foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    char *copy = foreloop_copy_text(&allocator, "abc", 2);
    CHECK(copy && strcmp(copy, "ab") == 0, "a copy is terminated");
    foreloop_release(&allocator, copy);
    copy = foreloop_copy_text(&allocator, NULL, 0);
    CHECK(copy && !copy[0], "a copy of nothing");
    foreloop_release(&allocator, copy);
}

static void test_reserve(void) {
    failing_allocator memory = {.fail_at = SIZE_MAX};
    foreloop_allocator allocator = failing_allocator_use(&memory);
    foreloop_error error = {0};
    uint32_t *array = NULL, *before;
    size_t capacity = 0, right = 0;

    for (uint32_t i = 0; i < 1000; i++) {
        if (foreloop_reserve(&allocator, &array, &capacity, i, i + 1, sizeof array[0], &error) == FORELOOP_OK)
            array[i] = i;
    }
    for (uint32_t i = 0; i < 1000; i++)
        right += array[i] == i;
    CHECK(right == 1000 && memory.calls < 12 && memory.live == 1, "growing keeps the elements: %zu allocations",
          memory.calls);
    before = array;
    CHECK(foreloop_reserve(&allocator, &array, &capacity, 1000, 10, sizeof array[0], &error) == FORELOOP_OK &&
              array == before,
          "no growth when there is room");
    CHECK(foreloop_reserve(&allocator, &array, &capacity, 1000, SIZE_MAX / 2, sizeof array[0], &error) ==
                  FORELOOP_ERROR_MEMORY &&
              array == before && capacity >= 1000 && array[999] == 999,
          "overflow changes nothing: %s", error.message);
    memory.fail_at = 0;
    CHECK(foreloop_reserve(&allocator, &array, &capacity, 1000, 10000, sizeof array[0], &error) ==
                  FORELOOP_ERROR_MEMORY &&
              array == before && error.code == FORELOOP_ERROR_MEMORY,
          "failure changes nothing: %s", error.message);
    foreloop_release(&allocator, array);
    CHECK(memory.live == 0, "nothing leaks");
}

static void test_buffer(void) {
    failing_allocator memory = {.fail_at = SIZE_MAX};
    foreloop_allocator allocator = failing_allocator_use(&memory);
    foreloop_buffer buffer = {.allocator = &allocator};
    foreloop_error error = {0};

    CHECK(foreloop_buffer_append(&buffer, NULL, 0, &error) == FORELOOP_OK && buffer.size == 0 && !buffer.data[0],
          "an empty text");
    for (int i = 0; i < 100; i++)
        foreloop_buffer_append(&buffer, "ab", 2, &error);
    CHECK(buffer.size == 200 && strlen(buffer.data) == 200, "a text that grows");
    CHECK(foreloop_buffer_append(&buffer, "", SIZE_MAX - 100, &error) == FORELOOP_ERROR_MEMORY && buffer.size == 200,
          "overflow");
    memory.fail_at = 0;
    CHECK(foreloop_buffer_append(&buffer, buffer.data, 0, &error) == FORELOOP_OK &&
              foreloop_buffer_append(&buffer, "", 100000, &error) == FORELOOP_ERROR_MEMORY &&
              strlen(buffer.data) == 200,
          "failure keeps the text");
    foreloop_buffer_close(&buffer);
    foreloop_buffer_close(&buffer);
    CHECK(memory.live == 0, "nothing leaks");
}

/* Items of many sizes, each filled with its number; all must be intact at the end. */
static void test_arena(void) {
    enum { ITEMS = 2000 };
    static unsigned char *items[ITEMS];
    failing_allocator memory = {.fail_at = SIZE_MAX};
    foreloop_allocator allocator = failing_allocator_use(&memory);
    foreloop_arena arena = {.allocator = &allocator};
    size_t right = 0, calls;

    for (size_t i = 0; i < ITEMS; i++) {
        size_t size = i % 97 == 0 ? 20000 : i % 50;
        items[i] = foreloop_arena_allocate(&arena, size, 1);
        if (items[i])
            memset(items[i], (int)(i & 255), size);
    }
    for (size_t i = 0; i < ITEMS; i++) {
        size_t size = i % 97 == 0 ? 20000 : i % 50, intact = 0;
        for (size_t j = 0; items[i] && j < size; j++)
            intact += items[i][j] == (i & 255);
        right += intact == size && (uintptr_t)items[i] % 16 == 0;
    }
    CHECK(right == ITEMS && memory.calls < 40, "%zu items intact and aligned, in %zu chunks", right, memory.calls);
    CHECK(!foreloop_arena_allocate(&arena, SIZE_MAX / 2, 3) && !foreloop_arena_allocate(&arena, SIZE_MAX - 7, 1) &&
              !foreloop_arena_allocate(&arena, SIZE_MAX - 40, 1) && !foreloop_arena_text(&arena, "", SIZE_MAX),
          "overflow");
    foreloop_arena_reset(&arena);
    CHECK(memory.live == 1, "reset keeps one chunk");
    calls = memory.calls;
    CHECK(foreloop_arena_allocate(&arena, 20000, 1) && memory.calls == calls, "the chunk is used again");
    memory.fail_at = 0;
    CHECK(!foreloop_arena_allocate(&arena, 10000000, 1) && !foreloop_arena_text(&arena, NULL, 10000000), "no memory");
    memory.fail_at = SIZE_MAX;
    CHECK(strcmp(foreloop_arena_text(&arena, "abc", 2), "ab") == 0, "a text");
    foreloop_arena_close(&arena);
    foreloop_arena_reset(&arena);
    foreloop_arena_close(&arena);
    CHECK(memory.live == 0, "nothing leaks");
}

typedef struct item {
    uint64_t key;
    uint32_t index;
} item;

static int compare_items(const void *a, const void *b, const void *context) {
    const item *first = a, *second = b;
    ++*(size_t *)(uintptr_t)context;
    return first->key < second->key ? -1 : first->key > second->key;
}

/* Every length up to 40 and a long one, with repeated keys. */
static void test_sort(void) {
    enum { LONGEST = 5000 };
    static item items[LONGEST];
    static unsigned char seen[LONGEST];
    random_source random = {3};
    size_t right = 0, lengths = 0, compared = 0;

    for (size_t count = 0; count <= LONGEST; count = count == 40 ? LONGEST : count + 1) {
        size_t ordered = 0;
        for (size_t i = 0; i < count; i++)
            items[i] = (item){random_below(&random, count < 10 ? 4 : 1000), (uint32_t)i};
        memset(seen, 0, sizeof seen);
        compared = 0;
        foreloop_sort(items, count, sizeof items[0], compare_items, &compared);
        for (size_t i = 0; i < count; i++) {
            ordered += (i == 0 || items[i - 1].key <= items[i].key) && !seen[items[i].index];
            seen[items[i].index] = 1;
        }
        right += ordered == count;
        lengths++;
    }
    CHECK(right == lengths && compared < (size_t)LONGEST * 2 * 13, "%zu lengths sorted, the last in %zu comparisons",
          right, compared);
}

int main(void) {
    test_arrays();
    test_text();
    test_reserve();
    test_buffer();
    test_arena();
    test_sort();
    return tap_done();
}
