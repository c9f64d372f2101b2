/*
 * A cost model that is asked in two steps, as beam searches ask theirs (Halide's Adams2019 is one): the search enqueues
 * each child of a state together with the place where its cost is to go, and one evaluation then fills in all of them.
 * foreloop fits behind such an interface without a copy of anything but the ids of actions: enqueue interns the child's
 * actions, evaluate_costs scores the queue as one batch.
 */
#ifndef FORELOOP_EXAMPLES_HOSTS_QUEUED_COST_MODEL_HPP
#define FORELOOP_EXAMPLES_HOSTS_QUEUED_COST_MODEL_HPP

#include "foreloop.hpp"

#include <cmath>
#include <cstdint>
#include <vector>

/* What the search knows of a cost model. Lower costs are better. */
template <typename Schedule> class CostModel {
  public:
    virtual ~CostModel() = default;
    /* The program that schedules are of, from now on. */
    virtual void set_program(const std::string &text) = 0;
    /* Writes the cost of `schedule` to *cost when evaluate_costs is called; *cost must live till then. */
    virtual void enqueue(const Schedule &schedule, double *cost) = 0;
    virtual void evaluate_costs() = 0;
    /* Forgets what is queued. */
    virtual void reset() = 0;
};

/* The host's own schedule: a tile of some axes of a program. */
struct TiledAxis {
    const char *split; /* the kind of action that splits it */
    int extent, tile;
};
using Tiling = std::vector<TiledAxis>;

class ForeloopCostModel : public CostModel<Tiling> {
  public:
    explicit ForeloopCostModel(const char *bundle)
        : model(
              host::make<foreloop_model>(foreloop_model_open, bundle, static_cast<const foreloop_options *>(nullptr))),
          actions(host::make<foreloop_actions>(foreloop_actions_create, model.get(), size_t(0))),
          scorer(host::make<foreloop_scorer>(foreloop_scorer_create, model.get(), actions.get(),
                                             static_cast<const foreloop_hardware *>(nullptr))) {
    }

    void set_program(const std::string &text) override {
        reset();
        workload = host::encode(model.get(), text);
    }

    void enqueue(const Tiling &tiling, double *cost) override {
        try {
            emit(tiling);
        } catch (...) {
            ids.resize(offsets.back()); /* the queue stays as it was */
            throw;
        }
        costs.push_back(cost);
        offsets.push_back(ids.size());
    }

    void evaluate_costs() override {
        if (!workload)
            throw std::logic_error("evaluate_costs needs a program: call set_program first");
        scores.resize(costs.size());
        foreloop_error error;
        host::check(foreloop_score(scorer.get(), workload.get(), ids.data(), offsets.data(), costs.size(),
                                   scores.data(), &error),
                    error);
        /* Scores are higher for faster candidates and only compare; exp(-score) turns them to positive costs. */
        for (size_t i = 0; i < costs.size(); i++)
            *costs[i] = std::exp(-double(scores[i]));
        reset();
    }

    void reset() override {
        ids.clear();
        costs.clear();
        offsets.assign(1, 0);
    }

  private:
    void intern(const foreloop_action &action) {
        foreloop_error error;
        uint32_t id;
        host::check(foreloop_actions_intern(actions.get(), &action, 1, &id, &error), error);
        ids.push_back(id);
    }

    /* The schedule in the vocabulary of docs/ACTIONS.md. */
    void emit(const Tiling &tiling) {
        for (const TiledAxis &axis : tiling) {
            const double extent = axis.extent, tile = axis.tile;
            const foreloop_argument split[] = {
                {"extent", nullptr, extent}, {"parts", nullptr, 2},    {"factor_0", nullptr, extent / tile},
                {"factor_1", nullptr, tile}, {"inner", nullptr, tile}, {"innermost", nullptr, tile}};
            intern({axis.split, split, sizeof split / sizeof *split});
        }
        const foreloop_argument value = {"value", nullptr, 64};
        intern({"annotate_parallel", &value, 1});
        intern({"annotate_vectorize", &value, 1});
        intern({"postprocess", nullptr, 0});
    }

    host::Owned<foreloop_model> model;
    host::Owned<foreloop_actions> actions;
    host::Owned<foreloop_scorer> scorer;
    host::Owned<foreloop_workload> workload;
    /* The queue, as foreloop_score takes a batch: schedule i is ids[offsets[i]] to ids[offsets[i + 1] - 1]. */
    std::vector<uint32_t> ids;
    std::vector<size_t> offsets = {0};
    std::vector<double *> costs;
    std::vector<float> scores;
};

#endif
