/* softmax_f32, reference. The maximum is taken out first, so that no exponential overflows and the sum is at least 1.
 */
#include "kernels_cpu/softmax_f32.h"

#include <math.h>

void foreloop_softmax_f32_ref(float *x, size_t stride, size_t rows, size_t columns, float scale) {
    for (size_t r = 0; r < rows; r++, x += stride) {
        float maximum = x[0];
        for (size_t c = 1; c < columns; c++)
            maximum = x[c] > maximum ? x[c] : maximum;
        double sum = 0.0;
        for (size_t c = 0; c < columns; c++) {
            x[c] = expf((x[c] - maximum) * scale);
            sum += x[c];
        }
        const float inverse = (float)(1.0 / sum);
        for (size_t c = 0; c < columns; c++)
            x[c] *= inverse;
    }
}
