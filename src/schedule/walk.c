/* The symbolic walk of a trace: instruction by instruction, look-ups and samples update what is known, the others also
 * emit an action (docs/ACTIONS.md). Two passes: the first finds out what only later instructions tell (which blocks are
 * tiled, which loops are reductions), the second emits. */
#include "common/error.h"
#include "common/number.h"
#include "schedule/walk_emit.h"
#include "schedule/walk_state.h"
#include <math.h>
#include <string.h>

typedef struct kind_info kind_info;
typedef foreloop_status handler(foreloop_walk *walk, const foreloop_instruction *instruction, const kind_info *info);

enum { MAX_ATTRIBUTES = 4, VARIABLES = 'v', BLOCKS = 'b', LISTED = 6 };

struct kind_info {
    const char *name;   /* in the trace */
    const char *action; /* NULL: emits none of its own */
    handler *handle;
    /* By place in the trace's attributes: "#name" becomes a number argument, "$name" a text, NULL nothing. */
    const char *attributes[MAX_ATTRIBUTES];
};

/* ---- Reading instructions ---------------------------------------------------------------------------------------- */

static const foreloop_value *item(const foreloop_value *array, size_t index) {
    static const foreloop_value nothing = {.type = FORELOOP_VALUE_NULL};
    return array->type == FORELOOP_VALUE_ARRAY && index < array->count ? &array->items[index] : &nothing;
}

static bool is_text(const foreloop_value *value, const char *expected) {
    return value->type == FORELOOP_VALUE_TEXT && value->count == strlen(expected) &&
           memcmp(value->text, expected, value->count) == 0;
}

static bool is_quoted(const foreloop_value *value) {
    return value->type == FORELOOP_VALUE_TEXT && value->count >= 2 && value->text[0] == '"' &&
           value->text[value->count - 1] == '"';
}

static foreloop_status unquote(foreloop_walk *walk, const foreloop_value *value, const char **text) {
    *text = foreloop_arena_text(walk->arena, value->text + 1, value->count - 2);
    if (!*text)
        return foreloop_fail_memory(walk->error, value->count, 1, "a text of a trace");
    return FORELOOP_OK;
}

static foreloop_binding variable(const foreloop_walk *walk, const foreloop_value *value) {
    if (value->type != FORELOOP_VALUE_TEXT)
        return (foreloop_binding){.type = FORELOOP_VARIABLE_NONE};
    return foreloop_walk_look_up(walk, VARIABLES, value->text, value->count);
}

static size_t input_of_type(const foreloop_walk *walk, const foreloop_value *value, foreloop_variable_type type) {
    foreloop_binding binding = variable(walk, value);
    return binding.type == type ? binding.index : FORELOOP_WALK_NONE;
}

static size_t input_block(const foreloop_walk *walk, const foreloop_instruction *instruction, size_t index) {
    return input_of_type(walk, item(&instruction->inputs, index), FORELOOP_VARIABLE_BLOCK);
}

static size_t input_loop(const foreloop_walk *walk, const foreloop_instruction *instruction, size_t index) {
    return input_of_type(walk, item(&instruction->inputs, index), FORELOOP_VARIABLE_LOOP);
}

/* A finite number, written out or sampled. */
static bool input_number(const foreloop_walk *walk, const foreloop_value *value, double *number) {
    if (value->type == FORELOOP_VALUE_NUMBER) {
        *number = value->number;
    } else {
        foreloop_binding binding = variable(walk, value);
        if (binding.type != FORELOOP_VARIABLE_NUMBER || !binding.known)
            return false;
        *number = binding.number;
    }
    return isfinite(*number);
}

/* All loops among inputs, each once, in their order; all in one nest, that of the first. */
static foreloop_status gather_loops(foreloop_walk *walk, const foreloop_instruction *instruction) {
    walk->gathered_count = 0;
    walk->mark++;
    for (size_t i = 0; i < instruction->inputs.count; i++) {
        size_t loop = input_loop(walk, instruction, i);
        if (loop == FORELOOP_WALK_NONE || walk->loops[loop].mark == walk->mark)
            continue;
        if (walk->gathered_count > 0 && walk->loops[loop].block != walk->loops[walk->gathered[0]].block)
            continue;
        walk->loops[loop].mark = walk->mark;
        FORELOOP_TRY(foreloop_reserve(walk->allocator, &walk->gathered, &walk->gathered_capacity, walk->gathered_count,
                                      walk->gathered_count + 1, sizeof *walk->gathered, walk->error));
        walk->gathered[walk->gathered_count++] = loop;
    }
    return FORELOOP_OK;
}

static foreloop_status bind_output(foreloop_walk *walk, const foreloop_instruction *instruction, size_t index,
                                   foreloop_binding binding) {
    const foreloop_value *name = item(&instruction->outputs, index);
    if (name->type != FORELOOP_VALUE_TEXT)
        return FORELOOP_OK;
    foreloop_binding *place = foreloop_walk_bind(walk, VARIABLES, name->text, name->count);
    if (!place)
        return foreloop_fail_memory(walk->error, 1, sizeof *place, "the variables of a trace");
    *place = binding;
    return FORELOOP_OK;
}

static foreloop_status bind_number(foreloop_walk *walk, const foreloop_instruction *instruction, size_t index,
                                   foreloop_variable_type type, bool known, double number) {
    return bind_output(walk, instruction, index,
                       (foreloop_binding){.type = type, .known = known && isfinite(number), .number = number});
}

static foreloop_status bind_new_loops(foreloop_walk *walk, const foreloop_instruction *instruction, size_t block,
                                      size_t first_output, size_t *first_loop) {
    *first_loop = walk->loop_count;
    for (size_t i = first_output; i < instruction->outputs.count; i++) {
        size_t loop;
        FORELOOP_TRY(foreloop_walk_new_loop(walk, block, &loop));
        FORELOOP_TRY(
            bind_output(walk, instruction, i, (foreloop_binding){.type = FORELOOP_VARIABLE_LOOP, .index = loop}));
    }
    return FORELOOP_OK;
}

static foreloop_status bind_new_blocks(foreloop_walk *walk, const foreloop_instruction *instruction,
                                       foreloop_block_origin origin, size_t base) {
    for (size_t i = 0; i < instruction->outputs.count; i++) {
        size_t block;
        FORELOOP_TRY(foreloop_walk_new_block(walk, origin, base, &block));
        FORELOOP_TRY(
            bind_output(walk, instruction, i, (foreloop_binding){.type = FORELOOP_VARIABLE_BLOCK, .index = block}));
    }
    return FORELOOP_OK;
}

static void add_attributes(foreloop_walk *walk, const foreloop_instruction *instruction, const kind_info *info) {
    for (size_t i = 0; i < MAX_ATTRIBUTES; i++) {
        const foreloop_value *value = item(&instruction->attrs, i);
        const char *name = info->attributes[i];
        if (name && name[0] == '#' && value->type == FORELOOP_VALUE_NUMBER)
            foreloop_walk_add_number(walk, name + 1, value->number);
        else if (name && name[0] == '$' && value->type == FORELOOP_VALUE_TEXT)
            foreloop_walk_add_text(walk, name + 1, value->text);
    }
}

/* The first numbers of an array, under names[LISTED]. */
static void add_listed(foreloop_walk *walk, const foreloop_value *array, const char *const *names) {
    for (size_t i = 0; i < LISTED; i++)
        if (item(array, i)->type == FORELOOP_VALUE_NUMBER)
            foreloop_walk_add_number(walk, names[i], item(array, i)->number);
}

/* ---- Look-ups and samples: emit nothing -------------------------------------------------------------------------- */

static foreloop_status on_get_block(foreloop_walk *walk, const foreloop_instruction *instruction,
                                    const kind_info *info) {
    (void)info;
    const foreloop_value *name = item(&instruction->attrs, 0), *function = item(&instruction->attrs, 1);
    foreloop_binding binding = {.type = FORELOOP_VARIABLE_NONE};
    foreloop_block_origin origin = is_text(name, "root") ? FORELOOP_BLOCK_ROOT : FORELOOP_BLOCK_NAMED;
    if (name->type != FORELOOP_VALUE_TEXT) {
        FORELOOP_TRY(foreloop_walk_new_block(walk, FORELOOP_BLOCK_OTHER, FORELOOP_WALK_NONE, &binding.index));
    } else {
        /* One block however often it is looked up: names are unique within a function. */
        size_t suffix = function->type == FORELOOP_VALUE_TEXT ? function->count : 0;
        char *key = foreloop_arena_allocate(walk->arena, name->count + 1 + suffix, 1);
        if (!key)
            return foreloop_fail_memory(walk->error, name->count + 1 + suffix, 1, "a block's name");
        memcpy(key, name->text, name->count);
        key[name->count] = '\0';
        if (suffix > 0)
            memcpy(key + name->count + 1, function->text, suffix);
        foreloop_binding *known = foreloop_walk_bind(walk, BLOCKS, key, name->count + 1 + suffix);
        if (!known)
            return foreloop_fail_memory(walk->error, 1, sizeof *known, "the blocks of a trace");
        if (known->type == FORELOOP_VARIABLE_NONE) {
            FORELOOP_TRY(foreloop_walk_new_block(walk, origin, FORELOOP_WALK_NONE, &known->index));
            known->type = FORELOOP_VARIABLE_BLOCK;
        }
        binding.index = known->index;
    }
    binding.type = FORELOOP_VARIABLE_BLOCK;
    return bind_output(walk, instruction, 0, binding);
}

static foreloop_status on_get_loops(foreloop_walk *walk, const foreloop_instruction *instruction,
                                    const kind_info *info) {
    (void)info;
    size_t block = input_block(walk, instruction, 0), count = instruction->outputs.count, first;
    if (block == FORELOOP_WALK_NONE)
        FORELOOP_TRY(foreloop_walk_new_block(walk, FORELOOP_BLOCK_OTHER, FORELOOP_WALK_NONE, &block));
    foreloop_block *b = &walk->blocks[block];
    /* How many of these loops are known already, from the outermost: the same nest looked up again, or the loops
     * around the place where the block was put. */
    const size_t *known = b->nest;
    size_t shared = 0;
    if (b->nest_count > 0) {
        shared = b->nest_count == count ? count : 0;
    } else if (b->at_block != FORELOOP_WALK_NONE && walk->blocks[b->at_block].nest_count > b->at_depth &&
               count > b->at_depth) {
        known = walk->blocks[b->at_block].nest;
        shared = b->at_depth + 1;
    }
    bool axes = shared == 0 && b->nest_count == 0 && b->axis_count == 0;
    for (size_t i = 0; i < shared; i++)
        FORELOOP_TRY(
            bind_output(walk, instruction, i, (foreloop_binding){.type = FORELOOP_VARIABLE_LOOP, .index = known[i]}));
    if (shared == count)
        return FORELOOP_OK;
    FORELOOP_TRY(bind_new_loops(walk, instruction, block, shared, &first));
    if (axes) {
        b->first_axis = first;
        b->axis_count = count;
        for (size_t i = 0; i < count; i++)
            walk->loops[first + i].whole = true;
    }
    b->nest_count = 0;
    for (size_t i = 0; i < shared; i++)
        FORELOOP_TRY(foreloop_walk_insert(walk, block, i, known[i], 1));
    return foreloop_walk_insert(walk, block, shared, first, count - shared);
}

static foreloop_status on_get_blocks(foreloop_walk *walk, const foreloop_instruction *instruction,
                                     const kind_info *info) {
    (void)info;
    return bind_new_blocks(walk, instruction, FORELOOP_BLOCK_OTHER, FORELOOP_WALK_NONE);
}

/* Producers or consumers; the block that RFactor or CacheWrite has made is told by being the only one. */
static foreloop_status get_neighbours(foreloop_walk *walk, const foreloop_instruction *instruction,
                                      foreloop_block_origin origin, size_t made) {
    if (made != FORELOOP_WALK_NONE && instruction->outputs.count == 1)
        return bind_output(walk, instruction, 0, (foreloop_binding){.type = FORELOOP_VARIABLE_BLOCK, .index = made});
    return bind_new_blocks(walk, instruction, origin, input_block(walk, instruction, 0));
}

static foreloop_status on_get_producers(foreloop_walk *walk, const foreloop_instruction *instruction,
                                        const kind_info *info) {
    (void)info;
    size_t block = input_block(walk, instruction, 0);
    return get_neighbours(walk, instruction, FORELOOP_BLOCK_PRODUCER,
                          block == FORELOOP_WALK_NONE ? block : walk->blocks[block].rfactor);
}

static foreloop_status on_get_consumers(foreloop_walk *walk, const foreloop_instruction *instruction,
                                        const kind_info *info) {
    (void)info;
    size_t block = input_block(walk, instruction, 0);
    return get_neighbours(walk, instruction, FORELOOP_BLOCK_CONSUMER,
                          block == FORELOOP_WALK_NONE ? block : walk->blocks[block].cache);
}

static foreloop_status on_sample_tile(foreloop_walk *walk, const foreloop_instruction *instruction,
                                      const kind_info *info) {
    (void)info;
    const foreloop_value *decision = instruction->decision;
    size_t count = instruction->outputs.count, loop = input_loop(walk, instruction, 0);
    bool known = decision && decision->type == FORELOOP_VALUE_ARRAY && decision->count == count && count > 0;
    double extent = 1;
    for (size_t i = 0; known && i < count; i++) {
        const foreloop_value *factor = &decision->items[i];
        known = factor->type == FORELOOP_VALUE_NUMBER && factor->number >= 1 && factor->number == floor(factor->number);
        extent *= factor->number;
    }
    for (size_t i = 0; i < count; i++)
        FORELOOP_TRY(
            bind_number(walk, instruction, i, FORELOOP_VARIABLE_NUMBER, known, known ? decision->items[i].number : 0));
    if (known && isfinite(extent) && loop != FORELOOP_WALK_NONE && walk->loops[loop].extent == 0)
        walk->loops[loop].extent = extent;
    return FORELOOP_OK;
}

static foreloop_status on_sample_categorical(foreloop_walk *walk, const foreloop_instruction *instruction,
                                             const kind_info *info) {
    (void)info;
    const foreloop_value *candidates = item(&instruction->attrs, 0), *decision = instruction->decision;
    bool known = decision && decision->type == FORELOOP_VALUE_NUMBER && candidates->type == FORELOOP_VALUE_ARRAY &&
                 decision->number >= 0 && decision->number < (double)candidates->count;
    double number = 0;
    if (known) {
        const foreloop_value *chosen = &candidates->items[(size_t)decision->number];
        known = chosen->type == FORELOOP_VALUE_NUMBER;
        number = chosen->number;
    }
    return bind_number(walk, instruction, 0, FORELOOP_VARIABLE_NUMBER, known, number);
}

static foreloop_status on_sample_location(foreloop_walk *walk, const foreloop_instruction *instruction,
                                          const kind_info *info) {
    (void)info;
    const foreloop_value *decision = instruction->decision;
    bool known = decision && decision->type == FORELOOP_VALUE_NUMBER && decision->number >= -2 &&
                 decision->number == floor(decision->number);
    return bind_number(walk, instruction, 0, FORELOOP_VARIABLE_LOCATION, known, known ? decision->number : 0);
}

/* ---- Loops ------------------------------------------------------------------------------------------------------- */

static const char *const FACTOR_NAMES[LISTED] = {"factor_0", "factor_1", "factor_2",
                                                 "factor_3", "factor_4", "factor_5"};

/* The action's kind: which axis is split is part of it, so that a model can tell axes apart. */
static const char *split_kind(const foreloop_loop *loop) {
    static const char *const spatial[] = {"split_s0", "split_s1", "split_s2", "split_s3", "split_s4", "split_s5"};
    static const char *const reduction[] = {"split_r0", "split_r1", "split_r2", "split_r3"};
    if (!loop || !loop->whole || loop->axis < 0 || loop->kind == FORELOOP_LOOP_UNKNOWN)
        return "split";
    return loop->kind == FORELOOP_LOOP_SPATIAL ? spatial[loop->axis < 5 ? loop->axis : 5]
                                               : reduction[loop->axis < 3 ? loop->axis : 3];
}

/* The tile level of a part: the place of the structure's letter for this part of an axis of this class. */
static int part_level(const foreloop_walk *walk, const foreloop_loop *loop, size_t part) {
    if (!loop->whole)
        return loop->level;
    const char *structure = walk->blocks[loop->block].structure;
    char letter = loop->kind == FORELOOP_LOOP_SPATIAL ? 'S' : 'R';
    if (!structure || loop->kind == FORELOOP_LOOP_UNKNOWN)
        return part < FORELOOP_WALK_MAX_NEST ? (int)part : -1;
    for (size_t i = 0, seen = 0; structure[i] && i < FORELOOP_WALK_MAX_NEST; i++)
        if (structure[i] == letter && seen++ == part)
            return (int)i;
    return -1;
}

/* Factors of a split from the outermost; 0 for those unknown. In the arena. */
typedef struct split_factors {
    double *values;
    size_t count;
    double product; /* of all, 0: one is unknown */
} split_factors;

/* The one factor that is None follows from the others when the extent is known. */
static foreloop_status read_factors(foreloop_walk *walk, const foreloop_instruction *instruction, double extent,
                                    split_factors *factors) {
    const foreloop_value *given = &instruction->inputs;
    size_t first = 1, missing = 0, unknown = 0, open = 0;
    if (given->count == 2 && given->items[1].type == FORELOOP_VALUE_ARRAY) {
        given = &given->items[1];
        first = 0;
    }
    factors->count = given->count > first ? given->count - first : 0;
    factors->values = foreloop_arena_allocate(walk->arena, factors->count, sizeof *factors->values);
    if (!factors->values)
        return foreloop_fail_memory(walk->error, factors->count, sizeof *factors->values, "the factors of a split");
    double known = 1;
    for (size_t i = 0; i < factors->count; i++) {
        const foreloop_value *value = &given->items[first + i];
        double number = 0;
        if (input_number(walk, value, &number) && number >= 1) {
            known *= number;
        } else {
            number = 0;
            unknown++;
            if (value->type == FORELOOP_VALUE_NULL || is_text(value, "None")) {
                missing++;
                open = i;
            }
        }
        factors->values[i] = number;
    }
    if (unknown == 1 && missing == 1 && extent > 0) {
        factors->values[open] = ceil(extent / known);
        known *= factors->values[open];
        unknown = 0;
    }
    factors->product = unknown == 0 && factors->count > 0 && isfinite(known) ? known : 0;
    return FORELOOP_OK;
}

static void add_factors(foreloop_walk *walk, const split_factors *factors) {
    foreloop_walk_add_number(walk, "parts", (double)factors->count);
    for (size_t i = 0; i < factors->count && i < LISTED; i++)
        foreloop_walk_add_extent(walk, FACTOR_NAMES[i], factors->values[i]);
}

/* The loop of an input; one of a block of its own when the trace has not said where it is from. */
static foreloop_status loop_or_new(foreloop_walk *walk, const foreloop_instruction *instruction, size_t input,
                                   size_t *loop) {
    *loop = input_loop(walk, instruction, input);
    if (*loop != FORELOOP_WALK_NONE)
        return FORELOOP_OK;
    size_t block;
    FORELOOP_TRY(foreloop_walk_new_block(walk, FORELOOP_BLOCK_OTHER, FORELOOP_WALK_NONE, &block));
    return foreloop_walk_new_loop(walk, block, loop);
}

static foreloop_status on_split(foreloop_walk *walk, const foreloop_instruction *instruction, const kind_info *info) {
    size_t index, first;
    split_factors factors;
    FORELOOP_TRY(loop_or_new(walk, instruction, 0, &index));
    FORELOOP_TRY(read_factors(walk, instruction, walk->loops[index].extent, &factors));
    foreloop_loop *loop = &walk->loops[index];
    if (loop->extent == 0)
        loop->extent = factors.product;
    loop->parts = factors.count;
    double inner = factors.count > 0 ? 1 : 0;
    for (size_t i = 1; i < factors.count; i++)
        inner *= factors.values[i];
    foreloop_walk_add_extent(walk, "extent", loop->extent);
    add_factors(walk, &factors);
    foreloop_walk_add_extent(walk, "inner", inner);
    foreloop_walk_add_extent(walk, "innermost", factors.count > 0 ? factors.values[factors.count - 1] : 0);
    const char *kind = split_kind(loop);
    if (strcmp(kind, info->action) == 0)
        foreloop_walk_add_class(walk, loop->kind);

    foreloop_loop whole = *loop;
    size_t depth = foreloop_walk_depth(walk, index);
    FORELOOP_TRY(bind_new_loops(walk, instruction, whole.block, 0, &first));
    for (size_t i = 0; first + i < walk->loop_count; i++) {
        foreloop_loop *part = &walk->loops[first + i];
        part->parent = index;
        part->kind = whole.kind;
        part->axis = whole.axis;
        part->level = part_level(walk, &whole, i);
        part->extent = i < factors.count ? factors.values[i] : 0;
    }
    if (depth != FORELOOP_WALK_NONE)
        FORELOOP_TRY(foreloop_walk_replace(walk, whole.block, depth, first, walk->loop_count - first));
    return foreloop_walk_emit(walk, kind);
}

/* The order of the block's loops is no longer known. */
static void forget_nest(foreloop_walk *walk, size_t loop) {
    walk->blocks[walk->loops[loop].block].nest_count = 0;
}

/* Loops that run one after another, not inside each other: each has its own part of the range. */
static foreloop_status on_partition(foreloop_walk *walk, const foreloop_instruction *instruction,
                                    const kind_info *info) {
    size_t index, first;
    split_factors factors;
    FORELOOP_TRY(loop_or_new(walk, instruction, 0, &index));
    FORELOOP_TRY(read_factors(walk, instruction, 0, &factors));
    foreloop_walk_add_extent(walk, "extent", walk->loops[index].extent);
    foreloop_walk_add_class(walk, walk->loops[index].kind);
    add_factors(walk, &factors);
    forget_nest(walk, index);
    FORELOOP_TRY(bind_new_loops(walk, instruction, walk->loops[index].block, 0, &first));
    for (size_t i = 0; first + i < walk->loop_count; i++) {
        walk->loops[first + i].parent = index;
        walk->loops[first + i].kind = walk->loops[index].kind;
        walk->loops[first + i].extent = i < factors.count ? factors.values[i] : 0;
    }
    return foreloop_walk_emit(walk, info->action);
}

/* What the gathered loops have in common when they become one. Loops of extent 1 have no say in the class. */
static foreloop_loop fused_loop(const foreloop_walk *walk) {
    const foreloop_loop *last = &walk->loops[walk->gathered[walk->gathered_count - 1]];
    foreloop_loop fused = *last;
    bool classed = false;
    for (size_t i = 0; i + 1 < walk->gathered_count; i++) {
        const foreloop_loop *loop = &walk->loops[walk->gathered[i]];
        fused.extent *= loop->extent;
        fused.whole = fused.whole && loop->whole;
        if (loop->level != fused.level)
            fused.level = -1;
    }
    for (size_t i = 0; i < walk->gathered_count; i++) {
        const foreloop_loop *loop = &walk->loops[walk->gathered[i]];
        if (loop->extent == 1)
            continue;
        fused.kind = classed && loop->kind != fused.kind ? FORELOOP_LOOP_UNKNOWN : loop->kind;
        classed = true;
        if (fused.kind == FORELOOP_LOOP_UNKNOWN)
            break;
    }
    if (!isfinite(fused.extent))
        fused.extent = 0;
    if (walk->gathered_count > 1 && (!fused.whole || fused.kind == FORELOOP_LOOP_UNKNOWN))
        fused.axis = -1;
    fused.parent = FORELOOP_WALK_NONE;
    fused.parts = 0;
    return fused;
}

/* The loops of the nest that are marked: the first becomes `loop`, the others go. */
static void fuse_in_nest(foreloop_walk *walk, size_t block_index, size_t loop) {
    foreloop_block *block = &walk->blocks[block_index];
    size_t kept = 0;
    bool placed = false;
    for (size_t i = 0; i < block->nest_count; i++) {
        bool marked = walk->loops[block->nest[i]].mark == walk->mark;
        if (!marked)
            block->nest[kept++] = block->nest[i];
        else if (!placed)
            block->nest[kept++] = loop;
        placed = placed || marked;
    }
    block->nest_count = kept;
}

static foreloop_status on_fuse(foreloop_walk *walk, const foreloop_instruction *instruction, const kind_info *info) {
    size_t first;
    FORELOOP_TRY(gather_loops(walk, instruction));
    foreloop_walk_add_number(walk, "loops", (double)instruction->inputs.count);
    if (walk->gathered_count == 0 || walk->gathered_count != instruction->inputs.count) {
        /* Some inputs are unknown: so is the result. */
        size_t block;
        FORELOOP_TRY(foreloop_walk_new_block(walk, FORELOOP_BLOCK_OTHER, FORELOOP_WALK_NONE, &block));
        FORELOOP_TRY(bind_new_loops(walk, instruction, block, 0, &first));
        return foreloop_walk_emit(walk, info->action);
    }
    foreloop_loop fused = fused_loop(walk);
    fused.fused_first = walk->fused_count;
    fused.fused_count = walk->gathered_count;
    fused.mark = 0;
    FORELOOP_TRY(foreloop_reserve(walk->allocator, &walk->fused, &walk->fused_capacity, walk->fused_count,
                                  walk->fused_count + walk->gathered_count, sizeof *walk->fused, walk->error));
    memcpy(walk->fused + walk->fused_count, walk->gathered, walk->gathered_count * sizeof *walk->fused);
    walk->fused_count += walk->gathered_count;
    foreloop_walk_add_extent(walk, "extent", fused.extent);
    foreloop_walk_add_class(walk, fused.kind);
    FORELOOP_TRY(bind_new_loops(walk, instruction, fused.block, 0, &first));
    if (first < walk->loop_count) {
        walk->loops[first] = fused;
        fuse_in_nest(walk, fused.block, first);
    }
    return foreloop_walk_emit(walk, info->action);
}

/* Loops of one nest, or of several that are joined: what comes out is new. */
static foreloop_status on_merge(foreloop_walk *walk, const foreloop_instruction *instruction, const kind_info *info) {
    size_t index, first;
    foreloop_walk_add_number(walk, "loops", (double)instruction->inputs.count);
    FORELOOP_TRY(loop_or_new(walk, instruction, 0, &index));
    foreloop_walk_add_extent(walk, "extent", walk->loops[index].extent);
    forget_nest(walk, index);
    FORELOOP_TRY(bind_new_loops(walk, instruction, walk->loops[index].block, 0, &first));
    return foreloop_walk_emit(walk, info->action);
}

static foreloop_status on_reorder(foreloop_walk *walk, const foreloop_instruction *instruction, const kind_info *info) {
    FORELOOP_TRY(gather_loops(walk, instruction));
    foreloop_walk_add_number(walk, "loops", (double)instruction->inputs.count);
    if (walk->gathered_count > 0) {
        /* The loops named fill the places that they have among themselves, in the order named. */
        size_t block_index = walk->loops[walk->gathered[0]].block, next = 0;
        foreloop_block *block = &walk->blocks[block_index];
        size_t present = 0;
        for (size_t i = 0; i < block->nest_count; i++)
            present += walk->loops[block->nest[i]].mark == walk->mark;
        if (present != walk->gathered_count)
            block->nest_count = 0;
        for (size_t i = 0; i < block->nest_count; i++)
            if (walk->loops[block->nest[i]].mark == walk->mark)
                block->nest[i] = walk->gathered[next++];
        foreloop_walk_add_nest(walk, block_index);
        foreloop_walk_add_block(walk, block_index);
    }
    return foreloop_walk_emit(walk, info->action);
}

/* A loop of one iteration around a loop or a block. */
static foreloop_status on_add_unit_loop(foreloop_walk *walk, const foreloop_instruction *instruction,
                                        const kind_info *info) {
    foreloop_binding target = variable(walk, item(&instruction->inputs, 0));
    size_t block = FORELOOP_WALK_NONE, depth = FORELOOP_WALK_NONE, first;
    if (target.type == FORELOOP_VARIABLE_LOOP) {
        block = walk->loops[target.index].block;
        depth = foreloop_walk_depth(walk, target.index);
    } else if (target.type == FORELOOP_VARIABLE_BLOCK) {
        block = target.index;
        depth = walk->blocks[block].nest_count > 0 ? walk->blocks[block].nest_count : FORELOOP_WALK_NONE;
    } else {
        FORELOOP_TRY(foreloop_walk_new_block(walk, FORELOOP_BLOCK_OTHER, FORELOOP_WALK_NONE, &block));
    }
    FORELOOP_TRY(bind_new_loops(walk, instruction, block, 0, &first));
    for (size_t i = first; i < walk->loop_count; i++)
        walk->loops[i].extent = 1;
    if (depth != FORELOOP_WALK_NONE && first < walk->loop_count)
        FORELOOP_TRY(foreloop_walk_insert(walk, block, depth, first, 1));
    foreloop_walk_add_block(walk, block);
    return foreloop_walk_emit(walk, info->action);
}

static void add_loop(foreloop_walk *walk, size_t loop) {
    if (loop == FORELOOP_WALK_NONE)
        return;
    foreloop_walk_add_extent(walk, "extent", walk->loops[loop].extent);
    foreloop_walk_add_class(walk, walk->loops[loop].kind);
}

/* Parallel, Vectorize, Unroll, Bind. */
static foreloop_status on_loop(foreloop_walk *walk, const foreloop_instruction *instruction, const kind_info *info) {
    add_loop(walk, input_loop(walk, instruction, 0));
    add_attributes(walk, instruction, info);
    return foreloop_walk_emit(walk, info->action);
}

/* ---- Blocks ------------------------------------------------------------------------------------------------------ */

/* Any action on a block that needs no more than its attributes. Blocks that come out are of no special sort. */
static foreloop_status on_block(foreloop_walk *walk, const foreloop_instruction *instruction, const kind_info *info) {
    size_t block = input_block(walk, instruction, 0);
    foreloop_walk_add_block(walk, block);
    add_attributes(walk, instruction, info);
    FORELOOP_TRY(bind_new_blocks(walk, instruction, FORELOOP_BLOCK_OTHER, block));
    return foreloop_walk_emit(walk, info->action);
}

static foreloop_status on_cache(foreloop_walk *walk, const foreloop_instruction *instruction, const kind_info *info) {
    size_t block = input_block(walk, instruction, 0), made = walk->block_count;
    foreloop_walk_add_block(walk, block);
    add_attributes(walk, instruction, info);
    FORELOOP_TRY(bind_new_blocks(walk, instruction, FORELOOP_BLOCK_CACHE, block));
    if (block != FORELOOP_WALK_NONE && made < walk->block_count && strcmp(info->action, "cache_write") == 0)
        walk->blocks[block].cache = made;
    return foreloop_walk_emit(walk, info->action);
}

/* Where a block goes: a loop of the trace, or a sampled place, which counts the loops around its consumers. Those are
 * taken to be the tiled block's when there is just one. */
static void add_target(foreloop_walk *walk, size_t block, foreloop_binding target) {
    size_t at = FORELOOP_WALK_NONE, depth = FORELOOP_WALK_NONE;
    if (target.type == FORELOOP_VARIABLE_LOOP) {
        at = walk->loops[target.index].block;
        depth = foreloop_walk_depth(walk, target.index);
    } else if (target.type == FORELOOP_VARIABLE_LOCATION && target.known) {
        at = walk->tiled_block;
        if (target.number >= 0 && at < walk->block_count && at != block &&
            target.number < (double)walk->blocks[at].nest_count)
            depth = (size_t)target.number;
        else
            foreloop_walk_add_number(walk, "location", target.number);
    }
    if (depth == FORELOOP_WALK_NONE)
        return;
    foreloop_walk_add_location(walk, at, depth);
    if (block != FORELOOP_WALK_NONE && block != at) {
        walk->blocks[block].at_block = at;
        walk->blocks[block].at_depth = depth;
        walk->blocks[block].nest_count = 0;
    }
}

static foreloop_status on_compute_at(foreloop_walk *walk, const foreloop_instruction *instruction,
                                     const kind_info *info) {
    size_t block = input_block(walk, instruction, 0);
    foreloop_walk_add_block(walk, block);
    add_target(walk, block, variable(walk, item(&instruction->inputs, 1)));
    return foreloop_walk_emit(walk, info->action);
}

/* ReadAt and WriteAt: a cache of a block's buffer at a loop. */
static foreloop_status on_access_at(foreloop_walk *walk, const foreloop_instruction *instruction,
                                    const kind_info *info) {
    size_t block = input_block(walk, instruction, 1);
    foreloop_walk_add_block(walk, block);
    add_target(walk, FORELOOP_WALK_NONE, variable(walk, item(&instruction->inputs, 0)));
    add_attributes(walk, instruction, info);
    FORELOOP_TRY(bind_new_blocks(walk, instruction, FORELOOP_BLOCK_CACHE, block));
    return foreloop_walk_emit(walk, info->action);
}

/* DecomposeReduction and DecomposePadding: the block that comes out is put before a loop. */
static foreloop_status on_decompose(foreloop_walk *walk, const foreloop_instruction *instruction,
                                    const kind_info *info) {
    size_t block = input_block(walk, instruction, 0);
    foreloop_walk_add_block(walk, block);
    add_target(walk, FORELOOP_WALK_NONE, variable(walk, item(&instruction->inputs, 1)));
    FORELOOP_TRY(bind_new_blocks(walk, instruction, FORELOOP_BLOCK_OTHER, block));
    return foreloop_walk_emit(walk, info->action);
}

/* The loops that the reduction had go to the new block; the old one only sums up what that leaves. */
static foreloop_status on_rfactor(foreloop_walk *walk, const foreloop_instruction *instruction, const kind_info *info) {
    size_t index = input_loop(walk, instruction, 0), made = walk->block_count;
    if (index == FORELOOP_WALK_NONE) {
        add_attributes(walk, instruction, info);
        FORELOOP_TRY(bind_new_blocks(walk, instruction, FORELOOP_BLOCK_RFACTOR, FORELOOP_WALK_NONE));
        return foreloop_walk_emit(walk, info->action);
    }
    foreloop_loop *loop = &walk->loops[index];
    size_t old = loop->block;
    loop->kind = FORELOOP_LOOP_REDUCTION;
    walk->blocks[old].rfactored = true;
    foreloop_walk_add_block(walk, old);
    foreloop_walk_add_extent(walk, "extent", loop->extent);
    if (loop->level >= 0)
        foreloop_walk_add_number(walk, "part", loop->level);
    if (loop->parent != FORELOOP_WALK_NONE && loop->extent > 0)
        foreloop_walk_add_extent(walk, "rest", walk->loops[loop->parent].extent / loop->extent);
    add_attributes(walk, instruction, info);
    FORELOOP_TRY(bind_new_blocks(walk, instruction, FORELOOP_BLOCK_RFACTOR, old));
    if (made < walk->block_count) {
        foreloop_block *from = &walk->blocks[old], *to = &walk->blocks[made];
        from->rfactor = made;
        to->nest = from->nest;
        to->nest_count = from->nest_count;
        to->nest_capacity = from->nest_capacity;
        for (size_t i = 0; i < to->nest_count; i++)
            walk->loops[to->nest[i]].block = made;
        from->nest = NULL;
        from->nest_count = from->nest_capacity = 0;
    }
    return foreloop_walk_emit(walk, info->action);
}

/* Blockize and Tensorize: a block, or a loop with all that is inside. */
static foreloop_status on_subtree(foreloop_walk *walk, const foreloop_instruction *instruction, const kind_info *info) {
    foreloop_binding target = variable(walk, item(&instruction->inputs, 0));
    size_t block = FORELOOP_WALK_NONE;
    if (target.type == FORELOOP_VARIABLE_LOOP)
        block = walk->loops[target.index].block;
    else if (target.type == FORELOOP_VARIABLE_BLOCK)
        block = target.index;
    foreloop_walk_add_block(walk, block);
    add_target(walk, FORELOOP_WALK_NONE, target);
    add_attributes(walk, instruction, info);
    FORELOOP_TRY(bind_new_blocks(walk, instruction, FORELOOP_BLOCK_OTHER, block));
    return foreloop_walk_emit(walk, info->action);
}

static foreloop_status on_pad_einsum(foreloop_walk *walk, const foreloop_instruction *instruction,
                                     const kind_info *info) {
    static const char *const names[LISTED] = {"padding_0", "padding_1", "padding_2",
                                              "padding_3", "padding_4", "padding_5"};
    add_listed(walk, item(&instruction->attrs, 0), names);
    return on_block(walk, instruction, info);
}

static foreloop_status on_reorder_block_iter_var(foreloop_walk *walk, const foreloop_instruction *instruction,
                                                 const kind_info *info) {
    const foreloop_value *order = item(&instruction->inputs, 1);
    size_t moved = 0;
    if (order->type == FORELOOP_VALUE_ARRAY) {
        for (size_t i = 0; i < order->count; i++)
            moved += order->items[i].type != FORELOOP_VALUE_NUMBER || order->items[i].number != (double)i;
        foreloop_walk_add_number(walk, "axes", (double)order->count);
        foreloop_walk_add_number(walk, "moved", (double)moved);
    }
    return on_block(walk, instruction, info);
}

static foreloop_status on_annotate_buffer_access(foreloop_walk *walk, const foreloop_instruction *instruction,
                                                 const kind_info *info) {
    double number;
    if (input_number(walk, item(&instruction->inputs, 1), &number))
        foreloop_walk_add_number(walk, "buffer", number);
    if (input_number(walk, item(&instruction->inputs, 2), &number))
        foreloop_walk_add_number(walk, "write", number);
    return on_block(walk, instruction, info);
}

static foreloop_status on_set_axis_separator(foreloop_walk *walk, const foreloop_instruction *instruction,
                                             const kind_info *info) {
    static const char *const names[LISTED] = {"separator_0", "separator_1", "separator_2",
                                              "separator_3", "separator_4", "separator_5"};
    /* An attribute in some versions of TVM, an input in others. */
    const foreloop_value *separators = item(&instruction->attrs, 2);
    add_listed(walk, separators->type == FORELOOP_VALUE_ARRAY ? separators : item(&instruction->inputs, 1), names);
    return on_block(walk, instruction, info);
}

static foreloop_status on_hide_buffer_access(foreloop_walk *walk, const foreloop_instruction *instruction,
                                             const kind_info *info) {
    const foreloop_value *type = item(&instruction->inputs, 1), *buffers = item(&instruction->inputs, 2);
    const char *text = NULL;
    if (is_quoted(type))
        FORELOOP_TRY(unquote(walk, type, &text));
    foreloop_walk_add_text(walk, "access", text);
    if (buffers->type == FORELOOP_VALUE_ARRAY)
        foreloop_walk_add_number(walk, "buffers", (double)buffers->count);
    return on_block(walk, instruction, info);
}

/* ---- Annotations ------------------------------------------------------------------------------------------------- */

/* A list of numbers as text, "0,0,1"; NULL when it holds something else or is long. */
static foreloop_status join_numbers(foreloop_walk *walk, const foreloop_value *list, const char **text) {
    enum { MAX_JOINED = 64 };
    *text = NULL;
    if (list->type != FORELOOP_VALUE_ARRAY || list->count > MAX_JOINED)
        return FORELOOP_OK;
    char *joined = foreloop_arena_allocate(walk->arena, list->count * (FORELOOP_NUMBER_TEXT_SIZE + 1) + 1, 1);
    if (!joined)
        return foreloop_fail_memory(walk->error, list->count, FORELOOP_NUMBER_TEXT_SIZE, "the value of an annotation");
    size_t length = 0;
    for (size_t i = 0; i < list->count; i++) {
        double number;
        if (!input_number(walk, &list->items[i], &number))
            return FORELOOP_OK;
        if (i > 0)
            joined[length++] = ',';
        length += foreloop_format_double(number, joined + length);
    }
    joined[length] = '\0';
    *text = joined;
    return FORELOOP_OK;
}

/* Annotations that steer the post-processing have kinds of their own: they decide the speed. */
static const char *annotation_kind(const foreloop_value *key) {
    static const struct {
        const char *key, *action;
    } known[] = {
        {"meta_schedule.parallel", "annotate_parallel"},       {"meta_schedule.vectorize", "annotate_vectorize"},
        {"meta_schedule.unroll_explicit", "annotate_unroll"},  {"meta_schedule.unroll_implicit", "annotate_unroll"},
        {"meta_schedule.tiling_structure", "annotate_tiling"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (is_text(key, known[i].key))
            return known[i].action;
    return NULL;
}

/* `key`, and the block or loop that it is on. */
static void add_annotated(foreloop_walk *walk, foreloop_binding target, const foreloop_value *key) {
    if (key->type == FORELOOP_VALUE_TEXT)
        foreloop_walk_add_text(walk, "key", key->text);
    if (target.type == FORELOOP_VARIABLE_BLOCK)
        foreloop_walk_add_block(walk, target.index);
    else if (target.type == FORELOOP_VARIABLE_LOOP)
        add_loop(walk, target.index);
}

static foreloop_status on_annotate(foreloop_walk *walk, const foreloop_instruction *instruction,
                                   const kind_info *info) {
    const foreloop_value *key = item(&instruction->attrs, 0), *value = item(&instruction->inputs, 1);
    foreloop_binding target = variable(walk, item(&instruction->inputs, 0));
    const char *kind = annotation_kind(key), *text = NULL;
    double number;
    if (is_quoted(value))
        FORELOOP_TRY(unquote(walk, value, &text));
    else
        FORELOOP_TRY(join_numbers(walk, value, &text));
    if (kind && strcmp(kind, "annotate_tiling") == 0) {
        foreloop_walk_add_text(walk, "structure", text);
        if (text && target.type == FORELOOP_VARIABLE_BLOCK)
            walk->blocks[target.index].structure = text;
        return foreloop_walk_emit(walk, kind);
    }
    if (!kind)
        add_annotated(walk, target, key);
    else if (strcmp(kind, "annotate_unroll") == 0)
        foreloop_walk_add_number(walk, "explicit", is_text(key, "meta_schedule.unroll_explicit"));
    if (input_number(walk, value, &number))
        foreloop_walk_add_number(walk, "value", number);
    else if (!kind)
        foreloop_walk_add_text(walk, "value_text", text);
    return foreloop_walk_emit(walk, kind ? kind : info->action);
}

static foreloop_status on_unannotate(foreloop_walk *walk, const foreloop_instruction *instruction,
                                     const kind_info *info) {
    add_annotated(walk, variable(walk, item(&instruction->inputs, 0)), item(&instruction->attrs, 0));
    return foreloop_walk_emit(walk, info->action);
}

/* ---- All kinds --------------------------------------------------------------------------------------------------- */

static const char ENTER_POSTPROC[] = "EnterPostproc";

static const kind_info KINDS[] = {
    {"GetSBlock", NULL, on_get_block, {NULL}},
    {"GetBlock", NULL, on_get_block, {NULL}},
    {"GetLoops", NULL, on_get_loops, {NULL}},
    {"GetChildBlocks", NULL, on_get_blocks, {NULL}},
    {"GetOutputBlocks", NULL, on_get_blocks, {NULL}},
    {"GetProducers", NULL, on_get_producers, {NULL}},
    {"GetConsumers", NULL, on_get_consumers, {NULL}},
    {"SamplePerfectTile", NULL, on_sample_tile, {NULL}},
    {"SamplePartitionedTile", NULL, on_sample_tile, {NULL}},
    {"SampleCategorical", NULL, on_sample_categorical, {NULL}},
    {"SampleComputeLocation", NULL, on_sample_location, {NULL}},
    {"Split", "split", on_split, {NULL}},
    {"Annotate", "annotate", on_annotate, {NULL}},
    {"Unannotate", "unannotate", on_unannotate, {NULL}},
    {"Reorder", "reorder", on_reorder, {NULL}},
    {"Fuse", "fuse", on_fuse, {NULL}},
    {"Merge", "merge", on_merge, {NULL}},
    {"LoopPartition", "loop_partition", on_partition, {NULL}},
    {"AddUnitLoop", "add_unit_loop", on_add_unit_loop, {NULL}},
    {"Parallel", "parallel", on_loop, {NULL}},
    {"Vectorize", "vectorize", on_loop, {NULL}},
    {"Unroll", "unroll", on_loop, {NULL}},
    {"Bind", "bind", on_loop, {"$thread"}},
    {"CacheRead", "cache_read", on_cache, {"#buffer", "$scope"}},
    {"CacheWrite", "cache_write", on_cache, {"#buffer", "$scope"}},
    {"CacheInplace", "cache_inplace", on_cache, {"#buffer", "$scope"}},
    {"CacheIndex", "cache_index", on_cache, {"$scope", "#threshold"}},
    {"ReindexCacheRead", "reindex_cache_read", on_cache, {"#buffer", "$scope"}},
    {"ReindexCacheWrite", "reindex_cache_write", on_cache, {"#buffer", "$scope"}},
    {"ReIndex", "reindex", on_cache, {"#buffer", "#write"}},
    {"ReadAt", "read_at", on_access_at, {"#buffer", "$scope"}},
    {"WriteAt", "write_at", on_access_at, {"#buffer", "$scope"}},
    {"ComputeAt", "compute_at", on_compute_at, {NULL}},
    {"ReverseComputeAt", "reverse_compute_at", on_compute_at, {NULL}},
    {"ComputeInline", "compute_inline", on_block, {NULL}},
    {"ReverseComputeInline", "reverse_compute_inline", on_block, {NULL}},
    {"RFactor", "rfactor", on_rfactor, {"#factor_axis"}},
    {"DecomposeReduction", "decompose_reduction", on_decompose, {NULL}},
    {"DecomposePadding", "decompose_padding", on_decompose, {NULL}},
    {"PadEinsum", "pad_einsum", on_pad_einsum, {NULL}},
    {"StorageAlign", "storage_align", on_block, {"#buffer", "#axis", "#factor", "#offset"}},
    {"SetScope", "set_scope", on_block, {"#buffer", "$scope"}},
    {"UnsafeSetDType", "unsafe_set_dtype", on_block, {"#buffer", "$dtype"}},
    {"UnsafeHideBufferAccess", "unsafe_hide_buffer_access", on_hide_buffer_access, {NULL}},
    {"Blockize", "blockize", on_subtree, {NULL}},
    {"Tensorize", "tensorize", on_subtree, {"$intrin"}},
    {"TransformLayout", "transform_layout", on_block, {"#buffer", "#write", NULL, "#injective"}},
    {"TransformBlockLayout", "transform_block_layout", on_block, {NULL}},
    {"SetAxisSeparator", "set_axis_separator", on_set_axis_separator, {"#buffer", "#write"}},
    {"ReorderBlockIterVar", "reorder_block_iter_var", on_reorder_block_iter_var, {NULL}},
    {"RollingBuffer", "rolling_buffer", on_block, {"#buffer"}},
    {"AnnotateBufferAccess", "annotate_buffer_access", on_annotate_buffer_access, {NULL}},
    {"FuseReductionEpilogue", "fuse_reduction_epilogue", on_block, {NULL}},
};

static const kind_info *find_kind(const foreloop_value *kind) {
    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++)
        if (is_text(kind, KINDS[i].name))
            return &KINDS[i];
    return NULL;
}

static foreloop_status walk_instructions(foreloop_walk *walk, const foreloop_instruction *instructions, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const kind_info *info = find_kind(&instructions[i].kind);
        walk->done = i + 1;
        if (info)
            FORELOOP_TRY(info->handle(walk, &instructions[i], info));
    }
    return FORELOOP_OK;
}

foreloop_status foreloop_walk_trace(foreloop_walk *walk, const foreloop_instruction *instructions, size_t count,
                                    bool full_trace, foreloop_arena *arena, foreloop_walk_result *result,
                                    foreloop_error *error) {
    size_t search = count, unknown = 0;
    for (size_t i = 0; i < count; i++) {
        bool enter = is_text(&instructions[i].kind, ENTER_POSTPROC);
        if (enter && search == count)
            search = i;
        unknown += !enter && !find_kind(&instructions[i].kind);
    }
    walk->arena = arena;
    walk->error = error;
    walk->emitting = false;
    walk->loop_hint_count = walk->block_hint_count = walk->named_total = 0;
    walk->tiled_block = FORELOOP_WALK_NONE;
    foreloop_walk_reset(walk);
    /* What follows EnterPostproc teaches nothing, so that a trace cut there gives the same actions. */
    FORELOOP_TRY(walk_instructions(walk, instructions, search));
    FORELOOP_TRY(foreloop_walk_learn(walk));
    foreloop_walk_reset(walk);
    walk->emitting = true;
    FORELOOP_TRY(walk_instructions(walk, instructions, full_trace ? count : search));
    if (!full_trace) {
        walk->done = count;
        FORELOOP_TRY(foreloop_walk_emit(walk, "postprocess"));
    }
    *result = (foreloop_walk_result){walk->actions, walk->instructions, walk->action_count, unknown};
    return FORELOOP_OK;
}
