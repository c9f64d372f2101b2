/* From decisions to schedules: the order of the transformations is the same for all candidates of a sketch. */
#include "sketches.h"

enum { VECTOR_STATEMENT = 16 /* elements that one statement of a vectorized loop may compute */ };

/* ---- What both do ------------------------------------------------------------------------------------------------ */

/* Vectorizes the innermost loop around block b, if it is a spatial one and runs over the last dimension. */
static void vectorize_innermost(schedule *s, int b) {
    int loops[MAX_NEST];
    const int depth = s->error ? 0 : loops_of(&s->p, s->p.blocks[b].node, loops);
    if (depth == 0)
        return;
    const int loop = loops[depth - 1];
    const node *n = &s->p.nodes[loop];
    if (n->kind == LOOP_SERIAL && n->count == 1 && loop_extent(&s->p, loop) > 1 && !loop_reduces(&s->p, loop) &&
        s->p.variables[n->variables[0]].axis == 0 && s->p.nodes[n->child].next == NONE)
        annotate(s, loop, LOOP_VECTORIZED);
}

/* Unrolls loops around block b from the innermost, while no more than `limit` statements come of it. */
static void unroll(schedule *s, int b, int limit) {
    int loops[MAX_NEST], statements = 1;
    const int depth = s->error ? 0 : loops_of(&s->p, s->p.blocks[b].node, loops);
    for (int i = depth - 1; i >= 0; i--) {
        const node *n = &s->p.nodes[loops[i]];
        const int extent = loop_extent(&s->p, loops[i]);
        if (n->kind == LOOP_PARALLEL || s->p.nodes[n->child].next != NONE)
            return;
        statements *= n->kind == LOOP_VECTORIZED ? (extent + VECTOR_STATEMENT - 1) / VECTOR_STATEMENT : extent;
        if (statements > limit)
            return;
        if (n->kind == LOOP_SERIAL && extent > 1)
            annotate(s, loops[i], LOOP_UNROLLED);
    }
}

/* Runs the outermost loop around a block at the root in parallel. */
static void parallelize_outermost(schedule *s, int b) {
    int loops[MAX_NEST];
    if (!s->error && loops_of(&s->p, s->p.blocks[b].node, loops) > 1 && !loop_reduces(&s->p, loops[0]))
        annotate(s, loops[0], LOOP_PARALLEL);
}

/* ---- Tiles ------------------------------------------------------------------------------------------------------- */

enum { LEVELS = 6 };
static const int SPATIAL_LEVELS[SPATIAL_PARTS] = {0, 1, 3, 5};
static const int REDUCTION_LEVELS[REDUCTION_PARTS] = {2, 4};

void sketch_tiles(const search_space *space, const uint16_t *choices, schedule *s) {
    const int b = space->main_block;
    const int iters = space->initial.blocks[b].iters;
    const bool has_pad = b > 0;
    const int parallel = choices[iters], cache = choices[iters + 1], limit = UNROLL_LIMITS[choices[iters + 2]];
    const int pad = has_pad ? choices[iters + 3] : 0;
    int at[LEVELS][MAX_ITERS], count[LEVELS] = {0}, order[LEVELS * MAX_ITERS], total = 0;

    if (has_pad && pad == 0)
        compute_inline(s, 0);
    int axes[MAX_NEST];
    const int axis_count = loops_of(&s->p, s->p.blocks[b].node, axes);
    const bool has_spatial = axis_count > 0 && !loop_reduces(&s->p, axes[0]);
    const int copy = cache && has_spatial ? cache_write(s, b) : NONE;
    for (int i = 0, axis = 0; i < iters && !s->error; i++) {
        if (space->initial.blocks[b].iter[i].extent == 1)
            continue; /* has no loop */
        const tilings *t = &space->decisions[i].tiles;
        const int *levels = t->parts == SPATIAL_PARTS ? SPATIAL_LEVELS : REDUCTION_LEVELS;
        int parts[MAX_PARTS];
        split(s, axes[axis++], t->factors[choices[i]], levels, t->parts, parts);
        for (int j = 0; j < t->parts; j++)
            at[levels[j]][count[levels[j]]++] = parts[j];
    }
    for (int level = 0; level < LEVELS; level++)
        for (int i = 0; i < count[level]; i++)
            order[total++] = at[level][i];
    if (total == 0 || s->error) /* one multiplication */
        return;
    reorder(s, b, order, total);

    /* The loop that ends each level; what is fused is one loop. */
    int last[LEVELS];
    for (int level = 0; level < LEVELS; level++)
        last[level] = count[level] ? at[level][count[level] - 1] : NONE;
    if (has_spatial && parallel) {
        const int fused = fuse(s, order, parallel == 1 ? count[0] : count[0] + count[1]);
        last[0] = fused;
        last[1] = parallel == 1 ? last[1] : fused;
        annotate(s, fused, LOOP_PARALLEL);
    }
    if (copy != NONE) {
        reverse_compute_at(s, copy, last[cache - 1]);
        vectorize_innermost(s, copy);
    }
    if (pad == 1 && parallel)
        parallelize_outermost(s, 0);
    else if (pad > 1 && last[pad - 2] != NONE)
        compute_at(s, 0, last[pad - 2]);
    if (pad)
        vectorize_innermost(s, 0);
    vectorize_innermost(s, b);
    unroll(s, b, limit);
    postprocess(s, b, LEVELS);
}

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

enum { ROWS, COLUMNS, FACTOR, PARALLEL, PLACE, INLINE, UNROLL };

/* Splits the column loop of an elementwise block that lies innermost, and vectorizes. */
static void vectorize_columns(schedule *s, int b, const int *factors) {
    int loops[MAX_NEST], parts[2];
    const int depth = s->error ? 0 : loops_of(&s->p, s->p.blocks[b].node, loops);
    if (depth == 0 || loop_extent(&s->p, loops[depth - 1]) > factors[0] * factors[1])
        return;
    split(s, loops[depth - 1], factors, NULL, 2, parts);
    vectorize_innermost(s, b);
}

/* A reduction over columns: with a factor, `factors[1]` partial results side by side, gathered at the end. */
static int factor_columns(schedule *s, int b, const int *factors) {
    int loops[MAX_NEST], parts[2];
    const int depth = s->error ? 0 : loops_of(&s->p, s->p.blocks[b].node, loops);
    if (depth == 0 || factors[1] == 1 || factors[0] == 1)
        return NONE;
    split(s, loops[depth - 1], factors, NULL, 2, parts);
    return s->error ? NONE : rfactor(s, b, parts[1]);
}

/* The partial results innermost, so that they are a vector. */
static void vectorize_factor(schedule *s, int rf) {
    int loops[MAX_NEST];
    const int depth = s->error ? 0 : loops_of(&s->p, s->p.blocks[rf].node, loops);
    if (depth < 2)
        return;
    const int inner = loops[depth - 1], outer = loops[depth - 2];
    if (loop_reduces(&s->p, inner) && !loop_reduces(&s->p, outer))
        reorder(s, rf, (int[]){inner, outer}, 2);
    vectorize_innermost(s, rf);
}

void sketch_rows(const search_space *space, const uint16_t *choices, schedule *s) {
    const int b = space->main_block;
    const int *rows = space->decisions[ROWS].tiles.factors[choices[ROWS]];
    const int *columns = space->decisions[COLUMNS].tiles.factors[choices[COLUMNS]];
    const int *factors = space->decisions[FACTOR].tiles.factors[choices[FACTOR]];
    const int limit = UNROLL_LIMITS[choices[UNROLL]];
    const bool has_rows = space->initial.blocks[b].iter[0].extent > 1, parallel = choices[PARALLEL];
    int loops[MAX_NEST], parts[2] = {NONE, NONE};

    if (has_rows) {
        (void)loops_of(&s->p, s->p.blocks[b].node, loops);
        split(s, loops[0], rows, NULL, 2, parts);
        if (parallel)
            annotate(s, parts[0], LOOP_PARALLEL);
    }
    const int place = has_rows && choices[PLACE] ? parts[choices[PLACE] - 1] : NONE;
    for (int i = b - 1; i >= 0; i--) { /* readers first */
        int rf = NONE;
        if (s->p.blocks[i].combine == COMBINE_NONE) {
            if (choices[INLINE]) {
                compute_inline(s, i);
                continue;
            }
        } else
            rf = factor_columns(s, i, factors);
        if (place != NONE) {
            compute_at(s, i, place);
            if (rf != NONE)
                compute_at(s, rf, place);
        } else if (parallel) {
            parallelize_outermost(s, i);
            if (rf != NONE)
                parallelize_outermost(s, rf);
        }
        if (rf != NONE) {
            vectorize_factor(s, rf);
            unroll(s, rf, limit);
        } else if (s->p.blocks[i].combine == COMBINE_NONE)
            vectorize_columns(s, i, columns);
    }
    vectorize_columns(s, b, columns);
    postprocess(s, b, 0);
}
