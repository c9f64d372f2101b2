/* What the checks of linear kernels share: calls whose every array ends at a page that may not be touched, run whole or
 * in parts, and numbers at which arithmetic is easily wrong. */
#ifndef FORELOOP_TESTS_LINEAR_CASE_H
#define FORELOOP_TESTS_LINEAR_CASE_H

#include "kernels_cpu/linear.h"
#include "random.h"
#include "tap.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct guarded_block {
    void *data, *mapping;
    size_t mapped;
} guarded_block;

/* `size` bytes, aligned to `alignment`, with no more than that much room behind them before a page that may not be
 * touched, and one such page before the first. */
static guarded_block guarded_open(size_t size, size_t alignment) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (size + page - 1) / page * page;
    guarded_block block = {.mapped = whole + 2 * page};
    char *start = mmap(NULL, block.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED || mprotect(start, page, PROT_NONE) != 0 ||
        mprotect(start + page + whole, page, PROT_NONE) != 0)
        exit(1);
    block.mapping = start;
    block.data = start + page + (whole - size) / alignment * alignment;
    return block;
}

static void guarded_close(guarded_block *block) {
    munmap(block->mapping, block->mapped);
}

typedef struct linear_case {
    size_t rows, in, out;
    float *x, *weight, *bias, *residual; /* dense */
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

static float draw(random_source *random) {
    return (float)random_below(random, 2000001) / 1000000.0f - 1;
}

static void fill(random_source *random, float *values, size_t count, float scale) {
    for (size_t i = 0; i < count; i++)
        values[i] = draw(random) * scale;
}

/* The end that a part reaches from `begin`: one or a few units further. */
static size_t part_end(random_source *random, size_t begin, size_t unit, size_t count) {
    const size_t end = begin + unit * (1 + random_below(random, 3));
    return end < count ? end : count;
}

/* y[rows][out], dense, from the kernel: everything at once, or (`parts` not NULL) prepared and run in parts. Strides and
 * pages are odd: a write or read outside ends the program. */
static void case_run(const linear_case *c, const foreloop_linear *kernel, foreloop_epilogue epilogue,
                     random_source *parts, float *y) {
    const size_t x_stride = c->in + 3, y_stride = c->out + 5;
    guarded_block x = guarded_open(((c->rows - 1) * x_stride + c->in) * sizeof(float), sizeof(float));
    guarded_block packed = guarded_open(kernel->packed_size(c->in, c->out), 64);
    guarded_block prepared = guarded_open(kernel->prepared_size ? kernel->prepared_size(c->rows, c->in) : 64, 64);
    guarded_block bias = guarded_open(c->out * sizeof(float), sizeof(float));
    guarded_block result = guarded_open(((c->rows - 1) * y_stride + c->out) * sizeof(float), sizeof(float));
    memset(prepared.data, 0xff, kernel->prepared_size ? kernel->prepared_size(c->rows, c->in) : 64);
    memcpy(bias.data, c->bias, c->out * sizeof(float));
    for (size_t r = 0; r < c->rows; r++) {
        memcpy((float *)x.data + r * x_stride, c->x + r * c->in, c->in * sizeof(float));
        memcpy((float *)result.data + r * y_stride, c->residual + r * c->out, c->out * sizeof(float));
    }
    kernel->pack(packed.data, c->weight, c->in, c->out);
    /* The residual is y itself, as an encoder has it. */
    const foreloop_linear_call call = {c->rows,   c->in,    c->out,      x.data,      x_stride, prepared.data,
                                       packed.data, bias.data, epilogue, result.data, result.data, y_stride};
    for (size_t r = 0, end; kernel->prepare && r < c->rows; r = end) {
        end = parts ? part_end(parts, r, kernel->row_unit, c->rows) : c->rows;
        kernel->prepare(prepared.data, x.data, x_stride, c->rows, c->in, r, end);
    }
    for (size_t r = 0, row_end; r < c->rows; r = row_end) {
        row_end = parts ? part_end(parts, r, kernel->row_unit, c->rows) : c->rows;
        for (size_t o = 0, out_end; o < c->out; o = out_end) {
            out_end = parts ? part_end(parts, o, kernel->out_unit, c->out) : c->out;
            kernel->run(&call, r, row_end, o, out_end);
        }
    }
    for (size_t r = 0; r < c->rows; r++)
        memcpy(y + r * c->out, (float *)result.data + r * y_stride, c->out * sizeof(float));
    guarded_close(&x);
    guarded_close(&packed);
    guarded_close(&prepared);
    guarded_close(&bias);
    guarded_close(&result);
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
