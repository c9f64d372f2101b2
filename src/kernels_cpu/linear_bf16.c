/* The layout of linear_bf16's weights, and which kernels a choice of features has. */
#include "kernels_cpu/linear_bf16.h"
#include "kernels_cpu/convert_bf16.h"

size_t foreloop_bf16_packed_size(size_t in, size_t out) {
    return (out + FORELOOP_BF16_PANEL - 1) / FORELOOP_BF16_PANEL * foreloop_bf16_panel_size(in);
}

void foreloop_bf16_pack(void *packed, const float *weight, size_t in, size_t out) {
    uint16_t *to = packed;
    for (size_t first = 0; first < out; first += FORELOOP_BF16_PANEL)
        for (size_t i = 0; i < foreloop_bf16_inputs(in); i += 2)
            for (size_t o = first; o < first + FORELOOP_BF16_PANEL; o++) {
                *to++ = o < out && i < in ? foreloop_bf16_of(weight[o * in + i]) : 0;
                *to++ = o < out && i + 1 < in ? foreloop_bf16_of(weight[o * in + i + 1]) : 0;
            }
}

void foreloop_linear_bf16_init(foreloop_linear *linear, unsigned features) {
    foreloop_linear_bf16_ref(linear);
#if defined(FORELOOP_X86_KERNELS)
    if (features & FORELOOP_CPU_AMX_BF16)
        foreloop_linear_bf16_amx(linear);
    else if (features & FORELOOP_CPU_AVX512_BF16)
        foreloop_linear_bf16_avx512_bf16(linear);
    else if (features & FORELOOP_CPU_AVX512)
        foreloop_linear_bf16_avx512(linear);
    else if (features & FORELOOP_CPU_AVX2)
        foreloop_linear_bf16_avx2(linear);
#else
    (void)features;
#endif
}
