/* The boost kernels of every tier against plain computations, on random and adversarial blocks and groups: histograms
 * and scans exactly, gradients of pairs within rounding, and all of them the same bits in every tier. */
#include "kernels_cpu/boost.h"
#include "kernels_cpu/cpu.h"
#include "random.h"
#include "tap.h"
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = FORELOOP_BOOST_LANES, LINE = FORELOOP_BOOST_LINE, CODES = FORELOOP_BOOST_CODES, ROWS = 700 };

static const char *const tier_names[] = {"", "ref", "avx2", "avx512"};
static uint8_t codes[ROWS * LINE];
static uint64_t gradients[ROWS], histogram[CODES * LANES], expected[CODES * LANES];
static uint32_t rows[ROWS];

/* ---- Histograms and splits --------------------------------------------------------------------------------------- */

static void make_block(foreloop_boost_block *block, random_source *random, bool dense) {
    memset(block, 0, sizeof *block);
    block->lane_count = dense ? LANES : 1 + random_below(random, LANES);
    block->code_count = 2 + random_below(random, CODES - 1);
    block->dense = dense;
    for (size_t k = 0; k < block->lane_count; k++)
        block->columns[k] = codes + (dense ? 16 + k : random_below(random, LINE));
    /* Few distinct codes now and then, so that one of them gets most rows. */
    const uint32_t codes_used = random_below(random, 2) ? (uint32_t)block->code_count : 2;
    for (size_t i = 0; i < ROWS * LINE; i++)
        codes[i] = (uint8_t)random_below(random, codes_used);
    for (size_t i = 0; i < ROWS; i++)
        gradients[i] = ((uint64_t)(int64_t)((int32_t)random_below(random, 2000001) - 1000000) << 32) +
                       random_below(random, 1000000);
}

static size_t draw_rows(random_source *random) {
    size_t count = 0;
    const uint32_t share = 1 + random_below(random, 8);
    for (uint32_t i = 0; i < ROWS; i++)
        if (random_below(random, share) == 0)
            rows[count++] = i;
    return count;
}

/* The gain as the contract gives it, in double precision; 0 where the split is not allowed. */
static double gain_of(const foreloop_boost_node *node, uint64_t left) {
    const uint64_t right = node->sum - left;
    const double a = foreloop_boost_gradient(left), b = foreloop_boost_gradient(right);
    const double p = foreloop_boost_hessian(left), q = foreloop_boost_hessian(right), lambda = (double)node->lambda;
    return p < node->min_hessian || q < node->min_hessian ? 0 : a * a / (p + lambda) + b * b / (q + lambda);
}

static size_t wrong_splits(const foreloop_boost_block *block, const foreloop_boost_node *node,
                           const foreloop_boost_best *best) {
    size_t wrong = 0;
    for (size_t k = 0; k < block->lane_count; k++) {
        double greatest = 0;
        uint64_t left = 0, chosen = 0;
        for (size_t code = 1; code < block->code_count; code++) {
            left += histogram[code * LANES + k];
            greatest = fmax(greatest, gain_of(node, left));
            greatest = fmax(greatest, gain_of(node, left + histogram[k]));
            if (code == (size_t)best->code[k])
                chosen = left + (best->missing_left[k] ? histogram[k] : 0);
        }
        const double own = best->code[k] ? gain_of(node, chosen) : 0;
        wrong += fabs((double)best->gain[k] - greatest) > 1e-5 * greatest || own < 0.99999 * greatest;
    }
    return wrong;
}

static void check_blocks(const foreloop_boost *kernels, const foreloop_boost *reference) {
    random_source random = {7};
    size_t wrong_sums = 0, wrong = 0, other_bits = 0;
    for (int run = 0; run < 60; run++) {
        foreloop_boost_block block;
        foreloop_boost_best best, reference_best;
        make_block(&block, &random, run % 2 == 0);
        const size_t count = draw_rows(&random), size = block.code_count * LANES * sizeof *histogram;
        foreloop_boost_node node = {.min_hessian = 1 + (int32_t)random_below(&random, 5000000),
                                    .lambda = run % 3 ? (float)random_below(&random, 1000000) : 0.0f};
        memset(expected, 0, sizeof expected);
        memset(histogram, 0xA5, sizeof histogram);
        for (size_t i = 0; i < count; i++) {
            node.sum += gradients[rows[i]];
            for (size_t k = 0; k < block.lane_count; k++)
                expected[block.columns[k][(size_t)rows[i] * LINE] * (size_t)LANES + k] += gradients[rows[i]];
        }
        kernels->histogram(&block, gradients, rows, count, histogram);
        wrong_sums += memcmp(histogram, expected, size) != 0;
        kernels->scan(&node, histogram, block.code_count, &best);
        reference->scan(&node, histogram, block.code_count, &reference_best);
        wrong += wrong_splits(&block, &node, &best);
        other_bits += memcmp(&best, &reference_best, sizeof best) != 0;
        kernels->subtract(histogram, expected, block.code_count);
        for (size_t i = 0; i < block.code_count * LANES; i++)
            wrong_sums += histogram[i] != 0;
    }
    const char *name = tier_names[kernels->tier];
    CHECK(wrong_sums == 0, "%s: histograms and differences are exact", name);
    CHECK(wrong == 0, "%s: the best split of every lane", name);
    CHECK(other_bits == 0, "%s: the reference's bits", name);
}

/* ---- Pairs ------------------------------------------------------------------------------------------------------- */

enum { GROUP_MAX = 100, PADDED = (GROUP_MAX + LANES - 1) / LANES * LANES };

typedef struct group_memory {
    float scores[PADDED], labels[PADDED], gains[PADDED], discounts[PADDED], gradients[PADDED], hessians[PADDED];
} group_memory;

static foreloop_boost_group make_group(group_memory *memory, random_source *random, int run) {
    const size_t count = 1 + random_below(random, GROUP_MAX);
    const float spread = run % 4 == 0 ? 100.0f : run % 4 == 1 ? 0.0f : 1.0f;
    memset(memory, 0, sizeof *memory);
    float score = 5.0f;
    for (size_t i = 0; i < PADDED; i++) {
        memory->scores[i] = score;
        memory->labels[i] = i < count ? (float)random_below(random, 6) : NAN;
        memory->gains[i] = i < count ? (ldexpf(1.0f, (int)memory->labels[i]) - 1.0f) / 70.0f : 0.0f;
        memory->discounts[i] = 1.0f / log2f((float)i + 2.0f);
        score -= spread * (float)random_below(random, 1000) / 1000.0f;
    }
    const foreloop_boost_group group = {
        count, memory->scores, memory->labels, memory->gains, memory->discounts, memory->gradients, memory->hessians};
    return group;
}

/* LambdaRank in double precision. */
static double plain_pairs(const foreloop_boost_group *group, const foreloop_boost_pairs *rule, size_t top, double *g,
                          double *h) {
    double total = 0;
    for (size_t i = 0; i < group->count && i < top; i++)
        for (size_t j = i + 1; j < group->count; j++) {
            if (group->labels[i] == group->labels[j])
                continue;
            const size_t high = group->labels[i] > group->labels[j] ? i : j, low = high == i ? j : i;
            const double apart = (double)group->scores[high] - (double)group->scores[low];
            const double p = 1.0 / (1.0 + exp(apart));
            double weight = 1.0;
            if (rule->ndcg)
                weight = fabs(((double)group->gains[i] - (double)group->gains[j]) *
                              ((double)group->discounts[i] - (double)group->discounts[j]));
            if (rule->normalize_score)
                weight /= fabs(apart) + 0.01;
            g[high] -= p * weight;
            g[low] += p * weight;
            h[high] += 2.0 * fmax(p * (1.0 - p), 1e-16) * weight;
            h[low] += 2.0 * fmax(p * (1.0 - p), 1e-16) * weight;
            total += 2.0 * p * weight;
        }
    return total;
}

static void check_pairs(const foreloop_boost *kernels, const foreloop_boost *reference) {
    random_source random = {11};
    double worst = 0;
    size_t other_bits = 0;
    for (int run = 0; run < 80; run++) {
        static group_memory memory, again;
        double g[GROUP_MAX] = {0}, h[GROUP_MAX] = {0};
        const foreloop_boost_group group = make_group(&memory, &random, run);
        const foreloop_boost_pairs rule = {.ndcg = run / 4 % 2 == 0, .normalize_score = run / 8 % 2 == 0};
        const size_t top = run % 3 ? SIZE_MAX : 1 + random_below(&random, 20);
        again = memory;
        const foreloop_boost_group copy = {group.count,     again.scores,    again.labels,  again.gains,
                                           again.discounts, again.gradients, again.hessians};
        const double total = kernels->top_pairs(&group, &rule, top);
        const double reference_total = reference->top_pairs(&copy, &rule, top);
        const double plain = plain_pairs(&group, &rule, top, g, h);
        double g_scale = 1e-20, h_scale = 1e-20;
        other_bits += total != reference_total || memcmp(memory.gradients, again.gradients, sizeof again.gradients) ||
                      memcmp(memory.hessians, again.hessians, sizeof again.hessians);
        for (size_t i = 0; i < group.count; i++) {
            g_scale = fmax(g_scale, fabs(g[i]));
            h_scale = fmax(h_scale, fabs(h[i]));
        }
        for (size_t i = 0; i < group.count; i++) {
            worst = fmax(worst, fabs((double)memory.gradients[i] - g[i]) / g_scale);
            worst = fmax(worst, fabs((double)memory.hessians[i] - h[i]) / h_scale);
        }
        worst = fmax(worst, fabs(total - plain) / fmax(plain, 1e-20));
        /* The same pairs one by one. */
        memset(again.gradients, 0, sizeof again.gradients);
        double sum = 0;
        for (size_t i = 0; i < group.count && i < top; i++)
            for (size_t j = i + 1; j < group.count; j++)
                sum += kernels->one_pair(&copy, &rule, i, j);
        worst = fmax(worst, fabs(sum - plain) / fmax(plain, 1e-20));
        for (size_t i = 0; i < group.count; i++)
            worst = fmax(worst, fabs((double)again.gradients[i] - g[i]) / g_scale);
    }
    const char *name = tier_names[kernels->tier];
    CHECK(worst < 1e-4, "%s: gradients within %.1e of double precision", name, worst);
    CHECK(other_bits == 0, "%s: the reference's bits", name);
}

int main(void) {
    foreloop_boost reference;
    foreloop_boost_init(&reference, FORELOOP_TIER_REF);
    for (foreloop_tier tier = FORELOOP_TIER_REF; tier <= foreloop_cpu_tier(FORELOOP_TIER_BEST); tier++) {
        foreloop_boost kernels;
        foreloop_boost_init(&kernels, tier);
        CHECK(kernels.tier == tier, "%s runs", tier_names[tier]);
        check_blocks(&kernels, &reference);
        check_pairs(&kernels, &reference);
    }
    return tap_done();
}
