/* Codes (kernels_cpu/trees_f32.h) that are made value by value, as the values come to be, and kept until the trees are
 * walked: a row of values is four times as long. For the scorer, whose values are numbers, never NaN: a feature's codes
 * are then the same wherever a missing value would go, and one column holds them. */
#ifndef FORELOOP_GBDT_CODING_H
#define FORELOOP_GBDT_CODING_H

#include "gbdt/layout.h"

/* Which codes a value becomes: those of features entries[begin[u]] to entries[begin[u + 1]] for value u, which counts
 * the features that trees in use read as foreloop_gbdt_used_features does. */
typedef struct foreloop_gbdt_coding {
    const foreloop_gbdt *gbdt;
    size_t codes_size;   /* bytes of a block of FORELOOP_TREES_ROWS rows, a multiple of 64 */
    bool reads_values;   /* some trees are walked on the values themselves, which are to be kept too */
    size_t *first_codes; /* [chunks]: where the codes of each begin */
    /* The layout's, with one column a feature: */
    foreloop_trees_feature *features;
    uint16_t *columns;
    uint32_t *begin; /* [used features + 1] */
    struct foreloop_gbdt_coding_entry {
        uint32_t feature;
        size_t first_code;
    } * entries;
} foreloop_gbdt_coding;

/* Both `gbdt` and `allocator` are borrowed. Closing takes a zeroed struct too. */
foreloop_status foreloop_gbdt_coding_create(foreloop_gbdt_coding *coding, const foreloop_gbdt *gbdt,
                                            const foreloop_allocator *allocator, foreloop_error *error);
void foreloop_gbdt_coding_close(foreloop_gbdt_coding *coding, const foreloop_allocator *allocator);

/* Makes the codes of value u of a block's row_count rows, whole groups of which are read at `values`; none of those
 * rows has NaN there. `codes` is aligned to 64 bytes. */
static inline void foreloop_gbdt_code_value(const foreloop_gbdt_coding *coding, size_t u, const float *values,
                                            size_t row_count, int8_t *codes) {
    const foreloop_gbdt_layout *layout = coding->gbdt->layout;
    const size_t groups = (row_count + FORELOOP_TREES_GROUP - 1) / FORELOOP_TREES_GROUP;
    for (uint32_t i = coding->begin[u]; i < coding->begin[u + 1]; i++)
        layout->kernels.quantise(codes + coding->entries[i].first_code, foreloop_gbdt_code_stride(layout, row_count),
                                 values, groups, &coding->features[coding->entries[i].feature], layout->tables);
}

/* margins[row_count][output_count] of a block, the same bits as foreloop_gbdt_predict, from the codes of all values.
 * Where the coding reads values, value u of row r is values[u * stride + r]. */
void foreloop_gbdt_margin_codes(const foreloop_gbdt_coding *coding, const int8_t *codes, const float *values,
                                size_t stride, size_t row_count, float *margins);

#endif
