/* The symbolic walk of a trace: instruction by instruction, look-ups and samples update what is known, the others also
 * emit an action (docs/ACTIONS.md). Two passes: the first finds out what only later instructions tell (which blocks are
 * tiled, which loops are reductions), the second emits. */
#include "common/error.h"
#include "schedule/walk_emit.h"
#include "schedule/walk_instruction.h"
#include "schedule/walk_state.h"
#include <string.h>

/* Only a mark in the trace. */
static foreloop_status on_enter_postproc(foreloop_walk *walk, const foreloop_instruction *instruction,
                                         const foreloop_kind_info *info) {
    (void)walk;
    (void)instruction;
    (void)info;
    return FORELOOP_OK;
}

#define NAMED(name) (name), sizeof(name) - 1
static const foreloop_kind_info KINDS[] = {
    {NAMED("EnterPostproc"), NULL, on_enter_postproc, {NULL}},
    {NAMED("GetSBlock"), NULL, foreloop_on_get_block, {NULL}},
    {NAMED("GetBlock"), NULL, foreloop_on_get_block, {NULL}},
    {NAMED("GetLoops"), NULL, foreloop_on_get_loops, {NULL}},
    {NAMED("GetChildBlocks"), NULL, foreloop_on_get_blocks, {NULL}},
    {NAMED("GetOutputBlocks"), NULL, foreloop_on_get_blocks, {NULL}},
    {NAMED("GetProducers"), NULL, foreloop_on_get_producers, {NULL}},
    {NAMED("GetConsumers"), NULL, foreloop_on_get_consumers, {NULL}},
    {NAMED("SamplePerfectTile"), NULL, foreloop_on_sample_tile, {NULL}},
    {NAMED("SamplePartitionedTile"), NULL, foreloop_on_sample_tile, {NULL}},
    {NAMED("SampleCategorical"), NULL, foreloop_on_sample_categorical, {NULL}},
    {NAMED("SampleComputeLocation"), NULL, foreloop_on_sample_location, {NULL}},
    {NAMED("Split"), "split", foreloop_on_split, {NULL}},
    {NAMED("Annotate"), "annotate", foreloop_on_annotate, {NULL}},
    {NAMED("Unannotate"), "unannotate", foreloop_on_unannotate, {NULL}},
    {NAMED("Reorder"), "reorder", foreloop_on_reorder, {NULL}},
    {NAMED("Fuse"), "fuse", foreloop_on_fuse, {NULL}},
    {NAMED("Merge"), "merge", foreloop_on_merge, {NULL}},
    {NAMED("LoopPartition"), "loop_partition", foreloop_on_partition, {NULL}},
    {NAMED("AddUnitLoop"), "add_unit_loop", foreloop_on_add_unit_loop, {NULL}},
    {NAMED("Parallel"), "parallel", foreloop_on_loop, {NULL}},
    {NAMED("Vectorize"), "vectorize", foreloop_on_loop, {NULL}},
    {NAMED("Unroll"), "unroll", foreloop_on_loop, {NULL}},
    {NAMED("Bind"), "bind", foreloop_on_bind, {"$thread"}},
    {NAMED("CacheRead"), "cache_read", foreloop_on_cache, {"#buffer", "$scope"}},
    {NAMED("CacheWrite"), "cache_write", foreloop_on_cache, {"#buffer", "$scope"}},
    {NAMED("CacheInplace"), "cache_inplace", foreloop_on_cache, {"#buffer", "$scope"}},
    {NAMED("CacheIndex"), "cache_index", foreloop_on_cache, {"$scope", "#threshold"}},
    {NAMED("ReindexCacheRead"), "reindex_cache_read", foreloop_on_cache, {"#buffer", "$scope"}},
    {NAMED("ReindexCacheWrite"), "reindex_cache_write", foreloop_on_cache, {"#buffer", "$scope"}},
    {NAMED("ReIndex"), "reindex", foreloop_on_cache, {"#buffer", "#write"}},
    {NAMED("ReadAt"), "read_at", foreloop_on_access_at, {"#buffer", "$scope"}},
    {NAMED("WriteAt"), "write_at", foreloop_on_access_at, {"#buffer", "$scope"}},
    {NAMED("ComputeAt"), "compute_at", foreloop_on_compute_at, {NULL}},
    {NAMED("ReverseComputeAt"), "reverse_compute_at", foreloop_on_compute_at, {NULL}},
    {NAMED("ComputeInline"), "compute_inline", foreloop_on_block, {NULL}},
    {NAMED("ReverseComputeInline"), "reverse_compute_inline", foreloop_on_block, {NULL}},
    {NAMED("RFactor"), "rfactor", foreloop_on_rfactor, {"#factor_axis"}},
    {NAMED("DecomposeReduction"), "decompose_reduction", foreloop_on_decompose, {NULL}},
    {NAMED("DecomposePadding"), "decompose_padding", foreloop_on_decompose, {NULL}},
    {NAMED("PadEinsum"), "pad_einsum", foreloop_on_pad_einsum, {NULL}},
    {NAMED("StorageAlign"), "storage_align", foreloop_on_block, {"#buffer", "#axis", "#factor", "#offset"}},
    {NAMED("SetScope"), "set_scope", foreloop_on_block, {"#buffer", "$scope"}},
    {NAMED("UnsafeSetDType"), "unsafe_set_dtype", foreloop_on_block, {"#buffer", "$dtype"}},
    {NAMED("UnsafeHideBufferAccess"), "unsafe_hide_buffer_access", foreloop_on_hide_buffer_access, {NULL}},
    {NAMED("Blockize"), "blockize", foreloop_on_subtree, {NULL}},
    {NAMED("Tensorize"), "tensorize", foreloop_on_subtree, {"$intrin"}},
    {NAMED("TransformLayout"), "transform_layout", foreloop_on_block, {"#buffer", "#write", NULL, "#injective"}},
    {NAMED("TransformBlockLayout"), "transform_block_layout", foreloop_on_block, {NULL}},
    {NAMED("SetAxisSeparator"), "set_axis_separator", foreloop_on_set_axis_separator, {"#buffer", "#write"}},
    {NAMED("ReorderBlockIterVar"), "reorder_block_iter_var", foreloop_on_reorder_block_iter_var, {NULL}},
    {NAMED("RollingBuffer"), "rolling_buffer", foreloop_on_block, {"#buffer"}},
    {NAMED("AnnotateBufferAccess"), "annotate_buffer_access", foreloop_on_annotate_buffer_access, {NULL}},
    {NAMED("FuseReductionEpilogue"), "fuse_reduction_epilogue", foreloop_on_block, {NULL}},
};

const foreloop_kind_info *foreloop_walk_find_kind(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++)
        if (KINDS[i].length == length && memcmp(KINDS[i].name, name, length) == 0)
            return &KINDS[i];
    return NULL;
}

/* All that the first pass needs where the classes are stated: blocks and axes, to number them. */
static bool makes_axes(const foreloop_kind_info *kind) {
    return kind->handle == foreloop_on_stage || kind->handle == foreloop_on_axes || kind->handle == foreloop_on_cache;
}

/* The instructions before `end`. `silent` may be NULL. */
static foreloop_status walk_instructions(foreloop_walk *walk, const foreloop_trace *trace, size_t end, bool axes_only,
                                         const unsigned char *silent) {
    for (size_t i = 0; i < end; i++) {
        const foreloop_instruction *instruction = &trace->instructions[i];
        walk->place = instruction->place;
        if (silent)
            walk->emitting = !silent[i];
        if (instruction->kind && (!axes_only || makes_axes(instruction->kind)))
            FORELOOP_TRY(instruction->kind->handle(walk, instruction, instruction->kind));
        walk->outputs += instruction->outputs.count;
    }
    return FORELOOP_OK;
}

size_t foreloop_walk_search_length(const foreloop_trace *trace) {
    size_t search = 0;
    while (search < trace->count &&
           !(trace->instructions[search].kind && trace->instructions[search].kind->handle == on_enter_postproc))
        search++;
    return search;
}

foreloop_status foreloop_walk_learn_trace(foreloop_walk *walk, const foreloop_trace *trace, foreloop_arena *arena,
                                          foreloop_error *error) {
    walk->arena = arena;
    walk->error = error;
    walk->emitting = false;
    walk->hint_count = walk->named_total = 0;
    walk->tiled_output = FORELOOP_WALK_NONE;
    FORELOOP_TRY(foreloop_reserve(walk->allocator, &walk->variables, &walk->variable_capacity, 0, trace->variable_count,
                                  sizeof *walk->variables, error));
    foreloop_walk_reset(walk, trace->variable_count);
    /* What follows EnterPostproc teaches nothing, so that a trace cut there gives the same actions. */
    FORELOOP_TRY(walk_instructions(walk, trace, foreloop_walk_search_length(trace), trace->classes_stated, NULL));
    return foreloop_walk_learn(walk);
}

/* The second pass over the instructions before `end`. */
static foreloop_status emit_instructions(foreloop_walk *walk, const foreloop_trace *trace, size_t end,
                                         const unsigned char *silent, foreloop_arena *arena, foreloop_error *error) {
    walk->arena = arena;
    walk->error = error;
    foreloop_walk_reset(walk, trace->variable_count);
    walk->emitting = true;
    return walk_instructions(walk, trace, end, false, silent);
}

/* Ends the second pass with what is told of the whole trace. */
static foreloop_status emit_postprocess(foreloop_walk *walk, const foreloop_trace *trace) {
    walk->emitting = true;
    walk->place = (uint32_t)trace->length;
    foreloop_walk_add_summary(walk);
    return foreloop_walk_emit(walk, "postprocess");
}

foreloop_status foreloop_walk_decided(foreloop_walk *walk, const foreloop_trace *trace, const unsigned char *silent,
                                      foreloop_arena *arena, foreloop_walk_result *result, foreloop_error *error) {
    FORELOOP_TRY(emit_instructions(walk, trace, foreloop_walk_search_length(trace), silent, arena, error));
    FORELOOP_TRY(emit_postprocess(walk, trace));
    *result = (foreloop_walk_result){walk->actions, walk->instructions, walk->action_count};
    return FORELOOP_OK;
}

foreloop_status foreloop_walk_trace(foreloop_walk *walk, const foreloop_trace *trace, bool full_trace,
                                    foreloop_arena *arena, foreloop_walk_result *result, foreloop_error *error) {
    FORELOOP_TRY(foreloop_walk_learn_trace(walk, trace, arena, error));
    size_t end = full_trace ? trace->count : foreloop_walk_search_length(trace);
    FORELOOP_TRY(emit_instructions(walk, trace, end, NULL, arena, error));
    if (!full_trace)
        FORELOOP_TRY(emit_postprocess(walk, trace));
    *result = (foreloop_walk_result){walk->actions, walk->instructions, walk->action_count};
    return FORELOOP_OK;
}
