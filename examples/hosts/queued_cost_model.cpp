/*
 * A beam search over tilings of a convolution by a queued cost model (queued_cost_model.hpp).
 *
 *     queued_cost_model MODEL WORKLOAD.txt
 *
 * prints the tiling that it ends with. WORKLOAD.txt is examples/data/conv3x3_96/workload.txt: the axes below are its.
 */
#include "queued_cost_model.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>

struct State {
    Tiling tiling;
    double cost = 0;
};

/* Decides one axis after the other and keeps the `width` cheapest states each time. */
static State beam_search(CostModel<Tiling> &model, const Tiling &axes, size_t width) {
    std::vector<State> beam(1);
    for (const TiledAxis &axis : axes) {
        std::vector<State> children;
        for (const State &state : beam) {
            for (int tile = 1; tile <= axis.extent; tile++) {
                if (axis.extent % tile)
                    continue;
                children.push_back(state);
                children.back().tiling.push_back({axis.split, axis.extent, tile});
            }
        }
        for (State &child : children) /* `children` has its size, so that its costs stay where they are */
            model.enqueue(child.tiling, &child.cost);
        model.evaluate_costs();
        std::stable_sort(children.begin(), children.end(),
                         [](const State &a, const State &b) { return a.cost < b.cost; });
        children.resize(std::min(width, children.size()));
        beam = children;
    }
    return beam[0];
}

int main(int argc, char **argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: queued_cost_model MODEL WORKLOAD.txt\n");
        return 2;
    }
    try {
        ForeloopCostModel model(argv[1]);
        model.set_program(host::read_file(argv[2]));
        const Tiling axes = {{"split_s2", 96, 0}, {"split_s1", 40, 0}, {"split_s0", 40, 0}, {"split_r2", 96, 0}};
        const State best = beam_search(model, axes, 8);
        for (const TiledAxis &axis : best.tiling)
            std::printf("%s: tile %d of %d\n", axis.split, axis.tile, axis.extent);
        std::printf("cost %.6f\n", best.cost);
    } catch (const std::exception &failure) {
        std::fprintf(stderr, "%s\n", failure.what());
        return 1;
    }
    return 0;
}
