/*
 * The table of CPU kernels: one entry per family, each with a contract header of its own. The reference implementations
 * fill the whole table; faster tiers overlay single entries. An object that packs weights keeps a copy of the table
 * that it packed for, so there is no global table.
 */
#ifndef FORELOOP_KERNELS_CPU_KERNELS_H
#define FORELOOP_KERNELS_CPU_KERNELS_H

#include "kernels_cpu/activation_f32.h"
#include "kernels_cpu/layer_norm_f32.h"
#include "kernels_cpu/linear_f32.h"
#include "kernels_cpu/softmax_f32.h"

typedef struct foreloop_kernels {
    foreloop_linear_f32 linear;
    foreloop_layer_norm_f32 *layer_norm;
    foreloop_softmax_f32 *softmax;
    foreloop_activation_f32 *activation[FORELOOP_ACTIVATION_COUNT];
} foreloop_kernels;

void foreloop_kernels_init(foreloop_kernels *kernels);

#endif
