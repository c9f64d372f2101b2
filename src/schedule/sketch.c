/* Reading traces into a sketch: its decisions and their values. */
#include "schedule/sketch.h"
#include "common/error.h"
#include "schedule/lines.h"
#include "schedule/walk_instruction.h"
#include <math.h>
#include <string.h>

static const double LARGEST_FACTOR = 9007199254740992.0;

/* ---- Numbers of a trace ------------------------------------------------------------------------------------------ */

static bool is_kind(const foreloop_instruction *instruction, foreloop_walk_handler *handler) {
    return instruction->kind && instruction->kind->handle == handler;
}

/* Annotations whose number steers what the trace's decisions come to. */
static bool is_annotation(const foreloop_instruction *instruction) {
    static const char *const keys[] = {"meta_schedule.parallel",
                                       "meta_schedule.vectorize",
                                       "meta_schedule.unroll_explicit",
                                       "meta_schedule.unroll_implicit",
                                       "meta_schedule.thread_extent_low_inclusive",
                                       "meta_schedule.thread_extent_high_inclusive"};
    const foreloop_value *key = foreloop_value_item(&instruction->attrs, 0);
    if (!is_kind(instruction, foreloop_on_annotate) ||
        foreloop_value_item(&instruction->inputs, 1)->type != FORELOOP_VALUE_NUMBER)
        return false;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (foreloop_value_is(key, keys[i]))
            return true;
    return false;
}

/* How many numbers the instruction has that can be decided, and of what kind they are. */
static size_t count_numbers(const foreloop_instruction *instruction, foreloop_decision_kind *kind) {
    if (is_kind(instruction, foreloop_on_sample_tile)) {
        *kind = FORELOOP_DECISION_TILE;
        return instruction->outputs.count;
    }
    *kind = is_annotation(instruction)                             ? FORELOOP_DECISION_ANNOTATION
            : is_kind(instruction, foreloop_on_sample_categorical) ? FORELOOP_DECISION_CATEGORY
                                                                   : FORELOOP_DECISION_LOCATIONS;
    return is_annotation(instruction) || is_kind(instruction, foreloop_on_sample_categorical) ||
           is_kind(instruction, foreloop_on_sample_location);
}

/* The value that holds a number of this instruction; a null value when it is not there. */
static const foreloop_value *number_value(const foreloop_instruction *instruction, size_t part) {
    static const foreloop_value nothing = {.type = FORELOOP_VALUE_NULL};
    const foreloop_value *decision = instruction->decision ? instruction->decision : &nothing;
    if (is_kind(instruction, foreloop_on_annotate))
        return foreloop_value_item(&instruction->inputs, 1);
    if (is_kind(instruction, foreloop_on_sample_tile))
        return decision->count == instruction->outputs.count ? foreloop_value_item(decision, part) : &nothing;
    return decision;
}

static bool is_perfect(const foreloop_instruction *instruction) {
    return strcmp(instruction->kind->name, "SamplePerfectTile") == 0;
}

static bool is_whole(double number, double least, double most) {
    return number >= least && number <= most && number == floor(number);
}

/* The bound of a perfect tile's last factor; 0: any. */
static double innermost_bound(const foreloop_instruction *instruction) {
    const foreloop_value *bound = foreloop_value_item(&instruction->attrs, 1);
    return is_perfect(instruction) && bound->type == FORELOOP_VALUE_NUMBER && bound->number > 0 ? bound->number : 0;
}

static bool number_fits(const foreloop_instruction *instruction, size_t part, const foreloop_value *value) {
    if (value->type != FORELOOP_VALUE_NUMBER)
        return false;
    if (is_kind(instruction, foreloop_on_sample_tile)) {
        double bound = part + 1 == instruction->outputs.count ? innermost_bound(instruction) : 0;
        return is_whole(value->number, 1, bound > 0 ? bound : LARGEST_FACTOR);
    }
    if (is_kind(instruction, foreloop_on_sample_location))
        return is_whole(value->number, -2, FORELOOP_WALK_MAX_NEST);
    if (is_kind(instruction, foreloop_on_sample_categorical))
        return is_whole(value->number, 0, (double)foreloop_value_item(&instruction->attrs, 0)->count - 1);
    return isfinite(value->number);
}

/* The numbers that a trace of this sketch has decided. */
static foreloop_status read_numbers(const foreloop_sketch *sketch, const foreloop_trace *trace, double *numbers,
                                    foreloop_error *error) {
    for (size_t i = 0; i < sketch->number_count; i++) {
        size_t at = sketch->numbers[i].instruction;
        const foreloop_instruction *instruction = &trace->instructions[at];
        const foreloop_value *value = number_value(instruction, sketch->numbers[i].part);
        if (!number_fits(instruction, sketch->numbers[i].part, value))
            return foreloop_fail(error, FORELOOP_ERROR_FORMAT,
                                 "instruction %zu (%s) has no decision that it can have; a space needs traces with all "
                                 "decisions, as tuning records have them",
                                 at, instruction->kind->name);
        numbers[i] = value->number + 0.0; /* -0 becomes 0 */
    }
    return FORELOOP_OK;
}

/* ---- Values of decisions ----------------------------------------------------------------------------------------- */

static int compare_values(const double *a, const double *b, size_t width) {
    for (size_t i = 0; i < width; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

size_t foreloop_sketch_find(const foreloop_sketch_decision *decision, const double *numbers) {
    size_t low = 0, high = decision->ruled;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare_values(decision->values + middle * decision->width, numbers, decision->width);
        if (order == 0)
            return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t i = decision->ruled; i < decision->count; i++)
        if (compare_values(decision->values + i * decision->width, numbers, decision->width) == 0)
            return i;
    return decision->count;
}

foreloop_status foreloop_sketch_append(foreloop_sketch *sketch, foreloop_sketch_decision *decision,
                                       const double *numbers, foreloop_error *error) {
    size_t used = decision->count * decision->width;
    FORELOOP_TRY(foreloop_reserve(sketch->allocator, &decision->values, &decision->capacity, used,
                                  used + decision->width, sizeof *decision->values, error));
    memcpy(decision->values + used, numbers, decision->width * sizeof *numbers);
    decision->count++;
    return FORELOOP_OK;
}

static foreloop_status fill_categories(foreloop_sketch *sketch, foreloop_sketch_decision *decision,
                                       const foreloop_instruction *instruction, foreloop_error *error) {
    const foreloop_value *weights = foreloop_value_item(&instruction->attrs, 1);
    size_t count = foreloop_value_item(&instruction->attrs, 0)->count;
    double *shares = foreloop_arena_allocate(&sketch->arena, count, sizeof *shares), sum = 0;
    if (!shares)
        return foreloop_fail_memory(error, count, sizeof *shares, "the values of a decision");
    for (size_t i = 0; i < count; i++) {
        double index = (double)i;
        shares[i] = sum += weights->items[i].number;
        FORELOOP_TRY(foreloop_sketch_append(sketch, decision, &index, error));
    }
    decision->ruled = count;
    decision->shares = shares;
    return FORELOOP_OK;
}

static double product_of(const double *factors, size_t count) {
    double product = 1;
    for (size_t i = 0; i < count; i++)
        product *= factors[i];
    return product;
}

static foreloop_status fill_decision(foreloop_sketch *sketch, foreloop_sketch_decision *decision, const double *numbers,
                                     foreloop_error *error) {
    const foreloop_instruction *instruction =
        &sketch->trace.instructions[sketch->numbers[decision->first_number].instruction];
    if (decision->kind == FORELOOP_DECISION_CATEGORY)
        return fill_categories(sketch, decision, instruction, error);
    if (decision->kind == FORELOOP_DECISION_TILE) {
        decision->product = product_of(numbers + decision->first_number, decision->width);
        decision->perfect = is_perfect(instruction);
        decision->innermost = innermost_bound(instruction);
        if (decision->perfect)
            return foreloop_sketch_fill_tiles(sketch, decision, error);
    }
    return FORELOOP_OK;
}

/* ---- The first trace --------------------------------------------------------------------------------------------- */

bool foreloop_sketch_is_trace(const char *text, size_t length) {
    size_t at = 0, brackets = 0;
    while (at < length &&
           (text[at] == '[' || text[at] == ' ' || text[at] == '\t' || text[at] == '\n' || text[at] == '\r'))
        brackets += text[at++] == '[';
    return brackets > 1; /* a record begins with a number */
}

/* The trace inside of a record, or the trace that the text is, cut before EnterPostproc. */
static foreloop_status read_trace(foreloop_sketch *sketch, const char *text, size_t length, foreloop_arena *arena,
                                  foreloop_trace *trace, foreloop_error *error) {
    foreloop_trace_record record;
    if (length > FORELOOP_LINE_MAX)
        return foreloop_fail(error, FORELOOP_ERROR_LIMIT, "the trace is longer than %d bytes", FORELOOP_LINE_MAX);
    const bool alone = foreloop_sketch_is_trace(text, length);
    foreloop_status status =
        alone ? foreloop_metaschedule_read_trace(&sketch->reader, text, length, arena, &record.trace, error)
              : foreloop_metaschedule_read(&sketch->reader, text, length, arena, &record, error);
    if (status != FORELOOP_OK && status != FORELOOP_ERROR_MEMORY) {
        /* whatever the JSON reader finds amiss, the text is malformed */
        if (error)
            error->code = FORELOOP_ERROR_FORMAT;
        return FORELOOP_ERROR_FORMAT;
    }
    FORELOOP_TRY(status);
    *trace = record.trace;
    trace->count = trace->length = foreloop_walk_search_length(trace);
    return foreloop_sketch_check_names(trace, &sketch->reader.variables, arena, error);
}

/* Copies of the instructions, with decisions of their own to write into. */
static foreloop_status own_instructions(foreloop_sketch *sketch, foreloop_error *error) {
    size_t count = sketch->trace.count;
    foreloop_instruction *own = foreloop_arena_allocate(&sketch->arena, count, sizeof *own);
    foreloop_value *decisions = foreloop_arena_allocate(&sketch->arena, count, sizeof *decisions);
    if (!own || !decisions)
        return foreloop_fail_memory(error, count, sizeof *own + sizeof *decisions, "the instructions of a sketch");
    for (size_t i = 0; i < count; i++) {
        own[i] = sketch->trace.instructions[i];
        if (!own[i].decision)
            continue;
        decisions[i] = *own[i].decision;
        own[i].decision = &decisions[i];
    }
    sketch->trace.instructions = own;
    for (size_t i = 0; i < sketch->number_count; i++) {
        foreloop_sketch_number *number = &sketch->numbers[i];
        foreloop_instruction *instruction = &own[number->instruction];
        if (is_kind(instruction, foreloop_on_annotate))
            number->target = &instruction->inputs.items[1].number;
        else if (is_kind(instruction, foreloop_on_sample_tile))
            number->target = &instruction->decision->items[number->part].number;
        else
            number->target = &decisions[number->instruction].number;
    }
    return FORELOOP_OK;
}

/* Lists decisions and numbers; the places together, behind the others. */
static foreloop_status list_decisions(foreloop_sketch *sketch, foreloop_error *error) {
    const foreloop_trace *trace = &sketch->trace;
    size_t numbers = 0, places = 0;
    foreloop_decision_kind kind;
    for (size_t i = 0; i < trace->count; i++) {
        size_t own = count_numbers(&trace->instructions[i], &kind);
        numbers += own;
        places += own > 0 && kind == FORELOOP_DECISION_LOCATIONS;
        if (own == 0 && trace->instructions[i].decision)
            return foreloop_fail(error, FORELOOP_ERROR_UNSUPPORTED,
                                 "instruction %zu of the trace has a decision, and is of no kind that has one here", i);
    }
    FORELOOP_TRY(foreloop_sketch_check_size(trace, numbers, places, error));
    sketch->numbers = foreloop_arena_allocate(&sketch->arena, numbers, sizeof *sketch->numbers);
    sketch->decisions = foreloop_arena_allocate(&sketch->arena, numbers, sizeof *sketch->decisions);
    sketch->nests = foreloop_arena_allocate(&sketch->arena, numbers, sizeof *sketch->nests);
    if (!sketch->numbers || !sketch->decisions || !sketch->nests)
        return foreloop_fail_memory(error, numbers, sizeof *sketch->decisions, "the decisions of a sketch");
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < trace->count; i++) {
            size_t width = count_numbers(&trace->instructions[i], &kind);
            if (width == 0 || (kind == FORELOOP_DECISION_LOCATIONS) != (pass == 1))
                continue;
            if (pass == 0 || sketch->locations == FORELOOP_SKETCH_NONE)
                sketch->decisions[sketch->decision_count++] =
                    (foreloop_sketch_decision){.kind = kind, .first_number = sketch->number_count};
            if (pass == 1)
                sketch->locations = sketch->decision_count - 1;
            sketch->decisions[sketch->decision_count - 1].width += width;
            for (size_t part = 0; part < width; part++)
                sketch->numbers[sketch->number_count++] =
                    (foreloop_sketch_number){.instruction = (uint32_t)i, .part = (uint32_t)part};
        }
    return FORELOOP_OK;
}

static foreloop_status fill_decisions(foreloop_sketch *sketch, foreloop_error *error) {
    double *numbers = foreloop_arena_allocate(&sketch->scratch, sketch->number_count, sizeof *numbers);
    if (!numbers)
        return foreloop_fail_memory(error, sketch->number_count, sizeof *numbers, "the decisions of a sketch");
    FORELOOP_TRY(read_numbers(sketch, &sketch->trace, numbers, error));
    for (size_t i = 0; i < sketch->decision_count; i++)
        FORELOOP_TRY(fill_decision(sketch, &sketch->decisions[i], numbers, error));
    return FORELOOP_OK;
}

foreloop_status foreloop_sketch_open(foreloop_sketch *sketch, const foreloop_allocator *allocator, const char *text,
                                     size_t length, foreloop_error *error) {
    sketch->allocator = sketch->arena.allocator = sketch->scratch.allocator = allocator;
    sketch->locations = FORELOOP_SKETCH_NONE;
    sketch->walk = foreloop_walk_create(allocator);
    char *own = foreloop_arena_text(&sketch->arena, text, length);
    if (!sketch->walk || !own)
        return foreloop_fail_memory(error, length, 1, "a sketch");
    FORELOOP_TRY(read_trace(sketch, own, length, &sketch->arena, &sketch->trace, error));
    FORELOOP_TRY(list_decisions(sketch, error));
    FORELOOP_TRY(foreloop_sketch_check_decisions(&sketch->trace, error));
    FORELOOP_TRY(fill_decisions(sketch, error));
    FORELOOP_TRY(own_instructions(sketch, error));
    FORELOOP_TRY(foreloop_sketch_find_pieces(sketch, own, length, error));
    FORELOOP_TRY(foreloop_walk_learn_trace(sketch->walk, &sketch->trace, &sketch->scratch, error));
    FORELOOP_TRY(foreloop_sketch_find_nests(sketch, error));
    FORELOOP_TRY(foreloop_sketch_find_actions(sketch, error));
    return foreloop_sketch_add(sketch, text, length, NULL, error);
}

void foreloop_sketch_close(foreloop_sketch *sketch) {
    for (size_t i = 0; i < sketch->decision_count; i++)
        foreloop_release(sketch->allocator, sketch->decisions[i].values);
    foreloop_release(sketch->allocator, sketch->patterns);
    foreloop_release(sketch->allocator, sketch->patterned);
    foreloop_release(sketch->allocator, sketch->pattern_points);
    foreloop_release(sketch->allocator, sketch->points);
    foreloop_walk_close(sketch->walk);
    foreloop_trace_reader_close(&sketch->reader, sketch->allocator);
    foreloop_arena_close(&sketch->scratch);
    foreloop_arena_close(&sketch->arena);
}

/* ---- Further traces ---------------------------------------------------------------------------------------------- */

static bool same_value(const foreloop_value *a, const foreloop_value *b) {
    if (a->type != b->type)
        return false;
    switch (a->type) {
    case FORELOOP_VALUE_NUMBER:
        return a->number == b->number;
    case FORELOOP_VALUE_TEXT:
        return a->count == b->count && memcmp(a->text, b->text, a->count) == 0;
    case FORELOOP_VALUE_VARIABLE:
        return a->variable == b->variable;
    case FORELOOP_VALUE_ARRAY:
        if (a->count != b->count)
            return false;
        for (size_t i = 0; i < a->count; i++)
            if (!same_value(&a->items[i], &b->items[i]))
                return false;
        return true;
    case FORELOOP_VALUE_NULL:
    case FORELOOP_VALUE_OTHER:
        break;
    }
    return true;
}

/* Equal but for what is decided. */
static bool same_instruction(const foreloop_instruction *a, const foreloop_instruction *b) {
    if (a->kind != b->kind || !same_value(&a->attrs, &b->attrs) || !same_value(&a->outputs, &b->outputs))
        return false;
    if (is_annotation(a) && is_annotation(b))
        return a->inputs.count == b->inputs.count && same_value(&a->inputs.items[0], &b->inputs.items[0]);
    return same_value(&a->inputs, &b->inputs);
}

static foreloop_status check_sketch(const foreloop_sketch *sketch, const foreloop_trace *trace, foreloop_error *error) {
    size_t same = 0;
    while (same < sketch->trace.count && same < trace->count &&
           same_instruction(&sketch->trace.instructions[same], &trace->instructions[same]))
        same++;
    if (same < sketch->trace.count || same < trace->count)
        return foreloop_fail(error, FORELOOP_ERROR_MISMATCH,
                             "the trace is of another sketch: it differs from the space's at instruction %zu; make a "
                             "space for each sketch",
                             same);
    return FORELOOP_OK;
}

/* The point of these numbers; values that are missing are appended. */
static foreloop_status make_point(foreloop_sketch *sketch, const double *numbers, uint32_t *point,
                                  foreloop_error *error) {
    for (size_t i = 0; i < sketch->decision_count; i++) {
        foreloop_sketch_decision *decision = &sketch->decisions[i];
        const double *own = numbers + decision->first_number;
        size_t value = foreloop_sketch_find(decision, own);
        if (value == decision->count)
            FORELOOP_TRY(foreloop_sketch_append(sketch, decision, own, error));
        point[i] = (uint32_t)value;
    }
    return FORELOOP_OK;
}

static foreloop_status check_extents(const foreloop_sketch *sketch, const double *numbers, foreloop_error *error) {
    for (size_t i = 0; i < sketch->decision_count; i++) {
        const foreloop_sketch_decision *decision = &sketch->decisions[i];
        if (decision->kind == FORELOOP_DECISION_TILE &&
            product_of(numbers + decision->first_number, decision->width) != decision->product)
            return foreloop_fail(error, FORELOOP_ERROR_MISMATCH,
                                 "the trace is of another workload: the tile of instruction %u has another extent than "
                                 "the space's",
                                 (unsigned)sketch->numbers[decision->first_number].instruction);
    }
    return FORELOOP_OK;
}

/* Room for a further value of each decision and a further point, so that nothing can fail half way. */
static foreloop_status reserve_point(foreloop_sketch *sketch, foreloop_error *error) {
    for (size_t i = 0; i < sketch->decision_count; i++) {
        foreloop_sketch_decision *decision = &sketch->decisions[i];
        size_t used = decision->count * decision->width;
        FORELOOP_TRY(foreloop_reserve(sketch->allocator, &decision->values, &decision->capacity, used,
                                      used + decision->width, sizeof *decision->values, error));
    }
    FORELOOP_TRY(foreloop_reserve_one(sketch->allocator, &sketch->patterns, &sketch->pattern_capacity,
                                      sketch->pattern_count, sizeof *sketch->patterns, error));
    FORELOOP_TRY(foreloop_reserve_one(sketch->allocator, &sketch->patterned, &sketch->patterned_capacity,
                                      sketch->pattern_count, sizeof *sketch->patterned, error));
    FORELOOP_TRY(foreloop_reserve_one(sketch->allocator, &sketch->pattern_points, &sketch->pattern_points_capacity,
                                      sketch->pattern_count, sizeof *sketch->pattern_points, error));
    size_t used = sketch->point_count * sketch->decision_count;
    return foreloop_reserve(sketch->allocator, &sketch->points, &sketch->point_capacity, used,
                            used + sketch->decision_count + 1, sizeof *sketch->points, error);
}

foreloop_status foreloop_sketch_add(foreloop_sketch *sketch, const char *text, size_t length, uint32_t *point,
                                    foreloop_error *error) {
    foreloop_trace trace;
    foreloop_arena_reset(&sketch->scratch);
    FORELOOP_TRY(read_trace(sketch, text, length, &sketch->scratch, &trace, error));
    FORELOOP_TRY(check_sketch(sketch, &trace, error));
    FORELOOP_TRY(foreloop_sketch_check_decisions(&trace, error));
    double *numbers = foreloop_arena_allocate(&sketch->scratch, sketch->number_count, sizeof *numbers);
    if (!numbers)
        return foreloop_fail_memory(error, sketch->number_count, sizeof *numbers, "the decisions of a trace");
    FORELOOP_TRY(read_numbers(sketch, &trace, numbers, error));
    FORELOOP_TRY(check_extents(sketch, numbers, error));
    FORELOOP_TRY(reserve_point(sketch, error));

    const size_t size = sketch->decision_count * sizeof *point;
    uint32_t *own = sketch->points + sketch->point_count * sketch->decision_count;
    FORELOOP_TRY(make_point(sketch, numbers, own, error));
    foreloop_sketch_show_places(sketch, own);
    if (point && size > 0)
        memcpy(point, own, size);
    for (size_t i = 0; i < sketch->point_count; i++)
        if (size == 0 || memcmp(sketch->points + i * sketch->decision_count, own, size) == 0)
            return FORELOOP_OK;
    sketch->point_count++;
    return FORELOOP_OK;
}
