/* Ids and offsets of some texts as Hugging Face tokenizers gave them (tests/golden/make_tokenizer.py). */
#include "common/file.h"
#include "common/json.h"
#include "tokenizer_test.h"
#include <stdlib.h>

enum { MAX_NUMBERS = 4096 };

typedef struct golden_case {
    char *text;
    size_t length;
    size_t ids[MAX_NUMBERS], offsets[MAX_NUMBERS];
    size_t id_count, offset_count;
} golden_case;

static foreloop_status read_numbers(foreloop_json *json, size_t *numbers, size_t *count) {
    bool more;
    *count = 0;
    FORELOOP_TRY(foreloop_json_array(json));
    for (;;) {
        FORELOOP_TRY(foreloop_json_element(json, &more));
        if (!more)
            return FORELOOP_OK;
        if (*count == MAX_NUMBERS)
            return foreloop_json_fail(json, "too many numbers");
        FORELOOP_TRY(foreloop_json_size(json, SIZE_MAX, &numbers[(*count)++]));
    }
}

static foreloop_status read_case(foreloop_json *json, const foreloop_allocator *allocator, golden_case *golden) {
    foreloop_text key, text;
    FORELOOP_TRY(foreloop_json_object(json));
    for (;;) {
        FORELOOP_TRY(foreloop_json_key(json, &key));
        if (!key.text)
            return FORELOOP_OK;
        if (foreloop_text_is(key, "ids")) {
            FORELOOP_TRY(read_numbers(json, golden->ids, &golden->id_count));
        } else if (foreloop_text_is(key, "offsets")) {
            FORELOOP_TRY(read_numbers(json, golden->offsets, &golden->offset_count));
        } else {
            FORELOOP_TRY(foreloop_json_string(json, &text));
            foreloop_release(allocator, golden->text);
            golden->text = foreloop_copy_text(allocator, text.text, text.length);
            golden->length = text.length;
        }
    }
}

static void check_case(foreloop_encoding *encoding, const golden_case *golden, size_t number) {
    foreloop_error error = {0};
    foreloop_status status = foreloop_tokenize(encoding, golden->text, golden->length, 1, &error);
    size_t count = foreloop_encoding_count(encoding), wrong = 0;

    if (!CHECK(status == FORELOOP_OK && count == golden->id_count && 2 * count == golden->offset_count,
               "case %zu: %zu tokens, expected %zu %s", number, count, golden->id_count, error.message))
        return;
    for (size_t i = 0; i < count; i++)
        wrong += foreloop_encoding_ids(encoding)[i] != golden->ids[i];
    CHECK(wrong == 0, "case %zu: %zu ids differ", number, wrong);
    wrong = 0;
    for (size_t i = 0; i < 2 * count; i++)
        wrong += foreloop_encoding_offsets(encoding)[i] != golden->offsets[i];
    CHECK(wrong == 0, "case %zu: %zu offsets differ", number, wrong);
}

static foreloop_status check_cases(foreloop_json *json, const foreloop_allocator *allocator,
                                   foreloop_encoding *encoding, golden_case *golden, size_t *count) {
    bool more;
    FORELOOP_TRY(foreloop_json_array(json));
    for (;; (*count)++) {
        FORELOOP_TRY(foreloop_json_element(json, &more));
        if (!more)
            return FORELOOP_OK;
        FORELOOP_TRY(read_case(json, allocator, golden));
        check_case(encoding, golden, *count);
    }
}

static void test_golden(const char *directory, const char *name, bool read_into_memory) {
    const foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    foreloop_tokenizer *tokenizer = NULL;
    foreloop_encoding *encoding = NULL;
    foreloop_options options = {.size = sizeof options, .read_into_memory = read_into_memory};
    foreloop_error error = {0};
    foreloop_file file = {0};
    foreloop_json json;
    golden_case *golden = calloc(1, sizeof *golden);
    char path[4096];
    size_t count = 0;

    snprintf(path, sizeof path, "%s/%s.tokenizer.json", directory, name);
    CHECK(foreloop_tokenizer_open(&tokenizer, path, &options, &error) == FORELOOP_OK, "%s %s", name, error.message);
    snprintf(path, sizeof path, "%s/%s.cases.json", directory, name);
    CHECK(foreloop_file_open(&file, path, &allocator, true, &error) == FORELOOP_OK, "%s %s", path, error.message);
    if (tokenizer && file.data && foreloop_encoding_create(&encoding, tokenizer, &error) == FORELOOP_OK) {
        foreloop_json_open(&json, &allocator, file.data, file.size, path, &error);
        CHECK(check_cases(&json, &allocator, encoding, golden, &count) == FORELOOP_OK, "%s: read %s", name,
              error.message);
        foreloop_json_close(&json);
    }
    CHECK(count > 150, "%s: %zu cases", name, count);
    foreloop_release(&allocator, golden->text);
    free(golden);
    foreloop_file_close(&file);
    foreloop_encoding_close(encoding);
    foreloop_tokenizer_close(tokenizer);
}

int main(int argument_count, char **arguments) {
    const char *directory = argument_count > 1 ? arguments[1] : "tests/golden/tokenizer";
    foreloop_tokenizer *tokenizer = NULL;
    foreloop_error error = {0};

    test_golden(directory, "bpe", false);
    test_golden(directory, "wordpiece", true);
    CHECK(foreloop_tokenizer_open(&tokenizer, "no/such/tokenizer.json", NULL, &error) == FORELOOP_ERROR_IO &&
              strstr(error.message, "no/such/tokenizer.json"),
          "a missing file: %s", error.message);
    CHECK(foreloop_tokenizer_open(&tokenizer, directory, NULL, &error) == FORELOOP_ERROR_IO, "a directory: %s",
          error.message);
    return tap_done();
}
