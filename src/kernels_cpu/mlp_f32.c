/* Chooses the kernels of the score network. */
#include "kernels_cpu/mlp_f32.h"

void foreloop_mlp_f32_init(foreloop_mlp_f32 *kernels, foreloop_tier tier) {
    foreloop_mlp_f32_ref(kernels);
#if defined(FORELOOP_X86_KERNELS)
    if (tier >= FORELOOP_TIER_AVX512)
        foreloop_mlp_f32_avx512(kernels);
    else if (tier >= FORELOOP_TIER_AVX2)
        foreloop_mlp_f32_avx2(kernels);
#else
    (void)tier;
#endif
}
