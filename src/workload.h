/* A workload as the scorer sees it. */
#ifndef FORELOOP_WORKLOAD_H
#define FORELOOP_WORKLOAD_H

#include "common/internal_api.h"
#include "model/model.h"

struct foreloop_workload {
    foreloop_allocator allocator;
    uint64_t fingerprint; /* of the model */
    size_t size;          /* d */
    float *start;         /* of foreloop_rollout_start; behind z0 */
    float latent[];       /* z0, padded with zeros to latent_stride */
};

/* What turns canonical texts into latent states[count][latent_size]: foreloop_encode_texts, or another device's. */
typedef foreloop_status foreloop_encode_function(void *user, const char *const *texts, const size_t *lengths,
                                                 size_t count, float *latents, foreloop_error *error);

/* Encodes programs as foreloop_workload_encode_batch does, by this function. The arguments are checked for NULL. */
FORELOOP_INTERNAL_API foreloop_status foreloop_workload_encode_by(foreloop_workload **results,
                                                                  const foreloop_model *model,
                                                                  foreloop_encode_function *encode, void *user,
                                                                  const char *const *texts, const size_t *lengths,
                                                                  size_t count, foreloop_error *error);

#endif
