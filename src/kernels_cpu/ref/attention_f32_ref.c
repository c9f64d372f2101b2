/* attention_f32, reference: one query at a time, with all its scores in a row. The maximum is taken out first, so that
 * no exponential overflows and the sum is at least 1. */
#include "kernels_cpu/attention_f32.h"

#include <math.h>
#include <string.h>

/* Scratch: keys [width][count], values [count][width], scores [count]. */
static size_t scratch_size(size_t count, size_t width) {
    return (2 * width + 1) * count;
}

static void pack(float *scratch, const float *keys, const float *values, size_t stride, size_t count, size_t width) {
    float *own_values = scratch + width * count;
    for (size_t c = 0; c < count; c++)
        for (size_t i = 0; i < width; i++) {
            scratch[i * count + c] = keys[c * stride + i];
            own_values[c * width + i] = values[c * stride + i];
        }
}

static void softmax(float *x, size_t count, float scale) {
    float maximum = x[0];
    for (size_t c = 1; c < count; c++)
        maximum = x[c] > maximum ? x[c] : maximum;
    double sum = 0.0;
    for (size_t c = 0; c < count; c++) {
        x[c] = expf((x[c] - maximum) * scale);
        sum += x[c];
    }
    const float inverse = (float)(1.0 / sum);
    for (size_t c = 0; c < count; c++)
        x[c] *= inverse;
}

static void run(float *context, const float *queries, size_t stride, size_t rows, float *scratch, size_t count,
                size_t width, float scale) {
    const float *keys = scratch, *values = scratch + width * count;
    float *scores = scratch + 2 * width * count;
    for (size_t r = 0; r < rows; r++) {
        const float *query = queries + r * stride;
        memset(scores, 0, count * sizeof *scores);
        for (size_t i = 0; i < width; i++)
            for (size_t c = 0; c < count; c++)
                scores[c] += query[i] * keys[i * count + c];
        softmax(scores, count, scale);
        float *out = context + r * stride;
        memset(out, 0, width * sizeof *out);
        for (size_t c = 0; c < count; c++)
            for (size_t i = 0; i < width; i++)
                out[i] += scores[c] * values[c * width + i];
    }
}

void foreloop_attention_f32_ref(foreloop_attention_f32 *attention) {
    *attention = (foreloop_attention_f32){
        .tier = FORELOOP_TIER_REF, .query_unit = 16, .scratch_size = scratch_size, .pack = pack, .run = run};
}
