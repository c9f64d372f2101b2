/* The k best: tiles are sorted in shared memory by a bitonic network, their better halves are tiles again. */
#include "kernels_cuda/device_code.cuh"
#include "kernels_cuda/top_k.h"

enum { THREADS = 256, KEYS = FORELOOP_CUDA_TOP_KEYS, TILE = FORELOOP_CUDA_TOP_TILE };

extern "C" __global__ void __launch_bounds__(THREADS)
    foreloop_make_keys(const float *scores, size_t count, uint32_t index_base, uint64_t *keys) {
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= count)
        return;
    const float score = __fadd_rn(scores[i], 0.0f);
    const uint32_t bits = __float_as_uint(score);
    const uint32_t ordered = score != score ? 0u : bits >> 31 ? ~bits : bits | 0x80000000u;
    keys[i] = (uint64_t)ordered << 32 | ~(index_base + (uint32_t)i);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    foreloop_keep_best(const uint64_t *keys, size_t count, uint64_t *best) {
    FORELOOP_SHARED(uint64_t) tile[TILE];
    const size_t first = (size_t)blockIdx.x * TILE;
    for (unsigned i = threadIdx.x; i < TILE; i += THREADS)
        tile[i] = first + i < count ? keys[first + i] : 0;
    for (unsigned size = 2; size <= TILE; size *= 2)
        for (unsigned distance = size / 2; distance > 0; distance /= 2) {
            __syncthreads();
            for (unsigned pair = threadIdx.x; pair < TILE / 2; pair += THREADS) {
                const unsigned low = pair / distance * 2 * distance + pair % distance, high = low + distance;
                const bool falling = (low & size) == 0; /* the last round, of the whole tile, falls */
                const uint64_t a = tile[low], b = tile[high];
                if (falling ? a < b : a > b) {
                    tile[low] = b;
                    tile[high] = a;
                }
            }
        }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < KEYS; i += THREADS)
        best[(size_t)blockIdx.x * KEYS + i] = tile[i];
}

extern "C" __global__ void __launch_bounds__(THREADS)
    foreloop_read_keys(const uint64_t *keys, size_t count, uint64_t *indices, float *scores) {
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= count)
        return;
    const uint32_t ordered = (uint32_t)(keys[i] >> 32);
    const uint32_t bits = ordered == 0 ? 0x7fffffffu : ordered >> 31 ? ordered & 0x7fffffffu : ~ordered;
    indices[i] = (uint32_t)~keys[i];
    if (scores)
        scores[i] = __uint_as_float(bits);
}

static unsigned blocks_of(size_t count) {
    return (unsigned)((count + THREADS - 1) / THREADS);
}

cudaError_t foreloop_cuda_make_keys(const float *scores, size_t count, uint32_t index_base, uint64_t *keys,
                                    cudaStream_t stream) {
    if (count == 0)
        return cudaSuccess;
    FORELOOP_LAUNCH(foreloop_make_keys, blocks_of(count), (unsigned)THREADS, 0, stream, scores, count, index_base,
                    keys);
    return cudaGetLastError();
}

cudaError_t foreloop_cuda_keep_best(const uint64_t *keys, size_t count, uint64_t *best, cudaStream_t stream) {
    if (count == 0)
        return cudaSuccess;
    FORELOOP_LAUNCH(foreloop_keep_best, (unsigned)foreloop_cuda_top_tiles(count), (unsigned)THREADS, 0, stream, keys,
                    count, best);
    return cudaGetLastError();
}

cudaError_t foreloop_cuda_read_keys(const uint64_t *keys, size_t count, uint64_t *indices, float *scores,
                                    cudaStream_t stream) {
    if (count == 0)
        return cudaSuccess;
    FORELOOP_LAUNCH(foreloop_read_keys, blocks_of(count), (unsigned)THREADS, 0, stream, keys, count, indices, scores);
    return cudaGetLastError();
}
