/* linear_int8, reference. A prepared row: for each group scale and zero, then the bytes of all groups. */
#include "kernels_cpu/linear_finish.h"
#include "kernels_cpu/linear_int8.h"
#include "kernels_cpu/quantise_int8.h"
#include <math.h>

enum { PANEL = FORELOOP_INT8_PANEL, GROUP = FORELOOP_INT8_GROUP };

typedef struct row_shape {
    size_t length, groups; /* inputs of a group */
    size_t size;           /* bytes of a row */
} row_shape;

static row_shape shape_of(size_t in, bool whole_rows) {
    const size_t groups = foreloop_int8_groups(in), own = whole_rows ? 1 : groups;
    return (row_shape){groups * GROUP / own, own, own * sizeof(foreloop_int8_range) + groups * GROUP};
}

static void prepare_group(unsigned char *q, foreloop_int8_range *range, const float *x, size_t count, size_t length) {
    foreloop_int8_extremes extremes = {0};
    float group[GROUP];
    for (size_t i = 0; i < count; i += GROUP) {
        foreloop_int8_load(group, x + i, count - i);
        foreloop_int8_extend(&extremes, group);
    }
    foreloop_int8_reduce(&extremes);
    *range = foreloop_int8_range_of(extremes.low[0], extremes.high[0], extremes.largest[0]);
    for (size_t i = 0; i < length; i++)
        q[i] = (unsigned char)foreloop_int8_quantise(i < count ? x[i] : 0, range);
}

static void quantise_rows(unsigned char *prepared, const float *x, size_t x_stride, size_t in, size_t row_begin,
                          size_t row_end, bool whole_rows) {
    const row_shape shape = shape_of(in, whole_rows);
    for (size_t r = row_begin; r < row_end; r++) {
        unsigned char *to = prepared + r * shape.size, *q = to + shape.groups * sizeof(foreloop_int8_range);
        for (size_t g = 0; g < shape.groups; g++) {
            const size_t first = g * shape.length;
            foreloop_int8_range range;
            prepare_group(q + first, &range, x + r * x_stride + first,
                          in - first < shape.length ? in - first : shape.length, shape.length);
            memcpy(to + g * sizeof range, &range, sizeof range);
        }
    }
}

/* sums[PANEL] <- fmaf(exact sums, scales, sums), of one group. */
static void accumulate(float *restrict sums, const unsigned char *restrict q, const foreloop_int8_range *range,
                       const unsigned char *restrict block, size_t length) {
    int32_t exact[PANEL] = {0}, totals[PANEL];
    float scales[PANEL];
    for (size_t i = 0; i < length; i++)
        for (size_t o = 0; o < PANEL; o++)
            exact[o] += (int32_t)q[i] * (int32_t)(signed char)block[i * PANEL + o];
    memcpy(scales, block + length * PANEL, sizeof scales);
    memcpy(totals, block + length * PANEL + sizeof scales, sizeof totals);
    for (size_t o = 0; o < PANEL; o++)
        sums[o] = fmaf((float)(exact[o] - range->zero * totals[o]), range->scale * scales[o], sums[o]);
}

static void run_shape(const foreloop_linear_call *call, size_t row_begin, size_t row_end, size_t out_begin,
                      size_t out_end, bool whole_rows) {
    static foreloop_activation_f32 *const activations[] = {foreloop_gelu_f32_ref, foreloop_gelu_tanh_f32_ref,
                                                           foreloop_relu_f32_ref};
    const row_shape shape = shape_of(call->in, whole_rows);
    const size_t block_size = shape.length * PANEL + FORELOOP_INT8_BLOCK_END;
    for (size_t out = out_begin; out < out_end; out += PANEL) {
        const unsigned char *panel =
            (const unsigned char *)call->packed + out / PANEL * foreloop_int8_panel_size(call->in, whole_rows);
        for (size_t r = row_begin; r < row_end; r++) {
            const unsigned char *from = (const unsigned char *)call->prepared + r * shape.size;
            const unsigned char *q = from + shape.groups * sizeof(foreloop_int8_range);
            float sums[PANEL] = {0};
            for (size_t g = 0; g < shape.groups; g++) {
                foreloop_int8_range range;
                memcpy(&range, from + g * sizeof range, sizeof range);
                accumulate(sums, q + g * shape.length, &range, panel + g * block_size, shape.length);
            }
            foreloop_linear_finish(call, sums, r, 1, out, activations);
        }
    }
}

/* The two modes: groups of 64, and whole rows as one group. */
#define DEFINE_MODE(mode, whole_rows)                                                                                  \
    static size_t packed_size_##mode(size_t in, size_t out) {                                                          \
        return foreloop_int8_packed_size(in, out, whole_rows);                                                         \
    }                                                                                                                  \
    static void pack_##mode(void *packed, const float *weight, size_t in, size_t out) {                                \
        foreloop_int8_pack(packed, weight, in, out, 1, whole_rows);                                                    \
    }                                                                                                                  \
    static size_t prepared_size_##mode(size_t rows, size_t in) {                                                       \
        return rows * shape_of(in, whole_rows).size;                                                                   \
    }                                                                                                                  \
    static void prepare_##mode(void *prepared, const float *x, size_t x_stride, size_t rows, size_t in,                \
                               size_t row_begin, size_t row_end) {                                                     \
        (void)rows;                                                                                                    \
        quantise_rows(prepared, x, x_stride, in, row_begin, row_end, whole_rows);                                      \
    }                                                                                                                  \
    static void run_##mode(const foreloop_linear_call *call, size_t row_begin, size_t row_end, size_t out_begin,       \
                           size_t out_end) {                                                                           \
        run_shape(call, row_begin, row_end, out_begin, out_end, whole_rows);                                           \
    }

DEFINE_MODE(groups, false)
DEFINE_MODE(rows, true)

void foreloop_linear_int8_ref(foreloop_linear *linear, bool whole_rows) {
    *linear = (foreloop_linear){.tier = FORELOOP_TIER_REF,
                                .name = whole_rows ? "int8_row" : "int8",
                                .largest_in = whole_rows ? FORELOOP_INT8_ROW_INPUTS : 0,
                                .packed_size = whole_rows ? packed_size_rows : packed_size_groups,
                                .pack = whole_rows ? pack_rows : pack_groups,
                                .prepared_size = whole_rows ? prepared_size_rows : prepared_size_groups,
                                .prepare = whole_rows ? prepare_rows : prepare_groups,
                                .remainder = whole_rows ? foreloop_int8_remainder_rows : foreloop_int8_remainder_groups,
                                .row_unit = 1,
                                .out_unit = PANEL,
                                .run = whole_rows ? run_rows : run_groups};
}
