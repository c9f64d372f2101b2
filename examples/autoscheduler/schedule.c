/* Transformations of loops and blocks. Their canonical actions are put together in actions.c. */
#include "schedule.h"
#include "actions.h"
#include <string.h>

void schedule_begin(schedule *s, const program *p) {
    s->p = *p;
    s->error = NULL;
    s->action_count = s->argument_count = 0;
}

uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size) {
    for (const unsigned char *at = bytes; size > 0; size--, at++)
        hash = (hash ^ *at) * 1099511628211u;
    return hash;
}

uint64_t schedule_key(const schedule *s) {
    uint64_t hash = HASH_BEGIN;
    for (int i = 0; i < s->action_count; i++) {
        const foreloop_action *a = &s->actions[i];
        hash = hash_bytes(hash, a->kind, strlen(a->kind) + 1);
        for (size_t j = 0; j < a->argument_count; j++) {
            const foreloop_argument *x = &a->arguments[j];
            hash = hash_bytes(hash, x->name, strlen(x->name) + 1);
            hash = x->text ? hash_bytes(hash, x->text, strlen(x->text) + 1)
                           : hash_bytes(hash, &x->number, sizeof x->number);
        }
    }
    return hash;
}

static bool check(schedule *s, bool possible, const char *error) {
    if (!s->error && !possible)
        s->error = error;
    return !s->error;
}

/* stem_suffix, the stem cut where there is no room. */
static void derive_name(char *name, const char *stem, const char *suffix) {
    const size_t tail = strlen(suffix), room = NAME_SIZE - 2 - tail;
    const size_t length = strlen(stem) < room ? strlen(stem) : room;
    memmove(name, stem, length);
    name[length] = '_';
    memcpy(name + length + 1, suffix, tail + 1);
}

/* ---- The tree ---------------------------------------------------------------------------------------------------- */

static int *link_of(program *p, int n) {
    int *link = &p->nodes[p->nodes[n].parent].child;
    while (*link != n)
        link = &p->nodes[*link].next;
    return link;
}

/* Hands the children of one node to another. */
static void adopt(program *p, int parent, int children) {
    p->nodes[parent].child = children;
    for (int n = children; n != NONE; n = p->nodes[n].next)
        p->nodes[n].parent = parent;
}

/* Takes a block out of the tree, with the loops that have nothing else inside. */
static void detach(program *p, int b) {
    int n = p->blocks[b].node;
    for (;;) {
        const int parent = p->nodes[n].parent;
        *link_of(p, n) = p->nodes[n].next;
        p->nodes[n].parent = p->nodes[n].next = NONE;
        p->nodes[n].count = 0;
        if (parent == 0 || p->nodes[parent].child != NONE)
            return;
        n = parent;
    }
}

/* The child of `parent` that a node lies in. */
static int child_towards(const program *p, int parent, int n) {
    while (n != NONE && p->nodes[n].parent != parent)
        n = p->nodes[n].parent;
    return n;
}

/* ---- Loops ------------------------------------------------------------------------------------------------------- */

/* Replaces a variable by sum of factor x variable in all bindings. */
static bool rebind(program *p, int old, const affine *value) {
    bool full = false;
    for (int b = 0; b < p->block_count; b++)
        for (int i = 0; i < p->blocks[b].iters; i++) {
            affine *binding = &p->blocks[b].iter[i].binding;
            for (int t = 0; t < binding->count; t++)
                if (binding->terms[t].variable == old) {
                    const int factor = binding->terms[t].factor;
                    binding->terms[t] = binding->terms[--binding->count];
                    affine_add(binding, value, factor, &full);
                    break;
                }
        }
    return !full;
}

/* Whether all of an iterator is what a variable runs over, wherever it is bound. */
static bool is_all_of_axis(const program *p, int v) {
    for (int b = 0; b < p->block_count; b++)
        for (int i = 0; i < p->blocks[b].iters; i++) {
            const iterator *it = &p->blocks[b].iter[i];
            for (int t = 0; t < it->binding.count; t++)
                if (it->binding.terms[t].variable == v &&
                    (it->binding.count > 1 || it->binding.constant || it->extent != p->variables[v].extent))
                    return false;
        }
    return true;
}

void split(schedule *s, int loop, const int *factors, const int *levels, int parts, int *loops) {
    program *p = &s->p;
    if (!check(s, loop > 0 && p->nodes[loop].count == 1 && p->nodes[loop].kind == LOOP_SERIAL,
               "split: not a plain loop") ||
        !check(s, p->variable_count + parts <= MAX_VARIABLES && p->node_count + parts <= MAX_NODES, "split: no room"))
        return;
    const int old = p->nodes[loop].variables[0];
    const variable axis = p->variables[old];
    const int children = p->nodes[loop].child;
    affine value = affine_constant(0);
    int inside = 1;
    bool full = false;
    for (int i = 0; i < parts; i++)
        inside *= factors[i];
    if (!check(s, inside == axis.extent || (inside > axis.extent && is_all_of_axis(p, old)),
               "split: factors do not make up the extent"))
        return;
    for (int i = 0, parent = NONE; i < parts; parent = loops[i++]) {
        const int v = p->variable_count++;
        variable *w = &p->variables[v];
        *w = axis;
        derive_name(w->name, axis.name, (const char[]){(char)('0' + i), 0});
        w->extent = factors[i];
        w->whole = false;
        w->level = levels ? levels[i] : i;
        loops[i] = i ? p->node_count++ : loop;
        if (i) {
            p->nodes[loops[i]] = (node){.parent = parent, .child = NONE, .next = NONE, .block = NONE, .count = 1};
            p->nodes[parent].child = loops[i];
        }
        p->nodes[loops[i]].variables[0] = v;
        inside /= factors[i];
        const affine term = affine_variable(v);
        affine_add(&value, &term, inside, &full);
    }
    adopt(p, loops[parts - 1], children);
    if (check(s, rebind(p, old, &value) && !full, "split: no room"))
        action_split(s, &axis, factors, parts);
}

void reorder(schedule *s, int b, const int *loops, int count) {
    program *p = &s->p;
    int path[MAX_NEST], listed = 0, top = NONE, bottom = NONE;
    const int depth = loops_of(p, p->blocks[b].node, path);
    int order[MAX_NEST];
    for (int i = 0; i < depth; i++) {
        order[i] = path[i];
        for (int j = 0; j < count; j++)
            if (loops[j] == path[i]) {
                order[i] = loops[listed++];
                top = top == NONE ? i : top;
                bottom = i;
            }
    }
    if (!check(s, listed == count && count > 0, "reorder: loops that are not around the block"))
        return;
    for (int i = top; i < bottom; i++)
        if (!check(s, p->nodes[path[i + 1]].next == NONE && p->nodes[path[i]].child == path[i + 1],
                   "reorder: something else lies between the loops"))
            return;
    const int children = p->nodes[path[bottom]].child, parent = p->nodes[path[top]].parent,
              next = p->nodes[path[top]].next;
    *link_of(p, path[top]) = order[top];
    p->nodes[order[top]].parent = parent;
    p->nodes[order[top]].next = next;
    for (int i = top; i < bottom; i++) {
        p->nodes[order[i]].child = order[i + 1];
        p->nodes[order[i + 1]].parent = order[i];
        p->nodes[order[i + 1]].next = NONE;
    }
    adopt(p, order[bottom], children);
    action_reorder(s, b, count);
}

int fuse(schedule *s, const int *loops, int count) {
    program *p = &s->p;
    node *first = &p->nodes[loops[0]];
    for (int i = 1; i < count; i++) {
        const node *n = &p->nodes[loops[i]];
        if (!check(s, p->nodes[loops[i - 1]].child == loops[i] && n->next == NONE, "fuse: loops are not adjacent") ||
            !check(s, first->count + n->count <= MAX_FUSED, "fuse: no room"))
            return loops[0];
        memcpy(first->variables + first->count, n->variables, (size_t)n->count * sizeof *n->variables);
        first->count += n->count;
    }
    if (s->error)
        return loops[0];
    adopt(p, loops[0], p->nodes[loops[count - 1]].child);
    for (int i = 1; i < count; i++)
        p->nodes[loops[i]] = (node){.parent = NONE, .child = NONE, .next = NONE, .block = NONE};
    action_fuse(s, loops[0], count);
    return loops[0];
}

void annotate(schedule *s, int loop, loop_kind kind) {
    node *n = &s->p.nodes[loop];
    if (!check(s, n->kind == LOOP_SERIAL, "annotate: the loop has an annotation") ||
        !check(s, kind != LOOP_PARALLEL || (n->parent == 0 && !loop_reduces(&s->p, loop)),
               "parallel: not an outermost spatial loop") ||
        !check(s, kind != LOOP_VECTORIZED || s->p.nodes[n->child].block != NONE, "vectorize: not an innermost loop"))
        return;
    n->kind = kind;
    action_loop_kind(s, loop);
}

/* ---- Blocks ------------------------------------------------------------------------------------------------------ */

/* A new block, a copy of b for the caller to change, named b's name + suffix, outside of the tree. */
static int copy_block(schedule *s, int b, const char *suffix, const char *role) {
    program *p = &s->p;
    if (!check(s, p->block_count < MAX_BLOCKS && p->buffer_count < MAX_BUFFERS, "no room for a block"))
        return NONE;
    block *k = &p->blocks[p->block_count];
    *k = p->blocks[b];
    derive_name(k->name, k->name, suffix);
    k->role = role;
    k->node = NONE;
    return p->block_count++;
}

static int copy_buffer(program *p, int original, const char *suffix) {
    buffer *c = &p->buffers[p->buffer_count];
    *c = p->buffers[original];
    derive_name(c->name, c->name, suffix);
    c->kind = BUFFER_INTERMEDIATE;
    return p->buffer_count++;
}

/* Gives block b a nest of its own behind, or before, the root's child that another block is in. */
static bool nest_at_root(program *p, int b, int other, bool before) {
    int extents[MAX_ITERS];
    const int beside = child_towards(p, 0, p->blocks[other].node);
    for (int i = 0; i < p->blocks[b].iters; i++)
        extents[i] = p->blocks[b].iter[i].extent;
    return add_nest(p, b, 0, before ? beside : p->nodes[beside].next, NULL, extents);
}

/* A load of all of a buffer by the iterators of the same numbers. */
static int load_of(program *p, int from) {
    const int e = add_load(p, OP_LOAD, from);
    for (int d = 0; e != NONE && d < p->buffers[from].dims; d++)
        p->accesses[p->expressions[e].access].index[d] = affine_variable(d);
    return e;
}

int cache_write(schedule *s, int b) {
    program *p = &s->p;
    const int copy = copy_block(s, b, "copy", "cache");
    if (copy == NONE)
        return b;
    block *k = &p->blocks[copy];
    p->blocks[b].output = copy_buffer(p, k->output, "local");
    k->iters = k->spatial;
    k->combine = COMBINE_NONE;
    k->body = load_of(p, p->blocks[b].output);
    if (check(s, k->body != NONE && nest_at_root(p, copy, b, false), "cache_write: no room"))
        action_cache_write(s, b);
    return copy;
}

/* Moves block b to `loop`, before or behind the child where `beside` lies, to work on `part` of its output. */
static bool move(schedule *s, int b, int loop, int child, const region *part, bool before) {
    program *p = &s->p;
    int extents[MAX_ITERS];
    affine offsets[MAX_ITERS];
    const block *k = &p->blocks[b];
    for (int i = 0; i < k->iters; i++) {
        extents[i] = i < k->spatial && part->extent[i] < k->iter[i].extent ? part->extent[i] : k->iter[i].extent;
        offsets[i] = i < k->spatial ? part->offset[i] : affine_constant(0);
    }
    detach(p, b);
    return check(s, add_nest(p, b, loop, before ? child : p->nodes[child].next, offsets, extents),
                 "compute_at: no room");
}

typedef struct needs {
    const program *p;
    int consumer, loop, made;
    region part;
    int count;
    bool differ, full;
} needs;

static bool need(void *user, const element *a) {
    needs *n = user;
    region part;
    if (a->buffer != n->made)
        return true;
    region_of(n->p, n->consumer, a, n->loop, &part, &n->full);
    for (int d = 0; d < n->p->buffers[a->buffer].dims; d++) {
        if (n->count == 0) {
            n->part.offset[d] = part.offset[d];
            n->part.extent[d] = part.extent[d];
            continue;
        }
        bool full = false;
        affine difference = part.offset[d];
        affine_add(&difference, &n->part.offset[d], -1, &full);
        n->differ = n->differ || difference.count || difference.constant || full;
        if (part.extent[d] > n->part.extent[d])
            n->part.extent[d] = part.extent[d];
    }
    n->count++;
    return true;
}

void compute_at(schedule *s, int b, int loop) {
    program *p = &s->p;
    needs n = {.p = p, .loop = loop, .made = p->blocks[b].output};
    int first = NONE;
    if (s->error)
        return;
    for (int c = 0; c < p->block_count; c++)
        if (p->blocks[c].node != NONE && block_loads(p, c, n.made)) {
            if (!check(s, is_inside(p, p->blocks[c].node, loop), "compute_at: a reader lies outside of the loop"))
                return;
            n.consumer = c;
            (void)visit_loads(p, p->blocks[c].body, need, &n);
            first = first == NONE ? c : first;
        }
    if (!check(s, n.count > 0 && !n.differ && !n.full, "compute_at: readers need different parts"))
        return;
    /* The earliest child of the loop that has a reader in it. */
    int child = p->nodes[loop].child;
    for (bool reads = false; !reads; child = reads ? child : p->nodes[child].next)
        for (int c = 0; c < p->block_count; c++)
            reads = reads ||
                    (p->blocks[c].node != NONE && block_loads(p, c, n.made) && is_inside(p, p->blocks[c].node, child));
    if (move(s, b, loop, child, &n.part, true))
        action_compute_at(s, "compute_at", b, first, loop);
}

void reverse_compute_at(schedule *s, int b, int loop) {
    program *p = &s->p;
    int producer = NONE;
    for (int c = 0; c < p->block_count; c++)
        if (p->blocks[c].node != NONE && block_loads(p, b, p->blocks[c].output))
            producer = producer == NONE ? c : MAX_BLOCKS;
    if (!check(s, producer != NONE && producer != MAX_BLOCKS && is_inside(p, p->blocks[producer].node, loop),
               "reverse_compute_at: the loop does not make what the block reads"))
        return;
    for (int n = loop; n > 0; n = p->nodes[n].parent)
        if (!check(s, !loop_reduces(p, n), "reverse_compute_at: inside of a reduction"))
            return;
    region part;
    bool full = false;
    const element made = output_access(p, producer);
    region_of(p, producer, &made, loop, &part, &full);
    const int child = child_towards(p, loop, p->blocks[producer].node);
    if (check(s, !full, "reverse_compute_at: no room") && move(s, b, loop, child, &part, false))
        action_compute_at(s, "reverse_compute_at", b, producer, loop);
}

/* A copy of expression e in which each iterator v is values[v]. */
static int copy_expression(program *p, int e, const affine *values, bool *full) {
    if (e == NONE)
        return NONE;
    expression x = p->expressions[e];
    if (x.access != NONE) {
        const int copy = add_load(p, x.op, p->accesses[x.access].buffer);
        if (copy == NONE) {
            *full = true;
            return NONE;
        }
        element *a = &p->accesses[p->expressions[copy].access];
        for (int d = 0; d < p->buffers[a->buffer].dims; d++)
            a->index[d] = affine_substitute(&p->accesses[x.access].index[d], values, full);
        return copy;
    }
    x.left = copy_expression(p, x.left, values, full);
    x.right = copy_expression(p, x.right, values, full);
    const int copy = add_expression(p, x.op, x.left, x.right);
    if (copy == NONE)
        *full = true;
    else
        p->expressions[copy].value = x.value;
    return copy;
}

/* Expression e with the loads of block b's output replaced by what b computes; shares what has none. */
static int inline_into(program *p, int e, int b, bool *full) {
    if (e == NONE)
        return NONE;
    const expression x = p->expressions[e];
    if (x.access != NONE)
        return p->accesses[x.access].buffer == p->blocks[b].output
                   ? copy_expression(p, p->blocks[b].body, p->accesses[x.access].index, full)
                   : e;
    const int left = inline_into(p, x.left, b, full), right = inline_into(p, x.right, b, full);
    if (left == x.left && right == x.right)
        return e;
    const int copy = add_expression(p, x.op, left, right);
    *full = *full || copy == NONE;
    return copy;
}

void compute_inline(schedule *s, int b) {
    program *p = &s->p;
    bool full = false;
    if (!check(s, p->blocks[b].combine == COMBINE_NONE && p->buffers[p->blocks[b].output].kind == BUFFER_INTERMEDIATE,
               "compute_inline: not an elementwise intermediate"))
        return;
    for (int c = 0; c < p->block_count; c++)
        if (p->blocks[c].node != NONE && block_loads(p, c, p->blocks[b].output))
            p->blocks[c].body = inline_into(p, p->blocks[c].body, b, &full);
    detach(p, b);
    p->blocks[b].node = NONE;
    if (check(s, !full, "compute_inline: no room"))
        action_block(s, "compute_inline", b);
}

int rfactor(schedule *s, int b, int loop) {
    program *p = &s->p;
    const int v = p->nodes[loop].variables[0];
    int r = NONE, factor = 0;
    if (!check(s, p->nodes[loop].count == 1 && p->variables[v].reduction, "rfactor: not a reduction loop"))
        return b;
    for (int i = p->blocks[b].spatial; i < p->blocks[b].iters; i++)
        for (int t = 0; t < p->blocks[b].iter[i].binding.count; t++)
            if (p->blocks[b].iter[i].binding.terms[t].variable == v) {
                r = i;
                factor = p->blocks[b].iter[i].binding.terms[t].factor;
            }
    const int spatial = p->blocks[b].spatial, iters = p->blocks[b].iters;
    if (!check(s, r != NONE && p->blocks[b].iter[r].binding.count == 2 && spatial < MAX_DIMS && iters < MAX_ITERS,
               "rfactor: not one of two loops of a reduction"))
        return b;
    const int parallel = copy_block(s, b, "rf", "rfactor");
    if (parallel == NONE)
        return b;
    block *f = &p->blocks[parallel], *k = &p->blocks[b];
    const int extent = p->variables[v].extent, rest = (k->iter[r].extent + extent - 1) / extent;
    /* The new block: iterators of b with the factored one as the last spatial one. */
    const int made = copy_buffer(p, k->output, "rf");
    p->buffers[made].shape[p->buffers[made].dims++] = extent;
    f->output = made;
    f->iters = iters + 1;
    f->spatial = spatial + 1;
    memmove(f->iter + spatial + 1, f->iter + spatial, (size_t)(iters - spatial) * sizeof *f->iter);
    f->iter[spatial] = (iterator){.extent = extent, .binding = affine_variable(v)};
    derive_name(f->iter[spatial].name, k->iter[r].name, "f");
    iterator *left = &f->iter[r + 1];
    left->extent = rest;
    const int t = left->binding.terms[0].variable == v; /* the other loop */
    const int other = left->binding.terms[t].variable, other_factor = left->binding.terms[t].factor;
    left->binding = affine_variable(other);
    p->variables[v].reduction = false;
    p->variables[v].axis = 0;
    /* b's iterators in terms of the new ones. */
    affine values[MAX_ITERS];
    bool full = false;
    for (int i = 0; i < iters; i++)
        values[i] = affine_variable(i < spatial ? i : i + 1);
    values[r] = affine_constant(0);
    const affine inner = affine_variable(spatial), outer = affine_variable(r + 1);
    affine_add(&values[r], &inner, factor, &full);
    affine_add(&values[r], &outer, other_factor, &full);
    if (extent * rest > k->iter[r].extent) {
        f->guard = values[r];
        f->guard_extent = k->iter[r].extent;
    }
    f->body = copy_expression(p, k->body, values, &full);
    f->node = k->node;
    p->nodes[f->node].block = parallel;
    /* b reduces over the new dimension. */
    k->node = NONE;
    k->iters = spatial + 1;
    k->iter[spatial] = f->iter[spatial];
    k->iter[spatial].reduction = true;
    k->body = load_of(p, made);
    if (check(s, !full && k->body != NONE && nest_at_root(p, b, parallel, false), "rfactor: no room"))
        action_rfactor(s, b, extent, rest, p->variables[v].level);
    return parallel;
}
