/*
 * Time of the trees on their own, as a table: opening a model, and a row's share of batches of 1 to 4,096 rows; medians
 * of repeated runs, one thread, processor time.
 *
 *     bench_gbdt [--trees N] [--depth N | --leaves N] [--features N] [--batch N] [--tier T] [--json]
 *     bench_gbdt --model FILE [--batch N] [--tier T] [--json]
 *
 * Without --trees, --depth and --leaves: 300 and 1,000 trees, of depth 4, 6 and 8, and of 255 leaves as growth by loss
 * leaves them. These models are made in memory, with random features and thresholds, so that no branch can be guessed.
 * --model times an XGBoost model instead. Rows are random numbers from 0 to 1.
 */
#include <foreloop/foreloop.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_RUNS = 51, MIN_RUNS = 5, MAX_DEPTH = 16, MAX_NODES = 2 << MAX_DEPTH };

typedef struct bench_settings {
    size_t trees, depth, leaves, features, batch; /* leaves, unless 0, instead of depth */
    const char *model;
    foreloop_tier tier;
    int json;
} bench_settings;

typedef struct bench_text {
    char *data;
    size_t size, capacity;
} bench_text;

/* The shape of a tree. */
typedef struct bench_tree {
    int left[MAX_NODES], right[MAX_NODES];
    size_t count;
} bench_tree;

static void fail(const char *what) {
    fprintf(stderr, "bench_gbdt: %s\n", what);
    exit(1);
}

__attribute__((format(printf, 2, 3))) static void append(bench_text *text, const char *format, ...) {
    va_list arguments;
    if (text->capacity - text->size < 256) {
        text->capacity = text->capacity * 2 + 4096;
        text->data = realloc(text->data, text->capacity);
        if (!text->data)
            fail("out of memory");
    }
    va_start(arguments, format);
    text->size += (size_t)vsnprintf(text->data + text->size, 256, format, arguments);
    va_end(arguments);
}

static uint32_t draw(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

/* A full tree, or one that grows by splitting any of its leaves. */
static void make_shape(bench_tree *tree, const bench_settings *settings, uint64_t *state) {
    static int leaves[MAX_NODES];
    size_t leaf_count = 1, wanted = settings->leaves > 0 ? settings->leaves : (size_t)1 << settings->depth;
    tree->left[0] = leaves[0] = 0;
    for (tree->count = 1; leaf_count < wanted; tree->count += 2) {
        const size_t split = settings->leaves > 0 ? draw(state) % leaf_count : (tree->count - 1) / 2;
        const int parent = settings->leaves > 0 ? leaves[split] : (int)split, child = (int)tree->count;
        tree->left[parent] = child;
        tree->right[parent] = child + 1;
        tree->left[child] = tree->left[child + 1] = 0;
        leaves[split] = child;
        leaves[leaf_count++] = child + 1;
    }
}

static void append_column(bench_text *text, const char *name, const bench_tree *tree, size_t which,
                          const bench_settings *settings, uint64_t *state) {
    append(text, "\"%s\":[", name);
    for (size_t i = 0; i < tree->count; i++) {
        const char *comma = i > 0 ? "," : "";
        if (which < 2)
            append(text, "%s%d", comma, tree->left[i] == 0 ? -1 : which == 0 ? tree->left[i] : tree->right[i]);
        else if (which == 2)
            append(text, "%s%u", comma, draw(state) & 1u);
        else if (which == 3)
            append(text, "%s%zu", comma, tree->left[i] == 0 ? 0 : draw(state) % settings->features);
        else
            append(text, "%s0.%07u", comma, draw(state) % 10000000u);
    }
    append(text, "]%s", which < 4 ? "," : "");
}

static bench_text make_model(const bench_settings *settings) {
    static const char *const columns[] = {"left_children", "right_children", "default_left", "split_indices",
                                          "split_conditions"};
    static bench_tree tree;
    bench_text text = {NULL, 0, 0};
    uint64_t state = 1;
    append(&text, "{\"learner\":{\"learner_model_param\":{\"base_score\":\"0E0\",\"num_feature\":\"%zu\"},",
           settings->features);
    append(&text, "\"objective\":{\"name\":\"rank:ndcg\"},\"gradient_booster\":{\"name\":\"gbtree\",\"model\":{"
                  "\"trees\":[");
    for (size_t t = 0; t < settings->trees; t++) {
        append(&text, "%s{", t > 0 ? "," : "");
        make_shape(&tree, settings, &state);
        for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
            append_column(&text, columns[i], &tree, i, settings, &state);
        append(&text, "}");
    }
    append(&text, "],\"tree_info\":[");
    for (size_t t = 0; t < settings->trees; t++)
        append(&text, "%s0", t > 0 ? "," : "");
    append(&text, "]}}}}");
    return text;
}

static bench_text read_model(const char *path) {
    bench_text text = {NULL, 0, 0};
    FILE *file = fopen(path, "rb");
    if (!file)
        fail("cannot open the model");
    for (size_t got = 1; got > 0; text.size += got) {
        text.capacity = text.size * 2 + 65536;
        text.data = realloc(text.data, text.capacity);
        if (!text.data)
            fail("out of memory");
        got = fread(text.data + text.size, 1, text.capacity - text.size, file);
    }
    fclose(file);
    return text;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *times, size_t count) {
    qsort(times, count, sizeof *times, compare);
    return times[count / 2];
}

/* Runs until they took a quarter of a second, but MIN_RUNS to MAX_RUNS of them. */
static int enough(size_t runs, double begin) {
    return runs >= MAX_RUNS || (runs >= MIN_RUNS && now() - begin > 0.25);
}

static double time_opening(const bench_settings *settings, const bench_text *model, foreloop_gbdt **gbdt) {
    double times[MAX_RUNS], begin = now();
    size_t runs = 0;
    foreloop_gbdt_options options;
    foreloop_gbdt_options_init(&options, sizeof options);
    options.tier = settings->tier;
    for (; !enough(runs, begin); runs++) {
        foreloop_error error;
        foreloop_gbdt_close(*gbdt);
        *gbdt = NULL;
        times[runs] = now();
        if (foreloop_gbdt_open_memory(gbdt, model->data, model->size, &options, &error) != FORELOOP_OK)
            fail(error.message);
        times[runs] = now() - times[runs];
    }
    return median(times, runs);
}

/* Microseconds for a row, when `batch` of `count` rows are predicted in a call. */
static double time_rows(const foreloop_gbdt *gbdt, size_t features, const float *rows, size_t count, size_t batch,
                        float *outputs) {
    double times[MAX_RUNS], begin = now();
    size_t runs = 0;
    for (; !enough(runs, begin); runs++) {
        times[runs] = now();
        for (size_t r = 0; r < count; r += batch)
            foreloop_gbdt_predict(gbdt, rows + r * features, count - r < batch ? count - r : batch, features, 1,
                                  outputs, NULL);
        times[runs] = 1e6 * (now() - times[runs]) / (double)count;
    }
    return median(times, runs);
}

static void bench_model(const bench_settings *settings, const bench_text *model) {
    static const size_t all_batches[] = {1, 16, 64, 512, 4096};
    const size_t *batches = settings->batch > 0 ? &settings->batch : all_batches;
    const size_t batch_count = settings->batch > 0 ? 1 : sizeof all_batches / sizeof *all_batches;
    foreloop_gbdt *gbdt = NULL;
    uint64_t state = 2;
    const double open = time_opening(settings, model, &gbdt);
    foreloop_gbdt_info info = {.size = sizeof info};
    foreloop_gbdt_get_info(gbdt, &info);
    for (size_t b = 0; b < batch_count; b++) {
        const size_t count = batches[b] < 512 ? 512 / batches[b] * batches[b] : batches[b];
        float *rows = malloc((count * info.feature_count + 1) * sizeof *rows);
        float *outputs = malloc(batches[b] * info.output_count * sizeof *outputs);
        if (!rows || !outputs)
            fail("out of memory");
        for (size_t i = 0; i < count * info.feature_count; i++)
            rows[i] = (float)(draw(&state) >> 7) / 16777216.0f;
        const double time = time_rows(gbdt, info.feature_count, rows, count, batches[b], outputs);
        printf(settings->json ? "{\"bench\":\"gbdt\",\"trees\":%zu,\"depth\":%zu,\"leaves\":%zu,\"features\":%zu,"
                                "\"tier\":\"%s\",\"open_ms\":%.3f,\"batch\":%zu,\"us_per_row\":%.4f}\n"
                              : "%6zu %6zu %7zu %9zu  %-7s %9.3f %7zu %11.3f\n",
               info.tree_count, info.max_depth, settings->leaves, info.feature_count, foreloop_tier_name(info.tier),
               1e3 * open, batches[b], time);
        fflush(stdout);
        free(rows);
        free(outputs);
    }
    foreloop_gbdt_close(gbdt);
}

static foreloop_tier read_tier(const char *name) {
    for (foreloop_tier tier = FORELOOP_TIER_REF; tier <= FORELOOP_TIER_AVX512; tier++)
        if (strcmp(name, foreloop_tier_name(tier)) == 0)
            return tier;
    fail("--tier is ref, avx2 or avx512");
    return FORELOOP_TIER_BEST;
}

static bench_settings read_arguments(int argc, char **argv) {
    bench_settings settings = {.features = 320};
    for (int i = 1; i < argc; i++) {
        size_t *number = strcmp(argv[i], "--trees") == 0      ? &settings.trees
                         : strcmp(argv[i], "--depth") == 0    ? &settings.depth
                         : strcmp(argv[i], "--leaves") == 0   ? &settings.leaves
                         : strcmp(argv[i], "--features") == 0 ? &settings.features
                         : strcmp(argv[i], "--batch") == 0    ? &settings.batch
                                                              : NULL;
        if (strcmp(argv[i], "--json") == 0)
            settings.json = 1;
        else if (number && i + 1 < argc)
            *number = (size_t)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--tier") == 0 && i + 1 < argc)
            settings.tier = read_tier(argv[++i]);
        else if (strcmp(argv[i], "--model") == 0 && i + 1 < argc)
            settings.model = argv[++i];
        else
            fail("usage: bench_gbdt [--trees N] [--depth N | --leaves N] [--features N] [--model FILE] [--batch N] "
                 "[--tier T] [--json]");
    }
    if (settings.depth > MAX_DEPTH || settings.leaves > (size_t)1 << MAX_DEPTH || settings.features < 1)
        fail("a number is out of range");
    return settings;
}

static void bench_shape(bench_settings settings, size_t trees, size_t depth, size_t leaves) {
    settings.trees = trees;
    settings.depth = depth;
    settings.leaves = leaves;
    bench_text model = make_model(&settings);
    bench_model(&settings, &model);
    free(model.data);
}

int main(int argc, char **argv) {
    const bench_settings settings = read_arguments(argc, argv);
    if (!settings.json)
        printf(" trees  depth  leaves  features  tier      open ms   batch  us per row\n");
    if (settings.model) {
        bench_text model = read_model(settings.model);
        bench_model(&settings, &model);
        free(model.data);
        return 0;
    }
    if (settings.trees > 0 || settings.depth > 0 || settings.leaves > 0) {
        bench_shape(settings, settings.trees > 0 ? settings.trees : 300, settings.depth > 0 ? settings.depth : 6,
                    settings.leaves);
        return 0;
    }
    for (size_t trees = 300; trees <= 1000; trees += 700) {
        for (size_t depth = 4; depth <= 8; depth += 2)
            bench_shape(settings, trees, depth, 0);
        bench_shape(settings, trees, 0, 255);
    }
    return 0;
}
