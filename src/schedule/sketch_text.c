/* The trace of a point as JSON: the text of the first trace with other numbers in it. */
#include "common/error.h"
#include "common/number.h"
#include "schedule/sketch.h"
#include <string.h>

typedef struct piece_list {
    foreloop_sketch *sketch;
    foreloop_error *error;
    foreloop_sketch_piece *pieces;
    size_t count, capacity;
} piece_list;

static foreloop_status add_piece(piece_list *list, const char *text, size_t length, size_t number) {
    if (list->count == list->capacity)
        return foreloop_fail(list->error, FORELOOP_ERROR_FORMAT, "the trace changes while it is read");
    list->pieces[list->count++] = (foreloop_sketch_piece){text, length, number};
    return FORELOOP_OK;
}

/* The number of the annotation at this instruction, or NONE. */
static size_t annotation_at(const foreloop_sketch *sketch, size_t instruction) {
    for (size_t d = 0; d < sketch->decision_count; d++) {
        const foreloop_sketch_decision *decision = &sketch->decisions[d];
        if (decision->kind == FORELOOP_DECISION_ANNOTATION &&
            sketch->numbers[decision->first_number].instruction == instruction)
            return decision->first_number;
    }
    return FORELOOP_SKETCH_NONE;
}

/* The span of the element at `index` of an array. The text has been read before, so it is well-formed. */
static foreloop_status element_span(foreloop_json *json, size_t index, foreloop_text *span) {
    bool more;
    FORELOOP_TRY(foreloop_json_array(json));
    for (size_t i = 0;; i++) {
        FORELOOP_TRY(foreloop_json_element(json, &more));
        if (!more)
            return foreloop_json_fail(json, "an element is missing");
        FORELOOP_TRY(foreloop_json_span(json, span));
        if (i == index)
            return FORELOOP_OK;
    }
}

/* The same in a text of its own. */
static foreloop_status find_element(foreloop_sketch *sketch, foreloop_text text, size_t index, foreloop_text *span,
                                    foreloop_error *error) {
    foreloop_json json;
    foreloop_json_open(&json, sketch->allocator, text.text, text.length, "trace", error);
    foreloop_status status = element_span(&json, index, span);
    foreloop_json_close(&json);
    return status;
}

static foreloop_status add_instructions(piece_list *list, foreloop_json *json) {
    foreloop_sketch *sketch = list->sketch;
    foreloop_text span = {NULL, 0}, inputs, value;
    const char *from = NULL;
    bool more;
    FORELOOP_TRY(foreloop_json_array(json));
    for (size_t i = 0; i < sketch->trace.count; i++) {
        FORELOOP_TRY(foreloop_json_element(json, &more));
        FORELOOP_TRY(foreloop_json_span(json, &span));
        if (!from)
            from = span.text;
        size_t number = annotation_at(sketch, i);
        if (number == FORELOOP_SKETCH_NONE)
            continue;
        FORELOOP_TRY(find_element(sketch, span, 1, &inputs, list->error));
        FORELOOP_TRY(find_element(sketch, inputs, 1, &value, list->error));
        FORELOOP_TRY(add_piece(list, from, (size_t)(value.text - from), number));
        from = value.text + value.length;
    }
    if (!from)
        return FORELOOP_OK;
    return add_piece(list, from, (size_t)(span.text + span.length - from), FORELOOP_SKETCH_NONE);
}

foreloop_status foreloop_sketch_find_pieces(foreloop_sketch *sketch, const char *text, size_t length,
                                            foreloop_error *error) {
    /* A piece ends at each annotation's number; one more is behind the last. */
    size_t capacity = sketch->decision_count + 1;
    piece_list list = {.sketch = sketch, .error = error, .capacity = capacity};
    list.pieces = foreloop_arena_allocate(&sketch->arena, capacity, sizeof *list.pieces);
    if (!list.pieces)
        return foreloop_fail_memory(error, capacity, sizeof *list.pieces, "the text of a sketch");
    foreloop_text trace = {text, length}, record;
    if (!foreloop_sketch_is_trace(text, length)) {
        FORELOOP_TRY(find_element(sketch, trace, 1, &record, error));
        FORELOOP_TRY(find_element(sketch, record, 0, &trace, error));
    }
    foreloop_text instructions;
    FORELOOP_TRY(find_element(sketch, trace, 0, &instructions, error));
    foreloop_json json;
    foreloop_json_open(&json, sketch->allocator, instructions.text, instructions.length, "trace", error);
    foreloop_status status = add_instructions(&list, &json);
    foreloop_json_close(&json);
    sketch->pieces = list.pieces;
    sketch->piece_count = list.count;
    return status;
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

/* What does not fit is only counted. */
typedef struct text_writer {
    char *buffer;
    size_t capacity, length;
} text_writer;

static void put(text_writer *writer, const char *text, size_t length) {
    if (writer->length < writer->capacity) {
        size_t left = writer->capacity - writer->length;
        memcpy(writer->buffer + writer->length, text, length < left ? length : left);
    }
    writer->length += length;
}

static void put_text(text_writer *writer, const char *text) {
    put(writer, text, strlen(text));
}

static void put_number(text_writer *writer, double number) {
    char digits[FORELOOP_NUMBER_TEXT_SIZE];
    put(writer, digits, foreloop_format_double(number, digits));
}

static double decided_number(const foreloop_sketch *sketch, const uint32_t *point, size_t number) {
    size_t d = 0;
    while (number >= sketch->decisions[d].first_number + sketch->decisions[d].width)
        d++;
    return foreloop_sketch_value(&sketch->decisions[d], point[d])[number - sketch->decisions[d].first_number];
}

/* [instruction, decision], where the numbers from `first` on are of the instruction. */
static void put_decision(text_writer *writer, const foreloop_sketch *sketch, const uint32_t *point, size_t first) {
    const foreloop_instruction *instruction = &sketch->trace.instructions[sketch->numbers[first].instruction];
    const foreloop_value *decision = instruction->decision;
    put_text(writer, "[");
    put_number(writer, sketch->numbers[first].instruction);
    put_text(writer, ",");
    if (decision->type == FORELOOP_VALUE_ARRAY) {
        for (size_t i = 0; i < decision->count; i++) {
            put_text(writer, i == 0 ? "[" : ",");
            put_number(writer, decided_number(sketch, point, first + i));
        }
        put_text(writer, "]");
    } else {
        put_number(writer, decided_number(sketch, point, first));
    }
    put_text(writer, "]");
}

size_t foreloop_sketch_write(const foreloop_sketch *sketch, const uint32_t *point, char *buffer, size_t capacity) {
    text_writer writer = {buffer, capacity, 0};
    put_text(&writer, "[[");
    for (size_t i = 0; i < sketch->piece_count; i++) {
        put(&writer, sketch->pieces[i].text, sketch->pieces[i].length);
        if (sketch->pieces[i].number != FORELOOP_SKETCH_NONE)
            put_number(&writer, decided_number(sketch, point, sketch->pieces[i].number));
    }
    put_text(&writer, "],[");
    /* In the order of their instructions, as TVM writes them. */
    bool first = true;
    for (size_t i = 0; i < sketch->trace.count; i++)
        for (size_t n = 0; n < sketch->number_count && sketch->trace.instructions[i].decision; n++)
            if (sketch->numbers[n].instruction == i && sketch->numbers[n].part == 0) {
                put_text(&writer, first ? "" : ",");
                put_decision(&writer, sketch, point, n);
                first = false;
            }
    put_text(&writer, "]]");
    return writer.length;
}
