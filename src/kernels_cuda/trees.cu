/* Trees: a thread takes one row through all trees, several of them side by side, and adds their leaves in order. A
 * block's rows lie in shared memory, turned so that neighbouring threads read neighbouring banks. */
#include "kernels_cuda/device_code.cuh"
#include "kernels_cuda/trees.h"

enum { LANES = 32, MAX_ROWS = 64, TOGETHER = 8 };

/* A row's numbers in shared memory, `pitch` apart, or where they lie. */
struct staged_row {
    FORELOOP_SHARED_POINTER(float) values;
    uint32_t pitch;
    __device__ float operator[](uint32_t feature) const {
        return values[feature * pitch];
    }
};
struct plain_row {
    const float *values;
    __device__ float operator[](uint32_t feature) const {
        return __ldg(values + feature);
    }
};

static __device__ foreloop_trees_node load(const foreloop_trees_node *node) {
    const uint2 words = __ldg(reinterpret_cast<const uint2 *>(node));
    foreloop_trees_node result;
    result.value = __uint_as_float(words.x);
    result.word = words.y;
    return result;
}

/* The sum and the leaves of compact trees begin <= t < end. */
template <class Row>
static __device__ float add_compact(const foreloop_cuda_trees &trees, uint32_t begin, uint32_t end, const Row &row,
                                    float sum) {
    for (uint32_t first = begin; first < end; first += TOGETHER) {
        uint32_t root[TOGETHER], current[TOGETHER];
        foreloop_trees_node nodes[TOGETHER];
        FORELOOP_UNROLL(8)
        for (uint32_t k = 0; k < TOGETHER; k++) {
            root[k] = __ldg(trees.roots + (first + k < end ? first + k : begin));
            current[k] = 0;
            nodes[k] = load(trees.nodes + root[k]);
        }
        for (uint32_t at_leaf = 0; !at_leaf;) {
            at_leaf = FORELOOP_TREES_IS_LEAF;
            FORELOOP_UNROLL(8)
            for (uint32_t k = 0; k < TOGETHER; k++) {
                const foreloop_trees_node node = nodes[k];
                if (!(node.word & FORELOOP_TREES_IS_LEAF)) {
                    const float x = row[node.word >> FORELOOP_TREES_FEATURE_SHIFT];
                    const bool left = x < node.value || (x != x && (node.word & FORELOOP_TREES_DEFAULT_LEFT));
                    current[k] = (node.word & FORELOOP_TREES_LEFT) + (left ? 0u : 1u);
                    nodes[k] = load(trees.nodes + root[k] + current[k]);
                }
                at_leaf &= nodes[k].word;
            }
        }
        FORELOOP_UNROLL(8)
        for (uint32_t k = 0; k < TOGETHER; k++)
            if (first + k < end)
                sum = __fadd_rn(sum, nodes[k].value);
    }
    return sum;
}

static __device__ bool contains(const foreloop_cuda_trees &trees, uint32_t set, uint32_t category) {
    uint32_t low = trees.sets[set], high = trees.sets[set + 1];
    const uint32_t end = high;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (trees.categories[middle] < category)
            low = middle + 1;
        else
            high = middle;
    }
    return low < end && trees.categories[low] == category;
}

/* A category is a whole number below 2^24, cut towards zero. */
static __device__ bool goes_right(const foreloop_cuda_trees &trees, const foreloop_cuda_node &node, float x) {
    if (x != x)
        return !(node.split & FORELOOP_CUDA_NODE_DEFAULT_LEFT);
    if (!(node.split & FORELOOP_CUDA_NODE_CATEGORICAL))
        return !(x < node.value);
    return x >= 0.0f && x < 16777216.0f && contains(trees, node.set, (uint32_t)x);
}

template <class Row>
static __device__ float add_large(const foreloop_cuda_trees &trees, uint32_t begin, uint32_t end, const Row &row,
                                  float sum) {
    for (uint32_t t = begin; t < end; t++) {
        foreloop_cuda_node node = trees.large[trees.roots[t]];
        while (node.split & FORELOOP_CUDA_NODE_SPLIT) {
            const float x = row[node.split & FORELOOP_CUDA_NODE_FEATURE];
            node = trees.large[node.left + (goes_right(trees, node, x) ? 1u : 0u)];
        }
        sum = __fadd_rn(sum, node.value);
    }
    return sum;
}

template <class Row> static __device__ float add_all(const foreloop_cuda_trees &trees, const Row &row) {
    float sum = trees.base;
    for (uint32_t i = 0; i < trees.run_count; i++) {
        const foreloop_cuda_run run = trees.runs[i];
        sum = run.compact ? add_compact(trees, run.begin, run.end, row, sum)
                          : add_large(trees, run.begin, run.end, row, sum);
    }
    return sum;
}

/* A row more apart than there are rows: then a warp that writes one row's numbers meets no bank twice. */
static inline __host__ __device__ uint32_t pitch_of(uint32_t rows) {
    return rows + 1;
}

extern "C" __global__ void __launch_bounds__(MAX_ROWS, 8) foreloop_trees_staged(foreloop_cuda_trees_call call) {
    FORELOOP_DYNAMIC_SHARED(float, shared);
    const uint32_t rows = blockDim.x, lane = threadIdx.x % LANES, pitch = pitch_of(rows);
    const size_t first = (size_t)blockIdx.x * rows;
    for (uint32_t r = threadIdx.x / LANES; r < rows; r += rows / LANES) {
        const size_t from = first + r < call.count ? first + r : call.count - 1;
        for (size_t i = lane; i < call.row_width; i += LANES)
            shared[i * pitch + r] = call.rows[from * call.row_stride + i];
    }
    __syncthreads();
    staged_row row;
    row.values = shared + threadIdx.x;
    row.pitch = pitch;
    const size_t own = first + threadIdx.x;
    const float sum = add_all(call.trees, row);
    if (own < call.count)
        call.scores[own] = call.bad[own] ? __int_as_float(0x7fffffff) : sum;
}

extern "C" __global__ void __launch_bounds__(MAX_ROWS, 8) foreloop_trees_plain(foreloop_cuda_trees_call call) {
    const size_t own = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (own >= call.count)
        return;
    plain_row row;
    row.values = call.rows + own * call.row_stride;
    const float sum = add_all(call.trees, row);
    call.scores[own] = call.bad[own] ? __int_as_float(0x7fffffff) : sum;
}

cudaError_t foreloop_cuda_add_trees(const foreloop_cuda_trees_call *call, size_t block_shared_bytes,
                                    cudaStream_t stream) {
    const size_t row_bytes = call->row_width * sizeof(float);
    uint32_t rows = MAX_ROWS;
    if (call->count == 0)
        return cudaSuccess;
    while (rows >= LANES && pitch_of(rows) * row_bytes > block_shared_bytes)
        rows /= 2;
    if (rows >= LANES) {
        FORELOOP_ALLOW_SHARED(foreloop_trees_staged, block_shared_bytes);
        FORELOOP_LAUNCH(foreloop_trees_staged, (unsigned)((call->count + rows - 1) / rows), rows,
                        pitch_of(rows) * row_bytes, stream, *call);
    } else {
        FORELOOP_LAUNCH(foreloop_trees_plain, (unsigned)((call->count + MAX_ROWS - 1) / MAX_ROWS), (unsigned)MAX_ROWS,
                        0, stream, *call);
    }
    return cudaGetLastError();
}
