/* Objectives: how a file's base score becomes a margin, and how a margin becomes a prediction. The arithmetic follows
 * XGBoost's, in float32, since base margins must agree with its to the bit. */
#include "gbdt/objective.h"
#include <math.h>

static const foreloop_gbdt_objective known_objectives[] = {
    {"reg:squarederror", FORELOOP_LINK_IDENTITY, FORELOOP_TRANSFORM_NONE},
    {"reg:linear", FORELOOP_LINK_IDENTITY, FORELOOP_TRANSFORM_NONE},
    {"reg:squaredlogerror", FORELOOP_LINK_IDENTITY, FORELOOP_TRANSFORM_NONE},
    {"reg:pseudohubererror", FORELOOP_LINK_IDENTITY, FORELOOP_TRANSFORM_NONE},
    {"reg:absoluteerror", FORELOOP_LINK_IDENTITY, FORELOOP_TRANSFORM_NONE},
    {"reg:quantileerror", FORELOOP_LINK_IDENTITY, FORELOOP_TRANSFORM_NONE},
    {"reg:expectileerror", FORELOOP_LINK_GAPS, FORELOOP_TRANSFORM_GAPS},
    {"reg:logistic", FORELOOP_LINK_LOGIT, FORELOOP_TRANSFORM_SIGMOID},
    {"reg:gamma", FORELOOP_LINK_LOG, FORELOOP_TRANSFORM_EXP},
    {"reg:tweedie", FORELOOP_LINK_LOG, FORELOOP_TRANSFORM_EXP},
    {"count:poisson", FORELOOP_LINK_LOG, FORELOOP_TRANSFORM_EXP},
    {"survival:cox", FORELOOP_LINK_LOG, FORELOOP_TRANSFORM_EXP},
    {"survival:aft", FORELOOP_LINK_LOG, FORELOOP_TRANSFORM_EXP},
    {"binary:logistic", FORELOOP_LINK_LOGIT, FORELOOP_TRANSFORM_SIGMOID},
    {"binary:logitraw", FORELOOP_LINK_IDENTITY, FORELOOP_TRANSFORM_NONE},
    {"binary:hinge", FORELOOP_LINK_IDENTITY, FORELOOP_TRANSFORM_STEP},
    {"multi:softmax", FORELOOP_LINK_IDENTITY, FORELOOP_TRANSFORM_CLASS},
    {"multi:softprob", FORELOOP_LINK_IDENTITY, FORELOOP_TRANSFORM_SOFTMAX},
    {"rank:pairwise", FORELOOP_LINK_IDENTITY, FORELOOP_TRANSFORM_NONE},
    {"rank:ndcg", FORELOOP_LINK_IDENTITY, FORELOOP_TRANSFORM_NONE},
    {"rank:map", FORELOOP_LINK_IDENTITY, FORELOOP_TRANSFORM_NONE},
};

static const foreloop_gbdt_objective unknown_objective = {"unknown", FORELOOP_LINK_IDENTITY, FORELOOP_TRANSFORM_NONE};

const foreloop_gbdt_objective *foreloop_gbdt_find_objective(foreloop_text name) {
    for (size_t i = 0; i < sizeof known_objectives / sizeof known_objectives[0]; i++)
        if (foreloop_text_is(name, known_objectives[i].name))
            return &known_objectives[i];
    return NULL;
}

const foreloop_gbdt_objective *foreloop_gbdt_unknown_objective(void) {
    return &unknown_objective;
}

/* Expectiles of rising levels: what an output is above the one before is softplus of its margin, and LEAST_GAP. */
static const float LEAST_GAP = 1e-6f;

static float softplus(float x) {
    return x > 0.0f ? x + log1pf(expf(-x)) : log1pf(expf(x));
}

static float inverse_softplus(float x) {
    x = fmaxf(x, LEAST_GAP);
    return x + logf(-expm1f(-x));
}

bool foreloop_gbdt_base_margin(const foreloop_gbdt_objective *objective, const float *scores, size_t output,
                               float *margin) {
    const float base_score = scores[output];
    float result = base_score;
    if (objective->link == FORELOOP_LINK_LOGIT) {
        if (!(base_score >= 0.0f && base_score <= 1.0f))
            return false;
        /* 0 and 1, from labels that are all equal, are allowed and kept off the poles. */
        const float least = 1e-6f;
        const float inner = fminf(fmaxf(base_score, least), 1.0f - least);
        result = -logf(1.0f / inner - 1.0f);
    } else if (objective->link == FORELOOP_LINK_LOG) {
        if (!(base_score > 0.0f))
            return false;
        result = logf(base_score);
    } else if (objective->link == FORELOOP_LINK_GAPS && output > 0) {
        result = inverse_softplus(base_score - scores[output - 1] - LEAST_GAP);
    }
    if (!isfinite(result))
        return false;
    *margin = result;
    return true;
}

static float sigmoid(float x) {
    /* Bounded so that expf does not overflow; the result is about 3e-39, not 0. */
    return 1.0f / (expf(fminf(-x, 88.7f)) + 1.0f);
}

static void softmax(float *outputs, size_t count) {
    float largest = outputs[0];
    for (size_t i = 1; i < count; i++)
        largest = fmaxf(largest, outputs[i]);
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        outputs[i] = expf(outputs[i] - largest);
        sum += (double)outputs[i];
    }
    for (size_t i = 0; i < count; i++)
        outputs[i] /= (float)sum;
}

void foreloop_gbdt_transform_row(const foreloop_gbdt_objective *objective, float *outputs, size_t count) {
    switch (objective->transform) {
    case FORELOOP_TRANSFORM_SIGMOID:
        for (size_t i = 0; i < count; i++)
            outputs[i] = sigmoid(outputs[i]);
        break;
    case FORELOOP_TRANSFORM_EXP:
        for (size_t i = 0; i < count; i++)
            outputs[i] = expf(outputs[i]);
        break;
    case FORELOOP_TRANSFORM_STEP:
        for (size_t i = 0; i < count; i++)
            outputs[i] = outputs[i] > 0.0f ? 1.0f : 0.0f;
        break;
    case FORELOOP_TRANSFORM_GAPS:
        for (size_t i = 1; i < count; i++)
            outputs[i] = outputs[i - 1] + (LEAST_GAP + softplus(outputs[i]));
        break;
    case FORELOOP_TRANSFORM_SOFTMAX:
        softmax(outputs, count);
        break;
    case FORELOOP_TRANSFORM_NONE:
    case FORELOOP_TRANSFORM_CLASS:
        break;
    }
}
