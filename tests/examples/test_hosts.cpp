/* The host samples of examples/hosts do what they say: their answers are those of foreloop_score, to the bit. */
#include "fixed_buffer_runner.hpp"
#include "queued_cost_model.hpp"
#include "tap.h"

#include <cstring>

/* The score of a sequence of actions by the plain batch call. */
class Direct {
  public:
    Direct(const char *bundle, const std::string &program)
        : model(
              host::make<foreloop_model>(foreloop_model_open, bundle, static_cast<const foreloop_options *>(nullptr))),
          actions(host::make<foreloop_actions>(foreloop_actions_create, model.get(), size_t(0))),
          scorer(host::make<foreloop_scorer>(foreloop_scorer_create, model.get(), actions.get(),
                                             static_cast<const foreloop_hardware *>(nullptr))),
          workload(host::encode(model.get(), program)) {
    }

    float score(const std::vector<foreloop_action> &sequence) {
        std::vector<uint32_t> ids(sequence.size());
        foreloop_error error;
        host::check(foreloop_actions_intern(actions.get(), sequence.data(), sequence.size(), ids.data(), &error),
                    error);
        const size_t offsets[] = {0, ids.size()};
        float score;
        host::check(foreloop_score(scorer.get(), workload.get(), ids.data(), offsets, 1, &score, &error), error);
        return score;
    }

  private:
    host::Owned<foreloop_model> model;
    host::Owned<foreloop_actions> actions;
    host::Owned<foreloop_scorer> scorer;
    host::Owned<foreloop_workload> workload;
};

template <typename Exception, typename Call> static bool throws(Call call) {
    try {
        call();
    } catch (const Exception &) {
        return true;
    }
    return false;
}

static void queued(const char *bundle, const std::string &program, Direct &direct) {
    ForeloopCostModel model(bundle);
    double cost = -1;
    model.enqueue({{"split_s0", 40, 8}}, &cost);
    CHECK(throws<std::logic_error>([&] { model.evaluate_costs(); }) && cost == -1,
          "a queue without a program cannot be evaluated");

    model.set_program(program);
    model.evaluate_costs();
    CHECK(cost == -1, "set_program forgets what was queued before");

    const int tiles[] = {1, 2, 4, 5, 8, 10, 20, 40};
    double costs[8];
    bool untouched = true, equal = true;
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < 8; i++) {
            costs[i] = -1;
            model.enqueue({{"split_s1", 40, tiles[7 - i]}, {"split_s0", 40, tiles[i]}}, &costs[i]);
        }
        for (double untouched_cost : costs)
            untouched = untouched && untouched_cost == -1;
        model.evaluate_costs();
        for (size_t i = 0; i < 8; i++) {
            std::vector<foreloop_argument> splits[2];
            for (size_t axis = 0; axis < 2; axis++) {
                const double tile = axis ? tiles[i] : tiles[7 - i];
                splits[axis] = {{"extent", nullptr, 40},     {"parts", nullptr, 2},    {"factor_0", nullptr, 40 / tile},
                                {"factor_1", nullptr, tile}, {"inner", nullptr, tile}, {"innermost", nullptr, tile}};
            }
            const foreloop_argument value = {"value", nullptr, 64};
            const float score = direct.score({{"split_s1", splits[0].data(), 6},
                                              {"split_s0", splits[1].data(), 6},
                                              {"annotate_parallel", &value, 1},
                                              {"annotate_vectorize", &value, 1},
                                              {"postprocess", nullptr, 0}});
            equal = equal && costs[i] == std::exp(-double(score));
        }
    }
    CHECK(untouched, "costs are written by evaluate_costs alone");
    CHECK(equal, "costs are those of the scores, twice");

    double other = -1;
    const double infinity = std::numeric_limits<double>::infinity();
    model.enqueue({{"split_s0", 40, 8}}, &cost);
    CHECK(throws<std::runtime_error>([&] {
              model.enqueue({{"split_s0", 40, 8}, {"split_s1", 40, 0}}, &other);
          }),
          "a schedule that has no number is an error");
    model.evaluate_costs();
    CHECK(cost > 0 && cost < infinity && other == -1, "and the rest of the queue goes on");

    cost = -1;
    model.enqueue({{"split_s0", 40, 8}}, &cost);
    model.reset();
    model.evaluate_costs();
    CHECK(cost == -1, "reset forgets the queue");
}

static void fixed_buffers(const char *bundle, const std::string &program, Direct &direct) {
    ActionRunner runner(bundle);
    int64_t *const kind = runner.kind_buffer();
    double *const extent = runner.argument_buffer("extent"), *const factor = runner.argument_buffer("factor_1");
    *kind = runner.kind_number("split_s0");
    CHECK(throws<std::logic_error>([&] { runner.evaluate(true); }), "an evaluation needs a program");
    runner.switch_context(program);
    CHECK(*kind == -1 && std::isnan(*extent), "a new context has empty buffers");
    CHECK(throws<std::invalid_argument>([&] { runner.evaluate(true); }), "no kind is an error");
    CHECK(throws<std::invalid_argument>([&] { runner.kind_number("no such kind"); }), "so is an unknown name");

    const auto step = [&](const char *name, double tile, bool keep) {
        *kind = runner.kind_number(name);
        *extent = 40;
        *factor = tile;
        return runner.evaluate(keep);
    };
    foreloop_argument first[] = {{"extent", nullptr, 40}, {"factor_1", nullptr, 4}},
                      second[] = {{"extent", nullptr, 40}, {"factor_1", nullptr, 8}};
    const float one = direct.score({{"split_s1", first, 2}});
    const float both = direct.score({{"split_s1", first, 2}, {"split_s0", second, 2}});
    for (int round = 0; round < 2; round++) {
        step("split_s1", 20, false);
        const float kept = step("split_s1", 4, true);
        step("split_s0", 2, false);
        CHECK(kept == one && step("split_s0", 8, true) == both, "scores are those of the whole sequence");
        CHECK(*kind == -1 && std::isnan(*factor), "buffers are empty after an evaluation");
        runner.switch_context(program);
    }
    *runner.argument_buffer("no such argument") = 7;
    CHECK(step("split_s1", 4, false) == one, "an argument that the model has no slot for changes nothing");
    CHECK(runner.argument_buffer("extent") == extent, "buffers stay where they are");
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    try {
        const std::string program = host::read_file(argv[2]);
        Direct direct(argv[1], program);
        queued(argv[1], program, direct);
        fixed_buffers(argv[1], program, direct);
    } catch (const std::exception &failure) {
        CHECK(false, "%s", failure.what());
    }
    return tap_done();
}
