/* Which trees_f32 kernels a tier has. */
#include "kernels_cpu/trees_f32.h"

void foreloop_trees_f32_init(foreloop_trees_f32 *kernels, foreloop_tier tier) {
    switch (tier) {
#if defined(FORELOOP_X86_KERNELS)
    case FORELOOP_TIER_AVX512:
        foreloop_trees_f32_avx512(kernels);
        return;
    case FORELOOP_TIER_AVX2:
        foreloop_trees_f32_avx2(kernels);
        return;
#endif
    default:
        foreloop_trees_f32_ref(kernels);
    }
}
