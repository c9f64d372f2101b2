/* The .npy reader: files written by NumPy, every truncation and change of one byte of one, and failing allocations.
 * Argument: the folder of the golden files. */
#include "common/alloc.h"
#include "common/file.h"
#include "common/npy.h"
#include "failing_allocator.h"
#include "tap.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads data[size] from a block of exactly that size. */
static foreloop_status read_exact(const void *data, size_t size, const foreloop_allocator *allocator, float **values,
                                  size_t *rows, size_t *columns, foreloop_error *error) {
    void *copy = malloc(size > 0 ? size : 1);
    foreloop_status status;

    if (size > 0)
        memcpy(copy, data, size);
    status = foreloop_npy_read(copy, size, "x.npy", allocator, values, rows, columns, error);
    free(copy);
    return status;
}

static foreloop_file open_golden(const char *folder, const char *name) {
    foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    foreloop_error error = {0};
    foreloop_file file = {0};
    char *path = foreloop_path_join(&allocator, folder, name);

    CHECK(foreloop_file_open(&file, path, &allocator, false, &error) == FORELOOP_OK, "%s opens %s", name,
          error.message);
    foreloop_release(&allocator, path);
    return file;
}

static void test_numpy_files(const char *folder) {
    static const struct {
        const char *name;
        size_t rows, columns;
    } cases[] = {{"f4_vector.npy", 1, 5},
                 {"f4_matrix.npy", 2, 3},
                 {"f8_matrix.npy", 2, 3},
                 {"f4_fortran.npy", 2, 3},
                 {"f8_fortran_big_endian.npy", 2, 3},
                 {"f4_big_endian.npy", 2, 3},
                 {"f4_empty.npy", 0, 3},
                 {"f4_matrix_version2.npy", 2, 3},
                 {"f4_matrix_version3.npy", 2, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        failing_allocator memory = {.fail_at = SIZE_MAX};
        foreloop_allocator allocator = failing_allocator_use(&memory);
        foreloop_file file = open_golden(folder, cases[i].name);
        foreloop_error error = {0};
        float *values = NULL;
        size_t rows = 9, columns = 9, right = 0;
        foreloop_status status = read_exact(file.data, file.size, &allocator, &values, &rows, &columns, &error);

        CHECK(status == FORELOOP_OK && rows == cases[i].rows && columns == cases[i].columns, "%s is %zu x %zu %s",
              cases[i].name, rows, columns, error.message);
        for (size_t j = 0; status == FORELOOP_OK && j < rows * columns; j++)
            right += values[j] == (float)j / 4 - 1;
        CHECK(right == cases[i].rows * cases[i].columns, "%s has its values", cases[i].name);
        foreloop_release(&allocator, values);
        CHECK(memory.live == 0, "nothing leaks");
        foreloop_file_close(&file);
    }
}

static void test_unsupported(const char *folder) {
    static const struct {
        const char *name, *message;
    } cases[] = {{"i4_matrix.npy", "<i4"},
                 {"f4_cube.npy", "more than two dimensions"},
                 {"f4_scalar.npy", "no dimension"},
                 {"records.npy", "records"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
        foreloop_file file = open_golden(folder, cases[i].name);
        foreloop_error error = {0};
        float *values = NULL;
        size_t rows, columns;

        CHECK(read_exact(file.data, file.size, &allocator, &values, &rows, &columns, &error) ==
                      FORELOOP_ERROR_UNSUPPORTED &&
                  strstr(error.message, cases[i].message) && !values,
              "%s: %s", cases[i].name, error.message);
        foreloop_file_close(&file);
    }
}

/* A version 1 file with this header text and this many bytes behind it. */
static foreloop_status read_header(const char *header, size_t data_size, foreloop_error *error) {
    failing_allocator memory = {.fail_at = SIZE_MAX};
    foreloop_allocator allocator = failing_allocator_use(&memory);
    unsigned char bytes[512] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    size_t length = strlen(header), rows, columns;
    float *values = NULL;
    foreloop_status status;

    bytes[8] = (unsigned char)length;
    memcpy(bytes + 10, header, length);
    status = read_exact(bytes, 10 + length + data_size, &allocator, &values, &rows, &columns, error);
    foreloop_release(&allocator, values);
    return memory.largest > 4096 ? (foreloop_status)-1 : status;
}

static void test_headers(void) {
    static const struct {
        const char *header;
        size_t data_size;
        foreloop_status status;
    } cases[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", 24, FORELOOP_OK},
        {"{\"shape\":(2L,3L),\"fortran_order\":True,\"descr\":\"<f8\"}", 48, FORELOOP_OK},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (6,)}", 24, FORELOOP_OK},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (6)}", 24, FORELOOP_OK},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808, 0), }", 0, FORELOOP_OK},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 23, FORELOOP_ERROR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 25, FORELOOP_ERROR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", 0, FORELOOP_ERROR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 1), }", 0, FORELOOP_ERROR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551617,), }", 4, FORELOOP_ERROR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", 4, FORELOOP_ERROR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1 1), }", 4, FORELOOP_ERROR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,,), }", 4, FORELOOP_ERROR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': [1], }", 4, FORELOOP_ERROR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (1,), }", 4, FORELOOP_ERROR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, }", 4, FORELOOP_ERROR_FORMAT},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", 4, FORELOOP_ERROR_FORMAT},
        {"{'descr': '<f4' 'fortran_order': False, 'shape': (1,), }", 4, FORELOOP_ERROR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}", 4, FORELOOP_ERROR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } x", 4, FORELOOP_ERROR_FORMAT},
        {"{'descr': '<f2', 'fortran_order': False, 'shape': (1,), }", 2, FORELOOP_ERROR_UNSUPPORTED},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", 2, FORELOOP_ERROR_UNSUPPORTED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        foreloop_error error = {0};
        CHECK(read_header(cases[i].header, cases[i].data_size, &error) == cases[i].status, "header %zu: %s", i,
              error.message);
    }
}

static void test_damage(const char *folder) {
    foreloop_file file = open_golden(folder, "f4_fortran.npy");
    failing_allocator memory = {.fail_at = SIZE_MAX};
    foreloop_allocator allocator = failing_allocator_use(&memory);
    unsigned char *changed = malloc(file.size);
    size_t refused = 0, unexpected = 0, rows, columns;
    float *values = NULL;

    for (size_t size = 0; size < file.size; size++)
        refused += read_exact(file.data, size, &allocator, &values, &rows, &columns, NULL) == FORELOOP_ERROR_FORMAT;
    CHECK(refused == file.size && memory.calls == 0, "every truncation is refused, before memory is taken");
    memcpy(changed, file.data, file.size);
    for (size_t i = 0; i < file.size; i++) {
        for (unsigned byte = 0; byte < 256; byte++) {
            foreloop_status status;
            changed[i] = (unsigned char)byte;
            values = NULL;
            status = read_exact(changed, file.size, &allocator, &values, &rows, &columns, NULL);
            unexpected +=
                status != FORELOOP_OK && status != FORELOOP_ERROR_FORMAT && status != FORELOOP_ERROR_UNSUPPORTED;
            unexpected += (status == FORELOOP_OK) != (values != NULL);
            foreloop_release(&allocator, values);
        }
        changed[i] = file.data[i];
    }
    CHECK(unexpected == 0 && memory.live == 0 && memory.largest < 4096, "every change of one byte is read or refused");
    free(changed);

    memory.fail_at = 0;
    values = NULL;
    CHECK(read_exact(file.data, file.size, &allocator, &values, &rows, &columns, NULL) == FORELOOP_ERROR_MEMORY &&
              !values,
          "no memory");
    foreloop_file_close(&file);
}

int main(int argc, char **argv) {
    const char *folder = argc > 1 ? argv[1] : "tests/golden/common";
    test_numpy_files(folder);
    test_unsupported(folder);
    test_headers();
    test_damage(folder);
    return tap_done();
}
