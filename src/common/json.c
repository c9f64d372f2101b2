/* Pull reader for JSON in memory: one pass, no recursion, no tree. */
#include "common/json.h"
#include "common/number.h"
#include "common/ubjson.h"
#include "common/utf8.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool foreloop_text_is(foreloop_text text, const char *terminated) {
    size_t length = strlen(terminated);
    return text.text && text.length == length && memcmp(text.text, terminated, length) == 0;
}

void foreloop_json_open(foreloop_json *json, const foreloop_allocator *allocator, const void *data, size_t size,
                        const char *name, foreloop_error *error) {
    memset(json, 0, sizeof *json);
    json->data = size > 0 ? data : "";
    json->size = size;
    json->name = name;
    json->error = error;
    json->scratch.allocator = allocator;
    json->key_scratch.allocator = allocator;
}

void foreloop_json_open_ubjson(foreloop_json *json, const foreloop_allocator *allocator, const void *data, size_t size,
                               const char *name, foreloop_error *error) {
    foreloop_json_open(json, allocator, data, size, name, error);
    json->binary = true;
}

void foreloop_json_close(foreloop_json *json) {
    foreloop_buffer_close(&json->scratch);
    foreloop_buffer_close(&json->key_scratch);
}

/* ---- Errors ------------------------------------------------------------------------------------------------------ */

foreloop_status foreloop_json_fail_at(foreloop_json *json, foreloop_status code, size_t offset, const char *format,
                                      ...) {
    uint64_t position = (uint64_t)json->base + offset;
    char message[sizeof(((foreloop_error *)0)->message)];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return foreloop_fail_at(json->error, code, FORELOOP_POSITION_BYTE, position, "%s%sbyte %" PRIu64 ": %s",
                            json->name ? json->name : "", json->name ? ": " : "", position, message);
}

foreloop_status foreloop_json_fail(foreloop_json *json, const char *format, ...) {
    char message[sizeof(((foreloop_error *)0)->message)];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return foreloop_json_fail_at(json, FORELOOP_ERROR_FORMAT, json->offset, "%s", message);
}

static bool starts_with(const foreloop_json *json, size_t offset, const char *word) {
    size_t length = strlen(word);
    return length <= json->size - offset && memcmp(json->data + offset, word, length) == 0;
}

/* What stands at the reader's place, for messages. */
static const char *found(foreloop_json *json) {
    static const char *const names[] = {"an object", "an array", "a string", "a number", "true or false", "null"};
    foreloop_json_type type = foreloop_json_peek(json);

    if (json->binary && type == FORELOOP_JSON_NONE)
        return json->offset < json->size ? "a byte that is no type of UBJSON" : "the end of the data";
    if (json->binary)
        return names[type];
    if ((type == FORELOOP_JSON_NULL && !starts_with(json, json->offset, "null")) ||
        (type == FORELOOP_JSON_BOOL && !starts_with(json, json->offset, "true") &&
         !starts_with(json, json->offset, "false")))
        return "a malformed value";
    if (type != FORELOOP_JSON_NONE)
        return names[type];
    if (json->offset >= json->size)
        return "the end of the text";
    switch (json->data[json->offset]) {
    case ',':
        return "a comma";
    case ':':
        return "a colon";
    case ']':
    case '}':
        return "a closing bracket";
    default:
        return "a malformed value";
    }
}

foreloop_status foreloop_json_fail_type(foreloop_json *json, const char *wanted) {
    const char *what = found(json); /* moves over white space, so that the offset is the value's */
    return foreloop_json_fail(json, "expected %s, found %s", wanted, what);
}

/* ---- Lexical level ----------------------------------------------------------------------------------------------- */

static inline void skip_space(foreloop_json *json) {
    size_t offset = json->offset;
    while (offset < json->size && json->data[offset] <= ' ' &&
           (json->data[offset] == ' ' || json->data[offset] == '\n' || json->data[offset] == '\r' ||
            json->data[offset] == '\t'))
        offset++;
    json->offset = offset;
}

/* Moves over white space and gives the next byte, -1 at the end of the text. */
static inline int next_byte(foreloop_json *json) {
    skip_space(json);
    return json->offset < json->size ? (unsigned char)json->data[json->offset] : -1;
}

static bool is_digit(const foreloop_json *json, size_t offset) {
    return offset < json->size && json->data[offset] >= '0' && json->data[offset] <= '9';
}

foreloop_json_type foreloop_json_peek(foreloop_json *json) {
    if (json->binary)
        return foreloop_ubjson_peek(json);
    switch (next_byte(json)) {
    case '{':
        return FORELOOP_JSON_OBJECT;
    case '[':
        return FORELOOP_JSON_ARRAY;
    case '"':
        return FORELOOP_JSON_STRING;
    case '-':
    case 'N':
    case 'I':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9':
        return FORELOOP_JSON_NUMBER;
    case 't':
    case 'f':
        return FORELOOP_JSON_BOOL;
    case 'n':
        return FORELOOP_JSON_NULL;
    default:
        return FORELOOP_JSON_NONE;
    }
}

/* Consumes one of the words `true`, `false`, `null`. */
static bool accept_word(foreloop_json *json, const char *word) {
    skip_space(json);
    if (!starts_with(json, json->offset, word))
        return false;
    json->offset += strlen(word);
    return true;
}

/* Four hexadecimal digits at `offset`, or -1. */
static int32_t read_hex4(const foreloop_json *json, size_t offset) {
    int32_t value = 0;
    if (json->size - offset < 4)
        return -1;
    for (size_t i = 0; i < 4; i++) {
        char c = json->data[offset + i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* Reads the escape whose backslash is at the reader's place, moves behind it and gives its UTF-8. */
static foreloop_status read_escape(foreloop_json *json, char bytes[4], size_t *length) {
    static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    size_t offset = json->offset + 1;
    const char *letter = offset < json->size && json->data[offset] ? strchr(letters, json->data[offset]) : NULL;
    int32_t unit, second;
    uint32_t code_point;

    if (letter) {
        bytes[0] = values[letter - letters];
        *length = 1;
        json->offset = offset + 1;
        return FORELOOP_OK;
    }
    unit = offset < json->size && json->data[offset] == 'u' ? read_hex4(json, offset + 1) : -1;
    if (unit < 0)
        return foreloop_json_fail(json, "malformed escape in a string");
    json->offset = offset + 5;
    code_point = (uint32_t)unit;
    if (unit >= 0xD800 && unit < 0xDC00 && starts_with(json, json->offset, "\\u")) {
        second = read_hex4(json, json->offset + 2);
        if (second >= 0xDC00 && second < 0xE000) {
            code_point = 0x10000 + ((uint32_t)unit - 0xD800) * 0x400 + ((uint32_t)second - 0xDC00);
            json->offset += 6;
        }
    }
    if (code_point >= 0xD800 && code_point < 0xE000)
        code_point = 0xFFFD;
    *length = foreloop_utf8_encode(code_point, bytes);
    return FORELOOP_OK;
}

/* Moves over the bytes of a string that stand for themselves: up to the quote, a backslash or the end of the text. */
static foreloop_status scan_plain(foreloop_json *json) {
    for (;;) {
        const char *data = json->data;
        const size_t size = json->size;
        size_t offset = json->offset;
        uint32_t code_point;
        size_t length;

        /* `char` may be signed or not: the cast makes ASCII from the blank on one range. */
        while (offset < size && (unsigned char)(data[offset] - ' ') < 0x80 - ' ' && data[offset] != '"' &&
               data[offset] != '\\')
            offset++;
        json->offset = offset;
        if (offset == size || data[offset] == '"' || data[offset] == '\\')
            return FORELOOP_OK;
        if ((unsigned char)data[offset] < 0x20)
            return foreloop_json_fail(json, "unescaped control character in a string");
        if (!foreloop_utf8_decode(data + offset, size - offset, &code_point, &length))
            return foreloop_json_fail(json, "invalid UTF-8 in a string");
        json->offset += length;
    }
}

/* Reads a string. Its text stays in place if it has no escapes, else it is built in `scratch`; without scratch the
 * string is checked only and `value` is not written. */
static foreloop_status read_string(foreloop_json *json, foreloop_buffer *scratch, foreloop_text *value) {
    size_t quote = json->offset, start = quote + 1;
    bool escaped = false;

    json->offset = start;
    if (scratch)
        scratch->size = 0;
    for (;;) {
        char bytes[4];
        size_t length = 0;

        FORELOOP_TRY(scan_plain(json));
        if (json->offset >= json->size)
            return foreloop_json_fail_at(json, FORELOOP_ERROR_FORMAT, quote, "this string has no end");
        if (scratch && (escaped || json->data[json->offset] == '\\'))
            FORELOOP_TRY(foreloop_buffer_append(scratch, json->data + start, json->offset - start, json->error));
        if (json->data[json->offset] == '"')
            break;
        escaped = true;
        FORELOOP_TRY(read_escape(json, bytes, &length));
        if (scratch)
            FORELOOP_TRY(foreloop_buffer_append(scratch, bytes, length, json->error));
        start = json->offset;
    }
    if (scratch) {
        value->text = escaped ? scratch->data : json->data + start;
        value->length = escaped ? scratch->size : json->offset - start;
    }
    json->offset++;
    return FORELOOP_OK;
}

/* ---- Containers -------------------------------------------------------------------------------------------------- */

static foreloop_status open_container(foreloop_json *json, bool is_object) {
    if (json->binary)
        return foreloop_ubjson_open(json, is_object);
    if (json->depth >= FORELOOP_JSON_MAX_DEPTH)
        return foreloop_json_fail_at(json, FORELOOP_ERROR_LIMIT, json->offset, "values are nested deeper than %d",
                                     FORELOOP_JSON_MAX_DEPTH);
    json->first[json->depth] = 1;
    json->is_object[json->depth] = is_object;
    json->depth++;
    json->offset++;
    return FORELOOP_OK;
}

/* Moves to the innermost container's next item, over the comma; *more is false when the container was closed. */
static foreloop_status next_item(foreloop_json *json, bool is_object, bool *more) {
    const char close = is_object ? '}' : ']';
    int c;

    if (json->depth == 0 || json->is_object[json->depth - 1] != is_object)
        return foreloop_json_fail(json, "no %s is open here", is_object ? "object" : "array");
    if (json->binary)
        return foreloop_ubjson_next(json, more);
    c = next_byte(json);
    *more = c != close;
    if (!*more) {
        json->offset++;
        json->depth--;
        return FORELOOP_OK;
    }
    if (json->first[json->depth - 1]) {
        json->first[json->depth - 1] = 0;
        return FORELOOP_OK;
    }
    if (c != ',')
        return foreloop_json_fail(json, "expected a comma or '%c', found %s", close, found(json));
    json->offset++;
    if (next_byte(json) == close)
        return foreloop_json_fail(json, "a comma stands before the closing '%c'", close);
    return FORELOOP_OK;
}

/* Without scratch the key is checked only; *more is false when the object was closed. */
static foreloop_status next_key(foreloop_json *json, foreloop_buffer *scratch, foreloop_text *key, bool *more) {
    foreloop_text unused;

    FORELOOP_TRY(next_item(json, true, more));
    if (!*more)
        return FORELOOP_OK;
    if (json->binary)
        return foreloop_ubjson_text(json, scratch ? key : &unused);
    if (foreloop_json_peek(json) != FORELOOP_JSON_STRING)
        return foreloop_json_fail_type(json, "a key in double quotes");
    FORELOOP_TRY(read_string(json, scratch, key));
    if (next_byte(json) != ':')
        return foreloop_json_fail(json, "expected a colon behind the key, found %s", found(json));
    json->offset++;
    return FORELOOP_OK;
}

foreloop_status foreloop_json_object(foreloop_json *json) {
    if (foreloop_json_peek(json) != FORELOOP_JSON_OBJECT)
        return foreloop_json_fail_type(json, "an object");
    return open_container(json, true);
}

foreloop_status foreloop_json_key(foreloop_json *json, foreloop_text *key) {
    foreloop_text read = {NULL, 0};
    bool more = false;

    FORELOOP_TRY(next_key(json, &json->key_scratch, &read, &more));
    *key = read;
    return FORELOOP_OK;
}

foreloop_status foreloop_json_array(foreloop_json *json) {
    if (foreloop_json_peek(json) != FORELOOP_JSON_ARRAY)
        return foreloop_json_fail_type(json, "an array");
    return open_container(json, false);
}

foreloop_status foreloop_json_element(foreloop_json *json, bool *more) {
    bool read = false;

    FORELOOP_TRY(next_item(json, false, &read));
    *more = read;
    return FORELOOP_OK;
}

/* ---- Values ------------------------------------------------------------------------------------------------------ */

foreloop_status foreloop_json_string(foreloop_json *json, foreloop_text *value) {
    if (foreloop_json_peek(json) != FORELOOP_JSON_STRING)
        return foreloop_json_fail_type(json, "a string");
    if (json->binary)
        return foreloop_ubjson_string(json, value);
    return read_string(json, &json->scratch, value);
}

static size_t skip_digits(const foreloop_json *json, size_t offset) {
    while (is_digit(json, offset))
        offset++;
    return offset;
}

/* The end of the number at the reader's place, or 0 when it is malformed. */
static size_t number_end(const foreloop_json *json) {
    size_t offset = json->offset + (json->data[json->offset] == '-');

    if (starts_with(json, offset, "Infinity"))
        return offset + 8;
    if (starts_with(json, json->offset, "NaN"))
        return offset + 3;
    if (!is_digit(json, offset))
        return 0;
    offset = json->data[offset] == '0' ? offset + 1 : skip_digits(json, offset);
    if (offset < json->size && json->data[offset] == '.') {
        if (!is_digit(json, offset + 1))
            return 0;
        offset = skip_digits(json, offset + 1);
    }
    if (offset < json->size && (json->data[offset] == 'e' || json->data[offset] == 'E')) {
        offset++;
        if (offset < json->size && (json->data[offset] == '+' || json->data[offset] == '-'))
            offset++;
        if (!is_digit(json, offset))
            return 0;
        offset = skip_digits(json, offset);
    }
    /* "01" is one malformed number rather than two. */
    return is_digit(json, offset) ? 0 : offset;
}

foreloop_status foreloop_json_number(foreloop_json *json, foreloop_text *value) {
    size_t end;

    if (foreloop_json_peek(json) != FORELOOP_JSON_NUMBER)
        return foreloop_json_fail_type(json, "a number");
    if (json->binary)
        return foreloop_ubjson_number(json, value);
    end = number_end(json);
    if (end == 0)
        return foreloop_json_fail(json, "malformed number");
    value->text = json->data + json->offset;
    value->length = end - json->offset;
    json->offset = end;
    return FORELOOP_OK;
}

foreloop_status foreloop_json_float(foreloop_json *json, float *value) {
    foreloop_text text = {NULL, 0};

    if (json->binary)
        return foreloop_ubjson_float(json, value);
    FORELOOP_TRY(foreloop_json_number(json, &text));
    return foreloop_parse_float(text.text, text.length, value) ? FORELOOP_OK
                                                               : foreloop_json_fail(json, "malformed number");
}

foreloop_status foreloop_json_double(foreloop_json *json, double *value) {
    foreloop_text text = {NULL, 0};

    if (json->binary)
        return foreloop_ubjson_double(json, value);
    FORELOOP_TRY(foreloop_json_number(json, &text));
    return foreloop_parse_double(text.text, text.length, value) ? FORELOOP_OK
                                                                : foreloop_json_fail(json, "malformed number");
}

/* Reads an integer of few digits without a fraction or an exponent, as nearly all are. False, with nothing consumed,
 * for any other number. */
static bool accept_short_integer(foreloop_json *json, int64_t *value) {
    enum { FEW = 18 };
    size_t start, offset;
    int64_t number = 0;

    skip_space(json);
    start = json->offset + (json->offset < json->size && json->data[json->offset] == '-');
    for (offset = start; is_digit(json, offset) && offset - start < FEW; offset++)
        number = number * 10 + (json->data[offset] - '0');
    if (offset == start || offset - start == FEW || (json->data[start] == '0' && offset > start + 1))
        return false;
    if (offset < json->size && strchr(".eE", json->data[offset]) && json->data[offset])
        return false;
    *value = start > json->offset ? -number : number;
    json->offset = offset;
    return true;
}

foreloop_status foreloop_json_int64(foreloop_json *json, int64_t *value) {
    foreloop_text text = {NULL, 0};

    if (json->binary)
        return foreloop_ubjson_int64(json, value);
    if (accept_short_integer(json, value))
        return FORELOOP_OK;
    FORELOOP_TRY(foreloop_json_number(json, &text));
    if (!foreloop_parse_int64(text.text, text.length, value))
        return foreloop_json_fail_at(json, FORELOOP_ERROR_VALUE, (size_t)(text.text - json->data),
                                     "expected a whole number of at most 64 bits, found %.*s",
                                     FORELOOP_QUOTED(text.text, text.length));
    return FORELOOP_OK;
}

foreloop_status foreloop_json_bounded(foreloop_json *json, int64_t minimum, int64_t maximum, int64_t *value) {
    size_t offset;
    int64_t number = 0;

    if (!json->binary)
        skip_space(json);
    offset = json->offset;
    FORELOOP_TRY(foreloop_json_int64(json, &number));
    if (number < minimum || number > maximum)
        return foreloop_json_fail_at(json, FORELOOP_ERROR_VALUE, offset,
                                     "expected a whole number from %" PRId64 " to %" PRId64 ", found %" PRId64, minimum,
                                     maximum, number);
    *value = number;
    return FORELOOP_OK;
}

foreloop_status foreloop_json_size(foreloop_json *json, size_t maximum, size_t *value) {
    int64_t number = 0;

    FORELOOP_TRY(foreloop_json_bounded(json, 0, maximum > INT64_MAX ? INT64_MAX : (int64_t)maximum, &number));
    *value = (size_t)number;
    return FORELOOP_OK;
}

foreloop_status foreloop_json_bool(foreloop_json *json, bool *value) {
    if (json->binary)
        return foreloop_ubjson_bool(json, value);
    if (accept_word(json, "true"))
        *value = true;
    else if (accept_word(json, "false"))
        *value = false;
    else
        return foreloop_json_fail_type(json, "true or false");
    return FORELOOP_OK;
}

foreloop_status foreloop_json_null(foreloop_json *json) {
    if (json->binary)
        return foreloop_ubjson_null(json);
    return accept_word(json, "null") ? FORELOOP_OK : foreloop_json_fail_type(json, "null");
}

/* Opens a container or consumes any other value. */
static foreloop_status skip_start(foreloop_json *json) {
    foreloop_text text = {NULL, 0};
    bool flag;

    foreloop_json_type type = foreloop_json_peek(json);
    if (json->binary && type != FORELOOP_JSON_OBJECT && type != FORELOOP_JSON_ARRAY)
        return foreloop_ubjson_skip(json);
    switch (type) {
    case FORELOOP_JSON_OBJECT:
        return open_container(json, true);
    case FORELOOP_JSON_ARRAY:
        return open_container(json, false);
    case FORELOOP_JSON_STRING:
        return read_string(json, NULL, NULL);
    case FORELOOP_JSON_NUMBER:
        return foreloop_json_number(json, &text);
    case FORELOOP_JSON_BOOL:
        return foreloop_json_bool(json, &flag);
    case FORELOOP_JSON_NULL:
        return foreloop_json_null(json);
    default:
        return foreloop_json_fail_type(json, "a value");
    }
}

foreloop_status foreloop_json_skip(foreloop_json *json) {
    const size_t outer_depth = json->depth;

    do {
        bool more = false;
        FORELOOP_TRY(skip_start(json));
        if (json->binary && json->depth > outer_depth)
            foreloop_ubjson_skip_numbers(json);
        while (json->depth > outer_depth && !more) {
            if (json->is_object[json->depth - 1])
                FORELOOP_TRY(next_key(json, NULL, NULL, &more));
            else
                FORELOOP_TRY(next_item(json, false, &more));
        }
    } while (json->depth > outer_depth);
    return FORELOOP_OK;
}

foreloop_status foreloop_json_span(foreloop_json *json, foreloop_text *span) {
    size_t start;

    skip_space(json);
    start = json->offset;
    FORELOOP_TRY(foreloop_json_skip(json));
    span->text = json->data + start;
    span->length = json->offset - start;
    return FORELOOP_OK;
}

foreloop_status foreloop_json_end(foreloop_json *json) {
    if (json->binary)
        return foreloop_ubjson_end(json);
    if (next_byte(json) >= 0)
        return foreloop_json_fail(json, "expected the end of the text, found %s", found(json));
    return FORELOOP_OK;
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

foreloop_status foreloop_buffer_append_json(foreloop_buffer *buffer, const char *before, foreloop_text text,
                                            foreloop_error *error) {
    size_t begin = 0;

    FORELOOP_TRY(foreloop_buffer_append(buffer, before, strlen(before), error));
    FORELOOP_TRY(foreloop_buffer_append(buffer, "\"", 1, error));
    for (size_t i = 0; i < text.length; i++) {
        const unsigned char c = (unsigned char)text.text[i];
        char escaped[8];
        if (c != '"' && c != '\\' && c >= 0x20)
            continue;
        FORELOOP_TRY(foreloop_buffer_append(buffer, text.text + begin, i - begin, error));
        (void)snprintf(escaped, sizeof escaped, c < 0x20 ? "\\u%04x" : "\\%c", c);
        FORELOOP_TRY(foreloop_buffer_append(buffer, escaped, strlen(escaped), error));
        begin = i + 1;
    }
    FORELOOP_TRY(foreloop_buffer_append(buffer, text.text + begin, text.length - begin, error));
    return foreloop_buffer_append(buffer, "\"", 1, error);
}
