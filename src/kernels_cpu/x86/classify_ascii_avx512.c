/* Classifying ASCII text: one vector, comparisons straight into masks. */
#include "kernels_cpu/classify_ascii.h"
#include <immintrin.h>

static uint64_t between(__m512i text, char first, char last) {
    return _mm512_cmple_epu8_mask(_mm512_sub_epi8(text, _mm512_set1_epi8(first)),
                                  _mm512_set1_epi8((char)(last - first)));
}

void foreloop_classify_ascii_avx512(const char text[FORELOOP_CLASSIFY_BYTES], foreloop_ascii_masks *masks) {
    const __m512i bytes = _mm512_loadu_si512(text);
    masks->letters = between(_mm512_or_si512(bytes, _mm512_set1_epi8(0x20)), 'a', 'z');
    masks->digits = between(bytes, '0', '9');
    masks->blanks = between(bytes, ' ', ' ');
    masks->spaces = masks->blanks | between(bytes, 9, 13);
    masks->beyond = _mm512_movepi8_mask(bytes);
}
