/* Properties of code points as Hugging Face tokenizers sees them (its parts use several Unicode versions). */
#ifndef FORELOOP_TOKENIZER_UNICODE_H
#define FORELOOP_TOKENIZER_UNICODE_H

#include "tokenizer/unicode_tables.h"

/* Bit numbers as in tests/golden/make_unicode_tables.py, which probes each class through the component named here. */
typedef enum foreloop_character_class {
    FORELOOP_CLASS_LETTER = 1 << 0,          /* \p{L} of the ByteLevel pattern */
    FORELOOP_CLASS_NUMBER = 1 << 1,          /* \p{N} of the ByteLevel pattern */
    FORELOOP_CLASS_SPACE = 1 << 2,           /* \s everywhere */
    FORELOOP_CLASS_WORD = 1 << 3,            /* \w of the Whitespace pattern and of single-word added tokens */
    FORELOOP_CLASS_NUMERIC = 1 << 4,         /* Digits */
    FORELOOP_CLASS_PUNCTUATION = 1 << 5,     /* Punctuation, BertPreTokenizer */
    FORELOOP_CLASS_BERT_REMOVED = 1 << 6,    /* BertNormalizer's clean_text: control, unassigned, U+FFFD */
    FORELOOP_CLASS_CJK = 1 << 7,             /* BertNormalizer's handle_chinese_chars */
    FORELOOP_CLASS_MARK = 1 << 8,            /* StripAccents */
    FORELOOP_CLASS_NONSPACING_MARK = 1 << 9, /* BertNormalizer's strip_accents */
    FORELOOP_CLASS_NORMALIZES = 1 << 10      /* decomposes or has a combining class */
} foreloop_character_class;

uint32_t foreloop_character_classes_beyond_ascii(uint32_t code_point);

static inline uint32_t foreloop_character_classes(uint32_t code_point) {
    return code_point < 128 ? foreloop_ascii_classes[code_point] : foreloop_character_classes_beyond_ascii(code_point);
}

/* Writes the lower case of a code point and returns how many code points it has: 1 or 2. */
size_t foreloop_character_lowercase(uint32_t code_point, uint32_t lower[2]);

#endif
