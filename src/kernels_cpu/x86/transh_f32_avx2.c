/* The kernels of the latent state on AVX2 and FMA: the same bits as the reference, 8 of the 16 lanes at a time. */
#include "kernels_cpu/transh_f32.h"
#include <immintrin.h>
#include <math.h>
#include <string.h>

enum { LANES = FORELOOP_TRANSH_LANES, WIDTH = 8 };

static float dot(const float *a, const float *b, size_t size) {
    __m256 low = _mm256_setzero_ps(), high = _mm256_setzero_ps();
    for (size_t i = 0; i < size; i += LANES) {
        low = _mm256_fmadd_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i), low);
        high = _mm256_fmadd_ps(_mm256_loadu_ps(a + i + WIDTH), _mm256_loadu_ps(b + i + WIDTH), high);
    }
    const __m256 eight = _mm256_add_ps(low, high);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

static void products(const float *matrix, const float *x, size_t rows, size_t size, float *y) {
    for (size_t r = 0; r < rows; r++)
        y[r] = dot(matrix + r * size, x, size);
}

/* y <- sum + the columns of the list; the list has been made before, as branches on zeros cannot be foreseen. */
static void add_columns(const float *matrix, const float *x, const uint32_t *list, size_t count, size_t rows,
                        const float *sum, float *y) {
    enum { VECTORS = 8 };
    size_t first = 0;
    for (; rows - first >= VECTORS * WIDTH; first += VECTORS * WIDTH) {
        __m256 own[VECTORS];
        for (size_t v = 0; v < VECTORS; v++)
            own[v] = _mm256_loadu_ps(sum + first + v * WIDTH);
        for (size_t i = 0; i < count; i++) {
            const __m256 factor = _mm256_set1_ps(x[list[i]]);
            const float *column = matrix + list[i] * rows + first;
            for (size_t v = 0; v < VECTORS; v++)
                own[v] = _mm256_fmadd_ps(_mm256_loadu_ps(column + v * WIDTH), factor, own[v]);
        }
        for (size_t v = 0; v < VECTORS; v++)
            _mm256_storeu_ps(y + first + v * WIDTH, own[v]);
    }
    for (; first < rows; first++) {
        float own = sum[first];
        for (size_t i = 0; i < count; i++)
            own = fmaf(matrix[list[i] * rows + first], x[list[i]], own);
        y[first] = own;
    }
}

static void affine(const float *matrix, const float *bias, const float *x, size_t rows, size_t columns, float *y) {
    const float *sum = bias;
    for (size_t first = 0; first < columns || sum == bias; first += FORELOOP_TRANSH_COLUMNS, sum = y) {
        uint32_t list[FORELOOP_TRANSH_COLUMNS + 1];
        add_columns(matrix, x, list, foreloop_transh_list_columns(x, first, columns, list), rows, sum, y);
    }
}

/* A mask's 8 bits from `shift` on, as lanes for a blend. */
static inline __m256 lanes_of(unsigned mask, int shift) {
    const __m256i bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i own = _mm256_and_si256(_mm256_set1_epi32((int)(mask >> shift)), bits);
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(own, bits));
}

static inline void update(const foreloop_transh_update *how, unsigned seen, const float *values, float *aggregates) {
    float *at = aggregates + (size_t)how->vector * LANES;
    for (int shift = 0; shift < LANES; shift += WIDTH) {
        const __m256 value = _mm256_loadu_ps(values + shift), old = _mm256_loadu_ps(at + shift);
        __m256 result = _mm256_blendv_ps(old, _mm256_add_ps(old, value), lanes_of(how->add, shift));
        /* The second operand is taken when neither is larger. */
        result = _mm256_blendv_ps(result, _mm256_max_ps(value, old), lanes_of(how->max, shift));
        result = _mm256_blendv_ps(result, _mm256_min_ps(value, old), lanes_of(how->min, shift));
        result = _mm256_blendv_ps(result, value, lanes_of(how->take[seen], shift));
        _mm256_storeu_ps(at + shift, result);
    }
}

static void step(const foreloop_transh_program *program, uint32_t id, float *state) {
    const size_t kinds = program->kinds;
    float *const p = state + program->latent, *const gamma = state + foreloop_transh_at_gamma(program);
    float *const aggregates = state + foreloop_transh_at_aggregates(program);
    unsigned char *const seen = (unsigned char *)(state + foreloop_transh_at_seen(program));
    const float *const row = foreloop_transh_row(program, id);
    const uint32_t r = program->row_kinds[id];
    const float *const gram = program->gram + r * kinds;
    const __m256 c = _mm256_set1_ps(p[r]);
    gamma[r] += p[r];
    for (size_t i = 0; i < kinds; i += WIDTH)
        _mm256_storeu_ps(p + i, _mm256_fnmadd_ps(c, _mm256_loadu_ps(gram + i),
                                                 _mm256_add_ps(_mm256_loadu_ps(p + i), _mm256_loadu_ps(row + i))));
    const float *values = row + kinds;
    for (uint32_t u = program->update_begin[r]; u < program->update_end[r]; u++, values += LANES)
        update(&program->updates[u], seen[r], values, aggregates);
    seen[r] = 1;
}

static void steps(const foreloop_transh_program *program, const foreloop_transh_segment *segments, size_t count,
                  float *slots) {
    const size_t stride = program->state_size, latent = program->latent;
    for (size_t i = 0; i < count; i++) {
        float *const to = slots + segments[i].to * stride;
        const float *const from = slots + segments[i].from * stride;
        if (from != to)
            memcpy(to + latent, from + latent, (stride - latent) * sizeof *to);
        for (size_t t = 0; t < segments[i].count; t++)
            if (segments[i].ids[t] != FORELOOP_ACTION_UNKNOWN)
                step(program, segments[i].ids[t], to);
    }
}

static inline __attribute__((always_inline)) void sums_of(const float *d, const foreloop_transh_segment *segments,
                                                          size_t count, size_t vectors, float *slots, size_t stride) {
    for (size_t i = 0; i < count; i++) {
        const foreloop_transh_segment *const segment = &segments[i];
        const float *const from = slots + segment->from * stride;
        float *const to = slots + segment->to * stride;
        __m256 sum[FORELOOP_TRANSH_SLICE / WIDTH];
        for (size_t v = 0; v < vectors; v++)
            sum[v] = _mm256_loadu_ps(from + v * WIDTH);
        for (size_t t = 0; t < segment->count; t++) {
            const float *const own = d + (size_t)segment->ids[t] * FORELOOP_TRANSH_SLICE;
            for (size_t v = 0; v < vectors; v++)
                sum[v] = _mm256_add_ps(sum[v], _mm256_loadu_ps(own + v * WIDTH));
        }
        for (size_t v = 0; v < vectors; v++)
            _mm256_storeu_ps(to + v * WIDTH, sum[v]);
    }
}

static void sums(const foreloop_transh_program *program, size_t slice, const foreloop_transh_segment *segments,
                 size_t count, float *slots, size_t stride) {
    if (foreloop_transh_slice_width(program, slice) == FORELOOP_TRANSH_SLICE)
        sums_of(program->slices[slice], segments, count, FORELOOP_TRANSH_SLICE / WIDTH, slots, stride);
    else
        sums_of(program->slices[slice], segments, count, LANES / WIDTH, slots, stride);
}

static void finish(const foreloop_transh_program *program, const float *state, float *z) {
    const float *const gamma = state + foreloop_transh_at_gamma(program);
    const unsigned char *const seen = (const unsigned char *)(state + foreloop_transh_at_seen(program));
    memcpy(z, state, program->latent * sizeof *z);
    for (size_t r = 0; r < program->kinds; r++) {
        if (!seen[r])
            continue;
        const float *const normal = program->normal + r * program->normal_stride;
        const __m256 factor = _mm256_set1_ps(gamma[r]);
        for (size_t i = 0; i < program->latent; i += WIDTH)
            _mm256_storeu_ps(z + i, _mm256_fnmadd_ps(factor, _mm256_loadu_ps(normal + i), _mm256_loadu_ps(z + i)));
    }
}

/* Element i of lanes[j] to element j of lanes[i]. */
static inline __attribute__((always_inline)) void transpose(__m256 lanes[WIDTH]) {
    __m256 pairs[WIDTH], quads[WIDTH];
    for (int i = 0; i < WIDTH; i += 2) {
        pairs[i] = _mm256_unpacklo_ps(lanes[i], lanes[i + 1]);
        pairs[i + 1] = _mm256_unpackhi_ps(lanes[i], lanes[i + 1]);
    }
    for (int i = 0; i < WIDTH; i += 4)
        for (int j = 0; j < 2; j++) {
            const __m256d low = _mm256_castps_pd(pairs[i + j]), high = _mm256_castps_pd(pairs[i + j + 2]);
            quads[i + 2 * j] = _mm256_castpd_ps(_mm256_unpacklo_pd(low, high));
            quads[i + 2 * j + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(low, high));
        }
    for (int c = 0; c < 4; c++) {
        lanes[c] = _mm256_permute2f128_ps(quads[c], quads[4 + c], 0x20);
        lanes[c + 4] = _mm256_permute2f128_ps(quads[c], quads[4 + c], 0x31);
    }
}

static inline __attribute__((always_inline)) void store_columns(__m256 lanes[WIDTH], const uint32_t *columns,
                                                                float *block, size_t block_stride) {
    transpose(lanes);
    for (size_t i = 0; i < WIDTH; i++)
        _mm256_store_ps(block + columns[i] * block_stride, lanes[i]);
}

static void finish_slice(const foreloop_transh_program *program, size_t slice, const float *slots, size_t slot_stride,
                         const uint32_t *used, size_t used_count, const float *gamma, const uint32_t *columns,
                         float *block, size_t block_stride) {
    const size_t first = slice * FORELOOP_TRANSH_SLICE, width = foreloop_transh_slice_width(program, slice);
    for (size_t half = 0; half < LANES; half += WIDTH)
        for (size_t i = 0; i < width; i += WIDTH) {
            __m256 lanes[WIDTH];
            for (size_t s = 0; s < WIDTH; s++)
                lanes[s] = _mm256_loadu_ps(slots + (half + s) * slot_stride + i);
            for (size_t k = 0; k < used_count; k++) {
                const __m256 normal = _mm256_loadu_ps(program->normal + used[k] * program->normal_stride + first + i);
                const float *const factors = gamma + k * LANES + half;
                for (size_t s = 0; s < WIDTH; s++)
                    lanes[s] = _mm256_fnmadd_ps(_mm256_set1_ps(factors[s]), normal, lanes[s]);
            }
            store_columns(lanes, columns + first + i, block + half, block_stride);
        }
}

static void finish_aggregates(const foreloop_transh_program *program, const float *states, const uint32_t *columns,
                              float *block, size_t block_stride) {
    const float *const aggregates = states + foreloop_transh_at_aggregates(program);
    for (size_t half = 0; half < LANES; half += WIDTH)
        for (size_t i = 0; i < program->aggregates; i += WIDTH) {
            __m256 lanes[WIDTH];
            for (size_t s = 0; s < WIDTH; s++)
                lanes[s] = _mm256_loadu_ps(aggregates + (half + s) * program->state_size + i);
            store_columns(lanes, columns + i, block + half, block_stride);
        }
}

void foreloop_transh_f32_avx2(foreloop_transh_f32 *kernels) {
    *kernels = (foreloop_transh_f32){"avx2", products, affine, steps, sums, finish, finish_slice, finish_aggregates};
}
