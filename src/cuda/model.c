/* A model's tables and a workload's start on the GPU. */
#include "cuda/scoring.h"

/* Copies what both programs share, and leads them there. */
static foreloop_status upload_tables(foreloop_cuda_model *own, cudaStream_t stream, foreloop_error *error) {
    static const char what[] = "the model's tables";
    const foreloop_rollout_plan *plan = &own->model->rollout;
    const size_t kinds = plan->vocabulary->kind_count;
    foreloop_transh_program program = foreloop_rollout_program(plan, true);
    const uint32_t *used_end = NULL;
    foreloop_cuda_arrays *arrays = &own->arrays;
    FORELOOP_TRY(foreloop_cuda_arrays_upload(arrays, &program.gram, plan->gram, plan->kind_stride * plan->kind_stride,
                                             sizeof *plan->gram, what, stream, error));
    FORELOOP_TRY(foreloop_cuda_arrays_upload(arrays, &program.normal, plan->normal,
                                             plan->kind_stride * plan->latent_stride, sizeof *plan->normal, what,
                                             stream, error));
    FORELOOP_TRY(foreloop_cuda_arrays_upload(arrays, &program.updates, plan->updates, plan->update_begin[kinds],
                                             sizeof *plan->updates, what, stream, error));
    FORELOOP_TRY(foreloop_cuda_arrays_upload(arrays, &program.update_begin, plan->update_begin, kinds + 1,
                                             sizeof *plan->update_begin, what, stream, error));
    FORELOOP_TRY(foreloop_cuda_arrays_upload(arrays, &used_end, plan->update_used_end, kinds, sizeof *used_end, what,
                                             stream, error));
    program.update_end = program.update_begin + 1;
    own->all = program;
    own->used = foreloop_rollout_program(plan, false);
    own->used.gram = program.gram;
    own->used.normal = program.normal;
    own->used.updates = program.updates;
    own->used.update_begin = program.update_begin;
    own->used.update_end = used_end;
    const size_t needed = foreloop_cuda_rollout_shared_bytes(&own->all);
    if (needed > own->gpu->block_shared_bytes)
        return foreloop_fail(error, FORELOOP_ERROR_LIMIT,
                             "the model's latent state, kinds and aggregates take %zu bytes of shared memory, the GPU "
                             "has %zu for a block: score on the CPU",
                             needed, own->gpu->block_shared_bytes);
    return FORELOOP_OK;
}

static foreloop_status fill_model(foreloop_cuda_model *own, cudaStream_t stream, foreloop_error *error) {
    const foreloop_scorer_ranker ranker = foreloop_ranker_of_model(own->model);
    FORELOOP_TRY(upload_tables(own, stream, error));
    FORELOOP_TRY(foreloop_cuda_ranker_open(&own->ranker, own->gpu, &ranker, stream, error));
    if (own->model->has_network)
        FORELOOP_TRY(foreloop_cuda_score_network_open(&own->network, own->gpu, &own->model->network, stream, error));
    return foreloop_cuda_check(cudaStreamSynchronize(stream), "copying the model", error);
}

static void release_model(foreloop_cuda_model *own) {
    foreloop_cuda_score_network_close(&own->network);
    foreloop_cuda_ranker_close(&own->ranker);
    foreloop_cuda_arrays_close(&own->arrays);
    foreloop_release(&own->gpu->allocator, own);
}

foreloop_status foreloop_cuda_model_create(foreloop_cuda_model **result, foreloop_cuda *gpu,
                                           const foreloop_model *model, foreloop_cuda_stream stream,
                                           foreloop_error *error) {
    int previous;
    if (!result || !gpu || !model)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_cuda_model_create: an argument is NULL");
    FORELOOP_TRY(foreloop_cuda_enter(gpu, &previous, error));
    foreloop_cuda_model *own = foreloop_allocate_zeroed(&gpu->allocator, 1, sizeof *own);
    foreloop_status status;
    if (own) {
        own->gpu = gpu;
        own->model = model;
        own->arrays.gpu = gpu;
        status = fill_model(own, stream, error);
        if (status == FORELOOP_OK)
            *result = own;
        else
            release_model(own);
    } else {
        status = foreloop_fail_memory(error, 1, sizeof *own, "the model on the GPU");
    }
    foreloop_cuda_leave(previous);
    return status;
}

void foreloop_cuda_model_close(foreloop_cuda_model *model) {
    int previous;
    if (!model || foreloop_cuda_enter(model->gpu, &previous, NULL) != FORELOOP_OK)
        return;
    release_model(model);
    foreloop_cuda_leave(previous);
}

/* ---- Workloads ---- */

static void release_workload(foreloop_cuda_workload *own) {
    foreloop_cuda_arrays_close(&own->arrays);
    foreloop_release(&own->model->gpu->allocator, own);
}

static foreloop_status make_workload(foreloop_cuda_workload **result, const foreloop_cuda_model *model,
                                     const foreloop_workload *workload, cudaStream_t stream, foreloop_error *error) {
    foreloop_cuda_workload *own = foreloop_allocate_zeroed(&model->gpu->allocator, 1, sizeof *own);
    if (!own)
        return foreloop_fail_memory(error, 1, sizeof *own, "the workload on the GPU");
    own->model = model;
    own->arrays.gpu = model->gpu;
    foreloop_status status = foreloop_cuda_arrays_upload(&own->arrays, &own->start, workload->start,
                                                         foreloop_rollout_start_size(&model->model->rollout),
                                                         sizeof *own->start, "the workload", stream, error);
    if (status == FORELOOP_OK)
        status = foreloop_cuda_check(cudaStreamSynchronize(stream), "copying the workload", error);
    if (status == FORELOOP_OK)
        *result = own;
    else
        release_workload(own);
    return status;
}

foreloop_status foreloop_cuda_workload_create(foreloop_cuda_workload **result, const foreloop_cuda_model *model,
                                              const foreloop_workload *workload, foreloop_cuda_stream stream,
                                              foreloop_error *error) {
    int previous;
    if (!result || !model || !workload)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_cuda_workload_create: an argument is NULL");
    if (workload->fingerprint != model->model->fingerprint)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "the workload was encoded by another model");
    FORELOOP_TRY(foreloop_cuda_enter(model->gpu, &previous, error));
    const foreloop_status status = make_workload(result, model, workload, stream, error);
    foreloop_cuda_leave(previous);
    return status;
}

/* By the CPU, which checks the numbers; a few kilobytes there and back. */
static foreloop_status from_latent(foreloop_cuda_workload **result, const foreloop_cuda_model *model,
                                   const float *latent, foreloop_cuda_place place, float *copy, cudaStream_t stream,
                                   foreloop_error *error) {
    const size_t size = model->model->manifest.latent_size;
    foreloop_workload *workload = NULL;
    if (place == FORELOOP_CUDA_DEVICE) {
        FORELOOP_CUDA_TRY(cudaMemcpyAsync(copy, latent, size * sizeof *copy, cudaMemcpyDeviceToHost, stream),
                          "copying the latent state");
        FORELOOP_CUDA_TRY(cudaStreamSynchronize(stream), "copying the latent state");
        latent = copy;
    }
    FORELOOP_TRY(foreloop_workload_create(&workload, model->model, latent, error));
    const foreloop_status status = make_workload(result, model, workload, stream, error);
    foreloop_workload_close(workload);
    return status;
}

foreloop_status foreloop_cuda_workload_from_latent(foreloop_cuda_workload **result, const foreloop_cuda_model *model,
                                                   const float *latent, foreloop_cuda_place place,
                                                   foreloop_cuda_stream stream, foreloop_error *error) {
    int previous;
    if (!result || !model || !latent)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_cuda_workload_from_latent: an argument is NULL");
    const size_t size = model->model->manifest.latent_size;
    float *copy = foreloop_allocate(&model->gpu->allocator, size, sizeof *copy);
    if (!copy)
        return foreloop_fail_memory(error, size, sizeof *copy, "the latent state");
    foreloop_status status = foreloop_cuda_enter(model->gpu, &previous, error);
    if (status == FORELOOP_OK) {
        status = from_latent(result, model, latent, place, copy, stream, error);
        foreloop_cuda_leave(previous);
    }
    foreloop_release(&model->gpu->allocator, copy);
    return status;
}

void foreloop_cuda_workload_close(foreloop_cuda_workload *workload) {
    int previous;
    if (!workload || foreloop_cuda_enter(workload->model->gpu, &previous, NULL) != FORELOOP_OK)
        return;
    release_workload(workload);
    foreloop_cuda_leave(previous);
}
