/* The end of linear layers whose kernels leave their sums in a small buffer of panels. In a header, so that each tier's
 * loops become its vectors. */
#ifndef FORELOOP_KERNELS_CPU_LINEAR_FINISH_H
#define FORELOOP_KERNELS_CPU_LINEAR_FINISH_H

#include "kernels_cpu/linear.h"

enum { FORELOOP_LINEAR_PANEL = 32 };

/* Rows row <= r < row + rows and outputs out <= o < out + 32 of a call, as far as it has them, from sums[rows][32],
 * which are overwritten. */
static inline void foreloop_linear_finish(const foreloop_linear_call *call, float *sums, size_t row, size_t rows,
                                          size_t out, foreloop_activation_f32 *const *activations) {
    enum { PANEL = FORELOOP_LINEAR_PANEL };
    const size_t width = call->out - out < PANEL ? call->out - out : PANEL;
    for (size_t r = 0; r < rows && call->correction_of; r++)
        if (call->correction_of[row + r] >= 0) {
            const float *correction = call->correction + (size_t)call->correction_of[row + r] * call->out + out;
            for (size_t o = 0; o < width; o++)
                sums[r * PANEL + o] += correction[o];
        }
    if (width < PANEL)
        for (size_t r = 0; r < rows; r++)
            for (size_t o = 0; o < width; o++)
                sums[r * PANEL + o] += call->bias[out + o];
    else
        for (size_t r = 0; r < rows; r++)
            for (size_t o = 0; o < PANEL; o++)
                sums[r * PANEL + o] += call->bias[out + o];
    if (call->epilogue < FORELOOP_EPILOGUE_NONE)
        activations[call->epilogue](sums, rows * PANEL);
    for (size_t r = 0; r < rows; r++) {
        const size_t place = (row + r) * call->y_stride + out;
        float *y = call->y + place;
        const float *from = sums + r * PANEL;
        if (call->epilogue == FORELOOP_EPILOGUE_RESIDUAL)
            for (size_t o = 0; o < width; o++)
                y[o] = from[o] + call->residual[place + o];
        else
            for (size_t o = 0; o < width; o++)
                y[o] = from[o];
    }
}

#endif
