/* linear_int8's rows in units, as bytes or as 16-bit numbers, and its calls. The file that includes this has defined
 * UNIT_ROWS, NUMBER: the bytes of a number of the prepared rows, 1 or 2, and UNIT: the inputs that lie together in the
 * weights, 4 or 2. Behind the chunks a unit has the scales [groups][UNIT_ROWS] and the zeros [groups][UNIT_ROWS]. */
#ifndef FORELOOP_KERNELS_CPU_X86_LINEAR_INT8_UNITS_H
#define FORELOOP_KERNELS_CPU_X86_LINEAR_INT8_UNITS_H

#include "kernels_cpu/linear_int8.h"
#include "kernels_cpu/quantise_int8.h"
#include "kernels_cpu/x86/linear_units.h"

enum { GROUP = FORELOOP_INT8_GROUP, GROUP_CHUNKS = GROUP * NUMBER / CHUNK };

FORELOOP_INLINE size_t own_groups(size_t in, bool whole_rows) {
    return whole_rows ? 1 : foreloop_int8_groups(in);
}

FORELOOP_INLINE unit_shape int8_shape(size_t in, bool whole_rows) {
    return unit_shape_of(UNIT_ROWS, foreloop_int8_groups(in) * GROUP_CHUNKS,
                         own_groups(in, whole_rows) * (sizeof(float) + sizeof(int32_t)));
}

FORELOOP_INLINE size_t int8_prepared_size(size_t rows, size_t in, bool whole_rows) {
    const unit_shape shape = int8_shape(in, whole_rows);
    return unit_memory(&shape, rows);
}

FORELOOP_INLINE void quantise_group(unsigned char *to, const float group[GROUP], const foreloop_int8_range *range) {
    if (NUMBER == 1) {
        unsigned char q[GROUP];
        for (size_t i = 0; i < GROUP; i++)
            q[i] = (unsigned char)foreloop_int8_quantise(group[i], range);
        memcpy(to, q, sizeof q);
    } else {
        uint16_t q[GROUP];
        for (size_t i = 0; i < GROUP; i++)
            q[i] = (uint16_t)foreloop_int8_quantise(group[i], range);
        for (size_t c = 0; c < GROUP_CHUNKS; c++)
            memcpy(to + c * UNIT_ROWS * CHUNK, q + c * (CHUNK / 2), CHUNK);
    }
}

FORELOOP_INLINE void int8_prepare_row(const unit_shape *shape, unsigned char *unit, size_t row, const float *x,
                                      size_t in, bool whole_rows) {
    const size_t groups = foreloop_int8_groups(in), own = own_groups(in, whole_rows), length = groups / own;
    float *scales = (float *)(unit + shape->chunks * UNIT_ROWS * CHUNK);
    int32_t *zeros = (int32_t *)(scales + own * UNIT_ROWS);
    float group[GROUP];
    for (size_t g = 0; g < own; g++) {
        foreloop_int8_extremes extremes = {0};
        for (size_t i = g * length; i < (g + 1) * length; i++) {
            foreloop_int8_load(group, x + i * GROUP, in - i * GROUP);
            foreloop_int8_extend(&extremes, group);
        }
        const foreloop_int8_range range = foreloop_int8_range_of(&extremes);
        scales[g * UNIT_ROWS + row] = range.scale;
        zeros[g * UNIT_ROWS + row] = range.zero;
        for (size_t i = g * length; i < (g + 1) * length; i++) {
            if (length > 1)
                foreloop_int8_load(group, x + i * GROUP, in - i * GROUP);
            quantise_group(unit + (i * GROUP_CHUNKS * UNIT_ROWS + row) * CHUNK, group, &range);
        }
    }
}

FORELOOP_INLINE void int8_prepare(void *prepared, const float *x, size_t x_stride, size_t rows, size_t in,
                                  size_t row_begin, size_t row_end, bool whole_rows) {
    const unit_shape shape = int8_shape(in, whole_rows);
    clear_rest(&shape, prepared, rows, row_end);
    for (size_t r = row_begin; r < row_end; r++)
        int8_prepare_row(&shape, (unsigned char *)prepared + r / UNIT_ROWS * shape.size, r % UNIT_ROWS,
                         x + r * x_stride, in, whole_rows);
}

static void run_unit_groups(const unit_work *work);
static void run_unit_rows(const unit_work *work);

FORELOOP_INLINE void int8_run(const foreloop_linear_call *call, size_t row_begin, size_t row_end, size_t out_begin,
                              size_t out_end, bool whole_rows) {
    const unit_shape shape = int8_shape(call->in, whole_rows);
    begin_units();
    for_each_unit(call, &shape, call->packed, foreloop_int8_panel_size(call->in, whole_rows), row_begin, row_end,
                  out_begin, out_end, whole_rows ? run_unit_rows : run_unit_groups);
    end_units();
}

/* The two modes: groups of 64, and whole rows as one group. */
#define DEFINE_MODE(mode, whole_rows)                                                                                  \
    static size_t packed_size_##mode(size_t in, size_t out) {                                                          \
        return foreloop_int8_packed_size(in, out, whole_rows);                                                         \
    }                                                                                                                  \
    static void pack_##mode(void *packed, const float *weight, size_t in, size_t out) {                                \
        foreloop_int8_pack(packed, weight, in, out, UNIT, whole_rows);                                                 \
    }                                                                                                                  \
    static size_t prepared_size_##mode(size_t rows, size_t in) {                                                       \
        return int8_prepared_size(rows, in, whole_rows);                                                               \
    }                                                                                                                  \
    static void prepare_##mode(void *prepared, const float *x, size_t x_stride, size_t rows, size_t in,                \
                               size_t row_begin, size_t row_end) {                                                     \
        int8_prepare(prepared, x, x_stride, rows, in, row_begin, row_end, whole_rows);                                       \
    }                                                                                                                  \
    static void run_##mode(const foreloop_linear_call *call, size_t row_begin, size_t row_end, size_t out_begin,       \
                           size_t out_end) {                                                                           \
        int8_run(call, row_begin, row_end, out_begin, out_end, whole_rows);                                            \
    }

DEFINE_MODE(groups, false)
DEFINE_MODE(rows, true)

FORELOOP_INLINE void int8_kernel(foreloop_linear *linear, bool whole_rows, const char *name) {
    *linear = (foreloop_linear){.tier = TIER,
                                .name = name,
                                .largest_in = whole_rows ? FORELOOP_INT8_ROW_INPUTS : 0,
                                .packed_size = whole_rows ? packed_size_rows : packed_size_groups,
                                .pack = whole_rows ? pack_rows : pack_groups,
                                .prepared_size = whole_rows ? prepared_size_rows : prepared_size_groups,
                                .prepare = whole_rows ? prepare_rows : prepare_groups,
                                .row_unit = UNIT_ROWS,
                                .out_unit = PANEL,
                                .run = whole_rows ? run_rows : run_groups};
}

/* Where a unit keeps its rows' scales and zeros of group g. */
FORELOOP_INLINE const float *unit_scales(const unit_work *work, size_t g) {
    return (const float *)(work->unit + work->shape->chunks * UNIT_ROWS * CHUNK) + g * UNIT_ROWS;
}

FORELOOP_INLINE const int32_t *unit_zeros(const unit_work *work, size_t g, size_t groups) {
    return (const int32_t *)unit_scales(work, groups) + g * UNIT_ROWS;
}

#endif
