/* Reference kernels of the latent state: they define the bits. */
#include "kernels_cpu/transh_f32.h"
#include <math.h>
#include <string.h>

enum { LANES = FORELOOP_TRANSH_LANES };

static float dot(const float *a, const float *b, size_t size) {
    float lanes[LANES] = {0};
    for (size_t i = 0; i < size; i += LANES)
        for (size_t j = 0; j < LANES; j++)
            lanes[j] = fmaf(a[i + j], b[i + j], lanes[j]);
    for (size_t half = LANES / 2; half > 0; half /= 2)
        for (size_t j = 0; j < half; j++)
            lanes[j] += lanes[j + half];
    return lanes[0];
}

static void products(const float *matrix, const float *x, size_t rows, size_t size, float *y) {
    for (size_t r = 0; r < rows; r++)
        y[r] = dot(matrix + r * size, x, size);
}

static void affine(const float *matrix, const float *bias, const float *x, size_t rows, size_t columns, float *y) {
    memcpy(y, bias, rows * sizeof *y);
    for (size_t j = 0; j < columns; j++) {
        if (x[j] == 0) /* phi is mostly zeros */
            continue;
        const float *column = matrix + j * rows;
        for (size_t i = 0; i < rows; i++)
            y[i] = fmaf(column[i], x[j], y[i]);
    }
}

static void update(const foreloop_transh_update *how, unsigned seen, const float *values, float *lanes) {
    for (unsigned i = 0; i < LANES; i++) {
        const float value = values[i];
        if (how->take[seen] >> i & 1)
            lanes[i] = value;
        else if (how->add >> i & 1)
            lanes[i] += value;
        else if (how->max >> i & 1)
            lanes[i] = value > lanes[i] ? value : lanes[i];
        else if (how->min >> i & 1)
            lanes[i] = value < lanes[i] ? value : lanes[i];
    }
}

static void step(const foreloop_transh_program *program, uint32_t id, float *state) {
    const size_t kinds = program->kinds;
    float *p = state + program->latent, *gamma = state + foreloop_transh_at_gamma(program);
    float *aggregates = state + foreloop_transh_at_aggregates(program);
    unsigned char *seen = (unsigned char *)(state + foreloop_transh_at_seen(program));
    const float *row = foreloop_transh_row(program, id), *values = row + kinds;
    const uint32_t r = program->row_kinds[id];
    const float *gram = program->gram + r * kinds, c = p[r];
    gamma[r] += c;
    for (size_t i = 0; i < kinds; i++)
        p[i] = fmaf(-c, gram[i], p[i] + row[i]);
    for (uint32_t u = program->update_begin[r]; u < program->update_end[r]; u++, values += LANES)
        update(&program->updates[u], seen[r], values, aggregates + program->updates[u].vector * LANES);
    seen[r] = 1;
}

static void steps(const foreloop_transh_program *program, const foreloop_transh_segment *segments, size_t count,
                  size_t behind, float *slots) {
    (void)behind;
    const size_t stride = program->state_size, latent = program->latent;
    for (size_t i = 0; i < count; i++) {
        float *to = slots + segments[i].to * stride;
        const float *from = slots + segments[i].from * stride;
        if (from != to)
            memcpy(to + latent, from + latent, (stride - latent) * sizeof *to);
        for (size_t t = 0; t < segments[i].count; t++)
            if (segments[i].ids[t] != FORELOOP_ACTION_UNKNOWN)
                step(program, segments[i].ids[t], to);
    }
}

static void sums(const foreloop_transh_program *program, size_t slice, const foreloop_transh_segment *segments,
                 size_t count, size_t behind, float *slots, size_t stride) {
    (void)behind;
    const size_t width = foreloop_transh_slice_width(program, slice);
    for (size_t i = 0; i < count; i++) {
        float *to = slots + segments[i].to * stride;
        memmove(to, slots + segments[i].from * stride, width * sizeof *to);
        for (size_t t = 0; t < segments[i].count; t++) {
            const float *d = program->slices[slice] + (size_t)segments[i].ids[t] * FORELOOP_TRANSH_SLICE;
            for (size_t j = 0; j < width; j++)
                to[j] += d[j];
        }
    }
}

static void finish(const foreloop_transh_program *program, const float *state, float *z) {
    const float *gamma = state + foreloop_transh_at_gamma(program);
    const unsigned char *seen = (const unsigned char *)(state + foreloop_transh_at_seen(program));
    memcpy(z, state, program->latent * sizeof *z);
    for (size_t r = 0; r < program->kinds; r++) {
        const float *normal = program->normal + r * program->normal_stride;
        for (size_t i = 0; seen[r] && i < program->latent; i++)
            z[i] = fmaf(-gamma[r], normal[i], z[i]);
    }
}

static void finish_slice(const foreloop_transh_program *program, size_t slice, const float *slots, size_t slot_stride,
                         const uint32_t *used, size_t used_count, const float *gamma, const uint32_t *columns,
                         float *block, size_t block_stride) {
    const size_t first = slice * FORELOOP_TRANSH_SLICE, width = foreloop_transh_slice_width(program, slice);
    for (size_t i = 0; i < width; i++)
        for (size_t s = 0; s < LANES; s++) {
            float z = slots[s * slot_stride + i];
            for (size_t k = 0; k < used_count; k++)
                z = fmaf(-gamma[k * LANES + s], program->normal[used[k] * program->normal_stride + first + i], z);
            block[columns[first + i] * block_stride + s] = z;
        }
}

static void finish_aggregates(const foreloop_transh_program *program, const float *states, const uint32_t *columns,
                              float *block, size_t block_stride) {
    const float *aggregates = states + foreloop_transh_at_aggregates(program);
    for (size_t i = 0; i < program->aggregates; i++)
        for (size_t s = 0; s < LANES; s++)
            block[columns[i] * block_stride + s] = aggregates[s * program->state_size + i];
}

void foreloop_transh_f32_ref(foreloop_transh_f32 *kernels) {
    *kernels = (foreloop_transh_f32){"ref", products, affine, steps, sums, finish, finish_slice, finish_aggregates};
}

void foreloop_transh_step_f32_ref(float *z, const float *w, float beta, const float *d, size_t size) {
    float c = beta * dot(w, z, size);
    for (size_t i = 0; i < size; i++)
        z[i] = fmaf(-c, w[i], z[i]) + d[i];
}
