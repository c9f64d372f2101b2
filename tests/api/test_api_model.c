/* Opening models: both forms agree, every failing allocation and every damaged file gives a status and leaks nothing.
 */
#include "fixture.h"
#include "tap.h"
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

/* An allocator that counts and can fail the Nth allocation, once or from then on. */
typedef struct counting {
    size_t live, calls, fail_at;
    int fail_on;
} counting;

static void *count_allocate(void *user, size_t size, size_t alignment) {
    counting *counter = user;
    void *pointer = NULL;
    size_t call = ++counter->calls;
    if (call == counter->fail_at || (counter->fail_on && counter->fail_at && call > counter->fail_at))
        return NULL;
    if (posix_memalign(&pointer, alignment < sizeof(void *) ? sizeof(void *) : alignment, size) != 0)
        return NULL;
    counter->live++;
    return pointer;
}

static void count_release(void *user, void *pointer) {
    counting *counter = user;
    counter->live--;
    free(pointer);
}

/* Everything that a host does once, with one allocator. */
static foreloop_status whole_course(const fixture *fix, const char *path, counting *counter, foreloop_error *error) {
    foreloop_allocator allocator = {count_allocate, count_release, counter};
    foreloop_options options;
    foreloop_options_init(&options, sizeof options);
    options.allocator = &allocator;
    options.read_into_memory = 1;
    foreloop_model *model = NULL;
    foreloop_encoder *encoder = NULL;
    foreloop_workload *workload = NULL;
    foreloop_actions *actions = NULL;
    foreloop_scorer *scorer = NULL;
    uint32_t ids[4096];
    size_t offsets[FIXTURE_MAX + 1], found;
    uint64_t best[5];
    foreloop_status status = foreloop_model_open(&model, path, &options, error);
    if (status == FORELOOP_OK)
        status = foreloop_encoder_create(&encoder, foreloop_model_transformer(model), error);
    if (status == FORELOOP_OK)
        status = foreloop_workload_encode(&workload, model, encoder, "for i in range(3):\n", 19, error);
    if (status == FORELOOP_OK)
        status = foreloop_actions_create(&actions, model, 0, error);
    if (status == FORELOOP_OK)
        status = fixture_intern(fix, actions, ids, offsets, error);
    if (status == FORELOOP_OK)
        status = foreloop_scorer_create(&scorer, model, actions, &fix->hardware, error);
    if (status == FORELOOP_OK)
        status = foreloop_rank_top(scorer, workload, ids, offsets, fix->count, 5, best, NULL, &found, error);
    if (status == FORELOOP_OK) {
        size_t calls = counter->calls;
        float scores[FIXTURE_MAX];
        foreloop_score(scorer, workload, ids, offsets, fix->count, scores, error);
        foreloop_rank_top(scorer, workload, ids, offsets, fix->count, 5, best, NULL, &found, error);
        if (counter->calls != calls)
            status = FORELOOP_END; /* scoring must not allocate */
    }
    foreloop_scorer_close(scorer);
    foreloop_actions_close(actions);
    foreloop_workload_close(workload);
    foreloop_encoder_close(encoder);
    foreloop_model_close(model);
    return status;
}

static void test_failing_allocations(const fixture *fix, const char *path, const char *what) {
    foreloop_error error = {0};
    counting counter = {0};
    CHECK(whole_course(fix, path, &counter, &error) == FORELOOP_OK, "%s: the whole course: %s", what, error.message);
    CHECK(counter.live == 0, "%s: no leak", what);
    size_t calls = counter.calls, wrong = 0, leaks = 0;
    for (int on = 0; on < 2; on++) {
        for (size_t i = 1; i <= calls; i++) {
            counter = (counting){.fail_at = i, .fail_on = on};
            wrong += whole_course(fix, path, &counter, &error) != FORELOOP_ERROR_MEMORY;
            leaks += counter.live;
        }
    }
    CHECK(wrong == 0, "%s: each of %zu failing allocations gives error_memory (%zu do not)", what, calls, wrong);
    CHECK(leaks == 0, "%s: and leaks nothing", what);
}

static void write_file(const char *path, const void *data, size_t size) {
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, size, file) != size)
        exit(99);
    fclose(file);
}

static void test_damaged_pack(const char *packed, size_t step) {
    size_t size;
    char *data = fixture_read("", packed + 1, &size), *copy = malloc(size);
    foreloop_model *model = NULL;
    foreloop_error error = {0};
    size_t accepted = 0, silent = 0, tried = 0;
    for (size_t length = 0; length < size; length += length < 64 ? 1 : step, tried++) {
        memcpy(copy, data, length);
        error.message[0] = 0;
        if (foreloop_model_open_memory(&model, copy, length, NULL, &error) == FORELOOP_OK) {
            accepted++;
            foreloop_model_close(model);
        }
        silent += error.message[0] == 0;
    }
    CHECK(accepted == 0 && silent == 0, "each of %zu truncations of a packed model is refused with a message", tried);
    /* A changed byte may leave a model that is merely another one; it must not crash or leak. */
    for (size_t i = 0; i < size; i += step) {
        memcpy(copy, data, size);
        copy[i] = (char)(copy[i] ^ (1 << (i % 8)));
        if (foreloop_model_open_memory(&model, copy, size, NULL, &error) == FORELOOP_OK)
            foreloop_model_close(model);
    }
    CHECK(1, "changed bytes of a packed model do no harm");
    free(copy);
    free(data);
}

/* The bundle's files; the last one is only in those with a score network. */
static const char *const names[] = {"model.json",
                                    "config.json",
                                    "tokenizer.json",
                                    "ranker.json",
                                    "encoder.safetensors",
                                    "transition.safetensors",
                                    "score_network.safetensors"};
enum { NAMES = sizeof names / sizeof *names };
static size_t name_count; /* of the bundle */

static void copy_bundle(const char *from, const char *to, const char *except) {
    for (size_t i = 0; i < name_count; i++) {
        char path[2048];
        size_t size;
        snprintf(path, sizeof path, "%s/%s", to, names[i]);
        unlink(path);
        if (except && strcmp(except, names[i]) == 0)
            continue;
        char *data = fixture_read(from, names[i], &size);
        write_file(path, data, size);
        free(data);
    }
}

/* Replaces the first `find` in a file of the bundle. */
static void replace(const char *directory, const char *name, const char *find, const char *by) {
    char path[2048];
    size_t size;
    char *data = fixture_read(directory, name, &size), *at = strstr(data, find);
    if (!at) {
        CHECK(0, "'%s' stands in %s", find, name);
        free(data);
        return;
    }
    char *changed = malloc(size + strlen(by) + 1);
    size_t before = (size_t)(at - data);
    memcpy(changed, data, before);
    memcpy(changed + before, by, strlen(by));
    memcpy(changed + before + strlen(by), at + strlen(find), size - before - strlen(find));
    snprintf(path, sizeof path, "%s/%s", directory, name);
    write_file(path, changed, size + strlen(by) - strlen(find));
    free(changed);
    free(data);
}

static void refused(const char *directory, foreloop_status expected, const char *mentions, const char *what) {
    foreloop_model *model = NULL;
    foreloop_error error = {0};
    foreloop_status status = foreloop_model_open(&model, directory, NULL, &error);
    CHECK(status == expected && !model && strstr(error.message, mentions), "%s: %s: %s", what,
          foreloop_status_name(status), error.message);
    foreloop_model_close(model);
}

/* 480 letters. */
#define LETTERS4(x) x x x x
#define LETTERS_480 LETTERS4(LETTERS4("abcdefghijklmnopqrstuvwxyzabcd"))

static void test_wrong_bundles(const fixture *fix, const char *work) {
    static const struct {
        const char *file, *find, *by;
        foreloop_status status;
        const char *mentions, *what;
    } cases[] = {
        {"model.json", "foreloop-model", "other-model", FORELOOP_ERROR_FORMAT, "model.json", "another format"},
        {"model.json", "\"format_version\": ", "\"format_version\": 9", FORELOOP_ERROR_UNSUPPORTED,
         "this library reads 1 to 2", "a newer version"},
        {"model.json", "\"text_rule\": 1", "\"text_rule\": 2", FORELOOP_ERROR_UNSUPPORTED, "text_rule", "another rule"},
        {"model.json", "\"latent_size\": 20", "\"latent_size\": 21", FORELOOP_ERROR_MISMATCH, "pooling.weight",
         "another latent size"},
        {"model.json", "\"kind\": \"kind_2\"", "\"kind\": \"kind_1\"", FORELOOP_ERROR_FORMAT, "kind_1", "a kind twice"},
        {"model.json", "\"kind\": \"kind_2\"", "\"kind\": \"ki.nd\"", FORELOOP_ERROR_FORMAT, "ki.nd", "a bad name"},
        {"model.json", "\"kind\": \"kind_2\"", "\"kind\": \"" LETTERS_480 "e\"", FORELOOP_ERROR_FORMAT, "481 letters",
         "a name too long"},
        {"model.json", "\"name\": \"", "\"name\": \"" LETTERS_480, FORELOOP_ERROR_FORMAT, "letters: shorten it to 480",
         "a slot's too"},
        {"model.json", "\"kind\": \"kind_2\"", "\"kind\": \"" LETTERS_480 "\"", FORELOOP_ERROR_FORMAT,
         "unknown feature", "the longest name"},
        {"model.json", "\"signed_log\"", "\"cubic\"", FORELOOP_ERROR_FORMAT, "cubic", "an unknown encoding"},
        {"model.json", "\"signed_log\"", "\"signed_log\", \"range\": [3, 2]", FORELOOP_ERROR_FORMAT, "range",
         "a range upside down"},
        {"model.json", "\"signed_log\"", "\"signed_log\", \"range\": [3]", FORELOOP_ERROR_FORMAT, "range",
         "half a range"},
        {"model.json", "\"signed_log\"", "\"signed_log\", \"range\": [0, 1e999]", FORELOOP_ERROR_FORMAT, "finite",
         "an infinite range"},
        {"model.json", "\"features\": [", "\"features\": [\"sum.kind_1.nothing\",", FORELOOP_ERROR_FORMAT,
         "sum.kind_1.nothing", "an unknown feature"},
        {"model.json", "\"features\": [", "\"features\": [\"z.20\",", FORELOOP_ERROR_FORMAT, "z.20",
         "a latent element out of range"},
        {"model.json", "\"features\": [", "\"features\": [\"z.00\",", FORELOOP_ERROR_FORMAT, "z.00",
         "a number with a zero before it"},
        {"model.json", "\"format_version\"", "\"latent_size\": 20, \"format_version\"", FORELOOP_ERROR_FORMAT,
         "'latent_size' stands twice", "a key twice"},
        {"model.json", "\"encoding\"", "\"encoding\": \"linear\", \"encoding\"", FORELOOP_ERROR_FORMAT,
         "'encoding' stands twice", "a slot's key twice"},
        {"model.json", "\"kind\"", "\"kind\": \"other\", \"kind\"", FORELOOP_ERROR_FORMAT, "'kind' stands twice",
         "a kind's key twice"},
        {"model.json", "\"stride\"", "\"stride\": 1, \"stride\"", FORELOOP_ERROR_FORMAT, "'stride' stands twice",
         "a window's key twice"},
        {"ranker.json", "\"feature_names\":[\"", "\"feature_names\":[\"other_", FORELOOP_ERROR_MISMATCH, "other_",
         "a ranker with other features"},
        {"config.json", "\"hidden_size\": 16", "\"hidden_size\": 20", FORELOOP_ERROR_MISMATCH, "encoder",
         "an encoder of another size"},
        {"tokenizer.json", "\"type\": \"BPE\"", "\"type\": \"Unigram\"", FORELOOP_ERROR_UNSUPPORTED, "Unigram",
         "an unknown tokenizer"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        copy_bundle(fix->directory, work, NULL);
        replace(work, cases[i].file, cases[i].find, cases[i].by);
        refused(work, cases[i].status, cases[i].mentions, cases[i].what);
    }
    char ranker[2048];
    copy_bundle(fix->directory, work, NULL);
    snprintf(ranker, sizeof ranker, "%s/ranker.json", work);
    write_file(ranker, "[]", 2);
    refused(work, FORELOOP_ERROR_MISMATCH, "no trees", "a ranker without trees");
    for (size_t i = 0; i < name_count; i++) {
        char path[2048];
        copy_bundle(fix->directory, work, names[i]);
        refused(work, FORELOOP_ERROR_IO, names[i], "a missing file");
        snprintf(path, sizeof path, "%s/%s", work, names[i]);
        write_file(path, "", 0);
        refused(work, FORELOOP_ERROR_FORMAT, names[i], "an empty file");
        /* NaN in a tensor: the data section ends the file. */
        if (!strstr(names[i], "safetensors"))
            continue;
        size_t size;
        char *data = fixture_read(fix->directory, names[i], &size);
        memcpy(data + size - 4, "\x00\x00\xc0\x7f", 4);
        write_file(path, data, size);
        free(data);
        refused(work, FORELOOP_ERROR_VALUE, "finite", "NaN weights");
    }
    refused("/no/such/model", FORELOOP_ERROR_IO, "/no/such/model", "a missing model");
    refused("/dev/null", FORELOOP_ERROR_IO, "/dev/null", "a device");
}

/* The first span[length] in data, which may hold zero bytes. */
static char *find_bytes(char *data, size_t size, const char *span, size_t length) {
    for (size_t i = 0; i + length <= size; i++)
        if (memcmp(data + i, span, length) == 0)
            return data + i;
    return NULL;
}

/* A bundle as it stands in `work` opens, and has a network or not. Returns its fingerprint. */
static uint64_t opens(const char *path, bool has_network, const char *what) {
    foreloop_model *model = NULL;
    foreloop_error error = {0};
    foreloop_model_info info = {.size = sizeof info};
    const foreloop_status status = foreloop_model_open(&model, path, NULL, &error);
    foreloop_model_get_info(model, &info);
    CHECK(status == FORELOOP_OK && (info.network_parameters > 0) == has_network, "%s: %s", what, error.message);
    foreloop_model_close(model);
    return info.fingerprint;
}

/* What goes wrong with score networks, in a bundle that has none. */
static void test_no_network(const fixture *fix, const char *work) {
    copy_bundle(fix->directory, work, NULL);
    CHECK(opens(work, false, "version 1") == UINT64_C(0xd118d9b0af4ebbab), "its fingerprint is for good");
    replace(work, "model.json", "\"format_version\": 1", "\"format_version\": 1, \"score_network\": false");
    opens(work, false, "version 1 that says that it has no network");
    replace(work, "model.json", "\"format_version\": 1", "\"format_version\": 2");
    opens(work, false, "version 2 that says so");
    replace(work, "model.json", "\"score_network\": false", "\"score_network\": true");
    refused(work, FORELOOP_ERROR_IO, "score_network.safetensors", "version 2 without the file");
}

/* The same in one that has one. */
static void test_network(const fixture *fix, const char *work, const char *packed) {
    static const struct {
        const char *find, *by;
        foreloop_status status;
        const char *mentions, *what;
    } cases[] = {
        {"\"format_version\": 2", "\"format_version\": 1", FORELOOP_ERROR_FORMAT, "write 2",
         "version 1 with a network"},
        {"\"score_network\": true", "\"score_network\": 1", FORELOOP_ERROR_FORMAT, "model.json", "a number"},
        {"\"score_network\": true", "\"score_network\": \"true\"", FORELOOP_ERROR_FORMAT, "model.json", "a string"},
        {"\"score_network\": true", "\"score_network\": null", FORELOOP_ERROR_FORMAT, "model.json", "null"},
        {"\"score_network\": true", "\"score_network\": true, \"score_network\": true", FORELOOP_ERROR_FORMAT,
         "'score_network' stands twice", "the key twice"},
        {"\"features\": [", "\"features\": [\"hw.sm_count\",", FORELOOP_ERROR_MISMATCH, "score network",
         "other features"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        copy_bundle(fix->directory, work, NULL);
        replace(work, "model.json", cases[i].find, cases[i].by);
        refused(work, cases[i].status, cases[i].mentions, cases[i].what);
    }
    size_t size, accepted = 0, silent = 0;
    char *data = fixture_read(fix->directory, "score_network.safetensors", &size), path[2048];
    snprintf(path, sizeof path, "%s/score_network.safetensors", work);
    copy_bundle(fix->directory, work, NULL);
    for (size_t length = 0; length < size; length += length < 32 ? 1 : 97) {
        foreloop_model *model = NULL;
        foreloop_error error = {0};
        write_file(path, data, length);
        accepted += foreloop_model_open(&model, work, NULL, &error) == FORELOOP_OK;
        silent += error.message[0] == 0;
        foreloop_model_close(model);
    }
    CHECK(accepted == 0 && silent == 0, "every truncation of the network's file is refused with a message");
    free(data);

    /* Without the key the part does not count, in either form. */
    copy_bundle(fix->directory, work, NULL);
    const uint64_t whole = opens(work, true, "the network");
    replace(work, "model.json", "\"score_network\": true", "\"score_network\":false");
    const uint64_t without = opens(work, false, "the file without the key");
    snprintf(path, sizeof path, "%s/changed.foreloop", work);
    data = fixture_read("", packed + 1, &size);
    char *key = find_bytes(data, size, "\"score_network\": true", 21), *name;
    if (CHECK(key != NULL, "the packed manifest has the key")) {
        memcpy(key, "\"score_network\":false", 21);
        write_file(path, data, size);
        CHECK(opens(path, false, "packed, without the key") == without && without != whole, "the same fingerprint");
        memcpy(key, "\"score_network\": true", 21);
    }
    while ((name = find_bytes(data, size, "score_network/", 14)))
        memcpy(name, "score_nothing/", 14);
    write_file(path, data, size);
    refused(path, FORELOOP_ERROR_MISMATCH, "score_network/", "packed, without the tensors");
    free(data);
}

/* Copies a file with the last letter of "NAME" changed where it first stands. */
static void misspell(const char *directory, const char *file, const char *name, const char *to) {
    char quoted[256];
    size_t size;
    char *data = fixture_read(directory, file, &size);
    const int length = snprintf(quoted, sizeof quoted, "\"%s\"", name);
    char *at = find_bytes(data, size, quoted, (size_t)length);
    if (CHECK(at != NULL, "%s has %s", file, quoted))
        at[length - 2] = '_';
    write_file(to, data, size);
    free(data);
}

/* What a part needs is missing, in a directory and in a packed file: the message has the name as it is there. */
static void test_missing_tensors(const fixture *fix, const char *work, const char *packed) {
    static const struct {
        const char *part, *tensor;
    } cases[] = {{"encoder", "embeddings.token_type_embeddings.weight"},
                 {"encoder", "encoder.layer.0.output.LayerNorm.bias"},
                 {"encoder", "pooling.weight"},
                 {"encoder", "pooling.bias"},
                 {"transition", "kind_embedding"},
                 {"transition", "beta"},
                 {"transition", "mlp.kind_2.0.bias"},
                 {"transition", "mlp.kind_2.1.weight"},
                 {"score_network", "limit"},
                 {"score_network", "0.bias"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char file[64], path[2048], tensor[128], quoted[160];
        if (name_count < NAMES && strcmp(cases[i].part, "score_network") == 0)
            continue;
        copy_bundle(fix->directory, work, NULL);
        snprintf(file, sizeof file, "%s.safetensors", cases[i].part);
        snprintf(path, sizeof path, "%s/%s", work, file);
        misspell(fix->directory, file, cases[i].tensor, path);
        snprintf(quoted, sizeof quoted, "'%s'", cases[i].tensor);
        refused(work, FORELOOP_ERROR_MISMATCH, quoted, "a missing tensor");

        snprintf(path, sizeof path, "%s/changed.foreloop", work);
        snprintf(tensor, sizeof tensor, "%s/%s", cases[i].part, cases[i].tensor);
        misspell("", packed + 1, tensor, path);
        snprintf(quoted, sizeof quoted, "'%s'", tensor);
        refused(path, FORELOOP_ERROR_MISMATCH, quoted, "packed");
    }
}

/* Writes the fixture's network file to `work` with the tensor `features` of these bytes in front. */
static void write_network(const fixture *fix, const char *work, const char *type, const char *bytes, size_t count) {
    size_t size;
    char *data = fixture_read(fix->directory, "score_network.safetensors", &size), path[2048], entry[256];
    uint64_t header;
    memcpy(&header, data, sizeof header);
    const size_t tensors = size - 8 - (size_t)header;
    snprintf(entry, sizeof entry, "{\"features\":{\"dtype\":\"%s\",\"shape\":[%zu],\"data_offsets\":[%zu,%zu]},", type,
             count, tensors, tensors + count);
    const uint64_t longer = header + strlen(entry) - 1; /* the brace is the entry's */
    char *file = malloc(size + strlen(entry) + count), *end = file;
    memcpy(end, &longer, sizeof longer);
    end += sizeof longer;
    memcpy(end, entry, strlen(entry));
    end += strlen(entry);
    memcpy(end, data + 9, size - 9);
    end += size - 9;
    memcpy(end, bytes, count);
    snprintf(path, sizeof path, "%s/score_network.safetensors", work);
    write_file(path, file, (size_t)(end - file) + count);
    free(file);
    free(data);
}

/* A network that names its features belongs to the manifest that lists the same. */
static void test_network_features(const fixture *fix, const char *work, const char *packed) {
    char listed[1 << 14], path[2048];
    size_t length = 0, first = 0;
    foreloop_model *model = NULL;
    if (!CHECK(foreloop_model_open(&model, fix->directory, NULL, NULL) == FORELOOP_OK, "the bundle opens"))
        return;
    for (size_t i = 0; foreloop_model_feature_name(model, i); i++) {
        length +=
            (size_t)snprintf(listed + length, sizeof listed - length, "%s\n", foreloop_model_feature_name(model, i));
        first = first ? first : length;
    }
    foreloop_model_close(model);
    copy_bundle(fix->directory, work, NULL);
    write_network(fix, work, "U8", listed, length);
    opens(work, true, "the manifest's features");
    snprintf(path, sizeof path, "%s.named", packed);
    CHECK(foreloop_model_pack(work, path, NULL, NULL) == FORELOOP_OK, "which are packed");
    opens(path, true, "packed");
    size_t size;
    char *data = fixture_read("", path + 1, &size), *text = find_bytes(data, size, listed, length);
    if (CHECK(text != NULL, "the packed file names them")) {
        text[first - 2]++;
        write_file(path, data, size);
        refused(path, FORELOOP_ERROR_MISMATCH, "other features", "packed, another name");
    }
    free(data);
    unlink(path);
    write_network(fix, work, "I8", listed, length);
    refused(work, FORELOOP_ERROR_MISMATCH, "U8", "features of another type");
    write_network(fix, work, "U8", listed, length - 1);
    refused(work, FORELOOP_ERROR_MISMATCH, "other features", "the last newline missing");
    write_network(fix, work, "U8", listed, 0);
    refused(work, FORELOOP_ERROR_MISMATCH, "number 0", "no features");
    write_network(fix, work, "U8", listed + first, length - first);
    refused(work, FORELOOP_ERROR_MISMATCH, "number 0", "the first one missing");
    memcpy(listed + length, "more\n", 5);
    write_network(fix, work, "U8", listed, length + 5);
    refused(work, FORELOOP_ERROR_MISMATCH, "more features", "one too many");
    listed[first - 2]++;
    write_network(fix, work, "U8", listed, length);
    refused(work, FORELOOP_ERROR_MISMATCH, "other features", "another name");
}

static void test_networks(const fixture *fix, const char *work, const char *packed) {
    if (name_count == NAMES) {
        test_network(fix, work, packed);
        test_network_features(fix, work, packed);
    } else {
        test_no_network(fix, work);
    }
}

/* The id of a text's first token, UINT32_MAX when there is none. */
static uint32_t first_id(const char *data, size_t size, const char *text, foreloop_error *error) {
    foreloop_model *model = NULL;
    foreloop_encoding *encoding = NULL;
    uint32_t id = UINT32_MAX;
    if (foreloop_model_open_memory(&model, data, size, NULL, error) == FORELOOP_OK &&
        foreloop_encoding_create(&encoding, foreloop_transformer_tokenizer(foreloop_model_transformer(model)), error) ==
            FORELOOP_OK &&
        foreloop_tokenize(encoding, text, strlen(text), 0, error) == FORELOOP_OK &&
        foreloop_encoding_count(encoding) > 0)
        id = foreloop_encoding_ids(encoding)[0];
    foreloop_encoding_close(encoding);
    foreloop_model_close(model);
    return id;
}

/* Where tokenizer.json was changed in a packed file it counts as it stands, not the form compiled from the older one;
 * where the compiled form was damaged there is an error. */
static void test_stale_compiled(const fixture *fix, const char *packed) {
    static const char mark[] = "FLCOMP01";
    size_t size, source_size;
    char *data = fixture_read("", packed + 1, &size);
    char *source = fixture_read(fix->directory, "tokenizer.json", &source_size);
    char *text = find_bytes(data, size, source, source_size);
    char *q = text ? find_bytes(text, source_size, "\"q\":", 4) : NULL;
    char *z = text ? find_bytes(text, source_size, "\"z\":", 4) : NULL;
    char *part = find_bytes(data, size, mark, sizeof mark - 1);
    foreloop_error error = {0};

    if (CHECK(text && q && z && part, "the packed file has tokenizer.json, two letters in it, and a compiled form")) {
        const uint32_t id_of_q = first_id(data, size, "q", &error), id_of_z = first_id(data, size, "z", &error);
        q[1] = 'z';
        z[1] = 'q';
        CHECK(id_of_q != id_of_z && first_id(data, size, "q", &error) == id_of_z &&
                  first_id(data, size, "z", &error) == id_of_q,
              "a changed tokenizer.json is read: %s", error.message);
        q[1] = 'q';
        z[1] = 'z';
        part[64 /* the first byte behind the head */] ^= 1;
        CHECK(first_id(data, size, "q", &error) == UINT32_MAX && error.code == FORELOOP_ERROR_FORMAT &&
                  strstr(error.message, "damaged: pack the model"),
              "a damaged compiled form is an error: %s", error.message);
    }
    free(source);
    free(data);
}

/* Scores of the fixture's candidates by an open model, which is closed. */
static bool score_all(const fixture *fix, foreloop_model *model, float *scores) {
    foreloop_workload *workload = NULL;
    foreloop_actions *actions = NULL;
    foreloop_scorer *scorer = NULL;
    uint32_t ids[4096];
    size_t offsets[FIXTURE_MAX + 1];
    const bool good = foreloop_workload_create(&workload, model, fix->z0, NULL) == FORELOOP_OK &&
                      foreloop_actions_create(&actions, model, 0, NULL) == FORELOOP_OK &&
                      fixture_intern(fix, actions, ids, offsets, NULL) == FORELOOP_OK &&
                      foreloop_scorer_create(&scorer, model, actions, &fix->hardware, NULL) == FORELOOP_OK &&
                      foreloop_score(scorer, workload, ids, offsets, fix->count, scores, NULL) == FORELOOP_OK;
    foreloop_scorer_close(scorer);
    foreloop_actions_close(actions);
    foreloop_workload_close(workload);
    foreloop_model_close(model);
    return good;
}

/* A directory, its packed file and the same in memory score alike, on every tier. */
static void test_forms(const fixture *fix, const char *packed) {
    float expected[FIXTURE_MAX], scores[FIXTURE_MAX];
    size_t size, differ = 0, tried = 0;
    char *data = fixture_read("", packed + 1, &size);
    for (foreloop_tier tier = FORELOOP_TIER_REF; tier <= foreloop_tier_detect(); tier = (foreloop_tier)(tier + 1))
        for (int form = 0; form < 3; form++, tried++) {
            foreloop_options options;
            foreloop_model *model = NULL;
            foreloop_options_init(&options, sizeof options);
            options.tier = tier;
            const foreloop_status status =
                form == 2 ? foreloop_model_open_memory(&model, data, size, &options, NULL)
                          : foreloop_model_open(&model, form == 0 ? fix->directory : packed, &options, NULL);
            const bool good = status == FORELOOP_OK && score_all(fix, model, tried == 0 ? expected : scores);
            differ += !good || (tried > 0 && memcmp(scores, expected, fix->count * sizeof *scores) != 0);
        }
    for (size_t i = 0; i < fix->count; i++)
        differ += !(expected[i] - fix->candidates[i].score < 1e-6f && fix->candidates[i].score - expected[i] < 1e-6f);
    CHECK(differ == 0, "%zu forms and tiers score as they should: %zu do not", tried, differ);
    free(data);
}

int main(int argc, char **argv) {
    static fixture fix;
    foreloop_error error = {0};
    fixture_open(&fix, argc, argv);
    char network[2048];
    snprintf(network, sizeof network, "%s/%s", fix.directory, names[NAMES - 1]);
    name_count = access(network, R_OK) == 0 ? NAMES : NAMES - 1;
    char work[] = "/tmp/foreloop-test-XXXXXX", packed[64];
    if (!mkdtemp(work))
        return 99;
    snprintf(packed, sizeof packed, "%s/packed.foreloop", work);

    foreloop_model *directory = NULL, *file = NULL;
    CHECK(foreloop_model_pack(fix.directory, packed, NULL, &error) == FORELOOP_OK, "pack: %s", error.message);
    CHECK(foreloop_model_open(&directory, fix.directory, NULL, &error) == FORELOOP_OK, "open the directory");
    CHECK(foreloop_model_open(&file, packed, NULL, &error) == FORELOOP_OK, "open the packed file: %s", error.message);
    foreloop_model_info a = {.size = sizeof a}, b = {.size = sizeof b};
    foreloop_model_get_info(directory, &a);
    foreloop_model_get_info(file, &b);
    CHECK(a.fingerprint == b.fingerprint && a.fingerprint != 0, "both have the fingerprint %016llx",
          (unsigned long long)a.fingerprint);
    CHECK(a.manifest_length == strlen(a.manifest), "the manifest is terminated");
    foreloop_model_close(directory);
    foreloop_model_close(file);
    foreloop_model_info small = {.size = 16};
    memset((char *)&small + 16, 0x5a, sizeof small - 16);
    foreloop_model_get_info(NULL, &small);
    CHECK(((unsigned char *)&small)[16] == 0x5a, "nothing is written behind an older struct");

    test_forms(&fix, packed);
    test_failing_allocations(&fix, fix.directory, "directory");
    test_failing_allocations(&fix, packed, "packed file");
    test_damaged_pack(packed, 997);
    test_stale_compiled(&fix, packed);
    test_wrong_bundles(&fix, work);
    test_missing_tensors(&fix, work, packed);
    test_networks(&fix, work, packed);

    copy_bundle(fix.directory, work, NULL);
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", work);
    CHECK(system(command) == 0, "clean up");
    fixture_close(&fix);
    return tap_done();
}
