/*
 * linear_f32, reference. W is packed in panels of 64 outputs, each stored [in][panel width], so that the inner loop
 * runs over consecutive outputs: compilers vectorise it without changing the order of any sum.
 */
#include "kernels_cpu/linear.h"

/* A panel's slice of 64 inputs x 64 outputs is 16 KiB: it stays in the first-level cache while all rows pass by. */
enum { PANEL = 64, INPUT_BLOCK = 64 };

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

static size_t packed_size(size_t in, size_t out) {
    return in * out * sizeof(float);
}

static void pack(void *packed, const float *weight, size_t in, size_t out) {
    float *next = packed;
    for (size_t first = 0; first < out; first += PANEL) {
        const size_t width = smaller(PANEL, out - first);
        for (size_t i = 0; i < in; i++)
            for (size_t o = 0; o < width; o++)
                *next++ = weight[(first + o) * in + i];
    }
}

/* sums[width] += x[in] times the panel's rows. Four inputs are summed before they meet the sums: fewer roundings
 * against the large running sum, and fewer passes over it. */
static void accumulate(float *restrict sums, const float *restrict x, const float *restrict panel, size_t in,
                       size_t width) {
    size_t i = 0;
    for (; i + 4 <= in; i += 4) {
        const float *w0 = panel + i * width, *w1 = w0 + width, *w2 = w1 + width, *w3 = w2 + width;
        const float x0 = x[i], x1 = x[i + 1], x2 = x[i + 2], x3 = x[i + 3];
        for (size_t o = 0; o < width; o++)
            sums[o] += (x0 * w0[o] + x1 * w1[o]) + (x2 * w2[o] + x3 * w3[o]);
    }
    for (; i < in; i++)
        for (size_t o = 0; o < width; o++)
            sums[o] += x[i] * panel[i * width + o];
}

/* y[width] <- epilogue(sums[width]) */
static void finish(float *y, float *sums, const float *residual, foreloop_epilogue epilogue, size_t width) {
    static foreloop_activation_f32 *const activations[] = {foreloop_gelu_f32_ref, foreloop_gelu_tanh_f32_ref,
                                                           foreloop_relu_f32_ref};
    if (epilogue < FORELOOP_EPILOGUE_NONE)
        activations[epilogue](sums, width);
    for (size_t o = 0; o < width; o++)
        y[o] = epilogue == FORELOOP_EPILOGUE_RESIDUAL ? sums[o] + residual[o] : sums[o];
}

enum { ROWS = 16 };

/* Up to 16 rows of one panel, so that the panel's slices are read from memory once for all of them. */
static void run_panel(const foreloop_linear_call *call, size_t row, size_t rows, size_t first, size_t width) {
    const size_t in = call->in;
    const float *panel = (const float *)call->packed + first * in;
    float sums[ROWS][PANEL];
    for (size_t r = 0; r < rows; r++)
        for (size_t o = 0; o < width; o++)
            sums[r][o] = call->bias[first + o];
    for (size_t i = 0; i < in; i += INPUT_BLOCK)
        for (size_t r = 0; r < rows; r++)
            accumulate(sums[r], call->x + (row + r) * call->x_stride + i, panel + i * width,
                       smaller(INPUT_BLOCK, in - i), width);
    for (size_t r = 0; r < rows; r++) {
        const size_t place = (row + r) * call->y_stride + first;
        finish(call->y + place, sums[r], call->residual ? call->residual + place : NULL, call->epilogue, width);
    }
}

static void run(const foreloop_linear_call *call, size_t row_begin, size_t row_end, size_t out_begin, size_t out_end) {
    for (size_t first = out_begin; first < out_end; first += PANEL)
        for (size_t row = row_begin; row < row_end; row += ROWS)
            run_panel(call, row, smaller(ROWS, row_end - row), first, smaller(PANEL, out_end - first));
}

void foreloop_linear_f32_ref(foreloop_linear *linear) {
    *linear = (foreloop_linear){.tier = FORELOOP_TIER_REF,
                                .name = "f32",
                                .packed_size = packed_size,
                                .pack = pack,
                                .row_unit = 1,
                                .out_unit = PANEL,
                                .run = run};
}
