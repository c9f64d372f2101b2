/* Made-up trees as text. */
#include "bench_trees.h"
#include "bench.h"
#include <stdarg.h>

/* A tree's shape: left[i] is 0 for a leaf, else the right child comes next. */
typedef struct bench_tree {
    size_t left[BENCH_TREE_NODES], count;
} bench_tree;

typedef struct maker {
    foreloop_buffer *text;
    const bench_forest *what;
    uint64_t random;
    size_t splits; /* of all trees so far */
    bool failed;
} maker;

__attribute__((format(printf, 2, 3))) static void print(maker *make, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    make->failed |= !bench_print(make->text, format, arguments);
    va_end(arguments);
}

static void grow(maker *make, bench_tree *tree) {
    size_t leaves[BENCH_TREE_NODES], leaf_count = 1;
    const size_t wanted = make->what->leaves > 0 ? make->what->leaves : (size_t)1 << make->what->depth;
    tree->left[0] = leaves[0] = 0;
    for (tree->count = 1; leaf_count < wanted; tree->count += 2) {
        const size_t any = make->what->leaves > 0 ? bench_draw(&make->random) % leaf_count : 0;
        const size_t parent = make->what->leaves > 0 ? leaves[any] : (tree->count - 1) / 2;
        tree->left[parent] = tree->count;
        tree->left[tree->count] = tree->left[tree->count + 1] = 0;
        leaves[any] = tree->count;
        leaves[leaf_count++] = tree->count + 1;
    }
}

static void print_columns(maker *make, const bench_tree *tree) {
    static const char *const columns[] = {"left_children", "right_children", "default_left", "split_indices",
                                          "split_conditions"};
    for (size_t column = 0; column < sizeof columns / sizeof *columns; column++) {
        print(make, "%s\"%s\":[", column > 0 ? "," : "", columns[column]);
        for (size_t i = 0; i < tree->count; i++) {
            const char *comma = i > 0 ? "," : "";
            const bool leaf = tree->left[i] == 0;
            if (column < 2)
                print(make, "%s%lld", comma, leaf ? -1LL : (long long)(tree->left[i] + column));
            else if (column == 2)
                print(make, "%s%u", comma, bench_draw(&make->random) & 1u);
            else if (column == 3)
                print(make, "%s%zu", comma, leaf ? 0 : make->splits++ * 7 % make->what->features);
            else
                print(make, "%s%.7g", comma,
                      make->what->lowest + (make->what->highest - make->what->lowest) *
                                               ((double)bench_draw(&make->random) / 2147483648.0));
        }
        print(make, "]");
    }
}

bool bench_trees_make(foreloop_buffer *text, const bench_forest *what) {
    maker make = {.text = text, .what = what, .random = 1};
    bench_tree tree;
    print(&make,
          "{\"learner\":{\"learner_model_param\":{\"base_score\":\"0E0\",\"num_feature\":\"%zu\"},"
          "\"objective\":{\"name\":\"rank:ndcg\"},\"gradient_booster\":{\"name\":\"gbtree\",\"model\":{\"trees\":[",
          what->features);
    for (size_t t = 0; t < what->trees; t++) {
        print(&make, "%s{", t > 0 ? "," : "");
        grow(&make, &tree);
        print_columns(&make, &tree);
        print(&make, "}");
    }
    print(&make, "],\"tree_info\":[");
    for (size_t t = 0; t < what->trees; t++)
        print(&make, "%s0", t > 0 ? "," : "");
    print(&make, "]}}}}");
    return !make.failed;
}
