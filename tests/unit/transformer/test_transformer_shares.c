/* A forward pass large enough to be shared out, in every precision: the same bits for one sequence alone, in a batch,
 * and in any number of shares, on threads that come in any order; and about the same numbers in every tier. Bytes are
 * finer for short sequences. An encoder of CodeBERT's size gets by with a few MB. */
#include "kernels_cpu/cpu.h"
#include "made_weights.h"
#include "tap.h"
#include "transformer/encoder.h"
#include <math.h>
#include <pthread.h>

enum { LAYERS = 2, HIDDEN = 96, INNER = 200, HEADS = 3, VOCABULARY = 50, POSITIONS = 300 };

static const char *const tier_names[] = {"best", "ref", "avx2", "avx512"};
static const char *const precision_names[] = {"f32", "bf16", "int8", "int8_row"};

static const foreloop_transformer_config config = {.architecture = FORELOOP_ARCHITECTURE_BERT,
                                                   .vocabulary_size = VOCABULARY,
                                                   .hidden_size = HIDDEN,
                                                   .layer_count = LAYERS,
                                                   .head_count = HEADS,
                                                   .intermediate_size = INNER,
                                                   .position_count = POSITIONS,
                                                   .type_count = 1,
                                                   .activation = FORELOOP_ACTIVATION_GELU,
                                                   .layer_norm_epsilon = 1e-5};

/* A thread for each task, the last first. */
typedef struct started {
    void (*task)(void *argument, size_t index);
    void *argument;
    size_t index;
} started;

static void *work(void *argument) {
    const started *own = argument;
    own->task(own->argument, own->index);
    return NULL;
}

static void run_threads(void *user, size_t count, void (*task)(void *argument, size_t index), void *argument) {
    pthread_t threads[64];
    started tasks[64];
    *(size_t *)user += 1;
    for (size_t i = count; i-- > 0;) {
        tasks[i] = (started){task, argument, i};
        if (pthread_create(&threads[i], NULL, work, &tasks[i]) != 0)
            abort();
    }
    for (size_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

static void run(const foreloop_transformer_weights *weights, const foreloop_shares *shares,
                const foreloop_token_batch *batch, float *states) {
    foreloop_transformer_scratch scratch;
    if (foreloop_transformer_scratch_open(&scratch, weights, shares, NULL) != FORELOOP_OK ||
        foreloop_transformer_forward(weights, &scratch, batch, NULL) != FORELOOP_OK)
        exit(1);
    for (size_t t = 0; t < batch->offsets[batch->count]; t++)
        memcpy(states + t * HIDDEN, scratch.states + t * scratch.state_stride, HIDDEN * sizeof *states);
    foreloop_transformer_scratch_close(&scratch, &weights->allocator);
}

enum { LONG_SEQUENCES = 5, SHORT = 3, SEQUENCES = LONG_SEQUENCES + 44, TOKENS = 300 };

/* Long sequences and lone tokens, then many that are short. */
static void make_offsets(size_t offsets[SEQUENCES + 1]) {
    static const size_t lengths[LONG_SEQUENCES] = {1, 120, 16, 1, 30};
    offsets[0] = 0;
    for (size_t s = 0; s < SEQUENCES; s++)
        offsets[s + 1] = offsets[s] + (s < LONG_SEQUENCES ? lengths[s] : SHORT);
}

/* Root of the mean square of what the tokens from `first` on are off. */
static double distance(const float *states, const float *expected, size_t first, size_t end) {
    double sum = 0;
    for (size_t i = first * HIDDEN; i < end * HIDDEN; i++)
        sum += ((double)states[i] - (double)expected[i]) * ((double)states[i] - (double)expected[i]);
    return sqrt(sum / (double)((end - first) * HIDDEN));
}

static void check_numbers(const char *name, foreloop_precision precision, const float *states, const float *reference,
                          const size_t *offsets) {
    double off = 0;
    for (size_t i = 0; i < TOKENS * HIDDEN; i++)
        off = fmax(off, fabs(states[i] - reference[i]));
    CHECK(off < (precision == FORELOOP_PRECISION_F32 ? 1e-5 : 0.05), "%s: off the reference by %.1e", name, off);
    if (precision < FORELOOP_PRECISION_INT8)
        return;
    const double rest = distance(states, reference, offsets[LONG_SEQUENCES], TOKENS);
    const double coarse = distance(states, reference, offsets[1], offsets[2]);
    CHECK(rest < 0.85 * coarse, "%s: short sequences are off by %.1e, a long one by %.1e", name, rest, coarse);
}

/* `reference` holds plain C's states in float32, and gets them first. */
static void test_tier(made_weights *made, foreloop_tier tier, foreloop_precision precision, float *reference) {
    static float whole[TOKENS * HIDDEN], other[TOKENS * HIDDEN];
    const foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    const foreloop_safetensors file = made_weights_file(made);
    const foreloop_cpu_limits limits = {.tier = tier};
    const foreloop_kernel_choice choice = {
        .tier = tier, .precision = precision, .features = foreloop_cpu_choose(&limits)};
    const foreloop_shares alone = {.count = 1};
    foreloop_transformer_weights weights;
    foreloop_error error = {.message = ""};
    uint32_t ids[TOKENS];
    size_t offsets[SEQUENCES + 1];
    char name[64];
    snprintf(name, sizeof name, "%s, %s", tier_names[tier], precision_names[precision]);
    if (!CHECK(foreloop_transformer_weights_load(&weights, &config, &file, "", &choice, &allocator, &error) ==
                   FORELOOP_OK,
               "%s: weights %s", name, error.message))
        return;
    for (size_t i = 0; i < TOKENS; i++)
        ids[i] = (uint32_t)(i * i % VOCABULARY);
    make_offsets(offsets);
    const foreloop_token_batch all = {.ids = ids, .offsets = offsets, .count = SEQUENCES};
    run(&weights, &alone, &all, whole);
    int same = 1;
    for (size_t s = 0; s < SEQUENCES; s++) {
        const size_t own[2] = {0, offsets[s + 1] - offsets[s]};
        const foreloop_token_batch one = {.ids = ids + offsets[s], .offsets = own, .count = 1};
        run(&weights, &alone, &one, other);
        same &= memcmp(other, whole + offsets[s] * HIDDEN, own[1] * HIDDEN * sizeof *other) == 0;
    }
    CHECK(same, "%s: a sequence alone has the bits that it has in a batch", name);
    static const size_t counts[] = {2, 3, 4, 7, 13, 40};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        size_t runs = 0;
        const foreloop_shares shares = {.parallel = {run_threads, &runs}, .count = counts[i]};
        run(&weights, &shares, &all, other);
        CHECK(memcmp(other, whole, sizeof whole) == 0 && runs >= 5 * LAYERS, "%s: %zu shares, %zu times", name,
              counts[i], runs);
    }
    if (tier == FORELOOP_TIER_REF && precision == FORELOOP_PRECISION_F32)
        memcpy(reference, whole, sizeof whole);
    check_numbers(name, precision, whole, reference, offsets);
    foreloop_transformer_weights_close(&weights);
}

/* Adds up what is asked for. */
typedef struct counted {
    foreloop_allocator within;
    size_t bytes;
} counted;

static void *count_bytes(void *user, size_t size, size_t alignment) {
    counted *count = user;
    count->bytes += size;
    return count->within.allocate(count->within.user, size, alignment);
}

static void release_counted(void *user, void *pointer) {
    const counted *count = user;
    count->within.release(count->within.user, pointer);
}

/* One layer is as good as twelve: scratch does not grow with them. */
static void test_scratch(foreloop_tier tier) {
    static made_weights made;
    const foreloop_transformer_config large = {.architecture = FORELOOP_ARCHITECTURE_ROBERTA,
                                               .vocabulary_size = 3,
                                               .hidden_size = 768,
                                               .layer_count = 1,
                                               .head_count = 12,
                                               .intermediate_size = 3072,
                                               .position_count = 514,
                                               .position_offset = 2,
                                               .type_count = 1,
                                               .padding_id = 1,
                                               .activation = FORELOOP_ACTIVATION_GELU,
                                               .layer_norm_epsilon = 1e-5};
    made_weights_make(&made, &large, 3, 0.1f);
    const foreloop_safetensors file = made_weights_file(&made);
    const foreloop_cpu_limits limits = {.tier = tier};
    for (foreloop_precision p = FORELOOP_PRECISION_F32; p <= FORELOOP_PRECISION_INT8_ROW; p++) {
        const foreloop_kernel_choice choice = {.tier = tier, .precision = p, .features = foreloop_cpu_choose(&limits)};
        foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
        counted count = {.within = allocator};
        foreloop_transformer_weights weights;
        foreloop_transformer_scratch scratch;
        const foreloop_shares shares = {.count = 2};
        allocator = (foreloop_allocator){count_bytes, release_counted, &count};
        if (!CHECK(foreloop_transformer_weights_load(&weights, &large, &file, "", &choice, &allocator, NULL) ==
                       FORELOOP_OK,
                   "weights of CodeBERT's size"))
            continue;
        count.bytes = 0;
        const foreloop_status status = foreloop_transformer_scratch_open(&scratch, &weights, &shares, NULL);
        CHECK(status == FORELOOP_OK && count.bytes > 1 << 20 && count.bytes < 12 << 20,
              "%s: 512 tokens of CodeBERT's size on two threads take %.1f MB", precision_names[p],
              (double)count.bytes * 1e-6);
        foreloop_transformer_scratch_close(&scratch, &allocator);
        foreloop_transformer_weights_close(&weights);
    }
    made_weights_free(&made);
}

int main(void) {
    static made_weights made;
    static float reference[POSITIONS * HIDDEN];
    const foreloop_tier best = foreloop_cpu_tier(FORELOOP_TIER_BEST);
    made_weights_make(&made, &config, 99, 0.1f);
    for (foreloop_tier tier = FORELOOP_TIER_REF; tier <= best; tier++)
        for (foreloop_precision p = FORELOOP_PRECISION_F32; p <= FORELOOP_PRECISION_INT8_ROW; p++)
            test_tier(&made, tier, p, reference);
    test_scratch(best);
    made_weights_free(&made);
    return tap_done();
}
