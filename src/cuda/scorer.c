/* The scorer on a GPU: what it is made of, and the calls that queue work. */
#include "common/sized.h"
#include "cuda/gpu_scorer.h"
#include <string.h>

enum {
    DEFAULT_CHUNK = 16384,
    DEFAULT_STAGED_IDS = 1 << 19,
    MAX_CHUNK = 1 << 24,
    FEATURE_CHUNK = 1024,
    KEPT = FORELOOP_CUDA_TOP_KEYS,
    TILE = FORELOOP_CUDA_TOP_TILE
};
_Static_assert((int)FORELOOP_CUDA_TOP_LIMIT == (int)KEPT, "as many as are kept");

/* ---- Creation ---- */

void foreloop_cuda_scorer_options_init(foreloop_cuda_scorer_options *options, size_t size) {
    foreloop_sized_init(options, size);
    if (size >= sizeof *options) {
        options->chunk = DEFAULT_CHUNK;
        options->staged_ids = DEFAULT_STAGED_IDS;
    }
}

/* Leads a row's numbers to where they come from: features[width] of the model's plan. */
static foreloop_status open_rows(foreloop_cuda_rows *rows, const foreloop_cuda_scorer *scorer,
                                 const foreloop_transh_program *program, const uint32_t *features, size_t width,
                                 cudaStream_t stream, foreloop_error *error) {
    const foreloop_model *model = scorer->model->model;
    const foreloop_allocator *allocator = &scorer->model->gpu->allocator;
    uint32_t *sources = foreloop_allocate(allocator, width, sizeof *sources);
    float constants[FORELOOP_HARDWARE_FIELDS];
    *rows = (foreloop_cuda_rows){.arrays = {.gpu = scorer->model->gpu}, .width = width};
    if (!sources)
        return foreloop_fail_memory(error, width, sizeof *sources, "the scorer");
    for (size_t i = 0; i < FORELOOP_HARDWARE_FIELDS; i++)
        constants[i] = (float)foreloop_hardware_field(&scorer->host->hardware, i);
    for (size_t i = 0; i < width; i++) {
        const foreloop_feature *feature = &model->manifest.plan.features[features ? features[i] : i];
        const uint32_t place = model->rollout.places[feature->position];
        sources[i] = feature->source == FORELOOP_FEATURE_HARDWARE ? FORELOOP_CUDA_SOURCE_CONSTANT | feature->element
                     : feature->source == FORELOOP_FEATURE_LENGTH ? FORELOOP_CUDA_SOURCE_LENGTH
                     : feature->source == FORELOOP_FEATURE_LATENT ? place
                                                                  : (uint32_t)program->latent + place;
    }
    foreloop_status status = foreloop_cuda_arrays_upload(&rows->arrays, &rows->sources, sources, width, sizeof *sources,
                                                         "the scorer", stream, error);
    if (status == FORELOOP_OK)
        status = foreloop_cuda_arrays_upload(&rows->arrays, &rows->constants, constants, FORELOOP_HARDWARE_FIELDS,
                                             sizeof *constants, "the scorer", stream, error);
    foreloop_release(allocator, sources);
    return status;
}

/* Sets up everything that depends on the trees: those of own_ranker where it is open, else the model's. */
static foreloop_status connect_ranker(foreloop_cuda_scorer *scorer, foreloop_error *error) {
    const foreloop_cuda_model *model = scorer->model;
    const foreloop_scorer *host = scorer->host;
    scorer->ranker = scorer->own_ranker.arrays.gpu ? &scorer->own_ranker : &model->ranker;
    scorer->program = host->ranker.reads_more ? model->all : model->used;
    scorer->value_arrays.gpu = model->gpu;
    FORELOOP_TRY(
        open_rows(&scorer->rows, scorer, &scorer->program, host->value_features, host->value_count, NULL, error));
    FORELOOP_TRY(foreloop_cuda_arrays_upload(&scorer->rows.arrays, &scorer->network_inputs, host->network_values,
                                             model->model->network.input_count, sizeof *host->network_values,
                                             "the scorer", NULL, error));
    FORELOOP_TRY(foreloop_cuda_arrays_take(&scorer->value_arrays, &scorer->values, scorer->chunk,
                                           (scorer->rows.width ? scorer->rows.width : 1) * sizeof(float),
                                           "the features of a chunk", error));
    return foreloop_cuda_check(cudaStreamSynchronize(NULL), "copying the scorer", error);
}

static void release_ranker(foreloop_cuda_scorer *scorer) {
    foreloop_cuda_arrays_close(&scorer->value_arrays);
    foreloop_cuda_arrays_close(&scorer->rows.arrays);
    foreloop_cuda_ranker_close(&scorer->own_ranker);
}

static foreloop_status take_scratch(foreloop_cuda_scorer *scorer, foreloop_error *error) {
    static const char what[] = "the scorer";
    foreloop_cuda_arrays *arrays = &scorer->arrays;
    const foreloop_cuda_score_network *network = &scorer->model->network;
    const size_t keys = (KEPT + scorer->chunk + TILE - 1) / TILE * TILE;
    FORELOOP_TRY(foreloop_cuda_arrays_take(arrays, &scorer->ids, scorer->staged_ids, sizeof *scorer->ids, what, error));
    FORELOOP_TRY(
        foreloop_cuda_arrays_take(arrays, &scorer->offsets, scorer->chunk + 1, sizeof *scorer->offsets, what, error));
    FORELOOP_TRY(foreloop_cuda_arrays_take(arrays, &scorer->bad, scorer->chunk, 1, what, error));
    FORELOOP_TRY(
        foreloop_cuda_arrays_take(arrays, &scorer->scores, scorer->chunk, sizeof *scorer->scores, what, error));
    for (size_t i = 0; i < 2; i++)
        FORELOOP_TRY(foreloop_cuda_arrays_take(arrays, &scorer->keys[i], keys, sizeof(uint64_t), what, error));
    for (size_t i = 0; i < 2 && network->widest; i++)
        FORELOOP_TRY(foreloop_cuda_arrays_take(arrays, &scorer->hidden[i], network->widest,
                                               foreloop_cuda_network_pitch(scorer->chunk) * sizeof(float),
                                               "what layers of the score network pass on", error));
    FORELOOP_TRY(foreloop_cuda_arrays_take(arrays, &scorer->indices, KEPT, sizeof *scorer->indices, what, error));
    FORELOOP_TRY(foreloop_cuda_arrays_take(arrays, &scorer->best, KEPT, sizeof *scorer->best, what, error));
    FORELOOP_TRY(foreloop_cuda_arrays_take(arrays, &scorer->first_bad, 1, sizeof *scorer->first_bad, what, error));
    FORELOOP_CUDA_TRY(cudaMemsetAsync(scorer->first_bad, 0xff, sizeof *scorer->first_bad, NULL), "clearing memory");
    for (size_t i = 0; i < FORELOOP_CUDA_STAGINGS; i++) {
        FORELOOP_CUDA_TRY(cudaEventCreateWithFlags(&scorer->copied[i], cudaEventDisableTiming), "making an event");
        FORELOOP_TRY(foreloop_cuda_pinned_open(
            &scorer->staging[i], scorer->model->gpu,
            (scorer->chunk + 1) * sizeof *scorer->offsets + scorer->staged_ids * sizeof *scorer->ids, error));
    }
    FORELOOP_TRY(open_rows(&scorer->features, scorer, &scorer->model->all, NULL,
                           scorer->model->model->manifest.plan.count, NULL, error));
    scorer->feature_chunk = scorer->chunk < FEATURE_CHUNK ? scorer->chunk : FEATURE_CHUNK;
    FORELOOP_TRY(foreloop_cuda_arrays_take(arrays, &scorer->feature_values, scorer->feature_chunk,
                                           scorer->features.width * sizeof(float), what, error));
    return connect_ranker(scorer, error);
}

static void release_scorer(foreloop_cuda_scorer *scorer) {
    const foreloop_cuda *gpu = scorer->model->gpu;
    for (size_t i = 0; i < FORELOOP_CUDA_STAGINGS; i++) {
        foreloop_cuda_pinned_close(&scorer->staging[i], gpu);
        if (scorer->copied[i])
            (void)cudaEventDestroy(scorer->copied[i]);
    }
    release_ranker(scorer);
    foreloop_cuda_arrays_close(&scorer->features.arrays);
    foreloop_cuda_arrays_close(&scorer->arrays);
    foreloop_scorer_close(scorer->host);
    foreloop_release(&gpu->allocator, scorer);
}

static foreloop_status make_scorer(foreloop_cuda_scorer *scorer, const foreloop_hardware *hardware,
                                   foreloop_error *error) {
    int previous;
    FORELOOP_TRY(
        foreloop_scorer_create(&scorer->host, scorer->model->model, scorer->actions->actions, hardware, error));
    FORELOOP_TRY(foreloop_cuda_enter(scorer->model->gpu, &previous, error));
    const foreloop_status status = take_scratch(scorer, error);
    foreloop_cuda_leave(previous);
    return status;
}

foreloop_status foreloop_cuda_scorer_create(foreloop_cuda_scorer **result, const foreloop_cuda_model *model,
                                            const foreloop_cuda_actions *actions, const foreloop_hardware *hardware,
                                            const foreloop_cuda_scorer_options *given, foreloop_error *error) {
    foreloop_cuda_scorer_options options;
    if (!result || !model || !actions)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_cuda_scorer_create: an argument is NULL");
    if (actions->model != model)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "foreloop_cuda_scorer_create: the action table is of another model");
    FORELOOP_TRY(foreloop_sized_read(&options, sizeof options, given, "foreloop_cuda_scorer_options", error));
    options.chunk = options.chunk ? options.chunk : DEFAULT_CHUNK;
    options.staged_ids = options.staged_ids ? options.staged_ids : DEFAULT_STAGED_IDS;
    if (options.chunk > MAX_CHUNK || options.staged_ids > UINT32_MAX)
        return foreloop_fail(error, FORELOOP_ERROR_LIMIT,
                             "foreloop_cuda_scorer_create: chunk is 2^24 at the most, staged_ids 2^32 - 1");
    foreloop_cuda_scorer *scorer = foreloop_allocate_zeroed(&model->gpu->allocator, 1, sizeof *scorer);
    if (!scorer)
        return foreloop_fail_memory(error, 1, sizeof *scorer, "the scorer");
    scorer->model = model;
    scorer->actions = actions;
    scorer->chunk = options.chunk;
    scorer->staged_ids = options.staged_ids;
    scorer->arrays.gpu = model->gpu;
    const foreloop_status status = make_scorer(scorer, hardware, error);
    if (status == FORELOOP_OK)
        *result = scorer;
    else
        foreloop_cuda_scorer_close(scorer);
    return status;
}

void foreloop_cuda_scorer_close(foreloop_cuda_scorer *scorer) {
    int previous;
    if (!scorer || foreloop_cuda_enter(scorer->model->gpu, &previous, NULL) != FORELOOP_OK)
        return;
    release_scorer(scorer);
    foreloop_cuda_leave(previous);
}

/* ---- Other trees ---- */

/* A scorer of the same kind, but for what all trees share, with these trees. */
static foreloop_status make_with_ranker(foreloop_cuda_scorer *made, const foreloop_cuda_scorer *scorer,
                                        const foreloop_gbdt *ranker, foreloop_error *error) {
    *made = (foreloop_cuda_scorer){.model = scorer->model, .actions = scorer->actions, .chunk = scorer->chunk};
    FORELOOP_TRY(foreloop_scorer_create(&made->host, scorer->model->model, scorer->actions->actions,
                                        &scorer->host->hardware, error));
    FORELOOP_TRY(foreloop_scorer_set_ranker(made->host, ranker, error));
    if (ranker)
        FORELOOP_TRY(
            foreloop_cuda_ranker_open(&made->own_ranker, scorer->model->gpu, &made->host->ranker, NULL, error));
    return connect_ranker(made, error);
}

static foreloop_status change_ranker(foreloop_cuda_scorer *scorer, const foreloop_gbdt *ranker, foreloop_error *error) {
    foreloop_cuda_scorer made;
    const foreloop_status status = make_with_ranker(&made, scorer, ranker, error);
    if (status != FORELOOP_OK) {
        release_ranker(&made);
        foreloop_scorer_close(made.host);
        return status;
    }
    release_ranker(scorer);
    foreloop_scorer_close(scorer->host);
    scorer->host = made.host;
    scorer->own_ranker = made.own_ranker;
    scorer->ranker = ranker ? &scorer->own_ranker : made.ranker;
    scorer->program = made.program;
    scorer->rows = made.rows;
    scorer->network_inputs = made.network_inputs;
    scorer->value_arrays = made.value_arrays;
    scorer->values = made.values;
    return FORELOOP_OK;
}

foreloop_status foreloop_cuda_scorer_set_ranker(foreloop_cuda_scorer *scorer, const foreloop_gbdt *ranker,
                                                foreloop_error *error) {
    int previous;
    if (!scorer)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_cuda_scorer_set_ranker: the scorer is NULL");
    FORELOOP_TRY(foreloop_cuda_enter(scorer->model->gpu, &previous, error));
    const foreloop_status status = change_ranker(scorer, ranker, error);
    foreloop_cuda_leave(previous);
    return status;
}

/* ---- Work ---- */

static foreloop_status roll_out(const foreloop_cuda_scorer *scorer, const foreloop_cuda_workload *workload,
                                const foreloop_cuda_piece *piece, const foreloop_transh_program *program,
                                const foreloop_cuda_rows *rows, float *values, size_t stride, foreloop_error *error) {
    const foreloop_cuda_actions *actions = scorer->actions;
    foreloop_cuda_rollout call = {.program = *program,
                                  .start = workload->start,
                                  .embeddings = actions->embeddings,
                                  .slice_stride = actions->capacity * FORELOOP_TRANSH_SLICE,
                                  .action_count = (uint32_t)actions->count,
                                  .longest = FORELOOP_MAX_LENGTH,
                                  .ids = piece->ids,
                                  .offsets = piece->offsets,
                                  .id_base = piece->id_base,
                                  .id_count = piece->id_count,
                                  .count = piece->count,
                                  .sources = rows->sources,
                                  .source_count = rows->width,
                                  .constants = rows->constants,
                                  .rows = values,
                                  .row_stride = stride,
                                  .bad = scorer->bad,
                                  .first_bad = scorer->first_bad,
                                  .index_base = piece->first};
    call.program.rows = actions->rows;
    call.program.row_kinds = actions->kinds;
    return foreloop_cuda_check(foreloop_cuda_roll_out(&call, scorer->model->gpu->block_shared_bytes, scorer->stream),
                               "rolling out", error);
}

static foreloop_status add_network(const foreloop_cuda_scorer *scorer, const foreloop_cuda_piece *piece, float *scores,
                                   foreloop_error *error) {
    const foreloop_cuda_network_call call = {.network = scorer->model->network.network,
                                             .inputs = scorer->network_inputs,
                                             .rows = scorer->values,
                                             .row_stride = scorer->rows.width,
                                             .count = piece->count,
                                             .hidden = {scorer->hidden[0], scorer->hidden[1]},
                                             .scores = scores};
    return foreloop_cuda_check(foreloop_cuda_add_network(&call, scorer->stream), "adding the score network", error);
}

/* A piece's scores to scores[piece->count] on the device. */
static foreloop_status score_piece(const foreloop_cuda_scorer *scorer, const foreloop_cuda_workload *workload,
                                   const foreloop_cuda_piece *piece, float *scores, foreloop_error *error) {
    const size_t width = scorer->rows.width;
    FORELOOP_TRY(roll_out(scorer, workload, piece, &scorer->program, &scorer->rows, scorer->values, width, error));
    const foreloop_cuda_trees_call call = {.trees = scorer->ranker->trees,
                                           .rows = scorer->values,
                                           .row_stride = width,
                                           .row_width = scorer->ranker->row_width,
                                           .count = piece->count,
                                           .bad = scorer->bad,
                                           .scores = scores};
    FORELOOP_CUDA_TRY(foreloop_cuda_add_trees(&call, scorer->model->gpu->block_shared_bytes, scorer->stream),
                      "adding up trees");
    return scorer->model->model->has_network ? add_network(scorer, piece, scores, error) : FORELOOP_OK;
}

static foreloop_status check_place(const char *call, const void *output, foreloop_cuda_place place, bool needed,
                                   foreloop_error *error) {
    if (needed && !output)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "%s: an argument is NULL", call);
    if (place != FORELOOP_CUDA_HOST && place != FORELOOP_CUDA_DEVICE)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "%s: the results go to no place that there is", call);
    return FORELOOP_OK;
}

static foreloop_status score_all(foreloop_cuda_scorer *scorer, const foreloop_cuda_workload *workload,
                                 const foreloop_cuda_batch *batch, float *scores, foreloop_cuda_place place,
                                 foreloop_error *error) {
    foreloop_cuda_piece piece = {0};
    for (; piece.first < batch->count; piece.first += piece.count) {
        float *device = place == FORELOOP_CUDA_DEVICE ? scores + piece.first : scorer->scores;
        FORELOOP_TRY(foreloop_cuda_next_piece(scorer, batch, &piece, scorer->chunk, error));
        FORELOOP_TRY(score_piece(scorer, workload, &piece, device, error));
        if (place == FORELOOP_CUDA_HOST)
            FORELOOP_CUDA_TRY(cudaMemcpyAsync(scores + piece.first, device, piece.count * sizeof *scores,
                                              cudaMemcpyDeviceToHost, scorer->stream),
                              "copying scores");
    }
    return FORELOOP_OK;
}

foreloop_status foreloop_cuda_score(foreloop_cuda_scorer *scorer, const foreloop_cuda_workload *workload,
                                    const foreloop_cuda_batch *batch, float *scores, foreloop_cuda_place place,
                                    foreloop_cuda_stream stream, foreloop_error *error) {
    int previous;
    foreloop_cuda_batch own;
    FORELOOP_TRY(foreloop_cuda_read_batch(&own, "foreloop_cuda_score", scorer, workload, batch, error));
    FORELOOP_TRY(check_place("foreloop_cuda_score", scores, place, own.count > 0, error));
    FORELOOP_TRY(foreloop_cuda_enter(scorer->model->gpu, &previous, error));
    scorer->stream = stream;
    const foreloop_status status = score_all(scorer, workload, &own, scores, place, error);
    foreloop_cuda_leave(previous);
    return status;
}

static foreloop_status write_features(foreloop_cuda_scorer *scorer, const foreloop_cuda_workload *workload,
                                      const foreloop_cuda_batch *batch, float *features, size_t stride,
                                      foreloop_cuda_place place, foreloop_error *error) {
    const bool to_host = place == FORELOOP_CUDA_HOST;
    const size_t width = scorer->features.width, limit = to_host ? scorer->feature_chunk : scorer->chunk;
    foreloop_cuda_piece piece = {0};
    for (; piece.first < batch->count; piece.first += piece.count) {
        float *rows = features + piece.first * stride;
        FORELOOP_TRY(foreloop_cuda_next_piece(scorer, batch, &piece, limit, error));
        FORELOOP_TRY(roll_out(scorer, workload, &piece, &scorer->model->all, &scorer->features,
                              to_host ? scorer->feature_values : rows, to_host ? width : stride, error));
        if (to_host)
            FORELOOP_CUDA_TRY(cudaMemcpy2DAsync(rows, stride * sizeof *rows, scorer->feature_values,
                                                width * sizeof *rows, width * sizeof *rows, piece.count,
                                                cudaMemcpyDeviceToHost, scorer->stream),
                              "copying features");
    }
    return FORELOOP_OK;
}

foreloop_status foreloop_cuda_features(foreloop_cuda_scorer *scorer, const foreloop_cuda_workload *workload,
                                       const foreloop_cuda_batch *batch, float *features, size_t stride,
                                       foreloop_cuda_place place, foreloop_cuda_stream stream, foreloop_error *error) {
    int previous;
    foreloop_cuda_batch own;
    FORELOOP_TRY(foreloop_cuda_read_batch(&own, "foreloop_cuda_features", scorer, workload, batch, error));
    FORELOOP_TRY(check_place("foreloop_cuda_features", features, place, own.count > 0, error));
    if (stride < scorer->features.width)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "foreloop_cuda_features: the stride is %zu, there are %zu features", stride,
                             scorer->features.width);
    FORELOOP_TRY(foreloop_cuda_enter(scorer->model->gpu, &previous, error));
    scorer->stream = stream;
    const foreloop_status status = write_features(scorer, workload, &own, features, stride, place, error);
    foreloop_cuda_leave(previous);
    return status;
}

/* ---- The k best ---- */

/* The keys of a piece come behind the best so far; then tiles are sorted and halved until one is left. */
static foreloop_status keep_best(foreloop_cuda_scorer *scorer, const foreloop_cuda_piece *piece,
                                 foreloop_error *error) {
    size_t count = KEPT + piece->count;
    FORELOOP_CUDA_TRY(foreloop_cuda_make_keys(scorer->scores, piece->count, (uint32_t)piece->first,
                                              scorer->keys[0] + KEPT, scorer->stream),
                      "making keys");
    for (size_t tiles = 0; tiles != 1; count = tiles * KEPT) {
        uint64_t *from = scorer->keys[0];
        tiles = foreloop_cuda_top_tiles(count);
        FORELOOP_CUDA_TRY(foreloop_cuda_keep_best(from, count, scorer->keys[1], scorer->stream), "sorting keys");
        scorer->keys[0] = scorer->keys[1];
        scorer->keys[1] = from;
    }
    return FORELOOP_OK;
}

static foreloop_status rank(foreloop_cuda_scorer *scorer, const foreloop_cuda_workload *workload,
                            const foreloop_cuda_batch *batch, size_t k, uint64_t *indices, float *scores,
                            foreloop_cuda_place place, foreloop_error *error) {
    const bool to_host = place == FORELOOP_CUDA_HOST;
    foreloop_cuda_piece piece = {0};
    FORELOOP_CUDA_TRY(cudaMemsetAsync(scorer->keys[0], 0, KEPT * sizeof(uint64_t), scorer->stream), "clearing memory");
    for (; piece.first < batch->count; piece.first += piece.count) {
        FORELOOP_TRY(foreloop_cuda_next_piece(scorer, batch, &piece, scorer->chunk, error));
        FORELOOP_TRY(score_piece(scorer, workload, &piece, scorer->scores, error));
        FORELOOP_TRY(keep_best(scorer, &piece, error));
    }
    FORELOOP_CUDA_TRY(foreloop_cuda_read_keys(scorer->keys[0], k, to_host ? scorer->indices : indices,
                                              to_host ? scorer->best : scores, scorer->stream),
                      "reading keys");
    if (to_host)
        FORELOOP_CUDA_TRY(
            cudaMemcpyAsync(indices, scorer->indices, k * sizeof *indices, cudaMemcpyDeviceToHost, scorer->stream),
            "copying the best");
    if (to_host && scores)
        FORELOOP_CUDA_TRY(
            cudaMemcpyAsync(scores, scorer->best, k * sizeof *scores, cudaMemcpyDeviceToHost, scorer->stream),
            "copying the best");
    return FORELOOP_OK;
}

foreloop_status foreloop_cuda_rank_top(foreloop_cuda_scorer *scorer, const foreloop_cuda_workload *workload,
                                       const foreloop_cuda_batch *batch, size_t k, uint64_t *indices, float *scores,
                                       foreloop_cuda_place place, foreloop_cuda_stream stream, foreloop_error *error) {
    int previous;
    foreloop_cuda_batch own;
    FORELOOP_TRY(foreloop_cuda_read_batch(&own, "foreloop_cuda_rank_top", scorer, workload, batch, error));
    FORELOOP_TRY(check_place("foreloop_cuda_rank_top", indices, place, own.count > 0 && k > 0, error));
    if (k > FORELOOP_CUDA_TOP_LIMIT)
        return foreloop_fail(error, FORELOOP_ERROR_LIMIT, "foreloop_cuda_rank_top: k is %zu, %d at the most", k,
                             FORELOOP_CUDA_TOP_LIMIT);
    k = k < own.count ? k : own.count;
    if (k == 0)
        return FORELOOP_OK;
    FORELOOP_TRY(foreloop_cuda_enter(scorer->model->gpu, &previous, error));
    scorer->stream = stream;
    const foreloop_status status = rank(scorer, workload, &own, k, indices, scores, place, error);
    foreloop_cuda_leave(previous);
    return status;
}

/* ---- What batches on the device had wrong ---- */

static foreloop_status read_first_bad(foreloop_cuda_scorer *scorer, unsigned long long *first, foreloop_error *error) {
    FORELOOP_CUDA_TRY(cudaMemcpyAsync(first, scorer->first_bad, sizeof *first, cudaMemcpyDeviceToHost, scorer->stream),
                      "copying the number of a bad candidate");
    FORELOOP_CUDA_TRY(cudaMemsetAsync(scorer->first_bad, 0xff, sizeof *first, scorer->stream), "clearing memory");
    return foreloop_cuda_check(cudaStreamSynchronize(scorer->stream), "waiting for the stream", error);
}

foreloop_status foreloop_cuda_scorer_check(foreloop_cuda_scorer *scorer, foreloop_error *error) {
    int previous;
    unsigned long long first = ~0ull;
    if (!scorer)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_cuda_scorer_check: the scorer is NULL");
    FORELOOP_TRY(foreloop_cuda_enter(scorer->model->gpu, &previous, error));
    foreloop_status status = read_first_bad(scorer, &first, error);
    foreloop_cuda_leave(previous);
    if (status == FORELOOP_OK && first != ~0ull)
        status =
            foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                          "candidate %llu of a batch on the GPU has offsets that fall or leave the ids, an id that "
                          "the table does not have there, or more than %d actions",
                          first, FORELOOP_MAX_LENGTH);
    return status;
}
