/* linear_int8, AVX2: bytes widened to 16 bits and multiplied in pairs, which is exact, where the multiplication of
 * bytes as they are (vpmaddubsw) saturates. */
#include "kernels_cpu/x86/lanes.h"

enum { NUMBER = 2, UNIT = 2 };

FORELOOP_INLINE vec_i32 load_weights(const unsigned char *from) {
    return vec_widen_i16(from);
}

FORELOOP_INLINE vec_i32 dot(vec_i32 sum, vec_i32 x, vec_i32 weights) {
    return vec_add_i32(sum, vec_pairs_i32(x, weights));
}

#include "kernels_cpu/x86/linear_int8_dot.h"

void foreloop_linear_int8_avx2(foreloop_linear *linear, bool whole_rows) {
    int8_kernel(linear, whole_rows, whole_rows ? "int8_row, vpmaddwd" : "int8, vpmaddwd");
}
