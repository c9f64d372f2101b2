/*
 * The kernels of the latent state on AVX2 and AVX-512: the same bits as the reference, its 16 lanes one or two vectors
 * at a time. The tiers differ in how they choose lanes by a mask, and only AVX-512 picks a number out of registers.
 */
#include "kernels_cpu/transh_f32.h"
#include "kernels_cpu/x86/transpose_f32.h"
#include "kernels_cpu/x86/vector.h"

enum { GROUP = FORELOOP_TRANSH_LANES, PARTS = GROUP / LANES };

/* ---- What differs ------------------------------------------------------------------------------------------------ */

#if defined(__AVX512F__)

/* a - b c. */
VECTOR_INLINE vec subtract_product(vec a, vec b, vec c) {
    return _mm512_fnmadd_ps(b, c, a);
}

/* `chosen` in the lanes of a mask of GROUP bits, from lane `first` on. */
VECTOR_INLINE vec choose(unsigned mask, size_t first, vec chosen, vec otherwise) {
    (void)first;
    return _mm512_mask_mov_ps(otherwise, (__mmask16)mask, chosen);
}

/* Half of the lanes that a dot product has, each the sum of two. */
VECTOR_INLINE __m256 fold(const vec parts[PARTS]) {
    return _mm256_add_ps(_mm512_castps512_ps256(parts[0]), _mm512_extractf32x8_ps(parts[0], 1));
}

enum { PICKS_FROM_REGISTERS = 1 };

/* p[r] to all lanes: out of 1, 2 or 4 registers, as the chain from step to step runs through here. */
VECTOR_INLINE vec pick(const vec *p, size_t vectors, uint32_t r) {
    const __m512i place = _mm512_set1_epi32((int)r);
    if (vectors == 1)
        return _mm512_permutexvar_ps(place, p[0]);
    if (vectors == 2)
        return _mm512_permutex2var_ps(p[0], place, p[1]);
    const __mmask16 upper = (__mmask16)(0u - (r >> 5));
    return _mm512_mask_blend_ps(upper, _mm512_permutex2var_ps(p[0], place, p[1]),
                                _mm512_permutex2var_ps(p[2], place, p[3]));
}

#else

VECTOR_INLINE vec subtract_product(vec a, vec b, vec c) {
    return _mm256_fnmadd_ps(b, c, a);
}

VECTOR_INLINE vec choose(unsigned mask, size_t first, vec chosen, vec otherwise) {
    const __m256i bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i own = _mm256_and_si256(_mm256_set1_epi32((int)(mask >> first)), bits);
    return _mm256_blendv_ps(otherwise, chosen, _mm256_castsi256_ps(_mm256_cmpeq_epi32(own, bits)));
}

VECTOR_INLINE __m256 fold(const vec parts[PARTS]) {
    return _mm256_add_ps(parts[0], parts[1]);
}

enum { PICKS_FROM_REGISTERS = 0 };

VECTOR_INLINE vec pick(const vec *p, size_t vectors, uint32_t r) {
    (void)vectors;
    (void)r;
    return p[0];
}

#endif

/* ---- Dot products and layers ------------------------------------------------------------------------------------- */

VECTOR_INLINE float add_lanes(const vec parts[PARTS]) {
    const __m256 eight = fold(parts);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

enum { PRODUCTS = VECTOR_REGISTERS / 4 };

/* Some rows at a time, as each is a chain of its own. */
VECTOR_INLINE void products_of_rows(const float *matrix, const float *x, size_t rows, size_t size, float *y) {
    vec lanes[PRODUCTS][PARTS];
    for (size_t r = 0; r < rows; r++)
        for (size_t part = 0; part < PARTS; part++)
            lanes[r][part] = vec_set(0);
    for (size_t i = 0; i < size; i += GROUP)
        for (size_t r = 0; r < rows; r++)
            for (size_t part = 0; part < PARTS; part++)
                lanes[r][part] = vec_fma(vec_load(matrix + r * size + i + part * LANES), vec_load(x + i + part * LANES),
                                         lanes[r][part]);
    for (size_t r = 0; r < rows; r++)
        y[r] = add_lanes(lanes[r]);
}

static void products(const float *matrix, const float *x, size_t rows, size_t size, float *y) {
    size_t r = 0;
    for (; rows - r >= PRODUCTS; r += PRODUCTS)
        products_of_rows(matrix + r * size, x, PRODUCTS, size, y + r);
    for (; r < rows; r++)
        products_of_rows(matrix + r * size, x, 1, size, y + r);
}

/* y <- sum + the columns of the list, for whole vectors of rows and, last, `left` rows of one more. */
VECTOR_INLINE void add_to_rows(const float *matrix, const float *x, const uint32_t *list, size_t count, size_t rows,
                               size_t vectors, size_t left, const float *sum, float *y) {
    vec own[8];
    for (size_t v = 0; v < vectors; v++)
        own[v] = v == vectors - 1 ? vec_load_some(sum + v * LANES, left) : vec_load(sum + v * LANES);
    for (size_t i = 0; i < count; i++) {
        const vec factor = vec_set(x[list[i]]);
        const float *column = matrix + list[i] * rows;
        for (size_t v = 0; v < vectors; v++)
            own[v] = vec_fma(v == vectors - 1 ? vec_load_some(column + v * LANES, left) : vec_load(column + v * LANES),
                             factor, own[v]);
    }
    for (size_t v = 0; v < vectors; v++)
        if (v == vectors - 1)
            vec_store_some(y + v * LANES, own[v], left);
        else
            vec_store(y + v * LANES, own[v]);
}

/* y <- sum + the columns of the list; the list has been made before, as branches on zeros cannot be foreseen. */
static void add_columns(const float *matrix, const float *x, const uint32_t *list, size_t count, size_t rows,
                        const float *sum, float *y) {
    size_t first = 0;
    for (; rows - first >= 8 * LANES; first += 8 * LANES)
        add_to_rows(matrix + first, x, list, count, rows, 8, LANES, sum + first, y + first);
    for (; rows - first >= 4 * LANES; first += 4 * LANES)
        add_to_rows(matrix + first, x, list, count, rows, 4, LANES, sum + first, y + first);
    for (; first < rows; first += LANES)
        add_to_rows(matrix + first, x, list, count, rows, 1, rows - first < LANES ? rows - first : LANES, sum + first,
                    y + first);
}

static void affine(const float *matrix, const float *bias, const float *x, size_t rows, size_t columns, float *y) {
    const float *sum = bias;
    for (size_t first = 0; first < columns || sum == bias; first += FORELOOP_TRANSH_COLUMNS, sum = y) {
        uint32_t list[FORELOOP_TRANSH_COLUMNS + 1];
        add_columns(matrix, x, list, foreloop_transh_list_columns(x, first, columns, list), rows, sum, y);
    }
}

/* ---- Steps ------------------------------------------------------------------------------------------------------- */

/* Asks for what the segment's steps or sums will read: `size` floats of each action from `rows` on. Into the second
 * level of the cache, as it is long before they are read. */
VECTOR_INLINE void fetch_rows(const foreloop_transh_segment *segment, const float *rows, size_t stride, size_t size) {
    for (size_t t = 0; t < segment->count; t++)
        for (size_t i = 0; i < size; i += 64 / sizeof *rows)
            _mm_prefetch((const char *)(rows + segment->ids[t] * stride + i), _MM_HINT_T1);
}

VECTOR_INLINE void update(const foreloop_transh_update *how, unsigned seen, const float *values, float *aggregates) {
    float *const at = aggregates + (size_t)how->vector * GROUP;
    for (size_t first = 0; first < GROUP; first += LANES) {
        const vec value = vec_load(values + first), old = vec_load(at + first);
        /* All that may be wanted first, then choices, as the chain from one update to the next runs through here. Of
         * equal numbers max and min take the second operand. */
        const vec sum = vec_add(old, value), larger = vec_max(value, old), smaller = vec_min(value, old);
        vec result = choose(how->add, first, sum, old);
        result = choose(how->max, first, larger, result);
        result = choose(how->min, first, smaller, result);
        vec_store(at + first, choose(how->take[seen], first, value, result));
    }
}

/* The steps of one segment. `vectors` is a constant at each call: p lies in so many registers, 0 for in memory. */
VECTOR_INLINE void steps_of(const foreloop_transh_program *program, const foreloop_transh_segment *segment,
                            size_t vectors, float *slots) {
    const size_t kinds = vectors ? vectors * LANES : program->kinds;
    const size_t latent = program->latent, size = program->state_size, row_stride = program->row_stride;
    const uint32_t *const ids = segment->ids, *const row_kinds = program->row_kinds;
    const uint32_t *const update_begin = program->update_begin, *const update_end = program->update_end;
    const foreloop_transh_update *const updates = program->updates;
    const float *const rows = program->rows, *const grams = program->gram;
    const float *const from = slots + segment->from * size;
    float *const to = slots + segment->to * size, *const stored = to + latent;
    float *const gamma = to + foreloop_transh_at_gamma(program);
    float *const aggregates = to + foreloop_transh_at_aggregates(program);
    unsigned char *const seen = (unsigned char *)(to + foreloop_transh_at_seen(program));
    /* In the vectors in which it is read again, or the loads would have to wait for the stores. */
    for (size_t i = latent; i < size && from != to; i += LANES)
        vec_store(to + i, vec_load(from + i));
    vec p[4];
    for (size_t v = 0; v < vectors; v++)
        p[v] = vec_load(from + latent + v * LANES);
    for (size_t t = 0, count = segment->count; t < count; t++) {
        const uint32_t id = ids[t];
        if (id == FORELOOP_ACTION_UNKNOWN)
            continue;
        const float *const row = rows + id * row_stride;
        const uint32_t r = row_kinds[id];
        const float *const gram = grams + r * kinds;
        const vec c = vectors ? pick(p, vectors, r) : vec_set(stored[r]);
        gamma[r] += vec_first(c);
        for (size_t v = 0; v < vectors; v++)
            p[v] = subtract_product(vec_add(p[v], vec_load(row + v * LANES)), c, vec_load(gram + v * LANES));
        for (size_t i = 0; !vectors && i < kinds; i += LANES)
            vec_store(stored + i,
                      subtract_product(vec_add(vec_load(stored + i), vec_load(row + i)), c, vec_load(gram + i)));
        const unsigned before = seen[r];
        const float *values = row + kinds;
        const foreloop_transh_update *const end = updates + update_end[r];
        for (const foreloop_transh_update *how = updates + update_begin[r]; how < end; how++, values += GROUP)
            update(how, before, values, aggregates);
        seen[r] = 1;
    }
    for (size_t v = 0; v < vectors; v++)
        vec_store(stored + v * LANES, p[v]);
}

static void steps(const foreloop_transh_program *program, const foreloop_transh_segment *segments, size_t count,
                  size_t behind, float *slots) {
    const size_t vectors = PICKS_FROM_REGISTERS ? program->kinds / LANES : 0;
    for (size_t i = 0; i < count; i++) {
        if (i < behind)
            fetch_rows(&segments[count + i], program->rows, program->row_stride, program->row_stride);
        if (vectors == 1)
            steps_of(program, &segments[i], 1, slots);
        else if (vectors == 2)
            steps_of(program, &segments[i], 2, slots);
        else if (vectors == 4)
            steps_of(program, &segments[i], 4, slots);
        else
            steps_of(program, &segments[i], 0, slots);
    }
}

/* ---- Sums and z -------------------------------------------------------------------------------------------------- */

/* Near the limit of what the second-level cache delivers: two additions for each line of 64 bytes and its neighbour. */
VECTOR_INLINE void sums_of(const float *d, const foreloop_transh_segment *segments, size_t count, size_t behind,
                           size_t vectors, float *slots, size_t stride) {
    for (size_t i = 0; i < count; i++) {
        const foreloop_transh_segment *const segment = &segments[i];
        const float *const from = slots + segment->from * stride;
        float *const to = slots + segment->to * stride;
        vec sum[FORELOOP_TRANSH_SLICE / LANES];
        if (i < behind)
            fetch_rows(&segments[count + i], d, FORELOOP_TRANSH_SLICE, vectors * LANES);
        for (size_t v = 0; v < vectors; v++)
            sum[v] = vec_load(from + v * LANES);
        for (size_t t = 0; t < segment->count; t++) {
            const float *const own = d + (size_t)segment->ids[t] * FORELOOP_TRANSH_SLICE;
            for (size_t v = 0; v < vectors; v++)
                sum[v] = vec_add(sum[v], vec_load(own + v * LANES));
        }
        for (size_t v = 0; v < vectors; v++)
            vec_store(to + v * LANES, sum[v]);
    }
}

static void sums(const foreloop_transh_program *program, size_t slice, const foreloop_transh_segment *segments,
                 size_t count, size_t behind, float *slots, size_t stride) {
    if (foreloop_transh_slice_width(program, slice) == FORELOOP_TRANSH_SLICE)
        sums_of(program->slices[slice], segments, count, behind, FORELOOP_TRANSH_SLICE / LANES, slots, stride);
    else
        sums_of(program->slices[slice], segments, count, behind, GROUP / LANES, slots, stride);
}

/* Elements of z from `at` on, in so many registers. */
VECTOR_INLINE void finish_vectors(const foreloop_transh_program *program, size_t vectors, size_t at, const float *state,
                                  float *z) {
    const float *const gamma = state + foreloop_transh_at_gamma(program);
    const unsigned char *const seen = (const unsigned char *)(state + foreloop_transh_at_seen(program));
    vec sum[VECTOR_REGISTERS / 2];
    for (size_t v = 0; v < vectors; v++)
        sum[v] = vec_load(state + at + v * LANES);
    for (size_t first = 0; first < program->kinds; first += GROUP) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(seen + first));
        const int unseen = _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_setzero_si128()));
        for (unsigned kinds = 0xffffu & ~(unsigned)unseen; kinds; kinds &= kinds - 1) {
            const size_t r = first + (size_t)__builtin_ctz(kinds);
            const float *const normal = program->normal + r * program->normal_stride + at;
            const vec factor = vec_set(gamma[r]);
            for (size_t v = 0; v < vectors; v++)
                sum[v] = subtract_product(sum[v], factor, vec_load(normal + v * LANES));
        }
    }
    for (size_t v = 0; v < vectors; v++)
        vec_store(z + at + v * LANES, sum[v]);
}

static void finish(const foreloop_transh_program *program, const float *state, float *z) {
    enum { VECTORS = VECTOR_REGISTERS / 2 };
    size_t at = 0;
    for (; program->latent - at >= VECTORS * LANES; at += VECTORS * LANES)
        finish_vectors(program, VECTORS, at, state, z);
    for (; at < program->latent; at += LANES)
        finish_vectors(program, 1, at, state, z);
}

VECTOR_INLINE void store_columns(vec lanes[LANES], const uint32_t *columns, float *block, size_t block_stride) {
    vec_transpose(lanes);
    for (size_t i = 0; i < LANES; i++)
        vec_store(block + columns[i] * block_stride, lanes[i]);
}

static void finish_slice(const foreloop_transh_program *program, size_t slice, const float *slots, size_t slot_stride,
                         const uint32_t *used, size_t used_count, const float *gamma, const uint32_t *columns,
                         float *block, size_t block_stride) {
    const size_t first = slice * FORELOOP_TRANSH_SLICE, width = foreloop_transh_slice_width(program, slice);
    for (size_t part = 0; part < GROUP; part += LANES)
        for (size_t i = 0; i < width; i += LANES) {
            vec lanes[LANES];
            for (size_t s = 0; s < LANES; s++)
                lanes[s] = vec_load(slots + (part + s) * slot_stride + i);
            for (size_t k = 0; k < used_count; k++) {
                const vec normal = vec_load(program->normal + used[k] * program->normal_stride + first + i);
                const float *const factors = gamma + k * GROUP + part;
                for (size_t s = 0; s < LANES; s++)
                    lanes[s] = subtract_product(lanes[s], vec_set(factors[s]), normal);
            }
            store_columns(lanes, columns + first + i, block + part, block_stride);
        }
}

static void finish_aggregates(const foreloop_transh_program *program, const float *states, const uint32_t *columns,
                              float *block, size_t block_stride) {
    const float *const aggregates = states + foreloop_transh_at_aggregates(program);
    for (size_t part = 0; part < GROUP; part += LANES)
        for (size_t i = 0; i < program->aggregates; i += LANES) {
            vec lanes[LANES];
            for (size_t s = 0; s < LANES; s++)
                lanes[s] = vec_load(aggregates + (part + s) * program->state_size + i);
            store_columns(lanes, columns + i, block + part, block_stride);
        }
}

void FORELOOP_X86(foreloop_transh_f32)(foreloop_transh_f32 *kernels) {
    *kernels = (foreloop_transh_f32){.tier = LANES == 16 ? "avx512" : "avx2",
                                     .products = products,
                                     .affine = affine,
                                     .steps = steps,
                                     .sums = sums,
                                     .finish = finish,
                                     .finish_slice = finish_slice,
                                     .finish_aggregates = finish_aggregates};
}
