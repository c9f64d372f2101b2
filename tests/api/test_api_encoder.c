/* The encoder through the API: batches, threads and tiers. A text has the same bits alone and in any batch, on any
 * number of threads, at any alignment; nothing is allocated after the first call; a failure leaves everything alone. */
#include "failing_allocator.h"
#include "tap.h"
#include <foreloop/foreloop.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { TEXTS = 40, SIZE = 64 };

static char texts[TEXTS][400];
static const char *pointers[TEXTS];
static size_t lengths[TEXTS];
static float expected[TEXTS][SIZE], found[TEXTS * SIZE + 1];
static size_t width;

static const char *path(const char *root, const char *name) {
    static char text[512];
    snprintf(text, sizeof text, "%s/tests/golden/%s", root, name);
    return text;
}

/* From no token to several windows. */
static void make_texts(void) {
    for (size_t i = 0; i < TEXTS; i++) {
        const size_t words = i * i % 23;
        for (size_t w = 0; w < words; w++)
            strcat(texts[i], (i + w) % 3 == 0 ? "for i in grid: " : (i + w) % 3 == 1 ? "A[i, j] = B " : "a");
        pointers[i] = texts[i];
        lengths[i] = strlen(texts[i]);
    }
}

static int same_bits(const float *given) {
    for (size_t i = 0; i < TEXTS; i++)
        if (memcmp(given + i * width, expected[i], width * sizeof *given) != 0)
            return 0;
    return 1;
}

/* The caller's threads may come in any order. */
static void run_backwards(void *user, size_t count, void (*task)(void *argument, size_t index), void *argument) {
    *(size_t *)user += 1;
    for (size_t i = count; i-- > 0;)
        task(argument, i);
}

static unsigned control_register(void) {
#if defined(__x86_64__)
    return _mm_getcsr() & ~(unsigned)_MM_EXCEPT_MASK;
#else
    return 0;
#endif
}

static void test_batches(foreloop_encoder *encoder, const char *tier) {
    foreloop_error error = {.message = ""};
    const unsigned control = control_register();
    for (size_t i = 0; i < TEXTS; i++)
        if (foreloop_encode_text(encoder, pointers[i], lengths[i], expected[i], &error) != FORELOOP_OK)
            CHECK(0, "text %zu: %s", i, error.message);
    CHECK(foreloop_encode_texts(encoder, pointers, lengths, TEXTS, found, &error) == FORELOOP_OK && same_bits(found),
          "%s: a batch has the bits of its texts alone", tier);
    memset(found, 0, sizeof found);
    CHECK(foreloop_encode_texts(encoder, pointers, lengths, TEXTS, found + 1, &error) == FORELOOP_OK &&
              same_bits(found + 1),
          "%s: at another alignment too", tier);
    int same = 1;
    for (size_t first = 0, count; first < TEXTS; first += count) {
        count = first % 4 + 1 < TEXTS - first ? first % 4 + 1 : TEXTS - first;
        foreloop_encode_texts(encoder, pointers + first, lengths + first, count, found, &error);
        for (size_t i = 0; i < count; i++)
            same &= memcmp(found + i * width, expected[first + i], width * sizeof *found) == 0;
    }
    CHECK(same, "%s: and in batches of other sizes", tier);
    CHECK(foreloop_encode_texts(encoder, NULL, NULL, 0, NULL, &error) == FORELOOP_OK, "%s: a batch of none", tier);
    CHECK(control_register() == control, "%s: the floating-point mode is as before", tier);
}

static void test_shares(foreloop_encoder *encoder, const char *tier) {
    foreloop_error error = {.message = ""};
    size_t runs = 0;
    const foreloop_parallel_for backwards = {run_backwards, &runs};
    static const size_t shares[] = {1, 2, 3, 5, 16, 64};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        memset(found, 0, sizeof found);
        CHECK(foreloop_encoder_set_parallel(encoder, &backwards, shares[i], &error) == FORELOOP_OK &&
                  foreloop_encode_texts(encoder, pointers, lengths, TEXTS, found, &error) == FORELOOP_OK &&
                  same_bits(found),
              "%s: %zu shares give the bits of one", tier, shares[i]);
    }
    CHECK(foreloop_encoder_set_parallel(encoder, &backwards, 0, &error) == FORELOOP_ERROR_ARGUMENT &&
              foreloop_encoder_set_parallel(encoder, &backwards, 5000, &error) == FORELOOP_ERROR_ARGUMENT &&
              foreloop_encoder_set_parallel(NULL, &backwards, 2, &error) == FORELOOP_ERROR_ARGUMENT &&
              foreloop_encoder_set_parallel(encoder, &(foreloop_parallel_for){NULL, NULL}, 2, &error) ==
                  FORELOOP_ERROR_ARGUMENT,
          "%s: wrong arguments are refused: %s", tier, error.message);
    CHECK(foreloop_encoder_set_parallel(encoder, NULL, 0, &error) == FORELOOP_OK, "%s: back to one thread", tier);
}

static void test_pool(foreloop_encoder *encoder, const char *tier) {
    foreloop_error error = {.message = ""};
    for (size_t threads = 1; threads <= 4; threads++) {
        foreloop_thread_pool *pool;
        if (!CHECK(foreloop_thread_pool_create(&pool, threads, NULL, &error) == FORELOOP_OK, "a pool of %zu", threads))
            return;
        const foreloop_parallel_for *parallel = foreloop_thread_pool_parallel(pool);
        int same = foreloop_encoder_set_parallel(encoder, parallel, threads, &error) == FORELOOP_OK;
        for (int i = 0; i < 5; i++) {
            memset(found, 0, sizeof found);
            same &= foreloop_encode_texts(encoder, pointers, lengths, TEXTS, found, &error) == FORELOOP_OK &&
                    same_bits(found);
        }
        CHECK(same, "%s: a pool of %zu threads gives the bits of one", tier, threads);
        foreloop_encoder_set_parallel(encoder, NULL, 0, &error);
        foreloop_thread_pool_close(pool);
    }
}

/* Nothing of the pool's threads is in a forked child: it does all by itself. */
static void test_fork(foreloop_encoder *encoder) {
    foreloop_thread_pool *pool;
    foreloop_error error;
    if (foreloop_thread_pool_create(&pool, 3, NULL, &error) != FORELOOP_OK)
        return;
    foreloop_encoder_set_parallel(encoder, foreloop_thread_pool_parallel(pool), 3, &error);
    const pid_t child = fork();
    if (child == 0) {
        memset(found, 0, sizeof found);
        const int good =
            foreloop_encode_texts(encoder, pointers, lengths, TEXTS, found, &error) == FORELOOP_OK && same_bits(found);
        foreloop_thread_pool_close(pool);
        _exit(good ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    CHECK(child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0, "a forked child encodes without the threads");
    foreloop_encoder_set_parallel(encoder, NULL, 0, &error);
    foreloop_thread_pool_close(pool);
    CHECK(foreloop_thread_pool_create(&pool, 0, NULL, &error) == FORELOOP_ERROR_ARGUMENT &&
              foreloop_thread_pool_create(NULL, 2, NULL, &error) == FORELOOP_ERROR_ARGUMENT,
          "a pool of no threads is refused: %s", error.message);
    foreloop_thread_pool_close(NULL);
    CHECK(!foreloop_thread_pool_parallel(NULL), "no pool, no parallel-for");
}

static void test_errors(foreloop_encoder *encoder) {
    foreloop_error error = {.message = ""};
    const char *some[3] = {"a", NULL, "b"};
    const size_t sizes[3] = {1, 1, 1};
    found[0] = 42.0f;
    CHECK(foreloop_encode_texts(encoder, some, sizes, 3, found, &error) == FORELOOP_ERROR_ARGUMENT &&
              strstr(error.message, "text 1") && found[0] == 42.0f,
          "a text that is NULL: %s", error.message);
    CHECK(foreloop_encode_texts(encoder, pointers, lengths, 1, NULL, &error) == FORELOOP_ERROR_ARGUMENT &&
              foreloop_encode_texts(NULL, pointers, lengths, 1, found, &error) == FORELOOP_ERROR_ARGUMENT,
          "other NULLs: %s", error.message);
    CHECK(foreloop_encode_texts(encoder, pointers, lengths, SIZE_MAX / 8, found, &error) != FORELOOP_OK &&
              found[0] == 42.0f,
          "a count that overflows: %s", error.message);
}

static void test_tier(const char *directory, foreloop_tier tier, foreloop_precision precision) {
    foreloop_options options;
    foreloop_transformer *transformer;
    foreloop_encoder *encoder = NULL;
    foreloop_error error = {.message = ""};
    foreloop_options_init(&options, sizeof options);
    failing_allocator memory = {.fail_at = SIZE_MAX};
    const foreloop_allocator allocator = failing_allocator_use(&memory);
    options.allocator = &allocator;
    options.tier = tier;
    options.precision = precision;
    char name[64];
    snprintf(name, sizeof name, "%s, %s", foreloop_tier_name(tier), foreloop_precision_name(precision));
    if (!CHECK(foreloop_transformer_open(&transformer, directory, &options, &error) == FORELOOP_OK &&
                   foreloop_encoder_create(&encoder, transformer, &error) == FORELOOP_OK,
               "%s: open %s", name, error.message))
        return;
    width = foreloop_transformer_embedding_size(transformer);
    test_batches(encoder, name);
    const size_t calls = memory.calls;
    foreloop_encode_texts(encoder, pointers, lengths, TEXTS, found, &error);
    CHECK(memory.calls == calls, "%s: a call like former ones allocates nothing", name);
    test_shares(encoder, name);
    test_pool(encoder, name);
    test_errors(encoder);
    if (tier == foreloop_tier_detect() && precision == FORELOOP_PRECISION_F32)
        test_fork(encoder);
    foreloop_encoder_close(encoder);
    foreloop_transformer_close(transformer);
    CHECK(memory.live == 0, "%s: all memory is returned", name);
}

/* Options that there are not, and masks that leave the reference. */
static void test_options(const char *directory) {
    foreloop_options options;
    foreloop_transformer *transformer = NULL;
    foreloop_error error = {.message = ""};
    foreloop_options_init(&options, sizeof options);
    options.precision = (foreloop_precision)(FORELOOP_PRECISION_INT8_ROW + 1);
    CHECK(foreloop_transformer_open(&transformer, directory, &options, &error) == FORELOOP_ERROR_ARGUMENT &&
              !transformer,
          "a precision that there is not: %s", error.message);
    options.precision = FORELOOP_PRECISION_INT8;
    options.tier = (foreloop_tier)(FORELOOP_TIER_AVX512 + 1);
    CHECK(foreloop_transformer_open(&transformer, directory, &options, &error) == FORELOOP_ERROR_ARGUMENT &&
              !transformer,
          "a tier that there is not: %s", error.message);
    options.tier = FORELOOP_TIER_BEST;
    options.cpu_features_off = ~0u;
    CHECK(foreloop_cpu_features_chosen(&options) == 0, "all features off");
    options.cpu_features_off = 0;
    options.use_amx = 1;
    const unsigned chosen = foreloop_cpu_features_chosen(&options), present = foreloop_cpu_features_detect();
    CHECK((chosen & ~present) == 0, "what is used is there");
    CHECK(foreloop_transformer_open(&transformer, directory, &options, &error) == FORELOOP_OK,
          "AMX asked for, there or not: %s", error.message);
    foreloop_transformer_close(transformer);
    CHECK(strcmp(foreloop_precision_name(FORELOOP_PRECISION_INT8_ROW), "int8_row") == 0 &&
              strcmp(foreloop_precision_name((foreloop_precision)9), "unknown") == 0 &&
              strcmp(foreloop_cpu_feature_name(FORELOOP_CPU_AMX_INT8), "amx_int8") == 0 &&
              strcmp(foreloop_cpu_feature_name((foreloop_cpu_feature)3), "unknown") == 0,
          "names");
}

static void test_workloads(const char *directory) {
    enum { COUNT = 6 };
    foreloop_model *model;
    foreloop_encoder *encoder = NULL;
    foreloop_workload *alone[COUNT] = {NULL}, *together[COUNT] = {NULL};
    foreloop_error error = {.message = ""};
    foreloop_model_info info = {.size = sizeof info};
    if (!CHECK(foreloop_model_open(&model, directory, NULL, &error) == FORELOOP_OK &&
                   foreloop_encoder_create(&encoder, foreloop_model_transformer(model), &error) == FORELOOP_OK,
               "a bundle: %s", error.message))
        return;
    foreloop_model_get_info(model, &info);
    int same = 1;
    for (size_t i = 0; i < COUNT; i++)
        same &= foreloop_workload_encode(&alone[i], model, encoder, pointers[i], lengths[i], &error) == FORELOOP_OK;
    same &= foreloop_workload_encode_batch(together, model, encoder, pointers, lengths, COUNT, &error) == FORELOOP_OK;
    for (size_t i = 0; i < COUNT && same; i++)
        same &= memcmp(foreloop_workload_latent(alone[i]), foreloop_workload_latent(together[i]),
                       info.latent_size * sizeof(float)) == 0;
    CHECK(same, "workloads of a batch have the bits of those alone");
    for (size_t i = 0; i < COUNT; i++) {
        foreloop_workload_close(alone[i]);
        foreloop_workload_close(together[i]);
        together[i] = NULL;
    }
    const char *some[2] = {"a", NULL};
    const size_t sizes[2] = {1, 1};
    CHECK(foreloop_workload_encode_batch(together, model, encoder, some, sizes, 2, &error) == FORELOOP_ERROR_ARGUMENT &&
              !together[0],
          "a text that is NULL, and no workloads: %s", error.message);
    CHECK(foreloop_workload_encode_batch(NULL, model, encoder, NULL, NULL, 0, &error) == FORELOOP_OK, "none at all");
    foreloop_encoder_close(encoder);
    foreloop_model_close(model);

    int leaks = 0, wrong = 0;
    for (size_t n = 0;; n++) {
        failing_allocator memory = {.fail_at = SIZE_MAX};
        const foreloop_allocator allocator = failing_allocator_use(&memory);
        foreloop_options options = {.size = sizeof options, .allocator = &allocator};
        if (foreloop_model_open(&model, directory, &options, &error) != FORELOOP_OK ||
            foreloop_encoder_create(&encoder, foreloop_model_transformer(model), &error) != FORELOOP_OK)
            break;
        memory.fail_at = memory.calls + n;
        const foreloop_status status =
            foreloop_workload_encode_batch(together, model, encoder, pointers, lengths, COUNT, &error);
        for (size_t i = 0; i < COUNT && status == FORELOOP_OK; i++)
            foreloop_workload_close(together[i]);
        foreloop_encoder_close(encoder);
        foreloop_model_close(model);
        leaks += memory.live != 0;
        wrong += status != (memory.failed ? FORELOOP_ERROR_MEMORY : FORELOOP_OK);
        if (!memory.failed) {
            CHECK(n > 10 && !leaks && !wrong, "each of %zu allocations may fail: %d leaks, %d wrong codes", n, leaks,
                  wrong);
            break;
        }
    }
}

int main(int argc, char **argv) {
    const char *root = argc > 1 ? argv[1] : ".";
    make_texts();
    for (foreloop_tier tier = FORELOOP_TIER_REF; tier <= foreloop_tier_detect(); tier++)
        for (int precision = FORELOOP_PRECISION_F32; precision <= FORELOOP_PRECISION_INT8_ROW; precision++)
            test_tier(path(root, "transformer/roberta"), tier, (foreloop_precision)precision);
    test_options(path(root, "transformer/roberta"));
    test_workloads(path(root, "bundle"));
    return tap_done();
}
