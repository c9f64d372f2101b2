/* Instructions on loops: splitting, fusing, reordering, and how a loop runs. */
#include "common/error.h"
#include "schedule/walk_emit.h"
#include "schedule/walk_instruction.h"
#include "schedule/walk_state.h"
#include <math.h>
#include <string.h>

/* All loops among inputs, each once, in their order; all in one nest, that of the first. */
static foreloop_status gather_loops(foreloop_walk *walk, const foreloop_instruction *instruction) {
    walk->gathered_count = 0;
    walk->mark++;
    for (size_t i = 0; i < instruction->inputs.count; i++) {
        size_t loop = foreloop_walk_input_loop(walk, instruction, i);
        if (loop == FORELOOP_WALK_NONE || walk->loops[loop].mark == walk->mark)
            continue;
        if (walk->gathered_count > 0 && walk->loops[loop].block != walk->loops[walk->gathered[0]].block)
            continue;
        walk->loops[loop].mark = walk->mark;
        FORELOOP_TRY(foreloop_reserve_one(walk->allocator, &walk->gathered, &walk->gathered_capacity,
                                          walk->gathered_count, sizeof *walk->gathered, walk->error));
        walk->gathered[walk->gathered_count++] = loop;
    }
    return FORELOOP_OK;
}

static const char *const FACTOR_NAMES[FORELOOP_WALK_LISTED] = {"factor_0", "factor_1", "factor_2",
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
        if (foreloop_walk_input_number(walk, value, &number) && number >= 1) {
            known *= number;
        } else {
            number = 0;
            unknown++;
            if (value->type == FORELOOP_VALUE_NULL || foreloop_value_is(value, "None")) {
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
    for (size_t i = 0; i < factors->count && i < FORELOOP_WALK_LISTED; i++)
        foreloop_walk_add_extent(walk, FACTOR_NAMES[i], factors->values[i]);
}

/* The loop of an input; one of a block of its own when the trace has not said where it is from. */
static foreloop_status loop_or_new(foreloop_walk *walk, const foreloop_instruction *instruction, size_t input,
                                   size_t *loop) {
    *loop = foreloop_walk_input_loop(walk, instruction, input);
    if (*loop != FORELOOP_WALK_NONE)
        return FORELOOP_OK;
    size_t block;
    FORELOOP_TRY(foreloop_walk_new_block(walk, FORELOOP_BLOCK_OTHER, FORELOOP_WALK_NONE, FORELOOP_WALK_NONE, &block));
    return foreloop_walk_new_loop(walk, block, FORELOOP_WALK_NONE, loop);
}

foreloop_status foreloop_on_split(foreloop_walk *walk, const foreloop_instruction *instruction,
                                  const foreloop_kind_info *info) {
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
    FORELOOP_TRY(foreloop_walk_bind_loops(walk, instruction, whole.block, 0, &first));
    for (size_t i = 0; first + i < walk->loop_count; i++) {
        foreloop_loop *part = &walk->loops[first + i];
        part->parent = index;
        part->kind = whole.kind;
        part->axis = whole.axis;
        part->level = part_level(walk, &whole, i);
        part->extent = i < factors.count ? factors.values[i] : 0;
        part->innermost_part = i + 1 == factors.count;
    }
    if (depth != FORELOOP_WALK_NONE)
        FORELOOP_TRY(foreloop_walk_replace(walk, whole.block, depth, first, walk->loop_count - first));
    return foreloop_walk_emit(walk, kind);
}

/* The same where the instruction says the extent itself; 0 is unknown. */
foreloop_status foreloop_on_split_extent(foreloop_walk *walk, const foreloop_instruction *instruction,
                                         const foreloop_kind_info *info) {
    size_t loop = foreloop_walk_input_loop(walk, instruction, 0);
    double extent = foreloop_value_item(&instruction->attrs, 0)->number;
    if (loop != FORELOOP_WALK_NONE && extent > 0)
        walk->loops[loop].extent = extent;
    return foreloop_on_split(walk, instruction, info);
}

/* The order of the block's loops is no longer known. */
static void forget_nest(foreloop_walk *walk, size_t loop) {
    walk->blocks[walk->loops[loop].block].nest_count = 0;
}

/* Loops that run one after another, not inside each other: each has its own part of the range. */
foreloop_status foreloop_on_partition(foreloop_walk *walk, const foreloop_instruction *instruction,
                                      const foreloop_kind_info *info) {
    size_t index, first;
    split_factors factors;
    FORELOOP_TRY(loop_or_new(walk, instruction, 0, &index));
    FORELOOP_TRY(read_factors(walk, instruction, 0, &factors));
    foreloop_walk_add_extent(walk, "extent", walk->loops[index].extent);
    foreloop_walk_add_class(walk, walk->loops[index].kind);
    add_factors(walk, &factors);
    forget_nest(walk, index);
    FORELOOP_TRY(foreloop_walk_bind_loops(walk, instruction, walk->loops[index].block, 0, &first));
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

foreloop_status foreloop_on_fuse(foreloop_walk *walk, const foreloop_instruction *instruction,
                                 const foreloop_kind_info *info) {
    size_t first;
    FORELOOP_TRY(gather_loops(walk, instruction));
    foreloop_walk_add_number(walk, "loops", (double)instruction->inputs.count);
    if (walk->gathered_count == 0 || walk->gathered_count != instruction->inputs.count) {
        /* Some inputs are unknown: so is the result. */
        size_t block;
        FORELOOP_TRY(
            foreloop_walk_new_block(walk, FORELOOP_BLOCK_OTHER, FORELOOP_WALK_NONE, FORELOOP_WALK_NONE, &block));
        FORELOOP_TRY(foreloop_walk_bind_loops(walk, instruction, block, 0, &first));
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
    FORELOOP_TRY(foreloop_walk_bind_loops(walk, instruction, fused.block, 0, &first));
    if (first < walk->loop_count) {
        walk->loops[first] = fused;
        fuse_in_nest(walk, fused.block, first);
    }
    return foreloop_walk_emit(walk, info->action);
}

/* Loops of one nest, or of several that are joined: what comes out is new. */
foreloop_status foreloop_on_merge(foreloop_walk *walk, const foreloop_instruction *instruction,
                                  const foreloop_kind_info *info) {
    size_t index, first;
    foreloop_walk_add_number(walk, "loops", (double)instruction->inputs.count);
    FORELOOP_TRY(loop_or_new(walk, instruction, 0, &index));
    foreloop_walk_add_extent(walk, "extent", walk->loops[index].extent);
    forget_nest(walk, index);
    FORELOOP_TRY(foreloop_walk_bind_loops(walk, instruction, walk->loops[index].block, 0, &first));
    return foreloop_walk_emit(walk, info->action);
}

foreloop_status foreloop_on_reorder(foreloop_walk *walk, const foreloop_instruction *instruction,
                                    const foreloop_kind_info *info) {
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
foreloop_status foreloop_on_add_unit_loop(foreloop_walk *walk, const foreloop_instruction *instruction,
                                          const foreloop_kind_info *info) {
    foreloop_binding target = foreloop_walk_variable(walk, foreloop_value_item(&instruction->inputs, 0));
    size_t block = FORELOOP_WALK_NONE, depth = FORELOOP_WALK_NONE, first;
    if (target.type == FORELOOP_VARIABLE_LOOP) {
        block = walk->loops[target.index].block;
        depth = foreloop_walk_depth(walk, target.index);
    } else if (target.type == FORELOOP_VARIABLE_BLOCK) {
        block = target.index;
        depth = walk->blocks[block].nest_count > 0 ? walk->blocks[block].nest_count : FORELOOP_WALK_NONE;
    } else {
        FORELOOP_TRY(
            foreloop_walk_new_block(walk, FORELOOP_BLOCK_OTHER, FORELOOP_WALK_NONE, FORELOOP_WALK_NONE, &block));
    }
    FORELOOP_TRY(foreloop_walk_bind_loops(walk, instruction, block, 0, &first));
    for (size_t i = first; i < walk->loop_count; i++)
        walk->loops[i].extent = 1;
    if (depth != FORELOOP_WALK_NONE && first < walk->loop_count)
        FORELOOP_TRY(foreloop_walk_insert(walk, block, depth, first, 1));
    foreloop_walk_add_block(walk, block);
    return foreloop_walk_emit(walk, info->action);
}

/* Remembers what a loop is bound to: "blockIdx.x", "vthread.y", "vthread", "threadIdx.z" ... */
static void note_bound(foreloop_walk *walk, size_t loop, const foreloop_value *thread) {
    static const char *const sorts[FORELOOP_WALK_BOUND] = {"blockIdx", "vthread", "threadIdx"};
    for (size_t sort = 0; sort < FORELOOP_WALK_BOUND && thread->type == FORELOOP_VALUE_TEXT; sort++) {
        const size_t length = strlen(sorts[sort]);
        if (thread->count < length || memcmp(thread->text, sorts[sort], length) != 0)
            continue;
        const char letter = thread->count == length + 2 ? thread->text[length + 1] : 'x';
        const size_t axis = letter == 'y' ? 1 : letter == 'z' ? 2 : 0;
        const double extent = loop == FORELOOP_WALK_NONE ? 0 : walk->loops[loop].extent;
        double *bound = &walk->bound[sort][axis];
        walk->is_bound[sort][axis] = true;
        *bound = extent > *bound ? extent : *bound;
    }
}

foreloop_status foreloop_on_bind(foreloop_walk *walk, const foreloop_instruction *instruction,
                                 const foreloop_kind_info *info) {
    note_bound(walk, foreloop_walk_input_loop(walk, instruction, 0), foreloop_value_item(&instruction->attrs, 0));
    return foreloop_on_loop(walk, instruction, info);
}

/* Parallel, Vectorize, Unroll, Bind. */
foreloop_status foreloop_on_loop(foreloop_walk *walk, const foreloop_instruction *instruction,
                                 const foreloop_kind_info *info) {
    foreloop_walk_add_loop(walk, foreloop_walk_input_loop(walk, instruction, 0));
    foreloop_walk_add_attributes(walk, instruction, info);
    return foreloop_walk_emit(walk, info->action);
}
