/*
 * C from a loop tree. Every child of the root becomes a function of its own, so that `restrict` holds inside of
 * parallel loops too. Intermediate buffers are cut down to what the loop around all their uses needs, and become local
 * arrays of its body. Unrolled loops are written out, and vectorized ones are written as vectors of the compiler's
 * vector extension, what is left as narrower ones and numbers: with constant indices, local arrays turn into registers.
 * Where loops reach beyond an iterator's extent, the iterations that all run are a loop, and the others are written out
 * behind it.
 */
#include "codegen.h"
#include "generator.h"
#include "prelude.h"
#include <string.h>

enum {
    MAX_LOCAL_BYTES = 192 * 1024, /* of all local arrays of a function: threads have small stacks */
    MAX_UNROLLED_CHUNKS = 16,     /* vectors of one loop that are written out */
    MAX_WIDTH = 16,               /* numbers in a vector */
    MIN_WIDTH = 4
};

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

/* ---- Loops ------------------------------------------------------------------------------------------------------- */

/* Writes what is in a loop, whose variable has its value. `initial`: the block whose initial values are written, or
 * NONE for the computation itself. */
typedef void inside(generator *g, int loop, int initial);

/* for (...) over a loop of one variable from `begin` to `end`, with step `step`. */
static void print_for(generator *g, int loop, int begin, int end, int step, int initial, inside *body) {
    const int v = g->p->nodes[loop].variables[0];
    const char *name = g->p->variables[v].name;
    line_begin(g);
    fprintf(g->out, "for (int %s = %d; %s < %d; %s += %d) {\n", name, begin, name, end, name, step);
    g->depth++;
    g->values[v].most = end - 1;
    body(g, loop, initial);
    g->values[v].most = g->p->variables[v].extent - 1;
    g->depth--;
    line_begin(g);
    fputs("}\n", g->out);
}

/* The body at one value of the loop's variable. */
static void print_at(generator *g, int loop, int number, int initial, inside *body) {
    value *v = &g->values[g->p->nodes[loop].variables[0]];
    v->constant = true;
    v->number = number;
    body(g, loop, initial);
    v->constant = false;
}

/* The part of a vectorized loop from `at` to `end`: as many of the widest vectors as fit, then narrower ones, then
 * numbers. */
static void print_vectors(generator *g, int loop, int at, int end, int initial, inside *body) {
    const int v = g->p->nodes[loop].variables[0];
    if ((end - at) / MAX_WIDTH > MAX_UNROLLED_CHUNKS) {
        const int begin = at;
        at = end - (end - at) % MAX_WIDTH;
        g->lane = v;
        g->width = MAX_WIDTH;
        print_for(g, loop, begin, at, MAX_WIDTH, initial, body);
    }
    for (int width = MAX_WIDTH; at < end && !g->error; width = width == MIN_WIDTH ? 1 : width / 2)
        for (; end - at >= width && !g->error; at += width) {
            g->lane = width == 1 ? NONE : v;
            g->width = width;
            print_at(g, loop, at, initial, body);
        }
    g->lane = NONE;
}

/* Where the columns of a padded load begin and end, in iterations of a vectorized loop of nothing but it; false when
 * that is not known here. A block that only copies is cut there, so that no vector crosses an edge. */
static bool edges_of(generator *g, int loop, int *edges) {
    const int v = g->p->nodes[loop].variables[0], b = g->p->nodes[g->p->nodes[loop].child].block;
    const expression *x = &g->p->expressions[g->p->blocks[b].body];
    if (x->op != OP_LOAD_PADDED)
        return false;
    const element *a = &g->p->accesses[x->access];
    const int last = g->p->buffers[a->buffer].dims - 1, size = g->p->buffers[a->buffer].shape[last];
    bool full = false;
    const affine index = access_over_loops(g->p, b, a, last, &full), column = settle(g, &index);
    if (full || column.count != 1 || column.terms[0].variable != v)
        return false;
    const int factor = column.terms[0].factor;
    edges[0] = (-column.constant + factor - 1) / factor;
    edges[1] = (size - column.constant + factor - 1) / factor;
    return column.constant <= 0;
}

/* The iterations of a vectorized loop below `end`. */
static void print_with_vectors(generator *g, int loop, int end, int initial, inside *body) {
    const int v = g->p->nodes[loop].variables[0], child = g->p->nodes[loop].child;
    int edges[2], at = 0;
    if (g->p->nodes[child].next != NONE || !vectors_fit(g, g->p->nodes[child].block, v)) {
        line_begin(g);
        fputs("_Pragma(\"GCC ivdep\")\n", g->out);
        print_for(g, loop, 0, end, 1, initial, body);
        return;
    }
    if (edges_of(g, loop, edges))
        for (int i = 0; i < 2; i++)
            if (edges[i] > at && edges[i] < end) {
                print_vectors(g, loop, at, edges[i], initial, body);
                at = edges[i];
            }
    print_vectors(g, loop, at, end, initial, body);
}

/* A loop other than a parallel one. */
static void print_loop(generator *g, int loop, int initial, inside *body) {
    const node *n = &g->p->nodes[loop];
    const span s = span_of(g, loop, n->variables[0], initial);
    int i = 0;
    if (loop_extent(g->p, loop) == 1 || n->kind == LOOP_UNROLLED) {
        for (; i < s.some && !g->error; i++)
            print_at(g, loop, i, initial, body);
    } else if (n->kind == LOOP_VECTORIZED)
        print_with_vectors(g, loop, s.some, initial, body);
    else {
        if (s.all > 0)
            print_for(g, loop, 0, i = s.all, 1, initial, body);
        for (; i < s.some && !g->error; i++) {
            line_begin(g);
            fputs("{\n", g->out);
            g->depth++;
            print_at(g, loop, i, initial, body);
            g->depth--;
            line_begin(g);
            fputs("}\n", g->out);
        }
    }
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

/* The body of a parallel loop from its variable number i on: once for where all of it runs, and again for each of the
 * other iterations. */
static void print_iteration(generator *g, int loop, int i) {
    const node *n = &g->p->nodes[loop];
    if (i == n->count) {
        print_inside(g, loop, NONE);
        return;
    }
    const int v = n->variables[i], extent = g->p->variables[v].extent;
    const span s = span_of(g, loop, v, NONE);
    value *known = &g->values[v];
    if (known->constant || s.all == extent || s.some == 0) {
        if (s.some > 0)
            print_iteration(g, loop, i + 1);
        return;
    }
    line_begin(g);
    fprintf(g->out, "if (%s < %d) {\n", g->p->variables[v].name, s.all);
    g->depth++;
    known->most = s.all - 1;
    if (s.all > 0)
        print_iteration(g, loop, i + 1);
    known->most = extent - 1;
    for (int number = s.all; number < s.some && !g->error; number++) {
        g->depth--;
        line_begin(g);
        fprintf(g->out, "} else if (%s == %d) {\n", g->p->variables[v].name, number);
        g->depth++;
        known->constant = true;
        known->number = number;
        print_iteration(g, loop, i + 1);
        known->constant = false;
    }
    g->depth--;
    line_begin(g);
    fputs("}\n", g->out);
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
            if (v->extent == 1) {
                g->values[loop->variables[i]].constant = true;
                continue;
            }
            line_begin(g);
            fprintf(g->out, "const int %s = iteration / %d %% %d;\n", v->name, inner, v->extent);
            inner *= v->extent;
        }
        if (inner == 1)
            fputs("    (void)iteration;\n", g->out);
        print_iteration(g, n, 0);
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
    for (int v = 0; v < p->variable_count; v++)
        g.values[v].most = p->variables[v].extent - 1;
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
