/* The k best of a batch or of a stream of any length: a heap of k, the worst on top. */
#include "common/alloc.h"
#include "common/error.h"
#include "scorer.h"

/* Candidates whose scores are held at a time. */
enum { PUSHED = FORELOOP_CHUNK };

/* Whether a ranks before b: a higher score, or the same score and an earlier place. */
static int ranks_before(foreloop_ranked a, foreloop_ranked b) {
    return a.score > b.score || (a.score == b.score && a.index < b.index);
}

/* Moves the item at `at` down until no item below it ranks after it. */
static void sift_down(foreloop_ranked *heap, size_t count, size_t at) {
    for (;;) {
        size_t last = at, left = 2 * at + 1;
        for (size_t child = left; child < left + 2 && child < count; child++)
            if (ranks_before(heap[last], heap[child]))
                last = child;
        if (last == at)
            return;
        foreloop_ranked item = heap[at];
        heap[at] = heap[last];
        heap[last] = item;
        at = last;
    }
}

static void keep(foreloop_scorer *scorer, foreloop_ranked item) {
    foreloop_ranked *heap = scorer->heap;
    if (scorer->heap_count == scorer->heap_limit) {
        if (scorer->heap_limit && ranks_before(item, heap[0])) {
            heap[0] = item;
            sift_down(heap, scorer->heap_count, 0);
        }
        return;
    }
    size_t at = scorer->heap_count++;
    for (; at && ranks_before(heap[(at - 1) / 2], item); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = item;
}

foreloop_status foreloop_topk_begin(foreloop_scorer *scorer, size_t k, foreloop_error *error) {
    if (!scorer)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_topk_begin: an argument is NULL");
    FORELOOP_TRY(foreloop_reserve(&scorer->model->allocator, &scorer->heap, &scorer->heap_capacity, 0, k,
                                  sizeof *scorer->heap, error));
    scorer->heap_count = 0;
    scorer->heap_limit = k;
    scorer->next_index = 0;
    scorer->streaming = 1;
    scorer->streamed = NULL;
    return FORELOOP_OK;
}

foreloop_status foreloop_topk_push(foreloop_scorer *scorer, const foreloop_workload *workload, const uint32_t *ids,
                                   const size_t *offsets, size_t count, foreloop_error *error) {
    FORELOOP_TRY(foreloop_check_batch("foreloop_topk_push", scorer, workload, ids, offsets, count, error));
    if (!scorer->streaming)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_topk_push: call foreloop_topk_begin first");
    if (scorer->streamed && scorer->streamed != workload)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "foreloop_topk_push: the stream began with another workload, whose scores do not compare: "
                             "begin a stream for each");
    scorer->streamed = workload;
    for (size_t first = 0; first < count; first += PUSHED) {
        const size_t own = count - first < PUSHED ? count - first : PUSHED;
        float scores[PUSHED];
        foreloop_score_checked(scorer, workload, ids, offsets + first, own, scores);
        for (size_t i = 0; i < own; i++)
            keep(scorer, (foreloop_ranked){scores[i], scorer->next_index++});
    }
    return FORELOOP_OK;
}

foreloop_status foreloop_topk_finish(foreloop_scorer *scorer, uint64_t *indices, float *scores, size_t *found,
                                     foreloop_error *error) {
    if (!scorer || !found || (scorer->heap_count && !indices))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_topk_finish: an argument is NULL");
    if (!scorer->streaming)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_topk_finish: call foreloop_topk_begin first");
    /* The worst is on top: taking it off again and again fills the result from its end. */
    size_t count = scorer->heap_count;
    *found = count;
    while (count) {
        foreloop_ranked worst = scorer->heap[0];
        scorer->heap[0] = scorer->heap[--count];
        sift_down(scorer->heap, count, 0);
        indices[count] = worst.index;
        if (scores)
            scores[count] = worst.score;
    }
    scorer->heap_count = 0;
    scorer->streaming = 0;
    return FORELOOP_OK;
}

foreloop_status foreloop_rank_top(foreloop_scorer *scorer, const foreloop_workload *workload, const uint32_t *ids,
                                  const size_t *offsets, size_t count, size_t k, uint64_t *indices, float *scores,
                                  size_t *found, foreloop_error *error) {
    if (!found || (count && k && !indices))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_rank_top: an argument is NULL");
    FORELOOP_TRY(foreloop_check_batch("foreloop_rank_top", scorer, workload, ids, offsets, count, error));
    if (scorer->streaming)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "foreloop_rank_top: the scorer has an open stream: call foreloop_topk_finish first");
    FORELOOP_TRY(foreloop_topk_begin(scorer, k < count ? k : count, error));
    foreloop_status status = foreloop_topk_push(scorer, workload, ids, offsets, count, error);
    return status == FORELOOP_OK ? foreloop_topk_finish(scorer, indices, scores, found, error) : status;
}
