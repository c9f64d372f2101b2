/* linear_bf16, reference: x rounded to bfloat16 but kept as float32; plain multiplications and additions, since the
 * products are exact. */
#include "kernels_cpu/convert_bf16.h"
#include "kernels_cpu/linear_bf16.h"
#include "kernels_cpu/linear_finish.h"

enum { PANEL = FORELOOP_BF16_PANEL, ROWS = 16 };

static size_t prepared_size(size_t rows, size_t in) {
    return rows * foreloop_bf16_inputs(in) * sizeof(float);
}

static void prepare(void *prepared, const float *x, size_t x_stride, size_t rows, size_t in, size_t row_begin,
                    size_t row_end) {
    const size_t inputs = foreloop_bf16_inputs(in);
    (void)rows;
    for (size_t r = row_begin; r < row_end; r++) {
        float *to = (float *)prepared + r * inputs;
        for (size_t i = 0; i < in; i++)
            to[i] = foreloop_float_of_bits(foreloop_bf16_upper(x[r * x_stride + i]));
        for (size_t i = in; i < inputs; i++)
            to[i] = 0;
    }
}

/* sums[PANEL] += x[2 pairs] times the panel's rows. */
static void accumulate(float *restrict sums, const float *restrict x, const uint16_t *restrict w, size_t pairs) {
    float even[PANEL], odd[PANEL];
    for (size_t p = 0; p < pairs; p++, w += 2 * PANEL) {
        for (size_t o = 0; o < PANEL; o++) {
            even[o] = foreloop_bf16_float(w[2 * o]);
            odd[o] = foreloop_bf16_float(w[2 * o + 1]);
        }
        for (size_t o = 0; o < PANEL; o++)
            sums[o] = (sums[o] + x[2 * p + 1] * odd[o]) + x[2 * p] * even[o];
    }
}

static void run(const foreloop_linear_call *call, size_t row_begin, size_t row_end, size_t out_begin, size_t out_end) {
    static foreloop_activation_f32 *const activations[] = {foreloop_gelu_f32_ref, foreloop_gelu_tanh_f32_ref,
                                                           foreloop_relu_f32_ref};
    enum { BLOCK = FORELOOP_BF16_INPUTS };
    const size_t inputs = foreloop_bf16_inputs(call->in);
    const unsigned char *panels = call->packed;
    for (size_t out = out_begin; out < out_end; out += PANEL) {
        const uint16_t *panel = (const uint16_t *)(panels + out / PANEL * foreloop_bf16_panel_size(call->in));
        for (size_t row = row_begin; row < row_end; row += ROWS) {
            const size_t rows = row_end - row < ROWS ? row_end - row : ROWS;
            float sums[ROWS][PANEL] = {{0}};
            for (size_t i = 0; i < inputs; i += BLOCK)
                for (size_t r = 0; r < rows; r++)
                    accumulate(sums[r], (const float *)call->prepared + (row + r) * inputs + i, panel + i * PANEL,
                               BLOCK / 2);
            foreloop_linear_finish(call, &sums[0][0], row, rows, out, activations);
        }
    }
}

void foreloop_linear_bf16_ref(foreloop_linear *linear) {
    *linear = (foreloop_linear){.tier = FORELOOP_TIER_REF,
                                .name = "bf16",
                                .packed_size = foreloop_bf16_packed_size,
                                .pack = foreloop_bf16_pack,
                                .prepared_size = prepared_size,
                                .prepare = prepare,
                                .row_unit = 1,
                                .out_unit = PANEL,
                                .run = run};
}
