/* A golden bundle and its candidates (tests/golden/make_bundle.py), read for the tests of the API. */
#ifndef FORELOOP_TESTS_API_FIXTURE_H
#define FORELOOP_TESTS_API_FIXTURE_H

#include <cjson/cJSON.h>
#include <foreloop/foreloop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIXTURE_MAX = 64 };

typedef struct fixture_candidate {
    foreloop_action *actions;
    size_t count;
    float *latent;
    float *features;
    float score;
} fixture_candidate;

typedef struct fixture {
    char directory[1024]; /* of the bundle */
    cJSON *json;
    float *z0;
    foreloop_hardware hardware;
    fixture_candidate candidates[FIXTURE_MAX];
    size_t count;
} fixture;

static char *fixture_read(const char *directory, const char *name, size_t *length) {
    char path[2048];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "cannot open %s\n", path);
        exit(99);
    }
    fseek(file, 0, SEEK_END);
    *length = (size_t)ftell(file);
    rewind(file);
    char *data = malloc(*length + 1);
    if (!data || fread(data, 1, *length, file) != *length)
        exit(99);
    data[*length] = 0;
    fclose(file);
    return data;
}

static float *fixture_numbers(const cJSON *array) {
    float *numbers = calloc((size_t)cJSON_GetArraySize(array) + 1, sizeof *numbers);
    size_t i = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, array) numbers[i++] = (float)item->valuedouble;
    return numbers;
}

static foreloop_action *fixture_actions(const cJSON *list, size_t *count) {
    *count = (size_t)cJSON_GetArraySize(list);
    foreloop_action *actions = calloc(*count + 1, sizeof *actions);
    size_t i = 0;
    const cJSON *item, *value;
    cJSON_ArrayForEach(item, list) {
        const cJSON *arguments = cJSON_GetObjectItem(item, "arguments");
        foreloop_argument *own = calloc((size_t)cJSON_GetArraySize(arguments) + 1, sizeof *own);
        size_t j = 0;
        cJSON_ArrayForEach(value, arguments) own[j++] =
            (foreloop_argument){value->string, cJSON_IsString(value) ? value->valuestring : NULL, value->valuedouble};
        actions[i++] = (foreloop_action){cJSON_GetObjectItem(item, "kind")->valuestring, own, j};
    }
    return actions;
}

/* argv[1] is the root of the source, argv[2] the bundle's name in tests/golden where it is not the usual one. */
static void fixture_open(fixture *fix, int argc, char **argv) {
    if (argc < 2)
        exit(99);
    memset(fix, 0, sizeof *fix);
    snprintf(fix->directory, sizeof fix->directory, "%s/tests/golden/%s", argv[1], argc > 2 ? argv[2] : "bundle");
    size_t length;
    char *text = fixture_read(fix->directory, "candidates.json", &length);
    fix->json = cJSON_Parse(text);
    free(text);
    fix->z0 = fixture_numbers(cJSON_GetObjectItem(fix->json, "z0"));
    foreloop_hardware_init(&fix->hardware, sizeof fix->hardware);
    const cJSON *hardware = cJSON_GetObjectItem(fix->json, "hardware"), *item;
    fix->hardware.cores = cJSON_GetObjectItem(hardware, "cores")->valuedouble;
    fix->hardware.simd_bits = cJSON_GetObjectItem(hardware, "simd_bits")->valuedouble;
    fix->hardware.l1d_bytes = cJSON_GetObjectItem(hardware, "l1d_bytes")->valuedouble;
    fix->hardware.l2_bytes = cJSON_GetObjectItem(hardware, "l2_bytes")->valuedouble;
    fix->hardware.l3_bytes = cJSON_GetObjectItem(hardware, "l3_bytes")->valuedouble;
    fix->hardware.clock_hz = cJSON_GetObjectItem(hardware, "clock_hz")->valuedouble;
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(fix->json, "candidates")) {
        fixture_candidate *candidate = &fix->candidates[fix->count++];
        candidate->actions = fixture_actions(cJSON_GetObjectItem(item, "actions"), &candidate->count);
        candidate->latent = fixture_numbers(cJSON_GetObjectItem(item, "latent"));
        candidate->features = fixture_numbers(cJSON_GetObjectItem(item, "features"));
        candidate->score = (float)cJSON_GetObjectItem(item, "score")->valuedouble;
    }
}

static void fixture_close(fixture *fix) {
    for (size_t i = 0; i < fix->count; i++) {
        for (size_t j = 0; j < fix->candidates[i].count; j++)
            free((void *)fix->candidates[i].actions[j].arguments);
        free(fix->candidates[i].actions);
        free(fix->candidates[i].latent);
        free(fix->candidates[i].features);
    }
    free(fix->z0);
    cJSON_Delete(fix->json);
}

/* All candidates' ids in CSR form; offsets has room for FIXTURE_MAX + 1. Returns the status of interning. */
static foreloop_status fixture_intern(const fixture *fix, foreloop_actions *actions, uint32_t *ids, size_t *offsets,
                                      foreloop_error *error) {
    offsets[0] = 0;
    for (size_t i = 0; i < fix->count; i++) {
        const fixture_candidate *candidate = &fix->candidates[i];
        foreloop_status status =
            foreloop_actions_intern(actions, candidate->actions, candidate->count, ids + offsets[i], error);
        if (status != FORELOOP_OK)
            return status;
        offsets[i + 1] = offsets[i] + candidate->count;
    }
    return FORELOOP_OK;
}

#endif
