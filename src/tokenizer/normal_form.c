/*
 * NFC, NFD, NFKC and NFKD with alignments. utf8proc decomposes and composes single characters; the order and the
 * composition of whole texts are done here, because the alignment of each character must be kept, and because only the
 * characters that Hugging Face's older Unicode version knows take part (FORELOOP_CLASS_NORMALIZES). Unicode's stability
 * policy makes the two agree on those, whatever utf8proc's version.
 */
#include "tokenizer/normalize.h"
#include "tokenizer/unicode.h"
#include <string.h>
#include <utf8proc.h>

/* `change` says how the character relates to those of the text before: 1 - change of them are used up by it. 0 for a
 * character in another's place, 1 for an additional one, -n for one that n further ones went into. */
typedef struct foreloop_normal_character {
    uint32_t code_point;
    int32_t change;
    uint32_t combining_class;
} character;

/* No decomposition is longer (U+FDFA has 18). */
enum { MAX_DECOMPOSITION = 32 };

static foreloop_status decompose(foreloop_workspace *work, size_t begin, size_t end, bool compatible, size_t *count,
                                 foreloop_error *error) {
    const utf8proc_option_t options =
        compatible ? (utf8proc_option_t)(UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT) : UTF8PROC_DECOMPOSE;

    *count = 0;
    for (size_t position = begin, length; position < end; position += length) {
        utf8proc_int32_t parts[MAX_DECOMPOSITION];
        uint32_t code_point = foreloop_aligned_decode(&work->text, position, &length);
        bool normalizes = (foreloop_character_classes(code_point) & FORELOOP_CLASS_NORMALIZES) != 0;
        utf8proc_ssize_t part_count = 0;

        if (normalizes)
            part_count = utf8proc_decompose_char((utf8proc_int32_t)code_point, parts, MAX_DECOMPOSITION, options, NULL);
        if (part_count <= 0 || part_count > MAX_DECOMPOSITION) {
            parts[0] = (utf8proc_int32_t)code_point;
            part_count = 1;
        }
        FORELOOP_TRY(foreloop_reserve(work->allocator, &work->characters, &work->character_capacity, *count,
                                      *count + MAX_DECOMPOSITION, sizeof *work->characters, error));
        for (utf8proc_ssize_t i = 0; i < part_count; i++) {
            character *part = &work->characters[(*count)++];
            part->code_point = (uint32_t)parts[i];
            part->change = i > 0;
            part->combining_class = 0;
            if (normalizes)
                part->combining_class = (uint32_t)utf8proc_get_property(parts[i])->combining_class & 0xFF;
        }
    }
    return FORELOOP_OK;
}

/* Sorts a run of combining characters by class, stably; by counting, so that hostile runs take linear time. */
static void sort_run(const character *run, character *sorted, size_t count) {
    size_t starts[256] = {0}, total = 0;

    for (size_t i = 0; i < count; i++)
        starts[run[i].combining_class]++;
    for (size_t i = 0; i < 256; i++) {
        size_t size = starts[i];
        starts[i] = total;
        total += size;
    }
    for (size_t i = 0; i < count; i++)
        sorted[starts[run[i].combining_class]++] = run[i];
}

static foreloop_status order(foreloop_workspace *work, size_t count, foreloop_error *error) {
    character *all = work->characters;
    for (size_t begin = 0, end; begin < count; begin = end) {
        bool is_sorted = true;
        end = begin + 1;
        if (all[begin].combining_class == 0)
            continue;
        for (; end < count && all[end].combining_class != 0; end++)
            is_sorted = is_sorted && all[end - 1].combining_class <= all[end].combining_class;
        if (is_sorted)
            continue;
        FORELOOP_TRY(foreloop_reserve(work->allocator, &work->sorted, &work->sorted_capacity, 0, end - begin,
                                      sizeof *work->sorted, error));
        sort_run(all + begin, work->sorted, end - begin);
        memcpy(all + begin, work->sorted, (end - begin) * sizeof *all);
    }
    return FORELOOP_OK;
}

/* The composition of two characters, or 0. */
static uint32_t compose_pair(uint32_t first, uint32_t second) {
    utf8proc_int32_t pair[2] = {(utf8proc_int32_t)first, (utf8proc_int32_t)second};
    /* No character below U+0300 is the second of a composition. */
    if (second < 0x300)
        return 0;
    /* STABLE heeds the exclusions from composition. */
    if (utf8proc_normalize_utf32(pair, 2, (utf8proc_option_t)(UTF8PROC_COMPOSE | UTF8PROC_STABLE)) != 1)
        return 0;
    return foreloop_character_classes((uint32_t)pair[0]) & FORELOOP_CLASS_NORMALIZES ? (uint32_t)pair[0] : 0;
}

/* Canonical composition in place; returns the new count. */
static size_t compose_all(character *all, size_t count) {
    const uint32_t none = UINT32_MAX;
    size_t starter = SIZE_MAX, written = 0;
    uint32_t last_class = none; /* of the characters between the starter and the current one */

    for (size_t i = 0; i < count; i++) {
        character current = all[i];
        bool blocked = starter == SIZE_MAX || (last_class != none && last_class >= current.combining_class);
        uint32_t composed = blocked ? 0 : compose_pair(all[starter].code_point, current.code_point);
        if (composed) {
            all[starter].code_point = composed;
            all[starter].change += current.change - 1;
            continue;
        }
        all[written] = current;
        if (current.combining_class == 0) {
            starter = written;
            last_class = none;
        } else {
            last_class = current.combining_class;
        }
        written++;
    }
    return written;
}

/* Writes the characters with the alignments that their changes give them, by position: where marks were reordered, that
 * is not where they came from, but it is what Hugging Face's offsets say. */
static foreloop_status write(foreloop_workspace *work, size_t begin, size_t end, size_t count, foreloop_error *error) {
    const foreloop_aligned_text *text = &work->text;
    size_t position = begin;

    for (size_t i = 0; i < count; i++) {
        const character *current = &work->characters[i];
        size_t at = current->change > 0 || position >= end ? position - (position > begin) : position;
        FORELOOP_TRY(
            foreloop_aligned_append(&work->next_text, current->code_point, foreloop_aligned_span(text, at), error));
        for (int32_t used = current->change; used <= 0 && position < end; used++) {
            size_t length;
            (void)foreloop_aligned_decode(text, position, &length);
            position += length;
        }
    }
    return FORELOOP_OK;
}

foreloop_status foreloop_normal_form(foreloop_workspace *work, size_t begin, size_t end, bool compose, bool compatible,
                                     foreloop_error *error) {
    size_t count;
    bool ascii = true;

    for (size_t i = begin; i < end; i++)
        ascii = ascii && (unsigned char)work->text.bytes[i] < 0x80;
    if (ascii)
        return foreloop_aligned_copy(&work->next_text, &work->text, begin, end, error);
    FORELOOP_TRY(decompose(work, begin, end, compatible, &count, error));
    FORELOOP_TRY(order(work, count, error));
    if (compose)
        count = compose_all(work->characters, count);
    return write(work, begin, end, count, error);
}
