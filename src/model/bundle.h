/* The files of a bundle, from a directory, a packed file or packed memory, as one set of texts and tensors. */
#ifndef FORELOOP_MODEL_BUNDLE_H
#define FORELOOP_MODEL_BUNDLE_H

#include "common/file.h"
#include "common/safetensors.h"

typedef enum foreloop_bundle_text {
    FORELOOP_BUNDLE_MANIFEST,
    FORELOOP_BUNDLE_CONFIG,
    FORELOOP_BUNDLE_TOKENIZER,
    FORELOOP_BUNDLE_RANKER,
    FORELOOP_BUNDLE_TEXTS
} foreloop_bundle_text;

typedef enum foreloop_bundle_weights {
    FORELOOP_BUNDLE_ENCODER,
    FORELOOP_BUNDLE_TRANSITION,
    FORELOOP_BUNDLE_SCORE_NETWORK, /* not in all bundles: the manifest tells */
    FORELOOP_BUNDLE_WEIGHTS
} foreloop_bundle_weights;

typedef struct foreloop_bundle {
    foreloop_allocator allocator;
    foreloop_file files[FORELOOP_BUNDLE_TEXTS + FORELOOP_BUNDLE_WEIGHTS];
    size_t file_count;
    foreloop_safetensors containers[FORELOOP_BUNDLE_WEIGHTS];
    size_t container_count;
    foreloop_bytes texts[FORELOOP_BUNDLE_TEXTS];
    foreloop_bytes compiled[FORELOOP_BUNDLE_TEXTS]; /* compiled.h; data NULL where there is none */
    /* Tensors of a part are those of `weights` whose name starts with `prefix`. NULL: no such part. */
    const foreloop_safetensors *weights[FORELOOP_BUNDLE_WEIGHTS];
    const char *prefixes[FORELOOP_BUNDLE_WEIGHTS];
} foreloop_bundle;

/* The names of the files in a directory, and of the texts in a packed file. */
extern const char *const foreloop_bundle_text_names[FORELOOP_BUNDLE_TEXTS];

/* Without the score network. */
foreloop_status foreloop_bundle_open(foreloop_bundle *bundle, const char *path, const foreloop_allocator *allocator,
                                     bool read_into_memory, foreloop_error *error);
/* data[size] is borrowed until close. */
foreloop_status foreloop_bundle_open_memory(foreloop_bundle *bundle, const void *data, size_t size,
                                            const foreloop_allocator *allocator, foreloop_error *error);
/* Adds that part, from `path`, where the bundle was opened. Of a packed one the part lies there already. */
foreloop_status foreloop_bundle_add_score_network(foreloop_bundle *bundle, const char *path, bool read_into_memory,
                                                  foreloop_error *error);
void foreloop_bundle_close(foreloop_bundle *bundle);

/* A hash of all texts and of the parts' tensors that does not depend on their order or on the form of the bundle. */
uint64_t foreloop_bundle_fingerprint(const foreloop_bundle *bundle);

/* Writes the packed form, with the compiled parts that are there (data NULL: none). */
foreloop_status foreloop_bundle_pack(const foreloop_bundle *bundle,
                                     const foreloop_bytes compiled[FORELOOP_BUNDLE_TEXTS], const char *path,
                                     foreloop_error *error);

#endif
