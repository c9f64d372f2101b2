/*
 * Kernel family boost: the inner loops of training trees by gradient boosting (ranker/).
 *
 * Gradients are whole numbers: a row's gradient and hessian, scaled so that no sum of them can overflow, stand packed
 * in one word, the gradient in the upper 32 bits (signed), the hessian in the lower 31. One addition adds both, sums do
 * not depend on their order, and a sibling's histogram is an exact difference: the same bits for every tier and every
 * number of threads.
 *
 * A feature's values are codes: 0 is missing, 1 to 255 are bins in rising order. A cache line holds the codes of 64
 * features of one row, and 16 neighbouring features make a block, one feature a lane. A block's histogram is laid out
 * [code][lane], so that a scan over the codes runs in all lanes at once, and with 256 codes it is 32 KiB: it stays in
 * the first cache while rows are added, where a row costs a load of the code and an addition to memory for each lane.
 */
#ifndef FORELOOP_KERNELS_CPU_BOOST_H
#define FORELOOP_KERNELS_CPU_BOOST_H

#include <foreloop/foreloop.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FORELOOP_BOOST_LANES = 16,
    FORELOOP_BOOST_LINE = 64, /* codes of a row that stand together */
    FORELOOP_BOOST_CODES = 256
};

/* Up to 16 features. The code of lane k in row r is columns[k][r * FORELOOP_BOOST_LINE]. */
typedef struct foreloop_boost_block {
    const uint8_t *columns[FORELOOP_BOOST_LANES];
    uint32_t features[FORELOOP_BOOST_LANES]; /* for the caller */
    size_t lane_count;
    size_t code_count; /* the highest code of any lane, plus 1 */
    bool dense;        /* columns[k] is columns[0] + k in all 16 lanes, which may be read */
    size_t offset;     /* of its histogram, for the caller */
} foreloop_boost_block;

static inline int32_t foreloop_boost_gradient(uint64_t sum) {
    return (int32_t)(uint32_t)(sum >> 32);
}
static inline int32_t foreloop_boost_hessian(uint64_t sum) {
    return (int32_t)(uint32_t)sum;
}

/* A node whose splits are looked for, in the units of the packed sums. */
typedef struct foreloop_boost_node {
    uint64_t sum;        /* over its rows */
    int32_t min_hessian; /* of a child, from 1 */
    float lambda;        /* from 0 to 2^45 */
} foreloop_boost_node;

/* The best split in each lane. left and right being the sums of gradients and hessians, its gain is left.g^2 / (left.h
 * + lambda) + right.g^2 / (right.h + lambda); 0 where no split is allowed. Of equal gains the first stands. */
typedef struct foreloop_boost_best {
    float gain[FORELOOP_BOOST_LANES];
    int32_t code[FORELOOP_BOOST_LANES];         /* the highest that goes left */
    int32_t missing_left[FORELOOP_BOOST_LANES]; /* not 0: missing values go left */
} foreloop_boost_best;

/* One group in the order of its ranks: best predicted first. Arrays are padded to whole lanes, `labels` with NaN, the
 * others with finite numbers. */
typedef struct foreloop_boost_group {
    size_t count;
    const float *scores;    /* falling */
    const float *labels;    /* only their order counts */
    const float *gains;     /* NDCG: gain / ideal DCG */
    const float *discounts; /* NDCG: by rank */
    float *gradients;       /* sums; the padding is written to */
    float *hessians;
} foreloop_boost_group;

typedef struct foreloop_boost_pairs {
    bool ndcg;            /* weigh pairs by what swapping them changes in NDCG */
    bool normalize_score; /* divide the weight by the difference of the scores + 0.01 */
} foreloop_boost_pairs;

typedef struct foreloop_boost {
    foreloop_tier tier;
    /* histogram[code_count][lanes] = sums of gradients[rows[i]] by code. */
    void (*histogram)(const foreloop_boost_block *block, const uint64_t *gradients, const uint32_t *rows, size_t count,
                      uint64_t *histogram);
    /* whole[i] -= part[i] for whole blocks. */
    void (*subtract)(uint64_t *whole, const uint64_t *part, size_t code_count);
    void (*scan)(const foreloop_boost_node *node, const uint64_t *histogram, size_t code_count,
                 foreloop_boost_best *best);
    /* Adds the gradients of all pairs (i, j) with i < top and i < j. Returns the sum of their absolute values, over
     * both sides. */
    double (*top_pairs)(const foreloop_boost_group *group, const foreloop_boost_pairs *rule, size_t top);
    /* The same of the pair of ranks (i, j), i < j. */
    double (*one_pair)(const foreloop_boost_group *group, const foreloop_boost_pairs *rule, size_t i, size_t j);
} foreloop_boost;

void foreloop_boost_init(foreloop_boost *kernels, foreloop_tier tier);
void foreloop_boost_ref(foreloop_boost *kernels);
void foreloop_boost_avx2(foreloop_boost *kernels);
void foreloop_boost_avx512(foreloop_boost *kernels);

#endif
