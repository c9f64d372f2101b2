/* Vocabularies and merges that collide under a hash key: another key is taken, and where none helps there is an error.
 */
#include "tokenizer/merge_table.h"
#include "tokenizer/token_table.h"
#include "tokenizer_test.h"
#include <stdlib.h>

enum { KEY = 12345, TOKENS = 3 * FORELOOP_TOKEN_PROBES, MERGES = FORELOOP_MERGE_PROBES + 1 };

/* The next text from `*number` on whose place in every table of up to 1024 slots is that of the first one. */
static foreloop_text colliding_text(char text[16], unsigned *number) {
    size_t length;
    do
        length = (size_t)snprintf(text, 16, "t%u", (*number)++);
    while (foreloop_hash_spread(foreloop_hash(KEY, text, length)) % 1024 != 77);
    return (foreloop_text){text, length};
}

static void test_vocabulary(void) {
    const foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    foreloop_token_table table = {.allocator = &allocator, .key = KEY};
    foreloop_error error = {0};
    unsigned number = 0;
    uint32_t index, lost = 0, wrong = 0;
    char text[16];

    for (uint32_t i = 0; i < TOKENS; i++) {
        if (i == FORELOOP_TOKEN_PROBES)
            CHECK(table.key == KEY, "the key remains while the probes reach");
        lost += foreloop_token_table_put(&table, colliding_text(text, &number), i, &index, &error) != FORELOOP_OK;
    }
    CHECK(lost == 0, "every token finds a place: %s", error.message);
    CHECK(table.key != KEY, "under another key");
    number = 0;
    for (uint32_t i = 0; i < TOKENS; i++) {
        foreloop_text token = colliding_text(text, &number);
        index = foreloop_token_table_find(&table, token.text, token.length);
        wrong += index != i || table.entries[index].id != i;
    }
    CHECK(wrong == 0, "each is found again");
    CHECK(foreloop_token_table_find(&table, "t", 1) == FORELOOP_NO_TOKEN, "and no other one");
    CHECK(foreloop_token_table_sort(&table, &error) == FORELOOP_OK && foreloop_token_table_is_sound(&table), "sound");
    foreloop_token_table_close(&table);
}

static void test_merges(void) {
    const foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    foreloop_merge_table table = {.allocator = &allocator};
    foreloop_error error = {0};
    foreloop_merge merges[MERGES];
    uint32_t found = 0, lost = 0, wrong = 0;

    CHECK(foreloop_merge_table_open(&table, KEY, &error) == FORELOOP_OK, "an empty table");
    for (uint32_t i = 0; found < MERGES; i++) {
        if (foreloop_merge_hash(&table, i % 1000, i / 1000) % 1024 != 77)
            continue;
        merges[found] = (foreloop_merge){i % 1000, i / 1000, found, found};
        found++;
    }
    for (uint32_t i = 0; i < MERGES; i++)
        lost += foreloop_merge_table_add(&table, merges[i], &error) != FORELOOP_OK;
    CHECK(lost == 0 && table.count == MERGES, "every merge finds a place: %s", error.message);
    CHECK(table.key != KEY, "under another key");
    for (uint32_t i = 0; i < MERGES; i++) {
        const foreloop_merge *merge = foreloop_merge_find(&table, merges[i].left, merges[i].right);
        wrong += !merge || merge->rank != merges[i].rank;
    }
    CHECK(wrong == 0 && !foreloop_merge_find(&table, 1001, 0), "each is found again, and no other one");
    foreloop_merge_table_close(&table);
}

/* Left parts that agree in their low bits lie in one place under every key: a document made so is refused. */
static void test_no_key(void) {
    enum { STEP = 256, COUNT = STEP * (MERGES + 1), SIZE = 32 * COUNT };
    char *document = malloc(SIZE);
    size_t used = (size_t)snprintf(document, SIZE, "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"b\":0");

    for (int i = 1; i < COUNT; i++)
        used += (size_t)snprintf(document + used, SIZE - used, ",\"a%d\":%d", i, i);
    for (int i = STEP; i < COUNT; i += STEP)
        used += (size_t)snprintf(document + used, SIZE - used, ",\"a%db\":%d", i, COUNT + i);
    used += (size_t)snprintf(document + used, SIZE - used, "},\"merges\":[");
    for (int i = STEP; i < COUNT; i += STEP)
        used += (size_t)snprintf(document + used, SIZE - used, "%s\"a%d b\"", i > STEP ? "," : "", i);
    snprintf(document + used, SIZE - used, "]}}");
    check_refused(document, FORELOOP_ERROR_LIMIT, "collide", "merges that collide under every key");
    free(document);
}

int main(void) {
    test_vocabulary();
    test_merges();
    test_no_key();
    return tap_done();
}
