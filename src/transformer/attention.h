/* Multi-head self-attention over one sequence, every token attending to all. */
#ifndef FORELOOP_TRANSFORMER_ATTENTION_H
#define FORELOOP_TRANSFORMER_ATTENTION_H

#include "kernels_cpu/kernels.h"
#include <stddef.h>

/* Queries that are handled together: a block's scores stay in the second-level cache. */
enum { FORELOOP_ATTENTION_BLOCK = 32 };

typedef struct foreloop_attention_scratch {
    float *keys;   /* one head's keys, packed: kernels.linear.packed_size(head width, count) */
    float *values; /* one head's values, packed: kernels.linear.packed_size(count, head width) */
    float *scores; /* [FORELOOP_ATTENTION_BLOCK][count] */
} foreloop_attention_scratch;

/* context[count][hidden] from query_key_value[count][3 hidden], hidden = heads x head_width. */
void foreloop_transformer_attention(const foreloop_kernels *kernels, const foreloop_attention_scratch *scratch,
                                    const float *query_key_value, size_t count, size_t heads, size_t head_width,
                                    float *context);

#endif
