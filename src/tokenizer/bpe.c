/* Byte-pair encoding over a linked list of symbols, with the possible merges in a heap: no quadratic time in one word.
 */
#include "tokenizer/bpe.h"
#include "common/utf8.h"
#include <string.h>

/* ---- Merges ------------------------------------------------------------------------------------------------------ */

static size_t pair_slot(const foreloop_bpe *bpe, uint32_t left, uint32_t right) {
    uint64_t key = ((uint64_t)left << 32 | right) * UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(key >> 32) & (bpe->merge_slots - 1);
}

/* The slot of a pair, or the free one where it would stand. */
static foreloop_bpe_merge *find_slot(const foreloop_bpe *bpe, uint32_t left, uint32_t right) {
    size_t slot = pair_slot(bpe, left, right);
    while (bpe->merges[slot].left != FORELOOP_NO_TOKEN &&
           (bpe->merges[slot].left != left || bpe->merges[slot].right != right))
        slot = (slot + 1) & (bpe->merge_slots - 1);
    return &bpe->merges[slot];
}

/* The merge of a pair, or NULL. */
static const foreloop_bpe_merge *find_merge(const foreloop_bpe *bpe, uint32_t left, uint32_t right) {
    const foreloop_bpe_merge *merge = find_slot(bpe, left, right);
    return merge->left == FORELOOP_NO_TOKEN ? NULL : merge;
}

/* Makes an empty table of merges, or one of twice the size with the same content. */
static foreloop_status grow_merges(foreloop_bpe *bpe, foreloop_error *error) {
    foreloop_bpe_merge *old = bpe->merges;
    size_t old_slots = bpe->merge_slots, slots = old ? old_slots * 2 : 64;
    foreloop_bpe_merge *merges = foreloop_allocate(bpe->allocator, slots, sizeof *merges);

    if (!merges)
        return foreloop_fail_memory(error, slots, sizeof *merges, "the merges");
    for (size_t i = 0; i < slots; i++)
        merges[i].left = FORELOOP_NO_TOKEN;
    bpe->merges = merges;
    bpe->merge_slots = slots;
    for (size_t i = 0; i < old_slots; i++)
        if (old[i].left != FORELOOP_NO_TOKEN)
            *find_slot(bpe, old[i].left, old[i].right) = old[i];
    foreloop_release(bpe->allocator, old);
    return FORELOOP_OK;
}

static foreloop_status add_merge(foreloop_bpe *bpe, foreloop_bpe_merge merge, foreloop_error *error) {
    foreloop_bpe_merge *slot;

    if (bpe->merge_count + 1 > bpe->merge_slots / 2)
        FORELOOP_TRY(grow_merges(bpe, error));
    slot = find_slot(bpe, merge.left, merge.right);
    bpe->merge_count += slot->left == FORELOOP_NO_TOKEN;
    *slot = merge; /* of two merges of one pair the later one counts */
    return FORELOOP_OK;
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

static foreloop_status fail_token(foreloop_json *json, const char *what, foreloop_text token) {
    return foreloop_json_fail(json, "%s \"%.*s\" is not in the vocabulary", what,
                              FORELOOP_QUOTED(token.text, token.length));
}

static foreloop_status check_merge(foreloop_bpe *bpe, foreloop_json *json, foreloop_text left, foreloop_text right,
                                   uint32_t rank) {
    const foreloop_token_table *vocabulary = bpe->vocabulary;
    foreloop_bpe_merge merge = {.rank = rank};
    foreloop_text tail;
    uint64_t hash;

    merge.left = foreloop_token_table_find(vocabulary, left.text, left.length);
    if (merge.left == FORELOOP_NO_TOKEN)
        return fail_token(json, "the merge's left part", left);
    merge.right = foreloop_token_table_find(vocabulary, right.text, right.length);
    if (merge.right == FORELOOP_NO_TOKEN)
        return fail_token(json, "the merge's right part", right);
    if (right.length < bpe->prefix.length)
        return foreloop_json_fail(json, "the merge's right part \"%.*s\" lacks the continuing_subword_prefix",
                                  FORELOOP_QUOTED(right.text, right.length));
    tail.text = right.text + bpe->prefix.length;
    tail.length = right.length - bpe->prefix.length;
    hash = foreloop_hash(foreloop_hash(FORELOOP_HASH_START, left.text, left.length), tail.text, tail.length);
    merge.merged = foreloop_token_table_find_hashed(vocabulary, hash, left, tail);
    if (merge.merged == FORELOOP_NO_TOKEN)
        return foreloop_json_fail(json, "the result of the merge of \"%.*s\" and \"%.*s\" is not in the vocabulary",
                                  FORELOOP_QUOTED(left.text, left.length), FORELOOP_QUOTED(right.text, right.length));
    return add_merge(bpe, merge, json->error);
}

/* A merge as one string, "left right". A "#version" line is no merge and leaves *rank alone. */
static foreloop_status read_merge_text(foreloop_bpe *bpe, foreloop_json *json, uint32_t *rank) {
    foreloop_text line, left, right;
    const char *space;

    FORELOOP_TRY(foreloop_json_string(json, &line));
    if (line.length >= 8 && memcmp(line.text, "#version", 8) == 0)
        return FORELOOP_OK;
    space = memchr(line.text, ' ', line.length);
    if (!space)
        return foreloop_json_fail(json, "a merge is two tokens with a space between them");
    left.text = line.text;
    left.length = (size_t)(space - line.text);
    right.text = space + 1;
    right.length = line.length - left.length - 1;
    if (memchr(right.text, ' ', right.length))
        return foreloop_json_fail(json,
                                  "a merge of tokens with spaces in them must be written as a pair, [\"a\", \"b\"]");
    return check_merge(bpe, json, left, right, (*rank)++);
}

/* A merge as a pair of strings. Both are needed at once, the reader keeps one. */
static foreloop_status read_merge_pair(foreloop_bpe *bpe, foreloop_json *json, foreloop_buffer *left_copy,
                                       uint32_t *rank) {
    foreloop_text left, right;
    bool more;

    FORELOOP_TRY(foreloop_json_array(json));
    FORELOOP_TRY(foreloop_json_element(json, &more));
    if (!more)
        return foreloop_json_fail(json, "a merge has two tokens");
    FORELOOP_TRY(foreloop_json_string(json, &left));
    left_copy->size = 0;
    FORELOOP_TRY(foreloop_buffer_append(left_copy, left.text, left.length, json->error));
    left.text = left_copy->data;
    FORELOOP_TRY(foreloop_json_element(json, &more));
    if (!more)
        return foreloop_json_fail(json, "a merge has two tokens");
    FORELOOP_TRY(foreloop_json_string(json, &right));
    FORELOOP_TRY(check_merge(bpe, json, left, right, (*rank)++));
    FORELOOP_TRY(foreloop_json_element(json, &more));
    return more ? foreloop_json_fail(json, "a merge has two tokens") : FORELOOP_OK;
}

static foreloop_status read_merges(foreloop_bpe *bpe, foreloop_json *json, foreloop_buffer *left_copy) {
    uint32_t rank = 0;
    bool more;

    FORELOOP_TRY(foreloop_json_array(json));
    for (;;) {
        FORELOOP_TRY(foreloop_json_element(json, &more));
        if (!more)
            return FORELOOP_OK;
        if (rank == UINT32_MAX)
            return foreloop_json_fail(json, "there are too many merges");
        if (foreloop_json_peek(json) == FORELOOP_JSON_ARRAY)
            FORELOOP_TRY(read_merge_pair(bpe, json, left_copy, &rank));
        else
            FORELOOP_TRY(read_merge_text(bpe, json, &rank));
    }
}

typedef struct field_set {
    foreloop_bpe *bpe;
    foreloop_arena *arena;
    bool has_merges;
} field_set;

static foreloop_status read_flag(foreloop_json *json, bool *flag) {
    if (foreloop_json_peek(json) == FORELOOP_JSON_NULL)
        return foreloop_json_null(json);
    return foreloop_json_bool(json, flag);
}

static foreloop_status read_dropout(foreloop_json *json) {
    double dropout;
    if (foreloop_json_peek(json) == FORELOOP_JSON_NULL)
        return foreloop_json_null(json);
    FORELOOP_TRY(foreloop_json_double(json, &dropout));
    return dropout == 0 ? FORELOOP_OK
                        : foreloop_component_unsupported(json, "BPE with dropout is not supported; set it to null");
}

static foreloop_status read_byte_fallback(foreloop_json *json) {
    bool byte_fallback = false;
    FORELOOP_TRY(read_flag(json, &byte_fallback));
    return byte_fallback ? foreloop_component_unsupported(json, "BPE with byte_fallback is not supported")
                         : FORELOOP_OK;
}

static foreloop_status read_field(foreloop_json *json, foreloop_text key, void *context) {
    field_set *fields = context;
    foreloop_bpe *bpe = fields->bpe;

    if (foreloop_text_is(key, "unk_token"))
        return foreloop_component_optional_text(json, fields->arena, &bpe->unknown);
    if (foreloop_text_is(key, "continuing_subword_prefix"))
        return foreloop_component_optional_text(json, fields->arena, &bpe->prefix);
    if (foreloop_text_is(key, "end_of_word_suffix"))
        return foreloop_component_optional_text(json, fields->arena, &bpe->suffix);
    if (foreloop_text_is(key, "fuse_unk"))
        return read_flag(json, &bpe->fuse_unknown);
    if (foreloop_text_is(key, "ignore_merges"))
        return read_flag(json, &bpe->ignore_merges);
    if (foreloop_text_is(key, "dropout"))
        return read_dropout(json);
    if (foreloop_text_is(key, "byte_fallback"))
        return read_byte_fallback(json);
    return foreloop_json_skip(json);
}

/* In a second walk, because the merges need the prefix. */
static foreloop_status read_merges_field(foreloop_json *json, foreloop_text key, void *context) {
    field_set *fields = context;
    foreloop_buffer left_copy = {.allocator = fields->bpe->allocator};
    foreloop_status status;

    if (!foreloop_text_is(key, "merges"))
        return foreloop_json_skip(json);
    if (fields->has_merges)
        return foreloop_json_fail(json, "the field \"merges\" stands here twice");
    fields->has_merges = true;
    status = read_merges(fields->bpe, json, &left_copy);
    foreloop_buffer_close(&left_copy);
    return status;
}

foreloop_status foreloop_bpe_read(foreloop_bpe *bpe, foreloop_json *component, const foreloop_token_table *vocabulary,
                                  foreloop_arena *arena) {
    field_set fields = {.bpe = bpe, .arena = arena};

    bpe->allocator = arena->allocator;
    bpe->vocabulary = vocabulary;
    FORELOOP_TRY(grow_merges(bpe, component->error));
    FORELOOP_TRY(foreloop_component_fields(component, read_field, &fields));
    foreloop_component_rewind(component);
    FORELOOP_TRY(foreloop_component_fields(component, read_merges_field, &fields));
    if (!fields.has_merges)
        return foreloop_json_fail(component, "the model BPE has no field \"merges\"");
    bpe->unknown_index = FORELOOP_NO_TOKEN;
    if (bpe->unknown.text)
        bpe->unknown_index = foreloop_token_table_find(vocabulary, bpe->unknown.text, bpe->unknown.length);
    for (uint32_t i = 0; i < sizeof bpe->characters / sizeof *bpe->characters; i++) {
        char bytes[4];
        bpe->characters[i] = foreloop_token_table_find(vocabulary, bytes, foreloop_utf8_encode(i, bytes));
    }
    return FORELOOP_OK;
}

void foreloop_bpe_close(foreloop_bpe *bpe) {
    foreloop_release(bpe->allocator, bpe->merges);
    memset(bpe, 0, sizeof *bpe);
}

/* ---- Tokenizing -------------------------------------------------------------------------------------------------- */

/* A symbol of the word; those merged into their left neighbour have length 0. Links are indices. */
typedef struct foreloop_bpe_symbol {
    uint32_t token;
    uint32_t length; /* bytes of the word */
    uint32_t previous;
    uint32_t next;
} symbol;
#define NO_SYMBOL UINT32_MAX

/* A possible merge of the symbol at a position with its right neighbour; the lowest rank goes first, then the leftmost.
 * It is out of date when that pair does not make this token any more. */
typedef struct foreloop_bpe_candidate {
    uint64_t rank_and_position;
    uint32_t merged;
} candidate;

static void push_candidate(candidate *heap, size_t *count, candidate added) {
    size_t at = (*count)++;
    while (at > 0 && heap[(at - 1) / 2].rank_and_position > added.rank_and_position) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = added;
}

static candidate pop_candidate(candidate *heap, size_t *count) {
    candidate top = heap[0], last = heap[--*count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < *count; at = child) {
        if (child + 1 < *count && heap[child + 1].rank_and_position < heap[child].rank_and_position)
            child++;
        if (heap[child].rank_and_position >= last.rank_and_position)
            break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return top;
}

/* Pushes the merge of the symbols at `position` and its next one, if there is one. */
static void consider(const foreloop_bpe *bpe, const symbol *symbols, uint32_t position, candidate *heap,
                     size_t *count) {
    uint32_t next = position == NO_SYMBOL ? NO_SYMBOL : symbols[position].next;
    const foreloop_bpe_merge *merge;
    if (next == NO_SYMBOL)
        return;
    merge = find_merge(bpe, symbols[position].token, symbols[next].token);
    if (merge) {
        const candidate added = {(uint64_t)merge->rank << 32 | position, merge->merged};
        push_candidate(heap, count, added);
    }
}

static void merge_symbols(const foreloop_bpe *bpe, symbol *symbols, size_t symbol_count, candidate *heap) {
    size_t count = 0;

    for (size_t i = 0; i < symbol_count; i++)
        consider(bpe, symbols, (uint32_t)i, heap, &count);
    while (count > 0) {
        candidate top = pop_candidate(heap, &count);
        uint32_t position = (uint32_t)(top.rank_and_position & UINT32_MAX);
        symbol *left = &symbols[position], *right;
        const foreloop_bpe_merge *merge;

        if (left->length == 0 || left->next == NO_SYMBOL)
            continue;
        right = &symbols[left->next];
        merge = find_merge(bpe, left->token, right->token);
        if (!merge || merge->merged != top.merged)
            continue;
        left->token = top.merged;
        left->length += right->length;
        left->next = right->next;
        right->length = 0;
        if (left->next != NO_SYMBOL)
            symbols[left->next].previous = position;
        consider(bpe, symbols, left->previous, heap, &count);
        consider(bpe, symbols, position, heap, &count);
    }
}

/* The token of one character, with prefix and suffix where they are due, or FORELOOP_NO_TOKEN. */
static foreloop_status find_character(const foreloop_bpe *bpe, foreloop_bpe_scratch *scratch, foreloop_text character,
                                      uint32_t code_point, bool is_first, bool is_last, uint32_t *index,
                                      foreloop_error *error) {
    foreloop_text prefix = is_first ? (foreloop_text){NULL, 0} : bpe->prefix;
    foreloop_text suffix = is_last ? bpe->suffix : (foreloop_text){NULL, 0};
    size_t length = prefix.length + character.length + suffix.length;

    if (length == character.length) {
        *index = code_point < sizeof bpe->characters / sizeof *bpe->characters
                     ? bpe->characters[code_point]
                     : foreloop_token_table_find(bpe->vocabulary, character.text, character.length);
        return FORELOOP_OK;
    }
    FORELOOP_TRY(foreloop_reserve(bpe->allocator, &scratch->affixed, &scratch->affixed_capacity, 0, length, 1, error));
    if (prefix.length > 0)
        memcpy(scratch->affixed, prefix.text, prefix.length);
    memcpy(scratch->affixed + prefix.length, character.text, character.length);
    if (suffix.length > 0)
        memcpy(scratch->affixed + prefix.length + character.length, suffix.text, suffix.length);
    *index = foreloop_token_table_find(bpe->vocabulary, scratch->affixed, length);
    return FORELOOP_OK;
}

static void add_symbol(symbol *symbols, size_t *count, uint32_t token, uint32_t length) {
    symbol *added = &symbols[*count];
    added->token = token;
    added->length = length;
    added->previous = *count > 0 ? (uint32_t)(*count - 1) : NO_SYMBOL;
    added->next = NO_SYMBOL;
    if (*count > 0)
        symbols[*count - 1].next = (uint32_t)*count;
    (*count)++;
}

/* One symbol for each character. Characters that neither the vocabulary nor an unknown token covers are dropped, as in
 * Hugging Face tokenizers, where the symbols behind them then lie too far left. */
static foreloop_status make_symbols(const foreloop_bpe *bpe, foreloop_bpe_scratch *scratch, const char *word,
                                    size_t length, size_t *count, foreloop_error *error) {
    bool previous_unknown = false;
    size_t size;

    *count = 0;
    for (size_t position = 0; position < length; position += size) {
        uint32_t code_point, index;
        foreloop_text character;

        (void)foreloop_utf8_decode(word + position, length - position, &code_point, &size);
        character.text = word + position;
        character.length = size;
        FORELOOP_TRY(find_character(bpe, scratch, character, code_point, position == 0, position + size == length,
                                    &index, error));
        if (index != FORELOOP_NO_TOKEN) {
            previous_unknown = false;
            add_symbol(scratch->symbols, count, index, (uint32_t)size);
        } else if (bpe->unknown.text) {
            if (bpe->unknown_index == FORELOOP_NO_TOKEN)
                return foreloop_model_fail_unknown(bpe->unknown, error);
            if (previous_unknown && bpe->fuse_unknown)
                scratch->symbols[*count - 1].length += (uint32_t)size;
            else
                add_symbol(scratch->symbols, count, bpe->unknown_index, (uint32_t)size);
            previous_unknown = true;
        }
    }
    return FORELOOP_OK;
}

foreloop_status foreloop_bpe_tokenize(const foreloop_bpe *bpe, foreloop_bpe_scratch *scratch, const char *word,
                                      size_t length, foreloop_model_tokens *tokens, foreloop_error *error) {
    size_t count;
    uint32_t position = 0;

    if (bpe->ignore_merges) {
        uint32_t whole = foreloop_token_table_find(bpe->vocabulary, word, length);
        if (whole != FORELOOP_NO_TOKEN) {
            const foreloop_model_token token = {whole, 0, (uint32_t)length};
            return foreloop_model_add(tokens, bpe->allocator, token, error);
        }
    }
    /* Every symbol but the last gives a candidate at first, and every merge takes a symbol away and adds two. */
    FORELOOP_TRY(foreloop_reserve(bpe->allocator, &scratch->symbols, &scratch->symbol_capacity, 0, length,
                                  sizeof *scratch->symbols, error));
    FORELOOP_TRY(foreloop_reserve(bpe->allocator, &scratch->candidates, &scratch->candidate_capacity, 0, 3 * length,
                                  sizeof *scratch->candidates, error));
    FORELOOP_TRY(make_symbols(bpe, scratch, word, length, &count, error));
    merge_symbols(bpe, scratch->symbols, count, scratch->candidates);
    for (size_t i = 0; i < count; i++) {
        const symbol *left = &scratch->symbols[i];
        const foreloop_model_token token = {left->token, position, position + left->length};
        if (left->length == 0)
            continue;
        FORELOOP_TRY(foreloop_model_add(tokens, bpe->allocator, token, error));
        position = token.end;
    }
    return FORELOOP_OK;
}

void foreloop_bpe_scratch_close(foreloop_bpe_scratch *scratch, const foreloop_allocator *allocator) {
    foreloop_release(allocator, scratch->symbols);
    foreloop_release(allocator, scratch->candidates);
    foreloop_release(allocator, scratch->affixed);
    memset(scratch, 0, sizeof *scratch);
}
