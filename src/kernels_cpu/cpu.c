/* Detection of the tiers by CPUID and XCR0. */
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
/* XCR0: which registers the operating system saves. */
#define XCR0_AVX    UINT64_C(0x06) /* xmm, ymm */
#define XCR0_AVX512 UINT64_C(0xe6) /* and mask registers, upper halves of zmm, zmm16 to zmm31 */

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

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>

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

foreloop_tier foreloop_cpu_tier(foreloop_tier limit) {
    const foreloop_cpu_source machine = {machine_cpuid, machine_xcr0, NULL};
    foreloop_tier best = foreloop_cpu_tier_of(&machine);
    return limit == FORELOOP_TIER_BEST || best < limit ? best : limit;
}
#else
foreloop_tier foreloop_cpu_tier(foreloop_tier limit) {
    (void)limit;
    return FORELOOP_TIER_REF;
}
#endif
