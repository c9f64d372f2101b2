/* The symbolic walk of a trace: instruction by instruction, look-ups and samples update what is known, the others also
 * emit an action (docs/ACTIONS.md). Two passes: the first finds out what only later instructions tell (which blocks are
 * tiled, which loops are reductions), the second emits. */
#include "common/error.h"
#include "schedule/walk_emit.h"
#include "schedule/walk_instruction.h"
#include "schedule/walk_state.h"

static const char ENTER_POSTPROC[] = "EnterPostproc";

static const foreloop_kind_info KINDS[] = {
    {"GetSBlock", NULL, foreloop_on_get_block, {NULL}},
    {"GetBlock", NULL, foreloop_on_get_block, {NULL}},
    {"GetLoops", NULL, foreloop_on_get_loops, {NULL}},
    {"GetChildBlocks", NULL, foreloop_on_get_blocks, {NULL}},
    {"GetOutputBlocks", NULL, foreloop_on_get_blocks, {NULL}},
    {"GetProducers", NULL, foreloop_on_get_producers, {NULL}},
    {"GetConsumers", NULL, foreloop_on_get_consumers, {NULL}},
    {"SamplePerfectTile", NULL, foreloop_on_sample_tile, {NULL}},
    {"SamplePartitionedTile", NULL, foreloop_on_sample_tile, {NULL}},
    {"SampleCategorical", NULL, foreloop_on_sample_categorical, {NULL}},
    {"SampleComputeLocation", NULL, foreloop_on_sample_location, {NULL}},
    {"Split", "split", foreloop_on_split, {NULL}},
    {"Annotate", "annotate", foreloop_on_annotate, {NULL}},
    {"Unannotate", "unannotate", foreloop_on_unannotate, {NULL}},
    {"Reorder", "reorder", foreloop_on_reorder, {NULL}},
    {"Fuse", "fuse", foreloop_on_fuse, {NULL}},
    {"Merge", "merge", foreloop_on_merge, {NULL}},
    {"LoopPartition", "loop_partition", foreloop_on_partition, {NULL}},
    {"AddUnitLoop", "add_unit_loop", foreloop_on_add_unit_loop, {NULL}},
    {"Parallel", "parallel", foreloop_on_loop, {NULL}},
    {"Vectorize", "vectorize", foreloop_on_loop, {NULL}},
    {"Unroll", "unroll", foreloop_on_loop, {NULL}},
    {"Bind", "bind", foreloop_on_loop, {"$thread"}},
    {"CacheRead", "cache_read", foreloop_on_cache, {"#buffer", "$scope"}},
    {"CacheWrite", "cache_write", foreloop_on_cache, {"#buffer", "$scope"}},
    {"CacheInplace", "cache_inplace", foreloop_on_cache, {"#buffer", "$scope"}},
    {"CacheIndex", "cache_index", foreloop_on_cache, {"$scope", "#threshold"}},
    {"ReindexCacheRead", "reindex_cache_read", foreloop_on_cache, {"#buffer", "$scope"}},
    {"ReindexCacheWrite", "reindex_cache_write", foreloop_on_cache, {"#buffer", "$scope"}},
    {"ReIndex", "reindex", foreloop_on_cache, {"#buffer", "#write"}},
    {"ReadAt", "read_at", foreloop_on_access_at, {"#buffer", "$scope"}},
    {"WriteAt", "write_at", foreloop_on_access_at, {"#buffer", "$scope"}},
    {"ComputeAt", "compute_at", foreloop_on_compute_at, {NULL}},
    {"ReverseComputeAt", "reverse_compute_at", foreloop_on_compute_at, {NULL}},
    {"ComputeInline", "compute_inline", foreloop_on_block, {NULL}},
    {"ReverseComputeInline", "reverse_compute_inline", foreloop_on_block, {NULL}},
    {"RFactor", "rfactor", foreloop_on_rfactor, {"#factor_axis"}},
    {"DecomposeReduction", "decompose_reduction", foreloop_on_decompose, {NULL}},
    {"DecomposePadding", "decompose_padding", foreloop_on_decompose, {NULL}},
    {"PadEinsum", "pad_einsum", foreloop_on_pad_einsum, {NULL}},
    {"StorageAlign", "storage_align", foreloop_on_block, {"#buffer", "#axis", "#factor", "#offset"}},
    {"SetScope", "set_scope", foreloop_on_block, {"#buffer", "$scope"}},
    {"UnsafeSetDType", "unsafe_set_dtype", foreloop_on_block, {"#buffer", "$dtype"}},
    {"UnsafeHideBufferAccess", "unsafe_hide_buffer_access", foreloop_on_hide_buffer_access, {NULL}},
    {"Blockize", "blockize", foreloop_on_subtree, {NULL}},
    {"Tensorize", "tensorize", foreloop_on_subtree, {"$intrin"}},
    {"TransformLayout", "transform_layout", foreloop_on_block, {"#buffer", "#write", NULL, "#injective"}},
    {"TransformBlockLayout", "transform_block_layout", foreloop_on_block, {NULL}},
    {"SetAxisSeparator", "set_axis_separator", foreloop_on_set_axis_separator, {"#buffer", "#write"}},
    {"ReorderBlockIterVar", "reorder_block_iter_var", foreloop_on_reorder_block_iter_var, {NULL}},
    {"RollingBuffer", "rolling_buffer", foreloop_on_block, {"#buffer"}},
    {"AnnotateBufferAccess", "annotate_buffer_access", foreloop_on_annotate_buffer_access, {NULL}},
    {"FuseReductionEpilogue", "fuse_reduction_epilogue", foreloop_on_block, {NULL}},
};

static const foreloop_kind_info *find_kind(const foreloop_value *kind) {
    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++)
        if (foreloop_walk_is(kind, KINDS[i].name))
            return &KINDS[i];
    return NULL;
}

static foreloop_status walk_instructions(foreloop_walk *walk, const foreloop_instruction *instructions, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const foreloop_kind_info *info = find_kind(&instructions[i].kind);
        walk->done = i + 1;
        if (info)
            FORELOOP_TRY(info->handle(walk, &instructions[i], info));
        walk->outputs += instructions[i].outputs.count;
    }
    return FORELOOP_OK;
}

foreloop_status foreloop_walk_trace(foreloop_walk *walk, const foreloop_instruction *instructions, size_t count,
                                    bool full_trace, foreloop_arena *arena, foreloop_walk_result *result,
                                    foreloop_error *error) {
    size_t search = count, unknown = 0;
    for (size_t i = 0; i < count; i++) {
        bool enter = foreloop_walk_is(&instructions[i].kind, ENTER_POSTPROC);
        if (enter && search == count)
            search = i;
        unknown += !enter && !find_kind(&instructions[i].kind);
    }
    walk->arena = arena;
    walk->error = error;
    walk->emitting = false;
    walk->hint_count = walk->named_total = 0;
    walk->tiled_output = FORELOOP_WALK_NONE;
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
