/*
 * linear_f32, reference. W is packed in panels of 64 outputs, each stored [in][panel width], so that the inner loop
 * runs over consecutive outputs: compilers vectorise it without changing the order of any sum.
 */
#include "kernels_cpu/linear_f32.h"

/* A panel's slice of 64 inputs x 64 outputs is 16 KiB: it stays in the first-level cache while all rows pass by. */
enum { PANEL = 64, INPUT_BLOCK = 64 };

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

static size_t packed_size(size_t in, size_t out) {
    return in * out;
}

static void pack(float *packed, const float *weight, size_t out_stride, size_t in_stride, size_t in, size_t out) {
    for (size_t first = 0; first < out; first += PANEL) {
        const size_t width = smaller(PANEL, out - first);
        for (size_t i = 0; i < in; i++)
            for (size_t o = 0; o < width; o++)
                *packed++ = weight[(first + o) * out_stride + i * in_stride];
    }
}

/* y[width] += x[in] times the panel's rows. Four inputs are summed before they meet y: fewer roundings against the
 * large running sum, and fewer passes over y. */
static void accumulate(float *restrict y, const float *restrict x, const float *restrict panel, size_t in,
                       size_t width) {
    size_t i = 0;
    for (; i + 4 <= in; i += 4) {
        const float *w0 = panel + i * width, *w1 = w0 + width, *w2 = w1 + width, *w3 = w2 + width;
        const float x0 = x[i], x1 = x[i + 1], x2 = x[i + 2], x3 = x[i + 3];
        for (size_t o = 0; o < width; o++)
            y[o] += (x0 * w0[o] + x1 * w1[o]) + (x2 * w2[o] + x3 * w3[o]);
    }
    for (; i < in; i++)
        for (size_t o = 0; o < width; o++)
            y[o] += x[i] * panel[i * width + o];
}

static void run(float *y, size_t y_stride, const float *x, size_t x_stride, const float *packed, const float *bias,
                size_t rows, size_t in, size_t out) {
    for (size_t first = 0; first < out; first += PANEL) {
        const size_t width = smaller(PANEL, out - first);
        const float *panel = packed + first * in;
        for (size_t r = 0; r < rows; r++)
            for (size_t o = 0; o < width; o++)
                y[r * y_stride + first + o] = bias ? bias[first + o] : 0.0f;
        for (size_t i = 0; i < in; i += INPUT_BLOCK)
            for (size_t r = 0; r < rows; r++)
                accumulate(y + r * y_stride + first, x + r * x_stride + i, panel + i * width,
                           smaller(INPUT_BLOCK, in - i), width);
    }
}

void foreloop_linear_f32_ref(foreloop_linear_f32 *linear) {
    linear->tier = "ref";
    linear->packed_size = packed_size;
    linear->pack = pack;
    linear->run = run;
}
