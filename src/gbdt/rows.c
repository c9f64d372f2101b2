/* Predictions for rows of any layout, and outputs other than margins and predictions. */
#include "gbdt/rows.h"
#include "common/sized.h"
#include <math.h>
#include <string.h>

void foreloop_gbdt_rows_init(foreloop_gbdt_rows *rows, size_t size) {
    foreloop_sized_init(rows, size);
}

foreloop_status foreloop_gbdt_take_rows(foreloop_gbdt_rows *taken, const foreloop_gbdt *gbdt,
                                        const foreloop_gbdt_rows *given, const char *call, foreloop_error *error) {
    foreloop_gbdt_rows rows;
    FORELOOP_TRY(foreloop_sized_read(&rows, sizeof rows, given, "foreloop_gbdt_rows", error));
    if (rows.column_stride == 0)
        rows.column_stride = 1;
    if (rows.row_stride == 0 && rows.column_count > SIZE_MAX / rows.column_stride)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "%s: the rows are longer than memory", call);
    if (rows.row_stride == 0)
        rows.row_stride = rows.column_count * rows.column_stride;
    if (rows.column_count < gbdt->read_end)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "%s: rows have %zu columns, the trees read the one with number %zu", call,
                             rows.column_count, gbdt->read_end - 1);
    if (rows.row_count > 0 && gbdt->read_end > 0 && !rows.values)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "%s: an argument is NULL", call);
    *taken = rows;
    return FORELOOP_OK;
}

float foreloop_gbdt_value(const foreloop_gbdt_rows *rows, size_t row, uint32_t feature) {
    float value = rows->values[row * rows->row_stride + feature * rows->column_stride];
    return rows->has_missing && value == rows->missing ? NAN : value;
}

static bool set_contains(const foreloop_gbdt *gbdt, uint32_t set, uint32_t category) {
    size_t low = gbdt->sets[set], high = gbdt->sets[set + 1];
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (gbdt->categories[middle] < category)
            low = middle + 1;
        else
            high = middle;
    }
    return low < gbdt->sets[set + 1] && gbdt->categories[low] == category;
}

uint32_t foreloop_gbdt_goes_right(const foreloop_gbdt *gbdt, const foreloop_gbdt_node *node, float x) {
    if (x != x)
        return node->feature & FORELOOP_GBDT_DEFAULT_LEFT ? 0 : 1;
    if (!(node->feature & FORELOOP_GBDT_CATEGORICAL))
        return x < node->split.threshold ? 0 : 1;
    /* Beyond 2^24 a float32 cannot tell categories apart, and the loaders accept none. */
    return x >= 0.0f && x < 16777216.0f && set_contains(gbdt, node->split.set, (uint32_t)x) ? 1 : 0;
}

/* The leaf that a row reaches. */
static uint32_t find_leaf(const foreloop_gbdt *gbdt, const foreloop_gbdt_tree *tree, const foreloop_gbdt_rows *rows,
                          size_t row) {
    uint32_t index = tree->root;
    while (gbdt->nodes[index].feature & FORELOOP_GBDT_SPLIT) {
        const foreloop_gbdt_node *node = &gbdt->nodes[index];
        float x = foreloop_gbdt_value(rows, row, node->feature & FORELOOP_GBDT_FEATURE);
        index = node->left + foreloop_gbdt_goes_right(gbdt, node, x);
    }
    return index;
}

static void write_leaf_sums(const foreloop_gbdt *gbdt, const foreloop_gbdt_rows *rows, float *outputs) {
    for (size_t r = 0; r < rows->row_count; r++)
        for (size_t k = 0; k < gbdt->output_count; k++) {
            float sum = 0.0f;
            for (size_t t = gbdt->output_trees[k]; t < gbdt->output_trees[k + 1]; t++)
                sum += gbdt->nodes[find_leaf(gbdt, &gbdt->trees[t], rows, r)].split.leaf;
            outputs[r * gbdt->output_count + k] = sum;
        }
}

static void write_leaf_indices(const foreloop_gbdt *gbdt, const foreloop_gbdt_rows *rows, float *outputs) {
    for (size_t r = 0; r < rows->row_count; r++)
        for (size_t t = 0; t < gbdt->source_count; t++) {
            uint32_t leaf = find_leaf(gbdt, &gbdt->trees[gbdt->source_trees[t]], rows, r);
            outputs[r * gbdt->source_count + t] = (float)gbdt->origins[leaf].id;
        }
}

/* Copies rows to be predicted into a block of the columns up to the last that a tree reads: a model may count
 * features by the hundred million that it never reads. */
static void fill_block(const foreloop_gbdt *gbdt, const foreloop_gbdt_rows *rows, size_t first, size_t count,
                       float *block) {
    for (size_t r = 0; r < count; r++)
        for (size_t f = 0; f < gbdt->read_end; f++)
            block[r * gbdt->read_end + f] = foreloop_gbdt_value(rows, first + r, (uint32_t)f);
}

/* Margins or predictions of rows that foreloop_gbdt_predict cannot take as they lie. */
static foreloop_status predict_copies(const foreloop_gbdt *gbdt, const foreloop_gbdt_rows *rows, int margin,
                                      float *outputs, foreloop_error *error) {
    const size_t block_rows = rows->row_count < 64 ? rows->row_count : 64;
    const size_t per_row = margin || gbdt->objective->transform != FORELOOP_TRANSFORM_CLASS ? gbdt->output_count : 1;
    float *block = foreloop_allocate(&gbdt->allocator, block_rows, (gbdt->read_end + 1) * sizeof *block);
    if (!block)
        return foreloop_fail_memory(error, block_rows, gbdt->read_end * sizeof *block, "a block of rows");
    for (size_t first = 0; first < rows->row_count; first += block_rows) {
        size_t count = rows->row_count - first < block_rows ? rows->row_count - first : block_rows;
        fill_block(gbdt, rows, first, count, block);
        foreloop_gbdt_predict_checked(gbdt, block, count, gbdt->read_end, margin, outputs + first * per_row);
    }
    foreloop_release(&gbdt->allocator, block);
    return FORELOOP_OK;
}

foreloop_status foreloop_gbdt_predict_rows(const foreloop_gbdt *gbdt, const foreloop_gbdt_rows *rows,
                                           foreloop_gbdt_output output, float *outputs, foreloop_error *error) {
    static const char call[] = "foreloop_gbdt_predict_rows";
    foreloop_gbdt_rows taken;
    if (!gbdt || !rows || (!outputs && rows->row_count > 0))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "%s: an argument is NULL", call);
    FORELOOP_TRY(foreloop_gbdt_take_rows(&taken, gbdt, rows, call, error));
    if (taken.row_count == 0)
        return FORELOOP_OK;
    const bool in_place = !taken.has_missing && taken.column_stride == 1 && taken.column_count >= gbdt->feature_count &&
                          taken.row_stride >= gbdt->feature_count;
    switch (output) {
    case FORELOOP_GBDT_LEAF_SUM:
        write_leaf_sums(gbdt, &taken, outputs);
        return FORELOOP_OK;
    case FORELOOP_GBDT_LEAF_INDEX:
        write_leaf_indices(gbdt, &taken, outputs);
        return FORELOOP_OK;
    case FORELOOP_GBDT_PREDICTION:
    case FORELOOP_GBDT_MARGIN:
        if (in_place && taken.values)
            return foreloop_gbdt_predict(gbdt, taken.values, taken.row_count, taken.row_stride,
                                         output == FORELOOP_GBDT_MARGIN, outputs, error);
        return predict_copies(gbdt, &taken, output == FORELOOP_GBDT_MARGIN, outputs, error);
    default:
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "%s: unknown output %d", call, (int)output);
    }
}
