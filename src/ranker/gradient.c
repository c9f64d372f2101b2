/* LambdaRank: the gradients of pairs of a group's rows, and of squared error; then their packing. */
#include "ranker/gradient.h"
#include "common/random.h"
#include "common/sort.h"
#include "ranker/bins.h"
#include <math.h>
#include <string.h>

enum { LANES = FORELOOP_BOOST_LANES, TASKS = 16, DEFAULT_TOP = 32 };
enum { SCORES, LABELS, GAINS, DISCOUNTS, GRADIENTS, HESSIANS, ARRAYS };

/* ---- Order ------------------------------------------------------------------------------------------------------- */

static bool stands_before(size_t a, size_t b, const float *scores) {
    return scores[a] > scores[b] || (!(scores[a] < scores[b]) && a < b);
}

static int by_score(const void *a, const void *b, const void *context) {
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return x == y ? 0 : stands_before(x, y, context) ? -1 : 1;
}

/* From round to round little changes, so insertion is quick; where much does, it gives up. */
void foreloop_ranker_order(size_t *rows, size_t count, const float *scores) {
    size_t budget = 16 * count;
    for (size_t i = 1; i < count; i++) {
        const size_t row = rows[i];
        size_t place = i;
        for (; place > 0 && stands_before(row, rows[place - 1], scores); place--)
            rows[place] = rows[place - 1];
        rows[place] = row;
        if (i - place > budget) {
            foreloop_sort(rows, count, sizeof *rows, by_score, scores);
            return;
        }
        budget -= i - place;
    }
}

/* ---- Creation ---------------------------------------------------------------------------------------------------- */

static bool is_ranking(const foreloop_ranker_gradients *gradients) {
    return gradients->options->objective != FORELOOP_RANKER_SQUARED_ERROR;
}

/* The ranks that pairs begin at: NDCG is cut there too. */
static size_t top_of(const foreloop_ranker_options *options) {
    if (options->pairs == FORELOOP_RANKER_PAIRS_MEAN)
        return SIZE_MAX;
    return options->pair_count ? options->pair_count : DEFAULT_TOP;
}

/* gain[row] = gain / ideal DCG. Uses the group's order. */
static void set_gains(foreloop_ranker_gradients *gradients, size_t begin, size_t end) {
    const foreloop_ranker_options *options = gradients->options;
    const float *relevance = gradients->labels->relevance;
    const size_t top = top_of(options);
    double ideal = 0;
    foreloop_ranker_order(gradients->order + begin, end - begin, relevance);
    for (size_t i = 0; i < end - begin && i < top; i++)
        ideal += foreloop_ranker_gain(options, relevance[gradients->order[begin + i]]) * foreloop_ranker_discount(i);
    for (size_t row = begin; row < end; row++)
        gradients->gain[row] = ideal > 0 ? (float)(foreloop_ranker_gain(options, relevance[row]) / ideal) : 0.0f;
}

static foreloop_status allocate(foreloop_ranker_gradients *made, foreloop_error *error) {
    const foreloop_allocator *allocator = made->allocator;
    const size_t rows = made->labels->rows.row_count;
    const bool ranking = is_ranking(made);
    made->gradient = foreloop_allocate(allocator, rows, sizeof *made->gradient);
    made->hessian = foreloop_allocate(allocator, rows, sizeof *made->hessian);
    made->packed = foreloop_allocate(allocator, rows, sizeof *made->packed);
    if (ranking) {
        made->order = foreloop_allocate(allocator, rows, sizeof *made->order);
        made->gain = foreloop_allocate_zeroed(allocator, rows, sizeof *made->gain);
        made->discounts = foreloop_allocate_zeroed(allocator, made->padded, sizeof *made->discounts);
        made->ranked =
            foreloop_allocate_zeroed(allocator, made->task_count, made->padded * ARRAYS * sizeof *made->ranked);
        made->by_label = foreloop_allocate(allocator, made->task_count, made->labels->longest * sizeof *made->by_label);
    }
    if (!made->gradient || !made->hessian || !made->packed ||
        (ranking && (!made->order || !made->gain || !made->discounts || !made->ranked || !made->by_label)))
        return foreloop_fail_memory(error, rows, 4 * sizeof *made->packed, "the gradients");
    return FORELOOP_OK;
}

foreloop_status foreloop_ranker_gradients_create(foreloop_ranker_gradients *gradients,
                                                 const foreloop_allocator *allocator,
                                                 const foreloop_ranker_labels *labels,
                                                 const foreloop_ranker_options *options, const foreloop_boost *kernels,
                                                 foreloop_error *error) {
    foreloop_ranker_gradients made = {
        .allocator = allocator, .labels = labels, .options = options, .kernels = kernels, .task_count = 1};
    made.padded = (labels->longest + LANES - 1) / LANES * LANES;
    if (options->parallel)
        made.task_count = labels->group_count < TASKS ? labels->group_count : TASKS;
    const foreloop_status status = allocate(&made, error);
    if (status != FORELOOP_OK) {
        foreloop_ranker_gradients_close(&made);
        return status;
    }
    if (is_ranking(&made)) {
        for (size_t row = 0; row < labels->rows.row_count; row++)
            made.order[row] = row;
        for (size_t rank = 0; rank < labels->longest; rank++)
            made.discounts[rank] = (float)foreloop_ranker_discount(rank);
        for (size_t g = 0; g < labels->group_count && options->objective == FORELOOP_RANKER_NDCG; g++)
            set_gains(&made, labels->groups[g], labels->groups[g + 1]);
    }
    *gradients = made;
    return FORELOOP_OK;
}

void foreloop_ranker_gradients_close(foreloop_ranker_gradients *gradients) {
    const foreloop_allocator *allocator = gradients->allocator;
    foreloop_release(allocator, gradients->by_label);
    foreloop_release(allocator, gradients->ranked);
    foreloop_release(allocator, gradients->discounts);
    foreloop_release(allocator, gradients->gain);
    foreloop_release(allocator, gradients->order);
    foreloop_release(allocator, gradients->packed);
    foreloop_release(allocator, gradients->hessian);
    foreloop_release(allocator, gradients->gradient);
}

/* ---- Pairs ------------------------------------------------------------------------------------------------------- */

/* Each row with `pair_count` others of another relevance, drawn evenly. `by_label` is scratch. */
static double drawn_pairs(const foreloop_ranker_gradients *gradients, const foreloop_boost_group *group,
                          const foreloop_boost_pairs *rule, size_t *by_label, uint64_t random) {
    double total = 0;
    for (size_t rank = 0; rank < group->count; rank++)
        by_label[rank] = rank;
    foreloop_ranker_order(by_label, group->count, group->labels);
    const size_t draws = gradients->options->pair_count ? gradients->options->pair_count : 1;
    for (size_t begin = 0, end; begin < group->count; begin = end) {
        /* Those of the same relevance. */
        for (end = begin + 1; end < group->count && !(group->labels[by_label[end]] < group->labels[by_label[begin]]);)
            end++;
        const size_t others = group->count - (end - begin);
        for (size_t i = begin; others && i < end; i++)
            for (size_t draw = 0; draw < draws; draw++) {
                size_t other = foreloop_random_below(&random, others);
                other = by_label[other < begin ? other : other - begin + end];
                const size_t own = by_label[i];
                total +=
                    gradients->kernels->one_pair(group, rule, own < other ? own : other, own < other ? other : own);
            }
    }
    return total;
}

/* What a group's gradients are multiplied by, so that groups with many pairs do not outweigh others. */
static float scale_of(const foreloop_ranker_options *options, double total) {
    if (options->keep_gradient_scale || !(total > 0))
        return 1.0f;
    if (options->pairs == FORELOOP_RANKER_PAIRS_MEAN)
        return 1.0f / (float)(options->pair_count ? options->pair_count : 1);
    return (float)(log2(1.0 + total) / total);
}

static void rank_group(const foreloop_ranker_gradients *gradients, size_t index, size_t task) {
    const foreloop_ranker_labels *labels = gradients->labels;
    const foreloop_ranker_options *options = gradients->options;
    const size_t begin = labels->groups[index], count = labels->groups[index + 1] - begin;
    const size_t padded = (count + LANES - 1) / LANES * LANES;
    float *arrays[ARRAYS];
    size_t *order = gradients->order + begin;
    if (count == 0)
        return;
    for (size_t a = 0; a < ARRAYS; a++)
        arrays[a] = gradients->ranked + (task * ARRAYS + a) * gradients->padded;
    foreloop_ranker_order(order, count, gradients->scores);
    for (size_t rank = 0; rank < padded; rank++) {
        const size_t row = order[rank < count ? rank : count - 1];
        arrays[SCORES][rank] = gradients->scores[row];
        arrays[LABELS][rank] = rank < count ? labels->relevance[row] : NAN;
        arrays[GAINS][rank] = gradients->gain[row];
        arrays[DISCOUNTS][rank] = gradients->discounts[rank];
        arrays[GRADIENTS][rank] = arrays[HESSIANS][rank] = 0.0f;
    }
    const foreloop_boost_group group = {
        count, arrays[SCORES], arrays[LABELS], arrays[GAINS], arrays[DISCOUNTS], arrays[GRADIENTS], arrays[HESSIANS]};
    const foreloop_boost_pairs rule = {
        .ndcg = options->objective == FORELOOP_RANKER_NDCG,
        /* Alike scores, as before the first round, tell nothing about how far apart scores lie. */
        .normalize_score = !options->keep_pair_scale && group.scores[0] != group.scores[count - 1]};
    double total;
    if (options->pairs == FORELOOP_RANKER_PAIRS_MEAN)
        total = drawn_pairs(gradients, &group, &rule, gradients->by_label + task * labels->longest,
                            foreloop_random_stream(options->seed, FORELOOP_RANDOM_PAIRS, gradients->round, index));
    else
        total = gradients->kernels->top_pairs(&group, &rule, top_of(options));
    const float scale = scale_of(options, total);
    for (size_t rank = 0; rank < count; rank++) {
        gradients->gradient[order[rank]] = arrays[GRADIENTS][rank] * scale;
        gradients->hessian[order[rank]] = arrays[HESSIANS][rank] * scale;
    }
}

static void rank_groups(void *argument, size_t task) {
    const foreloop_ranker_gradients *gradients = argument;
    for (size_t g = task; g < gradients->labels->group_count; g += gradients->task_count)
        rank_group(gradients, g, task);
}

/* ---- Packing ----------------------------------------------------------------------------------------------------- */

/* The power of two by which numbers that add up to `total` in absolute value may be multiplied, so that their rounded
 * sums stay within 31 bits. */
static double unit_of(double total, size_t rows) {
    int exponent;
    if (!(total > 0))
        return 1.0;
    (void)frexp((2147483647.0 - (double)rows) / total, &exponent);
    return ldexp(1.0, 1 - exponent);
}

static void pack(foreloop_ranker_gradients *gradients) {
    const size_t rows = gradients->labels->rows.row_count;
    double gradient = 0, hessian = 0;
    for (size_t i = 0; i < rows; i++) {
        gradient += fabs((double)gradients->gradient[i]);
        hessian += (double)gradients->hessian[i];
    }
    gradients->gradient_unit = unit_of(gradient, rows);
    gradients->hessian_unit = unit_of(hessian, rows);
    const double g_scale = 1.0 / gradients->gradient_unit, h_scale = 1.0 / gradients->hessian_unit;
    for (size_t i = 0; i < rows; i++) {
        const int64_t g = (int64_t)floor((double)gradients->gradient[i] * g_scale + 0.5);
        /* Rounded up, so that a row that counts does not vanish. */
        const int64_t h = (int64_t)ceil((double)gradients->hessian[i] * h_scale);
        gradients->packed[i] = ((uint64_t)g << 32) + (uint64_t)h;
    }
}

void foreloop_ranker_gradients_compute(foreloop_ranker_gradients *gradients, const float *scores, size_t round) {
    const foreloop_ranker_labels *labels = gradients->labels;
    gradients->scores = scores;
    gradients->round = round;
    if (is_ranking(gradients)) {
        foreloop_ranker_parallel(gradients->options->parallel, gradients->task_count, rank_groups, gradients);
    } else {
        for (size_t i = 0; i < labels->rows.row_count; i++) {
            gradients->gradient[i] = scores[i] - labels->relevance[i];
            gradients->hessian[i] = 1.0f;
        }
    }
    pack(gradients);
}
