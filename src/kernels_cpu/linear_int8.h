/*
 * Kernel family linear_int8: layers of linear.h that multiply unsigned by signed bytes, add up exactly in integers, and
 * scale in float32. Inputs are cut in groups: of 64, or all inputs as one group (`whole_rows`; at most
 * FORELOOP_INT8_ROW_INPUTS, so that no sum leaves 32 bits).
 *
 *   W(o, i) ~ weight_scale(o, g) w(o, i)             w from -127 to 127; weight_scale = max |W(o, .)| over the group /
 * 127 x(r, i) ~ input_scale(r, g) (q(r, i) - zero(r, g))   q and zero from 0 to 255; the range of the group, with 0 in
 * it, is cut in 255 steps
 *
 *   y(r, o) = sum over g, by rising g from 0, of fmaf(float(S(r, o, g)), input_scale(r, g) weight_scale(o, g), .)
 *   S(r, o, g) = sum over i in g of (q - zero) w, exact
 *
 * then bias and epilogue. Everything up to the bias has the same bits with every kernel. A group of inputs with a NaN
 * or an infinity in it gives NaN for the whole row; one whose numbers all lie below 1e-30 counts as zeros.
 */
#ifndef FORELOOP_KERNELS_CPU_LINEAR_INT8_H
#define FORELOOP_KERNELS_CPU_LINEAR_INT8_H

#include "kernels_cpu/linear.h"
#include <stdbool.h>

/* 255 x 127 x this is below 2^31. */
enum { FORELOOP_INT8_ROW_INPUTS = 65536 };

/* The kernels for a choice of features (cpu.h). */
void foreloop_linear_int8_init(foreloop_linear *linear, unsigned features, bool whole_rows);

void foreloop_linear_int8_ref(foreloop_linear *linear, bool whole_rows);
void foreloop_linear_int8_avx2(foreloop_linear *linear, bool whole_rows);        /* vpmaddwd on widened bytes */
void foreloop_linear_int8_avx512(foreloop_linear *linear, bool whole_rows);      /* the same */
void foreloop_linear_int8_avx512_vnni(foreloop_linear *linear, bool whole_rows); /* vpdpbusd */
void foreloop_linear_int8_amx(foreloop_linear *linear, bool whole_rows);         /* tdpbusd */

/*
 * The layout of W: panels of 32 outputs; in a panel blocks, one for each group; in a block the bytes
 * [inputs / unit][32][unit], then 32 scales, then the 32 sums of the group's w. `unit` is how many inputs a kernel
 * takes at a time: 1, 2 or 4. Inputs are filled up with zeros to a multiple of 64, outputs to one of 32.
 */
enum { FORELOOP_INT8_PANEL = 32, FORELOOP_INT8_GROUP = 64, FORELOOP_INT8_BLOCK_END = 2 * 4 * FORELOOP_INT8_PANEL };

static inline size_t foreloop_int8_groups(size_t in) {
    return (in + FORELOOP_INT8_GROUP - 1) / FORELOOP_INT8_GROUP;
}

/* Bytes of a panel: of a block times the blocks. */
static inline size_t foreloop_int8_panel_size(size_t in, bool whole_rows) {
    const size_t groups = foreloop_int8_groups(in);
    return groups * FORELOOP_INT8_GROUP * FORELOOP_INT8_PANEL + (whole_rows ? 1 : groups) * FORELOOP_INT8_BLOCK_END;
}

size_t foreloop_int8_packed_size(size_t in, size_t out, bool whole_rows);
/* foreloop_linear's `remainder`, for all kernels. */
void foreloop_int8_remainder_groups(float *rest, const float *x, size_t in);
void foreloop_int8_remainder_rows(float *rest, const float *x, size_t in);
void foreloop_int8_pack(void *packed, const float *weight, size_t in, size_t out, size_t unit, bool whole_rows);

#endif
