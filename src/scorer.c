/* The scorer: its scratch, the checks of what it is given, one candidate in full, and step-wise search. Batches are in
 * score_batch.c. */
#include "scorer.h"
#include "common/alloc.h"
#include "common/error.h"
#include "common/sized.h"
#include "gbdt/model.h"
#include <math.h>
#include <string.h>

enum { BLOCK = FORELOOP_BLOCK, SLICE = FORELOOP_TRANSH_SLICE };

/* ---- Creation ---- */

static foreloop_status set_hardware(foreloop_hardware *own, const foreloop_hardware *given, foreloop_error *error) {
    if (!given) {
        foreloop_hardware_init(own, sizeof *own);
        return foreloop_hardware_detect(own, error);
    }
    FORELOOP_TRY(foreloop_sized_read(own, sizeof *own, given, "foreloop_hardware", error));
    for (size_t i = 0; i < FORELOOP_HARDWARE_FIELDS; i++) {
        double value = foreloop_hardware_field(own, i);
        if (!(value >= 0 && value <= 1e30))
            return foreloop_fail(error, FORELOOP_ERROR_VALUE,
                                 "foreloop_scorer_create: hardware field '%s' must be from 0 to 1e30",
                                 foreloop_hardware_field_names[i]);
    }
    return FORELOOP_OK;
}

/* Which values there are. */
static foreloop_status list_values(foreloop_scorer *scorer, foreloop_error *error) {
    const foreloop_model *model = scorer->model;
    const foreloop_allocator *allocator = &model->allocator;
    const foreloop_scorer_ranker *ranker = &scorer->ranker;
    const size_t inputs = model->network.input_count, most = ranker->column_count + inputs;
    uint32_t *known = foreloop_allocate_zeroed(allocator, model->manifest.plan.count, sizeof *known); /* value + 1 */
    scorer->value_features = foreloop_allocate(allocator, most, sizeof *scorer->value_features);
    scorer->value_columns = foreloop_allocate(allocator, most, sizeof *scorer->value_columns);
    scorer->network_values = foreloop_allocate(allocator, inputs, sizeof *scorer->network_values);
    scorer->network_columns = foreloop_allocate(allocator, inputs, sizeof *scorer->network_columns);
    if (!known || !scorer->value_features || !scorer->value_columns || !scorer->network_values ||
        !scorer->network_columns) {
        foreloop_release(allocator, known);
        return foreloop_fail_memory(error, most, sizeof *known, "the scorer's values");
    }
    uint32_t count = 0;
    for (size_t column = 0; column < ranker->column_count; column++) {
        if (!ranker->reads[column])
            continue;
        scorer->value_features[count] = ranker->columns[column];
        scorer->value_columns[count] = (uint32_t)column;
        known[ranker->columns[column]] = ++count;
    }
    scorer->tree_values = count;
    for (size_t i = 0; i < inputs; i++) {
        const uint32_t feature = model->network.features[i];
        if (!known[feature]) {
            scorer->value_features[count] = feature;
            scorer->value_columns[count] = (uint32_t)(ranker->column_count + count - scorer->tree_values);
            known[feature] = ++count;
        }
        scorer->network_values[i] = known[feature] - 1;
        scorer->network_columns[i] = scorer->value_columns[known[feature] - 1];
    }
    scorer->value_count = count;
    foreloop_release(allocator, known);
    return FORELOOP_OK;
}

static size_t room_for_blocks(const foreloop_scorer *scorer) {
    return scorer->keeps_values ? scorer->chunk_blocks : 1;
}

/* A value of the hardware is the same in all candidates. */
static void set_number(foreloop_scorer *scorer, size_t value, float number) {
    scorer->row[scorer->value_columns[value]] = number;
    for (size_t b = 0; b < room_for_blocks(scorer); b++)
        for (size_t s = 0; s < BLOCK; s++)
            scorer->blocks[(b * (scorer->value_count + 1) + value) * BLOCK + s] = number;
}

static const foreloop_feature *feature_of(const foreloop_scorer *scorer, size_t value) {
    return &scorer->model->manifest.plan.features[scorer->value_features[value]];
}

/* Leads the values to where they come from. */
static void connect_values(foreloop_scorer *scorer) {
    const foreloop_model *model = scorer->model;
    const size_t lanes = scorer->program.latent + scorer->program.aggregates, none = scorer->value_count;
    for (size_t i = 0; i < lanes; i++)
        scorer->lane_values[i] = (uint32_t)none;
    /* From the last one on, so that lists ascend; lengths come before the hardware. */
    for (size_t value = none; value-- > 0;) {
        const foreloop_feature *feature = feature_of(scorer, value);
        if (feature->source == FORELOOP_FEATURE_LENGTH) {
            scorer->own_values[scorer->length_count++] = (uint32_t)value;
        } else if (feature->source != FORELOOP_FEATURE_HARDWARE) {
            const size_t lane = model->rollout.places[feature->position] +
                                (feature->source == FORELOOP_FEATURE_LATENT ? 0 : scorer->program.latent);
            scorer->next_values[value] = scorer->lane_values[lane];
            scorer->lane_values[lane] = (uint32_t)value;
        }
    }
    scorer->own_count = scorer->length_count;
    for (size_t value = 0; value < none; value++) {
        const foreloop_feature *feature = feature_of(scorer, value);
        if (feature->source != FORELOOP_FEATURE_HARDWARE)
            continue;
        scorer->own_values[scorer->own_count++] = (uint32_t)value;
        set_number(scorer, value, (float)foreloop_hardware_field(&scorer->hardware, feature->element));
    }
}

static void size_chunk(foreloop_scorer *scorer) {
    const size_t size = scorer->coding.codes_size ? scorer->coding.codes_size : 1, fit = FORELOOP_CHUNK_CODES / size;
    scorer->keeps_values = scorer->coding.reads_values || scorer->model->has_network;
    scorer->chunk_blocks = scorer->program.latent == 0         ? 1
                           : fit < FORELOOP_CHUNK_LEAST_BLOCKS ? FORELOOP_CHUNK_LEAST_BLOCKS
                           : fit < FORELOOP_CHUNK_BLOCKS       ? fit
                                                               : FORELOOP_CHUNK_BLOCKS;
    scorer->segment_limit =
        2 * scorer->chunk_blocks * BLOCK + BLOCK / FORELOOP_GROUP * FORELOOP_GROUP_SEGMENTS; /* a block always fits */
}

static foreloop_status allocate_scratch(foreloop_scorer *scorer, foreloop_error *error) {
    const foreloop_model *model = scorer->model;
    const foreloop_allocator *allocator = &model->allocator;
    const size_t values = scorer->value_count + 1, state_size = scorer->program.state_size;
    const size_t lanes = scorer->program.latent + scorer->program.aggregates, kinds = scorer->program.kinds;
    const size_t slices = foreloop_transh_slice_count(scorer->program.latent);
    const size_t blocks = scorer->chunk_blocks, groups = blocks * (BLOCK / FORELOOP_GROUP);
    const size_t complete = foreloop_rollout_program(&model->rollout, true).state_size + model->rollout.latent_stride;
    const size_t columns = scorer->ranker.column_count + scorer->value_count - scorer->tree_values;
    scorer->lane_values = foreloop_allocate(allocator, lanes, sizeof *scorer->lane_values);
    scorer->next_values = foreloop_allocate(allocator, values, sizeof *scorer->next_values);
    scorer->own_values = foreloop_allocate(allocator, values, sizeof *scorer->own_values);
    scorer->codes = foreloop_allocate_zeroed(allocator, blocks, scorer->coding.codes_size);
    scorer->blocks = foreloop_allocate_zeroed(allocator, values, room_for_blocks(scorer) * BLOCK * sizeof(float));
    scorer->row = foreloop_allocate_zeroed(allocator, columns, sizeof(float));
    scorer->slots = foreloop_allocate_zeroed(allocator, FORELOOP_SLOTS, state_size * sizeof(float));
    scorer->sums = foreloop_allocate_zeroed(allocator, slices, FORELOOP_SLOTS * SLICE * sizeof(float));
    scorer->complete = foreloop_allocate(allocator, complete, sizeof(float));
    scorer->segments = foreloop_allocate(allocator, scorer->segment_limit, sizeof *scorer->segments);
    scorer->segment_begin = foreloop_allocate(allocator, groups + 2, sizeof *scorer->segment_begin);
    scorer->used_counts = foreloop_allocate(allocator, groups, sizeof *scorer->used_counts);
    scorer->used = foreloop_allocate(allocator, kinds, groups * sizeof *scorer->used);
    scorer->gamma = foreloop_allocate(allocator, kinds, blocks * BLOCK * sizeof(float));
    scorer->network_scratch =
        foreloop_allocate(allocator, foreloop_score_network_scratch(&model->network), sizeof(float));
    if (!scorer->lane_values || !scorer->next_values || !scorer->own_values || !scorer->codes || !scorer->blocks ||
        !scorer->row || !scorer->slots || !scorer->sums || !scorer->complete || !scorer->segments ||
        !scorer->segment_begin || !scorer->used_counts || !scorer->used || !scorer->gamma || !scorer->network_scratch)
        return foreloop_fail_memory(error, blocks, scorer->coding.codes_size, "the scorer");
    return FORELOOP_OK;
}

foreloop_status foreloop_scorer_prepare(foreloop_scorer *scorer, foreloop_error *error) {
    scorer->program = foreloop_rollout_program(&scorer->model->rollout, scorer->ranker.reads_more);
    FORELOOP_TRY(list_values(scorer, error));
    FORELOOP_TRY(foreloop_gbdt_coding_create(&scorer->coding, scorer->ranker.gbdt, &scorer->model->allocator, error));
    size_chunk(scorer);
    FORELOOP_TRY(allocate_scratch(scorer, error));
    connect_values(scorer);
    return FORELOOP_OK;
}

foreloop_status foreloop_scorer_create(foreloop_scorer **result, const foreloop_model *model,
                                       const foreloop_actions *actions, const foreloop_hardware *hardware,
                                       foreloop_error *error) {
    if (!result || !model || !actions)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_scorer_create: an argument is NULL");
    if (actions->fingerprint != model->fingerprint)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "foreloop_scorer_create: the action table is of another model");
    foreloop_scorer *scorer = foreloop_allocate_zeroed(&model->allocator, 1, sizeof *scorer);
    if (!scorer)
        return foreloop_fail_memory(error, 1, sizeof *scorer, "the scorer");
    scorer->model = model;
    scorer->actions = actions;
    scorer->ranker = foreloop_ranker_of_model(model);
    foreloop_status status = set_hardware(&scorer->hardware, hardware, error);
    if (status == FORELOOP_OK)
        status = foreloop_scorer_prepare(scorer, error);
    if (status != FORELOOP_OK) {
        foreloop_scorer_close(scorer);
        return status;
    }
    *result = scorer;
    return FORELOOP_OK;
}

void foreloop_scorer_release(foreloop_scorer *scorer) {
    const foreloop_allocator *allocator = &scorer->model->allocator;
    foreloop_release(allocator, scorer->network_scratch);
    foreloop_release(allocator, scorer->gamma);
    foreloop_release(allocator, scorer->used);
    foreloop_release(allocator, scorer->used_counts);
    foreloop_release(allocator, scorer->segment_begin);
    foreloop_release(allocator, scorer->segments);
    foreloop_release(allocator, scorer->complete);
    foreloop_release(allocator, scorer->sums);
    foreloop_release(allocator, scorer->slots);
    foreloop_release(allocator, scorer->row);
    foreloop_release(allocator, scorer->blocks);
    foreloop_release(allocator, scorer->codes);
    foreloop_release(allocator, scorer->own_values);
    foreloop_release(allocator, scorer->next_values);
    foreloop_release(allocator, scorer->lane_values);
    foreloop_release(allocator, scorer->network_columns);
    foreloop_release(allocator, scorer->network_values);
    foreloop_release(allocator, scorer->value_columns);
    foreloop_release(allocator, scorer->value_features);
    foreloop_gbdt_coding_close(&scorer->coding, allocator);
    foreloop_ranker_release(scorer->model, &scorer->ranker);
}

void foreloop_scorer_close(foreloop_scorer *scorer) {
    if (!scorer)
        return;
    foreloop_scorer_release(scorer);
    foreloop_release(&scorer->model->allocator, scorer->heap);
    foreloop_release(&scorer->model->allocator, scorer);
}

/* ---- Checks ---- */

static foreloop_status check_workload(const foreloop_scorer *scorer, const foreloop_workload *workload,
                                      foreloop_error *error) {
    if (workload->fingerprint != scorer->model->fingerprint)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "the workload was encoded by another model");
    return FORELOOP_OK;
}

static foreloop_status check_ids(const foreloop_scorer *scorer, const uint32_t *ids, size_t count,
                                 foreloop_error *error) {
    const size_t limit = scorer->actions->count;
    if (count > FORELOOP_MAX_LENGTH)
        return foreloop_fail(error, FORELOOP_ERROR_LIMIT, "a sequence has %zu actions, %d are allowed", count,
                             FORELOOP_MAX_LENGTH);
    for (size_t i = 0; i < count; i++)
        if (ids[i] >= limit)
            return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "action %zu has the id %u, the table has %zu ids", i,
                                 ids[i], limit);
    return FORELOOP_OK;
}

/* The ids of a batch lie behind each other: their largest tells whether all are good. */
static uint32_t largest(const uint32_t *ids, size_t count) {
    uint32_t result = 0;
    for (size_t i = 0; i < count; i++)
        result = ids[i] > result ? ids[i] : result;
    return result;
}

foreloop_status foreloop_check_batch(const char *call, const foreloop_scorer *scorer, const foreloop_workload *workload,
                                     const uint32_t *ids, const size_t *offsets, size_t count, foreloop_error *error) {
    if (!scorer || !workload)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "%s: an argument is NULL", call);
    FORELOOP_TRY(check_workload(scorer, workload, error));
    return foreloop_check_sequences(call, scorer, ids, offsets, count, error);
}

foreloop_status foreloop_check_sequences(const char *call, const foreloop_scorer *scorer, const uint32_t *ids,
                                         const size_t *offsets, size_t count, foreloop_error *error) {
    if ((count && !offsets) || (count && offsets[count] > offsets[0] && !ids))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "%s: an argument is NULL", call);
    size_t longest = 0;
    for (size_t i = 0; i < count; i++) {
        if (offsets[i + 1] < offsets[i])
            return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "the offsets fall at candidate %zu", i);
        longest = offsets[i + 1] - offsets[i] > longest ? offsets[i + 1] - offsets[i] : longest;
    }
    if (longest == 0 || (longest <= FORELOOP_MAX_LENGTH &&
                         largest(ids + offsets[0], offsets[count] - offsets[0]) < scorer->actions->count))
        return FORELOOP_OK;
    for (size_t i = 0; i < count; i++) {
        foreloop_status status =
            check_ids(scorer, foreloop_sequence(ids, offsets, i), offsets[i + 1] - offsets[i], error);
        if (status != FORELOOP_OK)
            return foreloop_error_prefix(error, status, "candidate %zu", i);
    }
    return FORELOOP_OK;
}

/* ---- One candidate in full ---- */

static foreloop_status check_sequence(const char *call, foreloop_scorer *scorer, const foreloop_workload *workload,
                                      const uint32_t *ids, size_t count, const float *output, foreloop_error *error) {
    if (!scorer || !workload || (!ids && count) || !output)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "%s: an argument is NULL", call);
    FORELOOP_TRY(check_workload(scorer, workload, error));
    return check_ids(scorer, ids, count, error);
}

/* Rolls out all features; returns z, in the plan's order, and the aggregates. */
static const float *roll_complete(foreloop_scorer *scorer, const foreloop_workload *workload, const uint32_t *ids,
                                  size_t count, const float **aggregates) {
    const foreloop_rollout_plan *plan = &scorer->model->rollout;
    foreloop_transh_program program = foreloop_rollout_program(plan, true);
    float *state = scorer->complete, *z = state + program.state_size;
    foreloop_take_rows(&program, scorer->actions);
    foreloop_rollout_begin(plan, &program, workload->start, state);
    foreloop_transh_roll_f32(foreloop_scorer_kernels(scorer), &program, ids, count, state);
    foreloop_scorer_kernels(scorer)->finish(&program, state, z);
    *aggregates = state + foreloop_transh_at_aggregates(&program);
    return z;
}

foreloop_status foreloop_features(foreloop_scorer *scorer, const foreloop_workload *workload, const uint32_t *ids,
                                  size_t id_count, float *features, foreloop_error *error) {
    FORELOOP_TRY(check_sequence("foreloop_features", scorer, workload, ids, id_count, features, error));
    const float *aggregates, *z = roll_complete(scorer, workload, ids, id_count, &aggregates);
    const foreloop_feature_plan *plan = &scorer->model->manifest.plan;
    for (size_t i = 0; i < plan->count; i++) {
        const foreloop_feature *feature = &plan->features[i];
        const uint32_t place = scorer->model->rollout.places[i];
        switch (feature->source) {
        case FORELOOP_FEATURE_LATENT:
            features[i] = z[place];
            break;
        case FORELOOP_FEATURE_LENGTH:
            features[i] = (float)foreloop_known_length(ids, id_count);
            break;
        case FORELOOP_FEATURE_HARDWARE:
            features[i] = (float)foreloop_hardware_field(&scorer->hardware, feature->element);
            break;
        default:
            features[i] = aggregates[place];
            break;
        }
    }
    return FORELOOP_OK;
}

foreloop_status foreloop_features_batch(foreloop_scorer *scorer, const foreloop_workload *workload, const uint32_t *ids,
                                        const size_t *offsets, size_t count, float *features, size_t stride,
                                        foreloop_error *error) {
    if (count && !features)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_features_batch: an argument is NULL");
    FORELOOP_TRY(foreloop_check_batch("foreloop_features_batch", scorer, workload, ids, offsets, count, error));
    if (stride < scorer->model->manifest.plan.count)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "foreloop_features_batch: the stride is %zu, there are %zu features", stride,
                             scorer->model->manifest.plan.count);
    for (size_t i = 0; i < count; i++)
        FORELOOP_TRY(foreloop_features(scorer, workload, foreloop_sequence(ids, offsets, i),
                                       offsets[i + 1] - offsets[i], features + i * stride, error));
    return FORELOOP_OK;
}

foreloop_status foreloop_rollout(foreloop_scorer *scorer, const foreloop_workload *workload, const uint32_t *ids,
                                 size_t id_count, float *latent, foreloop_error *error) {
    FORELOOP_TRY(check_sequence("foreloop_rollout", scorer, workload, ids, id_count, latent, error));
    const float *aggregates, *z = roll_complete(scorer, workload, ids, id_count, &aggregates);
    for (size_t i = 0; i < workload->size; i++)
        latent[scorer->model->rollout.latent_order[i]] = z[i];
    return FORELOOP_OK;
}

foreloop_status foreloop_score_details(const foreloop_scorer *scorer, const uint32_t *ids, const size_t *offsets,
                                       size_t count, foreloop_candidate_details *details, foreloop_error *error) {
    if (!scorer || (count && (!offsets || !details || (offsets[count] > offsets[0] && !ids))))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_score_details: an argument is NULL");
    for (size_t i = 0; i < count; i++) {
        if (offsets[i + 1] < offsets[i])
            return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "the offsets fall at candidate %zu", i);
        FORELOOP_TRY(check_ids(scorer, foreloop_sequence(ids, offsets, i), offsets[i + 1] - offsets[i], error));
    }
    for (size_t i = 0; i < count; i++) {
        foreloop_candidate_details own = {.actions = (uint32_t)(offsets[i + 1] - offsets[i])};
        for (size_t j = offsets[i]; j < offsets[i + 1]; j++) {
            const foreloop_action_note *note = &scorer->actions->notes[ids[j]];
            own.unknown_kinds += ids[j] == FORELOOP_ACTION_UNKNOWN;
            own.dropped_arguments += note->dropped_arguments;
            own.unknown_values += note->unknown_values;
            own.out_of_range += note->out_of_range;
        }
        details[i] = own;
    }
    return FORELOOP_OK;
}

/* ---- Step-wise search ---- */

typedef struct state_header {
    uint64_t fingerprint;
    uint32_t length;     /* actions of known kind */
    uint32_t reads_more; /* of foreloop_scorer_ranker */
} state_header;

static float *state_values(void *state) {
    return (float *)((state_header *)state + 1);
}

size_t foreloop_state_size(const foreloop_scorer *scorer) {
    return scorer ? (sizeof(state_header) + scorer->program.state_size * sizeof(float) + 15) / 16 * 16 : 0;
}

foreloop_status foreloop_state_begin(foreloop_scorer *scorer, const foreloop_workload *workload, void *state,
                                     foreloop_error *error) {
    if (!scorer || !workload || !state || (uintptr_t)state % 16)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "foreloop_state_begin: an argument is NULL, or the state not aligned to 16");
    FORELOOP_TRY(check_workload(scorer, workload, error));
    *(state_header *)state =
        (state_header){.fingerprint = scorer->model->fingerprint, .reads_more = scorer->ranker.reads_more};
    foreloop_rollout_begin(&scorer->model->rollout, &scorer->program, workload->start, state_values(state));
    return FORELOOP_OK;
}

static foreloop_status check_state(const char *call, const foreloop_scorer *scorer, const void *state,
                                   foreloop_error *error) {
    if (!scorer || !state || (uintptr_t)state % 16)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "%s: an argument is NULL, or a state not aligned to 16",
                             call);
    if (((const state_header *)state)->fingerprint != scorer->model->fingerprint)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "the state was not begun by foreloop_state_begin of this model");
    if (((const state_header *)state)->reads_more != scorer->ranker.reads_more)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "the state was begun with a ranker that reads other features: begin it anew");
    return FORELOOP_OK;
}

foreloop_status foreloop_state_step(foreloop_scorer *scorer, void *state, uint32_t id, foreloop_error *error) {
    FORELOOP_TRY(check_state("foreloop_state_step", scorer, state, error));
    FORELOOP_TRY(check_ids(scorer, &id, 1, error));
    state_header *header = state;
    if (header->length >= FORELOOP_MAX_LENGTH)
        return foreloop_fail(error, FORELOOP_ERROR_LIMIT, "a state has taken %d actions, no more are allowed",
                             FORELOOP_MAX_LENGTH);
    foreloop_take_rows(&scorer->program, scorer->actions);
    foreloop_transh_roll_f32(foreloop_scorer_kernels(scorer), &scorer->program, &id, 1, state_values(state));
    header->length += id != FORELOOP_ACTION_UNKNOWN;
    return FORELOOP_OK;
}

foreloop_status foreloop_state_score(foreloop_scorer *scorer, const void *state, float *score, foreloop_error *error) {
    return foreloop_state_score_batch(scorer, &state, 1, score, error);
}

foreloop_status foreloop_state_score_batch(foreloop_scorer *scorer, const void *const *states, size_t count,
                                           float *scores, foreloop_error *error) {
    if (!scorer || (count && (!states || !scores)))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_state_score: an argument is NULL");
    for (size_t i = 0; i < count; i++)
        FORELOOP_TRY(check_state("foreloop_state_score", scorer, states[i], error));
    for (size_t first = 0; first < count; first += BLOCK) {
        const size_t own = count - first < BLOCK ? count - first : BLOCK;
        const float *values[BLOCK];
        float lengths[BLOCK];
        for (size_t i = 0; i < own; i++) {
            const state_header *header = states[first + i];
            values[i] = (const float *)(header + 1);
            lengths[i] = (float)header->length;
        }
        foreloop_score_states(scorer, values, lengths, own, scores + first);
    }
    return FORELOOP_OK;
}
