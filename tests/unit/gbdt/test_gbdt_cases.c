/* Kinds of fault that others met with trees, each with its value: parsing, comparisons, base scores, dumps, ranges. */
#include "gbdt_test.h"
#include <math.h>
#include <stddef.h>

/* ---- Helpers ----------------------------------------------------------------------------------------------------- */

/* One leaf. */
#define LEAF(value)                                                                                                    \
    "{\"left_children\":[-1],\"right_children\":[-1],\"default_left\":[0],\"split_indices\":[0],"                      \
    "\"split_conditions\":[" value "],\"tree_param\":{\"num_nodes\":\"1\",\"size_leaf_vector\":\"1\"}}"
/* Feature 0 less than the threshold: -1, else 1. */
#define STUMP(threshold, default_left)                                                                                 \
    "{\"left_children\":[1,-1,-1],\"right_children\":[2,-1,-1],\"default_left\":[" default_left "],"                   \
    "\"split_indices\":[0,0,0],\"split_conditions\":[" threshold ",-1,1]}"

typedef struct model_text {
    const char *objective, *parameters, *booster, *more;
    const char *trees, *tree_info;
} model_text;

/* save_model JSON; fields that are NULL take a plain value. */
static const char *save(model_text text) {
    static char buffer[8192];
    snprintf(buffer, sizeof buffer,
             "{\"learner\":{\"gradient_booster\":{\"model\":{\"trees\":[%s],\"tree_info\":[%s]%s},\"name\":\"%s\"},"
             "\"learner_model_param\":{%s},\"objective\":{\"name\":\"%s\"}},\"version\":[3,2,0]}",
             text.trees ? text.trees : "", text.tree_info ? text.tree_info : (text.trees ? "0" : ""),
             text.more ? text.more : "", text.booster ? text.booster : "gbtree",
             text.parameters ? text.parameters : "\"base_score\":\"0E0\",\"num_feature\":\"1\"",
             text.objective ? text.objective : "reg:squarederror");
    return buffer;
}

static foreloop_status open_text(foreloop_gbdt **gbdt, const char *text, const foreloop_gbdt_options *options,
                                 foreloop_error *error) {
    return foreloop_gbdt_open_memory(gbdt, text, strlen(text), options, error);
}

/* Opens a text that must open; ends the test otherwise. */
static foreloop_gbdt *opened(const char *text, const foreloop_gbdt_options *options) {
    foreloop_gbdt *gbdt = NULL;
    foreloop_error error = {0};
    if (open_text(&gbdt, text, options, &error) != FORELOOP_OK) {
        printf("Bail out! %s\n%s\n", error.message, text);
        exit(1);
    }
    return gbdt;
}

static float predict_one(const foreloop_gbdt *gbdt, float x, int margin) {
    float row[8] = {x, x, x, x, x, x, x, x}, outputs[8] = {0};
    foreloop_gbdt_predict(gbdt, row, 1, 8, margin, outputs, NULL);
    return outputs[0];
}

/* Opens, predicts the margin at x, closes. */
static float margin_at(const char *text, const foreloop_gbdt_options *options, float x) {
    foreloop_gbdt *gbdt = opened(text, options);
    float result = predict_one(gbdt, x, 1);
    foreloop_gbdt_close(gbdt);
    return result;
}

static float prediction_at(const char *text, const foreloop_gbdt_options *options, float x) {
    foreloop_gbdt *gbdt = opened(text, options);
    float result = predict_one(gbdt, x, 0);
    foreloop_gbdt_close(gbdt);
    return result;
}

static int near(float value, double expected) {
    return fabs((double)value - expected) <= 1e-6 * fmax(1.0, fabs(expected));
}

/* The text must be refused with this status and a message with this word in it. */
static void check_refused(const char *text, const foreloop_gbdt_options *options, foreloop_status status,
                          const char *word, const char *what) {
    foreloop_gbdt *gbdt = NULL;
    foreloop_error error = {0};
    foreloop_status result = open_text(&gbdt, text, options, &error);
    CHECK(result == status && error.code == status && strstr(error.message, word) && !gbdt, "%s: %s", what,
          error.message);
    foreloop_gbdt_close(gbdt);
}

static foreloop_gbdt_options dump_options(float base_score) {
    foreloop_gbdt_options options;
    foreloop_gbdt_options_init(&options, sizeof options);
    options.has_base_score = 1;
    options.base_score = base_score;
    return options;
}

/* ---- Base scores and objectives ---------------------------------------------------------------------------------- */

#define PARAMETERS(base_score) "\"base_score\":" base_score ",\"num_feature\":\"1\""

static void test_base_scores(void) {
    static const char *const spellings[] = {"\"[2.5E-1]\"", "\"2.5E-1\"",     "0.25",
                                            "[0.25]",       "\" [ 0.25 ] \"", "\"0.250000\""};
    for (size_t i = 0; i < sizeof spellings / sizeof spellings[0]; i++) {
        char parameters[128];
        snprintf(parameters, sizeof parameters, "\"base_score\":%s,\"num_feature\":\"1\"", spellings[i]);
        const char *text = save((model_text){"binary:logistic", parameters, .trees = LEAF("0.5")});
        CHECK(near(margin_at(text, NULL, 0), -0.5986123), "base_score %s: margin", spellings[i]);
        CHECK(near(prediction_at(text, NULL, 0), 0.3546612), "base_score %s: probability", spellings[i]);
    }
    float row = 0, outputs[2] = {0};
    foreloop_gbdt *gbdt = opened(
        save((model_text){.parameters = "\"base_score\":\"[1E0,-2E0]\",\"num_target\":\"2\",\"num_feature\":\"1\"",
                          .trees = LEAF("0.5") "," LEAF("0.25"),
                          .tree_info = "0,1"}),
        NULL);
    foreloop_gbdt_predict(gbdt, &row, 1, 1, 1, outputs, NULL);
    CHECK(outputs[0] == 1.5f && outputs[1] == -1.75f, "base_score [x,y]: one for each output");
    foreloop_gbdt_close(gbdt);

    const char *poisson = save((model_text){"count:poisson", PARAMETERS("\"2E0\""), .trees = LEAF("0.5")});
    CHECK(near(prediction_at(poisson, NULL, 0), 3.297443), "count:poisson: the base score goes through the logarithm");
    const char *ranking = save((model_text){"rank:ndcg", PARAMETERS("\"5E-1\""), .trees = LEAF("0.25")});
    CHECK(near(prediction_at(ranking, NULL, 0), 0.75), "rank:ndcg: the base score is added as it is");

    gbdt = opened(save((model_text){"reg:expectileerror",
                                    "\"base_score\":\"[1E0,2E0]\",\"num_target\":\"2\",\"num_feature\":\"1\"",
                                    .trees = LEAF("0.5") "," LEAF("0.25"), .tree_info = "0,1"}),
                  NULL);
    foreloop_gbdt_predict(gbdt, &row, 1, 1, 1, outputs, NULL);
    CHECK(outputs[0] == 1.5f && near(outputs[1], 0.7913232725), "reg:expectileerror: the base score's gaps");
    foreloop_gbdt_predict(gbdt, &row, 1, 1, 0, outputs, NULL);
    CHECK(outputs[0] == 1.5f && near(outputs[1], 2.6651230), "reg:expectileerror: each output above the one before");
    foreloop_gbdt_close(gbdt);

    foreloop_gbdt_options options = dump_options(7.0f);
    poisson = save((model_text){"count:poisson", PARAMETERS("\"2E0\""), .trees = LEAF("0.5")});
    CHECK(margin_at(poisson, &options, 0) == 7.5f, "a base score of the options is a margin and wins");

    check_refused(save((model_text){.objective = "count:poisson", .parameters = PARAMETERS("\"-1E0\"")}), NULL,
                  FORELOOP_ERROR_VALUE, "base_score", "negative base score of count:poisson");
    check_refused(save((model_text){.objective = "binary:logistic", .parameters = PARAMETERS("\"2E0\"")}), NULL,
                  FORELOOP_ERROR_VALUE, "base_score", "base score of binary:logistic above 1");
    check_refused(save((model_text){.parameters = PARAMETERS("\"[1E0,2E0,3E0]\"")}), NULL, FORELOOP_ERROR_FORMAT,
                  "3 elements", "more base scores than outputs");
    check_refused(save((model_text){.parameters = PARAMETERS("\"half\"")}), NULL, FORELOOP_ERROR_FORMAT, "byte",
                  "base score without a number");
    check_refused(save((model_text){.parameters = PARAMETERS("\"[]\"")}), NULL, FORELOOP_ERROR_FORMAT, "base_score",
                  "empty base score");
    check_refused(save((model_text){.parameters = PARAMETERS("NaN")}), NULL, FORELOOP_ERROR_VALUE, "base_score",
                  "base score NaN");
}

/* ---- Comparisons ------------------------------------------------------------------------------------------------- */

static void test_thresholds(void) {
    CHECK(margin_at(save((model_text){.trees = STUMP("0.1", "0,0,0")}), NULL, (float)0.1) == 1,
          "0.1 is not less than 0.1, both being float32");
    CHECK(margin_at(save((model_text){.trees = STUMP("20180132", "0,0,0")}), NULL, 20180131.0f) == 1,
          "20180131 is 20180132 as float32");
    const char *tiny = save((model_text){.trees = STUMP("7.038531e-26", "0,0,0")});
    CHECK(margin_at(tiny, NULL, float_of(0x15AE43FDu)) == 1 && margin_at(tiny, NULL, float_of(0x15AE43FCu)) == -1,
          "7.038531e-26 is the float32 15AE43FD");
    const char *negative = save((model_text){.trees = STUMP("-1.7919981", "0,0,0")});
    CHECK(margin_at(negative, NULL, float_of(0xBFE56032u)) == 1 &&
              margin_at(negative, NULL, float_of(0xBFE56033u)) == -1,
          "-1.7919981 is the float32 BFE56032");
    const char *large = save((model_text){.trees = STUMP("3e10", "0,0,0")});
    CHECK(margin_at(large, NULL, 2e10f) == -1 && margin_at(large, NULL, 3e10f) == 1, "thresholds beyond int32");
}

static void test_missing(void) {
    const char *text = save((model_text){.trees = STUMP("1", "1,0,0")});
    CHECK(margin_at(text, NULL, INFINITY) == 1 && margin_at(text, NULL, -INFINITY) == -1 &&
              margin_at(text, NULL, NAN) == -1,
          "infinities are numbers, NaN is missing and goes left");
    CHECK(margin_at(save((model_text){.trees = STUMP("1", "0,0,0")}), NULL, NAN) == 1, "NaN goes right");
    text = save((model_text){.trees = STUMP("1", "true,false,false")});
    CHECK(margin_at(text, NULL, NAN) == -1 && margin_at(text, NULL, 2) == 1, "default_left as true and false");
    text = save((model_text){.trees = STUMP("Infinity", "0,0,0")});
    CHECK(margin_at(text, NULL, 3e38f) == -1 && margin_at(text, NULL, INFINITY) == 1, "the threshold Infinity");
    text = save((model_text){.trees = STUMP("-Infinity", "0,0,0")});
    CHECK(margin_at(text, NULL, -INFINITY) == 1, "the threshold -Infinity");
    text = save((model_text){.trees = STUMP("NaN", "1,0,0")});
    CHECK(margin_at(text, NULL, -INFINITY) == 1 && margin_at(text, NULL, NAN) == -1,
          "nothing is less than the threshold NaN");
    check_refused(save((model_text){.trees = LEAF("NaN")}), NULL, FORELOOP_ERROR_VALUE, "leaf", "leaf NaN");
    check_refused(save((model_text){.trees = LEAF("1e39")}), NULL, FORELOOP_ERROR_VALUE, "leaf", "leaf infinite");
    check_refused(save((model_text){.trees = STUMP("1", "2,0,0")}), NULL, FORELOOP_ERROR_VALUE, "byte",
                  "default_left 2");
}

#define CATEGORICAL(categories, nodes, segments, sizes)                                                                \
    "{\"left_children\":[1,-1,-1],\"right_children\":[2,-1,-1],\"default_left\":[1,0,0],\"split_indices\":[0,0,0],"    \
    "\"split_conditions\":[NaN,-1,1],\"split_type\":[1,0,0],\"categories\":[" categories "],"                          \
    "\"categories_nodes\":[" nodes "],\"categories_segments\":[" segments "],\"categories_sizes\":[" sizes "]}"

static void test_categories(void) {
    const char *text = save((model_text){.trees = CATEGORICAL("16777215,7,33,0,7", "0", "0", "5")});
    static const float inside[] = {0, -0.0f, 0.5f, 7, 7.99f, 33, 16777215};
    static const float outside[] = {1, 6, 8, 32, -1, -0.5f, 16777216, 1e30f, INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < sizeof inside / sizeof inside[0]; i++)
        CHECK(margin_at(text, NULL, inside[i]) == 1, "category %.9g is in the set", (double)inside[i]);
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++)
        CHECK(margin_at(text, NULL, outside[i]) == -1, "category %.9g is not", (double)outside[i]);
    check_refused(save((model_text){.trees = CATEGORICAL("1", "", "", "")}), NULL, FORELOOP_ERROR_FORMAT,
                  "no categories", "categorical node without a set");
    check_refused(save((model_text){.trees = CATEGORICAL("1", "0", "0", "2")}), NULL, FORELOOP_ERROR_FORMAT, "outside",
                  "set beyond the list");
    check_refused(save((model_text){.trees = CATEGORICAL("1,2", "0,1", "0,0", "2,2")}), NULL, FORELOOP_ERROR_FORMAT,
                  "outside", "sets that overlap");
    check_refused(save((model_text){.trees = CATEGORICAL("1", "3", "0", "1")}), NULL, FORELOOP_ERROR_FORMAT, "outside",
                  "set of a node that is not there");
    check_refused(save((model_text){.trees = CATEGORICAL("1", "0", "0,1", "1")}), NULL, FORELOOP_ERROR_FORMAT,
                  "categories_segments", "lists of unequal length");
    check_refused(save((model_text){.trees = CATEGORICAL("16777216", "0", "0", "1")}), NULL, FORELOOP_ERROR_VALUE,
                  "16777216", "category beyond float32");
}

/* ---- Dumps ------------------------------------------------------------------------------------------------------- */

#define SPLIT_DUMP(fields, leaf1, leaf2)                                                                               \
    "[{\"nodeid\":0,\"depth\":0,\"split\":\"f0\"," fields ",\"gain\":1,\"cover\":2,\"children\":["                     \
    "{\"nodeid\":1,\"leaf\":" leaf1 "},{\"nodeid\":2,\"leaf\":" leaf2 ",\"cover\":1}]}]"

static void test_dumps(void) {
    static const float weights[] = {1.0f, 0.25f};
    const char *two = "[{\"nodeid\":0,\"leaf\":0.4},{\"nodeid\":0,\"leaf\":0.8}]";
    foreloop_gbdt_options options = dump_options(0.0f);
    CHECK(near(margin_at(two, &options, 0), 1.2), "dump, base 0, no weights");
    options = dump_options(0.5f);
    options.tree_weights = weights;
    options.tree_weight_count = 2;
    CHECK(near(margin_at(two, &options, 0), 1.1), "dump, base 0.5, weights");
    options.tree_weight_count = 1;
    check_refused(two, &options, FORELOOP_ERROR_MISMATCH, "1 tree weights for 2 trees", "too few weights");

    foreloop_gbdt *gbdt = opened(two, NULL);
    foreloop_gbdt_info info = {.size = sizeof info};
    foreloop_gbdt_get_info(gbdt, &info);
    CHECK(near(predict_one(gbdt, 0, 1), 1.7) && strstr(info.notes, "base score") && strstr(info.notes, "objective") &&
              strstr(info.notes, "weights") && strcmp(info.objective, "unknown") == 0,
          "dump without options: 0.5 and notes: %s", info.notes);
    foreloop_gbdt_close(gbdt);

    options = dump_options(0.0f);
    CHECK(margin_at("[{\"nodeid\":0,\"leaf\":-7.2e-06}]", &options, 0) == -7.2e-06f, "root-only tree");
    CHECK(margin_at("[]", NULL, 0) == 0.5f, "no trees: the base score");
    options.objective = "binary:logistic";
    CHECK(near(prediction_at("[{\"nodeid\":0,\"leaf\":-0.5986123}]", &options, 0), 0.3546612), "objective of a dump");
    options.objective = "reg:nothing";
    check_refused("[]", &options, FORELOOP_ERROR_UNSUPPORTED, "reg:nothing", "unknown objective of a dump");

    options = dump_options(0.0f);
    const char *set = SPLIT_DUMP("\"split_condition\":[1],\"yes\":2,\"no\":1,\"missing\":1", "-0.5", "0.5");
    CHECK(margin_at(set, &options, 1) == 0.5f && margin_at(set, &options, NAN) == -0.5f &&
              margin_at(set, &options, 2) == -0.5f,
          "split_condition as an array: membership goes to yes");
    set = SPLIT_DUMP("\"split_condition\":[3,1],\"yes\":1,\"no\":2,\"missing\":1", "-0.5", "0.5");
    CHECK(margin_at(set, &options, 3) == -0.5f && margin_at(set, &options, NAN) == -0.5f &&
              margin_at(set, &options, 2) == 0.5f,
          "the same with yes first");
    const char *indicator = SPLIT_DUMP("\"yes\":2,\"no\":1", "-0.5", "0.5");
    CHECK(margin_at(indicator, &options, 1) == 0.5f && margin_at(indicator, &options, NAN) == -0.5f,
          "no split_condition: an indicator");
    const char *swapped = SPLIT_DUMP("\"split_condition\":3,\"yes\":2,\"no\":1,\"missing\":2", "-0.5", "0.5");
    CHECK(margin_at(swapped, &options, 2) == 0.5f && margin_at(swapped, &options, 3) == -0.5f &&
              margin_at(swapped, &options, NAN) == 0.5f,
          "yes is the less-than branch, whatever the ids");
    const char *large = SPLIT_DUMP("\"split_condition\":3e10,\"yes\":1,\"no\":2,\"missing\":1", "-0.5", "0.5");
    CHECK(margin_at(large, &options, 2e10f) == -0.5f, "threshold of a dump beyond int32");
    gbdt = opened(SPLIT_DUMP("\"split_condition\":-2147483648,\"yes\":1,\"no\":2,\"missing\":1", "0", "1"), &options);
    foreloop_gbdt_get_info(gbdt, &info);
    CHECK(strstr(info.notes, "32-bit"), "threshold at the end of int32: %s", info.notes);
    foreloop_gbdt_close(gbdt);
}

static void test_malformed_dumps(void) {
    static const char *const malformed[] = {
        SPLIT_DUMP("\"split_condition\":3,\"yes\":1,\"no\":3,\"missing\":1", "0", "1"),
        SPLIT_DUMP("\"split_condition\":3,\"yes\":1,\"no\":1,\"missing\":1", "0", "1"),
        SPLIT_DUMP("\"split_condition\":3,\"yes\":1,\"no\":2,\"missing\":5", "0", "1"),
        SPLIT_DUMP("\"split_condition\":3,\"yes\":1,\"no\":2", "0", "1"),
        SPLIT_DUMP("\"split_condition\":3,\"yes\":1,\"missing\":1", "0", "1"),
        SPLIT_DUMP("\"split_condition\":\"3\",\"yes\":1,\"no\":2,\"missing\":1", "0", "1"),
        SPLIT_DUMP("\"split_condition\":[],\"yes\":1,\"no\":2,\"missing\":1", "0", "1"),
        SPLIT_DUMP("\"leaf\":1,\"yes\":1,\"no\":2,\"missing\":1", "0", "1"),
        "[{\"leaf\":1}]",
        "[{\"nodeid\":0}]",
        "[[]]",
        "[{\"nodeid\":0,\"split\":\"f0\",\"split_condition\":1,\"yes\":1,\"no\":2,\"missing\":1,\"children\":[]}]",
    };
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++) {
        foreloop_gbdt *gbdt = NULL;
        foreloop_error error = {0};
        foreloop_status status = open_text(&gbdt, malformed[i], NULL, &error);
        CHECK(status == FORELOOP_ERROR_FORMAT && error.position_kind == FORELOOP_POSITION_BYTE &&
                  error.position <= strlen(malformed[i]),
              "malformed dump %zu: %s", i, error.message);
    }
}

#define NAMED(first, second)                                                                                           \
    "[{\"nodeid\":0,\"split\":\"" first "\",\"split_condition\":1,\"yes\":1,\"no\":2,\"missing\":1,\"children\":["     \
    "{\"nodeid\":1,\"leaf\":1},{\"nodeid\":2,\"split\":\"" second "\",\"split_condition\":1,\"yes\":3,\"no\":4,"       \
    "\"missing\":3,\"children\":[{\"nodeid\":3,\"leaf\":2},{\"nodeid\":4,\"leaf\":3}]}]}]"

static void test_dump_names(void) {
    static const char *const names[] = {"x", "b", "a"};
    static const float row[4] = {0, 2, 0, 2};
    float output = 0;
    unsigned char used[4] = {9, 9, 9, 9};
    foreloop_gbdt_info info = {.size = sizeof info};
    foreloop_gbdt_options options = dump_options(0.0f);

    foreloop_gbdt *gbdt = opened(NAMED("f3", "f1"), &options);
    foreloop_gbdt_get_info(gbdt, &info);
    foreloop_gbdt_used_features(gbdt, used);
    foreloop_gbdt_predict(gbdt, row, 1, 4, 1, &output, NULL);
    CHECK(info.feature_count == 4 && output == 3 && !foreloop_gbdt_feature_name(gbdt, 3),
          "names f3 and f1 are columns");
    CHECK(!used[0] && used[1] && !used[2] && used[3], "features that the trees read");
    foreloop_gbdt_close(gbdt);

    gbdt = opened(NAMED("f01", "f1"), &options);
    foreloop_gbdt_get_info(gbdt, &info);
    CHECK(info.feature_count == 2 && strcmp(foreloop_gbdt_feature_name(gbdt, 0), "f01") == 0,
          "f01 is a name, and another column than f1");
    foreloop_gbdt_close(gbdt);

    gbdt = opened(NAMED("a", "b"), &options);
    foreloop_gbdt_get_info(gbdt, &info);
    foreloop_gbdt_predict(gbdt, row, 1, 2, 1, &output, NULL);
    CHECK(info.feature_count == 2 && output == 1 && strcmp(foreloop_gbdt_feature_name(gbdt, 0), "a") == 0 &&
              strcmp(foreloop_gbdt_feature_name(gbdt, 1), "b") == 0 && !foreloop_gbdt_feature_name(gbdt, 2) &&
              strstr(info.notes, "columns"),
          "other names are columns as they occur");
    foreloop_gbdt_close(gbdt);

    options.feature_names = names;
    options.feature_name_count = 3;
    gbdt = opened(NAMED("a", "b"), &options);
    foreloop_gbdt_get_info(gbdt, &info);
    foreloop_gbdt_predict(gbdt, row, 1, 3, 1, &output, NULL);
    CHECK(info.feature_count == 3 && output == 1 && strcmp(foreloop_gbdt_feature_name(gbdt, 2), "a") == 0,
          "columns by the options' names");
    foreloop_gbdt_close(gbdt);
    check_refused(NAMED("a", "c"), &options, FORELOOP_ERROR_MISMATCH, "\"c\"", "name that the options lack");
    options.feature_names = (const char *const[]){"a", "a"};
    options.feature_name_count = 2;
    check_refused(NAMED("a", "a"), &options, FORELOOP_ERROR_ARGUMENT, "feature_names[1]", "name given twice");
}

/* `fields` stand in "learner"; the model has two features. */
#define WITH_FEATURES(fields)                                                                                          \
    "{\"learner\":{" fields "\"learner_model_param\":{\"base_score\":\"0E0\",\"num_feature\":\"2\"},\"objective\":{"   \
    "\"name\":\"rank:map\"},\"gradient_booster\":{\"name\":\"gbtree\",\"model\":{\"tree_info\":[0],\"trees\":[" LEAF(  \
        "1") "]}}}}"

static void test_features(void) {
    foreloop_gbdt *gbdt =
        opened(WITH_FEATURES("\"feature_names\":[\"a\",\"b\"],\"feature_types\":[\"float\",\"c\"],"), NULL);
    CHECK(strcmp(foreloop_gbdt_feature_name(gbdt, 1), "b") == 0 &&
              strcmp(foreloop_gbdt_feature_type(gbdt, 0), "float") == 0 &&
              strcmp(foreloop_gbdt_feature_type(gbdt, 1), "c") == 0 && !foreloop_gbdt_feature_type(gbdt, 2),
          "names and types of features");
    foreloop_gbdt_close(gbdt);
    gbdt = opened(WITH_FEATURES("\"feature_names\":[],\"feature_types\":[],"), NULL);
    CHECK(!foreloop_gbdt_feature_name(gbdt, 0) && !foreloop_gbdt_feature_type(gbdt, 0) &&
              !foreloop_gbdt_feature_type(NULL, 0),
          "a model without them");
    foreloop_gbdt_close(gbdt);
    check_refused(WITH_FEATURES("\"feature_names\":[\"a\"],"), NULL, FORELOOP_ERROR_FORMAT, "feature_names",
                  "too few names");
    check_refused(WITH_FEATURES("\"feature_types\":[\"c\",\"c\",\"c\"],"), NULL, FORELOOP_ERROR_FORMAT, "feature_types",
                  "too many types");
}

/* ---- Ensembles --------------------------------------------------------------------------------------------------- */

static void test_ranges(void) {
    static const char trees[] = LEAF("1") "," LEAF("2") "," LEAF("3") "," LEAF("4") "," LEAF("5") "," LEAF("6");
    foreloop_gbdt_options options;
    foreloop_gbdt_info info = {.size = sizeof info};
    for (int i = 0; i < 2; i++) {
        const char *text = save((model_text){.trees = trees,
                                             .tree_info = "0,0,0,0,0,0",
                                             .more = i ? ",\"iteration_indptr\":[0,2,4,6]"
                                                       : ",\"gbtree_model_param\":{\"num_parallel_tree\":\"2\"}"});
        foreloop_gbdt_options_init(&options, sizeof options);
        foreloop_gbdt *gbdt = opened(text, NULL);
        foreloop_gbdt_get_info(gbdt, &info);
        CHECK(predict_one(gbdt, 0, 1) == 21 && info.iteration_count == 3 && info.tree_count == 6, "all iterations");
        foreloop_gbdt_close(gbdt);
        options.iteration_end = 1;
        CHECK(margin_at(text, &options, 0) == 3, "iterations [0, 1)");
        options.iteration_begin = 1;
        options.iteration_end = 0;
        CHECK(margin_at(text, &options, 0) == 18, "iterations from 1 on");
        options.iteration_end = 1;
        CHECK(margin_at(text, &options, 0) == 0, "no iterations");
        options.iteration_end = 4;
        check_refused(text, &options, FORELOOP_ERROR_MISMATCH, "there are 3", "iterations past the end");
    }
    const char *dump = "[{\"nodeid\":0,\"leaf\":1},{\"nodeid\":0,\"leaf\":2},{\"nodeid\":0,\"leaf\":3},"
                       "{\"nodeid\":0,\"leaf\":4}]";
    options = dump_options(0.0f);
    options.num_class = 2;
    CHECK(margin_at(dump, &options, 0) == 4, "outputs of a dump take turns");
    options.num_parallel_tree = 2;
    CHECK(margin_at(dump, &options, 0) == 3, "in turns of num_parallel_tree");
    options.num_class = 3;
    check_refused(dump, &options, FORELOOP_ERROR_MISMATCH, "4 trees", "trees that are not whole iterations");

    foreloop_gbdt *gbdt =
        opened("{\"learner\":{\"attributes\":{\"best_iteration\":\"0\",\"scikit\":\"{}\"},"
               "\"gradient_booster\":{\"model\":{\"trees\":[" LEAF("1") "," LEAF(
                   "2") "],"
                        "\"tree_info\":[0,0]},\"name\":\"gbtree\"},\"learner_model_param\":{"
                        "\"base_score\":\"0E0\",\"num_feature\":1},\"objective\":{\"name\":\"rank:map\"}}}",
               NULL);
    foreloop_gbdt_get_info(gbdt, &info);
    CHECK(info.best_iteration == 0 && predict_one(gbdt, 0, 1) == 3, "best_iteration is told, and all trees are used");
    foreloop_gbdt_close(gbdt);
}

static void test_classes(void) {
    const char *text =
        save((model_text){"multi:softmax", "\"base_score\":\"5E-1\",\"num_class\":\"3\",\"num_feature\":\"1\"",
                          .trees = LEAF("1") "," LEAF("2") "," LEAF("2"), .tree_info = "0,1,2"});
    foreloop_gbdt *gbdt = opened(text, NULL);
    foreloop_gbdt_info info = {.size = sizeof info};
    float rows[2] = {0, 0}, outputs[7] = {9, 9, 9, 9, 9, 9, 9};
    foreloop_gbdt_get_info(gbdt, &info);
    foreloop_gbdt_predict(gbdt, rows, 2, 1, 0, outputs, NULL);
    CHECK(info.output_count == 3 && info.prediction_count == 1 && outputs[0] == 1 && outputs[1] == 1 && outputs[2] == 9,
          "multi:softmax predicts the class, the first among equals");
    foreloop_gbdt_predict(gbdt, rows, 2, 1, 1, outputs, NULL);
    CHECK(outputs[3] == 1.5f && outputs[5] == 2.5f && outputs[6] == 9, "and has a margin for each class");
    foreloop_gbdt_close(gbdt);
    check_refused(save((model_text){.trees = LEAF("1"), .tree_info = "1"}), NULL, FORELOOP_ERROR_FORMAT, "output 1",
                  "tree of an output that is not there");
    check_refused(save((model_text){.trees = LEAF("1"), .tree_info = ""}), NULL, FORELOOP_ERROR_FORMAT, "tree_info",
                  "short tree_info");
    check_refused(save((model_text){.trees = LEAF("1"), .more = ",\"iteration_indptr\":[0,2]"}), NULL,
                  FORELOOP_ERROR_FORMAT, "iteration_indptr", "iteration_indptr past the trees");
    check_refused(save((model_text){
                      .trees = LEAF("1") "," LEAF("2"), .tree_info = "0,0", .more = ",\"iteration_indptr\":[0,2,1,2]"}),
                  NULL, FORELOOP_ERROR_FORMAT, "iteration_indptr", "iteration_indptr that falls");
    check_refused(save((model_text){.trees = LEAF("1"), .more = ",\"gbtree_model_param\":{\"num_trees\":\"2\"}"}), NULL,
                  FORELOOP_ERROR_FORMAT, "num_trees", "num_trees that differs");
    check_refused(save((model_text){.parameters = "\"base_score\":\"0E0\",\"num_class\":\"1073741824\""}), NULL,
                  FORELOOP_ERROR_FORMAT, "1073741824", "more outputs than there is memory for");
}

static void test_unsupported(void) {
    check_refused(save((model_text){.booster = "gblinear"}), NULL, FORELOOP_ERROR_UNSUPPORTED, "gblinear", "booster");
    check_refused(save((model_text){.booster = "gbforest"}), NULL, FORELOOP_ERROR_UNSUPPORTED, "gbforest", "booster");
    check_refused(save((model_text){.objective = "reg:unheard"}), NULL, FORELOOP_ERROR_UNSUPPORTED, "reg:unheard",
                  "objective");
    check_refused("binf....", NULL, FORELOOP_ERROR_UNSUPPORTED, "old binary", "the binary format of before 3.1");
    check_refused("booster[0]:\n0:leaf=1", NULL, FORELOOP_ERROR_FORMAT, "byte", "text dump");
    check_refused("", NULL, FORELOOP_ERROR_FORMAT, "byte", "empty file");
    check_refused("{}", NULL, FORELOOP_ERROR_FORMAT, "learner", "other JSON");
    check_refused("{\"learner\":{}}", NULL, FORELOOP_ERROR_FORMAT, "learner_model_param", "empty learner");
}

static void test_unknown_keys(void) {
    const char *text = "{\"more\":{\"learner\":[{\"trees\":[1,{\"a\":null}]}]},\"learner\":{\"x\":{\"y\":[{}]},"
                       "\"objective\":{\"deep\":{\"name\":\"no\"},\"name\":\"reg:squarederror\"},"
                       "\"learner_model_param\":{\"extra\":{\"base_score\":7},\"base_score\":\"1E0\","
                       "\"num_feature\":\"1\"},\"gradient_booster\":{\"name\":\"gbtree\",\"z\":[[]],\"model\":{"
                       "\"tree_info\":[0],\"trees\":[{\"inner\":{\"left_children\":[5]},\"left_children\":[-1],"
                       "\"right_children\":[-1],\"default_left\":[0],\"split_indices\":[0],"
                       "\"split_conditions\":[2.5]}]}}}}";
    CHECK(margin_at(text, NULL, 0) == 3.5f, "unknown keys at any depth are skipped, and any order will do");
}

#define TREE(left, right, index)                                                                                       \
    "{\"left_children\":[" left "],\"right_children\":[" right "],\"default_left\":[0,0,0],"                           \
    "\"split_indices\":[" index "],\"split_conditions\":[0,-1,1]}"

static void test_structure(void) {
    check_refused(save((model_text){.trees = TREE("1,-1,-1", "3,-1,-1", "0,0,0")}), NULL, FORELOOP_ERROR_FORMAT,
                  "child 3", "child past the end");
    check_refused(save((model_text){.trees = TREE("1,-1,-1", "-2,-1,-1", "0,0,0")}), NULL, FORELOOP_ERROR_FORMAT,
                  "child -2", "negative child");
    check_refused(save((model_text){.trees = TREE("1,0,-1", "2,2,-1", "0,0,0")}), NULL, FORELOOP_ERROR_FORMAT, "cycle",
                  "cycle through the root");
    check_refused(save((model_text){.trees = TREE("1,-1,-1", "1,-1,-1", "0,0,0")}), NULL, FORELOOP_ERROR_FORMAT,
                  "two parents", "node with two parents");
    check_refused(save((model_text){.trees = TREE("1,-1,-1", "2,-1,-1", "1,0,0")}), NULL, FORELOOP_ERROR_FORMAT,
                  "feature 1", "feature past the end");
    check_refused(save((model_text){.trees = TREE("1,-1,-1", "2,-1,-1", "-1,0,0")}), NULL, FORELOOP_ERROR_FORMAT,
                  "feature", "negative feature");
    check_refused(save((model_text){.trees = TREE("1,-1,-1", "2,-1", "0,0,0")}), NULL, FORELOOP_ERROR_FORMAT,
                  "right_children", "arrays of unequal length");
    check_refused(save((model_text){.trees = "{}"}), NULL, FORELOOP_ERROR_FORMAT, "no nodes", "tree without nodes");
    /* Pruning leaves deleted nodes behind; children need not be neighbours. */
    const char *pruned = save((model_text){
        .trees = "{\"left_children\":[3,-1,-1,-1],\"right_children\":[2,-1,-1,-1],\"default_left\":[0,0,0,0],"
                 "\"split_indices\":[0,2147483647,0,0],\"split_conditions\":[0,NaN,5,6]}"});
    CHECK(margin_at(pruned, NULL, -1) == 6 && margin_at(pruned, NULL, 1) == 5, "deleted nodes are left out");
}

#define IDENTIFIED(id, value)                                                                                          \
    "{\"id\":" id ",\"left_children\":[-1],\"right_children\":[-1],\"default_left\":[0],\"split_indices\":[0],"        \
    "\"split_conditions\":[" value "]}"

static void test_ids(void) {
    CHECK(margin_at(save((model_text){.trees = IDENTIFIED("0", "1") "," IDENTIFIED("1", "2"), .tree_info = "0,0"}),
                    NULL, 0) == 3,
          "trees in the order of their ids");
    check_refused(save((model_text){.trees = IDENTIFIED("1", "1") "," IDENTIFIED("0", "2"), .tree_info = "0,0"}), NULL,
                  FORELOOP_ERROR_FORMAT, "tree 0 has the id 1", "trees out of order");
    check_refused(save((model_text){.trees = IDENTIFIED("0", "1") "," IDENTIFIED("0", "2"), .tree_info = "0,0"}), NULL,
                  FORELOOP_ERROR_FORMAT, "tree 1 has the id 0", "an id twice");
}

/* What a file says twice, and keys that stand twice. */
static void test_contradictions(void) {
#define COUNTED(parents, parameters)                                                                                   \
    "{\"left_children\":[1,-1,-1],\"right_children\":[2,-1,-1],\"default_left\":[0,0,0],"                              \
    "\"split_indices\":[0,0,0],\"split_conditions\":[0,-1,1],\"parents\":[" parents "],\"tree_param\":{" parameters    \
    "}}"
    foreloop_gbdt_close(
        opened(save((model_text){.trees = COUNTED("2147483647,0,0", "\"num_nodes\":\"3\",\"num_deleted\":\"0\","
                                                                    "\"num_feature\":\"1\"")}),
               NULL));
    check_refused(save((model_text){.trees = COUNTED("2147483647,0,0", "\"num_nodes\":\"4\"")}), NULL,
                  FORELOOP_ERROR_FORMAT, "num_nodes", "num_nodes that differs");
    check_refused(save((model_text){.trees = COUNTED("2147483647,0,0", "\"num_deleted\":\"1\"")}), NULL,
                  FORELOOP_ERROR_FORMAT, "num_deleted", "num_deleted that differs");
    check_refused(save((model_text){.trees = COUNTED("2147483647,0,0", "\"num_feature\":\"2\"")}), NULL,
                  FORELOOP_ERROR_FORMAT, "num_feature", "num_feature that differs");
    check_refused(save((model_text){.trees = COUNTED("2147483647,0,1", "")}), NULL, FORELOOP_ERROR_FORMAT, "parent",
                  "a parent that is another node");
    check_refused(save((model_text){.trees = COUNTED("2147483647,0", "")}), NULL, FORELOOP_ERROR_FORMAT, "parents",
                  "too few parents");
    check_refused(save((model_text){.trees = LEAF("1"), .parameters = "\"base_score\":\"0\",\"base_score\":\"1\""}),
                  NULL, FORELOOP_ERROR_FORMAT, "twice", "two base scores");
    check_refused(save((model_text){.trees = COUNTED("2147483647,0,0", "\"num_nodes\":\"3\",\"num_nodes\":\"3\"")}),
                  NULL, FORELOOP_ERROR_FORMAT, "twice", "num_nodes twice");
    check_refused("[{\"nodeid\":0,\"leaf\":1,\"leaf\":2}]", NULL, FORELOOP_ERROR_FORMAT, "twice",
                  "a dump's leaf twice");
}

/* Infinite thresholds and statistics that are not finite, as files may hold them. */
static void test_saving_not_finite(void) {
    static char buffer[4096];
    static const char *const thresholds[] = {"Infinity", "-Infinity", "NaN"};
    for (int i = 0; i < 3; i++) {
        char tree[512];
        size_t needed = 0;
        snprintf(tree, sizeof tree,
                 "{\"left_children\":[1,-1,-1],\"right_children\":[2,-1,-1],\"default_left\":[0,0,0],\"split_indices\":"
                 "[0,0,0],"
                 "\"split_conditions\":[%s,-1,1],\"loss_changes\":[%s,0,0],\"sum_hessian\":[%s,1,1],"
                 "\"base_weights\":[0,0,0]}",
                 thresholds[i], thresholds[2 - i], thresholds[(i + 1) % 3]);
        foreloop_gbdt *gbdt = opened(save((model_text){.trees = tree}), NULL);
        const float before = predict_one(gbdt, 5, 1);
        CHECK(foreloop_gbdt_save_memory(gbdt, buffer, sizeof buffer - 1, &needed, NULL) == FORELOOP_OK, "save %s",
              thresholds[i]);
        buffer[needed] = '\0';
        foreloop_gbdt_close(gbdt);
        CHECK(margin_at(buffer, NULL, 5) == before, "and open what was saved");
    }
}

/* A file may count many more features than its trees read. */
static void test_many_features(void) {
    static const float row[4] = {1, 0, 0, 0};
    foreloop_gbdt_rows rows = {
        .size = sizeof rows, .values = row, .row_count = 1, .column_count = 4, .row_stride = 4, .column_stride = 1};
    float output = 0;
    foreloop_gbdt *gbdt =
        opened(save((model_text){.trees = STUMP("0.5", "0,0,0"),
                                 .parameters = "\"base_score\":\"0E0\",\"num_feature\":\"536870000\""}),
               NULL);
    CHECK(foreloop_gbdt_predict_rows(gbdt, &rows, FORELOOP_GBDT_MARGIN, &output, NULL) == FORELOOP_OK && output == 1,
          "a row of the columns that are read");
    foreloop_gbdt_close(gbdt);
}

/* ---- Vector leaves ----------------------------------------------------------------------------------------------- */

#define TARGETS(base_score) "\"base_score\":\"" base_score "\",\"num_target\":\"2\",\"num_feature\":\"1\""
#define VECTOR_STUMP(weights, right)                                                                                   \
    "{\"left_children\":[1,-1,-1],\"right_children\":[" right "],\"default_left\":[0,0,0],\"split_indices\":[0,0,0],"  \
    "\"split_conditions\":[1,0,0]," weights ",\"tree_param\":{\"size_leaf_vector\":\"2\"}}"

/* Margins of both outputs on either side of the split. */
static void check_vectors(const char *text, const foreloop_gbdt_options *options, const float expected[4],
                          const char *what) {
    static const float row[2] = {0, 1};
    float outputs[4] = {0};
    foreloop_gbdt_info info = {.size = sizeof info};
    foreloop_gbdt *gbdt = opened(text, options);
    foreloop_gbdt_get_info(gbdt, &info);
    foreloop_gbdt_predict(gbdt, row, 2, 1, 1, outputs, NULL);
    CHECK(info.output_count == 2 && memcmp(outputs, expected, sizeof outputs) == 0, "%s: %g %g, %g %g", what,
          (double)outputs[0], (double)outputs[1], (double)outputs[2], (double)outputs[3]);
    foreloop_gbdt_close(gbdt);
}

static void test_vector_leaves(void) {
    static const float once[4] = {4, 5, 6, 7}, twice[4] = {6, 9, 10, 13}, with_base[4] = {4.5f, 4, 6.5f, 6};
    const char *by_node = VECTOR_STUMP("\"base_weights\":[0,1,2,4,4,6]", "2,-1,-1");
    const char *by_leaf = VECTOR_STUMP("\"base_weights\":[9,9],\"leaf_weights\":[4,6,2,4]", "2,1,0");
    char two[1024];
    snprintf(two, sizeof two, "%s,%s", by_node, by_leaf);
    check_vectors(save((model_text){.parameters = TARGETS("[2E0,1E0]"), .trees = by_node}), NULL, once,
                  "vectors of all nodes, as up to 3.1");
    check_vectors(save((model_text){.parameters = TARGETS("[2E0,1E0]"), .trees = by_leaf}), NULL, once,
                  "vectors of the leaves, as since 3.2");
    check_vectors(save((model_text){.parameters = TARGETS("[2E0,1E0]"), .trees = two, .tree_info = "0,0"}), NULL, twice,
                  "two trees");
    check_vectors(save((model_text){.parameters = TARGETS("[2.5E0,0E0]"), .trees = by_leaf}), NULL, with_base,
                  "a base score for each output");

    foreloop_gbdt_options options;
    foreloop_gbdt_info info = {.size = sizeof info};
    foreloop_gbdt_options_init(&options, sizeof options);
    options.iteration_begin = 1;
    const char *both = save((model_text){.parameters = TARGETS("[2E0,1E0]"), .trees = two, .tree_info = "0,0"});
    check_vectors(both, &options, once, "the second iteration");
    foreloop_gbdt *gbdt = opened(both, NULL);
    foreloop_gbdt_get_info(gbdt, &info);
    CHECK(info.tree_count == 2 && info.iteration_count == 2, "a tree with vector leaves counts once");
    foreloop_gbdt_close(gbdt);

    options = dump_options(0.0f);
    static const float dumped[4] = {1, 2, 3, 4};
    check_vectors(SPLIT_DUMP("\"split_condition\":1,\"yes\":1,\"no\":2,\"missing\":1", "[1,2]", "[3,4]"), &options,
                  dumped, "vector leaves of a dump");

    check_refused(save((model_text){.trees = by_leaf}), NULL, FORELOOP_ERROR_FORMAT, "output 1",
                  "more numbers in a leaf than outputs");
    check_refused(
        save((model_text){.parameters = TARGETS("0"), .trees = VECTOR_STUMP("\"base_weights\":[0,1,2,4]", "2,-1,-1")}),
        NULL, FORELOOP_ERROR_FORMAT, "base_weights", "too few vectors");
    check_refused(save((model_text){.parameters = TARGETS("0"), .trees = VECTOR_STUMP("\"x\":0", "2,-1,-1")}), NULL,
                  FORELOOP_ERROR_FORMAT, "base_weights", "no vectors");
    check_refused(
        save((model_text){.parameters = TARGETS("0"), .trees = VECTOR_STUMP("\"leaf_weights\":[4,6,2,4]", "2,1,2")}),
        NULL, FORELOOP_ERROR_FORMAT, "leaf 2", "leaf past the vectors");
    check_refused(
        save((model_text){.parameters = TARGETS("0"), .trees = VECTOR_STUMP("\"leaf_weights\":[4,6,2,NaN]", "2,0,1")}),
        NULL, FORELOOP_ERROR_VALUE, "leaf", "number of a vector leaf NaN");
    check_refused("[{\"nodeid\":0,\"leaf\":[1,2, ..., 3]}]", NULL, FORELOOP_ERROR_UNSUPPORTED, "leaves out",
                  "dump that abbreviates");
    check_refused("[{\"nodeid\":0,\"leaf\":[1,2]},{\"nodeid\":0,\"leaf\":3}]", NULL, FORELOOP_ERROR_FORMAT,
                  "one number", "dump with leaves of two sizes");
    options = dump_options(0.0f);
    options.num_class = 3;
    check_refused("[{\"nodeid\":0,\"leaf\":[1,2]}]", &options, FORELOOP_ERROR_MISMATCH, "num_class", "num_class of 3");
}

#define DART(first, second, more)                                                                                      \
    "{\"learner\":{\"gradient_booster\":{\"gbtree\":{\"model\":{\"trees\":[" LEAF(first) "," LEAF(                     \
        second) "],"                                                                                                   \
                "\"tree_info\":[0,0]},\"name\":\"gbtree\"},\"name\":\"dart\"" more "},\"learner_model_param\":{"       \
                "\"base_score\":\"5E-1\",\"num_feature\":\"0\"},\"objective\":{\"name\":\"binary:logistic\"}}}"

static void test_weights(void) {
    CHECK(margin_at(DART("0.5", "1", ",\"weight_drop\":[0.5,0.25]"), NULL, 0) == 0.5f, "DART weights");
    /* The base margin is -0 here: -log(1). */
    CHECK(bits_of(margin_at(DART("-0.0", "-0.0", ",\"weight_drop\":[1,1]"), NULL, 0)) == 0, "weighted leaves of -0");
    check_refused(DART("1", "1", ",\"weight_drop\":[0.5]"), NULL, FORELOOP_ERROR_FORMAT, "weight_drop",
                  "too few DART weights");
    check_refused(DART("1", "1", ""), NULL, FORELOOP_ERROR_FORMAT, "weight_drop", "DART without weights");
    CHECK(margin_at(save((model_text){.trees = LEAF("2"), .more = ",\"weight_drop\":[0.5]"}), NULL, 0) == 1 &&
              margin_at(save((model_text){.trees = LEAF("2"), .more = ",\"weight_drop\":[]"}), NULL, 0) == 2,
          "weights beside the trees, as since 3.3; none are all 1");
    CHECK(margin_at(save((model_text){
                        .trees = LEAF("2") "," LEAF("4"), .tree_info = "0,0", .more = ",\"weight_drop\":[0.5]"}),
                    NULL, 0) == 5,
          "trees behind the end of the weights weigh 1");
    check_refused(save((model_text){.trees = LEAF("2"), .more = ",\"weight_drop\":[1,1]"}), NULL, FORELOOP_ERROR_FORMAT,
                  "weight_drop", "more weights than trees");
    check_refused(DART("1", "1", ",\"weight_drop\":[NaN,1]"), NULL, FORELOOP_ERROR_VALUE, "weight", "DART weight NaN");
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

static void test_calls(void) {
    foreloop_gbdt *gbdt = NULL, *other = NULL;
    foreloop_error error = {0};
    float row[2] = {0, 0}, output = 5;
    CHECK(foreloop_gbdt_open(&gbdt, "/nonexistent/model.json", NULL, &error) == FORELOOP_ERROR_IO && !gbdt, "no file");
    CHECK(foreloop_gbdt_open(&gbdt, NULL, NULL, NULL) == FORELOOP_ERROR_ARGUMENT, "path NULL");
    CHECK(foreloop_gbdt_open_memory(NULL, "[]", 2, NULL, NULL) == FORELOOP_ERROR_ARGUMENT, "handle NULL");
    foreloop_gbdt_close(NULL);

    gbdt = opened(
        save((model_text){.parameters = "\"base_score\":\"0E0\",\"num_feature\":\"2\"", .trees = STUMP("1", "0,0,0")}),
        NULL);
    CHECK(foreloop_gbdt_predict(gbdt, row, 1, 1, 1, &output, &error) == FORELOOP_ERROR_ARGUMENT && output == 5 &&
              strstr(error.message, "needs 2"),
          "too few columns: %s", error.message);
    CHECK(foreloop_gbdt_predict(gbdt, NULL, 1, 2, 1, &output, NULL) == FORELOOP_ERROR_ARGUMENT && output == 5,
          "rows NULL");
    CHECK(foreloop_gbdt_predict(gbdt, NULL, 0, 2, 1, NULL, NULL) == FORELOOP_OK, "no rows");

    /* Structs of an older and of a newer header. */
    foreloop_gbdt_info info;
    memset(&info, 0x55, sizeof info);
    info.size = offsetof(foreloop_gbdt_info, output_count);
    foreloop_gbdt_get_info(gbdt, &info);
    CHECK(info.feature_count == 2 && info.output_count == (size_t)0x5555555555555555, "only info.size is written");
    foreloop_gbdt_close(gbdt);
    struct {
        foreloop_gbdt_options options;
        char later[64];
    } newer;
    foreloop_gbdt_options_init(&newer.options, sizeof newer);
    CHECK(open_text(&other, "[]", &newer.options, NULL) == FORELOOP_OK, "options of a newer header");
    foreloop_gbdt_close(other);
}

/* The same bits for a row alone, at any place of a batch, and with any stride. */
static void test_batches(const char *root) {
    enum { ROWS = 131, COLUMNS = 5, STRIDE = 9 };
    static float rows[ROWS * STRIDE], packed[COLUMNS], batch[ROWS * 3], alone[3];
    size_t size, differing = 0;
    uint32_t state = 12345;
    char *text = read_file(root, "dart_forest.json", &size);
    foreloop_gbdt *gbdt = opened(text, NULL);
    for (size_t i = 0; i < ROWS * STRIDE; i++) {
        state = state * 1664525u + 1013904223u;
        rows[i] = state >> 29 == 0 ? NAN : (float)(state >> 8) / 8388608.0f - 1.0f;
    }
    foreloop_gbdt_predict(gbdt, rows, ROWS, STRIDE, 1, batch, NULL);
    for (size_t r = 0; r < ROWS; r++) {
        memcpy(packed, rows + r * STRIDE, sizeof packed);
        foreloop_gbdt_predict(gbdt, packed, 1, COLUMNS, 1, alone, NULL);
        differing += memcmp(alone, batch + r * 3, sizeof alone) != 0;
        differing += bits_of(foreloop_gbdt_margin(gbdt, packed)) != bits_of(alone[0]);
    }
    CHECK(differing == 0, "a row's margins do not depend on its batch");
    foreloop_gbdt_close(gbdt);
    free(text);
}

int main(int argc, char **argv) {
    test_base_scores();
    test_thresholds();
    test_missing();
    test_categories();
    test_dumps();
    test_malformed_dumps();
    test_dump_names();
    test_features();
    test_ranges();
    test_classes();
    test_unsupported();
    test_unknown_keys();
    test_structure();
    test_ids();
    test_contradictions();
    test_saving_not_finite();
    test_many_features();
    test_vector_leaves();
    test_weights();
    test_calls();
    test_batches(argc > 1 ? argv[1] : ".");
    return tap_done();
}
