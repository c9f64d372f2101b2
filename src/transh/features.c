/* Resolution of feature names at load, so that scoring follows a plan without looking at a name. */
#include "transh/features.h"
#include "common/error.h"
#include "common/number.h"
#include <string.h>

const char *const foreloop_hardware_field_names[FORELOOP_HARDWARE_FIELDS] = {
    "cores",    "simd_bits", "l1d_bytes",           "l2_bytes",        "l3_bytes",
    "clock_hz", "sm_count",  "shared_memory_bytes", "memory_bandwidth"};

double foreloop_hardware_field(const foreloop_hardware *hardware, size_t field) {
    const double values[FORELOOP_HARDWARE_FIELDS] = {
        hardware->cores,           hardware->simd_bits, hardware->l1d_bytes, hardware->l2_bytes,
        hardware->l3_bytes,        hardware->clock_hz,  hardware->sm_count,  hardware->shared_memory_bytes,
        hardware->memory_bandwidth};
    return values[field];
}

static const char *after_prefix(const char *name, const char *prefix) {
    size_t length = strlen(prefix);
    return strncmp(name, prefix, length) == 0 ? name + length : NULL;
}

/* A number as it is written, so that each feature has one name. */
static bool parse_index(const char *text, size_t limit, uint32_t *index) {
    int64_t value;
    if (*text < '0' || *text > '9' || (*text == '0' && text[1]) || !foreloop_parse_int64(text, strlen(text), &value) ||
        value >= (int64_t)limit)
        return false;
    *index = (uint32_t)value;
    return true;
}

static bool resolve(foreloop_feature *feature, const foreloop_vocabulary *vocabulary, size_t latent_size) {
    static const struct {
        const char *prefix;
        foreloop_feature_source source;
    } aggregates[] = {{"sum.", FORELOOP_FEATURE_SUM},
                      {"max.", FORELOOP_FEATURE_MAX},
                      {"min.", FORELOOP_FEATURE_MIN},
                      {"first.", FORELOOP_FEATURE_FIRST},
                      {"last.", FORELOOP_FEATURE_LAST}};
    const char *rest;
    if (strcmp(feature->name, "length") == 0) {
        feature->source = FORELOOP_FEATURE_LENGTH;
        return true;
    }
    if ((rest = after_prefix(feature->name, "z."))) {
        feature->source = FORELOOP_FEATURE_LATENT;
        return parse_index(rest, latent_size, &feature->element);
    }
    if ((rest = after_prefix(feature->name, "count."))) {
        size_t kind = foreloop_vocabulary_find(vocabulary, rest, strlen(rest));
        feature->source = FORELOOP_FEATURE_COUNT;
        feature->kind = (uint32_t)kind;
        return kind < vocabulary->kind_count;
    }
    if ((rest = after_prefix(feature->name, "hw."))) {
        feature->source = FORELOOP_FEATURE_HARDWARE;
        for (uint32_t i = 0; i < FORELOOP_HARDWARE_FIELDS; i++) {
            if (strcmp(rest, foreloop_hardware_field_names[i]) == 0) {
                feature->element = i;
                return true;
            }
        }
        return false;
    }
    for (size_t i = 0; i < sizeof aggregates / sizeof *aggregates; i++) {
        size_t kind, element;
        if (!(rest = after_prefix(feature->name, aggregates[i].prefix)))
            continue;
        if (!foreloop_vocabulary_element(vocabulary, rest, &kind, &element))
            return false;
        feature->source = aggregates[i].source;
        feature->kind = (uint32_t)kind;
        feature->element = (uint32_t)element;
        return true;
    }
    return false;
}

/* Sorts the features into groups (each kind, latent, rest) by counting. */
static foreloop_status group(foreloop_feature_plan *plan, size_t kinds, foreloop_error *error) {
    size_t groups = kinds + 2;
    plan->updates = foreloop_arena_allocate(&plan->arena, plan->count, sizeof *plan->updates);
    plan->update_start = foreloop_arena_allocate(&plan->arena, groups + 1, sizeof *plan->update_start);
    size_t *next = foreloop_arena_allocate(&plan->arena, groups, sizeof *next);
    if (!plan->updates || !plan->update_start || !next)
        return foreloop_fail_memory(error, plan->count + groups, sizeof *plan->updates, "the feature plan");
    memset(plan->update_start, 0, (groups + 1) * sizeof *plan->update_start);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < plan->count; i++) {
            const foreloop_feature *feature = &plan->features[i];
            size_t g = feature->source == FORELOOP_FEATURE_LATENT ? kinds
                       : feature->source == FORELOOP_FEATURE_LENGTH || feature->source == FORELOOP_FEATURE_HARDWARE
                           ? kinds + 1
                           : feature->kind;
            if (pass == 0)
                plan->update_start[g + 1]++;
            else
                plan->updates[next[g]++] = *feature;
        }
        for (size_t g = 0; pass == 0 && g < groups; g++) {
            plan->update_start[g + 1] += plan->update_start[g];
            next[g] = plan->update_start[g];
        }
    }
    plan->latent_end = plan->update_start[kinds + 1];
    return FORELOOP_OK;
}

static foreloop_status read_features(foreloop_feature_plan *plan, foreloop_json *json,
                                     const foreloop_vocabulary *vocabulary, size_t latent_size) {
    size_t capacity = 0;
    foreloop_feature *features = NULL;
    foreloop_status status = foreloop_json_array(json);
    bool more = false;
    while (status == FORELOOP_OK && (status = foreloop_json_element(json, &more)) == FORELOOP_OK && more) {
        foreloop_text text;
        if (plan->count == FORELOOP_MAX_FEATURES)
            status = foreloop_json_fail(json, "more than %d features", FORELOOP_MAX_FEATURES);
        if (status == FORELOOP_OK)
            status = foreloop_reserve(plan->arena.allocator, &features, &capacity, plan->count, plan->count + 1,
                                      sizeof *features, json->error);
        if (status == FORELOOP_OK)
            status = foreloop_json_string(json, &text);
        if (status != FORELOOP_OK)
            break;
        foreloop_feature feature = {.position = (uint32_t)plan->count};
        feature.name = foreloop_arena_text(&plan->arena, text.text, text.length);
        if (!feature.name)
            status = foreloop_fail_memory(json->error, text.length, 1, "a feature's name");
        else if (strlen(feature.name) != text.length || !resolve(&feature, vocabulary, latent_size))
            status = foreloop_json_fail(json, "unknown feature '%.*s': no such latent element, kind, slot or field",
                                        FORELOOP_QUOTED(text.text, text.length));
        else
            features[plan->count++] = feature;
    }
    if (status == FORELOOP_OK) {
        plan->features = foreloop_arena_allocate(&plan->arena, plan->count, sizeof *plan->features);
        if (!plan->features)
            status = foreloop_fail_memory(json->error, plan->count, sizeof *plan->features, "features");
        else if (plan->count)
            memcpy(plan->features, features, plan->count * sizeof *plan->features);
    }
    foreloop_release(plan->arena.allocator, features);
    return status == FORELOOP_OK ? group(plan, vocabulary->kind_count, json->error) : status;
}

foreloop_status foreloop_feature_plan_read(foreloop_feature_plan *plan, const foreloop_allocator *allocator,
                                           foreloop_json *json, const foreloop_vocabulary *vocabulary,
                                           size_t latent_size) {
    *plan = (foreloop_feature_plan){.arena = {.allocator = allocator}};
    foreloop_status status = read_features(plan, json, vocabulary, latent_size);
    if (status != FORELOOP_OK)
        foreloop_feature_plan_close(plan);
    return status;
}

void foreloop_feature_plan_close(foreloop_feature_plan *plan) {
    if (plan->arena.allocator)
        foreloop_arena_close(&plan->arena);
    *plan = (foreloop_feature_plan){0};
}
