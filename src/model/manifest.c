/* Reading of model.json. Keys may come in any order, so lists that depend on others are read last, from their spans. */
#include "model/manifest.h"
#include "common/error.h"
#include <string.h>

typedef struct reader {
    foreloop_manifest *manifest;
    const foreloop_allocator *allocator;
    foreloop_json *json;
    foreloop_text actions, features;
    size_t format_version;
    bool has_format, has_pooling;
} reader;

static foreloop_status read_format(reader *read) {
    foreloop_text text;
    FORELOOP_TRY(foreloop_json_string(read->json, &text));
    if (!foreloop_text_is(text, "foreloop-model"))
        return foreloop_json_fail(read->json, "'format' is '%.*s', expected 'foreloop-model'",
                                  FORELOOP_QUOTED(text.text, text.length));
    read->has_format = true;
    return FORELOOP_OK;
}

static foreloop_status read_window(reader *read) {
    foreloop_text key;
    foreloop_json_keys keys = {.count = 0};
    FORELOOP_TRY(foreloop_json_object(read->json));
    for (;;) {
        FORELOOP_TRY(foreloop_json_key_once(read->json, &keys, &key));
        if (!key.text)
            return FORELOOP_OK;
        if (foreloop_text_is(key, "length"))
            FORELOOP_TRY(foreloop_json_size(read->json, INT32_MAX, &read->manifest->window_length));
        else if (foreloop_text_is(key, "stride"))
            FORELOOP_TRY(foreloop_json_size(read->json, INT32_MAX, &read->manifest->window_stride));
        else
            FORELOOP_TRY(foreloop_json_skip(read->json));
    }
}

static foreloop_status read_pooling(reader *read) {
    foreloop_text key;
    foreloop_json_keys keys = {.count = 0};
    read->has_pooling = true;
    FORELOOP_TRY(foreloop_json_object(read->json));
    for (;;) {
        FORELOOP_TRY(foreloop_json_key_once(read->json, &keys, &key));
        if (!key.text)
            return FORELOOP_OK;
        if (foreloop_text_is(key, "projection"))
            FORELOOP_TRY(foreloop_json_bool(read->json, &read->manifest->projection));
        else if (foreloop_text_is(key, "normalize"))
            FORELOOP_TRY(foreloop_json_bool(read->json, &read->manifest->normalize));
        else
            FORELOOP_TRY(foreloop_json_skip(read->json));
    }
}

static foreloop_status read_activation(reader *read) {
    foreloop_text text;
    FORELOOP_TRY(foreloop_json_string(read->json, &text));
    if (!foreloop_text_is(text, "relu"))
        return foreloop_json_fail(read->json, "'activation' is '%.*s', expected 'relu'",
                                  FORELOOP_QUOTED(text.text, text.length));
    return FORELOOP_OK;
}

static foreloop_status read_keys(reader *read) {
    foreloop_json *json = read->json;
    foreloop_text key;
    foreloop_json_keys keys = {.count = 0};
    size_t number;
    FORELOOP_TRY(foreloop_json_object(json));
    for (;;) {
        FORELOOP_TRY(foreloop_json_key_once(json, &keys, &key));
        if (!key.text)
            break;
        if (foreloop_text_is(key, "format")) {
            FORELOOP_TRY(read_format(read));
        } else if (foreloop_text_is(key, "format_version")) {
            FORELOOP_TRY(foreloop_json_size(json, INT32_MAX, &read->format_version));
        } else if (foreloop_text_is(key, "text_rule")) {
            FORELOOP_TRY(foreloop_json_size(json, INT32_MAX, &number));
            read->manifest->text_rule = (uint32_t)number;
        } else if (foreloop_text_is(key, "latent_size")) {
            FORELOOP_TRY(foreloop_json_size(json, FORELOOP_MAX_LATENT, &read->manifest->latent_size));
        } else if (foreloop_text_is(key, "window")) {
            FORELOOP_TRY(read_window(read));
        } else if (foreloop_text_is(key, "pooling")) {
            FORELOOP_TRY(read_pooling(read));
        } else if (foreloop_text_is(key, "activation")) {
            FORELOOP_TRY(read_activation(read));
        } else if (foreloop_text_is(key, "score_network")) {
            FORELOOP_TRY(foreloop_json_bool(json, &read->manifest->score_network));
        } else if (foreloop_text_is(key, "actions")) {
            FORELOOP_TRY(foreloop_json_span(json, &read->actions));
        } else if (foreloop_text_is(key, "features")) {
            FORELOOP_TRY(foreloop_json_span(json, &read->features));
        } else {
            FORELOOP_TRY(foreloop_json_skip(json));
        }
    }
    return foreloop_json_end(json);
}

static foreloop_status check(const reader *read) {
    const foreloop_manifest *manifest = read->manifest;
    if (!read->has_format)
        return foreloop_json_fail(read->json, "'format' is missing: this is not a foreloop model");
    if (read->format_version == 0 || manifest->text_rule == 0)
        return foreloop_json_fail(read->json, "'%s' is missing or 0",
                                  read->format_version == 0 ? "format_version" : "text_rule");
    if (read->format_version > FORELOOP_BUNDLE_VERSION)
        return foreloop_fail(read->json->error, FORELOOP_ERROR_UNSUPPORTED,
                             "%s: format_version is %zu, this library reads 1 to %d: use a matching foreloop",
                             read->json->name, read->format_version, FORELOOP_BUNDLE_VERSION);
    /* A library of version 1 would score without the network. */
    if (manifest->score_network && read->format_version < 2)
        return foreloop_json_fail(read->json, "'score_network' needs a format_version of 2: write 2");
    if (manifest->text_rule != FORELOOP_TEXT_RULE)
        return foreloop_fail(read->json->error, FORELOOP_ERROR_UNSUPPORTED,
                             "%s: text_rule is %u, this library has rule %d: use a matching foreloop", read->json->name,
                             manifest->text_rule, FORELOOP_TEXT_RULE);
    if (manifest->latent_size == 0)
        return foreloop_json_fail(read->json, "'latent_size' must be at least 1");
    if (manifest->window_length == 0 || manifest->window_stride == 0)
        return foreloop_json_fail(read->json, "'window' needs 'length' and 'stride' of at least 1");
    if (!read->has_pooling || !read->actions.text || !read->features.text)
        return foreloop_json_fail(read->json, "'%s' is missing",
                                  !read->has_pooling    ? "pooling"
                                  : !read->actions.text ? "actions"
                                                        : "features");
    return FORELOOP_OK;
}

/* A reader over a span of the manifest, whose errors still tell the place in the file. */
static void open_span(const reader *read, foreloop_text span, foreloop_json *json) {
    foreloop_json_open(json, read->allocator, span.text, span.length, read->json->name, read->json->error);
    json->base = (size_t)(span.text - read->json->data);
}

static foreloop_status read_lists(reader *read) {
    foreloop_manifest *manifest = read->manifest;
    foreloop_json json;
    open_span(read, read->actions, &json);
    foreloop_status status = foreloop_vocabulary_read(&manifest->vocabulary, read->allocator, &json);
    foreloop_json_close(&json);
    FORELOOP_TRY(status);
    open_span(read, read->features, &json);
    status = foreloop_feature_plan_read(&manifest->plan, read->allocator, &json, &manifest->vocabulary,
                                        manifest->latent_size);
    foreloop_json_close(&json);
    return status;
}

foreloop_status foreloop_manifest_read(foreloop_manifest *manifest, const foreloop_allocator *allocator,
                                       const char *text, size_t length, const char *name, foreloop_error *error) {
    foreloop_json json;
    *manifest = (foreloop_manifest){0};
    foreloop_json_open(&json, allocator, text, length, name, error);
    reader read = {.manifest = manifest, .allocator = allocator, .json = &json};
    foreloop_status status = read_keys(&read);
    if (status == FORELOOP_OK)
        status = check(&read);
    if (status == FORELOOP_OK)
        status = read_lists(&read);
    foreloop_json_close(&json);
    if (status != FORELOOP_OK)
        foreloop_manifest_close(manifest);
    return status;
}

void foreloop_manifest_close(foreloop_manifest *manifest) {
    foreloop_feature_plan_close(&manifest->plan);
    foreloop_vocabulary_close(&manifest->vocabulary);
}
