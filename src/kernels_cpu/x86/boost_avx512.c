/* boost for AVX-512. */
#include "kernels_cpu/boost_body.h"

void foreloop_boost_avx512(foreloop_boost *kernels) {
    fill(kernels, FORELOOP_TIER_AVX512);
}
