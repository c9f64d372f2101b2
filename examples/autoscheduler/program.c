/* Programs: affine expressions, building, and what can be asked about the loop tree. */
#include "program.h"
#include <string.h>

/* ---- Affine expressions ------------------------------------------------------------------------------------------ */

affine affine_constant(int value) {
    return (affine){.constant = value};
}

affine affine_variable(int v) {
    affine result = {.count = 1};
    result.terms[0].variable = (short)v;
    result.terms[0].factor = 1;
    return result;
}

static void add_term(affine *sum, short v, int factor, bool *full) {
    if (factor == 0)
        return;
    for (int i = 0; i < sum->count; i++)
        if (sum->terms[i].variable == v) {
            sum->terms[i].factor += factor;
            if (sum->terms[i].factor == 0)
                sum->terms[i] = sum->terms[--sum->count];
            return;
        }
    if (sum->count == MAX_TERMS) {
        *full = true;
        return;
    }
    sum->terms[sum->count].variable = v;
    sum->terms[sum->count++].factor = factor;
}

void affine_add(affine *sum, const affine *other, int factor, bool *full) {
    sum->constant += factor * other->constant;
    for (int i = 0; i < other->count; i++)
        add_term(sum, other->terms[i].variable, factor * other->terms[i].factor, full);
}

affine affine_substitute(const affine *index, const affine *values, bool *full) {
    affine result = affine_constant(index->constant);
    for (int i = 0; i < index->count; i++)
        affine_add(&result, &values[index->terms[i].variable], index->terms[i].factor, full);
    return result;
}

/* ---- Building ---------------------------------------------------------------------------------------------------- */

static void set_name(char *name, const char *text) {
    (void)snprintf(name, NAME_SIZE, "%s", text);
}

int add_buffer(program *p, const char *name, buffer_kind kind, int dims, const int *shape) {
    if (p->buffer_count == MAX_BUFFERS || dims > MAX_DIMS)
        return NONE;
    buffer *b = &p->buffers[p->buffer_count];
    set_name(b->name, name);
    b->kind = kind;
    b->dims = dims;
    memcpy(b->shape, shape, (size_t)dims * sizeof *shape);
    return p->buffer_count++;
}

int add_expression(program *p, operation op, int left, int right) {
    if (p->expression_count == MAX_EXPRESSIONS)
        return NONE;
    p->expressions[p->expression_count] = (expression){.op = op, .left = left, .right = right, .access = NONE};
    return p->expression_count++;
}

int add_constant(program *p, float value) {
    const int e = add_expression(p, OP_CONSTANT, NONE, NONE);
    if (e != NONE)
        p->expressions[e].value = value;
    return e;
}

int add_load(program *p, operation op, int from) {
    const int e = p->access_count < MAX_ACCESSES ? add_expression(p, op, NONE, NONE) : NONE;
    if (e == NONE)
        return NONE;
    element *a = &p->accesses[p->access_count];
    a->buffer = from;
    for (int d = 0; d < MAX_DIMS; d++)
        a->index[d] = affine_constant(0);
    p->expressions[e].access = p->access_count++;
    return e;
}

static int new_node(program *p, int b) {
    if (p->node_count == MAX_NODES)
        return NONE;
    p->nodes[p->node_count] = (node){.parent = NONE, .child = NONE, .next = NONE, .block = b};
    return p->node_count++;
}

/* The link that points to a child of `parent`, or where the one behind the last child would go. */
static int *link_to(program *p, int parent, int child) {
    int *link = &p->nodes[parent].child;
    while (*link != child && *link != NONE)
        link = &p->nodes[*link].next;
    return link;
}

bool add_nest(program *p, int b, int parent, int before, const affine *offsets, const int *extents) {
    block *k = &p->blocks[b];
    int *link = link_to(p, parent, before);
    for (int i = 0; i <= k->iters; i++) {
        const bool last = i == k->iters;
        if (!last) {
            k->iter[i].binding = offsets ? offsets[i] : affine_constant(0);
            if (extents[i] == 1)
                continue;
        }
        const int n = last && k->node != NONE ? k->node : new_node(p, last ? b : NONE);
        if (n == NONE || (!last && p->variable_count == MAX_VARIABLES))
            return false;
        p->nodes[n].parent = parent;
        p->nodes[n].next = *link;
        *link = n;
        link = &p->nodes[n].child;
        parent = n;
        if (last) {
            k->node = n;
            break;
        }
        const int v = p->variable_count++;
        variable *w = &p->variables[v];
        set_name(w->name, k->iter[i].name);
        w->extent = extents[i];
        w->reduction = k->iter[i].reduction;
        w->whole = true;
        w->axis = (w->reduction ? k->iters : k->spatial) - 1 - i;
        w->level = 0;
        p->nodes[n].count = 1;
        p->nodes[n].variables[0] = v;
        bool full = false;
        const affine term = affine_variable(v);
        affine_add(&k->iter[i].binding, &term, 1, &full);
        if (full)
            return false;
    }
    return true;
}

int add_block(program *p, const char *name, int output, combiner combine, int body, int iters, const char *const *names,
              const int *extents) {
    if (p->block_count == MAX_BLOCKS || iters > MAX_ITERS || output == NONE || body == NONE)
        return NONE;
    if (p->node_count == 0)
        (void)new_node(p, NONE); /* the root */
    block *k = &p->blocks[p->block_count];
    set_name(k->name, name);
    k->role = "other";
    k->number = p->block_count;
    k->iters = iters;
    k->spatial = p->buffers[output].dims;
    k->output = output;
    k->combine = combine;
    k->body = body;
    k->node = NONE;
    for (int i = 0; i < iters; i++) {
        set_name(k->iter[i].name, names[i]);
        k->iter[i].extent = extents[i];
        k->iter[i].reduction = i >= k->spatial;
    }
    return add_nest(p, p->block_count, 0, NONE, NULL, extents) ? p->block_count++ : NONE;
}

/* ---- Looking ----------------------------------------------------------------------------------------------------- */

int loop_extent(const program *p, int loop) {
    int extent = 1;
    for (int i = 0; i < p->nodes[loop].count; i++)
        extent *= p->variables[p->nodes[loop].variables[i]].extent;
    return extent;
}

bool loop_reduces(const program *p, int loop) {
    for (int i = 0; i < p->nodes[loop].count; i++)
        if (p->variables[p->nodes[loop].variables[i]].reduction)
            return true;
    return false;
}

int loops_of(const program *p, int inner, int *loops) {
    int count = 0;
    for (int n = p->nodes[inner].parent; n > 0; n = p->nodes[n].parent)
        count++;
    int at = count;
    for (int n = p->nodes[inner].parent; n > 0; n = p->nodes[n].parent)
        if (--at < MAX_NEST)
            loops[at] = n;
    return count < MAX_NEST ? count : MAX_NEST;
}

bool is_inside(const program *p, int n, int loop) {
    while (n != NONE && n != loop)
        n = p->nodes[n].parent;
    return n == loop;
}

int producer_of(const program *p, int made) {
    for (int b = 0; b < p->block_count; b++)
        if (p->blocks[b].output == made && p->blocks[b].node != NONE)
            return b;
    return NONE;
}

bool visit_loads(const program *p, int e, bool (*visit)(void *user, const element *a), void *user) {
    if (e == NONE)
        return true;
    const expression *x = &p->expressions[e];
    if (x->op == OP_LOAD || x->op == OP_LOAD_PADDED)
        return visit(user, &p->accesses[x->access]);
    return visit_loads(p, x->left, visit, user) && visit_loads(p, x->right, visit, user);
}

static bool is_another(void *user, const element *a) {
    return a->buffer != *(const int *)user;
}

bool block_loads(const program *p, int b, int from) {
    return !visit_loads(p, p->blocks[b].body, is_another, &from);
}

affine access_over_loops(const program *p, int b, const element *a, int dim, bool *full) {
    affine result = affine_constant(a->index[dim].constant);
    for (int i = 0; i < a->index[dim].count; i++)
        affine_add(&result, &p->blocks[b].iter[a->index[dim].terms[i].variable].binding, a->index[dim].terms[i].factor,
                   full);
    return result;
}

bool limit_of(const program *p, int b, int limit, affine *value, int *extent, bool *full) {
    const block *k = &p->blocks[b];
    if (limit < k->iters) {
        *value = k->iter[limit].binding;
        *extent = k->iter[limit].extent;
        return true;
    }
    const element guard = {.index = {k->guard}};
    *extent = k->guard_extent;
    if (*extent)
        *value = access_over_loops(p, b, &guard, 0, full);
    return *extent != 0;
}

element output_access(const program *p, int b) {
    element a = {.buffer = p->blocks[b].output};
    for (int d = 0; d < p->blocks[b].spatial; d++)
        a.index[d] = affine_variable(d);
    return a;
}

void region_of(const program *p, int b, const element *a, int loop, region *out, bool *full) {
    bool outside[MAX_VARIABLES] = {false};
    for (int n = loop; n > 0; n = p->nodes[n].parent)
        for (int i = 0; i < p->nodes[n].count; i++)
            outside[p->nodes[n].variables[i]] = true;
    for (int d = 0; d < p->buffers[a->buffer].dims; d++) {
        const affine index = access_over_loops(p, b, a, d, full);
        out->offset[d] = affine_constant(index.constant);
        out->extent[d] = 1;
        for (int i = 0; i < index.count; i++) {
            const int v = index.terms[i].variable, factor = index.terms[i].factor;
            if (outside[v])
                add_term(&out->offset[d], (short)v, factor, full);
            else
                out->extent[d] += factor * (p->variables[v].extent - 1);
        }
    }
}
