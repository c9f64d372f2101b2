/* Prediction: walks the trees, deterministic and without allocation. The model was checked when it was loaded, so there
 * are no checks here. */
#include "gbdt/model.h"
#include <string.h>

/* Walks that advance in step, so that their loads overlap. */
enum { LANES = 8 };

static bool set_contains(const foreloop_gbdt *gbdt, uint32_t set, float category) {
    /* Beyond 2^24 a float32 cannot tell categories apart, and the loaders accept none. */
    if (!(category >= 0.0f && category < 16777216.0f))
        return false;
    uint32_t wanted = (uint32_t)category;
    size_t low = gbdt->sets[set], high = gbdt->sets[set + 1];
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (gbdt->categories[middle] == wanted)
            return true;
        if (gbdt->categories[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

/* Whether a row goes right at a node. Only NaN is missing; infinities are numbers. `categorical` is a constant at each
 * call: whether nodes may be. */
static inline uint32_t goes_right(const foreloop_gbdt *gbdt, foreloop_gbdt_node node, float x, bool categorical) {
    if (categorical && (node.feature & FORELOOP_GBDT_CATEGORICAL) && x == x)
        return set_contains(gbdt, node.split.set, x) ? 1 : 0;
    uint32_t missing = x != x, default_left = node.feature >> 31;
    return ~((uint32_t)(x < node.split.threshold) | (missing & default_left)) & 1u;
}

/* Takes `depth` steps in each lane, from node nodes[lane] with rows[lane]. */
static inline void walk_lanes(const foreloop_gbdt *gbdt, uint32_t depth, bool categorical,
                              const float *const rows[LANES], uint32_t nodes[LANES]) {
    uint32_t current[LANES]; /* apart from the caller's array, so that it may live in registers */
    memcpy(current, nodes, sizeof current);
    for (uint32_t d = 0; d < depth; d++)
        for (int lane = 0; lane < LANES; lane++) {
            foreloop_gbdt_node node = gbdt->nodes[current[lane]];
            float x = rows[lane][node.feature & FORELOOP_GBDT_FEATURE];
            uint32_t split = node.feature / FORELOOP_GBDT_SPLIT & 1u; /* 0 at a leaf, which stays where it is */
            current[lane] = node.left + (goes_right(gbdt, node, x, categorical) & split);
        }
    memcpy(nodes, current, sizeof current);
}

static void walk(const foreloop_gbdt *gbdt, uint32_t depth, bool categorical, const float *const rows[LANES],
                 uint32_t nodes[LANES]) {
    if (categorical)
        walk_lanes(gbdt, depth, true, rows, nodes);
    else
        walk_lanes(gbdt, depth, false, rows, nodes);
}

/* The margin of one output for one row: the lanes are neighbouring trees. */
static float margin_of_row(const foreloop_gbdt *gbdt, size_t output, const float *row) {
    const float *const rows[LANES] = {row, row, row, row, row, row, row, row};
    float sum = gbdt->base_margins[output];
    size_t end = gbdt->output_trees[output + 1];
    for (size_t first = gbdt->output_trees[output]; first < end; first += LANES) {
        uint32_t nodes[LANES], depth = 0;
        bool categorical = false;
        size_t count = end - first < LANES ? end - first : LANES;
        for (size_t lane = 0; lane < LANES; lane++) {
            const foreloop_gbdt_tree *tree = &gbdt->trees[first + (lane < count ? lane : 0)];
            nodes[lane] = tree->root;
            depth = tree->depth > depth ? tree->depth : depth;
            categorical |= tree->categorical != 0;
        }
        walk(gbdt, depth, categorical, rows, nodes);
        for (size_t lane = 0; lane < count; lane++)
            sum += gbdt->nodes[nodes[lane]].split.leaf;
    }
    return sum;
}

/* Adds one tree to the sums of LANES neighbouring rows, one in each lane. */
static void add_tree_to_rows(const foreloop_gbdt *gbdt, const foreloop_gbdt_tree *tree, const float *rows,
                             size_t stride, float *sums, size_t sum_stride) {
    const float *lane_rows[LANES];
    uint32_t nodes[LANES];
    for (size_t lane = 0; lane < LANES; lane++) {
        lane_rows[lane] = rows + lane * stride;
        nodes[lane] = tree->root;
    }
    walk(gbdt, tree->depth, tree->categorical != 0, lane_rows, nodes);
    for (size_t lane = 0; lane < LANES; lane++)
        sums[lane * sum_stride] += gbdt->nodes[nodes[lane]].split.leaf;
}

/* The margins of all outputs for a block of rows: LANES rows at a time tree by tree, the rest row by row. */
static void margins_of_block(const foreloop_gbdt *gbdt, const float *rows, size_t stride, size_t row_count,
                             float *outputs) {
    const size_t outputs_per_row = gbdt->output_count, in_lanes = row_count - row_count % LANES;
    for (size_t k = 0; k < outputs_per_row; k++) {
        for (size_t r = 0; r < in_lanes; r++)
            outputs[r * outputs_per_row + k] = gbdt->base_margins[k];
        for (size_t t = gbdt->output_trees[k]; t < gbdt->output_trees[k + 1]; t++)
            for (size_t r = 0; r < in_lanes; r += LANES)
                add_tree_to_rows(gbdt, &gbdt->trees[t], rows + r * stride, stride, outputs + r * outputs_per_row + k,
                                 outputs_per_row);
        for (size_t r = in_lanes; r < row_count; r++)
            outputs[r * outputs_per_row + k] = margin_of_row(gbdt, k, rows + r * stride);
    }
}

static float class_of_row(const foreloop_gbdt *gbdt, const float *row) {
    size_t best = 0;
    float best_margin = margin_of_row(gbdt, 0, row);
    for (size_t k = 1; k < gbdt->output_count; k++) {
        float margin = margin_of_row(gbdt, k, row);
        if (margin > best_margin) {
            best = k;
            best_margin = margin;
        }
    }
    return (float)best;
}

float foreloop_gbdt_margin(const foreloop_gbdt *gbdt, const float *row) {
    return margin_of_row(gbdt, 0, row);
}

foreloop_status foreloop_gbdt_predict(const foreloop_gbdt *gbdt, const float *rows, size_t row_count, size_t stride,
                                      int margin, float *outputs, foreloop_error *error) {
    /* Rows of a block stay in the second-level cache while all trees pass over them. */
    enum { BLOCK = 64 };
    if (!gbdt || (row_count > 0 && (!outputs || (!rows && gbdt->feature_count > 0))))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_gbdt_predict: NULL argument");
    if (stride < gbdt->feature_count)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "foreloop_gbdt_predict: rows have %zu columns, the model needs %zu", stride,
                             gbdt->feature_count);
    if (gbdt->feature_count == 0) {
        /* Nothing of the rows is read: they may be NULL, on which there is no arithmetic. */
        rows = gbdt->base_margins;
        stride = 0;
    }
    if (!margin && gbdt->objective->transform == FORELOOP_TRANSFORM_CLASS) {
        for (size_t r = 0; r < row_count; r++)
            outputs[r] = class_of_row(gbdt, rows + r * stride);
        return FORELOOP_OK;
    }
    for (size_t r = 0; r < row_count; r += BLOCK) {
        size_t count = row_count - r < BLOCK ? row_count - r : BLOCK;
        float *block = outputs + r * gbdt->output_count;
        margins_of_block(gbdt, rows + r * stride, stride, count, block);
        for (size_t i = 0; !margin && i < count; i++)
            foreloop_gbdt_transform_row(gbdt->objective, block + i * gbdt->output_count, gbdt->output_count);
    }
    return FORELOOP_OK;
}
