/*
 * The pipeline, top to bottom: a program becomes a workload (z0), actions become ids, a scorer rolls sequences of ids
 * out and lets the trees judge the end state, and top-k keeps the best. The parts do the work; here are the handles,
 * the checks of arguments and the composition.
 */
#include "common/alloc.h"
#include "common/error.h"
#include "common/hash.h"
#include "common/sized.h"
#include "gbdt/model.h"
#include "kernels_cpu/cpu.h"
#include "model/model.h"
#include "model/text_encoder.h"
#include "transh/rollout.h"
#include <math.h>
#include <string.h>

const char *foreloop_version(void) {
    return FORELOOP_VERSION_STRING;
}

const char *foreloop_status_name(foreloop_status status) {
    static const char *const names[] = {"ok",          "end",          "error_argument",    "error_memory",
                                        "error_io",    "error_format", "error_unsupported", "error_mismatch",
                                        "error_limit", "error_value"};
    return (size_t)status < sizeof names / sizeof *names ? names[status] : "unknown";
}

const char *foreloop_tier_name(foreloop_tier tier) {
    static const char *const names[] = {"unknown", "ref", "avx2", "avx512"};
    return (size_t)tier < sizeof names / sizeof *names ? names[tier] : "unknown";
}

foreloop_tier foreloop_tier_detect(void) {
    return foreloop_cpu_tier(FORELOOP_TIER_BEST);
}

void foreloop_options_init(foreloop_options *options, size_t size) {
    foreloop_sized_init(options, size);
}

/* ---- Workloads --------------------------------------------------------------------------------------------------- */

struct foreloop_workload {
    foreloop_allocator allocator;
    uint64_t fingerprint;
    size_t size;
    float latent[];
};

static foreloop_status create_workload(foreloop_workload **workload, const foreloop_model *model,
                                       foreloop_error *error) {
    size_t size = model->manifest.latent_size;
    foreloop_workload *created = foreloop_allocate(&model->allocator, 1, sizeof *created + size * sizeof(float));
    if (!created)
        return foreloop_fail_memory(error, size, sizeof(float), "a workload");
    created->allocator = model->allocator;
    created->fingerprint = model->fingerprint;
    created->size = size;
    *workload = created;
    return FORELOOP_OK;
}

/* Takes a workload whose latent state is filled in, or releases it. */
static foreloop_status finish_workload(foreloop_workload **result, foreloop_workload *workload, foreloop_error *error) {
    for (size_t i = 0; i < workload->size; i++) {
        if (!isfinite(workload->latent[i])) {
            foreloop_workload_close(workload);
            return foreloop_fail(error, FORELOOP_ERROR_VALUE, "element %zu of the latent state is not finite", i);
        }
    }
    *result = workload;
    return FORELOOP_OK;
}

static foreloop_status canonicalize(const foreloop_allocator *allocator, const char *text, size_t length,
                                    char **canonical, size_t *canonical_length, foreloop_error *error) {
    size_t needed;
    FORELOOP_TRY(foreloop_canonical_text(text, length, NULL, 0, &needed, error));
    *canonical = foreloop_allocate(allocator, needed, 1);
    if (!*canonical)
        return foreloop_fail_memory(error, needed, 1, "the canonical text");
    *canonical_length = needed;
    return needed ? foreloop_canonical_text(text, length, *canonical, needed, &needed, error) : FORELOOP_OK;
}

foreloop_status foreloop_workload_encode(foreloop_workload **result, const foreloop_model *model,
                                         foreloop_encoder *encoder, const char *text, size_t length,
                                         foreloop_error *error) {
    if (!result || !model || !encoder || (!text && length))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "workload_encode: an argument is NULL");
    if (foreloop_encoder_transformer(encoder) != model->transformer)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "workload_encode: the encoder must be created from foreloop_model_transformer(model)");
    foreloop_workload *workload = NULL;
    FORELOOP_TRY(create_workload(&workload, model, error));
    char *canonical = NULL;
    size_t canonical_length = 0;
    foreloop_status status = canonicalize(&model->allocator, text, length, &canonical, &canonical_length, error);
    if (status == FORELOOP_OK)
        status = foreloop_encode_text(encoder, canonical, canonical_length, workload->latent, error);
    foreloop_release(&model->allocator, canonical);
    if (status != FORELOOP_OK) {
        foreloop_workload_close(workload);
        return status;
    }
    return finish_workload(result, workload, error);
}

foreloop_status foreloop_workload_create(foreloop_workload **result, const foreloop_model *model, const float *latent,
                                         foreloop_error *error) {
    if (!result || !model || !latent)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "workload_create: an argument is NULL");
    foreloop_workload *workload = NULL;
    FORELOOP_TRY(create_workload(&workload, model, error));
    memcpy(workload->latent, latent, workload->size * sizeof *latent);
    return finish_workload(result, workload, error);
}

void foreloop_workload_close(foreloop_workload *workload) {
    if (!workload)
        return;
    foreloop_allocator allocator = workload->allocator;
    foreloop_release(&allocator, workload);
}

const float *foreloop_workload_latent(const foreloop_workload *workload) {
    return workload ? workload->latent : NULL;
}

/* A saved state: magic, version, size, fingerprint, latent state, checksum of all that; little-endian. */
static const char saved_magic[8] = {'F', 'L', 'W', 'O', 'R', 'K', 'L', 'D'};
enum { SAVED_VERSION = 1, SAVED_HEADER = 24, SAVED_CHECKSUM = 8 };

static void put_little(unsigned char *bytes, uint64_t value, size_t count) {
    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get_little(const unsigned char *bytes, size_t count) {
    uint64_t value = 0;
    for (size_t i = 0; i < count; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

size_t foreloop_workload_saved_size(const foreloop_workload *workload) {
    return workload ? SAVED_HEADER + workload->size * sizeof(float) + SAVED_CHECKSUM : 0;
}

foreloop_status foreloop_workload_save(const foreloop_workload *workload, void *buffer, size_t capacity,
                                       foreloop_error *error) {
    if (!workload || !buffer)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "workload_save: an argument is NULL");
    size_t size = foreloop_workload_saved_size(workload);
    if (capacity < size)
        return foreloop_fail(error, FORELOOP_ERROR_LIMIT, "workload_save: the buffer has %zu bytes, %zu are needed",
                             capacity, size);
    unsigned char *bytes = buffer;
    memcpy(bytes, saved_magic, sizeof saved_magic);
    put_little(bytes + 8, SAVED_VERSION, 4);
    put_little(bytes + 12, workload->size, 4);
    put_little(bytes + 16, workload->fingerprint, 8);
    for (size_t i = 0; i < workload->size; i++) {
        uint32_t bits;
        memcpy(&bits, &workload->latent[i], sizeof bits);
        put_little(bytes + SAVED_HEADER + 4 * i, bits, 4);
    }
    put_little(bytes + size - SAVED_CHECKSUM, foreloop_hash(FORELOOP_HASH_START, bytes, size - SAVED_CHECKSUM), 8);
    return FORELOOP_OK;
}

foreloop_status foreloop_workload_load(foreloop_workload **result, const foreloop_model *model, const void *data,
                                       size_t size, foreloop_error *error) {
    if (!result || !model || !data)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "workload_load: an argument is NULL");
    const unsigned char *bytes = data;
    if (size < SAVED_HEADER + SAVED_CHECKSUM || memcmp(bytes, saved_magic, sizeof saved_magic) != 0)
        return foreloop_fail(error, FORELOOP_ERROR_FORMAT, "not a saved workload: encode the program again");
    if (get_little(bytes + 8, 4) != SAVED_VERSION)
        return foreloop_fail(error, FORELOOP_ERROR_UNSUPPORTED,
                             "a saved workload of version %u, this library reads %d: encode the program again",
                             (unsigned)get_little(bytes + 8, 4), SAVED_VERSION);
    if (get_little(bytes + size - SAVED_CHECKSUM, 8) !=
        foreloop_hash(FORELOOP_HASH_START, bytes, size - SAVED_CHECKSUM))
        return foreloop_fail(error, FORELOOP_ERROR_FORMAT, "a damaged saved workload: encode the program again");
    if (get_little(bytes + 16, 8) != model->fingerprint || get_little(bytes + 12, 4) != model->manifest.latent_size ||
        size != SAVED_HEADER + model->manifest.latent_size * sizeof(float) + SAVED_CHECKSUM)
        return foreloop_fail(error, FORELOOP_ERROR_MISMATCH,
                             "the saved workload belongs to another model: encode the program again");
    foreloop_workload *workload = NULL;
    FORELOOP_TRY(create_workload(&workload, model, error));
    for (size_t i = 0; i < workload->size; i++) {
        uint32_t bits = (uint32_t)get_little(bytes + SAVED_HEADER + 4 * i, 4);
        memcpy(&workload->latent[i], &bits, sizeof bits);
    }
    return finish_workload(result, workload, error);
}

/* ---- The action table -------------------------------------------------------------------------------------------- */

foreloop_status foreloop_actions_create(foreloop_actions **actions, const foreloop_model *model, size_t capacity,
                                        foreloop_error *error) {
    if (!actions || !model)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "actions_create: an argument is NULL");
    return foreloop_action_table_create(actions, &model->allocator, &model->manifest.vocabulary, &model->transition,
                                        model->fingerprint, capacity, error);
}

/* ---- Scoring ----------------------------------------------------------------------------------------------------- */

/* A candidate in the heap of the k best: the worst on top. */
typedef struct ranked {
    float score;
    uint64_t index;
} ranked;

struct foreloop_scorer {
    const foreloop_model *model;
    foreloop_rollout_context context;
    foreloop_hardware hardware;
    foreloop_state *state; /* scratch of one candidate */
    float *features;       /* [plan.count] */
    float *row;            /* [ranker's columns] */
    /* The stream of foreloop_topk_*; heap_limit is k. */
    ranked *heap;
    size_t heap_capacity, heap_count, heap_limit;
    uint64_t next_index;
    int streaming;
};

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
    scorer->context = (foreloop_rollout_context){.vocabulary = &model->manifest.vocabulary,
                                                 .transition = &model->transition,
                                                 .plan = &model->manifest.plan,
                                                 .actions = actions,
                                                 .fingerprint = model->fingerprint};
    foreloop_status status = set_hardware(&scorer->hardware, hardware, error);
    if (status == FORELOOP_OK) {
        size_t state_size = foreloop_rollout_state_size(&scorer->context);
        scorer->state = foreloop_allocate_zeroed(&model->allocator, 1, state_size);
        scorer->features = foreloop_allocate(&model->allocator, model->manifest.plan.count, sizeof(float));
        scorer->row = foreloop_allocate(&model->allocator, model->gbdt_info.feature_count, sizeof(float));
        if (!scorer->state || !scorer->features || !scorer->row)
            status = foreloop_fail_memory(error, 1, state_size, "the scorer");
    }
    if (status != FORELOOP_OK) {
        foreloop_scorer_close(scorer);
        return status;
    }
    *result = scorer;
    return FORELOOP_OK;
}

void foreloop_scorer_close(foreloop_scorer *scorer) {
    if (!scorer)
        return;
    const foreloop_allocator *allocator = &scorer->model->allocator;
    foreloop_release(allocator, scorer->heap);
    foreloop_release(allocator, scorer->row);
    foreloop_release(allocator, scorer->features);
    foreloop_release(allocator, scorer->state);
    foreloop_release(allocator, scorer);
}

static foreloop_status check_workload(const foreloop_scorer *scorer, const foreloop_workload *workload,
                                      foreloop_error *error) {
    if (workload->fingerprint != scorer->model->fingerprint)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "the workload was encoded by another model");
    return FORELOOP_OK;
}

static foreloop_status check_ids(const foreloop_scorer *scorer, const uint32_t *ids, size_t count,
                                 foreloop_error *error) {
    if (count > UINT32_MAX)
        return foreloop_fail(error, FORELOOP_ERROR_LIMIT, "a sequence has more than 2^32 - 1 actions");
    for (size_t i = 0; i < count; i++)
        if (ids[i] >= scorer->context.actions->count)
            return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "action %zu has the id %u, the table has %zu ids", i,
                                 ids[i], scorer->context.actions->count);
    return FORELOOP_OK;
}

/* Candidate i of a batch; `ids` may be NULL when all are empty. */
static const uint32_t *sequence(const uint32_t *ids, const size_t *offsets, size_t i) {
    return offsets[i + 1] > offsets[i] ? ids + offsets[i] : NULL;
}

/* Everything is checked before the first score is written. */
static foreloop_status check_batch(const foreloop_scorer *scorer, const foreloop_workload *workload,
                                   const uint32_t *ids, const size_t *offsets, size_t count, foreloop_error *error) {
    if (!scorer || !workload || (count && !offsets) || (count && offsets[count] > offsets[0] && !ids))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "an argument is NULL");
    FORELOOP_TRY(check_workload(scorer, workload, error));
    for (size_t i = 0; i < count; i++)
        if (offsets[i + 1] < offsets[i])
            return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "the offsets fall at candidate %zu", i);
    for (size_t i = 0; i < count; i++) {
        foreloop_status status = check_ids(scorer, sequence(ids, offsets, i), offsets[i + 1] - offsets[i], error);
        if (status != FORELOOP_OK)
            return foreloop_error_prefix(error, status, "candidate %zu", i);
    }
    return FORELOOP_OK;
}

static void roll_out(foreloop_scorer *scorer, const foreloop_workload *workload, const uint32_t *ids, size_t count) {
    foreloop_rollout_begin(&scorer->context, workload->latent, &scorer->hardware, scorer->state);
    for (size_t i = 0; i < count; i++)
        foreloop_rollout_step(&scorer->context, scorer->state, ids[i]);
}

static float score_state(foreloop_scorer *scorer, const foreloop_state *state) {
    foreloop_rollout_features(&scorer->context, state, scorer->features);
    const foreloop_model *model = scorer->model;
    for (size_t i = 0; i < model->gbdt_info.feature_count; i++)
        scorer->row[i] = scorer->features[model->ranker_columns[i]];
    return foreloop_gbdt_margin(model->gbdt, scorer->row);
}

static float score_sequence(foreloop_scorer *scorer, const foreloop_workload *workload, const uint32_t *ids,
                            size_t count) {
    roll_out(scorer, workload, ids, count);
    return score_state(scorer, scorer->state);
}

foreloop_status foreloop_score(foreloop_scorer *scorer, const foreloop_workload *workload, const uint32_t *ids,
                               const size_t *offsets, size_t count, float *scores, foreloop_error *error) {
    if (count && !scores)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "score: an argument is NULL");
    FORELOOP_TRY(check_batch(scorer, workload, ids, offsets, count, error));
    for (size_t i = 0; i < count; i++)
        scores[i] = score_sequence(scorer, workload, sequence(ids, offsets, i), offsets[i + 1] - offsets[i]);
    return FORELOOP_OK;
}

static foreloop_status check_sequence(foreloop_scorer *scorer, const foreloop_workload *workload, const uint32_t *ids,
                                      size_t count, const float *output, foreloop_error *error) {
    if (!scorer || !workload || (!ids && count) || !output)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "an argument is NULL");
    FORELOOP_TRY(check_workload(scorer, workload, error));
    return check_ids(scorer, ids, count, error);
}

foreloop_status foreloop_features(foreloop_scorer *scorer, const foreloop_workload *workload, const uint32_t *ids,
                                  size_t id_count, float *features, foreloop_error *error) {
    FORELOOP_TRY(check_sequence(scorer, workload, ids, id_count, features, error));
    roll_out(scorer, workload, ids, id_count);
    foreloop_rollout_features(&scorer->context, scorer->state, features);
    return FORELOOP_OK;
}

foreloop_status foreloop_rollout(foreloop_scorer *scorer, const foreloop_workload *workload, const uint32_t *ids,
                                 size_t id_count, float *latent, foreloop_error *error) {
    FORELOOP_TRY(check_sequence(scorer, workload, ids, id_count, latent, error));
    roll_out(scorer, workload, ids, id_count);
    memcpy(latent, foreloop_rollout_latent(&scorer->context, scorer->state),
           scorer->model->manifest.latent_size * sizeof *latent);
    return FORELOOP_OK;
}

/* ---- The k best -------------------------------------------------------------------------------------------------- */

/* Whether a ranks before b: a higher score, or the same score and an earlier place. */
static int ranks_before(ranked a, ranked b) {
    return a.score > b.score || (a.score == b.score && a.index < b.index);
}

/* Moves the item at `at` down until no item below it ranks after it. */
static void sift_down(ranked *heap, size_t count, size_t at) {
    for (;;) {
        size_t last = at, left = 2 * at + 1;
        for (size_t child = left; child < left + 2 && child < count; child++)
            if (ranks_before(heap[last], heap[child]))
                last = child;
        if (last == at)
            return;
        ranked item = heap[at];
        heap[at] = heap[last];
        heap[last] = item;
        at = last;
    }
}

static void keep(foreloop_scorer *scorer, ranked item) {
    ranked *heap = scorer->heap;
    if (scorer->heap_count == scorer->heap_limit) {
        if (scorer->heap_limit && ranks_before(item, heap[0])) {
            heap[0] = item;
            sift_down(heap, scorer->heap_count, 0);
        }
        return;
    }
    size_t at = scorer->heap_count++;
    for (; at && ranks_before(heap[(at - 1) / 2], item); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = item;
}

foreloop_status foreloop_topk_begin(foreloop_scorer *scorer, size_t k, foreloop_error *error) {
    if (!scorer || k == 0)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "topk_begin: the scorer is NULL or k is 0");
    FORELOOP_TRY(foreloop_reserve(&scorer->model->allocator, &scorer->heap, &scorer->heap_capacity, 0, k,
                                  sizeof *scorer->heap, error));
    scorer->heap_count = 0;
    scorer->heap_limit = k;
    scorer->next_index = 0;
    scorer->streaming = 1;
    return FORELOOP_OK;
}

foreloop_status foreloop_topk_push(foreloop_scorer *scorer, const foreloop_workload *workload, const uint32_t *ids,
                                   const size_t *offsets, size_t count, foreloop_error *error) {
    FORELOOP_TRY(check_batch(scorer, workload, ids, offsets, count, error));
    if (!scorer->streaming)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "topk_push: call foreloop_topk_begin first");
    for (size_t i = 0; i < count; i++) {
        float score = score_sequence(scorer, workload, sequence(ids, offsets, i), offsets[i + 1] - offsets[i]);
        keep(scorer, (ranked){score, scorer->next_index++});
    }
    return FORELOOP_OK;
}

foreloop_status foreloop_topk_finish(foreloop_scorer *scorer, uint64_t *indices, float *scores, size_t *found,
                                     foreloop_error *error) {
    if (!scorer || !found || (scorer->heap_count && !indices))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "topk_finish: an argument is NULL");
    if (!scorer->streaming)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "topk_finish: call foreloop_topk_begin first");
    /* The worst is on top: taking it off again and again fills the result from its end. */
    size_t count = scorer->heap_count;
    *found = count;
    while (count) {
        ranked worst = scorer->heap[0];
        scorer->heap[0] = scorer->heap[--count];
        sift_down(scorer->heap, count, 0);
        indices[count] = worst.index;
        if (scores)
            scores[count] = worst.score;
    }
    scorer->heap_count = 0;
    scorer->streaming = 0;
    return FORELOOP_OK;
}

foreloop_status foreloop_rank_top(foreloop_scorer *scorer, const foreloop_workload *workload, const uint32_t *ids,
                                  const size_t *offsets, size_t count, size_t k, uint64_t *indices, float *scores,
                                  size_t *found, foreloop_error *error) {
    if (!found || (count && k && !indices))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "rank_top: an argument is NULL");
    FORELOOP_TRY(check_batch(scorer, workload, ids, offsets, count, error));
    if (scorer->streaming)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "rank_top: the scorer has an open stream: call foreloop_topk_finish first");
    if (count == 0 || k == 0) {
        *found = 0;
        return FORELOOP_OK;
    }
    FORELOOP_TRY(foreloop_topk_begin(scorer, k < count ? k : count, error));
    foreloop_status status = foreloop_topk_push(scorer, workload, ids, offsets, count, error);
    return status == FORELOOP_OK ? foreloop_topk_finish(scorer, indices, scores, found, error) : status;
}

/* ---- Step-wise search -------------------------------------------------------------------------------------------- */

size_t foreloop_state_size(const foreloop_scorer *scorer) {
    return scorer ? foreloop_rollout_state_size(&scorer->context) : 0;
}

foreloop_status foreloop_state_begin(foreloop_scorer *scorer, const foreloop_workload *workload, void *state,
                                     foreloop_error *error) {
    if (!scorer || !workload || !state || (uintptr_t)state % 16)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "state_begin: an argument is NULL or not aligned to 16");
    FORELOOP_TRY(check_workload(scorer, workload, error));
    foreloop_rollout_begin(&scorer->context, workload->latent, &scorer->hardware, state);
    return FORELOOP_OK;
}

static foreloop_status check_state(const foreloop_scorer *scorer, const void *state, foreloop_error *error) {
    if (!scorer || !state || (uintptr_t)state % 16)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "a state is NULL or not aligned to 16");
    if (((const foreloop_state *)state)->fingerprint != scorer->model->fingerprint)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "the state was not begun by foreloop_state_begin of this model");
    return FORELOOP_OK;
}

foreloop_status foreloop_state_step(foreloop_scorer *scorer, void *state, uint32_t id, foreloop_error *error) {
    FORELOOP_TRY(check_state(scorer, state, error));
    FORELOOP_TRY(check_ids(scorer, &id, 1, error));
    foreloop_rollout_step(&scorer->context, state, id);
    return FORELOOP_OK;
}

foreloop_status foreloop_state_score(foreloop_scorer *scorer, const void *state, float *score, foreloop_error *error) {
    FORELOOP_TRY(check_state(scorer, state, error));
    if (!score)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "state_score: an argument is NULL");
    *score = score_state(scorer, state);
    return FORELOOP_OK;
}
