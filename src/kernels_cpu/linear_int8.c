/* The layout of linear_int8's weights, and which kernels a choice of features has. */
#include "kernels_cpu/linear_int8.h"
#include "kernels_cpu/quantise_int8.h"
#include <math.h>
#include <stdint.h>
#include <string.h>

size_t foreloop_int8_packed_size(size_t in, size_t out, bool whole_rows) {
    return (out + FORELOOP_INT8_PANEL - 1) / FORELOOP_INT8_PANEL * foreloop_int8_panel_size(in, whole_rows);
}

/* Packs `count` inputs of one output as column `column` of a block of `length` inputs. */
static void pack_column(unsigned char *block, size_t column, const float *weight, size_t count, size_t length,
                        size_t unit) {
    float largest = 0;
    for (size_t i = 0; i < count; i++)
        largest = fmaxf(largest, fabsf(weight[i]));
    float scale = largest / 127;
    const bool zeros = scale < 1e-30f;
    int32_t sum = 0;
    for (size_t i = 0; i < count && !zeros; i++) {
        const float nearest = rintf(weight[i] / scale);
        const int w = nearest < -127 ? -127 : nearest > 127 ? 127 : (int)nearest;
        block[(i / unit * FORELOOP_INT8_PANEL + column) * unit + i % unit] = (unsigned char)(w & 0xff);
        sum += w;
    }
    if (zeros)
        scale = 0;
    unsigned char *end = block + length * FORELOOP_INT8_PANEL;
    memcpy(end + column * sizeof scale, &scale, sizeof scale);
    memcpy(end + FORELOOP_INT8_PANEL * sizeof scale + column * sizeof sum, &sum, sizeof sum);
}

void foreloop_int8_pack(void *packed, const float *weight, size_t in, size_t out, size_t unit, bool whole_rows) {
    const size_t length = whole_rows ? foreloop_int8_groups(in) * FORELOOP_INT8_GROUP : FORELOOP_INT8_GROUP;
    const size_t block_size = length * FORELOOP_INT8_PANEL + FORELOOP_INT8_BLOCK_END;
    const size_t panel_size = foreloop_int8_panel_size(in, whole_rows);
    memset(packed, 0, foreloop_int8_packed_size(in, out, whole_rows));
    for (size_t o = 0; o < out; o++) {
        unsigned char *block = (unsigned char *)packed + o / FORELOOP_INT8_PANEL * panel_size;
        for (size_t i = 0; i < in; i += length, block += block_size)
            pack_column(block, o % FORELOOP_INT8_PANEL, weight + o * in + i, in - i < length ? in - i : length, length,
                        unit);
    }
}

static void remainder_of(float *rest, const float *x, size_t in, size_t length) {
    float group[FORELOOP_INT8_GROUP];
    for (size_t first = 0; first < in; first += length) {
        const size_t end = in - first < length ? in : first + length;
        foreloop_int8_extremes extremes = {0};
        for (size_t i = first; i < end; i += FORELOOP_INT8_GROUP) {
            foreloop_int8_load(group, x + i, end - i);
            foreloop_int8_extend(&extremes, group);
        }
        foreloop_int8_reduce(&extremes);
        const foreloop_int8_range range =
            foreloop_int8_range_of(extremes.low[0], extremes.high[0], extremes.largest[0]);
        for (size_t i = first; i < end; i++)
            rest[i] = x[i] - range.scale * (float)(foreloop_int8_quantise(x[i], &range) - range.zero);
    }
}

void foreloop_int8_remainder_groups(float *rest, const float *x, size_t in) {
    remainder_of(rest, x, in, FORELOOP_INT8_GROUP);
}

void foreloop_int8_remainder_rows(float *rest, const float *x, size_t in) {
    remainder_of(rest, x, in, in);
}

void foreloop_linear_int8_init(foreloop_linear *linear, unsigned features, bool whole_rows) {
    foreloop_linear_int8_ref(linear, whole_rows);
#if defined(FORELOOP_X86_KERNELS)
    if (features & FORELOOP_CPU_AMX_INT8)
        foreloop_linear_int8_amx(linear, whole_rows);
    else if (features & FORELOOP_CPU_AVX512_VNNI)
        foreloop_linear_int8_avx512_vnni(linear, whole_rows);
    else if (features & FORELOOP_CPU_AVX512)
        foreloop_linear_int8_avx512(linear, whole_rows);
    else if (features & FORELOOP_CPU_AVX2)
        foreloop_linear_int8_avx2(linear, whole_rows);
#else
    (void)features;
#endif
}
