/* Spreads heads and blocks of queries over the shares. */
#include "transformer/attention.h"

#include <math.h>

/* The work lies in a row, sequence by sequence and head by head; a query costs as much as its sequence is long. */
typedef struct attention_work {
    const foreloop_attention_f32 *kernel;
    const foreloop_attention_call *call;
    size_t shares;
    double total;
} attention_work;

/* Of `count` queries that begin at `start` of the work: the first one of a block of `unit` that lies at or behind
 * `place`. */
static size_t first_query(size_t count, size_t unit, double start, double place) {
    if (place <= start)
        return 0;
    const double blocks = ceil((place - start) / ((double)unit * (double)count));
    return blocks * (double)unit < (double)count ? (size_t)blocks * unit : count;
}

static void run_share(void *argument, size_t share) {
    const attention_work *work = argument;
    const foreloop_attention_call *call = work->call;
    const foreloop_attention_f32 *kernel = work->kernel;
    const size_t hidden = call->heads * call->head_width, unit = kernel->query_unit;
    const double begin = work->total * (double)share / (double)work->shares;
    const double end = work->total * (double)(share + 1) / (double)work->shares;
    const float scale = (float)(1.0 / sqrt((double)call->head_width));
    float *scratch = call->scratch + share * call->scratch_stride;
    double start = 0;
    for (size_t s = 0; s < call->sequences && start < end; s++) {
        const size_t count = call->offsets[s + 1] - call->offsets[s];
        float *rows = call->query_key_value + call->offsets[s] * call->stride;
        for (size_t head = 0; head < call->heads; head++, start += (double)count * (double)count) {
            const size_t first = first_query(count, unit, start, begin);
            const size_t last = share + 1 < work->shares ? first_query(count, unit, start, end) : count;
            float *queries = rows + head * call->head_width;
            if (first >= last)
                continue;
            kernel->pack(scratch, queries + hidden, queries + 2 * hidden, call->stride, count, call->head_width);
            kernel->run(queries + first * call->stride, queries + first * call->stride, call->stride, last - first,
                        scratch, count, call->head_width, scale);
        }
    }
}

/* Below so many multiplications waking a thread costs more than it saves. */
enum { WORTH_SHARING = 1 << 19 };

void foreloop_transformer_attention(const foreloop_attention_f32 *kernel, const foreloop_attention_call *call,
                                    const foreloop_shares *shares) {
    attention_work work = {.kernel = kernel, .call = call, .shares = 1};
    for (size_t s = 0; s < call->sequences; s++) {
        const double count = (double)(call->offsets[s + 1] - call->offsets[s]);
        work.total += count * count * (double)call->heads;
    }
    if (shares->count > 1 && work.total * 2 * (double)call->head_width >= WORTH_SHARING)
        work.shares = shares->count;
    foreloop_shares_run(shares, work.shares, run_share, &work);
}
