/* Post-processors. */
#include "tokenizer/post_process.h"
#include <string.h>

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

typedef struct field_set {
    const char *type;
    foreloop_post_processor *processor;
    foreloop_arena *arena;
    foreloop_flag add_prefix_space, trim_offsets;
    uint32_t first_id, last_id; /* cls and sep */
    bool has_first, has_last, has_single, has_processors;
    foreloop_text special_tokens, single; /* spans of the document, to be read in this order */
    size_t special_base, single_base;
} field_set;

static foreloop_status add_item(const field_set *fields, foreloop_template_item item, foreloop_error *error) {
    foreloop_post_processor *processor = fields->processor;
    FORELOOP_TRY(foreloop_reserve(fields->arena->allocator, &processor->items, &processor->item_capacity,
                                  processor->item_count, processor->item_count + 1, sizeof item, error));
    processor->items[processor->item_count++] = item;
    return FORELOOP_OK;
}

static foreloop_status add_trim(const field_set *fields, foreloop_error *error) {
    foreloop_post_processor *processor = fields->processor;
    FORELOOP_TRY(foreloop_reserve(fields->arena->allocator, &processor->trims, &processor->trim_capacity,
                                  processor->trim_count, processor->trim_count + 1, sizeof *processor->trims, error));
    processor->trims[processor->trim_count++] = fields->add_prefix_space == 1;
    return FORELOOP_OK;
}

static foreloop_status read_id(foreloop_json *json, uint32_t *id) {
    size_t value;
    FORELOOP_TRY(foreloop_json_size(json, UINT32_MAX, &value));
    *id = (uint32_t)value;
    return FORELOOP_OK;
}

/* ["text", id] */
static foreloop_status read_token_pair(foreloop_json *json, uint32_t *id) {
    foreloop_text text;
    bool more;

    FORELOOP_TRY(foreloop_json_array(json));
    FORELOOP_TRY(foreloop_json_element(json, &more));
    if (more) {
        FORELOOP_TRY(foreloop_json_string(json, &text));
        FORELOOP_TRY(foreloop_json_element(json, &more));
    }
    if (!more)
        return foreloop_json_fail(json, "a special token is a pair, [\"text\", id]");
    FORELOOP_TRY(read_id(json, id));
    FORELOOP_TRY(foreloop_json_element(json, &more));
    return more ? foreloop_json_fail(json, "a special token is a pair, [\"text\", id]") : FORELOOP_OK;
}

static foreloop_status read_sequence(foreloop_json *json, field_set *fields) {
    bool more;

    if (fields->has_processors)
        return foreloop_json_fail(json, "the field \"processors\" stands here twice");
    fields->has_processors = true;
    FORELOOP_TRY(foreloop_json_array(json));
    for (;;) {
        FORELOOP_TRY(foreloop_json_element(json, &more));
        if (!more)
            return FORELOOP_OK;
        /* Behind special tokens, trimming and further special tokens would see a text of several parts. */
        if (fields->processor->item_count > 0)
            return foreloop_component_unsupported(json, "a post-processor behind the one that adds special tokens is "
                                                        "not supported");
        FORELOOP_TRY(foreloop_post_processor_read(fields->processor, json, fields->arena));
    }
}

static foreloop_status read_span(foreloop_json *json, foreloop_text *span, size_t *base) {
    FORELOOP_TRY(foreloop_json_span(json, span));
    *base = json->base + (size_t)(span->text - json->data);
    return FORELOOP_OK;
}

static foreloop_status read_field(foreloop_json *json, foreloop_text key, void *context) {
    field_set *fields = context;
    bool is_template = strcmp(fields->type, "TemplateProcessing") == 0;

    if (foreloop_text_is(key, "add_prefix_space"))
        return foreloop_component_flag(json, &fields->add_prefix_space);
    if (foreloop_text_is(key, "trim_offsets"))
        return foreloop_component_flag(json, &fields->trim_offsets);
    if (foreloop_text_is(key, "cls")) {
        fields->has_first = true;
        return read_token_pair(json, &fields->first_id);
    }
    if (foreloop_text_is(key, "sep")) {
        fields->has_last = true;
        return read_token_pair(json, &fields->last_id);
    }
    if (foreloop_text_is(key, "special_tokens") && is_template)
        return read_span(json, &fields->special_tokens, &fields->special_base);
    if (foreloop_text_is(key, "single") && is_template)
        return read_span(json, &fields->single, &fields->single_base);
    if (foreloop_text_is(key, "processors") && strcmp(fields->type, "Sequence") == 0)
        return read_sequence(json, fields);
    return foreloop_json_skip(json);
}

static foreloop_status add_first_and_last(foreloop_json *json, const field_set *fields) {
    const foreloop_template_item first = {false, fields->first_id}, sequence = {true, 0};
    const foreloop_template_item last = {false, fields->last_id};

    if (!fields->has_first || !fields->has_last)
        return foreloop_json_fail(json, "%s needs the fields \"cls\" and \"sep\"", fields->type);
    FORELOOP_TRY(add_item(fields, first, json->error));
    FORELOOP_TRY(add_item(fields, sequence, json->error));
    return add_item(fields, last, json->error);
}

static foreloop_status add_trim_field(foreloop_json *json, const field_set *fields) {
    FORELOOP_TRY(foreloop_component_require(json, fields->add_prefix_space, fields->type, "add_prefix_space"));
    FORELOOP_TRY(foreloop_component_require(json, fields->trim_offsets, fields->type, "trim_offsets"));
    return fields->trim_offsets ? add_trim(fields, json->error) : FORELOOP_OK;
}

/* ---- Templates --------------------------------------------------------------------------------------------------- */

/* Adds the ids of {"id": ..., "ids": [...], "tokens": [...]}. */
static foreloop_status add_ids(foreloop_json *json, const field_set *fields) {
    foreloop_template_item item = {false, 0};
    foreloop_text key;
    bool more, found = false;

    FORELOOP_TRY(foreloop_json_object(json));
    for (;;) {
        FORELOOP_TRY(foreloop_json_key(json, &key));
        if (!key.text)
            break;
        if (!foreloop_text_is(key, "ids") || found) {
            FORELOOP_TRY(foreloop_json_skip(json));
            continue;
        }
        found = true;
        FORELOOP_TRY(foreloop_json_array(json));
        for (;;) {
            FORELOOP_TRY(foreloop_json_element(json, &more));
            if (!more)
                break;
            FORELOOP_TRY(read_id(json, &item.id));
            FORELOOP_TRY(add_item(fields, item, json->error));
        }
    }
    return found ? FORELOOP_OK : foreloop_json_fail(json, "a template's special token has no field \"ids\"");
}

/* Looks the special token up in the object of all special tokens, and adds its ids. Templates are short. */
static foreloop_status add_special(foreloop_json *json, const field_set *fields, foreloop_text name) {
    foreloop_json tokens;
    foreloop_text key;
    foreloop_status status;
    bool found = false;

    foreloop_json_open(&tokens, fields->arena->allocator, fields->special_tokens.text, fields->special_tokens.length,
                       json->name, json->error);
    tokens.base = fields->special_base;
    status = foreloop_json_object(&tokens);
    while (status == FORELOOP_OK && !found) {
        status = foreloop_json_key(&tokens, &key);
        if (status != FORELOOP_OK || !key.text)
            break;
        found = key.length == name.length && memcmp(key.text, name.text, key.length) == 0;
        status = found ? add_ids(&tokens, fields) : foreloop_json_skip(&tokens);
    }
    foreloop_json_close(&tokens);
    if (status == FORELOOP_OK && !found)
        return foreloop_json_fail(json, "the template's special token \"%.*s\" is not among its special_tokens",
                                  FORELOOP_QUOTED(name.text, name.length));
    return status;
}

/* {"Sequence": {"id": "A", ...}} or {"SpecialToken": {"id": "[CLS]", ...}} */
static foreloop_status read_template_item(foreloop_json *json, const field_set *fields) {
    const foreloop_template_item sequence = {true, 0};
    foreloop_text key, name = {NULL, 0};
    bool is_sequence;

    FORELOOP_TRY(foreloop_json_object(json));
    FORELOOP_TRY(foreloop_json_key(json, &key));
    is_sequence = foreloop_text_is(key, "Sequence");
    if (!is_sequence && !foreloop_text_is(key, "SpecialToken"))
        return foreloop_json_fail(json, "a template's item is {\"Sequence\": ...} or {\"SpecialToken\": ...}");
    FORELOOP_TRY(foreloop_json_object(json));
    for (;;) {
        FORELOOP_TRY(foreloop_json_key(json, &key));
        if (!key.text)
            break;
        if (foreloop_text_is(key, "id"))
            FORELOOP_TRY(foreloop_component_text(json, fields->arena, &name));
        else
            FORELOOP_TRY(foreloop_json_skip(json));
    }
    if (!name.text)
        return foreloop_json_fail(json, "a template's item has no field \"id\"");
    FORELOOP_TRY(foreloop_json_key(json, &key));
    if (key.text)
        return foreloop_json_fail(json, "a template's item has one field");
    if (!is_sequence)
        return add_special(json, fields, name);
    if (!foreloop_text_is(name, "A"))
        return foreloop_component_unsupported(json, "a template for one text can use the sequence A only");
    return add_item(fields, sequence, json->error);
}

static foreloop_status read_single(foreloop_json *json, const field_set *fields) {
    bool more;

    FORELOOP_TRY(foreloop_json_array(json));
    for (;;) {
        FORELOOP_TRY(foreloop_json_element(json, &more));
        if (!more)
            return FORELOOP_OK;
        FORELOOP_TRY(read_template_item(json, fields));
    }
}

static foreloop_status add_template(foreloop_json *json, const field_set *fields) {
    foreloop_json single;
    foreloop_status status;

    if (!fields->single.text || !fields->special_tokens.text)
        return foreloop_json_fail(json, "TemplateProcessing needs the fields \"single\" and \"special_tokens\"");
    foreloop_json_open(&single, fields->arena->allocator, fields->single.text, fields->single.length, json->name,
                       json->error);
    single.base = fields->single_base;
    status = read_single(&single, fields);
    foreloop_json_close(&single);
    if (status == FORELOOP_OK && fields->processor->item_count == 0)
        return foreloop_component_unsupported(json, "an empty template is not supported");
    return status;
}

static foreloop_status add_typed(foreloop_json *json, void *context) {
    const field_set *fields = context;
    const char *type = fields->type;

    if (strcmp(type, "ByteLevel") == 0)
        return add_trim_field(json, fields);
    if (strcmp(type, "BertProcessing") == 0)
        return add_first_and_last(json, fields);
    if (strcmp(type, "RobertaProcessing") == 0) {
        FORELOOP_TRY(add_trim_field(json, fields));
        return add_first_and_last(json, fields);
    }
    if (strcmp(type, "TemplateProcessing") == 0)
        return add_template(json, fields);
    if (strcmp(type, "Sequence") == 0)
        return fields->has_processors ? FORELOOP_OK
                                      : foreloop_json_fail(json, "the Sequence has no field \"processors\"");
    return foreloop_component_unsupported(json, "the post-processor \"%s\" is not supported", type);
}

foreloop_status foreloop_post_processor_read(foreloop_post_processor *processor, foreloop_json *json,
                                             foreloop_arena *arena) {
    char type[FORELOOP_COMPONENT_TYPE_SIZE];
    field_set fields = {.type = type,
                        .processor = processor,
                        .arena = arena,
                        .add_prefix_space = FORELOOP_FLAG_ABSENT,
                        .trim_offsets = FORELOOP_FLAG_ABSENT};

    return foreloop_component_read(json, arena->allocator, type, read_field, add_typed, &fields);
}

/* ---- Offsets ----------------------------------------------------------------------------------------------------- */

/* The end of the character (or maximal invalid prefix) at `position`. */
static size_t next_character(const char *input, size_t length, size_t position) {
    uint32_t code_point;
    size_t size;
    (void)foreloop_utf8_decode(input + position, length - position, &code_point, &size);
    return position + size;
}

/* The begin of the character that ends at `position` > 0. Only a character's first byte begins one of several bytes, so
 * the longest that fits is the right one. */
static size_t previous_character(const char *input, size_t length, size_t position) {
    for (size_t size = position < 4 ? position : 4; size > 1; size--)
        if (next_character(input, length, position - size) == position)
            return position - size;
    return position - 1;
}

static foreloop_span trim_once(const char *input, size_t length, foreloop_span span, uint32_t leading,
                               uint32_t trailing, bool is_first, bool add_prefix_space) {
    size_t begin = span.begin, end = span.end;

    /* One space at the very beginning is not the text's own but the one that was put there. */
    if (add_prefix_space && leading == 1 && (is_first || begin == 0))
        leading = 0;
    for (; leading > 0 && begin < end; leading--)
        begin = next_character(input, length, begin);
    span.begin = (uint32_t)(begin < end ? begin : end);
    for (begin = end; trailing > 0 && begin > 0; trailing--)
        begin = previous_character(input, length, begin);
    if (trailing == 0)
        span.end = (uint32_t)(begin > span.begin ? begin : span.begin);
    return span;
}

foreloop_span foreloop_post_processor_trim(const foreloop_post_processor *processor, const char *input, size_t length,
                                           foreloop_span span, uint32_t leading, uint32_t trailing, bool is_first) {
    for (size_t i = 0; i < processor->trim_count; i++)
        span = trim_once(input, length, span, leading, trailing, is_first, processor->trims[i]);
    return span;
}
