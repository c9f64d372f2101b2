/* Which codes each value becomes, and making them. */
#include "gbdt/coding.h"
#include "common/error.h"
#include <string.h>

static size_t columns_of_chunk(const foreloop_gbdt_layout *layout, const foreloop_gbdt_chunk *chunk) {
    size_t columns = 0;
    for (size_t i = chunk->feature_begin; i < chunk->feature_end; i++) {
        const uint16_t own[] = {layout->features[i].lefts, layout->features[i].rights};
        for (size_t side = 0; side < 2; side++)
            if (own[side] < FORELOOP_TREES_COLUMNS && own[side] >= columns)
                columns = own[side] + (size_t)1;
    }
    return columns;
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
    };
    if (!coding->first_codes || !coding->begin || !coding->entries) {
        foreloop_gbdt_coding_close(coding, allocator);
        return foreloop_fail_memory(error, layout->feature_count, sizeof *coding->entries, "the codes of values");
    }
    for (size_t i = 0; i < layout->chunk_count; i++) {
        coding->first_codes[i] = coding->codes_size;
        coding->codes_size += columns_of_chunk(layout, &layout->chunks[i]) * FORELOOP_TREES_ROWS;
    }
    list_entries(coding);
    return FORELOOP_OK;
}

void foreloop_gbdt_coding_close(foreloop_gbdt_coding *coding, const foreloop_allocator *allocator) {
    foreloop_release(allocator, coding->first_codes);
    foreloop_release(allocator, coding->begin);
    foreloop_release(allocator, coding->entries);
    *coding = (foreloop_gbdt_coding){0};
}
