/*
 * The table of the encoder's CPU kernels: one entry per family, each with a contract header of its own. The reference
 * implementations fill the whole table; the tiers of this machine overlay single entries. An object that packs weights
 * keeps a copy of the entries that it packed for, so there is no global table.
 *
 * A family of linear layers is a foreloop_linear (linear.h): it packs a layer's weights from float32 and multiplies by
 * them. A further precision is a further entry of `linear`; a further tier of a precision fills the same entry.
 */
#ifndef FORELOOP_KERNELS_CPU_KERNELS_H
#define FORELOOP_KERNELS_CPU_KERNELS_H

#include "kernels_cpu/activation_f32.h"
#include "kernels_cpu/attention_f32.h"
#include "kernels_cpu/layer_norm_f32.h"
#include "kernels_cpu/linear.h"

enum { FORELOOP_PRECISIONS = FORELOOP_PRECISION_INT8_ROW + 1 };

typedef struct foreloop_kernels {
    foreloop_tier tier;
    foreloop_linear linear[FORELOOP_PRECISIONS];
    foreloop_attention_f32 attention;
    foreloop_layer_norm_f32 *layer_norm;
    foreloop_activation_f32 *activation[FORELOOP_ACTIVATION_COUNT];
} foreloop_kernels;

/* What an encoder's kernels are chosen by. */
typedef struct foreloop_kernel_choice {
    foreloop_tier tier;           /* one that this machine has */
    foreloop_precision precision; /* of the transformer's linear layers */
    unsigned features;            /* bits of foreloop_cpu_feature on top of the tier, from foreloop_cpu_choose */
} foreloop_kernel_choice;

/* The kernels of the given tier, which this machine must have, and of the features that build on it. */
void foreloop_kernels_init(foreloop_kernels *kernels, foreloop_tier tier, unsigned features);

#endif
