/* Reads the golden checkpoints of tests/golden/transformer. */
#ifndef FORELOOP_TESTS_TRANSFORMER_GOLDEN_H
#define FORELOOP_TESTS_TRANSFORMER_GOLDEN_H

#include "common/alloc.h"
#include "common/file.h"
#include "common/json.h"
#include "common/safetensors.h"
#include "transformer/config.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct golden_file {
    foreloop_file file;
    foreloop_safetensors tensors;
} golden_file;

/* Ends the program when the file is not there: the test is run from the wrong place. */
static void golden_open(golden_file *golden, const char *folder, const char *name) {
    const foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    char *path = foreloop_path_join(&allocator, folder, name);
    foreloop_error error;
    if (foreloop_file_open(&golden->file, path, &allocator, true, &error) != FORELOOP_OK ||
        foreloop_safetensors_open(&golden->tensors, golden->file.data, golden->file.size, path, &allocator, &error) !=
            FORELOOP_OK) {
        printf("Bail out! %s\n", error.message);
        exit(1);
    }
    foreloop_release(&allocator, path);
}

static void golden_close(golden_file *golden) {
    foreloop_safetensors_close(&golden->tensors);
    foreloop_file_close(&golden->file);
}

__attribute__((unused)) static foreloop_transformer_config golden_config(const char *folder) {
    const foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    char *path = foreloop_path_join(&allocator, folder, "config.json");
    foreloop_error error;
    foreloop_file file;
    foreloop_json json;
    foreloop_transformer_config config;
    if (foreloop_file_open(&file, path, &allocator, true, &error) != FORELOOP_OK) {
        printf("Bail out! %s\n", error.message);
        exit(1);
    }
    foreloop_json_open(&json, &allocator, file.data, file.size, path, &error);
    if (foreloop_transformer_config_read(&config, &json) != FORELOOP_OK) {
        printf("Bail out! %s\n", error.message);
        exit(1);
    }
    foreloop_json_close(&json);
    foreloop_file_close(&file);
    foreloop_release(&allocator, path);
    return config;
}

/* The tensor STEM.INDEX, or NULL. */
static const foreloop_tensor *golden_find(const golden_file *golden, const char *stem, const char *index) {
    char name[64];
    snprintf(name, sizeof name, "%s.%s", stem, index);
    return foreloop_safetensors_find(&golden->tensors, name);
}

/* An I64 tensor of small numbers as new memory. */
__attribute__((unused)) static uint32_t *golden_ids(const foreloop_tensor *tensor) {
    uint32_t *ids = malloc(tensor->count * sizeof *ids);
    for (size_t i = 0; i < tensor->count; i++)
        memcpy(&ids[i], tensor->data + 8 * i, sizeof ids[i]);
    return ids;
}

/* The largest difference between the tensor and values[count]; infinite when the counts differ or a value is NaN. */
static double golden_distance(const foreloop_tensor *tensor, const float *values, size_t count) {
    double distance = tensor && tensor->count == count ? 0.0 : INFINITY;
    for (size_t i = 0; i < count && distance < INFINITY; i++) {
        float expected;
        memcpy(&expected, tensor->data + 4 * i, sizeof expected);
        const double difference = fabs((double)values[i] - expected);
        distance = isnan(difference) ? INFINITY : difference > distance ? difference : distance;
    }
    return distance;
}

#endif
