/* The encoder's forward pass: token ids to last hidden states. */
#ifndef FORELOOP_TRANSFORMER_ENCODER_H
#define FORELOOP_TRANSFORMER_ENCODER_H

#include "transformer/attention.h"
#include "transformer/weights.h"

/* Everything that a forward pass writes. Belongs to one thread. */
typedef struct foreloop_transformer_scratch {
    size_t capacity; /* tokens: as many as there are positions for */
    float *states;   /* [capacity][hidden] */
    float *wide;     /* [capacity][3 hidden or intermediate, the larger] */
    float *context;  /* [capacity][hidden] */
    float *update;   /* [capacity][hidden] */
    foreloop_attention_scratch attention;
} foreloop_transformer_scratch;

foreloop_status foreloop_transformer_scratch_open(foreloop_transformer_scratch *scratch,
                                                  const foreloop_transformer_weights *weights, foreloop_error *error);
void foreloop_transformer_scratch_close(foreloop_transformer_scratch *scratch, const foreloop_allocator *allocator);

/* Runs the encoder over count tokens, all attended to; `types` may be NULL for zeros. The result, scratch->states
 * [count][hidden], stays until the next call. LIMIT when count exceeds the scratch; ARGUMENT for count 0 and for an id
 * or type out of range; VALUE when a state overflows. */
foreloop_status foreloop_transformer_forward(const foreloop_transformer_weights *weights,
                                             foreloop_transformer_scratch *scratch, const uint32_t *ids,
                                             const uint32_t *types, size_t count, foreloop_error *error);

#endif
