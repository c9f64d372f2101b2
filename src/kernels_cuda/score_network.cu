/*
 * The score network, a launch for each layer: a product of matrices whose sums run over the inputs in order.
 *
 * A block has 64 rows and 64 outputs of a hidden layer; a thread keeps 8 rows x 4 outputs in registers. The inputs pass
 * through shared memory 32 at a time, turned so that four rows are one vector. Weights are read where they lie: those
 * of four outputs are one vector, which 8 lanes share, and a layer's (40 KB for 158 x 64) stay in the cache of the
 * first level. So an input costs a thread three vectors of four for 32 multiply-adds, as much as the two pipelines bear
 * beside each other. Near the limit of: multiply-adds. What layers pass on lies output by output, so that neighbouring
 * lanes write and read neighbouring rows; 64 outputs of 16,384 rows are 4 MB and stay in the cache of the second level.
 */
#include "kernels_cuda/device_code.cuh"
#include "kernels_cuda/score_network.h"

enum {
    LANES = 32,
    THREADS = 128,
    ROWS = FORELOOP_CUDA_NETWORK_ROWS,
    OUTPUTS = 64,
    DEPTH = 32, /* inputs in shared memory */
    /* Of the rows of an input there: a multiple of four, by which neighbouring inputs begin four banks apart. */
    PITCH = ROWS + 4,
    ROWS_EACH = 8, /* of a thread: four, and four more from row 32 on */
    OUTPUTS_EACH = 4
};

/* What a layer reads: the features of rows, which are standardised on the way, or what the layer before has left. */
struct row_features {
    const float *rows;
    uint32_t row_stride, count;
    const uint32_t *inputs;
    const float *shift, *scale;
    float limit;

    __device__ float standardised(float x, float input_shift, float input_scale) const {
        const float moved = __fmul_rn(__fsub_rn(x, input_shift), input_scale);
        const float above = moved > -limit ? moved : -limit;
        return above < limit ? above : limit;
    }
    __device__ float operator()(uint32_t input, uint32_t row) const {
        return standardised(__ldg(rows + (size_t)row * row_stride + __ldg(inputs + input)), __ldg(shift + input),
                            __ldg(scale + input));
    }
    /* A thread has one input; a warp's loads are eight neighbours in each of four rows, and fill 32 banks. What stands
     * for rows behind the last one is not used. */
    __device__ void stage(FORELOOP_SHARED_POINTER(float) tile, uint32_t first, uint32_t depth,
                          uint32_t first_row) const {
        const uint32_t line = threadIdx.x / LANES * 8 + threadIdx.x % 8, row = threadIdx.x % LANES / 8;
        if (line >= depth)
            return;
        const float *from = rows + __ldg(inputs + first + line);
        const float input_shift = __ldg(shift + first + line), input_scale = __ldg(scale + first + line);
        float x[ROWS / 4];
        FORELOOP_UNROLL(16)
        for (uint32_t i = 0; i < ROWS / 4; i++)
            x[i] = __ldg(from + (size_t)min(first_row + row + i * 4, count - 1) * row_stride);
        FORELOOP_UNROLL(16)
        for (uint32_t i = 0; i < ROWS / 4; i++)
            tile[line * PITCH + row + i * 4] = standardised(x[i], input_shift, input_scale);
    }
};
struct hidden_outputs {
    const float *columns; /* [outputs][pitch], whole blocks of rows */
    size_t pitch;

    __device__ float operator()(uint32_t input, uint32_t row) const {
        return __ldg(columns + input * pitch + row);
    }
    __device__ void stage(FORELOOP_SHARED_POINTER(float) tile, uint32_t first, uint32_t depth,
                          uint32_t first_row) const {
        const uint32_t row = threadIdx.x % ROWS;
        FORELOOP_UNROLL(16)
        for (uint32_t line = threadIdx.x / ROWS; line < DEPTH; line += THREADS / ROWS)
            if (line < depth)
                tile[line * PITCH + row] = (*this)(first + line, first_row + row);
    }
};
static_assert(THREADS / LANES * 8 == DEPTH && LANES / 8 == 4, "the threads of a block have an input each, or two rows");

template <class Source> struct layer_call {
    foreloop_mlp_layer layer;
    Source source;
    float *result; /* [layer.out][pitch]; or of the last layer the scores, which it adds to */
    size_t pitch;
    uint32_t count;
};

template <class Source>
static __device__ void hidden_layer(const layer_call<Source> &call, FORELOOP_SHARED_POINTER(float) tile) {
    const foreloop_mlp_layer &layer = call.layer;
    const uint32_t inputs = (uint32_t)layer.in, first_row = blockIdx.x * ROWS, row = threadIdx.x % 8 * 4;
    const uint32_t output = blockIdx.y * OUTPUTS + threadIdx.x / 8 * OUTPUTS_EACH;
    const bool needed = output < layer.out;
    float sums[OUTPUTS_EACH][ROWS_EACH];
    const float4 bias = needed ? __ldg(reinterpret_cast<const float4 *>(layer.bias + output)) : float4();
    const float biases[OUTPUTS_EACH] = {bias.x, bias.y, bias.z, bias.w};
    FORELOOP_UNROLL(4)
    for (unsigned o = 0; o < OUTPUTS_EACH; o++)
        FORELOOP_UNROLL(8)
    for (unsigned r = 0; r < ROWS_EACH; r++)
        sums[o][r] = biases[o];
    for (uint32_t first = 0; first < inputs; first += DEPTH) {
        const uint32_t depth = min(inputs - first, (uint32_t)DEPTH);
        __syncthreads(); /* all have read what lies there */
        call.source.stage(tile, first, depth, first_row);
        __syncthreads();
        if (!needed)
            continue;
        const float *weight = layer.weight + (size_t)first * layer.stride + output;
        FORELOOP_UNROLL(8)
        for (uint32_t line = 0; line < depth; line++) {
            const float4 four = __ldg(reinterpret_cast<const float4 *>(weight + line * layer.stride));
            const float4 low = shared_four(tile, line * PITCH + row);
            const float4 high = shared_four(tile, line * PITCH + row + ROWS / 2);
            const float w[OUTPUTS_EACH] = {four.x, four.y, four.z, four.w};
            const float x[ROWS_EACH] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
            FORELOOP_UNROLL(4)
            for (unsigned o = 0; o < OUTPUTS_EACH; o++)
                FORELOOP_UNROLL(8)
            for (unsigned r = 0; r < ROWS_EACH; r++)
                sums[o][r] = __fmaf_rn(w[o], x[r], sums[o][r]);
        }
    }
    FORELOOP_UNROLL(4)
    for (unsigned o = 0; o < OUTPUTS_EACH; o++) {
        if (output + o >= layer.out)
            break;
        float y[ROWS_EACH];
        FORELOOP_UNROLL(8)
        for (unsigned r = 0; r < ROWS_EACH; r++)
            y[r] = sums[o][r] > 0.0f ? sums[o][r] : 0.0f;
        float4 *result = reinterpret_cast<float4 *>(call.result + (output + o) * call.pitch + first_row + row);
        result[0] = make_float4(y[0], y[1], y[2], y[3]);
        result[ROWS / 2 / 4] = make_float4(y[4], y[5], y[6], y[7]);
    }
}

/* The last layer: one output, a row for each thread. */
template <class Source> static __device__ void last_layer(const layer_call<Source> &call) {
    const uint32_t row = blockIdx.x * THREADS + threadIdx.x;
    if (row >= call.count)
        return;
    float sum = __ldg(call.layer.bias);
    FORELOOP_UNROLL(8)
    for (uint32_t i = 0; i < (uint32_t)call.layer.in; i++)
        sum = __fmaf_rn(__ldg(call.layer.weight + i * call.layer.stride), call.source(i, row), sum);
    call.result[row] = __fadd_rn(call.result[row], sum);
}

extern "C" __global__ void __launch_bounds__(THREADS) foreloop_network_first_layer(layer_call<row_features> call) {
    alignas(16) FORELOOP_SHARED(float) tile[DEPTH * PITCH];
    hidden_layer(call, tile);
}
extern "C" __global__ void __launch_bounds__(THREADS) foreloop_network_hidden_layer(layer_call<hidden_outputs> call) {
    alignas(16) FORELOOP_SHARED(float) tile[DEPTH * PITCH];
    hidden_layer(call, tile);
}
extern "C" __global__ void __launch_bounds__(THREADS) foreloop_network_only_layer(layer_call<row_features> call) {
    last_layer(call);
}
extern "C" __global__ void __launch_bounds__(THREADS) foreloop_network_last_layer(layer_call<hidden_outputs> call) {
    last_layer(call);
}

static dim3 hidden_blocks(const foreloop_mlp_layer &layer, size_t pitch) {
    return dim3((unsigned)(pitch / ROWS), (unsigned)((layer.out + OUTPUTS - 1) / OUTPUTS));
}

cudaError_t foreloop_cuda_add_network(const foreloop_cuda_network_call *call, cudaStream_t stream) {
    const foreloop_cuda_network &network = call->network;
    const size_t pitch = foreloop_cuda_network_pitch(call->count), last = network.layer_count - 1;
    const uint32_t count = (uint32_t)call->count, row_blocks = (count + THREADS - 1) / THREADS;
    const row_features features = {
        call->rows, (uint32_t)call->row_stride, count, call->inputs, network.shift, network.scale, network.limit};
    if (call->count == 0)
        return cudaSuccess;
    if (last == 0) {
        const layer_call<row_features> only = {network.layers[0], features, call->scores, pitch, count};
        FORELOOP_LAUNCH(foreloop_network_only_layer, row_blocks, (unsigned)THREADS, 0, stream, only);
        return cudaGetLastError();
    }
    const layer_call<row_features> first = {network.layers[0], features, call->hidden[0], pitch, count};
    FORELOOP_LAUNCH(foreloop_network_first_layer, hidden_blocks(network.layers[0], pitch), (unsigned)THREADS, 0, stream,
                    first);
    for (size_t i = 1; i <= last; i++) {
        const hidden_outputs before = {call->hidden[(i - 1) % 2], pitch};
        const layer_call<hidden_outputs> next = {network.layers[i], before,
                                                 i < last ? call->hidden[i % 2] : call->scores, pitch, count};
        if (i < last)
            FORELOOP_LAUNCH(foreloop_network_hidden_layer, hidden_blocks(network.layers[i], pitch), (unsigned)THREADS,
                            0, stream, next);
        else
            FORELOOP_LAUNCH(foreloop_network_last_layer, row_blocks, (unsigned)THREADS, 0, stream, next);
    }
    return cudaGetLastError();
}
