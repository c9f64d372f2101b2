/*
 * The safetensors container: eight bytes of header length, a JSON header that gives each tensor's type, shape and
 * place, and the data. Checked as the reference implementation checks it: the tensors cover the data without gap or
 * overlap.
 */
#include "common/safetensors.h"
#include "common/alloc.h"
#include "common/bytes.h"
#include "common/error.h"
#include "common/file.h"
#include "common/json.h"
#include "common/number.h"
#include "common/sort.h"
#include "common/utf8.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LENGTH_BYTES = 8, MAX_HEADER = 100000000 };

/* ---- Types ------------------------------------------------------------------------------------------------------- */

static const struct dtype_entry {
    const char *name;
    size_t bits;
    foreloop_dtype dtype;
} DTYPES[] = {
    {"F64", 64, FORELOOP_DTYPE_F64},      {"F32", 32, FORELOOP_DTYPE_F32},      {"F16", 16, FORELOOP_DTYPE_F16},
    {"BF16", 16, FORELOOP_DTYPE_BF16},    {"I64", 64, FORELOOP_DTYPE_I64},      {"I32", 32, FORELOOP_DTYPE_I32},
    {"I16", 16, FORELOOP_DTYPE_I16},      {"I8", 8, FORELOOP_DTYPE_I8},         {"U8", 8, FORELOOP_DTYPE_U8},
    {"BOOL", 8, FORELOOP_DTYPE_BOOL},     {"U16", 16, FORELOOP_DTYPE_OTHER},    {"U32", 32, FORELOOP_DTYPE_OTHER},
    {"U64", 64, FORELOOP_DTYPE_OTHER},    {"C64", 64, FORELOOP_DTYPE_OTHER},    {"F8_E4M3", 8, FORELOOP_DTYPE_OTHER},
    {"F8_E5M2", 8, FORELOOP_DTYPE_OTHER}, {"F8_E8M0", 8, FORELOOP_DTYPE_OTHER}, {"F6_E2M3", 6, FORELOOP_DTYPE_OTHER},
    {"F6_E3M2", 6, FORELOOP_DTYPE_OTHER}, {"F4", 4, FORELOOP_DTYPE_OTHER},
};
enum { DTYPE_COUNT = sizeof DTYPES / sizeof DTYPES[0] };

const char *foreloop_dtype_name(foreloop_dtype dtype) {
    /* The types with a constant of their own come first, in its order. */
    return dtype < FORELOOP_DTYPE_OTHER ? DTYPES[dtype].name : "another type";
}

size_t foreloop_dtype_size(foreloop_dtype dtype) {
    return dtype < FORELOOP_DTYPE_OTHER ? DTYPES[dtype].bits / 8 : 0;
}

/* ---- Sorting ----------------------------------------------------------------------------------------------------- */

/* Orders of indices into the tensors that `context` points to. */
static int compare_names(const void *a, const void *b, const void *context) {
    const foreloop_tensor *tensors = context;
    return strcmp(tensors[*(const uint32_t *)a].name, tensors[*(const uint32_t *)b].name);
}

/* By place; of those that begin at one place, the empty ones come before the one that has the bytes there. */
static int compare_places(const void *a, const void *b, const void *context) {
    const foreloop_tensor *tensors = context;
    const foreloop_tensor *first = &tensors[*(const uint32_t *)a], *second = &tensors[*(const uint32_t *)b];
    if (first->data != second->data)
        return first->data < second->data ? -1 : 1;
    return first->size < second->size ? -1 : first->size > second->size;
}

static void sort_indices(uint32_t *order, size_t count, const foreloop_tensor *tensors, foreloop_compare compare) {
    for (size_t i = 0; i < count; i++)
        order[i] = (uint32_t)i;
    foreloop_sort(order, count, sizeof order[0], compare, tensors);
}

/* The first name that occurs twice, NULL when there is none. */
static const char *repeated_name(const foreloop_tensor *tensors, const uint32_t *by_name, size_t count) {
    for (size_t i = 1; i < count; i++)
        if (compare_names(&by_name[i - 1], &by_name[i], tensors) == 0)
            return tensors[by_name[i]].name;
    return NULL;
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

typedef struct reader {
    foreloop_json json;
    foreloop_error *error;
    const char *name;
    const unsigned char *data; /* the section behind the header */
    size_t size;
    foreloop_arena names;
    size_t capacity;
    size_t bits; /* of an element of the tensor that is being read */
} reader;

static foreloop_status read_dtype(reader *from, foreloop_tensor *tensor) {
    foreloop_text text;

    FORELOOP_TRY(foreloop_json_string(&from->json, &text));
    for (size_t i = 0; i < DTYPE_COUNT; i++) {
        if (foreloop_text_is(text, DTYPES[i].name)) {
            tensor->dtype = DTYPES[i].dtype;
            from->bits = DTYPES[i].bits;
            return FORELOOP_OK;
        }
    }
    return foreloop_json_fail(&from->json, "tensor %s has the unknown type \"%.*s\"", tensor->name,
                              FORELOOP_QUOTED(text.text, text.length));
}

static foreloop_status read_shape(reader *from, foreloop_tensor *tensor) {
    FORELOOP_TRY(foreloop_json_array(&from->json));
    for (tensor->rank = 0;; tensor->rank++) {
        bool more;
        FORELOOP_TRY(foreloop_json_element(&from->json, &more));
        if (!more)
            return FORELOOP_OK;
        if (tensor->rank == FORELOOP_TENSOR_MAX_RANK)
            return foreloop_fail(from->error, FORELOOP_ERROR_UNSUPPORTED, "%s: tensor %s has more than %d dimensions",
                                 from->name, tensor->name, FORELOOP_TENSOR_MAX_RANK);
        FORELOOP_TRY(foreloop_json_size(&from->json, SIZE_MAX, &tensor->shape[tensor->rank]));
    }
}

static foreloop_status read_offsets(reader *from, foreloop_tensor *tensor) {
    size_t offsets[2];
    bool more;

    FORELOOP_TRY(foreloop_json_array(&from->json));
    for (int i = 0; i < 2; i++) {
        FORELOOP_TRY(foreloop_json_element(&from->json, &more));
        if (!more)
            return foreloop_json_fail(&from->json, "tensor %s: data_offsets must have two numbers", tensor->name);
        FORELOOP_TRY(foreloop_json_size(&from->json, SIZE_MAX, &offsets[i]));
    }
    FORELOOP_TRY(foreloop_json_element(&from->json, &more));
    if (more)
        return foreloop_json_fail(&from->json, "tensor %s: data_offsets must have two numbers", tensor->name);
    if (offsets[0] > offsets[1])
        return foreloop_json_fail(&from->json, "tensor %s ends before it begins", tensor->name);
    if (offsets[1] > from->size)
        return foreloop_json_fail(&from->json,
                                  "tensor %s ends at byte %zu of the data, but there are only %zu: the file is cut "
                                  "short, copy it again",
                                  tensor->name, offsets[1], from->size);
    tensor->data = from->data + offsets[0];
    tensor->size = offsets[1] - offsets[0];
    return FORELOOP_OK;
}

/* Product of the shape, or false when it overflows. */
static bool count_elements(foreloop_tensor *tensor) {
    tensor->count = 1;
    for (size_t i = 0; i < tensor->rank; i++) {
        if (tensor->shape[i] > 0 && tensor->count > SIZE_MAX / tensor->shape[i])
            return false;
        tensor->count *= tensor->shape[i];
    }
    return true;
}

static foreloop_status read_tensor(reader *from, foreloop_tensor *tensor) {
    static const char *const fields[] = {"dtype", "shape", "data_offsets"};
    static foreloop_status (*const read[])(reader *, foreloop_tensor *) = {read_dtype, read_shape, read_offsets};
    bool seen[3] = {false, false, false};

    FORELOOP_TRY(foreloop_json_object(&from->json));
    for (;;) {
        foreloop_text key;
        size_t field = 0;

        FORELOOP_TRY(foreloop_json_key(&from->json, &key));
        if (!key.text)
            break;
        while (field < 3 && !foreloop_text_is(key, fields[field]))
            field++;
        if (field == 3) {
            FORELOOP_TRY(foreloop_json_skip(&from->json));
            continue;
        }
        if (seen[field])
            return foreloop_json_fail(&from->json, "tensor %s has two fields %s", tensor->name, fields[field]);
        seen[field] = true;
        FORELOOP_TRY(read[field](from, tensor));
    }
    for (size_t field = 0; field < 3; field++)
        if (!seen[field])
            return foreloop_json_fail(&from->json, "tensor %s has no field %s", tensor->name, fields[field]);
    if (!count_elements(tensor) || tensor->count > SIZE_MAX / from->bits)
        return foreloop_json_fail(&from->json, "tensor %s: the product of its shape overflows", tensor->name);
    if (tensor->count * from->bits % 8 != 0 || tensor->count * from->bits / 8 != tensor->size)
        return foreloop_json_fail(&from->json, "tensor %s has %zu elements of %zu bits, but %zu bytes of data",
                                  tensor->name, tensor->count, from->bits, tensor->size);
    return FORELOOP_OK;
}

/* Free text for people: nothing here reads it. */
static foreloop_status check_metadata(foreloop_json *json) {
    FORELOOP_TRY(foreloop_json_object(json));
    for (;;) {
        foreloop_text text;
        FORELOOP_TRY(foreloop_json_key(json, &text));
        if (!text.text)
            return FORELOOP_OK;
        FORELOOP_TRY(foreloop_json_string(json, &text));
    }
}

static foreloop_status read_header(reader *from, foreloop_safetensors *file) {
    bool metadata_seen = false;

    FORELOOP_TRY(foreloop_json_object(&from->json));
    for (;;) {
        foreloop_tensor tensor = {.name = NULL};
        foreloop_text key;

        FORELOOP_TRY(foreloop_json_key(&from->json, &key));
        if (!key.text)
            break;
        if (foreloop_text_is(key, "__metadata__")) {
            if (metadata_seen)
                return foreloop_json_fail(&from->json, "there are two fields __metadata__");
            metadata_seen = true;
            FORELOOP_TRY(check_metadata(&from->json));
            continue;
        }
        if (memchr(key.text, '\0', key.length))
            return foreloop_json_fail(&from->json, "a tensor's name holds a zero byte");
        tensor.name = foreloop_arena_text(&from->names, key.text, key.length);
        if (!tensor.name)
            return foreloop_fail_memory(from->error, key.length, 1, "a tensor's name");
        FORELOOP_TRY(read_tensor(from, &tensor));
        FORELOOP_TRY(foreloop_reserve(&file->allocator, &file->tensors, &from->capacity, file->count, file->count + 1,
                                      sizeof tensor, from->error));
        file->tensors[file->count++] = tensor;
    }
    return foreloop_json_end(&from->json);
}

/* Uses by_name[count] as scratch. */
static foreloop_status check_places(const reader *from, foreloop_safetensors *file) {
    const unsigned char *place = from->data;

    sort_indices(file->by_name, file->count, file->tensors, compare_places);
    for (size_t i = 0; i < file->count; i++) {
        const foreloop_tensor *tensor = &file->tensors[file->by_name[i]];
        if (tensor->data < place)
            return foreloop_fail(from->error, FORELOOP_ERROR_FORMAT, "%s: tensor %s overlaps another one", from->name,
                                 tensor->name);
        if (tensor->data > place)
            return foreloop_fail(from->error, FORELOOP_ERROR_FORMAT,
                                 "%s: there are %zu bytes before tensor %s that belong to no tensor", from->name,
                                 (size_t)(tensor->data - place), tensor->name);
        place += tensor->size;
    }
    if (place != from->data + from->size)
        return foreloop_fail(from->error, FORELOOP_ERROR_FORMAT,
                             "%s: there are %zu bytes behind the last tensor that belong to no tensor", from->name,
                             (size_t)(from->data + from->size - place));
    return FORELOOP_OK;
}

static foreloop_status index_tensors(const reader *from, foreloop_safetensors *file) {
    const char *repeated;

    file->by_name = foreloop_allocate(&file->allocator, file->count, sizeof file->by_name[0]);
    if (!file->by_name)
        return foreloop_fail_memory(from->error, file->count, sizeof file->by_name[0], "the index of tensors");
    FORELOOP_TRY(check_places(from, file));
    sort_indices(file->by_name, file->count, file->tensors, compare_names);
    repeated = repeated_name(file->tensors, file->by_name, file->count);
    if (repeated)
        return foreloop_fail(from->error, FORELOOP_ERROR_FORMAT, "%s: there are two tensors named %s", from->name,
                             repeated);
    return FORELOOP_OK;
}

foreloop_status foreloop_safetensors_open(foreloop_safetensors *file, const void *data, size_t size, const char *name,
                                          const foreloop_allocator *allocator, foreloop_error *error) {
    foreloop_safetensors opened = {.allocator = *allocator};
    const unsigned char *bytes = data;
    reader from = {.error = error, .name = name, .names = {.allocator = allocator}};
    foreloop_status status;
    uint64_t length;

    if (size < LENGTH_BYTES)
        return foreloop_fail(error, FORELOOP_ERROR_FORMAT,
                             "%s: %zu bytes are too few for a safetensors file, which begins with an 8-byte length",
                             name, size);
    length = foreloop_load_le64(bytes);
    if (length > MAX_HEADER || length > size - LENGTH_BYTES)
        return foreloop_fail_at(error, FORELOOP_ERROR_FORMAT, FORELOOP_POSITION_BYTE, 0,
                                "%s: byte 0: a header of %" PRIu64 " bytes is beyond %s: this is no safetensors file, "
                                "or it is cut short",
                                name, length, length > MAX_HEADER ? "the format's 100 MB" : "the end of the file");
    from.data = bytes + LENGTH_BYTES + length;
    from.size = size - LENGTH_BYTES - (size_t)length;
    foreloop_json_open(&from.json, allocator, bytes + LENGTH_BYTES, (size_t)length, name, error);
    from.json.base = LENGTH_BYTES;
    status = read_header(&from, &opened);
    if (status == FORELOOP_OK)
        status = index_tensors(&from, &opened);
    foreloop_json_close(&from.json);
    opened.names = from.names.chunks;
    if (status != FORELOOP_OK)
        foreloop_safetensors_close(&opened);
    else
        *file = opened;
    return status;
}

void foreloop_safetensors_close(foreloop_safetensors *file) {
    foreloop_arena names = {.allocator = &file->allocator, .chunks = file->names};

    foreloop_arena_close(&names);
    foreloop_release(&file->allocator, file->by_name);
    foreloop_release(&file->allocator, file->tensors);
    file->names = NULL;
    file->by_name = NULL;
    file->tensors = NULL;
    file->count = 0;
}

const foreloop_tensor *foreloop_safetensors_find_part(const foreloop_safetensors *file, const char *prefix,
                                                      const char *name) {
    const size_t length = strlen(prefix);
    size_t low = 0, high = file->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const foreloop_tensor *tensor = &file->tensors[file->by_name[middle]];
        int order = strncmp(prefix, tensor->name, length);
        if (order == 0)
            order = strcmp(name, tensor->name + length);
        if (order == 0)
            return tensor;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const foreloop_tensor *foreloop_safetensors_find(const foreloop_safetensors *file, const char *name) {
    return foreloop_safetensors_find_part(file, "", name);
}

foreloop_status foreloop_safetensors_require(const foreloop_safetensors *file, const char *prefix, const char *name,
                                             const char *part, const foreloop_tensor **tensor, foreloop_error *error) {
    *tensor = foreloop_safetensors_find_part(file, prefix, name);
    if (!*tensor)
        return foreloop_fail(error, FORELOOP_ERROR_MISMATCH,
                             "the tensor '%.100s%.200s', which %s needs, is missing: the weights are incomplete or of "
                             "another model",
                             prefix, name, part);
    return FORELOOP_OK;
}

/* ---- Use --------------------------------------------------------------------------------------------------------- */

/* Elements first <= i < end. Each loop is of one type and without a branch, so that it becomes vectors. */
static void convert(const foreloop_tensor *tensor, size_t first, size_t end, float *restrict values) {
    const unsigned char *restrict data = tensor->data;
    switch (tensor->dtype) {
    case FORELOOP_DTYPE_F64:
        for (size_t i = first; i < end; i++) {
            const uint64_t bits = foreloop_load_le64(data + i * 8);
            double wide;
            memcpy(&wide, &bits, sizeof wide);
            values[i - first] = foreloop_double_to_float(wide);
        }
        break;
    case FORELOOP_DTYPE_F32:
        for (size_t i = first; i < end; i++) {
            const uint32_t bits = foreloop_load_le32(data + i * 4);
            memcpy(&values[i - first], &bits, sizeof bits);
        }
        break;
    case FORELOOP_DTYPE_F16:
        for (size_t i = first; i < end; i++)
            values[i - first] = foreloop_half_to_float(foreloop_load_le16(data + i * 2));
        break;
    default:
        for (size_t i = first; i < end; i++)
            values[i - first] = foreloop_bfloat16_to_float(foreloop_load_le16(data + i * 2));
    }
}

/* Whether all of the elements first <= i < end are finite float32. */
static bool are_finite(const foreloop_tensor *tensor, size_t first, size_t end) {
    const unsigned char *data = tensor->data;
    const uint16_t exponent = tensor->dtype == FORELOOP_DTYPE_F16 ? 0x7C00u : 0x7F80u;
    uint16_t bad = 0;
    if (tensor->dtype == FORELOOP_DTYPE_F16 || tensor->dtype == FORELOOP_DTYPE_BF16)
        for (size_t i = first; i < end; i++)
            bad = (uint16_t)(bad | ((foreloop_load_le16(data + i * 2) & exponent) == exponent));
    else
        for (size_t i = first; i < end; i++) {
            float value;
            convert(tensor, i, i + 1, &value);
            bad = (uint16_t)(bad | !isfinite(value));
        }
    return !bad;
}

/* The first element that is no finite float32, or the count. */
static size_t first_not_finite(const foreloop_tensor *tensor) {
    size_t i = 0;
    if (are_finite(tensor, 0, tensor->count))
        return tensor->count;
    while (are_finite(tensor, i, i + 1))
        i++;
    return i;
}

foreloop_status foreloop_tensor_to_float(const foreloop_tensor *tensor, bool finite, float *values,
                                         foreloop_error *error) {
    if (tensor->dtype > FORELOOP_DTYPE_BF16)
        return foreloop_fail(error, FORELOOP_ERROR_UNSUPPORTED, "tensor %s: expected F64, F32, F16 or BF16, found %s",
                             tensor->name, foreloop_dtype_name(tensor->dtype));
    /* A pass of its own, so that a bad element leaves the output untouched. */
    const size_t bad = finite ? first_not_finite(tensor) : tensor->count;
    if (bad < tensor->count)
        return foreloop_fail(error, FORELOOP_ERROR_VALUE, "tensor %s: element %zu is not a finite float32",
                             tensor->name, bad);
    convert(tensor, 0, tensor->count, values);
    return FORELOOP_OK;
}

enum { SHAPE_TEXT_SIZE = FORELOOP_TENSOR_MAX_RANK * 22 + 3 };

static void shape_text(size_t rank, const size_t *shape, char text[SHAPE_TEXT_SIZE]) {
    size_t length = 0;

    text[length++] = '[';
    for (size_t i = 0; i < rank && i < FORELOOP_TENSOR_MAX_RANK; i++)
        length += (size_t)snprintf(text + length, SHAPE_TEXT_SIZE - length, i > 0 ? ", %zu" : "%zu", shape[i]);
    text[length++] = ']';
    text[length] = '\0';
}

foreloop_status foreloop_tensor_expect_shape(const foreloop_tensor *tensor, size_t rank, const size_t *shape,
                                             foreloop_error *error) {
    char found[SHAPE_TEXT_SIZE], expected[SHAPE_TEXT_SIZE];

    if (tensor->rank == rank && (rank == 0 || memcmp(tensor->shape, shape, rank * sizeof shape[0]) == 0))
        return FORELOOP_OK;
    shape_text(tensor->rank, tensor->shape, found);
    shape_text(rank, shape, expected);
    return foreloop_fail(error, FORELOOP_ERROR_MISMATCH, "tensor %s has the shape %s, expected %s", tensor->name, found,
                         expected);
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

static size_t padding_after(size_t size) {
    return (FORELOOP_ALIGNMENT - size % FORELOOP_ALIGNMENT) % FORELOOP_ALIGNMENT;
}

static foreloop_status check_written_tensor(const foreloop_tensor *tensor, foreloop_error *error) {
    foreloop_tensor counted = *tensor;
    size_t length = strlen(tensor->name), element_size = foreloop_dtype_size(tensor->dtype);

    for (size_t i = 0, step; i < length; i += step) {
        uint32_t code_point;
        if (!foreloop_utf8_decode(tensor->name + i, length - i, &code_point, &step))
            return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "tensor %s: the name is not UTF-8", tensor->name);
    }
    if (strcmp(tensor->name, "__metadata__") == 0 ||
        strncmp(tensor->name, FORELOOP_TENSOR_PADDING, strlen(FORELOOP_TENSOR_PADDING)) == 0)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "tensor %s: this name is kept for the format itself",
                             tensor->name);
    if (tensor->rank > FORELOOP_TENSOR_MAX_RANK || element_size == 0 || !count_elements(&counted) ||
        tensor->size % element_size != 0 || tensor->size / element_size != counted.count)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "tensor %s: %zu bytes do not fit its shape and type",
                             tensor->name, tensor->size);
    return FORELOOP_OK;
}

static foreloop_status check_written(const foreloop_tensor *tensors, size_t count, const foreloop_allocator *allocator,
                                     foreloop_error *error) {
    const char *repeated;
    uint32_t *by_name;

    for (size_t i = 0; i < count; i++)
        FORELOOP_TRY(check_written_tensor(&tensors[i], error));
    by_name = count < UINT32_MAX ? foreloop_allocate(allocator, count, sizeof by_name[0]) : NULL;
    if (!by_name)
        return foreloop_fail_memory(error, count, sizeof by_name[0], "the index of tensors");
    sort_indices(by_name, count, tensors, compare_names);
    repeated = repeated_name(tensors, by_name, count);
    foreloop_release(allocator, by_name);
    if (repeated)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "there are two tensors named %s", repeated);
    return FORELOOP_OK;
}

static foreloop_status append_text(foreloop_buffer *header, const char *text, foreloop_error *error) {
    return foreloop_buffer_append(header, text, strlen(text), error);
}

static foreloop_status append_name(foreloop_buffer *header, const char *name, foreloop_error *error) {
    FORELOOP_TRY(append_text(header, "\"", error));
    for (; *name; name++) {
        char escaped[8];
        if (*name == '"' || *name == '\\')
            snprintf(escaped, sizeof escaped, "\\%c", *name);
        else if ((unsigned char)*name < 0x20)
            snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned)*name);
        else
            snprintf(escaped, sizeof escaped, "%c", *name);
        FORELOOP_TRY(append_text(header, escaped, error));
    }
    return append_text(header, "\"", error);
}

static foreloop_status append_entry(foreloop_buffer *header, const foreloop_tensor *tensor, size_t offset,
                                    foreloop_error *error) {
    char text[64];

    FORELOOP_TRY(append_text(header, header->size == LENGTH_BYTES ? "{" : ",", error));
    FORELOOP_TRY(append_name(header, tensor->name, error));
    FORELOOP_TRY(append_text(header, ":{\"dtype\":\"", error));
    FORELOOP_TRY(append_text(header, foreloop_dtype_name(tensor->dtype), error));
    FORELOOP_TRY(append_text(header, "\",\"shape\":[", error));
    for (size_t i = 0; i < tensor->rank; i++) {
        snprintf(text, sizeof text, i > 0 ? ",%zu" : "%zu", tensor->shape[i]);
        FORELOOP_TRY(append_text(header, text, error));
    }
    snprintf(text, sizeof text, "],\"data_offsets\":[%zu,%zu]}", offset, offset + tensor->size);
    return append_text(header, text, error);
}

/* Builds the header and parts[1..2 x count], each tensor's data and the padding behind it. */
static foreloop_status compose(foreloop_buffer *header, const foreloop_tensor *tensors, size_t count,
                               foreloop_bytes *parts, foreloop_error *error) {
    static const unsigned char zeros[FORELOOP_ALIGNMENT];
    unsigned char length[LENGTH_BYTES] = {0};
    size_t offset = 0;

    FORELOOP_TRY(foreloop_buffer_append(header, length, LENGTH_BYTES, error)); /* known at the end */
    for (size_t i = 0; i < count; i++) {
        size_t padding = i + 1 < count ? padding_after(tensors[i].size) : 0;

        if (tensors[i].size > SIZE_MAX - FORELOOP_ALIGNMENT - offset)
            return foreloop_fail(error, FORELOOP_ERROR_LIMIT, "the tensors together are larger than the address space");
        FORELOOP_TRY(append_entry(header, &tensors[i], offset, error));
        parts[1 + 2 * i] = (foreloop_bytes){tensors[i].data, tensors[i].size};
        offset += tensors[i].size;
        if (padding > 0) {
            char name[40];
            foreloop_tensor filler = {.name = name, .dtype = FORELOOP_DTYPE_U8, .rank = 1, .size = padding};
            snprintf(name, sizeof name, FORELOOP_TENSOR_PADDING "%zu", i);
            filler.shape[0] = padding;
            FORELOOP_TRY(append_entry(header, &filler, offset, error));
        }
        parts[2 + 2 * i] = (foreloop_bytes){zeros, padding};
        offset += padding;
    }
    FORELOOP_TRY(append_text(header, count > 0 ? "}" : "{}", error));
    for (size_t padding = padding_after(header->size); padding > 0; padding--)
        FORELOOP_TRY(append_text(header, " ", error));
    if (header->size - LENGTH_BYTES > MAX_HEADER)
        return foreloop_fail(error, FORELOOP_ERROR_LIMIT, "the header of %zu tensors is beyond the format's 100 MB",
                             count);
    foreloop_store_le64((unsigned char *)header->data, header->size - LENGTH_BYTES);
    parts[0] = (foreloop_bytes){header->data, header->size};
    return FORELOOP_OK;
}

foreloop_status foreloop_safetensors_write(const char *path, const foreloop_tensor *tensors, size_t count,
                                           const foreloop_allocator *allocator, foreloop_error *error) {
    foreloop_buffer header = {.allocator = allocator};
    foreloop_bytes *parts;
    foreloop_status status;

    FORELOOP_TRY(check_written(tensors, count, allocator, error));
    parts = foreloop_allocate(allocator, 1 + 2 * count, sizeof parts[0]);
    if (!parts)
        return foreloop_fail_memory(error, 1 + 2 * count, sizeof parts[0], "the parts of a file");
    status = compose(&header, tensors, count, parts, error);
    if (status == FORELOOP_OK)
        status = foreloop_file_write(path, parts, 1 + 2 * count, allocator, error);
    foreloop_buffer_close(&header);
    foreloop_release(allocator, parts);
    return status;
}
