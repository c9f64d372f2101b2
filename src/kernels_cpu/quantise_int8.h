/* Inputs to unsigned bytes, as linear_int8.h says. In a header, so that each tier's loops become its vectors; the
 * operations are the same in all of them, and so are the bits. */
#ifndef FORELOOP_KERNELS_CPU_QUANTISE_INT8_H
#define FORELOOP_KERNELS_CPU_QUANTISE_INT8_H

#include "kernels_cpu/convert_bf16.h"
#include "kernels_cpu/linear_int8.h"

/* How a group of inputs is represented. */
typedef struct foreloop_int8_range {
    float scale, inverse;
    int32_t zero;
} foreloop_int8_range;

/* Running extremes, in lanes of their own so that they vectorise. */
enum { FORELOOP_INT8_LANES = 16 };
typedef struct foreloop_int8_extremes {
    float low[FORELOOP_INT8_LANES], high[FORELOOP_INT8_LANES];
    uint32_t largest[FORELOOP_INT8_LANES]; /* magnitude as bits: tells NaN and infinity */
} foreloop_int8_extremes;

/* x[count], count at most FORELOOP_INT8_GROUP; what is missing there counts as 0. */
static inline void foreloop_int8_load(float group[FORELOOP_INT8_GROUP], const float *x, size_t count) {
    if (count >= FORELOOP_INT8_GROUP) {
        memcpy(group, x, FORELOOP_INT8_GROUP * sizeof *group);
        return;
    }
    memset(group, 0, FORELOOP_INT8_GROUP * sizeof *group);
    memcpy(group, x, count * sizeof *group);
}

static inline void foreloop_int8_extend(foreloop_int8_extremes *extremes, const float group[FORELOOP_INT8_GROUP]) {
    for (int i = 0; i < FORELOOP_INT8_GROUP; i += FORELOOP_INT8_LANES)
        for (int j = 0; j < FORELOOP_INT8_LANES; j++) {
            const float x = group[i + j];
            const uint32_t magnitude = foreloop_float_bits(x) & 0x7fffffff;
            extremes->low[j] = x < extremes->low[j] ? x : extremes->low[j];
            extremes->high[j] = x > extremes->high[j] ? x : extremes->high[j];
            extremes->largest[j] = magnitude > extremes->largest[j] ? magnitude : extremes->largest[j];
        }
}

static inline float foreloop_int8_nearest(float x) {
    return (x + 12582912.0f) - 12582912.0f; /* 1.5 x 2^23: to the nearest integer, for |x| below 2^22 */
}

/* The extremes of all lanes, into the first. */
static inline void foreloop_int8_reduce(foreloop_int8_extremes *extremes) {
    for (int width = FORELOOP_INT8_LANES / 2; width > 0; width /= 2)
        for (int j = 0; j < width; j++) {
            const float low = extremes->low[j + width], high = extremes->high[j + width];
            const uint32_t largest = extremes->largest[j + width];
            extremes->low[j] = low < extremes->low[j] ? low : extremes->low[j];
            extremes->high[j] = high > extremes->high[j] ? high : extremes->high[j];
            extremes->largest[j] = largest > extremes->largest[j] ? largest : extremes->largest[j];
        }
}

static inline foreloop_int8_range foreloop_int8_range_of(float low, float high, uint32_t largest) {
    if (largest >= 0x7f800000) /* the bits of infinity */
        return (foreloop_int8_range){.scale = foreloop_float_of_bits(0x7fc00000)};
    const float scale = high / 255 - low / 255; /* the difference itself may overflow */
    if (scale < 1e-30f / 255)
        return (foreloop_int8_range){0};
    const float inverse = 1 / scale;
    return (foreloop_int8_range){scale, inverse, (int32_t)foreloop_int8_nearest(-low * inverse)};
}

/* The q of one number; a range that is not finite or all zeros gives its zero. */
static inline int32_t foreloop_int8_quantise(float x, const foreloop_int8_range *range) {
    const float steps = range->inverse > 0 ? x * range->inverse : 0;
    const int32_t q = (int32_t)foreloop_int8_nearest(steps) + range->zero;
    return q < 0 ? 0 : q > 255 ? 255 : q;
}

#endif
