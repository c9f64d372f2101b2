/* Encoding on the GPU: creation, runs of windows, and what comes of them. */
#include "cuda/encoder.h"
#include "common/sized.h"
#include "transformer/embed.h"
#include "workload.h"
#include <string.h>

/* ---- Creation ---- */

enum {
    DEFAULT_TOKENS = 4096,
    DEFAULT_TEXTS = 1024,
    DEFAULT_WORKSPACE = 32 << 20, /* what cuBLAS wants on Hopper; 4 MiB would do before */
    MOST = 1 << 20                /* tokens and texts */
};

void foreloop_cuda_encoder_options_init(foreloop_cuda_encoder_options *options, size_t size) {
    foreloop_cuda_encoder_options full = {
        .size = sizeof full, .tokens = DEFAULT_TOKENS, .texts = DEFAULT_TEXTS, .gemm_workspace = DEFAULT_WORKSPACE};
    foreloop_sized_init(options, size);
    if (options && size >= sizeof options->size) {
        memcpy(options, &full, size < sizeof full ? size : sizeof full);
        options->size = size;
    }
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

/* All of the GPU's memory. The sizes cannot overflow: no factor is above 2^22. */
static foreloop_status take_scratch(foreloop_cuda_encoder *encoder, foreloop_error *error) {
    static const char what[] = "the encoder's scratch";
    const foreloop_cuda_transformer *transformer = encoder->transformer;
    const size_t hidden = transformer->transformer->weights.config.hidden_size;
    const size_t element_size = foreloop_cuda_element_size(transformer->element), row = transformer->stride;
    const size_t projected = foreloop_cuda_row_stride(larger(transformer->projection.out, 1));
    const struct {
        void *pointer; /* its address */
        size_t count, element_size;
    } all[] = {
        {&encoder->inputs, foreloop_cuda_run_size(encoder->tokens, encoder->texts), 1},
        {&encoder->states, encoder->tokens, row * sizeof(float)},
        {&encoder->product, encoder->tokens, row * sizeof(float)},
        {&encoder->narrow, encoder->tokens, row * element_size},
        {&encoder->wide, encoder->tokens, encoder->wide_stride * element_size},
        {&encoder->means, encoder->texts, row * sizeof(float)},
        {&encoder->projected, encoder->texts, projected * sizeof(float)},
        {&encoder->results, encoder->texts, larger(hidden, transformer->projection.out) * sizeof(float)},
        {&encoder->carry, 2, hidden * sizeof(double)},
        {&encoder->failed, 1, sizeof(uint32_t)},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        FORELOOP_TRY(foreloop_cuda_arrays_take(&encoder->arrays, all[i].pointer, all[i].count, all[i].element_size,
                                               what, error));
    return FORELOOP_OK;
}

static foreloop_status forget_failures(foreloop_cuda_encoder *encoder, foreloop_error *error) {
    FORELOOP_CUDA_TRY(cudaMemsetAsync(encoder->failed, 0xff, sizeof *encoder->failed, encoder->stream),
                      "clearing a number");
    FORELOOP_CUDA_TRY(cudaStreamSynchronize(encoder->stream), "clearing a number");
    return FORELOOP_OK;
}

static foreloop_status fill(foreloop_cuda_encoder *encoder, const foreloop_cuda_encoder_options *options,
                            foreloop_error *error) {
    const foreloop_transformer *transformer = encoder->transformer->transformer;
    const foreloop_transformer_config *config = &transformer->weights.config;
    foreloop_cuda *gpu = encoder->transformer->gpu;
    encoder->tokens = larger(options->tokens, foreloop_transformer_config_max_length(config));
    encoder->texts = options->texts;
    encoder->wide_stride = foreloop_cuda_row_stride(larger(3 * config->hidden_size, config->intermediate_size));
    FORELOOP_TRY(foreloop_cuda_text_batch_open(&encoder->batch, &gpu->allocator, transformer, error));
    FORELOOP_TRY(foreloop_cuda_staging_open(&encoder->staging, gpu,
                                            foreloop_cuda_run_size(encoder->tokens, encoder->texts), error));
    FORELOOP_TRY(foreloop_cuda_gemm_open(&encoder->gemm, gpu, options->cublas, options->gemm_workspace, error));
    encoder->arrays.gpu = gpu;
    FORELOOP_TRY(take_scratch(encoder, error));
    return forget_failures(encoder, error);
}

static void release(foreloop_cuda_encoder *encoder) {
    foreloop_cuda *gpu = encoder->transformer->gpu;
    foreloop_cuda_arrays_close(&encoder->arrays);
    foreloop_cuda_gemm_close(encoder->gemm);
    foreloop_cuda_staging_close(&encoder->staging);
    foreloop_cuda_text_batch_close(&encoder->batch);
    foreloop_release(&gpu->allocator, encoder);
}

static foreloop_status create(foreloop_cuda_encoder **result, const foreloop_cuda_transformer *transformer,
                              const foreloop_cuda_encoder_options *options, foreloop_error *error) {
    foreloop_cuda_encoder *encoder = foreloop_allocate_zeroed(&transformer->gpu->allocator, 1, sizeof *encoder);
    if (!encoder)
        return foreloop_fail_memory(error, 1, sizeof *encoder, "an encoder");
    encoder->transformer = transformer;
    encoder->earlier_failure = UINT32_MAX;
    const foreloop_status status = fill(encoder, options, error);
    if (status != FORELOOP_OK) {
        release(encoder);
        return status;
    }
    *result = encoder;
    return FORELOOP_OK;
}

static foreloop_status read_options(foreloop_cuda_encoder_options *own, const foreloop_cuda_encoder_options *given,
                                    foreloop_error *error) {
    FORELOOP_TRY(foreloop_sized_read(own, sizeof *own, given, "foreloop_cuda_encoder_options", error));
    if (!own->tokens)
        own->tokens = DEFAULT_TOKENS;
    if (!own->texts)
        own->texts = DEFAULT_TEXTS;
    if (!own->gemm_workspace)
        own->gemm_workspace = DEFAULT_WORKSPACE;
    if (own->tokens > MOST || own->texts > MOST)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "foreloop_cuda_encoder_create: a run has at most %d tokens and texts", MOST);
    return FORELOOP_OK;
}

foreloop_status foreloop_cuda_encoder_create(foreloop_cuda_encoder **result,
                                             const foreloop_cuda_transformer *transformer,
                                             const foreloop_cuda_encoder_options *given, foreloop_error *error) {
    foreloop_cuda_encoder_options options = {.size = sizeof options};
    int previous;
    if (!result || !transformer)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_cuda_encoder_create: an argument is NULL");
    FORELOOP_TRY(read_options(&options, given, error));
    FORELOOP_TRY(foreloop_cuda_enter(transformer->gpu, &previous, error));
    const foreloop_status status = create(result, transformer, &options, error);
    foreloop_cuda_leave(previous);
    return status;
}

void foreloop_cuda_encoder_close(foreloop_cuda_encoder *encoder) {
    int previous;
    if (!encoder)
        return;
    const bool entered = foreloop_cuda_enter(encoder->transformer->gpu, &previous, NULL) == FORELOOP_OK;
    release(encoder);
    if (entered)
        foreloop_cuda_leave(previous);
}

/* ---- Runs ---- */

/* What becomes of a run's states. */
typedef struct destination {
    float *embeddings; /* [texts of the call][width], or NULL: the check for overflow alone */
    foreloop_cuda_place place;
    bool project;          /* and normalise, as the transformer asks for it */
    const uint32_t *types; /* of a run of ids, on the host */
    cudaStream_t stream;
} destination;

/* values <- the texts' projections, where there is one, without their bias. */
static foreloop_status project(foreloop_cuda_encoder *encoder, const foreloop_cuda_run *run,
                               foreloop_cuda_finish_call *call, foreloop_error *error) {
    const foreloop_cuda_linear *projection = &encoder->transformer->projection;
    const foreloop_cuda_gemm_call product = {.rows = run->finished,
                                             .in = projection->in,
                                             .out = projection->out,
                                             .element = FORELOOP_CUDA_ELEMENT_F32,
                                             .x = encoder->means,
                                             .x_stride = encoder->transformer->stride,
                                             .weights = projection->weights,
                                             .weights_stride = projection->stride,
                                             .y_element = FORELOOP_CUDA_ELEMENT_F32,
                                             .y = encoder->projected,
                                             .y_stride = foreloop_cuda_row_stride(projection->out)};
    call->values = encoder->projected;
    call->stride = product.y_stride;
    call->width = (unsigned)projection->out;
    call->bias = projection->bias;
    return foreloop_cuda_gemm_run(encoder->gemm, &product, error);
}

/* Of the texts that end in this run. */
static foreloop_status finish_texts(foreloop_cuda_encoder *encoder, const foreloop_cuda_run *run, const destination *to,
                                    foreloop_error *error) {
    const foreloop_transformer *transformer = encoder->transformer->transformer;
    foreloop_cuda_finish_call call = {.values = encoder->means,
                                      .stride = encoder->transformer->stride,
                                      .width = (unsigned)transformer->weights.config.hidden_size,
                                      .normalize = to->project && transformer->pooling.normalize,
                                      .texts = (const void *)(encoder->inputs + run->texts_at),
                                      .text_count = (unsigned)run->finished,
                                      .first_text = (unsigned)run->first_text,
                                      .results = encoder->results,
                                      .failed = encoder->failed};
    if (to->project && encoder->transformer->projection.out)
        FORELOOP_TRY(project(encoder, run, &call, error));
    const size_t first = run->first_text * call.width, count = run->finished * call.width;
    if (to->embeddings && to->place == FORELOOP_CUDA_DEVICE)
        call.results = to->embeddings + first;
    FORELOOP_CUDA_TRY(foreloop_cuda_finish(&call, to->stream), "finishing texts");
    if (to->embeddings && to->place == FORELOOP_CUDA_HOST)
        FORELOOP_CUDA_TRY(cudaMemcpyAsync(to->embeddings + first, encoder->results, count * sizeof(float),
                                          cudaMemcpyDeviceToHost, to->stream),
                          "fetching embeddings");
    return FORELOOP_OK;
}

static foreloop_status run_windows(foreloop_cuda_encoder *encoder, const foreloop_cuda_run *run, size_t turn,
                                   const destination *to, foreloop_error *error) {
    const size_t hidden = encoder->transformer->transformer->weights.config.hidden_size;
    void *slot;
    FORELOOP_TRY(foreloop_cuda_staging_take(&encoder->staging, &slot, error));
    foreloop_cuda_run_fill(run, &encoder->batch, to->types, slot);
    FORELOOP_TRY(foreloop_cuda_staging_send(&encoder->staging, encoder->inputs, run->size, to->stream, error));
    if (run->tokens)
        FORELOOP_TRY(foreloop_cuda_forward(encoder, run, to->types != NULL, to->stream, error));
    const foreloop_cuda_pool_call call = {.states = encoder->states,
                                          .stride = encoder->transformer->stride,
                                          .width = (unsigned)hidden,
                                          .windows = (const void *)(encoder->inputs + run->windows_at),
                                          .texts = (const void *)(encoder->inputs + run->texts_at),
                                          .text_count = (unsigned)(run->text_end - run->first_text),
                                          .carried = encoder->carry + turn % 2 * hidden,
                                          .carry = encoder->carry + (turn + 1) % 2 * hidden,
                                          .means = encoder->means};
    FORELOOP_CUDA_TRY(foreloop_cuda_pool(&call, to->stream), "pooling");
    return run->finished ? finish_texts(encoder, run, to, error) : FORELOOP_OK;
}

/* All of the batch. */
static foreloop_status run_batch(foreloop_cuda_encoder *encoder, const destination *to, foreloop_error *error) {
    foreloop_cuda_run run;
    encoder->stream = to->stream;
    FORELOOP_TRY(foreloop_cuda_gemm_set_stream(encoder->gemm, to->stream, error));
    for (size_t turn = 0; foreloop_cuda_run_next(&encoder->batch, encoder->tokens, encoder->texts, &run); turn++)
        FORELOOP_TRY(run_windows(encoder, &run, turn, to, error));
    return FORELOOP_OK;
}

foreloop_status foreloop_cuda_encode_batch(foreloop_cuda_encoder *encoder, float *embeddings, cudaStream_t stream,
                                           foreloop_error *error) {
    const destination to = {.embeddings = embeddings, .place = FORELOOP_CUDA_DEVICE, .project = true, .stream = stream};
    return run_batch(encoder, &to, error);
}

/* ---- The API ---- */

static foreloop_status check_place(const char *call, foreloop_cuda_place place, foreloop_error *error) {
    if (place == FORELOOP_CUDA_HOST || place == FORELOOP_CUDA_DEVICE)
        return FORELOOP_OK;
    return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "%s: there is no place %d", call, (int)place);
}

foreloop_status foreloop_cuda_encode_texts(foreloop_cuda_encoder *encoder, const char *const *texts,
                                           const size_t *lengths, size_t count, float *embeddings,
                                           foreloop_cuda_place place, foreloop_cuda_stream stream,
                                           foreloop_error *error) {
    int previous;
    if (!encoder || (count && (!texts || !lengths || !embeddings)))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_cuda_encode_texts: an argument is NULL");
    FORELOOP_TRY(check_place("foreloop_cuda_encode_texts", place, error));
    if (count >= UINT32_MAX)
        return foreloop_fail(error, FORELOOP_ERROR_LIMIT, "foreloop_cuda_encode_texts: %zu texts at once", count);
    FORELOOP_TRY(foreloop_cuda_text_batch_read(&encoder->batch, texts, lengths, count, error));
    if (!count)
        return FORELOOP_OK;
    const destination to = {.embeddings = embeddings, .place = place, .project = true, .stream = stream};
    FORELOOP_TRY(foreloop_cuda_enter(encoder->transformer->gpu, &previous, error));
    const foreloop_status status = run_batch(encoder, &to, error);
    foreloop_cuda_leave(previous);
    return status;
}

static foreloop_status fetch_states(foreloop_cuda_encoder *encoder, size_t count, float *hidden,
                                    foreloop_cuda_place place, cudaStream_t stream, foreloop_error *error) {
    const size_t width = encoder->transformer->transformer->weights.config.hidden_size * sizeof(float);
    FORELOOP_CUDA_TRY(
        cudaMemcpy2DAsync(hidden, width, encoder->states, encoder->transformer->stride * sizeof(float), width, count,
                          place == FORELOOP_CUDA_DEVICE ? cudaMemcpyDeviceToDevice : cudaMemcpyDeviceToHost, stream),
        "fetching states");
    return FORELOOP_OK;
}

foreloop_status foreloop_cuda_encode_ids(foreloop_cuda_encoder *encoder, const uint32_t *ids, const uint32_t *types,
                                         size_t count, float *hidden, foreloop_cuda_place place,
                                         foreloop_cuda_stream stream, foreloop_error *error) {
    int previous;
    if (!encoder || (count && (!ids || !hidden)))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_cuda_encode_ids: an argument is NULL");
    const foreloop_transformer_config *config = &encoder->transformer->transformer->weights.config;
    FORELOOP_TRY(check_place("foreloop_cuda_encode_ids", place, error));
    FORELOOP_TRY(foreloop_transformer_check_length(config, count, error));
    FORELOOP_TRY(foreloop_transformer_check_tokens(config, ids, types, count, error));
    foreloop_cuda_text_batch_begin(&encoder->batch);
    FORELOOP_TRY(foreloop_cuda_text_batch_add_ids(&encoder->batch, ids, count, error));
    const destination to = {.types = types, .stream = stream};
    FORELOOP_TRY(foreloop_cuda_enter(encoder->transformer->gpu, &previous, error));
    foreloop_status status = run_batch(encoder, &to, error);
    if (status == FORELOOP_OK)
        status = fetch_states(encoder, count, hidden, place, stream, error);
    foreloop_cuda_leave(previous);
    return status;
}

/* The least text that overflowed since the last time, or UINT32_MAX. Waits for the encoder's stream. */
static foreloop_status read_failures(foreloop_cuda_encoder *encoder, uint32_t *failed, foreloop_error *error) {
    FORELOOP_CUDA_TRY(cudaMemcpyAsync(failed, encoder->failed, sizeof *failed, cudaMemcpyDeviceToHost, encoder->stream),
                      "fetching a number");
    FORELOOP_CUDA_TRY(cudaStreamSynchronize(encoder->stream), "waiting for the encoder");
    return *failed == UINT32_MAX ? FORELOOP_OK : forget_failures(encoder, error);
}

static foreloop_status tell_failure(const foreloop_cuda_encoder *encoder, uint32_t failed, foreloop_error *error) {
    if (failed == UINT32_MAX)
        return FORELOOP_OK;
    return foreloop_fail(error, FORELOOP_ERROR_VALUE, "text %lu: a hidden state overflows; %s", (unsigned long)failed,
                         encoder->transformer->element == FORELOOP_CUDA_ELEMENT_F16
                             ? "encode in bf16 or f32"
                             : "the encoder's weights are out of scale");
}

foreloop_status foreloop_cuda_encoder_check(foreloop_cuda_encoder *encoder, foreloop_error *error) {
    int previous;
    uint32_t failed = UINT32_MAX;
    if (!encoder)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_cuda_encoder_check: an argument is NULL");
    FORELOOP_TRY(foreloop_cuda_enter(encoder->transformer->gpu, &previous, error));
    const foreloop_status status = read_failures(encoder, &failed, error);
    foreloop_cuda_leave(previous);
    FORELOOP_TRY(status);
    if (encoder->earlier_failure != UINT32_MAX)
        failed = encoder->earlier_failure;
    encoder->earlier_failure = UINT32_MAX;
    return tell_failure(encoder, failed, error);
}

typedef struct workload_call {
    foreloop_cuda_encoder *encoder;
    cudaStream_t stream;
} workload_call;

/* For foreloop_workload_encode_by: latent states that are there, and checked, when it returns. */
static foreloop_status encode_and_wait(void *user, const char *const *texts, const size_t *lengths, size_t count,
                                       float *latents, foreloop_error *error) {
    const workload_call *call = user;
    foreloop_cuda_encoder *encoder = call->encoder;
    int previous;
    uint32_t earlier = UINT32_MAX, failed = UINT32_MAX;
    FORELOOP_TRY(foreloop_cuda_enter(encoder->transformer->gpu, &previous, error));
    /* What other calls have left to be checked is not this one's failure. */
    foreloop_status status = read_failures(encoder, &earlier, error);
    if (encoder->earlier_failure == UINT32_MAX)
        encoder->earlier_failure = earlier;
    if (status == FORELOOP_OK)
        status = foreloop_cuda_encode_texts(encoder, texts, lengths, count, latents, FORELOOP_CUDA_HOST, call->stream,
                                            error);
    if (status == FORELOOP_OK)
        status = read_failures(encoder, &failed, error);
    foreloop_cuda_leave(previous);
    FORELOOP_TRY(status);
    return tell_failure(encoder, failed, error);
}

foreloop_status foreloop_cuda_encode_workloads(foreloop_workload **workloads, const foreloop_model *model,
                                               foreloop_cuda_encoder *encoder, const char *const *texts,
                                               const size_t *lengths, size_t count, foreloop_cuda_stream stream,
                                               foreloop_error *error) {
    if (!model || !encoder || (count && (!workloads || !texts || !lengths)))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_cuda_encode_workloads: an argument is NULL");
    if (encoder->transformer->transformer != foreloop_model_transformer(model))
        return foreloop_fail(
            error, FORELOOP_ERROR_ARGUMENT,
            "foreloop_cuda_encode_workloads: the encoder must be of foreloop_model_transformer(model)");
    workload_call call = {encoder, stream};
    return foreloop_workload_encode_by(workloads, model, encode_and_wait, &call, texts, lengths, count, error);
}
