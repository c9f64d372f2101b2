/* Instructions on blocks: caches, placement, inlining, reductions, layout. */
#include "common/error.h"
#include "schedule/walk_emit.h"
#include "schedule/walk_instruction.h"
#include "schedule/walk_state.h"
#include <string.h>

/* Any action on a block that needs no more than its attributes. Blocks that come out are of no special sort. */
foreloop_status foreloop_on_block(foreloop_walk *walk, const foreloop_instruction *instruction,
                                  const foreloop_kind_info *info) {
    size_t block = foreloop_walk_input_block(walk, instruction, 0);
    foreloop_walk_add_block(walk, block);
    foreloop_walk_add_attributes(walk, instruction, info);
    FORELOOP_TRY(foreloop_walk_bind_blocks(walk, instruction, FORELOOP_BLOCK_OTHER, block));
    return foreloop_walk_emit(walk, info->action);
}

foreloop_status foreloop_on_cache(foreloop_walk *walk, const foreloop_instruction *instruction,
                                  const foreloop_kind_info *info) {
    size_t block = foreloop_walk_input_block(walk, instruction, 0), made = walk->block_count;
    foreloop_walk_add_block(walk, block);
    foreloop_walk_add_attributes(walk, instruction, info);
    FORELOOP_TRY(foreloop_walk_bind_blocks(walk, instruction, FORELOOP_BLOCK_CACHE, block));
    if (block != FORELOOP_WALK_NONE && made < walk->block_count && strcmp(info->action, "cache_write") == 0)
        walk->blocks[block].cache = made;
    return foreloop_walk_emit(walk, info->action);
}

/* Where a block goes: a loop of the trace, or a sampled place, which counts the loops around its consumers. Those are
 * taken to be the tiled block's when there is just one. */
static bool add_target(foreloop_walk *walk, size_t block, foreloop_binding target, size_t *block_at, size_t *depth_at) {
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
        return false;
    foreloop_walk_add_location(walk, at, depth);
    *block_at = at;
    *depth_at = depth;
    return true;
}

/* For what is put at a place without being a block of the walk. */
static void add_place(foreloop_walk *walk, const foreloop_value *target) {
    size_t at, depth;
    (void)add_target(walk, FORELOOP_WALK_NONE, foreloop_walk_variable(walk, target), &at, &depth);
}

foreloop_status foreloop_on_compute_at(foreloop_walk *walk, const foreloop_instruction *instruction,
                                       const foreloop_kind_info *info) {
    size_t block = foreloop_walk_input_block(walk, instruction, 0);
    size_t at, depth;
    foreloop_walk_add_block(walk, block);
    if (add_target(walk, block, foreloop_walk_variable(walk, foreloop_value_item(&instruction->inputs, 1)), &at,
                   &depth) &&
        block != FORELOOP_WALK_NONE && block != at) {
        walk->blocks[block].at_block = at;
        walk->blocks[block].at_depth = depth;
        walk->blocks[block].nest_count = 0;
    }
    return foreloop_walk_emit(walk, info->action);
}

/* The same for a block that keeps its loops; without a loop to go to, at the root. What it has to compute there is not
 * known, so neither are the extents, but for the innermost parts of splits by a factor. */
foreloop_status foreloop_on_place(foreloop_walk *walk, const foreloop_instruction *instruction,
                                  const foreloop_kind_info *info) {
    size_t block = foreloop_walk_input_block(walk, instruction, 0);
    foreloop_walk_add_block(walk, block);
    if (instruction->inputs.count > 1)
        add_place(walk, foreloop_value_item(&instruction->inputs, 1));
    else
        foreloop_walk_add_number(walk, "location", -1);
    for (size_t i = 0; block != FORELOOP_WALK_NONE && i < walk->blocks[block].nest_count; i++) {
        foreloop_loop *loop = &walk->loops[walk->blocks[block].nest[i]];
        if (!loop->innermost_part)
            loop->extent = 0;
    }
    return foreloop_walk_emit(walk, info->action);
}

/* ReadAt and WriteAt: a cache of a block's buffer at a loop. */
foreloop_status foreloop_on_access_at(foreloop_walk *walk, const foreloop_instruction *instruction,
                                      const foreloop_kind_info *info) {
    size_t block = foreloop_walk_input_block(walk, instruction, 1);
    foreloop_walk_add_block(walk, block);
    add_place(walk, foreloop_value_item(&instruction->inputs, 0));
    foreloop_walk_add_attributes(walk, instruction, info);
    FORELOOP_TRY(foreloop_walk_bind_blocks(walk, instruction, FORELOOP_BLOCK_CACHE, block));
    return foreloop_walk_emit(walk, info->action);
}

/* DecomposeReduction and DecomposePadding: the block that comes out is put before a loop. */
foreloop_status foreloop_on_decompose(foreloop_walk *walk, const foreloop_instruction *instruction,
                                      const foreloop_kind_info *info) {
    size_t block = foreloop_walk_input_block(walk, instruction, 0);
    foreloop_walk_add_block(walk, block);
    add_place(walk, foreloop_value_item(&instruction->inputs, 1));
    FORELOOP_TRY(foreloop_walk_bind_blocks(walk, instruction, FORELOOP_BLOCK_OTHER, block));
    return foreloop_walk_emit(walk, info->action);
}

/* The loops that the reduction had go to the new block; the old one only sums up what that leaves. */
foreloop_status foreloop_on_rfactor(foreloop_walk *walk, const foreloop_instruction *instruction,
                                    const foreloop_kind_info *info) {
    size_t index = foreloop_walk_input_loop(walk, instruction, 0), made = walk->block_count;
    if (index == FORELOOP_WALK_NONE) {
        foreloop_walk_add_attributes(walk, instruction, info);
        FORELOOP_TRY(foreloop_walk_bind_blocks(walk, instruction, FORELOOP_BLOCK_RFACTOR, FORELOOP_WALK_NONE));
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
    foreloop_walk_add_attributes(walk, instruction, info);
    FORELOOP_TRY(foreloop_walk_bind_blocks(walk, instruction, FORELOOP_BLOCK_RFACTOR, old));
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
foreloop_status foreloop_on_subtree(foreloop_walk *walk, const foreloop_instruction *instruction,
                                    const foreloop_kind_info *info) {
    foreloop_binding target = foreloop_walk_variable(walk, foreloop_value_item(&instruction->inputs, 0));
    size_t block = FORELOOP_WALK_NONE;
    if (target.type == FORELOOP_VARIABLE_LOOP)
        block = walk->loops[target.index].block;
    else if (target.type == FORELOOP_VARIABLE_BLOCK)
        block = target.index;
    foreloop_walk_add_block(walk, block);
    add_place(walk, foreloop_value_item(&instruction->inputs, 0));
    foreloop_walk_add_attributes(walk, instruction, info);
    FORELOOP_TRY(foreloop_walk_bind_blocks(walk, instruction, FORELOOP_BLOCK_OTHER, block));
    return foreloop_walk_emit(walk, info->action);
}

foreloop_status foreloop_on_pad_einsum(foreloop_walk *walk, const foreloop_instruction *instruction,
                                       const foreloop_kind_info *info) {
    static const char *const names[FORELOOP_WALK_LISTED] = {"padding_0", "padding_1", "padding_2",
                                                            "padding_3", "padding_4", "padding_5"};
    foreloop_walk_add_listed(walk, foreloop_value_item(&instruction->attrs, 0), names);
    return foreloop_on_block(walk, instruction, info);
}

foreloop_status foreloop_on_reorder_block_iter_var(foreloop_walk *walk, const foreloop_instruction *instruction,
                                                   const foreloop_kind_info *info) {
    const foreloop_value *order = foreloop_value_item(&instruction->inputs, 1);
    size_t moved = 0;
    if (order->type == FORELOOP_VALUE_ARRAY) {
        for (size_t i = 0; i < order->count; i++)
            moved += order->items[i].type != FORELOOP_VALUE_NUMBER || order->items[i].number != (double)i;
        foreloop_walk_add_number(walk, "axes", (double)order->count);
        foreloop_walk_add_number(walk, "moved", (double)moved);
    }
    return foreloop_on_block(walk, instruction, info);
}

foreloop_status foreloop_on_annotate_buffer_access(foreloop_walk *walk, const foreloop_instruction *instruction,
                                                   const foreloop_kind_info *info) {
    double number;
    if (foreloop_walk_input_number(walk, foreloop_value_item(&instruction->inputs, 1), &number))
        foreloop_walk_add_number(walk, "buffer", number);
    if (foreloop_walk_input_number(walk, foreloop_value_item(&instruction->inputs, 2), &number))
        foreloop_walk_add_number(walk, "write", number);
    return foreloop_on_block(walk, instruction, info);
}

foreloop_status foreloop_on_set_axis_separator(foreloop_walk *walk, const foreloop_instruction *instruction,
                                               const foreloop_kind_info *info) {
    static const char *const names[FORELOOP_WALK_LISTED] = {"separator_0", "separator_1", "separator_2",
                                                            "separator_3", "separator_4", "separator_5"};
    /* An attribute in some versions of TVM, an input in others. */
    const foreloop_value *separators = foreloop_value_item(&instruction->attrs, 2);
    foreloop_walk_add_listed(
        walk, separators->type == FORELOOP_VALUE_ARRAY ? separators : foreloop_value_item(&instruction->inputs, 1),
        names);
    return foreloop_on_block(walk, instruction, info);
}

foreloop_status foreloop_on_hide_buffer_access(foreloop_walk *walk, const foreloop_instruction *instruction,
                                               const foreloop_kind_info *info) {
    const foreloop_value *type = foreloop_value_item(&instruction->inputs, 1),
                         *buffers = foreloop_value_item(&instruction->inputs, 2);
    const char *text;
    FORELOOP_TRY(foreloop_walk_quoted(walk, type, &text));
    foreloop_walk_add_text(walk, "access", text);
    if (buffers->type == FORELOOP_VALUE_ARRAY)
        foreloop_walk_add_number(walk, "buffers", (double)buffers->count);
    return foreloop_on_block(walk, instruction, info);
}
