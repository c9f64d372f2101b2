/* Packs a linear layer and runs it in shares. */
#include "transformer/linear_weights.h"

#include "common/alloc.h"
#include "common/error.h"
#include <string.h>

size_t foreloop_linear_weights_size(size_t in, size_t out, const foreloop_linear *kernel) {
    if (in > SIZE_MAX - 64 || out + 64 < 64 || out + 64 > SIZE_MAX / 8 / (in + 64))
        return 0;
    return (kernel->packed_size(in, out) + FORELOOP_ALIGNMENT - 1) / FORELOOP_ALIGNMENT * FORELOOP_ALIGNMENT;
}

foreloop_status foreloop_linear_weights_pack(foreloop_linear_weights *linear, void *memory, const float *matrix,
                                             const float *bias, size_t in, size_t out, const foreloop_linear *kernel,
                                             const foreloop_allocator *allocator, foreloop_error *error) {
    foreloop_linear_weights result = {.in = in, .out = out, .kernel = *kernel, .packed = memory};
    const size_t size = foreloop_linear_weights_size(in, out, kernel);
    if (kernel->largest_in && in > kernel->largest_in)
        return foreloop_fail(error, FORELOOP_ERROR_UNSUPPORTED,
                             "a layer has %zu inputs, but this precision allows %zu: choose another", in,
                             kernel->largest_in);
    if (!memory && size)
        result.packed = result.own_memory = foreloop_allocate(allocator, size, 1);
    if (result.packed)
        result.bias = foreloop_allocate_zeroed(allocator, out, sizeof *result.bias);
    if (!result.bias) {
        foreloop_linear_weights_close(&result, allocator);
        return foreloop_fail_memory(error, out, in * sizeof(float), "packed weights");
    }
    kernel->pack(result.packed, matrix, in, out);
    if (bias)
        memcpy(result.bias, bias, out * sizeof *bias);
    *linear = result;
    return FORELOOP_OK;
}

void foreloop_linear_weights_close(foreloop_linear_weights *linear, const foreloop_allocator *allocator) {
    foreloop_release(allocator, linear->own_memory);
    foreloop_release(allocator, linear->bias);
    *linear = (foreloop_linear_weights){0};
}

size_t foreloop_linear_weights_scratch(const foreloop_linear_weights *linear, size_t rows) {
    return linear->kernel.prepared_size ? linear->kernel.prepared_size(rows, linear->in) : 0;
}

/* A call as a grid of parts. */
typedef struct linear_work {
    const foreloop_linear *kernel;
    foreloop_linear_call call;
    void *scratch;
    size_t row_shares, out_shares;
} linear_work;

static size_t units(size_t count, size_t unit) {
    return count / unit + (count % unit != 0);
}

/* Where share `share` begins among `count` things that are handed out by the unit. */
static size_t begin(size_t count, size_t unit, size_t shares, size_t share) {
    const size_t first = foreloop_share_begin(units(count, unit), shares, share) * unit;
    return first < count ? first : count;
}

static void prepare_share(void *argument, size_t share) {
    const linear_work *work = argument;
    const foreloop_linear *kernel = work->kernel;
    const foreloop_linear_call *call = &work->call;
    const size_t first = begin(call->rows, kernel->row_unit, work->row_shares, share);
    const size_t end = begin(call->rows, kernel->row_unit, work->row_shares, share + 1);
    if (first < end)
        kernel->prepare(work->scratch, call->x, call->x_stride, call->rows, call->in, first, end);
}

static void run_share(void *argument, size_t share) {
    const linear_work *work = argument;
    const foreloop_linear *kernel = work->kernel;
    const foreloop_linear_call *call = &work->call;
    const size_t row_share = share / work->out_shares, out_share = share % work->out_shares;
    const size_t row = begin(call->rows, kernel->row_unit, work->row_shares, row_share);
    const size_t row_end = begin(call->rows, kernel->row_unit, work->row_shares, row_share + 1);
    const size_t out = begin(call->out, kernel->out_unit, work->out_shares, out_share);
    const size_t out_end = begin(call->out, kernel->out_unit, work->out_shares, out_share + 1);
    if (row < row_end && out < out_end)
        kernel->run(call, row, row_end, out, out_end);
}

/* Below so many multiplications waking a thread costs more than it saves. */
enum { WORTH_SHARING = 1 << 19 };

/* With so many rows, a share reads each weight for enough of them that it does not matter that the others read it too;
 * and what a share writes, it reads itself in the next layer, where that is cut by rows as well. */
enum { ENOUGH_ROWS = 96 };

/* The grid with the smallest largest part; of equal ones that with the most cuts through the rows that leave enough in
 * each part. */
static void choose_grid(linear_work *work, size_t shares) {
    const foreloop_linear_call *call = &work->call;
    const size_t row_units = units(call->rows, work->kernel->row_unit);
    const size_t out_units = units(call->out, work->kernel->out_unit);
    size_t best = SIZE_MAX;
    work->row_shares = work->out_shares = 1;
    if (shares < 2 || call->rows * call->in < WORTH_SHARING / call->out)
        return;
    for (size_t rows = 1; rows <= shares; rows++) {
        const size_t outs = shares / rows, largest = units(row_units, rows) * units(out_units, outs);
        if (largest < best || (largest == best && call->rows / rows >= ENOUGH_ROWS)) {
            best = largest;
            work->row_shares = rows;
            work->out_shares = outs;
        }
    }
}

static void run(const foreloop_linear *kernel, foreloop_linear_call call, void *scratch,
                const foreloop_shares *shares) {
    linear_work work = {.kernel = kernel, .call = call, .scratch = scratch};
    choose_grid(&work, shares->count);
    if (kernel->prepare) {
        work.call.prepared = scratch;
        linear_work preparation = work;
        preparation.row_shares = work.row_shares * work.out_shares;
        foreloop_shares_run(shares, preparation.row_shares, prepare_share, &preparation);
    }
    foreloop_shares_run(shares, work.row_shares * work.out_shares, run_share, &work);
}

enum { FINE_ROWS = 64 }; /* that are multiplied at a time */

size_t foreloop_linear_weights_fine_size(const foreloop_linear_weights *linear) {
    return linear->kernel.remainder ? FINE_ROWS * (linear->in + linear->out) + linear->out : 0;
}

/* The call in parts with up to FINE_ROWS fine rows each, whose remainders are multiplied before. */
static void run_fine(const foreloop_linear *kernel, const foreloop_linear_call *call, const foreloop_fine_rows *fine,
                     void *scratch, const foreloop_shares *shares) {
    const size_t in = call->in, out = call->out;
    float *rests = fine->memory, *correction = rests + FINE_ROWS * in, *zeros = correction + FINE_ROWS * out;
    memset(zeros, 0, out * sizeof *zeros);
    for (size_t first = 0, end; first < call->rows; first = end) {
        int32_t count = 0;
        for (end = first; end < call->rows && (fine->rows[end] < 0 || count < FINE_ROWS); end++)
            if (fine->rows[end] >= 0) {
                kernel->remainder(rests + (size_t)count * in, call->x + end * call->x_stride, in);
                fine->rows[end] = count++;
            }
        foreloop_linear_call part = {.rows = (size_t)count,
                                     .in = in,
                                     .out = out,
                                     .x = rests,
                                     .x_stride = in,
                                     .packed = call->packed,
                                     .bias = zeros,
                                     .epilogue = FORELOOP_EPILOGUE_NONE,
                                     .y = correction,
                                     .y_stride = out};
        if (count > 0)
            run(kernel, part, scratch, shares);
        part = *call;
        part.rows = end - first;
        part.x += first * call->x_stride;
        part.y += first * call->y_stride;
        if (call->residual)
            part.residual += first * call->y_stride;
        part.correction_of = fine->rows + first;
        part.correction = correction;
        run(kernel, part, scratch, shares);
    }
}

void foreloop_linear_weights_run(const foreloop_linear_weights *linear, foreloop_linear_call call,
                                 const foreloop_fine_rows *fine, void *scratch, const foreloop_shares *shares) {
    call.in = linear->in;
    call.out = linear->out;
    call.packed = linear->packed;
    call.bias = linear->bias;
    if (fine && linear->kernel.remainder)
        run_fine(&linear->kernel, &call, fine, scratch, shares);
    else
        run(&linear->kernel, call, scratch, shares);
}
