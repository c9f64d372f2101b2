/*
 * trees_f32 on AVX-512 for at most 16 rows, the bytes of one short register: more of the processor's ports take those,
 * and all codes of a model are a quarter of a block's, which the first cache holds.
 */
#include "kernels_cpu/x86/look_up_f32_avx512.h"
#include "kernels_cpu/x86/trees_f32_avx512.h"

enum { CODES_STRIDE = FORELOOP_TREES_GROUP };
typedef __m128i bytes;
typedef __mmask16 decision;
typedef __m512 sums[1];

INLINE bytes load_bytes(const int8_t *codes) {
    return _mm_load_si128((const __m128i *)codes);
}
INLINE bytes load_table(const void *table) {
    return _mm_loadu_si128(table);
}
INLINE bytes spread_byte(int byte) {
    return _mm_set1_epi8((char)byte);
}
INLINE bytes add_bytes(bytes a, bytes b) {
    return _mm_add_epi8(a, b);
}
INLINE bytes look_up(bytes table, bytes numbers) {
    return _mm_shuffle_epi8(table, numbers);
}
INLINE decision compare(bytes codes, bytes thresholds) {
    return _mm_cmpgt_epi8_mask(codes, thresholds);
}
INLINE bytes choose(decision right, bytes if_left, bytes if_right) {
    return _mm_mask_mov_epi8(if_left, right, if_right);
}
INLINE bytes add_decision(bytes numbers, decision right, int bit) {
    return _mm_mask_add_epi8(numbers, right, numbers, spread_byte(bit));
}
INLINE bytes replace(bytes states, bytes piece, bytes exits) {
    return _mm_mask_mov_epi8(states, _mm_cmpeq_epi8_mask(states, piece), exits);
}

INLINE void add_leaves(sums s, const float *leaves, bytes numbers, int depth) {
    s[0] = _mm512_add_ps(s[0], look_up_float(leaves, _mm512_cvtepu8_epi32(numbers), depth > 4 ? depth : 4));
}

#include "kernels_cpu/x86/trees_f32_tests.h"

void foreloop_trees_f32_avx512_add_group(float *all_sums, const int8_t *codes, const foreloop_trees_data *data,
                                         const foreloop_trees_tree *trees, size_t tree_count) {
    sums s = {_mm512_loadu_ps(all_sums)};
    add_trees(s, codes, data, trees, tree_count);
    _mm512_storeu_ps(all_sums, s[0]);
}
