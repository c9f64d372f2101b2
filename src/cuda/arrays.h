/* Device arrays of an object, and host memory for copies that nobody waits for. */
#ifndef FORELOOP_CUDA_ARRAYS_H
#define FORELOOP_CUDA_ARRAYS_H

#include "cuda/gpu.h"

/* Device memory that lives and dies with an object: arrays that are uploaded one by one. */
enum { FORELOOP_CUDA_ARRAYS = 16 };
typedef struct foreloop_cuda_arrays {
    foreloop_cuda *gpu;
    struct {
        void *memory;
        size_t count, element_size;
    } arrays[FORELOOP_CUDA_ARRAYS];
    size_t count;
} foreloop_cuda_arrays;

/* Takes memory, which foreloop_cuda_arrays_close gives back; *result is the address of a pointer. */
foreloop_status foreloop_cuda_arrays_take(foreloop_cuda_arrays *arrays, void *result, size_t count, size_t element_size,
                                          const char *what, foreloop_error *error);
/* The same, and queues the copy of data[count] there, which is read before the call returns. */
foreloop_status foreloop_cuda_arrays_upload(foreloop_cuda_arrays *arrays, void *result, const void *data, size_t count,
                                            size_t element_size, const char *what, cudaStream_t stream,
                                            foreloop_error *error);
void foreloop_cuda_arrays_close(foreloop_cuda_arrays *arrays);

/* Host memory that copies read or write while the CPU goes on; pages of its own. */
typedef struct foreloop_cuda_pinned {
    void *memory; /* aligned to a page */
    void *whole;
    size_t size;
} foreloop_cuda_pinned;
foreloop_status foreloop_cuda_pinned_open(foreloop_cuda_pinned *pinned, const foreloop_cuda *gpu, size_t size,
                                          foreloop_error *error);
void foreloop_cuda_pinned_close(foreloop_cuda_pinned *pinned, const foreloop_cuda *gpu);

#endif
