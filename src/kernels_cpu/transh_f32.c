/* Chooses the kernels of the latent state, and what its tiers share. */
#include "kernels_cpu/transh_f32.h"

void foreloop_transh_f32_init(foreloop_transh_f32 *kernels, foreloop_tier tier) {
    foreloop_transh_f32_ref(kernels);
#if defined(FORELOOP_X86_KERNELS)
    if (tier >= FORELOOP_TIER_AVX512)
        foreloop_transh_f32_avx512(kernels);
    else if (tier >= FORELOOP_TIER_AVX2)
        foreloop_transh_f32_avx2(kernels);
#else
    (void)tier;
#endif
}

void foreloop_transh_roll_f32(const foreloop_transh_f32 *kernels, const foreloop_transh_program *program,
                              const uint32_t *ids, size_t count, float *state) {
    const foreloop_transh_segment all = {ids, count, 0, 0};
    kernels->steps(program, &all, 1, 0, state);
    for (size_t slice = 0; slice < foreloop_transh_slice_count(program->latent); slice++)
        kernels->sums(program, slice, &all, 1, 0, state + slice * FORELOOP_TRANSH_SLICE, program->state_size);
}

size_t foreloop_transh_gather_f32(const foreloop_transh_program *program, const float *states, uint32_t *used,
                                  float *gamma) {
    const size_t at_seen = foreloop_transh_at_seen(program), at_gamma = foreloop_transh_at_gamma(program);
    const size_t stride = program->state_size;
    size_t count = 0;
    for (size_t first = 0; first < program->kinds; first += FORELOOP_TRANSH_LANES) {
        unsigned char seen[FORELOOP_TRANSH_LANES] = {0};
        for (size_t s = 0; s < FORELOOP_TRANSH_LANES; s++) {
            const unsigned char *own = (const unsigned char *)(states + s * stride + at_seen) + first;
            for (size_t i = 0; i < FORELOOP_TRANSH_LANES; i++)
                seen[i] |= own[i];
        }
        for (size_t i = 0; i < FORELOOP_TRANSH_LANES; i++) {
            used[count] = (uint32_t)(first + i);
            count += seen[i];
        }
    }
    for (size_t i = 0; i < count; i++)
        for (size_t s = 0; s < FORELOOP_TRANSH_LANES; s++)
            gamma[i * FORELOOP_TRANSH_LANES + s] = states[s * stride + at_gamma + used[i]];
    return count;
}

size_t foreloop_transh_list_columns(const float *x, size_t first, size_t columns, uint32_t *list) {
    const size_t end = columns - first < FORELOOP_TRANSH_COLUMNS ? columns : first + FORELOOP_TRANSH_COLUMNS;
    size_t count = 0;
    for (size_t j = first; j < end; j++) {
        list[count] = (uint32_t)j;
        count += x[j] != 0;
    }
    return count;
}
