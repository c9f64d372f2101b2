/* Prediction: deterministic and without allocation. Blocks of rows pass through the kernels of trees_f32, few rows walk
 * the trees. The model was checked when it was loaded, so there are no checks here. */
#include "gbdt/coding.h"
#include "gbdt/layout.h"
#include "gbdt/model.h"
#include "gbdt/rows.h"
#include <stdalign.h>
#include <string.h>

enum {
    LANES = 8, /* walks that advance in step, so that their loads overlap */
    ROWS = FORELOOP_TREES_ROWS,
    GROUP = FORELOOP_TREES_GROUP
};

/* The values of some rows: value f of row r is values[r * row_stride + f * feature_stride]. Either `used` is NULL, f a
 * feature's number and feature_stride 1; or f is its number among those that the trees read, row_stride is 1, and
 * values are there for whole groups of rows. */
typedef struct row_view {
    const float *values;
    size_t row_stride, feature_stride;
    const foreloop_gbdt_layout *used;
} row_view;

/* ---- Walks ------------------------------------------------------------------------------------------------------- */

/* Whether a row goes right at a node. Only NaN is missing; infinities are numbers. `categorical` is a constant at each
 * call: whether nodes may be. */
static inline uint32_t goes_right(const foreloop_gbdt *gbdt, foreloop_gbdt_node node, float x, bool categorical) {
    if (categorical && (node.feature & FORELOOP_GBDT_CATEGORICAL) && x == x)
        return foreloop_gbdt_goes_right(gbdt, &node, x);
    uint32_t missing = x != x, default_left = node.feature >> 31;
    return ~((uint32_t)(x < node.split.threshold) | (missing & default_left)) & 1u;
}

/* Takes `depth` steps in each lane, from node nodes[lane] with rows[lane]; `plain`, a constant at each call, says that
 * no node is categorical and that rows are the caller's. */
static inline void walk_lanes(const foreloop_gbdt *gbdt, uint32_t depth, bool plain, const row_view *view,
                              const float *const rows[LANES], uint32_t nodes[LANES]) {
    uint32_t current[LANES]; /* apart from the caller's array, so that it may live in registers */
    memcpy(current, nodes, sizeof current);
    for (uint32_t d = 0; d < depth; d++)
        for (int lane = 0; lane < LANES; lane++) {
            foreloop_gbdt_node node = gbdt->nodes[current[lane]];
            uint32_t split = node.feature / FORELOOP_GBDT_SPLIT & 1u; /* 0 at a leaf, which stays where it is */
            size_t place = node.feature & FORELOOP_GBDT_FEATURE;
            if (!plain && view->used)
                place = split ? foreloop_gbdt_used_place(view->used, (uint32_t)place) * view->feature_stride : 0;
            current[lane] = node.left + (goes_right(gbdt, node, rows[lane][place], !plain) & split);
        }
    memcpy(nodes, current, sizeof current);
}

static void walk(const foreloop_gbdt *gbdt, uint32_t depth, bool categorical, const row_view *view,
                 const float *const rows[LANES], uint32_t nodes[LANES]) {
    if (categorical || view->used)
        walk_lanes(gbdt, depth, false, view, rows, nodes);
    else
        walk_lanes(gbdt, depth, true, view, rows, nodes);
}

/* Adds one tree to the sums of the rows: the lanes are neighbouring rows. */
static void walk_rows(const foreloop_gbdt *gbdt, const foreloop_gbdt_tree *tree, const row_view *view, size_t row_count,
                      float *sums) {
    for (size_t first = 0; first < row_count; first += LANES) {
        const float *rows[LANES];
        uint32_t nodes[LANES];
        size_t count = row_count - first < LANES ? row_count - first : LANES;
        for (size_t lane = 0; lane < LANES; lane++) {
            rows[lane] = view->values + (first + (lane < count ? lane : 0)) * view->row_stride;
            nodes[lane] = tree->root;
        }
        walk(gbdt, tree->depth, tree->categorical != 0, view, rows, nodes);
        for (size_t lane = 0; lane < count; lane++)
            sums[first + lane] += gbdt->nodes[nodes[lane]].split.leaf;
    }
}

/* ---- Blocks ------------------------------------------------------------------------------------------------------ */

/* The codes that a chunk's tests compare. */
static void quantise_block(const foreloop_gbdt *gbdt, const foreloop_gbdt_chunk *chunk, const row_view *view,
                           size_t row_count, int8_t *codes) {
    const foreloop_gbdt_layout *layout = gbdt->layout;
    const size_t stride = foreloop_gbdt_code_stride(layout, row_count);
    const size_t read_end = layout->used_count > 0 ? (size_t)layout->used[layout->used_count - 1] + 1 : 0;
    alignas(64) float tile[GROUP * ROWS];
    size_t tile_end = 0; /* of the features that `tile` holds */
    for (size_t i = chunk->feature_begin; i < chunk->feature_end; i++) {
        const foreloop_trees_feature *feature = &layout->features[i];
        if (feature->feature >= tile_end) {
            const size_t first = feature->feature / GROUP * GROUP;
            const size_t count = read_end - first < GROUP ? read_end - first : GROUP;
            layout->kernels.transpose(tile, view->values + first, view->row_stride, row_count, count);
            tile_end = first + GROUP;
        }
        const float *values = tile + feature->feature % GROUP * ROWS;
        layout->kernels.quantise(codes, stride, values, (row_count + GROUP - 1) / GROUP, feature, layout->tables);
    }
}

/* The end of the trees from `begin` on that are all to be walked in the model, or all for the kernels. */
static size_t end_of_run(const foreloop_gbdt_layout *layout, size_t begin, size_t end) {
    if (!layout->has_walks)
        return end;
    const bool walked = layout->trees[begin].shape == FORELOOP_TREES_WALK;
    size_t next = begin + 1;
    while (next < end && (layout->trees[next].shape == FORELOOP_TREES_WALK) == walked)
        next++;
    return next;
}

/* At most ROWS rows on their way through the trees. */
typedef struct block {
    const row_view *view;
    size_t row_count;
    size_t chunks;                      /* begun */
    const int8_t *codes;                /* of the last one */
    const foreloop_gbdt_coding *coding; /* of codes that are there: `coded`; NULL: each chunk's are made in `room` */
    const int8_t *coded;
    int8_t *room; /* [FORELOOP_TREES_COLUMNS][ROWS], aligned to 64 */
} block;

/* Adds the trees begin <= t < end of a chunk to the sums. */
static void add_trees(const foreloop_gbdt *gbdt, size_t begin, size_t end, const block *b, float sums[ROWS]) {
    const foreloop_gbdt_layout *layout = gbdt->layout;
    const foreloop_trees_data data = {layout->thresholds, b->coding ? b->coding->columns : layout->columns,
                                      layout->exits, layout->leaves};
    for (size_t next; begin < end; begin = next) {
        next = end_of_run(layout, begin, end);
        if (layout->trees[begin].shape != FORELOOP_TREES_WALK)
            layout->kernels.add(sums, b->codes, b->row_count, &data, layout->trees + begin, next - begin);
        else
            for (size_t t = begin; t < next; t++)
                walk_rows(gbdt, &gbdt->trees[t], b->view, b->row_count, sums);
    }
}

static void begin_chunk(const foreloop_gbdt *gbdt, block *b) {
    if (b->coding) {
        b->codes = b->coded + b->coding->first_codes[b->chunks];
    } else {
        quantise_block(gbdt, &gbdt->layout->chunks[b->chunks], b->view, b->row_count, b->room);
        b->codes = b->room;
    }
    b->chunks++;
}

/* The margins of one output. Outputs are taken in order, as trees and chunks are. */
static void sum_output(const foreloop_gbdt *gbdt, block *b, size_t output, float sums[ROWS]) {
    const foreloop_gbdt_layout *layout = gbdt->layout;
    const size_t end = gbdt->output_trees[output + 1];
    for (size_t r = 0; r < ROWS; r++)
        sums[r] = gbdt->base_margins[output];
    for (size_t begin = gbdt->output_trees[output], next; begin < end; begin = next) {
        while (b->chunks == 0 || layout->chunks[b->chunks - 1].tree_end <= begin)
            begin_chunk(gbdt, b);
        const size_t chunk_end = layout->chunks[b->chunks - 1].tree_end;
        next = chunk_end < end ? chunk_end : end;
        add_trees(gbdt, begin, next, b, sums);
    }
}

static void margins_of_block(const foreloop_gbdt *gbdt, block *b, float *outputs) {
    float sums[ROWS];
    for (size_t k = 0; k < gbdt->output_count; k++) {
        sum_output(gbdt, b, k, sums);
        for (size_t r = 0; r < b->row_count; r++)
            outputs[r * gbdt->output_count + k] = sums[r];
    }
}

/* The outputs whose margins are the largest, of equal ones the first. */
static void classes_of_block(const foreloop_gbdt *gbdt, block *b, float *classes) {
    float sums[ROWS], largest[ROWS];
    for (size_t k = 0; k < gbdt->output_count; k++) {
        sum_output(gbdt, b, k, sums);
        for (size_t r = 0; r < b->row_count; r++)
            if (k == 0 || sums[r] > largest[r]) {
                largest[r] = sums[r];
                classes[r] = (float)k;
            }
    }
}

/* ---- Single rows ------------------------------------------------------------------------------------------------- */

/* The sum and trees begin <= t < end of the model, walked: the lanes are neighbouring trees. */
static float add_walks(const foreloop_gbdt *gbdt, size_t begin, size_t end, const float *row, float sum) {
    const row_view view = {row, 0, 1, NULL};
    const float *const rows[LANES] = {row, row, row, row, row, row, row, row};
    for (size_t first = begin; first < end; first += LANES) {
        uint32_t nodes[LANES], depth = 0;
        bool categorical = false;
        size_t count = end - first < LANES ? end - first : LANES;
        for (size_t lane = 0; lane < LANES; lane++) {
            const foreloop_gbdt_tree *tree = &gbdt->trees[first + (lane < count ? lane : 0)];
            nodes[lane] = tree->root;
            depth = tree->depth > depth ? tree->depth : depth;
            categorical |= tree->categorical != 0;
        }
        walk(gbdt, depth, categorical, &view, rows, nodes);
        for (size_t lane = 0; lane < count; lane++)
            sum += gbdt->nodes[nodes[lane]].split.leaf;
    }
    return sum;
}

/* The margin of one output for one row. */
static float margin_of_row(const foreloop_gbdt *gbdt, size_t output, const float *row) {
    const foreloop_gbdt_layout *layout = gbdt->layout;
    const size_t end = gbdt->output_trees[output + 1];
    float sum = gbdt->base_margins[output];
    for (size_t begin = gbdt->output_trees[output], next; begin < end; begin = next) {
        next = end_of_run(layout, begin, end);
        sum =
            layout->trees[begin].shape == FORELOOP_TREES_WALK
                ? add_walks(gbdt, begin, next, row, sum)
                : layout->kernels.add_row(sum, row, layout->nodes, layout->roots + begin, next - begin, layout->depth);
    }
    return sum;
}

/* ---- Entries ----------------------------------------------------------------------------------------------------- */

static void margins_of_rows(const foreloop_gbdt *gbdt, const float *rows, size_t row_count, size_t stride,
                            float *outputs) {
    if (row_count >= gbdt->layout->min_rows) {
        const row_view view = {rows, stride, 1, NULL};
        alignas(64) int8_t room[FORELOOP_TREES_COLUMNS * ROWS];
        block b = {.view = &view, .row_count = row_count, .room = room};
        margins_of_block(gbdt, &b, outputs);
        return;
    }
    for (size_t r = 0; r < row_count; r++)
        for (size_t k = 0; k < gbdt->output_count; k++)
            outputs[r * gbdt->output_count + k] = margin_of_row(gbdt, k, rows + r * stride);
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

static void classes_of_rows(const foreloop_gbdt *gbdt, const float *rows, size_t row_count, size_t stride,
                            float *classes) {
    if (row_count >= gbdt->layout->min_rows) {
        const row_view view = {rows, stride, 1, NULL};
        alignas(64) int8_t room[FORELOOP_TREES_COLUMNS * ROWS];
        block b = {.view = &view, .row_count = row_count, .room = room};
        classes_of_block(gbdt, &b, classes);
        return;
    }
    for (size_t r = 0; r < row_count; r++)
        classes[r] = class_of_row(gbdt, rows + r * stride);
}

float foreloop_gbdt_margin(const foreloop_gbdt *gbdt, const float *row) {
    return margin_of_row(gbdt, 0, row);
}

void foreloop_gbdt_margin_codes(const foreloop_gbdt_coding *coding, const int8_t *codes, const float *values,
                                size_t stride, size_t row_count, float *margins) {
    const row_view view = {values, 1, stride, coding->gbdt->layout};
    block b = {.view = &view, .row_count = row_count, .coding = coding, .coded = codes};
    margins_of_block(coding->gbdt, &b, margins);
}

foreloop_status foreloop_gbdt_predict(const foreloop_gbdt *gbdt, const float *rows, size_t row_count, size_t stride,
                                      int margin, float *outputs, foreloop_error *error) {
    if (!gbdt || (row_count > 0 && (!outputs || (!rows && gbdt->feature_count > 0))))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_gbdt_predict: an argument is NULL");
    if (stride < gbdt->feature_count)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "foreloop_gbdt_predict: rows have %zu columns, the model needs %zu", stride,
                             gbdt->feature_count);
    if (gbdt->feature_count == 0) {
        /* Nothing of the rows is read: they may be NULL, on which there is no arithmetic. */
        rows = gbdt->base_margins;
        stride = 0;
    }
    foreloop_gbdt_predict_checked(gbdt, rows, row_count, stride, margin, outputs);
    return FORELOOP_OK;
}

void foreloop_gbdt_predict_checked(const foreloop_gbdt *gbdt, const float *rows, size_t row_count, size_t stride,
                                   int margin, float *outputs) {
    const bool classes = !margin && gbdt->objective->transform == FORELOOP_TRANSFORM_CLASS;
    for (size_t r = 0; r < row_count; r += ROWS) {
        const size_t count = row_count - r < ROWS ? row_count - r : ROWS;
        if (classes) {
            classes_of_rows(gbdt, rows + r * stride, count, stride, outputs + r);
            continue;
        }
        float *margins = outputs + r * gbdt->output_count;
        margins_of_rows(gbdt, rows + r * stride, count, stride, margins);
        for (size_t i = 0; !margin && i < count; i++)
            foreloop_gbdt_transform_row(gbdt->objective, margins + i * gbdt->output_count, gbdt->output_count);
    }
}
