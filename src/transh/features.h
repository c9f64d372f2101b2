/* The feature vector: what each name of the manifest's `features` stands for (weights/FORMAT.md, "Features"). */
#ifndef FORELOOP_TRANSH_FEATURES_H
#define FORELOOP_TRANSH_FEATURES_H

#include "transh/vocabulary.h"

typedef enum foreloop_feature_source {
    FORELOOP_FEATURE_LATENT,
    FORELOOP_FEATURE_LENGTH,
    FORELOOP_FEATURE_COUNT,
    FORELOOP_FEATURE_SUM,
    FORELOOP_FEATURE_MAX,
    FORELOOP_FEATURE_MIN,
    FORELOOP_FEATURE_FIRST,
    FORELOOP_FEATURE_LAST,
    FORELOOP_FEATURE_HARDWARE
} foreloop_feature_source;

/* `element` of a kind's phi for aggregates, of z for the latent state, field number for hardware. */
typedef struct foreloop_feature {
    const char *name;
    foreloop_feature_source source;
    uint32_t kind;
    uint32_t element;
    uint32_t position; /* in the feature vector */
} foreloop_feature;

typedef struct foreloop_feature_plan {
    foreloop_arena arena;
    foreloop_feature *features; /* in order of the vector */
    size_t count;
    /* The same features by what updates them: those of kind r are updates[update_start[r]] to
     * updates[update_start[r + 1]], then come the latent ones up to latent_end, then the rest. */
    foreloop_feature *updates;
    size_t *update_start;
    size_t latent_end;
} foreloop_feature_plan;

enum { FORELOOP_MAX_FEATURES = 1 << 20 };

/* Reads the manifest's `features` array. `allocator` is borrowed until close. On failure nothing is owned. */
foreloop_status foreloop_feature_plan_read(foreloop_feature_plan *plan, const foreloop_allocator *allocator,
                                           foreloop_json *json, const foreloop_vocabulary *vocabulary,
                                           size_t latent_size);
void foreloop_feature_plan_close(foreloop_feature_plan *plan);

/* The fields of foreloop_hardware as features name them. */
enum { FORELOOP_HARDWARE_FIELDS = 9 };
extern const char *const foreloop_hardware_field_names[FORELOOP_HARDWARE_FIELDS];
FORELOOP_INTERNAL_API double foreloop_hardware_field(const foreloop_hardware *hardware, size_t field);

#endif
