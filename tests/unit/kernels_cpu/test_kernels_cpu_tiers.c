/* Tiers follow CPUID, XCR0 and the limit that a host sets, on injected machines and on this one. */
#include "kernels_cpu/cpu.h"
#include "tap.h"
#include <string.h>

typedef struct machine {
    uint32_t leaf1_c, leaf7_b;
    uint64_t xcr0;
    int xcr0_reads;
    uint32_t leaf7_c, leaf7_d, subleaf1_a;
    bool one_subleaf, intel, refuses;
    int requests;
} machine;

static void fake_cpuid(void *user, uint32_t leaf, uint32_t subleaf, uint32_t registers[4]) {
    const machine *m = user;
    memset(registers, 0, 4 * sizeof *registers);
    if (leaf == 0)
        memcpy(registers + 1, m->intel ? "GenuntelineI" : "AuthcAMDenti", 12); /* registers b, c, d */
    if (leaf == 1)
        registers[2] = m->leaf1_c;
    if (leaf == 7 && subleaf == 0) {
        registers[0] = m->one_subleaf ? 0 : 1;
        registers[1] = m->leaf7_b;
        registers[2] = m->leaf7_c;
        registers[3] = m->leaf7_d;
    }
    if (leaf == 7 && subleaf == 1)
        registers[0] = m->subleaf1_a;
}

static uint64_t fake_xcr0(void *user) {
    machine *m = user;
    m->xcr0_reads++;
    return m->xcr0;
}

static foreloop_tier tier_of(machine *m) {
    const foreloop_cpu_source source = {fake_cpuid, fake_xcr0, m, NULL};
    return foreloop_cpu_tier_of(&source);
}

static bool fake_request(void *user) {
    machine *m = user;
    m->requests++;
    return !m->refuses;
}

static unsigned features_of(machine *m) {
    const foreloop_cpu_source source = {fake_cpuid, fake_xcr0, m, fake_request};
    return foreloop_cpu_features_of(&source);
}

static unsigned choice_of(machine *m, foreloop_tier tier, unsigned off, bool use_amx) {
    const foreloop_cpu_source source = {fake_cpuid, fake_xcr0, m, fake_request};
    const foreloop_cpu_limits limits = {tier, off, use_amx};
    return foreloop_cpu_choose_of(&source, &limits);
}

static void check_features(void) {
    enum {
        TIERS = FORELOOP_CPU_AVX2 | FORELOOP_CPU_AVX512,
        VNNI = FORELOOP_CPU_AVX512_VNNI,
        BF16 = FORELOOP_CPU_AVX512_BF16,
        AMX = FORELOOP_CPU_AMX_BF16 | FORELOOP_CPU_AMX_INT8,
        ALL = TIERS | FORELOOP_CPU_AVX_VNNI | VNNI | BF16 | AMX
    };
    const machine whole = {.leaf1_c = 1u << 12 | 1u << 27 | 1u << 28 | 1u << 29,
                           .leaf7_b = 1u << 3 | 1u << 5 | 1u << 8 | 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31,
                           .leaf7_c = 1u << 11,
                           .leaf7_d = 1u << 22 | 1u << 24 | 1u << 25,
                           .subleaf1_a = 1u << 4 | 1u << 5,
                           .xcr0 = 0x602e7};
    machine m = whole;
    CHECK(features_of(&m) == ALL && m.requests == 0, "every feature; finding them asks for nothing");
    m.xcr0 = 0x202e7;
    CHECK(features_of(&m) == (ALL & ~AMX), "no tile data in XCR0: no AMX");
    m.xcr0 = 0x402e7;
    CHECK(features_of(&m) == (ALL & ~AMX), "no tile configuration in XCR0: no AMX");
    m.xcr0 = 0x60007;
    CHECK(features_of(&m) == (FORELOOP_CPU_AVX2 | FORELOOP_CPU_AVX_VNNI), "no zmm in XCR0: AVX2 and AVX-VNNI");
    m = whole;
    m.one_subleaf = true;
    CHECK(features_of(&m) == (ALL & ~(BF16 | FORELOOP_CPU_AVX_VNNI)), "leaf 7 without subleaf 1");
    m = whole;
    m.leaf7_d = 1u << 22 | 1u << 25;
    CHECK(features_of(&m) == (ALL & ~AMX), "AMX without AMX-TILE");
    m.leaf7_d = 1u << 24 | 1u << 25;
    CHECK(features_of(&m) == (ALL & ~FORELOOP_CPU_AMX_BF16), "AMX-INT8 alone");
    m = whole;
    m.leaf7_c = 0;
    CHECK(features_of(&m) == (ALL & ~VNNI), "no AVX512_VNNI");
    m.leaf1_c = 0;
    CHECK(features_of(&m) == 0, "no OSXSAVE: nothing");

    m = whole;
    CHECK(choice_of(&m, FORELOOP_TIER_BEST, 0, false) == (ALL & ~AMX) && m.requests == 0,
          "AMX is not asked for unasked");
    CHECK(choice_of(&m, FORELOOP_TIER_BEST, 0, true) == ALL && m.requests == 1, "asked for, granted");
    CHECK(choice_of(&m, FORELOOP_TIER_BEST, AMX, true) == (ALL & ~AMX) && m.requests == 1,
          "switched off: not asked for");
    CHECK(choice_of(&m, FORELOOP_TIER_AVX2, 0, true) == (FORELOOP_CPU_AVX2 | FORELOOP_CPU_AVX_VNNI) && m.requests == 1,
          "limited to AVX2");
    CHECK(choice_of(&m, FORELOOP_TIER_REF, 0, true) == 0, "limited to the reference");
    CHECK(choice_of(&m, FORELOOP_TIER_BEST, FORELOOP_CPU_AVX512, true) == (FORELOOP_CPU_AVX2 | FORELOOP_CPU_AVX_VNNI),
          "without AVX512 nothing that builds on it");
    CHECK(choice_of(&m, FORELOOP_TIER_BEST, FORELOOP_CPU_AVX2, true) == 0, "without AVX2 nothing");
    m.refuses = true;
    CHECK(choice_of(&m, FORELOOP_TIER_BEST, 0, true) == (ALL & ~AMX), "refused");
    m.refuses = false;
    m.intel = true;
    CHECK(choice_of(&m, FORELOOP_TIER_BEST, 0, true) == (ALL & ~BF16), "present, but not worth using on this make");
    CHECK(foreloop_cpu_features_tier(ALL) == FORELOOP_TIER_AVX512 &&
              foreloop_cpu_features_tier(FORELOOP_CPU_AVX2) == FORELOOP_TIER_AVX2 &&
              foreloop_cpu_features_tier(0) == FORELOOP_TIER_REF,
          "the tier among features");
    CHECK(foreloop_cpu_features_within(ALL, FORELOOP_TIER_AVX512) == ALL &&
              foreloop_cpu_features_within(ALL, FORELOOP_TIER_AVX2) == (FORELOOP_CPU_AVX2 | FORELOOP_CPU_AVX_VNNI) &&
              foreloop_cpu_features_within(ALL, FORELOOP_TIER_REF) == 0 &&
              foreloop_cpu_features_within(VNNI, FORELOOP_TIER_AVX512) == (TIERS | VNNI),
          "features on top of a tier");
    const foreloop_cpu_limits none = {FORELOOP_TIER_BEST, 0, false};
    CHECK((foreloop_cpu_choose(&none) & ~foreloop_cpu_features()) == 0, "this machine: nothing chosen that is absent");
    CHECK(foreloop_cpu_features_tier(foreloop_cpu_features()) == foreloop_cpu_tier(FORELOOP_TIER_BEST),
          "this machine: features and tier agree");
}

int main(void) {
    const uint32_t leaf1 = 1u << 12 | 1u << 27 | 1u << 28 | 1u << 29;
    const uint32_t avx2 = 1u << 3 | 1u << 5 | 1u << 8, avx512 = avx2 | 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;
    machine m = {.leaf1_c = leaf1, .leaf7_b = avx512, .xcr0 = 0xe7};
    CHECK(tier_of(&m) == FORELOOP_TIER_AVX512, "everything there, XCR0 0xe7: avx512");
    m.xcr0 = 0x7;
    CHECK(tier_of(&m) == FORELOOP_TIER_AVX2, "XCR0 0x7: avx2");
    m.xcr0 = 0xe3;
    CHECK(tier_of(&m) == FORELOOP_TIER_REF, "XCR0 without ymm: ref");
    m.xcr0 = 0x1;
    CHECK(tier_of(&m) == FORELOOP_TIER_REF, "XCR0 0x1: ref");
    m = (machine){.leaf1_c = leaf1 & ~(1u << 27), .leaf7_b = avx512, .xcr0 = 0xe7};
    CHECK(tier_of(&m) == FORELOOP_TIER_REF && m.xcr0_reads == 0, "OSXSAVE 0: ref, and XCR0 is never read");
    for (int bit = 0; bit < 32; bit++) {
        if (!(avx512 & 1u << bit))
            continue;
        m = (machine){.leaf1_c = leaf1, .leaf7_b = avx512 & ~(1u << bit), .xcr0 = 0xe7};
        foreloop_tier expected = avx2 & 1u << bit ? FORELOOP_TIER_REF : FORELOOP_TIER_AVX2;
        CHECK(tier_of(&m) == expected, "without bit %d of leaf 7", bit);
    }
    m = (machine){.leaf1_c = leaf1 & ~(1u << 12), .leaf7_b = avx512, .xcr0 = 0xe7};
    CHECK(tier_of(&m) == FORELOOP_TIER_REF, "without FMA: ref");

    foreloop_tier best = foreloop_cpu_tier(FORELOOP_TIER_BEST);
    CHECK(best >= FORELOOP_TIER_REF && best <= FORELOOP_TIER_AVX512, "this machine has tier %d", (int)best);
    CHECK(foreloop_cpu_tier(FORELOOP_TIER_REF) == FORELOOP_TIER_REF, "limited to ref");
    CHECK(foreloop_cpu_tier(FORELOOP_TIER_AVX512) == best, "a limit above the machine gives the machine's");
    check_features();
    return tap_done();
}
