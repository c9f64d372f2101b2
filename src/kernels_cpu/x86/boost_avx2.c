/* boost for AVX2. */
#include "kernels_cpu/boost_body.h"

void foreloop_boost_avx2(foreloop_boost *kernels) {
    fill(kernels, FORELOOP_TIER_AVX2);
}
