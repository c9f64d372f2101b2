/*
 * Byte-pair encoding of one word. Short words are merged by looking for the best pair anew each time, longer ones over
 * a linked list with the possible merges in a heap.
 *
 * Very long words are merged block by block, so that scratch stays small and in the cache. That is exact: merges happen
 * in order of rank and, of one rank, from left to right; so if merging two neighbouring tokens' symbols by themselves
 * gives the two tokens again, for all neighbours in a row, then no merge of the whole crosses any of their ends, and
 * the row is what the whole gives. Within a block the rule holds; where two blocks meet it is checked, and a block that
 * fails is tried again with more text on both sides.
 */
#include "tokenizer/bpe.h"
#include "common/utf8.h"
#include <string.h>

/* ---- Short words ------------------------------------------------------------------------------------------------- */

size_t foreloop_bpe_merge_short(const foreloop_merge_table *merges, uint32_t *symbols, uint32_t *sizes, size_t count) {
    uint32_t ranks[FORELOOP_BPE_SHORT], merged[FORELOOP_BPE_SHORT]; /* of the pair that starts at each symbol */
    const uint32_t never = UINT32_MAX;

    for (size_t i = 0; i < count; i++) {
        const foreloop_merge *merge = i + 1 < count ? foreloop_merge_find(merges, symbols[i], symbols[i + 1]) : NULL;
        ranks[i] = merge ? merge->rank : never;
        merged[i] = merge ? merge->merged : 0;
        sizes[i] = 1;
    }
    while (count > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < count; i++)
            best = ranks[i] < ranks[best] ? i : best;
        if (ranks[best] == never)
            break;
        symbols[best] = merged[best];
        sizes[best] += sizes[best + 1];
        count--;
        for (size_t i = best + 1; i < count; i++) {
            symbols[i] = symbols[i + 1];
            sizes[i] = sizes[i + 1];
            ranks[i] = ranks[i + 1];
            merged[i] = merged[i + 1];
        }
        ranks[count - 1] = never;
        for (size_t i = best > 0 ? best - 1 : 0; i <= best && i + 1 < count; i++) {
            const foreloop_merge *merge = foreloop_merge_find(merges, symbols[i], symbols[i + 1]);
            ranks[i] = merge ? merge->rank : never;
            merged[i] = merge ? merge->merged : 0;
        }
    }
    return count;
}

/* ---- Longer words ------------------------------------------------------------------------------------------------ */

/* A symbol; those merged into their left neighbour have size 0. Links are indices. */
typedef struct foreloop_bpe_link {
    uint32_t token;
    uint32_t size; /* in symbols of the beginning */
    uint32_t previous;
    uint32_t next;
} link;
#define NO_LINK UINT32_MAX

/* A heap of possible merges: rank and position in one number, so that the lowest rank goes first, then the leftmost. */
static void push_candidate(uint64_t *heap, size_t *count, uint64_t added) {
    size_t at = (*count)++;
    while (at > 0 && heap[(at - 1) / 2] > added) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = added;
}

static uint64_t pop_candidate(uint64_t *heap, size_t *count) {
    uint64_t top = heap[0], last = heap[--*count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < *count; at = child) {
        if (child + 1 < *count && heap[child + 1] < heap[child])
            child++;
        if (heap[child] >= last)
            break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return top;
}

/* Pushes the merge of the symbols at `position` and its next one, if there is one. */
static void consider(const foreloop_merge_table *merges, const link *links, uint32_t position, uint64_t *heap,
                     size_t *count) {
    uint32_t next = position == NO_LINK ? NO_LINK : links[position].next;
    const foreloop_merge *merge =
        next == NO_LINK ? NULL : foreloop_merge_find(merges, links[position].token, links[next].token);
    if (merge)
        push_candidate(heap, count, (uint64_t)merge->rank << 32 | position);
}

static void merge_links(const foreloop_merge_table *merges, link *links, size_t link_count, uint64_t *heap) {
    size_t count = 0;

    for (size_t i = 0; i < link_count; i++)
        consider(merges, links, (uint32_t)i, heap, &count);
    while (count > 0) {
        uint64_t top = pop_candidate(heap, &count);
        uint32_t position = (uint32_t)top;
        link *left = &links[position], *right;
        const foreloop_merge *merge;

        if (left->size == 0 || left->next == NO_LINK)
            continue;
        right = &links[left->next];
        merge = foreloop_merge_find(merges, left->token, right->token);
        if (!merge || merge->rank != top >> 32)
            continue; /* out of date: this pair was another one */
        left->token = merge->merged;
        left->size += right->size;
        left->next = right->next;
        right->size = 0;
        if (left->next != NO_LINK)
            links[left->next].previous = position;
        consider(merges, links, left->previous, heap, &count);
        consider(merges, links, position, heap, &count);
    }
}

/* Merges symbols[count] into scratch->merged and scratch->sizes; the number of tokens goes to *merged_count. */
static foreloop_status merge_block(const foreloop_bpe *bpe, foreloop_bpe_scratch *scratch, const uint32_t *symbols,
                                   size_t count, size_t *merged_count, foreloop_error *error) {
    const foreloop_allocator *allocator = bpe->allocator;
    size_t merged = 0;

    FORELOOP_TRY(foreloop_reserve(allocator, &scratch->merged, &scratch->merged_capacity, 0, count,
                                  sizeof *scratch->merged, error));
    FORELOOP_TRY(
        foreloop_reserve(allocator, &scratch->sizes, &scratch->size_capacity, 0, count, sizeof *scratch->sizes, error));
    if (count <= FORELOOP_BPE_SHORT) {
        if (count > 0)
            memcpy(scratch->merged, symbols, count * sizeof *symbols);
        *merged_count = foreloop_bpe_merge_short(&bpe->merges, scratch->merged, scratch->sizes, count);
        return FORELOOP_OK;
    }
    FORELOOP_TRY(
        foreloop_reserve(allocator, &scratch->links, &scratch->link_capacity, 0, count, sizeof *scratch->links, error));
    /* Every symbol but the last gives a candidate at first, and every merge takes a symbol away and adds two. */
    FORELOOP_TRY(foreloop_reserve(allocator, &scratch->candidates, &scratch->candidate_capacity, 0, 3 * count,
                                  sizeof *scratch->candidates, error));
    for (size_t i = 0; i < count; i++)
        scratch->links[i] = (link){.token = symbols[i],
                                   .size = 1,
                                   .previous = i > 0 ? (uint32_t)(i - 1) : NO_LINK,
                                   .next = i + 1 < count ? (uint32_t)(i + 1) : NO_LINK};
    merge_links(&bpe->merges, scratch->links, count, scratch->candidates);
    for (size_t i = 0; i < count; i++) {
        if (scratch->links[i].size == 0)
            continue;
        scratch->merged[merged] = scratch->links[i].token;
        scratch->sizes[merged++] = scratch->links[i].size;
    }
    *merged_count = merged;
    return FORELOOP_OK;
}

/* ---- Blocks ------------------------------------------------------------------------------------------------------ */

enum { BLOCK = 2048, MARGIN = 8 }; /* symbols; the last 1/MARGIN of a block is left to the next one */

/* The row of tokens that is being made of one word. */
typedef struct block_row {
    foreloop_model_tokens *tokens;
    size_t first_token; /* of the word */
    const uint32_t *symbols, *lengths;
    size_t at;         /* symbols in the tokens so far */
    uint32_t position; /* their bytes */
} block_row;

static uint32_t length_of(const block_row *row, size_t symbol) {
    return row->lengths ? row->lengths[symbol] : 1;
}

/* Takes the last token back. */
static void take_back(block_row *row) {
    const foreloop_model_token *last = &row->tokens->items[--row->tokens->count];
    while (row->position > last->begin)
        row->position -= length_of(row, --row->at);
}

static foreloop_status append(block_row *row, const foreloop_allocator *allocator, uint32_t token, uint32_t size,
                              foreloop_error *error) {
    foreloop_model_token added = {.index = token, .begin = row->position};
    for (uint32_t i = 0; i < size; i++)
        row->position += length_of(row, row->at++);
    added.end = row->position;
    return foreloop_model_add(row->tokens, allocator, added, error);
}

/* Whether the token number `number`, which ends before symbols[at], and one of `size` symbols from there on stay as
 * they are when they are merged by themselves. */
static foreloop_status check_seam(const foreloop_bpe *bpe, foreloop_bpe_scratch *scratch, const block_row *row,
                                  size_t number, size_t at, uint32_t size, bool *holds, foreloop_error *error) {
    const foreloop_model_token *left = &row->tokens->items[number];
    size_t begin = at, count = 0;

    for (uint32_t position = left->end; position > left->begin;)
        position -= length_of(row, --begin);
    FORELOOP_TRY(merge_block(bpe, scratch, row->symbols + begin, at - begin + size, &count, error));
    *holds = count == 2 && scratch->sizes[1] == size;
    return FORELOOP_OK;
}

foreloop_status foreloop_bpe_merge(const foreloop_bpe *bpe, foreloop_bpe_scratch *scratch, const uint32_t *symbols,
                                   const uint32_t *lengths, size_t count, foreloop_model_tokens *tokens,
                                   foreloop_error *error) {
    block_row row = {.tokens = tokens, .first_token = tokens->count, .symbols = symbols, .lengths = lengths};
    size_t block = BLOCK;

    while (row.at < count) {
        const size_t begin = row.at, left = count - begin, size = left < block ? left : block;
        const size_t wanted = size == left ? size : size - size / MARGIN; /* tokens that begin behind are left */
        size_t merged_count = 0, kept = 0, used = 0;
        bool holds = true;

        FORELOOP_TRY(merge_block(bpe, scratch, symbols + begin, size, &merged_count, error));
        for (; kept < merged_count && used + scratch->sizes[kept] <= wanted; kept++)
            used += scratch->sizes[kept];
        for (size_t i = 0; i < kept; i++)
            FORELOOP_TRY(append(&row, bpe->allocator, scratch->merged[i], scratch->sizes[i], error));
        if (kept > 0 && tokens->count - kept > row.first_token)
            FORELOOP_TRY(
                check_seam(bpe, scratch, &row, tokens->count - kept - 1, begin, scratch->sizes[0], &holds, error));
        if (kept > 0 && holds) {
            block = BLOCK;
            continue;
        }
        while (row.at > begin)
            take_back(&row);
        if (!holds)
            while (tokens->count > row.first_token && begin - row.at < block / MARGIN)
                take_back(&row);
        block = block <= count / 4 ? 4 * block : count;
    }
    return FORELOOP_OK;
}

/* ---- Words of characters ----------------------------------------------------------------------------------------- */

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

typedef struct symbol_list {
    uint32_t *symbols, *lengths;
    size_t count;
} symbol_list;

static void add_symbol(symbol_list *list, uint32_t token, uint32_t length) {
    list->symbols[list->count] = token;
    list->lengths[list->count++] = length;
}

/* Whether all bytes of the character have a token of their own; then they are added. */
static bool add_bytes(const foreloop_bpe *bpe, symbol_list *list, foreloop_text character) {
    if (!bpe->byte_fallback)
        return false;
    for (size_t i = 0; i < character.length; i++)
        if (bpe->fallback[(unsigned char)character.text[i]] == FORELOOP_NO_TOKEN)
            return false;
    for (size_t i = 0; i < character.length; i++)
        add_symbol(list, bpe->fallback[(unsigned char)character.text[i]], 1);
    return true;
}

/* One symbol for each character. Characters that neither the vocabulary nor an unknown token covers are dropped, as in
 * Hugging Face tokenizers, where the symbols behind them then lie too far left; and as there an unknown token waits for
 * the next known character, behind the bytes of others. */
static foreloop_status make_symbols(const foreloop_bpe *bpe, foreloop_bpe_scratch *scratch, const char *word,
                                    size_t length, symbol_list *list, foreloop_error *error) {
    uint32_t unknown_length = 0; /* of the unknown token that waits */
    size_t size;

    for (size_t position = 0; position < length; position += size) {
        uint32_t code_point, index;
        foreloop_text character = {word + position, 0};

        (void)foreloop_utf8_decode(word + position, length - position, &code_point, &size);
        character.length = size;
        FORELOOP_TRY(find_character(bpe, scratch, character, code_point, position == 0, position + size == length,
                                    &index, error));
        if (index != FORELOOP_NO_TOKEN) {
            if (unknown_length > 0)
                add_symbol(list, bpe->unknown_index, unknown_length);
            unknown_length = 0;
            add_symbol(list, index, (uint32_t)size);
        } else if (!add_bytes(bpe, list, character) && bpe->unknown.text) {
            if (bpe->unknown_index == FORELOOP_NO_TOKEN)
                return foreloop_model_fail_unknown(bpe->unknown, error);
            if (unknown_length > 0 && !bpe->fuse_unknown) {
                add_symbol(list, bpe->unknown_index, unknown_length);
                unknown_length = 0;
            }
            unknown_length += (uint32_t)size;
        }
    }
    if (unknown_length > 0)
        add_symbol(list, bpe->unknown_index, unknown_length);
    return FORELOOP_OK;
}

foreloop_status foreloop_bpe_tokenize(const foreloop_bpe *bpe, foreloop_bpe_scratch *scratch, const char *word,
                                      size_t length, foreloop_model_tokens *tokens, foreloop_error *error) {
    symbol_list list = {.count = 0};

    if (bpe->ignore_merges) {
        uint32_t whole = foreloop_token_table_find(bpe->vocabulary, word, length);
        if (whole != FORELOOP_NO_TOKEN) {
            const foreloop_model_token token = {whole, 0, (uint32_t)length};
            return foreloop_model_add(tokens, bpe->allocator, token, error);
        }
    }
    FORELOOP_TRY(foreloop_reserve(bpe->allocator, &scratch->symbols, &scratch->symbol_capacity, 0, length,
                                  sizeof *scratch->symbols, error));
    FORELOOP_TRY(foreloop_reserve(bpe->allocator, &scratch->lengths, &scratch->length_capacity, 0, length,
                                  sizeof *scratch->lengths, error));
    list.symbols = scratch->symbols;
    list.lengths = scratch->lengths;
    FORELOOP_TRY(make_symbols(bpe, scratch, word, length, &list, error));
    return foreloop_bpe_merge(bpe, scratch, list.symbols, list.lengths, list.count, tokens, error);
}

void foreloop_bpe_scratch_close(foreloop_bpe_scratch *scratch, const foreloop_allocator *allocator) {
    foreloop_release(allocator, scratch->symbols);
    foreloop_release(allocator, scratch->lengths);
    foreloop_release(allocator, scratch->links);
    foreloop_release(allocator, scratch->candidates);
    foreloop_release(allocator, scratch->merged);
    foreloop_release(allocator, scratch->sizes);
    foreloop_release(allocator, scratch->affixed);
    memset(scratch, 0, sizeof *scratch);
}
