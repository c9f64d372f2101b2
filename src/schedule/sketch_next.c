/*
 * All legal points one after the other. The places change slowest: beside given places it can be told of each tile
 * alone whether it is legal, and some tile always is, because a trace has shown those places. So nothing is tried in
 * vain, however few of all points are legal.
 *
 * Places are numbered as for a draw: by their value, or where patterns matter by the pair of a pattern and a value.
 */
#include "schedule/sketch.h"

static size_t place_count(const foreloop_sketch *sketch) {
    if (sketch->locations == FORELOOP_SKETCH_NONE)
        return 1;
    return sketch->by_pattern ? sketch->pattern_count : sketch->decisions[sketch->locations].count;
}

static uint32_t place_value(const foreloop_sketch *sketch, size_t place) {
    return sketch->by_pattern ? sketch->patterned[place] : (uint32_t)place;
}

/* Whether a value of decision `d` is legal beside these places. */
static bool fits(const foreloop_sketch *sketch, size_t place, size_t d, uint32_t value) {
    const foreloop_sketch_decision *decision = &sketch->decisions[d];
    if (sketch->locations == FORELOOP_SKETCH_NONE || decision->kind != FORELOOP_DECISION_TILE)
        return true;
    const double *factors = foreloop_sketch_value(decision, value);
    if (sketch->by_pattern) {
        const uint32_t *shown = sketch->points + sketch->pattern_points[place] * sketch->decision_count;
        const double *ones = foreloop_sketch_value(decision, shown[d]);
        for (size_t i = 0; i < decision->width; i++)
            if ((factors[i] == 1) != (ones[i] == 1))
                return false;
    }
    const foreloop_sketch_decision *locations = &sketch->decisions[sketch->locations];
    const double *at = foreloop_sketch_value(locations, place_value(sketch, place));
    for (size_t i = 0; i < locations->width; i++) {
        const foreloop_sketch_factor *loop = foreloop_sketch_place_factor(sketch, i, at[i]);
        if (loop && loop->decision == d && factors[loop->part] == 1)
            return false;
    }
    return true;
}

/* The first value from `from` on that is legal beside these places, or the number of values. */
static size_t find_value(const foreloop_sketch *sketch, size_t place, size_t d, size_t from) {
    while (from < sketch->decisions[d].count && !fits(sketch, place, d, (uint32_t)from))
        from++;
    return from;
}

/* The first legal values of the decisions from `d` on, and the places. */
static void begin(const foreloop_sketch *sketch, size_t place, size_t d, uint32_t *point) {
    for (; d < sketch->decision_count; d++)
        point[d] = d == sketch->locations ? place_value(sketch, place) : (uint32_t)find_value(sketch, place, d, 0);
}

/* The places of a legal point; their count when it is not legal. */
static size_t find_place(const foreloop_sketch *sketch, const uint32_t *point) {
    const size_t count = place_count(sketch);
    for (size_t place = 0; place < count; place++) {
        bool legal =
            sketch->locations == FORELOOP_SKETCH_NONE || place_value(sketch, place) == point[sketch->locations];
        for (size_t d = 0; legal && d < sketch->decision_count; d++)
            legal = fits(sketch, place, d, point[d]);
        if (legal)
            return place;
    }
    return count;
}

void foreloop_sketch_first(const foreloop_sketch *sketch, uint32_t *point) {
    begin(sketch, 0, 0, point);
}

foreloop_status foreloop_sketch_next(const foreloop_sketch *sketch, uint32_t *point) {
    const size_t count = place_count(sketch), place = find_place(sketch, point);
    if (place == count)
        return FORELOOP_ERROR_ARGUMENT;
    for (size_t d = sketch->decision_count; d-- > 0;) {
        if (d == sketch->locations)
            continue;
        size_t value = find_value(sketch, place, d, point[d] + (size_t)1);
        if (value < sketch->decisions[d].count) {
            point[d] = (uint32_t)value;
            begin(sketch, place, d + 1, point);
            return FORELOOP_OK;
        }
    }
    if (place + 1 == count)
        return FORELOOP_END;
    begin(sketch, place + 1, 0, point);
    return FORELOOP_OK;
}
