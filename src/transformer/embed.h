/* The encoder's input: word, position and token-type embeddings of each token, summed. */
#ifndef FORELOOP_TRANSFORMER_EMBED_H
#define FORELOOP_TRANSFORMER_EMBED_H

#include "transformer/weights.h"

/* states[count][stride], hidden_size numbers in each row. `types` may be NULL for zeros; count is 1 to the
 * configuration's maximum. ARGUMENT for an id or a type out of range. */
foreloop_status foreloop_transformer_embed(const foreloop_transformer_weights *weights, const uint32_t *ids,
                                           const uint32_t *types, size_t count, float *states, size_t stride,
                                           foreloop_error *error);

#endif
