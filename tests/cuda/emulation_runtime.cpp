/* The emulation's CUDA runtime: one GPU, whose memory is the program's, and one queue for all streams, which runs when
 * somebody waits. */
#include "emulation_internal.h"
#include <deque>
#include <map>
#include <string>

struct CUevent_st {
    uint64_t ticket; /* of the work that was queued before it */
};

namespace {

std::deque<std::function<void()>> waiting;
uint64_t queued = 0, done = 0;
std::map<const unsigned char *, size_t> registered;

void push(std::function<void()> work) {
    waiting.push_back(std::move(work));
    queued++;
}

cudaError_t run_until(uint64_t ticket) {
    while (done < ticket) {
        std::function<void()> work = std::move(waiting.front());
        waiting.pop_front();
        done++;
        work();
    }
    return emulation::has_fault() ? cudaErrorLaunchFailure : cudaSuccess;
}

bool is_registered(const void *pointer, size_t size) {
    const unsigned char *bytes = static_cast<const unsigned char *>(pointer);
    auto after = registered.upper_bound(bytes);
    if (after == registered.begin())
        return false;
    --after;
    return bytes + size <= after->first + after->second;
}

} /* namespace */

void emulation::queue(dim3 blocks, dim3 threads, size_t shared_bytes, cudaStream_t, std::function<void()> kernel) {
    push([=]() { emulation::run(blocks, threads, shared_bytes, kernel); });
}

const char *cudaGetErrorString(cudaError_t error) {
    switch (error) {
    case cudaSuccess:
        return "no error";
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorInvalidDevice:
        return "invalid device ordinal";
    case cudaErrorLaunchFailure:
        return "unspecified launch failure";
    default:
        return "invalid argument";
    }
}

cudaError_t cudaGetLastError(void) {
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version) {
    *version = 13000;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count) {
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device) {
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
    return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}

/* An RTX 4090's. */
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device) {
    if (device != 0)
        return cudaErrorInvalidDevice;
    switch (attribute) {
    case cudaDevAttrClockRate:
        *value = 2520000;
        break;
    case cudaDevAttrMultiProcessorCount:
        *value = 128;
        break;
    case cudaDevAttrMemoryClockRate:
        *value = 10501000;
        break;
    case cudaDevAttrGlobalMemoryBusWidth:
        *value = 384;
        break;
    case cudaDevAttrL2CacheSize:
        *value = 72 << 20;
        break;
    case cudaDevAttrComputeCapabilityMajor:
        *value = 8;
        break;
    case cudaDevAttrComputeCapabilityMinor:
        *value = 9;
        break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
        *value = 100 << 10;
        break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *value = emulation::MAX_SHARED;
        break;
    default:
        return cudaErrorInvalidValue;
    }
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device) {
    if (device != 0)
        return cudaErrorInvalidDevice;
    memset(properties, 0, sizeof *properties);
    strcpy(properties->name, "emulated NVIDIA GeForce RTX 4090");
    properties->totalGlobalMem = (size_t)24 << 30;
    return cudaSuccess;
}

/* Filled with what no code can take for its own. */
cudaError_t cudaMalloc(void **pointer, size_t size) {
    void *memory = aligned_alloc(256, (size + 255) / 256 * 256);
    if (!memory)
        return cudaErrorMemoryAllocation;
    memset(memory, 0xa5, size);
    *pointer = memory;
    return cudaSuccess;
}

/* Waits for the device, as the real one may. */
cudaError_t cudaFree(void *pointer) {
    const cudaError_t error = run_until(queued);
    free(pointer);
    return error;
}

cudaError_t cudaHostRegister(void *pointer, size_t size, unsigned) {
    registered[static_cast<unsigned char *>(pointer)] = size;
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *pointer) {
    return registered.erase(static_cast<unsigned char *>(pointer)) ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, cudaMemcpyKind kind, cudaStream_t stream) {
    return cudaMemcpy2DAsync(to, size, from, size, size, 1, kind, stream);
}

/* As the real one: from host memory that is not registered at once, to such memory with a wait. */
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t) {
    if (width == 0 || height == 0)
        return cudaSuccess;
    auto copy = [=](const unsigned char *source, size_t pitch) {
        for (size_t row = 0; row < height; row++)
            memcpy(static_cast<unsigned char *>(to) + row * to_pitch, source + row * pitch, width);
    };
    const unsigned char *source = static_cast<const unsigned char *>(from);
    if (kind == cudaMemcpyHostToDevice && !is_registered(from, (height - 1) * from_pitch + width)) {
        std::string held;
        for (size_t row = 0; row < height; row++)
            held.append(reinterpret_cast<const char *>(source) + row * from_pitch, width);
        push([=]() { copy(reinterpret_cast<const unsigned char *>(held.data()), width); });
    } else {
        push([=]() { copy(source, from_pitch); });
    }
    if (kind == cudaMemcpyDeviceToHost && !is_registered(to, (height - 1) * to_pitch + width))
        return run_until(queued);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *pointer, int value, size_t size, cudaStream_t) {
    push([=]() { memset(pointer, value, size); });
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t) {
    return run_until(queued);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) {
    *event = new CUevent_st{0};
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
    event->ticket = queued;
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    return run_until(event->ticket);
}
