/* What the files of trees_f32 on AVX-512 share. */
#ifndef FORELOOP_KERNELS_CPU_X86_TREES_F32_AVX512_H
#define FORELOOP_KERNELS_CPU_X86_TREES_F32_AVX512_H

#include "kernels_cpu/trees_f32.h"

/* Adds the leaves of trees to sums[16] from codes of one group of rows, which are FORELOOP_TREES_GROUP apart. */
void foreloop_trees_f32_avx512_add_group(float *sums, const int8_t *codes, const foreloop_trees_data *data,
                                         const foreloop_trees_tree *trees, size_t tree_count);

#endif
