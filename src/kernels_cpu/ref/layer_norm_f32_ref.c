/* layer_norm_f32, reference: sums in double, so that a row of any width loses nothing to cancellation. */
#include "kernels_cpu/layer_norm_f32.h"

#include <math.h>

void foreloop_layer_norm_f32_ref(float *y, const float *x, const float *residual, const float *gamma, const float *beta,
                                 double epsilon, size_t rows, size_t width) {
    for (size_t r = 0; r < rows; r++, y += width, x += width) {
        double sum = 0.0;
        for (size_t i = 0; i < width; i++) {
            y[i] = residual ? x[i] + residual[r * width + i] : x[i];
            sum += y[i];
        }
        const double mean = sum / (double)width;
        double squares = 0.0;
        for (size_t i = 0; i < width; i++)
            squares += (y[i] - mean) * (y[i] - mean);
        const double scale = 1.0 / sqrt(squares / (double)width + epsilon);
        for (size_t i = 0; i < width; i++)
            y[i] = (float)((y[i] - mean) * scale) * gamma[i] + beta[i];
    }
}
