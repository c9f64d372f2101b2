/* Ansor's transform steps as instructions of a trace: each step becomes one on variables, so that the walk of
 * MetaSchedule's traces does the rest. Look-ups in front of them make the stages' blocks and loops. */
#include "common/error.h"
#include "schedule/ansor.h"
#include "schedule/walk_instruction.h"
#include <string.h>

typedef struct translation {
    foreloop_ansor_state state;
    foreloop_instruction *instructions;
    size_t count, capacity;
    foreloop_ansor_split *splits; /* for each step of the record */
    const foreloop_value *steps;
    size_t unknown;
    bool rfactored; /* what that takes is a reduction, which only the walk can follow back to the axes */
} translation;

/* ---- Instructions ------------------------------------------------------------------------------------------------ */

#define NAMED(name) (name), sizeof(name) - 1
static const foreloop_kind_info STAGE = {NAMED(""), NULL, foreloop_on_stage, {NULL}},
                                AXES = {NAMED(""), NULL, foreloop_on_axes, {NULL}},
                                SPLIT = {NAMED("SP"), "split", foreloop_on_split_extent, {NULL}},
                                FUSE = {NAMED("FU"), "fuse", foreloop_on_fuse, {NULL}},
                                REORDER = {NAMED("RE"), "reorder", foreloop_on_reorder, {NULL}},
                                UNROLL = {NAMED("AN"), "unroll", foreloop_on_loop, {NULL}},
                                VECTORIZE = {NAMED("AN"), "vectorize", foreloop_on_loop, {NULL}},
                                PARALLEL = {NAMED("AN"), "parallel", foreloop_on_loop, {NULL}},
                                BIND = {NAMED("AN"), "bind", foreloop_on_bind, {"$thread"}},
                                TENSORIZE = {NAMED("AN"), "tensorize", foreloop_on_subtree, {NULL}},
                                PRAGMA = {NAMED("PR"), "annotate", foreloop_on_annotate, {NULL}},
                                COMPUTE_AT = {NAMED("CA"), "compute_at", foreloop_on_place, {NULL}},
                                COMPUTE_ROOT = {NAMED("CR"), "compute_at", foreloop_on_place, {NULL}},
                                COMPUTE_INLINE = {NAMED("CI"), "compute_inline", foreloop_on_block, {NULL}},
                                CACHE_READ = {NAMED("CHR"), "cache_read", foreloop_on_cache, {NULL, "$scope"}},
                                CACHE_WRITE = {NAMED("CHW"), "cache_write", foreloop_on_cache, {"#buffer", "$scope"}},
                                RFACTOR = {NAMED("RF"), "rfactor", foreloop_on_rfactor, {"#factor_axis"}},
                                STORAGE_ALIGN = {NAMED("SA"),
                                                 "storage_align",
                                                 foreloop_on_block,
                                                 {"#buffer", "#axis", "#factor", "#offset"}};

static const foreloop_value NOTHING = {.type = FORELOOP_VALUE_NULL};

static foreloop_value variable_value(size_t variable) {
    return (foreloop_value){.type = FORELOOP_VALUE_VARIABLE, .variable = variable};
}

static foreloop_value number_value(double number) {
    return (foreloop_value){.type = FORELOOP_VALUE_NUMBER, .number = number};
}

static foreloop_value text_value(const char *text) {
    return (foreloop_value){.type = FORELOOP_VALUE_TEXT, .count = (uint32_t)strlen(text), .text = text};
}

/* An array whose items are to be filled in. */
static foreloop_status new_array(translation *t, size_t count, foreloop_value *array) {
    foreloop_value *items = foreloop_arena_allocate(t->state.arena, count, sizeof *items);
    if (!items)
        return foreloop_fail_memory(t->state.error, count, sizeof *items, "the steps of a tuning record");
    *array = (foreloop_value){.type = FORELOOP_VALUE_ARRAY, .count = (uint32_t)count, .items = items};
    return FORELOOP_OK;
}

/* An instruction's arrays. */
static foreloop_status new_arrays(translation *t, size_t inputs, size_t attrs, size_t outputs,
                                  foreloop_instruction *instruction) {
    foreloop_value all = NOTHING;
    FORELOOP_TRY(new_array(t, inputs + attrs + outputs, &all));
    instruction->inputs = instruction->attrs = instruction->outputs = all;
    instruction->inputs.count = (uint32_t)inputs;
    instruction->attrs.count = (uint32_t)attrs;
    instruction->attrs.items += inputs;
    instruction->outputs.count = (uint32_t)outputs;
    instruction->outputs.items += inputs + attrs;
    return FORELOOP_OK;
}

/* Appends an instruction with so many inputs, attributes and outputs, to be filled in before the next one. */
static foreloop_status append(translation *t, const foreloop_kind_info *kind, size_t inputs, size_t attrs,
                              size_t outputs, foreloop_instruction **appended) {
    FORELOOP_TRY(foreloop_ansor_grow(&t->state, &t->instructions, &t->capacity, t->count, sizeof *t->instructions));
    *appended = &t->instructions[t->count++];
    **appended = (foreloop_instruction){.kind = kind, .place = (uint32_t)(t->state.step + 1)};
    return new_arrays(t, inputs, attrs, outputs, *appended);
}

/* A place for the look-up of axes that show only later. */
static foreloop_status append_axes(translation *t, size_t *place) {
    foreloop_instruction *instruction;
    *place = t->count;
    return append(t, &AXES, 0, 0, 0, &instruction);
}

/* ---- Parts of steps ---------------------------------------------------------------------------------------------- */

static foreloop_status fail_step(translation *t, const char *what, size_t item) {
    return foreloop_fail(t->state.error, FORELOOP_ERROR_FORMAT, "step %zu: %s is missing or wrong (part %zu of it)",
                         t->state.step, what, item);
}

/* A whole number at a place of the step. */
static foreloop_status read_integer(translation *t, const foreloop_value *step, size_t item, const char *what,
                                    int64_t most, int64_t *integer) {
    return foreloop_value_integer(foreloop_value_item(step, item), 0, most, integer) ? FORELOOP_OK
                                                                                     : fail_step(t, what, item);
}

static foreloop_status read_array(translation *t, const foreloop_value *step, size_t item, const char *what,
                                  const foreloop_value **array) {
    *array = foreloop_value_item(step, item);
    return (*array)->type == FORELOOP_VALUE_ARRAY ? FORELOOP_OK : fail_step(t, what, item);
}

static foreloop_status read_text(translation *t, const foreloop_value *step, size_t item, const char *what,
                                 const foreloop_value **text) {
    *text = foreloop_value_item(step, item);
    return (*text)->type == FORELOOP_VALUE_TEXT ? FORELOOP_OK : fail_step(t, what, item);
}

/* The stage that a step schedules. */
static foreloop_status read_stage(translation *t, const foreloop_value *step, size_t item, size_t *stage) {
    int64_t place;
    FORELOOP_TRY(read_integer(t, step, item, "the stage", FORELOOP_ANSOR_MAX_STAGES - 1, &place));
    FORELOOP_TRY(foreloop_ansor_stage_at(&t->state, (size_t)place, stage));
    t->state.stages[*stage].used = true;
    return FORELOOP_OK;
}

static foreloop_status read_iterator(translation *t, const foreloop_value *step, size_t item, size_t stage,
                                     size_t *iterator) {
    int64_t place;
    FORELOOP_TRY(read_integer(t, step, item, "the iterator", FORELOOP_ANSOR_MAX_ITERATORS - 1, &place));
    *iterator = (size_t)place;
    return foreloop_ansor_reach(&t->state, stage, *iterator + 1);
}

static size_t iterator_variable(const translation *t, size_t stage, size_t iterator) {
    return t->state.stages[stage].iterators[iterator].variable;
}

static size_t block_of(const translation *t, size_t stage) {
    return t->state.stages[stage].block;
}

/* ---- Splits ------------------------------------------------------------------------------------------------------ */

/* Cuts an iterator by these lengths: of the inner parts, with the outermost left open, or of the outer ones. */
static foreloop_status split(translation *t, size_t stage_index, size_t iterator, double extent,
                             const foreloop_value *lengths, bool inner_to_outer) {
    foreloop_ansor_state *state = &t->state;
    foreloop_instruction *instruction;
    size_t variable = iterator_variable(t, stage_index, iterator), parts = lengths->count + (size_t)1, first;
    foreloop_ansor_iterator whole = state->stages[stage_index].iterators[iterator];
    FORELOOP_TRY(append(t, &SPLIT, parts + 1, 1, parts, &instruction));
    instruction->attrs.items[0] = number_value(extent);
    FORELOOP_TRY(foreloop_ansor_replace(state, stage_index, iterator, 1, parts, &first));
    instruction->inputs.items[0] = variable_value(variable);
    instruction->inputs.items[inner_to_outer ? 1 : parts] = NOTHING;
    for (size_t i = 0; i < lengths->count; i++)
        instruction->inputs.items[1 + i + inner_to_outer] = lengths->items[i];
    for (size_t i = 0; i < parts; i++)
        instruction->outputs.items[i] = variable_value(first + i);

    foreloop_ansor_stage *stage = &state->stages[stage_index];
    foreloop_ansor_axes *axes = &state->axes[stage->axes];
    if (whole.axis == FORELOOP_ANSOR_NONE || axes->items[whole.axis].parts > 0)
        return FORELOOP_OK;
    axes->items[whole.axis].parts = parts;
    for (size_t i = 0; i < parts; i++) {
        stage->iterators[iterator + i].axis = whole.axis;
        stage->iterators[iterator + i].part = i;
    }
    return FORELOOP_OK;
}

static foreloop_status on_split(translation *t, const foreloop_value *step) {
    size_t stage, iterator;
    int64_t extent, inner_to_outer, length;
    const foreloop_value *lengths;
    FORELOOP_TRY(read_stage(t, step, 1, &stage));
    FORELOOP_TRY(read_iterator(t, step, 2, stage, &iterator));
    FORELOOP_TRY(read_integer(t, step, 3, "the extent", INT32_MAX, &extent));
    FORELOOP_TRY(read_array(t, step, 4, "the list of lengths", &lengths));
    FORELOOP_TRY(read_integer(t, step, 5, "the direction", 1, &inner_to_outer));
    for (size_t i = 0; i < lengths->count; i++)
        if (lengths->items[i].type != FORELOOP_VALUE_NULL &&
            !foreloop_value_integer(&lengths->items[i], 1, INT32_MAX, &length))
            return fail_step(t, "a length", 4);
    size_t axes = t->state.stages[stage].axes, axis = t->state.stages[stage].iterators[iterator].axis;
    if (axis != FORELOOP_ANSOR_NONE && t->state.axes[axes].items[axis].parts > 0)
        axis = FORELOOP_ANSOR_NONE;
    t->splits[t->state.step] = (foreloop_ansor_split){lengths, (double)extent, axes, axis};
    return split(t, stage, iterator, (double)extent, lengths, inner_to_outer != 0);
}

/* The split that another step follows: any of the record that has been read. */
static foreloop_status read_source(translation *t, const foreloop_value *value, size_t item, size_t *source) {
    int64_t index;
    if (!foreloop_value_integer(value, 0, (int64_t)t->steps->count - 1, &index) || !t->splits[index].lengths)
        return fail_step(t, "the split that it follows", item);
    *source = (size_t)index;
    return FORELOOP_OK;
}

/* The same cuts as another split's, its innermost ones taken together where this one has fewer. */
static foreloop_status on_follow_split(translation *t, const foreloop_value *step) {
    size_t stage, iterator, source = 0;
    int64_t parts;
    foreloop_value lengths = NOTHING;
    FORELOOP_TRY(read_stage(t, step, 1, &stage));
    FORELOOP_TRY(read_iterator(t, step, 2, stage, &iterator));
    FORELOOP_TRY(read_source(t, foreloop_value_item(step, 3), 3, &source));
    const foreloop_value *given = t->splits[source].lengths;
    FORELOOP_TRY(read_integer(t, step, 4, "the number of parts", (int64_t)given->count + 1, &parts));
    if (parts < 1)
        return fail_step(t, "the number of parts", 4);
    FORELOOP_TRY(new_array(t, (size_t)parts, &lengths));
    size_t own = (size_t)parts - 1;
    for (size_t i = 0; i < own; i++)
        lengths.items[i] = given->items[i];
    lengths.items[own] = number_value(1);
    for (size_t i = own; i < given->count && lengths.items[own].type == FORELOOP_VALUE_NUMBER; i++) {
        if (given->items[i].type == FORELOOP_VALUE_NUMBER)
            lengths.items[own].number *= given->items[i].number;
        else
            lengths.items[own] = given->items[i];
    }
    size_t axes = t->state.stages[stage].axes, axis = t->state.stages[stage].iterators[iterator].axis;
    if (axis != FORELOOP_ANSOR_NONE && t->state.axes[axes].items[axis].parts == 0)
        t->state.axes[axes].items[axis].source = source;
    return split(t, stage, iterator, t->splits[source].extent, &lengths, true);
}

/* One cut, by the product of the lengths that several splits have at one level. */
static foreloop_status on_follow_fused_split(translation *t, const foreloop_value *step) {
    size_t stage, iterator, source = 0;
    int64_t level, inner_to_outer;
    const foreloop_value *sources;
    foreloop_value lengths = NOTHING;
    FORELOOP_TRY(read_stage(t, step, 1, &stage));
    FORELOOP_TRY(read_iterator(t, step, 2, stage, &iterator));
    FORELOOP_TRY(read_array(t, step, 3, "the list of splits that it follows", &sources));
    FORELOOP_TRY(read_integer(t, step, 4, "the level", INT32_MAX, &level));
    FORELOOP_TRY(read_integer(t, step, 5, "the direction", 1, &inner_to_outer));
    FORELOOP_TRY(new_array(t, 1, &lengths));
    double product = 1;
    bool known = true;
    for (size_t i = 0; i < sources->count; i++) {
        FORELOOP_TRY(read_source(t, &sources->items[i], 3, &source));
        if ((uint64_t)level >= t->splits[source].lengths->count)
            return fail_step(t, "the level", 4);
        const foreloop_value *length = &t->splits[source].lengths->items[level];
        known = known && length->type == FORELOOP_VALUE_NUMBER;
        product *= known ? length->number : 1;
    }
    lengths.items[0] = known ? number_value(product) : NOTHING;
    return split(t, stage, iterator, 0, &lengths, inner_to_outer != 0);
}

/* ---- Other steps on one stage ------------------------------------------------------------------------------------ */

static foreloop_status on_fuse(translation *t, const foreloop_value *step) {
    size_t stage, first = 0, made;
    const foreloop_value *list;
    foreloop_instruction *instruction;
    FORELOOP_TRY(read_stage(t, step, 1, &stage));
    FORELOOP_TRY(read_array(t, step, 2, "the list of iterators", &list));
    size_t count = list->count;
    for (size_t i = 0; i < count; i++) {
        int64_t place;
        if (!foreloop_value_integer(&list->items[i], 0, FORELOOP_ANSOR_MAX_ITERATORS - 1, &place) ||
            (i > 0 && (size_t)place != first + i))
            return fail_step(t, "the list of iterators", 2);
        first = i == 0 ? (size_t)place : first;
    }
    FORELOOP_TRY(foreloop_ansor_reach(&t->state, stage, first + count));
    FORELOOP_TRY(append(t, &FUSE, count, 0, 1, &instruction));
    for (size_t i = 0; i < count; i++)
        instruction->inputs.items[i] = variable_value(iterator_variable(t, stage, first + i));
    FORELOOP_TRY(foreloop_ansor_replace(&t->state, stage, first, count, 1, &made));
    instruction->outputs.items[0] = variable_value(made);
    return FORELOOP_OK;
}

static foreloop_status on_reorder(translation *t, const foreloop_value *step) {
    size_t stage;
    const foreloop_value *order;
    foreloop_instruction *instruction;
    FORELOOP_TRY(read_stage(t, step, 1, &stage));
    FORELOOP_TRY(read_array(t, step, 2, "the list of iterators", &order));
    FORELOOP_TRY(foreloop_ansor_reorder(&t->state, stage, order));
    FORELOOP_TRY(append(t, &REORDER, order->count, 0, 0, &instruction));
    for (size_t i = 0; i < order->count; i++)
        instruction->inputs.items[i] = variable_value(iterator_variable(t, stage, i));
    return FORELOOP_OK;
}

static foreloop_status on_annotation(translation *t, const foreloop_value *step) {
    static const struct {
        const foreloop_kind_info *kind; /* NULL: no annotation */
        const char *thread;
    } annotations[] = {{NULL, NULL},           {&UNROLL, NULL},       {&VECTORIZE, NULL},     {&PARALLEL, NULL},
                       {&BIND, "vthread.x"},   {&BIND, "blockIdx.x"}, {&BIND, "threadIdx.x"}, {&BIND, "blockIdx.y"},
                       {&BIND, "threadIdx.y"}, {&BIND, "blockIdx.z"}, {&BIND, "threadIdx.z"}, {&TENSORIZE, NULL}};
    size_t stage, iterator;
    int64_t annotation;
    foreloop_instruction *instruction;
    FORELOOP_TRY(read_stage(t, step, 1, &stage));
    FORELOOP_TRY(read_iterator(t, step, 2, stage, &iterator));
    FORELOOP_TRY(
        read_integer(t, step, 3, "the annotation", sizeof annotations / sizeof annotations[0] - 1, &annotation));
    if (!annotations[annotation].kind)
        return FORELOOP_OK;
    FORELOOP_TRY(append(t, annotations[annotation].kind, 1, 1, 0, &instruction));
    instruction->inputs.items[0] = variable_value(iterator_variable(t, stage, iterator));
    const char *thread = annotations[annotation].thread;
    instruction->attrs.items[0] = thread ? text_value(thread) : NOTHING;
    return FORELOOP_OK;
}

/* The number behind a text of the form "auto_unroll_max_step$64". */
static bool unroll_steps(const foreloop_value *pragma, double *number) {
    static const char prefix[] = "auto_unroll_max_step$";
    size_t length = sizeof prefix - 1;
    if (pragma->count <= length || pragma->count > length + 9 || memcmp(pragma->text, prefix, length) != 0)
        return false;
    *number = 0;
    for (size_t i = length; i < pragma->count; i++) {
        if (pragma->text[i] < '0' || pragma->text[i] > '9')
            return false;
        *number = *number * 10 + (pragma->text[i] - '0');
    }
    return true;
}

static foreloop_status on_pragma(translation *t, const foreloop_value *step) {
    size_t stage, iterator;
    const foreloop_value *pragma;
    foreloop_instruction *instruction;
    double number;
    FORELOOP_TRY(read_stage(t, step, 1, &stage));
    FORELOOP_TRY(read_text(t, step, 3, "the pragma", &pragma));
    if (unroll_steps(pragma, &number)) {
        FORELOOP_TRY(append(t, &PRAGMA, 2, 1, 0, &instruction));
        instruction->inputs.items[0] = variable_value(block_of(t, stage));
        instruction->inputs.items[1] = number_value(number);
        instruction->attrs.items[0] = text_value("meta_schedule.unroll_explicit");
        return FORELOOP_OK;
    }
    FORELOOP_TRY(read_iterator(t, step, 2, stage, &iterator));
    FORELOOP_TRY(append(t, &PRAGMA, 1, 1, 0, &instruction));
    instruction->inputs.items[0] = variable_value(iterator_variable(t, stage, iterator));
    instruction->attrs.items[0] = *pragma;
    return FORELOOP_OK;
}

static foreloop_status on_storage_align(translation *t, const foreloop_value *step) {
    size_t stage, iterator;
    int64_t factor, offset;
    foreloop_instruction *instruction;
    FORELOOP_TRY(read_stage(t, step, 1, &stage));
    FORELOOP_TRY(read_iterator(t, step, 2, stage, &iterator));
    FORELOOP_TRY(read_integer(t, step, 3, "the factor", INT32_MAX, &factor));
    FORELOOP_TRY(read_integer(t, step, 4, "the offset", INT32_MAX, &offset));
    FORELOOP_TRY(append(t, &STORAGE_ALIGN, 1, 4, 0, &instruction));
    instruction->inputs.items[0] = variable_value(block_of(t, stage));
    instruction->attrs.items[0] = number_value(0);
    instruction->attrs.items[1] = number_value((double)iterator);
    instruction->attrs.items[2] = number_value((double)factor);
    instruction->attrs.items[3] = number_value((double)offset);
    return FORELOOP_OK;
}

/* ---- Steps on several stages ------------------------------------------------------------------------------------- */

static foreloop_status on_compute_at(translation *t, const foreloop_value *step) {
    size_t stage, target, iterator;
    foreloop_instruction *instruction;
    FORELOOP_TRY(read_stage(t, step, 1, &stage));
    FORELOOP_TRY(read_stage(t, step, 2, &target));
    FORELOOP_TRY(read_iterator(t, step, 3, target, &iterator));
    FORELOOP_TRY(append(t, &COMPUTE_AT, 2, 0, 0, &instruction));
    instruction->inputs.items[0] = variable_value(block_of(t, stage));
    instruction->inputs.items[1] = variable_value(iterator_variable(t, target, iterator));
    return FORELOOP_OK;
}

static foreloop_status on_stage_alone(translation *t, const foreloop_value *step, const foreloop_kind_info *kind) {
    size_t stage;
    foreloop_instruction *instruction;
    FORELOOP_TRY(read_stage(t, step, 1, &stage));
    FORELOOP_TRY(append(t, kind, 1, 0, 0, &instruction));
    instruction->inputs.items[0] = variable_value(block_of(t, stage));
    return FORELOOP_OK;
}

static foreloop_status on_compute_inline(translation *t, const foreloop_value *step) {
    return on_stage_alone(t, step, &COMPUTE_INLINE);
}

static foreloop_status on_compute_root(translation *t, const foreloop_value *step) {
    return on_stage_alone(t, step, &COMPUTE_ROOT);
}

/* A new stage behind the one that is read, for the stages that read it: as in MetaSchedule the action is about the
 * reader. */
static foreloop_status on_cache_read(translation *t, const foreloop_value *step) {
    size_t reader = FORELOOP_ANSOR_NONE, stage, axes, made;
    int64_t place;
    const foreloop_value *scope, *readers;
    foreloop_instruction *instruction;
    FORELOOP_TRY(read_integer(t, step, 1, "the stage", FORELOOP_ANSOR_MAX_STAGES - 2, &place));
    FORELOOP_TRY(read_text(t, step, 2, "the memory scope", &scope));
    FORELOOP_TRY(read_array(t, step, 3, "the list of readers", &readers));
    FORELOOP_TRY(foreloop_ansor_stage_at(&t->state, (size_t)place, &stage));
    for (size_t i = readers->count; i-- > 0;)
        FORELOOP_TRY(read_stage(t, readers, i, &reader));
    if (reader == FORELOOP_ANSOR_NONE)
        return fail_step(t, "the list of readers", 3);
    FORELOOP_TRY(append(t, &CACHE_READ, 1, 2, 1, &instruction));
    instruction->inputs.items[0] = variable_value(block_of(t, reader));
    instruction->attrs.items[0] = NOTHING;
    instruction->attrs.items[1] = *scope;
    foreloop_value *output = &instruction->outputs.items[0];
    FORELOOP_TRY(append_axes(t, &axes));
    FORELOOP_TRY(foreloop_ansor_insert_stage(&t->state, (size_t)place + 1, axes, &made));
    *output = variable_value(block_of(t, made));
    return FORELOOP_OK;
}

/* What the stage computed moves to a new stage in front of it, and it copies. The block that is known goes on to be the
 * one that computes, as in MetaSchedule. */
static foreloop_status on_cache_write(translation *t, const foreloop_value *step) {
    size_t stage, own_axes, axes, made;
    const foreloop_value *scope;
    foreloop_instruction *instruction;
    FORELOOP_TRY(read_stage(t, step, 1, &stage));
    FORELOOP_TRY(read_text(t, step, 2, "the memory scope", &scope));
    FORELOOP_TRY(append(t, &CACHE_WRITE, 1, 2, 1, &instruction));
    instruction->inputs.items[0] = variable_value(block_of(t, stage));
    instruction->attrs.items[0] = number_value(0);
    instruction->attrs.items[1] = *scope;
    foreloop_value *output = &instruction->outputs.items[0];
    FORELOOP_TRY(append_axes(t, &own_axes));
    FORELOOP_TRY(append_axes(t, &axes));
    FORELOOP_TRY(foreloop_ansor_renew_axes(&t->state, stage, own_axes));
    FORELOOP_TRY(foreloop_ansor_insert_stage(&t->state, (size_t)step->items[1].number + 1, axes, &made));
    *output = variable_value(block_of(t, made));
    return FORELOOP_OK;
}

static foreloop_status on_rfactor(translation *t, const foreloop_value *step) {
    size_t stage, iterator, own_axes, axes, made;
    int64_t factor_axis;
    foreloop_instruction *instruction;
    FORELOOP_TRY(read_stage(t, step, 1, &stage));
    FORELOOP_TRY(read_iterator(t, step, 2, stage, &iterator));
    FORELOOP_TRY(read_integer(t, step, 3, "the new axis", FORELOOP_ANSOR_MAX_ITERATORS - 1, &factor_axis));
    FORELOOP_TRY(append(t, &RFACTOR, 1, 1, 1, &instruction));
    t->rfactored = true;
    instruction->inputs.items[0] = variable_value(iterator_variable(t, stage, iterator));
    instruction->attrs.items[0] = number_value((double)factor_axis);
    foreloop_value *output = &instruction->outputs.items[0];
    FORELOOP_TRY(append_axes(t, &axes));
    FORELOOP_TRY(append_axes(t, &own_axes));
    FORELOOP_TRY(foreloop_ansor_insert_stage(&t->state, (size_t)step->items[1].number, axes, &made));
    FORELOOP_TRY(foreloop_ansor_renew_axes(&t->state, stage, own_axes));
    *output = variable_value(block_of(t, made));
    return FORELOOP_OK;
}

/* ---- The whole trace --------------------------------------------------------------------------------------------- */

static foreloop_status translate_step(translation *t, const foreloop_value *step) {
    static const struct {
        const char *name;
        size_t length;
        foreloop_status (*translate)(translation *t, const foreloop_value *step);
    } known[] = {
        {NAMED("AN"), on_annotation},
        {NAMED("FU"), on_fuse},
        {NAMED("PR"), on_pragma},
        {NAMED("RE"), on_reorder},
        {NAMED("SP"), on_split},
        {NAMED("FSP"), on_follow_split},
        {NAMED("FFSP"), on_follow_fused_split},
        {NAMED("SA"), on_storage_align},
        {NAMED("CA"), on_compute_at},
        {NAMED("CI"), on_compute_inline},
        {NAMED("CR"), on_compute_root},
        {NAMED("CHR"), on_cache_read},
        {NAMED("CHW"), on_cache_write},
        {NAMED("RF"), on_rfactor},
    };
    const foreloop_value *name = foreloop_value_item(step, 0);
    if (name->type != FORELOOP_VALUE_TEXT)
        return foreloop_fail(t->state.error, FORELOOP_ERROR_FORMAT, "step %zu is not [\"kind\", stage, ...]",
                             t->state.step);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (name->count == known[i].length && memcmp(name->text, known[i].name, known[i].length) == 0)
            return known[i].translate(t, step);
    t->unknown++;
    return FORELOOP_OK;
}

/* The classes of tiled stages' axes, and of those whose splits follow theirs. */
static void class_axes(translation *t) {
    for (size_t i = 0; i < t->state.axes_count; i++) {
        foreloop_ansor_axes *axes = &t->state.axes[i];
        size_t spatial = 0;
        for (const char *letter = axes->structure; letter && *letter; letter++)
            spatial += *letter == 'S';
        for (size_t k = 0; axes->structure && k < axes->count; k++)
            axes->items[k].kind = axes->items[k].parts == spatial ? FORELOOP_LOOP_SPATIAL : FORELOOP_LOOP_REDUCTION;
    }
    for (size_t i = 0; i < t->state.axes_count; i++)
        for (size_t k = 0; k < t->state.axes[i].count; k++) {
            foreloop_ansor_axis *axis = &t->state.axes[i].items[k];
            const foreloop_ansor_split *source = axis->source == FORELOOP_ANSOR_NONE ? NULL : &t->splits[axis->source];
            if (source && source->axis != FORELOOP_ANSOR_NONE)
                axis->kind = t->state.axes[source->axes].items[source->axis].kind;
        }
}

/* Look-ups of axes, now that all are known. */
static foreloop_status fill_axes(translation *t, const foreloop_ansor_axes *axes, foreloop_instruction *instruction) {
    *instruction = (foreloop_instruction){.kind = &AXES};
    FORELOOP_TRY(new_arrays(t, 1, 2 + axes->count, axes->count, instruction));
    instruction->inputs.items[0] = variable_value(axes->block);
    instruction->attrs.items[0] = number_value(axes->closed);
    instruction->attrs.items[1] = axes->structure ? text_value(axes->structure) : NOTHING;
    for (size_t i = 0; i < axes->count; i++) {
        instruction->attrs.items[2 + i] = number_value(axes->items[i].kind);
        instruction->outputs.items[i] = variable_value(axes->items[i].variable);
    }
    return FORELOOP_OK;
}

/* Look-ups of the program's stages in their order, and of the axes that they have at the start. */
static foreloop_status make_lead(translation *t, foreloop_instruction *lead, size_t *count) {
    foreloop_ansor_state *state = &t->state;
    *count = 0;
    for (size_t i = 0; i < state->order_count; i++) {
        const foreloop_ansor_stage *stage = &state->stages[state->order[i]];
        if (!stage->original || !stage->used)
            continue;
        foreloop_instruction *instruction = &lead[(*count)++];
        *instruction = (foreloop_instruction){.kind = &STAGE};
        FORELOOP_TRY(new_arrays(t, 0, 0, 1, instruction));
        instruction->outputs.items[0] = variable_value(stage->block);
    }
    for (size_t i = 0; i < state->axes_count; i++)
        FORELOOP_TRY(fill_axes(t, &state->axes[i],
                               state->axes[i].instruction == FORELOOP_ANSOR_NONE
                                   ? &lead[(*count)++]
                                   : &t->instructions[state->axes[i].instruction]));
    return FORELOOP_OK;
}

foreloop_status foreloop_ansor_translate(const foreloop_value *steps, foreloop_arena *arena, foreloop_trace *trace,
                                         foreloop_error *error) {
    translation t = {.state = {.arena = arena, .error = error}, .steps = steps};
    t.splits = foreloop_arena_allocate(arena, steps->count, sizeof *t.splits);
    if (!t.splits)
        return foreloop_fail_memory(error, steps->count, sizeof *t.splits, "the steps of a tuning record");
    for (size_t i = 0; i < steps->count; i++)
        t.splits[i] = (foreloop_ansor_split){.lengths = NULL};
    for (; t.state.step < steps->count; t.state.step++)
        FORELOOP_TRY(translate_step(&t, &steps->items[t.state.step]));
    class_axes(&t);

    size_t most = t.state.stage_count + t.state.axes_count, lead;
    foreloop_instruction *instructions = foreloop_arena_allocate(arena, most + t.count, sizeof *instructions);
    if (!instructions)
        return foreloop_fail_memory(error, most + t.count, sizeof *instructions, "the steps of a tuning record");
    FORELOOP_TRY(make_lead(&t, instructions, &lead));
    if (t.count > 0)
        memcpy(instructions + lead, t.instructions, t.count * sizeof *instructions);
    *trace = (foreloop_trace){.instructions = instructions,
                              .count = lead + t.count,
                              .length = steps->count,
                              .variable_count = t.state.variable_count,
                              .unknown = t.unknown,
                              .classes_stated = !t.rfactored};
    return FORELOOP_OK;
}
