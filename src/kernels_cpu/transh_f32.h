/*
 * Kernels of the latent state: TransH rollouts on dot products, with bits that every tier must give.
 *
 * A step of a sequence is z <- z - beta_r (w_r . z) w_r + d. As a rollout is affine in z, it runs on p = W z, one
 * number a kind, and z is formed once at the end:
 *
 *     c = p[r];   gamma[r] += c;   p <- fma(-c, gram[r], p + W d);   sum += d          (each step)
 *     z = sum, then for the kinds that occur, in order: z <- fma(-gamma[r], normal[r], z)
 *
 * where gram[r] = beta_r (W w_r), normal[r] = beta_r w_r and sum starts as z0. All of that is element by element; only
 * dot products have an order of their own, in 16 lanes: lane i takes elements i, i + 16, ... by fused multiply-adds
 * from 0; then lanes i and i + 8 are added, then i and i + 4, i + 2, i + 1.
 *
 * Sizes are multiples of FORELOOP_TRANSH_LANES (padding is zero); any alignment unless said otherwise; outputs do not
 * overlap inputs.
 */
#ifndef FORELOOP_KERNELS_CPU_TRANSH_F32_H
#define FORELOOP_KERNELS_CPU_TRANSH_F32_H

#include <foreloop/foreloop.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FORELOOP_TRANSH_LANES = 16,
    FORELOOP_TRANSH_SLICE = 32 /* numbers of d that lie together */
};

/* What an action of a kind does to one vector of aggregates. Lanes of take[0] take the action's value where the kind
 * occurs for the first time; later those of take[1] take it, those of `add` add it, those of `max` and `min` keep the
 * larger or smaller number (the older one of equal ones), and the rest stay. All of them are among take[0]. */
typedef struct foreloop_transh_update {
    uint32_t vector;
    uint16_t take[2], add, max, min;
} foreloop_transh_update;

/*
 * What a rollout reads, and where its state lies. A state is state_size floats:
 *
 *     sum[latent]  p[kinds]  gamma[kinds]  aggregates[aggregates]  seen[kinds] (bytes, 1 for kinds that occurred)
 *
 * rounded up to whole vectors. Of an action, what a step reads lies in one table and d apart from it, slice by slice:
 * thousands of actions do not fit a cache of the second level, but one slice of them does, and the sum can be formed
 * for many candidates slice after slice.
 */
typedef struct foreloop_transh_program {
    size_t latent, kinds, aggregates, state_size;
    const float *gram;         /* [kinds][kinds] */
    const float *normal;       /* [kinds][normal_stride] */
    size_t normal_stride;      /* >= latent */
    const float *rows;         /* by action: W d[kinds], values of the updates in order [16 each] */
    size_t row_stride;         /* of `rows` */
    const uint32_t *row_kinds; /* by action */
    float *const *slices;      /* [slices of latent] by action: d[FORELOOP_TRANSH_SLICE] from slice x SLICE on */
    const foreloop_transh_update *updates; /* of kind r: update_begin[r] to update_end[r] */
    const uint32_t *update_begin, *update_end;
} foreloop_transh_program;

/* A part of a rollout: the actions ids[count] take the state in slot `from` to that in slot `to`, which may be the
 * same. */
typedef struct foreloop_transh_segment {
    const uint32_t *ids;
    size_t count;
    uint32_t from, to;
} foreloop_transh_segment;

typedef struct foreloop_transh_f32 {
    const char *tier;
    /* y[rows] <- A x, a dot product for each row of A[rows][size]. */
    void (*products)(const float *matrix, const float *x, size_t rows, size_t size, float *y);
    /* y[rows] <- b + A x with A[columns][rows] (a column of the matrix is contiguous): columns in order, one fused
     * multiply-add each; columns whose x is 0 are left out. */
    void (*affine)(const float *matrix, const float *bias, const float *x, size_t rows, size_t columns, float *y);
    /* All of the segments' steps, one after the other, but the sums: slots[][state_size] are states. Row 0 is all zero
     * and the action 0 of no kind: it changes nothing. `behind` further segments follow, which are not taken: what
     * they will read is fetched meanwhile. */
    void (*steps)(const foreloop_transh_program *program, const foreloop_transh_segment *segments, size_t count,
                  size_t behind, float *slots);
    /* One slice of the segments' sums. Slots lie `stride` floats apart and hold the slice's part of a sum. */
    void (*sums)(const foreloop_transh_program *program, size_t slice, const foreloop_transh_segment *segments,
                 size_t count, size_t behind, float *slots, size_t stride);
    /* z[latent] of a state. */
    void (*finish)(const foreloop_transh_program *program, const float *state, float *z);
    /* Writes one slice of z of 16 candidates by columns: element i of all of them goes to block[columns[slice x SLICE +
     * i] * block_stride]. Their sums lie sum_stride floats apart; foreloop_transh_gather_f32 gave used[used_count] and
     * gamma. `block` is aligned to 64, `block_stride` a multiple of 16. Zeros may get another sign than by finish: no
     * comparison tells. */
    void (*finish_slice)(const foreloop_transh_program *program, size_t slice, const float *sums, size_t sum_stride,
                         const uint32_t *used, size_t used_count, const float *gamma, const uint32_t *columns,
                         float *block, size_t block_stride);
    /* Writes the aggregates of 16 states in the same way; columns[i] is of the i-th aggregate. */
    void (*finish_aggregates)(const foreloop_transh_program *program, const float *states, const uint32_t *columns,
                              float *block, size_t block_stride);
} foreloop_transh_f32;

/* The kernels of the given tier, which this machine must have. */
void foreloop_transh_f32_init(foreloop_transh_f32 *kernels, foreloop_tier tier);

void foreloop_transh_f32_ref(foreloop_transh_f32 *kernels);
void foreloop_transh_f32_avx2(foreloop_transh_f32 *kernels);
void foreloop_transh_f32_avx512(foreloop_transh_f32 *kernels);

/* Takes a state through the actions ids[count], in place. */
void foreloop_transh_roll_f32(const foreloop_transh_f32 *kernels, const foreloop_transh_program *program,
                              const uint32_t *ids, size_t count, float *state);

/* Gathers the kinds that occur in any of 16 states and their gammas, as gamma[i][state] for kind used[i]. Returns their
 * number; used[] and gamma[][16] have room for all kinds. */
size_t foreloop_transh_gather_f32(const foreloop_transh_program *program, const float *states, uint32_t *used,
                                  float *gamma);

/* The columns from `first` on whose x is not 0, of FORELOOP_TRANSH_COLUMNS at the most: list[their number, and one to
 * spare]. For the tiers' affine. */
enum { FORELOOP_TRANSH_COLUMNS = 256 };
size_t foreloop_transh_list_columns(const float *x, size_t first, size_t columns, uint32_t *list);

/* The direct form, the oracle of the above: z <- fma(-beta (w . z), w, z) + d. */
void foreloop_transh_step_f32_ref(float *z, const float *w, float beta, const float *d, size_t size);

static inline const float *foreloop_transh_row(const foreloop_transh_program *program, uint32_t id) {
    return program->rows + id * program->row_stride;
}

static inline size_t foreloop_transh_slice_count(size_t latent) {
    return (latent + FORELOOP_TRANSH_SLICE - 1) / FORELOOP_TRANSH_SLICE;
}
/* Numbers of the slice that there are. */
static inline size_t foreloop_transh_slice_width(const foreloop_transh_program *program, size_t slice) {
    const size_t left = program->latent - slice * FORELOOP_TRANSH_SLICE;
    return left < FORELOOP_TRANSH_SLICE ? left : (size_t)FORELOOP_TRANSH_SLICE;
}

/* Where the parts of a state begin, in floats. */
static inline size_t foreloop_transh_at_gamma(const foreloop_transh_program *program) {
    return program->latent + program->kinds;
}
static inline size_t foreloop_transh_at_aggregates(const foreloop_transh_program *program) {
    return program->latent + 2 * program->kinds;
}
static inline size_t foreloop_transh_at_seen(const foreloop_transh_program *program) {
    return program->latent + 2 * program->kinds + program->aggregates;
}
static inline size_t foreloop_transh_state_size(const foreloop_transh_program *program) {
    const size_t end = foreloop_transh_at_seen(program) + program->kinds / sizeof(float);
    return (end + FORELOOP_TRANSH_LANES - 1) / FORELOOP_TRANSH_LANES * FORELOOP_TRANSH_LANES;
}

#endif
