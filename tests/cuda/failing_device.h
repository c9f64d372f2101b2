/* tests/failing_allocator.h for device memory. */
#ifndef FORELOOP_TESTS_CUDA_FAILING_DEVICE_H
#define FORELOOP_TESTS_CUDA_FAILING_DEVICE_H

#include "failing_allocator.h"
#include <cuda_runtime_api.h>
#include <foreloop/cuda.h>

static void *failing_device_allocate(void *user, size_t size) {
    failing_allocator *memory = user;
    void *pointer = NULL;
    if (memory->calls++ >= memory->fail_at || cudaMalloc(&pointer, size) != cudaSuccess) {
        memory->failed = 1;
        return NULL;
    }
    memory->live++;
    return pointer;
}

static void failing_device_release(void *user, void *pointer) {
    failing_allocator *memory = user;
    memory->live--;
    cudaFree(pointer);
}

static inline foreloop_cuda_allocator failing_device_use(failing_allocator *memory) {
    return (foreloop_cuda_allocator){failing_device_allocate, failing_device_release, memory};
}

#endif
