/*
 * Vectors of float32 in the registers of the tier that a file is compiled for. The encoder's kernels are written once
 * with them and compiled once for each tier (src/kernels_cpu/meson.build): what differs between AVX2 and AVX-512 are
 * LANES, the number of registers, and the functions below.
 */
#ifndef FORELOOP_KERNELS_CPU_X86_VECTOR_H
#define FORELOOP_KERNELS_CPU_X86_VECTOR_H

#include <foreloop/foreloop.h>
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define VECTOR_INLINE static inline __attribute__((always_inline, unused))
#if defined(__clang__)
#define VECTOR_UNROLL _Pragma("clang loop unroll(full)")
#else
#define VECTOR_UNROLL _Pragma("GCC unroll 16")
#endif

#if defined(__AVX512F__)

#define FORELOOP_X86(name) name##_avx512
#define VECTOR_TIER        FORELOOP_TIER_AVX512
enum { LANES = 16, VECTOR_REGISTERS = 32 };
typedef __m512 vec;

VECTOR_INLINE vec vec_set(float x) {
    return _mm512_set1_ps(x);
}
VECTOR_INLINE vec vec_load(const float *p) {
    return _mm512_loadu_ps(p);
}
VECTOR_INLINE void vec_store(float *p, vec a) {
    _mm512_storeu_ps(p, a);
}
/* The first `count` numbers, fewer than LANES or all; the others are 0, and are not touched in memory. */
VECTOR_INLINE vec vec_load_some(const float *p, size_t count) {
    return _mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1u), p);
}
VECTOR_INLINE void vec_store_some(float *p, vec a, size_t count) {
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << count) - 1u), a);
}
/* The first `count` of a, the others of b. */
VECTOR_INLINE vec vec_join(vec a, vec b, size_t count) {
    return _mm512_mask_blend_ps((__mmask16)((1u << count) - 1u), b, a);
}
VECTOR_INLINE vec vec_add(vec a, vec b) {
    return _mm512_add_ps(a, b);
}
VECTOR_INLINE vec vec_sub(vec a, vec b) {
    return _mm512_sub_ps(a, b);
}
VECTOR_INLINE vec vec_mul(vec a, vec b) {
    return _mm512_mul_ps(a, b);
}
VECTOR_INLINE vec vec_div(vec a, vec b) {
    return _mm512_div_ps(a, b);
}
VECTOR_INLINE vec vec_fma(vec a, vec b, vec c) { /* a b + c */
    return _mm512_fmadd_ps(a, b, c);
}
/* A NaN in b stays one, a NaN in a is lost. */
VECTOR_INLINE vec vec_max(vec a, vec b) {
    return _mm512_max_ps(a, b);
}
VECTOR_INLINE vec vec_min(vec a, vec b) {
    return _mm512_min_ps(a, b);
}
/* To the nearest integer. */
VECTOR_INLINE vec vec_round(vec a) {
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
/* a 2^n for integers n from -126 to 127. */
VECTOR_INLINE vec vec_scale(vec a, vec n) {
    return _mm512_scalef_ps(a, n);
}
VECTOR_INLINE float vec_first(vec a) {
    return _mm512_cvtss_f32(a);
}
/* Pairs of halves, down to one number: a fixed order. */
VECTOR_INLINE float vec_sum(vec a) {
    return _mm512_reduce_add_ps(a);
}
/* Without NaN. */
VECTOR_INLINE float vec_largest(vec a) {
    return _mm512_reduce_max_ps(a);
}

#else

#define FORELOOP_X86(name) name##_avx2
#define VECTOR_TIER        FORELOOP_TIER_AVX2
enum { LANES = 8, VECTOR_REGISTERS = 16 };
typedef __m256 vec;

VECTOR_INLINE vec vec_set(float x) {
    return _mm256_set1_ps(x);
}
VECTOR_INLINE vec vec_load(const float *p) {
    return _mm256_loadu_ps(p);
}
VECTOR_INLINE void vec_store(float *p, vec a) {
    _mm256_storeu_ps(p, a);
}
VECTOR_INLINE __m256i vec_mask(size_t count) {
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), lanes);
}
/* The first `count` numbers, fewer than LANES or all; the others are 0, and are not touched in memory. */
VECTOR_INLINE vec vec_load_some(const float *p, size_t count) {
    return _mm256_maskload_ps(p, vec_mask(count));
}
VECTOR_INLINE void vec_store_some(float *p, vec a, size_t count) {
    _mm256_maskstore_ps(p, vec_mask(count), a);
}
/* The first `count` of a, the others of b. */
VECTOR_INLINE vec vec_join(vec a, vec b, size_t count) {
    return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(vec_mask(count)));
}
VECTOR_INLINE vec vec_add(vec a, vec b) {
    return _mm256_add_ps(a, b);
}
VECTOR_INLINE vec vec_sub(vec a, vec b) {
    return _mm256_sub_ps(a, b);
}
VECTOR_INLINE vec vec_mul(vec a, vec b) {
    return _mm256_mul_ps(a, b);
}
VECTOR_INLINE vec vec_div(vec a, vec b) {
    return _mm256_div_ps(a, b);
}
VECTOR_INLINE vec vec_fma(vec a, vec b, vec c) { /* a b + c */
    return _mm256_fmadd_ps(a, b, c);
}
/* A NaN in b stays one, a NaN in a is lost. */
VECTOR_INLINE vec vec_max(vec a, vec b) {
    return _mm256_max_ps(a, b);
}
VECTOR_INLINE vec vec_min(vec a, vec b) {
    return _mm256_min_ps(a, b);
}
/* To the nearest integer. */
VECTOR_INLINE vec vec_round(vec a) {
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
/* a 2^n for integers n from -126 to 127. */
VECTOR_INLINE vec vec_scale(vec a, vec n) {
    const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_mul_ps(a, _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23)));
}
VECTOR_INLINE float vec_first(vec a) {
    return _mm256_cvtss_f32(a);
}
/* Pairs of halves, down to one number: a fixed order. */
VECTOR_INLINE float vec_sum(vec a) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
/* Without NaN. */
VECTOR_INLINE float vec_largest(vec a) {
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

#endif

#endif
