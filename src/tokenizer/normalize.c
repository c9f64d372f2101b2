/* Normalizers: reading them, and all steps but the normal forms. */
#include "tokenizer/normalize.h"
#include "tokenizer/unicode.h"
#include <string.h>

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

static foreloop_status add_step(foreloop_normalizer *normalizer, const foreloop_arena *arena,
                                foreloop_normalize_step step, foreloop_error *error) {
    FORELOOP_TRY(foreloop_reserve(arena->allocator, &normalizer->steps, &normalizer->capacity, normalizer->count,
                                  normalizer->count + 1, sizeof step, error));
    normalizer->steps[normalizer->count++] = step;
    return FORELOOP_OK;
}

typedef struct field_set {
    const char *type;
    foreloop_normalizer *normalizer;
    foreloop_arena *arena;
    foreloop_flag clean_text, handle_chinese_chars, strip_accents, lowercase, strip_left, strip_right;
    foreloop_text pattern, content, prepend;
    bool is_regex;
    bool has_normalizers;
} field_set;

static foreloop_status read_sequence(foreloop_json *json, field_set *fields) {
    bool more;

    if (fields->has_normalizers)
        return foreloop_json_fail(json, "the field \"normalizers\" stands here twice");
    fields->has_normalizers = true;
    FORELOOP_TRY(foreloop_json_array(json));
    for (;;) {
        FORELOOP_TRY(foreloop_json_element(json, &more));
        if (!more)
            return FORELOOP_OK;
        FORELOOP_TRY(foreloop_normalizer_read(fields->normalizer, json, fields->arena));
    }
}

static foreloop_status read_field(foreloop_json *json, foreloop_text key, void *context) {
    field_set *fields = context;

    if (foreloop_text_is(key, "clean_text"))
        return foreloop_component_flag(json, &fields->clean_text);
    if (foreloop_text_is(key, "handle_chinese_chars"))
        return foreloop_component_flag(json, &fields->handle_chinese_chars);
    if (foreloop_text_is(key, "strip_accents") && foreloop_json_peek(json) != FORELOOP_JSON_NULL)
        return foreloop_component_flag(json, &fields->strip_accents);
    if (foreloop_text_is(key, "lowercase"))
        return foreloop_component_flag(json, &fields->lowercase);
    if (foreloop_text_is(key, "strip_left"))
        return foreloop_component_flag(json, &fields->strip_left);
    if (foreloop_text_is(key, "strip_right"))
        return foreloop_component_flag(json, &fields->strip_right);
    if (foreloop_text_is(key, "pattern"))
        return foreloop_component_pattern(json, fields->arena, &fields->pattern, &fields->is_regex);
    if (foreloop_text_is(key, "content"))
        return foreloop_component_text(json, fields->arena, &fields->content);
    if (foreloop_text_is(key, "prepend"))
        return foreloop_component_text(json, fields->arena, &fields->prepend);
    if (foreloop_text_is(key, "normalizers") && strcmp(fields->type, "Sequence") == 0)
        return read_sequence(json, fields);
    return foreloop_json_skip(json);
}

static foreloop_status add_form(const field_set *fields, bool compose, bool compatible, foreloop_error *error) {
    foreloop_normalize_step step = {.kind = FORELOOP_NORMALIZE_FORM, .compose = compose, .compatible = compatible};
    return add_step(fields->normalizer, fields->arena, step, error);
}

static foreloop_status add_drop(const field_set *fields, uint32_t classes, foreloop_error *error) {
    foreloop_normalize_step step = {.kind = FORELOOP_NORMALIZE_DROP_CLASSES, .classes = classes};
    return add_step(fields->normalizer, fields->arena, step, error);
}

static foreloop_status add_plain(const field_set *fields, foreloop_normalize_kind kind, foreloop_error *error) {
    foreloop_normalize_step step = {.kind = kind};
    return add_step(fields->normalizer, fields->arena, step, error);
}

static foreloop_status add_bert(foreloop_json *json, const field_set *fields) {
    /* Where the file does not say, accents are stripped with lower case. */
    bool strip = fields->strip_accents == FORELOOP_FLAG_ABSENT ? fields->lowercase == 1 : fields->strip_accents == 1;

    FORELOOP_TRY(foreloop_component_require(json, fields->clean_text, "BertNormalizer", "clean_text"));
    FORELOOP_TRY(
        foreloop_component_require(json, fields->handle_chinese_chars, "BertNormalizer", "handle_chinese_chars"));
    FORELOOP_TRY(foreloop_component_require(json, fields->lowercase, "BertNormalizer", "lowercase"));
    if (fields->clean_text)
        FORELOOP_TRY(add_plain(fields, FORELOOP_NORMALIZE_BERT_CLEAN, json->error));
    if (fields->handle_chinese_chars)
        FORELOOP_TRY(add_plain(fields, FORELOOP_NORMALIZE_SPACE_CJK, json->error));
    if (strip) {
        FORELOOP_TRY(add_form(fields, false, false, json->error));
        FORELOOP_TRY(add_drop(fields, FORELOOP_CLASS_NONSPACING_MARK, json->error));
    }
    if (fields->lowercase)
        FORELOOP_TRY(add_plain(fields, FORELOOP_NORMALIZE_LOWERCASE, json->error));
    return FORELOOP_OK;
}

static foreloop_status add_strip(foreloop_json *json, const field_set *fields) {
    foreloop_normalize_step step = {.kind = FORELOOP_NORMALIZE_STRIP};

    FORELOOP_TRY(foreloop_component_require(json, fields->strip_left, "Strip", "strip_left"));
    FORELOOP_TRY(foreloop_component_require(json, fields->strip_right, "Strip", "strip_right"));
    step.left = fields->strip_left == 1;
    step.right = fields->strip_right == 1;
    return add_step(fields->normalizer, fields->arena, step, json->error);
}

static foreloop_status add_replace(foreloop_json *json, const field_set *fields) {
    foreloop_normalize_step step = {
        .kind = FORELOOP_NORMALIZE_REPLACE, .pattern = fields->pattern, .content = fields->content};

    if (!fields->pattern.text || !fields->content.text)
        return foreloop_json_fail(json, "Replace needs the fields \"pattern\" and \"content\"");
    if (fields->is_regex || fields->pattern.length == 0)
        return foreloop_component_unsupported(json, "the normalizer Replace with %s is not supported; use a String",
                                              fields->is_regex ? "a Regex pattern" : "an empty pattern");
    return add_step(fields->normalizer, fields->arena, step, json->error);
}

static foreloop_status add_prepend(foreloop_json *json, const field_set *fields) {
    foreloop_normalize_step step = {.kind = FORELOOP_NORMALIZE_PREPEND, .content = fields->prepend};

    if (!fields->prepend.text)
        return foreloop_json_fail(json, "Prepend has no field \"prepend\"");
    if (fields->prepend.length == 0)
        return foreloop_component_unsupported(json, "the normalizer Prepend of an empty text is not supported");
    return add_step(fields->normalizer, fields->arena, step, json->error);
}

static foreloop_status add_typed(foreloop_json *json, void *context) {
    const field_set *fields = context;
    const char *type = fields->type;
    foreloop_error *error = json->error;

    if (strcmp(type, "BertNormalizer") == 0)
        return add_bert(json, fields);
    if (strcmp(type, "NFC") == 0)
        return add_form(fields, true, false, error);
    if (strcmp(type, "NFD") == 0)
        return add_form(fields, false, false, error);
    if (strcmp(type, "NFKC") == 0)
        return add_form(fields, true, true, error);
    if (strcmp(type, "NFKD") == 0)
        return add_form(fields, false, true, error);
    if (strcmp(type, "Lowercase") == 0)
        return add_plain(fields, FORELOOP_NORMALIZE_LOWERCASE, error);
    if (strcmp(type, "StripAccents") == 0)
        return add_drop(fields, FORELOOP_CLASS_MARK, error);
    if (strcmp(type, "Strip") == 0)
        return add_strip(json, fields);
    if (strcmp(type, "Replace") == 0)
        return add_replace(json, fields);
    if (strcmp(type, "Prepend") == 0)
        return add_prepend(json, fields);
    if (strcmp(type, "Sequence") == 0)
        return fields->has_normalizers ? FORELOOP_OK
                                       : foreloop_json_fail(json, "the Sequence has no field \"normalizers\"");
    return foreloop_component_unsupported(json, "the normalizer \"%s\" is not supported", type);
}

foreloop_status foreloop_normalizer_read(foreloop_normalizer *normalizer, foreloop_json *json, foreloop_arena *arena) {
    const foreloop_flag absent = FORELOOP_FLAG_ABSENT;
    char type[FORELOOP_COMPONENT_TYPE_SIZE];
    field_set fields = {.type = type,
                        .normalizer = normalizer,
                        .arena = arena,
                        .clean_text = absent,
                        .handle_chinese_chars = absent,
                        .strip_accents = absent,
                        .lowercase = absent,
                        .strip_left = absent,
                        .strip_right = absent};

    return foreloop_component_read(json, arena->allocator, type, read_field, add_typed, &fields);
}

/* ---- Running ----------------------------------------------------------------------------------------------------- */

static foreloop_status clean(foreloop_workspace *work, size_t begin, size_t end, foreloop_error *error) {
    for (size_t position = begin, length; position < end; position += length) {
        uint32_t code_point = foreloop_aligned_decode(&work->text, position, &length);
        uint32_t classes = foreloop_character_classes(code_point);
        if (classes & FORELOOP_CLASS_BERT_REMOVED)
            continue;
        FORELOOP_TRY(foreloop_aligned_append(&work->next_text, classes & FORELOOP_CLASS_SPACE ? ' ' : code_point,
                                             foreloop_aligned_span(&work->text, position), error));
    }
    return FORELOOP_OK;
}

static foreloop_status space_cjk(foreloop_workspace *work, size_t begin, size_t end, foreloop_error *error) {
    for (size_t position = begin, length; position < end; position += length) {
        uint32_t code_point = foreloop_aligned_decode(&work->text, position, &length);
        bool is_cjk = (foreloop_character_classes(code_point) & FORELOOP_CLASS_CJK) != 0;
        foreloop_span span = foreloop_aligned_span(&work->text, position);
        if (is_cjk)
            FORELOOP_TRY(foreloop_aligned_append(&work->next_text, ' ', span, error));
        FORELOOP_TRY(foreloop_aligned_append(&work->next_text, code_point, span, error));
        if (is_cjk)
            FORELOOP_TRY(foreloop_aligned_append(&work->next_text, ' ', span, error));
    }
    return FORELOOP_OK;
}

static foreloop_status drop_classes(foreloop_workspace *work, size_t begin, size_t end, uint32_t classes,
                                    foreloop_error *error) {
    for (size_t position = begin, length; position < end; position += length) {
        uint32_t code_point = foreloop_aligned_decode(&work->text, position, &length);
        if (!(foreloop_character_classes(code_point) & classes))
            FORELOOP_TRY(foreloop_aligned_append(&work->next_text, code_point,
                                                 foreloop_aligned_span(&work->text, position), error));
    }
    return FORELOOP_OK;
}

static foreloop_status lowercase(foreloop_workspace *work, size_t begin, size_t end, foreloop_error *error) {
    for (size_t position = begin, length; position < end; position += length) {
        uint32_t lower[2];
        size_t count = foreloop_character_lowercase(foreloop_aligned_decode(&work->text, position, &length), lower);
        for (size_t i = 0; i < count; i++)
            FORELOOP_TRY(foreloop_aligned_append(&work->next_text, lower[i],
                                                 foreloop_aligned_span(&work->text, position), error));
    }
    return FORELOOP_OK;
}

static foreloop_status strip(foreloop_workspace *work, size_t begin, size_t end, bool left, bool right,
                             foreloop_error *error) {
    size_t first = end, last = begin; /* from the first character that is not white space to the end of the last one */
    for (size_t position = begin, length; position < end; position += length) {
        uint32_t code_point = foreloop_aligned_decode(&work->text, position, &length);
        if (foreloop_character_classes(code_point) & FORELOOP_CLASS_SPACE)
            continue;
        if (first == end)
            first = position;
        last = position + length;
    }
    if (first == end) /* white space only: nothing is left, from whichever side */
        return left || right ? FORELOOP_OK : foreloop_aligned_copy(&work->next_text, &work->text, begin, end, error);
    return foreloop_aligned_copy(&work->next_text, &work->text, left ? first : begin, right ? last : end, error);
}

static foreloop_status replace(foreloop_workspace *work, size_t begin, size_t end, foreloop_text pattern,
                               foreloop_text content, foreloop_error *error) {
    const char *bytes = work->text.bytes;
    for (size_t position = begin; position < end;) {
        if (end - position >= pattern.length && memcmp(bytes + position, pattern.text, pattern.length) == 0) {
            position += pattern.length;
            /* What is put in stands for the last character of what it replaces. */
            FORELOOP_TRY(foreloop_aligned_append_bytes(&work->next_text, content.text, content.length,
                                                       foreloop_aligned_span(&work->text, position - 1), error));
        } else {
            FORELOOP_TRY(foreloop_aligned_copy(&work->next_text, &work->text, position, position + 1, error));
            position++;
        }
    }
    return FORELOOP_OK;
}

static foreloop_status prepend(foreloop_workspace *work, size_t begin, size_t end, foreloop_text content,
                               foreloop_error *error) {
    if (begin < end)
        FORELOOP_TRY(foreloop_aligned_append_bytes(&work->next_text, content.text, content.length,
                                                   foreloop_aligned_span(&work->text, begin), error));
    return foreloop_aligned_copy(&work->next_text, &work->text, begin, end, error);
}

static foreloop_status run_step(const void *context, foreloop_workspace *work, size_t begin, size_t end,
                                foreloop_error *error) {
    const foreloop_normalize_step *step = context;
    switch (step->kind) {
    case FORELOOP_NORMALIZE_BERT_CLEAN:
        return clean(work, begin, end, error);
    case FORELOOP_NORMALIZE_SPACE_CJK:
        return space_cjk(work, begin, end, error);
    case FORELOOP_NORMALIZE_FORM:
        return foreloop_normal_form(work, begin, end, step->compose, step->compatible, error);
    case FORELOOP_NORMALIZE_DROP_CLASSES:
        return drop_classes(work, begin, end, step->classes, error);
    case FORELOOP_NORMALIZE_LOWERCASE:
        return lowercase(work, begin, end, error);
    case FORELOOP_NORMALIZE_STRIP:
        return strip(work, begin, end, step->left, step->right, error);
    case FORELOOP_NORMALIZE_REPLACE:
        return replace(work, begin, end, step->pattern, step->content, error);
    case FORELOOP_NORMALIZE_PREPEND:
        break;
    }
    return prepend(work, begin, end, step->content, error);
}

foreloop_status foreloop_normalizer_run(const foreloop_normalizer *normalizer, foreloop_workspace *work,
                                        foreloop_error *error) {
    bool done = false;
    if (normalizer->is_bert)
        FORELOOP_TRY(foreloop_bert_rule_run(&normalizer->bert, work, &done, error));
    for (size_t i = 0; i < normalizer->count && !done; i++)
        FORELOOP_TRY(foreloop_workspace_rewrite(work, run_step, &normalizer->steps[i], error));
    return FORELOOP_OK;
}
