/* The ceilings of the machine: multiply-adds that wait for nothing, and reading one line after the other. */
#include "bench_machine.h"
#include <math.h>
#include <stddef.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

double bench_wall_clock(void) {
    struct timespec now;
    return clock_gettime(CLOCK_MONOTONIC, &now) == 0 ? (double)now.tv_sec + 1e-9 * (double)now.tv_nsec : 0;
}

enum { STEPS = 200000, TRIES = 5 };

/* Takes `steps` rounds of independent multiply-adds; returns how many numbers each round computes. The sum of the
 * results goes to *sum, so that none is left out. */
typedef size_t peak_loop(size_t steps, float *sum);

static size_t peak_plain(size_t steps, float *sum) {
    enum { COUNT = 32 };
    float x[COUNT] = {0};
    for (size_t i = 0; i < steps; i++)
        for (size_t j = 0; j < COUNT; j++)
            x[j] = x[j] * 0.999f + 0.001f;
    for (size_t j = 0; j < COUNT; j++)
        *sum += x[j];
    return COUNT;
}

#if defined(__x86_64__)
/* Twelve chains hide the latency of four cycles on two units. */
#define CHAINS(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)

__attribute__((target("avx2,fma"))) static size_t peak_avx2(size_t steps, float *sum) {
    const __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
#define BEGIN(i) __m256 x##i = _mm256_set1_ps((float)(i));
#define STEP(i)  x##i = _mm256_fmadd_ps(x##i, a, b);
#define END(i)   *sum += _mm256_cvtss_f32(x##i);
    CHAINS(BEGIN)
    for (size_t i = 0; i < steps; i++) {
        CHAINS(STEP)
    }
    CHAINS(END)
#undef BEGIN
#undef STEP
#undef END
    return 12 * 8;
}

__attribute__((target("avx512f"))) static size_t peak_avx512(size_t steps, float *sum) {
    const __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
#define BEGIN(i) __m512 x##i = _mm512_set1_ps((float)(i));
#define STEP(i)  x##i = _mm512_fmadd_ps(x##i, a, b);
#define END(i)   *sum += _mm512_cvtss_f32(x##i);
    CHAINS(BEGIN)
    for (size_t i = 0; i < steps; i++) {
        CHAINS(STEP)
    }
    CHAINS(END)
#undef BEGIN
#undef STEP
#undef END
    return 12 * 16;
}
#endif

double bench_peak(foreloop_tier tier) {
    peak_loop *loop = peak_plain;
    volatile float used;
    float sum = 0;
    double best = INFINITY;
    size_t numbers = 0;
#if defined(__x86_64__)
    if (tier >= FORELOOP_TIER_AVX512)
        loop = peak_avx512;
    else if (tier >= FORELOOP_TIER_AVX2)
        loop = peak_avx2;
#else
    (void)tier;
#endif
    for (int i = 0; i < TRIES; i++) {
        const double start = bench_wall_clock();
        numbers = loop(STEPS, &sum);
        best = fmin(best, bench_wall_clock() - start);
    }
    used = sum;
    (void)used;
    return 2.0 * (double)numbers * STEPS / best;
}

void bench_read(const void *memory, size_t size) {
    enum { LINE = 16, LINES = 8 };
    const float *numbers = memory;
    const size_t count = size / sizeof *numbers / (LINE * LINES) * (LINE * LINES);
    volatile float used;
    float sums[LINES] = {0};
    for (size_t i = 0; i < count; i += LINE * LINES)
        for (size_t j = 0; j < LINES; j++)
            sums[j] += numbers[i + j * LINE];
    used = sums[0] + sums[1] + sums[2] + sums[3] + sums[4] + sums[5] + sums[6] + sums[7];
    (void)used;
}
