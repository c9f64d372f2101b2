/* Multi-head self-attention over sequences that lie one behind the other, every token attending to all of its own. */
#ifndef FORELOOP_TRANSFORMER_ATTENTION_H
#define FORELOOP_TRANSFORMER_ATTENTION_H

#include "common/shares.h"
#include "kernels_cpu/attention_f32.h"
#include <stddef.h>

typedef struct foreloop_attention_call {
    /* Rows of query, key and value, `hidden` numbers each. The context takes the queries' place. */
    float *query_key_value;
    size_t stride; /* of a row */
    size_t heads, head_width;
    const size_t *offsets; /* [sequences + 1]: where a sequence's rows begin */
    size_t sequences;
    float *scratch; /* for each share scratch_stride floats, enough for the longest sequence; aligned to 64 */
    size_t scratch_stride;
} foreloop_attention_call;

void foreloop_transformer_attention(const foreloop_attention_f32 *kernel, const foreloop_attention_call *call,
                                    const foreloop_shares *shares);

#endif
