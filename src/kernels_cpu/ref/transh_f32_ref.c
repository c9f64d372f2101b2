/* Reference kernels of the latent state: they define the bits. */
#include "kernels_cpu/transh_f32.h"
#include <math.h>
#include <string.h>

float foreloop_transh_dot_f32_ref(const float *a, const float *b, size_t size) {
    float lanes[FORELOOP_TRANSH_LANES] = {0};
    for (size_t i = 0; i < size; i += FORELOOP_TRANSH_LANES)
        for (size_t j = 0; j < FORELOOP_TRANSH_LANES; j++)
            lanes[j] = fmaf(a[i + j], b[i + j], lanes[j]);
    for (size_t half = FORELOOP_TRANSH_LANES / 2; half > 0; half /= 2)
        for (size_t j = 0; j < half; j++)
            lanes[j] += lanes[j + half];
    return lanes[0];
}

void foreloop_transh_step_f32_ref(float *z, const float *w, float beta, const float *d, size_t size) {
    float c = beta * foreloop_transh_dot_f32_ref(w, z, size);
    for (size_t i = 0; i < size; i++)
        z[i] = fmaf(-c, w[i], z[i]) + d[i];
}

void foreloop_transh_affine_f32_ref(const float *matrix, const float *bias, const float *x, size_t rows, size_t columns,
                                    float *y) {
    memcpy(y, bias, rows * sizeof *y);
    for (size_t j = 0; j < columns; j++) {
        if (x[j] == 0) /* phi is mostly zeros; the matrix is finite, so skipping changes no bit but the sign of 0 */
            continue;
        const float *column = matrix + j * rows;
        for (size_t i = 0; i < rows; i++)
            y[i] = fmaf(column[i], x[j], y[i]);
    }
}
