/* All ways to cut an extent into a number of factors: the values of SamplePerfectTile. */
#include "common/error.h"
#include "schedule/sketch.h"

enum {
    MAX_EXTENT = 1 << 30, /* divisors are found by trial */
    MAX_DIVISORS = 2048,  /* no number up to 2^30 has more than 1,344 */
    MAX_VALUES = 1 << 18,
    MAX_LISTED = 1 << 23, /* factors in a sketch */
    MAX_PRIMES = 16,      /* no number up to 2^30 has more than 9 */
    MAX_FACTORS = 16
};

typedef struct tile_writer {
    foreloop_sketch *sketch;
    foreloop_sketch_decision *decision;
    foreloop_error *error;
    uint32_t divisors[MAX_DIVISORS]; /* rising */
    size_t divisor_count;
    double factors[MAX_FACTORS];
} tile_writer;

static void find_divisors(tile_writer *writer, uint32_t extent) {
    uint32_t large[MAX_DIVISORS];
    size_t count = 0;
    writer->divisor_count = 0;
    for (uint32_t d = 1; d <= extent / d; d++)
        if (extent % d == 0) {
            writer->divisors[writer->divisor_count++] = d;
            if (d != extent / d)
                large[count++] = extent / d;
        }
    while (count > 0)
        writer->divisors[writer->divisor_count++] = large[--count];
}

/* ---- How many ---------------------------------------------------------------------------------------------------- */

typedef struct prime_list {
    uint32_t primes[MAX_PRIMES];
    size_t count;
} prime_list;

static void find_primes(prime_list *list, uint32_t extent) {
    list->count = 0;
    for (uint32_t p = 2; p <= extent / p; p++)
        if (extent % p == 0) {
            list->primes[list->count++] = p;
            while (extent % p == 0)
                extent /= p;
        }
    if (extent > 1)
        list->primes[list->count++] = extent;
}

/* The ways to cut `extent` into `parts` factors: each prime's power is spread over them on its own. At most 30 powers
 * over 16 factors: a double has room. */
static double count_cuts(const prime_list *list, uint32_t extent, size_t parts) {
    double ways = 1;
    if (parts == 0)
        return extent == 1;
    for (size_t i = 0; i < list->count; i++)
        for (size_t power = 1; extent % list->primes[i] == 0; power++, extent /= list->primes[i])
            ways = ways * (double)(power + parts - 1) / (double)power;
    return ways;
}

/* Those whose last factor is within the bound. */
static bool too_many(const tile_writer *writer, uint32_t extent) {
    const foreloop_sketch_decision *decision = writer->decision;
    prime_list primes;
    double sum = 0;
    find_primes(&primes, extent);
    for (size_t i = 0; i < writer->divisor_count; i++)
        if (decision->innermost == 0 || writer->divisors[i] <= decision->innermost)
            sum += count_cuts(&primes, extent / writer->divisors[i], decision->width - 1);
    return sum > MAX_VALUES || sum * (double)decision->width > (double)(MAX_LISTED - writer->sketch->listed);
}

/* ---- Listing ----------------------------------------------------------------------------------------------------- */

/* Writes the values whose first `part` factors are set and whose others multiply to `rest`. Unless the last of two is
 * too large, every step leads to values. */
static foreloop_status write_rest(tile_writer *writer, size_t part, uint32_t rest) {
    foreloop_sketch_decision *decision = writer->decision;
    if (part + 1 == decision->width) {
        if (decision->innermost > 0 && rest > decision->innermost)
            return FORELOOP_OK;
        writer->factors[part] = rest;
        return foreloop_sketch_append(writer->sketch, decision, writer->factors, writer->error);
    }
    for (size_t i = 0; i < writer->divisor_count && writer->divisors[i] <= rest; i++) {
        if (rest % writer->divisors[i] != 0)
            continue;
        writer->factors[part] = writer->divisors[i];
        FORELOOP_TRY(write_rest(writer, part + 1, rest / writer->divisors[i]));
    }
    return FORELOOP_OK;
}

foreloop_status foreloop_sketch_fill_tiles(foreloop_sketch *sketch, foreloop_sketch_decision *decision,
                                           foreloop_error *error) {
    if (!(decision->product <= MAX_EXTENT) || decision->width > MAX_FACTORS)
        return FORELOOP_OK;
    tile_writer *writer = foreloop_arena_allocate(&sketch->scratch, 1, sizeof *writer);
    if (!writer)
        return foreloop_fail_memory(error, 1, sizeof *writer, "the values of a decision");
    writer->sketch = sketch;
    writer->decision = decision;
    writer->error = error;
    find_divisors(writer, (uint32_t)decision->product);
    if (too_many(writer, (uint32_t)decision->product))
        return FORELOOP_OK;
    FORELOOP_TRY(write_rest(writer, 0, (uint32_t)decision->product));
    decision->ruled = decision->count;
    sketch->listed += decision->count * decision->width;
    return FORELOOP_OK;
}
