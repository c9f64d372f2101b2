/*
 * What the C++ samples in this folder share: handles that close themselves, and statuses as exceptions. A host whose
 * code has no exceptions returns the foreloop_error instead.
 */
#ifndef FORELOOP_EXAMPLES_HOSTS_FORELOOP_HPP
#define FORELOOP_EXAMPLES_HOSTS_FORELOOP_HPP

#include <foreloop/foreloop.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>

namespace host {

struct Close {
    void operator()(foreloop_model *handle) const {
        foreloop_model_close(handle);
    }
    void operator()(foreloop_encoder *handle) const {
        foreloop_encoder_close(handle);
    }
    void operator()(foreloop_workload *handle) const {
        foreloop_workload_close(handle);
    }
    void operator()(foreloop_actions *handle) const {
        foreloop_actions_close(handle);
    }
    void operator()(foreloop_scorer *handle) const {
        foreloop_scorer_close(handle);
    }
};
template <typename Handle> using Owned = std::unique_ptr<Handle, Close>;

inline void check(foreloop_status status, const foreloop_error &error) {
    if (status != FORELOOP_OK)
        throw std::runtime_error(std::string(foreloop_status_name(status)) + ": " + error.message);
}

/* Calls create(&handle, arguments..., &error): the form of all functions of foreloop that make a handle. */
template <typename Handle, typename Create, typename... Arguments>
Owned<Handle> make(Create create, Arguments... arguments) {
    foreloop_error error;
    Handle *handle = nullptr;
    check(create(&handle, arguments..., &error), error);
    return Owned<Handle>(handle);
}

inline Owned<foreloop_workload> encode(const foreloop_model *model, const std::string &program) {
    const auto encoder = make<foreloop_encoder>(foreloop_encoder_create, foreloop_model_transformer(model));
    return make<foreloop_workload>(foreloop_workload_encode, model, encoder.get(), program.data(), program.size());
}

inline std::string read_file(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    if (!(text << file.rdbuf()))
        throw std::runtime_error(path + ": cannot be read");
    return text.str();
}

} // namespace host

#endif
