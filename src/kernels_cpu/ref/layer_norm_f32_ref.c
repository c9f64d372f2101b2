/* layer_norm_f32, reference: sums in double, so that a row of any width loses nothing to cancellation. */
#include "kernels_cpu/layer_norm_f32.h"

#include <math.h>

void foreloop_layer_norm_f32_ref(float *x, size_t stride, const float *gamma, const float *beta, double epsilon,
                                 size_t rows, size_t width) {
    for (size_t r = 0; r < rows; r++, x += stride) {
        double sum = 0.0;
        for (size_t i = 0; i < width; i++)
            sum += x[i];
        const double mean = sum / (double)width;
        double squares = 0.0;
        for (size_t i = 0; i < width; i++)
            squares += (x[i] - mean) * (x[i] - mean);
        const double scale = 1.0 / sqrt(squares / (double)width + epsilon);
        for (size_t i = 0; i < width; i++)
            x[i] = (float)((x[i] - mean) * scale) * gamma[i] + beta[i];
    }
}
