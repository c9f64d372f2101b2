/* Host memory from which the GPU reads while the caller goes on: page-locked slots, used in turn. */
#ifndef FORELOOP_CUDA_STAGING_H
#define FORELOOP_CUDA_STAGING_H

#include "cuda/arrays.h"

enum { FORELOOP_CUDA_SLOTS = 2 };

typedef struct foreloop_cuda_staging {
    foreloop_cuda *gpu;
    foreloop_cuda_pinned memory;
    size_t size; /* of a slot */
    cudaEvent_t copied[FORELOOP_CUDA_SLOTS];
    size_t opened; /* events */
    size_t next;
} foreloop_cuda_staging;

/* Slots of `size` bytes. A zeroed struct may be closed. The GPU is current in all of these. */
foreloop_status foreloop_cuda_staging_open(foreloop_cuda_staging *staging, foreloop_cuda *gpu, size_t size,
                                           foreloop_error *error);
void foreloop_cuda_staging_close(foreloop_cuda_staging *staging);

/* The next slot to write to, aligned to 64; waits until the GPU has read what it held last. */
foreloop_status foreloop_cuda_staging_take(foreloop_cuda_staging *staging, void **slot, foreloop_error *error);
/* Queues the copy of the slot that was taken, its first `size` bytes. */
foreloop_status foreloop_cuda_staging_send(foreloop_cuda_staging *staging, void *to, size_t size, cudaStream_t stream,
                                           foreloop_error *error);

#endif
