/* Tiers follow CPUID, XCR0 and the limit that a host sets, on injected machines and on this one. */
#include "kernels_cpu/cpu.h"
#include "tap.h"
#include <string.h>

typedef struct machine {
    uint32_t leaf1_c, leaf7_b;
    uint64_t xcr0;
    int xcr0_reads;
} machine;

static void fake_cpuid(void *user, uint32_t leaf, uint32_t subleaf, uint32_t registers[4]) {
    const machine *m = user;
    (void)subleaf;
    memset(registers, 0, 4 * sizeof *registers);
    registers[2] = leaf == 1 ? m->leaf1_c : 0;
    registers[1] = leaf == 7 ? m->leaf7_b : 0;
}

static uint64_t fake_xcr0(void *user) {
    machine *m = user;
    m->xcr0_reads++;
    return m->xcr0;
}

static foreloop_tier tier_of(machine *m) {
    const foreloop_cpu_source source = {fake_cpuid, fake_xcr0, m};
    return foreloop_cpu_tier_of(&source);
}

int main(void) {
    const uint32_t leaf1 = 1u << 12 | 1u << 27 | 1u << 28 | 1u << 29;
    const uint32_t avx2 = 1u << 3 | 1u << 5 | 1u << 8, avx512 = avx2 | 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;
    machine m = {leaf1, avx512, 0xe7, 0};
    CHECK(tier_of(&m) == FORELOOP_TIER_AVX512, "everything there, XCR0 0xe7: avx512");
    m.xcr0 = 0x7;
    CHECK(tier_of(&m) == FORELOOP_TIER_AVX2, "XCR0 0x7: avx2");
    m.xcr0 = 0xe3;
    CHECK(tier_of(&m) == FORELOOP_TIER_REF, "XCR0 without ymm: ref");
    m.xcr0 = 0x1;
    CHECK(tier_of(&m) == FORELOOP_TIER_REF, "XCR0 0x1: ref");
    m = (machine){leaf1 & ~(1u << 27), avx512, 0xe7, 0};
    CHECK(tier_of(&m) == FORELOOP_TIER_REF && m.xcr0_reads == 0, "OSXSAVE 0: ref, and XCR0 is never read");
    for (int bit = 0; bit < 32; bit++) {
        if (!(avx512 & 1u << bit))
            continue;
        m = (machine){leaf1, avx512 & ~(1u << bit), 0xe7, 0};
        foreloop_tier expected = avx2 & 1u << bit ? FORELOOP_TIER_REF : FORELOOP_TIER_AVX2;
        CHECK(tier_of(&m) == expected, "without bit %d of leaf 7", bit);
    }
    m = (machine){leaf1 & ~(1u << 12), avx512, 0xe7, 0};
    CHECK(tier_of(&m) == FORELOOP_TIER_REF, "without FMA: ref");

    foreloop_tier best = foreloop_cpu_tier(FORELOOP_TIER_BEST);
    CHECK(best >= FORELOOP_TIER_REF && best <= FORELOOP_TIER_AVX512, "this machine has tier %d", (int)best);
    CHECK(foreloop_cpu_tier(FORELOOP_TIER_REF) == FORELOOP_TIER_REF, "limited to ref");
    CHECK(foreloop_cpu_tier(FORELOOP_TIER_AVX512) == best, "a limit above the machine gives the machine's");
    return tap_done();
}
