/* The open model: all parts of a bundle, checked against each other. */
#ifndef FORELOOP_MODEL_MODEL_H
#define FORELOOP_MODEL_MODEL_H

#include "kernels_cpu/kernels.h"
#include "model/bundle.h"
#include "model/manifest.h"
#include "transh/rollout.h"

struct foreloop_model {
    foreloop_allocator allocator;
    foreloop_bundle bundle;
    uint64_t fingerprint;
    foreloop_kernel_choice kernels;
    foreloop_manifest manifest;
    char *manifest_text; /* terminated copy of model.json */
    foreloop_transformer *transformer;
    foreloop_transition transition;
    foreloop_gbdt *gbdt;
    foreloop_gbdt_info gbdt_info;
    uint32_t *ranker_columns; /* [gbdt_info.feature_count]: the feature of the plan that each column of the ranker is */
    unsigned char *ranker_reads; /* [gbdt_info.feature_count]: 1 for columns that a tree reads */
    foreloop_rollout_plan rollout;
};

#endif
