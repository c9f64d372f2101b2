/* UBJSON (draft 12) for the pull reader: big-endian numbers behind one-byte markers, containers that may state the
 * number and the type of their values. Sizes are checked against the bytes that are left before anything relies on
 * them. */
#include "common/ubjson.h"
#include "common/bytes.h"
#include "common/number.h"
#include "common/utf8.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

bool foreloop_json_is_ubjson(const void *data, size_t size) {
    const char *bytes = data;
    return size >= 2 && bytes[0] == '{' && memchr("iUIlL$#N", bytes[1], 8);
}

/* ---- Markers ----------------------------------------------------------------------------------------------------- */

static size_t bytes_left(const foreloop_json *json) {
    return json->size - json->offset;
}

static const unsigned char *place(const foreloop_json *json) {
    return (const unsigned char *)json->data + json->offset;
}

/* Bytes of a number or character behind its marker; 0: another type. */
static size_t fixed_width(int marker) {
    switch (marker) {
    case 'i':
    case 'U':
    case 'C':
        return 1;
    case 'I':
        return 2;
    case 'l':
    case 'd':
        return 4;
    case 'L':
    case 'D':
        return 8;
    default:
        return 0;
    }
}

static bool is_integer(int marker) {
    return marker != 0 && memchr("iUIlL", marker, 5);
}

/* The marker that all values of the innermost container share, or 0. */
static int shared_marker(const foreloop_json *json) {
    return json->depth > 0 ? json->element_type[json->depth - 1] : 0;
}

/* Moves over no-ops and gives the next byte, -1 at the end. */
static int next_byte(foreloop_json *json) {
    while (json->offset < json->size && json->data[json->offset] == 'N')
        json->offset++;
    return json->offset < json->size ? *place(json) : -1;
}

/* The marker of the next value, -1 at the end. */
static int peek_marker(foreloop_json *json) {
    int shared = shared_marker(json);
    return shared != 0 ? shared : next_byte(json);
}

/* Moves behind the marker, which stands before the value unless the container gave it for all. */
static void pass_marker(foreloop_json *json) {
    if (shared_marker(json) == 0)
        json->offset++;
}

foreloop_json_type foreloop_ubjson_peek(foreloop_json *json) {
    switch (peek_marker(json)) {
    case '{':
        return FORELOOP_JSON_OBJECT;
    case '[':
        return FORELOOP_JSON_ARRAY;
    case 'S':
    case 'C':
        return FORELOOP_JSON_STRING;
    case 'i':
    case 'U':
    case 'I':
    case 'l':
    case 'L':
    case 'd':
    case 'D':
    case 'H':
        return FORELOOP_JSON_NUMBER;
    case 'T':
    case 'F':
        return FORELOOP_JSON_BOOL;
    case 'Z':
        return FORELOOP_JSON_NULL;
    default:
        return FORELOOP_JSON_NONE;
    }
}

/* ---- Numbers ----------------------------------------------------------------------------------------------------- */

static foreloop_status fail_end(foreloop_json *json) {
    return foreloop_json_fail_at(json, FORELOOP_ERROR_FORMAT, json->size, "the data end within a value");
}

static int64_t load_integer(const unsigned char *bytes, int marker) {
    switch (marker) {
    case 'i':
        return (int8_t)bytes[0];
    case 'U':
        return bytes[0];
    case 'I':
        return (int16_t)foreloop_load_be16(bytes);
    case 'l':
        return (int32_t)foreloop_load_be32(bytes);
    default:
        return (int64_t)foreloop_load_be64(bytes);
    }
}

static float load_float(const unsigned char *bytes) {
    uint32_t bits = foreloop_load_be32(bytes);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double load_double(const unsigned char *bytes) {
    uint64_t bits = foreloop_load_be64(bytes);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double load_real(const unsigned char *bytes, int marker) {
    return marker == 'd' ? (double)load_float(bytes) : load_double(bytes);
}

/* A length or count: an integer of any width that is not negative. */
static foreloop_status read_size(foreloop_json *json, size_t *value) {
    size_t offset = json->offset;
    int marker = offset < json->size ? *place(json) : -1;
    if (marker < 0)
        return fail_end(json);
    if (!is_integer(marker))
        return foreloop_json_fail(json, "expected the type of a length (one of iUIlL)");
    size_t width = fixed_width(marker);
    if (bytes_left(json) - 1 < width)
        return fail_end(json);
    int64_t number = load_integer(place(json) + 1, marker);
    json->offset += 1 + width;
    /* Nothing is longer than the document, except containers of empty values, which are refused. */
    if (number < 0 || (uint64_t)number > json->size)
        return foreloop_json_fail_at(json, FORELOOP_ERROR_FORMAT, offset, "a length of %" PRId64 " in %zu bytes",
                                     number, json->size);
    *value = (size_t)number;
    return FORELOOP_OK;
}

/* Consumes a number and gives its marker and its bytes; those of a high-precision number are its text. */
static foreloop_status take_number(foreloop_json *json, int *marker, foreloop_text *bytes) {
    if (foreloop_ubjson_peek(json) != FORELOOP_JSON_NUMBER)
        return foreloop_json_fail_type(json, "a number");
    *marker = peek_marker(json);
    pass_marker(json);
    if (*marker == 'H')
        return foreloop_ubjson_text(json, bytes);
    bytes->length = fixed_width(*marker);
    if (bytes_left(json) < bytes->length)
        return fail_end(json);
    bytes->text = json->data + json->offset;
    json->offset += bytes->length;
    return FORELOOP_OK;
}

foreloop_status foreloop_ubjson_number(foreloop_json *json, foreloop_text *value) {
    if (peek_marker(json) != 'H')
        return foreloop_json_fail_type(json, "a high-precision number");
    pass_marker(json);
    return foreloop_ubjson_text(json, value);
}

/* A number in both widths, each rounded once from what stands in the document. */
static foreloop_status read_real(foreloop_json *json, double *wide, float *narrow) {
    int marker = 0;
    foreloop_text bytes = {NULL, 0};
    FORELOOP_TRY(take_number(json, &marker, &bytes));
    const unsigned char *data = (const unsigned char *)bytes.text;
    if (is_integer(marker)) {
        *wide = (double)load_integer(data, marker);
        *narrow = (float)load_integer(data, marker);
    } else if (marker != 'H') {
        *wide = load_real(data, marker);
        *narrow = foreloop_double_to_float(*wide);
    } else if (!foreloop_parse_double(bytes.text, bytes.length, wide) ||
               !foreloop_parse_float(bytes.text, bytes.length, narrow)) {
        return foreloop_json_fail(json, "malformed number");
    }
    return FORELOOP_OK;
}

foreloop_status foreloop_ubjson_float(foreloop_json *json, float *value) {
    double wide;
    float narrow;
    FORELOOP_TRY(read_real(json, &wide, &narrow));
    *value = narrow;
    return FORELOOP_OK;
}

foreloop_status foreloop_ubjson_double(foreloop_json *json, double *value) {
    double wide;
    float narrow;
    FORELOOP_TRY(read_real(json, &wide, &narrow));
    *value = wide;
    return FORELOOP_OK;
}

foreloop_status foreloop_ubjson_int64(foreloop_json *json, int64_t *value) {
    int marker = 0;
    foreloop_text bytes = {NULL, 0};
    int64_t number = 0;
    bool whole = true;
    size_t offset = json->offset;
    FORELOOP_TRY(take_number(json, &marker, &bytes));
    const unsigned char *data = (const unsigned char *)bytes.text;
    if (marker == 'H') {
        whole = foreloop_parse_int64(bytes.text, bytes.length, &number);
    } else if (marker == 'd' || marker == 'D') {
        double real = load_real(data, marker);
        whole = real >= -9223372036854775808.0 && real < 9223372036854775808.0 && real == trunc(real);
        number = whole ? (int64_t)real : 0;
    } else {
        number = load_integer(data, marker);
    }
    if (!whole)
        return foreloop_json_fail_at(json, FORELOOP_ERROR_VALUE, offset,
                                     "expected a whole number of at most 64 bits, found another number");
    *value = number;
    return FORELOOP_OK;
}

/* ---- Other values ------------------------------------------------------------------------------------------------ */

static foreloop_status check_utf8(foreloop_json *json, foreloop_text text) {
    for (size_t i = 0; i < text.length;) {
        uint32_t code_point;
        size_t length = 1;
        if ((unsigned char)text.text[i] >= 0x80 &&
            !foreloop_utf8_decode(text.text + i, text.length - i, &code_point, &length))
            return foreloop_json_fail_at(json, FORELOOP_ERROR_FORMAT, (size_t)(text.text - json->data) + i,
                                         "invalid UTF-8 in a string");
        i += length;
    }
    return FORELOOP_OK;
}

foreloop_status foreloop_ubjson_text(foreloop_json *json, foreloop_text *text) {
    size_t length = 0;
    FORELOOP_TRY(read_size(json, &length));
    if (length > bytes_left(json))
        return fail_end(json);
    foreloop_text read = {json->data + json->offset, length};
    FORELOOP_TRY(check_utf8(json, read));
    json->offset += length;
    *text = read;
    return FORELOOP_OK;
}

foreloop_status foreloop_ubjson_string(foreloop_json *json, foreloop_text *value) {
    bool character = peek_marker(json) == 'C';
    pass_marker(json);
    if (!character)
        return foreloop_ubjson_text(json, value);
    if (bytes_left(json) == 0)
        return fail_end(json);
    foreloop_text read = {json->data + json->offset, 1};
    FORELOOP_TRY(check_utf8(json, read));
    json->offset++;
    *value = read;
    return FORELOOP_OK;
}

foreloop_status foreloop_ubjson_bool(foreloop_json *json, bool *value) {
    if (foreloop_ubjson_peek(json) != FORELOOP_JSON_BOOL)
        return foreloop_json_fail_type(json, "true or false");
    *value = peek_marker(json) == 'T';
    pass_marker(json);
    return FORELOOP_OK;
}

foreloop_status foreloop_ubjson_null(foreloop_json *json) {
    if (foreloop_ubjson_peek(json) != FORELOOP_JSON_NULL)
        return foreloop_json_fail_type(json, "null");
    pass_marker(json);
    return FORELOOP_OK;
}

foreloop_status foreloop_ubjson_end(foreloop_json *json) {
    return next_byte(json) < 0 ? FORELOOP_OK : foreloop_json_fail(json, "expected the end of the data");
}

foreloop_status foreloop_ubjson_skip(foreloop_json *json) {
    int marker;
    foreloop_text text;
    bool flag;
    switch (foreloop_ubjson_peek(json)) {
    case FORELOOP_JSON_STRING:
        return foreloop_ubjson_string(json, &text);
    case FORELOOP_JSON_NUMBER:
        return take_number(json, &marker, &text);
    case FORELOOP_JSON_BOOL:
        return foreloop_ubjson_bool(json, &flag);
    case FORELOOP_JSON_NULL:
        return foreloop_ubjson_null(json);
    default:
        return foreloop_json_fail_type(json, "a value");
    }
}

/* ---- Containers -------------------------------------------------------------------------------------------------- */

/* `$` and a type, with which a `#` and a count must follow. */
static foreloop_status read_element_type(foreloop_json *json, unsigned char *type) {
    if (bytes_left(json) < 2)
        return fail_end(json);
    *type = place(json)[1];
    /* Values without content would be any number of them in no bytes. */
    if (fixed_width(*type) == 0 && !memchr("SH[{", *type, 4))
        return foreloop_json_fail(json, "a container of this type is not supported");
    json->offset += 2;
    if (bytes_left(json) == 0)
        return fail_end(json);
    return *place(json) == '#' ? FORELOOP_OK : foreloop_json_fail(json, "a type without a count");
}

foreloop_status foreloop_ubjson_open(foreloop_json *json, bool is_object) {
    unsigned char type = 0;
    size_t count = SIZE_MAX;
    if (json->depth >= FORELOOP_JSON_MAX_DEPTH)
        return foreloop_json_fail_at(json, FORELOOP_ERROR_LIMIT, json->offset, "values are nested deeper than %d",
                                     FORELOOP_JSON_MAX_DEPTH);
    pass_marker(json);
    if (bytes_left(json) > 0 && *place(json) == '$')
        FORELOOP_TRY(read_element_type(json, &type));
    if (bytes_left(json) > 0 && *place(json) == '#') {
        json->offset++;
        FORELOOP_TRY(read_size(json, &count));
        size_t width = fixed_width(type) > 0 ? fixed_width(type) : 1;
        if (count > bytes_left(json) / width)
            return foreloop_json_fail(json, "a container of %zu values, but %zu bytes are left", count,
                                      bytes_left(json));
    }
    json->is_object[json->depth] = is_object;
    json->element_type[json->depth] = type;
    json->remaining[json->depth] = count;
    json->depth++;
    return FORELOOP_OK;
}

foreloop_status foreloop_ubjson_next(foreloop_json *json, bool *more) {
    const size_t level = json->depth - 1;
    *more = true;
    if (json->remaining[level] != SIZE_MAX) {
        *more = json->remaining[level] > 0;
        if (*more)
            json->remaining[level]--;
    } else {
        int byte = next_byte(json);
        if (byte < 0)
            return fail_end(json);
        *more = byte != (json->is_object[level] ? '}' : ']');
        if (!*more)
            json->offset++;
    }
    if (!*more)
        json->depth--;
    return FORELOOP_OK;
}

void foreloop_ubjson_skip_numbers(foreloop_json *json) {
    const size_t level = json->depth - 1;
    if (json->is_object[level] || fixed_width(json->element_type[level]) == 0)
        return;
    json->offset += json->remaining[level] * fixed_width(json->element_type[level]);
    json->remaining[level] = 0;
}

/* ---- Typed arrays ------------------------------------------------------------------------------------------------ */

/* Loads `count` integers, whose marker is a constant at each call; gives how many there are before one that is out of
 * range. */
static inline size_t load_integers(const unsigned char *bytes, size_t count, int marker, int64_t minimum,
                                   int64_t maximum, int64_t *items) {
    const size_t width = fixed_width(marker);
    size_t good = 0;
    for (size_t i = 0; i < count; i++)
        items[i] = load_integer(bytes + width * i, marker);
    while (good < count && items[good] >= minimum && items[good] <= maximum)
        good++;
    return good;
}

foreloop_status foreloop_ubjson_integers(foreloop_json *json, int64_t minimum, int64_t maximum,
                                         foreloop_integers *list) {
    const int marker = shared_marker(json);
    if (!is_integer(marker))
        return FORELOOP_OK;
    const size_t level = json->depth - 1, count = json->remaining[level];
    FORELOOP_TRY(foreloop_reserve(json->scratch.allocator, &list->items, &list->capacity, list->count,
                                  list->count + count, sizeof *list->items, json->error));
    const unsigned char *bytes = place(json);
    int64_t *items = list->items + list->count;
    size_t good;
    switch (marker) {
    case 'i':
        good = load_integers(bytes, count, 'i', minimum, maximum, items);
        break;
    case 'U':
        good = load_integers(bytes, count, 'U', minimum, maximum, items);
        break;
    case 'I':
        good = load_integers(bytes, count, 'I', minimum, maximum, items);
        break;
    case 'l':
        good = load_integers(bytes, count, 'l', minimum, maximum, items);
        break;
    default:
        good = load_integers(bytes, count, 'L', minimum, maximum, items);
    }
    /* The reader of single values says what is wrong with the next one. */
    list->count += good;
    json->offset += good * fixed_width(marker);
    json->remaining[level] -= good;
    return FORELOOP_OK;
}

foreloop_status foreloop_ubjson_floats(foreloop_json *json, foreloop_floats *list) {
    if (shared_marker(json) != 'd')
        return FORELOOP_OK;
    const size_t count = json->remaining[json->depth - 1];
    FORELOOP_TRY(foreloop_reserve(json->scratch.allocator, &list->items, &list->capacity, list->count,
                                  list->count + count, sizeof *list->items, json->error));
    const unsigned char *bytes = place(json);
    for (size_t i = 0; i < count; i++)
        list->items[list->count++] = load_float(bytes + 4 * i);
    foreloop_ubjson_skip_numbers(json);
    return FORELOOP_OK;
}
