/* layer_norm_f32 and activation_f32. A row is in the first-level cache after its first pass: what remains is a few
 * operations a number, little beside the matrix products that a row takes part in. */
#include "kernels_cpu/layer_norm_f32.h"
#include "kernels_cpu/x86/math_f32.h"
#include <math.h>
#include <stdbool.h>

/* Sums of the row's numbers, or of the squares of what they are above the mean: two vectors, so that additions need
 * not wait for each other. */
VECTOR_INLINE double sum_row(const float *x, size_t width, float mean, bool squares) {
    vec sums[2] = {vec_set(0.0f), vec_set(0.0f)};
    size_t i = 0;
    for (; i + 2 * LANES <= width; i += 2 * LANES)
        for (size_t j = 0; j < 2; j++) {
            const vec v = vec_sub(vec_load(x + i + j * LANES), vec_set(mean));
            sums[j] = squares ? vec_fma(v, v, sums[j]) : vec_add(v, sums[j]);
        }
    for (; i < width; i += LANES) {
        const size_t count = width - i < LANES ? width - i : LANES;
        const vec centred = vec_sub(vec_load_some(x + i, count), vec_set(mean));
        const vec v = vec_join(centred, vec_set(0.0f), count);
        sums[0] = squares ? vec_fma(v, v, sums[0]) : vec_add(v, sums[0]);
    }
    return (double)vec_sum(vec_add(sums[0], sums[1]));
}

void FORELOOP_X86(foreloop_layer_norm_f32)(float *x, size_t stride, const float *gamma, const float *beta,
                                           double epsilon, size_t rows, size_t width) {
    for (size_t r = 0; r < rows; r++, x += stride) {
        /* The mean in two steps: the first one's rounding errors are the second one's sum. */
        const float near = (float)(sum_row(x, width, 0.0f, false) / (double)width);
        const float mean = near + (float)(sum_row(x, width, near, false) / (double)width);
        const double variance = sum_row(x, width, mean, true) / (double)width;
        const vec centre = vec_set(mean), scale = vec_set((float)(1.0 / sqrt(variance + epsilon)));
        size_t i = 0;
        for (; i + LANES <= width; i += LANES) {
            const vec v = vec_mul(vec_sub(vec_load(x + i), centre), scale);
            vec_store(x + i, vec_fma(v, vec_load(gamma + i), vec_load(beta + i)));
        }
        if (i < width) {
            const vec v = vec_mul(vec_sub(vec_load_some(x + i, width - i), centre), scale);
            const vec y = vec_fma(v, vec_load_some(gamma + i, width - i), vec_load_some(beta + i, width - i));
            vec_store_some(x + i, y, width - i);
        }
    }
}

VECTOR_INLINE void activate(float *values, size_t count, foreloop_activation activation) {
    size_t i = 0;
    for (; i + LANES <= count; i += LANES)
        vec_store(values + i, vec_activate(vec_load(values + i), activation));
    if (i < count)
        vec_store_some(values + i, vec_activate(vec_load_some(values + i, count - i), activation), count - i);
}

void FORELOOP_X86(foreloop_gelu_f32)(float *values, size_t count) {
    activate(values, count, FORELOOP_ACTIVATION_GELU);
}

void FORELOOP_X86(foreloop_gelu_tanh_f32)(float *values, size_t count) {
    activate(values, count, FORELOOP_ACTIVATION_GELU_TANH);
}

void FORELOOP_X86(foreloop_relu_f32)(float *values, size_t count) {
    activate(values, count, FORELOOP_ACTIVATION_RELU);
}
