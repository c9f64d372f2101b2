/* The words of GPT-2's pattern, by hand for any text, by masks for ASCII. */
#include "tokenizer/gpt2_words.h"
#include "common/utf8.h"
#include "tokenizer/unicode.h"
#include <string.h>

/* ---- Any text ---------------------------------------------------------------------------------------------------- */

static uint32_t classes_at(const char *text, size_t position, size_t *length) {
    return foreloop_character_classes(foreloop_utf8_decode_valid(text + position, length));
}

/* The end of one of 's 't 're 've 'm 'll 'd at `position`, or `position`. */
static size_t contraction_end(const char *text, size_t position, size_t end) {
    static const char two_letters[][3] = {"re", "ve", "ll"};
    const char *bytes = text + position;

    if (bytes[0] != '\'' || end - position < 2)
        return position;
    if (bytes[1] == 's' || bytes[1] == 't' || bytes[1] == 'm' || bytes[1] == 'd')
        return position + 2;
    for (size_t i = 0; i < sizeof two_letters / sizeof *two_letters; i++)
        if (end - position >= 3 && memcmp(bytes + 1, two_letters[i], 2) == 0)
            return position + 3;
    return position;
}

/* The end of the run of characters, from `position` on, of one of the classes letter, number and space, or of none of
 * them. */
static size_t run_end(const char *text, size_t position, size_t end, uint32_t class) {
    const uint32_t all = FORELOOP_CLASS_LETTER | FORELOOP_CLASS_NUMBER | FORELOOP_CLASS_SPACE;
    size_t length;
    while (position < end && (classes_at(text, position, &length) & all) == class)
        position += length;
    return position;
}

/* White space up to the last character before a word, which stays with the word; all of it at the end of the piece. */
static size_t space_end(const char *text, size_t position, size_t end) {
    size_t last = position, next = position, length;
    while (next < end && (classes_at(text, next, &length) & FORELOOP_CLASS_SPACE)) {
        last = next;
        next += length;
    }
    return next == end || last == position ? next : last;
}

size_t foreloop_gpt2_word_end(const char *text, size_t position, size_t end) {
    const uint32_t all = FORELOOP_CLASS_LETTER | FORELOOP_CLASS_NUMBER | FORELOOP_CLASS_SPACE;
    const size_t contraction = contraction_end(text, position, end);
    const size_t start = position + (text[position] == ' ');
    size_t length;
    uint32_t class;

    if (contraction > position)
        return contraction;
    class = start < end ? classes_at(text, start, &length) & all : FORELOOP_CLASS_SPACE;
    return class & FORELOOP_CLASS_SPACE ? space_end(text, position, end) : run_end(text, start + length, end, class);
}

/* ---- ASCII ------------------------------------------------------------------------------------------------------- */

void foreloop_gpt2_scanner_begin(foreloop_gpt2_scanner *scanner, foreloop_classify_ascii *classify, const char *text,
                                 size_t begin, size_t end) {
    *scanner =
        (foreloop_gpt2_scanner){.classify = classify, .text = text, .begin = begin, .end = end, .block = SIZE_MAX};
}

/* Finds the starts of words in the block at scanner->block. A run of white space leaves its last character to the word
 * behind; a blank is that word's own begin, other white space a word by itself. Contractions are left to the caller. */
static void read_block(foreloop_gpt2_scanner *scanner) {
    const char *text = scanner->text;
    const size_t block = scanner->block, left = scanner->end - block;
    uint64_t letters_before = 0, digits_before = 0, others_before = 0, blank_before = 0, space_before = 0;
    uint64_t word_behind = 0, others, runs;
    foreloop_ascii_masks masks;

    scanner->is_ascii = false;
    scanner->starts = 0;
    if (left >= FORELOOP_CLASSIFY_BYTES) {
        scanner->classify(text + block, &masks);
    } else {
        char padded[FORELOOP_CLASSIFY_BYTES];
        memset(padded, ' ', sizeof padded);
        memcpy(padded, text + block, left);
        scanner->classify(padded, &masks);
    }
    if (masks.beyond != 0)
        return;
    others = ~(masks.letters | masks.digits | masks.spaces);
    if (block > scanner->begin) {
        const unsigned char before = (unsigned char)text[block - 1];
        const uint32_t classes = before < 0x80 ? foreloop_ascii_classes[before] : 0;
        if (before >= 0x80)
            return;
        letters_before = (classes & FORELOOP_CLASS_LETTER) != 0;
        digits_before = (classes & FORELOOP_CLASS_NUMBER) != 0;
        space_before = (classes & FORELOOP_CLASS_SPACE) != 0;
        blank_before = before == ' ';
        others_before = !(letters_before | digits_before | space_before);
    }
    if (left > FORELOOP_CLASSIFY_BYTES) {
        const unsigned char behind = (unsigned char)text[block + FORELOOP_CLASSIFY_BYTES];
        if (behind >= 0x80)
            return;
        word_behind = !(foreloop_ascii_classes[behind] & FORELOOP_CLASS_SPACE);
    }
    runs = (masks.letters & (masks.letters << 1 | letters_before)) |
           (masks.digits & (masks.digits << 1 | digits_before)) | (others & (others << 1 | others_before)) |
           (masks.blanks << 1 | blank_before);
    scanner->starts = (~masks.spaces & ~runs) | (masks.spaces & ~(masks.spaces << 1 | space_before)) |
                      (masks.spaces & (~masks.spaces >> 1 | word_behind << 63));
    if (left < FORELOOP_CLASSIFY_BYTES)
        scanner->starts &= (UINT64_C(1) << left) - 1;
    scanner->is_ascii = true;
}

/* The first start behind `position`; the piece's end when there is none; `position` where the text on the way is not
 * ASCII. */
static size_t next_start(foreloop_gpt2_scanner *scanner, size_t position) {
    size_t block = position - (position - scanner->begin) % FORELOOP_CLASSIFY_BYTES;
    uint64_t behind = UINT64_MAX << (position - block) << 1; /* two shifts: the sum may be 64 */

    for (; block < scanner->end; block += FORELOOP_CLASSIFY_BYTES, behind = UINT64_MAX) {
        if (scanner->block != block) {
            scanner->block = block;
            read_block(scanner);
        }
        if (!scanner->is_ascii)
            return position;
        if (scanner->starts & behind)
            return block + (size_t)__builtin_ctzll(scanner->starts & behind);
    }
    return scanner->end;
}

size_t foreloop_gpt2_scanner_any(foreloop_gpt2_scanner *scanner, size_t position) {
    const size_t next = next_start(scanner, position);
    if (next == position)
        return foreloop_gpt2_word_end(scanner->text, position, scanner->end);
    if (scanner->text[position] == '\'' && next == position + 1) {
        const size_t contraction = contraction_end(scanner->text, position, scanner->end);
        return contraction > position ? contraction : next;
    }
    return next;
}
