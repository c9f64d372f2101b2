/* trees_f32 in every tier of this machine: the same bits as a plain walk that this file makes itself, on random and
 * adversarial trees and rows; rows end at a page that may not be read. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "gbdt/coding.h"
#include "kernels_cpu/cpu.h"
#include "random.h"
#include "tap.h"
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_NODES = 4096, MAX_FEATURES = 1000, MAX_ROWS = 200 };

static const char *tier_name(foreloop_tier tier) {
    static const char *const names[] = {"best", "ref", "avx2", "avx512"};
    return names[tier];
}

typedef struct tree_node {
    int left; /* 0: a leaf; right is left + 1 */
    size_t feature;
    float value; /* threshold or leaf */
    bool default_left;
} tree_node;

typedef struct source_tree {
    tree_node *nodes;
    size_t count;
} source_tree;

typedef struct source_model {
    source_tree *trees;
    size_t tree_count, features, classes;
} source_model;

/* ---- Making models ----------------------------------------------------------------------------------------------- */

/* Numbers at which comparisons are easily wrong. */
static float odd_number(random_source *random) {
    static const float numbers[] = {0.0f,   -0.0f,   1.0f,     -1.0f,          1e-40f,        -1e-40f,    1.4e-45f,
                                    1e-38f, 3.4e38f, -3.4e38f, 0x1.fffffep-1f, 0x1.000002p0f, 16777216.0f};
    return numbers[random_below(random, sizeof numbers / sizeof *numbers)];
}

static float draw_number(random_source *random) {
    return random_below(random, 4) == 0 ? odd_number(random) : (float)random_below(random, 2000) / 1000.0f - 1.0f;
}

typedef enum tree_kind { FULL, GROWN, CHAIN } tree_kind;

/* A tree of 2^size or `size` leaves: full, grown by splitting any leaf, or grown by splitting the last one. */
static source_tree make_tree(random_source *random, tree_kind kind, size_t size, size_t features) {
    static int leaves[MAX_NODES];
    const size_t wanted = kind == FULL ? (size_t)1 << size : size;
    source_tree tree = {calloc(2 * wanted, sizeof *tree.nodes), 1};
    for (size_t leaf_count = 1; leaf_count < wanted; leaf_count++, tree.count += 2) {
        size_t split = kind == GROWN ? random_below(random, (uint32_t)leaf_count) : leaf_count - 1;
        int parent = kind == FULL ? (int)(tree.count / 2) : leaf_count == 1 ? 0 : leaves[split];
        tree.nodes[parent].left = (int)tree.count;
        leaves[split] = (int)tree.count + (kind == CHAIN ? (int)random_below(random, 2) : 0);
        leaves[leaf_count] = (int)tree.count + 1;
        if (kind == CHAIN)
            leaves[leaf_count] = leaves[split];
    }
    for (size_t i = 0; i < tree.count; i++) {
        tree.nodes[i].feature = random_below(random, (uint32_t)features);
        tree.nodes[i].value = draw_number(random);
        tree.nodes[i].default_left = random_below(random, 2) == 1;
    }
    return tree;
}

static void append(char **end, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    *end += vsprintf(*end, format, arguments);
    va_end(arguments);
}

static void append_column(char **end, const char *name, const source_tree *tree, int which) {
    append(end, "%s\"%s\":[", which > 0 ? "," : "", name);
    for (size_t i = 0; i < tree->count; i++) {
        const tree_node *node = &tree->nodes[i];
        append(end, i > 0 ? "," : "");
        switch (which) {
        case 0:
            append(end, "%d", node->left > 0 ? node->left : -1);
            break;
        case 1:
            append(end, "%d", node->left > 0 ? node->left + 1 : -1);
            break;
        case 2:
            append(end, "%d", node->default_left ? 1 : 0);
            break;
        case 3:
            append(end, "%zu", node->left > 0 ? node->feature : 0);
            break;
        default:
            append(end, "%.9g", (double)node->value);
        }
    }
    append(end, "]");
}

/* The model as save_model JSON, opened with `tier` as the limit. */
static foreloop_gbdt *open_model(const source_model *model, foreloop_tier tier) {
    static const char *const columns[] = {"left_children", "right_children", "default_left", "split_indices",
                                          "split_conditions"};
    size_t nodes = 0;
    for (size_t t = 0; t < model->tree_count; t++)
        nodes += model->trees[t].count;
    char *text = malloc(1000 + nodes * 80 + model->tree_count * 200), *end = text;
    append(&end,
           "{\"learner\":{\"learner_model_param\":{\"base_score\":\"5E-1\",\"num_feature\":\"%zu\","
           "\"num_class\":\"%zu\"},\"objective\":{\"name\":\"%s\"},\"gradient_booster\":{\"name\":\"gbtree\","
           "\"model\":{\"trees\":[",
           model->features, model->classes > 1 ? model->classes : 0,
           model->classes > 1 ? "multi:softmax" : "reg:squarederror");
    for (size_t t = 0; t < model->tree_count; t++) {
        append(&end, t > 0 ? ",{" : "{");
        for (int c = 0; c < 5; c++)
            append_column(&end, columns[c], &model->trees[t], c);
        append(&end, "}");
    }
    append(&end, "],\"tree_info\":[");
    for (size_t t = 0; t < model->tree_count; t++)
        append(&end, "%s%zu", t > 0 ? "," : "", t % model->classes);
    append(&end, "]}}}}");
    foreloop_gbdt *gbdt = NULL;
    foreloop_error error = {0};
    foreloop_gbdt_options options;
    foreloop_gbdt_options_init(&options, sizeof options);
    options.tier = tier;
    if (foreloop_gbdt_open_memory(&gbdt, text, (size_t)(end - text), &options, &error) != FORELOOP_OK)
        printf("# %s\n", error.message);
    free(text);
    return gbdt;
}

/* ---- The plain walk ---------------------------------------------------------------------------------------------- */

static float leaf_of(const source_tree *tree, const float *row) {
    size_t i = 0;
    while (tree->nodes[i].left > 0) {
        const tree_node *node = &tree->nodes[i];
        const float x = row[node->feature];
        const bool left = isnan(x) ? node->default_left : x < node->value;
        i = (size_t)node->left + (left ? 0 : 1);
    }
    return tree->nodes[i].value;
}

static void plain_margins(const source_model *model, const float *row, float *margins) {
    for (size_t k = 0; k < model->classes; k++)
        margins[k] = 0.5f;
    for (size_t t = 0; t < model->tree_count; t++)
        margins[t % model->classes] += leaf_of(&model->trees[t], row);
}

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

/* `size` bytes that end where a page begins that may not be read or written. */
static void *guarded(size_t size, void **mapping, size_t *mapped) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (size + page - 1) / page * page;
    char *start = mmap(NULL, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED || mprotect(start + whole, page, PROT_NONE) != 0)
        exit(1);
    *mapping = start;
    *mapped = whole + page;
    return start + whole - size;
}

/* A value of a row: often a threshold of the model or its neighbour, at times missing or infinite. */
static float draw_value(random_source *random, const source_model *model) {
    const source_tree *tree = &model->trees[random_below(random, (uint32_t)model->tree_count)];
    const float threshold = tree->nodes[random_below(random, (uint32_t)tree->count)].value;
    switch (random_below(random, 10)) {
    case 0:
        return NAN;
    case 1:
        return random_below(random, 2) == 0 ? INFINITY : -INFINITY;
    case 2:
    case 3:
        return threshold;
    case 4:
        return nextafterf(threshold, -INFINITY);
    case 5:
        return nextafterf(threshold, INFINITY);
    default:
        return draw_number(random);
    }
}

/* ---- Checks ------------------------------------------------------------------------------------------------------ */

static bool same_bits(const float *a, const float *b, size_t count) {
    return memcmp(a, b, count * sizeof *a) == 0;
}

/* Whether codes made value by value give `expected` for blocks of the rows, none of which has NaN. */
static bool codes_agree(const foreloop_gbdt *gbdt, const float *rows, size_t row_count, size_t stride,
                        const float *expected) {
    enum { BLOCK = FORELOOP_TREES_ROWS };
    const size_t used = gbdt->layout->used_count, outputs = gbdt->output_count;
    const foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    foreloop_gbdt_coding coding;
    if (foreloop_gbdt_coding_create(&coding, gbdt, &allocator, NULL) != FORELOOP_OK)
        return false;
    bool agrees = true;
    for (size_t first = 0; first < row_count; first += BLOCK) {
        const size_t count = row_count - first < BLOCK ? row_count - first : BLOCK;
        const size_t padded = (count + 15) / 16 * 16;
        void *mapping, *codes_mapping;
        size_t mapped, codes_mapped;
        float *values = guarded(used * padded * sizeof *values, &mapping, &mapped);
        int8_t *codes = guarded(coding.codes_size, &codes_mapping, &codes_mapped);
        float *margins = malloc(count * outputs * sizeof *margins);
        for (size_t u = used; u-- > 0;) {
            for (size_t r = 0; r < count; r++)
                values[u * padded + r] = rows[(first + r) * stride + gbdt->layout->used[u]];
            foreloop_gbdt_code_value(&coding, u, values + u * padded, count, codes);
        }
        foreloop_gbdt_margin_codes(&coding, codes, coding.reads_values ? values : NULL, padded, count, margins);
        agrees &= same_bits(margins, expected + first * outputs, count * outputs);
        free(margins);
        munmap(mapping, mapped);
        munmap(codes_mapping, codes_mapped);
    }
    foreloop_gbdt_coding_close(&coding, &allocator);
    return agrees;
}

/* Whether the predicted classes are those of the largest margins. */
static bool classes_agree(const foreloop_gbdt *gbdt, const float *rows, size_t row_count, size_t stride,
                          const float *expected) {
    const size_t classes = gbdt->output_count;
    float predicted[MAX_ROWS];
    bool agrees = foreloop_gbdt_predict(gbdt, rows, row_count, stride, 0, predicted, NULL) == FORELOOP_OK;
    for (size_t r = 0; r < row_count; r++) {
        size_t best = 0;
        for (size_t k = 1; k < classes; k++)
            if (expected[r * classes + k] > expected[r * classes + best])
                best = k;
        agrees &= predicted[r] == (float)best;
    }
    return agrees;
}

static void check_model(const source_model *model, foreloop_tier tier, random_source *random, const char *what) {
    static const size_t row_counts[] = {1,  2,  5,  7,  8,  9,  15, 16, 17,  31,
                                        32, 33, 47, 48, 49, 63, 64, 65, 130, MAX_ROWS};
    foreloop_gbdt *gbdt = open_model(model, tier);
    if (!CHECK(gbdt != NULL, "%s: %s opens", tier_name(tier), what))
        return;
    foreloop_gbdt_info info = {.size = sizeof info};
    foreloop_gbdt_get_info(gbdt, &info);
    CHECK(info.tier == tier, "%s: %s: this tier runs", tier_name(tier), what);
    for (size_t c = 0; c < sizeof row_counts / sizeof *row_counts; c++) {
        const size_t count = row_counts[c], stride = model->features + (c % 3 == 1 ? 3 : 0);
        const size_t values = (count - 1) * stride + model->features, outputs = count * model->classes;
        void *mapping, *output_mapping;
        size_t mapped, output_mapped;
        float *rows = guarded(values * sizeof *rows, &mapping, &mapped);
        float *margins = guarded(outputs * sizeof *margins, &output_mapping, &output_mapped);
        float *expected = malloc(outputs * sizeof *expected);
        for (size_t i = 0; i < values; i++)
            rows[i] = draw_value(random, model);
        for (size_t r = 0; r < count; r++)
            plain_margins(model, rows + r * stride, expected + r * model->classes);
        const bool predicted = foreloop_gbdt_predict(gbdt, rows, count, stride, 1, margins, NULL) == FORELOOP_OK;
        CHECK(predicted && same_bits(margins, expected, outputs), "%s: %s: %zu rows of %zu", tier_name(tier), what,
              count, stride);
        if (model->classes > 1)
            CHECK(classes_agree(gbdt, rows, count, stride, expected), "%s: %s: classes of %zu rows", tier_name(tier),
                  what, count);
        for (size_t i = 0; i < values; i++)
            rows[i] = isnan(rows[i]) ? draw_number(random) : rows[i];
        for (size_t r = 0; r < count; r++)
            plain_margins(model, rows + r * stride, expected + r * model->classes);
        CHECK(codes_agree(gbdt, rows, count, stride, expected), "%s: %s: %zu rows by feature", tier_name(tier), what,
              count);
        free(expected);
        munmap(mapping, mapped);
        munmap(output_mapping, output_mapped);
    }
    foreloop_gbdt_close(gbdt);
}

/* `count` trees of sizes smallest to largest in turn. */
static void check_trees(foreloop_tier tier, tree_kind kind, size_t smallest, size_t largest, size_t count,
                        size_t features, size_t classes) {
    static const char *const kinds[] = {"full of depth", "grown to leaves:", "a chain of leaves:"};
    char what[160];
    random_source random = {1 + smallest * 1000 + largest + count + features + classes};
    source_model model = {calloc(count, sizeof *model.trees), count, features, classes};
    for (size_t t = 0; t < count; t++)
        model.trees[t] = make_tree(&random, kind, smallest + t % (largest - smallest + 1), features);
    snprintf(what, sizeof what, "%zu trees, %s %zu to %zu, %zu features, %zu outputs", count, kinds[kind], smallest,
             largest, features, classes);
    check_model(&model, tier, &random, what);
    for (size_t t = 0; t < count; t++)
        free(model.trees[t].nodes);
    free(model.trees);
}

/* The shapes that a model takes, so that no check passes for want of its subject. */
static void check_shapes(void) {
    static const struct {
        tree_kind kind;
        size_t size;
        foreloop_trees_shape shape;
    } cases[] = {{FULL, 0, FORELOOP_TREES_COMPLETE}, {FULL, 8, FORELOOP_TREES_COMPLETE},
                 {FULL, 9, FORELOOP_TREES_WALK},     {CHAIN, 4, FORELOOP_TREES_COMPLETE},
                 {CHAIN, 9, FORELOOP_TREES_PIECES},  {CHAIN, 256, FORELOOP_TREES_PIECES},
                 {CHAIN, 257, FORELOOP_TREES_WALK},  {GROWN, 255, FORELOOP_TREES_PIECES}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        random_source random = {5};
        source_tree tree = make_tree(&random, cases[i].kind, cases[i].size, 4);
        const source_model model = {&tree, 1, 4, 1};
        foreloop_gbdt *gbdt = open_model(&model, FORELOOP_TIER_BEST);
        CHECK(gbdt && gbdt->layout->trees[0].shape == cases[i].shape, "kind %d, size %zu: shape %d", (int)cases[i].kind,
              cases[i].size, (int)cases[i].shape);
        foreloop_gbdt_close(gbdt);
        free(tree.nodes);
    }
}

static void check_tier(foreloop_tier tier) {
    for (size_t depth = 0; depth <= 10; depth++)
        check_trees(tier, FULL, depth, depth, 3, 20, 1);
    check_trees(tier, FULL, 0, 9, 37, 33, 1);
    check_trees(tier, FULL, 6, 6, 130, 16, 1);
    check_trees(tier, FULL, 2, 4, 33, 1, 3);
    check_trees(tier, GROWN, 1, 40, 80, 17, 2);
    check_trees(tier, GROWN, 250, 256, 70, 5, 1);
    check_trees(tier, GROWN, 100, 260, 42, MAX_FEATURES, 3);
    check_trees(tier, CHAIN, 1, 30, 60, 7, 1);
    check_trees(tier, CHAIN, 254, 258, 5, 3, 1);
    /* More thresholds of one feature, and more columns, than a pair and a chunk hold. */
    check_trees(tier, FULL, 8, 8, 12, 2, 1);
    check_trees(tier, FULL, 5, 7, 60, MAX_FEATURES, 2);
}

int main(void) {
    check_shapes();
    for (foreloop_tier tier = FORELOOP_TIER_REF; tier <= FORELOOP_TIER_AVX512; tier++) {
        if (tier <= foreloop_cpu_tier(FORELOOP_TIER_BEST))
            check_tier(tier);
        else
            tap_skip(tier_name(tier)); /* this machine lacks it */
    }
    return tap_done();
}
