/* Tables of up to 256 floats, looked up in registers. */
#ifndef FORELOOP_KERNELS_CPU_X86_LOOK_UP_F32_AVX512_H
#define FORELOOP_KERNELS_CPU_X86_LOOK_UP_F32_AVX512_H

#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))

INLINE __m512 look_up_32(const float *table, __m512i index) {
    return _mm512_permutex2var_ps(_mm512_loadu_ps(table), index, _mm512_loadu_ps(table + 16));
}
INLINE __m512 look_up_64(const float *table, __m512i index, __mmask16 bit5) {
    return _mm512_mask_blend_ps(bit5, look_up_32(table, index), look_up_32(table + 32, index));
}
INLINE __m512 look_up_128(const float *table, __m512i index, __mmask16 bit5, __mmask16 bit6) {
    return _mm512_mask_blend_ps(bit6, look_up_64(table, index, bit5), look_up_64(table + 64, index, bit5));
}

/* table[the lowest `bits` bits of the index], for 4 to 8 bits, which is faster than a gather. A permutation takes 4
 * bits of its index, or 5 for two registers. */
INLINE __m512 look_up_float(const float *table, __m512i index, int bits) {
    const __mmask16 bit5 = _mm512_test_epi32_mask(index, _mm512_set1_epi32(32));
    const __mmask16 bit6 = _mm512_test_epi32_mask(index, _mm512_set1_epi32(64));
    const __mmask16 bit7 = _mm512_test_epi32_mask(index, _mm512_set1_epi32(128));
    return bits == 4   ? _mm512_permutexvar_ps(index, _mm512_loadu_ps(table))
           : bits == 5 ? look_up_32(table, index)
           : bits == 6 ? look_up_64(table, index, bit5)
           : bits == 7 ? look_up_128(table, index, bit5, bit6)
                       : _mm512_mask_blend_ps(bit7, look_up_128(table, index, bit5, bit6),
                                              look_up_128(table + 128, index, bit5, bit6));
}

#endif
