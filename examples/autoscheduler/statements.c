/* Statements of a kernel: where a block runs, expressions of numbers and of vectors. */
#include "generator.h"

enum { MAX_STATEMENTS = 2048 /* in all: compilers take seconds for more */ };

/* ---- What runs --------------------------------------------------------------------------------------------------- */

/* How far a variable may go until a limit of block b is reached: the last values at which the block always and
 * sometimes runs, plus one. */
static span span_of_limit(generator *g, int b, int limit, int v) {
    affine sum;
    int extent, factor = 0;
    bool full = false;
    span s = {g->p->variables[v].extent, g->p->variables[v].extent};
    if (!limit_of(g->p, b, limit, &sum, &extent, &full))
        return s;
    int low = extent - 1 - sum.constant, high = low; /* what is left of the limit */
    for (int i = 0; i < sum.count; i++) {
        const value *w = &g->values[sum.terms[i].variable];
        const int f = sum.terms[i].factor;
        if (sum.terms[i].variable == v)
            factor = f;
        else {
            low -= f * (w->constant ? w->number : w->most);
            high -= f * (w->constant ? w->number : 0);
        }
    }
    if (full)
        g->error = "a limit is too long";
    if (factor == 0)
        return s;
    const int all = low < 0 ? 0 : low / factor + 1, some = high < 0 ? 0 : high / factor + 1;
    return (span){all < s.all ? all : s.all, some < s.some ? some : s.some};
}

/* What of block b counts: for its initial values only the spatial iterators do. */
static int limit_count(const generator *g, int b, int initial) {
    return initial == NONE ? g->p->blocks[b].iters + 1 : g->p->blocks[b].spatial;
}

span span_of(generator *g, int loop, int v, int initial) {
    span s = {g->p->variables[v].extent, 0};
    for (int b = 0; b < g->p->block_count; b++) {
        if (g->p->blocks[b].node == NONE || (initial != NONE && b != initial) ||
            !is_inside(g->p, g->p->blocks[b].node, loop))
            continue;
        int some = g->p->variables[v].extent;
        for (int i = 0; i < limit_count(g, b, initial); i++) {
            const span one = span_of_limit(g, b, i, v);
            s.all = one.all < s.all ? one.all : s.all;
            some = one.some < some ? one.some : some;
        }
        s.some = some > s.some ? some : s.some;
    }
    return s;
}

/* Whether block b runs where the variables have these values: loops leave only what is all in or all out. */
static bool runs(generator *g, int b, int initial) {
    for (int i = 0; i < limit_count(g, b, initial); i++) {
        affine sum;
        int extent;
        bool full = false;
        if (!limit_of(g->p, b, i, &sum, &extent, &full))
            continue;
        if (settle(g, &sum).constant >= extent)
            return false;
    }
    return true;
}

/* ---- Expressions ------------------------------------------------------------------------------------------------- */

void line_begin(const generator *g) {
    fprintf(g->out, "%*s", 4 * g->depth, "");
}

affine settle(const generator *g, const affine *index) {
    affine result = affine_constant(index->constant);
    bool full = false;
    for (int i = 0; i < index->count; i++) {
        const int v = index->terms[i].variable;
        if (g->values[v].constant)
            result.constant += index->terms[i].factor * g->values[v].number;
        else {
            const affine term = affine_variable(v);
            affine_add(&result, &term, index->terms[i].factor, &full);
        }
    }
    return result;
}

static void print_index(const generator *g, const affine *index) {
    const affine settled = settle(g, index);
    for (int i = 0; i < settled.count; i++) {
        const int factor = settled.terms[i].factor;
        fprintf(g->out, "%s%s", i ? " + " : "", g->p->variables[settled.terms[i].variable].name);
        if (factor != 1)
            fprintf(g->out, " * %d", factor);
    }
    if (settled.constant || settled.count == 0)
        fprintf(g->out, "%s%d", settled.count ? " + " : "", settled.constant);
}

/* The place of an access in its buffer's memory, over loop variables. */
static affine flatten(generator *g, int b, const element *a) {
    affine sum = affine_constant(0);
    bool full = false;
    int stride = 1;
    for (int d = g->p->buffers[a->buffer].dims - 1; d >= 0; d--) {
        affine index = access_over_loops(g->p, b, a, d, &full);
        affine_add(&index, &g->part[a->buffer].offset[d], -1, &full);
        affine_add(&sum, &index, stride, &full);
        stride *= g->part[a->buffer].extent[d];
    }
    if (full)
        g->error = "an index is too long";
    return sum;
}

/* How far an access moves from one lane to the next. */
static int lane_stride(const generator *g, const affine *flat) {
    for (int i = 0; i < flat->count; i++)
        if (flat->terms[i].variable == g->lane)
            return flat->terms[i].factor;
    return 0;
}

typedef struct lanes {
    generator *g;
    int b;
} lanes;

static bool moves(void *user, const element *a) {
    lanes *l = user;
    const affine flat = flatten(l->g, l->b, a);
    return lane_stride(l->g, &flat) == 0;
}

/* Whether an expression is a vector here. */
static bool is_vector(generator *g, int b, int e) {
    lanes l = {g, b};
    return g->lane != NONE && !visit_loads(g->p, e, moves, &l);
}

/* Whether an expression can be written with vectors: each load has its lanes side by side, one apart, or all the same.
 */
static bool lanes_fit(generator *g, int b, int e) {
    if (e == NONE)
        return true;
    const expression *x = &g->p->expressions[e];
    if (x->access == NONE)
        return (x->op != OP_RSQRT || !is_vector(g, b, e)) && lanes_fit(g, b, x->left) && lanes_fit(g, b, x->right);
    const element *a = &g->p->accesses[x->access];
    const affine flat = flatten(g, b, a);
    const int stride = lane_stride(g, &flat);
    if (x->op == OP_LOAD_PADDED && stride != 0) {
        bool full = false;
        const affine column = access_over_loops(g->p, b, a, g->p->buffers[a->buffer].dims - 1, &full);
        if (lane_stride(g, &column) != stride)
            return false;
    }
    return stride >= 0 && stride <= 2;
}

/* It also stores lanes side by side. */
bool vectors_fit(generator *g, int b, int v) {
    const int before = g->lane;
    const element made = output_access(g->p, b);
    g->lane = v;
    const affine flat = flatten(g, b, &made);
    const bool fit = lane_stride(g, &flat) == 1 && lanes_fit(g, b, g->p->blocks[b].body);
    g->lane = before;
    return fit;
}

static void print_element(generator *g, int b, const element *a) {
    const affine flat = flatten(g, b, a);
    const char *name = g->p->buffers[a->buffer].name;
    const int stride = g->lane == NONE ? 0 : lane_stride(g, &flat);
    if (stride == 0)
        fprintf(g->out, "%s[", name);
    else if (stride == 1)
        fprintf(g->out, "*(v%d *)(%s + ", g->width, name);
    else
        fprintf(g->out, "every%d_v%d(%s + ", stride, g->width, name);
    print_index(g, &flat);
    fputc(stride ? ')' : ']', g->out);
}

/* 0 outside of the buffer. The columns of a vector are compared one by one, the other indices once. */
static void print_padded(generator *g, int b, const element *a) {
    const buffer *from = &g->p->buffers[a->buffer];
    affine flat = flatten(g, b, a);
    const int stride = g->lane == NONE ? 0 : lane_stride(g, &flat);
    bool full = false;
    fputc('(', g->out);
    for (int d = 0, conditions = 0; d < from->dims; d++) {
        const affine index = access_over_loops(g->p, b, a, d, &full);
        if ((a->index[d].constant == 0 && a->index[d].count <= 1) || (stride && d == from->dims - 1))
            continue;
        fputs(conditions++ ? " && (unsigned)(" : "(unsigned)(", g->out);
        print_index(g, &index);
        fprintf(g->out, ") < %du", from->shape[d]);
    }
    fputs(" ? ", g->out);
    if (stride) {
        const affine column = access_over_loops(g->p, b, a, from->dims - 1, &full);
        affine_add(&flat, &column, -1, &full);
        fprintf(g->out, "padded_v%d(%s, ", g->width, from->name);
        print_index(g, &flat);
        fputs(", ", g->out);
        print_index(g, &column);
        fprintf(g->out, ", %d, %d) : (v%d){0})", stride, from->shape[from->dims - 1], g->width);
    } else {
        print_element(g, b, a);
        fputs(" : 0.0f)", g->out);
    }
    if (full)
        g->error = "an index is too long";
}

static void print_expression(generator *g, int b, int e) {
    static const char infix[] = {[OP_ADD] = '+', [OP_SUBTRACT] = '-', [OP_MULTIPLY] = '*', [OP_DIVIDE] = '/'};
    const expression *x = &g->p->expressions[e];
    const element *a = x->access == NONE ? NULL : &g->p->accesses[x->access];
    switch (x->op) {
    case OP_CONSTANT:
        fprintf(g->out, "%.9ef", (double)x->value);
        break;
    case OP_LOAD:
        print_element(g, b, a);
        break;
    case OP_LOAD_PADDED:
        print_padded(g, b, a);
        break;
    case OP_EXP:
    case OP_RSQRT:
        fprintf(g->out, "%s_v%d(", x->op == OP_EXP ? "exp" : "rsqrt", is_vector(g, b, e) ? g->width : 1);
        print_expression(g, b, x->left);
        fputc(')', g->out);
        break;
    case OP_ADD:
    case OP_SUBTRACT:
    case OP_MULTIPLY:
    case OP_DIVIDE:
        fputc('(', g->out);
        print_expression(g, b, x->left);
        fprintf(g->out, " %c ", infix[x->op]);
        print_expression(g, b, x->right);
        fputc(')', g->out);
        break;
    }
}

/* A value that may be a number where a vector is needed. */
static void print_spread(generator *g, int b, int e) {
    if (g->lane != NONE && !is_vector(g, b, e))
        fprintf(g->out, "(v%d){0} + ", g->width);
    print_expression(g, b, e);
}

/* ---- Statements -------------------------------------------------------------------------------------------------- */

void print_statement(generator *g, int b, bool initial) {
    const block *k = &g->p->blocks[b];
    const element made = output_access(g->p, b);
    if (!runs(g, b, initial ? b : NONE))
        return;
    if (++g->statements > MAX_STATEMENTS) {
        g->error = "too much is unrolled";
        return;
    }
    line_begin(g);
    print_element(g, b, &made);
    fputs(" = ", g->out);
    if (initial) {
        if (g->lane != NONE)
            fprintf(g->out, "(v%d){0} + ", g->width);
        fputs(k->combine == COMBINE_SUM ? "0.0f" : "-3.40282347e+38f", g->out);
    } else if (k->combine == COMBINE_MAX) {
        fprintf(g->out, g->lane == NONE ? "max_%d(" : "max_v%d(", g->lane == NONE ? 1 : g->width);
        print_element(g, b, &made);
        fputs(", ", g->out);
        print_spread(g, b, k->body);
        fputc(')', g->out);
    } else {
        if (k->combine == COMBINE_SUM) {
            print_element(g, b, &made);
            fputs(" + ", g->out);
        }
        if (k->combine == COMBINE_SUM)
            print_expression(g, b, k->body);
        else
            print_spread(g, b, k->body);
    }
    fputs(";\n", g->out);
}
