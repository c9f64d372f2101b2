/*
 * trees_f32 on AVX-512: the 64 rows of a block are the bytes of one register.
 */
#include "kernels_cpu/x86/trees_f32_avx512.h"
#include "kernels_cpu/trees_f32.h"
#include "kernels_cpu/x86/look_up_f32_avx512.h"
#include "kernels_cpu/x86/transpose_f32.h"
#include <immintrin.h>

/* ---- Transposing ------------------------------------------------------------------------------------------------- */

static void transpose(float *tile, const float *rows, size_t row_stride, size_t row_count, size_t feature_count) {
    const __mmask16 features = (__mmask16)((1u << feature_count) - 1);
    for (size_t first = 0; first < row_count; first += 16) {
        __m512 r[16];
        for (size_t i = 0; i < 16; i++)
            r[i] = first + i < row_count ? _mm512_maskz_loadu_ps(features, rows + (first + i) * row_stride)
                                         : _mm512_setzero_ps();
        vec_transpose(r);
        for (size_t i = 0; i < 16; i++)
            _mm512_storeu_ps(tile + i * FORELOOP_TREES_ROWS + first, r[i]);
    }
}

/* ---- Codes ------------------------------------------------------------------------------------------------------- */

/* The thresholds at places m of one level. */
INLINE __m512 look_up_threshold(const float *table, int level, __m512i m) {
    return level < 4 ? look_up_float(table, m, 4) : look_up_float(table + ((size_t)1 << level), m, level);
}

/* m[g] = the codes of a group of values, NaN being below every threshold. Permutations and comparisons share a port,
 * so that the first two levels, of one threshold and of two, do without permutations. */
INLINE void find_codes(__m512i *m, const __m512 *x, const float *table, int levels, int groups) {
    for (int g = 0; g < groups; g++) {
        const __mmask16 upper = _mm512_cmp_ps_mask(_mm512_set1_ps(table[1]), x[g], _CMP_LE_OQ);
        const __m512 second = _mm512_mask_blend_ps(upper, _mm512_set1_ps(table[2]), _mm512_set1_ps(table[3]));
        m[g] = _mm512_mask_blend_epi32(upper, _mm512_set1_epi32(4), _mm512_set1_epi32(6));
        m[g] = _mm512_mask_or_epi32(m[g], _mm512_cmp_ps_mask(second, x[g], _CMP_LE_OQ), m[g], _mm512_set1_epi32(1));
    }
    for (int level = 2; level < levels; level++)
        for (int g = 0; g < groups; g++) {
            const __mmask16 not_above = _mm512_cmp_ps_mask(look_up_threshold(table, level, m[g]), x[g], _CMP_LE_OQ);
            m[g] = _mm512_add_epi32(m[g], m[g]);
            m[g] = _mm512_mask_or_epi32(m[g], not_above, m[g], _mm512_set1_epi32(1));
        }
    for (int g = 0; g < groups; g++)
        m[g] = _mm512_sub_epi32(m[g], _mm512_set1_epi32((1 << levels) + 128)); /* code 0 stands for -128 */
}

/* The codes of a whole block. */
INLINE void quantise_block(int8_t *codes, const float *values, const foreloop_trees_feature *feature,
                           const float *table, int levels) {
    __m512 x[4];
    __m512i m[4];
    for (int g = 0; g < 4; g++)
        x[g] = _mm512_loadu_ps(values + 16 * g);
    find_codes(m, x, table, levels, 4);
    /* Packing works within 128 bits: rows come out in fours, 0-3, 16-19, 32-35, 48-51, 4-7 ... */
    const __m512i fours = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    const __m512i packed = _mm512_permutexvar_epi32(
        fours, _mm512_packs_epi16(_mm512_packs_epi32(m[0], m[1]), _mm512_packs_epi32(m[2], m[3])));
    if (feature->lefts < FORELOOP_TREES_COLUMNS)
        _mm512_store_si512(codes + feature->lefts * FORELOOP_TREES_ROWS, packed);
    if (feature->rights >= FORELOOP_TREES_COLUMNS)
        return;
    __mmask64 missing = 0;
    for (int g = 0; g < 4; g++)
        missing |= (__mmask64)_mm512_cmp_ps_mask(x[g], x[g], _CMP_UNORD_Q) << 16 * g;
    _mm512_store_si512(codes + feature->rights * FORELOOP_TREES_ROWS,
                       _mm512_mask_blend_epi8(missing, packed, _mm512_set1_epi8((char)(feature->count - 128))));
}

/* The codes of one group of rows. */
INLINE void quantise_group(int8_t *codes, size_t stride, const float *values, const foreloop_trees_feature *feature,
                           const float *table, int levels) {
    const __m512 x = _mm512_loadu_ps(values);
    __m512i m;
    find_codes(&m, &x, table, levels, 1);
    if (feature->lefts < FORELOOP_TREES_COLUMNS)
        _mm_store_si128((__m128i *)(codes + feature->lefts * stride), _mm512_cvtepi32_epi8(m));
    m = _mm512_mask_mov_epi32(m, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), _mm512_set1_epi32((int)feature->count - 128));
    if (feature->rights < FORELOOP_TREES_COLUMNS)
        _mm_store_si128((__m128i *)(codes + feature->rights * stride), _mm512_cvtepi32_epi8(m));
}

INLINE void quantise_levels(int8_t *codes, size_t stride, const float *values, size_t group_count,
                            const foreloop_trees_feature *feature, const float *table, int levels) {
    if (group_count == 4)
        quantise_block(codes, values, feature, table, levels);
    else
        for (size_t g = 0; g < group_count; g++)
            quantise_group(codes + 16 * g, stride, values + 16 * g, feature, table, levels);
}

static void quantise(int8_t *codes, size_t stride, const float *values, size_t group_count,
                     const foreloop_trees_feature *feature, const float *tables) {
    const float *table = tables + feature->table;
    switch (feature->levels) {
    case 4:
        quantise_levels(codes, stride, values, group_count, feature, table, 4);
        break;
    case 5:
        quantise_levels(codes, stride, values, group_count, feature, table, 5);
        break;
    case 6:
        quantise_levels(codes, stride, values, group_count, feature, table, 6);
        break;
    case 7:
        quantise_levels(codes, stride, values, group_count, feature, table, 7);
        break;
    default:
        quantise_levels(codes, stride, values, group_count, feature, table, 8);
    }
}

/* ---- Trees ------------------------------------------------------------------------------------------------------- */

enum { CODES_STRIDE = FORELOOP_TREES_ROWS };
typedef __m512i bytes;
typedef __mmask64 decision;

/* sums[i] has rows i, i + 4, i + 8 ...: those in byte i of each 32-bit element of a register of 64 rows. */
typedef __m512 sums[4];

INLINE bytes load_bytes(const int8_t *codes) {
    return _mm512_load_si512(codes);
}
INLINE bytes load_table(const void *table) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128(table));
}
INLINE bytes spread_byte(int byte) {
    return _mm512_set1_epi8((char)byte);
}
INLINE bytes add_bytes(bytes a, bytes b) {
    return _mm512_add_epi8(a, b);
}
INLINE bytes look_up(bytes table, bytes numbers) {
    return _mm512_shuffle_epi8(table, numbers);
}
INLINE decision compare(bytes codes, bytes thresholds) {
    return _mm512_cmpgt_epi8_mask(codes, thresholds);
}
INLINE bytes choose(decision right, bytes if_left, bytes if_right) {
    return _mm512_mask_mov_epi8(if_left, right, if_right);
}
INLINE bytes add_decision(bytes numbers, decision right, int bit) {
    return _mm512_mask_add_epi8(numbers, right, numbers, spread_byte(bit));
}
INLINE bytes replace(bytes states, bytes piece, bytes exits) {
    return _mm512_mask_mov_epi8(states, _mm512_cmpeq_epi8_mask(states, piece), exits);
}

INLINE void add_leaves(sums s, const float *leaves, bytes numbers, int depth) {
    for (int i = 0; i < 4; i++)
        s[i] = _mm512_add_ps(
            s[i], look_up_float(leaves, _mm512_srli_epi32(numbers, (unsigned)(8 * i)), depth > 4 ? depth : 4));
}

#include "kernels_cpu/x86/trees_f32_tests.h"

static void add(float *all_sums, const int8_t *codes, size_t row_count, const foreloop_trees_data *data,
                const foreloop_trees_tree *trees, size_t tree_count) {
    if (row_count <= FORELOOP_TREES_GROUP) {
        foreloop_trees_f32_avx512_add_group(all_sums, codes, data, trees, tree_count);
        return;
    }
    const __m512i places = _mm512_slli_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0), 2);
    sums s;
    for (int i = 0; i < 4; i++)
        s[i] = _mm512_i32gather_ps(places, all_sums + i, 4);
    add_trees(s, codes, data, trees, tree_count);
    for (int i = 0; i < 4; i++)
        _mm512_i32scatter_ps(all_sums + i, places, s[i], 4);
}

/* ---- A single row ------------------------------------------------------------------------------------------------ */

/* Of 16 neighbouring trees, one in a lane: where their roots are, and which node each walk has come to. */
typedef struct walks {
    __m512i roots, current;
} walks;

/* Values and words of the nodes of all lanes. */
INLINE void load_nodes(const walks *w, const foreloop_trees_node *nodes, __m512 *values, __m512i *words) {
    const __m512i index = _mm512_add_epi32(w->roots, w->current);
    const __m512i low = _mm512_i32gather_epi64(_mm512_castsi512_si256(index), nodes, 8);
    const __m512i high = _mm512_i32gather_epi64(_mm512_extracti64x4_epi64(index, 1), nodes, 8);
    const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    *values = _mm512_castsi512_ps(_mm512_permutex2var_epi32(low, even, high));
    *words = _mm512_permutex2var_epi32(low, _mm512_add_epi32(even, _mm512_set1_epi32(1)), high);
}

/* Tells which walks have not been at a leaf before. */
INLINE __mmask16 step(walks *w, const foreloop_trees_node *nodes, const float *row) {
    __m512 values;
    __m512i words;
    load_nodes(w, nodes, &values, &words);
    const __m512 x = _mm512_i32gather_ps(_mm512_srli_epi32(words, FORELOOP_TREES_FEATURE_SHIFT), row, 4);
    const __mmask16 missing_left = _mm512_mask_test_epi32_mask(_mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), words,
                                                               _mm512_set1_epi32(FORELOOP_TREES_DEFAULT_LEFT));
    const __mmask16 split = _mm512_testn_epi32_mask(words, _mm512_set1_epi32(FORELOOP_TREES_IS_LEAF));
    const __mmask16 not_less = _mm512_mask_cmp_ps_mask(split, x, values, _CMP_NLT_UQ);
    w->current = _mm512_and_si512(words, _mm512_set1_epi32(FORELOOP_TREES_LEFT));
    w->current =
        _mm512_mask_add_epi32(w->current, _kandn_mask16(missing_left, not_less), w->current, _mm512_set1_epi32(1));
    return split;
}

/* Walks of `groups` times 16 trees, of which tree_count are there. */
INLINE float add_row_groups(float sum, const float *row, const foreloop_trees_node *nodes, const uint32_t *roots,
                            size_t tree_count, unsigned depth, int groups) {
    walks w[4];
    float leaves[64];
    for (int g = 0; g < groups; g++) {
        const __mmask16 there = (__mmask16)(tree_count < 16 ? (1u << tree_count) - 1 : 0xffff);
        w[g].roots = _mm512_maskz_loadu_epi32(there, roots + 16 * g);
        w[g].current = _mm512_setzero_si512();
    }
    for (unsigned on_the_way = 1; depth > 0 && on_the_way; depth--) {
        on_the_way = 0;
        for (int g = 0; g < groups; g++)
            on_the_way |= step(&w[g], nodes, row);
    }
    for (int g = 0; g < groups; g++)
        _mm512_storeu_ps(leaves + 16 * g, _mm512_i32gather_ps(_mm512_add_epi32(w[g].roots, w[g].current), nodes, 8));
    for (size_t i = 0; i < tree_count; i++)
        sum += leaves[i];
    return sum;
}

static float add_row(float sum, const float *row, const foreloop_trees_node *nodes, const uint32_t *roots,
                     size_t tree_count, unsigned depth) {
    for (; tree_count >= 64; roots += 64, tree_count -= 64)
        sum = add_row_groups(sum, row, nodes, roots, 64, depth, 4);
    for (; tree_count >= 16; roots += 16, tree_count -= 16)
        sum = add_row_groups(sum, row, nodes, roots, 16, depth, 1);
    return tree_count > 0 ? add_row_groups(sum, row, nodes, roots, tree_count, depth, 1) : sum;
}

void foreloop_trees_f32_avx512(foreloop_trees_f32 *kernels) {
    kernels->tier = FORELOOP_TIER_AVX512;
    kernels->costs = (foreloop_trees_costs){.test = 4, .piece_test = 6, .feature = 90, .step = 13};
    kernels->group_stride = FORELOOP_TREES_GROUP;
    kernels->transpose = transpose;
    kernels->quantise = quantise;
    kernels->add = add;
    kernels->add_row = add_row;
}
