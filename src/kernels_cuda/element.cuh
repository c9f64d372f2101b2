/* Reading and writing elements in kernels. */
#ifndef FORELOOP_KERNELS_CUDA_ELEMENT_CUH
#define FORELOOP_KERNELS_CUDA_ELEMENT_CUH

#include "kernels_cuda/device_code.cuh"
#include "kernels_cuda/element.h"
#include <math.h>
#include <string.h>
#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>

static __device__ __forceinline__ float float_of_f16(uint16_t bits) {
    return __half2float(__ushort_as_half(bits));
}
static __device__ __forceinline__ uint16_t f16_of_float(float value) {
    return __half_as_ushort(__float2half_rn(value));
}
static __device__ __forceinline__ uint16_t bf16_of_float(float value) {
    return __bfloat16_as_ushort(__float2bfloat16_rn(value));
}
#else
/* In plain C++ where the kernels are emulated. To the nearest, of two equally near the even one. */
static inline float float_of_f16(uint16_t bits) {
    const float magnitude = (bits >> 10 & 31) == 31 ? ((bits & 1023) ? NAN : INFINITY)
                            : (bits >> 10 & 31)     ? ldexpf((float)(1024 + (bits & 1023)), (bits >> 10 & 31) - 25)
                                                    : ldexpf((float)(bits & 1023), -24);
    return bits & 0x8000 ? -magnitude : magnitude;
}
static inline uint16_t f16_of_float(float value) {
    const uint16_t sign = signbit(value) ? 0x8000 : 0;
    const float magnitude = fabsf(value);
    int exponent;
    if (isnan(value))
        return 0x7fff;
    if (magnitude >= 65520.0f)
        return (uint16_t)(sign | 0x7c00);
    (void)frexpf(magnitude, &exponent); /* the number is below 2^exponent: its last place is 2^(exponent - 11) */
    if (exponent < -13 || magnitude == 0.0f)
        exponent = -13;
    const float places = rintf(ldexpf(magnitude, 11 - exponent));
    return (uint16_t)(sign + (uint16_t)places + (uint16_t)((exponent + 13) << 10));
}
static inline uint16_t bf16_of_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return isnan(value) ? 0x7fff : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
#endif

static __device__ __forceinline__ float float_of_bf16(uint16_t bits) {
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

static __device__ __forceinline__ float load_element(const void *values, size_t index, foreloop_cuda_element element) {
    if (element == FORELOOP_CUDA_ELEMENT_F32)
        return ((const float *)values)[index];
    const uint16_t bits = ((const uint16_t *)values)[index];
    return element == FORELOOP_CUDA_ELEMENT_F16 ? float_of_f16(bits) : float_of_bf16(bits);
}

static __device__ __forceinline__ void store_element(void *values, size_t index, foreloop_cuda_element element,
                                                     float value) {
    if (element == FORELOOP_CUDA_ELEMENT_F32)
        ((float *)values)[index] = value;
    else
        ((uint16_t *)values)[index] = element == FORELOOP_CUDA_ELEMENT_F16 ? f16_of_float(value) : bf16_of_float(value);
}

/* Eight neighbours from a multiple of eight on. */
static __device__ __forceinline__ void load_eight(const void *values, size_t index, foreloop_cuda_element element,
                                                  float result[8]) {
    if (element == FORELOOP_CUDA_ELEMENT_F32) {
        const float4 *vectors = (const float4 *)((const float *)values + index);
        const float4 low = vectors[0], high = vectors[1];
        result[0] = low.x, result[1] = low.y, result[2] = low.z, result[3] = low.w;
        result[4] = high.x, result[5] = high.y, result[6] = high.z, result[7] = high.w;
        return;
    }
    const uint4 vector = *(const uint4 *)((const uint16_t *)values + index);
    const uint32_t pairs[4] = {vector.x, vector.y, vector.z, vector.w};
    FORELOOP_UNROLL(8)
    for (int i = 0; i < 8; i++) {
        const uint16_t bits = (uint16_t)(pairs[i / 2] >> (i % 2 * 16));
        result[i] = element == FORELOOP_CUDA_ELEMENT_F16 ? float_of_f16(bits) : float_of_bf16(bits);
    }
}

static __device__ __forceinline__ void store_eight(void *values, size_t index, foreloop_cuda_element element,
                                                   const float from[8]) {
    if (element == FORELOOP_CUDA_ELEMENT_F32) {
        float4 *vectors = (float4 *)((float *)values + index);
        vectors[0] = make_float4(from[0], from[1], from[2], from[3]);
        vectors[1] = make_float4(from[4], from[5], from[6], from[7]);
        return;
    }
    uint32_t pairs[4] = {0, 0, 0, 0};
    FORELOOP_UNROLL(8)
    for (int i = 0; i < 8; i++) {
        const uint16_t bits = element == FORELOOP_CUDA_ELEMENT_F16 ? f16_of_float(from[i]) : bf16_of_float(from[i]);
        pairs[i / 2] |= (uint32_t)bits << (i % 2 * 16);
    }
    *(uint4 *)((uint16_t *)values + index) = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
}

#endif
