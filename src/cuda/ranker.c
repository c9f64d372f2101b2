/* Trees for the GPU: those of the model's layout for single rows, with features by their number in the row, and the
 * rest node by node. */
#include "cuda/scoring.h"
#include "gbdt/layout.h"

/* Everything on the host, before it is copied. */
typedef struct tables {
    uint32_t *numbers; /* by column of the ranker: its number in the row */
    foreloop_trees_node *nodes;
    foreloop_cuda_node *large;
    uint32_t *roots;
    foreloop_cuda_run *runs;
    size_t large_count, run_count;
} tables;

static void release_tables(tables *t, const foreloop_allocator *allocator) {
    foreloop_release(allocator, t->numbers);
    foreloop_release(allocator, t->nodes);
    foreloop_release(allocator, t->large);
    foreloop_release(allocator, t->roots);
    foreloop_release(allocator, t->runs);
}

static foreloop_status allocate_tables(tables *t, const foreloop_gbdt *gbdt, const foreloop_scorer_ranker *source,
                                       const foreloop_allocator *allocator, foreloop_error *error) {
    size_t large = 0;
    for (size_t i = 0; i < gbdt->tree_count; i++)
        if (gbdt->layout->trees[i].shape == FORELOOP_TREES_WALK)
            large += gbdt->trees[i].node_count;
    t->numbers = foreloop_allocate(allocator, source->column_count, sizeof *t->numbers);
    t->nodes = foreloop_allocate(allocator, gbdt->layout->node_count, sizeof *t->nodes);
    t->large = foreloop_allocate(allocator, large, sizeof *t->large);
    t->roots = foreloop_allocate(allocator, gbdt->tree_count, sizeof *t->roots);
    t->runs = foreloop_allocate(allocator, gbdt->tree_count, sizeof *t->runs);
    if (!t->numbers || !t->nodes || !t->large || !t->roots || !t->runs)
        return foreloop_fail_memory(error, gbdt->node_count, sizeof *t->large, "the trees' copy");
    return FORELOOP_OK;
}

static void add_large_tree(tables *t, const foreloop_gbdt *gbdt, const foreloop_gbdt_tree *tree) {
    const size_t base = t->large_count;
    for (size_t i = 0; i < tree->node_count; i++) {
        const foreloop_gbdt_node *from = &gbdt->nodes[tree->root + i];
        foreloop_cuda_node *node = &t->large[t->large_count++];
        *node = (foreloop_cuda_node){.left = (uint32_t)(base + from->left - tree->root),
                                     .split = from->feature & ~FORELOOP_GBDT_FEATURE};
        if (!(from->feature & FORELOOP_GBDT_SPLIT))
            node->value = from->split.leaf;
        else if (from->feature & FORELOOP_GBDT_CATEGORICAL)
            node->set = from->split.set;
        else
            node->value = from->split.threshold;
        if (from->feature & FORELOOP_GBDT_SPLIT)
            node->split |= t->numbers[from->feature & FORELOOP_GBDT_FEATURE];
    }
}
_Static_assert(FORELOOP_CUDA_NODE_FEATURE == FORELOOP_GBDT_FEATURE && FORELOOP_CUDA_NODE_SPLIT == FORELOOP_GBDT_SPLIT &&
                   FORELOOP_CUDA_NODE_CATEGORICAL == FORELOOP_GBDT_CATEGORICAL &&
                   FORELOOP_CUDA_NODE_DEFAULT_LEFT == FORELOOP_GBDT_DEFAULT_LEFT,
               "flags are copied as they are");

static void fill_tables(tables *t, const foreloop_gbdt *gbdt) {
    const foreloop_gbdt_layout *layout = gbdt->layout;
    const uint32_t low = (UINT32_C(1) << FORELOOP_TREES_FEATURE_SHIFT) - 1;
    for (size_t i = 0; i < layout->node_count; i++) {
        foreloop_trees_node node = layout->nodes[i];
        if (!(node.word & FORELOOP_TREES_IS_LEAF))
            node.word = (node.word & low) | t->numbers[node.word >> FORELOOP_TREES_FEATURE_SHIFT]
                                                << FORELOOP_TREES_FEATURE_SHIFT;
        t->nodes[i] = node;
    }
    /* Trees of the one output that a ranker has. */
    for (size_t i = 0; i < gbdt->tree_count; i++) {
        const bool compact = layout->trees[i].shape != FORELOOP_TREES_WALK;
        t->roots[i] = compact ? layout->roots[i] : (uint32_t)t->large_count;
        if (!compact)
            add_large_tree(t, gbdt, &gbdt->trees[i]);
        if (t->run_count == 0 || t->runs[t->run_count - 1].compact != compact)
            t->runs[t->run_count++] = (foreloop_cuda_run){.begin = (uint32_t)i, .compact = compact};
        t->runs[t->run_count - 1].end = (uint32_t)i + 1;
    }
}

static foreloop_status upload(foreloop_cuda_ranker *ranker, const tables *t, const foreloop_gbdt *gbdt,
                              cudaStream_t stream, foreloop_error *error) {
    static const char what[] = "the trees";
    foreloop_cuda_trees *trees = &ranker->trees;
    foreloop_cuda_arrays *arrays = &ranker->arrays;
    FORELOOP_TRY(foreloop_cuda_arrays_upload(arrays, &trees->nodes, t->nodes, gbdt->layout->node_count,
                                             sizeof *t->nodes, what, stream, error));
    FORELOOP_TRY(foreloop_cuda_arrays_upload(arrays, &trees->large, t->large, t->large_count, sizeof *t->large, what,
                                             stream, error));
    FORELOOP_TRY(foreloop_cuda_arrays_upload(arrays, &trees->roots, t->roots, gbdt->tree_count, sizeof *t->roots, what,
                                             stream, error));
    FORELOOP_TRY(foreloop_cuda_arrays_upload(arrays, &trees->sets, gbdt->sets,
                                             gbdt->set_count ? gbdt->set_count + 1 : 0, sizeof *gbdt->sets, what,
                                             stream, error));
    FORELOOP_TRY(foreloop_cuda_arrays_upload(arrays, &trees->categories, gbdt->categories, gbdt->category_count,
                                             sizeof *gbdt->categories, what, stream, error));
    FORELOOP_TRY(
        foreloop_cuda_arrays_upload(arrays, &trees->runs, t->runs, t->run_count, sizeof *t->runs, what, stream, error));
    trees->run_count = (uint32_t)t->run_count;
    trees->base = gbdt->base_margins[0];
    return FORELOOP_OK;
}

static void number_columns(foreloop_cuda_ranker *ranker, tables *t, const foreloop_scorer_ranker *source) {
    for (size_t column = 0; column < source->column_count; column++) {
        t->numbers[column] = (uint32_t)ranker->row_width;
        ranker->row_width += source->reads[column];
    }
}

foreloop_status foreloop_cuda_ranker_open(foreloop_cuda_ranker *ranker, foreloop_cuda *gpu,
                                          const foreloop_scorer_ranker *source, cudaStream_t stream,
                                          foreloop_error *error) {
    const foreloop_allocator *allocator = &gpu->allocator;
    tables t = {0};
    *ranker = (foreloop_cuda_ranker){.arrays = {.gpu = gpu}, .gbdt = source->gbdt};
    foreloop_status status = allocate_tables(&t, source->gbdt, source, allocator, error);
    if (status == FORELOOP_OK) {
        number_columns(ranker, &t, source);
        fill_tables(&t, source->gbdt);
        status = upload(ranker, &t, source->gbdt, stream, error);
    }
    release_tables(&t, allocator);
    if (status != FORELOOP_OK)
        foreloop_cuda_ranker_close(ranker);
    return status;
}

void foreloop_cuda_ranker_close(foreloop_cuda_ranker *ranker) {
    if (!ranker->arrays.gpu)
        return;
    foreloop_cuda_arrays_close(&ranker->arrays);
    *ranker = (foreloop_cuda_ranker){0};
}
