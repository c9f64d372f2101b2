/* A candidate's state while it is rolled out action by action: z and the features so far, in memory of the caller. */
#ifndef FORELOOP_TRANSH_ROLLOUT_H
#define FORELOOP_TRANSH_ROLLOUT_H

#include "transh/action.h"
#include "transh/features.h"

/* Behind the struct lie counts[kinds] (uint32_t), z[stride] and features[feature count] (float). */
typedef struct foreloop_state {
    uint64_t fingerprint;
    uint32_t length; /* actions of known kind */
    uint32_t counts[];
} foreloop_state;

/* What a rollout reads, all borrowed. */
typedef struct foreloop_rollout_context {
    const foreloop_vocabulary *vocabulary;
    const foreloop_transition *transition;
    const foreloop_feature_plan *plan;
    const foreloop_actions *actions;
    uint64_t fingerprint;
} foreloop_rollout_context;

size_t foreloop_rollout_state_size(const foreloop_rollout_context *context);
void foreloop_rollout_begin(const foreloop_rollout_context *context, const float *z0, const foreloop_hardware *hardware,
                            foreloop_state *state);
/* `id` must be in the table. */
void foreloop_rollout_step(const foreloop_rollout_context *context, foreloop_state *state, uint32_t id);
const float *foreloop_rollout_latent(const foreloop_rollout_context *context, const foreloop_state *state);
/* Writes the whole vector: features[plan->count]. */
void foreloop_rollout_features(const foreloop_rollout_context *context, const foreloop_state *state, float *features);

#endif
