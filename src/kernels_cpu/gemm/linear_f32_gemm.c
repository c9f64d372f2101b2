/* linear_f32 by a library's matrix product, bias and epilogue in passes of their own. */
#include "kernels_cpu/gemm/gemm.h"
#include <string.h>

static size_t packed_size(size_t in, size_t out) {
    return in * out * sizeof(float);
}

static void pack(void *packed, const float *weight, size_t in, size_t out) {
    memcpy(packed, weight, in * out * sizeof(float));
}

static void run_with(const foreloop_linear_call *call, size_t row_begin, size_t row_end, size_t out_begin,
                     size_t out_end, foreloop_activation_f32 *const *activations) {
    const size_t rows = row_end - row_begin, width = out_end - out_begin, stride = call->y_stride;
    const size_t place = row_begin * stride + out_begin;
    const int add = call->epilogue == FORELOOP_EPILOGUE_RESIDUAL;
    float *y = call->y + place;
    /* A single row may come with any stride; libraries check it. */
    const size_t x_stride = call->x_stride < call->in ? call->in : call->x_stride;
    const size_t y_stride = stride < width ? width : stride;
    for (size_t r = 0; add && call->residual != call->y && r < rows; r++)
        memcpy(y + r * stride, call->residual + place + r * stride, width * sizeof *y);
    foreloop_gemm_f32(y, y_stride, call->x + row_begin * call->x_stride, x_stride,
                      (const float *)call->packed + out_begin * call->in, rows, call->in, width, add);
    for (size_t r = 0; r < rows; r++) {
        for (size_t o = 0; o < width; o++)
            y[r * stride + o] += call->bias[out_begin + o];
        if (call->epilogue < FORELOOP_EPILOGUE_NONE)
            activations[call->epilogue](y + r * stride, width);
    }
}

#define DEFINE_RUN(tier)                                                                                               \
    static void run_##tier(const foreloop_linear_call *call, size_t row_begin, size_t row_end, size_t out_begin,       \
                           size_t out_end) {                                                                           \
        static foreloop_activation_f32 *const activations[] = {                                                        \
            foreloop_gelu_f32_##tier, foreloop_gelu_tanh_f32_##tier, foreloop_relu_f32_##tier};                        \
        run_with(call, row_begin, row_end, out_begin, out_end, activations);                                           \
    }

DEFINE_RUN(ref)
#if defined(FORELOOP_X86_KERNELS)
DEFINE_RUN(avx2)
DEFINE_RUN(avx512)
#endif

void foreloop_linear_f32_gemm(foreloop_linear *linear, foreloop_tier tier) {
    *linear = (foreloop_linear){.tier = tier,
                                .name = "f32, " FORELOOP_GEMM_LIBRARY,
                                .largest_in = 1u << 30, /* the library counts in int */
                                .packed_size = packed_size,
                                .pack = pack,
                                .row_unit = 16,
                                .out_unit = 32,
                                .run = run_ref};
#if defined(FORELOOP_X86_KERNELS)
    if (tier >= FORELOOP_TIER_AVX2)
        linear->run = tier == FORELOOP_TIER_AVX2 ? run_avx2 : run_avx512;
#endif
}
