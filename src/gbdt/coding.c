/* Which codes each value becomes, and making them. */
#include "gbdt/coding.h"
#include "common/error.h"
#include <string.h>

/* Gives the features of a chunk a column each, and leads its tests there. */
static void join_columns(foreloop_gbdt_coding *coding, const foreloop_gbdt_chunk *chunk) {
    const foreloop_gbdt_layout *layout = coding->gbdt->layout;
    uint16_t joined[FORELOOP_TREES_COLUMNS + 1] = {0}; /* the last is for the column that a feature does not have */
    for (size_t i = chunk->feature_begin; i < chunk->feature_end; i++) {
        foreloop_trees_feature *const feature = &coding->features[i];
        *feature = layout->features[i];
        joined[feature->lefts] = joined[feature->rights] = (uint16_t)(i - chunk->feature_begin);
        feature->lefts = (uint16_t)(i - chunk->feature_begin);
        feature->rights = FORELOOP_TREES_COLUMNS;
    }
    const size_t trees = coding->gbdt->tree_count, end = chunk->tree_end;
    const size_t test_end = end < trees ? layout->trees[end].test : layout->test_count;
    for (size_t i = layout->trees[chunk->tree_begin].test; i < test_end; i++)
        coding->columns[i] =
            (uint16_t)(joined[layout->columns[i] / FORELOOP_TREES_COLUMN_UNIT] * FORELOOP_TREES_COLUMN_UNIT);
}

/* Sorts the features of all chunks by value, by counting. */
static void list_entries(foreloop_gbdt_coding *coding) {
    const foreloop_gbdt_layout *layout = coding->gbdt->layout;
    memset(coding->begin, 0, (layout->used_count + 1) * sizeof *coding->begin);
    for (size_t i = 0; i < layout->feature_count; i++)
        coding->begin[layout->features[i].used]++;
    for (size_t u = 0, total = 0; u <= layout->used_count; u++)
        coding->begin[u] = (uint32_t)(total += coding->begin[u]); /* the end of u, as yet */
    for (size_t chunk = layout->chunk_count; chunk-- > 0;)
        for (size_t i = layout->chunks[chunk].feature_end; i-- > layout->chunks[chunk].feature_begin;)
            coding->entries[--coding->begin[layout->features[i].used]] =
                (struct foreloop_gbdt_coding_entry){(uint32_t)i, coding->first_codes[chunk]};
}

foreloop_status foreloop_gbdt_coding_create(foreloop_gbdt_coding *coding, const foreloop_gbdt *gbdt,
                                            const foreloop_allocator *allocator, foreloop_error *error) {
    const foreloop_gbdt_layout *layout = gbdt->layout;
    *coding = (foreloop_gbdt_coding){
        .gbdt = gbdt,
        .reads_values = layout->has_walks,
        .first_codes = foreloop_allocate(allocator, layout->chunk_count, sizeof *coding->first_codes),
        .begin = foreloop_allocate(allocator, layout->used_count + 1, sizeof *coding->begin),
        .entries = foreloop_allocate(allocator, layout->feature_count, sizeof *coding->entries),
        .features = foreloop_allocate(allocator, layout->feature_count, sizeof *coding->features),
        .columns = foreloop_allocate(allocator, layout->test_count, sizeof *coding->columns),
    };
    if (!coding->first_codes || !coding->begin || !coding->entries || !coding->features || !coding->columns) {
        foreloop_gbdt_coding_close(coding, allocator);
        return foreloop_fail_memory(error, layout->feature_count, sizeof *coding->entries, "the codes of values");
    }
    for (size_t i = 0; i < layout->chunk_count; i++) {
        const foreloop_gbdt_chunk *const chunk = &layout->chunks[i];
        join_columns(coding, chunk);
        coding->first_codes[i] = coding->codes_size;
        /* Tests that pad a tree read the first column, wherever they lead. */
        const size_t columns = chunk->feature_end - chunk->feature_begin;
        coding->codes_size += (columns ? columns : 1) * FORELOOP_TREES_ROWS;
    }
    list_entries(coding);
    return FORELOOP_OK;
}

void foreloop_gbdt_coding_close(foreloop_gbdt_coding *coding, const foreloop_allocator *allocator) {
    foreloop_release(allocator, coding->first_codes);
    foreloop_release(allocator, coding->begin);
    foreloop_release(allocator, coding->entries);
    foreloop_release(allocator, coding->features);
    foreloop_release(allocator, coding->columns);
    *coding = (foreloop_gbdt_coding){0};
}
