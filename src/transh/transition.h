/* The weights of the world model's transition: action embeddings d_a = D[r] + MLP_r(phi(a)) and TransH hyperplanes. */
#ifndef FORELOOP_TRANSH_TRANSITION_H
#define FORELOOP_TRANSH_TRANSITION_H

#include "common/safetensors.h"
#include "kernels_cpu/transh_f32.h"
#include "transh/vocabulary.h"

/* MLP_r with column-major matrices, so that both layers run over contiguous outputs. */
typedef struct foreloop_transition_mlp {
    size_t hidden;        /* 0: the kind has no MLP */
    const float *weight0; /* [elements][hidden] */
    const float *bias0;   /* [hidden] */
    const float *weight1; /* [hidden][stride] */
    const float *bias1;   /* [stride] */
} foreloop_transition_mlp;

typedef struct foreloop_transition {
    foreloop_arena arena;
    foreloop_transh_f32 kernels;
    size_t size;   /* d */
    size_t stride; /* d rounded up to the lanes of the kernels; the padding is zero */
    size_t max_hidden;
    const float *kind_embedding;         /* [kinds][stride] */
    const float *normal;                 /* [kinds][stride], unit length */
    const float *beta;                   /* [kinds] */
    const foreloop_transition_mlp *mlps; /* [kinds] */
} foreloop_transition;

/* Latent states and embeddings have elements of this magnitude at the most: then no sequence of FORELOOP_MAX_LENGTH
 * actions can overflow. */
#define FORELOOP_MAX_LATENT_VALUE 1e18f
enum { FORELOOP_MAX_LENGTH = 1 << 24 };

/* Loads from tensors named PREFIX + name (weights/FORMAT.md). Shapes, finiteness, unit normals and beta in [0, 2] are
 * checked. `tier` is of the kernels. `allocator` is borrowed until close. On failure nothing is owned. */
foreloop_status foreloop_transition_load(foreloop_transition *transition, const foreloop_allocator *allocator,
                                         const foreloop_safetensors *tensors, const char *prefix,
                                         const foreloop_vocabulary *vocabulary, size_t size, foreloop_tier tier,
                                         foreloop_error *error);
void foreloop_transition_close(foreloop_transition *transition);

/* Writes d_a to embedding[stride] for an action of this kind with the given phi. `hidden` is scratch for max_hidden
 * numbers. FORELOOP_ERROR_VALUE when the result is too large. */
foreloop_status foreloop_transition_embed(const foreloop_transition *transition, const foreloop_vocabulary *vocabulary,
                                          size_t kind, const float *phi, float *hidden, float *embedding,
                                          foreloop_error *error);

#endif
