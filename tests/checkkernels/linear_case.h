/* What the checks of linear kernels share: calls whose every array ends at a page that may not be touched, run whole or
 * in parts, and numbers at which arithmetic is easily wrong. */
#ifndef FORELOOP_TESTS_LINEAR_CASE_H
#define FORELOOP_TESTS_LINEAR_CASE_H

#include "guarded.h"
#include "kernels_cpu/linear.h"
#include "tap.h"
#include <stdbool.h>
#include <string.h>

/* `size` bytes, aligned to 64. */
static guarded guarded_bytes(size_t size) {
    return guarded_make((size + 63) / 64 * (64 / sizeof(float)), 0);
}

typedef struct linear_case {
    size_t rows, in, out;
    float *x, *weight, *bias, *residual; /* dense */
    const int32_t *correction_of;        /* of the call, or NULL */
    const float *correction;
} linear_case;

static linear_case case_open(size_t rows, size_t in, size_t out) {
    linear_case c = {.rows = rows, .in = in, .out = out};
    c.x = malloc(rows * in * sizeof(float));
    c.weight = malloc(out * in * sizeof(float));
    c.bias = malloc(out * sizeof(float));
    c.residual = malloc(rows * out * sizeof(float));
    return c;
}

static void case_close(linear_case *c) {
    free(c->x);
    free(c->weight);
    free(c->bias);
    free(c->residual);
}

static void fill(random_source *random, float *values, size_t count, float scale) {
    for (size_t i = 0; i < count; i++)
        values[i] = guarded_draw(random) * scale;
}

/* The end that a part reaches from `begin`: one or a few units further. */
static size_t part_end(random_source *random, size_t begin, size_t unit, size_t count) {
    const size_t end = begin + unit * (1 + random_below(random, 3));
    return end < count ? end : count;
}

/* y[rows][out], dense, from the kernel: everything at once, or (`parts` not NULL) prepared and run in parts. Strides
 * and pages are odd: a write or read outside ends the program. */
static void case_run(const linear_case *c, const foreloop_linear *kernel, foreloop_epilogue epilogue,
                     random_source *parts, float *y) {
    const size_t x_stride = c->in + 3, y_stride = c->out + 5;
    guarded x = guarded_make((c->rows - 1) * x_stride + c->in, 0);
    guarded packed = guarded_bytes(kernel->packed_size(c->in, c->out));
    guarded prepared = guarded_bytes(kernel->prepared_size ? kernel->prepared_size(c->rows, c->in) : 64);
    guarded bias = guarded_make(c->out, 0);
    guarded result = guarded_make((c->rows - 1) * y_stride + c->out, 0);
    memset(prepared.values, 0xff, prepared.count * sizeof(float));
    memcpy(bias.values, c->bias, c->out * sizeof(float));
    for (size_t r = 0; r < c->rows; r++) {
        memcpy(x.values + r * x_stride, c->x + r * c->in, c->in * sizeof(float));
        memcpy(result.values + r * y_stride, c->residual + r * c->out, c->out * sizeof(float));
    }
    kernel->pack(packed.values, c->weight, c->in, c->out);
    /* The residual is y itself, as an encoder has it. */
    const foreloop_linear_call call = {.rows = c->rows,
                                       .in = c->in,
                                       .out = c->out,
                                       .x = x.values,
                                       .x_stride = x_stride,
                                       .prepared = prepared.values,
                                       .packed = packed.values,
                                       .bias = bias.values,
                                       .epilogue = epilogue,
                                       .residual = result.values,
                                       .y = result.values,
                                       .y_stride = y_stride,
                                       .correction_of = c->correction_of,
                                       .correction = c->correction};
    for (size_t r = 0, end; kernel->prepare && r < c->rows; r = end) {
        end = parts ? part_end(parts, r, kernel->row_unit, c->rows) : c->rows;
        kernel->prepare(prepared.values, x.values, x_stride, c->rows, c->in, r, end);
    }
    for (size_t r = 0, row_end; r < c->rows; r = row_end) {
        row_end = parts ? part_end(parts, r, kernel->row_unit, c->rows) : c->rows;
        for (size_t o = 0, out_end; o < c->out; o = out_end) {
            out_end = parts ? part_end(parts, o, kernel->out_unit, c->out) : c->out;
            kernel->run(&call, r, row_end, o, out_end);
        }
    }
    for (size_t r = 0; r < c->rows; r++)
        memcpy(y + r * c->out, result.values + r * y_stride, c->out * sizeof(float));
    guarded_free(&x);
    guarded_free(&packed);
    guarded_free(&prepared);
    guarded_free(&bias);
    guarded_free(&result);
}

/* NaNs count as equal: which one comes out of a sum is not defined. */
static bool same_numbers(const float *a, const float *b, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (memcmp(&a[i], &b[i], sizeof *a) != 0 && !(a[i] != a[i] && b[i] != b[i])) {
            printf("# number %zu: %a, expected %a\n", i, (double)a[i], (double)b[i]);
            return false;
        }
    return true;
}

/* Whether each row alone, and the call in parts, give the bits of the whole call. */
static bool parts_agree(const linear_case *c, const foreloop_linear *kernel, random_source *random, const float *y) {
    float *other = malloc(c->rows * c->out * sizeof(float));
    case_run(c, kernel, FORELOOP_EPILOGUE_NONE, random, other);
    bool agree = same_numbers(other, y, c->rows * c->out);
    for (size_t r = 0; r < c->rows; r += 1 + c->rows / 3) {
        linear_case one = *c;
        one.rows = 1;
        one.x += r * c->in;
        if (one.correction_of)
            one.correction_of += r;
        case_run(&one, kernel, FORELOOP_EPILOGUE_NONE, NULL, other);
        agree &= same_numbers(other, y + r * c->out, c->out);
    }
    free(other);
    return agree;
}

/* Whether the epilogues do what they say to the plain result. */
static bool epilogues_agree(const linear_case *c, const foreloop_linear *kernel, const float *y) {
    static foreloop_activation_f32 *const references[] = {foreloop_gelu_f32_ref, foreloop_gelu_tanh_f32_ref,
                                                          foreloop_relu_f32_ref};
    const size_t count = c->rows * c->out;
    float *other = malloc(count * sizeof(float)), *expected = malloc(count * sizeof(float));
    bool agree = true;
    for (int e = 0; e < FORELOOP_ACTIVATION_COUNT; e++) {
        memcpy(expected, y, count * sizeof(float));
        references[e](expected, count);
        case_run(c, kernel, (foreloop_epilogue)e, NULL, other);
        for (size_t i = 0; i < count; i++) {
            const float size = expected[i] < 0 ? -expected[i] : expected[i], off = other[i] - expected[i];
            agree &= (off < 0 ? -off : off) <= 1e-6f * (size > 1 ? size : 1);
        }
    }
    case_run(c, kernel, FORELOOP_EPILOGUE_RESIDUAL, NULL, other);
    for (size_t i = 0; i < count; i++)
        expected[i] = y[i] + c->residual[i];
    agree &= same_numbers(other, expected, count);
    free(other);
    free(expected);
    return agree;
}

#endif
