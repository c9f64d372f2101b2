/* Decisions, their options, and how candidates are drawn. The sketches that turn them into schedules: sketches.c. */
#include "space.h"
#include "sketches.h"
#include <stdlib.h>
#include <string.h>

/* ---- Tilings ----------------------------------------------------------------------------------------------------- */

enum { MAX_TILINGS = 4096, VECTOR_STEP = 4, ROUNDED = 16 };

/* The last part is a multiple of `step`, and at most `innermost`. */
static void enumerate(tilings *t, int *factors, int part, int rest, int step, int innermost) {
    if (part == t->parts - 1) {
        if (rest > innermost || rest % step || t->count == MAX_TILINGS)
            return;
        factors[part] = rest;
        if (t->factors)
            memcpy(t->factors[t->count], factors, sizeof *t->factors);
        t->count++;
        return;
    }
    for (int f = 1; f <= rest; f++)
        if (rest % f == 0) {
            factors[part] = f;
            enumerate(t, factors, part + 1, rest / f, step, innermost);
        }
}

/* What an extent is rounded up to when nothing that vectors are made of divides it, such as a prime; itself otherwise.
 */
static int rounded(int extent) {
    for (int tile = 2 * VECTOR_STEP; tile <= MAX_INNERMOST; tile += VECTOR_STEP)
        if (extent % tile == 0)
            return extent;
    return extent < ROUNDED ? extent : (extent + ROUNDED - 1) / ROUNDED * ROUNDED;
}

static void enumerate_all(tilings *t, int extent, bool spatial, int innermost) {
    int factors[MAX_PARTS] = {1, 1, 1, 1};
    t->count = 0;
    enumerate(t, factors, 0, extent, 1, innermost);
    if (spatial && rounded(extent) != extent)
        enumerate(t, factors, 0, rounded(extent), VECTOR_STEP, innermost);
}

/* All ways to cut `extent` into parts, the last of at most `innermost`; of a spatial axis that has few of them also
 * those that reach a little further. The first MAX_TILINGS of them. */
static bool tilings_of(tilings *t, int extent, int parts, bool spatial, int innermost) {
    *t = (tilings){.parts = parts};
    enumerate_all(t, extent, spatial, innermost);
    t->factors = malloc((size_t)t->count * sizeof *t->factors);
    if (!t->factors)
        return false;
    enumerate_all(t, extent, spatial, innermost);
    return true;
}

/* ---- Decisions --------------------------------------------------------------------------------------------------- */

static void add_decision(search_space *space, const char *name, int options) {
    decision *d = &space->decisions[space->count++];
    memset(d, 0, sizeof *d);
    (void)snprintf(d->name, sizeof d->name, "%s", name);
    d->options = options;
}

static bool add_tiling(search_space *space, const char *name, int extent, int parts, bool spatial, int innermost) {
    add_decision(space, name, 1);
    decision *d = &space->decisions[space->count - 1];
    if (!tilings_of(&d->tiles, extent, parts, spatial, innermost))
        return false;
    d->options = d->tiles.count;
    return true;
}

bool space_open(search_space *space, const program *initial) {
    memset(space, 0, sizeof *space);
    space->initial = *initial;
    space->main_block = initial->block_count - 1;
    space->tiled = initial->blocks[space->main_block].combine != COMBINE_NONE;
    const block *k = &initial->blocks[space->main_block];
    bool ok = true;
    if (space->tiled) {
        space->initial.blocks[space->main_block].role = "tiled";
        for (int i = 0; ok && i < k->iters; i++)
            ok = add_tiling(space, k->iter[i].name, k->iter[i].extent, i < k->spatial ? SPATIAL_PARTS : REDUCTION_PARTS,
                            i < k->spatial, MAX_INNERMOST);
        add_decision(space, "parallel", PARALLEL_OPTIONS);
        add_decision(space, "cache_write", CACHE_OPTIONS);
        add_decision(space, "unroll", UNROLL_OPTIONS);
        if (initial->block_count > 1)
            add_decision(space, "pad", PAD_OPTIONS);
    } else {
        for (int b = 0; b < space->main_block; b++)
            if (initial->blocks[b].combine != COMBINE_NONE)
                space->initial.blocks[b].role = "reduction";
        ok = add_tiling(space, "rows", k->iter[0].extent, 2, false, MAX_INNERMOST) &&
             add_tiling(space, "columns", k->iter[1].extent, 2, true, MAX_VECTOR) &&
             add_tiling(space, "factor", k->iter[1].extent, 2, true, MAX_VECTOR);
        add_decision(space, "parallel", 2);
        add_decision(space, "place", PLACE_OPTIONS);
        add_decision(space, "inline", 2);
        add_decision(space, "unroll", UNROLL_OPTIONS);
    }
    if (!ok)
        space_close(space);
    return ok;
}

void space_close(search_space *space) {
    for (int d = 0; d < space->count; d++)
        free(space->decisions[d].tiles.factors);
    space->count = 0;
}

void space_apply(const search_space *space, const uint16_t *choices, schedule *s) {
    schedule_begin(s, &space->initial);
    if (space->tiled)
        sketch_tiles(space, choices, s);
    else
        sketch_rows(space, choices, s);
}

/* ---- Drawing ----------------------------------------------------------------------------------------------------- */

uint64_t draw_next(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 2685821657736338717u;
}

int draw_below(uint64_t *state, int bound) {
    return (int)((draw_next(state) >> 33) % (uint64_t)bound);
}

void space_sample(const search_space *space, uint64_t *random, uint16_t *choices) {
    for (int d = 0; d < space->count; d++)
        choices[d] = (uint16_t)draw_below(random, space->decisions[d].options);
}

static int smallest_divisor(int x) {
    for (int f = 2; f * f <= x; f++)
        if (x % f == 0)
            return f;
    return x;
}

/* Moves the smallest or the whole factor of one part to another; false when that is no tiling of the list. */
static bool move_factor(const tilings *t, uint64_t *random, uint16_t *choice) {
    int factors[MAX_PARTS];
    memcpy(factors, t->factors[*choice], sizeof factors);
    const int from = draw_below(random, t->parts), to = draw_below(random, t->parts);
    if (from == to || factors[from] == 1)
        return false;
    const int f = draw_below(random, 4) ? smallest_divisor(factors[from]) : factors[from];
    factors[from] /= f;
    factors[to] *= f;
    for (int i = 0; i < t->count; i++)
        if (memcmp(t->factors[i], factors, sizeof factors) == 0) {
            *choice = (uint16_t)i;
            return true;
        }
    return false;
}

void space_mutate(const search_space *space, uint64_t *random, uint16_t *choices) {
    for (int attempt = 0; attempt < 16; attempt++) {
        const int d = draw_below(random, space->count);
        const decision *chosen = &space->decisions[d];
        if (chosen->options < 2)
            continue;
        if (chosen->tiles.count && draw_below(random, 4) && move_factor(&chosen->tiles, random, &choices[d]))
            return;
        choices[d] = (uint16_t)draw_below(random, chosen->options);
        return;
    }
}

void space_cross(const search_space *space, uint64_t *random, const uint16_t *a, const uint16_t *b, uint16_t *child) {
    const uint64_t bits = draw_next(random) >> 16;
    for (int d = 0; d < space->count; d++)
        child[d] = bits >> d & 1 ? a[d] : b[d];
}
