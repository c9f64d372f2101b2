/* What a trace must say so that a space can be made of it: sizes, names, and decisions that fit their instructions. */
#include "common/error.h"
#include "schedule/sketch.h"
#include "schedule/walk_instruction.h"
#include <math.h>
#include <string.h>

/* Far beyond what TVM writes; they bound the time to make a space. */
enum { MAX_INSTRUCTIONS = 4096, MAX_NUMBERS = 1024, MAX_PLACES = 64 };

foreloop_status foreloop_sketch_check_size(const foreloop_trace *trace, size_t numbers, size_t places,
                                           foreloop_error *error) {
    if (trace->count > MAX_INSTRUCTIONS)
        return foreloop_fail(error, FORELOOP_ERROR_LIMIT,
                             "the trace has %zu instructions before EnterPostproc; a space is made of %d at the most",
                             trace->count, MAX_INSTRUCTIONS);
    if (numbers > MAX_NUMBERS || places > MAX_PLACES)
        return foreloop_fail(error, FORELOOP_ERROR_LIMIT,
                             "the trace has %zu decided numbers, %zu of them places; a space has %d and %d at the most",
                             numbers, places, MAX_NUMBERS, MAX_PLACES);
    return FORELOOP_OK;
}

/* ---- Names ------------------------------------------------------------------------------------------------------- */

/* Texts that are not names are in quotes of their own; but for None, of a factor that follows from the others. */
static bool is_name(const char *text, size_t length) {
    if (length == 4 && memcmp(text, "None", 4) == 0)
        return false;
    for (size_t i = 0; i < length; i++) {
        const char c = text[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && !(i > 0 && c >= '0' && c <= '9'))
            return false;
    }
    return length > 0;
}

/* A value among those that names nothing defined so far, or NULL. */
static const foreloop_value *find_undefined(const foreloop_value *value, const unsigned char *defined) {
    if (value->type == FORELOOP_VALUE_VARIABLE)
        return defined[value->variable] ? NULL : value;
    if (value->type == FORELOOP_VALUE_TEXT)
        return is_name(value->text, value->count) ? value : NULL;
    for (size_t i = 0; value->type == FORELOOP_VALUE_ARRAY && i < value->count; i++) {
        const foreloop_value *found = find_undefined(&value->items[i], defined);
        if (found)
            return found;
    }
    return NULL;
}

foreloop_status foreloop_sketch_check_names(const foreloop_trace *trace, const foreloop_names *names,
                                            foreloop_arena *arena, foreloop_error *error) {
    unsigned char *defined = foreloop_arena_allocate(arena, trace->variable_count + 1, 1);
    if (!defined)
        return foreloop_fail_memory(error, trace->variable_count + 1, 1, "the names of a trace");
    memset(defined, 0, trace->variable_count + 1);
    for (size_t i = 0; i < trace->count; i++) {
        const foreloop_instruction *instruction = &trace->instructions[i];
        const foreloop_value *found = find_undefined(&instruction->inputs, defined);
        if (found) {
            bool later = found->type == FORELOOP_VALUE_VARIABLE;
            const char *text = later ? names->names[found->variable].text : found->text;
            size_t length = later ? names->names[found->variable].length : found->count;
            if (!is_name(text, length)) { /* not for a message, whatever it is */
                text = "a name";
                length = strlen(text);
            }
            return foreloop_fail(error, FORELOOP_ERROR_FORMAT,
                                 "instruction %zu uses %.*s, which no instruction before it defines", i,
                                 (int)(length < 40 ? length : 40), text);
        }
        for (size_t k = 0; k < instruction->outputs.count; k++) {
            size_t variable = instruction->outputs.items[k].variable;
            if (defined[variable])
                return foreloop_fail(error, FORELOOP_ERROR_FORMAT,
                                     "output %zu of instruction %zu has a name that is defined already", k, i);
            defined[variable] = 1;
        }
    }
    return FORELOOP_OK;
}

/* ---- Decisions --------------------------------------------------------------------------------------------------- */

/* What is amiss with the attributes of a sampling instruction, or NULL. */
static const char *tile_fault(const foreloop_instruction *instruction) {
    const foreloop_value *count = foreloop_value_item(&instruction->attrs, 0);
    const foreloop_value *bound = foreloop_value_item(&instruction->attrs, 1);
    int64_t number;
    if (!foreloop_value_integer(count, (int64_t)instruction->outputs.count, (int64_t)instruction->outputs.count,
                                &number) ||
        number == 0)
        return "its first attribute is not the number of its factors";
    if (!foreloop_value_integer(bound, -1, INT64_MAX / 2, &number))
        return "its second attribute is not a whole number";
    return NULL;
}

static const char *category_fault(const foreloop_instruction *instruction) {
    const foreloop_value *candidates = foreloop_value_item(&instruction->attrs, 0);
    const foreloop_value *weights = foreloop_value_item(&instruction->attrs, 1);
    double sum = 0;
    if (instruction->outputs.count != 1)
        return "it has not one output";
    if (candidates->type != FORELOOP_VALUE_ARRAY || weights->type != FORELOOP_VALUE_ARRAY || candidates->count == 0 ||
        weights->count != candidates->count)
        return "its attributes are not candidates and as many probabilities";
    for (size_t i = 0; i < weights->count; i++) {
        if (weights->items[i].type != FORELOOP_VALUE_NUMBER || !(weights->items[i].number >= 0))
            return "a probability is not a number from 0 on";
        sum += weights->items[i].number;
    }
    return sum > 0 && isfinite(sum) ? NULL : "its probabilities have no finite sum above 0";
}

foreloop_status foreloop_sketch_check_decisions(const foreloop_trace *trace, foreloop_error *error) {
    for (size_t i = 0; i < trace->count; i++) {
        const foreloop_instruction *instruction = &trace->instructions[i];
        foreloop_walk_handler *handler = instruction->kind ? instruction->kind->handle : NULL;
        const char *fault = NULL;
        if (handler == foreloop_on_sample_tile)
            fault = tile_fault(instruction);
        else if (handler == foreloop_on_sample_categorical)
            fault = category_fault(instruction);
        if (!fault && trace->decided_twice == i + 1)
            fault = "it has two decisions";
        if (fault)
            return foreloop_fail(error, FORELOOP_ERROR_FORMAT, "instruction %zu (%s): %s", i,
                                 instruction->kind ? instruction->kind->name : "of unknown kind", fault);
    }
    return FORELOOP_OK;
}
