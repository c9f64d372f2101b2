/*
 * Where to begin reading. The pipeline: a program becomes a workload (workload.c: z0), actions become ids (below), a
 * scorer rolls sequences of ids out and lets the trees judge the end states (scorer.c), top-k keeps the best (topk.c).
 * The parts in the folders do the work; these files are the handles, the checks of arguments and the composition.
 */
#include "common/error.h"
#include "common/sized.h"
#include "kernels_cpu/cpu.h"
#include "model/model.h"
#include "transh/action.h"
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

/* ---- The action table -------------------------------------------------------------------------------------------- */

foreloop_status foreloop_actions_create(foreloop_actions **actions, const foreloop_model *model, size_t capacity,
                                        foreloop_error *error) {
    if (!actions || !model)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_actions_create: an argument is NULL");
    return foreloop_action_table_create(actions, &model->allocator, &model->rollout, model->fingerprint, capacity,
                                        error);
}
