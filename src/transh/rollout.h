/*
 * How sequences of actions become the features that trees and score network read: what of a step is computed ahead,
 * once a model and once a distinct action, and where everything lies. The steps themselves are kernels
 * (kernels_cpu/transh_f32.h).
 *
 * The elements of z stand in an order of their own, those that are read first; so do the aggregates. So a score
 * sums and forms a prefix of each, and the bits of a feature do not depend on which others are read.
 */
#ifndef FORELOOP_TRANSH_ROLLOUT_H
#define FORELOOP_TRANSH_ROLLOUT_H

#include "transh/features.h"
#include "transh/transition.h"

typedef struct foreloop_rollout_plan {
    foreloop_arena arena;
    const foreloop_vocabulary *vocabulary;
    const foreloop_transition *transition;
    const foreloop_feature_plan *features;

    size_t latent_stride;       /* all of z, rounded up to lanes */
    size_t latent_used;         /* what scores read of it, a prefix in `latent_order`, rounded up */
    uint32_t *latent_order;     /* [d]: the element at each place */
    bool latent_in_order;       /* which is its own */
    size_t kind_stride;         /* kinds, rounded up to lanes */
    const float *gram, *normal; /* of foreloop_transh_program */

    /* Aggregates: vectors of lanes, each lane one feature of the plan; those that scores read come first. */
    size_t aggregate_count, aggregate_used; /* in lanes, rounded up */
    foreloop_transh_update *updates;        /* by kind: those of used aggregates, then the rest */
    uint32_t *update_elements;              /* [updates][lanes]: what the lane's value is, see below */
    uint32_t *update_begin;                 /* [kinds + 1] */
    uint32_t *update_used_end;              /* [kinds] */
    size_t max_updates;                     /* of a kind */

    /* By feature of the plan: its place, in z's order for latent ones, its lane for aggregates. */
    uint32_t *places;

    size_t row_stride;  /* of an action's row: what its steps read */
    size_t slice_count; /* of all of z */
} foreloop_rollout_plan;

/* In update_elements, besides elements of phi: 1, for counts, and 0, for lanes of other kinds. */
#define FORELOOP_ELEMENT_ONE  UINT32_C(0xffffffff)
#define FORELOOP_ELEMENT_NONE UINT32_C(0xfffffffe)

/* `used`[features->count]: 1 for features that scores read. Everything given is borrowed until close, `used` only
 * for the call. On failure nothing is owned. */
foreloop_status foreloop_rollout_plan_create(foreloop_rollout_plan *plan, const foreloop_allocator *allocator,
                                             const foreloop_vocabulary *vocabulary,
                                             const foreloop_transition *transition,
                                             const foreloop_feature_plan *features, const unsigned char *used,
                                             foreloop_error *error);
void foreloop_rollout_plan_close(foreloop_rollout_plan *plan);

/* What rollouts run on: of all features, or only those that scores read. The caller fills in the actions' rows. */
FORELOOP_INTERNAL_API foreloop_transh_program foreloop_rollout_program(const foreloop_rollout_plan *plan, bool all);

/* An action's row[row_stride] from its embedding[stride] and phi. */
void foreloop_rollout_fill_row(const foreloop_rollout_plan *plan, size_t kind, const float *embedding, const float *phi,
                               float *row);

/* One slice of an action's embedding, in the plan's order. */
void foreloop_rollout_fill_slice(const foreloop_rollout_plan *plan, size_t slice, const float *embedding,
                                 float d[FORELOOP_TRANSH_SLICE]);

/* What every rollout from z0[latent_stride] (padding zero) begins with: start[kind_stride + latent_stride], W z0 and
 * then z0 in the plan's order. */
static inline size_t foreloop_rollout_start_size(const foreloop_rollout_plan *plan) {
    return plan->kind_stride + plan->latent_stride;
}
void foreloop_rollout_start(const foreloop_rollout_plan *plan, const float *z0, float *start);

/* The state of the empty sequence. */
void foreloop_rollout_begin(const foreloop_rollout_plan *plan, const foreloop_transh_program *program,
                            const float *start, float *state);

#endif
