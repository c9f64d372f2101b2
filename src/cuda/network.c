/* The score network's weights on the GPU, in one array. */
#include "cuda/scoring.h"

_Static_assert((int)FORELOOP_CUDA_NETWORK_LAYERS == (int)FORELOOP_SCORE_NETWORK_MAX_LAYERS, "as many layers");

/* Everything that is copied begins at a multiple of so many floats, as the layers' rows do. */
static size_t whole(size_t count) {
    return (count + FORELOOP_MLP_LANES - 1) / FORELOOP_MLP_LANES * FORELOOP_MLP_LANES;
}

/* Copies numbers[count] to `*next`, to where *result leads afterwards. */
static foreloop_status copy(const float **result, float **next, const float *numbers, size_t count, cudaStream_t stream,
                            foreloop_error *error) {
    if (count)
        FORELOOP_CUDA_TRY(cudaMemcpyAsync(*next, numbers, count * sizeof *numbers, cudaMemcpyHostToDevice, stream),
                          "copying the score network");
    *result = *next;
    *next += whole(count);
    return FORELOOP_OK;
}

static foreloop_status upload(foreloop_cuda_score_network *own, const foreloop_score_network *from, cudaStream_t stream,
                              foreloop_error *error) {
    foreloop_cuda_network *network = &own->network;
    size_t size = 2 * whole(from->input_count);
    float *next = NULL;
    for (size_t i = 0; i < from->layer_count; i++)
        size += (from->layers[i].in + 1) * from->layers[i].stride;
    FORELOOP_TRY(foreloop_cuda_arrays_take(&own->arrays, &next, size, sizeof *next, "the score network", error));
    FORELOOP_TRY(copy(&network->shift, &next, from->shift, from->input_count, stream, error));
    FORELOOP_TRY(copy(&network->scale, &next, from->scale, from->input_count, stream, error));
    for (size_t i = 0; i < from->layer_count; i++) {
        foreloop_mlp_layer *layer = &network->layers[i];
        *layer = from->layers[i];
        FORELOOP_TRY(copy(&layer->bias, &next, from->layers[i].bias, layer->stride, stream, error));
        FORELOOP_TRY(copy(&layer->weight, &next, from->layers[i].weight, layer->in * layer->stride, stream, error));
        if (i + 1 < from->layer_count && layer->out > own->widest)
            own->widest = layer->out;
    }
    network->limit = from->limit;
    network->layer_count = from->layer_count;
    return FORELOOP_OK;
}

foreloop_status foreloop_cuda_score_network_open(foreloop_cuda_score_network *own, foreloop_cuda *gpu,
                                                 const foreloop_score_network *network, cudaStream_t stream,
                                                 foreloop_error *error) {
    *own = (foreloop_cuda_score_network){.arrays = {.gpu = gpu}};
    const foreloop_status status = upload(own, network, stream, error);
    if (status != FORELOOP_OK)
        foreloop_cuda_score_network_close(own);
    return status;
}

void foreloop_cuda_score_network_close(foreloop_cuda_score_network *own) {
    foreloop_cuda_arrays_close(&own->arrays);
    *own = (foreloop_cuda_score_network){0};
}
