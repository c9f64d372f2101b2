/* The generated tables of character classes and of lower case; unicode.h looks things up in them. */
#ifndef FORELOOP_TOKENIZER_UNICODE_TABLES_H
#define FORELOOP_TOKENIZER_UNICODE_TABLES_H

#include <stddef.h>
#include <stdint.h>

/* Code points from `first` up to the next range's first have these classes (bits of foreloop_character_class). */
typedef struct foreloop_class_range {
    uint32_t first;
    uint16_t classes;
} foreloop_class_range;
extern const uint16_t foreloop_ascii_classes[128];
extern const foreloop_class_range foreloop_class_ranges[];
extern const size_t foreloop_class_range_count;
/* The range that 256 * page lies in, for the planes with the living scripts. */
enum { FORELOOP_CLASS_PAGES = 512 };
extern const uint16_t foreloop_class_pages[FORELOOP_CLASS_PAGES + 1];

/* Every `step`-th code point from `first` to `last` becomes itself + `difference` in lower case. */
typedef struct foreloop_case_range {
    uint32_t first;
    uint32_t last;
    uint32_t step;
    int32_t difference;
} foreloop_case_range;
extern const foreloop_case_range foreloop_case_ranges[];
extern const size_t foreloop_case_range_count;

#endif
