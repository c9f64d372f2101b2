/* A workload as the scorer sees it. */
#ifndef FORELOOP_WORKLOAD_H
#define FORELOOP_WORKLOAD_H

#include "model/model.h"

struct foreloop_workload {
    foreloop_allocator allocator;
    uint64_t fingerprint; /* of the model */
    size_t size;          /* d */
    float *start;         /* of foreloop_rollout_start; behind z0 */
    float latent[];       /* z0, padded with zeros to latent_stride */
};

#endif
