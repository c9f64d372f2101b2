/* Windows over tokens and the pooling of their states; the rule stands in the header. */
#include "transformer/window_pool.h"

#include <math.h>

size_t foreloop_window_count(size_t count, size_t content, size_t stride) {
    if (count <= content)
        return 1;
    const size_t rest = count - content;
    return 1 + rest / stride + (rest % stride != 0);
}

void foreloop_window_at(size_t count, size_t content, size_t stride, size_t index, size_t *first, size_t *length) {
    *first = index * stride;
    *length = count - *first < content ? count - *first : content;
}

void foreloop_pool_begin(foreloop_pool *pool) {
    pool->count = 0;
    for (size_t i = 0; i < pool->width; i++)
        pool->sum[i] = 0.0;
}

void foreloop_pool_add(foreloop_pool *pool, const float *states, size_t stride, size_t count) {
    pool->count += count;
    for (size_t t = 0; t < count; t++)
        for (size_t i = 0; i < pool->width; i++)
            pool->sum[i] += states[t * stride + i];
}

void foreloop_pool_mean(const foreloop_pool *pool, float *mean) {
    for (size_t i = 0; i < pool->width; i++)
        mean[i] = pool->count ? (float)(pool->sum[i] / (double)pool->count) : 0.0f;
}

void foreloop_normalize(float *values, size_t count) {
    double squares = 0.0;
    for (size_t i = 0; i < count; i++)
        squares += (double)values[i] * values[i];
    const double norm = sqrt(squares), scale = 1.0 / (norm > 1e-12 ? norm : 1e-12);
    for (size_t i = 0; i < count; i++)
        values[i] = (float)(values[i] * scale);
}
