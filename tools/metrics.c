/* Pairwise accuracy by counting inversions in a merge sort. */
#include "metrics.h"
#include <stdlib.h>
#include <string.h>

static int by_time(const void *a, const void *b) {
    const metrics_pair *x = a, *y = b;
    return (x->seconds > y->seconds) - (x->seconds < y->seconds);
}

static int by_score_then_time(const void *a, const void *b) {
    const metrics_pair *x = a, *y = b;
    int order = (x->score < y->score) - (x->score > y->score);
    return order ? order : by_time(a, b);
}

static double choose_two(size_t n) {
    return 0.5 * (double)n * ((double)n - 1);
}

/* The number of pairs among sorted items that are equal under `compare`. */
static double count_equal(const metrics_pair *pairs, size_t count, int (*compare)(const void *, const void *)) {
    double equal = 0;
    for (size_t i = 0, start = 0; i < count; i++)
        if (i + 1 == count || compare(&pairs[i], &pairs[i + 1]) != 0) {
            equal += choose_two(i + 1 - start);
            start = i + 1;
        }
    return equal;
}

static int by_score(const void *a, const void *b) {
    const metrics_pair *x = a, *y = b;
    return (x->score < y->score) - (x->score > y->score);
}

/* Sorts by time and returns the number of pairs that stood the wrong way round. */
static double sort_by_time(metrics_pair *pairs, metrics_pair *scratch, size_t count) {
    size_t middle = count / 2, left = 0, right = middle;
    double inversions = 0;
    if (count < 2)
        return 0;
    inversions = sort_by_time(pairs, scratch, middle) + sort_by_time(pairs + middle, scratch, count - middle);
    for (size_t i = 0; i < count; i++) {
        if (right == count || (left < middle && by_time(&pairs[left], &pairs[right]) <= 0)) {
            scratch[i] = pairs[left++];
        } else {
            inversions += (double)(middle - left);
            scratch[i] = pairs[right++];
        }
    }
    memcpy(pairs, scratch, count * sizeof *pairs);
    return inversions;
}

bool metrics_pairwise(metrics_pair *pairs, size_t count, double *accuracy) {
    metrics_pair *scratch = count > 1 ? malloc(count * sizeof *scratch) : NULL;
    if (!scratch)
        return false;
    /* Within equal scores times rise, so that an inversion is a pair that the scores order wrongly. */
    qsort(pairs, count, sizeof *pairs, by_score_then_time);
    double undecided = count_equal(pairs, count, by_score) - count_equal(pairs, count, by_score_then_time);
    double wrong = sort_by_time(pairs, scratch, count);
    double comparable = choose_two(count) - count_equal(pairs, count, by_time);
    free(scratch);
    if (comparable <= 0)
        return false;
    *accuracy = (comparable - wrong - 0.5 * undecided) / comparable;
    return true;
}
