/* The kernels of the latent state on AVX-512: the same bits as the reference, 16 lanes at a time. */
#include "kernels_cpu/transh_f32.h"
#include <immintrin.h>

enum { LANES = FORELOOP_TRANSH_LANES };

static float add_lanes(__m512 lanes) {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(lanes), _mm512_extractf32x8_ps(lanes, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/* Some rows at a time, as each is a chain of its own. */
static inline __attribute__((always_inline)) void products_of_rows(const float *matrix, const float *x, size_t rows,
                                                                   size_t size, float *y) {
    __m512 lanes[4];
    for (size_t r = 0; r < rows; r++)
        lanes[r] = _mm512_setzero_ps();
    for (size_t i = 0; i < size; i += LANES)
        for (size_t r = 0; r < rows; r++)
            lanes[r] = _mm512_fmadd_ps(_mm512_loadu_ps(matrix + r * size + i), _mm512_loadu_ps(x + i), lanes[r]);
    for (size_t r = 0; r < rows; r++)
        y[r] = add_lanes(lanes[r]);
}

static void products(const float *matrix, const float *x, size_t rows, size_t size, float *y) {
    size_t r = 0;
    for (; rows - r >= 4; r += 4)
        products_of_rows(matrix + r * size, x, 4, size, y + r);
    for (; r < rows; r++)
        products_of_rows(matrix + r * size, x, 1, size, y + r);
}

/* y <- sum + the columns of the list; the list has been made before, as branches on zeros cannot be foreseen. */
static void add_columns(const float *matrix, const float *x, const uint32_t *list, size_t count, size_t rows,
                        const float *sum, float *y) {
    enum { VECTORS = 8 };
    for (size_t first = 0; first < rows; first += VECTORS * LANES) {
        __m512 own[VECTORS];
        __mmask16 mask[VECTORS];
        for (size_t v = 0; v < VECTORS; v++) {
            const size_t at = first + v * LANES, left = at < rows ? rows - at : 0;
            mask[v] = (__mmask16)(left >= LANES ? 0xffff : (1u << left) - 1);
            own[v] = _mm512_maskz_loadu_ps(mask[v], sum + at);
        }
        for (size_t i = 0; i < count; i++) {
            const __m512 factor = _mm512_set1_ps(x[list[i]]);
            const float *column = matrix + list[i] * rows + first;
            for (size_t v = 0; v < VECTORS; v++)
                own[v] = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(mask[v], column + v * LANES), factor, own[v]);
        }
        for (size_t v = 0; v < VECTORS; v++)
            _mm512_mask_storeu_ps(y + first + v * LANES, mask[v], own[v]);
    }
}

static void affine(const float *matrix, const float *bias, const float *x, size_t rows, size_t columns, float *y) {
    const float *sum = bias;
    for (size_t first = 0; first < columns || sum == bias; first += FORELOOP_TRANSH_COLUMNS, sum = y) {
        uint32_t list[FORELOOP_TRANSH_COLUMNS + 1];
        add_columns(matrix, x, list, foreloop_transh_list_columns(x, first, columns, list), rows, sum, y);
    }
}

static inline void update(const foreloop_transh_update *how, unsigned seen, const float *values, float *aggregates) {
    float *const at = aggregates + (size_t)how->vector * LANES;
    const __m512 value = _mm512_loadu_ps(values), old = _mm512_loadu_ps(at);
    /* All that may be wanted first, then blends, as the chain from one update to the next runs through here. Of equal
     * numbers max and min take the second operand. */
    const __m512 sum = _mm512_add_ps(old, value);
    const __m512 larger = _mm512_max_ps(value, old), smaller = _mm512_min_ps(value, old);
    __m512 result = _mm512_mask_mov_ps(old, how->add, sum);
    result = _mm512_mask_mov_ps(result, how->max, larger);
    result = _mm512_mask_mov_ps(result, how->min, smaller);
    result = _mm512_mask_mov_ps(result, how->take[seen], value);
    _mm512_storeu_ps(at, result);
}

/* p[r] to all lanes: out of the registers where they are few, as the chain from step to step runs through here. */
static inline __m512 pick(const __m512 *p, const float *stored, size_t vectors, uint32_t r) {
    if (vectors == 1)
        return _mm512_permutexvar_ps(_mm512_set1_epi32((int)r), p[0]);
    if (vectors == 2)
        return _mm512_permutex2var_ps(p[0], _mm512_set1_epi32((int)r), p[1]);
    if (vectors == 4) {
        const __m512i place = _mm512_set1_epi32((int)r);
        const __mmask16 upper = (__mmask16)(0u - (r >> 5));
        return _mm512_mask_blend_ps(upper, _mm512_permutex2var_ps(p[0], place, p[1]),
                                    _mm512_permutex2var_ps(p[2], place, p[3]));
    }
    return _mm512_set1_ps(stored[r]);
}

/* The steps of one segment. `vectors` is a constant at each call, 0 for any number. */
static inline __attribute__((always_inline)) void
steps_of(const foreloop_transh_program *program, const foreloop_transh_segment *segment, size_t vectors, float *slots) {
    const size_t kinds = vectors ? vectors * LANES : program->kinds;
    const size_t latent = program->latent, size = program->state_size, row_stride = program->row_stride;
    const uint32_t *const ids = segment->ids, *const row_kinds = program->row_kinds;
    const uint32_t *const update_begin = program->update_begin, *const update_end = program->update_end;
    const foreloop_transh_update *const updates = program->updates;
    const float *const rows = program->rows, *const grams = program->gram;
    const float *const from = slots + segment->from * size;
    float *const to = slots + segment->to * size, *const products = to + latent;
    float *const gamma = to + foreloop_transh_at_gamma(program);
    float *const aggregates = to + foreloop_transh_at_aggregates(program);
    unsigned char *const seen = (unsigned char *)(to + foreloop_transh_at_seen(program));
    /* In the vectors in which it is read again, or the loads would have to wait for the stores. */
    for (size_t i = latent; i < size && from != to; i += LANES)
        _mm512_storeu_ps(to + i, _mm512_loadu_ps(from + i));
    __m512 p[4];
    for (size_t v = 0; v < vectors; v++)
        p[v] = _mm512_loadu_ps(from + latent + v * LANES);
    for (size_t t = 0, count = segment->count; t < count; t++) {
        const uint32_t id = ids[t];
        if (id == FORELOOP_ACTION_UNKNOWN)
            continue;
        const float *const row = rows + id * row_stride;
        const uint32_t r = row_kinds[id];
        const float *const gram = grams + r * kinds;
        const __m512 c = pick(p, products, vectors, r);
        gamma[r] += _mm512_cvtss_f32(c);
        if (vectors)
            for (size_t v = 0; v < vectors; v++)
                p[v] = _mm512_fnmadd_ps(c, _mm512_loadu_ps(gram + v * LANES),
                                        _mm512_add_ps(p[v], _mm512_loadu_ps(row + v * LANES)));
        else
            for (size_t i = 0; i < kinds; i += LANES)
                _mm512_storeu_ps(products + i, _mm512_fnmadd_ps(c, _mm512_loadu_ps(gram + i),
                                                                _mm512_add_ps(_mm512_loadu_ps(products + i),
                                                                              _mm512_loadu_ps(row + i))));
        const unsigned before = seen[r];
        const float *values = row + kinds;
        const foreloop_transh_update *const end = updates + update_end[r];
        for (const foreloop_transh_update *how = updates + update_begin[r]; how < end; how++, values += LANES)
            update(how, before, values, aggregates);
        seen[r] = 1;
    }
    for (size_t v = 0; v < vectors; v++)
        _mm512_storeu_ps(products + v * LANES, p[v]);
}

static void steps(const foreloop_transh_program *program, const foreloop_transh_segment *segments, size_t count,
                  float *slots) {
    for (size_t i = 0; i < count; i++) {
        if (program->kinds == LANES)
            steps_of(program, &segments[i], 1, slots);
        else if (program->kinds == 2 * LANES)
            steps_of(program, &segments[i], 2, slots);
        else if (program->kinds == 4 * LANES)
            steps_of(program, &segments[i], 4, slots);
        else
            steps_of(program, &segments[i], 0, slots);
    }
}

/* Near the limit of what the second-level cache delivers: two additions for each line of 64 bytes and its neighbour. */
static inline __attribute__((always_inline)) void sums_of(const float *d, const foreloop_transh_segment *segments,
                                                          size_t count, size_t vectors, float *slots, size_t stride) {
    for (size_t i = 0; i < count; i++) {
        const foreloop_transh_segment *const segment = &segments[i];
        const float *const from = slots + segment->from * stride;
        float *const to = slots + segment->to * stride;
        __m512 sum[FORELOOP_TRANSH_SLICE / LANES];
        for (size_t v = 0; v < vectors; v++)
            sum[v] = _mm512_loadu_ps(from + v * LANES);
        for (size_t t = 0; t < segment->count; t++) {
            const float *const own = d + (size_t)segment->ids[t] * FORELOOP_TRANSH_SLICE;
            for (size_t v = 0; v < vectors; v++)
                sum[v] = _mm512_add_ps(sum[v], _mm512_loadu_ps(own + v * LANES));
        }
        for (size_t v = 0; v < vectors; v++)
            _mm512_storeu_ps(to + v * LANES, sum[v]);
    }
}

static void sums(const foreloop_transh_program *program, size_t slice, const foreloop_transh_segment *segments,
                 size_t count, float *slots, size_t stride) {
    if (foreloop_transh_slice_width(program, slice) == FORELOOP_TRANSH_SLICE)
        sums_of(program->slices[slice], segments, count, FORELOOP_TRANSH_SLICE / LANES, slots, stride);
    else
        sums_of(program->slices[slice], segments, count, 1, slots, stride);
}

static inline __attribute__((always_inline)) void finish_vectors(const foreloop_transh_program *program, size_t vectors,
                                                                 size_t at, const float *state, float *z) {
    const float *const gamma = state + foreloop_transh_at_gamma(program);
    const unsigned char *const seen = (const unsigned char *)(state + foreloop_transh_at_seen(program));
    __m512 sum[16];
    for (size_t v = 0; v < vectors; v++)
        sum[v] = _mm512_loadu_ps(state + at + v * LANES);
    for (size_t first = 0; first < program->kinds; first += LANES) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(seen + first));
        for (uint32_t kinds = _mm_test_epi8_mask(bytes, bytes); kinds; kinds &= kinds - 1) {
            const size_t r = first + (size_t)__builtin_ctz(kinds);
            const float *const normal = program->normal + r * program->normal_stride + at;
            const __m512 factor = _mm512_set1_ps(gamma[r]);
            for (size_t v = 0; v < vectors; v++)
                sum[v] = _mm512_fnmadd_ps(factor, _mm512_loadu_ps(normal + v * LANES), sum[v]);
        }
    }
    for (size_t v = 0; v < vectors; v++)
        _mm512_storeu_ps(z + at + v * LANES, sum[v]);
}

static void finish(const foreloop_transh_program *program, const float *state, float *z) {
    size_t at = 0;
    for (; program->latent - at >= 16 * LANES; at += 16 * LANES)
        finish_vectors(program, 16, at, state, z);
    for (; at < program->latent; at += LANES)
        finish_vectors(program, 1, at, state, z);
}

/* Element i of lanes[j] to element j of lanes[i]. */
static inline __attribute__((always_inline)) void transpose(__m512 lanes[LANES]) {
    __m512 pairs[LANES], quads[LANES];
    for (int i = 0; i < LANES; i += 2) {
        pairs[i] = _mm512_unpacklo_ps(lanes[i], lanes[i + 1]);
        pairs[i + 1] = _mm512_unpackhi_ps(lanes[i], lanes[i + 1]);
    }
    for (int i = 0; i < LANES; i += 4)
        for (int j = 0; j < 2; j++) {
            const __m512d low = _mm512_castps_pd(pairs[i + j]), high = _mm512_castps_pd(pairs[i + j + 2]);
            quads[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(low, high));
            quads[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low, high));
        }
    /* quads[4 g + c] holds columns c, c + 4, c + 8, c + 12 of rows 4 g to 4 g + 3, a quarter each. */
    for (int c = 0; c < 4; c++) {
        const __m512 low = _mm512_shuffle_f32x4(quads[c], quads[4 + c], 0x88);
        const __m512 high = _mm512_shuffle_f32x4(quads[c], quads[4 + c], 0xdd);
        const __m512 low2 = _mm512_shuffle_f32x4(quads[8 + c], quads[12 + c], 0x88);
        const __m512 high2 = _mm512_shuffle_f32x4(quads[8 + c], quads[12 + c], 0xdd);
        lanes[c] = _mm512_shuffle_f32x4(low, low2, 0x88);
        lanes[c + 4] = _mm512_shuffle_f32x4(high, high2, 0x88);
        lanes[c + 8] = _mm512_shuffle_f32x4(low, low2, 0xdd);
        lanes[c + 12] = _mm512_shuffle_f32x4(high, high2, 0xdd);
    }
}

static inline __attribute__((always_inline)) void store_columns(__m512 lanes[LANES], const uint32_t *columns,
                                                                float *block, size_t block_stride) {
    transpose(lanes);
    for (size_t i = 0; i < LANES; i++)
        _mm512_store_ps(block + columns[i] * block_stride, lanes[i]);
}

static void finish_slice(const foreloop_transh_program *program, size_t slice, const float *slots, size_t slot_stride,
                         const uint32_t *used, size_t used_count, const float *gamma, const uint32_t *columns,
                         float *block, size_t block_stride) {
    const size_t first = slice * FORELOOP_TRANSH_SLICE, width = foreloop_transh_slice_width(program, slice);
    __m512 lanes[LANES];
    for (size_t i = 0; i < width; i += LANES) {
        for (size_t s = 0; s < LANES; s++)
            lanes[s] = _mm512_loadu_ps(slots + s * slot_stride + i);
        for (size_t k = 0; k < used_count; k++) {
            const __m512 normal = _mm512_loadu_ps(program->normal + used[k] * program->normal_stride + first + i);
            const float *const factors = gamma + k * LANES;
            for (size_t s = 0; s < LANES; s++)
                lanes[s] = _mm512_fnmadd_ps(_mm512_set1_ps(factors[s]), normal, lanes[s]);
        }
        store_columns(lanes, columns + first + i, block, block_stride);
    }
}

static void finish_aggregates(const foreloop_transh_program *program, const float *states, const uint32_t *columns,
                              float *block, size_t block_stride) {
    const float *const aggregates = states + foreloop_transh_at_aggregates(program);
    __m512 lanes[LANES];
    for (size_t i = 0; i < program->aggregates; i += LANES) {
        for (size_t s = 0; s < LANES; s++)
            lanes[s] = _mm512_loadu_ps(aggregates + s * program->state_size + i);
        store_columns(lanes, columns + i, block, block_stride);
    }
}

void foreloop_transh_f32_avx512(foreloop_transh_f32 *kernels) {
    *kernels = (foreloop_transh_f32){"avx512", products, affine, steps, sums, finish, finish_slice, finish_aggregates};
}
