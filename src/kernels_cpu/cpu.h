/*
 * Which kernels this processor and its operating system allow. Each tier is a named bundle of instruction sets; a tier
 * counts only when every set of it is there and the operating system saves its registers (XCR0). Features are the
 * instruction sets that some kernels use on top of a tier.
 */
#ifndef FORELOOP_KERNELS_CPU_CPU_H
#define FORELOOP_KERNELS_CPU_CPU_H

#include <foreloop/foreloop.h>
#include <stdbool.h>

/*
 *   FORELOOP_TIER_AVX2     AVX2, FMA, BMI1, BMI2, F16C; XCR0 bits 1 and 2      (Haswell, Zen)
 *   FORELOOP_TIER_AVX512   all that, AVX-512 F, BW, DQ, VL; XCR0 bits 5 to 7   (Skylake-SP, Zen 4)
 *
 *   AVX_VNNI       on AVX2                                (Alder Lake)
 *   AVX512_VNNI    on AVX512                              (Cascade Lake, Zen 4)
 *   AVX512_BF16    on AVX512                              (Cooper Lake, Zen 4)
 *   AMX_BF16, AMX_INT8   AMX-TILE, on AVX512; XCR0 bits 17 and 18, and a grant by Linux   (Sapphire Rapids)
 */

/* Where the facts come from; tests inject others. `xcr0` is read only when CPUID tells of OSXSAVE. */
typedef struct foreloop_cpu_source {
    /* Registers a, b, c, d of a leaf; all 0 for a leaf beyond the highest. */
    void (*cpuid)(void *user, uint32_t leaf, uint32_t subleaf, uint32_t registers[4]);
    uint64_t (*xcr0)(void *user);
    void *user;
    /* Asks the operating system for the tile registers, for the whole process; NULL: there are none to be had. */
    bool (*request_tiles)(void *user);
} foreloop_cpu_source;

/* What a host allows. */
typedef struct foreloop_cpu_limits {
    foreloop_tier tier;        /* the highest; FORELOOP_TIER_BEST: no limit */
    unsigned cpu_features_off; /* bits of foreloop_cpu_feature */
    bool use_amx;              /* ask for it */
} foreloop_cpu_limits;

/* The highest tier; FORELOOP_TIER_REF on other processors than x86-64. */
foreloop_tier foreloop_cpu_tier_of(const foreloop_cpu_source *source);
/* The features that are present, tiers included; AMX whether or not it would be granted. */
unsigned foreloop_cpu_features_of(const foreloop_cpu_source *source);
/* Those to be used: present, allowed, granted, on top of features that are used too, and worth it. Tiles are requested
 * only when all else speaks for them. */
unsigned foreloop_cpu_choose_of(const foreloop_cpu_source *source, const foreloop_cpu_limits *limits);
/* The features of the tier, and those of `features` that build on it. */
unsigned foreloop_cpu_features_within(unsigned features, foreloop_tier tier);
/* The tier among features. */
foreloop_tier foreloop_cpu_features_tier(unsigned features);

/* The same for this machine. */
unsigned foreloop_cpu_features(void);
unsigned foreloop_cpu_choose(const foreloop_cpu_limits *limits);
/* The highest tier of this machine that is not above `limit`; FORELOOP_TIER_BEST sets no limit. */
foreloop_tier foreloop_cpu_tier(foreloop_tier limit);

#endif
