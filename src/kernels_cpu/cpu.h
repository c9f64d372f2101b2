/*
 * Which kernels this processor and its operating system allow. Each tier is a named bundle of instruction sets; a tier
 * counts only when every set of it is there and the operating system saves its registers (XCR0).
 */
#ifndef FORELOOP_KERNELS_CPU_CPU_H
#define FORELOOP_KERNELS_CPU_CPU_H

#include <foreloop/foreloop.h>
#include <stdbool.h>

/*
 *   FORELOOP_TIER_AVX2     AVX2, FMA, BMI1, BMI2, F16C; XCR0 bits 1 and 2      (Haswell, Zen)
 *   FORELOOP_TIER_AVX512   all that, AVX-512 F, BW, DQ, VL; XCR0 bits 5 to 7   (Skylake-SP, Zen 4)
 */

/* Where the facts come from; tests inject others. `xcr0` is read only when CPUID tells of OSXSAVE. */
typedef struct foreloop_cpu_source {
    /* Registers a, b, c, d of a leaf; all 0 for a leaf beyond the highest. */
    void (*cpuid)(void *user, uint32_t leaf, uint32_t subleaf, uint32_t registers[4]);
    uint64_t (*xcr0)(void *user);
    void *user;
} foreloop_cpu_source;

/* The highest tier; FORELOOP_TIER_REF on other processors than x86-64. */
foreloop_tier foreloop_cpu_tier_of(const foreloop_cpu_source *source);

/* The highest tier of this machine that is not above `limit`; FORELOOP_TIER_BEST sets no limit. */
foreloop_tier foreloop_cpu_tier(foreloop_tier limit);

#endif
