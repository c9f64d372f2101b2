/* Canonical actions (docs/ACTIONS.md) of a host that knows its loops: class, axis, extent and level as they are. */
#include "actions.h"

/* ---- Putting an action together ---------------------------------------------------------------------------------- */

static void begin(schedule *s, const char *kind) {
    if (s->action_count == MAX_ACTIONS) {
        s->error = "too many actions";
        return;
    }
    s->actions[s->action_count] =
        (foreloop_action){.kind = kind, .arguments = s->arguments + s->argument_count, .argument_count = 0};
}

static void add(schedule *s, foreloop_argument argument) {
    if (s->error)
        return;
    if (s->argument_count == MAX_ARGUMENTS) {
        s->error = "too many arguments";
        return;
    }
    s->arguments[s->argument_count++] = argument;
    s->actions[s->action_count].argument_count++;
}

static void number(schedule *s, const char *name, double value) {
    add(s, (foreloop_argument){.name = name, .number = value});
}

static void text(schedule *s, const char *name, const char *value) {
    add(s, (foreloop_argument){.name = name, .text = value});
}

static void finish(schedule *s) {
    if (s->error)
        return;
    s->action_count++;
    if (s->observe)
        s->observe(s->observer, s);
}

static const char *class_of(bool reduction) {
    return reduction ? "reduction" : "spatial";
}

static void block_arguments(schedule *s, int b) {
    text(s, "role", s->p.blocks[b].role);
    number(s, "block", s->p.blocks[b].number);
}

static void loop_arguments(schedule *s, int loop) {
    number(s, "extent", loop_extent(&s->p, loop));
    text(s, "class", class_of(loop_reduces(&s->p, loop)));
}

/* ---- Loops ------------------------------------------------------------------------------------------------------- */

void action_split(schedule *s, const variable *axis, const int *factors, int parts) {
    static const char *const spatial[] = {"split_s0", "split_s1", "split_s2", "split_s3", "split_s4", "split_s5"};
    static const char *const reduction[] = {"split_r0", "split_r1", "split_r2", "split_r3"};
    static const char *const names[MAX_PARTS] = {"factor_0", "factor_1", "factor_2", "factor_3"};
    const int last = axis->reduction ? 3 : 5, number_of_axis = axis->axis < last ? axis->axis : last;
    begin(s, !axis->whole ? "split" : axis->reduction ? reduction[number_of_axis] : spatial[number_of_axis]);
    number(s, "extent", axis->extent);
    number(s, "parts", parts);
    for (int i = 0; i < parts; i++)
        number(s, names[i], factors[i]);
    int inner = 1;
    for (int i = 1; i < parts; i++)
        inner *= factors[i];
    number(s, "inner", inner);
    number(s, "innermost", factors[parts - 1]);
    if (!axis->whole)
        text(s, "class", class_of(axis->reduction));
    finish(s);
}

void action_reorder(schedule *s, int b, int count) {
    static const char *const tiles[] = {"tile_0", "tile_1", "tile_2", "tile_3", "tile_4", "tile_5"};
    int loops[MAX_NEST], at = 0;
    double outer = 1, inner = 1, reductions = 1, tile[6] = {1, 1, 1, 1, 1, 1};
    const program *p = &s->p;
    const int depth = loops_of(p, p->blocks[b].node, loops);
    for (; at < depth && !loop_reduces(p, loops[at]); at++)
        outer *= loop_extent(p, loops[at]);
    for (at = depth - 1; at >= 0 && !loop_reduces(p, loops[at]); at--)
        inner *= loop_extent(p, loops[at]);
    for (; at >= 0 && loop_reduces(p, loops[at]); at--)
        reductions *= loop_extent(p, loops[at]);
    int levels = 0;
    for (int i = 0; i < depth; i++)
        for (int j = 0; j < p->nodes[loops[i]].count; j++) {
            const variable *v = &p->variables[p->nodes[loops[i]].variables[j]];
            tile[v->level] *= v->extent;
            levels = v->level >= levels ? v->level + 1 : levels;
        }
    begin(s, "reorder");
    number(s, "loops", count);
    number(s, "innermost", depth ? loop_extent(p, loops[depth - 1]) : 1);
    number(s, "spatial_outer", outer);
    number(s, "spatial_inner", inner);
    number(s, "reduction_inner", reductions);
    for (int i = 0; i < levels && levels > 2; i++)
        number(s, tiles[i], tile[i]);
    block_arguments(s, b);
    finish(s);
}

void action_fuse(schedule *s, int loop, int count) {
    begin(s, "fuse");
    number(s, "loops", count);
    loop_arguments(s, loop);
    finish(s);
}

void action_loop_kind(schedule *s, int loop) {
    static const char *const kinds[] = {"", "parallel", "vectorize", "unroll"};
    begin(s, kinds[s->p.nodes[loop].kind]);
    loop_arguments(s, loop);
    finish(s);
}

/* ---- Blocks ------------------------------------------------------------------------------------------------------ */

void action_block(schedule *s, const char *kind, int b) {
    begin(s, kind);
    block_arguments(s, b);
    finish(s);
}

void action_cache_write(schedule *s, int b) {
    begin(s, "cache_write");
    block_arguments(s, b);
    number(s, "buffer", 0);
    text(s, "scope", "local");
    finish(s);
}

void action_compute_at(schedule *s, const char *kind, int b, int beside, int loop) {
    int loops[MAX_NEST], depth = 0;
    double outer = 1, inner = 1;
    const program *p = &s->p;
    const int count = loops_of(p, p->blocks[beside].node, loops);
    for (int i = 0; i < count; i++) {
        depth = loops[i] == loop ? i : depth;
        if (is_inside(p, loop, loops[i]))
            outer *= loop_extent(p, loops[i]);
        else if (!loop_reduces(p, loops[i]))
            inner *= loop_extent(p, loops[i]);
    }
    const variable *v = &p->variables[p->nodes[loop].variables[0]];
    begin(s, kind);
    block_arguments(s, b);
    number(s, "location", depth);
    number(s, "depth", depth);
    number(s, "level", v->level);
    if (p->nodes[loop].count == 1)
        number(s, "axis", v->axis);
    text(s, "class", class_of(loop_reduces(p, loop)));
    number(s, "outer", outer);
    number(s, "spatial_inner", inner);
    finish(s);
}

void action_rfactor(schedule *s, int b, int extent, int rest, int part) {
    begin(s, "rfactor");
    block_arguments(s, b);
    number(s, "extent", extent);
    number(s, "part", part);
    number(s, "rest", rest);
    number(s, "factor_axis", s->p.blocks[b].spatial);
    finish(s);
}

/* ---- What it has come to ----------------------------------------------------------------------------------------- */

enum { LEVELS = 6, AXES = 4 };

static int power_of_two(int x) {
    return x & -x;
}

/* Products of a tiled nest: from each level inward, of all loops, by class, and by spatial axis. */
typedef struct summary {
    double within[LEVELS], spatial[LEVELS], axis[AXES][LEVELS];
    double row[LEVELS], column[LEVELS];
    bool has_spatial[LEVELS];
    int innermost; /* extent of the innermost part of s0 */
} summary;

static void summarize(const program *p, int b, int levels, summary *sum) {
    int loops[MAX_NEST];
    const int depth = loops_of(p, p->blocks[b].node, loops);
    *sum = (summary){.innermost = 1};
    for (int k = 0; k < LEVELS; k++) {
        sum->within[k] = sum->spatial[k] = sum->row[k] = sum->column[k] = 1;
        for (int a = 0; a < AXES; a++)
            sum->axis[a][k] = 1;
    }
    for (int i = 0; i < depth; i++)
        for (int j = 0; j < p->nodes[loops[i]].count; j++) {
            const variable *v = &p->variables[p->nodes[loops[i]].variables[j]];
            sum->has_spatial[v->level] = sum->has_spatial[v->level] || !v->reduction;
            if (!v->reduction && v->axis == 0 && v->level == levels - 1)
                sum->innermost = v->extent;
            for (int k = 0; k <= v->level; k++) {
                sum->within[k] *= v->extent;
                if (!v->reduction)
                    sum->spatial[k] *= v->extent;
                if (!v->reduction && v->axis < AXES)
                    sum->axis[v->axis][k] *= v->extent;
                if (v->reduction || v->axis == 0)
                    sum->row[k] *= v->extent;
                if (v->reduction || v->axis != 0)
                    sum->column[k] *= v->extent;
            }
        }
}

void postprocess(schedule *s, int b, int levels) {
    static const char *const within[] = {"", "within_1", "within_2", "within_3", "within_4"};
    static const char *const spatial[] = {"", "spatial_1", "spatial_2", "spatial_3", "spatial_4"};
    static const char *const row[] = {"", "row_1", "row_2", "row_3", "row_4", "row_5"};
    static const char *const column[] = {"", "column_1", "column_2", "column_3", "column_4", "column_5"};
    static const char *const axis[AXES][LEVELS] = {{"", "axis_0_1", "axis_0_2", "axis_0_3", "axis_0_4"},
                                                   {"", "axis_1_1", "axis_1_2", "axis_1_3", "axis_1_4"},
                                                   {"", "axis_2_1", "axis_2_2", "axis_2_3", "axis_2_4"},
                                                   {"", "axis_3_1", "axis_3_2", "axis_3_3", "axis_3_4"}};
    if (s->error)
        return;
    const program *p = &s->p;
    begin(s, "postprocess");
    if (levels > 0) {
        summary sum;
        summarize(p, b, levels, &sum);
        int inner = 0; /* the level of spatial loops around the innermost reductions */
        for (int k = 1; k < levels; k++) {
            number(s, row[k], sum.row[k]);
            number(s, column[k], sum.column[k]);
            if (k == levels - 1)
                break;
            number(s, within[k], sum.within[k]);
            if (!sum.has_spatial[k])
                continue;
            inner = k;
            number(s, spatial[k], sum.spatial[k]);
            for (int a = 0; a < AXES && a < p->blocks[b].spatial; a++)
                number(s, axis[a][k], sum.axis[a][k]);
        }
        number(s, "power", power_of_two(sum.innermost));
        if (inner)
            number(s, "power_inner", power_of_two((int)sum.axis[0][inner]));
    }
    int loops[MAX_NEST];
    if (loops_of(p, p->blocks[b].node, loops) > 0 && p->nodes[loops[0]].kind == LOOP_PARALLEL) {
        number(s, "parallel", loop_extent(p, loops[0]));
        number(s, "parallel_power", power_of_two(loop_extent(p, loops[0])));
    }
    finish(s);
}
