/* Random measured candidates for the tests of training. */
#ifndef FORELOOP_TESTS_RANKER_TEST_H
#define FORELOOP_TESTS_RANKER_TEST_H

#include "random.h"
#include <foreloop/foreloop.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { TEST_ROWS = 600, TEST_COLUMNS = 21, TEST_GROUPS = 13 };

typedef struct test_data {
    float values[TEST_ROWS * TEST_COLUMNS];
    float relevances[TEST_ROWS];
    double seconds[TEST_ROWS];
    size_t offsets[TEST_GROUPS + 1];
    foreloop_gbdt_rows rows;
    foreloop_ranker_data data; /* of the relevances */
} test_data;

static float test_uniform(random_source *random) {
    return (float)(random_u64(random) >> 40) / 16777216.0f;
}

/* Relevance follows columns 0 to 2; column 3 is missing where it would help, column 4 never varies, column 5 has two
 * values. One group is empty and one has a single row. */
static void test_data_make(test_data *made, uint64_t seed) {
    random_source random = {seed};
    for (size_t r = 0; r < TEST_ROWS; r++) {
        float *row = made->values + r * TEST_COLUMNS;
        for (size_t c = 0; c < TEST_COLUMNS; c++)
            row[c] = 2.0f * test_uniform(&random) - 1.0f;
        row[4] = 3.0f;
        row[5] = row[5] > 0 ? 1.0f : 0.0f;
        const float value = row[0] + row[1] * row[2] + (row[3] > 0.5f ? 0.8f : 0.0f) + 0.1f * test_uniform(&random);
        if (row[3] > 0.5f || test_uniform(&random) < 0.05f)
            row[3] = NAN;
        made->relevances[r] = floorf(fminf(fmaxf(3.0f * value + 5.0f, 0.0f), 15.0f));
        made->seconds[r] = 1e-3 * exp(-(double)value);
    }
    made->offsets[0] = made->offsets[1] = 0;
    made->offsets[2] = 1;
    for (size_t g = 3; g <= TEST_GROUPS; g++)
        made->offsets[g] = made->offsets[g - 1] + 20 + 5 * g;
    made->offsets[TEST_GROUPS] = TEST_ROWS;
    foreloop_gbdt_rows_init(&made->rows, sizeof made->rows);
    made->rows.values = made->values;
    made->rows.row_count = TEST_ROWS;
    made->rows.column_count = TEST_COLUMNS;
    foreloop_ranker_data_init(&made->data, sizeof made->data);
    made->data.rows = &made->rows;
    made->data.groups = made->offsets;
    made->data.group_count = TEST_GROUPS;
    made->data.relevances = made->relevances;
}

#endif
