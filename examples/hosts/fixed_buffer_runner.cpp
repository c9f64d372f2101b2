/*
 * Tiles a convolution greedily, one axis after the other, through a runner with fixed buffers
 * (fixed_buffer_runner.hpp).
 *
 *     fixed_buffer_runner MODEL WORKLOAD.txt
 *
 * prints the scores on the way. WORKLOAD.txt is examples/data/conv3x3_96/workload.txt: the axes below are its.
 */
#include "fixed_buffer_runner.hpp"

#include <cstdio>
#include <exception>

/* Tries each tile of an axis and keeps the best. */
static void tile_axis(ActionRunner &runner, const char *kind, int extent) {
    int64_t *const kind_input = runner.kind_buffer();
    double *const extent_input = runner.argument_buffer("extent"), *const parts = runner.argument_buffer("parts"),
                  *const outer = runner.argument_buffer("factor_0"), *const inner = runner.argument_buffer("factor_1");
    const int64_t number = runner.kind_number(kind);
    const auto evaluate = [&](int tile, bool keep) {
        *kind_input = number;
        *extent_input = extent;
        *parts = 2;
        *outer = extent / tile;
        *inner = tile;
        return runner.evaluate(keep);
    };
    int best = 1;
    float best_score = -std::numeric_limits<float>::infinity();
    for (int tile = 1; tile <= extent; tile++) {
        const float score = extent % tile ? best_score : evaluate(tile, false);
        if (score > best_score) {
            best_score = score;
            best = tile;
        }
    }
    std::printf("%s: tile %d of %d, score %.6f\n", kind, best, extent, double(evaluate(best, true)));
}

int main(int argc, char **argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: fixed_buffer_runner MODEL WORKLOAD.txt\n");
        return 2;
    }
    try {
        ActionRunner runner(argv[1]);
        runner.switch_context(host::read_file(argv[2]));
        tile_axis(runner, "split_s2", 96);
        tile_axis(runner, "split_s1", 40);
        tile_axis(runner, "split_s0", 40);
        tile_axis(runner, "split_r2", 96);
        *runner.kind_buffer() = runner.kind_number("postprocess");
        std::printf("postprocess: score %.6f\n", double(runner.evaluate(true)));
    } catch (const std::exception &failure) {
        std::fprintf(stderr, "%s\n", failure.what());
        return 1;
    }
    return 0;
}
