/* Detection of tiers and features by CPUID and XCR0, and the choice among them. */
#if defined(__linux__)
#define _DEFAULT_SOURCE /* syscall */
#endif
#include "kernels_cpu/cpu.h"
#include <string.h>

enum { REGISTER_A, REGISTER_B, REGISTER_C, REGISTER_D };

/* CPUID leaf 1, register c. */
#define LEAF1_C_FMA     (1u << 12)
#define LEAF1_C_OSXSAVE (1u << 27)
#define LEAF1_C_AVX     (1u << 28)
#define LEAF1_C_F16C    (1u << 29)
/* CPUID leaf 7, subleaf 0, register b. */
#define LEAF7_B_BMI1     (1u << 3)
#define LEAF7_B_AVX2     (1u << 5)
#define LEAF7_B_BMI2     (1u << 8)
#define LEAF7_B_AVX512F  (1u << 16)
#define LEAF7_B_AVX512DQ (1u << 17)
#define LEAF7_B_AVX512BW (1u << 30)
#define LEAF7_B_AVX512VL (1u << 31)
/* CPUID leaf 7, subleaf 0, registers c and d; subleaf 1, register a. */
#define LEAF7_C_AVX512_VNNI   (1u << 11)
#define LEAF7_D_AMX_BF16      (1u << 22)
#define LEAF7_D_AMX_TILE      (1u << 24)
#define LEAF7_D_AMX_INT8      (1u << 25)
#define LEAF7_1_A_AVX_VNNI    (1u << 4)
#define LEAF7_1_A_AVX512_BF16 (1u << 5)
/* XCR0: which registers the operating system saves. */
#define XCR0_AVX    UINT64_C(0x06)    /* xmm, ymm */
#define XCR0_AVX512 UINT64_C(0xe6)    /* and mask registers, upper halves of zmm, zmm16 to zmm31 */
#define XCR0_TILES  UINT64_C(0x60000) /* tile configuration, tile data */

static bool has(uint64_t bits, uint64_t wanted) {
    return (bits & wanted) == wanted;
}

foreloop_tier foreloop_cpu_tier_of(const foreloop_cpu_source *source) {
    uint32_t leaf1[4], leaf7[4];
    source->cpuid(source->user, 1, 0, leaf1);
    if (!has(leaf1[REGISTER_C], LEAF1_C_OSXSAVE | LEAF1_C_AVX | LEAF1_C_FMA | LEAF1_C_F16C))
        return FORELOOP_TIER_REF;
    uint64_t xcr0 = source->xcr0(source->user);
    source->cpuid(source->user, 7, 0, leaf7);
    if (!has(xcr0, XCR0_AVX) || !has(leaf7[REGISTER_B], LEAF7_B_AVX2 | LEAF7_B_BMI1 | LEAF7_B_BMI2))
        return FORELOOP_TIER_REF;
    if (!has(xcr0, XCR0_AVX512) ||
        !has(leaf7[REGISTER_B], LEAF7_B_AVX512F | LEAF7_B_AVX512DQ | LEAF7_B_AVX512BW | LEAF7_B_AVX512VL))
        return FORELOOP_TIER_AVX2;
    return FORELOOP_TIER_AVX512;
}

static unsigned features_of_tier(foreloop_tier tier) {
    return (tier >= FORELOOP_TIER_AVX2 ? (unsigned)FORELOOP_CPU_AVX2 : 0) |
           (tier >= FORELOOP_TIER_AVX512 ? (unsigned)FORELOOP_CPU_AVX512 : 0);
}

foreloop_tier foreloop_cpu_features_tier(unsigned features) {
    if (!(features & FORELOOP_CPU_AVX2))
        return FORELOOP_TIER_REF;
    return features & FORELOOP_CPU_AVX512 ? FORELOOP_TIER_AVX512 : FORELOOP_TIER_AVX2;
}

/* Features without those whose foundation is missing. */
static unsigned founded(unsigned features) {
    if (!(features & FORELOOP_CPU_AVX2))
        return 0;
    if (!(features & FORELOOP_CPU_AVX512))
        features &= FORELOOP_CPU_AVX2 | FORELOOP_CPU_AVX_VNNI;
    return features;
}

unsigned foreloop_cpu_features_within(unsigned features, foreloop_tier tier) {
    const unsigned tiers = FORELOOP_CPU_AVX2 | FORELOOP_CPU_AVX512;
    return founded((features & ~tiers) | features_of_tier(tier));
}

unsigned foreloop_cpu_features_of(const foreloop_cpu_source *source) {
    unsigned features = features_of_tier(foreloop_cpu_tier_of(source));
    if (features == 0)
        return 0;
    uint32_t leaf7[4], subleaf1[4] = {0};
    source->cpuid(source->user, 7, 0, leaf7);
    if (leaf7[REGISTER_A] >= 1) /* the highest subleaf */
        source->cpuid(source->user, 7, 1, subleaf1);
    if (has(subleaf1[REGISTER_A], LEAF7_1_A_AVX_VNNI))
        features |= FORELOOP_CPU_AVX_VNNI;
    if (has(subleaf1[REGISTER_A], LEAF7_1_A_AVX512_BF16))
        features |= FORELOOP_CPU_AVX512_BF16;
    if (has(leaf7[REGISTER_C], LEAF7_C_AVX512_VNNI))
        features |= FORELOOP_CPU_AVX512_VNNI;
    if (has(source->xcr0(source->user), XCR0_TILES)) {
        if (has(leaf7[REGISTER_D], LEAF7_D_AMX_TILE | LEAF7_D_AMX_BF16))
            features |= FORELOOP_CPU_AMX_BF16;
        if (has(leaf7[REGISTER_D], LEAF7_D_AMX_TILE | LEAF7_D_AMX_INT8))
            features |= FORELOOP_CPU_AMX_INT8;
    }
    return founded(features);
}

/* Intel's cores have run vdpbf16ps at a quarter of the rate of a fused multiply-add (1.33 against 5.4 a nanosecond on
 * an Emerald Rapids), so that widening bfloat16 for the latter is twice as fast; AMD's run both at the same rate. */
static unsigned worth_using(const foreloop_cpu_source *source, unsigned features) {
    uint32_t leaf0[4];
    source->cpuid(source->user, 0, 0, leaf0);
    const bool intel = leaf0[REGISTER_B] == 0x756e6547 && leaf0[REGISTER_D] == 0x49656e69 &&
                       leaf0[REGISTER_C] == 0x6c65746e; /* "Genu" "ineI" "ntel" */
    return intel ? features & ~(unsigned)FORELOOP_CPU_AVX512_BF16 : features;
}

unsigned foreloop_cpu_choose_of(const foreloop_cpu_source *source, const foreloop_cpu_limits *limits) {
    const unsigned amx = FORELOOP_CPU_AMX_BF16 | FORELOOP_CPU_AMX_INT8;
    unsigned features = founded(foreloop_cpu_features_of(source) & ~limits->cpu_features_off);
    const foreloop_tier tier = foreloop_cpu_features_tier(features);
    if (limits->tier != FORELOOP_TIER_BEST && limits->tier < tier)
        features = foreloop_cpu_features_within(features, limits->tier);
    if (!limits->use_amx)
        features &= ~amx;
    features = worth_using(source, features);
    if (features & amx && !(source->request_tiles && source->request_tiles(source->user)))
        features &= ~amx;
    return features;
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

static void machine_cpuid(void *user, uint32_t leaf, uint32_t subleaf, uint32_t registers[4]) {
    (void)user;
    if (!__get_cpuid_count(leaf, subleaf, &registers[0], &registers[1], &registers[2], &registers[3]))
        memset(registers, 0, 4 * sizeof *registers);
}

static uint64_t machine_xcr0(void *user) {
    uint32_t low, high;
    (void)user;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

/* Asking again for what has been granted does no harm. */
static bool machine_request_tiles(void *user) {
    (void)user;
#if defined(__linux__)
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM, the state's number in XCR0 */
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
#else
    return false;
#endif
}

static const foreloop_cpu_source machine = {machine_cpuid, machine_xcr0, NULL, machine_request_tiles};

unsigned foreloop_cpu_features(void) {
    return foreloop_cpu_features_of(&machine);
}

unsigned foreloop_cpu_choose(const foreloop_cpu_limits *limits) {
    return foreloop_cpu_choose_of(&machine, limits);
}

foreloop_tier foreloop_cpu_tier(foreloop_tier limit) {
    foreloop_tier best = foreloop_cpu_tier_of(&machine);
    return limit == FORELOOP_TIER_BEST || best < limit ? best : limit;
}
#else
unsigned foreloop_cpu_features(void) {
    return 0;
}

unsigned foreloop_cpu_choose(const foreloop_cpu_limits *limits) {
    (void)limits;
    return 0;
}

foreloop_tier foreloop_cpu_tier(foreloop_tier limit) {
    (void)limit;
    return FORELOOP_TIER_REF;
}
#endif
