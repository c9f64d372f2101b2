/* Page-locked slots of host memory. */
#include "cuda/staging.h"

enum { SLOT_ALIGNMENT = 64 };

static foreloop_status open(foreloop_cuda_staging *staging, foreloop_error *error) {
    FORELOOP_TRY(foreloop_cuda_pinned_open(&staging->memory, staging->gpu, FORELOOP_CUDA_SLOTS * staging->size, error));
    for (; staging->opened < FORELOOP_CUDA_SLOTS; staging->opened++)
        FORELOOP_CUDA_TRY(cudaEventCreateWithFlags(&staging->copied[staging->opened], cudaEventDisableTiming),
                          "making an event");
    return FORELOOP_OK;
}

foreloop_status foreloop_cuda_staging_open(foreloop_cuda_staging *staging, foreloop_cuda *gpu, size_t size,
                                           foreloop_error *error) {
    *staging =
        (foreloop_cuda_staging){.gpu = gpu, .size = (size + SLOT_ALIGNMENT - 1) / SLOT_ALIGNMENT * SLOT_ALIGNMENT};
    const foreloop_status status = open(staging, error);
    if (status != FORELOOP_OK)
        foreloop_cuda_staging_close(staging);
    return status;
}

void foreloop_cuda_staging_close(foreloop_cuda_staging *staging) {
    if (!staging->gpu)
        return;
    for (size_t i = 0; i < staging->opened; i++) {
        (void)cudaEventSynchronize(staging->copied[i]);
        (void)cudaEventDestroy(staging->copied[i]);
    }
    foreloop_cuda_pinned_close(&staging->memory, staging->gpu);
    *staging = (foreloop_cuda_staging){.gpu = NULL};
}

foreloop_status foreloop_cuda_staging_take(foreloop_cuda_staging *staging, void **slot, foreloop_error *error) {
    /* An event that was never recorded is over. */
    FORELOOP_CUDA_TRY(cudaEventSynchronize(staging->copied[staging->next]), "waiting for the inputs before");
    *slot = (unsigned char *)staging->memory.memory + staging->next * staging->size;
    return FORELOOP_OK;
}

foreloop_status foreloop_cuda_staging_send(foreloop_cuda_staging *staging, void *to, size_t size, cudaStream_t stream,
                                           foreloop_error *error) {
    const unsigned char *slot = (unsigned char *)staging->memory.memory + staging->next * staging->size;
    FORELOOP_CUDA_TRY(cudaMemcpyAsync(to, slot, size, cudaMemcpyHostToDevice, stream), "sending inputs");
    FORELOOP_CUDA_TRY(cudaEventRecord(staging->copied[staging->next], stream), "marking inputs");
    staging->next = (staging->next + 1) % FORELOOP_CUDA_SLOTS;
    return FORELOOP_OK;
}
