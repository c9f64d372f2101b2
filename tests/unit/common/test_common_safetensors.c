/* The safetensors container: what is accepted and refused, conversion, writing, damage, failing allocations.
 * Argument: the folder of the golden files. */
#include "common/alloc.h"
#include "common/bytes.h"
#include "common/error.h"
#include "common/file.h"
#include "common/safetensors.h"
#include "failing_allocator.h"
#include "tap.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct image {
    unsigned char *bytes; /* a block of exactly this size */
    size_t size;
} image;

/* A file of this header and this data. */
static image make_image(const char *header, const void *data, size_t data_size) {
    size_t length = strlen(header);
    image made = {malloc(8 + length + data_size), 8 + length + data_size};

    foreloop_store_le64(made.bytes, length);
    memcpy(made.bytes + 8, header, length);
    if (data_size > 0)
        memcpy(made.bytes + 8 + length, data, data_size);
    return made;
}

/* Opens and closes; -1 when something leaks or more memory is asked for than a small file can need. */
static foreloop_status try_open(const unsigned char *bytes, size_t size, foreloop_error *error) {
    failing_allocator memory = {.fail_at = SIZE_MAX};
    foreloop_allocator allocator = failing_allocator_use(&memory);
    foreloop_safetensors file;
    unsigned char *copy = malloc(size > 0 ? size : 1);
    foreloop_status status;

    if (size > 0)
        memcpy(copy, bytes, size);
    status = foreloop_safetensors_open(&file, copy, size, "x.safetensors", &allocator, error);
    if (status == FORELOOP_OK)
        foreloop_safetensors_close(&file);
    free(copy);
    return memory.live == 0 && memory.largest < 100000 ? status : (foreloop_status)-1;
}

static void test_headers(void) {
    static const struct {
        const char *header;
        size_t data_size;
        foreloop_status status;
        const char *message;
    } cases[] = {
        {"{}", 0, FORELOOP_OK, ""},
        {"{}   \n", 0, FORELOOP_OK, ""},
        {"{\"__metadata__\":{\"a\":\"b\"}}", 0, FORELOOP_OK, ""},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, FORELOOP_OK, ""},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, FORELOOP_OK, ""},
        {"{\"a\":{\"x\":[{}],\"data_offsets\":[0,4],\"shape\":[2],\"dtype\":\"F16\"}}", 4, FORELOOP_OK, ""},
        {"{\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]},"
         "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
         2, FORELOOP_OK, ""},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[0,7],\"data_offsets\":[0,0]},"
         "\"c\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[1,1]}}",
         1, FORELOOP_OK, ""},
        {"{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[3],\"data_offsets\":[0,3]}}", 3, FORELOOP_OK, ""},
        {"{\"a\":{\"dtype\":\"F4\",\"shape\":[6],\"data_offsets\":[0,3]}}", 3, FORELOOP_OK, ""},
        {"{\"a\":{\"dtype\":\"F4\",\"shape\":[5],\"data_offsets\":[0,3]}}", 3, FORELOOP_ERROR_FORMAT, "elements"},
        {"{\"a\":{\"dtype\":\"Q7\",\"shape\":[3],\"data_offsets\":[0,3]}}", 3, FORELOOP_ERROR_FORMAT, "\"Q7\""},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, FORELOOP_ERROR_FORMAT, "elements"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 3, FORELOOP_ERROR_FORMAT, "cut short"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 5, FORELOOP_ERROR_FORMAT, "behind"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[1,5]}}", 5, FORELOOP_ERROR_FORMAT, "before"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4, FORELOOP_ERROR_FORMAT, "ends before"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,18446744073709551615]}}", 4, FORELOOP_ERROR_VALUE,
         "whole number"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, FORELOOP_ERROR_VALUE, "whole number"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967297],\"data_offsets\":[0,4]}}", 4,
         FORELOOP_ERROR_FORMAT, "overflows"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387905],\"data_offsets\":[0,4]}}", 4, FORELOOP_ERROR_FORMAT,
         "overflows"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}", 1, FORELOOP_OK, ""},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}", 1,
         FORELOOP_ERROR_UNSUPPORTED, "dimensions"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
         3, FORELOOP_ERROR_FORMAT, "overlaps"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[2,3]}}",
         3, FORELOOP_ERROR_FORMAT, "before"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[2,2]},"
         "\"c\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
         3, FORELOOP_ERROR_FORMAT, "overlaps"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
         "\"\\u0061\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
         2, FORELOOP_ERROR_FORMAT, "two tensors"},
        {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, FORELOOP_ERROR_FORMAT, "__metadata__"},
        {"{\"__metadata__\":{\"a\":1}}", 0, FORELOOP_ERROR_FORMAT, "string"},
        {"{\"a\\u0000\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, FORELOOP_ERROR_FORMAT,
         "zero byte"},
        {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, FORELOOP_ERROR_FORMAT,
         "two fields dtype"},
        {"{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, FORELOOP_ERROR_FORMAT, "no field shape"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", 1, FORELOOP_ERROR_FORMAT, "two numbers"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,1]}}", 1, FORELOOP_ERROR_FORMAT, "two numbers"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":1,\"data_offsets\":[0,1]}}", 1, FORELOOP_ERROR_FORMAT, "array"},
        {"[]", 0, FORELOOP_ERROR_FORMAT, "object"},
        {"{} {}", 0, FORELOOP_ERROR_FORMAT, "end of the text"},
        {"", 0, FORELOOP_ERROR_FORMAT, "object"},
    };
    static const unsigned char data[16] = {0};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        foreloop_error error = {0};
        image made = make_image(cases[i].header, data, cases[i].data_size);
        CHECK(try_open(made.bytes, made.size, &error) == cases[i].status && strstr(error.message, cases[i].message),
              "header %zu: %s", i, error.message);
        free(made.bytes);
    }
}

static void test_lengths(void) {
    static const unsigned char huge[] = {255, 255, 255, 255, 255, 255, 255, 255, '{', '}'};
    static const unsigned char beyond[] = {3, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
    failing_allocator memory = {.fail_at = SIZE_MAX};
    foreloop_allocator allocator = failing_allocator_use(&memory);
    foreloop_safetensors file;
    foreloop_error error = {0};

    CHECK(foreloop_safetensors_open(&file, huge, sizeof huge, "x", &allocator, &error) == FORELOOP_ERROR_FORMAT &&
              memory.calls == 0,
          "length FF x 8: %s", error.message);
    CHECK(foreloop_safetensors_open(&file, beyond, sizeof beyond, "x", &allocator, &error) == FORELOOP_ERROR_FORMAT &&
              memory.calls == 0,
          "length beyond the file: %s", error.message);
    CHECK(foreloop_safetensors_open(&file, NULL, 0, "x", &allocator, &error) == FORELOOP_ERROR_FORMAT, "nothing: %s",
          error.message);
}

/* U8[1], then F32[1] at offset 1. */
static void test_unaligned(void) {
    static const unsigned char data[] = {7, 0, 0, 0xC0, 0x3F};
    foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    image made = make_image("{\"u\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                            "\"f\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[1,5]}}",
                            data, sizeof data);
    foreloop_safetensors file;
    float value = 0;

    CHECK(foreloop_safetensors_open(&file, made.bytes, made.size, "x", &allocator, NULL) == FORELOOP_OK &&
              foreloop_tensor_to_float(foreloop_safetensors_find(&file, "f"), true, &value, NULL) == FORELOOP_OK &&
              value == 1.5F,
          "an unaligned tensor");
    foreloop_safetensors_close(&file);
    free(made.bytes);
}

static void test_reference(const char *folder) {
    static const struct {
        const char *name;
        foreloop_dtype dtype;
        size_t rank, shape[3];
    } cases[] = {{"layer.0.weight", FORELOOP_DTYPE_F32, 2, {2, 3, 0}},
                 {"half", FORELOOP_DTYPE_F16, 1, {5, 0, 0}},
                 {"double", FORELOOP_DTYPE_F64, 3, {2, 1, 2}},
                 {"scalar", FORELOOP_DTYPE_F32, 0, {0, 0, 0}},
                 {"empty", FORELOOP_DTYPE_F32, 2, {0, 3, 0}},
                 {"na\xc3\xafve \"quoted\"", FORELOOP_DTYPE_F32, 1, {1, 0, 0}},
                 {"ids", FORELOOP_DTYPE_I64, 1, {3, 0, 0}},
                 {"bytes", FORELOOP_DTYPE_U8, 1, {3, 0, 0}},
                 {"words", FORELOOP_DTYPE_OTHER, 1, {2, 0, 0}}};
    foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    foreloop_error error = {0};
    foreloop_file source = {0};
    foreloop_safetensors file;
    char *path = foreloop_path_join(&allocator, folder, "reference.safetensors");

    CHECK(foreloop_file_open(&source, path, &allocator, false, &error) == FORELOOP_OK &&
              foreloop_safetensors_open(&file, source.data, source.size, path, &allocator, &error) == FORELOOP_OK,
          "the reference package's file opens %s", error.message);
    CHECK(file.count == sizeof cases / sizeof cases[0], "it has %zu tensors", file.count);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const foreloop_tensor *tensor = foreloop_safetensors_find(&file, cases[i].name);
        float values[8] = {42};
        size_t right = 0;

        if (!CHECK(tensor && tensor->dtype == cases[i].dtype &&
                       foreloop_tensor_expect_shape(tensor, cases[i].rank, cases[i].shape, &error) == FORELOOP_OK,
                   "%s has its type and shape", cases[i].name))
            continue;
        if (tensor->dtype > FORELOOP_DTYPE_BF16) {
            CHECK(foreloop_tensor_to_float(tensor, true, values, &error) == FORELOOP_ERROR_UNSUPPORTED &&
                      values[0] == 42,
                  "%s", error.message);
            continue;
        }
        CHECK(foreloop_tensor_to_float(tensor, true, values, &error) == FORELOOP_OK, "%s converts", cases[i].name);
        for (size_t j = 0; j < tensor->count; j++)
            right += values[j] == (float)j / 4 - 1;
        CHECK(right == tensor->count, "%s has its values", cases[i].name);
    }
    CHECK(!foreloop_safetensors_find(&file, "") && !foreloop_safetensors_find(&file, "zz") &&
              !foreloop_safetensors_find(&file, "hal"),
          "absent names are not found");
    const foreloop_tensor *half = foreloop_safetensors_find(&file, "half"), *found = NULL;
    CHECK(foreloop_safetensors_find_part(&file, "", "half") == half &&
              foreloop_safetensors_find_part(&file, "ha", "lf") == half &&
              foreloop_safetensors_find_part(&file, "half", "") == half,
          "a name in two parts is found");
    CHECK(!foreloop_safetensors_find_part(&file, "ha", "l") && !foreloop_safetensors_find_part(&file, "ha", "lfs") &&
              !foreloop_safetensors_find_part(&file, "halfs", "") && !foreloop_safetensors_find_part(&file, "hb", "lf"),
          "others are not");
    CHECK(foreloop_safetensors_require(&file, "ha", "lf", "it", &found, &error) == FORELOOP_OK && found == half,
          "what is required is found");
    CHECK(foreloop_safetensors_require(&file, "layer.", "1.weight", "the third layer", &found, &error) ==
                  FORELOOP_ERROR_MISMATCH &&
              !found && strstr(error.message, "'layer.1.weight', which the third layer needs"),
          "%s", error.message);
    CHECK(foreloop_tensor_expect_shape(foreloop_safetensors_find(&file, "double"), 2, (size_t[]){2, 2}, &error) ==
                  FORELOOP_ERROR_MISMATCH &&
              strstr(error.message, "[2, 1, 2], expected [2, 2]"),
          "%s", error.message);
    foreloop_safetensors_close(&file);
    foreloop_file_close(&source);
    foreloop_release(&allocator, path);
}

static void test_conversion(void) {
    static const unsigned char bf16[] = {0x80, 0x3F, 0x82, 0xC0, 0x80, 0x7F};
    static const unsigned char f64[] = {0, 0, 0, 0, 0, 0, 0xF8, 0x3F, 0, 0, 0, 0, 0, 0, 0xF0, 0x7E};
    foreloop_tensor tensor = {"t", FORELOOP_DTYPE_BF16, 1, {3}, 3, bf16, sizeof bf16};
    foreloop_error error = {0};
    float values[3] = {42, 42, 42};

    CHECK(foreloop_tensor_to_float(&tensor, true, values, &error) == FORELOOP_ERROR_VALUE && values[0] == 42 &&
              strstr(error.message, "element 2"),
          "infinity where numbers must be finite: %s", error.message);
    CHECK(foreloop_tensor_to_float(&tensor, false, values, &error) == FORELOOP_OK && values[0] == 1.0F &&
              values[1] == -4.0625F && values[2] == INFINITY,
          "bfloat16");
    tensor = (foreloop_tensor){"t", FORELOOP_DTYPE_F64, 1, {2}, 2, f64, sizeof f64};
    CHECK(foreloop_tensor_to_float(&tensor, true, values, &error) == FORELOOP_ERROR_VALUE,
          "a double beyond float32: %s", error.message);
    CHECK(foreloop_tensor_to_float(&tensor, false, values, &error) == FORELOOP_OK && values[0] == 1.5F &&
              values[1] == INFINITY,
          "float64");
    for (int dtype = 0; dtype < FORELOOP_DTYPE_OTHER; dtype++)
        CHECK(foreloop_dtype_size((foreloop_dtype)dtype) > 0, "%s has %zu bytes",
              foreloop_dtype_name((foreloop_dtype)dtype), foreloop_dtype_size((foreloop_dtype)dtype));
}

static const unsigned char SMALL_DATA[] = {0, 0, 0x80, 0x3F, 1, 2, 3};
static const char SMALL_HEADER[] = "{\"__metadata__\":{\"k\":\"v\\n\"},"
                                   "\"b\":{\"dtype\":\"U8\",\"shape\":[3,1],\"data_offsets\":[4,7]},"
                                   "\"a\\t\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}} ";

static void test_damage(void) {
    image made = make_image(SMALL_HEADER, SMALL_DATA, sizeof SMALL_DATA);
    size_t refused = 0, unexpected = 0, n;

    for (size_t size = 0; size < made.size; size++)
        refused += try_open(made.bytes, size, NULL) == FORELOOP_ERROR_FORMAT;
    CHECK(refused == made.size, "every truncation is refused");
    for (size_t i = 0; i < made.size - sizeof SMALL_DATA; i++) {
        unsigned char original = made.bytes[i];
        for (unsigned byte = 0; byte < 256; byte++) {
            foreloop_status status;
            made.bytes[i] = (unsigned char)byte;
            status = try_open(made.bytes, made.size, NULL);
            unexpected += status != FORELOOP_OK && status != FORELOOP_ERROR_FORMAT && status != FORELOOP_ERROR_VALUE;
        }
        made.bytes[i] = original;
    }
    CHECK(unexpected == 0, "every change of one byte of the header is read or refused: %zu not", unexpected);

    for (n = 0;; n++) {
        failing_allocator memory = {.fail_at = n};
        foreloop_allocator allocator = failing_allocator_use(&memory);
        foreloop_error error = {0};
        foreloop_safetensors file = {.count = 42};
        foreloop_status status = foreloop_safetensors_open(&file, made.bytes, made.size, "x", &allocator, &error);
        CHECK(status == (memory.failed ? FORELOOP_ERROR_MEMORY : FORELOOP_OK) && error.code == status &&
                  (status == FORELOOP_OK || (memory.live == 0 && file.count == 42)),
              "allocation %zu fails: %s", n, error.message);
        if (status == FORELOOP_OK)
            foreloop_safetensors_close(&file);
        CHECK(memory.live == 0, "nothing leaks");
        if (!memory.failed)
            break;
    }
    CHECK(n >= 3, "%zu allocations could fail", n);
    free(made.bytes);
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

static void test_write(const char *path) {
    static const unsigned char data[200] = {1, 2, 3, 4, 5};
    const foreloop_tensor tensors[] = {
        {"odd \"name\"\\\n\xc3\xa9", FORELOOP_DTYPE_U8, 1, {65}, 65, data, 65},
        {"empty", FORELOOP_DTYPE_F32, 2, {0, 4}, 0, NULL, 0},
        {"aligned", FORELOOP_DTYPE_F32, 2, {4, 4}, 16, data + 1, 64},
        {"scalar", FORELOOP_DTYPE_F64, 0, {0}, 1, data, 8},
        {"last", FORELOOP_DTYPE_BF16, 3, {1, 3, 1}, 3, data, 6},
    };
    enum { COUNT = sizeof tensors / sizeof tensors[0] };
    size_t n;

    for (n = 0;; n++) {
        failing_allocator memory = {.fail_at = n};
        foreloop_allocator allocator = failing_allocator_use(&memory);
        foreloop_error error = {0};
        foreloop_status status = foreloop_safetensors_write(path, tensors, COUNT, &allocator, &error);

        CHECK(memory.live == 0 && status == (memory.failed ? FORELOOP_ERROR_MEMORY : FORELOOP_OK) &&
                  foreloop_path_exists(path) == !memory.failed,
              "writing, allocation %zu fails: %s", n, error.message);
        if (!memory.failed)
            break;
    }
    {
        foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
        foreloop_error error = {0};
        foreloop_file source = {0};
        foreloop_safetensors file;
        size_t right = 0;

        CHECK(foreloop_file_open(&source, path, &allocator, true, &error) == FORELOOP_OK &&
                  foreloop_safetensors_open(&file, source.data, source.size, path, &allocator, &error) == FORELOOP_OK,
              "what was written opens %s", error.message);
        for (size_t i = 0; i < COUNT; i++) {
            const foreloop_tensor *tensor = foreloop_safetensors_find(&file, tensors[i].name);
            right += tensor && tensor->dtype == tensors[i].dtype && tensor->size == tensors[i].size &&
                     !foreloop_tensor_expect_shape(tensor, tensors[i].rank, tensors[i].shape, NULL) &&
                     (size_t)(tensor->data - source.data) % 64 == 0 &&
                     (tensor->size == 0 || !memcmp(tensor->data, tensors[i].data, tensor->size));
        }
        CHECK(right == COUNT, "%zu tensors are the same and aligned", right);
        CHECK(file.count == COUNT + 2, "two gaps are filled: %zu tensors", file.count);
        foreloop_safetensors_close(&file);

        CHECK(foreloop_safetensors_write(path, NULL, 0, &allocator, &error) == FORELOOP_OK, "no tensors");
        foreloop_file_close(&source);
        unlink(path);
    }
}

static void test_write_refuses(const char *path) {
    static const unsigned char data[8] = {0};
    static const struct {
        foreloop_tensor tensors[2];
        const char *message;
    } cases[] = {
        {{{"a", FORELOOP_DTYPE_U8, 1, {1}, 1, data, 1}, {"a", FORELOOP_DTYPE_U8, 1, {1}, 1, data, 1}}, "two tensors"},
        {{{"a", FORELOOP_DTYPE_U8, 1, {1}, 1, data, 1}, {"b", FORELOOP_DTYPE_F32, 1, {2}, 2, data, 4}}, "fit"},
        {{{"a", FORELOOP_DTYPE_U8, 1, {1}, 1, data, 1}, {"b", FORELOOP_DTYPE_F32, 1, {1}, 1, data, 5}}, "fit"},
        {{{"a", FORELOOP_DTYPE_OTHER, 1, {1}, 1, data, 1}, {"b", FORELOOP_DTYPE_U8, 1, {1}, 1, data, 1}}, "fit"},
        {{{"a\xff", FORELOOP_DTYPE_U8, 1, {1}, 1, data, 1}, {"b", FORELOOP_DTYPE_U8, 1, {1}, 1, data, 1}}, "UTF-8"},
        {{{"__metadata__", FORELOOP_DTYPE_U8, 1, {1}, 1, data, 1}, {"b", FORELOOP_DTYPE_U8, 1, {1}, 1, data, 1}},
         "kept"},
        {{{"__pad__7", FORELOOP_DTYPE_U8, 1, {1}, 1, data, 1}, {"b", FORELOOP_DTYPE_U8, 1, {1}, 1, data, 1}}, "kept"},
    };
    foreloop_allocator allocator = foreloop_allocator_or_default(NULL);

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        foreloop_error error = {0};
        CHECK(foreloop_safetensors_write(path, cases[i].tensors, 2, &allocator, &error) == FORELOOP_ERROR_ARGUMENT &&
                  strstr(error.message, cases[i].message) && !foreloop_path_exists(path),
              "not written: %s", error.message);
    }
}

/* Many names in falling order, looked up again: the index sorts. */
static void test_many(const char *path) {
    enum { COUNT = 3000 };
    static char names[COUNT][16];
    static foreloop_tensor tensors[COUNT];
    static const unsigned char data[1] = {9};
    foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    foreloop_file source = {0};
    foreloop_safetensors file;
    size_t found = 0;

    for (size_t i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "t%zu", i * 7919 % 100003);
        tensors[i] = (foreloop_tensor){names[i], FORELOOP_DTYPE_U8, 1, {1}, 1, data, 1};
    }
    CHECK(!foreloop_safetensors_write(path, tensors, COUNT, &allocator, NULL) &&
              !foreloop_file_open(&source, path, &allocator, false, NULL) &&
              !foreloop_safetensors_open(&file, source.data, source.size, path, &allocator, NULL),
          "many tensors are written and opened");
    for (size_t i = 0; i < COUNT; i++) {
        const foreloop_tensor *tensor = foreloop_safetensors_find(&file, names[i]);
        found += tensor && strcmp(tensor->name, names[i]) == 0;
    }
    CHECK(found == COUNT && !foreloop_safetensors_find(&file, "t"), "all are found");
    foreloop_safetensors_close(&file);
    foreloop_file_close(&source);
    unlink(path);
}

int main(int argc, char **argv) {
    char folder[] = "/tmp/foreloop-safetensors-XXXXXX", path[64];

    test_headers();
    test_lengths();
    test_unaligned();
    test_reference(argc > 1 ? argv[1] : "tests/golden/common");
    test_conversion();
    test_damage();
    if (!CHECK(mkdtemp(folder) != NULL, "a folder for files"))
        return tap_done();
    snprintf(path, sizeof path, "%s/x.safetensors", folder);
    test_write(path);
    test_write_refuses(path);
    test_many(path);
    CHECK(rmdir(folder) == 0, "no temporary files are left");
    return tap_done();
}
