/*
 * A search that learns from what it measures: the first half of a tuning log is taken as measured, trees are added to
 * the model's own by it, and the second half is ranked by both.
 *
 *     adapt_ranker MODEL workload.txt database_tuning_record.json [ranker.json]
 */
#include <foreloop/foreloop.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_CANDIDATES = 4096, MAX_ACTIONS = 1 << 20, NEW_TREES = 20, NEW_DEPTH = 3 };

/* Candidates as the log has them: actions in CSR form, and times. */
typedef struct candidates {
    uint32_t *ids;
    size_t offsets[MAX_CANDIDATES + 1];
    double seconds[MAX_CANDIDATES];
    size_t count;
} candidates;

static int fail(const foreloop_error *error) {
    fprintf(stderr, "%s: %s\n", foreloop_status_name(error->code), error->message);
    return 1;
}

static foreloop_status read_candidates(candidates *all, foreloop_actions *actions, const char *path,
                                       foreloop_error *error) {
    foreloop_records *records;
    foreloop_record record = {.size = sizeof record};
    foreloop_status status = foreloop_records_open(&records, path, NULL, error);
    if (status != FORELOOP_OK)
        return status;
    while ((status = foreloop_records_next(records, &record, error)) == FORELOOP_OK) {
        const size_t begin = all->offsets[all->count];
        if (record.seconds_count == 0)
            continue;
        if (all->count == MAX_CANDIDATES || begin + record.action_count > MAX_ACTIONS)
            break;
        status = foreloop_actions_intern(actions, record.actions, record.action_count, all->ids + begin, error);
        if (status != FORELOOP_OK)
            break;
        all->seconds[all->count] = record.seconds[0];
        all->offsets[++all->count] = begin + record.action_count;
    }
    foreloop_records_close(records);
    return status == FORELOOP_END ? FORELOOP_OK : status;
}

/* Adds trees to the model's own from the first `measured` candidates. */
static foreloop_status adapt(foreloop_gbdt **ranker, foreloop_scorer *scorer, const foreloop_model *model,
                             const foreloop_workload *workload, const candidates *all, size_t measured,
                             foreloop_error *error) {
    foreloop_model_info info = {.size = sizeof info};
    foreloop_gbdt_rows rows;
    foreloop_ranker_data data;
    foreloop_ranker_options options;
    const size_t groups[] = {0, measured};
    foreloop_model_get_info(model, &info);
    float *features = malloc(measured * info.feature_count * sizeof *features);
    if (!features)
        exit(1);
    foreloop_status status = foreloop_features_batch(scorer, workload, all->ids, all->offsets, measured, features,
                                                     info.feature_count, error);
    if (status == FORELOOP_OK) {
        foreloop_gbdt_rows_init(&rows, sizeof rows);
        rows.values = features;
        rows.row_count = measured;
        rows.column_count = info.feature_count;
        foreloop_ranker_data_init(&data, sizeof data);
        data.rows = &rows;
        data.groups = groups;
        data.group_count = 1;
        data.seconds = all->seconds;
        foreloop_ranker_options_init(&options, sizeof options);
        options.start = foreloop_model_gbdt(model);
        options.objective = FORELOOP_RANKER_PAIRWISE;
        options.rounds = NEW_TREES;
        options.depth = NEW_DEPTH;
        status = foreloop_ranker_train(ranker, &data, &options, error);
    }
    free(features);
    return status;
}

/* The share of pairs of the candidates from `first` on whose faster one has the higher score. */
static foreloop_status print_pairs(const char *name, foreloop_scorer *scorer, const foreloop_workload *workload,
                                   const candidates *all, size_t first, foreloop_error *error) {
    static float scores[MAX_CANDIDATES];
    double right = 0, pairs = 0;
    const foreloop_status status = foreloop_score(scorer, workload, all->ids, all->offsets, all->count, scores, error);
    for (size_t i = first; status == FORELOOP_OK && i < all->count; i++)
        for (size_t j = first; j < all->count; j++)
            if (all->seconds[i] < all->seconds[j]) {
                pairs += 1;
                right += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
            }
    if (status == FORELOOP_OK && pairs > 0)
        printf("%s: %.3f of the pairs that were not measured yet stand the right way round\n", name, right / pairs);
    return status;
}

/* The model, the program and the table stand. */
static foreloop_status run(foreloop_scorer *scorer, const foreloop_model *model, const foreloop_workload *workload,
                           const candidates *all, const char *output, foreloop_error *error) {
    const size_t measured = all->count / 2;
    foreloop_gbdt *ranker = NULL;
    foreloop_status status = print_pairs("the model's trees", scorer, workload, all, measured, error);
    if (status == FORELOOP_OK)
        status = adapt(&ranker, scorer, model, workload, all, measured, error);
    if (status == FORELOOP_OK)
        status = foreloop_scorer_set_ranker(scorer, ranker, error);
    if (status == FORELOOP_OK)
        status = print_pairs("and further ones  ", scorer, workload, all, measured, error);
    if (status == FORELOOP_OK && output)
        status = foreloop_gbdt_save(ranker, output, error);
    (void)foreloop_scorer_set_ranker(scorer, NULL, NULL);
    foreloop_gbdt_close(ranker);
    return status;
}

/* The file's length, or 0 after a message. */
static size_t read_text(const char *path, char *text, size_t capacity) {
    FILE *file = fopen(path, "rb");
    const size_t length = file ? fread(text, 1, capacity, file) : 0;
    if (length == 0 || length == capacity)
        fprintf(stderr, "%s: %s\n", path, length ? "longer than a program is" : "cannot be read, or is empty");
    if (file)
        (void)fclose(file);
    return length < capacity ? length : 0;
}

int main(int argc, char **argv) {
    static char text[1 << 20];
    static candidates all;
    foreloop_error error = {.code = FORELOOP_OK};
    foreloop_model *model = NULL;
    foreloop_encoder *encoder = NULL;
    foreloop_workload *workload = NULL;
    foreloop_actions *actions = NULL;
    foreloop_scorer *scorer = NULL;
    if (argc < 4) {
        fprintf(stderr, "usage: adapt_ranker MODEL workload.txt database_tuning_record.json [ranker.json]\n");
        return 2;
    }
    const size_t length = read_text(argv[2], text, sizeof text);
    all.ids = length ? malloc(MAX_ACTIONS * sizeof *all.ids) : NULL;
    if (!all.ids)
        return 1;
    const int failed = foreloop_model_open(&model, argv[1], NULL, &error) != FORELOOP_OK ||
                       foreloop_encoder_create(&encoder, foreloop_model_transformer(model), &error) != FORELOOP_OK ||
                       foreloop_workload_encode(&workload, model, encoder, text, length, &error) != FORELOOP_OK ||
                       foreloop_actions_create(&actions, model, 0, &error) != FORELOOP_OK ||
                       foreloop_scorer_create(&scorer, model, actions, NULL, &error) != FORELOOP_OK ||
                       read_candidates(&all, actions, argv[3], &error) != FORELOOP_OK ||
                       run(scorer, model, workload, &all, argc > 4 ? argv[4] : NULL, &error) != FORELOOP_OK;
    foreloop_scorer_close(scorer);
    foreloop_actions_close(actions);
    foreloop_workload_close(workload);
    foreloop_encoder_close(encoder);
    foreloop_model_close(model);
    free(all.ids);
    return failed ? fail(&error) : 0;
}
