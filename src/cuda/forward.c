/* The forward pass of a post-norm encoder on the GPU: four matrix products and four kernels a layer, nothing between
 * them for the CPU to wait for. */
#include "cuda/encoder.h"

typedef struct forward_pass {
    const foreloop_cuda_encoder *encoder;
    const foreloop_cuda_transformer *transformer;
    size_t rows;
    const foreloop_cuda_attention_tile *tiles;
    size_t tile_count;
    cudaStream_t stream;
    foreloop_error *error;
} forward_pass;

static bool is_narrow(const forward_pass *pass) {
    return pass->transformer->element != FORELOOP_CUDA_ELEMENT_F32;
}

static foreloop_status multiply(const forward_pass *pass, const foreloop_cuda_linear *linear, const void *x,
                                size_t x_stride, foreloop_cuda_element y_element, void *y, size_t y_stride) {
    const foreloop_cuda_gemm_call call = {.rows = pass->rows,
                                          .in = linear->in,
                                          .out = linear->out,
                                          .element = pass->transformer->element,
                                          .x = x,
                                          .x_stride = x_stride,
                                          .weights = linear->weights,
                                          .weights_stride = linear->stride,
                                          .y_element = y_element,
                                          .y = y,
                                          .y_stride = y_stride};
    return foreloop_cuda_gemm_run(pass->encoder->gemm, &call, pass->error);
}

/* Into `wide`, from the states as products read them. */
static foreloop_status widen(const forward_pass *pass, const foreloop_cuda_linear *linear) {
    const foreloop_cuda_encoder *encoder = pass->encoder;
    const void *states = is_narrow(pass) ? encoder->narrow : encoder->states;
    return multiply(pass, linear, states, pass->transformer->stride, pass->transformer->element, encoder->wide,
                    foreloop_cuda_row_stride(linear->out));
}

static foreloop_cuda_norm norm_of(const forward_pass *pass, const foreloop_cuda_norm_weights *weights) {
    const foreloop_transformer_config *config = &pass->transformer->transformer->weights.config;
    return (foreloop_cuda_norm){.gamma = weights->gamma,
                                .beta = weights->beta,
                                .epsilon = (float)config->layer_norm_epsilon,
                                .rows = (unsigned)pass->rows,
                                .width = (unsigned)config->hidden_size,
                                .stride = pass->transformer->stride,
                                .states = pass->encoder->states,
                                .narrow = is_narrow(pass) ? pass->encoder->narrow : NULL,
                                .element = pass->transformer->element};
}

/* states = norm(states + x W^T + b) */
static foreloop_status add_product(const forward_pass *pass, const foreloop_cuda_linear *linear, const void *x,
                                   size_t x_stride, const foreloop_cuda_norm_weights *norm) {
    foreloop_error *error = pass->error;
    float *product = pass->encoder->product;
    FORELOOP_TRY(multiply(pass, linear, x, x_stride, FORELOOP_CUDA_ELEMENT_F32, product, pass->transformer->stride));
    const foreloop_cuda_residual_call call = {.norm = norm_of(pass, norm), .product = product, .bias = linear->bias};
    FORELOOP_CUDA_TRY(foreloop_cuda_residual(&call, pass->stream), "adding and normalising");
    return FORELOOP_OK;
}

static foreloop_status run_attention(const forward_pass *pass, const foreloop_cuda_layer *layer) {
    const foreloop_cuda_encoder *encoder = pass->encoder;
    const foreloop_transformer_config *config = &pass->transformer->transformer->weights.config;
    foreloop_error *error = pass->error;
    FORELOOP_TRY(widen(pass, &layer->query_key_value));
    const foreloop_cuda_attention_call call = {.query_key_value = encoder->wide,
                                               .bias = layer->query_key_value.bias,
                                               .stride = foreloop_cuda_row_stride(3 * config->hidden_size),
                                               .context = encoder->narrow,
                                               .context_stride = pass->transformer->stride,
                                               .element = pass->transformer->element,
                                               .heads = (unsigned)config->head_count,
                                               .head_width = (unsigned)(config->hidden_size / config->head_count),
                                               .tiles = pass->tiles,
                                               .tile_count = (unsigned)pass->tile_count};
    FORELOOP_CUDA_TRY(foreloop_cuda_attention(&call, pass->stream), "attention");
    return add_product(pass, &layer->attention_output, encoder->narrow, pass->transformer->stride,
                       &layer->attention_norm);
}

static foreloop_status run_feed_forward(const forward_pass *pass, const foreloop_cuda_layer *layer) {
    static const foreloop_cuda_activation activations[] = {
        [FORELOOP_ACTIVATION_GELU] = FORELOOP_CUDA_GELU,
        [FORELOOP_ACTIVATION_GELU_TANH] = FORELOOP_CUDA_GELU_TANH,
        [FORELOOP_ACTIVATION_RELU] = FORELOOP_CUDA_RELU,
    };
    const foreloop_transformer_config *config = &pass->transformer->transformer->weights.config;
    const size_t stride = foreloop_cuda_row_stride(config->intermediate_size);
    foreloop_error *error = pass->error;
    FORELOOP_TRY(widen(pass, &layer->intermediate));
    const foreloop_cuda_activation_call call = {.values = pass->encoder->wide,
                                                .element = pass->transformer->element,
                                                .bias = layer->intermediate.bias,
                                                .rows = (unsigned)pass->rows,
                                                .width = (unsigned)config->intermediate_size,
                                                .stride = stride,
                                                .activation = activations[config->activation]};
    FORELOOP_CUDA_TRY(foreloop_cuda_activate(&call, pass->stream), "activating");
    return add_product(pass, &layer->output, pass->encoder->wide, stride, &layer->output_norm);
}

foreloop_status foreloop_cuda_forward(const foreloop_cuda_encoder *encoder, const foreloop_cuda_run *run, bool types,
                                      cudaStream_t stream, foreloop_error *error) {
    const foreloop_cuda_transformer *transformer = encoder->transformer;
    const unsigned char *inputs = encoder->inputs;
    const forward_pass pass = {.encoder = encoder,
                               .transformer = transformer,
                               .rows = run->tokens,
                               .tiles = (const void *)(inputs + run->tiles_at),
                               .tile_count = run->tiles,
                               .stream = stream,
                               .error = error};
    const foreloop_cuda_embed_call call = {.norm = norm_of(&pass, &transformer->embedding_norm),
                                           .ids = (const void *)(inputs + run->ids_at),
                                           .position_rows = (const void *)(inputs + run->positions_at),
                                           .type_rows = types ? (const void *)(inputs + run->types_at) : NULL,
                                           .words = transformer->words,
                                           .words_element = transformer->words_element,
                                           .positions = transformer->positions,
                                           .types = transformer->types};
    FORELOOP_CUDA_TRY(foreloop_cuda_embed(&call, stream), "embedding");
    for (size_t i = 0; i < transformer->transformer->weights.config.layer_count; i++) {
        FORELOOP_TRY(run_attention(&pass, &transformer->layers[i]));
        FORELOOP_TRY(run_feed_forward(&pass, &transformer->layers[i]));
    }
    return FORELOOP_OK;
}
