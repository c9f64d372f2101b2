/*
 * Which places are legal beside the tiles of a point.
 *
 * TVM computes a block at no loop of extent 1; it takes the next loop outside of it instead, and the trace is another
 * one then. Where the walk knows the loops that a place counts, those of the tiled block, their extents say what is
 * legal. Where it does not, as in sketches with rfactor, places are legal where a trace has shown them together with
 * the same pattern of factors that are 1.
 */
#include "common/error.h"
#include "common/hash.h"
#include "common/random.h"
#include "schedule/sketch.h"
#include "schedule/walk_instruction.h"

/* ---- The loops that places count --------------------------------------------------------------------------------- */

/* The instruction that an output belongs to, and its number there. */
static const foreloop_instruction *output_of(const foreloop_trace *trace, size_t output, size_t *index) {
    for (size_t i = 0; i < trace->count; i++) {
        if (output < trace->instructions[i].outputs.count) {
            *index = output;
            return &trace->instructions[i];
        }
        output -= trace->instructions[i].outputs.count;
    }
    return NULL;
}

/* The tile's factor that a loop's extent is, when it is a part of a split by sampled factors. */
static foreloop_sketch_factor factor_of(const foreloop_sketch *sketch, size_t output) {
    foreloop_sketch_factor none = {FORELOOP_SKETCH_NONE, 0};
    size_t part;
    const foreloop_instruction *split = output_of(&sketch->trace, output, &part);
    if (!split || !split->kind || split->kind->handle != foreloop_on_split)
        return none;
    const foreloop_value *factor = foreloop_value_item(&split->inputs, part + 1);
    if (factor->type != FORELOOP_VALUE_VARIABLE)
        return none;
    for (size_t d = 0; d < sketch->decision_count; d++) {
        const foreloop_sketch_decision *decision = &sketch->decisions[d];
        if (decision->kind != FORELOOP_DECISION_TILE)
            continue;
        uint32_t at = sketch->numbers[decision->first_number].instruction;
        const foreloop_value *outputs = &sketch->trace.instructions[at].outputs;
        for (size_t i = 0; i < outputs->count; i++)
            if (outputs->items[i].type == FORELOOP_VALUE_VARIABLE && outputs->items[i].variable == factor->variable)
                return (foreloop_sketch_factor){d, i};
    }
    return none;
}

/* The nest of the tiled block as it is in the walk. */
static foreloop_status copy_nest(foreloop_sketch *sketch, foreloop_sketch_nest *nest, foreloop_error *error) {
    const foreloop_walk *walk = sketch->walk;
    *nest = (foreloop_sketch_nest){.known = false};
    if (walk->tiled_block >= walk->block_count || walk->blocks[walk->tiled_block].nest_count == 0)
        return FORELOOP_OK;
    const foreloop_block *block = &walk->blocks[walk->tiled_block];
    foreloop_sketch_factor *loops = foreloop_arena_allocate(&sketch->arena, block->nest_count, sizeof *loops);
    if (!loops)
        return foreloop_fail_memory(error, block->nest_count, sizeof *loops, "the loops of a sketch");
    for (size_t i = 0; i < block->nest_count; i++)
        loops[i] = factor_of(sketch, walk->loops[block->nest[i]].output);
    *nest = (foreloop_sketch_nest){.known = true, .loops = loops, .count = block->nest_count};
    return FORELOOP_OK;
}

foreloop_status foreloop_sketch_find_nests(foreloop_sketch *sketch, foreloop_error *error) {
    if (sketch->locations == FORELOOP_SKETCH_NONE)
        return FORELOOP_OK;
    const foreloop_sketch_decision *places = &sketch->decisions[sketch->locations];
    for (size_t i = 0; i < places->width; i++) {
        foreloop_walk_result result;
        foreloop_trace before = sketch->trace;
        before.count = before.length = sketch->numbers[places->first_number + i].instruction;
        FORELOOP_TRY(foreloop_walk_decided(sketch->walk, &before, NULL, &sketch->scratch, &result, error));
        FORELOOP_TRY(copy_nest(sketch, &sketch->nests[i], error));
        sketch->by_pattern = sketch->by_pattern || !sketch->nests[i].known;
    }
    return FORELOOP_OK;
}

/* ---- Legality ---------------------------------------------------------------------------------------------------- */

/* Which factors of a point's tiles are 1. */
static uint64_t unit_pattern(const foreloop_sketch *sketch, const uint32_t *point) {
    uint64_t pattern = FORELOOP_HASH_START;
    for (size_t d = 0; d < sketch->decision_count; d++) {
        const foreloop_sketch_decision *decision = &sketch->decisions[d];
        if (decision->kind != FORELOOP_DECISION_TILE)
            continue;
        const double *factors = foreloop_sketch_value(decision, point[d]);
        for (size_t i = 0; i < decision->width; i++)
            pattern = (pattern ^ (factors[i] == 1)) * UINT64_C(0x100000001b3);
    }
    return pattern;
}

const foreloop_sketch_factor *foreloop_sketch_place_factor(const foreloop_sketch *sketch, size_t index, double place) {
    const foreloop_sketch_nest *nest = &sketch->nests[index];
    if (!nest->known || place < 0 || place >= (double)nest->count)
        return NULL;
    const foreloop_sketch_factor *loop = &nest->loops[(size_t)place];
    return loop->decision == FORELOOP_SKETCH_NONE ? NULL : loop;
}

static bool fits_nest(const foreloop_sketch *sketch, size_t index, double place, const uint32_t *point) {
    const foreloop_sketch_factor *loop = foreloop_sketch_place_factor(sketch, index, place);
    return !loop || foreloop_sketch_value(&sketch->decisions[loop->decision], point[loop->decision])[loop->part] != 1;
}

static bool fits_nests(const foreloop_sketch *sketch, const double *places, const uint32_t *point) {
    for (size_t i = 0; i < sketch->decisions[sketch->locations].width; i++)
        if (!fits_nest(sketch, i, places[i], point))
            return false;
    return true;
}

static bool is_shown(const foreloop_sketch *sketch, uint64_t pattern, uint32_t value) {
    for (size_t i = 0; i < sketch->pattern_count; i++)
        if (sketch->patterns[i] == pattern && sketch->patterned[i] == value)
            return true;
    return false;
}

bool foreloop_sketch_legal(const foreloop_sketch *sketch, const uint32_t *point) {
    if (sketch->locations == FORELOOP_SKETCH_NONE)
        return true;
    const uint32_t value = point[sketch->locations];
    return fits_nests(sketch, foreloop_sketch_value(&sketch->decisions[sketch->locations], value), point) &&
           (!sketch->by_pattern || is_shown(sketch, unit_pattern(sketch, point), value));
}

void foreloop_sketch_show_places(foreloop_sketch *sketch, const uint32_t *point) {
    if (sketch->locations == FORELOOP_SKETCH_NONE)
        return;
    const foreloop_sketch_decision *decision = &sketch->decisions[sketch->locations];
    const double *places = foreloop_sketch_value(decision, point[sketch->locations]);
    uint64_t pattern = unit_pattern(sketch, point);
    /* A place that TVM has taken, though it would not by these loops, counts others. */
    for (size_t i = 0; i < decision->width; i++)
        if (!fits_nest(sketch, i, places[i], point)) {
            sketch->nests[i].known = false;
            sketch->by_pattern = true;
        }
    if (is_shown(sketch, pattern, point[sketch->locations]))
        return;
    sketch->pattern_points[sketch->pattern_count] = sketch->point_count;
    sketch->patterns[sketch->pattern_count] = pattern;
    sketch->patterned[sketch->pattern_count++] = point[sketch->locations];
}

/* The candidates for a draw: the values, or where patterns matter the pairs of a pattern and a value. Whether the one
 * at `index` is legal; its value goes to *value. */
static bool is_candidate(const foreloop_sketch *sketch, const uint32_t *point, uint64_t pattern, size_t index,
                         uint32_t *value) {
    *value = sketch->by_pattern ? sketch->patterned[index] : (uint32_t)index;
    return (!sketch->by_pattern || sketch->patterns[index] == pattern) &&
           fits_nests(sketch, foreloop_sketch_value(&sketch->decisions[sketch->locations], *value), point);
}

bool foreloop_sketch_place(const foreloop_sketch *sketch, uint64_t *random, uint32_t *point) {
    if (sketch->locations == FORELOOP_SKETCH_NONE)
        return true;
    const uint64_t pattern = sketch->by_pattern ? unit_pattern(sketch, point) : 0;
    const size_t count = sketch->by_pattern ? sketch->pattern_count : sketch->decisions[sketch->locations].count;
    size_t legal = 0;
    uint32_t value;
    for (size_t i = 0; i < count; i++)
        legal += is_candidate(sketch, point, pattern, i, &value);
    if (legal == 0)
        return false;
    size_t chosen = foreloop_random_below(random, legal);
    for (size_t i = 0;; i++)
        if (is_candidate(sketch, point, pattern, i, &value) && chosen-- == 0)
            break;
    point[sketch->locations] = value;
    return true;
}
