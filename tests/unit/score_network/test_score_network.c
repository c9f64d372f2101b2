/* The score network: what it computes, against plain loops, in every tier and for rows alone as in blocks; tensors that
 * will not do; and every failing allocation. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "common/alloc.h"
#include "failing_allocator.h"
#include "guarded.h"
#include "kernels_cpu/cpu.h"
#include "score_network/score_network.h"
#include "tap.h"
#include <float.h>
#include <math.h>
#include <stdio.h>

enum { ROWS = FORELOOP_MLP_ROWS, LAYERS = FORELOOP_SCORE_NETWORK_MAX_LAYERS, TENSORS = 2 * LAYERS + 8 };

/* ---- Tensors in memory ------------------------------------------------------------------------------------------- */

typedef struct made_tensor {
    char name[40];
    float *values;
    unsigned char *data;
} made_tensor;

/* Unsealed tensors may be changed; `file` is as if read from a file. */
typedef struct made_weights {
    size_t count;
    made_tensor made[TENSORS];
    foreloop_tensor tensors[TENSORS];
    uint32_t by_name[TENSORS];
    foreloop_safetensors file;
} made_weights;

static float *add(made_weights *weights, const char *name, size_t rank, size_t rows, size_t columns) {
    const size_t at = weights->count++, count = rank == 2 ? rows * columns : rows;
    made_tensor *made = &weights->made[at];
    snprintf(made->name, sizeof made->name, "net/%s", name);
    made->values = calloc(count + 1, sizeof *made->values);
    made->data = malloc(count * sizeof(double) + 1);
    weights->tensors[at] = (foreloop_tensor){.name = made->name,
                                             .dtype = FORELOOP_DTYPE_F32,
                                             .rank = rank,
                                             .shape = {rows, rank == 2 ? columns : 0},
                                             .count = count,
                                             .data = made->data};
    return made->values;
}

static size_t place_of(const made_weights *weights, const char *name) {
    for (size_t i = 0; i < weights->count; i++)
        if (strcmp(weights->made[i].name + strlen("net/"), name) == 0)
            return i;
    abort();
}

static foreloop_tensor *tensor_of(made_weights *weights, const char *name) {
    return &weights->tensors[place_of(weights, name)];
}

static float *values_of(made_weights *weights, const char *name) {
    return weights->made[place_of(weights, name)].values;
}

/* Of numbers that the narrower type has. */
static void store(unsigned char *data, foreloop_dtype dtype, size_t i, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7FFFFFFF;
    const uint16_t half = (uint16_t)(sign | (magnitude ? (magnitude - (112u << 23)) >> 13 : 0));
    const uint16_t brain = (uint16_t)(bits >> 16);
    if (dtype == FORELOOP_DTYPE_F16)
        memcpy(data + 2 * i, &half, sizeof half);
    else if (dtype == FORELOOP_DTYPE_BF16)
        memcpy(data + 2 * i, &brain, sizeof brain);
    else
        memcpy(data + 4 * i, &bits, sizeof bits);
}

static const foreloop_safetensors *seal(made_weights *weights) {
    for (size_t i = 0; i < weights->count; i++) {
        foreloop_tensor *tensor = &weights->tensors[i];
        size_t place = i;
        tensor->size = tensor->count * foreloop_dtype_size(tensor->dtype);
        for (size_t k = 0; k < tensor->count; k++)
            store(weights->made[i].data, tensor->dtype, k, weights->made[i].values[k]);
        for (; place && strcmp(weights->tensors[weights->by_name[place - 1]].name, tensor->name) > 0; place--)
            weights->by_name[place] = weights->by_name[place - 1];
        weights->by_name[place] = (uint32_t)i;
    }
    weights->file = (foreloop_safetensors){.allocator = foreloop_allocator_or_default(NULL),
                                           .tensors = weights->tensors,
                                           .count = weights->count,
                                           .by_name = weights->by_name};
    return &weights->file;
}

static void rename_tensor(made_weights *weights, const char *name, const char *to) {
    made_tensor *made = &weights->made[place_of(weights, name)];
    snprintf(made->name, sizeof made->name, "net/%s", to);
}

static void discard(made_weights *weights) {
    for (size_t i = 0; i < weights->count; i++) {
        free(weights->made[i].values);
        free(weights->made[i].data);
    }
    *weights = (made_weights){0};
}

/* Multiples of 1/16 below 4: float16 and bfloat16 have them. */
static float draw(random_source *source) {
    return ((float)random_below(source, 127) - 63.0f) / 16.0f;
}

/* Every fourth feature is not read. widths[layers - 1] is the outputs of the last layer. */
static void make(made_weights *weights, size_t features, const size_t *widths, size_t layers, uint64_t seed) {
    random_source source = {seed};
    float *shift, *scale;
    *weights = (made_weights){0};
    add(weights, "limit", 1, 1, 0)[0] = 4;
    shift = add(weights, "shift", 1, features, 0);
    scale = add(weights, "scale", 1, features, 0);
    for (size_t i = 0; i < features; i++) {
        shift[i] = draw(&source);
        scale[i] = i % 4 == 3 ? 0 : draw(&source) + 0.03125f;
    }
    for (size_t k = 0, in = features; k < layers; in = widths[k++]) {
        char name[24];
        snprintf(name, sizeof name, "%zu.weight", k);
        float *weight = add(weights, name, 2, widths[k], in);
        snprintf(name, sizeof name, "%zu.bias", k);
        float *bias = add(weights, name, 1, widths[k], 0);
        for (size_t i = 0; i < widths[k] * in; i++)
            weight[i] = draw(&source);
        for (size_t i = 0; i < widths[k]; i++)
            bias[i] = draw(&source);
    }
}

/* ---- What it computes -------------------------------------------------------------------------------------------- */

/* The definition of weights/FORMAT.md on the tensors as they stand; *exact in double. */
static float expected_score(made_weights *weights, size_t layers, const float *row, double *exact) {
    const float *shift = values_of(weights, "shift"), *scale = values_of(weights, "scale");
    const float limit = values_of(weights, "limit")[0];
    const size_t features = tensor_of(weights, "shift")->shape[0];
    float *x = malloc((features + 4096) * sizeof *x), *y = malloc((features + 4096) * sizeof *y);
    double *wide = malloc((features + 4096) * sizeof *wide), *next = malloc((features + 4096) * sizeof *next);
    size_t in = features;
    for (size_t i = 0; i < features; i++) {
        const float difference = row[i] - shift[i], product = difference * scale[i];
        x[i] = fminf(fmaxf(product, -limit), limit);
        wide[i] = fmin(fmax(((double)row[i] - (double)shift[i]) * (double)scale[i], -(double)limit), (double)limit);
    }
    for (size_t k = 0; k < layers; k++) {
        char name[24];
        snprintf(name, sizeof name, "%zu.weight", k);
        const float *weight = values_of(weights, name);
        const size_t out = tensor_of(weights, name)->shape[0];
        snprintf(name, sizeof name, "%zu.bias", k);
        const float *bias = values_of(weights, name);
        for (size_t o = 0; o < out; o++) {
            float sum = bias[o];
            double precise = (double)bias[o];
            for (size_t i = 0; i < in; i++)
                if (k > 0 || scale[i] != 0) {
                    sum = fmaf(weight[o * in + i], x[i], sum);
                    precise += (double)weight[o * in + i] * wide[i];
                }
            y[o] = k + 1 < layers && !(sum > 0) ? 0 : sum;
            next[o] = k + 1 < layers && !(precise > 0) ? 0 : precise;
        }
        in = out;
        memcpy(x, y, in * sizeof *x);
        memcpy(wide, next, in * sizeof *wide);
    }
    const float score = x[0];
    *exact = wide[0];
    free(x);
    free(y);
    free(wide);
    free(next);
    return score;
}

static foreloop_status load(foreloop_score_network *network, made_weights *weights, const foreloop_allocator *allocator,
                            size_t features, foreloop_tier tier, foreloop_error *error) {
    return foreloop_score_network_load(network, allocator, seal(weights), "net/", features, tier, error);
}

static void test_scores(size_t features, const size_t *widths, size_t layers, foreloop_dtype dtype,
                        foreloop_tier tier) {
    const foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    const size_t values = features + 5;
    made_weights weights;
    foreloop_score_network network;
    foreloop_error error = {0};
    random_source source = {features + layers};
    make(&weights, features, widths, layers, features * 10 + layers);
    for (size_t i = 0; i < weights.count; i++)
        weights.tensors[i].dtype = dtype;
    if (!CHECK(load(&network, &weights, &allocator, features, tier, &error) == FORELOOP_OK, "loads: %s",
               error.message)) {
        discard(&weights);
        return;
    }
    guarded scratch = guarded_make(foreloop_score_network_scratch(&network), 0);
    guarded block = guarded_make(values * ROWS, 0), row = guarded_make(values, 0);
    uint32_t *places = malloc(network.input_count * sizeof *places);
    int listed = 1, alone = 1, in_blocks = 1, near = 1;
    float expected[ROWS];
    size_t read = 0;
    for (size_t i = 0; i < features; i++)
        if (values_of(&weights, "scale")[i] != 0)
            listed &= read < network.input_count && network.features[read++] == i;
    listed &= read == network.input_count;
    /* The feature numbered f is the value numbered values - 1 - f. */
    for (size_t i = 0; i < network.input_count; i++)
        places[i] = (uint32_t)values - 1 - network.features[i];
    for (size_t i = 0; i < block.count; i++)
        block.values[i] = guarded_draw(&source) * (random_below(&source, 9) ? 3.0f : 1e9f);
    for (size_t r = 0; r < ROWS; r++) {
        float *given = malloc(features * sizeof *given);
        double exact;
        for (size_t v = 0; v < values; v++)
            row.values[v] = block.values[v * ROWS + r];
        for (size_t f = 0; f < features; f++)
            given[f] = row.values[values - 1 - f];
        expected[r] = expected_score(&weights, layers, given, &exact);
        const float score = foreloop_score_network_row(&network, row.values, places, scratch.values);
        alone &= memcmp(&score, &expected[r], sizeof score) == 0;
        near &= fabs((double)score - exact) <= 1e-4 * fabs(exact) + 1e-2;
        free(given);
    }
    for (size_t rows = 1; rows <= ROWS; rows += layers > 3 ? 21 : 1) {
        float scores[ROWS + 1];
        for (size_t r = 0; r <= ROWS; r++)
            scores[r] = (float)r;
        foreloop_score_network_add_block(&network, block.values, places, rows, scratch.values, scores);
        for (size_t r = 0; r <= ROWS; r++)
            in_blocks &= scores[r] == (float)r + (r < rows ? expected[r] : 0);
    }
    CHECK(listed, "the features that are read");
    CHECK(alone && in_blocks, "%zu features, %zu layers of %zu, %s, %s: the bits of the definition%s%s", features,
          layers, widths[0], foreloop_dtype_name(dtype), network.kernels.tier, alone ? "" : ": not alone",
          in_blocks ? "" : ": not in blocks");
    CHECK(near, "and near to it in double");
    guarded_free(&scratch);
    guarded_free(&block);
    guarded_free(&row);
    free(places);
    foreloop_score_network_close(&network);
    discard(&weights);
}

/* ---- What will not do -------------------------------------------------------------------------------------------- */

static const size_t small[] = {5, 3, 1};
enum { FEATURES = 6 };

/* Loading fails like that, owns nothing and leaves the network as it was; discards the weights. */
static void refuse(made_weights *weights, foreloop_status expected, const char *message, const char *what) {
    failing_allocator memory = {.fail_at = SIZE_MAX};
    const foreloop_allocator allocator = failing_allocator_use(&memory);
    foreloop_score_network network, before;
    foreloop_error error = {0};
    memset(&network, 0x5A, sizeof network);
    memset(&before, 0x5A, sizeof before);
    const foreloop_status status = load(&network, weights, &allocator, FEATURES, FORELOOP_TIER_REF, &error);
    CHECK(status == expected && strstr(error.message, message), "%s: %s", what, error.message);
    CHECK(memory.live == 0 && memcmp(&network, &before, sizeof network) == 0, "nothing is owned or changed");
    discard(weights);
}

static void test_missing_and_shapes(void) {
    static const char *const names[] = {"limit",    "shift",  "scale",    "0.weight", "0.bias",
                                        "1.weight", "1.bias", "2.weight", "2.bias"};
    made_weights weights;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        make(&weights, FEATURES, small, 3, 1);
        rename_tensor(&weights, names[i], "other");
        refuse(&weights, FORELOOP_ERROR_MISMATCH, names[i], "missing");
        make(&weights, FEATURES, small, 3, 1);
        tensor_of(&weights, names[i])->dtype = FORELOOP_DTYPE_I32;
        refuse(&weights, FORELOOP_ERROR_UNSUPPORTED, names[i], "integers");
        make(&weights, FEATURES, small, 3, 1);
        tensor_of(&weights, names[i])->rank = 3;
        tensor_of(&weights, names[i])->shape[1] = tensor_of(&weights, names[i])->shape[2] = 1;
        refuse(&weights, FORELOOP_ERROR_MISMATCH, names[i], "another rank");
        if (strcmp(names[i], "limit") == 0)
            continue;
        make(&weights, FEATURES, small, 3, 1);
        tensor_of(&weights, names[i])->shape[strstr(names[i], "weight") ? 1 : 0]--;
        tensor_of(&weights, names[i])->count--;
        refuse(&weights, FORELOOP_ERROR_MISMATCH, names[i], "another shape");
    }
    make(&weights, FEATURES, (const size_t[]){4, 2}, 2, 1);
    refuse(&weights, FORELOOP_ERROR_MISMATCH, "1.weight", "two outputs");
    make(&weights, FEATURES, (const size_t[]){0, 1}, 2, 1);
    refuse(&weights, FORELOOP_ERROR_MISMATCH, "0.weight", "no outputs");
    make(&weights, FEATURES, (const size_t[]){FORELOOP_SCORE_NETWORK_MAX_WIDTH + 1, 1}, 2, 1);
    refuse(&weights, FORELOOP_ERROR_MISMATCH, "0.weight", "too wide");
    make(&weights, FEATURES + 1, small, 3, 1);
    refuse(&weights, FORELOOP_ERROR_MISMATCH, "scale", "other features");
    make(&weights, FEATURES, small, 0, 1);
    refuse(&weights, FORELOOP_ERROR_MISMATCH, "there are no layers", "no layers");
    make(&weights, FEATURES, (const size_t[]){2, 2, 2, 2, 2, 2, 2, 2, 1}, 9, 1);
    refuse(&weights, FORELOOP_ERROR_MISMATCH, "more than 8 layers", "nine layers");
    make(&weights, FEATURES, small, 3, 1);
    add(&weights, "4.weight", 2, 1, 1);
    refuse(&weights, FORELOOP_ERROR_MISMATCH, "3.weight", "a gap");
    make(&weights, FEATURES, small, 3, 1);
    add(&weights, "3.bias", 1, 1, 0);
    refuse(&weights, FORELOOP_ERROR_MISMATCH, "3.weight", "half a layer");
    make(&weights, FEATURES, small, 3, 1);
    add(&weights, "18446744073709551616.weight", 2, 1, 1);
    refuse(&weights, FORELOOP_ERROR_MISMATCH, "more than 8 layers", "a layer beyond all numbers");
}

static void test_values(void) {
    static const char *const names[] = {"limit", "shift", "scale", "0.weight", "0.bias", "2.weight", "2.bias"};
    static const float limits[] = {0.0f, -0.0f, -1.0f, 1.0001e6f, FLT_MAX};
    made_weights weights;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int which = 0; which < 3; which++) {
            make(&weights, FEATURES, small, 3, 1);
            /* The last number, and of 0.weight one that is not read: all must be finite. */
            const size_t last = tensor_of(&weights, names[i])->count - 1, unread = 3;
            values_of(&weights, names[i])[i == 3 ? unread : last] = which == 0   ? NAN
                                                                    : which == 1 ? INFINITY
                                                                                 : -INFINITY;
            refuse(&weights, FORELOOP_ERROR_VALUE, names[i], "no finite number");
        }
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        make(&weights, FEATURES, small, 3, 1);
        values_of(&weights, "limit")[0] = limits[i];
        refuse(&weights, FORELOOP_ERROR_VALUE, "limit", "a limit that is not positive, or lets everything through");
    }
    make(&weights, FEATURES, small, 3, 1);
    for (size_t i = 0; i < FEATURES; i++)
        values_of(&weights, "scale")[i] = i % 2 ? 0.0f : -0.0f;
    refuse(&weights, FORELOOP_ERROR_VALUE, "scale", "no feature is read");
    static const char *const large[] = {"0.weight", "0.bias", "1.weight", "1.bias", "2.weight", "2.bias"};
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        make(&weights, FEATURES, small, 3, 1);
        values_of(&weights, large[i])[0] = -3e30f;
        char weight[24];
        snprintf(weight, sizeof weight, "%c.weight", large[i][0]);
        refuse(&weights, FORELOOP_ERROR_VALUE, weight, "too large");
    }
}

/* At the bound: scores stay finite beside the largest margins. */
static void test_bound(void) {
    const foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    foreloop_score_network network;
    made_weights weights;
    make(&weights, 4, (const size_t[]){1}, 1, 1);
    values_of(&weights, "limit")[0] = 1;
    for (size_t i = 0; i < 4; i++) {
        values_of(&weights, "shift")[i] = 0;
        values_of(&weights, "scale")[i] = i < 2 ? 1.0f : 0.0f;
        values_of(&weights, "0.weight")[i] = i < 2 ? 4.9e29f : FLT_MAX;
    }
    if (CHECK(load(&network, &weights, &allocator, 4, FORELOOP_TIER_BEST, NULL) == FORELOOP_OK,
              "weights just below the bound, and larger ones that are not read")) {
        guarded scratch = guarded_make(foreloop_score_network_scratch(&network), 0);
        guarded block = guarded_make(4 * ROWS, 0);
        float scores[2] = {FLT_MAX, -FLT_MAX};
        for (size_t i = 0; i < block.count; i++)
            block.values[i] = i % ROWS == 0 ? FLT_MAX : -FLT_MAX;
        foreloop_score_network_add_block(&network, block.values, network.features, 2, scratch.values, scores);
        CHECK(isfinite(scores[0]) && isfinite(scores[1]), "cannot overflow a margin");
        guarded_free(&scratch);
        guarded_free(&block);
        foreloop_score_network_close(&network);
    }
    discard(&weights);
}

static void test_memory(void) {
    made_weights weights;
    make(&weights, FEATURES, small, 3, 1);
    for (size_t n = 0;; n++) {
        failing_allocator memory = {.fail_at = n};
        const foreloop_allocator allocator = failing_allocator_use(&memory);
        foreloop_score_network network, before;
        memset(&network, 0x5A, sizeof network);
        memset(&before, 0x5A, sizeof before);
        const foreloop_status status = load(&network, &weights, &allocator, FEATURES, FORELOOP_TIER_BEST, NULL);
        if (status == FORELOOP_OK)
            foreloop_score_network_close(&network);
        else if (status != FORELOOP_ERROR_MEMORY || memcmp(&network, &before, sizeof network) != 0)
            memory.live++;
        CHECK(memory.live == 0 && (status == FORELOOP_OK) == !memory.failed, "%zu allocations", n);
        if (!memory.failed)
            break;
    }
    discard(&weights);
}

int main(void) {
    static const foreloop_dtype dtypes[] = {FORELOOP_DTYPE_F32, FORELOOP_DTYPE_F16, FORELOOP_DTYPE_BF16};
    static const size_t eight[] = {9, 16, 17, 33, 2, 1, 40, 1}, trained[] = {64, 64, 1}, one[] = {1},
                        wide[] = {4096, 1};
    for (foreloop_tier tier = FORELOOP_TIER_REF; tier <= foreloop_cpu_tier(FORELOOP_TIER_BEST);
         tier = (foreloop_tier)(tier + 1)) {
        test_scores(210, trained, 3, FORELOOP_DTYPE_F32, tier);
        test_scores(1, one, 1, FORELOOP_DTYPE_F32, tier);
        test_scores(23, eight, 8, FORELOOP_DTYPE_F32, tier);
        test_scores(4, wide, 2, FORELOOP_DTYPE_F32, tier);
        for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
            test_scores(33, small, 3, dtypes[i], tier);
    }
    test_missing_and_shapes();
    test_values();
    test_bound();
    test_memory();
    foreloop_score_network empty = {0};
    foreloop_score_network_close(&empty);
    return tap_done();
}
