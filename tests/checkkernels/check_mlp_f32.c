/* mlp_f32 in every tier of this machine: the bits of its definition, which is written out here, for a row alone and for
 * every row of a block, within guard pages. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "guarded.h"
#include "kernels_cpu/cpu.h"
#include "kernels_cpu/mlp_f32.h"
#include "tap.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = FORELOOP_MLP_ROWS, LANES = FORELOOP_MLP_LANES };
static const char *const tier_names[] = {"best", "ref", "avx2", "avx512"};

static int same(float a, float b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

/* Values around those that the edge cases are about. */
static float draw(random_source *source) {
    static const float odd[] = {0.0f, -0.0f, 1e-42f, -1e-42f, 1.0f, -1.0f, 1e4f, -1e4f, 1e-20f};
    const uint32_t which = random_below(source, 40);
    return which < sizeof odd / sizeof *odd ? odd[which] : guarded_draw(source);
}

static void fill(guarded *array, random_source *source) {
    for (size_t i = 0; i < array->count; i++)
        array->values[i] = draw(source);
}

/* ---- Layers ------------------------------------------------------------------------------------------------------ */

typedef struct made_layer {
    foreloop_mlp_layer layer;
    guarded weight, bias;
} made_layer;

static made_layer make_layer(size_t in, size_t out, random_source *source) {
    const size_t stride = (out + LANES - 1) / LANES * LANES;
    made_layer made = {{in, out, stride, NULL, NULL}, guarded_make(in * stride, 0), guarded_make(stride, 0)};
    fill(&made.weight, source);
    fill(&made.bias, source);
    for (size_t o = out; o < stride; o++) {
        made.bias.values[o] = 0;
        for (size_t i = 0; i < in; i++)
            made.weight.values[i * stride + o] = 0;
    }
    made.layer.weight = made.weight.values;
    made.layer.bias = made.bias.values;
    return made;
}

static float expected_output(const foreloop_mlp_layer *layer, int relu, const float *x, size_t step, size_t o) {
    float sum = layer->bias[o];
    for (size_t i = 0; i < layer->in; i++)
        sum = fmaf(layer->weight[i * layer->stride + o], x[i * step], sum);
    if (!relu)
        return sum;
    return sum > 0 ? sum : 0;
}

/* Bit 0: a row alone, bit 1: blocks, bit 2: what is behind the computed rows is untouched. */
static int layer_result(const foreloop_mlp_f32 *kernels, const made_layer *made, int relu, random_source *source) {
    const foreloop_mlp_layer *layer = &made->layer;
    const size_t in = layer->in, out = layer->out;
    guarded x = guarded_make(in, 0), y = guarded_make(layer->stride, 0);
    guarded xs = guarded_make(in * ROWS, 0), given = guarded_make(in * ROWS, 0), ys = guarded_make(out * ROWS, 0);
    float *expected = malloc(out * ROWS * sizeof *expected), alone[ROWS];
    int result = 7;
    fill(&xs, source);
    for (size_t o = 0; o < out; o++)
        for (size_t r = 0; r < ROWS; r++)
            expected[o * ROWS + r] = expected_output(layer, relu, xs.values + r, ROWS, o);
    for (size_t r = 0; r < ROWS; r += 13) {
        for (size_t i = 0; i < in; i++)
            x.values[i] = xs.values[i * ROWS + r];
        kernels->row(layer, relu, x.values, y.values);
        for (size_t o = 0; o < layer->stride; o++)
            if (!same(y.values[o], o < out ? expected[o * ROWS + r] : 0))
                result &= 6;
    }
    for (size_t rows = 1; rows <= ROWS; rows += in * out > 300 ? 9 : 1) {
        const size_t whole = foreloop_mlp_whole_rows(rows);
        memset(ys.values, 0x5A, out * ROWS * sizeof *ys.values);
        memcpy(alone, ys.values, sizeof alone);
        /* Whatever lies behind the rows has no say. */
        for (size_t i = 0; i < in; i++)
            for (size_t r = 0; r < whole; r++)
                given.values[i * ROWS + r] = r < rows ? xs.values[i * ROWS + r] : NAN;
        kernels->block(layer, relu, given.values, rows, ys.values);
        for (size_t o = 0; o < out; o++)
            for (size_t r = 0; r < ROWS; r++) {
                if (r < rows && !same(ys.values[o * ROWS + r], expected[o * ROWS + r]))
                    result &= 5;
                if (r >= whole && !same(ys.values[o * ROWS + r], alone[r]))
                    result &= 3;
            }
    }
    guarded_free(&x);
    guarded_free(&y);
    guarded_free(&xs);
    guarded_free(&given);
    guarded_free(&ys);
    free(expected);
    return result;
}

static void check_layers(const foreloop_mlp_f32 *kernels, const char *tier) {
    static const size_t ins[] = {1, 2, 7, 16, 33, 64, 158, 200};
    static const size_t outs[] = {1, 3, 4, 5, 8, 15, 16, 17, 31, 64, 65, 80, 128, 129};
    for (size_t b = 0; b < sizeof outs / sizeof *outs; b++) {
        int result = 7;
        for (size_t a = 0; a < sizeof ins / sizeof *ins; a++) {
            random_source source = {ins[a] * 1000 + outs[b]};
            made_layer made = make_layer(ins[a], outs[b], &source);
            for (int relu = 0; relu < 2; relu++)
                result &= layer_result(kernels, &made, relu, &source);
            guarded_free(&made.weight);
            guarded_free(&made.bias);
        }
        CHECK(result == 7, "%s: layers of %zu outputs%s%s%s", tier, outs[b], result & 1 ? "" : ": wrong row",
              result & 2 ? "" : ": wrong block", result & 4 ? "" : ": writes elsewhere");
    }
}

/* ---- Standardising ----------------------------------------------------------------------------------------------- */

static float expected_input(float feature, float shift, float scale, float limit) {
    const float difference = feature - shift, product = difference * scale;
    const float low = product > -limit ? product : -limit;
    return low < limit ? low : limit;
}

static void check_standardise(const foreloop_mlp_f32 *kernels, const char *tier) {
    static const float far[] = {3e38f, -3e38f, INFINITY, -INFINITY, NAN, 4.0f, -4.0f, 0.0f, -0.0f};
    int row_right = 1, block_right = 1, untouched = 1;
    for (size_t count = 1; count <= 70; count++) {
        random_source source = {count};
        const size_t columns = count + 9;
        const float limit = count % 3 ? 4.0f : 0.25f;
        guarded row = guarded_make(columns, 0), block = guarded_make(columns * ROWS, 0);
        guarded shift = guarded_make(count, 0), scale = guarded_make(count, 0);
        guarded x = guarded_make(count, 0), xs = guarded_make(count * ROWS, 0);
        uint32_t *values = malloc(count * sizeof *values);
        fill(&shift, &source);
        for (size_t i = 0; i < block.count; i++) {
            const uint32_t which = random_below(&source, 64);
            block.values[i] = which < sizeof far / sizeof *far ? far[which] : 10 * draw(&source);
        }
        for (size_t i = 0; i < count; i++) {
            scale.values[i] = 3 * guarded_draw(&source) + 0.001f;
            values[i] = random_below(&source, (uint32_t)columns);
        }
        values[count - 1] = (uint32_t)columns - 1;
        for (size_t rows = 1; rows <= ROWS; rows += 7) {
            const size_t whole = foreloop_mlp_whole_rows(rows);
            memset(xs.values, 0x5A, count * ROWS * sizeof *xs.values);
            const float before = xs.values[0];
            kernels->standardise_block(block.values, values, shift.values, scale.values, limit, count, rows, xs.values);
            for (size_t i = 0; i < count; i++)
                for (size_t r = 0; r < ROWS; r++) {
                    const float expected =
                        expected_input(block.values[values[i] * ROWS + r], shift.values[i], scale.values[i], limit);
                    block_right &= r >= rows || same(xs.values[i * ROWS + r], expected);
                    untouched &= r < whole || same(xs.values[i * ROWS + r], before);
                }
            for (size_t c = 0; c < columns; c++)
                row.values[c] = block.values[c * ROWS + rows - 1];
            kernels->standardise_row(row.values, values, shift.values, scale.values, limit, count, x.values);
            for (size_t i = 0; i < count; i++)
                row_right &= same(x.values[i], xs.values[i * ROWS + rows - 1]);
        }
        guarded *const all[] = {&row, &block, &shift, &scale, &x, &xs};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            guarded_free(all[i]);
        free(values);
    }
    CHECK(block_right, "%s: standardised in blocks", tier);
    CHECK(row_right, "%s: standardised alone", tier);
    CHECK(untouched, "%s: rows behind are untouched", tier);
}

int main(void) {
    for (foreloop_tier tier = FORELOOP_TIER_REF; tier <= FORELOOP_TIER_AVX512; tier = (foreloop_tier)(tier + 1)) {
        foreloop_mlp_f32 kernels;
        if (tier > foreloop_cpu_tier(FORELOOP_TIER_BEST)) {
            tap_skip("this machine lacks a tier");
            continue;
        }
        foreloop_mlp_f32_init(&kernels, tier);
        CHECK(strcmp(kernels.tier, tier_names[tier]) == 0, "tier %s runs", kernels.tier);
        check_standardise(&kernels, tier_names[tier]);
        check_layers(&kernels, tier_names[tier]);
    }
    return tap_done();
}
