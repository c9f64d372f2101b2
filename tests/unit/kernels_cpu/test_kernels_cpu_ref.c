/* The reference kernels of the transformer against plain sums in double, at odd shapes, strides and alignments. */
#include "kernels_cpu/kernels.h"
#include "random.h"
#include "tap.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static float random_float(random_source *source) {
    return (float)random_below(source, 2000001) / 1000000.0f - 1.0f;
}

static float *random_floats(random_source *source, size_t count) {
    float *values = malloc((count + 1) * sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = random_float(source);
    return values;
}

/* Returns 1 when y is right, its gaps untouched, and a row alone, at another alignment, has the same bits. */
static int linear_is_right(const foreloop_linear_f32 *linear, size_t rows, size_t in, size_t out, int with_bias) {
    random_source source = {rows * 10007 + in * 101 + out};
    const size_t x_stride = in + 3, y_stride = out + 5;
    float *weight = random_floats(&source, out * in), *bias = random_floats(&source, out);
    float *x = random_floats(&source, rows * x_stride + 1), *y = malloc((rows * y_stride + 1) * sizeof *y);
    float *packed = malloc(linear->packed_size(in, out) * sizeof *packed);
    float *transposed = malloc(out * in * sizeof *transposed), *alone = malloc(out * sizeof *alone);
    int right = 1;
    for (size_t i = 0; i < rows * y_stride + 1; i++)
        y[i] = 12345.0f;
    linear->pack(packed, weight, in, 1, in, out);
    linear->run(y + 1, y_stride, x + 1, x_stride, packed, with_bias ? bias : NULL, rows, in, out);
    for (size_t r = 0; r < rows; r++)
        for (size_t o = 0; o < y_stride; o++) {
            double sum = o < out && with_bias ? bias[o] : 0.0;
            for (size_t i = 0; o < out && i < in; i++)
                sum += (double)x[1 + r * x_stride + i] * weight[o * in + i];
            const float got = y[1 + r * y_stride + o];
            right &= o < out ? fabs(got - sum) <= 1e-6 * sqrt((double)in) * 4 : got == 12345.0f;
        }
    /* The same matrix given by its columns packs to the same numbers. */
    for (size_t o = 0; o < out; o++)
        for (size_t i = 0; i < in; i++)
            transposed[i * out + o] = weight[o * in + i];
    linear->pack(packed, transposed, 1, out, in, out);
    const size_t last = rows - 1;
    memmove(x, x + 1 + last * x_stride, in * sizeof *x);
    linear->run(alone, out, x, in, packed, with_bias ? bias : NULL, 1, in, out);
    right &= memcmp(alone, y + 1 + last * y_stride, out * sizeof *alone) == 0;
    free(weight);
    free(bias);
    free(x);
    free(y);
    free(packed);
    free(transposed);
    free(alone);
    return right;
}

static void test_linear(const foreloop_kernels *kernels) {
    static const size_t sizes[] = {1, 2, 3, 5, 63, 64, 65, 130};
    enum { COUNT = sizeof sizes / sizeof sizes[0] };
    for (size_t r = 0; r < 4; r++)
        for (size_t i = 0; i < COUNT; i++) {
            int right = 1;
            for (size_t o = 0; o < COUNT; o++)
                right &= linear_is_right(&kernels->linear, sizes[r], sizes[i], sizes[o], o % 2 == 0);
            CHECK(right, "linear (%s): %zu rows, %zu inputs, 1 to 130 outputs", kernels->linear.tier, sizes[r],
                  sizes[i]);
        }
}

static void test_layer_norm(const foreloop_kernels *kernels) {
    const float ones[2] = {1.0f, 1.0f}, zeros[2] = {0.0f, 0.0f}, x[2] = {0.001f, -0.001f};
    float y[2];
    kernels->layer_norm(y, x, NULL, ones, zeros, 1e-12, 1, 2);
    CHECK(fabsf(y[0] - 0.9999995f) < 1e-7f && y[1] == -y[0], "epsilon 1e-12 leaves small numbers their scale");
    kernels->layer_norm(y, x, NULL, ones, zeros, 1e-5, 1, 2);
    CHECK(fabsf(y[0] - 0.3015113f) < 1e-7f && y[1] == -y[0], "epsilon 1e-5 shrinks them");

    const float gamma[3] = {1.0f, 2.0f, -1.0f}, beta[3] = {0.5f, 0.0f, 1.0f};
    float rows[6] = {1.0f, 2.0f, 3.0f, -1.0f, 5.0f, 0.0f}, residual[6] = {3.0f, 2.0f, 2.0f, 0.0f, 0.0f, 0.0f};
    /* Row 0: 4, 4, 5, mean 13/3, deviation sqrt(2)/3. Row 1: mean 4/3, deviation sqrt(62)/3. */
    const double d0 = sqrt(2.0), d1 = sqrt(62.0);
    const double expected[6] = {-1 / d0 + 0.5, -2 / d0, -2 / d0 + 1, -7 / d1 + 0.5, 22 / d1, 4 / d1 + 1};
    kernels->layer_norm(residual, rows, residual, gamma, beta, 1e-12, 2, 3);
    int right = 1;
    for (size_t i = 0; i < 6; i++)
        right &= fabs(residual[i] - expected[i]) < 1e-6;
    CHECK(right, "residual, gamma and beta, in place");
}

static void test_softmax(const foreloop_kernels *kernels) {
    float x[2][4] = {{1000.0f, 1002.0f, 7.0f, -3.0f}, {0.0f, 0.0f, 7.0f, -3.0f}};
    kernels->softmax(x[0], 4, 2, 2, 0.5f);
    const float small = 0.26894142f, large = 0.73105858f; /* softmax(0, 1) */
    CHECK(fabsf(x[0][0] - small) < 1e-7f && fabsf(x[0][1] - large) < 1e-7f, "large numbers do not overflow");
    CHECK(x[1][0] == 0.5f && x[1][1] == 0.5f, "equal numbers share");
    CHECK(x[0][2] == 7.0f && x[1][3] == -3.0f, "what lies behind a row's columns is untouched");
    float one = -1e30f;
    kernels->softmax(&one, 1, 1, 1, 1.0f);
    CHECK(one == 1.0f, "one column gives 1");
}

static void test_activation(const foreloop_kernels *kernels) {
    float values[3] = {-2.7f, 0.0f, 3.0f};
    kernels->activation[FORELOOP_ACTIVATION_GELU](values, 3);
    CHECK(fabsf(values[0] - -0.00936083f) < 3e-7f && values[1] == 0.0f && fabsf(values[2] - 2.9959502f) < 1e-6f,
          "gelu by the error function");
    values[0] = -2.7f;
    kernels->activation[FORELOOP_ACTIVATION_GELU_TANH](values, 1);
    CHECK(fabsf(values[0] - -0.00888759f) < 3e-7f, "gelu by tanh is another function");
    float signs[3] = {-2.7f, 2.5f, NAN};
    kernels->activation[FORELOOP_ACTIVATION_RELU](signs, 3);
    CHECK(signs[0] == 0.0f && signs[1] == 2.5f && isnan(signs[2]), "relu, which does not hide a NaN");
}

int main(void) {
    foreloop_kernels kernels;
    foreloop_kernels_init(&kernels);
    test_linear(&kernels);
    test_layer_norm(&kernels);
    test_softmax(&kernels);
    test_activation(&kernels);
    return tap_done();
}
