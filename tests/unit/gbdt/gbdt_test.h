/* What the tests of the trees share: files, models written in place, an allocator that fails on demand. */
#ifndef FORELOOP_TESTS_GBDT_TEST_H
#define FORELOOP_TESTS_GBDT_TEST_H

#include "common/npy.h"
#include "gbdt/model.h"
#include "tap.h"
#include <foreloop/foreloop.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((unused)) static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

__attribute__((unused)) static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The file's bytes, terminated; ends the test when it cannot be read. */
__attribute__((unused)) static char *read_file(const char *root, const char *name, size_t *size) {
    char path[1024];
    snprintf(path, sizeof path, "%s/tests/golden/gbdt/%s", root, name);
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) {
        printf("Bail out! cannot read %s\n", path);
        exit(1);
    }
    *size = (size_t)ftell(file);
    rewind(file);
    char *data = malloc(*size + 1);
    if (!data || fread(data, 1, *size, file) != *size)
        exit(1);
    data[*size] = '\0';
    fclose(file);
    return data;
}

/* The numbers of an .npy file, to be released with the default allocator. */
__attribute__((unused)) static float *read_table(const char *root, const char *name, size_t *rows, size_t *columns) {
    const foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    size_t size;
    float *values;
    char *data = read_file(root, name, &size);
    if (foreloop_npy_read(data, size, name, &allocator, &values, rows, columns, NULL) != FORELOOP_OK) {
        printf("Bail out! %s\n", name);
        exit(1);
    }
    free(data);
    return values;
}

/* Counts blocks and fails the allocation with number `fail_at` (and all after it). */
typedef struct counting {
    size_t calls, live, fail_at;
} counting;

__attribute__((unused)) static void *counting_allocate(void *user, size_t size, size_t alignment) {
    counting *state = user;
    void *pointer = NULL;
    if (state->calls++ >= state->fail_at)
        return NULL;
    if (alignment < sizeof(void *))
        alignment = sizeof(void *);
    if (posix_memalign(&pointer, alignment, size) != 0)
        return NULL;
    memset(pointer, 0xa5, size);
    state->live++;
    return pointer;
}

__attribute__((unused)) static void counting_release(void *user, void *pointer) {
    counting *state = user;
    state->live--;
    free(pointer);
}

#endif
