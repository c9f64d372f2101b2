/*
 * What every file of kernels begins with. Kernels are written once and compiled twice: by nvcc for the GPU, and by a
 * plain C++ compiler with tests/cuda/emulation.h included before, which runs them on the CPU and watches their barriers
 * and their shared memory. So they keep to what both have:
 *
 *   FORELOOP_SHARED(float) tile[32][33];   an array in shared memory; elements are read and assigned whole, and no
 *                                          pointer or reference to one is kept, but by FORELOOP_SHARED_POINTER(float)
 *   FORELOOP_DYNAMIC_SHARED(float, name);  all dynamic shared memory, one type a kernel
 *   FORELOOP_UNROLL(4)                     before a loop
 *   FORELOOP_LAUNCH(kernel, blocks, threads, shared_bytes, stream, arguments...)
 *   FORELOOP_ALLOW_SHARED(kernel, bytes)   before launches with more than 48 KiB of it
 *
 * and to whole warps: blocks are multiples of 32 threads, masks of warp functions are FORELOOP_WARP. Nothing is
 * contracted (-fmad=false): fused multiply-adds are written __fmaf_rn.
 */
#ifndef FORELOOP_KERNELS_CUDA_DEVICE_CODE_CUH
#define FORELOOP_KERNELS_CUDA_DEVICE_CODE_CUH

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#define FORELOOP_WARP 0xffffffffu

#if defined(__CUDACC__)
#define FORELOOP_TEXT(tokens)         #tokens
#define FORELOOP_UNROLL(count)        _Pragma(FORELOOP_TEXT(unroll count))
#define FORELOOP_SHARED(type)         __shared__ type
#define FORELOOP_SHARED_POINTER(type) type *
#define FORELOOP_DYNAMIC_SHARED(type, name)                                                                            \
    extern __shared__ __align__(16) unsigned char foreloop_dynamic_shared[];                                           \
    type *name = reinterpret_cast<type *>(foreloop_dynamic_shared)
#define FORELOOP_LAUNCH(kernel, blocks, threads, shared_bytes, stream, ...)                                            \
    kernel<<<(blocks), (threads), (shared_bytes), (stream)>>>(__VA_ARGS__)
#define FORELOOP_ALLOW_SHARED(kernel, bytes)                                                                           \
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)(bytes))
#elif !defined(FORELOOP_CUDA_EMULATION)
#error "compile with nvcc, or include tests/cuda/emulation.h before"
#endif

/* Four neighbours in shared memory, from a multiple of four on, of an array aligned to 16. */
static __device__ __forceinline__ float4 shared_four(FORELOOP_SHARED_POINTER(float) tile, unsigned index) {
#if defined(__CUDACC__)
    return *reinterpret_cast<const float4 *>(tile + index);
#else
    return make_float4(tile[index], tile[index + 1], tile[index + 2], tile[index + 3]);
#endif
}

#endif
