/* Device arrays of an object, and host memory for copies that nobody waits for. */
#include "cuda/arrays.h"
#include <stdint.h>
#include <string.h>

foreloop_status foreloop_cuda_arrays_take(foreloop_cuda_arrays *arrays, void *result, size_t count, size_t element_size,
                                          const char *what, foreloop_error *error) {
    void *memory = NULL;
    FORELOOP_TRY(foreloop_cuda_allocate(arrays->gpu, &memory, count, element_size, what, error));
    arrays->arrays[arrays->count].memory = memory;
    arrays->arrays[arrays->count].count = count;
    arrays->arrays[arrays->count++].element_size = element_size;
    memcpy(result, &memory, sizeof memory);
    return FORELOOP_OK;
}

foreloop_status foreloop_cuda_arrays_upload(foreloop_cuda_arrays *arrays, void *result, const void *data, size_t count,
                                            size_t element_size, const char *what, cudaStream_t stream,
                                            foreloop_error *error) {
    void *memory = NULL;
    FORELOOP_TRY(foreloop_cuda_arrays_take(arrays, &memory, count, element_size, what, error));
    if (count)
        FORELOOP_CUDA_TRY(cudaMemcpyAsync(memory, data, count * element_size, cudaMemcpyHostToDevice, stream), what);
    memcpy(result, &memory, sizeof memory);
    return FORELOOP_OK;
}

void foreloop_cuda_arrays_close(foreloop_cuda_arrays *arrays) {
    while (arrays->count) {
        arrays->count--;
        foreloop_cuda_release(arrays->gpu, arrays->arrays[arrays->count].memory, arrays->arrays[arrays->count].count,
                              arrays->arrays[arrays->count].element_size);
    }
}

/* Memory is registered by whole pages, which nothing else may share. */
enum { PAGE = 4096 };

foreloop_status foreloop_cuda_pinned_open(foreloop_cuda_pinned *pinned, const foreloop_cuda *gpu, size_t size,
                                          foreloop_error *error) {
    if (size > SIZE_MAX - 2 * PAGE)
        return foreloop_fail_memory(error, size, 1, "the staging of copies");
    size = (size + PAGE - 1) / PAGE * PAGE;
    unsigned char *whole = foreloop_allocate(&gpu->allocator, size + PAGE, 1);
    if (!whole)
        return foreloop_fail_memory(error, size, 1, "the staging of copies");
    void *memory = whole + (PAGE - (uintptr_t)whole % PAGE) % PAGE;
    const foreloop_status status = foreloop_cuda_check(cudaHostRegister(memory, size, cudaHostRegisterDefault),
                                                       "registering the staging of copies", error);
    if (status != FORELOOP_OK)
        foreloop_release(&gpu->allocator, whole);
    else
        *pinned = (foreloop_cuda_pinned){memory, whole, size};
    return status;
}

void foreloop_cuda_pinned_close(foreloop_cuda_pinned *pinned, const foreloop_cuda *gpu) {
    if (!pinned->whole)
        return;
    (void)cudaHostUnregister(pinned->memory);
    foreloop_release(&gpu->allocator, pinned->whole);
    *pinned = (foreloop_cuda_pinned){0};
}
