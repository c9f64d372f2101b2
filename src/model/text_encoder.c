/* Composes tokenizer, encoder, windows and pooling to an encoder of texts. */
#include "model/text_encoder.h"

#include "common/alloc.h"
#include "common/error.h"
#include "transformer/encoder.h"
#include <string.h>

struct foreloop_encoder {
    const foreloop_transformer *transformer;
    foreloop_transformer_scratch scratch;
    foreloop_encoding *encoding;
    uint32_t *ids; /* one window with its special tokens */
    foreloop_pool pool;
    float *mean;      /* [hidden] */
    float *projected; /* [embedding size] */
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

static foreloop_status fill(foreloop_transformer *transformer, const foreloop_transformer_config *config,
                            const foreloop_safetensors *weights, const char *name_prefix,
                            const foreloop_pooling *pooling, foreloop_error *error) {
    const size_t vocabulary_size = foreloop_tokenizer_vocabulary_size(transformer->tokenizer);
    if (vocabulary_size > config->vocabulary_size)
        return foreloop_fail(error, FORELOOP_ERROR_MISMATCH,
                             "the tokenizer has %zu ids, but the encoder's vocab_size is %zu", vocabulary_size,
                             config->vocabulary_size);
    FORELOOP_TRY(foreloop_transformer_weights_load(&transformer->weights, config, weights, name_prefix,
                                                   &transformer->allocator, error));
    FORELOOP_TRY(read_special(transformer, error));
    transformer->pooling = *pooling;
    transformer->pooling.projection = transformer->pooling.projection_bias = NULL;
    FORELOOP_TRY(complete_window(transformer, error));
    if (!pooling->projection_size)
        return FORELOOP_OK;
    return foreloop_linear_weights_pack(&transformer->projection, pooling->projection, pooling->projection_bias,
                                        config->hidden_size, pooling->projection_size, &transformer->weights.kernels,
                                        &transformer->allocator, error);
}

foreloop_status foreloop_transformer_create(foreloop_transformer **transformer, const foreloop_allocator *allocator,
                                            const foreloop_transformer_config *config,
                                            const foreloop_safetensors *weights, const char *name_prefix,
                                            foreloop_tokenizer *tokenizer, const foreloop_pooling *pooling,
                                            foreloop_error *error) {
    foreloop_transformer *result = foreloop_allocate_zeroed(allocator, 1, sizeof *result);
    if (!result)
        return foreloop_fail_memory(error, 1, sizeof *result, "a transformer");
    result->allocator = *allocator;
    result->tokenizer = tokenizer;
    const foreloop_status status = fill(result, config, weights, name_prefix, pooling, error);
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
    const size_t embedding_size = foreloop_transformer_embedding_size(transformer);
    FORELOOP_TRY(foreloop_transformer_scratch_open(&encoder->scratch, &transformer->weights, error));
    FORELOOP_TRY(foreloop_encoding_create(&encoder->encoding, transformer->tokenizer, error));
    encoder->ids = foreloop_allocate(allocator, transformer->pooling.window_length, sizeof *encoder->ids);
    encoder->pool = (foreloop_pool){.width = hidden, .sum = foreloop_allocate(allocator, hidden, sizeof(double))};
    encoder->mean = foreloop_allocate(allocator, hidden, sizeof(float));
    encoder->projected = foreloop_allocate(allocator, embedding_size, sizeof(float));
    if (!encoder->ids || !encoder->pool.sum || !encoder->mean || !encoder->projected)
        return foreloop_fail_memory(error, hidden, sizeof(double), "an encoder");
    return FORELOOP_OK;
}

foreloop_status foreloop_encoder_create(foreloop_encoder **encoder, const foreloop_transformer *transformer,
                                        foreloop_error *error) {
    if (!encoder || !transformer)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "the encoder or its transformer is NULL");
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
    foreloop_release(allocator, encoder->pool.sum);
    foreloop_release(allocator, encoder->mean);
    foreloop_release(allocator, encoder->projected);
    foreloop_release(allocator, encoder);
}

/* Runs one window of content tokens, wrapped in the special ones, and adds what is pooled of it. */
static foreloop_status add_window(foreloop_encoder *encoder, const uint32_t *content, size_t length,
                                  foreloop_error *error) {
    const foreloop_transformer *transformer = encoder->transformer;
    const foreloop_pooling *pooling = &transformer->pooling;
    const size_t prefix = transformer->prefix_count, suffix = transformer->suffix_count;
    const size_t count = prefix + length + suffix;
    size_t first = prefix, pooled = length; /* the pooled tokens */
    if (pooling->mode == FORELOOP_POOLING_FIRST) {
        first = 0;
        pooled = count ? 1 : 0;
    } else if (pooling->include_special) {
        first = 0;
        pooled = count;
    }
    if (!pooled)
        return FORELOOP_OK;
    memcpy(encoder->ids, transformer->special, prefix * sizeof *content);
    if (length)
        memcpy(encoder->ids + prefix, content, length * sizeof *content);
    memcpy(encoder->ids + prefix + length, transformer->special + prefix, suffix * sizeof *content);
    FORELOOP_TRY(
        foreloop_transformer_forward(&transformer->weights, &encoder->scratch, encoder->ids, NULL, count, error));
    foreloop_pool_add(&encoder->pool, encoder->scratch.states + first * encoder->pool.width, pooled);
    return FORELOOP_OK;
}

/* The pooled vector as the projection and the norm leave it, in encoder->projected. */
static void finish(foreloop_encoder *encoder) {
    const foreloop_transformer *transformer = encoder->transformer;
    const foreloop_linear_weights *projection = &transformer->projection;
    const size_t size = foreloop_transformer_embedding_size(transformer);
    foreloop_pool_mean(&encoder->pool, encoder->mean);
    if (transformer->pooling.projection_size && encoder->pool.count)
        transformer->weights.kernels.linear.run(encoder->projected, size, encoder->mean, projection->in,
                                                projection->packed, projection->bias, 1, projection->in, size);
    else if (transformer->pooling.projection_size)
        memset(encoder->projected, 0, size * sizeof *encoder->projected);
    else
        memcpy(encoder->projected, encoder->mean, size * sizeof *encoder->projected);
    if (transformer->pooling.normalize)
        foreloop_normalize(encoder->projected, size);
}

foreloop_status foreloop_encode_text(foreloop_encoder *encoder, const char *text, size_t length, float *embedding,
                                     foreloop_error *error) {
    if (!encoder || !embedding || (!text && length))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "the encoder, the text or the embedding is NULL");
    const foreloop_transformer *transformer = encoder->transformer;
    const foreloop_pooling *pooling = &transformer->pooling;
    FORELOOP_TRY(foreloop_tokenize(encoder->encoding, text, length, 0, error));
    const uint32_t *ids = foreloop_encoding_ids(encoder->encoding);
    const size_t count = foreloop_encoding_count(encoder->encoding);
    const size_t content = pooling->window_length - transformer->prefix_count - transformer->suffix_count;
    const size_t windows = pooling->truncate ? 1 : foreloop_window_count(count, content, pooling->window_stride);
    foreloop_pool_begin(&encoder->pool);
    for (size_t i = 0; i < windows; i++) {
        size_t first, size;
        foreloop_window_at(count, content, pooling->window_stride, i, &first, &size);
        FORELOOP_TRY(add_window(encoder, size ? ids + first : NULL, size, error));
    }
    finish(encoder);
    memcpy(embedding, encoder->projected, foreloop_transformer_embedding_size(transformer) * sizeof *embedding);
    return FORELOOP_OK;
}

foreloop_status foreloop_encode_ids(foreloop_encoder *encoder, const uint32_t *ids, const uint32_t *types, size_t count,
                                    float *hidden, foreloop_error *error) {
    if (!encoder || (count && (!ids || !hidden)))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "the encoder, the ids or the hidden states are NULL");
    FORELOOP_TRY(
        foreloop_transformer_forward(&encoder->transformer->weights, &encoder->scratch, ids, types, count, error));
    memcpy(hidden, encoder->scratch.states, count * encoder->pool.width * sizeof *hidden);
    return FORELOOP_OK;
}
