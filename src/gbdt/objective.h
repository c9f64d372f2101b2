/* Objectives: how a file's base score becomes a margin, and how a margin becomes a prediction. */
#ifndef FORELOOP_GBDT_OBJECTIVE_H
#define FORELOOP_GBDT_OBJECTIVE_H

#include "common/json.h"
#include <stdbool.h>
#include <stddef.h>

typedef enum foreloop_gbdt_link {
    FORELOOP_LINK_IDENTITY,
    FORELOOP_LINK_LOGIT,
    FORELOOP_LINK_LOG,
    FORELOOP_LINK_GAPS /* the inverse of FORELOOP_TRANSFORM_GAPS */
} foreloop_gbdt_link;

typedef enum foreloop_gbdt_transform {
    FORELOOP_TRANSFORM_NONE,
    FORELOOP_TRANSFORM_SIGMOID,
    FORELOOP_TRANSFORM_EXP,
    FORELOOP_TRANSFORM_STEP,    /* 1 above 0, else 0 */
    FORELOOP_TRANSFORM_SOFTMAX, /* over a row's outputs */
    FORELOOP_TRANSFORM_GAPS,    /* from the second output on: softplus of it, and more, above the one before */
    FORELOOP_TRANSFORM_CLASS    /* the number of a row's largest output, the first among equals */
} foreloop_gbdt_transform;

typedef struct foreloop_gbdt_objective {
    const char *name;
    foreloop_gbdt_link link; /* of the base score, which files hold in the space of predictions */
    foreloop_gbdt_transform transform;
} foreloop_gbdt_objective;

/* NULL when the name is not known. */
const foreloop_gbdt_objective *foreloop_gbdt_find_objective(foreloop_text name);
/* Of a dump for which the caller names none: margins stay as they are. */
const foreloop_gbdt_objective *foreloop_gbdt_unknown_objective(void);

/* The base margin of one output; scores[output_count] are the file's base scores. False when the objective does not
 * allow this one. */
bool foreloop_gbdt_base_margin(const foreloop_gbdt_objective *objective, const float *scores, size_t output,
                               float *margin);

/* Transforms one row of margins in place; FORELOOP_TRANSFORM_CLASS is not for here, since it changes the count. */
void foreloop_gbdt_transform_row(const foreloop_gbdt_objective *objective, float *outputs, size_t count);

#endif
