/* The emulation itself: good kernels run in every order, and each kind of fault is found in every order. */
#include "emulation.h"

#include "kernels_cuda/device_code.cuh"

#include "tap.h"
#include <initializer_list>

/* Turns a row of 256 around, by shared memory. */
__global__ void turn(const float *in, float *out, bool synchronise) {
    FORELOOP_SHARED(float) tile[256];
    tile[threadIdx.x] = in[threadIdx.x];
    if (synchronise)
        __syncthreads();
    out[threadIdx.x] = tile[255 - threadIdx.x];
}

/* The same within each warp. */
__global__ void turn_warps(const float *in, float *out, bool synchronise) {
    FORELOOP_SHARED(float) tile[256];
    tile[threadIdx.x] = in[threadIdx.x];
    if (synchronise)
        __syncwarp();
    out[threadIdx.x] = tile[threadIdx.x ^ 31];
}

/* One buffer twice: the second barrier keeps the writers of the second round behind the readers of the first. */
__global__ void reuse(float *out, bool synchronise) {
    FORELOOP_SHARED(float) tile[64];
    float sum = 0;
    for (int round = 0; round < 2; round++) {
        tile[threadIdx.x] = (float)(round * 100 + (int)threadIdx.x);
        __syncthreads();
        sum += tile[(threadIdx.x + 40) % 64];
        if (synchronise)
            __syncthreads();
    }
    out[threadIdx.x] = sum;
}

/* A barrier that half the block does not come to. */
__global__ void diverge(float *out) {
    if (threadIdx.x < 32)
        __syncthreads();
    out[threadIdx.x] = 1;
}

/* A shuffle that some lanes do not come to. */
__global__ void diverge_in_warp(int *out) {
    if (threadIdx.x % 32 < 16)
        out[threadIdx.x] = __shfl_xor_sync(FORELOOP_WARP, (int)threadIdx.x, 1);
}

__global__ void read_unwritten(float *out) {
    FORELOOP_SHARED(float) tile[32];
    if (threadIdx.x > 0)
        tile[threadIdx.x] = 1;
    out[threadIdx.x] = tile[threadIdx.x];
}

__global__ void count_shared(unsigned *out, bool atomically) {
    FORELOOP_SHARED(unsigned) count;
    if (threadIdx.x == 0)
        count = 0;
    __syncthreads();
    if (atomically)
        atomicAdd(&count, 1u);
    else
        count += 1;
    __syncthreads();
    out[threadIdx.x] = count;
}

__global__ void warp_functions(int *sums, unsigned *votes, float *shifted) {
    const int lane = (int)threadIdx.x % 32;
    int sum = (int)threadIdx.x;
    for (int half = 16; half > 0; half /= 2)
        sum += __shfl_xor_sync(FORELOOP_WARP, sum, half);
    sums[threadIdx.x] = sum;
    votes[threadIdx.x] = __ballot_sync(FORELOOP_WARP, lane % 3 == 0);
    shifted[threadIdx.x] = __shfl_down_sync(FORELOOP_WARP, (float)lane, 2) +
                           100 * __shfl_up_sync(FORELOOP_WARP, (float)lane, 1) +
                           10000 * __shfl_sync(FORELOOP_WARP, (float)lane, 5);
}

__global__ void dynamic(float *out, unsigned count) {
    FORELOOP_DYNAMIC_SHARED(float, tile);
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x)
        tile[i] = (float)(blockIdx.x * 1000 + i);
    __syncthreads();
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x)
        out[blockIdx.x * count + i] = tile[count - 1 - i];
}

static const std::initializer_list<uint64_t> seeds = {0, 1, 2, 3, 77, 123456789};

static bool runs() {
    return cudaStreamSynchronize(nullptr) == cudaSuccess && emulation::take_fault()[0] == 0;
}

static bool fails(const char *words) {
    const bool failed = cudaStreamSynchronize(nullptr) == cudaErrorLaunchFailure;
    const char *fault = emulation::take_fault();
    const bool found = strstr(fault, words) != nullptr;
    if (!failed || !found)
        printf("# fault: \"%s\"\n", fault);
    return failed && found;
}

static void good_kernels() {
    static float in[256], out[256];
    static int sums[256];
    static unsigned votes[256];
    bool turned = true, in_warps = true, again = true, functions = true, atomics = true, blocks = true;
    for (int i = 0; i < 256; i++)
        in[i] = (float)i;
    for (uint64_t seed : seeds) {
        emulation::set_seed(seed);
        FORELOOP_LAUNCH(turn, 3, 256, 0, nullptr, in, out, true);
        turned &= runs();
        for (int i = 0; i < 256; i++)
            turned &= out[i] == (float)(255 - i);
        FORELOOP_LAUNCH(turn_warps, 1, 256, 0, nullptr, in, out, true);
        in_warps &= runs();
        for (int i = 0; i < 256; i++)
            in_warps &= out[i] == (float)(i ^ 31);
        FORELOOP_LAUNCH(reuse, 1, 64, 0, nullptr, out, true);
        again &= runs();
        for (int i = 0; i < 64; i++)
            again &= out[i] == (float)(100 + 2 * ((i + 40) % 64));
        FORELOOP_LAUNCH(warp_functions, 1, 64, 0, nullptr, sums, votes, out);
        functions &= runs();
        for (int i = 0; i < 64; i++) {
            const int lane = i % 32, up = lane < 1 ? 0 : lane - 1, down = lane > 29 ? lane : lane + 2;
            functions &= sums[i] == 496 + i / 32 * 1024 && votes[i] == 0x49249249u;
            functions &= out[i] == (float)(down + 100 * up + 50000);
        }
        FORELOOP_LAUNCH(count_shared, 1, 96, 0, nullptr, votes, true);
        atomics &= runs() && votes[0] == 96 && votes[95] == 96;
        FORELOOP_LAUNCH(dynamic, 2, 64, 100 * sizeof(float), nullptr, out, 100u);
        blocks &= runs() && out[0] == 99 && out[100] == 1099 && out[199] == 1000;
    }
    CHECK(turned, "shared memory and barriers, in every order");
    CHECK(in_warps, "barriers of warps");
    CHECK(again, "a buffer that is used again");
    CHECK(functions, "shuffles and votes");
    CHECK(atomics, "atomics on shared memory");
    CHECK(blocks, "dynamic shared memory, several blocks");
}

static void faults() {
    static float in[256], out[256];
    static int numbers[256];
    static unsigned counts[256];
    bool barrier = true, in_warp = true, again = true, diverged = true, lanes = true, unwritten = true, update = true;
    for (uint64_t seed : seeds) {
        emulation::set_seed(seed);
        FORELOOP_LAUNCH(turn, 1, 256, 0, nullptr, in, out, false);
        barrier &= fails("shared memory");
        FORELOOP_LAUNCH(turn_warps, 1, 256, 0, nullptr, in, out, false);
        in_warp &= fails("shared memory");
        FORELOOP_LAUNCH(reuse, 1, 64, 0, nullptr, out, false);
        again &= fails("without a barrier between");
        FORELOOP_LAUNCH(diverge, 1, 64, 0, nullptr, out);
        diverged &= fails("barrier");
        FORELOOP_LAUNCH(diverge_in_warp, 1, 64, 0, nullptr, numbers);
        lanes &= fails("warp");
        FORELOOP_LAUNCH(read_unwritten, 1, 32, 0, nullptr, out);
        unwritten &= fails("no thread has written");
        FORELOOP_LAUNCH(count_shared, 1, 96, 0, nullptr, counts, false);
        update &= fails("without a barrier between");
    }
    CHECK(barrier, "a missing barrier of the block is found, in every order");
    CHECK(in_warp, "a missing barrier of the warp");
    CHECK(again, "a missing barrier before a buffer is used again");
    CHECK(diverged, "a barrier that some threads do not come to");
    CHECK(lanes, "a shuffle that some lanes do not come to");
    CHECK(unwritten, "shared memory that nobody has written");
    CHECK(update, "an update that is not atomic");
    FORELOOP_LAUNCH(turn, 1, 40, 0, nullptr, in, out, true);
    CHECK(fails("a launch of"), "a block that is no whole number of warps");
    FORELOOP_LAUNCH(dynamic, 1, 64, 50 << 10, nullptr, out, 1u);
    CHECK(fails("dynamic shared memory"), "more dynamic shared memory than allowed");
}

/* Work runs when somebody waits: what is changed or read too early shows. */
static void streams() {
    static float pinned[4] = {1, 2, 3, 4}, pageable[4] = {5, 6, 7, 8}, result[4];
    void *device = nullptr;
    cudaMalloc(&device, sizeof pinned);
    cudaHostRegister(pinned, sizeof pinned, 0);
    cudaMemcpyAsync(device, pageable, sizeof pageable, cudaMemcpyHostToDevice, nullptr);
    pageable[0] = 50;
    cudaMemcpyAsync(result, device, sizeof result, cudaMemcpyDeviceToHost, nullptr);
    CHECK(result[0] == 5, "memory that is not registered is read before a call returns");
    cudaMemcpyAsync(device, pinned, sizeof pinned, cudaMemcpyHostToDevice, nullptr);
    pinned[0] = 10;
    cudaMemcpyAsync(result, device, sizeof result, cudaMemcpyDeviceToHost, nullptr);
    CHECK(result[0] == 10, "registered memory is read when the stream comes to it");
    cudaHostUnregister(pinned);
    cudaFree(device);
}

int main() {
    good_kernels();
    faults();
    streams();
    return tap_done();
}
