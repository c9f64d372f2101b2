/* Decoders: reading them, and each step from one row of texts to the next. */
#include "tokenizer/decode.h"
#include "common/utf8.h"
#include "tokenizer/pretokenize.h"
#include <string.h>

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

typedef struct field_set {
    const char *type;
    foreloop_decoder *decoder;
    foreloop_arena *arena;
    foreloop_text prefix, suffix;
    foreloop_flag cleanup;
    bool has_decoders;
} field_set;

static foreloop_status read_field(foreloop_json *json, foreloop_text key, void *context) {
    field_set *fields = context;
    bool more;

    if (foreloop_text_is(key, "prefix"))
        return foreloop_component_text(json, fields->arena, &fields->prefix);
    if (foreloop_text_is(key, "suffix"))
        return foreloop_component_text(json, fields->arena, &fields->suffix);
    if (foreloop_text_is(key, "cleanup"))
        return foreloop_component_flag(json, &fields->cleanup);
    if (!foreloop_text_is(key, "decoders") || strcmp(fields->type, "Sequence") != 0)
        return foreloop_json_skip(json);
    fields->has_decoders = true;
    FORELOOP_TRY(foreloop_json_array(json));
    for (;;) {
        FORELOOP_TRY(foreloop_json_element(json, &more));
        if (!more)
            return FORELOOP_OK;
        FORELOOP_TRY(foreloop_decoder_read(fields->decoder, json, fields->arena));
    }
}

static foreloop_status add_step(const field_set *fields, foreloop_decode_step step, foreloop_error *error) {
    foreloop_decoder *decoder = fields->decoder;
    FORELOOP_TRY(foreloop_reserve_one(fields->arena->allocator, &decoder->steps, &decoder->capacity, decoder->count,
                                      sizeof step, error));
    decoder->steps[decoder->count++] = step;
    return FORELOOP_OK;
}

static foreloop_status add_typed(foreloop_json *json, void *context) {
    const field_set *fields = context;
    const char *type = fields->type;
    foreloop_decode_step step = {.affix = fields->prefix, .cleanup = fields->cleanup == 1};

    if (strcmp(type, "Sequence") == 0)
        return fields->has_decoders ? FORELOOP_OK : foreloop_json_fail(json, "the Sequence has no field \"decoders\"");
    if (strcmp(type, "ByteLevel") == 0) {
        step.kind = FORELOOP_DECODE_BYTES;
    } else if (strcmp(type, "WordPiece") == 0) {
        step.kind = FORELOOP_DECODE_WORDPIECE;
        if (!fields->prefix.text || fields->cleanup == FORELOOP_FLAG_ABSENT)
            return foreloop_json_fail(json, "the decoder WordPiece needs the fields \"prefix\" and \"cleanup\"");
    } else if (strcmp(type, "BPEDecoder") == 0) {
        step.kind = FORELOOP_DECODE_SUFFIX;
        step.affix = fields->suffix;
        if (!fields->suffix.text)
            return foreloop_json_fail(json, "the decoder BPEDecoder needs the field \"suffix\"");
    } else if (strcmp(type, "ByteFallback") == 0) {
        step.kind = FORELOOP_DECODE_BYTE_FALLBACK;
    } else if (strcmp(type, "Fuse") == 0) {
        step.kind = FORELOOP_DECODE_FUSE;
    } else {
        memcpy(fields->decoder->unsupported, type, strlen(type) + 1);
        return FORELOOP_OK;
    }
    return add_step(fields, step, json->error);
}

foreloop_status foreloop_decoder_read(foreloop_decoder *decoder, foreloop_json *json, foreloop_arena *arena) {
    char type[FORELOOP_COMPONENT_TYPE_SIZE];
    field_set fields = {.type = type, .decoder = decoder, .arena = arena, .cleanup = FORELOOP_FLAG_ABSENT};

    decoder->present = decoder->present || foreloop_json_peek(json) != FORELOOP_JSON_NULL;
    return foreloop_component_read(json, arena->allocator, type, read_field, add_typed, &fields);
}

/* ---- Rows of texts ----------------------------------------------------------------------------------------------- */

foreloop_status foreloop_pieces_text_add(foreloop_pieces_text *pieces, const char *text, size_t length,
                                         foreloop_error *error) {
    FORELOOP_TRY(foreloop_reserve_one(pieces->bytes.allocator, &pieces->ends, &pieces->capacity, pieces->count,
                                      sizeof *pieces->ends, error));
    FORELOOP_TRY(foreloop_buffer_append(&pieces->bytes, text, length, error));
    pieces->ends[pieces->count++] = pieces->bytes.size;
    return FORELOOP_OK;
}

void foreloop_pieces_text_close(foreloop_pieces_text *pieces) {
    foreloop_release(pieces->bytes.allocator, pieces->ends);
    foreloop_buffer_close(&pieces->bytes);
}

static foreloop_text piece_at(const foreloop_pieces_text *pieces, size_t index) {
    const size_t begin = index > 0 ? pieces->ends[index - 1] : 0;
    return (foreloop_text){pieces->bytes.data + begin, pieces->ends[index] - begin};
}

/* Appends text with every `pattern` replaced. */
static foreloop_status append_replaced(foreloop_buffer *out, foreloop_text text, foreloop_text pattern,
                                       const char *content, foreloop_error *error) {
    size_t begin = 0;
    for (size_t i = 0; pattern.length > 0 && i + pattern.length <= text.length;) {
        if (memcmp(text.text + i, pattern.text, pattern.length) != 0) {
            i++;
            continue;
        }
        FORELOOP_TRY(foreloop_buffer_append(out, text.text + begin, i - begin, error));
        FORELOOP_TRY(foreloop_buffer_append(out, content, strlen(content), error));
        i += pattern.length;
        begin = i;
    }
    return foreloop_buffer_append(out, text.text + begin, text.length - begin, error);
}

/* Appends bytes, each maximal invalid prefix of a sequence as one U+FFFD. */
static foreloop_status append_repaired(foreloop_buffer *out, foreloop_text bytes, foreloop_error *error) {
    for (size_t position = 0; position < bytes.length;) {
        uint32_t code_point;
        size_t length, valid = foreloop_utf8_valid_prefix(bytes.text + position, bytes.length - position);
        FORELOOP_TRY(foreloop_buffer_append(out, bytes.text + position, valid, error));
        position += valid;
        if (position == bytes.length)
            break;
        (void)foreloop_utf8_decode(bytes.text + position, bytes.length - position, &code_point, &length);
        FORELOOP_TRY(foreloop_buffer_append(out, "\xEF\xBF\xBD", 3, error));
        position += length;
    }
    return FORELOOP_OK;
}

/* ---- Steps ------------------------------------------------------------------------------------------------------- */

/* The bytes of all tokens; one with a character that stands for no byte gives its own. */
static foreloop_status decode_bytes(const foreloop_pieces_text *tokens, foreloop_buffer *bytes, foreloop_error *error) {
    int values[0x180];

    for (size_t i = 0; i < 0x180; i++)
        values[i] = -1;
    for (int i = 0; i < 256; i++)
        values[foreloop_byte_character((unsigned char)i)] = i;
    for (size_t i = 0; i < tokens->count; i++) {
        const foreloop_text token = piece_at(tokens, i);
        const size_t before = bytes->size;
        for (size_t position = 0, length; position < token.length; position += length) {
            uint32_t code_point = foreloop_utf8_decode_valid(token.text + position, &length);
            if (code_point >= 0x180 || values[code_point] < 0) {
                bytes->size = before;
                FORELOOP_TRY(foreloop_buffer_append(bytes, token.text, token.length, error));
                break;
            }
            const char byte = (char)values[code_point];
            FORELOOP_TRY(foreloop_buffer_append(bytes, &byte, 1, error));
        }
    }
    return FORELOOP_OK;
}

static foreloop_status run_bytes(const foreloop_pieces_text *tokens, foreloop_pieces_text *out, foreloop_error *error) {
    foreloop_buffer bytes = {.allocator = tokens->bytes.allocator};
    foreloop_status status = decode_bytes(tokens, &bytes, error);
    if (status == FORELOOP_OK)
        status = append_repaired(&out->bytes, (foreloop_text){bytes.data, bytes.size}, error);
    foreloop_buffer_close(&bytes);
    return status == FORELOOP_OK ? foreloop_pieces_text_add(out, "", 0, error) : status;
}

/* What the reference replaces in each token, in this order. */
static foreloop_status cleaned(foreloop_text text, foreloop_buffer *buffers, foreloop_text *result,
                               foreloop_error *error) {
    static const char *const pairs[][2] = {{" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
                                           {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
                                           {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        foreloop_buffer *buffer = &buffers[i % 2];
        const foreloop_text pattern = {pairs[i][0], strlen(pairs[i][0])};
        buffer->size = 0;
        FORELOOP_TRY(append_replaced(buffer, text, pattern, pairs[i][1], error));
        text = (foreloop_text){buffer->data, buffer->size};
    }
    *result = text;
    return FORELOOP_OK;
}

static foreloop_status add_wordpiece(const foreloop_decode_step *step, foreloop_text token, bool is_first,
                                     foreloop_buffer buffers[3], foreloop_pieces_text *out, foreloop_error *error) {
    const foreloop_text prefix = step->affix;

    if (!is_first && token.length >= prefix.length &&
        (prefix.length == 0 || memcmp(token.text, prefix.text, prefix.length) == 0)) {
        token.text += prefix.length;
        token.length -= prefix.length;
    } else if (!is_first) {
        buffers[2].size = 0;
        FORELOOP_TRY(foreloop_buffer_append(&buffers[2], " ", 1, error));
        FORELOOP_TRY(foreloop_buffer_append(&buffers[2], token.text, token.length, error));
        token = (foreloop_text){buffers[2].data, buffers[2].size};
    }
    if (step->cleanup)
        FORELOOP_TRY(cleaned(token, buffers, &token, error));
    return foreloop_pieces_text_add(out, token.text, token.length, error);
}

static foreloop_status run_wordpiece(const foreloop_decode_step *step, const foreloop_pieces_text *tokens,
                                     foreloop_pieces_text *out, foreloop_error *error) {
    foreloop_buffer buffers[3];
    foreloop_status status = FORELOOP_OK;
    for (int i = 0; i < 3; i++)
        buffers[i] = (foreloop_buffer){.allocator = tokens->bytes.allocator};
    for (size_t i = 0; i < tokens->count && status == FORELOOP_OK; i++)
        status = add_wordpiece(step, piece_at(tokens, i), i == 0, buffers, out, error);
    for (int i = 0; i < 3; i++)
        foreloop_buffer_close(&buffers[i]);
    return status;
}

static foreloop_status run_suffix(const foreloop_decode_step *step, const foreloop_pieces_text *tokens,
                                  foreloop_pieces_text *out, foreloop_error *error) {
    for (size_t i = 0; i < tokens->count; i++) {
        FORELOOP_TRY(
            append_replaced(&out->bytes, piece_at(tokens, i), step->affix, i + 1 < tokens->count ? " " : "", error));
        FORELOOP_TRY(foreloop_pieces_text_add(out, "", 0, error));
    }
    return FORELOOP_OK;
}

/* The byte that a token like <0xE4> names, or -1. */
static int named_byte(foreloop_text token) {
    int value = 0;
    if (token.length != 6 || memcmp(token.text, "<0x", 3) != 0 || token.text[5] != '>')
        return -1;
    for (size_t i = 3; i < 5; i++) {
        const char c = token.text[i];
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                                 : -1;
        /* A sign before one digit passes in the reference. */
        if (digit < 0 && !(i == 3 && c == '+'))
            return -1;
        value = 16 * value + (digit < 0 ? 0 : digit);
    }
    return value;
}

/* Runs of byte tokens become their text where that is valid, else a U+FFFD for each. */
static foreloop_status run_byte_fallback(const foreloop_pieces_text *tokens, foreloop_pieces_text *out,
                                         foreloop_error *error) {
    for (size_t i = 0, end; i < tokens->count; i = end) {
        const size_t begin = out->bytes.size;
        for (end = i; end < tokens->count; end++) {
            const int value = named_byte(piece_at(tokens, end));
            const char byte = (char)value;
            if (value < 0)
                break;
            FORELOOP_TRY(foreloop_buffer_append(&out->bytes, &byte, 1, error));
        }
        if (end == i) {
            const foreloop_text token = piece_at(tokens, end++);
            FORELOOP_TRY(foreloop_pieces_text_add(out, token.text, token.length, error));
            continue;
        }
        if (foreloop_utf8_valid_prefix(out->bytes.data + begin, end - i) < end - i) {
            out->bytes.size = begin;
            for (size_t j = i; j < end; j++)
                FORELOOP_TRY(foreloop_buffer_append(&out->bytes, "\xEF\xBF\xBD", 3, error));
        }
        FORELOOP_TRY(foreloop_pieces_text_add(out, "", 0, error));
    }
    return FORELOOP_OK;
}

static foreloop_status run_step(const foreloop_decode_step *step, const foreloop_pieces_text *tokens,
                                foreloop_pieces_text *out, foreloop_error *error) {
    switch (step->kind) {
    case FORELOOP_DECODE_BYTES:
        return run_bytes(tokens, out, error);
    case FORELOOP_DECODE_WORDPIECE:
        return run_wordpiece(step, tokens, out, error);
    case FORELOOP_DECODE_SUFFIX:
        return run_suffix(step, tokens, out, error);
    case FORELOOP_DECODE_BYTE_FALLBACK:
        return run_byte_fallback(tokens, out, error);
    case FORELOOP_DECODE_FUSE:
        break;
    }
    return foreloop_pieces_text_add(out, tokens->bytes.data, tokens->bytes.size, error);
}

static foreloop_status join(const foreloop_pieces_text *tokens, foreloop_pieces_text *out, foreloop_error *error) {
    for (size_t i = 0; i < tokens->count; i++) {
        const foreloop_text token = piece_at(tokens, i);
        if (i > 0)
            FORELOOP_TRY(foreloop_buffer_append(&out->bytes, " ", 1, error));
        FORELOOP_TRY(foreloop_pieces_text_add(out, token.text, token.length, error));
    }
    return FORELOOP_OK;
}

foreloop_status foreloop_decoder_run(const foreloop_decoder *decoder, foreloop_pieces_text *tokens,
                                     foreloop_error *error) {
    const size_t passes = decoder->present ? decoder->count : 1;

    if (decoder->unsupported[0] != '\0')
        return foreloop_fail(error, FORELOOP_ERROR_UNSUPPORTED, "the decoder \"%s\" is not supported",
                             decoder->unsupported);
    for (size_t i = 0; i < passes; i++) {
        foreloop_pieces_text out = {.bytes = {.allocator = tokens->bytes.allocator}};
        foreloop_status status =
            decoder->present ? run_step(&decoder->steps[i], tokens, &out, error) : join(tokens, &out, error);
        foreloop_pieces_text_close(tokens);
        *tokens = out;
        FORELOOP_TRY(status);
    }
    return FORELOOP_OK;
}
