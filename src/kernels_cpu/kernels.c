/* Fills the kernel table. */
#include "kernels_cpu/kernels.h"
#include "kernels_cpu/cpu.h"
#if defined(FORELOOP_GEMM_LIBRARY)
#include "kernels_cpu/gemm/gemm.h"
#endif
#include "kernels_cpu/linear_bf16.h"
#include "kernels_cpu/linear_int8.h"

static void init_ref(foreloop_kernels *kernels) {
    foreloop_linear_f32_ref(&kernels->linear[FORELOOP_PRECISION_F32]);
    foreloop_attention_f32_ref(&kernels->attention);
    kernels->layer_norm = foreloop_layer_norm_f32_ref;
    kernels->activation[FORELOOP_ACTIVATION_GELU] = foreloop_gelu_f32_ref;
    kernels->activation[FORELOOP_ACTIVATION_GELU_TANH] = foreloop_gelu_tanh_f32_ref;
    kernels->activation[FORELOOP_ACTIVATION_RELU] = foreloop_relu_f32_ref;
}

#if defined(FORELOOP_X86_KERNELS)
static void overlay_avx2(foreloop_kernels *kernels) {
    foreloop_linear_f32_avx2(&kernels->linear[FORELOOP_PRECISION_F32]);
    foreloop_attention_f32_avx2(&kernels->attention);
    kernels->layer_norm = foreloop_layer_norm_f32_avx2;
    kernels->activation[FORELOOP_ACTIVATION_GELU] = foreloop_gelu_f32_avx2;
    kernels->activation[FORELOOP_ACTIVATION_GELU_TANH] = foreloop_gelu_tanh_f32_avx2;
    kernels->activation[FORELOOP_ACTIVATION_RELU] = foreloop_relu_f32_avx2;
}

static void overlay_avx512(foreloop_kernels *kernels) {
    foreloop_linear_f32_avx512(&kernels->linear[FORELOOP_PRECISION_F32]);
    foreloop_attention_f32_avx512(&kernels->attention);
    kernels->layer_norm = foreloop_layer_norm_f32_avx512;
    kernels->activation[FORELOOP_ACTIVATION_GELU] = foreloop_gelu_f32_avx512;
    kernels->activation[FORELOOP_ACTIVATION_GELU_TANH] = foreloop_gelu_tanh_f32_avx512;
    kernels->activation[FORELOOP_ACTIVATION_RELU] = foreloop_relu_f32_avx512;
}
#endif

void foreloop_kernels_init(foreloop_kernels *kernels, foreloop_tier tier, unsigned features) {
    const unsigned founded = foreloop_cpu_features_within(features, tier);
    init_ref(kernels);
    kernels->tier = tier;
    foreloop_linear_bf16_init(&kernels->linear[FORELOOP_PRECISION_BF16], founded);
    foreloop_linear_int8_init(&kernels->linear[FORELOOP_PRECISION_INT8], founded, false);
    foreloop_linear_int8_init(&kernels->linear[FORELOOP_PRECISION_INT8_ROW], founded, true);
#if defined(FORELOOP_X86_KERNELS)
    if (tier >= FORELOOP_TIER_AVX2)
        overlay_avx2(kernels);
    if (tier >= FORELOOP_TIER_AVX512)
        overlay_avx512(kernels);
#endif
#if defined(FORELOOP_GEMM_LIBRARY)
    foreloop_linear_f32_gemm(&kernels->linear[FORELOOP_PRECISION_F32], tier);
#endif
}
