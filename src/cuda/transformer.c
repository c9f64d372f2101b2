/* Brings a transformer's weights to the GPU: one block of memory, filled piece by piece from the tensors of its file.
 */
#include "cuda/transformer.h"
#include "kernels_cuda/encoder_kernels.h"
#include "transformer/tensors.h"
#include <stdint.h>

/* ---- Where everything lies ---- */

/* Hands out parts of the block; without one (base NULL) it only counts. */
typedef struct block_plan {
    unsigned char *base;
    size_t used;
    bool overflow;
} block_plan;

static void *take(block_plan *plan, size_t rows, size_t columns, size_t element_size) {
    const size_t most = SIZE_MAX - FORELOOP_CUDA_ALIGNMENT;
    if (plan->overflow || (rows && columns > (most - plan->used) / element_size / rows)) {
        plan->overflow = true;
        return NULL;
    }
    void *part = plan->base ? plan->base + plan->used : NULL;
    const size_t size = rows * columns * element_size;
    plan->used += (size + FORELOOP_CUDA_ALIGNMENT - 1) / FORELOOP_CUDA_ALIGNMENT * FORELOOP_CUDA_ALIGNMENT;
    return part;
}

static foreloop_cuda_linear plan_linear(block_plan *plan, size_t in, size_t out, foreloop_cuda_element element) {
    foreloop_cuda_linear linear = {.in = in, .out = out, .stride = foreloop_cuda_row_stride(in)};
    linear.weights = take(plan, out, linear.stride, foreloop_cuda_element_size(element));
    linear.bias = take(plan, 1, out, sizeof(float));
    return linear;
}

static foreloop_cuda_norm_weights plan_norm(block_plan *plan, size_t width) {
    float *gamma = take(plan, 1, width, sizeof(float));
    return (foreloop_cuda_norm_weights){gamma, take(plan, 1, width, sizeof(float))};
}

static void plan_all(foreloop_cuda_transformer *result, block_plan *plan) {
    const foreloop_transformer_config *config = &result->transformer->weights.config;
    const size_t hidden = config->hidden_size, inner = config->intermediate_size;
    const size_t projected = result->transformer->pooling.projection_size;
    result->words =
        take(plan, config->vocabulary_size, result->stride, foreloop_cuda_element_size(result->words_element));
    result->positions = take(plan, config->position_count, result->stride, sizeof(float));
    result->types = take(plan, config->type_count, result->stride, sizeof(float));
    result->embedding_norm = plan_norm(plan, hidden);
    for (size_t i = 0; i < config->layer_count; i++) {
        foreloop_cuda_layer *layer = &result->layers[i];
        layer->query_key_value = plan_linear(plan, hidden, 3 * hidden, result->element);
        layer->attention_output = plan_linear(plan, hidden, hidden, result->element);
        layer->intermediate = plan_linear(plan, hidden, inner, result->element);
        layer->output = plan_linear(plan, inner, hidden, result->element);
        layer->attention_norm = plan_norm(plan, hidden);
        layer->output_norm = plan_norm(plan, hidden);
    }
    if (projected)
        result->projection = plan_linear(plan, hidden, projected, FORELOOP_CUDA_ELEMENT_F32);
}

/* ---- Filling it ---- */

/* Numbers that are converted at once: enough that copies run at full speed. */
enum { PIECE = 1 << 20 };

typedef struct upload {
    foreloop_cuda_transformer *result;
    cudaStream_t stream;
    float *host, *device; /* [PIECE] */
    foreloop_error *error;
} upload;

static foreloop_status check_range(const foreloop_tensor *tensor, const float *values, size_t count,
                                   foreloop_error *error) {
    const float largest = 65519.996f; /* the next one is rounded to infinity */
    for (size_t i = 0; i < count; i++)
        if (values[i] > largest || values[i] < -largest)
            return foreloop_fail(error, FORELOOP_ERROR_VALUE,
                                 "tensor %s holds a number beyond float16: encode in bf16 or f32", tensor->name);
    return FORELOOP_OK;
}

/* to[rows][stride] <- the tensor, [rows][width] as it lies. */
static foreloop_status send(const upload *load, const foreloop_tensor *tensor, size_t rows, size_t width, void *to,
                            size_t stride, foreloop_cuda_element element) {
    foreloop_error *error = load->error;
    const size_t element_size = foreloop_cuda_element_size(element), source_size = foreloop_dtype_size(tensor->dtype);
    const size_t most = PIECE / width; /* a width is 3 x 2^20 at the most, in a bias, which is sent in parts */
    for (size_t row = 0; row < rows; row += most) {
        const size_t count = rows - row < most ? rows - row : most;
        foreloop_tensor piece = *tensor;
        piece.rank = 1;
        piece.shape[0] = piece.count = count * width;
        piece.size = piece.count * source_size;
        piece.data = tensor->data + row * width * source_size;
        FORELOOP_TRY(foreloop_tensor_to_float(&piece, true, load->host, error));
        if (element == FORELOOP_CUDA_ELEMENT_F16)
            FORELOOP_TRY(check_range(tensor, load->host, piece.count, error));
        FORELOOP_CUDA_TRY(cudaMemcpyAsync(load->device, load->host, piece.count * sizeof(float), cudaMemcpyHostToDevice,
                                          load->stream),
                          "sending weights");
        const foreloop_cuda_convert_call call = {.from = load->device,
                                                 .to = (unsigned char *)to + row * stride * element_size,
                                                 .element = element,
                                                 .rows = count,
                                                 .width = width,
                                                 .stride = stride};
        FORELOOP_CUDA_TRY(foreloop_cuda_convert(&call, load->stream), "converting weights");
    }
    return FORELOOP_OK;
}

/* A vector in float32. */
static foreloop_status send_vector(const upload *load, const foreloop_tensor *tensor, float *to) {
    return send(load, tensor, 1, tensor->count, to, tensor->count, FORELOOP_CUDA_ELEMENT_F32);
}

static foreloop_status send_norm(const upload *load, const foreloop_norm_tensors *tensors,
                                 const foreloop_cuda_norm_weights *norm) {
    FORELOOP_TRY(send_vector(load, tensors->gamma, norm->gamma));
    return send_vector(load, tensors->beta, norm->beta);
}

static foreloop_status send_linear(const upload *load, const foreloop_linear_tensors *tensors,
                                   const foreloop_cuda_linear *linear, foreloop_cuda_element element) {
    const size_t part_size = tensors->out * linear->stride * foreloop_cuda_element_size(element);
    for (size_t part = 0; part < tensors->parts; part++) {
        FORELOOP_TRY(send(load, tensors->matrices[part], tensors->out, tensors->in,
                          (unsigned char *)linear->weights + part * part_size, linear->stride, element));
        FORELOOP_TRY(send_vector(load, tensors->biases[part], linear->bias + part * tensors->out));
    }
    return FORELOOP_OK;
}

static foreloop_status send_layer(const upload *load, const foreloop_layer_tensors *tensors,
                                  const foreloop_cuda_layer *layer) {
    const foreloop_cuda_element element = load->result->element;
    FORELOOP_TRY(send_linear(load, &tensors->query_key_value, &layer->query_key_value, element));
    FORELOOP_TRY(send_linear(load, &tensors->attention_output, &layer->attention_output, element));
    FORELOOP_TRY(send_linear(load, &tensors->intermediate, &layer->intermediate, element));
    FORELOOP_TRY(send_linear(load, &tensors->output, &layer->output, element));
    FORELOOP_TRY(send_norm(load, &tensors->attention_norm, &layer->attention_norm));
    return send_norm(load, &tensors->output_norm, &layer->output_norm);
}

/* The projection, which model/model.c has checked. */
static foreloop_status send_projection(const upload *load) {
    const foreloop_transformer *transformer = load->result->transformer;
    foreloop_linear_tensors tensors = {
        .parts = 1, .in = load->result->projection.in, .out = load->result->projection.out};
    const char *prefix = transformer->name_prefix, *part = "the projection";
    FORELOOP_TRY(foreloop_safetensors_require(transformer->tensors, prefix, "pooling.weight", part,
                                              &tensors.matrices[0], load->error));
    FORELOOP_TRY(foreloop_safetensors_require(transformer->tensors, prefix, "pooling.bias", part, &tensors.biases[0],
                                              load->error));
    return send_linear(load, &tensors, &load->result->projection, FORELOOP_CUDA_ELEMENT_F32);
}

static foreloop_status send_all(const upload *load, const foreloop_transformer_tensors *tensors) {
    foreloop_cuda_transformer *result = load->result;
    const foreloop_transformer_config *config = &tensors->config;
    foreloop_error *error = load->error;
    const size_t hidden = config->hidden_size;
    FORELOOP_TRY(send(load, tensors->words, config->vocabulary_size, hidden, result->words, result->stride,
                      result->words_element));
    FORELOOP_TRY(send(load, tensors->positions, config->position_count, hidden, result->positions, result->stride,
                      FORELOOP_CUDA_ELEMENT_F32));
    FORELOOP_TRY(send(load, tensors->types, config->type_count, hidden, result->types, result->stride,
                      FORELOOP_CUDA_ELEMENT_F32));
    FORELOOP_TRY(send_norm(load, &tensors->embedding_norm, &result->embedding_norm));
    for (size_t i = 0; i < config->layer_count; i++) {
        foreloop_layer_tensors layer;
        FORELOOP_TRY(foreloop_transformer_tensors_layer(tensors, i, &layer, error));
        FORELOOP_TRY(send_layer(load, &layer, &result->layers[i]));
    }
    if (result->projection.out)
        FORELOOP_TRY(send_projection(load));
    FORELOOP_CUDA_TRY(cudaStreamSynchronize(load->stream), "sending weights");
    return FORELOOP_OK;
}

/* ---- Creation ---- */

static foreloop_cuda_element words_element(const foreloop_tensor *words) {
    switch (words->dtype) {
    case FORELOOP_DTYPE_F16:
        return FORELOOP_CUDA_ELEMENT_F16;
    case FORELOOP_DTYPE_BF16:
        return FORELOOP_CUDA_ELEMENT_BF16;
    default:
        return FORELOOP_CUDA_ELEMENT_F32;
    }
}

static foreloop_status fill(foreloop_cuda_transformer *result, cudaStream_t stream, foreloop_error *error) {
    const foreloop_allocator *allocator = &result->gpu->allocator;
    const foreloop_transformer *transformer = result->transformer;
    const foreloop_transformer_config *config = &transformer->weights.config;
    foreloop_transformer_tensors tensors;
    FORELOOP_TRY(
        foreloop_transformer_tensors_find(&tensors, config, transformer->tensors, transformer->name_prefix, error));
    result->words_element = words_element(tensors.words);
    result->layers = foreloop_allocate_zeroed(allocator, config->layer_count, sizeof *result->layers);
    if (!result->layers)
        return foreloop_fail_memory(error, config->layer_count, sizeof *result->layers, "the layers");
    block_plan plan = {.base = NULL};
    plan_all(result, &plan);
    result->memory_size = plan.overflow ? SIZE_MAX : plan.used;
    FORELOOP_TRY(
        foreloop_cuda_allocate(result->gpu, &result->memory, result->memory_size, 1, "an encoder's weights", error));
    plan = (block_plan){.base = result->memory};
    plan_all(result, &plan);
    upload load = {.result = result, .stream = stream, .error = error};
    load.host = foreloop_allocate(allocator, PIECE, sizeof *load.host);
    foreloop_status status =
        load.host ? foreloop_cuda_allocate(result->gpu, &load.device, PIECE, sizeof *load.device, "weights", error)
                  : foreloop_fail_memory(error, PIECE, sizeof *load.host, "weights");
    if (status == FORELOOP_OK) {
        status = send_all(&load, &tensors);
        if (status != FORELOOP_OK)
            (void)cudaStreamSynchronize(stream); /* before its memory goes */
        foreloop_cuda_release(result->gpu, load.device, PIECE, sizeof *load.device);
    }
    foreloop_release(allocator, load.host);
    return status;
}

static void release(foreloop_cuda_transformer *result) {
    const foreloop_allocator *allocator = &result->gpu->allocator;
    foreloop_cuda_release(result->gpu, result->memory, result->memory_size, 1);
    foreloop_release(allocator, result->layers);
    foreloop_release(allocator, result);
}

static foreloop_status create(foreloop_cuda_transformer **made, foreloop_cuda *gpu,
                              const foreloop_transformer *transformer, foreloop_cuda_element element,
                              cudaStream_t stream, foreloop_error *error) {
    foreloop_cuda_transformer *result = foreloop_allocate_zeroed(&gpu->allocator, 1, sizeof *result);
    if (!result)
        return foreloop_fail_memory(error, 1, sizeof *result, "an encoder's weights");
    result->gpu = gpu;
    result->transformer = transformer;
    result->element = element;
    result->stride = foreloop_cuda_row_stride(transformer->weights.config.hidden_size);
    const foreloop_status status = fill(result, stream, error);
    if (status != FORELOOP_OK) {
        release(result);
        return status;
    }
    *made = result;
    return FORELOOP_OK;
}

foreloop_status foreloop_cuda_transformer_create(foreloop_cuda_transformer **result, foreloop_cuda *gpu,
                                                 const foreloop_transformer *transformer,
                                                 foreloop_cuda_precision precision, foreloop_cuda_stream stream,
                                                 foreloop_error *error) {
    if (!result || !gpu || !transformer)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_cuda_transformer_create: an argument is NULL");
    if (precision < FORELOOP_CUDA_PRECISION_F32 || precision > FORELOOP_CUDA_PRECISION_BF16)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "foreloop_cuda_transformer_create: there is no precision %d", (int)precision);
    if (transformer->weights.config.head_count > FORELOOP_CUDA_MAX_HEADS)
        return foreloop_fail(error, FORELOOP_ERROR_UNSUPPORTED, "an encoder with %zu heads: the GPU takes up to %d",
                             transformer->weights.config.head_count, FORELOOP_CUDA_MAX_HEADS);
    int previous;
    FORELOOP_TRY(foreloop_cuda_enter(gpu, &previous, error));
    const foreloop_status status = create(result, gpu, transformer, (foreloop_cuda_element)precision, stream, error);
    foreloop_cuda_leave(previous);
    return status;
}

void foreloop_cuda_transformer_close(foreloop_cuda_transformer *transformer) {
    int previous;
    if (!transformer)
        return;
    const bool entered = foreloop_cuda_enter(transformer->gpu, &previous, NULL) == FORELOOP_OK;
    release(transformer);
    if (entered)
        foreloop_cuda_leave(previous);
}
