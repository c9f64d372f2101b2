/* Looks up the embeddings of a sequence. */
#include "transformer/embed.h"

#include "common/error.h"
#include "transformer/tensors.h"

foreloop_status foreloop_transformer_check_length(const foreloop_transformer_config *config, size_t count,
                                                  foreloop_error *error) {
    const size_t longest = foreloop_transformer_config_max_length(config);
    if (count == 0)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "a sequence must have at least one token");
    if (count > longest)
        return foreloop_fail(error, FORELOOP_ERROR_LIMIT,
                             "the sequence has %zu tokens, but the encoder has positions for %zu; cut it in windows",
                             count, longest);
    return FORELOOP_OK;
}

foreloop_status foreloop_transformer_check_tokens(const foreloop_transformer_config *config, const uint32_t *ids,
                                                  const uint32_t *types, size_t count, foreloop_error *error) {
    for (size_t t = 0; t < count; t++) {
        if (ids[t] >= config->vocabulary_size)
            return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "token %zu has id %lu, but the encoder knows %zu ids",
                                 t, (unsigned long)ids[t], config->vocabulary_size);
        if (types && types[t] >= config->type_count)
            return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                                 "token %zu has type %lu, but the encoder knows %zu types", t, (unsigned long)types[t],
                                 config->type_count);
    }
    return FORELOOP_OK;
}

foreloop_status foreloop_transformer_embed(const foreloop_transformer_weights *weights, const uint32_t *ids,
                                           const uint32_t *types, size_t count, float *states, size_t stride,
                                           foreloop_error *error) {
    const foreloop_transformer_config *config = &weights->config;
    const size_t hidden = config->hidden_size;
    FORELOOP_TRY(foreloop_transformer_check_tokens(config, ids, types, count, error));
    size_t next_position = config->position_offset;
    for (size_t t = 0; t < count; t++) {
        float *state = states + t * stride;
        const float *position =
            weights->positions + foreloop_transformer_position(config, ids[t], &next_position) * hidden;
        const float *type = weights->types + (types ? types[t] : 0) * hidden;
        FORELOOP_TRY(foreloop_tensor_row(&weights->words, ids[t], false, state, error));
        for (size_t i = 0; i < hidden; i++)
            state[i] = (state[i] + type[i]) + position[i];
    }
    return FORELOOP_OK;
}
