/* Composes tokenizer, encoder, windows and pooling to an encoder of texts. */
#include "model/text_encoder.h"

#include "common/alloc.h"
#include "common/error.h"
#include "kernels_cpu/cpu.h"
#include "model/text_windows.h"
#include "transformer/encoder.h"
#include <string.h>

/* A window that waits for its forward pass, and what is pooled of it. */
typedef struct waiting_window {
    size_t text;          /* its number in the call */
    size_t first, pooled; /* rows of the batch */
} waiting_window;

struct foreloop_encoder {
    const foreloop_transformer *transformer;
    foreloop_transformer_scratch scratch;
    foreloop_encoding *encoding;
    /* Windows with their special tokens, as many as the scratch takes at once. */
    uint32_t *ids;
    size_t *offsets;
    waiting_window *windows;
    size_t window_count;
    size_t text; /* the one whose windows are being pooled */
    foreloop_pool pool;
    float *mean;    /* [hidden] */
    float *results; /* [texts of the call][embedding size] */
    size_t results_capacity;
};

const foreloop_transformer *foreloop_encoder_transformer(const foreloop_encoder *encoder) {
    return encoder->transformer;
}

/* The leading tokens without a place in the text: special tokens, and a space that the tokenizer put before it. */
static size_t count_leading(const foreloop_encoding *encoding) {
    const size_t *offsets = foreloop_encoding_offsets(encoding);
    const size_t count = foreloop_encoding_count(encoding);
    size_t leading = 0;
    while (leading < count && offsets[2 * leading + 1] == 0)
        leading++;
    return leading;
}

/* Learns prefix and suffix from an example, tokenised with and without special tokens. Any text that has a token will
 * do: the vocabulary itself offers candidates. */
static foreloop_status find_special(foreloop_transformer *transformer, foreloop_encoding *encoding,
                                    foreloop_error *error) {
    const size_t vocabulary_size = foreloop_tokenizer_vocabulary_size(transformer->tokenizer);
    for (size_t id = 0; id < vocabulary_size; id++) {
        const char *token = foreloop_tokenizer_token(transformer->tokenizer, (uint32_t)id);
        if (!token)
            continue;
        FORELOOP_TRY(foreloop_tokenize(encoding, token, strlen(token), 0, error));
        const size_t own = foreloop_encoding_count(encoding), own_leading = count_leading(encoding);
        if (own_leading == own)
            continue;
        FORELOOP_TRY(foreloop_tokenize(encoding, token, strlen(token), 1, error));
        const uint32_t *ids = foreloop_encoding_ids(encoding);
        const size_t prefix = count_leading(encoding) - own_leading;
        const size_t suffix = foreloop_encoding_count(encoding) - own - prefix;
        transformer->special = foreloop_allocate(&transformer->allocator, prefix + suffix, sizeof *ids);
        if (!transformer->special)
            return foreloop_fail_memory(error, prefix + suffix, sizeof *ids, "the special tokens");
        transformer->prefix_count = prefix;
        transformer->suffix_count = suffix;
        if (prefix)
            memcpy(transformer->special, ids, prefix * sizeof *ids);
        if (suffix)
            memcpy(transformer->special + prefix, ids + prefix + own, suffix * sizeof *ids);
        return FORELOOP_OK;
    }
    return foreloop_fail(error, FORELOOP_ERROR_MISMATCH, "the tokenizer's vocabulary makes no token");
}

static foreloop_status read_special(foreloop_transformer *transformer, foreloop_error *error) {
    foreloop_encoding *encoding;
    FORELOOP_TRY(foreloop_encoding_create(&encoding, transformer->tokenizer, error));
    const foreloop_status status = find_special(transformer, encoding, error);
    foreloop_encoding_close(encoding);
    return status;
}

/* Checks the window against the positions and fills in the defaults. */
static foreloop_status complete_window(foreloop_transformer *transformer, foreloop_error *error) {
    foreloop_pooling *pooling = &transformer->pooling;
    const size_t longest = foreloop_transformer_config_max_length(&transformer->weights.config);
    const size_t special = transformer->prefix_count + transformer->suffix_count;
    if (!pooling->window_length)
        pooling->window_length = longest;
    if (pooling->window_length > longest || pooling->window_length <= special)
        return foreloop_fail(error, FORELOOP_ERROR_VALUE,
                             "a window of %zu tokens must be longer than the %zu special tokens and not exceed the %zu "
                             "positions of the encoder",
                             pooling->window_length, special, longest);
    if (!pooling->window_stride)
        pooling->window_stride = pooling->window_length - special;
    if (pooling->window_stride > pooling->window_length - special)
        return foreloop_fail(error, FORELOOP_ERROR_VALUE,
                             "a window's stride of %zu tokens must not exceed its %zu content tokens",
                             pooling->window_stride, pooling->window_length - special);
    return FORELOOP_OK;
}

foreloop_status foreloop_transformer_choose(foreloop_kernel_choice *choice, const foreloop_options *options,
                                            foreloop_error *error) {
    if (options->tier < FORELOOP_TIER_BEST || options->tier > FORELOOP_TIER_AVX512)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_options: there is no tier %d",
                             (int)options->tier);
    if (options->precision < FORELOOP_PRECISION_F32 || options->precision > FORELOOP_PRECISION_INT8_ROW)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_options: there is no precision %d",
                             (int)options->precision);
    const foreloop_cpu_limits limits = {options->tier, options->cpu_features_off, options->use_amx != 0};
    const unsigned features = foreloop_cpu_choose(&limits);
    *choice = (foreloop_kernel_choice){foreloop_cpu_features_tier(features), options->precision, features};
    return FORELOOP_OK;
}

static foreloop_status fill(foreloop_transformer *transformer, const foreloop_kernel_choice *choice,
                            const foreloop_transformer_config *config, const foreloop_safetensors *weights,
                            const char *name_prefix, const foreloop_pooling *pooling, foreloop_error *error) {
    const size_t vocabulary_size = foreloop_tokenizer_vocabulary_size(transformer->tokenizer);
    if (vocabulary_size > config->vocabulary_size)
        return foreloop_fail(error, FORELOOP_ERROR_MISMATCH,
                             "the tokenizer has %zu ids, but the encoder's vocab_size is %zu", vocabulary_size,
                             config->vocabulary_size);
    FORELOOP_TRY(foreloop_transformer_weights_load(&transformer->weights, config, weights, name_prefix, choice,
                                                   &transformer->allocator, error));
    FORELOOP_TRY(read_special(transformer, error));
    transformer->pooling = *pooling;
    transformer->pooling.projection = transformer->pooling.projection_bias = NULL;
    transformer->tensors = weights;
    transformer->name_prefix = name_prefix;
    FORELOOP_TRY(complete_window(transformer, error));
    if (!pooling->projection_size)
        return FORELOOP_OK;
    return foreloop_linear_weights_pack(&transformer->projection, NULL, pooling->projection, pooling->projection_bias,
                                        config->hidden_size, pooling->projection_size,
                                        &transformer->weights.kernels.linear[FORELOOP_PRECISION_F32],
                                        &transformer->allocator, error);
}

foreloop_status foreloop_transformer_create(foreloop_transformer **transformer, const foreloop_allocator *allocator,
                                            const foreloop_kernel_choice *choice,
                                            const foreloop_transformer_config *config,
                                            const foreloop_safetensors *weights, const char *name_prefix,
                                            foreloop_tokenizer *tokenizer, const foreloop_pooling *pooling,
                                            foreloop_error *error) {
    foreloop_transformer *result = foreloop_allocate_zeroed(allocator, 1, sizeof *result);
    if (!result)
        return foreloop_fail_memory(error, 1, sizeof *result, "a transformer");
    result->allocator = *allocator;
    result->tokenizer = tokenizer;
    const foreloop_status status = fill(result, choice, config, weights, name_prefix, pooling, error);
    if (status != FORELOOP_OK) {
        result->tokenizer = NULL; /* remains the caller's */
        foreloop_transformer_close(result);
        return status;
    }
    *transformer = result;
    return FORELOOP_OK;
}

void foreloop_transformer_close(foreloop_transformer *transformer) {
    if (!transformer)
        return;
    const foreloop_allocator allocator = transformer->allocator;
    foreloop_tokenizer_close(transformer->tokenizer);
    foreloop_transformer_weights_close(&transformer->weights);
    foreloop_linear_weights_close(&transformer->projection, &allocator);
    foreloop_release(&allocator, transformer->special);
    if (transformer->container.tensors)
        foreloop_safetensors_close(&transformer->container);
    foreloop_file_close(&transformer->file);
    foreloop_release(&allocator, transformer);
}

size_t foreloop_transformer_embedding_size(const foreloop_transformer *transformer) {
    if (!transformer)
        return 0;
    return transformer->pooling.projection_size ? transformer->pooling.projection_size
                                                : transformer->weights.config.hidden_size;
}

size_t foreloop_transformer_hidden_size(const foreloop_transformer *transformer) {
    return transformer ? transformer->weights.config.hidden_size : 0;
}

const foreloop_tokenizer *foreloop_transformer_tokenizer(const foreloop_transformer *transformer) {
    return transformer ? transformer->tokenizer : NULL;
}

static foreloop_status fill_encoder(foreloop_encoder *encoder, foreloop_error *error) {
    const foreloop_transformer *transformer = encoder->transformer;
    const foreloop_allocator *allocator = &transformer->allocator;
    const size_t hidden = transformer->weights.config.hidden_size;
    const foreloop_shares alone = {.count = 1};
    FORELOOP_TRY(foreloop_transformer_scratch_open(&encoder->scratch, &transformer->weights, &alone, error));
    FORELOOP_TRY(foreloop_encoding_create(&encoder->encoding, transformer->tokenizer, error));
    const size_t capacity = encoder->scratch.capacity;
    encoder->ids = foreloop_allocate(allocator, capacity, sizeof *encoder->ids);
    encoder->offsets = foreloop_allocate_zeroed(allocator, capacity + 1, sizeof *encoder->offsets);
    encoder->windows = foreloop_allocate(allocator, capacity, sizeof *encoder->windows);
    encoder->pool = (foreloop_pool){.width = hidden, .sum = foreloop_allocate(allocator, hidden, sizeof(double))};
    encoder->mean = foreloop_allocate(allocator, hidden, sizeof(float));
    if (!encoder->ids || !encoder->offsets || !encoder->windows || !encoder->pool.sum || !encoder->mean)
        return foreloop_fail_memory(error, hidden, sizeof(double), "an encoder");
    return foreloop_reserve(allocator, &encoder->results, &encoder->results_capacity, 0,
                            foreloop_transformer_embedding_size(transformer), sizeof *encoder->results, error);
}

foreloop_status foreloop_encoder_create(foreloop_encoder **encoder, const foreloop_transformer *transformer,
                                        foreloop_error *error) {
    if (!encoder || !transformer)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_encoder_create: an argument is NULL");
    foreloop_encoder *result = foreloop_allocate_zeroed(&transformer->allocator, 1, sizeof *result);
    if (!result)
        return foreloop_fail_memory(error, 1, sizeof *result, "an encoder");
    result->transformer = transformer;
    const foreloop_status status = fill_encoder(result, error);
    if (status != FORELOOP_OK) {
        foreloop_encoder_close(result);
        return status;
    }
    *encoder = result;
    return FORELOOP_OK;
}

void foreloop_encoder_close(foreloop_encoder *encoder) {
    if (!encoder)
        return;
    const foreloop_allocator *allocator = &encoder->transformer->allocator;
    foreloop_transformer_scratch_close(&encoder->scratch, allocator);
    foreloop_encoding_close(encoder->encoding);
    foreloop_release(allocator, encoder->ids);
    foreloop_release(allocator, encoder->offsets);
    foreloop_release(allocator, encoder->windows);
    foreloop_release(allocator, encoder->pool.sum);
    foreloop_release(allocator, encoder->mean);
    foreloop_release(allocator, encoder->results);
    foreloop_release(allocator, encoder);
}

foreloop_status foreloop_encoder_set_parallel(foreloop_encoder *encoder, const foreloop_parallel_for *parallel,
                                              size_t shares, foreloop_error *error) {
    enum { MOST = 4096 };
    if (!encoder || (parallel && !parallel->run))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "encoder_set_parallel: an argument is NULL");
    if (parallel && (shares < 1 || shares > MOST))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "encoder_set_parallel: shares must be from 1 to %d", MOST);
    const foreloop_transformer_weights *weights = &encoder->transformer->weights;
    foreloop_shares chosen = {.count = 1};
    foreloop_transformer_scratch scratch;
    if (parallel)
        chosen = (foreloop_shares){.parallel = *parallel, .count = shares};
    FORELOOP_TRY(foreloop_transformer_scratch_open(&scratch, weights, &chosen, error));
    foreloop_transformer_scratch_close(&encoder->scratch, &weights->allocator);
    encoder->scratch = scratch;
    return FORELOOP_OK;
}

/* ---- Encoding ---- */

/* The pooled vector of the text that was pooled, as the projection and the norm leave it; then on to the next text. */
static void finish_text(foreloop_encoder *encoder) {
    const foreloop_transformer *transformer = encoder->transformer;
    const foreloop_shares alone = {.count = 1};
    const size_t size = foreloop_transformer_embedding_size(transformer);
    float *result = encoder->results + encoder->text * size;
    foreloop_pool_mean(&encoder->pool, encoder->mean);
    if (transformer->pooling.projection_size && encoder->pool.count) {
        const foreloop_linear_call call = {
            .rows = 1, .x = encoder->mean, .epilogue = FORELOOP_EPILOGUE_NONE, .y = result};
        foreloop_linear_weights_run(&transformer->projection, call, NULL, NULL, &alone);
    } else if (transformer->pooling.projection_size) {
        memset(result, 0, size * sizeof *result);
    } else {
        memcpy(result, encoder->mean, size * sizeof *result);
    }
    if (transformer->pooling.normalize)
        foreloop_normalize(result, size);
    foreloop_pool_begin(&encoder->pool);
    encoder->text++;
}

/* Runs the windows that wait and pools them. */
static foreloop_status run_windows(foreloop_encoder *encoder, size_t text_count, foreloop_error *error) {
    foreloop_transformer_scratch *scratch = &encoder->scratch;
    const foreloop_token_batch batch = {
        .ids = encoder->ids, .offsets = encoder->offsets, .count = encoder->window_count};
    const foreloop_status status = foreloop_transformer_forward(&encoder->transformer->weights, scratch, &batch, error);
    if (status != FORELOOP_OK && text_count > 1)
        return foreloop_error_prefix(error, status, "text %zu", encoder->windows[scratch->failed_sequence].text);
    FORELOOP_TRY(status);
    for (size_t i = 0; i < encoder->window_count; i++) {
        const waiting_window *window = &encoder->windows[i];
        while (encoder->text < window->text)
            finish_text(encoder);
        foreloop_pool_add(&encoder->pool, scratch->states + window->first * scratch->state_stride,
                          scratch->state_stride, window->pooled);
    }
    encoder->window_count = 0;
    return FORELOOP_OK;
}

/* Lets a window wait; where there is no room, the others go first. */
static foreloop_status add_window(foreloop_encoder *encoder, size_t text, size_t text_count,
                                  const foreloop_text_window *window, foreloop_error *error) {
    if (encoder->offsets[encoder->window_count] + window->tokens > encoder->scratch.capacity)
        FORELOOP_TRY(run_windows(encoder, text_count, error));
    const size_t begin = encoder->offsets[encoder->window_count];
    foreloop_text_window_ids(encoder->transformer, window, encoder->ids + begin);
    encoder->windows[encoder->window_count++] = (waiting_window){text, begin + window->first, window->pooled};
    encoder->offsets[encoder->window_count] = begin + window->tokens;
    return FORELOOP_OK;
}

static foreloop_status add_text(foreloop_encoder *encoder, size_t index, size_t text_count, const char *text,
                                size_t length, foreloop_error *error) {
    foreloop_text_windows windows;
    foreloop_text_window window;
    FORELOOP_TRY(foreloop_text_windows_open(&windows, encoder->transformer, encoder->encoding, text, length, index,
                                            text_count, error));
    while (foreloop_text_windows_next(&windows, &window))
        FORELOOP_TRY(add_window(encoder, index, text_count, &window, error));
    return FORELOOP_OK;
}

foreloop_status foreloop_encode_texts(foreloop_encoder *encoder, const char *const *texts, const size_t *lengths,
                                      size_t count, float *embeddings, foreloop_error *error) {
    if (!encoder || (count && (!texts || !lengths || !embeddings)))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_encode_texts: an argument is NULL");
    const size_t size = foreloop_transformer_embedding_size(encoder->transformer);
    if (count > SIZE_MAX / sizeof(float) / size)
        return foreloop_fail_memory(error, count, size * sizeof(float), "the embeddings");
    FORELOOP_TRY(foreloop_reserve(&encoder->transformer->allocator, &encoder->results, &encoder->results_capacity, 0,
                                  count * size, sizeof(float), error));
    for (size_t i = 0; i < count; i++)
        if (!texts[i] && lengths[i])
            return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_encode_texts: text %zu is NULL", i);
    encoder->window_count = encoder->text = 0;
    foreloop_pool_begin(&encoder->pool);
    for (size_t i = 0; i < count; i++)
        FORELOOP_TRY(add_text(encoder, i, count, texts[i], lengths[i], error));
    if (encoder->window_count)
        FORELOOP_TRY(run_windows(encoder, count, error));
    while (encoder->text < count)
        finish_text(encoder);
    if (count)
        memcpy(embeddings, encoder->results, count * size * sizeof *embeddings);
    return FORELOOP_OK;
}

foreloop_status foreloop_encode_text(foreloop_encoder *encoder, const char *text, size_t length, float *embedding,
                                     foreloop_error *error) {
    if (!encoder || !embedding || (!text && length))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_encode_text: an argument is NULL");
    return foreloop_encode_texts(encoder, &text, &length, 1, embedding, error);
}

foreloop_status foreloop_encode_ids(foreloop_encoder *encoder, const uint32_t *ids, const uint32_t *types, size_t count,
                                    float *hidden, foreloop_error *error) {
    if (!encoder || (count && (!ids || !hidden)))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_encode_ids: an argument is NULL");
    const foreloop_transformer_scratch *scratch = &encoder->scratch;
    const size_t offsets[2] = {0, count}, width = encoder->pool.width;
    const foreloop_token_batch batch = {.ids = ids, .types = types, .offsets = offsets, .count = 1};
    FORELOOP_TRY(foreloop_transformer_forward(&encoder->transformer->weights, &encoder->scratch, &batch, error));
    for (size_t t = 0; t < count; t++)
        memcpy(hidden + t * width, scratch->states + t * scratch->state_stride, width * sizeof *hidden);
    return FORELOOP_OK;
}
