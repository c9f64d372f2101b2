/*
 * Scoring of batches, in chunks of some thousand candidates that pass through three stages together:
 *
 *   1. In groups of 16, each candidate takes its steps from what it shares with its forerunners on (the products and
 *      aggregates of a state, everything but the sum of d).
 *   2. Slice by slice of z, all groups form that slice of the sums and finish it, and each block of four groups makes
 *      the trees' codes of it. The slice of all actions stays in the second-level cache meanwhile, and so do the codes;
 *      whole rows of d would not, nor would values.
 *   3. The trees run over the blocks' codes, and the score network, where the model has one, over their values, which
 *      are kept for it.
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

/* The values of lanes begin <= i < end are in `block`: copies those that stand for several, and makes their codes. */
static void code_lanes(const foreloop_scorer *scorer, size_t begin, size_t end, float *block, size_t count,
                       int8_t *codes) {
    for (size_t lane = begin; lane < end; lane++) {
        const uint32_t first = scorer->lane_values[lane];
        for (uint32_t value = first; value < scorer->value_count; value = scorer->next_values[value]) {
            float *const own = block + (size_t)value * BLOCK;
            if (value != first)
                memcpy(own, block + (size_t)first * BLOCK, BLOCK * sizeof *own);
            if (value < scorer->tree_values)
                foreloop_gbdt_code_value(&scorer->coding, value, own, count, codes);
        }
    }
}

/* The same for the values of no lane. */
static void code_own(const foreloop_scorer *scorer, const float *block, size_t count, int8_t *codes) {
    for (size_t i = 0; i < scorer->own_count; i++) {
        const uint32_t value = scorer->own_values[i];
        if (value < scorer->tree_values)
            foreloop_gbdt_code_value(&scorer->coding, value, block + (size_t)value * BLOCK, count, codes);
    }
}

static void write_lengths(const foreloop_scorer *scorer, const float lengths[GROUP], float *block) {
    for (size_t i = 0; i < scorer->length_count; i++)
        memcpy(block + (size_t)scorer->own_values[i] * BLOCK, lengths, GROUP * sizeof *block);
}

/* ---- States ---- */

/* Writes all values of the states of one group to the lanes of a block from `block` on. */
static void finish_states(foreloop_scorer *scorer, const float *states, const float lengths[GROUP], float *block) {
    const foreloop_transh_program *program = &scorer->program;
    const foreloop_transh_f32 *kernels = foreloop_scorer_kernels(scorer);
    const size_t used_count = foreloop_transh_gather_f32(program, states, scorer->used, scorer->gamma);
    for (size_t slice = 0; slice < foreloop_transh_slice_count(program->latent); slice++)
        kernels->finish_slice(program, slice, states + slice * SLICE, program->state_size, scorer->used, used_count,
                              scorer->gamma, scorer->lane_values, block, BLOCK);
    kernels->finish_aggregates(program, states, scorer->lane_values + program->latent, block, BLOCK);
    write_lengths(scorer, lengths, block);
}

/* ---- Scores ---- */

/* Of a block whose codes are made: the trees' margins, and the network's outputs added to them. */
static void score_block(const foreloop_scorer *scorer, const int8_t *codes, const float *block, size_t count,
                        float *scores) {
    foreloop_gbdt_margin_codes(&scorer->coding, codes, block, BLOCK, count, scores);
    if (scorer->model->has_network)
        foreloop_score_network_add_block(&scorer->model->network, block, scorer->network_values, count,
                                         scorer->network_scratch, scores);
}

/* The same of one row. */
static float score_row(const foreloop_scorer *scorer, const float *row) {
    const float margin = foreloop_gbdt_margin(scorer->ranker.gbdt, row);
    return scorer->model->has_network
               ? margin + foreloop_score_network_row(&scorer->model->network, row, scorer->network_columns,
                                                     scorer->network_scratch)
               : margin;
}

static float score_state(foreloop_scorer *scorer, const float *state, float length) {
    const foreloop_transh_program *program = &scorer->program;
    float *row = scorer->row, *z = scorer->complete;
    foreloop_scorer_kernels(scorer)->finish(program, state, z);
    for (size_t lane = 0; lane < program->latent + program->aggregates; lane++) {
        const float number =
            lane < program->latent ? z[lane] : state[foreloop_transh_at_aggregates(program) + lane - program->latent];
        for (uint32_t value = scorer->lane_values[lane]; value < scorer->value_count;
             value = scorer->next_values[value])
            row[scorer->value_columns[value]] = number;
    }
    for (size_t i = 0; i < scorer->length_count; i++)
        row[scorer->value_columns[scorer->own_values[i]]] = length;
    return score_row(scorer, row);
}

void foreloop_score_states(foreloop_scorer *scorer, const float *const *states, const float *lengths, size_t count,
                           float *scores) {
    const size_t size = scorer->program.state_size;
    float *const own = scorer->slots + FORELOOP_SLOT_OWN * size, *const block = scorer->blocks;
    if (count < FORELOOP_FEW) {
        for (size_t i = 0; i < count; i++)
            scores[i] = score_state(scorer, states[i], lengths[i]);
        return;
    }
    for (size_t first = 0; first < count; first += GROUP) {
        const size_t there = count - first < GROUP ? count - first : GROUP;
        float own_lengths[GROUP] = {0};
        for (size_t i = 0; i < there; i++) {
            memcpy(own + i * size, states[first + i], size * sizeof *own);
            own_lengths[i] = lengths[first + i];
        }
        finish_states(scorer, own, own_lengths, block + first);
    }
    code_lanes(scorer, 0, scorer->program.latent + scorer->program.aggregates, block, count, scorer->codes);
    code_own(scorer, block, count, scorer->codes);
    score_block(scorer, scorer->codes, block, count, scores);
}

/* ---- Batches ---- */

/* The parts of a chunk. */
enum { GROUPS = BLOCK / GROUP /* of a block */ };

static float *block_values(const foreloop_scorer *scorer, size_t block) {
    return scorer->blocks + (scorer->keeps_values ? block : 0) * (scorer->value_count + 1) * BLOCK;
}

static int8_t *block_codes(const foreloop_scorer *scorer, size_t block) {
    return scorer->codes + block * scorer->coding.codes_size;
}

/* Where rows do not stay in the second-level cache, those of the next group are fetched ahead. */
static size_t segments_behind(const foreloop_scorer *scorer, size_t group, size_t row_size) {
    enum { STAYS = 1 << 20 };
    const bool stays = scorer->actions->count <= STAYS / sizeof(float) / row_size;
    return stays ? 0 : scorer->segment_begin[group + 2] - scorer->segment_begin[group + 1];
}

/* Stage 1, of one group, whose lanes of a block begin at `values`. */
static void take_steps(foreloop_scorer *scorer, const batch *all, size_t first, size_t own, size_t group,
                       float *values) {
    const foreloop_transh_program *program = &scorer->program;
    const foreloop_transh_f32 *kernels = foreloop_scorer_kernels(scorer);
    const size_t begin = scorer->segment_begin[group], end = scorer->segment_begin[group + 1], kinds = program->kinds;
    const float *states = scorer->slots + FORELOOP_SLOT_OWN * program->state_size;
    kernels->steps(program, scorer->segments + begin, end - begin, segments_behind(scorer, group, program->row_stride),
                   scorer->slots);
    scorer->used_counts[group] = foreloop_transh_gather_f32(program, states, scorer->used + group * kinds,
                                                            scorer->gamma + group * kinds * GROUP);
    kernels->finish_aggregates(program, states, scorer->lane_values + program->latent, values, BLOCK);
    if (scorer->length_count) {
        float lengths[GROUP] = {0};
        known_lengths(all, first, own, lengths);
        write_lengths(scorer, lengths, values);
    }
}

/* Stage 1, of one block. */
static void begin_block(foreloop_scorer *scorer, const batch *all, size_t first, size_t own, size_t block) {
    const foreloop_transh_program *program = &scorer->program;
    float *const values = block_values(scorer, block);
    for (size_t done = 0; done < own; done += GROUP)
        take_steps(scorer, all, first + done, own - done < GROUP ? own - done : GROUP, block * GROUPS + done / GROUP,
                   values + done);
    code_lanes(scorer, program->latent, program->latent + program->aggregates, values, own, block_codes(scorer, block));
    code_own(scorer, values, own, block_codes(scorer, block));
}

/* Stage 2, of one slice and block. */
static void form_slice(foreloop_scorer *scorer, size_t slice, size_t block, size_t own) {
    const foreloop_transh_program *program = &scorer->program;
    const foreloop_transh_f32 *kernels = foreloop_scorer_kernels(scorer);
    float *const sums = scorer->sums + slice * FORELOOP_SLOTS * SLICE, *const values = block_values(scorer, block);
    for (size_t done = 0; done < own; done += GROUP) {
        const size_t group = block * GROUPS + done / GROUP;
        const size_t begin = scorer->segment_begin[group], end = scorer->segment_begin[group + 1];
        kernels->sums(program, slice, scorer->segments + begin, end - begin, segments_behind(scorer, group, SLICE),
                      sums, SLICE);
        kernels->finish_slice(program, slice, sums + FORELOOP_SLOT_OWN * SLICE, SLICE,
                              scorer->used + group * program->kinds, scorer->used_counts[group],
                              scorer->gamma + group * program->kinds * GROUP, scorer->lane_values, values + done,
                              BLOCK);
    }
    code_lanes(scorer, slice * SLICE, slice * SLICE + foreloop_transh_slice_width(program, slice), values, own,
               block_codes(scorer, block));
}

/* Plans the rollouts of candidates from `first` on, a chunk at the most; returns their number. */
static size_t plan_chunk(foreloop_scorer *scorer, batch *all, size_t first) {
    const size_t left = all->count - first;
    size_t count = 0, group = 0, end = 0;
    for (; count < left && group < scorer->chunk_blocks * GROUPS &&
           end + FORELOOP_GROUP_SEGMENTS <= scorer->segment_limit;
         group++) {
        const size_t own = left - count < GROUP ? left - count : GROUP;
        scorer->segment_begin[group] = end;
        end = (size_t)(plan_group(all, first + count, own, scorer->segments + end) - scorer->segments);
        count += own;
    }
    scorer->segment_begin[group] = scorer->segment_begin[group + 1] = end; /* behind the last one is none */
    return count;
}

/* The trees read a block's codes in no order. */
static void fetch_codes(const foreloop_scorer *scorer, size_t block) {
    const int8_t *const codes = block_codes(scorer, block);
    for (size_t i = 0; i < scorer->coding.codes_size; i += 64)
        __builtin_prefetch(codes + i, 0, 2);
}

/* Scores candidates from `first` on, a chunk at the most; returns their number. */
static size_t score_chunk(foreloop_scorer *scorer, batch *all, size_t first, float *scores) {
    const size_t count = plan_chunk(scorer, all, first);
    for (size_t done = 0; done < count; done += BLOCK)
        begin_block(scorer, all, first + done, count - done < BLOCK ? count - done : BLOCK, done / BLOCK);
    for (size_t slice = 0; slice < foreloop_transh_slice_count(scorer->program.latent); slice++)
        for (size_t done = 0; done < count; done += BLOCK)
            form_slice(scorer, slice, done / BLOCK, count - done < BLOCK ? count - done : BLOCK);
    for (size_t done = 0; done < count; done += BLOCK) {
        if (count - done > BLOCK)
            fetch_codes(scorer, done / BLOCK + 1);
        score_block(scorer, block_codes(scorer, done / BLOCK), block_values(scorer, done / BLOCK),
                    count - done < BLOCK ? count - done : BLOCK, scores + done);
    }
    return count;
}

/* So few candidates that the group's kernels would mostly work for none: one by one, on whole states. */
static void score_few(foreloop_scorer *scorer, batch *all, float *scores) {
    const foreloop_transh_program *program = &scorer->program;
    const foreloop_transh_f32 *kernels = foreloop_scorer_kernels(scorer);
    const size_t count = (size_t)(plan_group(all, 0, all->count, scorer->segments) - scorer->segments);
    float lengths[GROUP] = {0};
    kernels->steps(program, scorer->segments, count, 0, scorer->slots);
    for (size_t slice = 0; slice < foreloop_transh_slice_count(program->latent); slice++)
        kernels->sums(program, slice, scorer->segments, count, 0, scorer->slots + slice * SLICE, program->state_size);
    known_lengths(all, 0, all->count, lengths);
    for (size_t i = 0; i < all->count; i++)
        scores[i] = score_state(scorer, scorer->slots + (FORELOOP_SLOT_OWN + i) * program->state_size, lengths[i]);
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
