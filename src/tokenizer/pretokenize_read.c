/* Pre-tokenizers: reading them from tokenizer.json into a flat list of steps. */
#include "tokenizer/pretokenize.h"
#include "tokenizer/unicode.h"
#include <string.h>

static const char gpt2_pattern[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

typedef struct field_set {
    const char *type;
    foreloop_pretokenizer *pretokenizer;
    foreloop_arena *arena;
    foreloop_flag add_prefix_space, trim_offsets, use_regex, individual_digits, invert;
    foreloop_text pattern;
    bool is_regex, has_pretokenizers, has_behavior;
    foreloop_split_behavior behavior;
} field_set;

static foreloop_status add_step(const field_set *fields, foreloop_pretokenize_step step, foreloop_error *error) {
    foreloop_pretokenizer *list = fields->pretokenizer;
    FORELOOP_TRY(foreloop_reserve(fields->arena->allocator, &list->steps, &list->capacity, list->count, list->count + 1,
                                  sizeof step, error));
    list->steps[list->count++] = step;
    return FORELOOP_OK;
}

static foreloop_status read_behavior(foreloop_json *json, field_set *fields) {
    static const char *const names[] = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"};
    static const foreloop_split_behavior behaviors[] = {FORELOOP_SPLIT_REMOVED, FORELOOP_SPLIT_ISOLATED,
                                                        FORELOOP_SPLIT_MERGED_WITH_PREVIOUS,
                                                        FORELOOP_SPLIT_MERGED_WITH_NEXT, FORELOOP_SPLIT_CONTIGUOUS};
    foreloop_text name;

    FORELOOP_TRY(foreloop_json_string(json, &name));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (foreloop_text_is(name, names[i])) {
            fields->behavior = behaviors[i];
            fields->has_behavior = true;
            return FORELOOP_OK;
        }
    }
    return foreloop_component_unsupported(json, "the split behavior \"%.*s\" is not supported",
                                          FORELOOP_QUOTED(name.text, name.length));
}

static foreloop_status read_sequence(foreloop_json *json, field_set *fields) {
    bool more;

    if (fields->has_pretokenizers)
        return foreloop_json_fail(json, "the field \"pretokenizers\" stands here twice");
    fields->has_pretokenizers = true;
    FORELOOP_TRY(foreloop_json_array(json));
    for (;;) {
        FORELOOP_TRY(foreloop_json_element(json, &more));
        if (!more)
            return FORELOOP_OK;
        FORELOOP_TRY(foreloop_pretokenizer_read(fields->pretokenizer, json, fields->arena));
    }
}

static foreloop_status read_field(foreloop_json *json, foreloop_text key, void *context) {
    field_set *fields = context;

    if (foreloop_text_is(key, "add_prefix_space"))
        return foreloop_component_flag(json, &fields->add_prefix_space);
    if (foreloop_text_is(key, "trim_offsets"))
        return foreloop_component_flag(json, &fields->trim_offsets);
    if (foreloop_text_is(key, "use_regex"))
        return foreloop_component_flag(json, &fields->use_regex);
    if (foreloop_text_is(key, "individual_digits"))
        return foreloop_component_flag(json, &fields->individual_digits);
    if (foreloop_text_is(key, "invert"))
        return foreloop_component_flag(json, &fields->invert);
    if (foreloop_text_is(key, "behavior"))
        return read_behavior(json, fields);
    if (foreloop_text_is(key, "pattern") && strcmp(fields->type, "Split") == 0)
        return foreloop_component_pattern(json, fields->arena, &fields->pattern, &fields->is_regex);
    if (foreloop_text_is(key, "pretokenizers") && strcmp(fields->type, "Sequence") == 0)
        return read_sequence(json, fields);
    return foreloop_json_skip(json);
}

static foreloop_status add_class_split(const field_set *fields, uint32_t classes, foreloop_split_behavior behavior,
                                       foreloop_error *error) {
    foreloop_pretokenize_step step = {
        .kind = FORELOOP_PRETOKENIZE_SPLIT, .match = FORELOOP_MATCH_CLASSES, .classes = classes, .behavior = behavior};
    return add_step(fields, step, error);
}

static foreloop_status add_byte_level(foreloop_json *json, const field_set *fields) {
    const foreloop_pretokenize_step prefix = {.kind = FORELOOP_PRETOKENIZE_PREFIX_SPACE};
    const foreloop_pretokenize_step split = {
        .kind = FORELOOP_PRETOKENIZE_SPLIT, .match = FORELOOP_MATCH_GPT2, .behavior = FORELOOP_SPLIT_ISOLATED};
    const foreloop_pretokenize_step bytes = {.kind = FORELOOP_PRETOKENIZE_BYTES};

    FORELOOP_TRY(foreloop_component_require(json, fields->add_prefix_space, "ByteLevel", "add_prefix_space"));
    FORELOOP_TRY(foreloop_component_require(json, fields->trim_offsets, "ByteLevel", "trim_offsets"));
    if (fields->add_prefix_space)
        FORELOOP_TRY(add_step(fields, prefix, json->error));
    if (fields->use_regex != 0) /* files from before this field existed mean true */
        FORELOOP_TRY(add_step(fields, split, json->error));
    return add_step(fields, bytes, json->error);
}

static foreloop_status add_split(foreloop_json *json, const field_set *fields) {
    foreloop_pretokenize_step step = {.kind = FORELOOP_PRETOKENIZE_SPLIT,
                                      .match = FORELOOP_MATCH_LITERAL,
                                      .behavior = fields->behavior,
                                      .literal = fields->pattern};

    if (!fields->pattern.text || !fields->has_behavior)
        return foreloop_json_fail(json, "Split needs the fields \"pattern\" and \"behavior\"");
    FORELOOP_TRY(foreloop_component_require(json, fields->invert, "Split", "invert"));
    step.invert = fields->invert == 1;
    if (fields->is_regex) {
        if (!foreloop_text_is(fields->pattern, gpt2_pattern))
            return foreloop_component_unsupported(json,
                                                  "the pre-tokenizer Split with the Regex \"%.*s\" is not "
                                                  "supported; use a String, or the pattern of GPT-2",
                                                  FORELOOP_QUOTED(fields->pattern.text, fields->pattern.length));
        step.match = FORELOOP_MATCH_GPT2;
    } else if (fields->pattern.length == 0) {
        return foreloop_component_unsupported(json, "the pre-tokenizer Split with an empty pattern is not supported");
    }
    return add_step(fields, step, json->error);
}

static foreloop_status add_typed(foreloop_json *json, void *context) {
    const field_set *fields = context;
    const foreloop_pretokenize_step words = {.kind = FORELOOP_PRETOKENIZE_SPLIT,
                                             .match = FORELOOP_MATCH_WORDS,
                                             .behavior = FORELOOP_SPLIT_REMOVED,
                                             .invert = true};
    const char *type = fields->type;

    if (strcmp(type, "ByteLevel") == 0)
        return add_byte_level(json, fields);
    if (strcmp(type, "BertPreTokenizer") == 0) {
        FORELOOP_TRY(add_class_split(fields, FORELOOP_CLASS_SPACE, FORELOOP_SPLIT_REMOVED, json->error));
        return add_class_split(fields, FORELOOP_CLASS_PUNCTUATION, FORELOOP_SPLIT_ISOLATED, json->error);
    }
    if (strcmp(type, "Whitespace") == 0)
        return add_step(fields, words, json->error);
    if (strcmp(type, "WhitespaceSplit") == 0)
        return add_class_split(fields, FORELOOP_CLASS_SPACE, FORELOOP_SPLIT_REMOVED, json->error);
    if (strcmp(type, "Punctuation") == 0)
        return add_class_split(fields, FORELOOP_CLASS_PUNCTUATION,
                               fields->has_behavior ? fields->behavior : FORELOOP_SPLIT_ISOLATED, json->error);
    if (strcmp(type, "Digits") == 0) {
        FORELOOP_TRY(foreloop_component_require(json, fields->individual_digits, "Digits", "individual_digits"));
        return add_class_split(fields, FORELOOP_CLASS_NUMERIC,
                               fields->individual_digits ? FORELOOP_SPLIT_ISOLATED : FORELOOP_SPLIT_CONTIGUOUS,
                               json->error);
    }
    if (strcmp(type, "Split") == 0)
        return add_split(json, fields);
    if (strcmp(type, "Sequence") == 0)
        return fields->has_pretokenizers ? FORELOOP_OK
                                         : foreloop_json_fail(json, "the Sequence has no field \"pretokenizers\"");
    return foreloop_component_unsupported(json, "the pre-tokenizer \"%s\" is not supported", type);
}

foreloop_status foreloop_pretokenizer_read(foreloop_pretokenizer *pretokenizer, foreloop_json *json,
                                           foreloop_arena *arena) {
    const foreloop_flag absent = FORELOOP_FLAG_ABSENT;
    char type[FORELOOP_COMPONENT_TYPE_SIZE];
    field_set fields = {.type = type,
                        .pretokenizer = pretokenizer,
                        .arena = arena,
                        .add_prefix_space = absent,
                        .trim_offsets = absent,
                        .use_regex = absent,
                        .individual_digits = absent,
                        .invert = absent};

    return foreloop_component_read(json, arena->allocator, type, read_field, add_typed, &fields);
}
