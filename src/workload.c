/* Workloads: a program's latent state z0, encoded, given or loaded, with what every rollout from it begins with. */
#include "workload.h"
#include "common/alloc.h"
#include "common/error.h"
#include "common/hash.h"
#include "model/text_encoder.h"
#include <math.h>
#include <string.h>

static foreloop_status create_workload(foreloop_workload **workload, const foreloop_model *model,
                                       foreloop_error *error) {
    size_t stride = model->rollout.latent_stride, numbers = stride + foreloop_rollout_start_size(&model->rollout);
    foreloop_workload *created =
        foreloop_allocate_zeroed(&model->allocator, 1, sizeof *created + numbers * sizeof(float));
    if (!created)
        return foreloop_fail_memory(error, numbers, sizeof(float), "a workload");
    created->allocator = model->allocator;
    created->fingerprint = model->fingerprint;
    created->size = model->manifest.latent_size;
    created->start = created->latent + stride;
    *workload = created;
    return FORELOOP_OK;
}

/* Takes a workload whose latent state is filled in, or releases it. */
static foreloop_status finish_workload(foreloop_workload **result, foreloop_workload *workload,
                                       const foreloop_model *model, foreloop_error *error) {
    for (size_t i = 0; i < workload->size; i++) {
        if (!(fabsf(workload->latent[i]) <= FORELOOP_MAX_LATENT_VALUE)) {
            foreloop_workload_close(workload);
            return foreloop_fail(error, FORELOOP_ERROR_VALUE,
                                 "element %zu of the latent state is not finite, or larger than 1e18", i);
        }
    }
    foreloop_rollout_start(&model->rollout, workload->latent, workload->start);
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

/* Texts in canonical form, and room for their latent states. */
typedef struct encode_batch {
    size_t count;
    char **texts;
    size_t *lengths;
    float *latents;
} encode_batch;

static void close_batch(encode_batch *batch, const foreloop_allocator *allocator) {
    for (size_t i = 0; batch->texts && i < batch->count; i++)
        foreloop_release(allocator, batch->texts[i]);
    foreloop_release(allocator, batch->texts);
    foreloop_release(allocator, batch->lengths);
    foreloop_release(allocator, batch->latents);
}

static foreloop_status open_batch(encode_batch *batch, const foreloop_model *model, const char *const *texts,
                                  const size_t *lengths, size_t count, foreloop_error *error) {
    const foreloop_allocator *allocator = &model->allocator;
    *batch = (encode_batch){.count = count};
    batch->texts = foreloop_allocate_zeroed(allocator, count, sizeof *batch->texts);
    batch->lengths = foreloop_allocate(allocator, count, sizeof *batch->lengths);
    batch->latents = foreloop_allocate(allocator, count, model->manifest.latent_size * sizeof(float));
    if (!batch->texts || !batch->lengths || !batch->latents)
        return foreloop_fail_memory(error, count, model->manifest.latent_size * sizeof(float), "the latent states");
    for (size_t i = 0; i < count; i++) {
        if (!texts[i] && lengths[i])
            return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_workload_encode: text %zu is NULL", i);
        const foreloop_status status =
            canonicalize(allocator, texts[i], lengths[i], &batch->texts[i], &batch->lengths[i], error);
        if (status != FORELOOP_OK)
            return count > 1 ? foreloop_error_prefix(error, status, "text %zu", i) : status;
    }
    return FORELOOP_OK;
}

/* All of them, or none. */
static foreloop_status make_workloads(foreloop_workload **results, const foreloop_model *model,
                                      const encode_batch *batch, foreloop_workload **made, foreloop_error *error) {
    const size_t size = model->manifest.latent_size;
    for (size_t i = 0; i < batch->count; i++) {
        const foreloop_status status = foreloop_workload_create(&made[i], model, batch->latents + i * size, error);
        if (status == FORELOOP_OK)
            continue;
        while (i-- > 0)
            foreloop_workload_close(made[i]);
        return status;
    }
    memcpy(results, made, batch->count * sizeof *made);
    return FORELOOP_OK;
}

foreloop_status foreloop_workload_encode_by(foreloop_workload **results, const foreloop_model *model,
                                            foreloop_encode_function *encode, void *user, const char *const *texts,
                                            const size_t *lengths, size_t count, foreloop_error *error) {
    if (count == 0)
        return FORELOOP_OK;
    encode_batch batch;
    foreloop_workload **made = foreloop_allocate(&model->allocator, count, sizeof *made);
    if (!made)
        return foreloop_fail_memory(error, count, sizeof *made, "workloads");
    foreloop_status status = open_batch(&batch, model, texts, lengths, count, error);
    if (status == FORELOOP_OK)
        status = encode(user, (const char *const *)batch.texts, batch.lengths, count, batch.latents, error);
    if (status == FORELOOP_OK)
        status = make_workloads(results, model, &batch, made, error);
    close_batch(&batch, &model->allocator);
    foreloop_release(&model->allocator, made);
    return status;
}

static foreloop_status encode_here(void *user, const char *const *texts, const size_t *lengths, size_t count,
                                   float *latents, foreloop_error *error) {
    return foreloop_encode_texts(user, texts, lengths, count, latents, error);
}

foreloop_status foreloop_workload_encode_batch(foreloop_workload **results, const foreloop_model *model,
                                               foreloop_encoder *encoder, const char *const *texts,
                                               const size_t *lengths, size_t count, foreloop_error *error) {
    if (!model || !encoder || (count && (!results || !texts || !lengths)))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_workload_encode: an argument is NULL");
    if (foreloop_encoder_transformer(encoder) != model->transformer)
        return foreloop_fail(
            error, FORELOOP_ERROR_ARGUMENT,
            "foreloop_workload_encode: the encoder must be created from foreloop_model_transformer(model)");
    return foreloop_workload_encode_by(results, model, encode_here, encoder, texts, lengths, count, error);
}

foreloop_status foreloop_workload_encode(foreloop_workload **result, const foreloop_model *model,
                                         foreloop_encoder *encoder, const char *text, size_t length,
                                         foreloop_error *error) {
    if (!result || (!text && length))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_workload_encode: an argument is NULL");
    return foreloop_workload_encode_batch(result, model, encoder, &text, &length, 1, error);
}

foreloop_status foreloop_workload_create(foreloop_workload **result, const foreloop_model *model, const float *latent,
                                         foreloop_error *error) {
    if (!result || !model || !latent)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_workload_create: an argument is NULL");
    foreloop_workload *workload = NULL;
    FORELOOP_TRY(create_workload(&workload, model, error));
    memcpy(workload->latent, latent, workload->size * sizeof *latent);
    return finish_workload(result, workload, model, error);
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
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_workload_save: an argument is NULL");
    size_t size = foreloop_workload_saved_size(workload);
    if (capacity < size)
        return foreloop_fail(error, FORELOOP_ERROR_LIMIT,
                             "foreloop_workload_save: the buffer has %zu bytes, %zu are needed", capacity, size);
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
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_workload_load: an argument is NULL");
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
    return finish_workload(result, workload, model, error);
}
