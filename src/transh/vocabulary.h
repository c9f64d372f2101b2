/*
 * What a model knows of actions: kinds, their slots, and how a slot's value becomes elements of phi (weights/FORMAT.md,
 * "Slots"). Elements are numbered through all kinds, so that features can name them.
 */
#ifndef FORELOOP_TRANSH_VOCABULARY_H
#define FORELOOP_TRANSH_VOCABULARY_H

#include "common/alloc.h"
#include "common/json.h"
#include <math.h>

typedef enum foreloop_slot_encoding {
    FORELOOP_SLOT_LINEAR,
    FORELOOP_SLOT_SIGNED_LOG,
    FORELOOP_SLOT_ONE_HOT,
    FORELOOP_SLOT_VOCABULARY
} foreloop_slot_encoding;

typedef struct foreloop_category {
    const char *text; /* the string, or the number as the manifest writes it */
    double number;
} foreloop_category;

typedef struct foreloop_slot {
    const char *name;
    foreloop_slot_encoding encoding;
    float scale;
    double range_min, range_max; /* of the numbers in the training data; infinite when the manifest does not tell */
    const foreloop_category *categories; /* sentinels of numeric slots, values of the others */
    size_t category_count;
    size_t element; /* first element, counted within the kind */
    size_t element_count;
} foreloop_slot;

typedef struct foreloop_kind {
    const char *name;
    const foreloop_slot *slots;
    size_t slot_count;
    size_t element_count;
} foreloop_kind;

typedef struct foreloop_vocabulary {
    foreloop_arena arena; /* owns all names and arrays below */
    const foreloop_kind *kinds;
    size_t kind_count;
    size_t max_slot_count;
    size_t max_element_count;
    uint32_t *index; /* open addressing by name: kind + 1, 0 for free */
    size_t index_mask;
} foreloop_vocabulary;

/* Bounds that keep hostile manifests small. */
enum { FORELOOP_MAX_KINDS = 4096, FORELOOP_MAX_SLOTS = 256, FORELOOP_MAX_CATEGORIES = 4096, FORELOOP_MAX_NAME = 480 };

/* Reads the manifest's `actions` array. `allocator` is borrowed until close. On failure nothing is owned. */
foreloop_status foreloop_vocabulary_read(foreloop_vocabulary *vocabulary, const foreloop_allocator *allocator,
                                         foreloop_json *json);
void foreloop_vocabulary_close(foreloop_vocabulary *vocabulary);

/* The kind's index, or kind_count when it is not known. */
size_t foreloop_vocabulary_find(const foreloop_vocabulary *vocabulary, const char *name, size_t length);

/* Resolves "KIND.SLOT", "KIND.SLOT=VALUE" or "KIND.SLOT=?" to kind and element; false when there is none. */
bool foreloop_vocabulary_element(const foreloop_vocabulary *vocabulary, const char *name, size_t *kind,
                                 size_t *element);

/*
 * A slot's value in the form that is compared and hashed: the number (-0 as 0) of numeric and one-hot slots, the index
 * of the category of vocabularies (category_count: another string), FORELOOP_SLOT_ABSENT when not given.
 */
#define FORELOOP_SLOT_ABSENT ((double)INFINITY)

/* Writes phi[kind->element_count] from values[kind->slot_count]. */
void foreloop_vocabulary_encode(const foreloop_kind *kind, const double *values, float *phi);

#endif
