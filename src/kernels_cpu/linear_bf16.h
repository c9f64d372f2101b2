/*
 * Kernel family linear_bf16: layers of linear.h that multiply bfloat16 by bfloat16 and add up in float32.
 *
 * W and x are rounded to bfloat16, to the nearest and of two equally near to the even one; NaN stays NaN and is
 * quieted, infinities stay. The product of two bfloat16 is exact in float32. Sums begin at 0 and take the inputs in
 * pairs (2p, 2p + 1) by rising p, the odd one of a pair first, rounding after each, so every kernel but AMX gives the
 * same bits, unless a number lies below 2^-126: avx512_bf16 and amx take such numbers for 0, and give 0 for them. AMX
 * adds up even and odd inputs of each 32 on their own from 0, by fused multiply-adds, then adds odd to even, and this
 * to the sum. Bias and epilogue follow in float32.
 */
#ifndef FORELOOP_KERNELS_CPU_LINEAR_BF16_H
#define FORELOOP_KERNELS_CPU_LINEAR_BF16_H

#include "kernels_cpu/linear.h"

/* The kernels for a choice of features (cpu.h). */
void foreloop_linear_bf16_init(foreloop_linear *linear, unsigned features);

void foreloop_linear_bf16_ref(foreloop_linear *linear);
void foreloop_linear_bf16_avx2(foreloop_linear *linear);        /* widens to float32 for fused multiply-adds */
void foreloop_linear_bf16_avx512(foreloop_linear *linear);      /* the same */
void foreloop_linear_bf16_avx512_bf16(foreloop_linear *linear); /* vdpbf16ps */
void foreloop_linear_bf16_amx(foreloop_linear *linear);         /* tdpbf16ps */

/*
 * All of them read W in one layout: panels of 32 outputs, each [inputs / 2][32][2], the inputs filled up with zeros to
 * a multiple of 32 and the outputs to one of 32.
 */
enum { FORELOOP_BF16_PANEL = 32, FORELOOP_BF16_INPUTS = 32 };

static inline size_t foreloop_bf16_inputs(size_t in) {
    return (in + FORELOOP_BF16_INPUTS - 1) / FORELOOP_BF16_INPUTS * FORELOOP_BF16_INPUTS;
}

/* Bytes of a panel. */
static inline size_t foreloop_bf16_panel_size(size_t in) {
    return foreloop_bf16_inputs(in) * FORELOOP_BF16_PANEL * 2;
}

size_t foreloop_bf16_packed_size(size_t in, size_t out);
void foreloop_bf16_pack(void *packed, const float *weight, size_t in, size_t out);

#endif
