/* UBJSON through the pull reader: every type and width, counted and typed containers, and what must be refused. */
#include "common/json.h"
#include "failing_allocator.h"
#include "tap.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Opens a document given as a literal, which may hold zero bytes. */
#define OPEN(json, error, literal) open_bytes(json, error, literal, sizeof(literal) - 1)

static foreloop_allocator plain;

static void open_bytes(foreloop_json *json, foreloop_error *error, const char *bytes, size_t size) {
    memset(error, 0, sizeof *error);
    foreloop_json_open_ubjson(json, &plain, bytes, size, "doc", error);
}

#define CHECK_INTEGER(literal, expected)                                                                               \
    do {                                                                                                               \
        foreloop_json json_;                                                                                           \
        foreloop_error error_;                                                                                         \
        int64_t value_ = 0;                                                                                            \
        OPEN(&json_, &error_, literal);                                                                                \
        foreloop_status status_ = foreloop_json_int64(&json_, &value_);                                                \
        CHECK(status_ == FORELOOP_OK && value_ == (expected) && foreloop_json_end(&json_) == FORELOOP_OK,              \
              "integer %lld: %s", (long long)(expected), error_.message);                                              \
        foreloop_json_close(&json_);                                                                                   \
    } while (0)

static void test_integers(void) {
    CHECK_INTEGER("i\x80", -128);
    CHECK_INTEGER("U\xff", 255);
    CHECK_INTEGER("I\x80\x01", -32767);
    CHECK_INTEGER("l\x80\x00\x00\x02", -2147483646);
    CHECK_INTEGER("L\x80\x00\x00\x00\x00\x00\x00\x03", INT64_MIN + 3);
    CHECK_INTEGER("L\x00\x00\x00\x01\x00\x00\x00\x02", 4294967298);
    CHECK_INTEGER("NNi\x05N", 5);
    CHECK_INTEGER("d\x40\x40\x00\x00", 3);
    CHECK_INTEGER("D\xc0\x08\x00\x00\x00\x00\x00\x00", -3);
    CHECK_INTEGER("Hi\x02"
                  "-7",
                  -7);
}

static void test_floats(void) {
    static const struct {
        const char *bytes;
        size_t size;
        float value;
    } cases[] = {
        {"d\x3f\x00\x00\x00", 5, 0.5f},
        {"d\xbe\x80\x00\x00", 5, -0.25f},
        {"D\x3f\xe0\x00\x00\x00\x00\x00\x00", 9, 0.5f},
        {"i\xfe", 2, -2.0f},
        {"Hi\x0c"
         "7.038531e-26",
         15, 7.038531e-26f},
        {"d\x7f\x80\x00\x00", 5, INFINITY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        foreloop_json json;
        foreloop_error error;
        float value = 0;
        double wide = 0;
        open_bytes(&json, &error, cases[i].bytes, cases[i].size);
        CHECK(foreloop_json_float(&json, &value) == FORELOOP_OK && value == cases[i].value, "float %zu", i);
        open_bytes(&json, &error, cases[i].bytes, cases[i].size);
        CHECK(foreloop_json_double(&json, &wide) == FORELOOP_OK &&
                  (wide == (double)cases[i].value || fabs(wide - (double)cases[i].value) < 1e-32),
              "double %zu", i);
    }
}

static void test_other_values(void) {
    foreloop_json json;
    foreloop_error error;
    foreloop_text text = {NULL, 0};
    bool flag = false, more = false;
    OPEN(&json, &error, "[TFZCaSU\x02xySi\x00]");
    CHECK(foreloop_json_array(&json) == FORELOOP_OK && foreloop_json_element(&json, &more) == FORELOOP_OK &&
              foreloop_json_bool(&json, &flag) == FORELOOP_OK && flag,
          "true");
    CHECK(foreloop_json_element(&json, &more) == FORELOOP_OK && foreloop_json_bool(&json, &flag) == FORELOOP_OK &&
              !flag,
          "false");
    CHECK(foreloop_json_element(&json, &more) == FORELOOP_OK && foreloop_json_null(&json) == FORELOOP_OK, "null");
    CHECK(foreloop_json_element(&json, &more) == FORELOOP_OK && foreloop_json_string(&json, &text) == FORELOOP_OK &&
              foreloop_text_is(text, "a"),
          "a character");
    CHECK(foreloop_json_element(&json, &more) == FORELOOP_OK && foreloop_json_string(&json, &text) == FORELOOP_OK &&
              foreloop_text_is(text, "xy"),
          "a string");
    CHECK(foreloop_json_element(&json, &more) == FORELOOP_OK && foreloop_json_string(&json, &text) == FORELOOP_OK &&
              foreloop_text_is(text, ""),
          "an empty string");
    CHECK(foreloop_json_element(&json, &more) == FORELOOP_OK && !more && foreloop_json_end(&json) == FORELOOP_OK,
          "the end of the array");
    foreloop_json_close(&json);
}

/* Reads {"a": [numbers], "b": 7} with the list functions, whatever the array's form. */
static void check_list(const char *bytes, size_t size, const int64_t *expected, size_t count, const char *what) {
    for (int skipping = 0; skipping < 2; skipping++) {
        foreloop_json json;
        foreloop_error error;
        foreloop_integers list = {NULL, 0, 0};
        foreloop_floats floats = {NULL, 0, 0};
        foreloop_text key = {NULL, 0};
        int64_t behind = 0;
        open_bytes(&json, &error, bytes, size);
        foreloop_status status = foreloop_json_object(&json);
        if (status == FORELOOP_OK)
            status = foreloop_json_key(&json, &key);
        if (status == FORELOOP_OK && skipping)
            status = foreloop_json_skip(&json);
        else if (status == FORELOOP_OK)
            status = foreloop_json_integers(&json, -1000, 1000, &list);
        bool same = skipping || (list.count == count &&
                                 (count == 0 || memcmp(list.items, expected, count * sizeof *expected) == 0));
        if (status == FORELOOP_OK)
            status = foreloop_json_key(&json, &key);
        if (status == FORELOOP_OK)
            status = foreloop_json_int64(&json, &behind);
        if (status == FORELOOP_OK)
            status = foreloop_json_key(&json, &key);
        CHECK(status == FORELOOP_OK && same && behind == 7 && !key.text && foreloop_json_end(&json) == FORELOOP_OK,
              "%s%s: %s", what, skipping ? ", skipped" : "", error.message);
        foreloop_json_close(&json);
        open_bytes(&json, &error, bytes, size);
        same = foreloop_json_object(&json) == FORELOOP_OK && foreloop_json_key(&json, &key) == FORELOOP_OK &&
               foreloop_json_floats(&json, &floats) == FORELOOP_OK && floats.count == count;
        for (size_t i = 0; same && i < count; i++)
            same = floats.items[i] == (float)expected[i];
        CHECK(same, "%s, as float32: %s", what, error.message);
        foreloop_json_close(&json);
        foreloop_release(&plain, list.items);
        foreloop_release(&plain, floats.items);
    }
}

#define CHECK_LIST(array, what, ...)                                                                                   \
    do {                                                                                                               \
        static const int64_t expected_[] = {__VA_ARGS__};                                                              \
        check_list("{U\x01"                                                                                            \
                   "a" array "i\x01"                                                                                   \
                   "bi\x07}",                                                                                          \
                   sizeof("{U\x01"                                                                                     \
                          "a" array "i\x01"                                                                            \
                          "bi\x07}") -                                                                                 \
                       1,                                                                                              \
                   expected_, sizeof expected_ / sizeof expected_[0], what);                                           \
    } while (0)

static void test_lists(void) {
    CHECK_LIST("[i\x02I\x01\x00U\xc8]", "an array", 2, 256, 200);
    CHECK_LIST("[#i\x02i\x02i\xff", "a counted array", 2, -1);
    CHECK_LIST("[$i#L\x00\x00\x00\x00\x00\x00\x00\x02\x02\xff", "int8, int64 count", 2, -1);
    CHECK_LIST("[$U#U\x02\x02\xff", "uint8", 2, 255);
    CHECK_LIST("[$I#i\x01\xff\xfe", "int16", -2);
    CHECK_LIST("[$l#i\x02\x00\x00\x00\x01\xff\xff\xff\xff", "int32", 1, -1);
    CHECK_LIST("[$L#i\x01\xff\xff\xff\xff\xff\xff\xff\xff", "int64", -1);
    CHECK_LIST("[$d#i\x02\x3f\x80\x00\x00\xc0\x00\x00\x00", "float32", 1, -2);
    CHECK_LIST("[$D#i\x01\x3f\xf0\x00\x00\x00\x00\x00\x00", "float64", 1);
    CHECK_LIST("[Ni\x02Ni\x03N]", "no-ops", 2, 3);
    CHECK_LIST("[$H#i\x01i\x01"
               "5",
               "high-precision numbers", 5);

    static const char *const empty[] = {"{U\1a[]i\1bi\7}", "{U\1a[#i\0i\1bi\7}", "{U\1a[$l#L\0\0\0\0\0\0\0\0i\1bi\7}"};
    static const size_t sizes[] = {12, 14, 23};
    for (size_t i = 0; i < 3; i++)
        check_list(empty[i], sizes[i], NULL, 0, "an empty array, then the next key");
}

static void test_bounds(void) {
    foreloop_json json;
    foreloop_error error;
    foreloop_integers list = {NULL, 0, 0};
    OPEN(&json, &error, "[$i#i\x03\x01\x05\x02");
    CHECK(foreloop_json_integers(&json, 0, 4, &list) == FORELOOP_ERROR_VALUE && error.position == 7 &&
              strstr(error.message, "from 0 to 4, found 5"),
          "a value of a typed array out of bounds: %s", error.message);
    foreloop_json_close(&json);
    OPEN(&json, &error, "[TFi\x01]");
    CHECK(foreloop_json_integers(&json, 0, 1, &list) == FORELOOP_OK && list.count == 3 && list.items[0] == 1 &&
              list.items[1] == 0 && list.items[2] == 1,
          "true and false among integers");
    foreloop_json_close(&json);
    foreloop_release(&plain, list.items);
}

/* Typed containers of containers: the values stand without their markers. */
static void test_nested_types(void) {
    static const char bytes[] = "{U\1a[$[#i\2i\1i\2]$U#i\1\3U\1b{$i#i\1U\1c\4}";
    foreloop_json json;
    foreloop_error error;
    foreloop_text key;
    bool more;
    int64_t a = 0, b = 0, c = 0;
    open_bytes(&json, &error, bytes, sizeof bytes - 1);
    foreloop_status status = foreloop_json_object(&json);
    status |= foreloop_json_key(&json, &key) | foreloop_json_array(&json) | foreloop_json_element(&json, &more);
    status |= foreloop_json_array(&json) | foreloop_json_element(&json, &more) | foreloop_json_int64(&json, &a);
    status |= foreloop_json_element(&json, &more) | foreloop_json_int64(&json, &b);
    status |= foreloop_json_element(&json, &more) | foreloop_json_element(&json, &more);
    status |= foreloop_json_skip(&json) | foreloop_json_element(&json, &more);
    CHECK(status == FORELOOP_OK && a == 1 && b == 2 && !more, "arrays in a typed array: %s", error.message);
    status = foreloop_json_key(&json, &key) | foreloop_json_object(&json) | foreloop_json_key(&json, &key);
    status |= foreloop_json_int64(&json, &c) | foreloop_json_key(&json, &key);
    CHECK(status == FORELOOP_OK && c == 4 && !key.text, "a typed object: %s", error.message);
    status = foreloop_json_key(&json, &key) | foreloop_json_end(&json);
    CHECK(status == FORELOOP_OK && !key.text, "the end");
    foreloop_json_close(&json);
}

static foreloop_status skip_bytes(const char *bytes, size_t size, foreloop_error *error) {
    /* Memory of just that size, so that reading past it is seen. */
    char *copy = malloc(size > 0 ? size : 1);
    foreloop_json json;
    if (!copy)
        exit(1);
    memcpy(copy, bytes, size);
    open_bytes(&json, error, copy, size);
    foreloop_status status = foreloop_json_skip(&json);
    if (status == FORELOOP_OK)
        status = foreloop_json_end(&json);
    foreloop_json_close(&json);
    free(copy);
    return status;
}

#define CHECK_REFUSED(literal, status, word)                                                                           \
    do {                                                                                                               \
        foreloop_error error_;                                                                                         \
        foreloop_status result_ = skip_bytes(literal, sizeof(literal) - 1, &error_);                                   \
        CHECK(result_ == (status) && error_.code == (status) && strstr(error_.message, word), "refused: %s",           \
              error_.message);                                                                                         \
    } while (0)

static void test_refused(void) {
    CHECK_REFUSED("", FORELOOP_ERROR_FORMAT, "end");
    CHECK_REFUSED("x", FORELOOP_ERROR_FORMAT, "no type");
    CHECK_REFUSED("[$i", FORELOOP_ERROR_FORMAT, "end");
    CHECK_REFUSED("[$ii\x01\x01", FORELOOP_ERROR_FORMAT, "without a count");
    CHECK_REFUSED("[$T#i\x05", FORELOOP_ERROR_FORMAT, "not supported");
    CHECK_REFUSED("[$Z#L\x7f\xff\xff\xff\xff\xff\xff\xff", FORELOOP_ERROR_FORMAT, "not supported");
    CHECK_REFUSED("[$?#i\x01?", FORELOOP_ERROR_FORMAT, "not supported");
    CHECK_REFUSED("[#L\x7f\xff\xff\xff\xff\xff\xff\xff", FORELOOP_ERROR_FORMAT, "length");
    CHECK_REFUSED("[#i\xff", FORELOOP_ERROR_FORMAT, "length of -1");
    CHECK_REFUSED("[#d\x3f\x80\x00\x00i\x01", FORELOOP_ERROR_FORMAT, "type of a length");
    CHECK_REFUSED("[$l#i\x04\x00\x00\x00\x01", FORELOOP_ERROR_FORMAT, "4 values, but 4 bytes");
    CHECK_REFUSED("SL\xff\xff\xff\xff\xff\xff\xff\xff", FORELOOP_ERROR_FORMAT, "length of -1");
    CHECK_REFUSED("Si\x05"
                  "abc",
                  FORELOOP_ERROR_FORMAT, "end");
    CHECK_REFUSED("Si\x02\xc3(", FORELOOP_ERROR_FORMAT, "UTF-8");
    CHECK_REFUSED("C\xc3", FORELOOP_ERROR_FORMAT, "UTF-8");
    CHECK_REFUSED("{i\x01"
                  "ai\x01]",
                  FORELOOP_ERROR_FORMAT, "type of a length");
    CHECK_REFUSED("[i\x01}", FORELOOP_ERROR_FORMAT, "no type");
    CHECK_REFUSED("i\x01i\x01", FORELOOP_ERROR_FORMAT, "expected the end");
    CHECK_REFUSED("I\x01", FORELOOP_ERROR_FORMAT, "end");

    foreloop_error error;
    foreloop_json json;
    int64_t value = 5;
    OPEN(&json, &error, "d\x3f\x00\x00\x00");
    CHECK(foreloop_json_int64(&json, &value) == FORELOOP_ERROR_VALUE && value == 5, "0.5 is no integer: %s",
          error.message);
    OPEN(&json, &error, "d\x7f\xc0\x00\x00");
    CHECK(foreloop_json_int64(&json, &value) == FORELOOP_ERROR_VALUE && value == 5, "NaN is no integer");
    OPEN(&json, &error, "Si\x01x");
    CHECK(foreloop_json_int64(&json, &value) == FORELOOP_ERROR_FORMAT && strstr(error.message, "found a string"),
          "a string is no integer: %s", error.message);
}

static void test_depth(void) {
    static char deep[100000], counted[300 * 3];
    foreloop_error error;
    memset(deep, '[', sizeof deep);
    CHECK(skip_bytes(deep, sizeof deep, &error) == FORELOOP_ERROR_LIMIT, "100,000 brackets: %s", error.message);
    for (size_t i = 0; i < sizeof deep; i += 5)
        memcpy(deep + i, "{i\001a{", 5);
    CHECK(skip_bytes(deep, sizeof deep, &error) != FORELOOP_OK, "as many braces: %s", error.message);
    for (size_t i = 0; i < sizeof counted; i += 3)
        memcpy(counted + i, "[#i", 3);
    CHECK(skip_bytes(counted, sizeof counted, &error) != FORELOOP_OK, "counted arrays: %s", error.message);
    memset(deep, '[', 256);
    memset(deep + 256, ']', 256);
    CHECK(skip_bytes(deep, 512, &error) == FORELOOP_OK, "256 levels are allowed: %s", error.message);
}

static const char SAMPLE[] =
    "{U\1a[i\1I\1\2l\1\2\3\4L\0\0\0\0\0\0\0\5d\1\2\3\4D\1\2\3\4\5\6\7\x08TFZNCxHi\0011Si\2\xc3\xa9]"
    "i\1b[$d#L\0\0\0\0\0\0\0\2\1\2\3\4\5\6\7\x08I\0\1c{#i\1U\1xZl\0\0\0\1d[$S#i\2i\1xU\1y"
    "L\0\0\0\0\0\0\0\1e[#U\2i\1[]}";

static void test_damage(void) {
    size_t accepted = 0, silent = 0, changed = 0;
    char copy[sizeof SAMPLE];
    foreloop_error error;
    CHECK(skip_bytes(SAMPLE, sizeof SAMPLE - 1, &error) == FORELOOP_OK, "the sample: %s", error.message);
    for (size_t size = 0; size < sizeof SAMPLE - 1; size++) {
        foreloop_status status = skip_bytes(SAMPLE, size, &error);
        accepted += status == FORELOOP_OK;
        silent += status != FORELOOP_OK && (error.code != status || !error.message[0]);
    }
    CHECK(accepted == 0, "truncations are an error");
    for (size_t i = 0; i < sizeof SAMPLE - 1; i++)
        for (int byte = 0; byte < 256; byte++) {
            memcpy(copy, SAMPLE, sizeof SAMPLE);
            copy[i] = (char)byte;
            foreloop_status status = skip_bytes(copy, sizeof SAMPLE - 1, &error);
            changed += status == FORELOOP_OK;
            silent += status != FORELOOP_OK && (error.code != status || !error.message[0]);
        }
    CHECK(silent == 0, "every error has a message");
    CHECK(changed > 256, "%zu changed documents are accepted", changed);
}

static void test_allocation_failures(void) {
    for (size_t n = 0; n < 3; n++) {
        failing_allocator memory = {.fail_at = n};
        foreloop_allocator allocator = failing_allocator_use(&memory);
        foreloop_error error = {0};
        foreloop_json json;
        foreloop_integers list = {NULL, 0, 0};
        static const char bytes[] = "[$i#i\1\1";
        foreloop_json_open_ubjson(&json, &allocator, bytes, sizeof bytes - 1, "doc", &error);
        foreloop_status status = foreloop_json_integers(&json, 0, 9, &list);
        foreloop_release(&allocator, list.items);
        foreloop_json_close(&json);
        CHECK(memory.live == 0 && status == (memory.failed ? FORELOOP_ERROR_MEMORY : FORELOOP_OK),
              "allocation %zu of a list", n);
    }
}

static void test_detection(void) {
    CHECK(foreloop_json_is_ubjson("{L", 2) && foreloop_json_is_ubjson("{i", 2) && foreloop_json_is_ubjson("{#", 2),
          "UBJSON by its second byte");
    CHECK(!foreloop_json_is_ubjson("{\"", 2) && !foreloop_json_is_ubjson("{}", 2) &&
              !foreloop_json_is_ubjson("{ ", 2) && !foreloop_json_is_ubjson("[L", 2) &&
              !foreloop_json_is_ubjson("{", 1) && !foreloop_json_is_ubjson(NULL, 0),
          "JSON is not");
}

int main(void) {
    plain = foreloop_allocator_or_default(NULL);
    test_integers();
    test_floats();
    test_other_values();
    test_lists();
    test_bounds();
    test_nested_types();
    test_refused();
    test_depth();
    test_damage();
    test_allocation_failures();
    test_detection();
    return tap_done();
}
