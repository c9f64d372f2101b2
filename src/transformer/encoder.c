/* The forward pass of a post-norm encoder. */
#include "transformer/encoder.h"

#include "common/alloc.h"
#include "common/error.h"
#include "transformer/embed.h"
#include <math.h>

foreloop_status foreloop_transformer_scratch_open(foreloop_transformer_scratch *scratch,
                                                  const foreloop_transformer_weights *weights, foreloop_error *error) {
    const foreloop_allocator *allocator = &weights->allocator;
    const foreloop_linear_f32 *linear = &weights->kernels.linear;
    const size_t capacity = foreloop_transformer_config_max_length(&weights->config);
    const size_t hidden = weights->config.hidden_size, inner = weights->config.intermediate_size;
    const size_t head_width = hidden / weights->config.head_count;
    const size_t wide = inner > 3 * hidden ? inner : 3 * hidden;
    foreloop_transformer_scratch result = {.capacity = capacity};
    result.states = foreloop_allocate(allocator, capacity, hidden * sizeof(float));
    result.wide = foreloop_allocate(allocator, capacity, wide * sizeof(float));
    result.context = foreloop_allocate(allocator, capacity, hidden * sizeof(float));
    result.update = foreloop_allocate(allocator, capacity, hidden * sizeof(float));
    if (result.states) { /* so capacity x hidden does not overflow */
        result.attention.keys = foreloop_allocate(allocator, linear->packed_size(head_width, capacity), sizeof(float));
        result.attention.values =
            foreloop_allocate(allocator, linear->packed_size(capacity, head_width), sizeof(float));
        result.attention.scores = foreloop_allocate(allocator, capacity, FORELOOP_ATTENTION_BLOCK * sizeof(float));
    }
    if (!result.states || !result.wide || !result.context || !result.update || !result.attention.keys ||
        !result.attention.values || !result.attention.scores) {
        foreloop_transformer_scratch_close(&result, allocator);
        return foreloop_fail_memory(error, capacity, wide * sizeof(float), "the encoder's scratch");
    }
    *scratch = result;
    return FORELOOP_OK;
}

void foreloop_transformer_scratch_close(foreloop_transformer_scratch *scratch, const foreloop_allocator *allocator) {
    foreloop_release(allocator, scratch->states);
    foreloop_release(allocator, scratch->wide);
    foreloop_release(allocator, scratch->context);
    foreloop_release(allocator, scratch->update);
    foreloop_release(allocator, scratch->attention.keys);
    foreloop_release(allocator, scratch->attention.values);
    foreloop_release(allocator, scratch->attention.scores);
    *scratch = (foreloop_transformer_scratch){0};
}

static void apply_linear(const foreloop_kernels *kernels, const foreloop_linear_weights *linear, float *y,
                         const float *x, size_t rows) {
    kernels->linear.run(y, linear->out, x, linear->in, linear->packed, linear->bias, rows, linear->in, linear->out);
}

static void run_layer(const foreloop_transformer_weights *weights, const foreloop_transformer_layer *layer,
                      const foreloop_transformer_scratch *scratch, size_t count) {
    const foreloop_transformer_config *config = &weights->config;
    const foreloop_kernels *kernels = &weights->kernels;
    const size_t hidden = config->hidden_size;
    const double epsilon = config->layer_norm_epsilon;

    apply_linear(kernels, &layer->query_key_value, scratch->wide, scratch->states, count);
    foreloop_transformer_attention(kernels, &scratch->attention, scratch->wide, count, config->head_count,
                                   hidden / config->head_count, scratch->context);
    apply_linear(kernels, &layer->attention_output, scratch->update, scratch->context, count);
    kernels->layer_norm(scratch->states, scratch->update, scratch->states, layer->attention_norm.gamma,
                        layer->attention_norm.beta, epsilon, count, hidden);

    apply_linear(kernels, &layer->intermediate, scratch->wide, scratch->states, count);
    kernels->activation[config->activation](scratch->wide, count * config->intermediate_size);
    apply_linear(kernels, &layer->output, scratch->update, scratch->wide, count);
    kernels->layer_norm(scratch->states, scratch->update, scratch->states, layer->output_norm.gamma,
                        layer->output_norm.beta, epsilon, count, hidden);
}

foreloop_status foreloop_transformer_forward(const foreloop_transformer_weights *weights,
                                             foreloop_transformer_scratch *scratch, const uint32_t *ids,
                                             const uint32_t *types, size_t count, foreloop_error *error) {
    if (count == 0)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "a sequence must have at least one token");
    if (count > scratch->capacity)
        return foreloop_fail(error, FORELOOP_ERROR_LIMIT,
                             "the sequence has %zu tokens, but the encoder has positions for %zu; cut it in windows",
                             count, scratch->capacity);
    FORELOOP_TRY(foreloop_transformer_embed(weights, ids, types, count, scratch->states, error));
    for (size_t i = 0; i < weights->config.layer_count; i++)
        run_layer(weights, &weights->layers[i], scratch, count);
    const size_t hidden = weights->config.hidden_size;
    for (size_t i = 0; i < count * hidden; i++)
        if (!isfinite(scratch->states[i]))
            return foreloop_fail(error, FORELOOP_ERROR_VALUE,
                                 "the hidden state of token %zu overflows; the encoder's weights are out of scale",
                                 i / hidden);
    return FORELOOP_OK;
}
