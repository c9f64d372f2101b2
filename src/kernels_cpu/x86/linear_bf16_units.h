/* linear_bf16's rows in units, as float32 that hold bfloat16 or as bfloat16, and its calls. The file that includes this
 * has defined UNIT_ROWS, and NUMBER: the bytes of a number of the prepared rows, 4 or 2. */
#ifndef FORELOOP_KERNELS_CPU_X86_LINEAR_BF16_UNITS_H
#define FORELOOP_KERNELS_CPU_X86_LINEAR_BF16_UNITS_H

#include "kernels_cpu/convert_bf16.h"
#include "kernels_cpu/linear_bf16.h"
#include "kernels_cpu/x86/linear_units.h"

FORELOOP_INLINE unit_shape bf16_shape(size_t in) {
    return unit_shape_of(UNIT_ROWS, foreloop_bf16_inputs(in) * NUMBER / CHUNK, 0);
}

enum { CHUNK_INPUTS = CHUNK / NUMBER };

/* One chunk from x[count]; what is missing is 0. */
FORELOOP_INLINE void bf16_chunk(unsigned char *chunk, const float *x, size_t count) {
    float padded[CHUNK_INPUTS] = {0};
    if (count < CHUNK_INPUTS) {
        memcpy(padded, x, count * sizeof *x);
        x = padded;
    }
    if (NUMBER == sizeof(uint32_t)) {
        uint32_t numbers[CHUNK_INPUTS];
        for (size_t i = 0; i < CHUNK_INPUTS; i++)
            numbers[i] = foreloop_bf16_upper(x[i]);
        memcpy(chunk, numbers, CHUNK);
    } else {
        uint16_t numbers[CHUNK_INPUTS];
        for (size_t i = 0; i < CHUNK_INPUTS; i++)
            numbers[i] = foreloop_bf16_of(x[i]);
        memcpy(chunk, numbers, CHUNK);
    }
}

static size_t prepared_size(size_t rows, size_t in) {
    const unit_shape shape = bf16_shape(in);
    return unit_memory(&shape, rows);
}

static void prepare(void *prepared, const float *x, size_t x_stride, size_t rows, size_t in, size_t row_begin,
                    size_t row_end) {
    const unit_shape shape = bf16_shape(in);
    clear_rest(&shape, prepared, rows, row_end);
    for (size_t r = row_begin; r < row_end; r++) {
        unsigned char *to = (unsigned char *)prepared + r / UNIT_ROWS * shape.size + r % UNIT_ROWS * CHUNK;
        for (size_t c = 0; c < shape.chunks; c++, to += UNIT_ROWS * CHUNK) {
            const size_t first = c * CHUNK_INPUTS < in ? c * CHUNK_INPUTS : in;
            bf16_chunk(to, x + r * x_stride + first, in - first);
        }
    }
}

static void run_unit(const unit_work *work);

static void run(const foreloop_linear_call *call, size_t row_begin, size_t row_end, size_t out_begin, size_t out_end) {
    const unit_shape shape = bf16_shape(call->in);
    begin_units();
    for_each_unit(call, &shape, call->packed, foreloop_bf16_panel_size(call->in), row_begin, row_end, out_begin,
                  out_end, run_unit);
    end_units();
}

FORELOOP_INLINE void bf16_kernel(foreloop_linear *linear, const char *name) {
    *linear = (foreloop_linear){.tier = TIER,
                                .name = name,
                                .packed_size = foreloop_bf16_packed_size,
                                .pack = foreloop_bf16_pack,
                                .prepared_size = prepared_size,
                                .prepare = prepare,
                                .row_unit = UNIT_ROWS,
                                .out_unit = PANEL,
                                .run = run};
}

#endif
