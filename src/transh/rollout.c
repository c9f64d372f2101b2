/*
 * The direct form of the rollout, O(d) a step: the oracle of faster forms.
 *
 *     z_t = z_{t-1} - beta_r (w_r . z_{t-1}) w_r + d_a          (arXiv 2606.09312, TransH transition)
 *
 * The features that actions feed are kept up to date in the state; those of z are copied at the end.
 */
#include "transh/rollout.h"
#include "kernels_cpu/transh_f32.h"
#include <string.h>

static float *state_latent(const foreloop_rollout_context *context, foreloop_state *state) {
    return (float *)(state->counts + context->vocabulary->kind_count);
}

static float *state_features(const foreloop_rollout_context *context, foreloop_state *state) {
    return state_latent(context, state) + context->transition->stride;
}

size_t foreloop_rollout_state_size(const foreloop_rollout_context *context) {
    size_t numbers = context->vocabulary->kind_count + context->transition->stride + context->plan->count;
    return (sizeof(foreloop_state) + numbers * 4 + 15) / 16 * 16;
}

void foreloop_rollout_begin(const foreloop_rollout_context *context, const float *z0, const foreloop_hardware *hardware,
                            foreloop_state *state) {
    memset(state, 0, foreloop_rollout_state_size(context));
    state->fingerprint = context->fingerprint;
    memcpy(state_latent(context, state), z0, context->transition->size * sizeof *z0);
    const foreloop_feature_plan *plan = context->plan;
    float *features = state_features(context, state);
    for (size_t i = plan->latent_end; i < plan->count; i++)
        if (plan->updates[i].source == FORELOOP_FEATURE_HARDWARE)
            features[plan->updates[i].position] = (float)foreloop_hardware_field(hardware, plan->updates[i].element);
}

void foreloop_rollout_step(const foreloop_rollout_context *context, foreloop_state *state, uint32_t id) {
    if (id == FORELOOP_ACTION_UNKNOWN)
        return;
    const foreloop_transition *transition = context->transition;
    uint32_t kind = context->actions->kinds[id];
    foreloop_transh_step_f32_ref(state_latent(context, state), transition->normal + kind * transition->stride,
                                 transition->beta[kind], foreloop_action_embedding(context->actions, id),
                                 transition->stride);
    uint32_t occurrence = state->counts[kind]++;
    state->length++;
    const float *phi = foreloop_action_phi(context->actions, id);
    float *features = state_features(context, state);
    const foreloop_feature_plan *plan = context->plan;
    for (size_t i = plan->update_start[kind]; i < plan->update_start[kind + 1]; i++) {
        const foreloop_feature *update = &plan->updates[i];
        float *feature = &features[update->position], value = phi[update->element];
        switch (update->source) {
        case FORELOOP_FEATURE_SUM:
            *feature += value;
            break;
        case FORELOOP_FEATURE_MAX:
            *feature = occurrence == 0 || value > *feature ? value : *feature;
            break;
        case FORELOOP_FEATURE_MIN:
            *feature = occurrence == 0 || value < *feature ? value : *feature;
            break;
        case FORELOOP_FEATURE_FIRST:
            *feature = occurrence == 0 ? value : *feature;
            break;
        case FORELOOP_FEATURE_LAST:
            *feature = value;
            break;
        default: /* FORELOOP_FEATURE_COUNT: the other sources are not in a kind's group */
            *feature = (float)state->counts[kind];
            break;
        }
    }
}

const float *foreloop_rollout_latent(const foreloop_rollout_context *context, const foreloop_state *state) {
    return (const float *)(state->counts + context->vocabulary->kind_count);
}

void foreloop_rollout_features(const foreloop_rollout_context *context, const foreloop_state *state, float *features) {
    const foreloop_feature_plan *plan = context->plan;
    const float *z = foreloop_rollout_latent(context, state);
    memcpy(features, z + context->transition->stride, plan->count * sizeof *features);
    size_t kinds = context->vocabulary->kind_count;
    for (size_t i = plan->update_start[kinds]; i < plan->latent_end; i++)
        features[plan->updates[i].position] = z[plan->updates[i].element];
    for (size_t i = plan->latent_end; i < plan->count; i++)
        if (plan->updates[i].source == FORELOOP_FEATURE_LENGTH)
            features[plan->updates[i].position] = (float)state->length;
}
