/* The head of a compiled part: what makes it not count, and what is an error. */
#include "model/compiled.h"
#include "tap.h"
#include <string.h>

/* A head has words of 8 bytes: mark, byte order, version, size and hash of the source, size and hash of the content. */
enum { HEAD = FORELOOP_ALIGNMENT, WORD = 8, VERSION = 3, CONTENT = 5 * WORD };

static const char source[] = "{\"a\": 1}", payload[] = "the content, made of the source";

static foreloop_status content_of(const void *data, size_t size, uint32_t version, foreloop_bytes text,
                                  foreloop_bytes *content, foreloop_error *error) {
    *error = (foreloop_error){0};
    *content = (foreloop_bytes){"untouched", 1};
    return foreloop_compiled_content((foreloop_bytes){data, size}, version, text, "tokenizer.json", content, error);
}

int main(void) {
    const foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    const foreloop_bytes text = {source, sizeof source - 1};
    foreloop_buffer buffer = {.allocator = &allocator};
    foreloop_bytes content;
    foreloop_error error = {0};
    size_t wrong = 0;

    if (!CHECK(foreloop_compiled_begin(&buffer, &error) == FORELOOP_OK &&
                   foreloop_buffer_append(&buffer, payload, sizeof payload, &error) == FORELOOP_OK,
               "written"))
        return tap_done();
    foreloop_compiled_finish(&buffer, VERSION, text);
    unsigned char *data = (unsigned char *)buffer.data;
    const size_t size = buffer.size;

    CHECK(content_of(data, size, VERSION, text, &content, &error) == FORELOOP_OK && content.data == data + HEAD &&
              content.size == sizeof payload && memcmp(content.data, payload, sizeof payload) == 0,
          "the content comes back");
    CHECK(content_of(NULL, 0, VERSION, text, &content, &error) == FORELOOP_OK && !content.data, "there is none");
    CHECK(content_of(data, size, VERSION + 1, text, &content, &error) == FORELOOP_OK && !content.data,
          "another version does not count");
    CHECK(content_of(data, size, VERSION, (foreloop_bytes){source, text.size - 1}, &content, &error) == FORELOOP_OK &&
              !content.data,
          "nor one of a shorter text");
    CHECK(content_of(data, size, VERSION, (foreloop_bytes){"{\"a\": 2}", text.size}, &content, &error) == FORELOOP_OK &&
              !content.data,
          "nor one of another text of that size");
    for (size_t length = 0; length < HEAD; length++)
        wrong += content_of(data, length, VERSION, text, &content, &error) != FORELOOP_OK || content.data;
    CHECK(wrong == 0, "nor a part of a head");
    for (size_t length = HEAD; length < size; length++)
        wrong += content_of(data, length, VERSION, text, &content, &error) != FORELOOP_ERROR_FORMAT || content.data ||
                 !strstr(error.message, "tokenizer.json is damaged");
    CHECK(wrong == 0, "a truncated content is an error");
    for (size_t bit = 0; bit < 8 * size; bit++) {
        data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        foreloop_status status = content_of(data, size, VERSION, text, &content, &error);
        const size_t at = bit / 8;
        if (at < CONTENT) /* what it was made by and of: it is another's */
            wrong += status != FORELOOP_OK || content.data;
        else if (at < 7 * WORD || at >= HEAD) /* size and hash of the content, and the content */
            wrong += status != FORELOOP_ERROR_FORMAT || content.data || !strstr(error.message, "pack the model");
        else /* filling */
            wrong += status != FORELOOP_OK || !content.data;
        data[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    CHECK(wrong == 0, "each changed bit of mark, byte order, version and source leaves none, of the rest is an error");
    foreloop_buffer_close(&buffer);
    return tap_done();
}
