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

static inline void update(const foreloop_transh_update *how, unsigned fresh, const float *values, float *aggregates) {
    float *at = aggregates + (size_t)how->vector * LANES;
    for (int shift = 0; shift < LANES; shift += WIDTH) {
        const __m256 value = _mm256_loadu_ps(values + shift), old = _mm256_loadu_ps(at + shift);
        __m256 result = _mm256_blendv_ps(old, _mm256_add_ps(old, value), lanes_of(how->add, shift));
        /* The second operand is taken when neither is larger. */
        result = _mm256_blendv_ps(result, _mm256_max_ps(value, old), lanes_of(how->max, shift));
        result = _mm256_blendv_ps(result, _mm256_min_ps(value, old), lanes_of(how->min, shift));
        result = _mm256_blendv_ps(result, value, lanes_of(how->last | (fresh & how->all), shift));
        _mm256_storeu_ps(at + shift, result);
    }
}

/* Everything of the steps but the sum of d. */
static void roll_products(const foreloop_transh_program *program, const uint32_t *ids, size_t count, float *state) {
    const size_t kinds = program->kinds;
    float *const p = state + program->latent, *const gamma = state + foreloop_transh_at_gamma(program);
    float *const aggregates = state + foreloop_transh_at_aggregates(program);
    unsigned char *const seen = (unsigned char *)(state + foreloop_transh_at_seen(program));
    for (size_t t = 0; t < count; t++) {
        if (ids[t] == FORELOOP_ACTION_UNKNOWN)
            continue;
        const float *const row = foreloop_transh_row(program, ids[t]);
        const uint32_t r = program->row_kinds[ids[t]];
        const float *const gram = program->gram + r * kinds;
        const __m256 c = _mm256_set1_ps(p[r]);
        gamma[r] += p[r];
        for (size_t i = 0; i < kinds; i += WIDTH)
            _mm256_storeu_ps(p + i, _mm256_fnmadd_ps(c, _mm256_loadu_ps(gram + i),
                                                     _mm256_add_ps(_mm256_loadu_ps(p + i), _mm256_loadu_ps(row + i))));
        const unsigned fresh = seen[r] - 1u;
        const float *values = row + kinds;
        for (uint32_t u = program->update_begin[r]; u < program->update_end[r]; u++, values += LANES)
            update(&program->updates[u], fresh, values, aggregates);
        seen[r] = 1;
    }
}

/* Adds the d of all actions to `vectors` vectors of the sum from `at` on. */
static inline __attribute__((always_inline)) void roll_sum(const foreloop_transh_program *program, const uint32_t *ids,
                                                           size_t count, size_t vectors, size_t at, const float *from,
                                                           float *to) {
    __m256 sum[8];
    for (size_t v = 0; v < vectors; v++)
        sum[v] = _mm256_loadu_ps(from + at + v * WIDTH);
    for (size_t t = 0; t < count; t++) {
        const float *const d = foreloop_transh_row(program, ids[t]) + program->row_latent + at;
        for (size_t v = 0; v < vectors; v++)
            sum[v] = _mm256_add_ps(sum[v], _mm256_loadu_ps(d + v * WIDTH));
    }
    for (size_t v = 0; v < vectors; v++)
        _mm256_storeu_ps(to + at + v * WIDTH, sum[v]);
}

static void roll(const foreloop_transh_program *program, const uint32_t *ids, size_t count, const float *from,
                 float *to) {
    const size_t latent = program->latent;
    if (from != to)
        memcpy(to + latent, from + latent, (program->state_size - latent) * sizeof *to);
    roll_products(program, ids, count, to);
    size_t at = 0;
    for (; latent - at >= 8 * WIDTH; at += 8 * WIDTH)
        roll_sum(program, ids, count, 8, at, from, to);
    for (; at < latent; at += 2 * WIDTH)
        roll_sum(program, ids, count, 2, at, from, to);
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

/* finish_block for 8 of the 16 states. */
static void finish_half(const foreloop_transh_program *program, const float *states, const uint32_t *columns,
                        const uint32_t *used, size_t used_count, const float *gamma, float *block,
                        size_t block_stride) {
    const size_t stride = program->state_size;
    __m256 lanes[WIDTH];
    for (size_t i = 0; i < program->latent; i += WIDTH) {
        for (size_t s = 0; s < WIDTH; s++)
            lanes[s] = _mm256_loadu_ps(states + s * stride + i);
        for (size_t k = 0; k < used_count; k++) {
            const __m256 normal = _mm256_loadu_ps(program->normal + used[k] * program->normal_stride + i);
            const float *const factors = gamma + k * LANES;
            for (size_t s = 0; s < WIDTH; s++)
                lanes[s] = _mm256_fnmadd_ps(_mm256_set1_ps(factors[s]), normal, lanes[s]);
        }
        store_columns(lanes, columns + i, block, block_stride);
    }
    const float *const aggregates = states + foreloop_transh_at_aggregates(program);
    for (size_t i = 0; i < program->aggregates; i += WIDTH) {
        for (size_t s = 0; s < WIDTH; s++)
            lanes[s] = _mm256_loadu_ps(aggregates + s * stride + i);
        store_columns(lanes, columns + program->latent + i, block, block_stride);
    }
}

static void finish_block(const foreloop_transh_program *program, const float *states, const uint32_t *columns,
                         uint32_t *used, float *gamma, float *block, size_t block_stride) {
    const size_t used_count = foreloop_transh_gather_f32(program, states, used, gamma);
    for (size_t half = 0; half < LANES; half += WIDTH)
        finish_half(program, states + half * program->state_size, columns, used, used_count, gamma + half, block + half,
                    block_stride);
}

void foreloop_transh_f32_avx2(foreloop_transh_f32 *kernels) {
    *kernels = (foreloop_transh_f32){"avx2", products, affine, roll, finish, finish_block};
}
