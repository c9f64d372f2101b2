/* NumPy's .npy files: a magic number, a header that is a Python dictionary literal, and the array's bytes. */
#include "common/npy.h"
#include "common/alloc.h"
#include "common/bytes.h"
#include "common/error.h"
#include "common/number.h"
#include <stdbool.h>
#include <string.h>

enum { MAX_RANK = 2 };

typedef struct reader {
    const unsigned char *data;
    size_t size;   /* of what may be read: the header's end once it is known */
    size_t offset; /* of the next unread byte */
    const char *name;
    foreloop_error *error;
} reader;

typedef struct header {
    bool big_endian;
    bool fortran_order;
    size_t element_size;
    size_t rank;
    size_t shape[MAX_RANK];
} header;

static foreloop_status fail_format(const reader *from, const char *what) {
    return foreloop_fail_at(from->error, FORELOOP_ERROR_FORMAT, FORELOOP_POSITION_BYTE, from->offset,
                            "%s: byte %zu: %s", from->name, from->offset, what);
}

static void skip_space(reader *from) {
    while (from->offset < from->size && (from->data[from->offset] == ' ' || from->data[from->offset] == '\n'))
        from->offset++;
}

/* Consumes `word` after white space if it stands there. */
static bool accept(reader *from, const char *word) {
    size_t length = strlen(word);

    skip_space(from);
    if (length > from->size - from->offset || memcmp(from->data + from->offset, word, length) != 0)
        return false;
    from->offset += length;
    return true;
}

static foreloop_status read_string(reader *from, const char **text, size_t *length) {
    const unsigned char *end;
    unsigned char quote;

    skip_space(from);
    quote = from->offset < from->size ? from->data[from->offset] : 0;
    if (quote != '\'' && quote != '"')
        return fail_format(from, "expected a string in quotes in the array's header");
    end = memchr(from->data + from->offset + 1, quote, from->size - from->offset - 1);
    if (!end)
        return fail_format(from, "a string in the array's header has no end");
    *text = (const char *)from->data + from->offset + 1;
    *length = (size_t)(end - (from->data + from->offset + 1));
    from->offset += *length + 2;
    return FORELOOP_OK;
}

static foreloop_status read_descr(reader *from, header *array) {
    const char *text;
    size_t length;

    skip_space(from);
    if (from->offset < from->size && from->data[from->offset] == '[')
        return foreloop_fail(from->error, FORELOOP_ERROR_UNSUPPORTED,
                             "%s: this is an array of records; save one of float32 or float64", from->name);
    FORELOOP_TRY(read_string(from, &text, &length));
    if (length != 3 || (text[0] != '<' && text[0] != '>') || text[1] != 'f' || (text[2] != '4' && text[2] != '8'))
        return foreloop_fail(from->error, FORELOOP_ERROR_UNSUPPORTED,
                             "%s: the array's type is %.*s; convert it with astype('float32')", from->name,
                             FORELOOP_QUOTED(text, length));
    array->big_endian = text[0] == '>';
    array->element_size = (size_t)(text[2] - '0');
    return FORELOOP_OK;
}

static foreloop_status read_order(reader *from, header *array) {
    array->fortran_order = accept(from, "True");
    return array->fortran_order || accept(from, "False")
               ? FORELOOP_OK
               : fail_format(from, "expected True or False for the array's order");
}

static foreloop_status read_length(reader *from, size_t *length) {
    size_t start = from->offset, value = 0;

    while (from->offset < from->size && from->data[from->offset] >= '0' && from->data[from->offset] <= '9') {
        size_t digit = (size_t)(from->data[from->offset] - '0');
        if (value > (SIZE_MAX - digit) / 10)
            return fail_format(from, "the array's shape is too large");
        value = value * 10 + digit;
        from->offset++;
    }
    if (from->offset == start)
        return fail_format(from, "expected a number in the array's shape");
    accept(from, "L"); /* Python 2 wrote long integers like this */
    *length = value;
    return FORELOOP_OK;
}

static foreloop_status read_shape(reader *from, header *array) {
    bool comma = true;

    if (!accept(from, "("))
        return fail_format(from, "expected a shape in parentheses");
    for (array->rank = 0; !accept(from, ")"); array->rank++) {
        if (!comma)
            return fail_format(from, "expected a comma in the array's shape");
        if (array->rank == MAX_RANK)
            return foreloop_fail(from->error, FORELOOP_ERROR_UNSUPPORTED,
                                 "%s: the array has more than two dimensions; reshape it to rows and columns",
                                 from->name);
        FORELOOP_TRY(read_length(from, &array->shape[array->rank]));
        comma = accept(from, ",");
    }
    if (array->rank == 0)
        return foreloop_fail(from->error, FORELOOP_ERROR_UNSUPPORTED,
                             "%s: the array has no dimension; reshape it to rows and columns", from->name);
    return FORELOOP_OK;
}

static foreloop_status read_header(reader *from, header *array) {
    static const char *const fields[] = {"descr", "fortran_order", "shape"};
    static foreloop_status (*const read[])(reader *, header *) = {read_descr, read_order, read_shape};
    bool seen[3] = {false, false, false};
    bool comma = true;

    if (!accept(from, "{"))
        return fail_format(from, "expected a dictionary as the array's header");
    while (!accept(from, "}")) {
        const char *key;
        size_t length, field = 0;

        if (!comma)
            return fail_format(from, "expected a comma in the array's header");
        FORELOOP_TRY(read_string(from, &key, &length));
        while (field < 3 && (strlen(fields[field]) != length || memcmp(fields[field], key, length) != 0))
            field++;
        if (field == 3 || seen[field])
            return fail_format(from, "unknown or repeated key in the array's header");
        if (!accept(from, ":"))
            return fail_format(from, "expected a colon in the array's header");
        seen[field] = true;
        FORELOOP_TRY(read[field](from, array));
        comma = accept(from, ",");
    }
    if (!seen[0] || !seen[1] || !seen[2])
        return fail_format(from, "the array's header lacks descr, fortran_order or shape");
    skip_space(from);
    return from->offset == from->size ? FORELOOP_OK : fail_format(from, "expected the end of the array's header");
}

/* Magic number, version and header; leaves the reader behind it. */
static foreloop_status read_preamble(reader *from, header *array) {
    static const unsigned char magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
    const size_t size = from->size;
    size_t start, length;

    if (size < 12 || memcmp(from->data, magic, sizeof magic) != 0)
        return fail_format(from, "this is not a .npy file");
    if (from->data[6] < 1 || from->data[6] > 3)
        return foreloop_fail(from->error, FORELOOP_ERROR_UNSUPPORTED, "%s: version %d of the .npy format is unknown",
                             from->name, from->data[6]);
    start = from->data[6] == 1 ? 10 : 12;
    length = from->data[6] == 1 ? foreloop_load_le16(from->data + 8) : foreloop_load_le32(from->data + 8);
    from->offset = 8;
    if (length > size - start)
        return fail_format(from, "the array's header is longer than the file");
    from->offset = start;
    from->size = start + length;
    FORELOOP_TRY(read_header(from, array));
    from->size = size;
    return FORELOOP_OK;
}

static float element(const unsigned char *bytes, const header *array) {
    uint32_t bits;
    float value;

    if (array->element_size == 8) {
        uint64_t wide_bits = array->big_endian ? foreloop_load_be64(bytes) : foreloop_load_le64(bytes);
        double wide;
        memcpy(&wide, &wide_bits, sizeof wide);
        return foreloop_double_to_float(wide);
    }
    bits = array->big_endian ? foreloop_load_be32(bytes) : foreloop_load_le32(bytes);
    memcpy(&value, &bits, sizeof value);
    return value;
}

foreloop_status foreloop_npy_read(const void *data, size_t size, const char *name, const foreloop_allocator *allocator,
                                  float **values, size_t *rows, size_t *columns, foreloop_error *error) {
    reader from = {data, size, 0, name, error};
    header array = {.rank = 0};
    size_t row_count, column_count, row_step, column_step;
    const unsigned char *bytes;
    float *result;

    FORELOOP_TRY(read_preamble(&from, &array));
    row_count = array.rank == 1 ? 1 : array.shape[0];
    column_count = array.shape[array.rank - 1];
    if (column_count > 0 && row_count > SIZE_MAX / array.element_size / column_count)
        return fail_format(&from, "the product of the array's shape overflows");
    if (row_count * column_count * array.element_size != size - from.offset)
        return foreloop_fail_at(error, FORELOOP_ERROR_FORMAT, FORELOOP_POSITION_BYTE, from.offset,
                                "%s: byte %zu: an array of %zu x %zu elements of %zu bytes needs other than the %zu "
                                "bytes that follow",
                                name, from.offset, row_count, column_count, array.element_size, size - from.offset);
    result = foreloop_allocate(allocator, row_count * column_count, sizeof result[0]);
    if (!result)
        return foreloop_fail_memory(error, row_count * column_count, sizeof result[0], "an array");
    bytes = from.data + from.offset;
    row_step = array.element_size * (array.fortran_order ? 1 : column_count);
    column_step = array.element_size * (array.fortran_order ? row_count : 1);
    for (size_t row = 0; row < row_count && column_count > 0; row++)
        for (size_t column = 0; column < column_count; column++)
            result[row * column_count + column] = element(bytes + row * row_step + column * column_step, &array);
    *values = result;
    *rows = row_count;
    *columns = column_count;
    return FORELOOP_OK;
}
