/* The JSON pull reader: what it accepts and refuses, and against cJSON on random documents that both can read. */
#include "common/json.h"
#include "common/number.h"
#include "failing_allocator.h"
#include "random.h"
#include "tap.h"
#include <cjson/cJSON.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A copy of exactly this size, so that the sanitizer sees every read beyond the text. */
static char *exact_copy(const char *text, size_t size) {
    char *copy = malloc(size > 0 ? size : 1);
    if (size > 0)
        memcpy(copy, text, size);
    return copy;
}

/* Reads a whole document without looking at it. */
static foreloop_status skip_all(const char *text, size_t size, foreloop_error *error) {
    failing_allocator memory = {.fail_at = SIZE_MAX};
    foreloop_allocator allocator = failing_allocator_use(&memory);
    char *copy = exact_copy(text, size);
    foreloop_json json;
    foreloop_status status;

    foreloop_json_open(&json, &allocator, copy, size, "doc", error);
    status = foreloop_json_skip(&json);
    if (status == FORELOOP_OK)
        status = foreloop_json_end(&json);
    foreloop_json_close(&json);
    free(copy);
    return memory.live == 0 ? status : (foreloop_status)-1;
}

static void test_accepts(void) {
    static const char *const texts[] = {"0",
                                        "-0",
                                        "1",
                                        "-1.5e+3",
                                        "1E400",
                                        "NaN",
                                        "Infinity",
                                        "-Infinity",
                                        "true",
                                        "false",
                                        "null",
                                        "\"\"",
                                        "[]",
                                        "{}",
                                        " [ 1 , 2 ] ",
                                        "{\"a\":{\"b\":[{}]}}",
                                        "\t\r\n\"x\"",
                                        "\"\\u0000\\ud83d\\ude00\\ud83d\"",
                                        "\"\\/\\b\\f\\n\\r\\t\"",
                                        "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\x7f\""};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        foreloop_error error = {0};
        CHECK(skip_all(texts[i], strlen(texts[i]), &error) == FORELOOP_OK, "accepts case %zu %s", i, error.message);
    }
}

static void test_refuses(void) {
    static const struct {
        const char *text;
        uint64_t position;
    } cases[] = {
        {"", 0},
        {" ", 1},
        {"[", 1},
        {"[1", 2},
        {"[1,", 3},
        {"[1,]", 3},
        {"[,1]", 1},
        {"[1 2]", 3},
        {"{", 1},
        {"{\"a\"", 4},
        {"{\"a\":", 5},
        {"{\"a\":1", 6},
        {"{\"a\":1,}", 7},
        {"{a:1}", 1},
        {"{1:1}", 1},
        {"{\"a\" 1}", 5},
        {"[1}", 2},
        {"{\"a\":1]", 6},
        {"01", 0},
        {"1.", 0},
        {".5", 0},
        {"+1", 0},
        {"1e", 0},
        {"1e+", 0},
        {"-", 0},
        {"-x", 0},
        {"--1", 0},
        {"nan", 0},
        {"-NaN", 0},
        {"Infinit", 0},
        {"tru", 0},
        {"truex", 4},
        {"nul", 0},
        {"1 1", 2},
        {"[] []", 3},
        {"\"", 0},
        {"\"abc", 0},
        {"\"\\\"", 0},
        {"\"\\x\"", 1},
        {"\"\\u12\"", 1},
        {"\"\\u12g4\"", 1},
        {"\"a\tb\"", 2},
        {"\"\x80\"", 1},
        {"\"\xc0\xaf\"", 1},
        {"\"\xed\xa0\x80\"", 1},
        {"\"\xf5\x80\x80\x80\"", 1},
        {"\"\xe2\x82\"", 1},
        {"/**/1", 0},
        {"[1]//", 3},
        {"'a'", 0},
        {"\xef\xbb\xbf"
         "1",
         0},
        {"]", 0},
        {"}", 0},
        {":", 0},
        {"\"\\", 1},
        {"\"\\u00", 1},
        {"\"\\u", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        foreloop_error error = {0};
        foreloop_status status = skip_all(cases[i].text, strlen(cases[i].text), &error);
        CHECK(status == FORELOOP_ERROR_FORMAT && error.code == status &&
                  error.position_kind == FORELOOP_POSITION_BYTE && error.position == cases[i].position &&
                  strncmp(error.message, "doc: byte ", 10) == 0,
              "refuses case %zu at %d: %s", i, (int)cases[i].position, error.message);
    }
    {
        static const char zero_inside[] = "[\"\\\0\"]";
        foreloop_error error = {0};
        CHECK(skip_all(zero_inside, sizeof zero_inside - 1, &error) == FORELOOP_ERROR_FORMAT,
              "a zero byte is no escape: %s", error.message);
    }
}

static void test_depth(void) {
    enum { LEVELS = 100000 };
    char *text = malloc(2 * LEVELS);
    foreloop_error error = {0};

    memset(text, '[', LEVELS);
    CHECK(skip_all(text, LEVELS, &error) == FORELOOP_ERROR_LIMIT && error.position == FORELOOP_JSON_MAX_DEPTH,
          "100,000 open brackets: %s", error.message);
    memset(text + FORELOOP_JSON_MAX_DEPTH, ']', FORELOOP_JSON_MAX_DEPTH);
    CHECK(skip_all(text, 2 * FORELOOP_JSON_MAX_DEPTH, &error) == FORELOOP_OK, "the greatest depth is read");
    free(text);
}

static void test_walk(void) {
    static const char text[] = " {\"na\\u006de\" : \"a\\u0000b\", \"plain\":\"xy\", \"list\":[1,-2.5,3e2], \"on\":true,"
                               "\"off\":false, \"none\":null, \"more\":{\"x\":[[],{}]}, \"size\":7}";
    failing_allocator memory = {.fail_at = SIZE_MAX};
    foreloop_allocator allocator = failing_allocator_use(&memory);
    foreloop_error error = {0};
    foreloop_json json, inner;
    foreloop_text key, value;
    double number;
    float narrow;
    int64_t integer;
    size_t size;
    bool more, flag;

    foreloop_json_open(&json, &allocator, text, sizeof text - 1, "doc", &error);
    CHECK(foreloop_json_peek(&json) == FORELOOP_JSON_OBJECT && foreloop_json_object(&json) == FORELOOP_OK, "object");
    CHECK(foreloop_json_key(&json, &key) == FORELOOP_OK && foreloop_text_is(key, "name"), "key with an escape");
    CHECK(foreloop_json_string(&json, &value) == FORELOOP_OK && value.length == 3 && !memcmp(value.text, "a\0b", 3),
          "string with a zero byte");
    CHECK(foreloop_text_is(key, "name"), "the key outlives its value");
    CHECK(foreloop_json_key(&json, &key) == FORELOOP_OK && foreloop_text_is(key, "plain"), "key");
    CHECK(foreloop_json_string(&json, &value) == FORELOOP_OK && value.text > text && value.text < text + sizeof text,
          "a string without escapes stays in place");
    CHECK(foreloop_json_key(&json, &key) == FORELOOP_OK && foreloop_json_array(&json) == FORELOOP_OK, "array");
    CHECK(foreloop_json_element(&json, &more) == FORELOOP_OK && more && foreloop_json_int64(&json, &integer) == 0 &&
              integer == 1,
          "int64");
    CHECK(foreloop_json_element(&json, &more) == FORELOOP_OK && more && foreloop_json_float(&json, &narrow) == 0 &&
              narrow == -2.5F,
          "float");
    CHECK(foreloop_json_element(&json, &more) == FORELOOP_OK && more && foreloop_json_double(&json, &number) == 0 &&
              number == 300.0,
          "double");
    CHECK(foreloop_json_element(&json, &more) == FORELOOP_OK && !more, "end of the array");
    CHECK(foreloop_json_key(&json, &key) == 0 && foreloop_json_bool(&json, &flag) == 0 && flag, "true");
    CHECK(foreloop_json_key(&json, &key) == 0 && foreloop_json_bool(&json, &flag) == 0 && !flag, "false");
    CHECK(foreloop_json_key(&json, &key) == 0 && foreloop_json_peek(&json) == FORELOOP_JSON_NULL &&
              foreloop_json_null(&json) == 0,
          "null");
    CHECK(foreloop_json_key(&json, &key) == 0 && foreloop_json_span(&json, &value) == 0 &&
              foreloop_text_is(value, "{\"x\":[[],{}]}") && foreloop_text_is(key, "more"),
          "span");
    CHECK(foreloop_json_key(&json, &key) == 0 && foreloop_json_size(&json, 7, &size) == 0 && size == 7, "size");
    CHECK(foreloop_json_key(&json, &key) == 0 && key.text == NULL, "end of the object");
    CHECK(foreloop_json_peek(&json) == FORELOOP_JSON_NONE && foreloop_json_end(&json) == 0, "end of the text");

    foreloop_json_open(&inner, &allocator, value.text, value.length, "doc", &error);
    inner.base = (size_t)(value.text - text);
    CHECK(foreloop_json_array(&inner) == FORELOOP_ERROR_FORMAT && error.position == inner.base &&
              strstr(error.message, "expected an array, found an object"),
          "a reader on a span reports places in the whole: %s", error.message);
    foreloop_json_close(&inner);
    foreloop_json_close(&json);
    CHECK(memory.live == 0, "nothing leaks");
}

/* Wrong types and ranges leave the output alone and give the value's place. */
static void test_wrong_values(void) {
    foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    static const struct {
        const char *text;
        foreloop_status status; /* of reading it as size up to 100 */
    } cases[] = {{" 101", FORELOOP_ERROR_VALUE},   {" -1", FORELOOP_ERROR_VALUE},   {" 1.5", FORELOOP_ERROR_VALUE},
                 {" 1e30", FORELOOP_ERROR_VALUE},  {" NaN", FORELOOP_ERROR_VALUE},  {" \"1\"", FORELOOP_ERROR_FORMAT},
                 {" true", FORELOOP_ERROR_FORMAT}, {" [1]", FORELOOP_ERROR_FORMAT}, {" ", FORELOOP_ERROR_FORMAT},
                 {" 01", FORELOOP_ERROR_FORMAT}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        foreloop_error error = {0};
        foreloop_json json;
        size_t size = 42;
        foreloop_json_open(&json, &allocator, cases[i].text, strlen(cases[i].text), NULL, &error);
        CHECK(foreloop_json_size(&json, 100, &size) == cases[i].status && error.code == cases[i].status && size == 42 &&
                  error.position == 1 && strncmp(error.message, "byte 1: ", 8) == 0,
              "as a size: %s", error.message);
        foreloop_json_close(&json);
    }
}

/* LC_NUMERIC with a decimal comma must not matter. */
static void test_locale(void) {
    static const char *const names[] = {"de_DE",       "de_DE.UTF-8", "de_DE.utf8",
                                        "fr_FR.UTF-8", "nl_NL.UTF-8", "it_IT.UTF-8"};
    static const char text[] = "[0.5,1.25]";
    foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    foreloop_json json;
    char formatted[FORELOOP_NUMBER_TEXT_SIZE];
    double a = 0, b = 0;
    bool more;
    size_t i = 0;

    while (i < sizeof names / sizeof names[0] && !setlocale(LC_NUMERIC, names[i]))
        i++;
    if (i == sizeof names / sizeof names[0]) {
        tap_skip("no locale with a decimal comma is installed");
        return;
    }
    foreloop_json_open(&json, &allocator, text, sizeof text - 1, "doc", NULL);
    CHECK(!foreloop_json_array(&json) && !foreloop_json_element(&json, &more) && !foreloop_json_double(&json, &a) &&
              !foreloop_json_element(&json, &more) && !foreloop_json_double(&json, &b) && a == 0.5 && b == 1.25,
          "numbers under %s", names[i]);
    foreloop_json_close(&json);
    foreloop_format_double(a, formatted);
    CHECK(strcmp(formatted, "0.5") == 0, "formats %s", formatted);
    setlocale(LC_NUMERIC, "C");
}

/* ---- Against cJSON ----------------------------------------------------------------------------------------------- */

typedef struct document {
    char text[1 << 16];
    size_t size;
} document;

static void put(document *to, const char *text) {
    size_t length = strlen(text);
    if (to->size + length < sizeof to->text) {
        memcpy(to->text + to->size, text, length);
        to->size += length;
    }
}

static void put_space(document *to, random_source *random) {
    static const char *const spaces[] = {"", "", "", " ", "\n", "\t ", "\r\n"};
    put(to, spaces[random_below(random, 7)]);
}

static void put_string(document *to, random_source *random) {
    static const char *const pieces[] = {"a",
                                         "Z9",
                                         " ",
                                         "\\n",
                                         "\\\"",
                                         "\\\\",
                                         "\\/",
                                         "\\u0041",
                                         "\\u00e9",
                                         "\\u20AC",
                                         "\\ud83d\\ude00",
                                         "\xc3\xa9",
                                         "\xe2\x82\xac",
                                         "\xf0\x9f\x98\x80",
                                         "{",
                                         "]",
                                         ",",
                                         ":"};
    put(to, "\"");
    for (uint32_t n = random_below(random, 8); n > 0; n--)
        put(to, pieces[random_below(random, sizeof pieces / sizeof pieces[0])]);
    put(to, "\"");
}

static void put_value(document *to, random_source *random, int depth) {
    static const char *const atoms[] = {"true",
                                        "false",
                                        "null",
                                        "0",
                                        "-0",
                                        "1",
                                        "-17",
                                        "0.1",
                                        "1e3",
                                        "-2.5E-7",
                                        "1e400",
                                        "123456789012345678",
                                        "0.30000000000000004",
                                        "5e-324",
                                        "4.35",
                                        "1.7976931348623157e308"};
    uint32_t kind = random_below(random, depth > 0 ? 10 : 4);

    put_space(to, random);
    if (kind < 3) {
        put(to, atoms[random_below(random, sizeof atoms / sizeof atoms[0])]);
    } else if (kind < 4) {
        put_string(to, random);
    } else {
        uint32_t count = random_below(random, 5);
        put(to, kind < 7 ? "[" : "{");
        for (uint32_t i = 0; i < count; i++) {
            put(to, i > 0 ? "," : "");
            if (kind >= 7) {
                put_space(to, random);
                put_string(to, random);
                put_space(to, random);
                put(to, ":");
            }
            put_value(to, random, depth - 1);
        }
        put_space(to, random);
        put(to, kind < 7 ? "]" : "}");
    }
    put_space(to, random);
}

static bool same_text(foreloop_text text, const char *expected) {
    return foreloop_text_is(text, expected);
}

/* Walks one value of our reader along cJSON's tree. */
static bool same_value(foreloop_json *json, const cJSON *expected) {
    foreloop_text text;
    double number;
    bool flag, more;
    const cJSON *child = expected->child;

    switch (foreloop_json_peek(json)) {
    case FORELOOP_JSON_OBJECT:
        if (!cJSON_IsObject(expected) || foreloop_json_object(json))
            return false;
        for (;; child = child->next) {
            if (foreloop_json_key(json, &text))
                return false;
            if (!text.text || !child)
                return !text.text && !child;
            if (!same_text(text, child->string) || !same_value(json, child))
                return false;
        }
    case FORELOOP_JSON_ARRAY:
        if (!cJSON_IsArray(expected) || foreloop_json_array(json))
            return false;
        for (;; child = child->next) {
            if (foreloop_json_element(json, &more))
                return false;
            if (!more || !child)
                return !more && !child;
            if (!same_value(json, child))
                return false;
        }
    case FORELOOP_JSON_STRING:
        return cJSON_IsString(expected) && !foreloop_json_string(json, &text) && same_text(text, expected->valuestring);
    case FORELOOP_JSON_NUMBER:
        return cJSON_IsNumber(expected) && !foreloop_json_double(json, &number) && number == expected->valuedouble &&
               signbit(number) == signbit(expected->valuedouble);
    case FORELOOP_JSON_BOOL:
        return cJSON_IsBool(expected) && !foreloop_json_bool(json, &flag) && flag == (cJSON_IsTrue(expected) != 0);
    case FORELOOP_JSON_NULL:
        return cJSON_IsNull(expected) && !foreloop_json_null(json);
    default:
        return false;
    }
}

static void test_oracle(void) {
    enum { DOCUMENTS = 3000 };
    static document made;
    random_source random = {20240917};
    foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    int walked = 0, skipped = 0;
    size_t bytes = 0;

    for (int i = 0; i < DOCUMENTS; i++) {
        foreloop_json json;
        foreloop_error error = {0};
        char *copy;
        cJSON *expected;

        made.size = 0;
        put_value(&made, &random, 7);
        made.text[made.size] = '\0';
        bytes += made.size;
        expected = cJSON_Parse(made.text);
        copy = exact_copy(made.text, made.size);
        foreloop_json_open(&json, &allocator, copy, made.size, "doc", &error);
        if (expected && same_value(&json, expected) && foreloop_json_end(&json) == FORELOOP_OK)
            walked++;
        else
            printf("# differs: %s (%s)\n", made.text, error.message);
        foreloop_json_close(&json);
        skipped += skip_all(made.text, made.size, &error) == FORELOOP_OK;
        cJSON_Delete(expected);
        free(copy);
    }
    CHECK(bytes > 100000 && walked == DOCUMENTS && skipped == DOCUMENTS,
          "%d of %d random documents equal cJSON's, %d skipped (%zu bytes)", walked, DOCUMENTS, skipped, bytes);
}

static const char SAMPLE[] = "{\"k\\n\": [1.5e-3, \"\xc3\xa9\\u00e9\", {\"a\": [true, null]}], \"b\":-0}";

static void test_truncations(void) {
    int refused = 0;
    for (size_t size = 0; size < sizeof SAMPLE - 1; size++)
        refused += skip_all(SAMPLE, size, NULL) == FORELOOP_ERROR_FORMAT;
    CHECK(refused == sizeof SAMPLE - 1, "every truncation is refused");
}

/* What we accept after any change of one byte, cJSON accepts too (the reverse does not hold: it is laxer). */
static void test_changed_bytes(void) {
    char text[sizeof SAMPLE];
    int accepted = 0, agreed = 0;

    for (size_t i = 0; i < sizeof SAMPLE - 1; i++) {
        for (int byte = 0; byte < 256; byte++) {
            cJSON *expected;
            memcpy(text, SAMPLE, sizeof SAMPLE);
            text[i] = (char)byte;
            if (skip_all(text, sizeof SAMPLE - 1, NULL) != FORELOOP_OK)
                continue;
            accepted++;
            expected = cJSON_ParseWithLengthOpts(text, sizeof SAMPLE, NULL, 1);
            agreed += expected != NULL;
            if (!expected)
                printf("# cJSON refuses %s\n", text);
            cJSON_Delete(expected);
        }
    }
    CHECK(accepted > 500 && accepted == agreed, "%d changed documents accepted, by cJSON too", accepted);
}

static void test_allocation_failures(void) {
    static const char text[] = "{\"a\\n\":\"b\\t\"}";
    size_t n = 0;

    for (;; n++) {
        failing_allocator memory = {.fail_at = n};
        foreloop_allocator allocator = failing_allocator_use(&memory);
        foreloop_error error = {0};
        foreloop_json json;
        foreloop_text key, value;
        foreloop_status status;

        foreloop_json_open(&json, &allocator, text, sizeof text - 1, "doc", &error);
        status = foreloop_json_object(&json);
        if (status == FORELOOP_OK)
            status = foreloop_json_key(&json, &key);
        if (status == FORELOOP_OK)
            status = foreloop_json_string(&json, &value);
        foreloop_json_close(&json);
        CHECK(memory.live == 0 && status == (memory.failed ? FORELOOP_ERROR_MEMORY : FORELOOP_OK) &&
                  error.code == status,
              "allocation %zu fails", n);
        if (!memory.failed)
            break;
    }
    CHECK(n == 2, "one allocation for a key with escapes, one for a string");
}

int main(void) {
    test_accepts();
    test_refuses();
    test_depth();
    test_walk();
    test_wrong_values();
    test_locale();
    test_oracle();
    test_truncations();
    test_changed_bytes();
    test_allocation_failures();
    return tap_done();
}
