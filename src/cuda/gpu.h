/* An open GPU as the other files of this library use it: its memory, its errors, and being the current one. */
#ifndef FORELOOP_CUDA_GPU_H
#define FORELOOP_CUDA_GPU_H

#include "common/alloc.h"
#include "common/error.h"
#include <cuda_runtime_api.h>
#include <foreloop/cuda.h>
#include <pthread.h>

enum { FORELOOP_CUDA_ALIGNMENT = 256, FORELOOP_CUDA_NAME = 256 };

struct foreloop_cuda {
    foreloop_allocator allocator;
    foreloop_cuda_allocator device_allocator;
    int device;
    char name[FORELOOP_CUDA_NAME];
    foreloop_cuda_info info;   /* but allocated_bytes */
    size_t block_shared_bytes; /* that a block may have at the most */

    pthread_mutex_t lock; /* of what follows */
    unsigned char *arena;
    size_t arena_size, arena_used;
    size_t allocated_bytes, allocated_count;
};

/* FORELOOP_OK, or DEVICE with what was being done and what CUDA says. */
foreloop_status foreloop_cuda_check(cudaError_t result, const char *doing, foreloop_error *error);
#define FORELOOP_CUDA_TRY(call, doing) FORELOOP_TRY(foreloop_cuda_check((call), (doing), error))

/* Makes the GPU the thread's current one, and the one before again. Every function of the API is in between. */
foreloop_status foreloop_cuda_enter(const foreloop_cuda *gpu, int *previous, foreloop_error *error);
void foreloop_cuda_leave(int previous);

/* Device memory for count x element_size bytes (at least one), aligned to 256: MEMORY when there is none; `what` names
 * it in the message. Written to *result, the address of a pointer. The GPU is current. */
foreloop_status foreloop_cuda_allocate(foreloop_cuda *gpu, void *result, size_t count, size_t element_size,
                                       const char *what, foreloop_error *error);
/* `pointer`, NULL allowed, with the sizes that it was allocated with. The GPU is current. */
void foreloop_cuda_release(foreloop_cuda *gpu, void *pointer, size_t count, size_t element_size);

#endif
