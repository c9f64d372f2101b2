/* Fills the kernel table. */
#include "kernels_cpu/kernels.h"

void foreloop_kernels_init(foreloop_kernels *kernels) {
    foreloop_linear_f32_ref(&kernels->linear);
    kernels->layer_norm = foreloop_layer_norm_f32_ref;
    kernels->softmax = foreloop_softmax_f32_ref;
    kernels->activation[FORELOOP_ACTIVATION_GELU] = foreloop_gelu_f32_ref;
    kernels->activation[FORELOOP_ACTIVATION_GELU_TANH] = foreloop_gelu_tanh_f32_ref;
    kernels->activation[FORELOOP_ACTIVATION_RELU] = foreloop_relu_f32_ref;
}
