/* The compiled form: the same tokenizer again, and no content of it leads out of bounds. */
#include "common/file.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer_test.h"
#include <stdlib.h>

static const char text[] =
    "for i, j in T.grid(128, 128):\n    with T.block(\"B\"): <mask> \xc3\xa9\xe4\xb8\xad unwanted 32";

static foreloop_tokenizer *open_compiled(const void *data, size_t size, const foreloop_allocator *allocator) {
    foreloop_tokenizer *tokenizer = NULL;
    foreloop_error error = {0};
    if (foreloop_tokenizer_open_compiled(&tokenizer, data, size, "test", allocator, FORELOOP_TIER_REF, &error) !=
        FORELOOP_OK)
        CHECK(error.message[0] != 0, "a message");
    return tokenizer;
}

static void check_file(const char *directory, const char *name, const foreloop_allocator *allocator) {
    char path[4096], wanted[4096], found[4096];
    foreloop_buffer buffer = {.allocator = allocator};
    foreloop_tokenizer *tokenizer = NULL, *again;
    foreloop_file file = {0};
    unsigned char *copy;
    size_t opened = 0;

    snprintf(path, sizeof path, "%s/%s", directory, name);
    if (!CHECK(foreloop_file_open(&file, path, allocator, false, NULL) == FORELOOP_OK &&
                   foreloop_tokenizer_open_memory(&tokenizer, file.data, file.size, NULL, NULL) == FORELOOP_OK &&
                   foreloop_tokenizer_compile(tokenizer, file.data, file.size, &buffer, NULL) == FORELOOP_OK,
               "%s: compile", name))
        exit(1);
    tokens_text(tokenizer, text, strlen(text), 1, wanted, sizeof wanted);
    again = open_compiled(buffer.data, buffer.size, allocator);
    tokens_text(again, text, strlen(text), 1, found, sizeof found);
    CHECK(again && strcmp(wanted, found) == 0, "%s: %s, expected %s", name, found, wanted);
    CHECK(again && foreloop_tokenizer_vocabulary_size(again) == foreloop_tokenizer_vocabulary_size(tokenizer), "ids");
    foreloop_tokenizer_close(again);

    copy = foreloop_allocate(allocator, buffer.size, 1);
    for (size_t size = 0; size < buffer.size; size += size < 256 ? 1 : 101) {
        memcpy(copy, buffer.data, size);
        again = NULL;
        if (foreloop_tokenizer_open_compiled(&again, copy, size, "test", allocator, FORELOOP_TIER_REF, NULL) ==
            FORELOOP_OK)
            foreloop_tokenizer_close(again);
        opened += again != NULL;
    }
    CHECK(opened == 0, "%s: no truncation opens", name);
    /* A changed byte may leave another tokenizer; then it must work, whatever it makes of texts. */
    for (size_t i = 0; i < buffer.size; i += i < 512 ? 1 : 97) {
        memcpy(copy, buffer.data, buffer.size);
        copy[i] ^= (unsigned char)(i % 3 == 0 ? 0xFF : 1 << i % 8);
        again = NULL;
        if (foreloop_tokenizer_open_compiled(&again, copy, buffer.size, "test", allocator, FORELOOP_TIER_REF, NULL) ==
            FORELOOP_OK)
            tokens_text(again, text, strlen(text), 1, found, sizeof found);
        foreloop_tokenizer_close(again);
    }
    CHECK(1, "%s: changed bytes do no harm", name);
    foreloop_release(allocator, copy);
    foreloop_buffer_close(&buffer);
    foreloop_tokenizer_close(tokenizer);
    foreloop_file_close(&file);
}

int main(int argc, char **argv) {
    const foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    const char *directory = argc > 1 ? argv[1] : "tests/golden/tokenizer";
    check_file(directory, "bpe.tokenizer.json", &allocator);
    check_file(directory, "wordpiece.tokenizer.json", &allocator);
    return tap_done();
}
