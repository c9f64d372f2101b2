/*
 * Scoring. Candidates run in groups of 16: each is rolled out into a state of its own, beginning with what it shares
 * with its forerunners; then the states are finished together into the trees' layout, and the trees run over blocks of
 * four groups.
 */
#include "scorer.h"
#include "common/alloc.h"
#include "common/error.h"
#include "common/sized.h"
#include "gbdt/model.h"
#include <math.h>
#include <string.h>

enum { BLOCK = FORELOOP_BLOCK, GROUP = FORELOOP_GROUP };

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
                                 "scorer_create: hardware field '%s' must be from 0 to 1e30",
                                 foreloop_hardware_field_names[i]);
    }
    return FORELOOP_OK;
}

/* Leads the values that trees read to where they come from. */
static void connect_values(foreloop_scorer *scorer) {
    const foreloop_model *model = scorer->model;
    const size_t lanes = scorer->program.latent + scorer->program.aggregates;
    for (size_t i = 0; i < lanes; i++)
        scorer->lane_values[i] = (uint32_t)scorer->value_count;
    scorer->value_columns[scorer->value_count] = (uint32_t)scorer->ranker.column_count;
    uint32_t value = 0;
    for (uint32_t column = 0; column < scorer->ranker.column_count; column++) {
        const foreloop_feature *feature = &model->manifest.plan.features[scorer->ranker.columns[column]];
        size_t lane = model->rollout.places[feature->position];
        if (!scorer->ranker.reads[column])
            continue;
        scorer->value_columns[value] = column;
        if (feature->source == FORELOOP_FEATURE_HARDWARE) {
            const float number = (float)foreloop_hardware_field(&scorer->hardware, feature->element);
            scorer->row[column] = number;
            for (size_t s = 0; s < BLOCK; s++)
                scorer->block[(size_t)value * BLOCK + s] = number;
        } else if (feature->source == FORELOOP_FEATURE_LENGTH) {
            scorer->length_values[scorer->length_count++] = value;
        } else {
            if (feature->source != FORELOOP_FEATURE_LATENT)
                lane += scorer->program.latent;
            if (scorer->lane_values[lane] == scorer->value_count)
                scorer->lane_values[lane] = value;
            else
                scorer->copies[scorer->copy_count++] = (foreloop_copy){scorer->lane_values[lane], value};
        }
        value++;
    }
}

static foreloop_status allocate_scratch(foreloop_scorer *scorer, foreloop_error *error) {
    const foreloop_model *model = scorer->model;
    const foreloop_allocator *allocator = &model->allocator;
    const size_t values = scorer->value_count + 1, state_size = scorer->program.state_size;
    const size_t lanes = scorer->program.latent + scorer->program.aggregates, kinds = scorer->program.kinds;
    const size_t complete = foreloop_rollout_program(&model->rollout, true).state_size + model->rollout.latent_stride;
    scorer->value_columns = foreloop_allocate(allocator, values, sizeof *scorer->value_columns);
    scorer->lane_values = foreloop_allocate(allocator, lanes, sizeof *scorer->lane_values);
    scorer->copies = foreloop_allocate(allocator, values, sizeof *scorer->copies);
    scorer->length_values = foreloop_allocate(allocator, values, sizeof *scorer->length_values);
    scorer->block = foreloop_allocate_zeroed(allocator, values, BLOCK * sizeof(float));
    scorer->row = foreloop_allocate_zeroed(allocator, scorer->ranker.column_count + 1, sizeof(float));
    scorer->states = foreloop_allocate_zeroed(allocator, GROUP, state_size * sizeof(float));
    scorer->saved = foreloop_allocate(allocator, FORELOOP_SAVED_STATES, state_size * sizeof(float));
    scorer->begin = foreloop_allocate(allocator, state_size, sizeof(float));
    scorer->complete = foreloop_allocate(allocator, complete, sizeof(float));
    scorer->used = foreloop_allocate(allocator, kinds, sizeof *scorer->used);
    scorer->gamma = foreloop_allocate(allocator, kinds, GROUP * sizeof(float));
    if (!scorer->value_columns || !scorer->lane_values || !scorer->copies || !scorer->length_values || !scorer->block ||
        !scorer->row || !scorer->states || !scorer->saved || !scorer->begin || !scorer->complete || !scorer->used ||
        !scorer->gamma)
        return foreloop_fail_memory(error, state_size, 2 * GROUP * sizeof(float), "the scorer");
    return FORELOOP_OK;
}

foreloop_status foreloop_scorer_prepare(foreloop_scorer *scorer, foreloop_error *error) {
    scorer->program = foreloop_rollout_program(&scorer->model->rollout, scorer->ranker.reads_more);
    for (size_t i = 0; i < scorer->ranker.column_count; i++)
        scorer->value_count += scorer->ranker.reads[i];
    FORELOOP_TRY(allocate_scratch(scorer, error));
    connect_values(scorer);
    return FORELOOP_OK;
}

foreloop_status foreloop_scorer_create(foreloop_scorer **result, const foreloop_model *model,
                                       const foreloop_actions *actions, const foreloop_hardware *hardware,
                                       foreloop_error *error) {
    if (!result || !model || !actions)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "scorer_create: an argument is NULL");
    if (actions->fingerprint != model->fingerprint)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "scorer_create: the action table is of another model");
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
    foreloop_release(allocator, scorer->gamma);
    foreloop_release(allocator, scorer->used);
    foreloop_release(allocator, scorer->complete);
    foreloop_release(allocator, scorer->begin);
    foreloop_release(allocator, scorer->saved);
    foreloop_release(allocator, scorer->states);
    foreloop_release(allocator, scorer->row);
    foreloop_release(allocator, scorer->block);
    foreloop_release(allocator, scorer->length_values);
    foreloop_release(allocator, scorer->copies);
    foreloop_release(allocator, scorer->lane_values);
    foreloop_release(allocator, scorer->value_columns);
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

foreloop_status foreloop_check_batch(const foreloop_scorer *scorer, const foreloop_workload *workload,
                                     const uint32_t *ids, const size_t *offsets, size_t count, foreloop_error *error) {
    if (!scorer || !workload || (count && !offsets) || (count && offsets[count] > offsets[0] && !ids))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "an argument is NULL");
    FORELOOP_TRY(check_workload(scorer, workload, error));
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

/* ---- Rollout ---- */

static const foreloop_transh_f32 *kernels(const foreloop_scorer *scorer) {
    return &scorer->model->transition.kernels;
}

/* Interning may have moved the rows since the last call. */
static void take_rows(foreloop_transh_program *program, const foreloop_actions *actions) {
    program->rows = actions->rows;
    program->row_kinds = actions->kinds;
}

static uint32_t known_length(const uint32_t *ids, size_t count) {
    uint32_t length = 0;
    for (size_t i = 0; i < count; i++)
        length += ids[i] != FORELOOP_ACTION_UNKNOWN;
    return length;
}

static size_t shared_length(const uint32_t *ids, const size_t *offsets, size_t i) {
    const size_t a = offsets[i] - offsets[i - 1], b = offsets[i + 1] - offsets[i], limit = a < b ? a : b;
    size_t shared = 0;
    while (shared < limit && ids[offsets[i - 1] + shared] == ids[offsets[i] + shared])
        shared++;
    return shared;
}

/* Saved states of prefixes of the last candidate, the shortest first. */
typedef struct prefixes {
    size_t count;
    size_t depths[FORELOOP_SAVED_STATES];
} prefixes;

/* A shared prefix is worth a state of its own from this number of actions on. */
enum { WORTH_SAVING = 3 };

/* Rolls out one candidate. shared[0] is what it shares with its forerunner, shared[i] what the i-th after it shares
 * with the one before; `ahead` of them are known. */
static void roll_candidate(foreloop_scorer *scorer, prefixes *saved, const uint32_t *ids, size_t length,
                           const size_t *shared, size_t ahead, float *state) {
    const foreloop_transh_program *program = &scorer->program;
    while (saved->count && saved->depths[saved->count - 1] > shared[0])
        saved->count--;
    size_t depth = saved->count ? saved->depths[saved->count - 1] : 0;
    const float *from = saved->count ? scorer->saved + (saved->count - 1) * program->state_size : scorer->begin;

    /* Those after it will want its prefixes of these lengths, which only fall. */
    size_t wanted[GROUP], wanted_count = 0, common = length;
    for (size_t i = 1; i <= ahead; i++) {
        common = shared[i] < common ? shared[i] : common;
        if (common < depth + WORTH_SAVING)
            break;
        if (wanted_count == 0 || wanted[wanted_count - 1] != common)
            wanted[wanted_count++] = common;
    }
    while (wanted_count && saved->count < FORELOOP_SAVED_STATES) {
        const size_t next = wanted[--wanted_count];
        if (next < depth + WORTH_SAVING)
            continue;
        float *own = scorer->saved + saved->count * program->state_size;
        kernels(scorer)->roll(program, ids + depth, next - depth, from, own);
        saved->depths[saved->count++] = depth = next;
        from = own;
    }
    kernels(scorer)->roll(program, length > depth ? ids + depth : NULL, length - depth, from, state);
}

/* ---- Trees ---- */

/* Fewer candidates pass through the trees one by one. */
enum { FEW = 8 };

/* Finishes the scorer's states into the lanes of the block from `first` on. */
static void finish_group(foreloop_scorer *scorer, const float *lengths, size_t first) {
    float *block = scorer->block + first;
    kernels(scorer)->finish_block(&scorer->program, scorer->states, scorer->lane_values, scorer->used, scorer->gamma,
                                  block, BLOCK);
    for (size_t i = 0; i < scorer->copy_count; i++)
        memcpy(block + (size_t)scorer->copies[i].to * BLOCK, block + (size_t)scorer->copies[i].from * BLOCK,
               GROUP * sizeof *block);
    for (size_t i = 0; i < scorer->length_count; i++)
        memcpy(block + (size_t)scorer->length_values[i] * BLOCK, lengths, GROUP * sizeof *block);
}

/* The score of one state, with the same bits. */
static float score_state(foreloop_scorer *scorer, const float *state, float length) {
    const foreloop_transh_program *program = &scorer->program;
    const float *aggregates = state + foreloop_transh_at_aggregates(program);
    const uint32_t *columns = scorer->value_columns, *values = scorer->lane_values;
    float *row = scorer->row, *z = scorer->complete;
    kernels(scorer)->finish(program, state, z);
    for (size_t i = 0; i < program->latent; i++)
        row[columns[values[i]]] = z[i];
    for (size_t i = 0; i < program->aggregates; i++)
        row[columns[values[program->latent + i]]] = aggregates[i];
    for (size_t i = 0; i < scorer->copy_count; i++)
        row[columns[scorer->copies[i].to]] = row[columns[scorer->copies[i].from]];
    for (size_t i = 0; i < scorer->length_count; i++)
        row[columns[scorer->length_values[i]]] = length;
    return foreloop_gbdt_margin(scorer->ranker.gbdt, row);
}

/* ---- Batches ---- */

/* A batch while it is scored. */
typedef struct batch {
    const uint32_t *ids;
    const size_t *offsets;
    size_t count;
    prefixes saved;
    size_t shared[GROUP + 1]; /* of a group's candidates and the one behind it with their forerunners */
} batch;

/* Rolls out the `own` candidates from `first` on into the scorer's states. */
static void roll_group(foreloop_scorer *scorer, batch *all, size_t first, size_t own, float *lengths) {
    const size_t ahead = all->count - first > own ? own : own - 1;
    for (size_t i = 1; i <= ahead; i++)
        all->shared[i] = shared_length(all->ids, all->offsets, first + i);
    for (size_t i = 0; i < own; i++) {
        const uint32_t *sequence = foreloop_sequence(all->ids, all->offsets, first + i);
        const size_t length = all->offsets[first + i + 1] - all->offsets[first + i];
        roll_candidate(scorer, &all->saved, sequence, length, all->shared + i, ahead - i,
                       scorer->states + i * scorer->program.state_size);
        if (scorer->length_count)
            lengths[i] = (float)known_length(sequence, length);
    }
    all->shared[0] = all->shared[ahead];
}

void foreloop_score_checked(foreloop_scorer *scorer, const foreloop_workload *workload, const uint32_t *ids,
                            const size_t *offsets, size_t count, float *scores) {
    batch all = {.ids = ids, .offsets = offsets, .count = count};
    take_rows(&scorer->program, scorer->actions);
    foreloop_rollout_begin(&scorer->model->rollout, &scorer->program, workload->start, scorer->begin);
    for (size_t first = 0; first < count; first += BLOCK) {
        const size_t own = count - first < BLOCK ? count - first : BLOCK;
        float lengths[GROUP] = {0};
        for (size_t group = 0; group < own; group += GROUP) {
            roll_group(scorer, &all, first + group, own - group < GROUP ? own - group : GROUP, lengths);
            if (own >= FEW)
                finish_group(scorer, lengths, group);
        }
        if (own >= FEW)
            foreloop_gbdt_margin_block(scorer->ranker.gbdt, scorer->block, BLOCK, own, scores + first);
        for (size_t i = 0; own < FEW && i < own; i++)
            scores[first + i] = score_state(scorer, scorer->states + i * scorer->program.state_size, lengths[i]);
    }
}

foreloop_status foreloop_score(foreloop_scorer *scorer, const foreloop_workload *workload, const uint32_t *ids,
                               const size_t *offsets, size_t count, float *scores, foreloop_error *error) {
    if (count && !scores)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "score: an argument is NULL");
    FORELOOP_TRY(foreloop_check_batch(scorer, workload, ids, offsets, count, error));
    foreloop_score_checked(scorer, workload, ids, offsets, count, scores);
    return FORELOOP_OK;
}

/* ---- One candidate in full ---- */

static foreloop_status check_sequence(foreloop_scorer *scorer, const foreloop_workload *workload, const uint32_t *ids,
                                      size_t count, const float *output, foreloop_error *error) {
    if (!scorer || !workload || (!ids && count) || !output)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "an argument is NULL");
    FORELOOP_TRY(check_workload(scorer, workload, error));
    return check_ids(scorer, ids, count, error);
}

/* Rolls out all features; returns z, in the plan's order, and the aggregates. */
static const float *roll_complete(foreloop_scorer *scorer, const foreloop_workload *workload, const uint32_t *ids,
                                  size_t count, const float **aggregates) {
    const foreloop_rollout_plan *plan = &scorer->model->rollout;
    foreloop_transh_program program = foreloop_rollout_program(plan, true);
    float *state = scorer->complete, *z = state + program.state_size;
    take_rows(&program, scorer->actions);
    foreloop_rollout_begin(plan, &program, workload->start, state);
    kernels(scorer)->roll(&program, ids, count, state, state);
    kernels(scorer)->finish(&program, state, z);
    *aggregates = state + foreloop_transh_at_aggregates(&program);
    return z;
}

foreloop_status foreloop_features(foreloop_scorer *scorer, const foreloop_workload *workload, const uint32_t *ids,
                                  size_t id_count, float *features, foreloop_error *error) {
    FORELOOP_TRY(check_sequence(scorer, workload, ids, id_count, features, error));
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
            features[i] = (float)known_length(ids, id_count);
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
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "features_batch: an argument is NULL");
    FORELOOP_TRY(foreloop_check_batch(scorer, workload, ids, offsets, count, error));
    if (stride < scorer->model->manifest.plan.count)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "features_batch: the stride is %zu, there are %zu features", stride,
                             scorer->model->manifest.plan.count);
    for (size_t i = 0; i < count; i++)
        FORELOOP_TRY(foreloop_features(scorer, workload, foreloop_sequence(ids, offsets, i),
                                       offsets[i + 1] - offsets[i], features + i * stride, error));
    return FORELOOP_OK;
}

foreloop_status foreloop_rollout(foreloop_scorer *scorer, const foreloop_workload *workload, const uint32_t *ids,
                                 size_t id_count, float *latent, foreloop_error *error) {
    FORELOOP_TRY(check_sequence(scorer, workload, ids, id_count, latent, error));
    const float *aggregates, *z = roll_complete(scorer, workload, ids, id_count, &aggregates);
    for (size_t i = 0; i < workload->size; i++)
        latent[scorer->model->rollout.latent_order[i]] = z[i];
    return FORELOOP_OK;
}

foreloop_status foreloop_score_details(const foreloop_scorer *scorer, const uint32_t *ids, const size_t *offsets,
                                       size_t count, foreloop_candidate_details *details, foreloop_error *error) {
    if (!scorer || (count && (!offsets || !details || (offsets[count] > offsets[0] && !ids))))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "score_details: an argument is NULL");
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
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "state_begin: an argument is NULL or not aligned to 16");
    FORELOOP_TRY(check_workload(scorer, workload, error));
    *(state_header *)state =
        (state_header){.fingerprint = scorer->model->fingerprint, .reads_more = scorer->ranker.reads_more};
    foreloop_rollout_begin(&scorer->model->rollout, &scorer->program, workload->start, state_values(state));
    return FORELOOP_OK;
}

static foreloop_status check_state(const foreloop_scorer *scorer, const void *state, foreloop_error *error) {
    if (!scorer || !state || (uintptr_t)state % 16)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "a state is NULL or not aligned to 16");
    if (((const state_header *)state)->fingerprint != scorer->model->fingerprint)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "the state was not begun by foreloop_state_begin of this model");
    if (((const state_header *)state)->reads_more != scorer->ranker.reads_more)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "the state was begun with a ranker that reads other features: begin it anew");
    return FORELOOP_OK;
}

foreloop_status foreloop_state_step(foreloop_scorer *scorer, void *state, uint32_t id, foreloop_error *error) {
    FORELOOP_TRY(check_state(scorer, state, error));
    FORELOOP_TRY(check_ids(scorer, &id, 1, error));
    state_header *header = state;
    if (header->length >= FORELOOP_MAX_LENGTH)
        return foreloop_fail(error, FORELOOP_ERROR_LIMIT, "a state has taken %d actions, no more are allowed",
                             FORELOOP_MAX_LENGTH);
    float *values = state_values(state);
    take_rows(&scorer->program, scorer->actions);
    kernels(scorer)->roll(&scorer->program, &id, 1, values, values);
    header->length += id != FORELOOP_ACTION_UNKNOWN;
    return FORELOOP_OK;
}

foreloop_status foreloop_state_score(foreloop_scorer *scorer, const void *state, float *score, foreloop_error *error) {
    return foreloop_state_score_batch(scorer, &state, 1, score, error);
}

foreloop_status foreloop_state_score_batch(foreloop_scorer *scorer, const void *const *states, size_t count,
                                           float *scores, foreloop_error *error) {
    if (!scorer || (count && (!states || !scores)))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "state_score: an argument is NULL");
    for (size_t i = 0; i < count; i++)
        FORELOOP_TRY(check_state(scorer, states[i], error));
    const size_t size = scorer->program.state_size;
    for (size_t first = 0; first < count; first += BLOCK) {
        const size_t own = count - first < BLOCK ? count - first : BLOCK;
        float lengths[GROUP] = {0};
        for (size_t i = 0; i < own; i++) {
            const state_header *header = states[first + i];
            if (own < FEW) {
                scores[first + i] = score_state(scorer, (const float *)(header + 1), (float)header->length);
                continue;
            }
            memcpy(scorer->states + i % GROUP * size, header + 1, size * sizeof(float));
            lengths[i % GROUP] = (float)header->length;
            if (i % GROUP == GROUP - 1 || i == own - 1)
                finish_group(scorer, lengths, i / GROUP * GROUP);
        }
        if (own >= FEW)
            foreloop_gbdt_margin_block(scorer->ranker.gbdt, scorer->block, BLOCK, own, scores + first);
    }
    return FORELOOP_OK;
}
