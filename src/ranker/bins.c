/* Quantile bins: each column is sorted once, which gives the cuts and the codes together. */
#include "ranker/bins.h"
#include "common/sort.h"
#include <float.h>
#include <math.h>
#include <string.h>

enum { RADIX_BITS = 11, RADIX = 1 << RADIX_BITS, PASSES = 3, TASKS = 16 };

/* A value of a column: its order in the upper 32 bits, its row in the lower. */
typedef uint64_t ordered_value;

typedef struct column {
    uint32_t bins;
    bool varies;   /* there is something to split */
    bool infinite; /* a value is, at `row` */
    size_t row;
} column;

typedef struct builder {
    const foreloop_gbdt_rows *rows;
    size_t max_bins;
    size_t task_count;
    ordered_value *items; /* [task_count][2][row_count] */
    uint8_t *codes;       /* [column][row] */
    float *cuts;          /* [column][max_bins] */
    column *columns;
    foreloop_ranker_bins *bins;
} builder;

/* ---- Sorting ----------------------------------------------------------------------------------------------------- */

/* Bits that order as the numbers do; -0 as 0. */
static uint32_t order_of(float value) {
    uint32_t bits;
    value += 0.0f;
    memcpy(&bits, &value, sizeof bits);
    return bits ^ (bits >> 31 ? UINT32_C(0xffffffff) : UINT32_C(0x80000000));
}

static float value_of(ordered_value item) {
    uint32_t bits = (uint32_t)(item >> 32);
    float value;
    bits ^= bits >> 31 ? UINT32_C(0x80000000) : UINT32_C(0xffffffff);
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Sorts by the order, stably; returns where the result is, one of the two. */
static ordered_value *sort_items(ordered_value *items, ordered_value *scratch, size_t count) {
    uint32_t places[PASSES][RADIX];
    memset(places, 0, sizeof places);
    for (size_t i = 0; i < count; i++)
        for (unsigned pass = 0; pass < PASSES; pass++)
            places[pass][items[i] >> (32 + pass * RADIX_BITS) & (RADIX - 1)]++;
    for (unsigned pass = 0; pass < PASSES; pass++) {
        const unsigned shift = 32 + pass * RADIX_BITS;
        uint32_t *place = places[pass], sum = 0;
        if (count && place[items[0] >> shift & (RADIX - 1)] == count)
            continue;
        for (size_t digit = 0; digit < RADIX; digit++) {
            const uint32_t own = place[digit];
            place[digit] = sum;
            sum += own;
        }
        for (size_t i = 0; i < count; i++)
            scratch[place[items[i] >> shift & (RADIX - 1)]++] = items[i];
        ordered_value *swap = items;
        items = scratch;
        scratch = swap;
    }
    return items;
}

/* ---- Cuts -------------------------------------------------------------------------------------------------------- */

/* Between two neighbouring values: above a, and b at the most. */
static float cut_between(float a, float b) {
    const float middle = 0.5f * a + 0.5f * b;
    return middle > a && middle <= b ? middle : b;
}

/* Where the run of values equal to items[begin] ends. */
static size_t run_end(const ordered_value *items, size_t begin, size_t count) {
    size_t end = begin + 1;
    while (end < count && items[end] >> 32 == items[begin] >> 32)
        end++;
    return end;
}

/* Gives each value its code. Every value has a bin of its own where there are enough; else a bin is closed when it
 * holds its share of the values that are left. */
static uint32_t cut(const ordered_value *items, size_t count, size_t max_bins, uint8_t *codes, float *cuts) {
    size_t distinct = 0, held = 0, left = count;
    uint32_t bins = 0;
    for (size_t i = 0; i < count && distinct <= max_bins; i = run_end(items, i, count))
        distinct++;
    for (size_t begin = 0; begin < count;) {
        const size_t end = run_end(items, begin, count), bins_left = max_bins - bins;
        for (size_t i = begin; i < end; i++)
            codes[(uint32_t)items[i]] = (uint8_t)(bins + 1);
        held += end - begin;
        if (end == count)
            cuts[bins++] = nextafterf(value_of(items[end - 1]), INFINITY);
        else if (bins_left > 1 && (distinct <= max_bins || held >= (left + bins_left - 1) / bins_left)) {
            cuts[bins++] = cut_between(value_of(items[end - 1]), value_of(items[end]));
            left -= held;
            held = 0;
        }
        begin = end;
    }
    return bins;
}

/* ---- Tasks ------------------------------------------------------------------------------------------------------- */

static void bin_column(const builder *build, size_t index, ordered_value *items, ordered_value *scratch) {
    const foreloop_gbdt_rows *rows = build->rows;
    const float *values = rows->values + index * rows->column_stride;
    uint8_t *codes = build->codes + index * rows->row_count;
    column *made = &build->columns[index];
    size_t count = 0;
    memset(codes, 0, rows->row_count);
    for (size_t r = 0; r < rows->row_count; r++) {
        const float value = values[r * rows->row_stride];
        if (isnan(value) || (rows->has_missing && value == rows->missing))
            continue;
        if (!(fabsf(value) < FLT_MAX) && !made->infinite) {
            made->infinite = true;
            made->row = r;
        }
        items[count++] = (ordered_value)order_of(value) << 32 | r;
    }
    if (made->infinite || count == 0)
        return;
    const ordered_value *sorted = sort_items(items, scratch, count);
    made->bins = cut(sorted, count, build->max_bins, codes, build->cuts + index * build->max_bins);
    made->varies = made->bins > 1 || count < rows->row_count;
}

static void bin_columns(void *argument, size_t index) {
    const builder *build = argument;
    const size_t rows = build->rows->row_count;
    ordered_value *items = build->items + index * 2 * rows;
    for (size_t c = index; c < build->rows->column_count; c += build->task_count)
        bin_column(build, c, items, items + rows);
}

/* Interleaves the codes of the features of a line. */
static void fill_line(void *argument, size_t line) {
    const builder *build = argument;
    const foreloop_ranker_bins *bins = build->bins;
    const size_t rows = bins->row_count, first = line * FORELOOP_BOOST_LINE;
    uint8_t *codes = bins->codes + line * rows * FORELOOP_BOOST_LINE;
    const size_t count =
        bins->feature_count - first < FORELOOP_BOOST_LINE ? bins->feature_count - first : FORELOOP_BOOST_LINE;
    memset(codes, 0, rows * FORELOOP_BOOST_LINE);
    for (size_t k = 0; k < count; k++) {
        const uint8_t *from = build->codes + (size_t)bins->features[first + k].column * rows;
        for (size_t r = 0; r < rows; r++)
            codes[r * FORELOOP_BOOST_LINE + k] = from[r];
    }
}

/* ---- The whole --------------------------------------------------------------------------------------------------- */

static int by_bins(const void *a, const void *b, const void *context) {
    const foreloop_ranker_feature *x = a, *y = b;
    (void)context;
    if (x->bins != y->bins)
        return x->bins > y->bins ? -1 : 1;
    return (x->column > y->column) - (x->column < y->column);
}

static foreloop_status take_features(builder *build, foreloop_error *error) {
    foreloop_ranker_bins *bins = build->bins;
    size_t cut_count = 0;
    for (size_t c = 0; c < build->rows->column_count; c++) {
        const column *from = &build->columns[c];
        if (from->infinite)
            return foreloop_fail(error, FORELOOP_ERROR_VALUE,
                                 "row %zu, column %zu: the feature is infinite: NaN stands for a missing value",
                                 from->row, c);
        cut_count += from->varies ? from->bins : 0;
    }
    bins->cuts = foreloop_allocate(bins->allocator, cut_count, sizeof *bins->cuts);
    if (!bins->cuts)
        return foreloop_fail_memory(error, cut_count, sizeof *bins->cuts, "the bins");
    float *cuts = bins->cuts;
    for (size_t c = 0; c < build->rows->column_count; c++) {
        const column *from = &build->columns[c];
        if (!from->varies)
            continue;
        bins->features[bins->feature_count++] = (foreloop_ranker_feature){(uint32_t)c, from->bins, cuts};
        memcpy(cuts, build->cuts + c * build->max_bins, from->bins * sizeof *cuts);
        cuts += from->bins;
    }
    foreloop_sort(bins->features, bins->feature_count, sizeof *bins->features, by_bins, NULL);
    const size_t lines = (bins->feature_count + FORELOOP_BOOST_LINE - 1) / FORELOOP_BOOST_LINE;
    bins->codes = foreloop_allocate(bins->allocator, lines, bins->row_count * FORELOOP_BOOST_LINE);
    return bins->codes ? FORELOOP_OK
                       : foreloop_fail_memory(error, lines, bins->row_count * FORELOOP_BOOST_LINE, "the bins");
}

static foreloop_status make(builder *build, const foreloop_parallel_for *parallel, foreloop_error *error) {
    foreloop_ranker_bins *bins = build->bins;
    const foreloop_allocator *allocator = bins->allocator;
    const size_t rows = build->rows->row_count, columns = build->rows->column_count;
    build->items = foreloop_allocate(allocator, build->task_count * 2, rows * sizeof *build->items);
    build->codes = foreloop_allocate(allocator, columns, rows);
    build->cuts = foreloop_allocate(allocator, columns, build->max_bins * sizeof *build->cuts);
    build->columns = foreloop_allocate_zeroed(allocator, columns, sizeof *build->columns);
    bins->features = foreloop_allocate(allocator, columns, sizeof *bins->features);
    if (!build->items || !build->codes || !build->cuts || !build->columns || !bins->features)
        return foreloop_fail_memory(error, columns, rows, "the bins");
    foreloop_ranker_parallel(parallel, build->task_count, bin_columns, build);
    FORELOOP_TRY(take_features(build, error));
    foreloop_ranker_parallel(parallel, (bins->feature_count + FORELOOP_BOOST_LINE - 1) / FORELOOP_BOOST_LINE, fill_line,
                             build);
    return FORELOOP_OK;
}

foreloop_status foreloop_ranker_bins_create(foreloop_ranker_bins *bins, const foreloop_allocator *allocator,
                                            const foreloop_gbdt_rows *rows, size_t max_bins,
                                            const foreloop_parallel_for *parallel, foreloop_error *error) {
    foreloop_ranker_bins made = {.allocator = allocator, .row_count = rows->row_count};
    builder build = {.rows = rows, .max_bins = max_bins, .bins = &made, .task_count = parallel ? TASKS : 1};
    const foreloop_status status = make(&build, parallel, error);
    foreloop_release(allocator, build.items);
    foreloop_release(allocator, build.codes);
    foreloop_release(allocator, build.cuts);
    foreloop_release(allocator, build.columns);
    if (status != FORELOOP_OK)
        foreloop_ranker_bins_close(&made);
    else
        *bins = made;
    return status;
}

void foreloop_ranker_bins_close(foreloop_ranker_bins *bins) {
    foreloop_release(bins->allocator, bins->codes);
    foreloop_release(bins->allocator, bins->cuts);
    foreloop_release(bins->allocator, bins->features);
}
