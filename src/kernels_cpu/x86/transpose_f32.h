/* Transposing LANES x LANES floats in registers, in rounds in which 2, 4, 8 and 16 rows come together. */
#ifndef FORELOOP_KERNELS_CPU_X86_TRANSPOSE_F32_H
#define FORELOOP_KERNELS_CPU_X86_TRANSPOSE_F32_H

#include "kernels_cpu/x86/vector.h"

#if defined(__AVX512F__)
#define UNPACK_LOW(a, b)   _mm512_unpacklo_ps(a, b)
#define UNPACK_HIGH(a, b)  _mm512_unpackhi_ps(a, b)
#define SHUFFLE(a, b, how) _mm512_shuffle_ps(a, b, how)
#else
#define UNPACK_LOW(a, b)   _mm256_unpacklo_ps(a, b)
#define UNPACK_HIGH(a, b)  _mm256_unpackhi_ps(a, b)
#define SHUFFLE(a, b, how) _mm256_shuffle_ps(a, b, how)
#endif

/* Element i of rows[j] to element j of rows[i]. */
VECTOR_INLINE void vec_transpose(vec rows[LANES]) {
    vec t[LANES];
    for (int i = 0; i < LANES; i += 2) {
        t[i] = UNPACK_LOW(rows[i], rows[i + 1]);
        t[i + 1] = UNPACK_HIGH(rows[i], rows[i + 1]);
    }
    /* Then rows[4 g + c] holds columns c, c + 4 ... of rows 4 g to 4 g + 3, 128 bits each. */
    for (int i = 0; i < LANES; i += 4) {
        rows[i] = SHUFFLE(t[i], t[i + 2], 0x44);
        rows[i + 1] = SHUFFLE(t[i], t[i + 2], 0xee);
        rows[i + 2] = SHUFFLE(t[i + 1], t[i + 3], 0x44);
        rows[i + 3] = SHUFFLE(t[i + 1], t[i + 3], 0xee);
    }
#if defined(__AVX512F__)
    for (int c = 0; c < 4; c++) {
        t[c] = _mm512_shuffle_f32x4(rows[c], rows[c + 4], 0x88);
        t[c + 4] = _mm512_shuffle_f32x4(rows[c], rows[c + 4], 0xdd);
        t[c + 8] = _mm512_shuffle_f32x4(rows[c + 8], rows[c + 12], 0x88);
        t[c + 12] = _mm512_shuffle_f32x4(rows[c + 8], rows[c + 12], 0xdd);
    }
    for (int i = 0; i < 8; i++) {
        rows[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
        rows[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd);
    }
#else
    for (int c = 0; c < 4; c++) {
        const vec low = rows[c], high = rows[c + 4];
        rows[c] = _mm256_permute2f128_ps(low, high, 0x20);
        rows[c + 4] = _mm256_permute2f128_ps(low, high, 0x31);
    }
#endif
}

#undef UNPACK_LOW
#undef UNPACK_HIGH
#undef SHUFFLE

#endif
