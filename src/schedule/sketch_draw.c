/* Points from random numbers: drawn, mutated, crossed over. */
#include "common/random.h"
#include "schedule/sketch.h"
#include <string.h>

/* Tilings that no place fits are drawn again so often; then a trace's own point will do, or the point as it was. */
enum { ATTEMPTS = 32 };

static uint32_t draw_value(const foreloop_sketch_decision *decision, uint64_t *random) {
    if (!decision->shares)
        return (uint32_t)foreloop_random_below(random, decision->count);
    double at =
        (double)foreloop_random_below(random, (size_t)1 << 31) * 0x1p-31 * decision->shares[decision->ruled - 1];
    size_t value = 0;
    while (value + 1 < decision->ruled && decision->shares[value] <= at)
        value++;
    return (uint32_t)value;
}

static void copy_point(const foreloop_sketch *sketch, const uint32_t *from, uint32_t *point) {
    if (from != point && sketch->decision_count > 0)
        memcpy(point, from, sketch->decision_count * sizeof *point);
}

void foreloop_sketch_sample(const foreloop_sketch *sketch, uint64_t *random, uint32_t *point) {
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        for (size_t i = 0; i < sketch->decision_count; i++)
            if (i != sketch->locations)
                point[i] = draw_value(&sketch->decisions[i], random);
        if (foreloop_sketch_place(sketch, random, point))
            return;
    }
    size_t known = foreloop_random_below(random, sketch->point_count);
    copy_point(sketch, sketch->points + known * sketch->decision_count, point);
}

/* Moves a divisor from one factor of a tile to another. */
static uint32_t move_factor(const foreloop_sketch_decision *decision, uint64_t *random, uint32_t value) {
    enum { MAX_FACTORS = 16 };
    double factors[MAX_FACTORS];
    if (decision->width < 2 || decision->width > MAX_FACTORS)
        return value;
    memcpy(factors, foreloop_sketch_value(decision, value), decision->width * sizeof *factors);
    size_t from = foreloop_random_below(random, decision->width);
    size_t to = (from + 1 + foreloop_random_below(random, decision->width - 1)) % decision->width;
    if (factors[from] > UINT32_MAX)
        return value;
    /* One of the divisors above 1, the smaller the likelier: a random number's common divisor with the factor. */
    uint32_t whole = (uint32_t)factors[from], a = whole, b = (uint32_t)foreloop_random_below(random, whole) + 1;
    while (b != 0) {
        uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    if (a == 1) { /* the smallest there is */
        for (a = 2; a <= whole / a && whole % a != 0;)
            a++;
        if (a > whole / a)
            a = whole;
    }
    factors[from] /= a;
    factors[to] *= a;
    size_t moved = foreloop_sketch_find(decision, factors);
    return moved < decision->count ? (uint32_t)moved : value;
}

/* Another value of one decision. */
static void change(const foreloop_sketch *sketch, uint64_t *random, size_t at, uint32_t *point) {
    const foreloop_sketch_decision *decision = &sketch->decisions[at];
    if (at == sketch->locations) {
        foreloop_sketch_place(sketch, random, point);
        return;
    }
    if (decision->kind == FORELOOP_DECISION_TILE && foreloop_random_below(random, 2) == 0) {
        point[at] = move_factor(decision, random, point[at]);
        return;
    }
    point[at] = (uint32_t)((point[at] + 1 + foreloop_random_below(random, decision->count - 1)) % decision->count);
}

void foreloop_sketch_mutate(const foreloop_sketch *sketch, uint64_t *random, const uint32_t *from, uint32_t *point) {
    size_t open = 0;
    copy_point(sketch, from, point);
    for (size_t i = 0; i < sketch->decision_count; i++)
        open += sketch->decisions[i].count > 1;
    for (int attempt = 0; open > 0 && attempt < ATTEMPTS; attempt++) {
        size_t chosen = foreloop_random_below(random, open), at = 0;
        while (sketch->decisions[at].count < 2 || chosen-- > 0)
            at++;
        const uint32_t old = point[at];
        const uint32_t old_place = sketch->locations == FORELOOP_SKETCH_NONE ? 0 : point[sketch->locations];
        change(sketch, random, at, point);
        if (point[at] != old && (foreloop_sketch_legal(sketch, point) || foreloop_sketch_place(sketch, random, point)))
            return;
        point[at] = old;
        if (sketch->locations != FORELOOP_SKETCH_NONE)
            point[sketch->locations] = old_place;
    }
}

void foreloop_sketch_cross(const foreloop_sketch *sketch, uint64_t *random, const uint32_t *a, const uint32_t *b,
                           uint32_t *point) {
    const size_t places = sketch->locations;
    const uint32_t own[2] = {places == FORELOOP_SKETCH_NONE ? 0 : a[places],
                             places == FORELOOP_SKETCH_NONE ? 0 : b[places]};
    size_t coins = 0;
    for (size_t i = 0; i < sketch->decision_count; i++) {
        if (i % 16 == 0)
            coins = foreloop_random_below(random, (size_t)1 << 16);
        point[i] = (coins >> i % 16 & 1) ? a[i] : b[i];
    }
    if (foreloop_sketch_legal(sketch, point))
        return;
    point[places] = point[places] == own[0] ? own[1] : own[0];
    if (!foreloop_sketch_legal(sketch, point) && !foreloop_sketch_place(sketch, random, point))
        copy_point(sketch, a, point);
}
