/*
 * From a text's tokens to one vector: windows over the tokens, pooling of their hidden states, projection,
 * normalisation.
 *
 * The rule, which training must follow too:
 *
 *   1. The text is tokenised without special tokens: n content tokens. `prefix` and `suffix` are the ids that the
 *      tokenizer's post-processor puts before and behind a text (<s> and </s>, [CLS] and [SEP]), s of them together.
 *   2. A window holds at most c = window_length - s content tokens. With n <= c there is one window, all of the text
 *      (also with n = 0). Otherwise there are 1 + ceil((n - c) / stride) windows, and window k holds the content
 *      tokens from k x stride up to, not including, min(k x stride + c, n): the last one ends at the text's end. With
 *      `truncate` there is one window in any case, the first.
 *   3. The encoder runs over prefix + window + suffix, token types 0, all attended to.
 *   4. Pooled tokens are the window's content tokens; with `include_special` also prefix and suffix; in mode FIRST only
 *      the first token of prefix + window + suffix. The text's vector is the sum of the hidden states of the pooled
 *      tokens of all windows, divided by their number: the mean of the windows' means, weighted by their tokens, where
 *      a token in two windows counts in each. Sums run in double, in order of windows and tokens.
 *   5. A text without a token to pool gives the zero vector, and step 6 is left out.
 *   6. With a projection, v becomes P v + b. With `normalize`, v is divided by max(its L2 norm, 1e-12).
 */
#ifndef FORELOOP_TRANSFORMER_WINDOW_POOL_H
#define FORELOOP_TRANSFORMER_WINDOW_POOL_H

#include "common/safetensors.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum foreloop_pooling_mode {
    FORELOOP_POOLING_MEAN,
    FORELOOP_POOLING_FIRST /* of each window: the [CLS] or <s> token */
} foreloop_pooling_mode;

typedef struct foreloop_pooling {
    foreloop_pooling_mode mode;
    size_t window_length; /* tokens, special ones included; 0: as many as the encoder has positions for */
    size_t window_stride; /* content tokens, 1 to c; 0: c, windows without overlap */
    bool truncate;
    bool include_special;
    bool normalize;
    size_t projection_size;       /* rows of the projection; 0: none */
    const float *projection;      /* [projection_size][hidden] */
    const float *projection_bias; /* [projection_size], or NULL for zeros */
} foreloop_pooling;

/* Windows of at most `content` tokens, stepping by `stride` (1 to content), over `count` tokens: how many, and where
 * number `index` lies. */
size_t foreloop_window_count(size_t count, size_t content, size_t stride);
void foreloop_window_at(size_t count, size_t content, size_t stride, size_t index, size_t *first, size_t *length);

/* A sum of hidden states. */
typedef struct foreloop_pool {
    size_t width;
    size_t count; /* tokens summed so far */
    double *sum;  /* [width] */
} foreloop_pool;
void foreloop_pool_begin(foreloop_pool *pool);
/* `count` rows, `stride` apart. */
void foreloop_pool_add(foreloop_pool *pool, const float *states, size_t stride, size_t count);
/* mean[width]; zeros when nothing was added. */
void foreloop_pool_mean(const foreloop_pool *pool, float *mean);

/* Divides by max(L2 norm, 1e-12). */
void foreloop_normalize(float *values, size_t count);

#endif
