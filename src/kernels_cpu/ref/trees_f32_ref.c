/*
 * trees_f32, reference: row by row, for any processor.
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

static void quantise(int8_t *codes, size_t stride, const float *values, size_t group_count,
                     const foreloop_trees_feature *feature, const float *tables) {
    const float *table = tables + feature->table;
    int8_t *lefts = feature->lefts < FORELOOP_TREES_COLUMNS ? codes + feature->lefts * stride : NULL;
    int8_t *rights = feature->rights < FORELOOP_TREES_COLUMNS ? codes + feature->rights * stride : NULL;
    const size_t row_count = group_count * GROUP, first = (size_t)1 << feature->levels;
    uint16_t places[ROWS];
    for (size_t r = 0; r < row_count; r++)
        places[r] = 1;
    /* Level by level, so that the rows' loads overlap. */
    for (unsigned level = 0; level < feature->levels; level++)
        for (size_t r = 0; r < row_count; r++)
            places[r] = (uint16_t)(2 * places[r] + (table[places[r]] <= values[r]));
    for (size_t r = 0; r < row_count; r++) {
        const int code = (int)(places[r] - first); /* 0 for NaN */
        if (lefts)
            lefts[r] = (int8_t)(code - 128);
        if (rights)
            rights[r] = (int8_t)((values[r] != values[r] ? feature->count : code) - 128);
    }
}

/* The number on the next level of a row that has this number on a level whose tests begin at `first`. */
static inline size_t pass_level(const foreloop_trees_data *data, size_t first, unsigned level, size_t number,
                                const int8_t *codes) {
    const size_t right = codes[data->columns[first + number] * (size_t)(ROWS / FORELOOP_TREES_COLUMN_UNIT)] >
                         data->thresholds[first + number];
    return number | right << level;
}

/* Level by level, so that the rows' loads overlap. */
static void add_complete(float *sums, const int8_t *codes, size_t row_count, const foreloop_trees_data *data,
                         const foreloop_trees_tree *tree) {
    uint8_t numbers[ROWS] = {0};
    for (unsigned level = 0; level < tree->depth; level++) {
        const size_t first = tree->test + ((size_t)1 << level) - 1;
        for (size_t r = 0; r < row_count; r++)
            numbers[r] = (uint8_t)pass_level(data, first, level, numbers[r], codes + r);
    }
    for (size_t r = 0; r < row_count; r++)
        sums[r] += data->leaves[tree->leaf + numbers[r]];
}

/* A row's leaf in a tree that is cut into pieces. */
static size_t pass_pieces(const foreloop_trees_data *data, const foreloop_trees_tree *tree, const int8_t *codes) {
    const size_t threes = tree->pieces[0], twos = threes + tree->pieces[1], end = twos + tree->pieces[2];
    for (size_t piece = 0;;) {
        /* How many of each kind come before it. */
        const size_t before[] = {piece < threes ? piece : threes,
                                 piece < threes ? 0
                                 : piece < twos ? piece - threes
                                                : twos - threes,
                                 piece < twos ? 0 : piece - twos};
        const size_t first = tree->test + 7 * before[0] + 3 * before[1] + before[2];
        const size_t exit = tree->exit + 8 * before[0] + 4 * before[1] + 2 * before[2];
        const unsigned levels = piece < threes ? 3 : piece < twos ? 2 : 1;
        size_t number = 0;
        for (unsigned level = 0; level < levels; level++)
            number = pass_level(data, first + ((size_t)1 << level) - 1, level, number, codes);
        const size_t state = data->exits[exit + number];
        if (state <= piece || state >= end)
            return state;
        piece = state;
    }
}

static void add(float *sums, const int8_t *codes, size_t row_count, const foreloop_trees_data *data,
                const foreloop_trees_tree *trees, size_t tree_count) {
    for (size_t k = 0; k < tree_count; k++) {
        if (trees[k].shape == FORELOOP_TREES_PIECES)
            for (size_t r = 0; r < row_count; r++)
                sums[r] += data->leaves[trees[k].leaf + pass_pieces(data, &trees[k], codes + r)];
        else
            add_complete(sums, codes, row_count, data, &trees[k]);
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
    kernels->costs = (foreloop_trees_costs){.test = 60, .piece_test = 63, .feature = 740, .step = 23};
    kernels->group_stride = ROWS;
    kernels->transpose = transpose;
    kernels->quantise = quantise;
    kernels->add = add;
    kernels->add_row = foreloop_trees_f32_add_row_ref;
}
