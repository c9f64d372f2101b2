/* The scoring engine over models of several shapes: the same bits on every tier and by every way of calling, close to
 * the direct form of the rollout; nothing allocated once it runs. */
#include "engine.h"
#include "network_oracle.h"
#include "scorer.h"
#include "tap.h"
#include <math.h>

enum { MAX_LATENT = 512, MAX_FEATURES = MAX_LATENT + BENCH_AGGREGATES };

static const bench_shape shapes[] = {{256, 32, 20, 6, NULL, 0},
                                     {100, 7, 3, 4, NULL, 0},  /* the trees read half of z and few aggregates */
                                     {16, 64, 5, 5, NULL, 0},  /* more kinds than dimensions */
                                     {300, 17, 1, 0, NULL, 0}, /* a tree that reads nothing */
                                     {64, ENGINE_REAL_KINDS, 8, 6, engine_kinds, 0},
                                     {256, 32, 20, 6, NULL, 64},
                                     {100, 7, 3, 4, NULL, 20},  /* the network reads what no tree does */
                                     {300, 17, 1, 0, NULL, 1}}; /* the network alone reads */
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* Everything that one tier computes. */
typedef struct results {
    float scores[ENGINE_CANDIDATES];
    float features[ENGINE_CANDIDATES][MAX_FEATURES];
    float latents[ENGINE_CANDIDATES][MAX_LATENT];
} results;

static void compute(engine *own, results *all) {
    memset(all, 0, sizeof *all);
    foreloop_score(own->scorer, own->workload, own->ids, own->offsets, ENGINE_CANDIDATES, all->scores, NULL);
    for (size_t i = 0; i < ENGINE_CANDIDATES; i++) {
        const uint32_t *ids = own->ids + own->offsets[i];
        const size_t length = own->offsets[i + 1] - own->offsets[i];
        foreloop_features(own->scorer, own->workload, ids, length, all->features[i], NULL);
        foreloop_rollout(own->scorer, own->workload, ids, length, all->latents[i], NULL);
    }
}

static void test_tiers(const bench_shape *shape) {
    static engine own;
    static results ref, other;
    for (foreloop_tier tier = FORELOOP_TIER_REF; tier <= foreloop_tier_detect(); tier = (foreloop_tier)(tier + 1)) {
        if (!CHECK(engine_open(&own, shape, tier), "open on %s: %s", foreloop_tier_name(tier), own.error.message))
            return;
        CHECK(strcmp(own.model->transition.kernels.tier, foreloop_tier_name(tier)) == 0, "%s runs",
              foreloop_tier_name(tier));
        compute(&own, tier == FORELOOP_TIER_REF ? &ref : &other);
        engine_close(&own);
        CHECK(own.memory.live == 0, "everything is released");
        if (tier != FORELOOP_TIER_REF)
            CHECK(memcmp(&ref, &other, sizeof ref) == 0, "%s gives the bits of ref", foreloop_tier_name(tier));
    }
}

/* |dz| / |z| against the direct form of the same actions. */
static double direct_error(const engine *own, size_t candidate) {
    const foreloop_transition *transition = &own->model->transition;
    const foreloop_rollout_plan *plan = &own->model->rollout;
    float direct[MAX_LATENT] = {0}, d[MAX_LATENT] = {0}, z[MAX_LATENT];
    const size_t begin = own->offsets[candidate], end = own->offsets[candidate + 1];
    memcpy(direct, own->workload->latent, transition->size * sizeof *direct);
    for (size_t t = begin; t < end; t++) {
        const uint32_t kind = own->actions->kinds[own->ids[t]];
        if (own->ids[t] == FORELOOP_ACTION_UNKNOWN)
            continue;
        for (size_t i = 0; i < transition->size; i++)
            d[plan->latent_order[i]] =
                own->actions->slices[i / FORELOOP_TRANSH_SLICE]
                                    [own->ids[t] * FORELOOP_TRANSH_SLICE + i % FORELOOP_TRANSH_SLICE];
        foreloop_transh_step_f32_ref(direct, transition->normal + kind * transition->stride, transition->beta[kind], d,
                                     transition->stride);
    }
    foreloop_rollout(own->scorer, own->workload, own->ids + begin, end - begin, z, NULL);
    double difference = 0, scale = 0;
    for (size_t i = 0; i < transition->size; i++) {
        difference += ((double)z[i] - direct[i]) * ((double)z[i] - direct[i]);
        scale += (double)direct[i] * direct[i];
    }
    return sqrt(difference / scale);
}

/* Every way to a score. */
static void test_ways(engine *own) {
    static results all;
    compute(own, &all);
    size_t single = 0, stepped = 0, pieces = 0, rows = 0;
    double worst = 0;
    const size_t size = foreloop_state_size(own->scorer);
    unsigned char *states = aligned_alloc(64, (ENGINE_CANDIDATES * size + 63) / 64 * 64);
    const void *pointers[ENGINE_CANDIDATES];
    float scores[ENGINE_CANDIDATES], score;
    for (size_t i = 0; i < ENGINE_CANDIDATES; i++) {
        const uint32_t *ids = own->ids + own->offsets[i];
        const size_t offsets[2] = {0, own->offsets[i + 1] - own->offsets[i]};
        foreloop_score(own->scorer, own->workload, ids, offsets, 1, &score, NULL);
        single += memcmp(&score, &all.scores[i], sizeof score) != 0;
        void *state = states + i * size;
        foreloop_state_begin(own->scorer, own->workload, state, NULL);
        for (size_t t = 0; t < offsets[1]; t++)
            foreloop_state_step(own->scorer, state, ids[t], NULL);
        foreloop_state_score(own->scorer, state, &score, NULL);
        stepped += memcmp(&score, &all.scores[i], sizeof score) != 0;
        pointers[i] = state;
        worst = fmax(worst, direct_error(own, i));
        foreloop_gbdt_predict(foreloop_model_gbdt(own->model), all.features[i], 1, MAX_FEATURES, 1, &score, NULL);
        score = oracle_score(own->model, score, all.features[i]);
        rows += memcmp(&score, &all.scores[i], sizeof score) != 0;
    }
    CHECK(single == 0, "a candidate alone has the bits of the batch: %zu differ", single);
    CHECK(stepped == 0, "so it has step by step: %zu differ", stepped);
    CHECK(rows == 0, "the trees and the network over foreloop_features give the scores: %zu differ", rows);
    CHECK(worst < 1e-5, "the direct form agrees: %.1e", worst);
    CHECK(foreloop_state_score_batch(own->scorer, pointers, ENGINE_CANDIDATES, scores, NULL) == FORELOOP_OK &&
              memcmp(scores, all.scores, sizeof scores) == 0,
          "states at once");
    for (size_t step = 1; step < 40; step += 5)
        for (size_t i = 0; i < ENGINE_CANDIDATES; i += step) {
            const size_t count = ENGINE_CANDIDATES - i < step ? ENGINE_CANDIDATES - i : step;
            foreloop_score(own->scorer, own->workload, own->ids, own->offsets + i, count, scores, NULL);
            pieces += memcmp(scores, all.scores + i, count * sizeof *scores) != 0;
        }
    CHECK(pieces == 0, "batches of 1 to 36: %zu differ", pieces);
    free(states);
}

/* A sorted batch, as of a tree of candidates, whose prefixes nest to any depth; longer than two chunks. `falling`: what
 * a candidate shares with its forerunner falls by 3 actions from one to the next, again and again, so that each prefix
 * is worth a slot. */
static void test_nested_prefixes(engine *own, bool falling) {
    enum { COUNT = 2 * FORELOOP_CHUNK + 100, LENGTH = 24 };
    static uint32_t ids[COUNT * LENGTH];
    static size_t offsets[COUNT + 1];
    static float scores[COUNT];
    random_source source = {23};
    size_t differ = 0;
    for (size_t i = 0; i < COUNT; i++) {
        const size_t kept = i == 0 ? 0 : falling ? LENGTH - 3 * (i % 8) - 1 : random_below(&source, LENGTH + 1);
        offsets[i + 1] = offsets[i] + LENGTH;
        for (size_t t = 0; t < LENGTH; t++)
            ids[i * LENGTH + t] = t < kept ? ids[(i - 1) * LENGTH + t] : 1 + random_below(&source, 40);
    }
    foreloop_score(own->scorer, own->workload, ids, offsets, COUNT, scores, NULL);
    for (size_t i = 0; i < COUNT; i++) {
        float score;
        foreloop_score(own->scorer, own->workload, ids + i * LENGTH, offsets, 1, &score, NULL);
        differ += memcmp(&score, &scores[i], sizeof score) != 0;
    }
    CHECK(differ == 0, "nested prefixes%s: %zu differ", falling ? ", falling" : "", differ);
}

static void run_backwards(void *user, size_t count, void (*task)(void *argument, size_t index), void *argument) {
    *(size_t *)user += count;
    while (count)
        task(argument, --count);
}

static void test_allocations(engine *own) {
    enum { K = 9 };
    float scores[ENGINE_CANDIDATES], features[MAX_FEATURES];
    uint64_t best[K];
    size_t found, tasks = 0;
    foreloop_candidate_details details[ENGINE_CANDIDATES];
    foreloop_parallel_for parallel = {run_backwards, &tasks};
    char name[BENCH_NAME_SIZE];
    foreloop_argument arguments[BENCH_SLOTS];
    foreloop_action action;
    uint32_t id;
    bench_action(5, own->kinds, name, arguments, &action);
    if (own->kinds == ENGINE_REAL_KINDS)
        action.kind = engine_kinds[5];
    void *state = aligned_alloc(64, (foreloop_state_size(own->scorer) + 63) / 64 * 64);
    size_t before = 0;
    for (int round = 0; round < 2; round++) {
        before = own->memory.calls;
        foreloop_score(own->scorer, own->workload, own->ids, own->offsets, ENGINE_CANDIDATES, scores, NULL);
        foreloop_rank_top(own->scorer, own->workload, own->ids, own->offsets, ENGINE_CANDIDATES, K, best, NULL, &found,
                          NULL);
        foreloop_score_parallel(&own->scorer, 1, &parallel, own->workload, own->ids, own->offsets, ENGINE_CANDIDATES,
                                scores, NULL);
        foreloop_score_details(own->scorer, own->ids, own->offsets, ENGINE_CANDIDATES, details, NULL);
        foreloop_features(own->scorer, own->workload, own->ids, 5, features, NULL);
        foreloop_rollout(own->scorer, own->workload, own->ids, 5, features, NULL);
        foreloop_state_begin(own->scorer, own->workload, state, NULL);
        foreloop_state_step(own->scorer, state, 1, NULL);
        foreloop_state_score(own->scorer, state, scores, NULL);
        foreloop_actions_intern(own->actions, &action, 1, &id, NULL);
    }
    CHECK(own->memory.calls == before && id == 6, "the second round allocates nothing");
    free(state);
}

int main(void) {
    static engine own;
    for (size_t i = 0; i < SHAPES; i++) {
        printf("# d %zu, %zu kinds, %zu trees, network of %zu\n", shapes[i].latent, shapes[i].kinds, shapes[i].trees,
               shapes[i].network);
        test_tiers(&shapes[i]);
        if (!CHECK(engine_open(&own, &shapes[i], FORELOOP_TIER_BEST), "open: %s", own.error.message))
            continue;
        test_ways(&own);
        test_nested_prefixes(&own, false);
        test_nested_prefixes(&own, true);
        test_allocations(&own);
        engine_close(&own);
    }
    return tap_done();
}
