/* One name for each vector operation that linear kernels share between AVX2 and AVX-512. */
#ifndef FORELOOP_KERNELS_CPU_X86_LANES_H
#define FORELOOP_KERNELS_CPU_X86_LANES_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define FORELOOP_INLINE static inline __attribute__((always_inline))

/* Loops around register tiles had better not unroll. */
#if defined(__clang__)
#define FORELOOP_ROLLED _Pragma("clang loop unroll(disable)")
#else
#define FORELOOP_ROLLED _Pragma("GCC unroll 1")
#endif

#if defined(__AVX512F__)
enum { LANES = 16 };
typedef __m512 vec_f32;
typedef __m512i vec_i32;
#define vec_zero_f32()       _mm512_setzero_ps()
#define vec_load_f32(from)   _mm512_loadu_ps(from)
#define vec_store_f32(to, v) _mm512_storeu_ps(to, v)
#define vec_set_f32(x)       _mm512_set1_ps(x)
#define vec_mul_f32(a, b)    _mm512_mul_ps(a, b)
#define vec_fma_f32(a, b, c) _mm512_fmadd_ps(a, b, c)
#define vec_load_i32(from)   _mm512_loadu_si512(from)
#define vec_store_i32(to, v) _mm512_storeu_si512(to, v)
#define vec_set_i32(x)       _mm512_set1_epi32(x)
#define vec_add_i32(a, b)    _mm512_add_epi32(a, b)
#define vec_mul_i32(a, b)    _mm512_mullo_epi32(a, b)
#define vec_pairs_i32(a, b)  _mm512_madd_epi16(a, b) /* a0 b0 + a1 b1 of 16-bit numbers */
#define vec_widen_i16(from)  _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)(from)))
#define vec_f32_of_i32(a)    _mm512_cvtepi32_ps(a)
/* The upper and the lower half of each 32 bits as the upper half of a float32. */
#define vec_upper_half(a) _mm512_castsi512_ps(_mm512_and_si512(a, _mm512_set1_epi32((int)0xffff0000)))
#define vec_lower_half(a) _mm512_castsi512_ps(_mm512_slli_epi32(a, 16))
#else
enum { LANES = 8 };
typedef __m256 vec_f32;
typedef __m256i vec_i32;
#define vec_zero_f32()       _mm256_setzero_ps()
#define vec_load_f32(from)   _mm256_loadu_ps(from)
#define vec_store_f32(to, v) _mm256_storeu_ps(to, v)
#define vec_set_f32(x)       _mm256_set1_ps(x)
#define vec_mul_f32(a, b)    _mm256_mul_ps(a, b)
#define vec_fma_f32(a, b, c) _mm256_fmadd_ps(a, b, c)
#define vec_load_i32(from)   _mm256_loadu_si256((const __m256i *)(const void *)(from))
#define vec_store_i32(to, v) _mm256_storeu_si256((__m256i *)(void *)(to), v)
#define vec_set_i32(x)       _mm256_set1_epi32(x)
#define vec_add_i32(a, b)    _mm256_add_epi32(a, b)
#define vec_mul_i32(a, b)    _mm256_mullo_epi32(a, b)
#define vec_pairs_i32(a, b)  _mm256_madd_epi16(a, b)
#define vec_widen_i16(from)  _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(from)))
#define vec_f32_of_i32(a)    _mm256_cvtepi32_ps(a)
#define vec_upper_half(a)    _mm256_castsi256_ps(_mm256_and_si256(a, _mm256_set1_epi32((int)0xffff0000)))
#define vec_lower_half(a)    _mm256_castsi256_ps(_mm256_slli_epi32(a, 16))
#endif

/* Four bytes to every lane. */
FORELOOP_INLINE vec_i32 vec_spread_i32(const void *from) {
    int32_t bits;
    memcpy(&bits, from, sizeof bits);
    return vec_set_i32(bits);
}

#endif
