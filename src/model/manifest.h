/* model.json: what the parts of a bundle are and how they fit together (weights/FORMAT.md). */
#ifndef FORELOOP_MODEL_MANIFEST_H
#define FORELOOP_MODEL_MANIFEST_H

#include "transh/features.h"
#include "transh/vocabulary.h"

enum {
    FORELOOP_TEXT_RULE = 1,      /* of foreloop_canonical_text */
    FORELOOP_BUNDLE_VERSION = 2, /* the newest one of the format; 1 is the same without a score network */
    FORELOOP_MAX_LATENT = 1 << 16
};

typedef struct foreloop_manifest {
    uint32_t text_rule;
    size_t latent_size;
    size_t window_length;
    size_t window_stride;
    bool projection;
    bool normalize;
    bool score_network; /* the bundle has one */
    foreloop_vocabulary vocabulary;
    foreloop_feature_plan plan;
} foreloop_manifest;

/* Reads and checks text[length]; `name` stands in messages. On failure nothing is owned. `allocator` is borrowed until
 * close. */
foreloop_status foreloop_manifest_read(foreloop_manifest *manifest, const foreloop_allocator *allocator,
                                       const char *text, size_t length, const char *name, foreloop_error *error);
void foreloop_manifest_close(foreloop_manifest *manifest);

#endif
