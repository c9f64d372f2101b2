/* The safetensors container: checked reading from memory, and writing with aligned tensors. */
#ifndef FORELOOP_COMMON_SAFETENSORS_H
#define FORELOOP_COMMON_SAFETENSORS_H

#include "common/internal_api.h"
#include <foreloop/foreloop.h>
#include <stdbool.h>

typedef enum foreloop_dtype {
    FORELOOP_DTYPE_F64,
    FORELOOP_DTYPE_F32,
    FORELOOP_DTYPE_F16,
    FORELOOP_DTYPE_BF16,
    FORELOOP_DTYPE_I64,
    FORELOOP_DTYPE_I32,
    FORELOOP_DTYPE_I16,
    FORELOOP_DTYPE_I8,
    FORELOOP_DTYPE_U8,
    FORELOOP_DTYPE_BOOL,
    FORELOOP_DTYPE_OTHER /* well-formed but not used here (U16, F8_E4M3 ...) */
} foreloop_dtype;
const char *foreloop_dtype_name(foreloop_dtype dtype);
FORELOOP_INTERNAL_API size_t foreloop_dtype_size(foreloop_dtype dtype); /* 0 for OTHER */

enum { FORELOOP_TENSOR_MAX_RANK = 8 };

typedef struct foreloop_tensor {
    const char *name; /* terminated */
    foreloop_dtype dtype;
    size_t rank;
    size_t shape[FORELOOP_TENSOR_MAX_RANK];
    size_t count;              /* product of the shape */
    const unsigned char *data; /* little-endian; may be unaligned */
    size_t size;               /* bytes */
} foreloop_tensor;

typedef struct foreloop_safetensors {
    foreloop_allocator allocator;
    foreloop_tensor *tensors; /* in order of the header */
    size_t count;
    struct foreloop_arena_chunk *names;
    uint32_t *by_name; /* indices into tensors, sorted by name */
} foreloop_safetensors;

/* Parses data[size] (borrowed until close). `name` is the document's name for messages. Everything is checked against
 * the size before use: header length, offsets, overlaps and gaps, shape x dtype against span, duplicate names. */
foreloop_status foreloop_safetensors_open(foreloop_safetensors *file, const void *data, size_t size, const char *name,
                                          const foreloop_allocator *allocator, foreloop_error *error);
void foreloop_safetensors_close(foreloop_safetensors *file);
/* NULL when absent. */
FORELOOP_INTERNAL_API const foreloop_tensor *foreloop_safetensors_find(const foreloop_safetensors *file,
                                                                       const char *name);
/* That with the name PREFIX + NAME. */
FORELOOP_INTERNAL_API const foreloop_tensor *foreloop_safetensors_find_part(const foreloop_safetensors *file,
                                                                            const char *prefix, const char *name);
/* The same, but MISMATCH when absent, with the name and who needs it: `part` as in "the transition". */
FORELOOP_INTERNAL_API foreloop_status foreloop_safetensors_require(const foreloop_safetensors *file, const char *prefix,
                                                                   const char *name, const char *part,
                                                                   const foreloop_tensor **tensor,
                                                                   foreloop_error *error);

/* Converts a floating tensor (F64, F32, F16, BF16) to values[count]. FORELOOP_ERROR_UNSUPPORTED for other types,
 * FORELOOP_ERROR_VALUE at the first NaN or infinity when `finite`. */
FORELOOP_INTERNAL_API foreloop_status foreloop_tensor_to_float(const foreloop_tensor *tensor, bool finite,
                                                               float *values, foreloop_error *error);
/* FORELOOP_ERROR_MISMATCH, naming tensor, its shape and the expected one, unless the shape is exactly this. */
foreloop_status foreloop_tensor_expect_shape(const foreloop_tensor *tensor, size_t rank, const size_t *shape,
                                             foreloop_error *error);

/* Writes a file whose data section starts at, and each of whose tensors lies at, a multiple of 64 bytes: the format
 * wants no gaps, so they are filled by U8 tensors with names that start with FORELOOP_TENSOR_PADDING. Whole or not at
 * all. FORELOOP_ERROR_ARGUMENT for a tensor whose size does not fit its shape, and for names that are not UTF-8, not
 * unique or kept for the format. */
#define FORELOOP_TENSOR_PADDING "__pad__"
foreloop_status foreloop_safetensors_write(const char *path, const foreloop_tensor *tensors, size_t count,
                                           const foreloop_allocator *allocator, foreloop_error *error);

#endif
