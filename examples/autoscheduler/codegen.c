/*
 * C from a loop tree. Every child of the root becomes a function of its own, so that `restrict` holds inside of
 * parallel loops too. Intermediate buffers are cut down to what the loop around all their uses needs, and become local
 * arrays of its body. Unrolled loops are written out, and vectorized ones are written as vectors of the compiler's
 * vector extension, what is left as narrower ones and numbers: with constant indices, local arrays turn into registers.
 */
#include "codegen.h"
#include "prelude.h"
#include <limits.h>
#include <string.h>

enum {
    MAX_STATEMENTS = 2048,        /* in all: compilers take seconds for more */
    MAX_LOCAL_BYTES = 192 * 1024, /* of all local arrays of a function: threads have small stacks */
    MAX_UNROLLED_CHUNKS = 16,     /* vectors of one loop that are written out */
    MAX_WIDTH = 16,               /* numbers in a vector */
    MIN_WIDTH = 4
};

/* What stands for a loop variable while its loop is written. */
typedef struct value {
    bool constant;
    int number; /* of a constant */
} value;

typedef struct generator {
    const program *p;
    FILE *out;
    const char *error;
    int depth, statements;
    value values[MAX_VARIABLES];
    int lane;  /* the variable that vectors run over, or NONE */
    int width; /* of the vectors */
    /* of each intermediate buffer: the loop around its uses (0: root), and its part there */
    int home[MAX_BUFFERS];
    region part[MAX_BUFFERS];
} generator;

size_t buffer_elements(const buffer *b) {
    size_t n = 1;
    for (int d = 0; d < b->dims; d++)
        n *= (size_t)b->shape[d];
    return n;
}

/* ---- Where buffers live ------------------------------------------------------------------------------------------ */

/* Whether a loop's variables are in an iterator of block b, from its iterator number `first` on. */
static bool iterates(const program *p, int b, int loop, int first) {
    const node *n = &p->nodes[loop];
    for (int i = first; i < p->blocks[b].iters; i++)
        for (int t = 0; t < p->blocks[b].iter[i].binding.count; t++)
            for (int j = 0; j < n->count; j++)
                if (p->blocks[b].iter[i].binding.terms[t].variable == n->variables[j])
                    return true;
    return false;
}

static int common_loop(const program *p, int a, int b) {
    while (!is_inside(p, b, a))
        a = p->nodes[a].parent;
    return a;
}

/* The innermost loop around all uses of a buffer; NONE when there is no use. */
static int home_of(const program *p, int buf) {
    int home = NONE;
    for (int b = 0; b < p->block_count; b++) {
        const block *k = &p->blocks[b];
        if (k->node == NONE || !(k->output == buf || block_loads(p, b, buf)))
            continue;
        home = home == NONE ? p->nodes[k->node].parent : common_loop(p, home, k->node);
    }
    /* Results that reductions gather have to last as long as these. */
    for (int n = home; n > 0; n = p->nodes[n].parent)
        if (iterates(p, producer_of(p, buf), n, p->blocks[producer_of(p, buf)].spatial))
            home = p->nodes[n].parent;
    return home;
}

static void place_buffers(generator *g) {
    const program *p = g->p;
    for (int i = 0; i < p->buffer_count; i++) {
        const int b = p->buffers[i].kind == BUFFER_INTERMEDIATE ? producer_of(p, i) : NONE;
        g->home[i] = b == NONE ? 0 : home_of(p, i);
        if (g->home[i] > 0) {
            bool full = false;
            const element made = output_access(p, b);
            region_of(p, b, &made, g->home[i], &g->part[i], &full);
            if (full)
                g->error = "a buffer's index is too long";
        } else
            for (int d = 0; d < p->buffers[i].dims; d++) {
                g->part[i].offset[d] = affine_constant(0);
                g->part[i].extent[d] = p->buffers[i].shape[d];
            }
    }
}

/* Lives outside of all loops. */
static bool is_scratch(const generator *g, int buf) {
    return g->p->buffers[buf].kind == BUFFER_INTERMEDIATE && g->home[buf] == 0 && producer_of(g->p, buf) != NONE;
}

int kernel_buffers(const program *p, int *buffers) {
    int count = 0;
    for (int i = 0; i < p->buffer_count; i++)
        if (p->buffers[i].kind != BUFFER_INTERMEDIATE)
            buffers[count++] = i;
    return count;
}

/* ---- Expressions ------------------------------------------------------------------------------------------------- */

static void line_begin(const generator *g) {
    fprintf(g->out, "%*s", 4 * g->depth, "");
}

/* Variables whose value is known go into the constant; the lane counts as 0. */
static affine settle(const generator *g, const affine *index) {
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

/* Whether a block can be written with vectors along a variable: it also stores lanes side by side. */
static bool vectors_fit(generator *g, int b, int v) {
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

/* One statement of a block: its initial value, or its body. */
static void print_statement(generator *g, int b, bool initial) {
    const block *k = &g->p->blocks[b];
    const element made = output_access(g->p, b);
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

/* ---- Loops ------------------------------------------------------------------------------------------------------- */

/* Writes what is in a loop, whose variable has its value. `initial`: the block whose initial values are written, or
 * NONE for the computation itself. */
typedef void inside(generator *g, int loop, int initial);

/* for (...) over a loop of one variable up to `end`, with step `step`. */
static void print_for(generator *g, int loop, int end, int step, int initial, inside *body) {
    const char *name = g->p->variables[g->p->nodes[loop].variables[0]].name;
    line_begin(g);
    fprintf(g->out, "for (int %s = 0; %s < %d; %s += %d) {\n", name, name, end, name, step);
    g->depth++;
    body(g, loop, initial);
    g->depth--;
    line_begin(g);
    fputs("}\n", g->out);
}

/* The body at one value of the loop's variable. */
static void print_at(generator *g, int loop, int number, int initial, inside *body) {
    value *v = &g->values[g->p->nodes[loop].variables[0]];
    *v = (value){true, number};
    body(g, loop, initial);
    v->constant = false;
}

/* As many of the widest vectors as fit, then narrower ones, then numbers. */
static void print_with_vectors(generator *g, int loop, int initial, inside *body) {
    const int v = g->p->nodes[loop].variables[0], extent = g->p->variables[v].extent, child = g->p->nodes[loop].child;
    if (g->p->nodes[child].next != NONE || !vectors_fit(g, g->p->nodes[child].block, v)) {
        line_begin(g);
        fputs("_Pragma(\"GCC ivdep\")\n", g->out);
        print_for(g, loop, extent, 1, initial, body);
        return;
    }
    int at = 0;
    if (extent / MAX_WIDTH > MAX_UNROLLED_CHUNKS) {
        at = extent - extent % MAX_WIDTH;
        g->lane = v;
        g->width = MAX_WIDTH;
        print_for(g, loop, at, MAX_WIDTH, initial, body);
    }
    for (int width = MAX_WIDTH; at < extent && !g->error; width = width == MIN_WIDTH ? 1 : width / 2)
        for (; extent - at >= width && !g->error; at += width) {
            g->lane = width == 1 ? NONE : v;
            g->width = width;
            print_at(g, loop, at, initial, body);
        }
    g->lane = NONE;
}

/* A loop other than a parallel one. */
static void print_loop(generator *g, int loop, int initial, inside *body) {
    const node *n = &g->p->nodes[loop];
    const int extent = loop_extent(g->p, loop);
    if (extent == 1 || n->kind == LOOP_UNROLLED) {
        for (int i = 0; i < extent && !g->error; i++)
            print_at(g, loop, i, initial, body);
    } else if (n->kind == LOOP_VECTORIZED)
        print_with_vectors(g, loop, initial, body);
    else
        print_for(g, loop, extent, 1, initial, body);
}

/* The initial values of block b, in the spatial ones of the loops between `loop` and it. */
static void print_initial(generator *g, int loop, int b) {
    const program *p = g->p;
    int child = p->nodes[loop].child;
    while (!is_inside(p, p->blocks[b].node, child))
        child = p->nodes[child].next;
    if (p->nodes[child].block == b)
        print_statement(g, b, true);
    else if (loop_reduces(p, child) || !iterates(p, b, child, 0))
        print_initial(g, child, b);
    else
        print_loop(g, child, b, print_initial);
}

/* A reduction's initial values come before the outermost of its reduction loops. */
static void begin_reductions(generator *g, int loop, int child) {
    const program *p = g->p;
    for (int b = 0; b < p->block_count; b++) {
        const block *k = &p->blocks[b];
        if (k->node == NONE || k->combine == COMBINE_NONE || !is_inside(p, k->node, child) ||
            !(p->nodes[child].block == b || iterates(p, b, child, k->spatial)))
            continue;
        bool begun = false;
        for (int n = loop; n > 0; n = p->nodes[n].parent)
            begun = begun || iterates(p, b, n, k->spatial);
        if (!begun)
            print_initial(g, loop, b);
    }
}

static void print_inside(generator *g, int loop, int initial) {
    const program *p = g->p;
    (void)initial;
    for (int i = 0; i < p->buffer_count; i++)
        if (g->home[i] == loop && loop > 0) {
            size_t elements = 1;
            for (int d = 0; d < p->buffers[i].dims; d++)
                elements *= (size_t)g->part[i].extent[d];
            line_begin(g);
            fprintf(g->out, "float %s[%zu] __attribute__((aligned(64)));\n", p->buffers[i].name, elements);
        }
    for (int n = p->nodes[loop].child; n != NONE && !g->error; n = p->nodes[n].next) {
        begin_reductions(g, loop, n);
        if (p->nodes[n].block != NONE)
            print_statement(g, p->nodes[n].block, false);
        else
            print_loop(g, n, NONE, print_inside);
    }
}

/* ---- The file ---------------------------------------------------------------------------------------------------- */

static const char *check_locals(const generator *g) {
    double bytes = 0;
    for (int i = 0; i < g->p->buffer_count; i++)
        if (g->home[i] > 0) {
            double elements = 1;
            for (int d = 0; d < g->p->buffers[i].dims; d++)
                elements *= g->part[i].extent[d];
            bytes += 4 * elements;
        }
    return bytes > MAX_LOCAL_BYTES ? "local buffers are too large" : NULL;
}

/* Inputs and outputs, and scratch: what intermediate buffers outside of all loops need. */
static void print_parameters(const generator *g, const char *before) {
    const program *p = g->p;
    for (int kind = BUFFER_INPUT, count = 0; kind <= BUFFER_INTERMEDIATE; kind++)
        for (int i = 0; i < p->buffer_count; i++)
            if ((int)p->buffers[i].kind == kind && (kind != BUFFER_INTERMEDIATE || is_scratch(g, i)))
                fprintf(g->out, "%s%s%s%s", count++ ? ", " : "", kind == BUFFER_INPUT && *before ? "const " : "",
                        before, p->buffers[i].name);
}

/* One child of the root as a function part_N(buffers, iteration of a parallel loop). */
static void print_part(generator *g, int number, int n) {
    const node *loop = &g->p->nodes[n];
    const bool parallel = loop->block == NONE && loop->kind == LOOP_PARALLEL;
    fprintf(g->out, "static __attribute__((noinline)) void part_%d(", number);
    print_parameters(g, "float *restrict ");
    fputs(parallel ? ", int iteration) {\n" : ") {\n", g->out);
    g->depth = 1;
    if (parallel) {
        int inner = 1;
        for (int i = loop->count - 1; i >= 0; i--) {
            const variable *v = &g->p->variables[loop->variables[i]];
            line_begin(g);
            fprintf(g->out, "const int %s = iteration / %d %% %d;\n", v->name, inner, v->extent);
            inner *= v->extent;
        }
        print_inside(g, n, NONE);
    } else {
        begin_reductions(g, 0, n);
        if (loop->block != NONE)
            print_statement(g, loop->block, false);
        else
            print_loop(g, n, NONE, print_inside);
    }
    fputs("}\n\n", g->out);
}

static void print_scratch(const generator *g) {
    for (int i = 0; i < g->p->buffer_count; i++)
        if (is_scratch(g, i))
            fprintf(g->out, "static float %s_scratch[%zu] __attribute__((aligned(64)));\n", g->p->buffers[i].name,
                    buffer_elements(&g->p->buffers[i]));
}

static void print_arguments(const generator *g) {
    int buffers[MAX_BUFFERS];
    const int count = kernel_buffers(g->p, buffers);
    for (int i = 0; i < count; i++) {
        const buffer *b = &g->p->buffers[buffers[i]];
        fprintf(g->out, "    float *%s = buffers[%d]; /* [", b->name, i);
        for (int d = 0; d < b->dims; d++)
            fprintf(g->out, d ? "][%d" : "%d", b->shape[d]);
        fputs(b->kind == BUFFER_INPUT ? "], input */\n" : "], output */\n", g->out);
    }
    for (int i = 0; i < g->p->buffer_count; i++)
        if (is_scratch(g, i))
            fprintf(g->out, "    float *%s = %s_scratch;\n", g->p->buffers[i].name, g->p->buffers[i].name);
}

const char *generate_c(const program *p, FILE *out) {
    generator g = {.p = p, .out = out, .lane = NONE};
    int number = 0;
    place_buffers(&g);
    if (!g.error)
        g.error = check_locals(&g);
    if (g.error)
        return g.error;
    fputs(kernel_prelude, out);
    for (int n = p->nodes[0].child; n != NONE && !g.error; n = p->nodes[n].next)
        print_part(&g, number++, n);
    print_scratch(&g);
    fputs("void kernel(float *const *buffers);\nvoid kernel(float *const *buffers) {\n", out);
    print_arguments(&g);
    number = 0;
    for (int n = p->nodes[0].child; n != NONE; n = p->nodes[n].next, number++) {
        const bool parallel = p->nodes[n].block == NONE && p->nodes[n].kind == LOOP_PARALLEL;
        if (parallel)
            fprintf(out, "    _Pragma(\"omp parallel for\")\n    for (int i = 0; i < %d; i++)\n    ",
                    loop_extent(p, n));
        fprintf(out, "    part_%d(", number);
        print_parameters(&g, "");
        fputs(parallel ? ", i);\n" : ");\n", out);
    }
    fputs("}\n", out);
    return g.error;
}

bool can_generate_c(const program *p) {
    FILE *nowhere = fopen("/dev/null", "w");
    if (!nowhere)
        return false;
    const char *error = generate_c(p, nowhere);
    (void)fclose(nowhere);
    return !error;
}
