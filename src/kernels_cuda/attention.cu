/*
 * Multi-head self-attention, tile by tile: a block has 64 queries of one head of one sequence and goes over the
 * sequence's keys, 64 at a time, with a running maximum and a running sum of the exponentials, so that no matrix of all
 * scores exists. All arithmetic is float32, whatever the element of the matrices.
 *
 * The two products of a tile are outer products from shared memory: a thread has 8 queries x 4 keys of the scores, and
 * 8 queries x 4 (or, with heads of up to 32, 2) columns of the context, in registers. For each of the 64 terms of a sum
 * it reads three vectors of four and does 32 multiply-adds, which keeps shared memory and the multiply-adds about
 * equally busy. Queries, keys and scores lie transposed, with the groups of four in a row exchanged (`swizzled`), so
 * that neither the transposing writes nor the reads meet in a bank. Heads wider than 64 have a block for each 64
 * columns of the context, and each of those forms the scores again. Near the limit of: multiply-adds.
 */
#include "kernels_cuda/device_code.cuh"
#include "kernels_cuda/element.cuh"
#include "kernels_cuda/encoder_kernels.h"

enum {
    TILE = FORELOOP_CUDA_QUERIES, /* queries, keys, and the most columns of a head at once */
    ATTENTION_THREADS = 128,
    QUERIES_EACH = 8, /* of a thread; 16 threads side by side have the same */
    KEYS_EACH = 4
};

/* Where number `row` of line `line` lies in a transposed tile whose groups of four are exchanged by `key`. */
static __device__ __forceinline__ unsigned swizzled(unsigned line, unsigned key, unsigned row) {
    return line * TILE + (row ^ (key % 8 * 4));
}

/* Rows of a matrix, `columns` numbers of each, and what is added to every row. */
typedef struct attention_rows {
    const void *values;
    const float *bias;
    foreloop_cuda_element element;
    size_t stride;
    unsigned rows, columns;
} attention_rows;

/* (row + bias) x scale of up to 64 rows and `width` columns, transposed; zeros outside. A warp takes four rows and
 * eight columns at once: whole sectors of memory, and 32 different banks. */
static __device__ __forceinline__ void load_transposed(FORELOOP_SHARED_POINTER(float) tile, const attention_rows *from,
                                                       float scale, unsigned width) {
    const unsigned row_in_four = threadIdx.x % 4, column_in_eight = threadIdx.x / 4 % 8, warp = threadIdx.x / 32;
    for (unsigned column = column_in_eight; column < width; column += 8) {
        const float bias = column < from->columns ? from->bias[column] : 0.0f;
        FORELOOP_UNROLL(8)
        for (unsigned i = 0; i < TILE / 16; i++) {
            const unsigned row = i * 16 + warp * 4 + row_in_four;
            const bool inside = row < from->rows && column < from->columns;
            tile[swizzled(column, column, row)] =
                inside ? (load_element(from->values, row * from->stride + column, from->element) + bias) * scale : 0.0f;
        }
    }
}

/* The same as it lies, in lines of `width`. */
static __device__ __forceinline__ void load_plain(FORELOOP_SHARED_POINTER(float) tile, const attention_rows *from,
                                                  const unsigned width) {
    const unsigned column = threadIdx.x % width;
    const float bias = column < from->columns ? from->bias[column] : 0.0f;
    FORELOOP_UNROLL(8)
    for (unsigned row = threadIdx.x / width; row < TILE; row += ATTENTION_THREADS / width) {
        const bool inside = row < from->rows && column < from->columns;
        tile[row * width + column] =
            inside ? load_element(from->values, row * from->stride + column, from->element) + bias : 0.0f;
    }
}

static __device__ __forceinline__ float half_warp_max(float value) {
    FORELOOP_UNROLL(8)
    for (int half = 8; half > 0; half /= 2)
        value = fmaxf(value, __shfl_xor_sync(FORELOOP_WARP, value, half));
    return value;
}

static __device__ __forceinline__ float half_warp_sum(float value) {
    FORELOOP_UNROLL(8)
    for (int half = 8; half > 0; half /= 2)
        value += __shfl_xor_sync(FORELOOP_WARP, value, half);
    return value;
}

/* scores[query][key] += sum over `depth` lines of queries x keys; depth is a multiple of 8. */
static __device__ __forceinline__ void add_scores(float scores[QUERIES_EACH][KEYS_EACH],
                                                  FORELOOP_SHARED_POINTER(float) queries,
                                                  FORELOOP_SHARED_POINTER(float) keys, unsigned depth) {
    const unsigned query = threadIdx.x / 16 * QUERIES_EACH, key = threadIdx.x % 16 * KEYS_EACH;
    for (unsigned line = 0; line < depth; line += 8) {
        FORELOOP_UNROLL(8)
        for (unsigned i = 0; i < 8; i++) {
            const float4 low = shared_four(queries, swizzled(line + i, i, query));
            const float4 high = shared_four(queries, swizzled(line + i, i, query + 4));
            const float4 four = shared_four(keys, swizzled(line + i, i, key));
            const float q[QUERIES_EACH] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
            const float k[KEYS_EACH] = {four.x, four.y, four.z, four.w};
            FORELOOP_UNROLL(8)
            for (int a = 0; a < QUERIES_EACH; a++)
                FORELOOP_UNROLL(8)
            for (int b = 0; b < KEYS_EACH; b++)
                scores[a][b] = __fmaf_rn(q[a], k[b], scores[a][b]);
        }
    }
}

/* context[query][column] += sum over the tile's keys of weights x values. */
static __device__ __forceinline__ void add_context(float context[QUERIES_EACH][KEYS_EACH],
                                                   FORELOOP_SHARED_POINTER(float) weights,
                                                   FORELOOP_SHARED_POINTER(float) values, unsigned keys,
                                                   const unsigned width) {
    const unsigned query = threadIdx.x / 16 * QUERIES_EACH, each = width / 16, column = threadIdx.x % 16 * each;
    for (unsigned line = 0; line < keys; line += 4) {
        FORELOOP_UNROLL(8)
        for (unsigned i = 0; i < 4; i++) {
            const float4 low = shared_four(weights, swizzled(line + i, line / 4, query));
            const float4 high = shared_four(weights, swizzled(line + i, line / 4, query + 4));
            const float p[QUERIES_EACH] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
            float v[KEYS_EACH];
            if (each == 4) {
                const float4 four = shared_four(values, (line + i) * width + column);
                v[0] = four.x, v[1] = four.y, v[2] = four.z, v[3] = four.w;
            } else {
                v[0] = values[(line + i) * width + column];
                v[1] = values[(line + i) * width + column + 1];
            }
            FORELOOP_UNROLL(8)
            for (int a = 0; a < QUERIES_EACH; a++)
                FORELOOP_UNROLL(8)
            for (unsigned b = 0; b < each; b++)
                context[a][b] = __fmaf_rn(p[a], v[b], context[a][b]);
        }
    }
}

/* Of a thread's queries: the largest score so far, and its own keys' part of the sum of exponentials. */
typedef struct softmax_run {
    float largest[QUERIES_EACH], sum[QUERIES_EACH];
} softmax_run;

/* Scores (times log2 e) of `keys` keys become exponentials; what was summed up before is brought to the new maximum. */
static __device__ __forceinline__ void exponentiate(float scores[QUERIES_EACH][KEYS_EACH], softmax_run *run,
                                                    float context[QUERIES_EACH][KEYS_EACH], unsigned keys,
                                                    const unsigned each) {
    const unsigned key = threadIdx.x % 16 * KEYS_EACH;
    FORELOOP_UNROLL(8)
    for (int a = 0; a < QUERIES_EACH; a++) {
        float largest = run->largest[a], sum = 0.0f;
        FORELOOP_UNROLL(8)
        for (int b = 0; b < KEYS_EACH; b++) {
            if (key + b >= keys)
                scores[a][b] = -INFINITY;
            largest = fmaxf(largest, scores[a][b]);
        }
        largest = half_warp_max(largest);
        const float earlier = exp2f(run->largest[a] - largest);
        FORELOOP_UNROLL(8)
        for (int b = 0; b < KEYS_EACH; b++) {
            scores[a][b] = exp2f(scores[a][b] - largest);
            sum += scores[a][b];
        }
        run->largest[a] = largest;
        run->sum[a] = __fmaf_rn(run->sum[a], earlier, sum);
        FORELOOP_UNROLL(8)
        for (unsigned b = 0; b < each; b++)
            context[a][b] *= earlier;
    }
}

/* A block's work. `width`: 32, for heads of up to so many columns, or 64. */
static __device__ __forceinline__ void attend(const foreloop_cuda_attention_call *call,
                                              FORELOOP_SHARED_POINTER(float) shared, const unsigned width) {
    FORELOOP_SHARED_POINTER(float) queries = shared;               /* [width][TILE] */
    FORELOOP_SHARED_POINTER(float) keys = queries + width * TILE;  /* [width][TILE] */
    FORELOOP_SHARED_POINTER(float) weights = keys;                 /* [TILE][TILE], in their place */
    FORELOOP_SHARED_POINTER(float) values = weights + TILE * TILE; /* [TILE][width] */
    const foreloop_cuda_attention_tile tile = call->tiles[blockIdx.x];
    const unsigned head_width = call->head_width, hidden = call->heads * head_width, head = blockIdx.y * head_width;
    const unsigned first_column = blockIdx.z * width, parts = (head_width + width - 1) / width;
    const size_t element_size = call->element == FORELOOP_CUDA_ELEMENT_F32 ? 4 : 2;
    const char *rows = (const char *)call->query_key_value + tile.first * call->stride * element_size;
    const unsigned left = tile.count - tile.query, query_count = left < TILE ? left : (unsigned)TILE;
    const unsigned each = width / 16;
    const float scale = 1.4426950408889634f / sqrtf((float)head_width);
    float context[QUERIES_EACH][KEYS_EACH] = {{0.0f}};
    softmax_run run;
    FORELOOP_UNROLL(8)
    for (int a = 0; a < QUERIES_EACH; a++) {
        run.largest[a] = -INFINITY;
        run.sum[a] = 0.0f;
    }
    for (unsigned key = 0; key < tile.count; key += TILE) {
        const unsigned key_count = tile.count - key < TILE ? tile.count - key : (unsigned)TILE;
        float scores[QUERIES_EACH][KEYS_EACH] = {{0.0f}};
        for (unsigned part = 0; part < parts; part++) {
            const unsigned begin = head + part * width, columns = head_width - part * width;
            const unsigned depth = columns < width ? (columns + 7) / 8 * 8 : width;
            const attention_rows query_rows = {rows + (tile.query * call->stride + begin) * element_size,
                                               call->bias + begin,
                                               call->element,
                                               call->stride,
                                               query_count,
                                               columns};
            const attention_rows key_rows = {rows + (key * call->stride + hidden + begin) * element_size,
                                             call->bias + hidden + begin,
                                             call->element,
                                             call->stride,
                                             key_count,
                                             columns};
            if (key == 0 || parts > 1)
                load_transposed(queries, &query_rows, scale, depth);
            load_transposed(keys, &key_rows, 1.0f, depth);
            if (part == 0) {
                const unsigned value_begin = 2 * hidden + head + first_column;
                const attention_rows value_rows = {rows + (key * call->stride + value_begin) * element_size,
                                                   call->bias + value_begin,
                                                   call->element,
                                                   call->stride,
                                                   key_count,
                                                   head_width - first_column};
                load_plain(values, &value_rows, width);
            }
            __syncthreads();
            add_scores(scores, queries, keys, depth);
            __syncthreads();
        }
        exponentiate(scores, &run, context, key_count, each);
        /* A query's weights are written and read by the same half of a warp. */
        FORELOOP_UNROLL(8)
        for (int b = 0; b < KEYS_EACH; b++)
            FORELOOP_UNROLL(8)
        for (int a = 0; a < QUERIES_EACH; a++)
            weights[swizzled(threadIdx.x % 16 * KEYS_EACH + b, threadIdx.x % 16, threadIdx.x / 16 * QUERIES_EACH + a)] =
                scores[a][b];
        __syncwarp();
        add_context(context, weights, values, (key_count + 3) / 4 * 4, width);
        __syncthreads();
    }
    FORELOOP_UNROLL(8)
    for (int a = 0; a < QUERIES_EACH; a++) {
        const float sum = half_warp_sum(run.sum[a]);
        const unsigned query = threadIdx.x / 16 * QUERIES_EACH + a;
        if (query >= query_count)
            continue;
        const size_t place = (tile.first + tile.query + query) * call->context_stride + head;
        FORELOOP_UNROLL(8)
        for (unsigned b = 0; b < each; b++) {
            const unsigned column = first_column + threadIdx.x % 16 * each + b;
            if (column < head_width)
                store_element(call->context, place + column, call->element, context[a][b] / sum);
        }
    }
}

extern "C" __global__ void __launch_bounds__(ATTENTION_THREADS, 3)
    foreloop_cuda_attention_32_kernel(foreloop_cuda_attention_call call) {
    FORELOOP_DYNAMIC_SHARED(float, shared);
    attend(&call, shared, 32);
}

extern "C" __global__ void __launch_bounds__(ATTENTION_THREADS, 3)
    foreloop_cuda_attention_64_kernel(foreloop_cuda_attention_call call) {
    FORELOOP_DYNAMIC_SHARED(float, shared);
    attend(&call, shared, 64);
}

cudaError_t foreloop_cuda_attention(const foreloop_cuda_attention_call *call, cudaStream_t stream) {
    const unsigned width = call->head_width <= 32 ? 32 : 64;
    const dim3 blocks(call->tile_count, call->heads, (call->head_width + width - 1) / width);
    const size_t shared_size = (2 * width * TILE + TILE * TILE) * sizeof(float); /* 48 KiB at the most */
    if (width == 32)
        FORELOOP_LAUNCH(foreloop_cuda_attention_32_kernel, blocks, ATTENTION_THREADS, shared_size, stream, *call);
    else
        FORELOOP_LAUNCH(foreloop_cuda_attention_64_kernel, blocks, ATTENTION_THREADS, shared_size, stream, *call);
    return cudaGetLastError();
}
