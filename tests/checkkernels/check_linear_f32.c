/* linear in f32, in every tier of this machine, against sums in double: random and adversarial shapes, all epilogues,
 * any alignment, arrays that end at a page that may not be touched; and the same bits for every part of a call. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "guarded.h"
#include "kernels_cpu/cpu.h"
#include "kernels_cpu/kernels.h"
#include "tap.h"
#include <float.h>
#include <math.h>
#include <string.h>

static const char *const tier_names[] = {"best", "ref", "avx2", "avx512"};
static const char *const epilogue_names[] = {"gelu", "gelu_tanh", "relu", "none", "residual"};

typedef struct linear_case {
    const foreloop_linear *linear;
    size_t rows, in, out;
    foreloop_epilogue epilogue;
    size_t gap; /* of the arrays' alignment */
} linear_case;

static double apply(foreloop_epilogue epilogue, double x, double residual) {
    switch (epilogue) {
    case FORELOOP_EPILOGUE_GELU:
        return 0.5 * x * (1 + erf(x / sqrt(2)));
    case FORELOOP_EPILOGUE_GELU_TANH:
        return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
    case FORELOOP_EPILOGUE_RELU:
        return x > 0 ? x : 0;
    case FORELOOP_EPILOGUE_RESIDUAL:
        return x + residual;
    default:
        return x;
    }
}

/* 1 when y is right, with its gaps untouched. */
static int is_right(const linear_case *what, const foreloop_linear_call *call, const float *weight,
                    const float *residual) {
    for (size_t r = 0; r < call->rows; r++)
        for (size_t o = 0; o < call->y_stride && r * call->y_stride + o < (call->rows - 1) * call->y_stride + call->out;
             o++) {
            const size_t place = r * call->y_stride + o;
            if (o >= call->out) {
                if (call->y[place] != residual[place])
                    return 0;
                continue;
            }
            double sum = call->bias[o], sizes = fabs(sum);
            for (size_t i = 0; i < call->in; i++) {
                const double product = (double)call->x[r * call->x_stride + i] * weight[o * call->in + i];
                sum += product;
                sizes += fabs(product);
            }
            const double expected = apply(what->epilogue, sum, residual[place]);
            if (!(fabs(call->y[place] - expected) <=
                  FLT_EPSILON * (sizes * 0.5 * sqrt((double)call->in) + 6 + fabs(residual[place]))))
                return 0;
        }
    return 1;
}

/* Runs the call in parts, in an order of its own, and row by row; 1 when all give the bits of `whole`. */
static int parts_agree(const linear_case *what, foreloop_linear_call call, const float *residual, const float *whole,
                       size_t size, random_source *source) {
    const foreloop_linear *linear = what->linear;
    int same = 1;
    memcpy(call.y, residual, size * sizeof *call.y);
    for (size_t out_end = call.out; out_end > 0;) {
        size_t out = random_below(source, (uint32_t)out_end) / linear->out_unit * linear->out_unit;
        for (size_t row = 0; row < call.rows;) {
            size_t row_end = row + 1 + random_below(source, 20);
            row_end = (row_end + linear->row_unit - 1) / linear->row_unit * linear->row_unit;
            row_end = row_end < call.rows ? row_end : call.rows;
            linear->run(&call, row, row_end, out, out_end);
            row = row_end;
        }
        out_end = out;
    }
    same &= memcmp(call.y, whole, size * sizeof *whole) == 0;
    /* The last row alone, as a call of its own. */
    const size_t last = call.rows - 1;
    memcpy(call.y, residual, size * sizeof *call.y);
    call.x += last * call.x_stride;
    call.y += last * call.y_stride;
    call.residual = call.y;
    call.rows = 1;
    linear->run(&call, 0, 1, 0, call.out);
    same &= memcmp(call.y, whole + last * call.y_stride, call.out * sizeof *whole) == 0;
    return same;
}

/* Returns bit 0: right, bit 1: parts agree. */
static int check(const linear_case *what) {
    random_source source = {what->rows * 100003 + what->in * 331 + what->out * 17 + what->gap + 1};
    const size_t x_stride = what->in + random_below(&source, 9), y_stride = what->out + random_below(&source, 9);
    const size_t y_size = (what->rows - 1) * y_stride + what->out;
    guarded x = guarded_make((what->rows - 1) * x_stride + what->in, what->gap);
    guarded y = guarded_make(y_size, what->gap / 2), bias = guarded_make(what->out, (what->gap + 3) % 16);
    guarded weight = guarded_make(what->out * what->in, 0);
    float *packed = aligned_alloc(64, (what->linear->packed_size(what->in, what->out) + 63) / 64 * 64);
    float *residual = malloc(y_size * sizeof *residual), *whole = malloc(y_size * sizeof *whole);
    guarded_fill(&x, &source);
    guarded_fill(&y, &source);
    guarded_fill(&bias, &source);
    guarded_fill(&weight, &source);
    memcpy(residual, y.values, y_size * sizeof *residual);
    what->linear->pack(packed, weight.values, what->in, what->out);
    const foreloop_linear_call call = {.rows = what->rows,
                                       .in = what->in,
                                       .out = what->out,
                                       .x = x.values,
                                       .x_stride = x_stride,
                                       .packed = packed,
                                       .bias = bias.values,
                                       .epilogue = what->epilogue,
                                       .residual = y.values,
                                       .y = y.values,
                                       .y_stride = y_stride};
    what->linear->run(&call, 0, what->rows, 0, what->out);
    int result = is_right(what, &call, weight.values, residual);
    memcpy(whole, y.values, y_size * sizeof *whole);
    result |= parts_agree(what, call, residual, whole, y_size, &source) << 1;
    guarded_free(&x);
    guarded_free(&y);
    guarded_free(&bias);
    guarded_free(&weight);
    free(packed);
    free(residual);
    free(whole);
    return result;
}

static void check_shapes(const foreloop_linear *linear, const char *tier) {
    static const size_t rows[] = {1, 2, 5, 6, 7, 13, 14, 15, 28, 29, 57};
    static const size_t ins[] = {1, 3, 16, 63, 64, 65, 768, 769};
    static const size_t outs[] = {1, 15, 16, 17, 31, 32, 33, 65, 96};
    enum { ROWS = sizeof rows / sizeof *rows, INS = sizeof ins / sizeof *ins, OUTS = sizeof outs / sizeof *outs };
    for (size_t r = 0; r < ROWS; r++)
        for (size_t i = 0; i < INS; i++) {
            int result = 3;
            for (size_t o = 0; o < OUTS; o++) {
                const linear_case what = {
                    linear, rows[r], ins[i], outs[o], (foreloop_epilogue)((r + i + o) % 5), (r + 5 * i + 3 * o) % 16};
                result &= check(&what);
            }
            CHECK(result == 3, "%s: %zu rows, %zu inputs, 1 to 96 outputs%s%s", tier, rows[r], ins[i],
                  result & 1 ? "" : " are wrong", result & 2 ? "" : " depend on the part");
        }
}

static void check_random(const foreloop_linear *linear, const char *tier) {
    random_source source = {20240607};
    for (size_t i = 0; i < 40; i++) {
        const linear_case what = {linear,
                                  1 + random_below(&source, 90),
                                  1 + random_below(&source, i % 8 ? 300 : 2000),
                                  1 + random_below(&source, 200),
                                  (foreloop_epilogue)(i % 5),
                                  random_below(&source, 16)};
        const int result = check(&what);
        CHECK(result == 3, "%s: %zu x %zu x %zu, %s%s%s", tier, what.rows, what.in, what.out,
              epilogue_names[what.epilogue], result & 1 ? "" : ": wrong", result & 2 ? "" : ": depends on the part");
    }
}

/* NaN and infinity come through to their row, and to no other. */
static void check_special(const foreloop_linear *linear, const char *tier) {
    enum { ROWS = 16, IN = 20, OUT = 40 };
    float x[ROWS * IN], weight[OUT * IN], bias[OUT] = {0}, y[ROWS * OUT];
    float *packed = aligned_alloc(64, (linear->packed_size(IN, OUT) + 63) / 64 * 64);
    for (size_t e = 0; e < 5; e++) {
        for (size_t i = 0; i < ROWS * IN; i++)
            x[i] = 0.5f;
        for (size_t i = 0; i < OUT * IN; i++)
            weight[i] = 0.25f;
        for (size_t i = 0; i < ROWS * OUT; i++)
            y[i] = 0;
        x[3 * IN + 7] = NAN;
        x[5 * IN + IN - 1] = INFINITY;
        linear->pack(packed, weight, IN, OUT);
        const foreloop_linear_call call = {.rows = ROWS,
                                           .in = IN,
                                           .out = OUT,
                                           .x = x,
                                           .x_stride = IN,
                                           .packed = packed,
                                           .bias = bias,
                                           .epilogue = (foreloop_epilogue)e,
                                           .residual = y,
                                           .y = y,
                                           .y_stride = OUT};
        linear->run(&call, 0, ROWS, 0, OUT);
        int right = 1;
        for (size_t r = 0; r < ROWS; r++)
            for (size_t o = 0; o < OUT; o++)
                right &= r == 3 ? isnan(y[r * OUT + o]) : r == 5 ? isinf(y[r * OUT + o]) : isfinite(y[r * OUT + o]);
        CHECK(right, "%s, %s: NaN and infinity stay in their rows", tier, epilogue_names[e]);
    }
    free(packed);
}

int main(void) {
    for (foreloop_tier tier = FORELOOP_TIER_REF; tier <= FORELOOP_TIER_AVX512; tier++) {
        foreloop_kernels kernels;
        if (tier > foreloop_cpu_tier(FORELOOP_TIER_BEST)) {
            tap_skip("this machine lacks a tier");
            continue;
        }
        foreloop_kernels_init(&kernels, tier, 0);
        const foreloop_linear *linear = &kernels.linear[FORELOOP_PRECISION_F32];
        CHECK(linear->tier == tier && kernels.tier == tier, "the kernels are of the tier %s", tier_names[tier]);
        check_shapes(linear, tier_names[tier]);
        check_random(linear, tier_names[tier]);
        check_special(linear, tier_names[tier]);
    }
    return tap_done();
}
