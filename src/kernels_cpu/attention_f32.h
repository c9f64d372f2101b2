/*
 * Kernel family attention_f32: softmax(scale Q K^T) V of one head of one sequence, every token attending to all.
 *
 * Scores exist for a block of queries and a block of keys at a time; where there are several blocks of keys, maximum
 * and sum run on from block to block. Every number of the result is a function of its own query, the keys and the
 * values: neither the number of queries in a call nor any alignment changes a bit.
 */
#ifndef FORELOOP_KERNELS_CPU_ATTENTION_F32_H
#define FORELOOP_KERNELS_CPU_ATTENTION_F32_H

#include <foreloop/foreloop.h>
#include <stddef.h>

typedef struct foreloop_attention_f32 {
    foreloop_tier tier;
    size_t query_unit; /* queries that make a good share of the work */
    /* Floats of scratch for `count` keys of `width` numbers; rises with count. The scratch is aligned to 64. */
    size_t (*scratch_size)(size_t count, size_t width);
    /* Brings keys and values, [count][stride] with `width` numbers in each row, into the scratch. */
    void (*pack)(float *scratch, const float *keys, const float *values, size_t stride, size_t count, size_t width);
    /* context[rows][stride] from queries[rows][stride], which may be the same, and a scratch so filled. scale > 0. */
    void (*run)(float *context, const float *queries, size_t stride, size_t rows, float *scratch, size_t count,
                size_t width, float scale);
} foreloop_attention_f32;

void foreloop_attention_f32_ref(foreloop_attention_f32 *attention);
void foreloop_attention_f32_avx2(foreloop_attention_f32 *attention);
void foreloop_attention_f32_avx512(foreloop_attention_f32 *attention);

#endif
