/* Which boost kernels a tier has. */
#include "kernels_cpu/boost.h"

void foreloop_boost_init(foreloop_boost *kernels, foreloop_tier tier) {
    switch (tier) {
#if defined(FORELOOP_X86_KERNELS)
    case FORELOOP_TIER_AVX512:
        foreloop_boost_avx512(kernels);
        return;
    case FORELOOP_TIER_AVX2:
        foreloop_boost_avx2(kernels);
        return;
#endif
    default:
        foreloop_boost_ref(kernels);
    }
}
