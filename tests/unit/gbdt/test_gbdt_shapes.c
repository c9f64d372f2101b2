/* Trees of every shape on every tier, as blocks of rows and row by row, against walks through the trees as they were
 * written: the same bits. */
#include "gbdt_test.h"
#include "kernels_cpu/cpu.h"
#include <math.h>

enum { ROWS = 75, MAX_FEATURES = 900, MAX_LEAVES = 300, MAX_NODES = 2 * MAX_LEAVES, MAX_TREES = 40 };

typedef struct shape_node {
    int left, feature; /* left 0: a leaf; the right child comes next */
    float value;       /* threshold or leaf */
    int default_left;
} shape_node;

typedef struct shape_tree {
    shape_node nodes[MAX_NODES];
    int count;
} shape_tree;

static const char *const tier_names[] = {"best", "ref", "avx2", "avx512"};

static uint32_t random_state;

static uint32_t draw(uint32_t below) {
    random_state = random_state * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)(random_state >> 8) * below) >> 24);
}

/* Few values, so that rows meet thresholds exactly. */
static float draw_value(void) {
    return (float)((int)draw(4001) - 2000) / 64.0f;
}

static void split_node(shape_tree *tree, int node) {
    tree->nodes[node].left = tree->count;
    tree->nodes[tree->count] = tree->nodes[tree->count + 1] = (shape_node){0};
    tree->count += 2;
}

/* Which leaf a tree grows at: any, the last one, the last but one, those of the upper level first. */
typedef enum growth { ANY, RIGHT, LEFT, ZIGZAG, LEVELS } growth;

static void grow(shape_tree *tree, growth how, int leaves, int features) {
    tree->count = 1;
    tree->nodes[0] = (shape_node){0};
    for (int n = 1; n < leaves; n++) {
        int node = tree->count - (how == RIGHT ? 1 : how == LEFT ? 2 : 1 + n % 2);
        if (n == 1)
            node = 0;
        else if (how == LEVELS)
            node = n - 1;
        else if (how == ANY)
            do
                node = (int)draw((uint32_t)tree->count);
            while (tree->nodes[node].left);
        split_node(tree, node);
    }
    for (int i = 0; i < tree->count; i++) {
        tree->nodes[i].feature = (int)draw((uint32_t)features);
        tree->nodes[i].value = draw_value();
        tree->nodes[i].default_left = (int)draw(2);
    }
}

static float walk(const shape_tree *tree, const float *row) {
    int node = 0;
    while (tree->nodes[node].left) {
        const float x = row[tree->nodes[node].feature];
        const int right = isnan(x) ? !tree->nodes[node].default_left : !(x < tree->nodes[node].value);
        node = tree->nodes[node].left + right;
    }
    return tree->nodes[node].value;
}

static char *append_column(char *end, const shape_tree *tree, const char *name, int which) {
    end += sprintf(end, "\"%s\":[", name);
    for (int i = 0; i < tree->count; i++) {
        const shape_node *node = &tree->nodes[i];
        if (i > 0)
            *end++ = ',';
        if (which == 4)
            end += sprintf(end, "%.9g", (double)node->value);
        else
            end += sprintf(end, "%d",
                           which == 2   ? node->default_left
                           : which == 3 ? node->feature
                                        : (node->left ? node->left + which : -1));
    }
    return end + sprintf(end, "]%s", which < 4 ? "," : "");
}

static foreloop_gbdt *open_trees(const shape_tree *trees, int count, int features, int classes, foreloop_tier tier) {
    static char text[MAX_TREES * MAX_NODES * 64];
    static const char *const columns[] = {"left_children", "right_children", "default_left", "split_indices",
                                          "split_conditions"};
    foreloop_gbdt_options options;
    foreloop_gbdt *gbdt = NULL;
    foreloop_error error;
    char *end =
        text + sprintf(text,
                       "{\"learner\":{\"learner_model_param\":{\"base_score\":\"2.5E-1\",\"num_feature\":\"%d\","
                       "\"num_class\":\"%d\"},\"objective\":{\"name\":\"%s\"},\"gradient_booster\":{"
                       "\"name\":\"gbtree\",\"model\":{\"trees\":[",
                       features, classes, classes > 0 ? "multi:softmax" : "reg:squarederror");
    for (int t = 0; t < count; t++) {
        end += sprintf(end, "%s{", t > 0 ? "," : "");
        for (int c = 0; c < 5; c++)
            end = append_column(end, &trees[t], columns[c], c);
        end += sprintf(end, "}");
    }
    end += sprintf(end, "],\"tree_info\":[");
    for (int t = 0; t < count; t++)
        end += sprintf(end, "%s%d", t > 0 ? "," : "", classes > 0 ? t % classes : 0);
    end += sprintf(end, "]}}}}");
    foreloop_gbdt_options_init(&options, sizeof options);
    options.tier = tier;
    if (foreloop_gbdt_open_memory(&gbdt, text, (size_t)(end - text), &options, &error) != FORELOOP_OK) {
        printf("Bail out! %s\n", error.message);
        exit(1);
    }
    return gbdt;
}

static void fill_rows(float *rows, int features) {
    for (int i = 0; i < ROWS * features; i++) {
        const uint32_t kind = draw(12);
        rows[i] = kind == 0 ? NAN : kind == 1 ? (draw(2) ? INFINITY : -INFINITY) : draw_value();
    }
}

/* Predicts all rows at once, the first few, and each alone. */
static size_t count_differences(const foreloop_gbdt *gbdt, const float *rows, int features, int outputs,
                                const float *expected) {
    static float margins[ROWS * 4], few[ROWS * 4];
    size_t differences = 0;
    foreloop_gbdt_predict(gbdt, rows, ROWS, (size_t)features, 1, margins, NULL);
    foreloop_gbdt_predict(gbdt, rows, 33, (size_t)features, 1, few, NULL);
    for (int r = 0; r < ROWS; r++) {
        float alone[4];
        foreloop_gbdt_predict(gbdt, rows + r * features, 1, (size_t)features, 1, alone, NULL);
        for (int k = 0; k < outputs; k++) {
            const uint32_t bits = bits_of(expected[r * outputs + k]);
            differences += bits_of(margins[r * outputs + k]) != bits || bits_of(alone[k]) != bits ||
                           (r < 33 && bits_of(few[r * outputs + k]) != bits);
        }
    }
    return differences;
}

static size_t count_wrong_classes(const foreloop_gbdt *gbdt, const float *rows, int features, int classes,
                                  const float *margins) {
    float predicted[ROWS];
    size_t wrong = 0;
    foreloop_gbdt_predict(gbdt, rows, ROWS, (size_t)features, 0, predicted, NULL);
    for (int r = 0; r < ROWS; r++) {
        int best = 0;
        for (int k = 1; k < classes; k++)
            if (margins[r * classes + k] > margins[r * classes + best])
                best = k;
        wrong += predicted[r] != (float)best;
    }
    return wrong;
}

static void check_trees(const char *what, const shape_tree *trees, int count, int features, int classes) {
    static float rows[ROWS * MAX_FEATURES], expected[ROWS * 4];
    const int outputs = classes > 0 ? classes : 1;
    fill_rows(rows, features);
    for (int r = 0; r < ROWS; r++) {
        for (int k = 0; k < outputs; k++)
            expected[r * outputs + k] = 0.25f;
        for (int t = 0; t < count; t++)
            expected[r * outputs + t % outputs] += walk(&trees[t], rows + r * features);
    }
    for (foreloop_tier tier = FORELOOP_TIER_REF; tier <= foreloop_cpu_tier(FORELOOP_TIER_BEST); tier++) {
        foreloop_gbdt *gbdt = open_trees(trees, count, features, classes, tier);
        CHECK(count_differences(gbdt, rows, features, outputs, expected) == 0, "%s, %s: margins", what,
              tier_names[tier]);
        if (classes > 0)
            CHECK(count_wrong_classes(gbdt, rows, features, classes, expected) == 0, "%s, %s: classes", what,
                  tier_names[tier]);
        foreloop_gbdt_close(gbdt);
    }
}

static shape_tree trees[MAX_TREES];

/* Trees of one kind of growth, of all sizes up to `leaves`. */
static void check_growth(const char *name, growth how, int leaves, int features) {
    char what[64];
    for (int t = 0; t < MAX_TREES; t++)
        grow(&trees[t], how, 1 + (leaves - 1) * (t + 1) / MAX_TREES, features);
    snprintf(what, sizeof what, "%s, up to %d leaves, %d features", name, leaves, features);
    check_trees(what, trees, MAX_TREES, features, 0);
}

int main(void) {
    random_state = 7;
    for (int depth = 1; depth <= 8; depth++) {
        char what[32];
        for (int t = 0; t < 8; t++)
            grow(&trees[t], LEVELS, 1 << depth, 20);
        snprintf(what, sizeof what, "complete trees of depth %d", depth);
        check_trees(what, trees, 8, 20, 0);
    }
    check_growth("upper levels first", LEVELS, 256, 30);
    check_growth("any leaf", ANY, 256, 30);
    check_growth("chains to the right", RIGHT, 256, 30);
    check_growth("chains to the left", LEFT, 256, 30);
    check_growth("chains both ways", ZIGZAG, 256, 30);
    check_growth("any leaf, more than the kernels take", ANY, MAX_LEAVES, 30);
    check_growth("one feature of many thresholds", ANY, 200, 1);
    check_growth("more columns than a chunk holds", ANY, 256, MAX_FEATURES);
    for (int t = 0; t < 30; t++)
        grow(&trees[t], t % 3 == 0 ? ANY : t % 3 == 1 ? LEVELS : ZIGZAG, t == 7 ? MAX_LEAVES : 2 + 8 * t, 700);
    check_trees("three classes over several chunks", trees, 30, 700, 3);
    return tap_done();
}
