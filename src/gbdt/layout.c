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
    pending *room; /* for the tests of a chunk, and for as many */
    size_t room_capacity;
    pending *sorted; /* the tests of a chunk, in `room` */
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

/* Room for a tree's tests, exits, leaves and nodes, and for what is read behind the last ones. */
static foreloop_status reserve_tree(builder *b, size_t tests, size_t exits, size_t leaves, size_t nodes) {
    const foreloop_allocator *allocator = &b->gbdt->allocator;
    foreloop_gbdt_layout *l = b->layout;
    const size_t tests_end = l->test_count + tests, exits_end = l->exit_count + exits;
    /* Offsets are 32 bits. A tree's tests are bounded by its splits, so this is far off. */
    if (tests_end > UINT32_MAX / 2 || exits_end > UINT32_MAX / 2 || l->leaf_count + leaves > UINT32_MAX / 2)
        return foreloop_fail(b->error, FORELOOP_ERROR_LIMIT, "the trees have more than 2^31 tests");
    FORELOOP_TRY(foreloop_reserve(allocator, &l->thresholds, &l->threshold_capacity, l->test_count,
                                  tests_end + FORELOOP_TREES_TABLE, sizeof *l->thresholds, b->error));
    FORELOOP_TRY(foreloop_reserve(allocator, &l->columns, &l->column_capacity, l->test_count, tests_end,
                                  sizeof *l->columns, b->error));
    FORELOOP_TRY(
        foreloop_reserve(allocator, &b->tests, &b->capacity, l->test_count, tests_end, sizeof *b->tests, b->error));
    FORELOOP_TRY(foreloop_reserve(allocator, &l->exits, &l->exit_capacity, l->exit_count,
                                  exits_end + FORELOOP_TREES_TABLE, sizeof *l->exits, b->error));
    FORELOOP_TRY(foreloop_reserve(allocator, &l->nodes, &l->node_capacity, l->node_count, l->node_count + nodes,
                                  sizeof *l->nodes, b->error));
    return foreloop_reserve(allocator, &l->leaves, &l->leaf_capacity, l->leaf_count,
                            l->leaf_count + leaves + FORELOOP_TREES_LEAVES, sizeof *l->leaves, b->error);
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

/* Tests for the complete subtree of `depth` levels under nodes[0], which in the end are the nodes below, by number. A
 * leaf further up is spread over all places below its own. */
static void push_levels(builder *b, uint32_t *nodes, unsigned depth) {
    for (unsigned level = 0; level < depth; level++) {
        const size_t width = (size_t)1 << level;
        for (size_t i = 0; i < width; i++) {
            const bool split = is_split(b->gbdt, nodes[i]);
            push_test(b, split ? nodes[i] : NO_NODE);
            nodes[i + width] = split ? b->gbdt->nodes[nodes[i]].left + 1 : nodes[i];
            nodes[i] = split ? b->gbdt->nodes[nodes[i]].left : nodes[i];
        }
    }
}

static void push_complete(builder *b, const foreloop_gbdt_tree *tree) {
    uint32_t nodes[FORELOOP_TREES_LEAVES];
    nodes[0] = tree->root;
    push_levels(b, nodes, tree->depth);
    for (size_t i = 0; i < (size_t)1 << tree->depth; i++)
        push_leaf(b, nodes[i]);
}

/* ---- Pieces ------------------------------------------------------------------------------------------------------ */

enum { MAX_NODES = 2 * FORELOOP_TREES_LEAVES - 1 };

/* How a tree is cut. Nodes by their places in the tree. */
typedef struct cutting {
    uint16_t roots[3][FORELOOP_TREES_LEAVES]; /* of the pieces of 3 levels, of 2, of 1 */
    size_t counts[3];
    uint8_t heights[MAX_NODES]; /* levels of tests under and at a node */
    uint8_t numbers[MAX_NODES]; /* of a piece's root and of a leaf: the state that leads there */
} cutting;

/* The nodes where rows leave a piece, each once; gives their number. */
static size_t find_exits(const builder *b, const foreloop_gbdt_tree *tree, size_t root, unsigned depth,
                         uint16_t exits[8]) {
    size_t count = 1;
    exits[0] = (uint16_t)root;
    for (unsigned level = 0; level < depth; level++)
        for (size_t i = count; i-- > 0;) {
            const size_t node = exits[i];
            if (!is_split(b->gbdt, tree->root + node))
                continue;
            exits[i] = (uint16_t)(b->gbdt->nodes[tree->root + node].left - tree->root);
            exits[count++] = (uint16_t)(exits[i] + 1);
        }
    return count;
}

/* Cuts pieces of 3 levels off the top until what hangs on them is lower than that. */
static void cut_tree(const builder *b, const foreloop_gbdt_tree *tree, cutting *c) {
    for (size_t i = tree->node_count; i-- > 0;) {
        const size_t left = b->gbdt->nodes[tree->root + i].left - tree->root;
        const uint8_t higher = left == i                                 ? 0
                               : c->heights[left] > c->heights[left + 1] ? c->heights[left]
                                                                         : c->heights[left + 1];
        c->heights[i] = left == i ? 0 : (uint8_t)(higher + 1);
    }
    c->roots[0][0] = 0;
    c->counts[0] = 1;
    c->counts[1] = c->counts[2] = 0;
    for (size_t piece = 0; piece < c->counts[0]; piece++) {
        uint16_t exits[8];
        const size_t count = find_exits(b, tree, c->roots[0][piece], 3, exits);
        for (size_t i = 0; i < count; i++)
            if (c->heights[exits[i]] > 0) {
                const size_t kind = c->heights[exits[i]] < 3 ? 3u - c->heights[exits[i]] : 0;
                c->roots[kind][c->counts[kind]++] = exits[i];
            }
    }
}

/* Numbers the pieces in order, and the leaves so that none that a piece leads to has a later piece's number: from the
 * last piece on, each gives its own number to a leaf that it or a later one leads to, of which there always is one. */
static void number_states(const builder *b, const foreloop_gbdt_tree *tree, cutting *c) {
    uint16_t waiting[FORELOOP_TREES_LEAVES], exits[8];
    const size_t pieces = c->counts[0] + c->counts[1] + c->counts[2];
    size_t waiting_count = 0, piece = pieces, next = pieces;
    for (unsigned levels = 1; levels <= 3; levels++)
        for (size_t i = c->counts[3 - levels]; i-- > 0;) {
            const uint16_t root = c->roots[3 - levels][i];
            const size_t count = find_exits(b, tree, root, levels, exits);
            c->numbers[root] = (uint8_t)--piece;
            for (size_t e = 0; e < count; e++)
                if (c->heights[exits[e]] == 0)
                    waiting[waiting_count++] = exits[e];
            c->numbers[waiting[--waiting_count]] = (uint8_t)piece;
        }
    while (waiting_count > 0)
        c->numbers[waiting[--waiting_count]] = (uint8_t)next++;
}

static void push_pieces(builder *b, const foreloop_gbdt_tree *tree, const cutting *c, size_t leaf_count) {
    foreloop_gbdt_layout *l = b->layout;
    for (unsigned levels = 3; levels > 0; levels--)
        for (size_t piece = 0; piece < c->counts[3 - levels]; piece++) {
            uint32_t nodes[8] = {tree->root + c->roots[3 - levels][piece]};
            push_levels(b, nodes, levels);
            for (size_t i = 0; i < (size_t)1 << levels; i++)
                l->exits[l->exit_count++] = c->numbers[nodes[i] - tree->root];
        }
    for (size_t i = 0; i < tree->node_count; i++)
        if (c->heights[i] == 0)
            l->leaves[l->leaf_count + c->numbers[i]] = b->gbdt->nodes[tree->root + i].split.leaf;
    l->leaf_count += leaf_count;
}

static foreloop_status build_pieces(builder *b, const foreloop_gbdt_tree *tree, size_t splits,
                                    foreloop_trees_tree *built) {
    cutting c;
    cut_tree(b, tree, &c);
    number_states(b, tree, &c);
    FORELOOP_TRY(reserve_tree(b, 7 * c.counts[0] + 3 * c.counts[1] + c.counts[2],
                              8 * c.counts[0] + 4 * c.counts[1] + 2 * c.counts[2], splits + 1, 2 * splits + 1));
    push_pieces(b, tree, &c, splits + 1);
    built->shape = FORELOOP_TREES_PIECES;
    for (size_t kind = 0; kind < 3; kind++)
        built->pieces[kind] = (uint8_t)c.counts[kind];
    return FORELOOP_OK;
}

/* ---- Each tree --------------------------------------------------------------------------------------------------- */

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
        .exit = (uint32_t)l->exit_count,
        .leaf = (uint32_t)l->leaf_count,
        .shape = FORELOOP_TREES_WALK,
    };
    l->roots[index] = (uint32_t)l->node_count;
    if (splits >= FORELOOP_TREES_LEAVES)
        return FORELOOP_OK;
    if (tree->depth <= FORELOOP_TREES_DEPTH && ((size_t)1 << tree->depth) - 1 <= COMPLETE_EXCESS * splits) {
        const size_t leaves = (size_t)1 << tree->depth;
        FORELOOP_TRY(reserve_tree(b, leaves - 1, 0, leaves, 2 * splits + 1));
        push_complete(b, tree);
        built->shape = FORELOOP_TREES_COMPLETE;
    } else {
        FORELOOP_TRY(build_pieces(b, tree, splits, built));
    }
    push_nodes(b, tree, splits);
    built->depth = (uint8_t)tree->depth;
    built->test_count = (uint16_t)(l->test_count - built->test);
    return FORELOOP_OK;
}

/* ---- Codes ------------------------------------------------------------------------------------------------------- */

/* Sorts by key: digit after digit from the lowest on, each time from one half of `items` to the other, in linear time;
 * digits that all keys share, as the upper ones of few features, are passed over. Gives the sorted half. */
static pending *sort_pending(pending *items, size_t count) {
    enum { BITS = 11, DIGITS = 1 << BITS };
    pending *from = items, *to = items + count;
    for (unsigned shift = 0; shift < 64 && count > 0; shift += BITS) {
        uint32_t places[DIGITS + 1] = {0}; /* tests are fewer than 2^31 */
        for (size_t i = 0; i < count; i++)
            places[(from[i].key >> shift) % DIGITS + 1]++;
        if (places[(from[0].key >> shift) % DIGITS + 1] == count)
            continue;
        for (size_t digit = 0; digit < DIGITS; digit++)
            places[digit + 1] += places[digit];
        for (size_t i = 0; i < count; i++)
            to[places[(from[i].key >> shift) % DIGITS]++] = from[i];
        pending *sorted = to;
        to = from;
        from = sorted;
    }
    return from;
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
        l->thresholds[test->test] = (int8_t)((int)count - 1 - 128);
        l->columns[test->test] = (uint16_t)(*column * FORELOOP_TREES_COLUMN_UNIT);
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
    FORELOOP_TRY(foreloop_reserve(&b->gbdt->allocator, &b->room, &b->room_capacity, 0, 2 * (last - first),
                                  sizeof *b->room, b->error));
    for (size_t i = first; i < last; i++)
        if (b->tests[i].node != NO_NODE)
            b->room[count++] = b->tests[i];
    b->sorted = sort_pending(b->room, count);
    if (count_columns(b, count) > FORELOOP_TREES_COLUMNS) {
        const size_t middle = begin + (end - begin) / 2;
        FORELOOP_TRY(build_chunks(b, begin, middle));
        return build_chunks(b, middle, end);
    }
    for (size_t i = first; i < last; i++)
        if (b->tests[i].node == NO_NODE) {
            l->thresholds[i] = INT8_MAX;
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

/* The number of rows from which on a block is faster than their walks. */
static size_t break_even(const foreloop_gbdt_layout *layout, size_t tree_count) {
    const foreloop_trees_costs costs = layout->kernels.costs;
    double tests = 0.0, row = 0.0;
    for (size_t t = 0; t < tree_count; t++) {
        const foreloop_trees_tree *tree = &layout->trees[t];
        if (tree->shape == FORELOOP_TREES_WALK)
            continue;
        tests += (double)tree->test_count * (tree->shape == FORELOOP_TREES_PIECES ? costs.piece_test : costs.test);
        /* Walks end when all that advance in step are at leaves: in deep trees long before the deepest one. */
        const double common = 2.0 * log2((double)tree->test_count + 1.0);
        row += fmin(tree->depth, common) * costs.step;
    }
    const double group = (double)costs.feature * (double)layout->feature_count;
    size_t rows = 1;
    while (rows < FORELOOP_TREES_ROWS &&
           tests + group * (double)((rows + FORELOOP_TREES_GROUP - 1) / FORELOOP_TREES_GROUP) > row * (double)rows)
        rows++;
    return rows;
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
    if (l->leaves)
        memset(l->leaves + l->leaf_count, 0, FORELOOP_TREES_LEAVES * sizeof *l->leaves);
    if (l->thresholds)
        memset(l->thresholds + l->test_count, 0, FORELOOP_TREES_TABLE);
    if (l->exits)
        memset(l->exits + l->exit_count, 0, FORELOOP_TREES_TABLE);
    if (b->gbdt->tree_count > 0)
        FORELOOP_TRY(build_chunks(b, 0, b->gbdt->tree_count));
    return build_used(b);
}

foreloop_status foreloop_gbdt_layout_create(foreloop_gbdt *gbdt, foreloop_tier limit, foreloop_error *error) {
    gbdt->layout = foreloop_allocate_zeroed(&gbdt->allocator, 1, sizeof *gbdt->layout);
    if (!gbdt->layout)
        return foreloop_fail_memory(error, 1, sizeof *gbdt->layout, "the trees");
    foreloop_trees_f32_init(&gbdt->layout->kernels, foreloop_cpu_tier(limit));
    return FORELOOP_OK;
}

void foreloop_gbdt_layout_choose(foreloop_gbdt *gbdt) {
    foreloop_gbdt_layout *l = gbdt->layout;
    for (size_t t = 0; t < gbdt->tree_count; t++) {
        if (l->trees[t].shape == FORELOOP_TREES_WALK)
            l->has_walks = true;
        else if (l->trees[t].depth > l->depth)
            l->depth = l->trees[t].depth;
    }
    l->min_rows = break_even(l, gbdt->tree_count);
}

foreloop_status foreloop_gbdt_layout_make(foreloop_gbdt *gbdt, foreloop_tier limit, foreloop_error *error) {
    builder b = {.gbdt = gbdt, .error = error};
    FORELOOP_TRY(foreloop_gbdt_layout_create(gbdt, limit, error));
    b.layout = gbdt->layout;
    foreloop_status status = build(&b);
    foreloop_release(&gbdt->allocator, b.tests);
    foreloop_release(&gbdt->allocator, b.room);
    if (status == FORELOOP_OK)
        foreloop_gbdt_layout_choose(gbdt);
    return status;
}

void foreloop_gbdt_layout_close(foreloop_gbdt *gbdt) {
    const foreloop_allocator *allocator = &gbdt->allocator;
    foreloop_gbdt_layout *layout = gbdt->layout;
    if (layout && !gbdt->borrowed) {
        foreloop_release(allocator, layout->trees);
        foreloop_release(allocator, layout->chunks);
        foreloop_release(allocator, layout->features);
        foreloop_release(allocator, layout->tables);
        foreloop_release(allocator, layout->thresholds);
        foreloop_release(allocator, layout->columns);
        foreloop_release(allocator, layout->exits);
        foreloop_release(allocator, layout->leaves);
        foreloop_release(allocator, layout->nodes);
        foreloop_release(allocator, layout->roots);
        foreloop_release(allocator, layout->used);
    }
    foreloop_release(allocator, layout);
}
