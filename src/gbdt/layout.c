/* Making the layouts: first each tree's shape, tests and leaves, then the codes that the tests compare. */
#include "gbdt/layout.h"
#include "common/sort.h"
#include "kernels_cpu/cpu.h"
#include <math.h>
#include <string.h>

#define NO_NODE UINT32_MAX
enum { COMPLETE_EXCESS = 4 };

/* A test that waits for its code. Ascending keys are ascending features, then thresholds. */
typedef struct pending {
    uint64_t key;
    uint32_t test;
    uint32_t node; /* NO_NODE: of a place in a complete tree where the tree has none; it sends every row left */
} pending;

typedef struct builder {
    const foreloop_gbdt *gbdt;
    foreloop_gbdt_layout *layout;
    foreloop_error *error;
    pending *tests; /* by test */
    size_t capacity;
    pending *sorted; /* the tests of a chunk, and room for as many */
    size_t sorted_capacity;
} builder;

/* ---- Trees ------------------------------------------------------------------------------------------------------- */

static bool is_split(const foreloop_gbdt *gbdt, size_t node) {
    return (gbdt->nodes[node].feature & FORELOOP_GBDT_SPLIT) != 0;
}

/* The number of a tree's splits, or SIZE_MAX when the kernels cannot take them. */
static size_t count_splits(const foreloop_gbdt *gbdt, const foreloop_gbdt_tree *tree) {
    size_t splits = 0;
    if (tree->categorical)
        return SIZE_MAX;
    /* There are as many nodes as children, and the root. */
    for (size_t i = 0; i < 2 * splits + 1; i++)
        if (is_split(gbdt, tree->root + i)) {
            if (isnan(gbdt->nodes[tree->root + i].split.threshold) ||
                (gbdt->nodes[tree->root + i].feature & FORELOOP_GBDT_FEATURE) >= FORELOOP_TREES_FEATURES)
                return SIZE_MAX;
            splits++;
        }
    return splits;
}

/* Room for a tree's tests, joins, leaves and nodes. */
static foreloop_status reserve_tree(builder *b, size_t tests, size_t joins, size_t leaves, size_t nodes) {
    const foreloop_allocator *allocator = &b->gbdt->allocator;
    foreloop_gbdt_layout *l = b->layout;
    const size_t tests_end = l->test_count + tests;
    /* Offsets are 32 bits. A complete tree is bounded by its splits, so this is far off. */
    if (tests_end > UINT32_MAX / 2 || l->leaf_count + leaves > UINT32_MAX / 2)
        return foreloop_fail(b->error, FORELOOP_ERROR_LIMIT, "the trees have more than 2^31 tests");
    FORELOOP_TRY(foreloop_reserve(allocator, &l->thresholds, &l->threshold_capacity, l->test_count, tests_end,
                                  sizeof *l->thresholds, b->error));
    FORELOOP_TRY(foreloop_reserve(allocator, &l->columns, &l->column_capacity, l->test_count, tests_end,
                                  sizeof *l->columns, b->error));
    FORELOOP_TRY(
        foreloop_reserve(allocator, &b->tests, &b->capacity, l->test_count, tests_end, sizeof *b->tests, b->error));
    FORELOOP_TRY(foreloop_reserve(allocator, &l->joins, &l->join_capacity, l->join_count, l->join_count + joins,
                                  sizeof *l->joins, b->error));
    FORELOOP_TRY(foreloop_reserve(allocator, &l->nodes, &l->node_capacity, l->node_count, l->node_count + nodes,
                                  sizeof *l->nodes, b->error));
    return foreloop_reserve(allocator, &l->leaves, &l->leaf_capacity, l->leaf_count,
                            l->leaf_count + leaves + FORELOOP_TREES_GROUP, sizeof *l->leaves, b->error);
}

static void push_test(builder *b, uint32_t node) {
    const uint32_t test = (uint32_t)b->layout->test_count++;
    uint64_t key = 0;
    if (node != NO_NODE) {
        /* Bits that ascend as the numbers do; -0 is 0. */
        const float threshold = b->gbdt->nodes[node].split.threshold + 0.0f;
        uint32_t bits;
        memcpy(&bits, &threshold, sizeof bits);
        bits = bits >> 31 ? ~bits : bits | UINT32_C(0x80000000);
        key = (uint64_t)(b->gbdt->nodes[node].feature & FORELOOP_GBDT_FEATURE) << 32 | bits;
    }
    b->tests[test] = (pending){key, test, node};
}

static void push_leaf(builder *b, uint32_t node) {
    b->layout->leaves[b->layout->leaf_count++] = b->gbdt->nodes[node].split.leaf;
}

/* A leaf above the last level is spread over the leaves below its place. */
static void push_complete(builder *b, const foreloop_gbdt_tree *tree) {
    uint32_t nodes[2 * FORELOOP_TREES_LEAVES - 1];
    const size_t tests = ((size_t)1 << tree->depth) - 1;
    nodes[0] = tree->root;
    for (size_t i = 0; i < tests; i++) {
        const bool split = is_split(b->gbdt, nodes[i]);
        push_test(b, split ? nodes[i] : NO_NODE);
        nodes[2 * i + 1] = split ? b->gbdt->nodes[nodes[i]].left : nodes[i];
        nodes[2 * i + 2] = split ? b->gbdt->nodes[nodes[i]].left + 1 : nodes[i];
    }
    for (size_t i = tests; i < 2 * tests + 1; i++)
        push_leaf(b, nodes[i]);
}

/* What joins need to know of each node, by its place in the tree. */
typedef struct subtree {
    uint16_t leaves, slots;
} subtree;

static void push_joins_under(builder *b, uint32_t root, const subtree *subtrees, uint32_t node, uint16_t slot) {
    const uint32_t left = b->gbdt->nodes[node].left;
    if (left == node) /* a leaf */
        return;
    const subtree *l = &subtrees[left - root], *r = l + 1;
    /* The side that takes more slots goes first: while the other one is at work, only its result is kept. */
    const bool left_first = l->slots >= r->slots;
    const uint16_t next = (uint16_t)(slot + 1);
    const uint16_t left_slot = left_first ? slot : next, right_slot = left_first ? next : slot;
    push_joins_under(b, root, subtrees, left_first ? left : left + 1, slot);
    push_joins_under(b, root, subtrees, left_first ? left + 1 : left, next);
    push_test(b, node);
    b->layout->joins[b->layout->join_count++] = (foreloop_trees_join){
        .left_leaves = l->leaves * UINT32_C(0x01010101),
        .left = l->slots > 0 ? left_slot : 0,
        .right = r->slots > 0 ? right_slot : 0,
        .into = slot,
    };
}

static void push_leaves_under(builder *b, uint32_t node) {
    const uint32_t left = b->gbdt->nodes[node].left;
    if (left == node) {
        push_leaf(b, node);
        return;
    }
    push_leaves_under(b, left);
    push_leaves_under(b, left + 1);
}

static void push_joins(builder *b, const foreloop_gbdt_tree *tree, size_t splits) {
    subtree subtrees[2 * FORELOOP_TREES_LEAVES - 1];
    for (size_t i = 2 * splits + 1; i-- > 0;) {
        const size_t left = b->gbdt->nodes[tree->root + i].left - tree->root;
        if (left == i) {
            subtrees[i] = (subtree){1, 0};
            continue;
        }
        const subtree *l = &subtrees[left], *r = l + 1;
        const uint16_t more = l->slots > r->slots ? l->slots : r->slots;
        const uint16_t fewer = l->slots > r->slots ? r->slots : l->slots;
        const bool another = fewer == more || more == 0;
        subtrees[i] = (subtree){(uint16_t)(l->leaves + r->leaves), (uint16_t)(more + (another ? 1 : 0))};
    }
    push_joins_under(b, tree->root, subtrees, tree->root, 1);
    push_leaves_under(b, tree->root);
}

static void push_nodes(builder *b, const foreloop_gbdt_tree *tree, size_t splits) {
    for (size_t i = 0; i < 2 * splits + 1; i++) {
        const foreloop_gbdt_node *from = &b->gbdt->nodes[tree->root + i];
        foreloop_trees_node *node = &b->layout->nodes[b->layout->node_count++];
        node->word = from->left - tree->root;
        if (!is_split(b->gbdt, tree->root + i)) {
            node->value = from->split.leaf;
            node->word |= FORELOOP_TREES_IS_LEAF;
            continue;
        }
        node->value = from->split.threshold;
        node->word |= (from->feature & FORELOOP_GBDT_FEATURE) << FORELOOP_TREES_FEATURE_SHIFT;
        node->word |= from->feature & FORELOOP_GBDT_DEFAULT_LEFT ? FORELOOP_TREES_DEFAULT_LEFT : 0u;
    }
}

static foreloop_status build_tree(builder *b, size_t index) {
    foreloop_gbdt_layout *l = b->layout;
    const foreloop_gbdt_tree *tree = &b->gbdt->trees[index];
    const size_t splits = count_splits(b->gbdt, tree);
    foreloop_trees_tree *built = &l->trees[index];
    *built = (foreloop_trees_tree){
        .test = (uint32_t)l->test_count,
        .join = (uint32_t)l->join_count,
        .leaf = (uint32_t)l->leaf_count,
        .shape = FORELOOP_TREES_WALK,
    };
    l->roots[index] = (uint32_t)l->node_count;
    if (splits >= FORELOOP_TREES_LEAVES) {
        l->has_walks = true;
        return FORELOOP_OK;
    }
    if (tree->depth <= FORELOOP_TREES_DEPTH && ((size_t)1 << tree->depth) - 1 <= COMPLETE_EXCESS * splits) {
        const size_t leaves = (size_t)1 << tree->depth;
        FORELOOP_TRY(reserve_tree(b, leaves - 1, 0, leaves, 2 * splits + 1));
        push_complete(b, tree);
        built->shape = FORELOOP_TREES_COMPLETE;
    } else {
        FORELOOP_TRY(reserve_tree(b, splits, splits, splits + 1, 2 * splits + 1));
        push_joins(b, tree, splits);
        built->shape = FORELOOP_TREES_JOINS;
    }
    push_nodes(b, tree, splits);
    built->depth = (uint8_t)tree->depth;
    l->depth = tree->depth > l->depth ? tree->depth : l->depth;
    built->test_count = (uint16_t)(l->test_count - built->test);
    return FORELOOP_OK;
}

/* ---- Codes ------------------------------------------------------------------------------------------------------- */

/* Sorts by key: digit after digit from the lowest on, each time from one half of `items` to the other, in linear time.
 * The items and, in the end, the result are in the first half. */
static void sort_pending(pending *items, size_t count) {
    pending *from = items, *to = items + count;
    for (unsigned shift = 0; shift < 64; shift += 8) {
        size_t places[257] = {0};
        for (size_t i = 0; i < count; i++)
            places[(from[i].key >> shift & 255) + 1]++;
        for (size_t digit = 0; digit < 256; digit++)
            places[digit + 1] += places[digit];
        for (size_t i = 0; i < count; i++)
            to[places[from[i].key >> shift & 255]++] = from[i];
        pending *sorted = to;
        to = from;
        from = sorted;
    }
}

static uint32_t feature_of(const pending *test) {
    return (uint32_t)(test->key >> 32);
}

static float threshold_of(const builder *b, const pending *test) {
    return b->gbdt->nodes[test->node].split.threshold;
}

static bool goes_left_by_default(const builder *b, const pending *test) {
    return (b->gbdt->nodes[test->node].feature & FORELOOP_GBDT_DEFAULT_LEFT) != 0;
}

/* The end of the tests from `begin` on that share a feature's columns, and the number of their thresholds. */
static size_t end_of_columns(const builder *b, size_t begin, size_t end, size_t *thresholds) {
    size_t i = begin;
    *thresholds = 0;
    while (i < end && feature_of(&b->sorted[i]) == feature_of(&b->sorted[begin])) {
        if (i == begin || b->sorted[i].key != b->sorted[i - 1].key) {
            if (*thresholds == FORELOOP_TREES_THRESHOLDS)
                break;
            ++*thresholds;
        }
        i++;
    }
    return i;
}

/* Codes for the tests begin <= i < end, which have `thresholds` of one feature; adds their columns to *columns. */
static foreloop_status push_feature(builder *b, size_t begin, size_t end, size_t thresholds, size_t *columns) {
    foreloop_gbdt_layout *l = b->layout;
    const foreloop_allocator *allocator = &b->gbdt->allocator;
    foreloop_trees_feature feature = {
        .feature = feature_of(&b->sorted[begin]),
        .table = (uint32_t)l->table_size,
        .levels = 4,
        .count = (uint16_t)thresholds,
        .lefts = FORELOOP_TREES_COLUMNS,
        .rights = FORELOOP_TREES_COLUMNS,
    };
    while (thresholds >> feature.levels > 0)
        feature.levels++;
    const size_t places = (size_t)1 << feature.levels;
    float ascending[FORELOOP_TREES_THRESHOLDS + 1];
    size_t count = 0;
    for (size_t i = 0; i < places; i++)
        ascending[i] = NAN;
    for (size_t i = begin; i < end; i++) {
        const pending *test = &b->sorted[i];
        uint16_t *column = goes_left_by_default(b, test) ? &feature.lefts : &feature.rights;
        if (*column == FORELOOP_TREES_COLUMNS)
            *column = (uint16_t)(*columns)++;
        if (i == begin || test->key != test[-1].key)
            ascending[count++] = threshold_of(b, test);
        l->thresholds[test->test] = (uint8_t)(count - 1 - 128) * UINT32_C(0x01010101);
        l->columns[test->test] = (uint16_t)(*column * FORELOOP_TREES_ROWS);
    }
    FORELOOP_TRY(foreloop_reserve(allocator, &l->tables, &l->table_capacity, l->table_size, l->table_size + places,
                                  sizeof *l->tables, b->error));
    float *table = l->tables + l->table_size;
    l->table_size += places;
    table[0] = NAN;
    for (size_t m = 1, level = 0; level < feature.levels; level++)
        for (size_t i = 0; i < (size_t)1 << level; i++)
            table[m++] = ascending[(2 * i + 1) * (places >> (level + 1)) - 1];
    FORELOOP_TRY(foreloop_reserve(allocator, &l->features, &l->feature_capacity, l->feature_count, l->feature_count + 1,
                                  sizeof *l->features, b->error));
    l->features[l->feature_count++] = feature;
    return FORELOOP_OK;
}

/* An upper bound of the columns of the tests that are sorted. */
static size_t count_columns(const builder *b, size_t count) {
    size_t columns = 0, thresholds;
    for (size_t begin = 0; begin < count;) {
        size_t end = end_of_columns(b, begin, count, &thresholds);
        size_t lefts = 0;
        for (size_t i = begin; i < end; i++)
            lefts += goes_left_by_default(b, &b->sorted[i]);
        columns += lefts > 0 && lefts < end - begin ? 2 : 1;
        begin = end;
    }
    return columns;
}

/* Chunks for the trees begin <= t < end: one if its columns are few enough, else those of each half. */
static foreloop_status build_chunks(builder *b, size_t begin, size_t end) {
    foreloop_gbdt_layout *l = b->layout;
    const size_t first = l->trees[begin].test, last = end < b->gbdt->tree_count ? l->trees[end].test : l->test_count;
    size_t count = 0, columns = 0, thresholds;
    FORELOOP_TRY(foreloop_reserve(&b->gbdt->allocator, &b->sorted, &b->sorted_capacity, 0, 2 * (last - first),
                                  sizeof *b->sorted, b->error));
    for (size_t i = first; i < last; i++)
        if (b->tests[i].node != NO_NODE)
            b->sorted[count++] = b->tests[i];
    sort_pending(b->sorted, count);
    if (count_columns(b, count) > FORELOOP_TREES_COLUMNS) {
        const size_t middle = begin + (end - begin) / 2;
        FORELOOP_TRY(build_chunks(b, begin, middle));
        return build_chunks(b, middle, end);
    }
    for (size_t i = first; i < last; i++)
        if (b->tests[i].node == NO_NODE) {
            l->thresholds[i] = 127 * UINT32_C(0x01010101);
            l->columns[i] = 0;
        }
    foreloop_gbdt_chunk chunk = {begin, end, l->feature_count, 0};
    for (size_t i = 0, next; i < count; i = next) {
        next = end_of_columns(b, i, count, &thresholds);
        FORELOOP_TRY(push_feature(b, i, next, thresholds, &columns));
    }
    chunk.feature_end = l->feature_count;
    FORELOOP_TRY(foreloop_reserve(&b->gbdt->allocator, &l->chunks, &l->chunk_capacity, l->chunk_count,
                                  l->chunk_count + 1, sizeof *l->chunks, b->error));
    l->chunks[l->chunk_count++] = chunk;
    return FORELOOP_OK;
}

/* ---- Features in use --------------------------------------------------------------------------------------------- */

static int compare_features(const void *a, const void *b, const void *context) {
    (void)context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static foreloop_status push_used(builder *b, uint32_t feature) {
    foreloop_gbdt_layout *l = b->layout;
    FORELOOP_TRY(foreloop_reserve(&b->gbdt->allocator, &l->used, &l->used_capacity, l->used_count, l->used_count + 1,
                                  sizeof *l->used, b->error));
    l->used[l->used_count++] = feature;
    return FORELOOP_OK;
}

size_t foreloop_gbdt_used_place(const foreloop_gbdt_layout *layout, uint32_t feature) {
    size_t low = 0, high = layout->used_count;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (layout->used[middle] <= feature)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Those of the chunks, and those of trees that are walked. */
static foreloop_status build_used(builder *b) {
    const foreloop_gbdt *gbdt = b->gbdt;
    foreloop_gbdt_layout *l = b->layout;
    for (size_t i = 0; i < l->feature_count; i++)
        FORELOOP_TRY(push_used(b, l->features[i].feature));
    for (size_t t = 0; t < gbdt->tree_count; t++) {
        if (l->trees[t].shape != FORELOOP_TREES_WALK)
            continue;
        size_t splits = 0;
        for (size_t i = gbdt->trees[t].root; i < gbdt->trees[t].root + 2 * splits + 1; i++)
            if (is_split(gbdt, i)) {
                FORELOOP_TRY(push_used(b, gbdt->nodes[i].feature & FORELOOP_GBDT_FEATURE));
                splits++;
            }
    }
    foreloop_sort(l->used, l->used_count, sizeof *l->used, compare_features, NULL);
    size_t distinct = 0;
    for (size_t i = 0; i < l->used_count; i++)
        if (i == 0 || l->used[i] != l->used[i - 1])
            l->used[distinct++] = l->used[i];
    l->used_count = distinct;
    for (size_t i = 0; i < l->feature_count; i++)
        l->features[i].used = (uint32_t)foreloop_gbdt_used_place(l, l->features[i].feature);
    return FORELOOP_OK;
}

/* ---- Blocks or rows ---------------------------------------------------------------------------------------------- */

/* The number of rows at which their walks take as long as a block. */
static size_t break_even(const foreloop_gbdt_layout *layout, size_t tree_count) {
    const foreloop_trees_costs costs = layout->kernels.costs;
    double block = (double)costs.feature * (double)layout->feature_count, row = 1.0;
    for (size_t t = 0; t < tree_count; t++) {
        const foreloop_trees_tree *tree = &layout->trees[t];
        if (tree->shape == FORELOOP_TREES_WALK)
            continue;
        block += (double)tree->test_count * (tree->shape == FORELOOP_TREES_JOINS ? costs.join : costs.test);
        /* Walks end when all that advance in step are at leaves: in deep trees long before the deepest one. */
        const double common = 2.0 * log2((double)tree->test_count + 1.0);
        row += fmin(tree->depth, common) * costs.step;
    }
    return (size_t)fmin(block / row, FORELOOP_TREES_ROWS);
}

/* ---- Making ------------------------------------------------------------------------------------------------------ */

static foreloop_status build(builder *b) {
    foreloop_gbdt_layout *l = b->layout;
    l->trees = foreloop_allocate(&b->gbdt->allocator, b->gbdt->tree_count, sizeof *l->trees);
    l->roots = foreloop_allocate(&b->gbdt->allocator, b->gbdt->tree_count, sizeof *l->roots);
    if (!l->trees || !l->roots)
        return foreloop_fail_memory(b->error, b->gbdt->tree_count, sizeof *l->trees, "the trees");
    for (size_t t = 0; t < b->gbdt->tree_count; t++)
        FORELOOP_TRY(build_tree(b, t));
    for (size_t i = 0; l->leaves && i < FORELOOP_TREES_GROUP; i++)
        l->leaves[l->leaf_count + i] = 0.0f;
    if (b->gbdt->tree_count > 0)
        FORELOOP_TRY(build_chunks(b, 0, b->gbdt->tree_count));
    l->min_rows = break_even(l, b->gbdt->tree_count);
    return build_used(b);
}

foreloop_status foreloop_gbdt_layout_make(foreloop_gbdt *gbdt, foreloop_tier limit, foreloop_error *error) {
    builder b = {.gbdt = gbdt, .error = error};
    b.layout = foreloop_allocate_zeroed(&gbdt->allocator, 1, sizeof *b.layout);
    if (!b.layout)
        return foreloop_fail_memory(error, 1, sizeof *b.layout, "the trees");
    gbdt->layout = b.layout;
    foreloop_trees_f32_init(&b.layout->kernels, foreloop_cpu_tier(limit));
    foreloop_status status = build(&b);
    foreloop_release(&gbdt->allocator, b.tests);
    foreloop_release(&gbdt->allocator, b.sorted);
    return status;
}

void foreloop_gbdt_layout_close(const foreloop_allocator *allocator, foreloop_gbdt_layout *layout) {
    if (!layout)
        return;
    foreloop_release(allocator, layout->trees);
    foreloop_release(allocator, layout->chunks);
    foreloop_release(allocator, layout->features);
    foreloop_release(allocator, layout->tables);
    foreloop_release(allocator, layout->thresholds);
    foreloop_release(allocator, layout->columns);
    foreloop_release(allocator, layout->joins);
    foreloop_release(allocator, layout->leaves);
    foreloop_release(allocator, layout->nodes);
    foreloop_release(allocator, layout->roots);
    foreloop_release(allocator, layout->used);
    foreloop_release(allocator, layout);
}
