/* Search spaces of small traces written by hand: what is legal, enumeration, malformed input, failing memory. */
#include "../failing_allocator.h"
#include "../tap.h"
#include <foreloop/foreloop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HEAD                                                                                                           \
    "[\"GetSBlock\",[],[\"A\",\"main\"],[\"b0\"]],[\"GetLoops\",[\"b0\"],[],[\"l1\"]],"                                \
    "[\"SamplePerfectTile\",[\"l1\"],[2,4],[\"v2\",\"v3\"]],[\"Split\",[\"l1\",\"v2\",\"v3\"],[1,0],[\"l4\",\"l5\"]]," \
    "[\"SampleCategorical\",[],[[0,16],[0.25,0.75]],[\"v6\"]],"                                                        \
    "[\"Annotate\",[\"b0\",\"v6\"],[\"meta_schedule.unroll_explicit\"],[]],"
#define PARALLEL(number) "[\"Annotate\",[\"b0\", " number " ],[\"meta_schedule.parallel\"],[]],"
#define TAIL                                                                                                           \
    "[\"SampleComputeLocation\",[\"b0\"],[],[\"l7\"]],[\"ComputeAt\",[\"b0\",\"l7\"],[1,-1],[]],"                      \
    "[\"EnterPostproc\",[],[],[]],[\"GetSBlock\",[],[\"A\",\"main\"],[\"b8\"]]"
#define TRACE(number, decisions) "[[" HEAD PARALLEL(number) TAIL "]," decisions "]"
#define GIVEN                    TRACE("32", "[[2,[6,2]],[4,1],[7,-1]]")

static foreloop_error error;

static foreloop_status create(foreloop_space **space, foreloop_actions *actions, const char *text) {
    return foreloop_space_create(space, actions, text, strlen(text), NULL, &error);
}

static size_t count_points(const foreloop_space *space) {
    uint32_t point[8];
    size_t count = 0;
    for (foreloop_status status = foreloop_space_first(space, point, &error); status == FORELOOP_OK && count < 1000;
         status = foreloop_space_next(space, point, &error))
        count++;
    return count;
}

static void check_legal(void) {
    foreloop_space *space = NULL;
    uint32_t point[8], added[8];
    double numbers[2];
    char text[2048];
    size_t needed;
    CHECK(create(&space, NULL, GIVEN) == FORELOOP_OK, "a trace on its own makes a space: %s", error.message);
    foreloop_space_info info = {.size = sizeof info};
    foreloop_space_get_info(space, &info);
    CHECK(info.decision_count == 4 && info.points == 8 && info.trace_count == 1 && info.instruction_count == 9 &&
              info.action_count == 5,
          "tile, category, annotation, places: %zu decisions, %zu points, %zu actions", info.decision_count,
          (size_t)info.points, info.action_count);
    CHECK(count_points(space) == 6, "places are legal where tiles have their ones as in a trace that shows them");
    foreloop_space_get_trace_point(space, 0, point, &error);
    CHECK(foreloop_space_get_value(space, 0, point[0], numbers, &error) == FORELOOP_OK && numbers[0] == 6 &&
              numbers[1] == 2,
          "the point of the trace has its tile");
    foreloop_space_trace(space, point, text, sizeof text, &needed, &error);
    const char *expected = "[[" HEAD PARALLEL(
        "32") "[\"SampleComputeLocation\",[\"b0\"],[],[\"l7\"]],[\"ComputeAt\",[\"b0\",\"l7\"],[1,-1],[]]],"
              "[[2,[6,2]],[4,1],[7,-1]]]";
    CHECK(needed == strlen(expected) && memcmp(text, expected, needed) == 0, "the trace is written as it was");
    CHECK(foreloop_space_trace(space, point, text, needed - 1, &needed, &error) == FORELOOP_ERROR_LIMIT,
          "a buffer that is too small: %s", error.message);

    const char *flat = TRACE("64", "[[2,[12,1]],[4,0],[7,0]]");
    CHECK(foreloop_space_add(space, flat, strlen(flat), added, &error) == FORELOOP_OK, "another trace is added");
    foreloop_space_get_info(space, &info);
    CHECK(info.points == 32 && info.trace_count == 2, "it shows an annotation and a place");
    /* 3 tiles with the first place and 1 with the second, 2 categories, 2 annotations */
    CHECK(count_points(space) == 16, "and a pattern of ones: %zu points", count_points(space));
    foreloop_space_trace(space, added, text, sizeof text, &needed, &error);
    CHECK(strstr(text, "[\"b0\", 64 ]") && strstr(text, "[[2,[12,1]],[4,0],[7,0]]"), "its numbers are written");
    CHECK(foreloop_space_add(space, GIVEN, strlen(GIVEN), added, &error) == FORELOOP_OK &&
              memcmp(added, point, 4 * sizeof *point) == 0,
          "points stay good when traces are added");

    uint64_t random = 7;
    size_t seen[2] = {0, 0}, legal = 0;
    static uint32_t drawn[4000][4];
    foreloop_space_sample(space, &random, 4000, drawn[0], &error);
    for (size_t i = 0; i < 4000; i++) {
        seen[drawn[i][1]]++;
        legal += (size_t)foreloop_space_is_legal(space, drawn[i]);
    }
    CHECK(legal == 4000 && seen[1] > 2800 && seen[1] < 3200, "categories are drawn by their probabilities (%zu)",
          seen[1]);
    foreloop_space_close(space);
}

static void check_errors(foreloop_actions *actions) {
    static const struct {
        const char *text, *what;
        foreloop_status status;
    } cases[] = {
        {"", "nothing", FORELOOP_ERROR_FORMAT},
        {"[]", "an empty record", FORELOOP_ERROR_FORMAT},
        {"[[]]", "no decisions", FORELOOP_ERROR_FORMAT},
        {"[[[\"Annotate\",[],[],[]]],[[1,2]]]", "a decision of no instruction", FORELOOP_ERROR_FORMAT},
        {TRACE("32", "[[4,1],[7,-1]]"), "a tile that is missing", FORELOOP_ERROR_FORMAT},
        {TRACE("32", "[[2,[6]],[4,1],[7,-1]]"), "a factor that is missing", FORELOOP_ERROR_FORMAT},
        {TRACE("32", "[[2,[6,0]],[4,1],[7,-1]]"), "a factor of 0", FORELOOP_ERROR_FORMAT},
        {TRACE("32", "[[2,[6,1.5]],[4,1],[7,-1]]"), "half a factor", FORELOOP_ERROR_FORMAT},
        {TRACE("32", "[[2,[6,2]],[4,2],[7,-1]]"), "a category that is none", FORELOOP_ERROR_FORMAT},
        {TRACE("32", "[[2,[6,2]],[4,1],[7,-3]]"), "a place that is none", FORELOOP_ERROR_FORMAT},
        {TRACE("NaN", "[[2,[6,2]],[4,1],[7,-1]]"), "an annotation that is no number", FORELOOP_ERROR_FORMAT},
        {TRACE("32", "[[2,[6,2]],[4,1],[7,-1]]") "x", "something behind the trace", FORELOOP_ERROR_FORMAT},
        {TRACE("32", "[[2,[6,2]],[3,1],[4,1],[7,-1]]"), "a decision of a split", FORELOOP_ERROR_UNSUPPORTED},
        {"[[[\"SampleMagic\",[],[],[\"v0\"]]],[[0,1]]]", "a decision of an unknown kind", FORELOOP_ERROR_UNSUPPORTED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        foreloop_space *space = NULL;
        error.message[0] = 0;
        foreloop_status status = create(&space, NULL, cases[i].text);
        CHECK(status == cases[i].status && !space, "%s: %s", cases[i].what, error.message);
        foreloop_space_close(space);
    }
    foreloop_space *space = NULL;
    CHECK(create(&space, actions, "[[],[]]") == FORELOOP_OK && count_points(space) == 1,
          "a trace without decisions has one point");
    uint32_t none[1] = {0}, id = 77;
    CHECK(foreloop_space_intern(space, none, 1, &id, &error) == FORELOOP_OK && id != 77, "with one action");
    foreloop_space_close(space);

    CHECK(create(&space, NULL, GIVEN) == FORELOOP_OK, "a space");
    const char *other = TRACE("32", "[[2,[3,2]],[4,1],[7,-1]]");
    CHECK(foreloop_space_add(space, other, strlen(other), NULL, &error) == FORELOOP_ERROR_MISMATCH, "%s",
          error.message);
    other = "[[" HEAD TAIL "],[[2,[6,2]],[4,1],[6,-1]]]";
    CHECK(foreloop_space_add(space, other, strlen(other), NULL, &error) == FORELOOP_ERROR_MISMATCH, "%s",
          error.message);
    uint32_t point[4] = {0, 0, 0, 9}, ids[8];
    size_t needed = 77;
    uint64_t random = 1;
    CHECK(foreloop_space_trace(space, point, NULL, 0, &needed, &error) == FORELOOP_ERROR_ARGUMENT && needed == 77, "%s",
          error.message);
    CHECK(foreloop_space_mutate(space, &random, point, 1, point, &error) == FORELOOP_ERROR_ARGUMENT,
          "a foreign point is not mutated");
    CHECK(!foreloop_space_is_legal(space, point), "nor legal");
    foreloop_space_get_trace_point(space, 0, point, &error);
    CHECK(foreloop_space_intern(space, point, 1, ids, &error) == FORELOOP_ERROR_ARGUMENT, "%s", error.message);
    foreloop_space_close(space);
    CHECK(foreloop_space_create(NULL, NULL, "", 0, NULL, NULL) == FORELOOP_ERROR_ARGUMENT, "NULL is refused");

    /* 2^30 in 16 parts, none of which leads to a last factor of 1 soon: no rule, the shown one only */
    const char *huge = "[[[\"GetSBlock\",[],[\"A\",\"main\"],[\"b0\"]],[\"GetLoops\",[\"b0\"],[],[\"l1\"]],"
                       "[\"SamplePerfectTile\",[\"l1\"],[16,1],[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\",\"i\","
                       "\"j\",\"k\",\"l\",\"m\",\"n\",\"o\",\"p\"]]],"
                       "[[2,[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1073741824,1]]]]";
    CHECK(create(&space, NULL, huge) == FORELOOP_OK && count_points(space) == 1, "too many tiles: those shown");
    foreloop_space_close(space);
}

/* Traces of which one thing contradicts another: refused when the space is made, and what tells. */
static void check_contradictions(void) {
#define LOOP "[\"GetSBlock\",[],[\"A\",\"main\"],[\"b0\"]],[\"GetLoops\",[\"b0\"],[],[\"l1\"]],"
#define TILE(attributes, decisions)                                                                                    \
    "[[" LOOP "[\"SamplePerfectTile\",[\"l1\"]," attributes ",[\"v2\",\"v3\"]]],[" decisions "]]"
#define CATEGORY(attributes) "[[[\"SampleCategorical\",[]," attributes ",[\"v0\"]]],[[0,0]]]"
    static const struct {
        const char *text, *told;
        foreloop_status status;
    } cases[] = {
        {TILE("[2,64]", "[2,[2,8]]"), "", FORELOOP_OK},
        {TILE("[2,-1]", "[2,[2,8]]"), "", FORELOOP_OK},
        {TILE("[3,64]", "[2,[2,8]]"), "instruction 2", FORELOOP_ERROR_FORMAT},
        {TILE("[]", "[2,[2,8]]"), "instruction 2", FORELOOP_ERROR_FORMAT},
        {TILE("[2]", "[2,[2,8]]"), "instruction 2", FORELOOP_ERROR_FORMAT},
        {TILE("[2,1.5]", "[2,[2,8]]"), "instruction 2", FORELOOP_ERROR_FORMAT},
        {TILE("[2,4]", "[2,[2,8]]"), "instruction 2", FORELOOP_ERROR_FORMAT},
        {TILE("[2,64]", "[2,[2,8]],[2,[4,4]]"), "instruction 2", FORELOOP_ERROR_FORMAT},
        {CATEGORY("[[1,2],[0.5,0.5]]"), "", FORELOOP_OK},
        {CATEGORY("[[1,2],[0.5]]"), "instruction 0", FORELOOP_ERROR_FORMAT},
        {CATEGORY("[[1,2],[0.5,0.25,0.25]]"), "instruction 0", FORELOOP_ERROR_FORMAT},
        {CATEGORY("[[1,2],[1.5,-0.5]]"), "instruction 0", FORELOOP_ERROR_FORMAT},
        {CATEGORY("[[1,2],[0,0]]"), "instruction 0", FORELOOP_ERROR_FORMAT},
        {CATEGORY("[[1,2],[NaN,1]]"), "instruction 0", FORELOOP_ERROR_FORMAT},
        {CATEGORY("[[1,2],[1e308,1e308]]"), "instruction 0", FORELOOP_ERROR_FORMAT},
        {CATEGORY("[[1,2],[\"a\",1]]"), "instruction 0", FORELOOP_ERROR_FORMAT},
        {CATEGORY("[]"), "instruction 0", FORELOOP_ERROR_FORMAT},
        {"[[" LOOP "[\"Reorder\",[\"l2\"],[],[]]],[]]", "instruction 2 uses l2", FORELOOP_ERROR_FORMAT},
        {"[[" LOOP "[\"Reorder\",[[\"l1\",\"l2\"]],[],[]]],[]]", "uses l2", FORELOOP_ERROR_FORMAT},
        {"[[" LOOP "[\"Reorder\",[\"l2\"],[],[]],[\"EnterPostproc\",[],[],[]],[\"GetLoops\",[\"b0\"],[],[\"l2\"]]],[]]",
         "instruction 2 uses l2", FORELOOP_ERROR_FORMAT},
        {"[[" LOOP "[\"GetLoops\",[\"b0\"],[],[\"l1\"]]],[]]", "instruction 2", FORELOOP_ERROR_FORMAT},
        {"[[" LOOP "[\"Annotate\",[\"b0\",\"\\\"l2\\\"\"],[\"k\"],[]]],[]]", "", FORELOOP_OK},
        {"[[" LOOP "[\"Split\",[\"l1\",\"None\",4],[1,0],[\"l2\",\"l3\"]]],[]]", "", FORELOOP_OK},
        {"[[" LOOP "[\"Split\",[\"l1\",\"None\",\"v4\"],[1,0],[\"l2\",\"l3\"]]],[]]", "uses v4", FORELOOP_ERROR_FORMAT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        foreloop_space *space = NULL;
        error.message[0] = 0;
        foreloop_status status = create(&space, NULL, cases[i].text);
        CHECK(status == cases[i].status && strstr(error.message, cases[i].told), "%s: %s", cases[i].text,
              error.message);
        foreloop_space_close(space);
    }
    foreloop_space *space = NULL;
    CHECK(create(&space, NULL, TILE("[2,4]", "[2,[4,4]]")) == FORELOOP_OK, "a space");
    const char *other = TILE("[2,4]", "[2,[2,8]]"), *twice = TILE("[2,4]", "[2,[4,4]],[2,[4,4]]");
    CHECK(foreloop_space_add(space, other, strlen(other), NULL, &error) == FORELOOP_ERROR_FORMAT, "%s", error.message);
    CHECK(foreloop_space_add(space, twice, strlen(twice), NULL, &error) == FORELOOP_ERROR_FORMAT, "%s", error.message);
    foreloop_space_close(space);
}

/* What would take long if its cost were not bounded. */
static void check_costs(void) {
    enum { TILES = 12, PARTS = 12 };
    static char text[1 << 20];
    foreloop_space *space = NULL;
    uint32_t point[TILES + 1], second[TILES + 1];
    clock_t start = clock();

    /* Twelve tiles of 240 values, of which the places fit those alone whose second factor is 1. */
    size_t length = (size_t)sprintf(text, "[[" LOOP);
    for (int i = 0; i < TILES; i++)
        length += (size_t)sprintf(text + length, "[\"SamplePerfectTile\",[\"l1\"],[2,-1],[\"v%d\",\"w%d\"]],", i, i);
    length += (size_t)sprintf(text + length, "[\"SampleComputeLocation\",[\"b0\"],[],[\"l2\"]]],[");
    for (int i = 0; i < TILES; i++)
        length += (size_t)sprintf(text + length, "[%d,[720720,1]],", i + 2);
    sprintf(text + length, "[%d,3]]]", TILES + 2);
    CHECK(create(&space, NULL, text) == FORELOOP_OK && foreloop_space_first(space, point, &error) == FORELOOP_OK &&
              foreloop_space_is_legal(space, point),
          "the first of few legal points is found");
    CHECK(foreloop_space_next(space, point, &error) == FORELOOP_END, "there is no other");
    memset(second, 0, sizeof second);
    CHECK(foreloop_space_next(space, second, &error) == FORELOOP_ERROR_ARGUMENT && second[0] == 0, "%s", error.message);
    foreloop_space_close(space);
    space = NULL;

    length = (size_t)sprintf(text, "[[" LOOP "[\"SamplePerfectTile\",[\"l1\"],[%d,64],[", PARTS);
    for (int i = 0; i < PARTS; i++)
        length += (size_t)sprintf(text + length, "%s\"v%d\"", i == 0 ? "" : ",", i);
    length += (size_t)sprintf(text + length, "]]],[[2,[720720");
    for (int i = 1; i < PARTS; i++)
        length += (size_t)sprintf(text + length, ",1");
    sprintf(text + length, "]]]]");
    CHECK(create(&space, NULL, text) == FORELOOP_OK && count_points(space) == 1, "too many tiles: those shown");
    foreloop_space_close(space);
    space = NULL;

    /* 170,544 values of 16 factors each, forty times */
    length = (size_t)sprintf(text, "[[" LOOP);
    for (int i = 0; i < 40 * 16; i++)
        length += (size_t)sprintf(text + length, "%s\"v%d\"%s",
                                  i % 16 == 0 ? "[\"SamplePerfectTile\",[\"l1\"],[16,-1],[" : ",", i,
                                  i == 40 * 16 - 1 ? "]]"
                                  : i % 16 == 15   ? "]],"
                                                   : "");
    for (int i = 0; i < 40; i++)
        length +=
            (size_t)sprintf(text + length, "%s[%d,[128,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]]", i == 0 ? "],[" : ",", i + 2);
    sprintf(text + length, "]]");
    foreloop_space_decision tile = {.size = sizeof tile}, last = {.size = sizeof last};
    CHECK(create(&space, NULL, text) == FORELOOP_OK, "a space of forty large tiles");
    foreloop_space_get_decision(space, 0, &tile, &error);
    foreloop_space_get_decision(space, 39, &last, &error);
    CHECK(tile.values == 170544 && last.values == 1, "not all are listed: %zu and %zu values", tile.values,
          last.values);
    foreloop_space_close(space);
    space = NULL;

    length = (size_t)sprintf(text, "[[" LOOP);
    for (int i = 0; i < 10000; i++)
        length += (size_t)sprintf(text + length, "%s[\"Annotate\",[\"b0\",%d],[\"meta_schedule.parallel\"],[]]",
                                  i == 0 ? "" : ",", i);
    sprintf(text + length, "],[]]");
    CHECK(create(&space, NULL, text) == FORELOOP_ERROR_LIMIT && !space, "%s", error.message);
    length = (size_t)sprintf(text, "[[" LOOP);
    for (int i = 0; i < 1025; i++)
        length += (size_t)sprintf(text + length, "%s[\"Annotate\",[\"b0\",%d],[\"meta_schedule.parallel\"],[]]",
                                  i == 0 ? "" : ",", i);
    sprintf(text + length, "],[]]");
    CHECK(create(&space, NULL, text) == FORELOOP_ERROR_LIMIT && !space, "%s", error.message);
    length = (size_t)sprintf(text, "[[" LOOP);
    for (int i = 0; i < 65; i++)
        length +=
            (size_t)sprintf(text + length, "%s[\"SampleComputeLocation\",[\"b0\"],[],[\"p%d\"]]", i == 0 ? "" : ",", i);
    length += (size_t)sprintf(text + length, "],[");
    for (int i = 0; i < 65; i++)
        length += (size_t)sprintf(text + length, "%s[%d,-1]", i == 0 ? "" : ",", i + 2);
    sprintf(text + length, "]]");
    CHECK(create(&space, NULL, text) == FORELOOP_ERROR_LIMIT && !space, "%s", error.message);

    /* Generous: some ms here; without bounds, seconds to ages. */
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    CHECK(seconds < 2, "all that in %.3f s", seconds);
}

/* Each legal point comes once: those that all points are asked for. */
static void check_enumeration(void) {
    const char *flat = TRACE("64", "[[2,[12,1]],[4,0],[7,0]]"), *third = TRACE("64", "[[2,[3,4]],[4,0],[7,0]]");
    foreloop_space *space = NULL;
    uint32_t point[4], value[4];
    size_t counts[4], legal = 0, listed = 0, wrong = 0;
    static unsigned char seen[8][8][8][8];
    create(&space, NULL, GIVEN);
    foreloop_space_add(space, flat, strlen(flat), NULL, &error);
    foreloop_space_add(space, third, strlen(third), NULL, &error);
    for (size_t d = 0; d < 4; d++) {
        foreloop_space_decision decision = {.size = sizeof decision};
        foreloop_space_get_decision(space, d, &decision, &error);
        counts[d] = decision.values;
    }
    for (foreloop_status status = foreloop_space_first(space, point, &error); status == FORELOOP_OK && listed < 1000;
         status = foreloop_space_next(space, point, &error), listed++)
        wrong += !foreloop_space_is_legal(space, point) || seen[point[0]][point[1]][point[2]][point[3]]++ > 0;
    for (value[0] = 0; value[0] < counts[0]; value[0]++)
        for (value[1] = 0; value[1] < counts[1]; value[1]++)
            for (value[2] = 0; value[2] < counts[2]; value[2]++)
                for (value[3] = 0; value[3] < counts[3]; value[3]++)
                    legal += (size_t)foreloop_space_is_legal(space, value);
    CHECK(wrong == 0 && listed == legal && legal > 16, "%zu of %zu legal points are listed, %zu wrong", listed, legal,
          wrong);
    foreloop_space_close(space);
}

/* Every cut and many damaged bytes: an error, or a space whose traces are of it. */
static void check_damage(void) {
    static const char bytes[] = "[]\"0,-9e\\{\x01\xff";
    char text[1024];
    size_t length = strlen(GIVEN), made = 0, refused = 0, needed;
    static char trace[4096];
    for (size_t i = 0; i < length; i++)
        for (size_t k = 0; k < sizeof bytes; k++) {
            foreloop_space *space = NULL;
            memcpy(text, GIVEN, length);
            text[i] = bytes[k];
            foreloop_status status =
                foreloop_space_create(&space, NULL, text, k + 1 == sizeof bytes ? i : length, NULL, &error);
            if (status == FORELOOP_OK) {
                uint64_t random = i;
                uint32_t points[4][16];
                foreloop_space_info info = {.size = sizeof info};
                foreloop_space_get_info(space, &info);
                if (info.decision_count <= 16) {
                    foreloop_space_sample(space, &random, 4, points[0], &error);
                    foreloop_space_mutate(space, &random, points[0], 4, points[0], &error);
                    refused +=
                        foreloop_space_first(space, points[0], &error) != FORELOOP_OK ||
                        foreloop_space_trace(space, points[0], trace, sizeof trace, &needed, &error) != FORELOOP_OK ||
                        foreloop_space_add(space, trace, needed, points[1], &error) != FORELOOP_OK ||
                        memcmp(points[0], points[1], info.decision_count * sizeof points[0][0]) != 0;
                }
                made++;
            }
            foreloop_space_close(space);
        }
    CHECK(refused == 0, "%zu spaces refuse the trace of their first point: %s", refused, error.message);
    CHECK(made > 0 && made < length * sizeof bytes, "damaged traces: %zu of %zu still are traces", made,
          length * sizeof bytes);
}

/* The model's memory and the space's fail at each allocation in turn. */
static void check_memory(const char *path, const float *expected, const foreloop_hardware *hardware) {
    const char *flat = TRACE("64", "[[2,[12,1]],[4,0],[7,0]]");
    size_t leaks = 0, untouched = 0, runs = 0, wrong = 0;
    for (int whose = 0; whose < 2; whose++)
        for (size_t n = 0;; n++) {
            failing_allocator memory = {.fail_at = SIZE_MAX}, own = {.fail_at = whose == 0 ? n : SIZE_MAX};
            foreloop_allocator allocator = failing_allocator_use(&memory), own_allocator = failing_allocator_use(&own);
            foreloop_options options, own_options;
            foreloop_options_init(&options, sizeof options);
            foreloop_options_init(&own_options, sizeof own_options);
            options.allocator = &allocator;
            own_options.allocator = &own_allocator;
            foreloop_model *model = NULL;
            foreloop_actions *actions = NULL;
            foreloop_workload *workload = NULL;
            foreloop_scorer *scorer = NULL;
            foreloop_space *space = NULL;
            float latent[1024] = {0}, scores[2] = {-1, -1};
            uint32_t points[2][4], ids[2][5] = {{77}};
            if (foreloop_model_open(&model, path, &options, &error) != FORELOOP_OK ||
                foreloop_actions_create(&actions, model, 0, &error) != FORELOOP_OK ||
                foreloop_workload_create(&workload, model, latent, &error) != FORELOOP_OK ||
                foreloop_scorer_create(&scorer, model, actions, hardware, &error) != FORELOOP_OK)
                exit(99);
            if (whose == 1)
                memory.fail_at = memory.calls + n;
            foreloop_status status = foreloop_space_create(&space, actions, GIVEN, strlen(GIVEN), &own_options, &error);
            if (status == FORELOOP_OK)
                status = foreloop_space_add(space, flat, strlen(flat), points[1], &error);
            if (status == FORELOOP_OK)
                status = foreloop_space_get_trace_point(space, 0, points[0], &error);
            if (status == FORELOOP_OK)
                status = foreloop_space_intern(space, points[0], 2, ids[0], &error);
            if (status != FORELOOP_OK)
                untouched += ids[0][0] != 77;
            if (status == FORELOOP_OK)
                status = foreloop_space_score(space, scorer, workload, points[0], 2, scores, &error);
            memory.fail_at = own.fail_at = SIZE_MAX;
            if (status != FORELOOP_OK && space &&
                foreloop_space_add(space, flat, strlen(flat), points[1], &error) == FORELOOP_OK &&
                foreloop_space_get_trace_point(space, 0, points[0], &error) == FORELOOP_OK)
                status = foreloop_space_score(space, scorer, workload, points[0], 2, scores, &error);
            wrong += status == FORELOOP_OK ? memcmp(scores, expected, sizeof scores) != 0 : space != NULL;
            foreloop_space_close(space);
            foreloop_scorer_close(scorer);
            foreloop_workload_close(workload);
            foreloop_actions_close(actions);
            foreloop_model_close(model);
            leaks += memory.live != 0 || own.live != 0;
            runs++;
            if (!(whose == 0 ? own.failed : memory.failed))
                break;
        }
    CHECK(runs > 20 && leaks == 0 && untouched == 0, "%zu runs with failing memory leak nothing, outputs stay", runs);
    CHECK(wrong == 0, "and after them the space scores as ever");
}

int main(int argc, char **argv) {
    if (argc < 2)
        return 99;
    char path[1024];
    snprintf(path, sizeof path, "%s/tests/golden/bundle", argv[1]);
    foreloop_model *model = NULL;
    foreloop_actions *actions = NULL;
    foreloop_workload *workload = NULL;
    foreloop_scorer *scorer = NULL;
    foreloop_hardware hardware;
    foreloop_hardware_init(&hardware, sizeof hardware);
    float latent[1024] = {0}, scores[2] = {0, 0};
    if (foreloop_model_open(&model, path, NULL, &error) != FORELOOP_OK ||
        foreloop_actions_create(&actions, model, 0, &error) != FORELOOP_OK ||
        foreloop_workload_create(&workload, model, latent, &error) != FORELOOP_OK ||
        foreloop_scorer_create(&scorer, model, actions, &hardware, &error) != FORELOOP_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 99;
    }
    check_legal();
    check_errors(actions);
    check_contradictions();
    check_costs();
    check_enumeration();
    check_damage();

    const char *flat = TRACE("64", "[[2,[12,1]],[4,0],[7,0]]");
    foreloop_space *space = NULL;
    uint32_t points[2][4];
    create(&space, actions, GIVEN);
    foreloop_space_get_trace_point(space, 0, points[0], &error);
    foreloop_space_add(space, flat, strlen(flat), points[1], &error);
    CHECK(foreloop_space_score(space, scorer, workload, points[0], 2, scores, &error) == FORELOOP_OK, "scored");
    foreloop_actions_report before = {.size = sizeof before}, after = {.size = sizeof after};
    foreloop_actions_get_report(actions, &before);
    for (uint32_t i = 0; i < 64; i++) {
        float again[2];
        foreloop_space_score(space, scorer, workload, points[0], 2, again, &error);
        if (memcmp(again, scores, sizeof scores) != 0)
            CHECK(0, "scores change");
    }
    foreloop_actions_get_report(actions, &after);
    CHECK(memcmp(&before, &after, sizeof before) == 0, "scoring again leaves nothing in the table");
    foreloop_space_close(space);
    check_memory(path, scores, &hardware);

    foreloop_scorer_close(scorer);
    foreloop_workload_close(workload);
    foreloop_actions_close(actions);
    foreloop_model_close(model);
    return tap_done();
}
