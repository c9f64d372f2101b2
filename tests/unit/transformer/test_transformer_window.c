/* The window rule and the pooling sums. */
#include "tap.h"
#include "transformer/window_pool.h"
#include <math.h>
#include <string.h>

static void check_windows(size_t count, size_t content, size_t stride, const char *expected) {
    char text[256] = "";
    const size_t windows = foreloop_window_count(count, content, stride);
    for (size_t i = 0; i < windows; i++) {
        size_t first, length;
        foreloop_window_at(count, content, stride, i, &first, &length);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%zu-%zu ", first, first + length);
    }
    CHECK(strcmp(text, expected) == 0, "%zu tokens in windows of %zu by %zu: %s", count, content, stride, text);
}

static void check_cover(void) {
    int right = 1;
    for (size_t content = 1; content <= 9; content++)
        for (size_t stride = 1; stride <= content; stride++)
            for (size_t count = 1; count <= 40; count++) {
                const size_t windows = foreloop_window_count(count, content, stride);
                size_t covered = 0;
                for (size_t i = 0; i < windows; i++) {
                    size_t first, length;
                    foreloop_window_at(count, content, stride, i, &first, &length);
                    right &= first <= covered && length >= 1 && length <= content && first + length > covered;
                    covered = first + length;
                }
                right &= covered == count;
            }
    CHECK(right, "every window brings something new and none leaves a gap");
}

int main(void) {
    check_windows(0, 5, 3, "0-0 ");
    check_windows(1, 5, 3, "0-1 ");
    check_windows(5, 5, 3, "0-5 ");
    check_windows(6, 5, 3, "0-5 3-6 ");
    check_windows(8, 5, 3, "0-5 3-8 ");
    check_windows(9, 5, 3, "0-5 3-8 6-9 ");
    check_windows(10, 5, 5, "0-5 5-10 ");
    check_windows(11, 5, 5, "0-5 5-10 10-11 ");
    check_windows(3, 1, 1, "0-1 1-2 2-3 ");
    check_cover();

    const float states[3][2] = {{2, 4}, {4, 8}, {9, 9}};
    double sum[2];
    float mean[2] = {NAN, NAN};
    foreloop_pool pool = {.width = 2, .sum = sum};
    foreloop_pool_begin(&pool);
    foreloop_pool_mean(&pool, mean);
    CHECK(mean[0] == 0 && mean[1] == 0, "the mean of nothing is zero");
    foreloop_pool_add(&pool, states[0], 2, 2);
    foreloop_pool_mean(&pool, mean);
    CHECK(mean[0] == 3 && mean[1] == 6, "what is not pooled stays out of the mean");
    foreloop_pool_add(&pool, states[2], 2, 1);
    foreloop_pool_mean(&pool, mean);
    CHECK(mean[0] == 5 && mean[1] == 7, "windows are weighted by their tokens");

    float values[2] = {3, -4}, zeros[2] = {0, 0};
    foreloop_normalize(values, 2);
    foreloop_normalize(zeros, 2);
    CHECK(values[0] == 0.6f && values[1] == -0.8f && zeros[0] == 0 && zeros[1] == 0, "the norm is 1, or 0 of zeros");
    return tap_done();
}
