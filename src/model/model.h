/* The open model: all parts of a bundle, checked against each other. */
#ifndef FORELOOP_MODEL_MODEL_H
#define FORELOOP_MODEL_MODEL_H

#include "kernels_cpu/kernels.h"
#include "model/bundle.h"
#include "model/manifest.h"
#include "score_network/score_network.h"
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
    bool has_network;
    foreloop_score_network network; /* zero where there is none */
    foreloop_rollout_plan rollout;
};

/* Marks the features of the plan, known[plan.count], that the model's own trees or its network read. */
void foreloop_model_mark_read(const foreloop_model *model, unsigned char *known);

/* Checks that a ranker can score this model's features, and finds the feature of the plan that each of its columns is,
 * in memory of the model's allocator. `file` names it in messages. */
foreloop_status foreloop_model_match_ranker(const foreloop_model *model, const foreloop_gbdt *gbdt, const char *file,
                                            uint32_t **columns, foreloop_error *error);

#endif
