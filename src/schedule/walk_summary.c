/* What the nest of the tiled block has become when the trace ends: the arguments of `postprocess`.
 *
 * The decisions of a tiling lie spread over one split for each axis. What a core runs is their product level by level:
 * these are products of the loops from a level of the tiling structure inward, over all loops, those of one class,
 * those of one axis, and what one operand of a contraction touches (one spatial axis and the reductions); and how the
 * innermost loops will run. */
#include "schedule/walk_emit.h"
#include <math.h>
#include <string.h>

enum { LEVELS = 8, AXES = 4 };

/* Products over the loops of level >= k, for each k. */
typedef struct nest_products {
    double all[LEVELS + 1], spatial[LEVELS + 1], reduction[LEVELS + 1], axis[AXES][LEVELS + 1];
    double others[LEVELS + 1]; /* spatial loops but those of axis 0 */
} nest_products;

/* Loops that a nest is counted through, those that were fused one by one: a trace may fuse again and again. */
enum { FUSED_DEPTH = 8, FUSED_VISITS = 4096 };

static bool add_to_products(nest_products *products, const foreloop_loop *loop, size_t levels) {
    if (loop->extent == 0 || loop->kind == FORELOOP_LOOP_UNKNOWN || loop->axis < 0 || loop->level < 0 ||
        (size_t)loop->level >= levels)
        return false;
    bool spatial = loop->kind == FORELOOP_LOOP_SPATIAL;
    for (size_t k = 0; k <= (size_t)loop->level; k++) {
        products->all[k] *= loop->extent;
        (spatial ? products->spatial : products->reduction)[k] *= loop->extent;
        if (spatial && loop->axis > 0)
            products->others[k] *= loop->extent;
        if (spatial && loop->axis < AXES)
            products->axis[loop->axis][k] *= loop->extent;
    }
    return true;
}

/* A loop that was fused of parts of axes, as for a GPU's threads, counts as those. */
static bool take_loop(const foreloop_walk *walk, size_t index, size_t levels, size_t depth, size_t *visits,
                      nest_products *products) {
    const foreloop_loop *loop = &walk->loops[index];
    if (loop->extent == 1)
        return true;
    if (loop->axis >= 0 || loop->fused_count == 0)
        return add_to_products(products, loop, levels);
    bool known = depth < FUSED_DEPTH;
    for (size_t i = 0; known && i < loop->fused_count; i++)
        known = ++*visits <= FUSED_VISITS &&
                take_loop(walk, walk->fused[loop->fused_first + i], levels, depth + 1, visits, products);
    return known;
}

/* False when a level, an extent or a class that matters is unknown. */
static bool take_products(const foreloop_walk *walk, const foreloop_block *block, size_t levels,
                          nest_products *products) {
    double *const tables[] = {products->all,     products->spatial, products->reduction, products->others,
                              products->axis[0], products->axis[1], products->axis[2],   products->axis[3]};
    size_t visits = 0;
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++)
        for (size_t k = 0; k <= LEVELS; k++)
            tables[t][k] = 1;
    for (size_t i = 0; i < block->nest_count; i++)
        if (!take_loop(walk, block->nest[i], levels, 0, &visits, products))
            return false;
    return true;
}

/* What runs side by side on a GPU. */
static void add_bound(foreloop_walk *walk) {
    static const char *const names[FORELOOP_WALK_BOUND] = {"blocks", "vthreads", "threads"};
    for (size_t sort = 0; sort < FORELOOP_WALK_BOUND; sort++) {
        double product = 0; /* unknown where an extent is */
        for (size_t axis = 0, bound = 0; axis < 3; axis++)
            if (walk->is_bound[sort][axis])
                product = (bound++ == 0 ? 1 : product) * walk->bound[sort][axis];
        foreloop_walk_add_extent(walk, names[sort], product);
    }
}

/* The largest power of two that divides an extent: how it falls into vectors. */
static double power_of_two(double extent) {
    double power = 1;
    if (!(extent >= 1 && extent < 9007199254740992.0))
        return 0;
    for (uint64_t rest = (uint64_t)extent; rest % 2 == 0; rest /= 2)
        power *= 2;
    return power;
}

/* The product of the leading spatial loops that MetaSchedule will fuse into the parallel one: up to the one with which
 * it gets beyond what the annotation says, and none inside of a loop that another block is computed at. */
static double parallel_extent(const foreloop_walk *walk, const foreloop_block *block) {
    size_t limit = block->nest_count;
    for (size_t i = 0; i < walk->block_count; i++) {
        const foreloop_block *other = &walk->blocks[i];
        if (other->at_block == walk->tiled_block && other->at_depth + 1 < limit)
            limit = other->at_depth + 1;
    }
    double extent = 1;
    for (size_t i = 0; i < limit && extent <= walk->parallel_limit; i++) {
        const foreloop_loop *loop = &walk->loops[block->nest[i]];
        if (loop->extent != 1 && loop->kind != FORELOOP_LOOP_SPATIAL)
            break;
        extent *= loop->extent;
    }
    return extent;
}

/* How the innermost loops will run. The innermost part of s0 is one vector operation if the annotation allows its
 * extent; the loops around it are unrolled from the innermost outward while that makes no more copies than the
 * annotation says. What is unrolled stays in registers, or overflows them; what is not costs a loop each time. */
static void add_body(foreloop_walk *walk, const foreloop_block *block, size_t levels, const nest_products *products) {
    enum { VECTOR = 16 }; /* numbers in a vector register */
    enum { SHOWN = 3 };   /* levels whose copies are compared with the annotation */
    static const char *const room[LEVELS] = {NULL,     "room_1", "room_2", "room_3",
                                             "room_4", "room_5", "room_6", "room_7"};
    size_t end = block->nest_count;
    double vector = 1, copies = 1, spatial = 1;
    const foreloop_loop *last = &walk->loops[block->nest[end - 1]];
    if (!(walk->vector_limit > 0))
        return;
    if (last->kind == FORELOOP_LOOP_SPATIAL && last->axis == 0 && last->extent >= 1 &&
        last->extent <= walk->vector_limit) {
        vector = last->extent;
        end--;
    }
    double vectors = ceil(vector / VECTOR);
    foreloop_walk_add_number(walk, "vector", vector);
    foreloop_walk_add_number(walk, "registers", products->spatial[levels - 1] / vector * vectors);
    if (walk->unroll_limit < 0)
        return;
    for (size_t i = end; i-- > 0;) {
        const foreloop_loop *loop = &walk->loops[block->nest[i]];
        if (loop->extent == 1)
            continue;
        if (!(copies * loop->extent <= walk->unroll_limit))
            break;
        copies *= loop->extent;
        if (loop->kind == FORELOOP_LOOP_SPATIAL)
            spatial *= loop->extent;
    }
    foreloop_walk_add_number(walk, "unrolled", copies);
    foreloop_walk_add_number(walk, "unrolled_spatial", spatial);
    foreloop_walk_add_number(walk, "unrolled_reduction", copies / spatial);
    foreloop_walk_add_number(walk, "code", copies * vectors);
    for (size_t k = levels - 1; k > 0 && k + SHOWN >= levels; k--)
        foreloop_walk_add_number(walk, room[k], (walk->unroll_limit + 1) * vector / products->all[k]);
}

void foreloop_walk_add_summary(foreloop_walk *walk) {
    static const char *const within[LEVELS] = {NULL,       "within_1", "within_2", "within_3",
                                               "within_4", "within_5", "within_6", NULL};
    static const char *const spatial[LEVELS] = {NULL,        "spatial_1", "spatial_2", "spatial_3",
                                                "spatial_4", "spatial_5", "spatial_6", NULL};
    static const char *const axes[AXES][LEVELS] = {
        {NULL, "axis_0_1", "axis_0_2", "axis_0_3", "axis_0_4", "axis_0_5", "axis_0_6", NULL},
        {NULL, "axis_1_1", "axis_1_2", "axis_1_3", "axis_1_4", "axis_1_5", "axis_1_6", NULL},
        {NULL, "axis_2_1", "axis_2_2", "axis_2_3", "axis_2_4", "axis_2_5", "axis_2_6", NULL},
        {NULL, "axis_3_1", "axis_3_2", "axis_3_3", "axis_3_4", "axis_3_5", "axis_3_6", NULL}};
    static const char *const row[LEVELS] = {NULL, "row_1", "row_2", "row_3", "row_4", "row_5", "row_6", "row_7"};
    static const char *const column[LEVELS] = {NULL,       "column_1", "column_2", "column_3",
                                               "column_4", "column_5", "column_6", "column_7"};
    if (!walk->emitting)
        return;
    add_bound(walk);
    if (walk->tiled_block >= walk->block_count)
        return;
    const foreloop_block *block = &walk->blocks[walk->tiled_block];
    size_t levels = block->structure ? strlen(block->structure) : 0;
    nest_products products;
    if (levels < 2 || levels > LEVELS || block->nest_count == 0 || !take_products(walk, block, levels, &products))
        return;
    for (size_t k = 1; k < levels; k++) {
        bool inner = k + 1 < levels; /* the last level alone is in `reorder` */
        if (inner)
            foreloop_walk_add_number(walk, within[k], products.all[k]);
        if (inner && block->structure[k] == 'S') {
            foreloop_walk_add_number(walk, spatial[k], products.spatial[k]);
            for (size_t axis = 0; axis < AXES; axis++)
                foreloop_walk_add_number(walk, axes[axis][k], products.axis[axis][k]);
        }
        foreloop_walk_add_number(walk, row[k], products.axis[0][k] * products.reduction[k]);
        foreloop_walk_add_number(walk, column[k], products.others[k] * products.reduction[k]);
    }
    size_t register_level = levels - 1;
    while (register_level > 0 && block->structure[register_level - 1] == 'R')
        register_level--;
    register_level = register_level > 0 ? register_level - 1 : 0;
    foreloop_walk_add_extent(walk, "power", power_of_two(products.axis[0][levels - 1]));
    foreloop_walk_add_extent(walk, "power_inner", power_of_two(products.axis[0][register_level]));
    if (walk->parallel_limit > 0) {
        double parallel = parallel_extent(walk, block);
        foreloop_walk_add_extent(walk, "parallel", parallel);
        foreloop_walk_add_extent(walk, "parallel_power", power_of_two(parallel));
    }
    add_body(walk, block, levels, &products);
}
