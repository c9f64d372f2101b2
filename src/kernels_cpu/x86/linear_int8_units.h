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

#if defined(__AVX512F__)
/* quantise_int8.h with one vector for its lanes. */
typedef struct group_extremes {
    __m512 low, high;
    __m512i largest;
} group_extremes;

FORELOOP_INLINE group_extremes extremes_begin(void) {
    return (group_extremes){_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_si512()};
}

FORELOOP_INLINE void extremes_extend(group_extremes *extremes, const float *group) {
    for (size_t i = 0; i < GROUP; i += LANES) {
        const __m512 x = _mm512_loadu_ps(group + i);
        const __m512i magnitude = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
        extremes->low = _mm512_min_ps(x, extremes->low); /* of a NaN and a number the second */
        extremes->high = _mm512_max_ps(x, extremes->high);
        extremes->largest = _mm512_max_epu32(magnitude, extremes->largest);
    }
}

FORELOOP_INLINE foreloop_int8_range extremes_range(group_extremes *extremes) {
    return foreloop_int8_range_of(_mm512_reduce_min_ps(extremes->low), _mm512_reduce_max_ps(extremes->high),
                                  _mm512_reduce_max_epu32(extremes->largest));
}

/* 16 numbers; conversion rounds to the nearest, as quantise_int8.h does. */
FORELOOP_INLINE __m512i quantise_vector(const float *from, const foreloop_int8_range *range) {
    const __mmask16 any = range->inverse > 0 ? 0xffff : 0;
    const __m512 steps = _mm512_maskz_mul_ps(any, _mm512_loadu_ps(from), _mm512_set1_ps(range->inverse));
    const __m512i q = _mm512_add_epi32(_mm512_cvtps_epi32(steps), _mm512_set1_epi32(range->zero));
    return _mm512_min_epi32(_mm512_max_epi32(q, _mm512_setzero_si512()), _mm512_set1_epi32(255));
}

FORELOOP_INLINE void quantise_group(unsigned char *to, const float *group, const foreloop_int8_range *range) {
    for (size_t i = 0; i < GROUP; i += LANES) {
        const __m512i q = quantise_vector(group + i, range);
        if (NUMBER == 1)
            _mm_storeu_si128((__m128i *)(void *)(to + i), _mm512_cvtepi32_epi8(q));
        else
            _mm256_storeu_si256((__m256i *)(void *)(to + 2 * i / CHUNK * UNIT_ROWS * CHUNK + 2 * i % CHUNK),
                                _mm512_cvtepi32_epi16(q));
    }
}
#else
typedef foreloop_int8_extremes group_extremes;

FORELOOP_INLINE group_extremes extremes_begin(void) {
    return (group_extremes){0};
}

FORELOOP_INLINE void extremes_extend(group_extremes *extremes, const float *group) {
    foreloop_int8_extend(extremes, group);
}

FORELOOP_INLINE foreloop_int8_range extremes_range(group_extremes *extremes) {
    foreloop_int8_reduce(extremes);
    return foreloop_int8_range_of(extremes->low[0], extremes->high[0], extremes->largest[0]);
}

FORELOOP_INLINE void quantise_group(unsigned char *to, const float *group, const foreloop_int8_range *range) {
    uint16_t q[GROUP];
    for (size_t i = 0; i < GROUP; i++)
        q[i] = (uint16_t)foreloop_int8_quantise(group[i], range);
    for (size_t c = 0; c < GROUP_CHUNKS; c++)
        memcpy(to + c * UNIT_ROWS * CHUNK, q + c * (CHUNK / 2), CHUNK);
}
#endif

/* A group of inputs as it lies, or filled up with zeros in `padded`. */
FORELOOP_INLINE const float *whole_group(const float *x, size_t first, size_t in, float padded[GROUP]) {
    if (in - first >= GROUP)
        return x + first;
    foreloop_int8_load(padded, x + first, in - first);
    return padded;
}

FORELOOP_INLINE void int8_prepare_row(const unit_shape *shape, unsigned char *unit, size_t row, const float *x,
                                      size_t in, bool whole_rows) {
    const size_t groups = foreloop_int8_groups(in), own = own_groups(in, whole_rows), length = groups / own;
    float *scales = (float *)(unit + shape->chunks * UNIT_ROWS * CHUNK);
    int32_t *zeros = (int32_t *)(scales + own * UNIT_ROWS);
    float padded[GROUP];
    for (size_t g = 0; g < own; g++) {
        group_extremes extremes = extremes_begin();
        for (size_t i = g * length; i < (g + 1) * length; i++)
            extremes_extend(&extremes, whole_group(x, i * GROUP, in, padded));
        const foreloop_int8_range range = extremes_range(&extremes);
        scales[g * UNIT_ROWS + row] = range.scale;
        zeros[g * UNIT_ROWS + row] = range.zero;
        for (size_t i = g * length; i < (g + 1) * length; i++)
            quantise_group(unit + (i * GROUP_CHUNKS * UNIT_ROWS + row) * CHUNK, whole_group(x, i * GROUP, in, padded),
                           &range);
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
        int8_prepare(prepared, x, x_stride, rows, in, row_begin, row_end, whole_rows);                                 \
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
                                .remainder = whole_rows ? foreloop_int8_remainder_rows : foreloop_int8_remainder_groups,
                                .row_unit = UNIT_ROWS,
                                .out_unit = PANEL,
                                .run = whole_rows ? run_rows : run_groups};
}

/* Where things of group g lie. */
typedef struct group_work {
    const unsigned char *x, *block;      /* the unit's chunks, the panel's bytes */
    const float *weight_scales, *scales; /* [PANEL], [UNIT_ROWS] */
    const int32_t *totals, *zeros;       /* [PANEL]: sums of w; [UNIT_ROWS] */
} group_work;

FORELOOP_INLINE group_work group_of(const unit_work *work, size_t g, size_t groups, size_t chunks) {
    const size_t data_size = chunks * (CHUNK / NUMBER) * PANEL;
    const unsigned char *block = work->panel + g * (data_size + FORELOOP_INT8_BLOCK_END);
    const float *weight_scales = (const float *)(block + data_size);
    const float *scales = (const float *)(work->unit + work->shape->chunks * UNIT_ROWS * CHUNK);
    return (group_work){.x = work->unit + g * chunks * UNIT_ROWS * CHUNK,
                        .block = block,
                        .weight_scales = weight_scales,
                        .scales = scales + g * UNIT_ROWS,
                        .totals = (const int32_t *)(weight_scales + PANEL),
                        .zeros = (const int32_t *)(scales + groups * UNIT_ROWS) + g * UNIT_ROWS};
}

/* sums[rows][PANEL] <- fmaf(exact sums of (q - zero) w, scales, sums), for rows of the unit from `first` on. */
FORELOOP_INLINE void add_scaled(const group_work *group, size_t first, size_t rows, const int32_t *exact, float *sums,
                                bool whole_rows) {
    FORELOOP_ROLLED
    for (size_t r = 0; r < rows; r++) {
        const vec_f32 scale = vec_set_f32(group->scales[first + r]);
        const int32_t zero = group->zeros[first + r];
        for (size_t o = 0; o < PANEL; o += LANES) {
            const size_t at = r * PANEL + o;
            const vec_i32 total = vec_load_i32(group->totals + o);
            /* The total of 64 inputs has 16 bits: a product of pairs does, with nothing in the upper half. */
            const vec_i32 correction =
                whole_rows ? vec_mul_i32(total, vec_set_i32(-zero)) : vec_pairs_i32(total, vec_set_i32(-zero & 0xffff));
            const vec_f32 sum = vec_f32_of_i32(vec_add_i32(vec_load_i32(exact + at), correction));
            const vec_f32 both = vec_mul_f32(scale, vec_load_f32(group->weight_scales + o));
            vec_store_f32(sums + at, vec_fma_f32(sum, both, vec_load_f32(sums + at)));
        }
    }
}

#endif
