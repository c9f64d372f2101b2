/* The copy of an action table on the GPU, which takes over what was interned since the last time. */
#include "cuda/scoring.h"
#include <string.h>

enum { SLICE = FORELOOP_TRANSH_SLICE, DEFAULT_CAPACITY = 65536 };

static void release_actions(foreloop_cuda_actions *own) {
    if (own->copied)
        (void)cudaEventDestroy(own->copied);
    foreloop_cuda_pinned_close(&own->staging, own->model->gpu);
    foreloop_cuda_arrays_close(&own->arrays);
    foreloop_release(&own->model->gpu->allocator, own);
}

static foreloop_status take_memory(foreloop_cuda_actions *own, foreloop_error *error) {
    static const char what[] = "the actions";
    const foreloop_rollout_plan *plan = &own->model->model->rollout;
    const size_t embedding = plan->slice_count * SLICE;
    FORELOOP_TRY(foreloop_cuda_arrays_take(&own->arrays, &own->rows, own->capacity, plan->row_stride * sizeof(float),
                                           what, error));
    FORELOOP_TRY(foreloop_cuda_arrays_take(&own->arrays, &own->embeddings, own->capacity, embedding * sizeof(float),
                                           what, error));
    FORELOOP_TRY(foreloop_cuda_arrays_take(&own->arrays, &own->kinds, own->capacity, sizeof *own->kinds, what, error));
    return foreloop_cuda_check(cudaEventCreateWithFlags(&own->copied, cudaEventDisableTiming), "making an event",
                               error);
}

foreloop_status foreloop_cuda_actions_create(foreloop_cuda_actions **result, const foreloop_cuda_model *model,
                                             const foreloop_actions *actions, size_t capacity, foreloop_error *error) {
    int previous;
    if (!result || !model || !actions)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_cuda_actions_create: an argument is NULL");
    if (actions->fingerprint != model->model->fingerprint)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "foreloop_cuda_actions_create: the action table is of another model");
    if (capacity >= UINT32_MAX)
        return foreloop_fail(error, FORELOOP_ERROR_LIMIT, "an action table on the GPU has fewer than 2^32 - 1 actions");
    FORELOOP_TRY(foreloop_cuda_enter(model->gpu, &previous, error));
    foreloop_cuda_actions *own = foreloop_allocate_zeroed(&model->gpu->allocator, 1, sizeof *own);
    foreloop_status status;
    if (own) {
        own->model = model;
        own->actions = actions;
        own->arrays.gpu = model->gpu;
        own->capacity = (capacity ? capacity : DEFAULT_CAPACITY) + 1;
        status = take_memory(own, error);
        if (status == FORELOOP_OK)
            *result = own;
        else
            release_actions(own);
    } else {
        status = foreloop_fail_memory(error, 1, sizeof *own, "the actions on the GPU");
    }
    foreloop_cuda_leave(previous);
    return status;
}

void foreloop_cuda_actions_close(foreloop_cuda_actions *actions) {
    int previous;
    if (!actions || foreloop_cuda_enter(actions->model->gpu, &previous, NULL) != FORELOOP_OK)
        return;
    release_actions(actions);
    foreloop_cuda_leave(previous);
}

/* Copies count elements to the staging and queues their way from there to the device; *staged is what is in use. */
static foreloop_status stage(foreloop_cuda_actions *own, void *device, const void *host, size_t bytes, size_t *staged,
                             cudaStream_t stream, foreloop_error *error) {
    unsigned char *place = (unsigned char *)own->staging.memory + *staged;
    memcpy(place, host, bytes);
    *staged += bytes;
    return foreloop_cuda_check(cudaMemcpyAsync(device, place, bytes, cudaMemcpyHostToDevice, stream),
                               "copying new actions", error);
}

static foreloop_status append(foreloop_cuda_actions *own, cudaStream_t stream, foreloop_error *error) {
    const foreloop_actions *from = own->actions;
    const foreloop_rollout_plan *plan = &own->model->model->rollout;
    const size_t first = own->count, count = from->count - first;
    const size_t each = sizeof *own->kinds + (plan->row_stride + plan->slice_count * SLICE) * sizeof(float);
    size_t staged = 0;
    FORELOOP_CUDA_TRY(cudaEventSynchronize(own->copied), "waiting for the actions before");
    if (count * each > own->staging.size) {
        foreloop_cuda_pinned_close(&own->staging, own->model->gpu);
        FORELOOP_TRY(foreloop_cuda_pinned_open(&own->staging, own->model->gpu, count * each, error));
    }
    FORELOOP_TRY(stage(own, own->rows + first * plan->row_stride, from->rows + first * plan->row_stride,
                       count * plan->row_stride * sizeof(float), &staged, stream, error));
    for (size_t s = 0; s < plan->slice_count; s++)
        FORELOOP_TRY(stage(own, own->embeddings + (s * own->capacity + first) * SLICE, from->slices[s] + first * SLICE,
                           count * SLICE * sizeof(float), &staged, stream, error));
    FORELOOP_TRY(
        stage(own, own->kinds + first, from->kinds + first, count * sizeof *own->kinds, &staged, stream, error));
    FORELOOP_CUDA_TRY(cudaEventRecord(own->copied, stream), "recording an event");
    own->count = from->count;
    return FORELOOP_OK;
}

foreloop_status foreloop_cuda_actions_update(foreloop_cuda_actions *actions, foreloop_cuda_stream stream,
                                             foreloop_error *error) {
    int previous;
    if (!actions)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_cuda_actions_update: an argument is NULL");
    if (actions->actions->count > actions->capacity)
        return foreloop_fail(error, FORELOOP_ERROR_LIMIT,
                             "the action table has %zu actions, its copy on the GPU has room for %zu: create one with "
                             "more",
                             actions->actions->count - 1, actions->capacity - 1);
    if (actions->actions->count == actions->count)
        return FORELOOP_OK;
    FORELOOP_TRY(foreloop_cuda_enter(actions->model->gpu, &previous, error));
    const foreloop_status status = append(actions, stream, error);
    foreloop_cuda_leave(previous);
    return status;
}
