/* Classifying ASCII text: two vectors of 32 bytes, a comparison or two for each class. Reads 64 bytes and writes 40: it
 * is near the rate of the loads. */
#include "kernels_cpu/classify_ascii.h"
#include <immintrin.h>

/* Bytes of `text` within `first` and `last`; signed comparisons leave those from 0x80 on out. */
static uint32_t between(__m256i text, char first, char last) {
    const __m256i above = _mm256_cmpgt_epi8(text, _mm256_set1_epi8((char)(first - 1)));
    const __m256i below = _mm256_cmpgt_epi8(_mm256_set1_epi8((char)(last + 1)), text);
    return (uint32_t)_mm256_movemask_epi8(_mm256_and_si256(above, below));
}

void foreloop_classify_ascii_avx2(const char text[FORELOOP_CLASSIFY_BYTES], foreloop_ascii_masks *masks) {
    foreloop_ascii_masks all = {0};
    for (unsigned i = 0; i < FORELOOP_CLASSIFY_BYTES; i += 32) {
        const __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)(text + i));
        const uint32_t blanks = between(bytes, ' ', ' ');
        all.letters |= (uint64_t)between(_mm256_or_si256(bytes, _mm256_set1_epi8(0x20)), 'a', 'z') << i;
        all.digits |= (uint64_t)between(bytes, '0', '9') << i;
        all.blanks |= (uint64_t)blanks << i;
        all.spaces |= (uint64_t)(blanks | between(bytes, 9, 13)) << i;
        all.beyond |= (uint64_t)(uint32_t)_mm256_movemask_epi8(bytes) << i;
    }
    *masks = all;
}
