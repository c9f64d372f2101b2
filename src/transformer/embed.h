/* The encoder's input: word, position and token-type embeddings of each token, summed. */
#ifndef FORELOOP_TRANSFORMER_EMBED_H
#define FORELOOP_TRANSFORMER_EMBED_H

#include "common/internal_api.h"
#include "transformer/weights.h"

/* LIMIT for a sequence longer than the positions, ARGUMENT for an empty one. */
FORELOOP_INTERNAL_API foreloop_status foreloop_transformer_check_length(const foreloop_transformer_config *config,
                                                                        size_t count, foreloop_error *error);
/* ARGUMENT for an id or a type (`types` may be NULL) out of range. */
FORELOOP_INTERNAL_API foreloop_status foreloop_transformer_check_tokens(const foreloop_transformer_config *config,
                                                                        const uint32_t *ids, const uint32_t *types,
                                                                        size_t count, foreloop_error *error);

/* states[count][stride], hidden_size numbers in each row. `types` may be NULL for zeros; count is 1 to the
 * configuration's maximum. ARGUMENT for an id or a type out of range. */
foreloop_status foreloop_transformer_embed(const foreloop_transformer_weights *weights, const uint32_t *ids,
                                           const uint32_t *types, size_t count, float *states, size_t stride,
                                           foreloop_error *error);

#endif
