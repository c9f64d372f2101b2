/*
 * Runs CUDA kernels on the CPU, for tests on machines without a GPU: include it before a file of kernels
 * (src/kernels_cuda/device_code.cuh) in C++17.
 *
 * Each thread of a block is a fiber; blocks run one after the other. A fiber runs until it comes to a barrier or a warp
 * function, and then the scheduler picks the next: in ascending or descending order or at random, as the seed says, so
 * that code which relies on an order that nothing enforces gives other results. Besides, it finds for certain, in any
 * order:
 *
 *   races on shared memory   two threads access an element, one of them writes, and no barrier is between them:
 *                            __syncthreads, or __syncwarp for threads of one warp (shuffles and votes order no memory)
 *   uninitialised reads      of shared memory that no thread of this block has written
 *   divergence               a barrier or warp function that some threads of the block or warp do not come to
 *
 * The first such fault is kept for emulation::take_fault(), and the stream's next synchronisation fails. Global memory
 * is plain memory, for the address sanitizer to watch. Streams are one queue whose work runs when somebody waits for
 * it, so that what is used before it is ready, or changed before it is used, shows.
 */
#ifndef FORELOOP_TESTS_CUDA_EMULATION_H
#define FORELOOP_TESTS_CUDA_EMULATION_H

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime_api.h>
#include <functional>
#include <type_traits>

#define FORELOOP_CUDA_EMULATION 1
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__
#define __launch_bounds__(...)
#define __constant__ static
#define FORELOOP_UNROLL(count)
#define FORELOOP_SHARED(type)         static emulation::cell<type>
#define FORELOOP_SHARED_POINTER(type) emulation::cell<type> *
#define FORELOOP_DYNAMIC_SHARED(type, name)                                                                            \
    emulation::cell<type> *name =                                                                                      \
        static_cast<emulation::cell<type> *>(emulation::dynamic_shared(sizeof(type), sizeof(emulation::cell<type>)))
#define FORELOOP_LAUNCH(kernel, blocks, threads, shared_bytes, stream, ...)                                            \
    emulation::queue(blocks, threads, shared_bytes, stream, emulation::bind(kernel, __VA_ARGS__))
#define FORELOOP_ALLOW_SHARED(kernel, bytes) emulation::allow_shared(bytes)

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {
    }
};
struct float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct int2 {
    int x, y;
};
struct alignas(16) int4 {
    int x, y, z, w;
};
static inline float2 make_float2(float x, float y) {
    return {x, y};
}
static inline float4 make_float4(float x, float y, float z, float w) {
    return {x, y, z, w};
}
static inline uint2 make_uint2(unsigned x, unsigned y) {
    return {x, y};
}
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
    return {x, y, z, w};
}

namespace emulation {

enum { MAX_THREADS = 1024, WARP = 32 };

/* ---- What tests steer and ask ---- */

/* 0: ascending order of threads; 1: descending; else a random order that the number determines. */
void set_seed(uint64_t seed);
/* The first fault since the last call, or "" */
const char *take_fault();
/* How many kernels ran since the program began. */
size_t launched();

/* ---- The running thread ---- */

struct position {
    dim3 thread, block, block_size, grid_size;
    unsigned linear;            /* thread number in the block */
    uint32_t serial;            /* of the block that runs, counted over the program */
    uint32_t block_epoch;       /* barriers of the block so far */
    uint32_t warp_epochs[WARP]; /* barriers of each warp so far */
};
extern position here;

void fault(const char *format, ...) __attribute__((format(printf, 1, 2)));
void *dynamic_shared(size_t element_size, size_t cell_size);
void allow_shared(size_t bytes);
void queue(dim3 blocks, dim3 threads, size_t shared_bytes, cudaStream_t stream, std::function<void()> run);

void barrier();
/* All lanes of the warp give a value at the same operation; returns the warp's values. */
enum operation { SYNC_WARP, SHUFFLE, VOTE };
const uint64_t *exchange(operation what, unsigned mask, uint64_t value);

template <class Kernel, class... Arguments> std::function<void()> bind(Kernel kernel, Arguments... arguments) {
    return [=]() { kernel(arguments...); };
}

/* ---- Shared memory ---- */

/* Who accessed an element last. */
struct access {
    uint32_t serial, block_epoch, warp_epoch;
    uint16_t thread;
    bool atomic;

    static access now(bool atomic) {
        const unsigned warp = here.linear / WARP;
        return {here.serial, here.block_epoch, here.warp_epochs[warp], (uint16_t)here.linear, atomic};
    }
    /* Whether nothing orders it before an access of the thread that runs. */
    bool unordered() const {
        if (serial != here.serial || block_epoch != here.block_epoch || thread == here.linear)
            return false;
        return thread / WARP != here.linear / WARP || warp_epoch == here.warp_epochs[here.linear / WARP];
    }
};

struct history {
    access written, read;
    bool read_by_several_lanes, read_by_several_warps; /* since the barriers that `read` saw */

    void on_read(const void *where) {
        if (written.serial != here.serial)
            fault("thread %u reads shared memory (%p) that no thread has written", here.linear, where);
        else if (written.unordered())
            fault("thread %u reads shared memory (%p) that thread %u writes, without a barrier between", here.linear,
                  where, written.thread);
        const access now = access::now(false);
        const bool same_block = read.serial == now.serial && read.block_epoch == now.block_epoch;
        const bool same_warp = same_block && read.thread / WARP == now.thread / WARP;
        read_by_several_warps = same_block && (read_by_several_warps || !same_warp);
        read_by_several_lanes =
            same_warp && read.warp_epoch == now.warp_epoch && (read_by_several_lanes || read.thread != now.thread);
        read = now;
    }
    void on_write(const void *where, bool atomic) {
        if (written.unordered() && !(atomic && written.atomic))
            fault("threads %u and %u write shared memory (%p) without a barrier between", written.thread, here.linear,
                  where);
        const bool same_block = read.serial == here.serial && read.block_epoch == here.block_epoch;
        const bool same_warp = same_block && read.thread / WARP == here.linear / WARP;
        if (read.unordered() || (same_block && read_by_several_warps) ||
            (same_warp && read_by_several_lanes && read.warp_epoch == here.warp_epochs[here.linear / WARP]))
            fault("thread %u writes shared memory (%p) that thread %u or others read, without a barrier between",
                  here.linear, where, read.thread);
        written = access::now(atomic);
    }
};

/* An element of shared memory. */
template <class T> class cell {
    T value;
    history past;

  public:
    operator T() {
        past.on_read(this);
        return value;
    }
    cell &operator=(T given) {
        past.on_write(this, false);
        value = given;
        return *this;
    }
    cell &operator=(cell &other) {
        return *this = (T)other;
    }
    cell &operator+=(T given) {
        return *this = (T)((T) * this + given);
    }
    cell &operator-=(T given) {
        return *this = (T)((T) * this - given);
    }
    cell &operator*=(T given) {
        return *this = (T)((T) * this * given);
    }
    cell &operator|=(T given) {
        return *this = (T)((T) * this | given);
    }
    T change_atomically(const std::function<T(T)> &change) {
        past.on_write(this, true);
        const T before = value;
        value = change(value);
        return before;
    }
};

/* ---- Warp functions ---- */

template <class T> uint64_t to_bits(T value) {
    static_assert(sizeof(T) <= 8, "at most 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    return bits;
}
template <class T> T from_bits(uint64_t bits) {
    T value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
template <class T> T shuffle(unsigned mask, T value, unsigned lane, bool there) {
    const uint64_t *values = exchange(SHUFFLE, mask, to_bits(value));
    return there ? from_bits<T>(values[lane]) : value;
}
static inline unsigned own_lane() {
    return here.linear % WARP;
}
static inline unsigned segment(int width) {
    return own_lane() / (unsigned)width * (unsigned)width;
}

/* What atomics do to an element, in shared and in global memory. */
template <class T, class Change> T atomic(T *place, Change change) {
    const T before = *place;
    *place = change(before);
    return before;
}
template <class T, class Change> T atomic(cell<T> *place, Change change) {
    return place->change_atomically(change);
}

} /* namespace emulation */

#define threadIdx (emulation::here.thread)
#define blockIdx  (emulation::here.block)
#define blockDim  (emulation::here.block_size)
#define gridDim   (emulation::here.grid_size)
#define warpSize  32

static inline void __syncthreads() {
    emulation::barrier();
}
static inline void __syncwarp(unsigned mask = 0xffffffffu) {
    emulation::exchange(emulation::SYNC_WARP, mask, 0);
}
static inline void __threadfence() {
}

template <class T> T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
    return emulation::shuffle(mask, value, emulation::segment(width) + ((unsigned)lane & (unsigned)(width - 1)), true);
}
template <class T> T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {
    const unsigned lane = emulation::own_lane() ^ (unsigned)bits;
    return emulation::shuffle(mask, value, lane % 32, lane < emulation::segment(width) + (unsigned)width);
}
template <class T> T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    const unsigned lane = emulation::own_lane() + delta;
    return emulation::shuffle(mask, value, lane % 32, lane < emulation::segment(width) + (unsigned)width);
}
template <class T> T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    const int lane = (int)emulation::own_lane() - (int)delta;
    return emulation::shuffle(mask, value, (unsigned)lane % 32, lane >= (int)emulation::segment(width));
}
static inline unsigned __ballot_sync(unsigned mask, int predicate) {
    const uint64_t *values = emulation::exchange(emulation::VOTE, mask, predicate != 0);
    unsigned result = 0;
    for (unsigned lane = 0; lane < 32; lane++)
        result |= (unsigned)values[lane] << lane;
    return result;
}
static inline int __any_sync(unsigned mask, int predicate) {
    return __ballot_sync(mask, predicate) != 0;
}
static inline int __all_sync(unsigned mask, int predicate) {
    return __ballot_sync(mask, predicate) == 0xffffffffu;
}

template <class Place, class T> auto atomicAdd(Place *place, T value) {
    return emulation::atomic(place, [=](auto old) { return (decltype(old))(old + value); });
}
template <class Place, class T> auto atomicMin(Place *place, T value) {
    return emulation::atomic(place, [=](auto old) { return value < old ? (decltype(old))value : old; });
}
template <class Place, class T> auto atomicMax(Place *place, T value) {
    return emulation::atomic(place, [=](auto old) { return value > old ? (decltype(old))value : old; });
}

/* ---- Arithmetic ---- */

static inline float __fmaf_rn(float a, float b, float c) {
    return fmaf(a, b, c);
}
static inline float __fadd_rn(float a, float b) {
    return a + b;
}
static inline float __fsub_rn(float a, float b) {
    return a - b;
}
static inline float __fmul_rn(float a, float b) {
    return a * b;
}
static inline float __fdiv_rn(float a, float b) {
    return a / b;
}
static inline float __fsqrt_rn(float a) {
    return sqrtf(a);
}
static inline float rsqrtf(float a) {
    return 1.0f / sqrtf(a);
}
static inline float __fdividef(float a, float b) {
    return a / b;
}
static inline unsigned __float_as_uint(float a) {
    return emulation::from_bits<unsigned>(emulation::to_bits(a));
}
static inline float __uint_as_float(unsigned a) {
    return emulation::from_bits<float>(emulation::to_bits(a));
}
static inline int __float_as_int(float a) {
    return emulation::from_bits<int>(emulation::to_bits(a));
}
static inline float __int_as_float(int a) {
    return emulation::from_bits<float>(emulation::to_bits(a));
}
static inline int __popc(unsigned a) {
    return __builtin_popcount(a);
}
static inline int __ffs(int a) {
    return __builtin_ffs(a);
}
static inline int __clz(int a) {
    return a ? __builtin_clz((unsigned)a) : 32;
}
template <class T> T __ldg(const T *place) {
    return *place;
}
template <class A, class B> auto min(A a, B b) {
    return b < a ? b : a;
}
template <class A, class B> auto max(A a, B b) {
    return a < b ? b : a;
}

#endif
