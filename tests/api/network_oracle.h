/* The score network as weights/FORMAT.md has it, from the bundle's tensors: what scores of the library are held to. */
#ifndef FORELOOP_TESTS_API_NETWORK_ORACLE_H
#define FORELOOP_TESTS_API_NETWORK_ORACLE_H

#include "model/model.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The numbers of a tensor, to be freed; NULL when there is none. */
static float *oracle_tensor(const foreloop_model *model, const char *name, size_t *rows) {
    const foreloop_tensor *tensor =
        foreloop_safetensors_find_part(model->bundle.weights[FORELOOP_BUNDLE_SCORE_NETWORK],
                                       model->bundle.prefixes[FORELOOP_BUNDLE_SCORE_NETWORK], name);
    float *values = tensor ? malloc(tensor->count * sizeof *values) : NULL;
    if (values && foreloop_tensor_to_float(tensor, true, values, NULL) != FORELOOP_OK)
        exit(99);
    if (values)
        *rows = tensor->shape[0];
    return values;
}

/* score <- score + the output of the model's network for its features; the score alone where there is no network. */
static float oracle_score(const foreloop_model *model, float score, const float *features) {
    static float x[2][8192];
    float last = 0;
    size_t in = 0, out = 0;
    if (!model->bundle.weights[FORELOOP_BUNDLE_SCORE_NETWORK])
        return score;
    float *scale = oracle_tensor(model, "scale", &in), *shift = oracle_tensor(model, "shift", &in);
    float *limit = oracle_tensor(model, "limit", &out), *weight, *bias;
    char name[32];
    if (!scale || !shift || !limit || in > 8192)
        exit(99);
    for (size_t i = 0; i < in; i++) {
        const float moved = features[i] - shift[i], scaled = moved * scale[i];
        x[0][i] = scaled > -limit[0] ? scaled < limit[0] ? scaled : limit[0] : -limit[0];
    }
    for (size_t layer = 0;; layer++) {
        snprintf(name, sizeof name, "%zu.weight", layer);
        weight = oracle_tensor(model, name, &out);
        if (!weight)
            break;
        snprintf(name, sizeof name, "%zu.bias", layer);
        bias = oracle_tensor(model, name, &out);
        const float *inputs = x[layer % 2];
        float *outputs = x[1 - layer % 2];
        for (size_t o = 0; o < out; o++) {
            float sum = bias[o];
            for (size_t i = 0; i < in; i++)
                if (layer > 0 || scale[i] != 0)
                    sum = fmaf(weight[o * in + i], inputs[i], sum);
            outputs[o] = sum > 0 ? sum : 0;
            last = sum;
        }
        in = out;
        free(weight);
        free(bias);
    }
    free(scale);
    free(shift);
    free(limit);
    return score + last; /* no relu behind the last layer */
}

#endif
