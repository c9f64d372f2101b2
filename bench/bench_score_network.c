/*
 * Time of a score network a row, one thread, in every tier of this machine: rows in blocks and a row alone, as
 * foreloop_score_network_add_block and foreloop_score_network_row compute them. The shape is that of the trained ones.
 * The best of all rounds, beside the least that its multiply-adds would take if they waited for nothing.
 *
 *     bench_score_network [--rounds N] [--json]
 */
#include "bench_machine.h"
#include "common/alloc.h"
#include "kernels_cpu/cpu.h"
#include "score_network/score_network.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUTS = 158, FEATURES = 320, HIDDEN = 64, REPEATS = 20 };
static const size_t row_counts[] = {1, 16, 32, FORELOOP_MLP_ROWS}; /* 1: a row alone */

typedef struct bench {
    foreloop_score_network network;
    float *block, *row, *scratch;
} bench;

/* Numbers from -1/8 to 1/8. */
static float *numbers(size_t count) {
    const foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    float *made = foreloop_allocate(&allocator, count, sizeof *made);
    uint64_t random = count;
    if (!made) {
        fprintf(stderr, "bench_score_network: out of memory\n");
        exit(1);
    }
    for (size_t i = 0; i < count; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        made[i] = ((float)(random >> 40) / 8388608.0f - 1) / 8;
    }
    return made;
}

static foreloop_mlp_layer layer(size_t in, size_t out) {
    const size_t stride = foreloop_mlp_whole_rows(out);
    return (foreloop_mlp_layer){in, out, stride, numbers(in * stride), numbers(stride)};
}

static void make(bench *b) {
    static uint32_t features[INPUTS];
    foreloop_score_network *network = &b->network;
    for (uint32_t i = 0; i < INPUTS; i++)
        features[i] = i * FEATURES / INPUTS;
    *network = (foreloop_score_network){.input_count = INPUTS,
                                        .features = features,
                                        .shift = numbers(INPUTS),
                                        .scale = numbers(INPUTS),
                                        .limit = 4,
                                        .layer_count = 3,
                                        .layers = {layer(INPUTS, HIDDEN), layer(HIDDEN, HIDDEN), layer(HIDDEN, 1)}};
    b->block = numbers(FEATURES * FORELOOP_MLP_ROWS);
    b->row = numbers(FEATURES);
    b->scratch = numbers(foreloop_score_network_scratch(network));
}

static float run(const bench *b, size_t rows) {
    float scores[FORELOOP_MLP_ROWS] = {0};
    if (rows == 1)
        return foreloop_score_network_row(&b->network, b->row, b->network.features, b->scratch);
    foreloop_score_network_add_block(&b->network, b->block, b->network.features, rows, b->scratch, scores);
    return scores[0];
}

static void time_rows(const bench *b, foreloop_tier tier, size_t rows, int rounds, bool json) {
    const double operations = 2.0 * (INPUTS * HIDDEN + HIDDEN * HIDDEN + HIDDEN);
    double best = 1e9, peak = 0;
    volatile float kept;
    for (int round = 0; round < rounds; round++) {
        const double now = bench_peak(tier);
        peak = now > peak ? now : peak;
        kept = run(b, rows); /* warms the caches again */
        const double begin = bench_wall_clock();
        for (int i = 0; i < REPEATS; i++)
            kept = run(b, rows);
        const double seconds = (bench_wall_clock() - begin) / (double)(REPEATS * rows);
        best = seconds < best ? seconds : best;
    }
    (void)kept;
    if (json)
        printf("{\"bench\":\"score_network\",\"tier\":\"%s\",\"rows\":%zu,\"us\":%.4f,\"least_us\":%.4f}\n",
               b->network.kernels.tier, rows, best * 1e6, operations / peak * 1e6);
    else
        printf("%-7s %5zu %9.3f %9.3f %7.0f %%\n", b->network.kernels.tier, rows, best * 1e6, operations / peak * 1e6,
               100 * operations / peak / best);
}

int main(int argc, char **argv) {
    const bool json = argc > 1 && strcmp(argv[argc - 1], "--json") == 0;
    const int rounds = argc > 2 && strcmp(argv[1], "--rounds") == 0 ? (int)strtol(argv[2], NULL, 10) : 50;
    bench b;
    make(&b);
    if (!json)
        printf("%d inputs, %d, %d, 1; microseconds a row, the best of %d rounds\n\n%-7s %5s %9s %9s %9s\n", INPUTS,
               HIDDEN, HIDDEN, rounds, "tier", "rows", "time", "least", "of peak");
    for (foreloop_tier tier = FORELOOP_TIER_REF; tier <= foreloop_cpu_tier(FORELOOP_TIER_BEST);
         tier = (foreloop_tier)(tier + 1)) {
        foreloop_mlp_f32_init(&b.network.kernels, tier);
        for (size_t i = 0; i < sizeof row_counts / sizeof *row_counts; i++)
            time_rows(&b, tier, row_counts[i], tier == FORELOOP_TIER_REF ? 1 + rounds / 10 : rounds, json);
    }
    return 0;
}
