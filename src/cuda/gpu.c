/* Opening a GPU, what it tells about itself, and its memory. */
#include "cuda/gpu.h"
#include "common/sized.h"
#include <foreloop/version.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

foreloop_status foreloop_cuda_check(cudaError_t result, const char *doing, foreloop_error *error) {
    if (result == cudaSuccess)
        return FORELOOP_OK;
    (void)cudaGetLastError(); /* so that it is told once */
    return foreloop_fail(error, FORELOOP_ERROR_DEVICE, "CUDA, %s: %s", doing, cudaGetErrorString(result));
}

foreloop_status foreloop_cuda_enter(const foreloop_cuda *gpu, int *previous, foreloop_error *error) {
    FORELOOP_CUDA_TRY(cudaGetDevice(previous), "asking for the current GPU");
    if (*previous != gpu->device)
        FORELOOP_CUDA_TRY(cudaSetDevice(gpu->device), "making the GPU current");
    return FORELOOP_OK;
}

void foreloop_cuda_leave(int previous) {
    int current = previous;
    if (cudaGetDevice(&current) == cudaSuccess && current != previous)
        (void)cudaSetDevice(previous);
}

/* ---- Memory ---- */

static void *take_from_arena(foreloop_cuda *gpu, size_t size) {
    unsigned char *memory = NULL;
    pthread_mutex_lock(&gpu->lock);
    if (size <= gpu->arena_size - gpu->arena_used) {
        memory = gpu->arena + gpu->arena_used;
        gpu->arena_used += size;
    }
    pthread_mutex_unlock(&gpu->lock);
    return memory;
}

static void count_memory(foreloop_cuda *gpu, size_t size, bool taken) {
    pthread_mutex_lock(&gpu->lock);
    gpu->allocated_bytes = taken ? gpu->allocated_bytes + size : gpu->allocated_bytes - size;
    gpu->allocated_count = taken ? gpu->allocated_count + 1 : gpu->allocated_count - 1;
    if (gpu->allocated_count == 0)
        gpu->arena_used = 0;
    pthread_mutex_unlock(&gpu->lock);
}

static size_t whole_size(size_t count, size_t element_size) {
    if (count == 0)
        count = 1;
    if (count > (SIZE_MAX - FORELOOP_CUDA_ALIGNMENT) / element_size)
        return 0;
    return (count * element_size + FORELOOP_CUDA_ALIGNMENT - 1) / FORELOOP_CUDA_ALIGNMENT * FORELOOP_CUDA_ALIGNMENT;
}

foreloop_status foreloop_cuda_allocate(foreloop_cuda *gpu, void *result, size_t count, size_t element_size,
                                       const char *what, foreloop_error *error) {
    const size_t size = whole_size(count, element_size);
    void *memory = NULL;
    if (size && gpu->arena)
        memory = take_from_arena(gpu, size);
    else if (size)
        memory = gpu->device_allocator.allocate(gpu->device_allocator.user, size);
    if (!memory)
        return foreloop_fail(error, FORELOOP_ERROR_MEMORY, "no %zu x %zu bytes of the GPU's memory%s for %s", count,
                             element_size, gpu->arena ? " in the arena" : "", what);
    count_memory(gpu, size, true);
    memcpy(result, &memory, sizeof memory);
    return FORELOOP_OK;
}

void foreloop_cuda_release(foreloop_cuda *gpu, void *pointer, size_t count, size_t element_size) {
    if (!pointer)
        return;
    if (!gpu->arena)
        gpu->device_allocator.release(gpu->device_allocator.user, pointer);
    count_memory(gpu, whole_size(count, element_size), false);
}

static void *default_allocate(void *user, size_t size) {
    void *memory = NULL;
    (void)user;
    if (cudaMalloc(&memory, size) == cudaSuccess)
        return memory;
    (void)cudaGetLastError();
    return NULL;
}

static void default_release(void *user, void *pointer) {
    (void)user;
    (void)cudaFree(pointer);
}

/* ---- Opening ---- */

void foreloop_cuda_options_init(foreloop_cuda_options *options, size_t size) {
    foreloop_sized_init(options, size);
}

foreloop_status foreloop_cuda_device_count(size_t *count, foreloop_error *error) {
    int driver = 0, found = 0;
    if (!count)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_cuda_device_count: an argument is NULL");
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
        (void)cudaGetLastError();
        return foreloop_fail(error, FORELOOP_ERROR_DEVICE,
                             "no CUDA driver (libcuda.so.1) is on this machine: install NVIDIA's driver, or score on "
                             "the CPU");
    }
    const cudaError_t result = cudaGetDeviceCount(&found);
    if (result == cudaErrorInsufficientDriver) {
        (void)cudaGetLastError();
        return foreloop_fail(error, FORELOOP_ERROR_DEVICE,
                             "the driver knows CUDA %d.%d, this library needs a newer one: update NVIDIA's driver",
                             driver / 1000, driver % 1000 / 10);
    }
    if (result == cudaErrorNoDevice) {
        (void)cudaGetLastError();
        found = 0;
    } else {
        FORELOOP_CUDA_TRY(result, "counting GPUs");
    }
    *count = (size_t)found;
    return FORELOOP_OK;
}

static foreloop_status read_attribute(const foreloop_cuda *gpu, enum cudaDeviceAttr attribute, size_t *value,
                                      foreloop_error *error) {
    int number = 0;
    FORELOOP_CUDA_TRY(cudaDeviceGetAttribute(&number, attribute, gpu->device), "asking the GPU about itself");
    *value = number > 0 ? (size_t)number : 0;
    return FORELOOP_OK;
}

static foreloop_status read_info(foreloop_cuda *gpu, foreloop_error *error) {
    struct cudaDeviceProp properties;
    size_t major, minor, clock, memory_clock, bus;
    FORELOOP_CUDA_TRY(cudaGetDeviceProperties(&properties, gpu->device), "asking the GPU about itself");
    memcpy(gpu->name, properties.name, sizeof gpu->name);
    gpu->name[sizeof gpu->name - 1] = 0;
    gpu->info.size = sizeof gpu->info;
    gpu->info.name = gpu->name;
    gpu->info.memory_bytes = properties.totalGlobalMem;
    FORELOOP_TRY(read_attribute(gpu, cudaDevAttrComputeCapabilityMajor, &major, error));
    FORELOOP_TRY(read_attribute(gpu, cudaDevAttrComputeCapabilityMinor, &minor, error));
    FORELOOP_TRY(read_attribute(gpu, cudaDevAttrMultiProcessorCount, &gpu->info.sm_count, error));
    FORELOOP_TRY(
        read_attribute(gpu, cudaDevAttrMaxSharedMemoryPerMultiprocessor, &gpu->info.shared_memory_bytes, error));
    FORELOOP_TRY(read_attribute(gpu, cudaDevAttrMaxSharedMemoryPerBlockOptin, &gpu->block_shared_bytes, error));
    FORELOOP_TRY(read_attribute(gpu, cudaDevAttrL2CacheSize, &gpu->info.l2_bytes, error));
    FORELOOP_TRY(read_attribute(gpu, cudaDevAttrClockRate, &clock, error));
    FORELOOP_TRY(read_attribute(gpu, cudaDevAttrMemoryClockRate, &memory_clock, error));
    FORELOOP_TRY(read_attribute(gpu, cudaDevAttrGlobalMemoryBusWidth, &bus, error));
    gpu->info.compute_capability = (int)(10 * major + minor);
    gpu->info.clock_hz = (double)clock * 1e3;
    gpu->info.memory_bandwidth = 2.0 * (double)memory_clock * 1e3 * (double)bus / 8; /* two transfers a clock */
    if (gpu->info.compute_capability < 89)
        return foreloop_fail(error, FORELOOP_ERROR_DEVICE,
                             "the GPU '%.80s' has compute capability %zu.%zu, this library needs 8.9", gpu->name, major,
                             minor);
    return FORELOOP_OK;
}

static foreloop_status check_options(const foreloop_cuda_options *options, foreloop_error *error) {
    size_t count = 0;
    if (strcmp(foreloop_version(), FORELOOP_VERSION_STRING) != 0)
        return foreloop_fail(error, FORELOOP_ERROR_MISMATCH,
                             "libforeloop_cuda is of version %s, but libforeloop of %.20s: link two that were built "
                             "together",
                             FORELOOP_VERSION_STRING, foreloop_version());
    if (options->arena && options->device_allocator)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "foreloop_cuda_open: give a device allocator or an arena, not both");
    if ((uintptr_t)options->arena % FORELOOP_CUDA_ALIGNMENT || !options->arena != !options->arena_size)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "foreloop_cuda_open: the arena must be aligned to %d and have a size",
                             FORELOOP_CUDA_ALIGNMENT);
    FORELOOP_TRY(foreloop_cuda_device_count(&count, error));
    if (options->device < 0 || (size_t)options->device >= count)
        return foreloop_fail(error, FORELOOP_ERROR_DEVICE, "there is no GPU %d: this machine has %zu", options->device,
                             count);
    return FORELOOP_OK;
}

static foreloop_status open_device(foreloop_cuda *gpu, foreloop_error *error) {
    int previous;
    FORELOOP_TRY(foreloop_cuda_enter(gpu, &previous, error));
    const foreloop_status status = read_info(gpu, error);
    foreloop_cuda_leave(previous);
    return status;
}

foreloop_status foreloop_cuda_open(foreloop_cuda **result, const foreloop_cuda_options *given, foreloop_error *error) {
    foreloop_cuda_options options = {.size = sizeof options};
    if (!result)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_cuda_open: an argument is NULL");
    FORELOOP_TRY(foreloop_sized_read(&options, sizeof options, given, "foreloop_cuda_options", error));
    FORELOOP_TRY(check_options(&options, error));
    const foreloop_allocator allocator = foreloop_allocator_or_default(options.allocator);
    foreloop_cuda *gpu = foreloop_allocate_zeroed(&allocator, 1, sizeof *gpu);
    if (!gpu)
        return foreloop_fail_memory(error, 1, sizeof *gpu, "the GPU");
    gpu->allocator = allocator;
    gpu->device_allocator = (foreloop_cuda_allocator){default_allocate, default_release, NULL};
    if (options.device_allocator)
        gpu->device_allocator = *options.device_allocator;
    gpu->arena = options.arena;
    gpu->arena_size = options.arena_size;
    gpu->device = options.device;
    foreloop_status status = FORELOOP_OK;
    if (pthread_mutex_init(&gpu->lock, NULL) != 0)
        status = foreloop_fail(error, FORELOOP_ERROR_MEMORY, "no mutex for the GPU");
    if (status == FORELOOP_OK) {
        status = open_device(gpu, error);
        if (status != FORELOOP_OK)
            pthread_mutex_destroy(&gpu->lock);
    }
    if (status != FORELOOP_OK) {
        foreloop_release(&allocator, gpu);
        return status;
    }
    *result = gpu;
    return FORELOOP_OK;
}

void foreloop_cuda_close(foreloop_cuda *gpu) {
    if (!gpu)
        return;
    foreloop_allocator allocator = gpu->allocator;
    pthread_mutex_destroy(&gpu->lock);
    foreloop_release(&allocator, gpu);
}

void foreloop_cuda_get_info(const foreloop_cuda *gpu, foreloop_cuda_info *info) {
    if (!gpu || !info)
        return;
    foreloop_cuda_info full = gpu->info;
    pthread_mutex_lock((pthread_mutex_t *)&gpu->lock);
    full.allocated_bytes = gpu->allocated_bytes;
    pthread_mutex_unlock((pthread_mutex_t *)&gpu->lock);
    foreloop_sized_write(info, &full, sizeof full);
}

foreloop_status foreloop_cuda_hardware(const foreloop_cuda *gpu, foreloop_hardware *hardware, foreloop_error *error) {
    if (!gpu || !hardware)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_cuda_hardware: an argument is NULL");
    foreloop_hardware full = {.size = sizeof full,
                              .l2_bytes = (double)gpu->info.l2_bytes,
                              .clock_hz = gpu->info.clock_hz,
                              .sm_count = (double)gpu->info.sm_count,
                              .shared_memory_bytes = (double)gpu->info.shared_memory_bytes,
                              .memory_bandwidth = gpu->info.memory_bandwidth};
    foreloop_sized_write(hardware, &full, sizeof full);
    return FORELOOP_OK;
}
