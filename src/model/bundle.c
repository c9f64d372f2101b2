/* Opening a bundle in either form, its fingerprint, and packing. */
#include "model/bundle.h"
#include "common/alloc.h"
#include "common/error.h"
#include "common/hash.h"
#include <string.h>

const char *const foreloop_bundle_text_names[FORELOOP_BUNDLE_TEXTS] = {"model.json", "config.json", "tokenizer.json",
                                                                       "ranker.json"};
static const char *const weight_names[FORELOOP_BUNDLE_WEIGHTS] = {"encoder.safetensors", "transition.safetensors",
                                                                  "score_network.safetensors"};
/* Of the compiled forms of the texts in a packed file. */
static const char *const compiled_names[FORELOOP_BUNDLE_TEXTS] = {"compiled/model.json", "compiled/config.json",
                                                                  "compiled/tokenizer.json", "compiled/ranker.json"};
static const char *const packed_prefixes[FORELOOP_BUNDLE_WEIGHTS] = {"encoder/", "transition/", "score_network/"};

static foreloop_status open_container(foreloop_bundle *bundle, const void *data, size_t size, const char *name,
                                      foreloop_error *error) {
    FORELOOP_TRY(foreloop_safetensors_open(&bundle->containers[bundle->container_count], data, size, name,
                                           &bundle->allocator, error));
    bundle->container_count++;
    return FORELOOP_OK;
}

/* Every bundle has the parts before this one. */
enum { REQUIRED_WEIGHTS = FORELOOP_BUNDLE_SCORE_NETWORK };

static void find_part(foreloop_bundle *bundle, int part) {
    bundle->weights[part] = &bundle->containers[0];
    bundle->prefixes[part] = packed_prefixes[part];
}

static foreloop_status open_packed(foreloop_bundle *bundle, const void *data, size_t size, const char *name,
                                   foreloop_error *error) {
    FORELOOP_TRY(open_container(bundle, data, size, name, error));
    for (int i = 0; i < FORELOOP_BUNDLE_TEXTS; i++) {
        const foreloop_tensor *tensor =
            foreloop_safetensors_find(&bundle->containers[0], foreloop_bundle_text_names[i]);
        if (!tensor || tensor->dtype != FORELOOP_DTYPE_U8)
            return foreloop_fail(error, FORELOOP_ERROR_MISMATCH,
                                 "%s: not a packed model: the U8 tensor '%s' is missing; make one with foreloop pack",
                                 name, foreloop_bundle_text_names[i]);
        bundle->texts[i] = (foreloop_bytes){tensor->data, tensor->size};
        tensor = foreloop_safetensors_find(&bundle->containers[0], compiled_names[i]);
        if (tensor && tensor->dtype == FORELOOP_DTYPE_U8)
            bundle->compiled[i] = (foreloop_bytes){tensor->data, tensor->size};
    }
    for (int i = 0; i < REQUIRED_WEIGHTS; i++)
        find_part(bundle, i);
    return FORELOOP_OK;
}

static foreloop_status open_file(foreloop_bundle *bundle, const char *directory, const char *name, bool read,
                                 foreloop_bytes *content, foreloop_error *error) {
    char *path = foreloop_path_join(&bundle->allocator, directory, name);
    if (!path)
        return foreloop_fail_memory(error, strlen(directory) + strlen(name), 1, "a path");
    foreloop_file *file = &bundle->files[bundle->file_count];
    foreloop_status status = foreloop_file_open(file, path, &bundle->allocator, read, error);
    foreloop_release(&bundle->allocator, path);
    FORELOOP_TRY(status);
    bundle->file_count++;
    *content = (foreloop_bytes){file->data, file->size};
    return FORELOOP_OK;
}

static foreloop_status open_part(foreloop_bundle *bundle, const char *directory, int part, bool read,
                                 foreloop_error *error) {
    foreloop_bytes content = {NULL, 0};
    FORELOOP_TRY(open_file(bundle, directory, weight_names[part], read, &content, error));
    FORELOOP_TRY(open_container(bundle, content.data, content.size, weight_names[part], error));
    bundle->weights[part] = &bundle->containers[bundle->container_count - 1];
    bundle->prefixes[part] = "";
    return FORELOOP_OK;
}

static foreloop_status open_directory(foreloop_bundle *bundle, const char *directory, bool read,
                                      foreloop_error *error) {
    for (int i = 0; i < FORELOOP_BUNDLE_TEXTS; i++)
        FORELOOP_TRY(open_file(bundle, directory, foreloop_bundle_text_names[i], read, &bundle->texts[i], error));
    for (int i = 0; i < REQUIRED_WEIGHTS; i++)
        FORELOOP_TRY(open_part(bundle, directory, i, read, error));
    return FORELOOP_OK;
}

foreloop_status foreloop_bundle_open(foreloop_bundle *bundle, const char *path, const foreloop_allocator *allocator,
                                     bool read_into_memory, foreloop_error *error) {
    *bundle = (foreloop_bundle){.allocator = *allocator};
    foreloop_status status;
    if (foreloop_path_is_directory(path)) {
        status = open_directory(bundle, path, read_into_memory, error);
    } else {
        status = foreloop_file_open(&bundle->files[0], path, allocator, read_into_memory, error);
        if (status == FORELOOP_OK) {
            bundle->file_count = 1;
            status = open_packed(bundle, bundle->files[0].data, bundle->files[0].size, path, error);
        }
    }
    if (status != FORELOOP_OK)
        foreloop_bundle_close(bundle);
    return status;
}

foreloop_status foreloop_bundle_open_memory(foreloop_bundle *bundle, const void *data, size_t size,
                                            const foreloop_allocator *allocator, foreloop_error *error) {
    *bundle = (foreloop_bundle){.allocator = *allocator};
    foreloop_status status = open_packed(bundle, data, size, "model in memory", error);
    if (status != FORELOOP_OK)
        foreloop_bundle_close(bundle);
    return status;
}

foreloop_status foreloop_bundle_add_score_network(foreloop_bundle *bundle, const char *path, bool read_into_memory,
                                                  foreloop_error *error) {
    const bool packed = bundle->weights[FORELOOP_BUNDLE_ENCODER] == bundle->weights[FORELOOP_BUNDLE_TRANSITION];
    if (!packed)
        return open_part(bundle, path, FORELOOP_BUNDLE_SCORE_NETWORK, read_into_memory, error);
    find_part(bundle, FORELOOP_BUNDLE_SCORE_NETWORK);
    return FORELOOP_OK;
}

void foreloop_bundle_close(foreloop_bundle *bundle) {
    for (size_t i = 0; i < bundle->container_count; i++)
        foreloop_safetensors_close(&bundle->containers[i]);
    for (size_t i = 0; i < bundle->file_count; i++)
        foreloop_file_close(&bundle->files[i]);
    bundle->container_count = bundle->file_count = 0;
}

/* The part of a tensor's name behind the prefix, or NULL when it is not of that part. */
static const char *name_in_part(const foreloop_tensor *tensor, const char *prefix) {
    size_t length = strlen(prefix);
    return strncmp(tensor->name, prefix, length) == 0 ? tensor->name + length : NULL;
}

/* The tensors among which those of the part lie; none where there is no such part. */
static size_t tensors_beside(const foreloop_bundle *bundle, int part) {
    return bundle->weights[part] ? bundle->weights[part]->count : 0;
}

static uint64_t hash_size(uint64_t state, size_t value) {
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)((uint64_t)value >> (8 * i));
    return foreloop_hash(state, bytes, sizeof bytes);
}

/* One item of a bundle while its content is hashed; `tensor` is NULL for texts. */
typedef struct hashed_item {
    uint64_t state;
    const unsigned char *data;
    size_t left;
    const foreloop_tensor *tensor;
} hashed_item;

/* Hashing waits for one multiplication after the other, so several items are on their way together. */
enum { LANES = 4 };

typedef struct fingerprint {
    hashed_item lanes[LANES];
    size_t count;
    uint64_t sum; /* of the items' hashes: independent of their order */
} fingerprint;

static void finish_item(fingerprint *f, size_t lane) {
    const hashed_item *item = &f->lanes[lane];
    uint64_t state = foreloop_hash_content(item->state, item->data, item->left);
    if (item->tensor) {
        state = hash_size(state, (size_t)item->tensor->dtype);
        for (size_t k = 0; k < item->tensor->rank; k++)
            state = hash_size(state, item->tensor->shape[k]);
    }
    f->sum += state;
    f->lanes[lane] = f->lanes[--f->count];
}

static void add_item(fingerprint *f, const char *part, const char *name, const void *data, size_t size,
                     const foreloop_tensor *tensor) {
    enum { WORD = 8 };
    uint64_t state = foreloop_hash(FORELOOP_HASH_START, part, strlen(part));
    state = foreloop_hash(state, name, strlen(name) + 1);
    f->lanes[f->count++] = (hashed_item){hash_size(state, size), data, size, tensor};
    if (f->count < LANES)
        return;
    /* Up to the end of the shortest one, which makes room. */
    size_t shortest = 0;
    for (size_t lane = 1; lane < LANES; lane++)
        if (f->lanes[lane].left < f->lanes[shortest].left)
            shortest = lane;
    const size_t together = f->lanes[shortest].left / WORD * WORD;
    uint64_t states[LANES];
    for (size_t lane = 0; lane < LANES; lane++)
        states[lane] = f->lanes[lane].state;
    for (size_t i = 0; i < together; i += WORD)
        for (size_t lane = 0; lane < LANES; lane++)
            states[lane] = foreloop_hash_content(states[lane], f->lanes[lane].data + i, WORD);
    for (size_t lane = 0; lane < LANES; lane++) {
        f->lanes[lane].state = states[lane];
        f->lanes[lane].data += together;
        f->lanes[lane].left -= together;
    }
    finish_item(f, shortest);
}

uint64_t foreloop_bundle_fingerprint(const foreloop_bundle *bundle) {
    fingerprint f = {.count = 0};
    for (int i = 0; i < FORELOOP_BUNDLE_TEXTS; i++)
        add_item(&f, "", foreloop_bundle_text_names[i], bundle->texts[i].data, bundle->texts[i].size, NULL);
    for (int i = 0; i < FORELOOP_BUNDLE_WEIGHTS; i++) {
        for (size_t j = 0; j < tensors_beside(bundle, i); j++) {
            const foreloop_tensor *tensor = &bundle->weights[i]->tensors[j];
            const char *name = name_in_part(tensor, bundle->prefixes[i]);
            if (name)
                add_item(&f, packed_prefixes[i], name, tensor->data, tensor->size, tensor);
        }
    }
    while (f.count > 0)
        finish_item(&f, f.count - 1);
    return f.sum;
}

static foreloop_tensor bytes_tensor(const char *name, foreloop_bytes bytes) {
    return (foreloop_tensor){.name = name,
                             .dtype = FORELOOP_DTYPE_U8,
                             .rank = 1,
                             .shape = {bytes.size},
                             .count = bytes.size,
                             .data = bytes.data,
                             .size = bytes.size};
}

foreloop_status foreloop_bundle_pack(const foreloop_bundle *bundle,
                                     const foreloop_bytes compiled[FORELOOP_BUNDLE_TEXTS], const char *path,
                                     foreloop_error *error) {
    foreloop_arena arena = {.allocator = &bundle->allocator};
    size_t capacity = 2 * FORELOOP_BUNDLE_TEXTS, count = 0;
    for (int i = 0; i < FORELOOP_BUNDLE_WEIGHTS; i++)
        capacity += tensors_beside(bundle, i);
    foreloop_tensor *tensors = foreloop_arena_allocate(&arena, capacity, sizeof *tensors);
    foreloop_status status = FORELOOP_OK;
    for (int i = 0; tensors && i < FORELOOP_BUNDLE_TEXTS; i++) {
        tensors[count++] = bytes_tensor(foreloop_bundle_text_names[i], bundle->texts[i]);
        if (compiled[i].data)
            tensors[count++] = bytes_tensor(compiled_names[i], compiled[i]);
    }
    for (int i = 0; tensors && i < FORELOOP_BUNDLE_WEIGHTS; i++) {
        for (size_t j = 0; j < tensors_beside(bundle, i); j++) {
            const foreloop_tensor *tensor = &bundle->weights[i]->tensors[j];
            const char *name = name_in_part(tensor, bundle->prefixes[i]);
            if (!name)
                continue;
            size_t prefix_length = strlen(packed_prefixes[i]), length = prefix_length + strlen(name);
            char *full = foreloop_arena_allocate(&arena, length + 1, 1);
            if (!full) {
                status = foreloop_fail_memory(error, length, 1, "a tensor's name");
                break;
            }
            memcpy(full, packed_prefixes[i], prefix_length);
            memcpy(full + prefix_length, name, strlen(name) + 1);
            tensors[count] = *tensor;
            tensors[count++].name = full;
        }
    }
    if (!tensors)
        status = foreloop_fail_memory(error, capacity, sizeof *tensors, "the packed model");
    if (status == FORELOOP_OK)
        status = foreloop_safetensors_write(path, tensors, count, &bundle->allocator, error);
    foreloop_arena_close(&arena);
    return status;
}
