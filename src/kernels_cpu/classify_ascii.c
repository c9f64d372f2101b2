/* Chooses the kernel that classifies ASCII text. */
#include "kernels_cpu/classify_ascii.h"

foreloop_classify_ascii *foreloop_classify_ascii_of(foreloop_tier tier) {
#if defined(FORELOOP_X86_KERNELS)
    if (tier >= FORELOOP_TIER_AVX512)
        return foreloop_classify_ascii_avx512;
    if (tier >= FORELOOP_TIER_AVX2)
        return foreloop_classify_ascii_avx2;
#else
    (void)tier;
#endif
    return foreloop_classify_ascii_ref;
}
