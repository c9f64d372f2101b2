/* linear_int8 by vpdpbusd, four products and additions a lane, exact. */
#include "kernels_cpu/x86/lanes.h"

enum { NUMBER = 1, UNIT = 4 };

FORELOOP_INLINE vec_i32 load_weights(const unsigned char *from) {
    return vec_load_i32(from);
}

FORELOOP_INLINE vec_i32 dot(vec_i32 sum, vec_i32 x, vec_i32 weights) {
    return _mm512_dpbusd_epi32(sum, x, weights);
}

#include "kernels_cpu/x86/linear_int8_dot.h"

void foreloop_linear_int8_avx512_vnni(foreloop_linear *linear, bool whole_rows) {
    int8_kernel(linear, whole_rows, whole_rows ? "int8_row, vpdpbusd" : "int8, vpdpbusd");
}
