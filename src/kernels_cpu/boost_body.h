/* The boost kernels in plain C, for each tier's file to compile with its own instruction set: loops over lanes become
 * vectors. Nothing is fused or reordered, so that all tiers give the same bits. */
#include "kernels_cpu/boost.h"
#include <math.h>
#include <string.h>

enum { LANES = FORELOOP_BOOST_LANES, LINE = FORELOOP_BOOST_LINE, AHEAD = 12 };

/* ---- Histograms -------------------------------------------------------------------------------------------------- */

static void histogram_dense(const uint8_t *codes, const uint64_t *gradients, const uint32_t *rows, size_t count,
                            uint64_t *histogram) {
    for (size_t i = 0; i < count; i++) {
        /* Rows of small nodes lie far apart, beyond what the hardware fetches ahead. */
        __builtin_prefetch(codes + (size_t)rows[i + AHEAD < count ? i + AHEAD : i] * LINE);
        const uint8_t *line = codes + (size_t)rows[i] * LINE;
        const uint64_t gradient = gradients[rows[i]];
#pragma GCC unroll 16
        for (size_t k = 0; k < LANES; k++)
            histogram[line[k] * (size_t)LANES + k] += gradient;
    }
}

static void histogram(const foreloop_boost_block *block, const uint64_t *gradients, const uint32_t *rows, size_t count,
                      uint64_t *sums) {
    memset(sums, 0, block->code_count * LANES * sizeof *sums);
    if (block->dense) {
        histogram_dense(block->columns[0], gradients, rows, count, sums);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const size_t place = (size_t)rows[i] * LINE;
        const uint64_t gradient = gradients[rows[i]];
        for (size_t k = 0; k < block->lane_count; k++)
            sums[block->columns[k][place] * (size_t)LANES + k] += gradient;
    }
}

static void subtract(uint64_t *whole, const uint64_t *part, size_t code_count) {
    for (size_t i = 0; i < code_count * LANES; i++)
        whole[i] -= part[i];
}

/* ---- Splits ------------------------------------------------------------------------------------------------------ */

#ifndef FORELOOP_BOOST_OWN_SCAN
/* Tries left[lanes], what goes left at `code`. */
static inline void try_split(const foreloop_boost_node *node, const uint64_t *left, int32_t code, int32_t missing_left,
                             foreloop_boost_best *best) {
    const int32_t least = node->min_hessian;
    const float lambda = node->lambda;
    for (size_t k = 0; k < LANES; k++) {
        const uint64_t right = node->sum - left[k];
        const int32_t left_h = foreloop_boost_hessian(left[k]), right_h = foreloop_boost_hessian(right);
        const float a = (float)foreloop_boost_gradient(left[k]), b = (float)foreloop_boost_gradient(right);
        const float p = (float)left_h + lambda, q = (float)right_h + lambda;
        const float gain = (a * a * q + b * b * p) / (p * q);
        const bool better = (left_h >= least) & (right_h >= least) & (gain > best->gain[k]);
        best->gain[k] = better ? gain : best->gain[k];
        best->code[k] = better ? code : best->code[k];
        best->missing_left[k] = better ? missing_left : best->missing_left[k];
    }
}

static void scan(const foreloop_boost_node *node, const uint64_t *sums, size_t code_count, foreloop_boost_best *best) {
    uint64_t left[LANES] = {0}, other[LANES], missing = 0;
    foreloop_boost_best own;
    memset(&own, 0, sizeof own);
    for (size_t k = 0; k < LANES; k++)
        missing |= sums[k];
    for (size_t code = 1; code < code_count; code++) {
        for (size_t k = 0; k < LANES; k++)
            left[k] += sums[code * LANES + k];
        try_split(node, left, (int32_t)code, 0, &own);
        if (missing) {
            for (size_t k = 0; k < LANES; k++)
                other[k] = left[k] + sums[k];
            try_split(node, other, (int32_t)code, 1, &own);
        }
    }
    *best = own;
}
#endif

/* ---- Pairs ------------------------------------------------------------------------------------------------------- */

/* e^x for -80 <= x <= 80, within 3e-7 of it: 2^n e^r, n whole, |r| <= ln 2 / 2. */
static inline float exponential(float x) {
    const float whole = (x * 1.44269504f + 12582912.0f) - 12582912.0f;
    const float r = (x - whole * 0.693359375f) - whole * -2.12194440e-4f;
    union {
        uint32_t bits;
        float value;
    } power;
    float sum = 1.0f / 720.0f;
    sum = sum * r + 1.0f / 120.0f;
    sum = sum * r + 1.0f / 24.0f;
    sum = sum * r + 1.0f / 6.0f;
    sum = sum * r + 0.5f;
    sum = sum * r + 1.0f;
    sum = sum * r + 1.0f;
    power.bits = (uint32_t)((int32_t)whole + 127) << 23;
    return sum * power.value;
}

/* How pairs are weighted, as numbers, so that no branch stands between the lanes: swap x ndcg + alike, divided by the
 * difference of scores x normalize + offset. A pair is alike to all others, or undivided, by a factor of 0. */
typedef struct pair_weights {
    float ndcg, alike, normalize, offset;
} pair_weights;

static pair_weights weights_of(const foreloop_boost_pairs *rule) {
    const pair_weights weights = {rule->ndcg ? 1.0f : 0.0f, rule->ndcg ? 0.0f : 1.0f,
                                  rule->normalize_score ? 1.0f : 0.0f, rule->normalize_score ? 0.01f : 1.0f};
    return weights;
}

/* The gradient of the pair of ranks i and j, as the lower one of the two gets it when i has the higher label, and its
 * hessian. Of LambdaRank: with p the predicted probability that the two stand the wrong way round, p x weight and
 * 2 p (1 - p) x weight. Labels a and b; `apart` is the difference of the scores, `swap` what changing the ranks changes
 * in NDCG. */
static inline float pair_gradient(pair_weights weights, float a, float b, float apart, float swap, float *hessian) {
    const float sign = (a > b ? 1.0f : 0.0f) - (a < b ? 1.0f : 0.0f);
    float x = sign * apart;
    x = x < 80.0f ? x : 80.0f;
    x = x > -80.0f ? x : -80.0f;
    const float e = exponential(x), p = 1.0f / (1.0f + e);
    const float weight =
        (fabsf(swap) * weights.ndcg + weights.alike) / (fabsf(apart) * weights.normalize + weights.offset);
    float curvature = e * p * p;
    curvature = curvature > 1e-16f ? curvature : 1e-16f;
    *hessian = sign * sign * curvature * weight * 2.0f;
    return sign * p * weight;
}

/* One fixed order of adding lanes. */
static inline float add_lanes(const float *lanes) {
    float sums[LANES];
    memcpy(sums, lanes, sizeof sums);
    for (size_t half = LANES / 2; half > 0; half /= 2)
        for (size_t k = 0; k < half; k++)
            sums[k] += sums[k + half];
    return sums[0];
}

static double top_pairs(const foreloop_boost_group *group, const foreloop_boost_pairs *rule, size_t top) {
    const pair_weights weights = weights_of(rule);
    const float *const scores = group->scores, *const labels = group->labels;
    const float *const gains = group->gains, *const discounts = group->discounts;
    double total = 0;
    for (size_t i = 0; i < top && i < group->count; i++) {
        const float score = scores[i], label = labels[i], gain = gains[i], discount = discounts[i];
        float gradient[LANES] = {0}, hessian[LANES] = {0}, absolute[LANES] = {0};
        /* From whole lanes on; what stands before i + 1 in them is left out, being taken for alike. */
        for (size_t first = (i + 1) / LANES * LANES; first < group->count; first += LANES) {
            const size_t before = i + 1 > first ? i + 1 - first : 0;
            float other[LANES], g[LANES], h[LANES];
            memcpy(other, labels + first, sizeof other);
            for (size_t k = 0; k < before; k++)
                other[k] = label;
            for (size_t k = 0; k < LANES; k++) {
                const float swap = (gain - gains[first + k]) * (discount - discounts[first + k]);
                g[k] = pair_gradient(weights, label, other[k], score - scores[first + k], swap, &h[k]);
            }
            for (size_t k = 0; k < LANES; k++) {
                group->gradients[first + k] += g[k];
                group->hessians[first + k] += h[k];
                gradient[k] -= g[k];
                hessian[k] += h[k];
                absolute[k] += fabsf(g[k]);
            }
        }
        group->gradients[i] += add_lanes(gradient);
        group->hessians[i] += add_lanes(hessian);
        total += 2.0 * (double)add_lanes(absolute);
    }
    return total;
}

static double one_pair(const foreloop_boost_group *group, const foreloop_boost_pairs *rule, size_t i, size_t j) {
    const float swap = (group->gains[i] - group->gains[j]) * (group->discounts[i] - group->discounts[j]);
    float h;
    const float g = pair_gradient(weights_of(rule), group->labels[i], group->labels[j],
                                  group->scores[i] - group->scores[j], swap, &h);
    group->gradients[i] -= g;
    group->hessians[i] += h;
    group->gradients[j] += g;
    group->hessians[j] += h;
    return 2.0 * (double)fabsf(g);
}

static void fill(foreloop_boost *kernels, foreloop_tier tier) {
    kernels->tier = tier;
    kernels->histogram = histogram;
    kernels->subtract = subtract;
    kernels->scan = scan;
    kernels->top_pairs = top_pairs;
    kernels->one_pair = one_pair;
}
