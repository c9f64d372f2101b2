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
                                        "error_limit", "error_value",  "error_device"};
    return (size_t)status < sizeof names / sizeof *names ? names[status] : "unknown";
}

const char *foreloop_tier_name(foreloop_tier tier) {
    static const char *const names[] = {"unknown", "ref", "avx2", "avx512"};
    return (size_t)tier < sizeof names / sizeof *names ? names[tier] : "unknown";
}

foreloop_tier foreloop_tier_detect(void) {
    return foreloop_cpu_tier(FORELOOP_TIER_BEST);
}

const char *foreloop_cpu_feature_name(foreloop_cpu_feature feature) {
    static const char *const names[] = {"avx2",        "avx512",   "avx_vnni", "avx512_vnni",
                                        "avx512_bf16", "amx_bf16", "amx_int8"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((unsigned)feature == 1u << i)
            return names[i];
    return "unknown";
}

unsigned foreloop_cpu_features_detect(void) {
    return foreloop_cpu_features();
}

unsigned foreloop_cpu_features_chosen(const foreloop_options *options) {
    foreloop_options own;
    if (foreloop_sized_read(&own, sizeof own, options, "foreloop_options", NULL) != FORELOOP_OK)
        return 0;
    const foreloop_cpu_limits limits = {own.tier, own.cpu_features_off, own.use_amx != 0};
    return foreloop_cpu_choose(&limits);
}

const char *foreloop_precision_name(foreloop_precision precision) {
    static const char *const names[] = {"f32", "bf16", "int8", "int8_row"};
    return (size_t)precision < sizeof names / sizeof *names ? names[precision] : "unknown";
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
