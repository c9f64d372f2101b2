/* Look-ups in the generated tables: binary search for the last range that starts at or before the code point, for
 * classes among the few ranges of its page. */
#include "tokenizer/unicode.h"

uint32_t foreloop_character_classes_beyond_ascii(uint32_t code_point) {
    const size_t page = code_point >> 8;
    size_t low = foreloop_class_pages[FORELOOP_CLASS_PAGES], high = foreloop_class_range_count;
    if (page < FORELOOP_CLASS_PAGES) {
        low = foreloop_class_pages[page];
        high = (size_t)foreloop_class_pages[page + 1] + 1;
    }
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (foreloop_class_ranges[middle].first <= code_point)
            low = middle;
        else
            high = middle;
    }
    return foreloop_class_ranges[low].classes;
}

size_t foreloop_character_lowercase(uint32_t code_point, uint32_t lower[2]) {
    size_t low = 0, high = foreloop_case_range_count;
    const foreloop_case_range *range;

    lower[0] = code_point;
    if (code_point < 128) {
        if (code_point >= 'A' && code_point <= 'Z')
            lower[0] = code_point + ('a' - 'A');
        return 1;
    }
    /* The only letter whose lower case is two characters: capital I with dot above. */
    if (code_point == 0x130) {
        lower[0] = 'i';
        lower[1] = 0x307;
        return 2;
    }
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (foreloop_case_ranges[middle].first <= code_point)
            low = middle;
        else
            high = middle;
    }
    range = &foreloop_case_ranges[low];
    if (code_point >= range->first && code_point <= range->last && (code_point - range->first) % range->step == 0)
        lower[0] = (uint32_t)((int64_t)code_point + range->difference);
    return 1;
}
