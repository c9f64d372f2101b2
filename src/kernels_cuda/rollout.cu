/* Rollouts: a warp takes one candidate through its steps, a lane for each kind, and then forms z slice by slice, a lane
 * for each element, so that the loads of a slice's actions depend on nothing but their ids and overlap. */
#include "kernels_cuda/device_code.cuh"
#include "kernels_cuda/rollout.h"

enum { LANES = 32, WARPS = 8, UPDATE = FORELOOP_TRANSH_LANES };

/* A warp's part of the shared memory, in floats. */
struct warp_state {
    FORELOOP_SHARED_POINTER(float) z;          /* [latent] */
    FORELOOP_SHARED_POINTER(float) aggregates; /* [aggregates], behind z: the row's sources */
    FORELOOP_SHARED_POINTER(float) p;          /* [kinds] */
    FORELOOP_SHARED_POINTER(float) gamma;      /* [kinds] */
    FORELOOP_SHARED_POINTER(float) seen;       /* [kinds]: 1 for those that occurred */
};

static inline __host__ __device__ size_t state_floats(const foreloop_transh_program &program) {
    return program.latent + program.aggregates + 3 * program.kinds;
}

/* Whether the candidate may be rolled out; the same answer in all lanes. */
static __device__ bool check(const foreloop_cuda_rollout &call, size_t begin, size_t end, unsigned lane) {
    if (begin < call.id_base || end < begin || end - call.id_base > call.id_count || end - begin > call.longest)
        return false;
    bool good = true;
    for (size_t t = begin + lane; t < end; t += LANES)
        good &= call.ids[t - call.id_base] < call.action_count;
    return __all_sync(FORELOOP_WARP, good) != 0;
}

static __device__ void spoil(const foreloop_cuda_rollout &call, size_t candidate, unsigned lane) {
    for (size_t i = lane; i < call.source_count; i += LANES)
        call.rows[candidate * call.row_stride + i] = __int_as_float(0x7fffffff);
    if (lane == 0) {
        call.bad[candidate] = 1;
        atomicMin(call.first_bad, (unsigned long long)(call.index_base + candidate));
    }
}

/* What the action does to the aggregates: foreloop_transh_update, a lane for each of its lanes. */
static __device__ void update(const foreloop_transh_program &program, uint32_t kind, unsigned seen, const float *values,
                              FORELOOP_SHARED_POINTER(float) aggregates, unsigned lane) {
    const uint32_t begin = program.update_begin[kind], count = (program.update_end[kind] - begin) * UPDATE;
    for (uint32_t i = lane; i < count; i += LANES) {
        const foreloop_transh_update *how = &program.updates[begin + i / UPDATE];
        const unsigned bit = 1u << i % UPDATE;
        const float value = values[i];
        const size_t at = how->vector * UPDATE + i % UPDATE;
        if (how->take[seen] & bit) {
            aggregates[at] = value;
        } else if ((how->add | how->max | how->min) & bit) {
            const float old = aggregates[at];
            const bool replaced = how->max & bit ? value > old : value < old;
            aggregates[at] = how->add & bit ? __fadd_rn(old, value) : replaced ? value : old;
        }
    }
}

/* All steps but the sums; the number of actions of known kind. */
static __device__ uint32_t take_steps(const foreloop_cuda_rollout &call, const uint32_t *ids, uint32_t count,
                                      const warp_state &state, unsigned lane) {
    const foreloop_transh_program &program = call.program;
    uint32_t known = 0;
    for (size_t i = lane; i < program.kinds; i += LANES) {
        state.p[i] = call.start[i];
        state.gamma[i] = 0.0f;
        state.seen[i] = 0.0f;
    }
    for (size_t i = lane; i < program.aggregates; i += LANES)
        state.aggregates[i] = 0.0f;
    __syncwarp();
    for (uint32_t first = 0; first < count; first += LANES) {
        const uint32_t own_id = first + lane < count ? ids[first + lane] : FORELOOP_ACTION_UNKNOWN;
        const uint32_t own_kind = program.row_kinds[own_id];
        const uint32_t end = min(count - first, (uint32_t)LANES);
        for (uint32_t t = 0; t < end; t++) {
            const uint32_t id = __shfl_sync(FORELOOP_WARP, own_id, (int)t);
            const uint32_t kind = __shfl_sync(FORELOOP_WARP, own_kind, (int)t);
            if (id == FORELOOP_ACTION_UNKNOWN)
                continue;
            const float *row = program.rows + (size_t)id * program.row_stride;
            const float *gram = program.gram + (size_t)kind * program.kinds;
            const float c = state.p[kind];
            const unsigned seen = state.seen[kind] != 0.0f;
            __syncwarp(); /* all lanes have read what one of them changes */
            for (size_t i = lane; i < program.kinds; i += LANES)
                state.p[i] = __fmaf_rn(-c, gram[i], __fadd_rn(state.p[i], row[i]));
            if (lane == 0) {
                state.gamma[kind] = __fadd_rn(state.gamma[kind], c);
                state.seen[kind] = 1.0f;
            }
            update(program, kind, seen, row + program.kinds, state.aggregates, lane);
            known++;
            __syncwarp();
        }
    }
    return known;
}

/* z: the sum of z0 and the embeddings in order, less the kinds' parts in order. */
static __device__ void form_latent(const foreloop_cuda_rollout &call, const uint32_t *ids, uint32_t count,
                                   const warp_state &state, unsigned lane) {
    const foreloop_transh_program &program = call.program;
    for (size_t first = 0; first < program.latent; first += FORELOOP_TRANSH_SLICE) {
        const size_t i = first + lane;
        const bool there = i < program.latent;
        const float *embeddings = call.embeddings + first / FORELOOP_TRANSH_SLICE * call.slice_stride + lane;
        float z = there ? call.start[program.kinds + i] : 0.0f;
        FORELOOP_UNROLL(4)
        for (uint32_t t = 0; t < count; t++)
            z = __fadd_rn(z, embeddings[(size_t)ids[t] * FORELOOP_TRANSH_SLICE]);
        for (size_t kinds = 0; kinds < program.kinds; kinds += LANES) {
            const bool occurs = kinds + lane < program.kinds && state.seen[kinds + lane] != 0.0f;
            for (unsigned left = __ballot_sync(FORELOOP_WARP, occurs); left; left &= left - 1) {
                const size_t kind = kinds + (size_t)(__ffs((int)left) - 1);
                if (there)
                    z = __fmaf_rn(-state.gamma[kind], program.normal[kind * program.normal_stride + i], z);
            }
        }
        if (there)
            state.z[i] = z;
    }
    __syncwarp();
}

static __device__ void write_row(const foreloop_cuda_rollout &call, size_t candidate, uint32_t known,
                                 const warp_state &state, unsigned lane) {
    float *row = call.rows + candidate * call.row_stride;
    for (size_t i = lane; i < call.source_count; i += LANES) {
        const uint32_t source = call.sources[i];
        if (source == FORELOOP_CUDA_SOURCE_LENGTH)
            row[i] = (float)known;
        else if (source & FORELOOP_CUDA_SOURCE_CONSTANT)
            row[i] = call.constants[source & ~FORELOOP_CUDA_SOURCE_CONSTANT];
        else
            row[i] = state.z[source];
    }
    if (lane == 0)
        call.bad[candidate] = 0;
}

extern "C" __global__ void __launch_bounds__(WARPS *LANES) foreloop_roll_out(foreloop_cuda_rollout call) {
    FORELOOP_DYNAMIC_SHARED(float, shared);
    const foreloop_transh_program &program = call.program;
    const unsigned warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const size_t candidate = (size_t)blockIdx.x * (blockDim.x / LANES) + warp;
    if (candidate >= call.count)
        return; /* the whole warp; no barrier of the block follows */
    warp_state state;
    state.z = shared + warp * state_floats(program);
    state.aggregates = state.z + program.latent;
    state.p = state.aggregates + program.aggregates;
    state.gamma = state.p + program.kinds;
    state.seen = state.gamma + program.kinds;
    const size_t begin = call.offsets[candidate], end = call.offsets[candidate + 1];
    if (!check(call, begin, end, lane)) {
        spoil(call, candidate, lane);
        return;
    }
    const uint32_t *ids = call.ids + (begin - call.id_base), count = (uint32_t)(end - begin);
    const uint32_t known = take_steps(call, ids, count, state, lane);
    form_latent(call, ids, count, state, lane);
    write_row(call, candidate, known, state, lane);
}

size_t foreloop_cuda_rollout_shared_bytes(const foreloop_transh_program *program) {
    return state_floats(*program) * sizeof(float);
}

cudaError_t foreloop_cuda_roll_out(const foreloop_cuda_rollout *rollout, size_t block_shared_bytes,
                                   cudaStream_t stream) {
    const size_t own = foreloop_cuda_rollout_shared_bytes(&rollout->program);
    size_t warps = WARPS;
    while (warps > 1 && warps * own > block_shared_bytes)
        warps /= 2;
    if (rollout->count == 0)
        return cudaSuccess;
    FORELOOP_ALLOW_SHARED(foreloop_roll_out, block_shared_bytes);
    FORELOOP_LAUNCH(foreloop_roll_out, (unsigned)((rollout->count + warps - 1) / warps), (unsigned)(warps * LANES),
                    warps * own, stream, *rollout);
    return cudaGetLastError();
}
