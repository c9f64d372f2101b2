/* The kernels of the latent state: every tier of this machine gives the bits of the reference, which agrees with the
 * direct form, at odd sizes, any alignment, and however a sequence is cut. */
#include "kernels_cpu/cpu.h"
#include "kernels_cpu/transh_f32.h"
#include "random.h"
#include "tap.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LANES = FORELOOP_TRANSH_LANES,
    SLICE = FORELOOP_TRANSH_SLICE,
    SLICES = 11,
    ACTIONS = 40,
    STEPS = 30,
    STRIDE = 48
};

static float random_float(random_source *source) {
    return (float)random_below(source, 2000001) / 1000000.0f - 1.0f;
}

/* One float behind an aligned address, with what must stay as it is behind the array. */
static float *random_floats(random_source *source, size_t count, size_t shift) {
    float *values = aligned_alloc(64, (count + LANES + 1) / LANES * 64 + 128);
    for (size_t i = 0; i < count + LANES; i++)
        values[i] = random_float(source);
    return values + shift;
}

static int same(const float *a, const float *b, size_t count) {
    return memcmp(a, b, count * sizeof *a) == 0;
}

static void test_matrices(const foreloop_transh_f32 *ref, const foreloop_transh_f32 *own) {
    static const size_t sizes[] = {1, 7, 15, 16, 17, 33, 64, 100, 128, 129, 250, 600};
    random_source source = {11};
    int affine_right = 1, products_right = 1;
    for (size_t r = 0; r < sizeof sizes / sizeof *sizes; r++)
        for (size_t c = 0; c < sizeof sizes / sizeof *sizes; c++) {
            const size_t rows = sizes[r], columns = sizes[c], size = (columns + LANES - 1) / LANES * LANES;
            float *matrix = random_floats(&source, rows * size, 1), *bias = random_floats(&source, rows, 1);
            float *x = random_floats(&source, size, 1), y[2][640];
            for (size_t i = 0; i < columns; i += 3)
                x[i] = 0;
            memset(y, 1, sizeof y);
            ref->affine(matrix, bias, x, rows, columns, y[0]);
            own->affine(matrix, bias, x, rows, columns, y[1]);
            affine_right &= memcmp(y[0], y[1], sizeof y[0]) == 0;
            memset(y, 1, sizeof y);
            ref->products(matrix, x, rows, size, y[0]);
            own->products(matrix, x, rows, size, y[1]);
            products_right &= memcmp(y[0], y[1], sizeof y[0]) == 0;
            free(matrix - 1);
            free(bias - 1);
            free(x - 1);
        }
    CHECK(affine_right, "affine (%s)", own->tier);
    CHECK(products_right, "products (%s)", own->tier);
}

/* A program over random numbers; lanes of every update are drawn too. */
typedef struct random_program {
    foreloop_transh_program program;
    float *normal, *gram, *rows, *start, *slices[SLICES];
    uint32_t row_kinds[ACTIONS], begin[65], columns[512], used[64];
    foreloop_transh_update updates[128];
    float beta[64], gamma[64 * LANES];
} random_program;

static void draw_update(random_source *source, foreloop_transh_update *update, size_t vectors) {
    *update = (foreloop_transh_update){.vector = random_below(source, (uint32_t)vectors)};
    for (unsigned lane = 0; lane < LANES; lane++) {
        uint16_t bit = (uint16_t)(1u << lane);
        uint16_t *const masks[] = {&update->add, &update->max, &update->min, &update->take[1]};
        const uint32_t which = random_below(source, 7);
        if (which < 5)
            update->take[0] = (uint16_t)(update->take[0] | bit);
        if (which < 4)
            *masks[which] = (uint16_t)(*masks[which] | bit);
    }
}

static void embedding(const random_program *own, uint32_t id, float d[SLICES * SLICE]) {
    for (size_t i = 0; i < SLICES; i++)
        memcpy(d + i * SLICE, own->slices[i] + id * SLICE, SLICE * sizeof *d);
}

static void draw_program(random_program *own, const foreloop_transh_f32 *ref, size_t latent, size_t kinds,
                         size_t vectors, uint64_t seed) {
    random_source source = {seed};
    foreloop_transh_program *program = &own->program;
    *program = (foreloop_transh_program){.latent = latent, .kinds = kinds, .aggregates = vectors * LANES};
    program->state_size = foreloop_transh_state_size(program);
    program->normal_stride = latent;
    program->row_stride = kinds + 2 * LANES;
    own->normal = random_floats(&source, kinds * latent, 1);
    own->gram = random_floats(&source, kinds * kinds, 1);
    own->rows = random_floats(&source, ACTIONS * program->row_stride, 1);
    own->start = random_floats(&source, program->state_size, 1);
    float *unit = random_floats(&source, kinds * latent, 1);
    for (size_t r = 0; r < kinds; r++) {
        double squares = 0;
        own->beta[r] = 2 * fabsf(random_float(&source));
        for (size_t i = 0; i < latent; i++)
            squares += (double)unit[r * latent + i] * unit[r * latent + i];
        for (size_t i = 0; i < latent; i++) {
            unit[r * latent + i] = (float)(unit[r * latent + i] / sqrt(squares));
            own->normal[r * latent + i] = own->beta[r] * unit[r * latent + i];
        }
    }
    for (size_t r = 0; r < kinds; r++) {
        ref->products(unit, unit + r * latent, kinds, latent, own->gram + r * kinds);
        for (size_t i = 0; i < kinds; i++)
            own->gram[r * kinds + i] *= own->beta[r];
        own->begin[r] = (uint32_t)(vectors ? 2 * r : 0);
    }
    own->begin[kinds] = vectors ? (uint32_t)(2 * kinds) : 0;
    for (size_t u = 0; u < own->begin[kinds]; u++)
        draw_update(&source, &own->updates[u], vectors);
    memset(own->rows, 0, program->row_stride * sizeof(float));
    for (size_t i = 0; i < SLICES; i++) {
        own->slices[i] = random_floats(&source, ACTIONS * SLICE, 1);
        memset(own->slices[i], 0, SLICE * sizeof(float));
    }
    for (uint32_t a = 1; a < ACTIONS; a++) {
        float d[SLICES * SLICE];
        own->row_kinds[a] = random_below(&source, (uint32_t)kinds);
        embedding(own, a, d);
        ref->products(unit, d, kinds, latent, own->rows + a * program->row_stride);
    }
    memset(own->start + latent, 0, (program->state_size - latent) * sizeof(float));
    ref->products(unit, own->start, kinds, latent, own->start + latent);
    program->normal = own->normal;
    program->gram = own->gram;
    program->rows = own->rows;
    program->row_kinds = own->row_kinds;
    program->slices = own->slices;
    program->updates = own->updates;
    program->update_begin = own->begin;
    program->update_end = own->begin + 1;
    for (uint32_t i = 0; i < latent + program->aggregates; i++)
        own->columns[i] = (uint32_t)(latent + program->aggregates) - i; /* column 0 is left alone */
    free(unit - 1);
}

static void release_program(random_program *own) {
    free(own->normal - 1);
    free(own->gram - 1);
    free(own->rows - 1);
    free(own->start - 1);
    for (size_t i = 0; i < SLICES; i++)
        free(own->slices[i] - 1);
}

/* The direct form on the program's numbers. */
static double direct_error(const random_program *own, const uint32_t *ids, const float *z) {
    const foreloop_transh_program *program = &own->program;
    float *direct = malloc(program->latent * sizeof *direct), *unit = malloc(program->latent * sizeof *unit);
    double difference = 0, scale = 0;
    float d[SLICES * SLICE];
    memcpy(direct, own->start, program->latent * sizeof *direct);
    for (size_t t = 0; t < STEPS; t++) {
        const uint32_t r = own->row_kinds[ids[t]];
        if (ids[t] == 0)
            continue;
        for (size_t i = 0; i < program->latent; i++)
            unit[i] = own->normal[r * program->latent + i] / own->beta[r];
        embedding(own, ids[t], d);
        foreloop_transh_step_f32_ref(direct, unit, own->beta[r], d, program->latent);
    }
    for (size_t i = 0; i < program->latent; i++) {
        difference += ((double)z[i] - direct[i]) * ((double)z[i] - direct[i]);
        scale += (double)direct[i] * direct[i];
    }
    free(direct);
    free(unit);
    return sqrt(difference / scale);
}

/* The same steps as segments from and to slots, some in place. */
static int slots_agree(const random_program *own, const foreloop_transh_f32 *kernels, const uint32_t *ids,
                       const float *expected, size_t cut) {
    const foreloop_transh_program *program = &own->program;
    const size_t size = program->state_size;
    const foreloop_transh_segment segments[] = {{ids, cut / 2, 0, 2},
                                                {ids + cut / 2, cut - cut / 2, 2, 1},
                                                {ids + cut, 0, 1, 1},
                                                {ids + cut, STEPS - cut, 1, 3}};
    random_source source = {cut};
    float *slots = random_floats(&source, 4 * size, 1), *sums = random_floats(&source, 4 * STRIDE, 3);
    int right = 1;
    memcpy(slots, own->start, size * sizeof *slots);
    kernels->steps(program, segments, 2, 2, slots);
    kernels->steps(program, segments + 2, 2, 0, slots);
    right &= same(slots + 3 * size + program->latent, expected + program->latent, size - program->latent);
    for (size_t slice = 0; slice < foreloop_transh_slice_count(program->latent); slice++) {
        const size_t width = foreloop_transh_slice_width(program, slice);
        memcpy(sums, own->start + slice * SLICE, width * sizeof *sums);
        kernels->sums(program, slice, segments, 1, 3, sums, STRIDE);
        kernels->sums(program, slice, segments + 1, 3, 0, sums, STRIDE);
        right &= same(sums + 3 * STRIDE, expected + slice * SLICE, width);
    }
    free(slots - 1);
    free(sums - 3);
    return right;
}

static void finish_block(random_program *own, const foreloop_transh_f32 *kernels, const float *states, float *block) {
    const foreloop_transh_program *program = &own->program;
    const size_t used = foreloop_transh_gather_f32(program, states, own->used, own->gamma);
    for (size_t slice = 0; slice < foreloop_transh_slice_count(program->latent); slice++)
        kernels->finish_slice(program, slice, states + slice * SLICE, program->state_size, own->used, used, own->gamma,
                              own->columns, block, STRIDE);
    kernels->finish_aggregates(program, states, own->columns + program->latent, block, STRIDE);
}

static void test_rollout(const foreloop_transh_f32 *ref, const foreloop_transh_f32 *own, size_t latent, size_t kinds,
                         size_t vectors) {
    static random_program drawn;
    draw_program(&drawn, ref, latent, kinds, vectors, latent * 1000 + kinds * 10 + vectors);
    const foreloop_transh_program *program = &drawn.program;
    const size_t size = program->state_size, columns = latent + program->aggregates + 1;
    random_source source = {5};
    float *states[2], *blocks[2], *z[2], *cut = random_floats(&source, size, 1);
    int states_right = 1, cuts_right = 1, z_right = 1, blocks_right = 1;
    double worst = 0;
    for (int i = 0; i < 2; i++) {
        states[i] = random_floats(&source, LANES * size, 1);
        blocks[i] = random_floats(&source, columns * STRIDE, 0);
        z[i] = random_floats(&source, latent, 1);
    }
    memcpy(blocks[1], blocks[0], columns * STRIDE * sizeof(float));
    for (size_t s = 0; s < LANES; s++) {
        uint32_t ids[STEPS];
        for (size_t t = 0; t < STEPS; t++)
            ids[t] = random_below(&source, ACTIONS);
        for (int i = 0; i < 2; i++) {
            memcpy(states[i] + s * size, drawn.start, size * sizeof(float));
            foreloop_transh_roll_f32(i ? own : ref, program, ids, STEPS, states[i] + s * size);
        }
        states_right &= same(states[0] + s * size, states[1] + s * size, size);
        memcpy(cut, drawn.start, size * sizeof *cut);
        foreloop_transh_roll_f32(own, program, ids, s, cut);
        foreloop_transh_roll_f32(own, program, ids + s, STEPS - s, cut);
        cuts_right &= same(cut, states[0] + s * size, size);
        cuts_right &= slots_agree(&drawn, own, ids, states[0] + s * size, s);
        ref->finish(program, states[0] + s * size, z[0]);
        own->finish(program, states[0] + s * size, z[1]);
        z_right &= same(z[0], z[1], latent);
        worst = fmax(worst, direct_error(&drawn, ids, z[0]));
    }
    finish_block(&drawn, ref, states[0], blocks[0] + LANES);
    finish_block(&drawn, own, states[0], blocks[1] + LANES);
    for (size_t i = 0; i < columns * STRIDE; i++)
        blocks_right &= blocks[0][i] == blocks[1][i];
    for (size_t s = 0; s < LANES; s++) {
        const float *aggregates = states[0] + s * size + foreloop_transh_at_aggregates(program);
        ref->finish(program, states[0] + s * size, z[0]);
        for (size_t i = 0; i < columns - 1; i++)
            blocks_right &=
                blocks[1][drawn.columns[i] * STRIDE + LANES + s] == (i < latent ? z[0][i] : aggregates[i - latent]);
    }
    CHECK(states_right && cuts_right, "states (%s), %zu of z, %zu kinds, %zu aggregates", own->tier, latent, kinds,
          program->aggregates);
    CHECK(z_right && blocks_right, "finished, alone and in blocks (%s)", own->tier);
    CHECK(worst < 1e-5, "the direct form agrees: %.1e", worst);
    for (int i = 0; i < 2; i++) {
        free(states[i] - 1);
        free(blocks[i]);
        free(z[i] - 1);
    }
    free(cut - 1);
    release_program(&drawn);
}

int main(void) {
    static const char *const tiers[] = {"", "ref", "avx2", "avx512"};
    static const size_t latents[] = {16, 48, 64, 80, 240, 256, 272, 336};
    foreloop_transh_f32 ref, own;
    foreloop_transh_f32_init(&ref, FORELOOP_TIER_REF);
    CHECK(strcmp(ref.tier, "ref") == 0, "the reference");
    for (foreloop_tier tier = FORELOOP_TIER_REF; tier <= foreloop_cpu_tier(FORELOOP_TIER_BEST);
         tier = (foreloop_tier)(tier + 1)) {
        foreloop_transh_f32_init(&own, tier);
        CHECK(strcmp(own.tier, tiers[tier]) == 0, "tier %s runs", own.tier);
        test_matrices(&ref, &own);
        for (size_t i = 0; i < sizeof latents / sizeof *latents; i++)
            for (size_t kinds = 16; kinds <= 64; kinds += 16)
                test_rollout(&ref, &own, latents[i], kinds, (i + kinds / 16) % 5);
    }
    return tap_done();
}
