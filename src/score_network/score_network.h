/*
 * The score network: a small multilayer perceptron over a model's features, whose output is added to the margin of its
 * trees. It is immutable once loaded; what it computes has the same bits in every tier and for a row alone as in a
 * block (kernels_cpu/mlp_f32.h).
 */
#ifndef FORELOOP_SCORE_NETWORK_SCORE_NETWORK_H
#define FORELOOP_SCORE_NETWORK_SCORE_NETWORK_H

#include "common/safetensors.h"
#include "kernels_cpu/mlp_f32.h"

enum { FORELOOP_SCORE_NETWORK_MAX_LAYERS = 8, FORELOOP_SCORE_NETWORK_MAX_WIDTH = 4096 };

/* No number of a layer is larger than this for any features. It is less than half of the distance between the largest
 * floats: so the network's output added to any finite margin is finite. */
#define FORELOOP_SCORE_NETWORK_MAX_VALUE 1e30
#define FORELOOP_SCORE_NETWORK_MAX_LIMIT 1e6f

typedef struct foreloop_score_network {
    const foreloop_allocator *allocator; /* borrowed */
    foreloop_mlp_f32 kernels;
    size_t input_count;
    uint32_t *features; /* [input_count]: the model's features that are read, rising */
    float *shift;       /* [input_count] */
    float *scale;       /* [input_count], not 0 */
    float limit;
    size_t layer_count;
    foreloop_mlp_layer layers[FORELOOP_SCORE_NETWORK_MAX_LAYERS]; /* the last has one output, and no relu after it */
} foreloop_score_network;

/*
 * Loads from tensors named PREFIX + name (weights/FORMAT.md): shapes, finite numbers and a bound on what can come out
 * are checked. `feature_count` is that of the model; `tier` is of the kernels. `allocator` is borrowed until close.
 * MISMATCH for tensors that are missing or of another shape, UNSUPPORTED for other types than floating point, VALUE for
 * numbers that will not do, MEMORY. On failure `network` is untouched and nothing is owned.
 */
foreloop_status foreloop_score_network_load(foreloop_score_network *network, const foreloop_allocator *allocator,
                                            const foreloop_safetensors *weights, const char *prefix,
                                            size_t feature_count, foreloop_tier tier, foreloop_error *error);
/* Takes a zeroed struct too. */
void foreloop_score_network_close(foreloop_score_network *network);

/* The floats of scratch that the functions below need, aligned to 64. */
size_t foreloop_score_network_scratch(const foreloop_score_network *network);

/* scores[r] <- scores[r] + the network's output for row r, of up to FORELOOP_MLP_ROWS. Input i of row r is
 * block[values[i] * FORELOOP_MLP_ROWS + r]; whole groups of FORELOOP_MLP_LANES rows are read. `block` is aligned to 64.
 */
void foreloop_score_network_add_block(const foreloop_score_network *network, const float *block, const uint32_t *values,
                                      size_t rows, float *scratch, float *scores);

/* The network's output for one row, of which input i is row[columns[i]]. */
float foreloop_score_network_row(const foreloop_score_network *network, const float *row, const uint32_t *columns,
                                 float *scratch);

#endif
