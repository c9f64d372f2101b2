/*
 * Scoring of batches, in chunks of about a thousand candidates that pass through three stages together:
 *
 *   1. In groups of 16, each candidate takes its steps from what it shares with its forerunners on (the products and
 *      aggregates of a state, everything but the sum of d).
 *   2. Slice by slice of z, all groups form that slice of the sums and finish it into the trees' layout. The slice of
 *      all actions stays in the second-level cache meanwhile, which whole rows of d would not.
 *   3. The trees run over blocks of four groups.
 */
#include "common/error.h"
#include "gbdt/model.h"
#include "scorer.h"
#include <string.h>

enum { BLOCK = FORELOOP_BLOCK, GROUP = FORELOOP_GROUP, SLICE = FORELOOP_TRANSH_SLICE };

/* ---- Which steps to take ---- */

/* A batch while it is scored. */
typedef struct batch {
    const uint32_t *ids;
    const size_t *offsets;
    size_t count;
    size_t shared[GROUP + 1]; /* of a group's candidates and the one behind it with their forerunners */
    /* The prefixes of the last candidate that are in slots from FORELOOP_SLOT_SAVED on, the shortest first. */
    size_t saved_count;
    size_t saved_depths[FORELOOP_SAVED_STATES];
} batch;

static size_t shared_length(const uint32_t *ids, const size_t *offsets, size_t i) {
    const size_t a = offsets[i] - offsets[i - 1], b = offsets[i + 1] - offsets[i], limit = a < b ? a : b;
    size_t shared = 0;
    while (shared < limit && ids[offsets[i - 1] + shared] == ids[offsets[i] + shared])
        shared++;
    return shared;
}

/* A shared prefix is worth a slot of its own from this number of actions on. */
enum { WORTH_SAVING = 3 };

/* Plans the rollout of one candidate into slot `to`. shared[0] is what it shares with its forerunner, shared[i] what
 * the i-th after it shares with the one before; `ahead` of them are known. Returns the end of its segments. */
static foreloop_transh_segment *plan_candidate(batch *all, const uint32_t *ids, size_t length, const size_t *shared,
                                               size_t ahead, uint32_t to, foreloop_transh_segment *segment) {
    while (all->saved_count && all->saved_depths[all->saved_count - 1] > shared[0])
        all->saved_count--;
    size_t depth = all->saved_count ? all->saved_depths[all->saved_count - 1] : 0;
    uint32_t from = (uint32_t)(FORELOOP_SLOT_BEGIN + all->saved_count);

    /* Those after it will want its prefixes of these lengths, which only fall. */
    size_t wanted[GROUP], wanted_count = 0, common = length;
    for (size_t i = 1; i <= ahead; i++) {
        common = shared[i] < common ? shared[i] : common;
        if (common < depth + WORTH_SAVING)
            break;
        if (wanted_count == 0 || wanted[wanted_count - 1] != common)
            wanted[wanted_count++] = common;
    }
    while (wanted_count && all->saved_count < FORELOOP_SAVED_STATES) {
        const size_t next = wanted[--wanted_count];
        if (next < depth + WORTH_SAVING)
            continue;
        all->saved_depths[all->saved_count++] = next;
        *segment++ = (foreloop_transh_segment){ids + depth, next - depth, from, from + 1};
        depth = next;
        from++;
    }
    *segment++ = (foreloop_transh_segment){length > depth ? ids + depth : ids, length - depth, from, to};
    return segment;
}
_Static_assert(FORELOOP_SLOT_SAVED == FORELOOP_SLOT_BEGIN + 1, "saved prefixes follow the empty one");

/* Plans the `own` candidates from `first` on; returns the end of their segments. */
static foreloop_transh_segment *plan_group(batch *all, size_t first, size_t own, foreloop_transh_segment *segment) {
    const size_t ahead = all->count - first > own ? own : own - 1;
    for (size_t i = 1; i <= ahead; i++)
        all->shared[i] = shared_length(all->ids, all->offsets, first + i);
    for (size_t i = 0; i < own; i++)
        segment = plan_candidate(all, foreloop_sequence(all->ids, all->offsets, first + i),
                                 all->offsets[first + i + 1] - all->offsets[first + i], all->shared + i, ahead - i,
                                 (uint32_t)(FORELOOP_SLOT_OWN + i), segment);
    all->shared[0] = all->shared[ahead];
    return segment;
}

static void known_lengths(const batch *all, size_t first, size_t own, float lengths[GROUP]) {
    for (size_t i = 0; i < own; i++)
        lengths[i] = (float)foreloop_known_length(foreloop_sequence(all->ids, all->offsets, first + i),
                                                  all->offsets[first + i + 1] - all->offsets[first + i]);
}

/* ---- Features ---- */

static void write_lengths(const foreloop_scorer *scorer, const float lengths[GROUP], float *block) {
    for (size_t i = 0; i < scorer->length_count; i++)
        memcpy(block + (size_t)scorer->length_values[i] * BLOCK, lengths, GROUP * sizeof *block);
}

void foreloop_finish_states(foreloop_scorer *scorer, const float *states, const float *lengths, float *block) {
    const foreloop_transh_program *program = &scorer->program;
    const foreloop_transh_f32 *kernels = foreloop_scorer_kernels(scorer);
    const size_t used_count = foreloop_transh_gather_f32(program, states, scorer->used, scorer->gamma);
    for (size_t slice = 0; slice < foreloop_transh_slice_count(program->latent); slice++)
        kernels->finish_slice(program, slice, states + slice * SLICE, program->state_size, scorer->used, used_count,
                              scorer->gamma, scorer->lane_values, block, BLOCK);
    kernels->finish_aggregates(program, states, scorer->lane_values + program->latent, block, BLOCK);
    write_lengths(scorer, lengths, block);
}

/* ---- Trees ---- */

void foreloop_score_block(foreloop_scorer *scorer, float *block, size_t count, float *scores) {
    for (size_t i = 0; i < scorer->copy_count; i++)
        memcpy(block + (size_t)scorer->copies[i].to * BLOCK, block + (size_t)scorer->copies[i].from * BLOCK,
               BLOCK * sizeof *block);
    if (count >= FORELOOP_FEW) {
        foreloop_gbdt_margin_block(scorer->ranker.gbdt, block, BLOCK, count, scores);
        return;
    }
    for (size_t s = 0; s < count; s++) {
        for (size_t i = 0; i < scorer->value_count; i++)
            scorer->row[scorer->value_columns[i]] = block[i * BLOCK + s];
        scores[s] = foreloop_gbdt_margin(scorer->ranker.gbdt, scorer->row);
    }
}

float foreloop_score_state(foreloop_scorer *scorer, const float *state, float length) {
    const foreloop_transh_program *program = &scorer->program;
    const float *aggregates = state + foreloop_transh_at_aggregates(program);
    const uint32_t *columns = scorer->value_columns, *values = scorer->lane_values;
    float *row = scorer->row, *z = scorer->complete;
    foreloop_scorer_kernels(scorer)->finish(program, state, z);
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

static float *block_of_group(const foreloop_scorer *scorer, size_t group) {
    const size_t per_block = BLOCK / GROUP;
    return scorer->blocks + group / per_block * (scorer->value_count + 1) * BLOCK + group % per_block * GROUP;
}

/* Stage 1. */
static void take_steps(foreloop_scorer *scorer, batch *all, size_t first, size_t own, size_t group) {
    const foreloop_transh_program *program = &scorer->program;
    const foreloop_transh_f32 *kernels = foreloop_scorer_kernels(scorer);
    const size_t begin = scorer->segment_begin[group], kinds = program->kinds;
    const float *states = scorer->slots + FORELOOP_SLOT_OWN * program->state_size;
    float *block = block_of_group(scorer, group), lengths[GROUP] = {0};
    const size_t end = (size_t)(plan_group(all, first, own, scorer->segments + begin) - scorer->segments);
    kernels->steps(program, scorer->segments + begin, end - begin, scorer->slots);
    scorer->segment_begin[group + 1] = end;
    scorer->used_counts[group] = foreloop_transh_gather_f32(program, states, scorer->used + group * kinds,
                                                            scorer->gamma + group * kinds * GROUP);
    kernels->finish_aggregates(program, states, scorer->lane_values + program->latent, block, BLOCK);
    if (scorer->length_count) {
        known_lengths(all, first, own, lengths);
        write_lengths(scorer, lengths, block);
    }
}

/* Stage 2, for one slice. */
static void form_slice(foreloop_scorer *scorer, size_t slice, size_t groups) {
    const foreloop_transh_program *program = &scorer->program;
    const foreloop_transh_f32 *kernels = foreloop_scorer_kernels(scorer);
    float *sums = scorer->sums + slice * FORELOOP_SLOTS * SLICE;
    for (size_t group = 0; group < groups; group++) {
        const size_t begin = scorer->segment_begin[group], end = scorer->segment_begin[group + 1];
        kernels->sums(program, slice, scorer->segments + begin, end - begin, sums, SLICE);
        kernels->finish_slice(program, slice, sums + FORELOOP_SLOT_OWN * SLICE, SLICE,
                              scorer->used + group * program->kinds, scorer->used_counts[group],
                              scorer->gamma + group * program->kinds * GROUP, scorer->lane_values,
                              block_of_group(scorer, group), BLOCK);
    }
}

/* Scores candidates from `first` on, a chunk at the most; returns their number. */
static size_t score_chunk(foreloop_scorer *scorer, batch *all, size_t first, float *scores) {
    size_t groups = 0, count = 0;
    scorer->segment_begin[0] = 0;
    while (first + count < all->count && groups < FORELOOP_CHUNK_GROUPS &&
           scorer->segment_begin[groups] + FORELOOP_GROUP_SEGMENTS <= FORELOOP_CHUNK_SEGMENTS) {
        const size_t left = all->count - first - count, own = left < GROUP ? left : GROUP;
        take_steps(scorer, all, first + count, own, groups++);
        count += own;
    }
    for (size_t slice = 0; slice < foreloop_transh_slice_count(scorer->program.latent); slice++)
        form_slice(scorer, slice, groups);
    for (size_t done = 0; done < count; done += BLOCK)
        foreloop_score_block(scorer, block_of_group(scorer, done / GROUP), count - done < BLOCK ? count - done : BLOCK,
                             scores + done);
    return count;
}

/* So few candidates that the group's kernels would mostly work for none: one by one, on whole states. */
static void score_few(foreloop_scorer *scorer, batch *all, float *scores) {
    const foreloop_transh_program *program = &scorer->program;
    const foreloop_transh_f32 *kernels = foreloop_scorer_kernels(scorer);
    const size_t count = (size_t)(plan_group(all, 0, all->count, scorer->segments) - scorer->segments);
    float lengths[GROUP] = {0};
    kernels->steps(program, scorer->segments, count, scorer->slots);
    for (size_t slice = 0; slice < foreloop_transh_slice_count(program->latent); slice++)
        kernels->sums(program, slice, scorer->segments, count, scorer->slots + slice * SLICE, program->state_size);
    known_lengths(all, 0, all->count, lengths);
    for (size_t i = 0; i < all->count; i++)
        scores[i] =
            foreloop_score_state(scorer, scorer->slots + (FORELOOP_SLOT_OWN + i) * program->state_size, lengths[i]);
}

void foreloop_score_checked(foreloop_scorer *scorer, const foreloop_workload *workload, const uint32_t *ids,
                            const size_t *offsets, size_t count, float *scores) {
    batch all = {.ids = ids, .offsets = offsets, .count = count};
    float *begin = scorer->slots + FORELOOP_SLOT_BEGIN * scorer->program.state_size;
    foreloop_take_rows(&scorer->program, scorer->actions);
    foreloop_rollout_begin(&scorer->model->rollout, &scorer->program, workload->start, begin);
    if (count == 0)
        return;
    if (count < FORELOOP_FEW) {
        score_few(scorer, &all, scores);
        return;
    }
    for (size_t slice = 0; slice < foreloop_transh_slice_count(scorer->program.latent); slice++)
        memcpy(scorer->sums + (slice * FORELOOP_SLOTS + FORELOOP_SLOT_BEGIN) * SLICE, begin + slice * SLICE,
               foreloop_transh_slice_width(&scorer->program, slice) * sizeof *begin);
    for (size_t first = 0; first < count;)
        first += score_chunk(scorer, &all, first, scores + first);
}

foreloop_status foreloop_score(foreloop_scorer *scorer, const foreloop_workload *workload, const uint32_t *ids,
                               const size_t *offsets, size_t count, float *scores, foreloop_error *error) {
    if (count && !scores)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_score: an argument is NULL");
    FORELOOP_TRY(foreloop_check_batch("foreloop_score", scorer, workload, ids, offsets, count, error));
    foreloop_score_checked(scorer, workload, ids, offsets, count, scores);
    return FORELOOP_OK;
}
