/* float32 to bfloat16 and back. In a header, so that each tier's loops over it become its vectors. */
#ifndef FORELOOP_KERNELS_CPU_CONVERT_BF16_H
#define FORELOOP_KERNELS_CPU_CONVERT_BF16_H

#include <stdint.h>
#include <string.h>

static inline uint32_t foreloop_float_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float foreloop_float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The nearest bfloat16, of two equally near the even one, in the upper half; a NaN stays one and is quiet. */
static inline uint32_t foreloop_bf16_upper(float value) {
    const uint32_t bits = foreloop_float_bits(value);
    const uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1), quiet = bits | 0x400000;
    return ((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded) & 0xffff0000;
}

static inline uint16_t foreloop_bf16_of(float value) {
    return (uint16_t)(foreloop_bf16_upper(value) >> 16);
}

static inline float foreloop_bf16_float(uint16_t value) {
    return foreloop_float_of_bits((uint32_t)value << 16);
}

#endif
