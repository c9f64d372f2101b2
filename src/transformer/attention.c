/* Self-attention as two matrix products a head, by the same kernel as the linear layers. */
#include "transformer/attention.h"

#include <math.h>

void foreloop_transformer_attention(const foreloop_kernels *kernels, const foreloop_attention_scratch *scratch,
                                    const float *query_key_value, size_t count, size_t heads, size_t head_width,
                                    float *context) {
    const foreloop_linear_f32 *linear = &kernels->linear;
    const size_t hidden = heads * head_width, stride = 3 * hidden;
    const float scale = (float)(1.0 / sqrt((double)head_width));
    for (size_t head = 0; head < heads; head++) {
        const float *queries = query_key_value + head * head_width;
        const float *keys = queries + hidden, *values = keys + hidden;
        linear->pack(scratch->keys, keys, stride, 1, head_width, count);
        linear->pack(scratch->values, values, 1, stride, count, head_width);
        for (size_t first = 0; first < count; first += FORELOOP_ATTENTION_BLOCK) {
            const size_t rows = count - first < FORELOOP_ATTENTION_BLOCK ? count - first : FORELOOP_ATTENTION_BLOCK;
            linear->run(scratch->scores, count, queries + first * stride, stride, scratch->keys, NULL, rows, head_width,
                        count);
            kernels->softmax(scratch->scores, count, rows, count, scale);
            linear->run(context + first * hidden + head * head_width, hidden, scratch->scores, count, scratch->values,
                        NULL, rows, count, head_width);
        }
    }
}
