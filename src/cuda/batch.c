/* Batches on their way to the GPU: checks, and the pieces that run at once. */
#include "common/sized.h"
#include "cuda/gpu_scorer.h"
#include <string.h>

void foreloop_cuda_batch_init(foreloop_cuda_batch *batch, size_t size) {
    foreloop_sized_init(batch, size);
}

/* Ids that the host's table has, but the copy on the GPU not yet; and sequences that the staging does not hold. */
static foreloop_status check_host_batch(const foreloop_cuda_scorer *scorer, const foreloop_cuda_batch *batch,
                                        foreloop_error *error) {
    const bool behind = scorer->actions->count < scorer->actions->actions->count;
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->offsets[i + 1] - batch->offsets[i] > scorer->staged_ids)
            return foreloop_fail(error, FORELOOP_ERROR_LIMIT,
                                 "candidate %zu: a sequence has %zu actions, the scorer's staging holds %zu: create it "
                                 "with more staged_ids",
                                 i, batch->offsets[i + 1] - batch->offsets[i], scorer->staged_ids);
        for (size_t t = batch->offsets[i]; behind && t < batch->offsets[i + 1]; t++)
            if (batch->ids[t] >= scorer->actions->count)
                return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                                     "candidate %zu: the id %u is not on the GPU yet: call "
                                     "foreloop_cuda_actions_update after interning",
                                     i, batch->ids[t]);
    }
    return FORELOOP_OK;
}

foreloop_status foreloop_cuda_read_batch(foreloop_cuda_batch *own, const char *call, const foreloop_cuda_scorer *scorer,
                                         const foreloop_cuda_workload *workload, const foreloop_cuda_batch *batch,
                                         foreloop_error *error) {
    if (!scorer || !workload || !batch)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "%s: an argument is NULL", call);
    FORELOOP_TRY(foreloop_sized_read(own, sizeof *own, batch, "foreloop_cuda_batch", error));
    if (workload->model != scorer->model)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "%s: the workload is of another model", call);
    if (own->count > UINT32_MAX - 1)
        return foreloop_fail(error, FORELOOP_ERROR_LIMIT, "%s: a batch has 2^32 - 2 candidates at the most", call);
    if (own->place == FORELOOP_CUDA_HOST) {
        FORELOOP_TRY(foreloop_check_sequences(call, scorer->host, own->ids, own->offsets, own->count, error));
        return check_host_batch(scorer, own, error);
    }
    if (own->place != FORELOOP_CUDA_DEVICE)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "%s: the batch lies in no place that there is", call);
    if (own->count && (!own->offsets || (own->id_count && !own->ids)))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "%s: an argument is NULL", call);
    return FORELOOP_OK;
}

/* As many of the candidates from `first` on as the staging holds, `limit` at the most. */
static size_t piece_end(const foreloop_cuda_scorer *scorer, const foreloop_cuda_batch *batch, size_t first,
                        size_t limit) {
    const size_t last = batch->count - first < limit ? batch->count : first + limit;
    size_t end = first;
    if (batch->place == FORELOOP_CUDA_DEVICE)
        return last;
    while (end < last && batch->offsets[end + 1] - batch->offsets[first] <= scorer->staged_ids)
        end++;
    return end;
}

static foreloop_status stage_piece(foreloop_cuda_scorer *scorer, const foreloop_cuda_batch *batch,
                                   foreloop_cuda_piece *piece, foreloop_error *error) {
    const cudaStream_t stream = scorer->stream;
    const size_t slot = scorer->turn++ % FORELOOP_CUDA_STAGINGS;
    const size_t *offsets = batch->offsets + piece->first;
    const size_t offsets_bytes = (piece->count + 1) * sizeof *offsets;
    const size_t id_bytes = (offsets[piece->count] - offsets[0]) * sizeof *batch->ids;
    unsigned char *staging = scorer->staging[slot].memory;
    FORELOOP_CUDA_TRY(cudaEventSynchronize(scorer->copied[slot]), "waiting for the copy of candidates");
    memcpy(staging, offsets, offsets_bytes);
    FORELOOP_CUDA_TRY(cudaMemcpyAsync(scorer->offsets, staging, offsets_bytes, cudaMemcpyHostToDevice, stream),
                      "copying candidates");
    if (id_bytes) {
        memcpy(staging + offsets_bytes, batch->ids + offsets[0], id_bytes);
        FORELOOP_CUDA_TRY(
            cudaMemcpyAsync(scorer->ids, staging + offsets_bytes, id_bytes, cudaMemcpyHostToDevice, stream),
            "copying candidates");
    }
    FORELOOP_CUDA_TRY(cudaEventRecord(scorer->copied[slot], stream), "recording an event");
    piece->ids = scorer->ids;
    piece->offsets = scorer->offsets;
    piece->id_base = offsets[0];
    piece->id_count = offsets[piece->count] - offsets[0];
    return FORELOOP_OK;
}

foreloop_status foreloop_cuda_next_piece(foreloop_cuda_scorer *scorer, const foreloop_cuda_batch *batch,
                                         foreloop_cuda_piece *piece, size_t limit, foreloop_error *error) {
    piece->count = piece_end(scorer, batch, piece->first, limit) - piece->first;
    if (batch->place == FORELOOP_CUDA_HOST)
        return stage_piece(scorer, batch, piece, error);
    piece->ids = batch->ids;
    piece->offsets = batch->offsets + piece->first;
    piece->id_base = 0;
    piece->id_count = batch->id_count;
    return FORELOOP_OK;
}
