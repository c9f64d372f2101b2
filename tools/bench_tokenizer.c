/* foreloop bench tokenizer: text to ids on one thread, ordinary text of any length and the worst words. */
#include "bench.h"
#include "cli.h"
#include "common/alloc.h"
#include "input.h"
#include "output.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LARGEST = 10000000 };

/* What texts are made of, over and over. */
static const char program[] =
    "        for i0, j0, k in T.grid(128, 768, 3072):\n            with T.sblock(\"matmul_17\"):\n                "
    "v_i, v_j, v_k = T.axis.remap(\"SSR\", [i0, j0, k])\n                T.reads(A[v_i, v_k], B[v_k, v_j])\n"
    "                T.writes(C[v_i, v_j])\n                with T.init():\n                    C[v_i, v_j] = "
    "T.float32(0.0)\n                C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]\n";
static const char english[] =
    "A compiler can write the same program in thousands of ways, and most of them are slow. Each way is a sequence of "
    "steps: loops are split, reordered, fused and unrolled; work is bound to threads, and data is kept near the "
    "processor. It isn't known beforehand which of them is fast, so they're measured, one after the other.\n\n";
static const char source[] =
    "static int find_slot(const struct table *table, uint32_t key) {\n    for (size_t i = hash(key) & table->mask;; "
    "i++) "
    "{\n        if (table->slots[i].key == key || !table->slots[i].used)\n            return (int)i; /* the same or a "
    "free one */\n    }\n}\n\n";
static const char chinese[] =
    "\xe7\xbc\x96\xe8\xaf\x91\xe5\x99\xa8\xe6\x8a\x8a\xe7\xa8\x8b\xe5\xba\x8f\xe6\x94\xb9\xe5\x86\x99\xe6\x88\x90\xe8"
    "\xae"
    "\xb8\xe5\xa4\x9a\xe7\xad\x89\xe4\xbb\xb7\xe7\x9a\x84\xe5\xbd\xa2\xe5\xbc\x8f\xef\xbc\x8c\xe5\x86\x8d\xe4\xbb\x8e"
    "\xe4\xb8"
    "\xad\xe6\x8c\x91\xe9\x80\x89\xe6\x9c\x80\xe5\xbf\xab\xe7\x9a\x84\xe4\xb8\x80\xe7\xa7\x8d\xe3\x80\x82\n";

typedef struct bench_text {
    const char *name, *piece;
    size_t size;
} bench_text;

static const bench_text texts[] = {
    {"tensorir", program, 1000},   {"tensorir", program, 100000}, {"tensorir", program, LARGEST},
    {"english", english, 1000000}, {"c", source, 1000000},        {"chinese", chinese, 1000000},
    {"one word", "a", 10000},      {"one word", "a", LARGEST},    {"letters", NULL, 10000},
    {"letters", NULL, LARGEST},    {"blanks", " ", 10000},        {"blanks", " ", LARGEST},
};

/* Fills text[size] with the piece, or with letters at random. */
static void fill(char *text, const bench_text *what) {
    const size_t length = what->piece ? strlen(what->piece) : 0;
    uint64_t state = 1;
    for (size_t i = 0; i < what->size; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        text[i] = length > 0 ? what->piece[i % length] : (char)('a' + (state >> 33) % 26);
    }
}

static double processor_clock(void) {
    struct timespec now;
    return clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) == 0 ? (double)now.tv_sec + 1e-9 * (double)now.tv_nsec : 0;
}

static bool print_json(const bench_text *what, size_t tokens, double seconds) {
    cJSON *object = cJSON_CreateObject();
    const double size = (double)what->size;
    if (output_json_add(object, "text", cJSON_CreateString(what->name)) &&
        output_json_add(object, "bytes", output_json_count(what->size)) &&
        output_json_add(object, "tokens", output_json_count(tokens)) &&
        output_json_add(object, "ns_per_byte", cJSON_CreateNumber(1e9 * seconds / size)) &&
        output_json_add(object, "mb_per_s", cJSON_CreateNumber(size / seconds / 1e6)))
        return output_json_line(object);
    cJSON_Delete(object);
    return false;
}

/* Short texts many times, so that the clock's steps do not show. */
static int measure(foreloop_encoding *encoding, char *text, const bench_text *what, const bench_options *given) {
    const size_t repeats = what->size < 100000 ? 100000 / what->size : 1;
    foreloop_error error = {.code = FORELOOP_OK};
    double best = INFINITY;
    fill(text, what);
    for (int run = 0; run < given->runs; run++) {
        const double start = processor_clock();
        for (size_t i = 0; i < repeats; i++)
            if (foreloop_tokenize(encoding, text, what->size, 0, &error) != FORELOOP_OK)
                return cli_fail("cannot tokenize: %s", error.message);
        best = fmin(best, (processor_clock() - start) / (double)repeats);
    }
    if (!given->json)
        printf("%-10s %10zu  %9zu  %8.2f  %8.1f\n", what->name, what->size, foreloop_encoding_count(encoding),
               1e9 * best / (double)what->size, (double)what->size / best / 1e6);
    else if (!print_json(what, foreloop_encoding_count(encoding), best))
        return cli_fail_memory();
    return CLI_DONE;
}

static int measure_all(const foreloop_tokenizer *tokenizer, const bench_options *given) {
    foreloop_error error = {.code = FORELOOP_OK};
    foreloop_encoding *encoding = NULL;
    char *text = foreloop_allocate(cli_allocator(), LARGEST, 1);
    int status = CLI_DONE;
    if (!text)
        return cli_fail_memory();
    if (foreloop_encoding_create(&encoding, tokenizer, &error) != FORELOOP_OK)
        status = cli_fail("%s", error.message);
    if (status == CLI_DONE && !given->json)
        printf("%-10s %10s  %9s  %8s  %8s\n", "text", "bytes", "tokens", "ns/byte", "MB/s");
    for (size_t i = 0; i < sizeof texts / sizeof *texts && status == CLI_DONE && output_ok(); i++)
        status = measure(encoding, text, &texts[i], given);
    foreloop_encoding_close(encoding);
    foreloop_release(cli_allocator(), text);
    return status;
}

int bench_tokenizer(const bench_options *given) {
    foreloop_options options;
    foreloop_error error = {.code = FORELOOP_OK};
    foreloop_tokenizer *tokenizer = NULL;
    foreloop_model *model = NULL;
    int status;

    foreloop_options_init(&options, sizeof options);
    options.tier = given->tier;
    if (given->tokenizer) {
        if (foreloop_tokenizer_open(&tokenizer, given->tokenizer, &options, &error) != FORELOOP_OK)
            return cli_fail_file("cannot open the tokenizer", given->tokenizer, error.message);
        status = measure_all(tokenizer, given);
        foreloop_tokenizer_close(tokenizer);
        return status;
    }
    status = input_model_open(&model, NULL, &options);
    if (status == CLI_DONE)
        status = measure_all(foreloop_transformer_tokenizer(foreloop_model_transformer(model)), given);
    foreloop_model_close(model);
    return status;
}
