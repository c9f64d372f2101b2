/* Added tokens: reading them, and cutting the leftmost longest matches out of the text. */
#include "tokenizer/special_tokens.h"
#include "common/sort.h"
#include "tokenizer/unicode.h"
#include <string.h>

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

typedef struct field_set {
    foreloop_arena *arena;
    foreloop_text content;
    foreloop_flag single_word, left_strip, right_strip, normalized, special;
    bool has_id;
} field_set;

static foreloop_status read_field(foreloop_json *json, foreloop_text key, void *context) {
    field_set *fields = context;
    size_t id;

    if (foreloop_text_is(key, "content"))
        return foreloop_component_text(json, fields->arena, &fields->content);
    if (foreloop_text_is(key, "single_word"))
        return foreloop_component_flag(json, &fields->single_word);
    if (foreloop_text_is(key, "lstrip"))
        return foreloop_component_flag(json, &fields->left_strip);
    if (foreloop_text_is(key, "rstrip"))
        return foreloop_component_flag(json, &fields->right_strip);
    if (foreloop_text_is(key, "normalized"))
        return foreloop_component_flag(json, &fields->normalized);
    if (foreloop_text_is(key, "special"))
        return foreloop_component_flag(json, &fields->special);
    if (foreloop_text_is(key, "id")) {
        fields->has_id = true;
        return foreloop_json_size(json, UINT32_MAX, &id);
    }
    return foreloop_json_skip(json);
}

static foreloop_status check_fields(foreloop_json *json, const field_set *fields) {
    const char *type = "an added token";

    if (!fields->content.text)
        return foreloop_json_fail(json, "an added token has no field \"content\"");
    if (!fields->has_id)
        return foreloop_json_fail(json, "an added token has no field \"id\"");
    FORELOOP_TRY(foreloop_component_require(json, fields->single_word, type, "single_word"));
    FORELOOP_TRY(foreloop_component_require(json, fields->left_strip, type, "lstrip"));
    FORELOOP_TRY(foreloop_component_require(json, fields->right_strip, type, "rstrip"));
    FORELOOP_TRY(foreloop_component_require(json, fields->normalized, type, "normalized"));
    return foreloop_component_require(json, fields->special, type, "special");
}

/* The text that a token is searched for by: a copy of what the normalizer makes of its content. */
static foreloop_status normalized_pattern(foreloop_text content, const foreloop_normalizer *normalizer,
                                          foreloop_workspace *work, foreloop_arena *arena, foreloop_text *pattern,
                                          foreloop_error *error) {
    char *copy;

    FORELOOP_TRY(foreloop_workspace_begin(work, content.text, content.length, error));
    FORELOOP_TRY(foreloop_normalizer_run(normalizer, work, error));
    copy = foreloop_arena_text(arena, work->text.bytes, work->text.size);
    if (!copy)
        return foreloop_fail_memory(error, work->text.size + 1, 1, "an added token");
    pattern->text = copy;
    pattern->length = work->text.size;
    return FORELOOP_OK;
}

static foreloop_status read_token(foreloop_added_tokens *added, foreloop_json *json, const foreloop_token_table *model,
                                  const foreloop_normalizer *normalizer, foreloop_workspace *work, uint64_t *next_id) {
    const foreloop_flag absent = FORELOOP_FLAG_ABSENT;
    field_set fields = {.arena = added->arena,
                        .single_word = absent,
                        .left_strip = absent,
                        .right_strip = absent,
                        .normalized = absent,
                        .special = absent};
    foreloop_added_token token = {0};
    uint32_t index, in_model;

    FORELOOP_TRY(foreloop_component_fields(json, read_field, &fields));
    FORELOOP_TRY(check_fields(json, &fields));
    if (fields.content.length == 0)
        return FORELOOP_OK;
    index = foreloop_token_table_find(&added->table, fields.content.text, fields.content.length);
    in_model = foreloop_token_table_find(model, fields.content.text, fields.content.length);
    if (index != FORELOOP_NO_TOKEN)
        token.id = added->table.entries[index].id;
    else if (in_model != FORELOOP_NO_TOKEN)
        token.id = model->entries[in_model].id;
    else if (*next_id <= UINT32_MAX)
        token.id = (uint32_t)(*next_id)++;
    else
        return foreloop_json_fail(json, "there are more tokens than ids");
    token.single_word = fields.single_word == 1;
    token.left_strip = fields.left_strip == 1;
    token.right_strip = fields.right_strip == 1;
    token.normalized = fields.normalized == 1;
    token.special = fields.special == 1;
    token.pattern = fields.content;
    if (token.normalized && normalizer->count > 0)
        FORELOOP_TRY(normalized_pattern(fields.content, normalizer, work, added->arena, &token.pattern, json->error));
    FORELOOP_TRY(foreloop_token_table_put(&added->table, fields.content, token.id, &index, json->error));
    FORELOOP_TRY(foreloop_reserve(added->allocator, &added->tokens, &added->capacity, index, (size_t)index + 1,
                                  sizeof token, json->error));
    added->tokens[index] = token;
    return FORELOOP_OK;
}

static int compare_patterns(const void *left, const void *right, const void *context) {
    const foreloop_added_token *a = *(const foreloop_added_token *const *)left;
    const foreloop_added_token *b = *(const foreloop_added_token *const *)right;
    size_t shorter = a->pattern.length < b->pattern.length ? a->pattern.length : b->pattern.length;
    int order = memcmp(a->pattern.text, b->pattern.text, shorter);

    (void)context;
    if (order != 0)
        return order;
    if (a->pattern.length != b->pattern.length)
        return a->pattern.length < b->pattern.length ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

static foreloop_status build_matcher(const foreloop_added_tokens *added, bool normalized,
                                     foreloop_added_matcher *matcher, foreloop_error *error) {
    matcher->patterns = foreloop_allocate(added->allocator, added->table.count, sizeof *matcher->patterns);
    if (!matcher->patterns)
        return foreloop_fail_memory(error, added->table.count, sizeof *matcher->patterns, "the added tokens");
    for (size_t i = 0; i < added->table.count; i++) {
        const foreloop_added_token *token = &added->tokens[i];
        bool in_force = foreloop_token_table_find_id(&added->table, token->id) == i;
        if (in_force && token->normalized == normalized && token->pattern.length > 0)
            matcher->patterns[matcher->count++] = token;
    }
    foreloop_sort(matcher->patterns, matcher->count, sizeof *matcher->patterns, compare_patterns, NULL);
    matcher->only_first = -1;
    if (matcher->count > 0 &&
        matcher->patterns[0]->pattern.text[0] == matcher->patterns[matcher->count - 1]->pattern.text[0])
        matcher->only_first = (unsigned char)matcher->patterns[0]->pattern.text[0];
    for (size_t byte = 0, i = 0; byte <= 256; byte++) {
        while (i < matcher->count && (unsigned char)matcher->patterns[i]->pattern.text[0] < byte)
            i++;
        matcher->first[byte] = i;
    }
    return FORELOOP_OK;
}

foreloop_status foreloop_added_tokens_read(foreloop_added_tokens *added, foreloop_json *json,
                                           const foreloop_token_table *model, const foreloop_normalizer *normalizer,
                                           foreloop_workspace *work) {
    uint64_t next_id = model->count;
    bool more;

    FORELOOP_TRY(foreloop_json_array(json));
    for (;;) {
        FORELOOP_TRY(foreloop_json_element(json, &more));
        if (!more)
            break;
        FORELOOP_TRY(read_token(added, json, model, normalizer, work, &next_id));
    }
    FORELOOP_TRY(foreloop_token_table_sort(&added->table, json->error));
    FORELOOP_TRY(build_matcher(added, false, &added->raw, json->error));
    return build_matcher(added, true, &added->normalized, json->error);
}

void foreloop_added_tokens_close(foreloop_added_tokens *added) {
    const foreloop_allocator *allocator = added->allocator;
    foreloop_token_table_close(&added->table);
    foreloop_release(allocator, added->tokens);
    foreloop_release(allocator, added->raw.patterns);
    foreloop_release(allocator, added->normalized.patterns);
    memset(added, 0, sizeof *added);
}

/* ---- Matching ---------------------------------------------------------------------------------------------------- */

/* The first pattern in patterns[low .. high), all of which agree up to `depth`, whose byte there is at least `byte`.
 * Patterns that end at `depth` come first. */
static size_t lower_bound(const foreloop_added_matcher *matcher, size_t low, size_t high, size_t depth, int byte) {
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        foreloop_text pattern = matcher->patterns[middle]->pattern;
        int at = depth < pattern.length ? (unsigned char)pattern.text[depth] : -1;
        if (at < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The longest pattern that text[length] begins with, or NULL. */
static const foreloop_added_token *longest_match(const foreloop_added_matcher *matcher, const char *text,
                                                 size_t length) {
    size_t first_byte = (unsigned char)text[0];
    size_t low = matcher->first[first_byte], high = matcher->first[first_byte + 1];
    const foreloop_added_token *longest = NULL;

    for (size_t depth = 1; low < high; depth++) {
        if (matcher->patterns[low]->pattern.length == depth)
            longest = matcher->patterns[low];
        if (depth == length)
            break;
        low = lower_bound(matcher, low, high, depth, (unsigned char)text[depth]);
        high = lower_bound(matcher, low, high, depth, (unsigned char)text[depth] + 1);
    }
    return longest;
}

static bool is_class_at(const foreloop_aligned_text *text, size_t position, uint32_t classes) {
    size_t length;
    return (foreloop_character_classes(foreloop_aligned_decode(text, position, &length)) & classes) != 0;
}

static size_t previous_position(const foreloop_aligned_text *text, size_t position) {
    do
        position--;
    while (((unsigned char)text->bytes[position] & 0xC0) == 0x80);
    return position;
}

static bool is_whole_word(const foreloop_aligned_text *text, foreloop_piece piece, size_t begin, size_t end) {
    if (begin > piece.begin && is_class_at(text, previous_position(text, begin), FORELOOP_CLASS_WORD))
        return false;
    return end >= piece.end || !is_class_at(text, end, FORELOOP_CLASS_WORD);
}

void foreloop_count_edge_spaces(const char *text, size_t length, uint32_t *leading, uint32_t *trailing) {
    const uint32_t byte_level_space = 0x120;
    bool at_start = true;

    *leading = 0;
    *trailing = 0;
    for (size_t position = 0, size; position < length; position += size) {
        uint32_t code_point;
        bool is_space;
        (void)foreloop_utf8_decode(text + position, length - position, &code_point, &size);
        is_space = code_point == byte_level_space || (foreloop_character_classes(code_point) & FORELOOP_CLASS_SPACE);
        at_start = at_start && is_space;
        *leading += at_start;
        *trailing = is_space ? *trailing + 1 : 0;
    }
}

/* Adds the text between two tokens, then the token with the white space that it takes in. `last` is the end of what was
 * added before. */
static foreloop_status add_match(foreloop_workspace *work, foreloop_piece piece, const foreloop_added_token *token,
                                 size_t begin, size_t end, size_t *last, foreloop_error *error) {
    const foreloop_aligned_text *text = &work->text;
    foreloop_piece before = {.begin = (uint32_t)*last}, match = {.is_token = true, .id = token->id};
    size_t length;

    if (token->left_strip) {
        while (begin > *last && is_class_at(text, previous_position(text, begin), FORELOOP_CLASS_SPACE))
            begin = previous_position(text, begin);
        /* A token before this one may have taken the white space already. */
        if (begin < *last)
            begin = *last;
    }
    while (token->right_strip && end < piece.end && is_class_at(text, end, FORELOOP_CLASS_SPACE)) {
        (void)foreloop_aligned_decode(text, end, &length);
        end += length;
    }
    before.end = (uint32_t)begin;
    if (begin >= end) { /* nothing but white space that was taken before */
        *last = end;
        return FORELOOP_OK;
    }
    FORELOOP_TRY(foreloop_workspace_add(work, before, error));
    foreloop_count_edge_spaces(text->bytes + begin, end - begin, &match.leading, &match.trailing);
    match.begin = foreloop_aligned_span(text, begin).begin;
    match.end = foreloop_aligned_span(text, end - 1).end;
    *last = end;
    return foreloop_workspace_add(work, match, error);
}

static foreloop_status split_piece(const void *context, foreloop_workspace *work, foreloop_piece piece,
                                   foreloop_error *error) {
    const foreloop_added_matcher *matcher = context;
    const foreloop_aligned_text *text = &work->text;
    size_t position = piece.begin, last = piece.begin;

    while (position < piece.end) {
        if (matcher->only_first >= 0) {
            const char *next = memchr(text->bytes + position, matcher->only_first, piece.end - position);
            if (!next)
                break;
            position = (size_t)(next - text->bytes);
        }
        const foreloop_added_token *token = longest_match(matcher, text->bytes + position, piece.end - position);
        size_t begin = position;
        if (!token) {
            position++;
            continue;
        }
        position += token->pattern.length;
        if (token->single_word && !is_whole_word(text, piece, begin, position))
            continue;
        FORELOOP_TRY(add_match(work, piece, token, begin, position, &last, error));
    }
    piece.begin = (uint32_t)last;
    return foreloop_workspace_add(work, piece, error);
}

foreloop_status foreloop_added_tokens_split(const foreloop_added_matcher *matcher, foreloop_workspace *work,
                                            foreloop_error *error) {
    if (matcher->count == 0)
        return FORELOOP_OK;
    return foreloop_workspace_split(work, split_piece, matcher, error);
}
