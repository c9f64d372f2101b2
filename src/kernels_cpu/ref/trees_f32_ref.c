/*
 * trees_f32, reference: row by row.
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

/* A row's number below `depth` complete levels whose tests begin at `first`. */
static inline size_t number_row(const foreloop_trees_data *data, size_t first, unsigned depth, const int8_t *codes) {
    size_t number = 0;
    for (unsigned level = 0; level < depth; level++) {
        const size_t test = first + ((size_t)1 << level) - 1 + number;
        const size_t right = codes[data->columns[test]] > data->thresholds[test];
        number |= right << level;
    }
    return number;
}

/* A row's leaf in a tree that is cut into pieces. */
static size_t pass_pieces(const foreloop_trees_data *data, const foreloop_trees_tree *tree, const int8_t *codes) {
    size_t piece = 0, state = 0, test = tree->test, exit = tree->exit;
    for (unsigned levels = 3; levels > 0; levels--)
        for (size_t i = 0; i < tree->pieces[3 - levels]; i++, piece++) {
            if (piece == state)
                state = data->exits[exit + number_row(data, test, levels, codes)];
            test += ((size_t)1 << levels) - 1;
            exit += (size_t)1 << levels;
        }
    return state;
}

static void add(float *sums, const int8_t *codes, size_t row_count, const foreloop_trees_data *data,
                const foreloop_trees_tree *trees, size_t tree_count) {
    for (size_t k = 0; k < tree_count; k++) {
        const foreloop_trees_tree *tree = &trees[k];
        const float *leaves = data->leaves + tree->leaf;
        for (size_t r = 0; r < row_count; r++)
            sums[r] +=
                leaves[tree->shape == FORELOOP_TREES_PIECES ? pass_pieces(data, tree, codes + r)
                                                            : number_row(data, tree->test, tree->depth, codes + r)];
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
    kernels->costs = (foreloop_trees_costs){.test = 58, .piece_test = 70, .feature = 1150, .step = 23};
    kernels->transpose = transpose;
    kernels->quantise = quantise;
    kernels->add = add;
    kernels->add_row = foreloop_trees_f32_add_row_ref;
}
