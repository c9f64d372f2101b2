/* Prints a program as TensorIR text, as TVM's printer writes it: what the model's encoder reads. */
#include "program.h"
#include <stdlib.h>
#include <string.h>

typedef struct printer {
    const program *p;
    FILE *out;
} printer;

static void indent(const printer *t, int depth) {
    fprintf(t->out, "%*s", 4 * depth, "");
}

static void print_shape(const printer *t, const buffer *b) {
    fputc('(', t->out);
    for (int d = 0; d < b->dims; d++)
        fprintf(t->out, d + 1 < b->dims ? "%d, " : b->dims == 1 ? "%d,)" : "%d)", b->shape[d]);
}

/* The name of a loop: that of its variable, or those of the fused ones. */
static void loop_name(const program *p, int loop, char *name, size_t size) {
    size_t length = 0;
    name[0] = 0;
    for (int i = 0; i < p->nodes[loop].count; i++) {
        const int n = snprintf(name + length, size - length, "%s%s", i ? "_" : "",
                               p->variables[p->nodes[loop].variables[i]].name);
        length = n > 0 && length + (size_t)n < size ? length + (size_t)n : size - 1;
    }
    if (p->nodes[loop].count > 1)
        (void)snprintf(name + length, size - length, "_fused");
}

/* The loop of a variable, and what a fused one has inside of it. */
static int loop_of(const program *p, int v, int *inside, int *outermost) {
    for (int n = 1; n < p->node_count; n++)
        for (int i = 0; i < p->nodes[n].count; i++)
            if (p->nodes[n].block == NONE && p->nodes[n].variables[i] == v) {
                *inside = 1;
                *outermost = i == 0;
                for (int j = i + 1; j < p->nodes[n].count; j++)
                    *inside *= p->variables[p->nodes[n].variables[j]].extent;
                return n;
            }
    return NONE;
}

static void print_variable(const printer *t, int v) {
    char name[MAX_FUSED * NAME_SIZE];
    int inside = 1, outermost = 1;
    const int loop = loop_of(t->p, v, &inside, &outermost);
    if (loop == NONE || t->p->nodes[loop].count == 1) {
        fputs(t->p->variables[v].name, t->out);
        return;
    }
    loop_name(t->p, loop, name, sizeof name);
    fputs(name, t->out);
    if (!outermost)
        fprintf(t->out, " %% %d", inside * t->p->variables[v].extent);
    if (inside > 1)
        fprintf(t->out, " // %d", inside);
}

/* `names`: iterators, or NULL for loop variables. */
static void print_affine(const printer *t, const affine *index, const iterator *names) {
    for (int i = 0; i < index->count; i++) {
        const int factor = index->terms[i].factor;
        fputs(i ? " + " : "", t->out);
        if (names)
            fprintf(t->out, "v_%s", names[index->terms[i].variable].name);
        else
            print_variable(t, index->terms[i].variable);
        if (factor != 1)
            fprintf(t->out, " * %d", factor);
    }
    if (index->count == 0)
        fprintf(t->out, "%d", index->constant);
    else if (index->constant)
        fprintf(t->out, index->constant > 0 ? " + %d" : " - %d", abs(index->constant));
}

static void print_access(const printer *t, const element *a, const iterator *names) {
    const buffer *b = &t->p->buffers[a->buffer];
    fprintf(t->out, "%s[", b->name);
    for (int d = 0; d < b->dims; d++) {
        fputs(d ? ", " : "", t->out);
        print_affine(t, &a->index[d], names);
    }
    fputc(']', t->out);
}

static void print_expression(const printer *t, int e, const iterator *names) {
    static const char *const infix[] = {
        [OP_ADD] = " + ", [OP_SUBTRACT] = " - ", [OP_MULTIPLY] = " * ", [OP_DIVIDE] = " / "};
    const expression *x = &t->p->expressions[e];
    const element *a = x->access == NONE ? NULL : &t->p->accesses[x->access];
    switch (x->op) {
    case OP_CONSTANT:
        fprintf(t->out, "T.float32(%.9g)", (double)x->value);
        break;
    case OP_LOAD:
        print_access(t, a, names);
        break;
    case OP_LOAD_PADDED:
        fputs("T.if_then_else(", t->out);
        for (int d = 0, conditions = 0; d < t->p->buffers[a->buffer].dims; d++)
            if (a->index[d].constant || a->index[d].count > 1) {
                fputs(conditions++ ? " and 0 <= " : "0 <= ", t->out);
                print_affine(t, &a->index[d], names);
                fputs(" and ", t->out);
                print_affine(t, &a->index[d], names);
                fprintf(t->out, " < %d", t->p->buffers[a->buffer].shape[d]);
            }
        fputs(", ", t->out);
        print_access(t, a, names);
        fputs(", T.float32(0.0))", t->out);
        break;
    case OP_EXP:
    case OP_RSQRT:
        fputs(x->op == OP_EXP ? "T.exp(" : "T.rsqrt(", t->out);
        print_expression(t, x->left, names);
        fputc(')', t->out);
        break;
    case OP_ADD:
    case OP_SUBTRACT:
    case OP_MULTIPLY:
    case OP_DIVIDE:
        fputc('(', t->out);
        print_expression(t, x->left, names);
        fputs(infix[x->op], t->out);
        print_expression(t, x->right, names);
        fputc(')', t->out);
        break;
    }
}

typedef struct reads {
    const printer *t;
    const iterator *names;
    int count;
} reads;

static bool print_read(void *user, const element *a) {
    reads *r = user;
    fputs(r->count++ ? ", " : "", r->t->out);
    print_access(r->t, a, r->names);
    return true;
}

/* Iterators that are one loop each are written together, as TVM does. */
static void print_iterators(const printer *t, const block *k, int depth) {
    bool plain = k->iters > 1;
    for (int i = 0; i < k->iters; i++)
        plain = plain && k->iter[i].binding.count == 1 && k->iter[i].binding.constant == 0 &&
                k->iter[i].binding.terms[0].factor == 1;
    if (plain) {
        indent(t, depth);
        for (int i = 0; i < k->iters; i++)
            fprintf(t->out, "%sv_%s", i ? ", " : "", k->iter[i].name);
        fputs(" = T.axis.remap(\"", t->out);
        for (int i = 0; i < k->iters; i++)
            fputc(k->iter[i].reduction ? 'R' : 'S', t->out);
        fputs("\", [", t->out);
        for (int i = 0; i < k->iters; i++) {
            fputs(i ? ", " : "", t->out);
            print_affine(t, &k->iter[i].binding, NULL);
        }
        fputs("])\n", t->out);
        return;
    }
    for (int i = 0; i < k->iters; i++) {
        indent(t, depth);
        fprintf(t->out, "v_%s = T.axis.%s(%d, ", k->iter[i].name, k->iter[i].reduction ? "reduce" : "spatial",
                k->iter[i].extent);
        print_affine(t, &k->iter[i].binding, NULL);
        fputs(")\n", t->out);
    }
}

/* Where the block runs, if loops reach further. */
static void print_limits(const printer *t, int b, int depth) {
    int count = 0;
    for (int i = 0; i <= t->p->blocks[b].iters; i++) {
        affine value;
        int extent, most = 0;
        bool full = false;
        if (!limit_of(t->p, b, i, &value, &extent, &full) || full)
            continue;
        for (int j = 0; j < value.count; j++)
            most += value.terms[j].factor * (t->p->variables[value.terms[j].variable].extent - 1);
        if (value.constant + most < extent)
            continue;
        if (count++)
            fputs(" and ", t->out);
        else {
            indent(t, depth);
            fputs("T.where(", t->out);
        }
        print_affine(t, &value, NULL);
        fprintf(t->out, " < %d", extent);
    }
    if (count)
        fputs(")\n", t->out);
}

static void print_block(const printer *t, int b, int depth) {
    const block *k = &t->p->blocks[b];
    const element output = output_access(t->p, b);
    reads r = {.t = t, .names = k->iter};
    indent(t, depth);
    fprintf(t->out, "with T.sblock(\"%s\"):\n", k->name);
    print_iterators(t, k, ++depth);
    print_limits(t, b, depth);
    indent(t, depth);
    fputs("T.reads(", t->out);
    (void)visit_loads(t->p, k->body, print_read, &r);
    fputs(")\n", t->out);
    indent(t, depth);
    fputs("T.writes(", t->out);
    print_access(t, &output, k->iter);
    fputs(")\n", t->out);
    if (k->combine != COMBINE_NONE) {
        indent(t, depth);
        fputs("with T.init():\n", t->out);
        indent(t, depth + 1);
        print_access(t, &output, k->iter);
        fputs(k->combine == COMBINE_SUM ? " = T.float32(0.0)\n" : " = T.float32(-3.4028234663852886e+38)\n", t->out);
    }
    indent(t, depth);
    print_access(t, &output, k->iter);
    fputs(k->combine == COMBINE_MAX ? " = T.max(" : " = ", t->out);
    if (k->combine != COMBINE_NONE) {
        print_access(t, &output, k->iter);
        fputs(k->combine == COMBINE_MAX ? ", " : " + ", t->out);
    }
    print_expression(t, k->body, k->iter);
    fputs(k->combine == COMBINE_MAX ? ")\n" : "\n", t->out);
}

static bool is_plain(const program *p, int n) {
    return n != NONE && p->nodes[n].block == NONE && p->nodes[n].kind == LOOP_SERIAL && p->nodes[n].count == 1;
}

/* The loop that a serial one shares a T.grid with, as its only child. */
static int grid_next(const program *p, int n) {
    const int child = p->nodes[n].child;
    return is_plain(p, n) && is_plain(p, child) && p->nodes[child].next == NONE ? child : NONE;
}

static void print_children(const printer *t, int parent, int depth);

static void print_node(const printer *t, int n, int depth) {
    static const char *const kinds[] = {"range", "T.parallel", "T.vectorized", "T.unroll"};
    char name[MAX_FUSED * NAME_SIZE];
    if (t->p->nodes[n].block != NONE) {
        print_block(t, t->p->nodes[n].block, depth);
        return;
    }
    indent(t, depth);
    loop_name(t->p, n, name, sizeof name);
    fprintf(t->out, "for %s", name);
    if (grid_next(t->p, n) == NONE) {
        fprintf(t->out, " in %s(%d):\n", kinds[t->p->nodes[n].kind], loop_extent(t->p, n));
        print_children(t, n, depth + 1);
        return;
    }
    int last = n;
    while ((last = grid_next(t->p, last)) != NONE) {
        loop_name(t->p, last, name, sizeof name);
        fprintf(t->out, ", %s", name);
    }
    fprintf(t->out, " in T.grid(%d", loop_extent(t->p, n));
    for (int inner = grid_next(t->p, last = n); inner != NONE; inner = grid_next(t->p, last = inner))
        fprintf(t->out, ", %d", loop_extent(t->p, inner));
    fputs("):\n", t->out);
    print_children(t, last, depth + 1);
}

static void print_children(const printer *t, int parent, int depth) {
    for (int n = t->p->nodes[parent].child; n != NONE; n = t->p->nodes[n].next)
        print_node(t, n, depth);
}

void print_program(const program *p, FILE *out) {
    const printer t = {p, out};
    fputs("# from tvm.script import tir as T\n\n@T.prim_func\ndef main(", out);
    for (int i = 0, parameters = 0; i < p->buffer_count; i++)
        if (p->buffers[i].kind != BUFFER_INTERMEDIATE) {
            fprintf(out, "%s%s: T.Buffer(", parameters++ ? ", " : "", p->buffers[i].name);
            print_shape(&t, &p->buffers[i]);
            fputs(", \"float32\")", out);
        }
    fputs("):\n    T.func_attr({\"tir.noalias\": True})\n    # with T.sblock(\"root\"):\n", out);
    for (int i = 0; i < p->buffer_count; i++)
        if (p->buffers[i].kind == BUFFER_INTERMEDIATE && producer_of(p, i) != NONE) {
            fprintf(out, "    %s = T.sblock_alloc_buffer(", p->buffers[i].name);
            print_shape(&t, &p->buffers[i]);
            fputs(")\n", out);
        }
    print_children(&t, 0, 1);
}

char *program_text(const program *p) {
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (!out)
        return NULL;
    print_program(p, out);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
