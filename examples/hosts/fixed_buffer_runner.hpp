/*
 * A model behind fixed input buffers, as LLVM's MLModelRunner has: the host asks once where each input lies, writes
 * numbers there before each evaluation, and gets one number back. Here the inputs are one scheduling action, its kind
 * and its arguments, and an evaluation gives the score of the schedule with that action behind it: the step-wise search
 * of foreloop (foreloop_state_*), at a cost that does not grow with the schedule.
 */
#ifndef FORELOOP_EXAMPLES_HOSTS_FIXED_BUFFER_RUNNER_HPP
#define FORELOOP_EXAMPLES_HOSTS_FIXED_BUFFER_RUNNER_HPP

#include "foreloop.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <vector>

class ActionRunner {
  public:
    explicit ActionRunner(const char *bundle)
        : model(
              host::make<foreloop_model>(foreloop_model_open, bundle, static_cast<const foreloop_options *>(nullptr))),
          actions(host::make<foreloop_actions>(foreloop_actions_create, model.get(), size_t(0))),
          scorer(host::make<foreloop_scorer>(foreloop_scorer_create, model.get(), actions.get(),
                                             static_cast<const foreloop_hardware *>(nullptr))) {
        /* One buffer for each name that some kind has a slot for, in the order in which the model names them. */
        for (size_t of = 0; foreloop_model_kind_name(model.get(), of); of++)
            for (size_t slot = 0; foreloop_model_slot_name(model.get(), of, slot); slot++)
                buffers.emplace(foreloop_model_slot_name(model.get(), of, slot), absent());
        /* operator new aligns to 16 bytes at least, which is what a state needs. */
        state.resize(foreloop_state_size(scorer.get()));
        extended.resize(state.size());
    }

    /* The input for the kind of the next action: its number among foreloop_model_kind_name. */
    int64_t *kind_buffer() {
        return &kind;
    }
    /* The input for a named argument, at an address that stays. Absent arguments are NaN, which is what every buffer
     * holds after an evaluation. A name that the model does not know gets a buffer too: models differ. */
    double *argument_buffer(const std::string &name) {
        return &buffers.emplace(name, absent()).first->second;
    }

    /* The number of a kind, for kind_buffer. */
    int64_t kind_number(const std::string &name) const {
        for (size_t i = 0; foreloop_model_kind_name(model.get(), i); i++)
            if (name == foreloop_model_kind_name(model.get(), i))
                return int64_t(i);
        throw std::invalid_argument("the model has no kind of action named " + name);
    }

    /* An empty schedule of the program; the inputs become absent. */
    void switch_context(const std::string &program) {
        workload = host::encode(model.get(), program);
        foreloop_error error;
        host::check(foreloop_state_begin(scorer.get(), workload.get(), state.data(), &error), error);
        clear();
    }

    /* The score of the schedule with the action in the buffers behind it. `keep` makes that the schedule from now on,
     * else the next evaluation tries another action at the same place. */
    float evaluate(bool keep) {
        if (!workload)
            throw std::logic_error("evaluate needs a program: call switch_context first");
        const char *const kind_name = kind < 0 ? nullptr : foreloop_model_kind_name(model.get(), size_t(kind));
        if (!kind_name)
            throw std::invalid_argument("the kind buffer holds no number of a kind");
        arguments.clear();
        for (const auto &buffer : buffers)
            if (!std::isnan(buffer.second))
                arguments.push_back({buffer.first.c_str(), nullptr, buffer.second});
        const foreloop_action action = {kind_name, arguments.data(), arguments.size()};
        foreloop_error error;
        uint32_t id;
        host::check(foreloop_actions_intern(actions.get(), &action, 1, &id, &error), error);
        extended = state; /* the same size, so nothing is allocated */
        host::check(foreloop_state_step(scorer.get(), extended.data(), id, &error), error);
        float score;
        host::check(foreloop_state_score(scorer.get(), extended.data(), &score, &error), error);
        if (keep)
            state.swap(extended);
        clear();
        return score;
    }

  private:
    static double absent() {
        return std::numeric_limits<double>::quiet_NaN();
    }
    void clear() {
        kind = -1;
        for (auto &buffer : buffers)
            buffer.second = absent();
    }

    host::Owned<foreloop_model> model;
    host::Owned<foreloop_actions> actions;
    host::Owned<foreloop_scorer> scorer;
    host::Owned<foreloop_workload> workload;
    int64_t kind = -1;
    std::map<std::string, double> buffers; /* a map's values stay where they are */
    std::vector<foreloop_argument> arguments;
    std::vector<unsigned char> state, extended;
};

#endif
