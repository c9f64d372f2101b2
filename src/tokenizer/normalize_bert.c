/*
 * BertNormalizer in one pass: what its steps make of a character depends on nothing but the character, as long as no
 * combining marks are to be put in order. Where there are, the steps run one after the other (normalize.c).
 */
#include "tokenizer/normalize.h"
#include "tokenizer/unicode.h"
#include <string.h>
#include <utf8proc.h>

bool foreloop_bert_rule_find(foreloop_bert_rule *rule, const foreloop_normalize_step *steps, size_t count) {
    size_t i = 0;
    *rule = (foreloop_bert_rule){.drop = 0};
    rule->clean = i < count && steps[i].kind == FORELOOP_NORMALIZE_BERT_CLEAN;
    i += rule->clean;
    rule->space_cjk = i < count && steps[i].kind == FORELOOP_NORMALIZE_SPACE_CJK;
    i += rule->space_cjk;
    if (i + 1 < count && steps[i].kind == FORELOOP_NORMALIZE_FORM && !steps[i].compose && !steps[i].compatible &&
        steps[i + 1].kind == FORELOOP_NORMALIZE_DROP_CLASSES) {
        rule->drop = steps[i + 1].classes;
        i += 2;
    }
    rule->lowercase = i < count && steps[i].kind == FORELOOP_NORMALIZE_LOWERCASE;
    i += rule->lowercase;
    return count > 0 && i == count;
}

/* Room for what one character may become. */
enum { MOST_PARTS = 32, MOST_BYTES = 2 + MOST_PARTS * 8 };

static void put(foreloop_aligned_text *out, uint32_t code_point, foreloop_span span) {
    char bytes[4];
    const size_t length = foreloop_utf8_encode(code_point, bytes);
    for (size_t i = 0; i < length; i++)
        foreloop_aligned_put_byte(out, bytes[i], span);
}

static void put_part(const foreloop_bert_rule *rule, foreloop_aligned_text *out, uint32_t code_point,
                     foreloop_span span) {
    uint32_t lower[2] = {code_point, 0};
    size_t count = 1;
    if (rule->drop && (foreloop_character_classes(code_point) & rule->drop))
        return;
    if (rule->lowercase)
        count = foreloop_character_lowercase(code_point, lower);
    for (size_t i = 0; i < count; i++)
        put(out, lower[i], span);
}

/* False for a combining mark, whose order would matter. */
static bool put_character(const foreloop_bert_rule *rule, foreloop_aligned_text *out, uint32_t code_point,
                          foreloop_span span) {
    const uint32_t classes = foreloop_character_classes(code_point);
    utf8proc_int32_t parts[MOST_PARTS] = {(utf8proc_int32_t)code_point};
    utf8proc_ssize_t count = 1;

    if (rule->clean && (classes & FORELOOP_CLASS_BERT_REMOVED))
        return true;
    if (rule->clean && (classes & FORELOOP_CLASS_SPACE)) {
        put(out, ' ', span);
        return true;
    }
    if (rule->drop && (classes & FORELOOP_CLASS_NORMALIZES)) {
        if (utf8proc_get_property((utf8proc_int32_t)code_point)->combining_class != 0)
            return false;
        count = utf8proc_decompose_char((utf8proc_int32_t)code_point, parts, MOST_PARTS, UTF8PROC_DECOMPOSE, NULL);
        if (count <= 0 || count > MOST_PARTS)
            return false;
    }
    if (rule->space_cjk && (classes & FORELOOP_CLASS_CJK))
        put(out, ' ', span);
    for (utf8proc_ssize_t i = 0; i < count; i++)
        put_part(rule, out, (uint32_t)parts[i], span);
    if (rule->space_cjk && (classes & FORELOOP_CLASS_CJK))
        put(out, ' ', span);
    return true;
}

/* What ASCII characters become; 0 for those that are dropped. The byte 0 itself stays without clean_text. */
static void fill_ascii(const foreloop_bert_rule *rule, unsigned char table[128], bool kept[128]) {
    for (uint32_t c = 0; c < 128; c++) {
        const uint32_t classes = foreloop_ascii_classes[c];
        kept[c] = !(rule->clean && (classes & FORELOOP_CLASS_BERT_REMOVED));
        table[c] = (unsigned char)c;
        if (rule->clean && (classes & FORELOOP_CLASS_SPACE))
            table[c] = ' ';
        else if (rule->lowercase && c >= 'A' && c <= 'Z')
            table[c] = (unsigned char)(c + ('a' - 'A'));
    }
}

static foreloop_status rewrite(const foreloop_bert_rule *rule, const unsigned char *table, const bool *kept,
                               foreloop_workspace *work, size_t begin, size_t end, bool *done, foreloop_error *error) {
    const foreloop_aligned_text *text = &work->text;
    foreloop_aligned_text *out = &work->next_text;

    FORELOOP_TRY(foreloop_aligned_reserve(out, end - begin, error));
    for (size_t position = begin, length; position < end && *done; position += length) {
        const unsigned char c = (unsigned char)text->bytes[position];
        length = 1;
        if (c < 0x80) {
            const foreloop_span span = text->is_input ? (foreloop_span){(uint32_t)position, (uint32_t)position + 1}
                                                      : text->own_spans[position];
            /* There is room: what other characters take is made up for below. */
            if (kept[c])
                foreloop_aligned_put_byte(out, (char)table[c], span);
            continue;
        }
        FORELOOP_TRY(foreloop_aligned_reserve(out, end - position + MOST_BYTES, error));
        const uint32_t code_point = foreloop_aligned_decode(text, position, &length);
        *done = put_character(rule, out, code_point, foreloop_aligned_span(text, position));
    }
    return FORELOOP_OK;
}

foreloop_status foreloop_bert_rule_run(const foreloop_bert_rule *rule, foreloop_workspace *work, bool *done,
                                       foreloop_error *error) {
    unsigned char table[128];
    bool kept[128];

    fill_ascii(rule, table, kept);
    *done = true;
    foreloop_aligned_clear(&work->next_text);
    work->next_pieces.count = 0;
    for (size_t i = 0; i < work->pieces.count && *done; i++) {
        foreloop_piece piece = work->pieces.items[i];
        const size_t begin = work->next_text.size;
        if (!piece.is_token) {
            FORELOOP_TRY(rewrite(rule, table, kept, work, piece.begin, piece.end, done, error));
            piece.begin = (uint32_t)begin;
            piece.end = (uint32_t)work->next_text.size;
        }
        FORELOOP_TRY(foreloop_workspace_add(work, piece, error));
    }
    if (*done)
        foreloop_workspace_take(work);
    return FORELOOP_OK;
}
