/* activation_f32, reference. */
#include "kernels_cpu/activation_f32.h"

#include <math.h>

void foreloop_gelu_f32_ref(float *values, size_t count) {
    const float inverse_sqrt_2 = 0.70710678118654752f;
    for (size_t i = 0; i < count; i++)
        values[i] = 0.5f * values[i] * (1.0f + erff(values[i] * inverse_sqrt_2));
}

void foreloop_gelu_tanh_f32_ref(float *values, size_t count) {
    const float sqrt_2_over_pi = 0.79788456080286536f;
    for (size_t i = 0; i < count; i++) {
        const float x = values[i];
        values[i] = 0.5f * x * (1.0f + tanhf(sqrt_2_over_pi * (x + 0.044715f * x * x * x)));
    }
}

void foreloop_relu_f32_ref(float *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        values[i] = values[i] < 0.0f ? 0.0f : values[i];
}
