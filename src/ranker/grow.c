/*
 * Depth-wise trees. A split node's rows are divided; the histogram of the smaller child is summed, and subtracted from
 * the node's own it becomes the larger child's, in place. The children's splits are found while their blocks are in the
 * cache. Nodes are expanded depth first, so that a histogram is used soon after it was made and few are kept; since
 * every node's split is its own affair, the tree is the same as breadth first.
 *
 * Where nodes draw their own features, each sums histograms of those alone.
 */
#include "ranker/grow.h"
#include "common/number.h"
#include "common/random.h"
#include <float.h>
#include <math.h>
#include <string.h>

enum { LANES = FORELOOP_BOOST_LANES, LINE = FORELOOP_BOOST_LINE };

/* A node with a split, waiting to be expanded, and its histograms, NULL where nodes draw their own features. */
typedef struct foreloop_ranker_pending {
    size_t node;
    uint64_t *histograms;
} pending;

static bool draws_by_node(const foreloop_ranker_grower *grower) {
    return grower->options->columns_by_node < 1.0f;
}

/* ---- Features ---------------------------------------------------------------------------------------------------- */

static size_t share_of(float share, size_t count) {
    const size_t result = (size_t)((double)share * (double)count + 0.5);
    return result < 1 ? 1 : result < count ? result : count;
}

/* Draws `wanted` of from[count] without repetition into `drawn`, rising. */
static void draw(uint32_t *drawn, const uint32_t *from, size_t count, size_t wanted, uint64_t random) {
    /* Each is taken with the chance that the share still wanted asks for. */
    size_t kept = 0;
    for (size_t i = 0; kept < wanted; i++)
        if (foreloop_random_below(&random, count - i) < wanted - kept)
            drawn[kept++] = from[i];
}

/* Blocks of features[count]. */
static void make_blocks(const foreloop_ranker_grower *grower, foreloop_ranker_blocks *made, const uint32_t *features,
                        size_t count) {
    const foreloop_ranker_bins *bins = grower->bins;
    made->count = made->size = 0;
    for (size_t first = 0; first < count; first += LANES) {
        foreloop_boost_block *block = &made->blocks[made->count++];
        memset(block, 0, sizeof *block);
        block->lane_count = count - first < LANES ? count - first : LANES;
        block->offset = made->size;
        block->dense = features[first] % LANES == 0;
        for (size_t k = 0; k < block->lane_count; k++) {
            const uint32_t feature = features[first + k];
            block->features[k] = feature;
            block->columns[k] = foreloop_ranker_codes(bins, feature);
            block->dense = block->dense && feature == features[first] + k;
            if (bins->features[feature].bins + (size_t)1 > block->code_count)
                block->code_count = bins->features[feature].bins + (size_t)1;
        }
        /* Lanes to spare have codes of 0, while all features of the line stand in a row. */
        block->dense =
            block->dense && (block->lane_count == LANES || features[first] + block->lane_count == bins->feature_count);
        made->size += block->code_count * LANES;
    }
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

static foreloop_status allocate_blocks(foreloop_ranker_grower *made, foreloop_ranker_blocks *blocks, size_t count) {
    blocks->blocks = foreloop_allocate(made->allocator, count, sizeof *blocks->blocks);
    return blocks->blocks ? FORELOOP_OK : FORELOOP_ERROR_MEMORY;
}

foreloop_status foreloop_ranker_grower_create(foreloop_ranker_grower *grower, const foreloop_allocator *allocator,
                                              const foreloop_ranker_bins *bins, const foreloop_ranker_options *options,
                                              const foreloop_boost *kernels, const foreloop_ranker_gradients *gradients,
                                              foreloop_error *error) {
    foreloop_ranker_grower made = {
        .allocator = allocator, .bins = bins, .options = options, .kernels = kernels, .gradients = gradients};
    const size_t features = bins->feature_count, blocks = (features + LANES - 1) / LANES;
    made.rows = foreloop_allocate(allocator, bins->row_count, sizeof *made.rows);
    made.scratch = foreloop_allocate(allocator, bins->row_count, sizeof *made.scratch);
    made.drawn = foreloop_allocate(allocator, features, 2 * sizeof *made.drawn);
    made.splits = foreloop_allocate(allocator, blocks, 2 * sizeof *made.splits);
    if (!made.rows || !made.scratch || !made.drawn || !made.splits ||
        allocate_blocks(&made, &made.tree, blocks) != FORELOOP_OK ||
        (draws_by_node(&made) && (allocate_blocks(&made, &made.own[0], blocks) != FORELOOP_OK ||
                                  allocate_blocks(&made, &made.own[1], blocks) != FORELOOP_OK))) {
        foreloop_ranker_grower_close(&made);
        return foreloop_fail_memory(error, bins->row_count, 2 * sizeof *made.rows, "the trees");
    }
    *grower = made;
    return FORELOOP_OK;
}

void foreloop_ranker_grower_close(foreloop_ranker_grower *grower) {
    const foreloop_allocator *allocator = grower->allocator;
    for (size_t i = 0; i < grower->buffer_count; i++)
        foreloop_release(allocator, grower->buffers[i]);
    foreloop_release(allocator, (void *)grower->buffers);
    foreloop_release(allocator, grower->pending);
    foreloop_release(allocator, grower->nodes);
    foreloop_release(allocator, grower->own[1].blocks);
    foreloop_release(allocator, grower->own[0].blocks);
    foreloop_release(allocator, grower->tree.blocks);
    foreloop_release(allocator, grower->splits);
    foreloop_release(allocator, grower->drawn);
    foreloop_release(allocator, grower->scratch);
    foreloop_release(allocator, grower->rows);
}

/* Takes a free buffer, or makes one. Every buffer has room for the histograms of all features. */
static foreloop_status take_buffer(foreloop_ranker_grower *grower, uint64_t **buffer, foreloop_error *error) {
    if (grower->buffer_free == 0) {
        size_t size = 0;
        for (size_t i = 0; i < grower->bins->feature_count; i += LANES)
            size += (grower->bins->features[i].bins + (size_t)1) * LANES;
        FORELOOP_TRY(foreloop_reserve_one(grower->allocator, (void *)&grower->buffers, &grower->buffer_capacity,
                                          grower->buffer_count, sizeof *grower->buffers, error));
        uint64_t *made = foreloop_allocate(grower->allocator, size, sizeof *made);
        if (!made)
            return foreloop_fail_memory(error, size, sizeof *made, "the histograms");
        if (grower->buffer_count)
            grower->buffers[grower->buffer_count] = grower->buffers[0];
        grower->buffers[0] = made;
        grower->buffer_count++;
        grower->buffer_free = 1;
    }
    *buffer = grower->buffers[--grower->buffer_free];
    return FORELOOP_OK;
}

static void give_buffer(foreloop_ranker_grower *grower, uint64_t *buffer) {
    size_t place = grower->buffer_free;
    while (grower->buffers[place] != buffer)
        place++;
    grower->buffers[place] = grower->buffers[grower->buffer_free];
    grower->buffers[grower->buffer_free++] = buffer;
}

/* ---- Splits ------------------------------------------------------------------------------------------------------ */

static double gradient_of(const foreloop_ranker_grower *grower, uint64_t sum) {
    return (double)foreloop_boost_gradient(sum) * grower->gradients->gradient_unit;
}

static double hessian_of(const foreloop_ranker_grower *grower, uint64_t sum) {
    return (double)foreloop_boost_hessian(sum) * grower->gradients->hessian_unit;
}

static double gain_of(const foreloop_ranker_grower *grower, uint64_t sum) {
    const double gradient = gradient_of(grower, sum);
    const double weight = hessian_of(grower, sum) + (double)grower->options->lambda;
    return weight > 0 ? gradient * gradient / weight : 0;
}

static float leaf_of(const foreloop_ranker_grower *grower, uint64_t sum) {
    const double weight = hessian_of(grower, sum) + (double)grower->options->lambda;
    const double step = weight > 0 ? -gradient_of(grower, sum) / weight : 0;
    return foreloop_double_to_float(step * (double)grower->options->eta) + 0.0f;
}

/* The least hessian of a child in packed units, from 1; INT32_MAX + 1 where none is enough. */
static int64_t least_hessian(const foreloop_ranker_grower *grower) {
    const double least = ceil((double)grower->options->min_child_weight / grower->gradients->hessian_unit);
    return least < 1 ? 1 : least > (double)INT32_MAX ? (int64_t)INT32_MAX + 1 : (int64_t)least;
}

static bool may_split(const foreloop_ranker_grower *grower, const foreloop_ranker_node *node) {
    return node->depth < grower->options->depth && node->end - node->begin >= 2 &&
           foreloop_boost_hessian(node->sum) >= 2 * least_hessian(grower);
}

/* How a node's histograms come about. */
typedef struct child_work {
    foreloop_ranker_node *node;
    const foreloop_ranker_blocks *blocks;
    uint64_t *histograms;    /* NULL: nothing to do */
    const uint64_t *sibling; /* not NULL: to be subtracted from what is in `histograms` */
    foreloop_boost_node kernel_node;
    foreloop_ranker_split *splits; /* [blocks] */
} child_work;

typedef struct search_work {
    const foreloop_ranker_grower *grower;
    child_work children[2];
} search_work;

static void take_best(const foreloop_boost_block *block, const foreloop_boost_best *best,
                      foreloop_ranker_split *split) {
    *split = (foreloop_ranker_split){.gain = 0};
    for (size_t k = 0; k < block->lane_count; k++) {
        if (best->gain[k] > split->gain)
            *split = (foreloop_ranker_split){.gain = best->gain[k],
                                             .feature = block->features[k],
                                             .code = (uint32_t)best->code[k],
                                             .missing_left = best->missing_left[k] != 0,
                                             .place = block->offset + k};
    }
}

/* One block of both children. */
static void search_block(void *argument, size_t index) {
    const search_work *all = argument;
    const foreloop_ranker_grower *grower = all->grower;
    for (size_t c = 0; c < 2; c++) {
        const child_work *child = &all->children[c];
        foreloop_boost_best best;
        if (!child->histograms || index >= child->blocks->count)
            continue;
        const foreloop_boost_block *block = &child->blocks->blocks[index];
        uint64_t *histogram = child->histograms + block->offset;
        if (child->sibling)
            grower->kernels->subtract(histogram, child->sibling + block->offset, block->code_count);
        else
            grower->kernels->histogram(block, grower->gradients->packed, grower->rows + child->node->begin,
                                       child->node->end - child->node->begin, histogram);
        if (!child->splits)
            continue;
        grower->kernels->scan(&child->kernel_node, histogram, block->code_count, &best);
        take_best(block, &best, &child->splits[index]);
    }
}

/* The node's best split over all blocks. Between equal gains the lowest column decides, wherever its block is. */
static const foreloop_ranker_split *best_split(const foreloop_ranker_grower *grower, const child_work *child) {
    const foreloop_ranker_split *best = &child->splits[0];
    const foreloop_ranker_feature *features = grower->bins->features;
    for (size_t i = 1; i < child->blocks->count; i++) {
        const foreloop_ranker_split *other = &child->splits[i];
        if (other->gain > best->gain ||
            (other->gain == best->gain && features[other->feature].column < features[best->feature].column))
            best = other;
    }
    return best;
}

/* Whether the split is worth it; then it is the node's. */
static bool accept(const foreloop_ranker_grower *grower, const child_work *child) {
    const foreloop_ranker_split *split = best_split(grower, child);
    foreloop_ranker_node *node = child->node;
    const uint64_t *sums = child->histograms + split->place;
    if (!(split->gain > 0))
        return false;
    /* Once more in double precision: the difference to the node's own gain may be small. */
    uint64_t left = split->missing_left ? sums[0] : 0;
    for (size_t code = 1; code <= split->code; code++)
        left += sums[code * LANES];
    const uint64_t right = node->sum - left;
    const double gain = gain_of(grower, left) + gain_of(grower, right) - gain_of(grower, node->sum);
    if (!(gain > 1e-6 && gain >= (double)grower->options->min_split_gain))
        return false;
    node->feature = split->feature;
    node->code = split->code;
    /* A missing value that training does not know goes with most. */
    node->missing_left = sums[0] ? split->missing_left : foreloop_boost_hessian(left) > foreloop_boost_hessian(right);
    node->gain = gain;
    return true;
}

/* ---- Nodes ------------------------------------------------------------------------------------------------------- */

static uint64_t goes_left(uint8_t code, const foreloop_ranker_node *node) {
    return code == 0 ? node->missing_left : code <= node->code;
}

/* Divides the node's rows, in order, between its children. */
static void divide(foreloop_ranker_grower *grower, size_t index) {
    const foreloop_ranker_node *node = &grower->nodes[index];
    foreloop_ranker_node *left = &grower->nodes[node->left], *right = left + 1;
    const uint8_t *codes = foreloop_ranker_codes(grower->bins, node->feature);
    const uint64_t *packed = grower->gradients->packed;
    uint32_t *rows = grower->rows, *scratch = grower->scratch;
    size_t lefts = node->begin, rights = 0;
    uint64_t sum = 0;
    for (size_t i = node->begin; i < node->end; i++) {
        const uint32_t row = rows[i];
        const uint64_t is_left = goes_left(codes[(size_t)row * LINE], node);
        rows[lefts] = scratch[rights] = row;
        sum += packed[row] & (0 - is_left);
        lefts += is_left;
        rights += 1 - is_left;
    }
    memcpy(rows + lefts, scratch, rights * sizeof *rows);
    *left = (foreloop_ranker_node){
        .begin = node->begin, .end = lefts, .sum = sum, .path = 2 * node->path, .depth = node->depth + 1};
    *right = (foreloop_ranker_node){
        .begin = lefts, .end = node->end, .sum = node->sum - sum, .path = 2 * node->path + 1, .depth = node->depth + 1};
    left->value = leaf_of(grower, left->sum);
    right->value = leaf_of(grower, right->sum);
}

static void set_child(foreloop_ranker_grower *grower, child_work *child, size_t node, size_t place,
                      uint64_t *histograms, size_t round) {
    const double lambda = (double)grower->options->lambda / grower->gradients->hessian_unit;
    child->node = &grower->nodes[node];
    child->histograms = histograms;
    child->blocks = &grower->tree;
    if (!may_split(grower, child->node))
        return;
    child->kernel_node = (foreloop_boost_node){.sum = child->node->sum,
                                               .min_hessian = (int32_t)least_hessian(grower),
                                               .lambda = (float)(lambda < 0x1p45 ? lambda : 0x1p45)};
    child->splits = grower->splits + place * ((grower->bins->feature_count + LANES - 1) / LANES);
    if (!draws_by_node(grower))
        return;
    size_t features = 0;
    for (size_t i = 0; i < grower->tree.count; i++)
        features += grower->tree.blocks[i].lane_count;
    const size_t wanted = share_of(grower->options->columns_by_node, features);
    draw(grower->drawn + grower->bins->feature_count, grower->drawn, features, wanted,
         foreloop_random_stream(grower->options->seed, FORELOOP_RANDOM_NODE, round, child->node->path));
    make_blocks(grower, &grower->own[place], grower->drawn + grower->bins->feature_count, wanted);
    child->blocks = &grower->own[place];
}

/* Looks for the splits of one or two nodes, which wait for their expansion if they find one. */
static foreloop_status search(foreloop_ranker_grower *grower, search_work *all, foreloop_error *error) {
    size_t blocks = 0;
    for (size_t c = 0; c < 2; c++)
        if (all->children[c].histograms && all->children[c].blocks->count > blocks)
            blocks = all->children[c].blocks->count;
    all->grower = grower;
    foreloop_ranker_parallel(grower->options->parallel, blocks, search_block, all);
    for (size_t c = 0; c < 2; c++) {
        child_work *child = &all->children[c];
        if (!child->histograms)
            continue;
        if (!child->splits || !accept(grower, child)) {
            give_buffer(grower, child->histograms);
            continue;
        }
        if (draws_by_node(grower)) {
            give_buffer(grower, child->histograms);
            child->histograms = NULL;
        }
        FORELOOP_TRY(foreloop_reserve_one(grower->allocator, &grower->pending, &grower->pending_capacity,
                                          grower->pending_count, sizeof *grower->pending, error));
        grower->pending[grower->pending_count++] = (pending){(size_t)(child->node - grower->nodes), child->histograms};
    }
    return FORELOOP_OK;
}

/* Splits the node in two, and looks for their splits. */
static foreloop_status expand(foreloop_ranker_grower *grower, pending item, size_t round, foreloop_error *error) {
    uint64_t *more = NULL;
    FORELOOP_TRY(foreloop_reserve(grower->allocator, &grower->nodes, &grower->node_capacity, grower->node_count,
                                  grower->node_count + 2, sizeof *grower->nodes, error));
    const size_t left = grower->node_count;
    grower->nodes[item.node].left = left;
    grower->node_count += 2;
    divide(grower, item.node);
    const foreloop_ranker_node *a = &grower->nodes[left], *b = a + 1;
    const size_t smaller = a->end - a->begin <= b->end - b->begin ? left : left + 1;
    const size_t larger = smaller == left ? left + 1 : left;
    search_work all = {.grower = grower};
    /* Only the larger child needs its parent's. */
    if (item.histograms && !may_split(grower, &grower->nodes[larger])) {
        give_buffer(grower, item.histograms);
        item.histograms = NULL;
    }
    if (draws_by_node(grower)) {
        for (size_t c = 0; c < 2; c++)
            if (may_split(grower, &grower->nodes[left + c])) {
                FORELOOP_TRY(take_buffer(grower, &more, error));
                set_child(grower, &all.children[c], left + c, c, more, round);
            }
    } else if (item.histograms || may_split(grower, &grower->nodes[smaller])) {
        FORELOOP_TRY(take_buffer(grower, &more, error));
        set_child(grower, &all.children[0], smaller, 0, more, round);
        if (item.histograms)
            set_child(grower, &all.children[1], larger, 1, item.histograms, round);
        all.children[1].sibling = more;
    }
    return search(grower, &all, error);
}

/* ---- The tree ---------------------------------------------------------------------------------------------------- */

/* Chooses the rows and the features that the tree learns from. */
static void begin_tree(foreloop_ranker_grower *grower, size_t round) {
    const foreloop_ranker_options *options = grower->options;
    const size_t rows = grower->bins->row_count, features = grower->bins->feature_count;
    uint64_t random = foreloop_random_stream(options->seed, FORELOOP_RANDOM_ROWS, round, 0);
    const uint64_t limit = (uint64_t)((double)options->subsample * 4294967296.0);
    size_t left_out = 0;
    grower->used_count = 0;
    for (size_t row = 0; row < rows; row++)
        if (options->subsample >= 1.0f || foreloop_random_below(&random, 0xffffffff) < limit)
            grower->rows[grower->used_count++] = (uint32_t)row;
        else
            grower->scratch[left_out++] = (uint32_t)row;
    memcpy(grower->rows + grower->used_count, grower->scratch, left_out * sizeof *grower->rows);
    if (grower->tree.count > 0 && options->columns_by_tree >= 1.0f)
        return; /* all features, as before */
    uint32_t *all = grower->drawn + features;
    for (size_t i = 0; i < features; i++)
        all[i] = (uint32_t)i;
    const size_t wanted = features ? share_of(options->columns_by_tree, features) : 0;
    draw(grower->drawn, all, features, wanted, foreloop_random_stream(options->seed, FORELOOP_RANDOM_TREE, round, 0));
    make_blocks(grower, &grower->tree, grower->drawn, wanted);
}

/* Adds the leaves: to the rows that they hold, and by way of the codes to those that the tree did not learn from. */
static void add_leaves(const foreloop_ranker_grower *grower, float *scores) {
    for (size_t n = 0; n < grower->node_count; n++) {
        const foreloop_ranker_node *node = &grower->nodes[n];
        for (size_t i = node->begin; node->left == 0 && i < node->end; i++)
            scores[grower->rows[i]] += node->value;
    }
    for (size_t i = grower->used_count; i < grower->bins->row_count; i++) {
        const foreloop_ranker_node *node = grower->nodes;
        const size_t row = grower->rows[i];
        while (node->left) {
            const uint8_t code = foreloop_ranker_codes(grower->bins, node->feature)[row * LINE];
            node = &grower->nodes[node->left + 1 - goes_left(code, node)];
        }
        scores[row] += node->value;
    }
}

foreloop_status foreloop_ranker_grow(foreloop_ranker_grower *grower, size_t round, float *scores,
                                     foreloop_error *error) {
    FORELOOP_TRY(foreloop_reserve_one(grower->allocator, &grower->nodes, &grower->node_capacity, 0,
                                      sizeof *grower->nodes, error));
    begin_tree(grower, round);
    foreloop_ranker_node root = {.end = grower->used_count, .path = 1};
    for (size_t i = 0; i < grower->used_count; i++)
        root.sum += grower->gradients->packed[grower->rows[i]];
    root.value = leaf_of(grower, root.sum);
    grower->nodes[0] = root;
    grower->node_count = 1;
    if (grower->tree.count && may_split(grower, &root)) {
        search_work all = {.grower = grower};
        uint64_t *histograms = NULL;
        FORELOOP_TRY(take_buffer(grower, &histograms, error));
        set_child(grower, &all.children[0], 0, 0, histograms, round);
        FORELOOP_TRY(search(grower, &all, error));
    }
    while (grower->pending_count) {
        const pending item = grower->pending[--grower->pending_count];
        FORELOOP_TRY(expand(grower, item, round, error));
    }
    add_leaves(grower, scores);
    return FORELOOP_OK;
}
