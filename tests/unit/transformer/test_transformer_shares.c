/* A forward pass large enough to be shared out: the same bits for one sequence alone, in a batch, and in any number of
 * shares, on threads that come in any order; and about the same numbers in every tier. */
#include "kernels_cpu/cpu.h"
#include "made_weights.h"
#include "tap.h"
#include "transformer/encoder.h"
#include <math.h>
#include <pthread.h>

enum { LAYERS = 2, HIDDEN = 96, INNER = 200, HEADS = 3, VOCABULARY = 50, POSITIONS = 300 };

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

static void test_tier(made_weights *made, foreloop_tier tier, float *reference) {
    static const size_t offsets[] = {0, 1, 131, 147, 148, 275, 298};
    enum { SEQUENCES = sizeof offsets / sizeof *offsets - 1, TOKENS = 298 };
    static float whole[TOKENS * HIDDEN], other[TOKENS * HIDDEN];
    const foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    const foreloop_safetensors file = made_weights_file(made);
    const foreloop_kernel_choice choice = {.tier = tier, .precision = FORELOOP_PRECISION_F32};
    const foreloop_shares alone = {.count = 1};
    foreloop_transformer_weights weights;
    foreloop_error error = {.message = ""};
    uint32_t ids[TOKENS];
    if (!CHECK(foreloop_transformer_weights_load(&weights, &config, &file, "", &choice, &allocator, &error) ==
                   FORELOOP_OK,
               "tier %d: weights %s", (int)tier, error.message))
        return;
    for (size_t i = 0; i < TOKENS; i++)
        ids[i] = (uint32_t)(i * i % VOCABULARY);
    const foreloop_token_batch all = {.ids = ids, .offsets = offsets, .count = SEQUENCES};
    run(&weights, &alone, &all, whole);
    int same = 1;
    for (size_t s = 0; s < SEQUENCES; s++) {
        const size_t own[2] = {0, offsets[s + 1] - offsets[s]};
        const foreloop_token_batch one = {.ids = ids + offsets[s], .offsets = own, .count = 1};
        run(&weights, &alone, &one, other);
        same &= memcmp(other, whole + offsets[s] * HIDDEN, own[1] * HIDDEN * sizeof *other) == 0;
    }
    CHECK(same, "tier %d: a sequence alone has the bits that it has in a batch", (int)tier);
    static const size_t counts[] = {2, 3, 4, 7, 13, 40};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        size_t runs = 0;
        const foreloop_shares shares = {.parallel = {run_threads, &runs}, .count = counts[i]};
        run(&weights, &shares, &all, other);
        CHECK(memcmp(other, whole, sizeof whole) == 0 && runs >= 5 * LAYERS, "tier %d: %zu shares, %zu times",
              (int)tier, counts[i], runs);
    }
    double off = 0;
    for (size_t i = 0; i < TOKENS * HIDDEN; i++)
        off = fmax(off, fabs(whole[i] - reference[i]));
    if (tier == FORELOOP_TIER_REF)
        memcpy(reference, whole, sizeof whole);
    else
        CHECK(off < 1e-5, "tier %d: off the reference by %.1e", (int)tier, off);
    foreloop_transformer_weights_close(&weights);
}

int main(void) {
    static made_weights made;
    static float reference[POSITIONS * HIDDEN];
    made_weights_make(&made, &config, 99, 0.1f);
    for (foreloop_tier tier = FORELOOP_TIER_REF; tier <= foreloop_cpu_tier(FORELOOP_TIER_BEST); tier++)
        test_tier(&made, tier, reference);
    made_weights_free(&made);
    return tap_done();
}
