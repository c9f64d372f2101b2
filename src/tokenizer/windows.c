/* Reading the truncation and padding sections of tokenizer.json. */
#include "tokenizer/windows.h"

/* One of two names; *second tells which. */
static foreloop_status read_choice(foreloop_json *json, const char *what, const char *first, const char *other,
                                   bool *second) {
    foreloop_text name;
    FORELOOP_TRY(foreloop_json_string(json, &name));
    *second = foreloop_text_is(name, other);
    if (*second || foreloop_text_is(name, first))
        return FORELOOP_OK;
    return foreloop_component_unsupported(json, "the %s \"%.*s\" is not supported; it is %s or %s", what,
                                          FORELOOP_QUOTED(name.text, name.length), first, other);
}

static foreloop_status read_truncation_strategy(foreloop_json *json, foreloop_truncation *truncation) {
    foreloop_text name;
    FORELOOP_TRY(foreloop_json_string(json, &name));
    truncation->second_only = foreloop_text_is(name, "OnlySecond");
    if (truncation->second_only || foreloop_text_is(name, "LongestFirst") || foreloop_text_is(name, "OnlyFirst"))
        return FORELOOP_OK;
    return foreloop_component_unsupported(json, "the truncation strategy \"%.*s\" is not supported",
                                          FORELOOP_QUOTED(name.text, name.length));
}

static foreloop_status read_truncation_field(foreloop_json *json, foreloop_text key, void *context) {
    foreloop_truncation *truncation = context;
    if (foreloop_text_is(key, "direction"))
        return read_choice(json, "truncation direction", "Right", "Left", &truncation->from_end);
    if (foreloop_text_is(key, "max_length")) {
        truncation->present = true;
        truncation->from_file = true;
        return foreloop_json_size(json, SIZE_MAX / 4, &truncation->max_length);
    }
    if (foreloop_text_is(key, "stride"))
        return foreloop_json_size(json, SIZE_MAX / 4, &truncation->stride);
    if (foreloop_text_is(key, "strategy"))
        return read_truncation_strategy(json, truncation);
    return foreloop_json_skip(json);
}

foreloop_status foreloop_truncation_read(foreloop_truncation *truncation, foreloop_json *json) {
    if (foreloop_json_peek(json) == FORELOOP_JSON_NULL)
        return foreloop_json_null(json);
    FORELOOP_TRY(foreloop_component_fields(json, read_truncation_field, truncation));
    return truncation->present ? FORELOOP_OK : foreloop_json_fail(json, "truncation has no field \"max_length\"");
}

/* "BatchLongest" or {"Fixed": n} */
static foreloop_status read_padding_strategy(foreloop_json *json, foreloop_padding *padding) {
    foreloop_text name;
    if (foreloop_json_peek(json) == FORELOOP_JSON_STRING) {
        FORELOOP_TRY(foreloop_json_string(json, &name));
        if (foreloop_text_is(name, "BatchLongest"))
            return FORELOOP_OK;
        return foreloop_component_unsupported(json, "the padding strategy \"%.*s\" is not supported",
                                              FORELOOP_QUOTED(name.text, name.length));
    }
    FORELOOP_TRY(foreloop_json_object(json));
    FORELOOP_TRY(foreloop_json_key(json, &name));
    if (!foreloop_text_is(name, "Fixed"))
        return foreloop_json_fail(json, "a padding strategy is \"BatchLongest\" or {\"Fixed\": length}");
    padding->fixed = true;
    FORELOOP_TRY(foreloop_json_size(json, INT32_MAX, &padding->length));
    FORELOOP_TRY(foreloop_json_key(json, &name));
    return name.text ? foreloop_json_fail(json, "a padding strategy has one field") : FORELOOP_OK;
}

static foreloop_status read_padding_field(foreloop_json *json, foreloop_text key, void *context) {
    foreloop_padding *padding = context;
    size_t id;
    if (foreloop_text_is(key, "direction"))
        return read_choice(json, "padding direction", "Right", "Left", &padding->on_left);
    if (foreloop_text_is(key, "strategy"))
        return read_padding_strategy(json, padding);
    if (foreloop_text_is(key, "pad_to_multiple_of") && foreloop_json_peek(json) != FORELOOP_JSON_NULL)
        return foreloop_json_size(json, INT32_MAX, &padding->multiple);
    if (foreloop_text_is(key, "pad_id")) {
        padding->present = true;
        FORELOOP_TRY(foreloop_json_size(json, UINT32_MAX, &id));
        padding->id = (uint32_t)id;
        return FORELOOP_OK;
    }
    return foreloop_json_skip(json);
}

foreloop_status foreloop_padding_read(foreloop_padding *padding, foreloop_json *json) {
    if (foreloop_json_peek(json) == FORELOOP_JSON_NULL)
        return foreloop_json_null(json);
    FORELOOP_TRY(foreloop_component_fields(json, read_padding_field, padding));
    return padding->present ? FORELOOP_OK : foreloop_json_fail(json, "padding has no field \"pad_id\"");
}
