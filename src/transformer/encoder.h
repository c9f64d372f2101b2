/* The encoder's forward pass: token ids to last hidden states. */
#ifndef FORELOOP_TRANSFORMER_ENCODER_H
#define FORELOOP_TRANSFORMER_ENCODER_H

#include "common/shares.h"
#include "transformer/weights.h"

/* Sequences, one behind the other: number s is ids[offsets[s]] to ids[offsets[s + 1] - 1]. */
typedef struct foreloop_token_batch {
    const uint32_t *ids;
    const uint32_t *types; /* NULL: zeros */
    const size_t *offsets; /* [count + 1], offsets[0] is 0 */
    size_t count;
} foreloop_token_batch;

/* Everything that a forward pass writes. Belongs to one thread, and to the shares that it lends it to. */
typedef struct foreloop_transformer_scratch {
    foreloop_shares shares;
    size_t capacity; /* tokens of a batch: as many as there are positions for */
    float *states;   /* [capacity][state_stride] */
    size_t state_stride;
    float *wide; /* query, key and value of all tokens, or the intermediate states of some of them */
    size_t attention_stride, intermediate_stride;
    size_t intermediate_rows; /* tokens that pass through the intermediate layer together */
    float *attention;         /* one for each share */
    size_t attention_size;
    void *prepared; /* of the linear layers */
    int32_t *fine;  /* [capacity] of foreloop_fine_rows: the rows of short sequences */
    float *fine_memory;
    size_t failed_sequence; /* after a failure: which sequence of the batch it is about */
} foreloop_transformer_scratch;

/* `shares` is copied; it cuts every step's work. */
foreloop_status foreloop_transformer_scratch_open(foreloop_transformer_scratch *scratch,
                                                  const foreloop_transformer_weights *weights,
                                                  const foreloop_shares *shares, foreloop_error *error);
void foreloop_transformer_scratch_close(foreloop_transformer_scratch *scratch, const foreloop_allocator *allocator);

/* Runs the encoder over the batch, each sequence's tokens attending to all of it; a sequence's states have the same
 * bits in every batch and for every number of shares. The result, scratch->states [tokens][state_stride] with
 * hidden_size numbers in each row, stays until the next call. LIMIT when a sequence exceeds the positions or the batch
 * the scratch; ARGUMENT for an empty sequence and for an id or type out of range; VALUE when a state overflows. */
foreloop_status foreloop_transformer_forward(const foreloop_transformer_weights *weights,
                                             foreloop_transformer_scratch *scratch, const foreloop_token_batch *batch,
                                             foreloop_error *error);

#endif
