/* All ways to cut an extent into a number of factors: the values of SamplePerfectTile. */
#include "common/error.h"
#include "schedule/sketch.h"

enum {
    MAX_EXTENT = 1 << 30, /* divisors are found by trial */
    MAX_DIVISORS = 2048,  /* no number up to 2^30 has more than 1,344 */
    MAX_VALUES = 1 << 18,
    MAX_STEPS = 1 << 22, /* of the search, most of which may lead to too large a last factor */
    MAX_FACTORS = 16
};

typedef struct tile_writer {
    foreloop_sketch *sketch;
    foreloop_sketch_decision *decision;
    foreloop_error *error;
    uint32_t divisors[MAX_DIVISORS]; /* rising */
    size_t divisor_count, steps;
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

/* Writes the values whose first `part` factors are set and whose others multiply to `rest`. LIMIT when there are too
 * many. */
static foreloop_status write_rest(tile_writer *writer, size_t part, uint32_t rest) {
    foreloop_sketch_decision *decision = writer->decision;
    if (++writer->steps > MAX_STEPS)
        return FORELOOP_ERROR_LIMIT;
    if (part + 1 == decision->width) {
        if (decision->innermost > 0 && rest > decision->innermost)
            return FORELOOP_OK;
        if (decision->count == MAX_VALUES)
            return FORELOOP_ERROR_LIMIT;
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
    writer->steps = 0;
    find_divisors(writer, (uint32_t)decision->product);
    foreloop_status status = write_rest(writer, 0, (uint32_t)decision->product);
    if (status == FORELOOP_ERROR_LIMIT) {
        decision->count = 0;
        return FORELOOP_OK;
    }
    decision->ruled = decision->count;
    return status;
}
