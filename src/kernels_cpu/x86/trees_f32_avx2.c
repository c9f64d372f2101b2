/*
 * trees_f32 on AVX2: a register holds the bytes of 32 rows, so that a block is two halves, and leaves are gathered.
 */
#include "kernels_cpu/trees_f32.h"
#include "kernels_cpu/x86/transpose_f32.h"
#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))

/* ---- Transposing ------------------------------------------------------------------------------------------------- */

static void transpose(float *tile, const float *rows, size_t row_stride, size_t row_count, size_t feature_count) {
    const size_t padded = (row_count + FORELOOP_TREES_GROUP - 1) / FORELOOP_TREES_GROUP * FORELOOP_TREES_GROUP;
    const __m256i places = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
    for (size_t feature = 0; feature < FORELOOP_TREES_GROUP; feature += 8) {
        const size_t given = feature_count > feature ? feature_count - feature : 0;
        const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)given), places);
        for (size_t first = 0; first < padded; first += 8) {
            __m256 r[8];
            for (size_t i = 0; i < 8; i++)
                r[i] = first + i < row_count && given > 0
                           ? _mm256_maskload_ps(rows + (first + i) * row_stride + feature, mask)
                           : _mm256_setzero_ps();
            vec_transpose(r);
            for (size_t i = 0; i < 8; i++)
                _mm256_storeu_ps(tile + (feature + i) * FORELOOP_TREES_ROWS + first, r[i]);
        }
    }
}

/* ---- Codes ------------------------------------------------------------------------------------------------------- */

/* The thresholds at places m of one level; up to level 4 the table is in registers. */
INLINE __m256 look_up_threshold(const __m256 t[4], const float *table, int level, __m256i m) {
    if (level < 3)
        return _mm256_permutevar8x32_ps(t[0], m);
    if (level == 3)
        return _mm256_permutevar8x32_ps(t[1], m);
    if (level == 4)
        return _mm256_blendv_ps(_mm256_permutevar8x32_ps(t[2], m), _mm256_permutevar8x32_ps(t[3], m),
                                _mm256_castsi256_ps(_mm256_slli_epi32(m, 28)));
    return _mm256_i32gather_ps(table, m, 4);
}

/* 16 codes from two registers of 8, in order. */
INLINE __m128i pack_codes(const __m256i codes[2]) {
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(codes[0], codes[1]), 0xd8);
    return _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}

INLINE void quantise_groups(int8_t *codes, size_t stride, const float *values, size_t group_count,
                            const foreloop_trees_feature *feature, const float *table, int levels) {
    __m256 t[4];
    for (int i = 0; i < 4 && i << 3 < 1 << levels; i++)
        t[i] = _mm256_loadu_ps(table + 8 * i);
    const __m256i zero = _mm256_set1_epi32((1 << levels) + 128); /* the place of code 0 */
    for (size_t g = 0; g < group_count; g++) {
        __m256 x[2];
        __m256i m[2], right[2];
        for (int i = 0; i < 2; i++) {
            x[i] = _mm256_loadu_ps(values + 16 * g + 8 * (size_t)i);
            m[i] = _mm256_set1_epi32(1);
        }
        for (int level = 0; level < levels; level++)
            for (int i = 0; i < 2; i++) {
                __m256 not_above = _mm256_cmp_ps(look_up_threshold(t, table, level, m[i]), x[i], _CMP_LE_OQ);
                m[i] = _mm256_sub_epi32(_mm256_add_epi32(m[i], m[i]), _mm256_castps_si256(not_above));
            }
        for (int i = 0; i < 2; i++) {
            const __m256 missing = _mm256_cmp_ps(x[i], x[i], _CMP_UNORD_Q);
            m[i] = _mm256_sub_epi32(m[i], zero); /* NaN is below every threshold here */
            right[i] =
                _mm256_blendv_epi8(m[i], _mm256_set1_epi32((int)feature->count - 128), _mm256_castps_si256(missing));
        }
        if (feature->lefts < FORELOOP_TREES_COLUMNS)
            _mm_store_si128((__m128i *)(codes + feature->lefts * stride + 16 * g), pack_codes(m));
        if (feature->rights < FORELOOP_TREES_COLUMNS)
            _mm_store_si128((__m128i *)(codes + feature->rights * stride + 16 * g), pack_codes(right));
    }
}

static void quantise(int8_t *codes, size_t stride, const float *values, size_t group_count,
                     const foreloop_trees_feature *feature, const float *tables) {
    const float *table = tables + feature->table;
    switch (feature->levels) {
    case 4:
        quantise_groups(codes, stride, values, group_count, feature, table, 4);
        break;
    case 5:
        quantise_groups(codes, stride, values, group_count, feature, table, 5);
        break;
    case 6:
        quantise_groups(codes, stride, values, group_count, feature, table, 6);
        break;
    case 7:
        quantise_groups(codes, stride, values, group_count, feature, table, 7);
        break;
    default:
        quantise_groups(codes, stride, values, group_count, feature, table, 8);
    }
}

/* ---- Trees ------------------------------------------------------------------------------------------------------- */

enum { CODES_STRIDE = FORELOOP_TREES_ROWS };
typedef __m256i bytes, decision;

/* sums[i] has rows i, i + 4, i + 8 ...: those in byte i of each 32-bit element of a register of 32 rows. */
typedef __m256 sums[4];

INLINE bytes load_bytes(const int8_t *codes) {
    return _mm256_load_si256((const __m256i *)codes);
}
INLINE bytes load_table(const void *table) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(table));
}
INLINE bytes spread_byte(int byte) {
    return _mm256_set1_epi8((char)byte);
}
INLINE bytes add_bytes(bytes a, bytes b) {
    return _mm256_add_epi8(a, b);
}
INLINE bytes look_up(bytes table, bytes numbers) {
    return _mm256_shuffle_epi8(table, numbers);
}
INLINE decision compare(bytes codes, bytes thresholds) {
    return _mm256_cmpgt_epi8(codes, thresholds);
}
INLINE bytes choose(decision right, bytes if_left, bytes if_right) {
    return _mm256_blendv_epi8(if_left, if_right, right);
}
INLINE bytes add_decision(bytes numbers, decision right, int bit) {
    return _mm256_or_si256(numbers, _mm256_and_si256(right, spread_byte(bit)));
}
INLINE bytes replace(bytes states, bytes piece, bytes exits) {
    return _mm256_blendv_epi8(states, exits, _mm256_cmpeq_epi8(states, piece));
}

INLINE void add_leaves(sums s, const float *leaves, bytes numbers, int depth) {
    (void)depth;
    for (int i = 0; i < 4; i++) {
        const __m256i index = _mm256_and_si256(_mm256_srli_epi32(numbers, 8 * i), _mm256_set1_epi32(255));
        s[i] = _mm256_add_ps(s[i], _mm256_i32gather_ps(leaves, index, 4));
    }
}

#include "kernels_cpu/x86/trees_f32_tests.h"

static void add_to_half(float *half, const int8_t *codes, const foreloop_trees_data *data,
                        const foreloop_trees_tree *trees, size_t tree_count) {
    sums s;
    float stored[8];
    for (int i = 0; i < 4; i++)
        s[i] = _mm256_i32gather_ps(half + i, _mm256_set_epi32(28, 24, 20, 16, 12, 8, 4, 0), 4);
    add_trees(s, codes, data, trees, tree_count);
    for (size_t i = 0; i < 4; i++) {
        _mm256_storeu_ps(stored, s[i]);
        for (size_t j = 0; j < 8; j++)
            half[4 * j + i] = stored[j];
    }
}

static void add(float *all_sums, const int8_t *codes, size_t row_count, const foreloop_trees_data *data,
                const foreloop_trees_tree *trees, size_t tree_count) {
    for (size_t first = 0; first < row_count; first += 32)
        add_to_half(all_sums + first, codes + first, data, trees, tree_count);
}

void foreloop_trees_f32_avx2(foreloop_trees_f32 *kernels) {
    kernels->tier = FORELOOP_TIER_AVX2;
    kernels->costs = (foreloop_trees_costs){.test = 13, .piece_test = 14, .feature = 180, .step = 23};
    kernels->group_stride = FORELOOP_TREES_ROWS;
    kernels->transpose = transpose;
    kernels->quantise = quantise;
    kernels->add = add;
    kernels->add_row = foreloop_trees_f32_add_row_ref; /* gathers of 8 are no faster */
}
