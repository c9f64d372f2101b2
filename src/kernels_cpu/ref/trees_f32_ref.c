/*
 * trees_f32, reference: loops over the rows of a block that compilers turn into vectors of whatever width there is.
 */
#include "kernels_cpu/trees_f32.h"
#include <string.h>

enum { ROWS = FORELOOP_TREES_ROWS, GROUP = FORELOOP_TREES_GROUP };

static void transpose(float *tile, const float *rows, size_t row_stride, size_t row_count, size_t feature_count) {
    const size_t padded = (row_count + GROUP - 1) / GROUP * GROUP;
    for (size_t i = 0; i < GROUP; i++)
        for (size_t r = 0; r < padded; r++)
            tile[i * ROWS + r] = r < row_count && i < feature_count ? rows[r * row_stride + i] : 0.0f;
}

static void quantise(int8_t *codes, const float *values, size_t group_count, const foreloop_trees_feature *feature,
                     const float *tables) {
    const float *table = tables + feature->table;
    int8_t *lefts = feature->lefts < FORELOOP_TREES_COLUMNS ? codes + feature->lefts * ROWS : NULL;
    int8_t *rights = feature->rights < FORELOOP_TREES_COLUMNS ? codes + feature->rights * ROWS : NULL;
    for (size_t r = 0; r < group_count * GROUP; r++) {
        const float x = values[r];
        size_t m = 1;
        for (unsigned level = 0; level < feature->levels; level++)
            m = 2 * m + (table[m] <= x);
        int code = (int)(m - ((size_t)1 << feature->levels)); /* 0 for NaN */
        if (lefts)
            lefts[r] = (int8_t)(code - 128);
        if (rights)
            rights[r] = (int8_t)((x != x ? feature->count : code) - 128);
    }
}

/* One byte for each row of a block; a test's are all ones where the row goes right, else 0. */
typedef struct bytes {
    uint8_t row[ROWS];
} bytes;

static inline void test(bytes *restrict result, const foreloop_trees_data *data, size_t i,
                        const int8_t *restrict codes) {
    const int8_t threshold = (int8_t)data->thresholds[i], *column = codes + data->columns[i];
    for (size_t r = 0; r < ROWS; r++)
        result->row[r] = column[r] > threshold ? 0xff : 0;
}

static inline void choose(bytes *restrict result, const bytes *restrict right, const bytes *restrict if_left,
                          const bytes *restrict if_right) {
    for (size_t r = 0; r < ROWS; r++)
        result->row[r] = (uint8_t)((if_right->row[r] & right->row[r]) | (if_left->row[r] & ~right->row[r]));
}

/* The leaves' numbers in a complete tree: the tests of each level are brought down to the one that the row meets,
 * those that are left going from one half of `tests` to the other. */
static void number_complete(bytes *numbers, const foreloop_trees_data *data, const foreloop_trees_tree *tree,
                            const int8_t *codes) {
    enum { HALF = FORELOOP_TREES_LEAVES / 2 };
    bytes bits[FORELOOP_TREES_DEPTH], tests[2 * HALF];
    memset(numbers, 0, sizeof *numbers);
    for (unsigned level = 0; level < tree->depth; level++) {
        const size_t width = (size_t)1 << level;
        bytes *from = tests, *to = tests + HALF;
        for (size_t i = 0; i < width; i++)
            test(&from[i], data, tree->test + width - 1 + i, codes);
        for (unsigned upper = level; upper-- > 0;) {
            for (size_t i = 0; i < (size_t)1 << upper; i++)
                choose(&to[i], &bits[upper], &from[2 * i], &from[2 * i + 1]);
            bytes *left_over = from;
            from = to;
            to = left_over;
        }
        bits[level] = from[0];
        for (size_t r = 0; r < ROWS; r++)
            numbers->row[r] = (uint8_t)(2u * numbers->row[r] + (bits[level].row[r] & 1u));
    }
}

static void number_joins(bytes *numbers, const foreloop_trees_data *data, const foreloop_trees_tree *tree,
                         const int8_t *codes) {
    bytes slots[FORELOOP_TREES_SLOTS], right, if_left, if_right;
    memset(&slots[0], 0, sizeof slots[0]);
    for (size_t i = 0; i < tree->test_count; i++) {
        const foreloop_trees_join *join = &data->joins[tree->join + i];
        test(&right, data, tree->test + i, codes);
        if_left = slots[join->left];
        for (size_t r = 0; r < ROWS; r++)
            if_right.row[r] = (uint8_t)(slots[join->right].row[r] + join->left_leaves);
        choose(&slots[join->into], &right, &if_left, &if_right);
    }
    *numbers = slots[1];
}

static void add(float *sums, const int8_t *codes, size_t row_count, const foreloop_trees_data *data,
                const foreloop_trees_tree *trees, size_t tree_count) {
    for (size_t k = 0; k < tree_count; k++) {
        bytes numbers;
        if (trees[k].shape == FORELOOP_TREES_JOINS)
            number_joins(&numbers, data, &trees[k], codes);
        else
            number_complete(&numbers, data, &trees[k], codes);
        for (size_t r = 0; r < row_count; r++)
            sums[r] += data->leaves[trees[k].leaf + numbers.row[r]];
    }
}

enum { LANES = 8 }; /* walks that advance in step, so that their loads overlap */

/* One step in each lane; 0 when all were at leaves before. */
static inline uint32_t step(uint32_t current[LANES], const foreloop_trees_node *nodes, const uint32_t roots[LANES],
                            const float *row) {
    uint32_t at_leaf = FORELOOP_TREES_IS_LEAF;
    for (int lane = 0; lane < LANES; lane++) {
        const foreloop_trees_node node = nodes[roots[lane] + current[lane]];
        const float x = row[node.word >> FORELOOP_TREES_FEATURE_SHIFT];
        const uint32_t missing_left = (x != x) & (node.word / FORELOOP_TREES_DEFAULT_LEFT);
        const uint32_t left = (uint32_t)(x < node.value) | missing_left | (node.word / FORELOOP_TREES_IS_LEAF);
        current[lane] = (node.word & FORELOOP_TREES_LEFT) + (~left & 1u);
        at_leaf &= node.word;
    }
    return at_leaf ^ FORELOOP_TREES_IS_LEAF;
}

float foreloop_trees_f32_add_row_ref(float sum, const float *row, const foreloop_trees_node *nodes,
                                     const uint32_t *roots, size_t tree_count, unsigned depth) {
    for (size_t first = 0; first < tree_count; first += LANES) {
        const size_t count = tree_count - first < LANES ? tree_count - first : LANES;
        uint32_t lane_roots[LANES] = {0}, current[LANES] = {0};
        memcpy(lane_roots, roots + first, count * sizeof *roots);
        for (unsigned d = 0; d < depth && step(current, nodes, lane_roots, row); d++)
            ;
        for (size_t lane = 0; lane < count; lane++)
            sum += nodes[lane_roots[lane] + current[lane]].value;
    }
    return sum;
}

void foreloop_trees_f32_ref(foreloop_trees_f32 *kernels) {
    kernels->tier = FORELOOP_TIER_REF;
    kernels->costs = (foreloop_trees_costs){.test = 58, .join = 70, .feature = 1150, .step = 23};
    kernels->transpose = transpose;
    kernels->quantise = quantise;
    kernels->add = add;
    kernels->add_row = foreloop_trees_f32_add_row_ref;
}
