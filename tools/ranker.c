/* Opening the trees of `foreloop predict`, and putting columns in their order by name. */
#include "ranker.h"
#include "common/alloc.h"
#include "common/sort.h"
#include <string.h>

/* ---- Opening ---- */

/* A dump is an array of trees, a saved model an object. What cannot be read is left to the library. */
static bool is_dump(const char *path) {
    FILE *file = fopen(path, "r");
    int c = EOF;
    if (file) {
        do
            c = getc(file);
        while (c == ' ' || c == '\t' || c == '\r' || c == '\n');
        (void)fclose(file);
    }
    return c == '[';
}

/* The name of an option that only a dump needs, or NULL. */
static const char *dump_option(const ranker_options *given) {
    if (given->num_class.given)
        return "num-class";
    if (given->num_parallel_tree.given)
        return "num-parallel-tree";
    if (given->objective)
        return "objective";
    return given->tree_weights ? "tree-weights" : NULL;
}

static int open_with(foreloop_gbdt **gbdt, const char *path, foreloop_gbdt_options *options) {
    foreloop_error error = {.code = FORELOOP_OK};
    if (foreloop_gbdt_open(gbdt, path, options, &error) != FORELOOP_OK)
        return cli_fail_file("cannot open the ranker", path, error.message);
    return CLI_DONE;
}

/* Opens the trees; with `names`, those of a dump's columns. */
static int open_named(foreloop_gbdt **gbdt, const char *path, const ranker_options *given, const char *const *names,
                      size_t name_count) {
    foreloop_gbdt_options options;
    input_matrix weights;
    int status;

    foreloop_gbdt_options_init(&options, sizeof options);
    options.has_base_score = given->base_score.given;
    options.base_score = given->base_score.value;
    options.objective = given->objective;
    options.feature_names = names;
    options.feature_name_count = name_count;
    if (given->num_class.value > SIZE_MAX || given->num_parallel_tree.value > SIZE_MAX)
        return cli_fail("--num-class or --num-parallel-tree is too large");
    options.num_class = (size_t)given->num_class.value;
    options.num_parallel_tree = (size_t)given->num_parallel_tree.value;
    if (!given->tree_weights)
        return open_with(gbdt, path, &options);
    status = input_matrix_read(&weights, given->tree_weights);
    if (status != CLI_DONE)
        return status;
    options.tree_weights = weights.values;
    options.tree_weight_count = weights.rows * weights.columns;
    status = open_with(gbdt, path, &options);
    input_matrix_close(&weights);
    return status;
}

int ranker_open(foreloop_gbdt **gbdt, const char *path, const ranker_options *given) {
    const char *option = dump_option(given);
    int status = open_named(gbdt, path, given, NULL, 0);
    if (status != CLI_DONE || !option || is_dump(path))
        return status;
    foreloop_gbdt_close(*gbdt);
    *gbdt = NULL;
    return cli_fail("--%s is for dumps: the saved model %s holds its own, leave the option out", option, path);
}

/* ---- Columns ---- */

static int compare_texts(foreloop_text a, foreloop_text b) {
    size_t length = a.length < b.length ? a.length : b.length;
    int order = length ? memcmp(a.text, b.text, length) : 0;
    return order ? order : (a.length > b.length) - (a.length < b.length);
}

static int by_name(const void *a, const void *b, const void *context) {
    const foreloop_text *names = context;
    return compare_texts(names[*(const size_t *)a], names[*(const size_t *)b]);
}

/* Columns by name. */
typedef struct column_index {
    const input_matrix *matrix;
    size_t *sorted; /* column numbers by name */
    bool *taken;    /* by column number */
    size_t *column; /* of each feature */
} column_index;

/* The place in `sorted` of the first column that is not before the name. */
static size_t find_place(const column_index *index, foreloop_text name) {
    size_t low = 0, high = index->matrix->columns;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_texts(index->matrix->names[index->sorted[middle]], name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_at(const column_index *index, size_t place, foreloop_text name) {
    return place < index->matrix->columns && compare_texts(index->matrix->names[index->sorted[place]], name) == 0;
}

/* The feature's name: the trees' own, or f and its number. */
static foreloop_text feature_name(const foreloop_gbdt *gbdt, size_t feature, char buffer[24]) {
    const char *name = foreloop_gbdt_feature_name(gbdt, feature);
    if (!name) {
        (void)snprintf(buffer, 24, "f%zu", feature);
        name = buffer;
    }
    return (foreloop_text){name, strlen(name)};
}

/* Finds each feature's column. */
static int match(column_index *index, const foreloop_gbdt *gbdt, size_t feature_count) {
    const char *name = index->matrix->content.name;
    for (size_t i = 0; i < feature_count; i++) {
        char buffer[24];
        foreloop_text wanted = feature_name(gbdt, i, buffer);
        size_t place = find_place(index, wanted);
        if (!is_at(index, place, wanted))
            return cli_fail("%s: no column is named '%.*s', which the ranker reads", name,
                            FORELOOP_QUOTED(wanted.text, wanted.length));
        if (is_at(index, place + 1, wanted))
            return cli_fail("%s: several columns are named '%.*s', which the ranker reads", name,
                            FORELOOP_QUOTED(wanted.text, wanted.length));
        index->column[i] = index->sorted[place];
        index->taken[index->column[i]] = true;
    }
    return CLI_DONE;
}

static void note_extra(const column_index *index, size_t feature_count) {
    const input_matrix *matrix = index->matrix;
    size_t extra = matrix->columns - feature_count, i = 0;
    if (extra == 0)
        return;
    while (index->taken[i])
        i++;
    cli_note("%s: %zu column%s ignored, which the ranker does not read: '%.*s'%s", matrix->content.name, extra,
             extra == 1 ? " is" : "s are", FORELOOP_QUOTED(matrix->names[i].text, matrix->names[i].length),
             extra > 1 ? " ..." : "");
}

/* Moves the features' values to the rows' beginnings, in the features' order, and closes the gaps between the rows. */
static bool move_columns(input_matrix *matrix, const size_t *column, size_t feature_count) {
    float *row = foreloop_allocate(cli_allocator(), matrix->columns, sizeof *row);
    if (!row)
        return false;
    for (size_t r = 0; r < matrix->rows; r++) {
        memcpy(row, matrix->values + r * matrix->columns, matrix->columns * sizeof *row);
        for (size_t i = 0; i < feature_count; i++)
            matrix->values[r * feature_count + i] = row[column[i]];
    }
    foreloop_release(cli_allocator(), row);
    matrix->columns = feature_count;
    return true;
}

static int fit_by_name(const foreloop_gbdt *gbdt, size_t feature_count, input_matrix *matrix) {
    column_index index = {
        .matrix = matrix,
        .sorted = foreloop_allocate(cli_allocator(), matrix->columns, sizeof *index.sorted),
        .taken = foreloop_allocate_zeroed(cli_allocator(), matrix->columns, sizeof *index.taken),
        /* More features than columns are never reached: one is missing before. */
        .column = foreloop_allocate(cli_allocator(), matrix->columns, sizeof *index.column),
    };
    int status = index.sorted && index.taken && index.column ? CLI_DONE : cli_fail_memory();
    if (status == CLI_DONE) {
        for (size_t i = 0; i < matrix->columns; i++)
            index.sorted[i] = i;
        foreloop_sort(index.sorted, matrix->columns, sizeof *index.sorted, by_name, matrix->names);
        status = match(&index, gbdt, feature_count);
    }
    if (status == CLI_DONE) {
        note_extra(&index, feature_count);
        if (!move_columns(matrix, index.column, feature_count))
            status = cli_fail_memory();
    }
    foreloop_release(cli_allocator(), index.sorted);
    foreloop_release(cli_allocator(), index.taken);
    foreloop_release(cli_allocator(), index.column);
    return status;
}

/* f and a number */
static bool is_numbered_name(foreloop_text name) {
    if (name.length < 2 || name.text[0] != 'f')
        return false;
    for (size_t i = 1; i < name.length; i++)
        if (name.text[i] < '0' || name.text[i] > '9')
            return false;
    return true;
}

/* A dump that names its features leaves their order open; here it is the one in which it was opened first, and giving
 * that order spares the note about it. */
static int reopen(foreloop_gbdt **gbdt, const char *path, const ranker_options *given, size_t feature_count) {
    foreloop_gbdt *opened = NULL;
    const char **names = foreloop_allocate(cli_allocator(), feature_count, sizeof *names);
    int status;
    if (!names)
        return cli_fail_memory();
    for (size_t i = 0; i < feature_count; i++)
        names[i] = foreloop_gbdt_feature_name(*gbdt, i);
    status = open_named(&opened, path, given, names, feature_count);
    foreloop_release(cli_allocator(), (void *)names);
    if (status == CLI_DONE) {
        foreloop_gbdt_close(*gbdt);
        *gbdt = opened;
    }
    return status;
}

int ranker_fit_columns(foreloop_gbdt **gbdt, const char *path, const ranker_options *given, input_matrix *matrix) {
    foreloop_gbdt_info info = {.size = sizeof info};
    bool named, numbered = false;
    int status = CLI_DONE;
    if (!matrix->names)
        return CLI_DONE;
    foreloop_gbdt_get_info(*gbdt, &info);
    named = info.feature_count > 0 && foreloop_gbdt_feature_name(*gbdt, 0);
    for (size_t i = 0; i < matrix->columns && !numbered; i++)
        numbered = is_numbered_name(matrix->names[i]);
    if (named && is_dump(path))
        status = reopen(gbdt, path, given, info.feature_count);
    if (status == CLI_DONE && (named || numbered))
        status = fit_by_name(*gbdt, info.feature_count, matrix);
    else if (status == CLI_DONE && info.feature_count > 0)
        cli_note("%s: the ranker names no features, so its columns are taken in order", matrix->content.name);
    foreloop_release(cli_allocator(), matrix->names);
    matrix->names = NULL;
    return status;
}
