/* Messages: one line of valid UTF-8 that fits, whatever goes into them. */
#include "common/error.h"
#include "common/utf8.h"
#include "tap.h"
#include <string.h>

enum { MESSAGE_SIZE = sizeof(((foreloop_error *)0)->message) };

static int is_clean(const char *message) {
    size_t length = strlen(message);
    for (size_t i = 0, step; i < length; i += step) {
        uint32_t code_point;
        if (!foreloop_utf8_decode(message + i, length - i, &code_point, &step) || code_point < 0x20)
            return 0;
    }
    return length < MESSAGE_SIZE;
}

static void test_fail(void) {
    foreloop_error error = {FORELOOP_OK, FORELOOP_POSITION_LINE, 7, ""};

    CHECK(foreloop_fail(&error, FORELOOP_ERROR_IO, "no %s", "file") == FORELOOP_ERROR_IO &&
              error.code == FORELOOP_ERROR_IO && error.position_kind == FORELOOP_POSITION_NONE && error.position == 0 &&
              strcmp(error.message, "no file") == 0,
          "fail");
    CHECK(foreloop_fail_at(&error, FORELOOP_ERROR_FORMAT, FORELOOP_POSITION_BYTE, 9, "bad") == FORELOOP_ERROR_FORMAT &&
              error.position_kind == FORELOOP_POSITION_BYTE && error.position == 9,
          "fail_at");
    CHECK(foreloop_error_prefix(&error, FORELOOP_ERROR_MISMATCH, "part %d", 3) == FORELOOP_ERROR_MISMATCH &&
              error.code == FORELOOP_ERROR_MISMATCH && error.position == 9 && strcmp(error.message, "part 3: bad") == 0,
          "prefix keeps the position");
    CHECK(foreloop_fail(NULL, FORELOOP_ERROR_IO, "x") == FORELOOP_ERROR_IO &&
              foreloop_fail_at(NULL, FORELOOP_ERROR_IO, FORELOOP_POSITION_BYTE, 1, "x") == FORELOOP_ERROR_IO &&
              foreloop_error_prefix(NULL, FORELOOP_ERROR_IO, "x") == FORELOOP_ERROR_IO,
          "no error struct");
}

static void test_cleaning(void) {
    static const struct {
        const char *given, *clean;
    } cases[] = {{"a\nb\tc\x7f", "a?b?c?"},
                 {"\x1b[31mred", "?[31mred"},
                 {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
                 {"a\xff"
                  "b\xe2\x82",
                  "a?b?"},
                 {"\xed\xa0\x80", "???"},
                 {"\xc2\x85\xe2\x80\xa8x", "??x"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        foreloop_error error;
        foreloop_fail(&error, FORELOOP_ERROR_FORMAT, "%s", cases[i].given);
        CHECK(strcmp(error.message, cases[i].clean) == 0, "cleaned: %s", error.message);
    }
}

/* Text longer than the message, cut at every place of a multi-byte sequence. */
static void test_truncation(void) {
    static char text[2000];
    int clean = 0, full = 0;

    for (size_t shift = 0; shift < 8; shift++) {
        foreloop_error error;
        size_t length = shift;
        memset(text, 'x', shift);
        for (; length + 4 < sizeof text; length += 4)
            memcpy(text + length, "\xf0\x9f\x98\x80", 4);
        text[length] = '\0';
        foreloop_fail(&error, FORELOOP_ERROR_FORMAT, "%s", text);
        clean += is_clean(error.message) && !strchr(error.message, '?');
        full += strlen(error.message) > MESSAGE_SIZE - 5;
        for (int i = 0; i < 5; i++) {
            foreloop_error_prefix(&error, FORELOOP_ERROR_FORMAT, "%s", i % 2 ? "pre" : "\xe2\x82\xac");
            clean += is_clean(error.message) && !strchr(error.message, '?');
            full += strlen(error.message) > MESSAGE_SIZE - 5;
        }
        foreloop_error_prefix(&error, FORELOOP_ERROR_FORMAT, "%s", text);
        clean += is_clean(error.message) && !strchr(error.message, '?');
    }
    {
        foreloop_error error;
        memset(text, 'p', 600);
        text[600] = '\0';
        foreloop_fail(&error, FORELOOP_ERROR_IO, "%s: the cause: %d", text, 7);
        foreloop_error_prefix(&error, FORELOOP_ERROR_IO, "reading %s", text);
        CHECK(strstr(error.message, "the cause: 7") && strncmp(error.message, "reading p", 9) == 0 &&
                  strstr(error.message, " ... "),
              "a long path leaves the cause: %s", error.message);
    }
    CHECK(clean == 8 * 7 && full == 8 * 6, "long messages are cut between characters: %d, %d", clean, full);
    {
        foreloop_error error;
        foreloop_fail(&error, FORELOOP_ERROR_FORMAT, "\"%.*s\"", FORELOOP_QUOTED(text, (size_t)100));
        CHECK(strlen(error.message) <= 42, "quoted data is cut to 40 bytes");
    }
}

int main(void) {
    test_fail();
    test_cleaning();
    test_truncation();
    return tap_done();
}
