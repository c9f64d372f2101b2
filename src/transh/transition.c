/* Loading and checking of the transition's tensors, and the embedding of one action. */
#include "transh/transition.h"
#include "common/error.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_HIDDEN = 1 << 16 };

typedef struct loader {
    foreloop_transition *transition;
    const foreloop_safetensors *tensors;
    const char *prefix;
    float *scratch; /* the tensor as it stands in the file */
    size_t scratch_capacity;
    foreloop_error *error;
} loader;

static foreloop_status find(const loader *load, const char *name, const foreloop_tensor **tensor) {
    return foreloop_safetensors_require(load->tensors, load->prefix, name, "the transition", tensor, load->error);
}

/* Reads a tensor of the given shape as float32 into rows of `stride` >= columns, padded with zeros; transposed first
 * when asked, so that rows and columns are those of the result. */
static foreloop_status read_matrix(loader *load, const foreloop_tensor *tensor, size_t rank, size_t rows,
                                   size_t columns, size_t stride, bool transpose, const float **result) {
    size_t shape[2] = {transpose ? columns : rows, transpose ? rows : columns};
    if (rank == 1)
        shape[0] = rows * columns;
    FORELOOP_TRY(foreloop_tensor_expect_shape(tensor, rank, shape, load->error));
    FORELOOP_TRY(foreloop_reserve(load->transition->arena.allocator, &load->scratch, &load->scratch_capacity, 0,
                                  rows * columns, sizeof(float), load->error));
    FORELOOP_TRY(foreloop_tensor_to_float(tensor, true, load->scratch, load->error));
    if (rows && stride > SIZE_MAX / sizeof(float) / rows)
        return foreloop_fail_memory(load->error, rows, stride, tensor->name);
    float *out = foreloop_arena_allocate(&load->transition->arena, rows * stride, sizeof *out);
    if (!out)
        return foreloop_fail_memory(load->error, rows * stride, sizeof *out, tensor->name);
    memset(out, 0, rows * stride * sizeof *out);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            out[i * stride + j] = load->scratch[transpose ? j * rows + i : i * columns + j];
    *result = out;
    return FORELOOP_OK;
}

static foreloop_status load_mlp(loader *load, const foreloop_kind *kind, foreloop_transition_mlp *mlp) {
    static const char *const names[] = {"0.weight", "0.bias", "1.weight", "1.bias"};
    const foreloop_tensor *tensors[4];
    char full[4][FORELOOP_MAX_NAME + sizeof "mlp..0.weight"];
    size_t present = 0;
    *mlp = (foreloop_transition_mlp){0};
    if (kind->slot_count == 0)
        return FORELOOP_OK;
    for (size_t i = 0; i < 4; i++) {
        snprintf(full[i], sizeof full[i], "mlp.%s.%s", kind->name, names[i]);
        present += foreloop_safetensors_find_part(load->tensors, load->prefix, full[i]) != NULL;
    }
    if (present == 0)
        return FORELOOP_OK;
    for (size_t i = 0; i < 4; i++)
        FORELOOP_TRY(find(load, full[i], &tensors[i])); /* some are there: all must be */
    size_t hidden = tensors[1]->rank == 1 ? tensors[1]->shape[0] : 0;
    if (hidden == 0 || hidden > MAX_HIDDEN)
        return foreloop_fail(load->error, FORELOOP_ERROR_MISMATCH,
                             "the tensor '%.200s' must have one dimension of 1 to %d elements", tensors[1]->name,
                             MAX_HIDDEN);
    const foreloop_transition *transition = load->transition;
    FORELOOP_TRY(read_matrix(load, tensors[0], 2, kind->element_count, hidden, hidden, true, &mlp->weight0));
    FORELOOP_TRY(read_matrix(load, tensors[1], 1, 1, hidden, hidden, false, &mlp->bias0));
    FORELOOP_TRY(read_matrix(load, tensors[2], 2, hidden, transition->size, transition->stride, true, &mlp->weight1));
    FORELOOP_TRY(read_matrix(load, tensors[3], 1, 1, transition->size, transition->stride, false, &mlp->bias1));
    mlp->hidden = hidden;
    return FORELOOP_OK;
}

/* Scales the normals to unit length: training keeps them there up to rounding, and the rollout relies on it. */
static foreloop_status normalize(loader *load, const foreloop_vocabulary *vocabulary, float *normal) {
    const foreloop_transition *transition = load->transition;
    for (size_t r = 0; r < vocabulary->kind_count; r++, normal += transition->stride) {
        double squares = 0;
        for (size_t i = 0; i < transition->size; i++)
            squares += (double)normal[i] * normal[i];
        double length = sqrt(squares);
        if (!(fabs(length - 1) <= 1e-3))
            return foreloop_fail(load->error, FORELOOP_ERROR_VALUE,
                                 "the normal of kind '%.40s' must have unit length within 0.001",
                                 vocabulary->kinds[r].name);
        for (size_t i = 0; i < transition->size; i++)
            normal[i] = (float)(normal[i] / length);
    }
    return FORELOOP_OK;
}

static foreloop_status load_tensors(loader *load, const foreloop_vocabulary *vocabulary) {
    foreloop_transition *transition = load->transition;
    const foreloop_tensor *tensor;
    size_t kinds = vocabulary->kind_count, size = transition->size, stride = transition->stride;
    FORELOOP_TRY(find(load, "kind_embedding", &tensor));
    FORELOOP_TRY(read_matrix(load, tensor, 2, kinds, size, stride, false, &transition->kind_embedding));
    FORELOOP_TRY(find(load, "normal", &tensor));
    FORELOOP_TRY(read_matrix(load, tensor, 2, kinds, size, stride, false, &transition->normal));
    FORELOOP_TRY(normalize(load, vocabulary, (float *)transition->normal));
    FORELOOP_TRY(find(load, "beta", &tensor));
    FORELOOP_TRY(read_matrix(load, tensor, 1, 1, kinds, kinds, false, &transition->beta));
    for (size_t r = 0; r < kinds; r++)
        if (!(transition->beta[r] >= 0 && transition->beta[r] <= 2))
            return foreloop_fail(load->error, FORELOOP_ERROR_VALUE, "beta of kind '%.40s' must be from 0 to 2",
                                 vocabulary->kinds[r].name);
    foreloop_transition_mlp *mlps = foreloop_arena_allocate(&transition->arena, kinds, sizeof *mlps);
    if (!mlps)
        return foreloop_fail_memory(load->error, kinds, sizeof *mlps, "MLPs");
    transition->mlps = mlps;
    for (size_t r = 0; r < kinds; r++) {
        FORELOOP_TRY(load_mlp(load, &vocabulary->kinds[r], &mlps[r]));
        if (mlps[r].hidden > transition->max_hidden)
            transition->max_hidden = mlps[r].hidden;
    }
    return FORELOOP_OK;
}

foreloop_status foreloop_transition_load(foreloop_transition *transition, const foreloop_allocator *allocator,
                                         const foreloop_safetensors *tensors, const char *prefix,
                                         const foreloop_vocabulary *vocabulary, size_t size, foreloop_tier tier,
                                         foreloop_error *error) {
    size_t lanes = FORELOOP_TRANSH_LANES;
    *transition = (foreloop_transition){
        .arena = {.allocator = allocator}, .size = size, .stride = (size + lanes - 1) / lanes * lanes};
    foreloop_transh_f32_init(&transition->kernels, tier);
    loader load = {.transition = transition, .tensors = tensors, .prefix = prefix, .error = error};
    foreloop_status status = load_tensors(&load, vocabulary);
    foreloop_release(allocator, load.scratch);
    if (status != FORELOOP_OK)
        foreloop_transition_close(transition);
    return status;
}

void foreloop_transition_close(foreloop_transition *transition) {
    if (transition->arena.allocator)
        foreloop_arena_close(&transition->arena);
    *transition = (foreloop_transition){0};
}

foreloop_status foreloop_transition_embed(const foreloop_transition *transition, const foreloop_vocabulary *vocabulary,
                                          size_t kind, const float *phi, float *hidden, float *embedding,
                                          foreloop_error *error) {
    const foreloop_transition_mlp *mlp = &transition->mlps[kind];
    const float *base = transition->kind_embedding + kind * transition->stride;
    if (mlp->hidden) {
        transition->kernels.affine(mlp->weight0, mlp->bias0, phi, mlp->hidden, vocabulary->kinds[kind].element_count,
                                   hidden);
        for (size_t i = 0; i < mlp->hidden; i++)
            hidden[i] = hidden[i] > 0 ? hidden[i] : 0;
        transition->kernels.affine(mlp->weight1, mlp->bias1, hidden, transition->stride, mlp->hidden, embedding);
        for (size_t i = 0; i < transition->stride; i++)
            embedding[i] += base[i];
    } else {
        memcpy(embedding, base, transition->stride * sizeof *embedding);
    }
    unsigned beyond = 0; /* without a way out of the loop, so that it becomes vectors */
    for (size_t i = 0; i < transition->size; i++)
        beyond |= !(fabsf(embedding[i]) <= FORELOOP_MAX_LATENT_VALUE);
    if (beyond)
        return foreloop_fail(error, FORELOOP_ERROR_VALUE,
                             "the embedding of an action of kind '%.40s' overflows: its arguments are too large",
                             vocabulary->kinds[kind].name);
    return FORELOOP_OK;
}
