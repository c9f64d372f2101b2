/* Building of the plan at load, and of what each action and each workload brings along. */
#include "transh/rollout.h"
#include "common/error.h"
#include <string.h>

enum { LANES = FORELOOP_TRANSH_LANES };

static size_t round_up(size_t count) {
    return (count + LANES - 1) / LANES * LANES;
}

static foreloop_status allocate(foreloop_rollout_plan *plan, void *result, size_t count, size_t element_size,
                                foreloop_error *error) {
    unsigned char *memory = NULL;
    if (count <= (SIZE_MAX - FORELOOP_ALIGNMENT) / element_size)
        memory = foreloop_arena_allocate(&plan->arena, count * element_size + FORELOOP_ALIGNMENT, 1);
    if (!memory)
        return foreloop_fail_memory(error, count, element_size, "the rollout's tables");
    memory += FORELOOP_ALIGNMENT - (uintptr_t)memory % FORELOOP_ALIGNMENT; /* vectors that cross no cache line */
    memset(memory, 0, count * element_size);
    memcpy(result, &memory, sizeof memory);
    return FORELOOP_OK;
}

/* ---- The order of z ---- */

static foreloop_status order_latent(foreloop_rollout_plan *plan, const unsigned char *used, foreloop_error *error) {
    const size_t size = plan->transition->size;
    const foreloop_feature_plan *features = plan->features;
    uint32_t *place = NULL;
    FORELOOP_TRY(allocate(plan, &plan->latent_order, size, sizeof *plan->latent_order, error));
    FORELOOP_TRY(allocate(plan, &place, size, sizeof *place, error)); /* place + 1, 0 for none yet */
    size_t count = 0;
    for (size_t i = 0; i < features->count; i++) {
        const foreloop_feature *feature = &features->features[i];
        if (used[i] && feature->source == FORELOOP_FEATURE_LATENT && !place[feature->element]) {
            plan->latent_order[count] = feature->element;
            place[feature->element] = (uint32_t)++count;
        }
    }
    plan->latent_used = round_up(count);
    for (size_t element = 0; element < size; element++)
        if (!place[element]) {
            plan->latent_order[count] = (uint32_t)element;
            place[element] = (uint32_t)++count;
        }
    plan->latent_in_order = true;
    for (size_t i = 0; i < size; i++)
        plan->latent_in_order &= plan->latent_order[i] == i;
    for (size_t i = 0; i < features->count; i++)
        if (features->features[i].source == FORELOOP_FEATURE_LATENT)
            plan->places[i] = place[features->features[i].element] - 1;
    return FORELOOP_OK;
}

static void to_order(const foreloop_rollout_plan *plan, const float *natural, float scale, float *ordered) {
    const size_t size = plan->transition->size;
    for (size_t i = 0; i < size; i++)
        ordered[i] = scale * natural[plan->latent_order[i]];
    memset(ordered + size, 0, (plan->latent_stride - size) * sizeof *ordered);
}

static foreloop_status fill_matrices(foreloop_rollout_plan *plan, foreloop_error *error) {
    const foreloop_transition *transition = plan->transition;
    const size_t kinds = plan->vocabulary->kind_count;
    float *gram = NULL, *normal = NULL;
    if (plan->kind_stride > SIZE_MAX / sizeof(float) / plan->kind_stride ||
        plan->latent_stride > SIZE_MAX / sizeof(float) / plan->kind_stride)
        return foreloop_fail_memory(error, plan->kind_stride, plan->latent_stride, "the rollout's tables");
    FORELOOP_TRY(allocate(plan, &gram, plan->kind_stride * plan->kind_stride, sizeof *gram, error));
    FORELOOP_TRY(allocate(plan, &normal, plan->kind_stride * plan->latent_stride, sizeof *normal, error));
    for (size_t r = 0; r < kinds; r++) {
        const float *w = transition->normal + r * transition->stride;
        to_order(plan, w, transition->beta[r], normal + r * plan->latent_stride);
        float *own = gram + r * plan->kind_stride;
        transition->kernels.products(transition->normal, w, kinds, transition->stride, own);
        for (size_t i = 0; i < kinds; i++)
            own[i] *= transition->beta[r];
    }
    plan->gram = gram;
    plan->normal = normal;
    return FORELOOP_OK;
}

/* ---- The aggregates ---- */

static void add_lane(foreloop_rollout_plan *plan, size_t update, const foreloop_feature *feature, size_t lane) {
    foreloop_transh_update *how = &plan->updates[update];
    const uint16_t bit = (uint16_t)(1u << lane % LANES);
    how->vector = (uint32_t)(lane / LANES);
    how->take[0] = (uint16_t)(how->take[0] | bit);
    switch (feature->source) {
    case FORELOOP_FEATURE_COUNT:
    case FORELOOP_FEATURE_SUM:
        how->add = (uint16_t)(how->add | bit);
        break;
    case FORELOOP_FEATURE_MAX:
        how->max = (uint16_t)(how->max | bit);
        break;
    case FORELOOP_FEATURE_MIN:
        how->min = (uint16_t)(how->min | bit);
        break;
    case FORELOOP_FEATURE_LAST:
        how->take[1] = (uint16_t)(how->take[1] | bit);
        break;
    default: /* FORELOOP_FEATURE_FIRST: taken once, then left alone */
        break;
    }
    plan->update_elements[update * LANES + lane % LANES] =
        feature->source == FORELOOP_FEATURE_COUNT ? FORELOOP_ELEMENT_ONE : feature->element;
    plan->places[feature->position] = (uint32_t)lane;
}

/* Gives each aggregate of kind r that is used, or that is not, a lane from *lane on; a kind's lanes share as few
 * vectors as they can. Returns the number of vectors; fills them in when the tables are there. */
static size_t place_kind(foreloop_rollout_plan *plan, size_t r, const unsigned char *used, unsigned char wanted,
                         size_t first_update, size_t *lane) {
    const foreloop_feature_plan *features = plan->features;
    const size_t begin = features->update_start[r], end = features->update_start[r + 1];
    size_t count = 0, vectors = 0;
    for (size_t i = begin; i < end; i++)
        count += used[features->updates[i].position] == wanted;
    if (count > LANES - *lane % LANES && count > 0)
        *lane = round_up(*lane);
    for (size_t i = begin; i < end; i++) {
        if (used[features->updates[i].position] != wanted)
            continue;
        vectors += vectors == 0 || *lane % LANES == 0;
        if (plan->updates)
            add_lane(plan, first_update + vectors - 1, &features->updates[i], *lane);
        ++*lane;
    }
    return vectors;
}

/* Without tables yet: counts each kind's vectors into update_begin[r]. With them: fills them in. */
static void place_all(foreloop_rollout_plan *plan, const unsigned char *used) {
    const size_t kinds = plan->vocabulary->kind_count;
    size_t lane = 0;
    for (size_t r = 0; r < kinds; r++) {
        const size_t first = plan->updates ? plan->update_begin[r] : 0;
        plan->update_used_end[r] = (uint32_t)(first + place_kind(plan, r, used, 1, first, &lane));
    }
    plan->aggregate_used = lane = round_up(lane);
    for (size_t r = 0; r < kinds; r++) {
        const size_t first = plan->update_used_end[r], vectors = place_kind(plan, r, used, 0, first, &lane);
        if (!plan->updates)
            plan->update_begin[r] = (uint32_t)(first + vectors);
        if (!plan->updates && first + vectors > plan->max_updates)
            plan->max_updates = first + vectors;
    }
    plan->aggregate_count = round_up(lane);
}

static foreloop_status place_aggregates(foreloop_rollout_plan *plan, const unsigned char *used, foreloop_error *error) {
    const size_t kinds = plan->vocabulary->kind_count;
    FORELOOP_TRY(allocate(plan, &plan->update_begin, kinds + 1, sizeof *plan->update_begin, error));
    FORELOOP_TRY(allocate(plan, &plan->update_used_end, kinds, sizeof *plan->update_used_end, error));
    place_all(plan, used);
    size_t total = 0;
    for (size_t r = 0; r <= kinds; r++) {
        const size_t own = plan->update_begin[r]; /* of r, as counted */
        plan->update_begin[r] = (uint32_t)total;
        total += own;
    }
    FORELOOP_TRY(allocate(plan, &plan->update_elements, total * LANES, sizeof *plan->update_elements, error));
    for (size_t i = 0; i < total * LANES; i++)
        plan->update_elements[i] = FORELOOP_ELEMENT_NONE;
    FORELOOP_TRY(allocate(plan, &plan->updates, total, sizeof *plan->updates, error));
    place_all(plan, used);
    return FORELOOP_OK;
}

static foreloop_status fill_plan(foreloop_rollout_plan *plan, const unsigned char *used, foreloop_error *error) {
    plan->latent_stride = plan->transition->stride;
    plan->kind_stride = round_up(plan->vocabulary->kind_count ? plan->vocabulary->kind_count : 1);
    FORELOOP_TRY(allocate(plan, &plan->places, plan->features->count, sizeof *plan->places, error));
    FORELOOP_TRY(order_latent(plan, used, error));
    FORELOOP_TRY(fill_matrices(plan, error));
    FORELOOP_TRY(place_aggregates(plan, used, error));
    plan->row_stride = plan->kind_stride + plan->max_updates * LANES;
    plan->slice_count = foreloop_transh_slice_count(plan->latent_stride);
    return FORELOOP_OK;
}

foreloop_status foreloop_rollout_plan_create(foreloop_rollout_plan *plan, const foreloop_allocator *allocator,
                                             const foreloop_vocabulary *vocabulary,
                                             const foreloop_transition *transition,
                                             const foreloop_feature_plan *features, const unsigned char *used,
                                             foreloop_error *error) {
    *plan = (foreloop_rollout_plan){
        .arena = {.allocator = allocator}, .vocabulary = vocabulary, .transition = transition, .features = features};
    foreloop_status status = fill_plan(plan, used, error);
    if (status != FORELOOP_OK)
        foreloop_rollout_plan_close(plan);
    return status;
}

void foreloop_rollout_plan_close(foreloop_rollout_plan *plan) {
    if (plan->arena.allocator)
        foreloop_arena_close(&plan->arena);
    *plan = (foreloop_rollout_plan){0};
}

/* ---- Use ---- */

foreloop_transh_program foreloop_rollout_program(const foreloop_rollout_plan *plan, bool all) {
    foreloop_transh_program program = {.latent = all ? plan->latent_stride : plan->latent_used,
                                       .kinds = plan->kind_stride,
                                       .aggregates = all ? plan->aggregate_count : plan->aggregate_used,
                                       .gram = plan->gram,
                                       .normal = plan->normal,
                                       .normal_stride = plan->latent_stride,
                                       .row_stride = plan->row_stride,
                                       .updates = plan->updates,
                                       .update_begin = plan->update_begin,
                                       .update_end = all ? plan->update_begin + 1 : plan->update_used_end};
    program.state_size = foreloop_transh_state_size(&program);
    return program;
}

void foreloop_rollout_fill_row(const foreloop_rollout_plan *plan, size_t kind, const float *embedding, const float *phi,
                               float *row) {
    const foreloop_transition *transition = plan->transition;
    memset(row, 0, plan->row_stride * sizeof *row);
    transition->kernels.products(transition->normal, embedding, plan->vocabulary->kind_count, transition->stride, row);
    float *value = row + plan->kind_stride;
    for (size_t u = plan->update_begin[kind]; u < plan->update_begin[kind + 1]; u++)
        for (size_t i = 0; i < LANES; i++, value++) {
            uint32_t element = plan->update_elements[u * LANES + i];
            *value = element == FORELOOP_ELEMENT_NONE ? 0 : element == FORELOOP_ELEMENT_ONE ? 1 : phi[element];
        }
}

void foreloop_rollout_fill_slice(const foreloop_rollout_plan *plan, size_t slice, const float *embedding,
                                 float d[FORELOOP_TRANSH_SLICE]) {
    const size_t first = slice * FORELOOP_TRANSH_SLICE, left = plan->transition->size - first;
    if (plan->latent_in_order && left >= FORELOOP_TRANSH_SLICE) {
        memcpy(d, embedding + first, FORELOOP_TRANSH_SLICE * sizeof *d);
        return;
    }
    for (size_t i = 0; i < FORELOOP_TRANSH_SLICE; i++)
        d[i] = i < left ? embedding[plan->latent_order[first + i]] : 0;
}

void foreloop_rollout_start(const foreloop_rollout_plan *plan, const float *z0, float *start) {
    const foreloop_transition *transition = plan->transition;
    memset(start, 0, plan->kind_stride * sizeof *start);
    to_order(plan, z0, 1, start + plan->kind_stride);
    transition->kernels.products(transition->normal, z0, plan->vocabulary->kind_count, transition->stride, start);
}

void foreloop_rollout_begin(const foreloop_rollout_plan *plan, const foreloop_transh_program *program,
                            const float *start, float *state) {
    memcpy(state, start + plan->kind_stride, program->latent * sizeof *state);
    memcpy(state + program->latent, start, program->kinds * sizeof *state);
    memset(state + foreloop_transh_at_gamma(program), 0,
           (program->state_size - foreloop_transh_at_gamma(program)) * sizeof *state);
}
