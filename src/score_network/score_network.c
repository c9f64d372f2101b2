/* Loading and checking of the score network's tensors, and its layers run one after the other. */
#include "score_network/score_network.h"
#include "common/alloc.h"
#include "common/error.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_LAYERS = FORELOOP_SCORE_NETWORK_MAX_LAYERS, MAX_WIDTH = FORELOOP_SCORE_NETWORK_MAX_WIDTH };

typedef struct loader {
    foreloop_score_network *network;
    const foreloop_safetensors *weights;
    const char *prefix;
    float *scratch; /* the tensor as it stands in the file */
    size_t scratch_capacity;
    double *bounds[2]; /* of a layer's inputs and of its outputs: what their magnitude cannot exceed */
    foreloop_error *error;
} loader;

/* ---- Tensors ----------------------------------------------------------------------------------------------------- */

static foreloop_status find(const loader *load, const char *name, const foreloop_tensor **tensor) {
    return foreloop_safetensors_require(load->weights, load->prefix, name, "the score network", tensor, load->error);
}

static foreloop_status find_of_layer(const loader *load, size_t layer, const char *name,
                                     const foreloop_tensor **tensor) {
    char full[32];
    snprintf(full, sizeof full, "%zu.%s", layer, name);
    return find(load, full, tensor);
}

/* The tensor's numbers, in the loader's scratch. */
static foreloop_status read(loader *load, const foreloop_tensor *tensor, size_t rank, const size_t *shape) {
    FORELOOP_TRY(foreloop_tensor_expect_shape(tensor, rank, shape, load->error));
    FORELOOP_TRY(foreloop_reserve(load->network->allocator, &load->scratch, &load->scratch_capacity, 0, tensor->count,
                                  sizeof(float), load->error));
    return foreloop_tensor_to_float(tensor, true, load->scratch, load->error);
}

static foreloop_status read_vector(loader *load, const char *name, size_t count) {
    const foreloop_tensor *tensor;
    FORELOOP_TRY(find(load, name, &tensor));
    return read(load, tensor, 1, &count);
}

/* One more than the largest K of tensors K.weight and K.bias, but no more than MAX_LAYERS + 1. */
static size_t count_layers(const loader *load) {
    const size_t length = strlen(load->prefix);
    size_t count = 0;
    for (size_t i = 0; i < load->weights->count; i++) {
        const char *name = load->weights->tensors[i].name;
        if (strncmp(name, load->prefix, length) != 0)
            continue;
        const char *digits = name + length, *end = digits;
        size_t layer = 0;
        for (; *end >= '0' && *end <= '9'; end++)
            layer = layer < MAX_LAYERS ? layer * 10 + (size_t)(*end - '0') : layer;
        if (end != digits && (strcmp(end, ".weight") == 0 || strcmp(end, ".bias") == 0) && layer >= count)
            count = layer < MAX_LAYERS ? layer + 1 : MAX_LAYERS + 1;
    }
    return count;
}

/* ---- Layers ------------------------------------------------------------------------------------------------------ */

/* What is read of the features, and how it is standardised. */
static foreloop_status load_inputs(loader *load, size_t feature_count) {
    foreloop_score_network *network = load->network;
    FORELOOP_TRY(read_vector(load, "limit", 1));
    network->limit = load->scratch[0];
    if (!(network->limit > 0 && network->limit <= FORELOOP_SCORE_NETWORK_MAX_LIMIT))
        return foreloop_fail(load->error, FORELOOP_ERROR_VALUE, "tensor %slimit must be greater than 0 and at most 1e6",
                             load->prefix);
    FORELOOP_TRY(read_vector(load, "scale", feature_count));
    for (size_t i = 0; i < feature_count; i++)
        network->input_count += load->scratch[i] != 0;
    const size_t count = network->input_count;
    if (count == 0)
        return foreloop_fail(load->error, FORELOOP_ERROR_VALUE,
                             "tensor %sscale is 0 everywhere, so the network reads no feature", load->prefix);
    network->features = foreloop_allocate(network->allocator, count, sizeof *network->features);
    network->shift = foreloop_allocate(network->allocator, count, sizeof *network->shift);
    network->scale = foreloop_allocate(network->allocator, count, sizeof *network->scale);
    load->bounds[0] = foreloop_allocate(network->allocator, count > MAX_WIDTH ? count : MAX_WIDTH, sizeof(double));
    load->bounds[1] = foreloop_allocate(network->allocator, MAX_WIDTH, sizeof(double));
    if (!network->features || !network->shift || !network->scale || !load->bounds[0] || !load->bounds[1])
        return foreloop_fail_memory(load->error, count, sizeof(float), "the score network's inputs");
    for (size_t i = 0, input = 0; i < feature_count; i++)
        if (load->scratch[i] != 0) {
            network->features[input] = (uint32_t)i;
            network->scale[input++] = load->scratch[i];
        }
    FORELOOP_TRY(read_vector(load, "shift", feature_count));
    for (size_t input = 0; input < count; input++) {
        network->shift[input] = load->scratch[network->features[input]];
        load->bounds[0][input] = (double)network->limit;
    }
    return FORELOOP_OK;
}

/* Bounds of the outputs from those of the inputs: sums of magnitudes, far enough from the largest float for what
 * rounding adds. */
static foreloop_status bound_outputs(loader *load, const foreloop_mlp_layer *layer, const foreloop_tensor *tensor) {
    double *inputs = load->bounds[0], *outputs = load->bounds[1];
    for (size_t o = 0; o < layer->out; o++)
        outputs[o] = fabs((double)layer->bias[o]);
    for (size_t i = 0; i < layer->in; i++)
        for (size_t o = 0; o < layer->out; o++)
            outputs[o] += fabs((double)layer->weight[i * layer->stride + o]) * inputs[i];
    for (size_t o = 0; o < layer->out; o++)
        if (outputs[o] > FORELOOP_SCORE_NETWORK_MAX_VALUE)
            return foreloop_fail(load->error, FORELOOP_ERROR_VALUE,
                                 "tensor %s: output %zu of the layer can exceed 1e30: its weights are too large",
                                 tensor->name, o);
    load->bounds[0] = outputs;
    load->bounds[1] = inputs;
    return FORELOOP_OK;
}

/* A layer of `in` inputs in the file, of which the kernels read those of columns[layer->in], or all where it is NULL.
 */
static foreloop_status load_layer(loader *load, size_t index, size_t in, const uint32_t *columns,
                                  foreloop_mlp_layer *layer) {
    const foreloop_tensor *weight, *bias;
    const bool last = index + 1 == load->network->layer_count;
    FORELOOP_TRY(find_of_layer(load, index, "weight", &weight));
    FORELOOP_TRY(find_of_layer(load, index, "bias", &bias));
    if (last && (weight->rank != 2 || weight->shape[0] != 1))
        return foreloop_fail(load->error, FORELOOP_ERROR_MISMATCH,
                             "the tensor '%.200s' is of the last layer, whose one output is the score: it must have "
                             "the shape [1, %zu]",
                             weight->name, in);
    const size_t out = weight->rank == 2 ? weight->shape[0] : 0, lanes = FORELOOP_MLP_LANES;
    if (out == 0 || out > MAX_WIDTH)
        return foreloop_fail(load->error, FORELOOP_ERROR_MISMATCH,
                             "the tensor '%.200s' must have the shape [1 to %d, %zu]", weight->name, MAX_WIDTH, in);
    const size_t stride = (out + lanes - 1) / lanes * lanes;
    FORELOOP_TRY(read(load, weight, 2, (const size_t[]){out, in}));
    /* The bias lies before the weights, in one piece with them. */
    float *packed = foreloop_allocate_zeroed(load->network->allocator, layer->in + 1, stride * sizeof *packed);
    if (!packed)
        return foreloop_fail_memory(load->error, layer->in + 1, stride * sizeof *packed, weight->name);
    layer->out = out;
    layer->stride = stride;
    layer->bias = packed;
    layer->weight = packed + stride;
    for (size_t o = 0; o < out; o++)
        for (size_t i = 0; i < layer->in; i++)
            packed[(i + 1) * stride + o] = load->scratch[o * in + (columns ? columns[i] : i)];
    FORELOOP_TRY(read(load, bias, 1, &out));
    memcpy(packed, load->scratch, out * sizeof *packed);
    return bound_outputs(load, layer, weight);
}

static foreloop_status load_all(loader *load, size_t feature_count) {
    foreloop_score_network *network = load->network;
    const size_t count = count_layers(load);
    if (count == 0)
        return foreloop_fail(load->error, FORELOOP_ERROR_MISMATCH,
                             "there are no layers: the tensors '%.100s0.weight', '%.100s0.bias' and so on are missing",
                             load->prefix, load->prefix);
    if (count > MAX_LAYERS)
        return foreloop_fail(load->error, FORELOOP_ERROR_MISMATCH,
                             "there are more than %d layers, as tensors '%.100s%d.weight' or '%.100s%d.bias' and so on "
                             "tell",
                             MAX_LAYERS, load->prefix, MAX_LAYERS, load->prefix, MAX_LAYERS);
    network->layer_count = count;
    FORELOOP_TRY(load_inputs(load, feature_count));
    network->layers[0].in = network->input_count;
    FORELOOP_TRY(load_layer(load, 0, feature_count, network->features, &network->layers[0]));
    for (size_t k = 1; k < count; k++) {
        network->layers[k].in = network->layers[k - 1].out;
        FORELOOP_TRY(load_layer(load, k, network->layers[k].in, NULL, &network->layers[k]));
    }
    return FORELOOP_OK;
}

foreloop_status foreloop_score_network_load(foreloop_score_network *network, const foreloop_allocator *allocator,
                                            const foreloop_safetensors *weights, const char *prefix,
                                            size_t feature_count, foreloop_tier tier, foreloop_error *error) {
    foreloop_score_network made = {.allocator = allocator};
    loader load = {.network = &made, .weights = weights, .prefix = prefix, .error = error};
    foreloop_mlp_f32_init(&made.kernels, tier);
    const foreloop_status status = load_all(&load, feature_count);
    foreloop_release(allocator, load.scratch);
    foreloop_release(allocator, load.bounds[0]);
    foreloop_release(allocator, load.bounds[1]);
    if (status == FORELOOP_OK)
        *network = made;
    else
        foreloop_score_network_close(&made);
    return status;
}

void foreloop_score_network_close(foreloop_score_network *network) {
    if (network->allocator) {
        foreloop_release(network->allocator, network->features);
        foreloop_release(network->allocator, network->shift);
        foreloop_release(network->allocator, network->scale);
        for (size_t k = 0; k < network->layer_count; k++)
            foreloop_release(network->allocator, (float *)network->layers[k].bias);
    }
    *network = (foreloop_score_network){0};
}

/* ---- Running ----------------------------------------------------------------------------------------------------- */

/* The scratch holds a layer's inputs and its outputs, each of this many numbers a row at the most. */
static size_t width(const foreloop_score_network *network) {
    size_t widest = (network->input_count + FORELOOP_MLP_LANES - 1) / FORELOOP_MLP_LANES * FORELOOP_MLP_LANES;
    for (size_t k = 0; k < network->layer_count; k++)
        widest = network->layers[k].stride > widest ? network->layers[k].stride : widest;
    return widest;
}

size_t foreloop_score_network_scratch(const foreloop_score_network *network) {
    return 2 * FORELOOP_MLP_ROWS * width(network);
}

void foreloop_score_network_add_block(const foreloop_score_network *network, const float *block, const uint32_t *values,
                                      size_t rows, float *scratch, float *scores) {
    float *x = scratch, *y = scratch + FORELOOP_MLP_ROWS * width(network);
    network->kernels.standardise_block(block, values, network->shift, network->scale, network->limit,
                                       network->input_count, rows, x);
    for (size_t k = 0; k < network->layer_count; k++) {
        network->kernels.block(&network->layers[k], k + 1 < network->layer_count, x, rows, y);
        float *const inputs = x;
        x = y;
        y = inputs;
    }
    for (size_t r = 0; r < rows; r++)
        scores[r] += x[r];
}

float foreloop_score_network_row(const foreloop_score_network *network, const float *row, const uint32_t *columns,
                                 float *scratch) {
    float *x = scratch, *y = scratch + width(network);
    network->kernels.standardise_row(row, columns, network->shift, network->scale, network->limit, network->input_count,
                                     x);
    for (size_t k = 0; k < network->layer_count; k++) {
        network->kernels.row(&network->layers[k], k + 1 < network->layer_count, x, y);
        float *const inputs = x;
        x = y;
        y = inputs;
    }
    return x[0];
}
