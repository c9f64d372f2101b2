/* Pre-tokenizers: running them. */
#include "tokenizer/pretokenize.h"
#include "tokenizer/gpt2_words.h"
#include "tokenizer/unicode.h"
#include <string.h>

/* ---- Patterns ---------------------------------------------------------------------------------------------------- */

/* The end of the run of characters, from `position` on, whose classes meet `any` of these (or, for 0, none of `none`).
 */
static size_t run_end(const foreloop_aligned_text *text, size_t position, size_t end, uint32_t any, uint32_t none) {
    while (position < end) {
        size_t length;
        uint32_t classes = foreloop_character_classes(foreloop_aligned_decode(text, position, &length));
        if (any ? !(classes & any) : (classes & none) != 0)
            break;
        position += length;
    }
    return position;
}

static uint32_t classes_at(const foreloop_aligned_text *text, size_t position) {
    size_t length;
    return foreloop_character_classes(foreloop_aligned_decode(text, position, &length));
}

/* Finds the first match at or behind `position`: begin .. end, both `limit` when there is none. */
static void find_match(const foreloop_pretokenize_step *step, const foreloop_aligned_text *text, size_t position,
                       size_t limit, size_t *begin, size_t *end) {
    const uint32_t word = FORELOOP_CLASS_WORD, space = FORELOOP_CLASS_SPACE;
    size_t length;

    *begin = limit;
    *end = limit;
    switch (step->match) {
    case FORELOOP_MATCH_CLASSES:
        *begin = run_end(text, position, limit, 0, step->classes);
        if (*begin < limit) {
            (void)foreloop_aligned_decode(text, *begin, &length);
            *end = *begin + length;
        }
        return;
    case FORELOOP_MATCH_LITERAL:
        for (; limit - position >= step->literal.length; position++) {
            if (memcmp(text->bytes + position, step->literal.text, step->literal.length) == 0) {
                *begin = position;
                *end = position + step->literal.length;
                return;
            }
        }
        return;
    case FORELOOP_MATCH_WORDS:
        *begin = run_end(text, position, limit, space, 0);
        if (*begin < limit)
            *end = classes_at(text, *begin) & word ? run_end(text, *begin, limit, word, 0)
                                                   : run_end(text, *begin, limit, 0, word | space);
        return;
    case FORELOOP_MATCH_GPT2:
        *begin = position;
        *end = foreloop_gpt2_word_end(text->bytes, position, limit);
        return;
    }
}

/* ---- Splitting --------------------------------------------------------------------------------------------------- */

typedef struct split_state {
    const foreloop_pretokenize_step *step;
    foreloop_workspace *work;
    size_t first_piece; /* where this piece's parts begin in next_pieces */
    bool previous_match;
    foreloop_piece pending; /* a match that waits for its next neighbour */
    foreloop_error *error;
} split_state;

static bool join_to_last(split_state *splitter, foreloop_piece part) {
    foreloop_pieces *pieces = &splitter->work->next_pieces;
    if (pieces->count == splitter->first_piece)
        return false;
    pieces->items[pieces->count - 1].end = part.end;
    return true;
}

/* Takes the next part of the piece, a match or what lies between two. */
static foreloop_status take_part(split_state *splitter, size_t begin, size_t end, bool is_match) {
    foreloop_piece part = {.begin = (uint32_t)begin, .end = (uint32_t)end};
    bool previous_match = splitter->previous_match, joined = false;

    if (begin == end)
        return FORELOOP_OK;
    is_match = is_match != splitter->step->invert;
    splitter->previous_match = is_match;
    switch (splitter->step->behavior) {
    case FORELOOP_SPLIT_REMOVED:
        joined = is_match;
        break;
    case FORELOOP_SPLIT_ISOLATED:
        break;
    case FORELOOP_SPLIT_CONTIGUOUS:
        joined = is_match == previous_match && join_to_last(splitter, part);
        break;
    case FORELOOP_SPLIT_MERGED_WITH_PREVIOUS:
        joined = is_match && !previous_match && join_to_last(splitter, part);
        break;
    case FORELOOP_SPLIT_MERGED_WITH_NEXT: {
        foreloop_piece pending = splitter->pending;
        splitter->pending = is_match ? part : (foreloop_piece){0};
        if (is_match) /* the one that waited stays alone */
            return foreloop_workspace_add(splitter->work, pending, splitter->error);
        if (pending.end > pending.begin)
            part.begin = pending.begin;
        break;
    }
    }
    return joined ? FORELOOP_OK : foreloop_workspace_add(splitter->work, part, splitter->error);
}

static foreloop_status split_piece(const void *context, foreloop_workspace *work, foreloop_piece piece,
                                   foreloop_error *error) {
    split_state splitter = {.step = context, .work = work, .first_piece = work->next_pieces.count, .error = error};

    for (size_t position = piece.begin; position < piece.end;) {
        size_t begin, end;
        find_match(splitter.step, &work->text, position, piece.end, &begin, &end);
        FORELOOP_TRY(take_part(&splitter, position, begin, false));
        FORELOOP_TRY(take_part(&splitter, begin, end, true));
        position = end;
    }
    return foreloop_workspace_add(work, splitter.pending, error);
}

/* ---- Byte level -------------------------------------------------------------------------------------------------- */

static foreloop_status prefix_space(const void *context, foreloop_workspace *work, size_t begin, size_t end,
                                    foreloop_error *error) {
    (void)context;
    if (begin < end && work->text.bytes[begin] != ' ')
        FORELOOP_TRY(foreloop_aligned_append(&work->next_text, ' ', foreloop_aligned_span(&work->text, begin), error));
    return foreloop_aligned_copy(&work->next_text, &work->text, begin, end, error);
}

uint32_t foreloop_byte_character(unsigned char byte) {
    if (byte <= 0x20)
        return 0x100u + byte;
    if (byte < 0x7F)
        return byte;
    if (byte <= 0xA0)
        return 0x121u + (byte - 0x7Fu);
    return byte == 0xAD ? 0x143u : byte;
}

static foreloop_status map_bytes(const void *context, foreloop_workspace *work, size_t begin, size_t end,
                                 foreloop_error *error) {
    (void)context;
    /* All of these characters are below U+0800. */
    FORELOOP_TRY(foreloop_aligned_reserve(&work->next_text, 2 * (end - begin), error));
    for (size_t position = begin; position < end; position++) {
        char bytes[4];
        size_t size = foreloop_utf8_encode(foreloop_byte_character((unsigned char)work->text.bytes[position]), bytes);
        for (size_t i = 0; i < size; i++)
            foreloop_aligned_put_byte(&work->next_text, bytes[i], foreloop_aligned_span(&work->text, position));
    }
    return FORELOOP_OK;
}

foreloop_status foreloop_pretokenizer_run(const foreloop_pretokenizer *pretokenizer, size_t count,
                                          foreloop_workspace *work, foreloop_error *error) {
    for (size_t i = 0; i < count; i++) {
        const foreloop_pretokenize_step *step = &pretokenizer->steps[i];
        switch (step->kind) {
        case FORELOOP_PRETOKENIZE_SPLIT:
            FORELOOP_TRY(foreloop_workspace_split(work, split_piece, step, error));
            break;
        case FORELOOP_PRETOKENIZE_PREFIX_SPACE:
            FORELOOP_TRY(foreloop_workspace_rewrite(work, prefix_space, NULL, error));
            break;
        case FORELOOP_PRETOKENIZE_BYTES:
            FORELOOP_TRY(foreloop_workspace_rewrite(work, map_bytes, NULL, error));
            break;
        }
    }
    return FORELOOP_OK;
}
