/* The forward pass of a post-norm encoder. */
#include "transformer/encoder.h"

#include "common/alloc.h"
#include "common/error.h"
#include "transformer/attention.h"
#include "transformer/embed.h"
#include <math.h>

/* Rows begin on a cache line, and rows below each other in different sets of the caches: an odd number of lines. */
static size_t row_stride(size_t width) {
    enum { LINE = FORELOOP_ALIGNMENT / sizeof(float) };
    return ((width + LINE - 1) / LINE | 1) * LINE;
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/* The most that any linear layer needs to prepare its input; all layers are of the same sizes. */
static size_t prepared_size(const foreloop_transformer_weights *weights, const foreloop_transformer_scratch *scratch) {
    if (!weights->config.layer_count)
        return 0;
    const foreloop_transformer_layer *layer = &weights->layers[0];
    const size_t first = larger(foreloop_linear_weights_scratch(&layer->query_key_value, scratch->capacity),
                                foreloop_linear_weights_scratch(&layer->attention_output, scratch->capacity));
    const size_t second = larger(foreloop_linear_weights_scratch(&layer->intermediate, scratch->intermediate_rows),
                                 foreloop_linear_weights_scratch(&layer->output, scratch->intermediate_rows));
    return larger(first, second);
}

static size_t fine_size(const foreloop_transformer_weights *weights) {
    if (!weights->config.layer_count)
        return 0;
    const foreloop_transformer_layer *layer = &weights->layers[0];
    return larger(larger(foreloop_linear_weights_fine_size(&layer->query_key_value),
                         foreloop_linear_weights_fine_size(&layer->attention_output)),
                  larger(foreloop_linear_weights_fine_size(&layer->intermediate),
                         foreloop_linear_weights_fine_size(&layer->output)));
}

foreloop_status foreloop_transformer_scratch_open(foreloop_transformer_scratch *scratch,
                                                  const foreloop_transformer_weights *weights,
                                                  const foreloop_shares *shares, foreloop_error *error) {
    const foreloop_allocator *allocator = &weights->allocator;
    const size_t capacity = foreloop_transformer_config_max_length(&weights->config);
    const size_t hidden = weights->config.hidden_size, inner = weights->config.intermediate_size;
    const size_t share_count = shares->count ? shares->count : 1;
    foreloop_transformer_scratch result = {.shares = *shares,
                                           .capacity = capacity,
                                           .state_stride = row_stride(hidden),
                                           .attention_stride = row_stride(3 * hidden),
                                           .intermediate_stride = row_stride(inner)};
    result.states = foreloop_allocate(allocator, capacity, result.state_stride * sizeof(float));
    if (result.states && result.attention_stride <= SIZE_MAX / sizeof(float) / capacity) {
        const size_t size = larger(capacity * result.attention_stride, result.intermediate_stride);
        result.wide = foreloop_allocate(allocator, size, sizeof(float));
        result.intermediate_rows = smaller(size / result.intermediate_stride, capacity);
    }
    if (result.wide) { /* so the products do not overflow */
        const size_t head_width = hidden / weights->config.head_count;
        result.attention_size = row_stride(weights->kernels.attention.scratch_size(capacity, head_width));
        result.attention = foreloop_allocate(allocator, share_count, result.attention_size * sizeof(float));
        result.prepared = foreloop_allocate(allocator, prepared_size(weights, &result), 1);
        result.fine = foreloop_allocate(allocator, capacity, sizeof *result.fine);
        result.fine_memory = foreloop_allocate(allocator, fine_size(weights), sizeof *result.fine_memory);
    }
    if (!result.states || !result.wide || !result.attention || !result.prepared || !result.fine ||
        !result.fine_memory) {
        const size_t row = result.attention_stride * sizeof(float);
        foreloop_transformer_scratch_close(&result, allocator);
        return foreloop_fail_memory(error, capacity, row, "the encoder's scratch");
    }
    *scratch = result;
    return FORELOOP_OK;
}

void foreloop_transformer_scratch_close(foreloop_transformer_scratch *scratch, const foreloop_allocator *allocator) {
    foreloop_release(allocator, scratch->states);
    foreloop_release(allocator, scratch->wide);
    foreloop_release(allocator, scratch->attention);
    foreloop_release(allocator, scratch->prepared);
    foreloop_release(allocator, scratch->fine);
    foreloop_release(allocator, scratch->fine_memory);
    *scratch = (foreloop_transformer_scratch){0};
}

/* ---- The forward pass ---- */

typedef struct forward_pass {
    const foreloop_transformer_weights *weights;
    foreloop_transformer_scratch *scratch;
    const foreloop_norm_weights *norm; /* the one to apply */
    size_t rows;
    size_t shares; /* of work on single rows */
    bool any_fine;
} forward_pass;

/* Sequences of up to so many tokens keep inputs of 16 bits where layers multiply bytes: in a mean over few tokens few
 * rounding errors cancel, and such a pass is short, whatever it does. A matter of results, not of tuning. */
enum { FINE_TOKENS = 8 };

static void find_fine_rows(forward_pass *pass, const foreloop_token_batch *batch) {
    for (size_t s = 0; s < batch->count; s++) {
        const bool fine = batch->offsets[s + 1] - batch->offsets[s] <= FINE_TOKENS;
        pass->any_fine |= fine;
        for (size_t t = batch->offsets[s]; t < batch->offsets[s + 1]; t++)
            pass->scratch->fine[t] = fine ? 0 : -1;
    }
}

/* The layer on rows from `first` on, which the call begins with. */
static void run_linear(const forward_pass *pass, const foreloop_linear_weights *linear,
                       const foreloop_linear_call *call, size_t first) {
    const foreloop_transformer_scratch *scratch = pass->scratch;
    const foreloop_fine_rows fine = {scratch->fine + first, scratch->fine_memory};
    foreloop_linear_weights_run(linear, *call, pass->any_fine ? &fine : NULL, scratch->prepared, &scratch->shares);
}

static void normalize_share(void *argument, size_t share) {
    const forward_pass *pass = argument;
    const foreloop_transformer_config *config = &pass->weights->config;
    const size_t stride = pass->scratch->state_stride;
    const size_t first = foreloop_share_begin(pass->rows, pass->shares, share);
    const size_t end = foreloop_share_begin(pass->rows, pass->shares, share + 1);
    pass->weights->kernels.layer_norm(pass->scratch->states + first * stride, stride, pass->norm->gamma,
                                      pass->norm->beta, config->layer_norm_epsilon, end - first, config->hidden_size);
}

static void normalize(forward_pass *pass, const foreloop_norm_weights *norm) {
    pass->norm = norm;
    foreloop_shares_run(&pass->scratch->shares, pass->shares, normalize_share, pass);
}

static void run_attention(const forward_pass *pass, const foreloop_transformer_layer *layer,
                          const foreloop_token_batch *batch) {
    const foreloop_transformer_scratch *scratch = pass->scratch;
    const foreloop_transformer_config *config = &pass->weights->config;
    foreloop_linear_call call = {.rows = pass->rows,
                                 .x = scratch->states,
                                 .x_stride = scratch->state_stride,
                                 .epilogue = FORELOOP_EPILOGUE_NONE,
                                 .y = scratch->wide,
                                 .y_stride = scratch->attention_stride};
    run_linear(pass, &layer->query_key_value, &call, 0);
    const foreloop_attention_call attention = {.query_key_value = scratch->wide,
                                               .stride = scratch->attention_stride,
                                               .heads = config->head_count,
                                               .head_width = config->hidden_size / config->head_count,
                                               .offsets = batch->offsets,
                                               .sequences = batch->count,
                                               .scratch = scratch->attention,
                                               .scratch_stride = scratch->attention_size};
    foreloop_transformer_attention(&pass->weights->kernels.attention, &attention, &scratch->shares);
    call = (foreloop_linear_call){.rows = pass->rows,
                                  .x = scratch->wide,
                                  .x_stride = scratch->attention_stride,
                                  .epilogue = FORELOOP_EPILOGUE_RESIDUAL,
                                  .residual = scratch->states,
                                  .y = scratch->states,
                                  .y_stride = scratch->state_stride};
    run_linear(pass, &layer->attention_output, &call, 0);
}

/* Part by part, so that the intermediate states of all tokens need not exist at once. */
static void run_feed_forward(const forward_pass *pass, const foreloop_transformer_layer *layer) {
    const foreloop_transformer_scratch *scratch = pass->scratch;
    const size_t parts = (pass->rows + scratch->intermediate_rows - 1) / scratch->intermediate_rows;
    for (size_t part = 0; part < parts; part++) {
        const size_t first = foreloop_share_begin(pass->rows, parts, part);
        const size_t rows = foreloop_share_begin(pass->rows, parts, part + 1) - first;
        float *states = scratch->states + first * scratch->state_stride;
        foreloop_linear_call call = {.rows = rows,
                                     .x = states,
                                     .x_stride = scratch->state_stride,
                                     .epilogue = (foreloop_epilogue)pass->weights->config.activation,
                                     .y = scratch->wide,
                                     .y_stride = scratch->intermediate_stride};
        run_linear(pass, &layer->intermediate, &call, first);
        call = (foreloop_linear_call){.rows = rows,
                                      .x = scratch->wide,
                                      .x_stride = scratch->intermediate_stride,
                                      .epilogue = FORELOOP_EPILOGUE_RESIDUAL,
                                      .residual = states,
                                      .y = states,
                                      .y_stride = scratch->state_stride};
        run_linear(pass, &layer->output, &call, first);
    }
}

static foreloop_status check_batch(const foreloop_transformer_config *config, foreloop_transformer_scratch *scratch,
                                   const foreloop_token_batch *batch, foreloop_error *error) {
    for (size_t s = 0; s < batch->count; s++) {
        scratch->failed_sequence = s;
        FORELOOP_TRY(foreloop_transformer_check_length(config, batch->offsets[s + 1] - batch->offsets[s], error));
    }
    if (batch->offsets[batch->count] > scratch->capacity)
        return foreloop_fail(error, FORELOOP_ERROR_LIMIT, "the batch has %zu tokens, but the encoder takes %zu at once",
                             batch->offsets[batch->count], scratch->capacity);
    return FORELOOP_OK;
}

static foreloop_status embed(forward_pass *pass, const foreloop_token_batch *batch, foreloop_error *error) {
    foreloop_transformer_scratch *scratch = pass->scratch;
    for (size_t s = 0; s < batch->count; s++) {
        const size_t first = batch->offsets[s];
        scratch->failed_sequence = s;
        FORELOOP_TRY(
            foreloop_transformer_embed(pass->weights, batch->ids + first, batch->types ? batch->types + first : NULL,
                                       batch->offsets[s + 1] - first, scratch->states + first * scratch->state_stride,
                                       scratch->state_stride, error));
    }
    normalize(pass, &pass->weights->embedding_norm);
    return FORELOOP_OK;
}

/* A number that is not finite stays so, or becomes a NaN, on the way through the layers. */
static foreloop_status check_states(const forward_pass *pass, const foreloop_token_batch *batch,
                                    foreloop_error *error) {
    const size_t width = pass->weights->config.hidden_size;
    for (size_t s = 0; s < batch->count; s++) {
        pass->scratch->failed_sequence = s;
        for (size_t t = batch->offsets[s]; t < batch->offsets[s + 1]; t++) {
            const float *state = pass->scratch->states + t * pass->scratch->state_stride;
            bool finite = true;
            for (size_t i = 0; i < width; i++)
                finite &= isfinite(state[i]) != 0;
            if (!finite)
                return foreloop_fail(error, FORELOOP_ERROR_VALUE,
                                     "the hidden state of token %zu overflows; the encoder's weights are out of scale",
                                     t - batch->offsets[s]);
        }
    }
    return FORELOOP_OK;
}

foreloop_status foreloop_transformer_forward(const foreloop_transformer_weights *weights,
                                             foreloop_transformer_scratch *scratch, const foreloop_token_batch *batch,
                                             foreloop_error *error) {
    enum { WORTH_SHARING = 1 << 15 }; /* numbers; below, waking a thread costs more than it saves */
    FORELOOP_TRY(check_batch(&weights->config, scratch, batch, error));
    const size_t rows = batch->offsets[batch->count], shares = smaller(scratch->shares.count, rows);
    if (rows == 0)
        return FORELOOP_OK;
    forward_pass pass = {.weights = weights, .scratch = scratch, .rows = rows, .shares = 1};
    if (shares > 1 && rows * weights->config.hidden_size >= WORTH_SHARING)
        pass.shares = shares;
    FORELOOP_TRY(embed(&pass, batch, error));
    find_fine_rows(&pass, batch);
    for (size_t i = 0; i < weights->config.layer_count; i++) {
        const foreloop_transformer_layer *layer = &weights->layers[i];
        run_attention(&pass, layer, batch);
        normalize(&pass, &layer->attention_norm);
        run_feed_forward(&pass, layer);
        normalize(&pass, &layer->output_norm);
    }
    return check_states(&pass, batch, error);
}
