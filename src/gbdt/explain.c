/* Exact path-dependent TreeSHAP.
 *
 * On the path to a leaf of value v let feature j have o_j, 1 if the row follows all of the path's splits on j and else
 * 0, and q_j, the product of their cover ratios. Knowing the features S, the tree expects of this leaf
 * v x (product of o_j over S) x (product of q_j over the others), whose Shapley value for feature i is
 *
 *     v (o_i - q_i) x integral over t from 0 to 1 of the product over j != i of (t o_j + (1 - t) q_j).
 *
 * The integrand is a polynomial of a degree below the path's length, so Gauss-Legendre quadrature with half as many
 * points as the path is long is exact. Walking a tree, each level keeps the product C of all factors at the points, and
 * sums v C of the leaves below it in H. A second split on a feature replaces the factor of the first one: on the way
 * up, an edge adds the sum of w H (o - q) / factor with its own factor, and takes away the same with the one that it
 * replaced, which the edge above will add for the whole subtree. */
#include "common/number.h"
#include "gbdt/rows.h"
#include <math.h>
#include <string.h>

enum { MAX_DEPTH = 1024 };

/* A level of the walk: the node, and the edge that led to it. */
typedef struct explain_level {
    uint32_t node;
    uint32_t visited;  /* children: 0, 1 or 2 */
    uint32_t followed; /* the child that the row goes to: 0 left, 1 right */
    uint32_t feature;  /* of the edge */
    double o, q;       /* of the feature, with this edge */
    double old_o, old_q;
} explain_level;

struct foreloop_gbdt_explainer {
    foreloop_allocator allocator;
    const foreloop_gbdt *gbdt;
    double *bias; /* by output */
    double *sums; /* by feature */
    size_t point_count;
    double *points, *weights;
    explain_level *levels;
    double *products, *leaf_sums; /* C and H: point_count numbers for each level */
};

/* ---- Creation ---------------------------------------------------------------------------------------------------- */

/* The value of the Legendre polynomial of degree n at x, and its derivative's. */
static double legendre(size_t n, double x, double *derivative) {
    double before = 1.0, value = x;
    for (size_t k = 2; k <= n; k++) {
        double next = ((double)(2 * k - 1) * x * value - (double)(k - 1) * before) / (double)k;
        before = value;
        value = next;
    }
    *derivative = (double)n * (x * value - before) / (x * x - 1.0);
    return value;
}

/* Gauss-Legendre quadrature on 0 to 1. */
static void fill_quadrature(double *points, double *weights, size_t n) {
    const double pi = 3.14159265358979323846;
    for (size_t i = 0; i < n; i++) {
        double x = cos(pi * ((double)i + 0.75) / ((double)n + 0.5)), derivative = 1.0;
        /* Newton's method doubles the digits of the start's four at each step. */
        for (int step = 0; step < 6; step++)
            x -= legendre(n, x, &derivative) / derivative;
        legendre(n, x, &derivative);
        points[i] = 0.5 * (x + 1.0);
        weights[i] = 1.0 / ((1.0 - x * x) * derivative * derivative);
    }
}

/* The part of a node's training rows that go to a child. Where there are none, as refreshing with other data leaves
 * them, both children are as likely. */
static double cover_ratio(const foreloop_gbdt *gbdt, size_t node, size_t child) {
    double cover = (double)gbdt->origins[node].cover;
    return cover > 0.0 ? (double)gbdt->origins[child].cover / cover : 0.5;
}

/* The tree's mean over its training rows. Children stand behind their parents. */
static double tree_mean(const foreloop_gbdt *gbdt, const foreloop_gbdt_tree *tree, double *means) {
    for (size_t i = tree->node_count; i-- > 0;) {
        const size_t index = tree->root + i;
        const foreloop_gbdt_node *node = &gbdt->nodes[index];
        const size_t left = node->left, first = left - tree->root;
        if (node->feature & FORELOOP_GBDT_SPLIT)
            means[i] =
                cover_ratio(gbdt, index, left) * means[first] + cover_ratio(gbdt, index, left + 1) * means[first + 1];
        else
            means[i] = (double)node->split.leaf;
    }
    return means[0];
}

static bool is_cover(float cover) {
    return isfinite(cover) && cover >= 0.0f;
}

/* Checks the covers that make ratios: those of splits and of their children. */
static foreloop_status check_covers(const foreloop_gbdt *gbdt, size_t *largest, foreloop_error *error) {
    const foreloop_gbdt_origin *origins = gbdt->origins;
    *largest = 0;
    for (size_t t = 0; t < gbdt->tree_count; t++) {
        const foreloop_gbdt_tree *tree = &gbdt->trees[t];
        *largest = tree->node_count > *largest ? tree->node_count : *largest;
        for (size_t i = tree->root; i < (size_t)tree->root + tree->node_count; i++) {
            const size_t left = gbdt->nodes[i].left;
            if ((gbdt->nodes[i].feature & FORELOOP_GBDT_SPLIT) &&
                (!is_cover(origins[i].cover) || !is_cover(origins[left].cover) || !is_cover(origins[left + 1].cover)))
                return foreloop_fail(error, FORELOOP_ERROR_VALUE,
                                     "tree %u: the cover (sum_hessian) of node %u or of its children is negative or "
                                     "not finite",
                                     (unsigned)tree->source, (unsigned)origins[i].id);
        }
    }
    return FORELOOP_OK;
}

static foreloop_status fill_bias(foreloop_gbdt_explainer *explainer, size_t largest, foreloop_error *error) {
    const foreloop_gbdt *gbdt = explainer->gbdt;
    double *means = foreloop_allocate(&explainer->allocator, largest, sizeof *means);
    if (!means)
        return foreloop_fail_memory(error, largest, sizeof *means, "the means of nodes");
    for (size_t k = 0; k < gbdt->output_count; k++) {
        explainer->bias[k] = (double)gbdt->base_margins[k];
        for (size_t t = gbdt->output_trees[k]; t < gbdt->output_trees[k + 1]; t++)
            explainer->bias[k] += tree_mean(gbdt, &gbdt->trees[t], means);
    }
    foreloop_release(&explainer->allocator, means);
    return FORELOOP_OK;
}

static foreloop_status fill_explainer(foreloop_gbdt_explainer *explainer, foreloop_error *error) {
    const foreloop_gbdt *gbdt = explainer->gbdt;
    const foreloop_allocator *allocator = &explainer->allocator;
    const size_t levels = gbdt->max_depth + 1, points = gbdt->max_depth / 2 + 1;
    size_t largest = 0;
    FORELOOP_TRY(check_covers(gbdt, &largest, error));
    explainer->point_count = points;
    explainer->points = foreloop_allocate(allocator, points, sizeof(double));
    explainer->weights = foreloop_allocate(allocator, points, sizeof(double));
    explainer->levels = foreloop_allocate(allocator, levels, sizeof *explainer->levels);
    explainer->products = foreloop_allocate(allocator, levels * points, sizeof(double));
    explainer->leaf_sums = foreloop_allocate(allocator, levels * points, sizeof(double));
    explainer->bias = foreloop_allocate(allocator, gbdt->output_count, sizeof(double));
    explainer->sums = foreloop_allocate(allocator, gbdt->feature_count, sizeof(double));
    if (!explainer->points || !explainer->weights || !explainer->levels || !explainer->products ||
        !explainer->leaf_sums || !explainer->bias || !explainer->sums)
        return foreloop_fail_memory(error, levels * points + gbdt->feature_count, sizeof(double), "explanations");
    fill_quadrature(explainer->points, explainer->weights, points);
    return fill_bias(explainer, largest, error);
}

foreloop_status foreloop_gbdt_explainer_create(foreloop_gbdt_explainer **explainer, const foreloop_gbdt *gbdt,
                                               foreloop_error *error) {
    if (!explainer || !gbdt)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_gbdt_explainer_create: an argument is NULL");
    if (!gbdt->has_cover)
        return foreloop_fail(error, FORELOOP_ERROR_UNSUPPORTED,
                             "the model holds no cover (sum_hessian) of the nodes, which explanations need: use "
                             "save_model, or dump_model with statistics; vector leaves have it since XGBoost 3.2");
    if (gbdt->max_depth > MAX_DEPTH)
        return foreloop_fail(error, FORELOOP_ERROR_LIMIT, "trees of depth %zu: at most %d can be explained",
                             gbdt->max_depth, MAX_DEPTH);
    foreloop_gbdt_explainer *made = foreloop_allocate_zeroed(&gbdt->allocator, 1, sizeof *made);
    if (!made)
        return foreloop_fail_memory(error, 1, sizeof *made, "explanations");
    made->allocator = gbdt->allocator;
    made->gbdt = gbdt;
    foreloop_status status = fill_explainer(made, error);
    if (status != FORELOOP_OK) {
        foreloop_gbdt_explainer_close(made);
        return status;
    }
    *explainer = made;
    return FORELOOP_OK;
}

void foreloop_gbdt_explainer_close(foreloop_gbdt_explainer *explainer) {
    if (!explainer)
        return;
    foreloop_allocator allocator = explainer->allocator;
    foreloop_release(&allocator, explainer->points);
    foreloop_release(&allocator, explainer->weights);
    foreloop_release(&allocator, explainer->levels);
    foreloop_release(&allocator, explainer->products);
    foreloop_release(&allocator, explainer->leaf_sums);
    foreloop_release(&allocator, explainer->bias);
    foreloop_release(&allocator, explainer->sums);
    foreloop_release(&allocator, explainer);
}

/* ---- Walking ----------------------------------------------------------------------------------------------------- */

/* The state of the level's next child: its edge, with what the feature had before on this path. */
static explain_level edge_to_child(const foreloop_gbdt *gbdt, const explain_level *levels, size_t depth) {
    const explain_level *parent = &levels[depth];
    const foreloop_gbdt_node *node = &gbdt->nodes[parent->node];
    explain_level edge = {
        .node = node->left + parent->visited,
        .feature = node->feature & FORELOOP_GBDT_FEATURE,
        .old_o = 1.0,
        .old_q = 1.0,
    };
    for (size_t above = depth; above > 0; above--)
        if (levels[above].feature == edge.feature) {
            edge.old_o = levels[above].o;
            edge.old_q = levels[above].q;
            break;
        }
    edge.o = parent->visited == parent->followed ? edge.old_o : 0.0;
    edge.q = edge.old_q * cover_ratio(gbdt, parent->node, edge.node);
    return edge;
}

/* Starts the walk of a child. False for one that no known or unknown features lead to, which has no influence. */
static bool go_down(foreloop_gbdt_explainer *explainer, size_t depth) {
    const size_t n = explainer->point_count;
    explain_level edge = edge_to_child(explainer->gbdt, explainer->levels, depth);
    explainer->levels[depth].visited++;
    if (edge.o <= 0.0 && edge.q <= 0.0)
        return false;
    const double *above = explainer->products + depth * n;
    double *product = explainer->products + (depth + 1) * n, *sum = explainer->leaf_sums + (depth + 1) * n;
    for (size_t k = 0; k < n; k++) {
        double t = explainer->points[k];
        product[k] = above[k] * (t * edge.o + (1.0 - t) * edge.q) / (t * edge.old_o + (1.0 - t) * edge.old_q);
        sum[k] = 0.0;
    }
    explainer->levels[depth + 1] = edge;
    return true;
}

/* Ends the walk of a child: credits its edge's feature, and adds its leaves to the level above. */
static void go_up(foreloop_gbdt_explainer *explainer, size_t depth) {
    const size_t n = explainer->point_count;
    const explain_level *edge = &explainer->levels[depth];
    const double *sum = explainer->leaf_sums + depth * n;
    double *above = explainer->leaf_sums + (depth - 1) * n, credit = 0.0;
    for (size_t k = 0; k < n; k++) {
        double t = explainer->points[k];
        double with = (edge->o - edge->q) / (t * edge->o + (1.0 - t) * edge->q);
        double without = (edge->old_o - edge->old_q) / (t * edge->old_o + (1.0 - t) * edge->old_q);
        credit += explainer->weights[k] * sum[k] * (with - without);
        above[k] += sum[k];
    }
    explainer->sums[edge->feature] += credit;
}

/* Sees to a node that the walk has come to: its leaf, or where the row goes from it. */
static void arrive(foreloop_gbdt_explainer *explainer, size_t depth, const foreloop_gbdt_rows *rows, size_t row) {
    const foreloop_gbdt *gbdt = explainer->gbdt;
    const size_t n = explainer->point_count;
    explain_level *level = &explainer->levels[depth];
    const foreloop_gbdt_node *node = &gbdt->nodes[level->node];
    if (node->feature & FORELOOP_GBDT_SPLIT) {
        float x = foreloop_gbdt_value(rows, row, node->feature & FORELOOP_GBDT_FEATURE);
        level->followed = foreloop_gbdt_goes_right(gbdt, node, x);
        return;
    }
    level->visited = 2;
    for (size_t k = 0; k < n; k++)
        explainer->leaf_sums[depth * n + k] = explainer->products[depth * n + k] * (double)node->split.leaf;
}

static void explain_tree(foreloop_gbdt_explainer *explainer, const foreloop_gbdt_tree *tree,
                         const foreloop_gbdt_rows *rows, size_t row) {
    size_t depth = 0;
    explainer->levels[0] = (explain_level){.node = tree->root};
    for (size_t k = 0; k < explainer->point_count; k++) {
        explainer->products[k] = 1.0;
        explainer->leaf_sums[k] = 0.0;
    }
    arrive(explainer, 0, rows, row);
    for (;;) {
        if (explainer->levels[depth].visited < 2) {
            if (go_down(explainer, depth))
                arrive(explainer, ++depth, rows, row);
        } else if (depth > 0) {
            go_up(explainer, depth--);
        } else {
            return;
        }
    }
}

foreloop_status foreloop_gbdt_explain(foreloop_gbdt_explainer *explainer, const foreloop_gbdt_rows *rows,
                                      float *contributions, foreloop_error *error) {
    static const char call[] = "foreloop_gbdt_explain";
    foreloop_gbdt_rows taken;
    if (!explainer || !rows || (!contributions && rows->row_count > 0))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "%s: an argument is NULL", call);
    const foreloop_gbdt *gbdt = explainer->gbdt;
    FORELOOP_TRY(foreloop_gbdt_take_rows(&taken, gbdt, rows, call, error));
    for (size_t r = 0; r < taken.row_count; r++)
        for (size_t k = 0; k < gbdt->output_count; k++) {
            memset(explainer->sums, 0, gbdt->feature_count * sizeof *explainer->sums);
            for (size_t t = gbdt->output_trees[k]; t < gbdt->output_trees[k + 1]; t++)
                explain_tree(explainer, &gbdt->trees[t], &taken, r);
            for (size_t f = 0; f < gbdt->feature_count; f++)
                *contributions++ = foreloop_double_to_float(explainer->sums[f]);
            *contributions++ = foreloop_double_to_float(explainer->bias[k]);
        }
    return FORELOOP_OK;
}
