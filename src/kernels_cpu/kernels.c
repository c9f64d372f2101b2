/* Fills the kernel table. */
#include "kernels_cpu/kernels.h"

static void init_ref(foreloop_kernels *kernels) {
    foreloop_linear_f32_ref(&kernels->linear[FORELOOP_LINEAR_F32]);
    foreloop_attention_f32_ref(&kernels->attention);
    kernels->layer_norm = foreloop_layer_norm_f32_ref;
    kernels->activation[FORELOOP_ACTIVATION_GELU] = foreloop_gelu_f32_ref;
    kernels->activation[FORELOOP_ACTIVATION_GELU_TANH] = foreloop_gelu_tanh_f32_ref;
    kernels->activation[FORELOOP_ACTIVATION_RELU] = foreloop_relu_f32_ref;
}

void foreloop_kernels_init(foreloop_kernels *kernels, foreloop_tier tier) {
    init_ref(kernels);
    kernels->tier = tier;
}
