/* The forward pass against PyTorch's hidden states (tests/golden/make_transformer.py), and its weights' checks. */
#include "failing_allocator.h"
#include "golden.h"
#include "kernels_cpu/cpu.h"
#include "tap.h"
#include "transformer/encoder.h"

static const char *root;
static foreloop_kernel_choice choice; /* the tests run once for each tier */

static const char *path(const char *name) {
    static char text[512];
    snprintf(text, sizeof text, "%s/%s", root, name);
    return text;
}

static foreloop_status load(foreloop_transformer_weights *weights, const golden_file *file,
                            const foreloop_transformer_config *config, foreloop_error *error) {
    const foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    return foreloop_transformer_weights_load(weights, config, &file->tensors, "", &choice, &allocator, error);
}

static foreloop_status open_scratch(foreloop_transformer_scratch *scratch, const foreloop_transformer_weights *weights,
                                    foreloop_error *error) {
    const foreloop_shares alone = {.count = 1};
    return foreloop_transformer_scratch_open(scratch, weights, &alone, error);
}

/* One sequence. */
static foreloop_status forward(const foreloop_transformer_weights *weights, foreloop_transformer_scratch *scratch,
                               const uint32_t *ids, const uint32_t *types, size_t count, foreloop_error *error) {
    const size_t offsets[2] = {0, count};
    const foreloop_token_batch batch = {.ids = ids, .types = types, .offsets = offsets, .count = 1};
    return foreloop_transformer_forward(weights, scratch, &batch, error);
}

/* The states of `count` tokens without the gaps between them, in their old place. */
static const float *states(foreloop_transformer_scratch *scratch, size_t count, size_t width) {
    for (size_t t = 1; t < count; t++)
        memmove(scratch->states + t * width, scratch->states + t * scratch->state_stride, width * sizeof(float));
    return scratch->states;
}

/* Checks the sequences of EXPECTED (`index` NULL: all; otherwise the ids of sequence 0 against hidden.INDEX). */
static void check_sequences(const golden_file *weights_file, const foreloop_transformer_config *config,
                            const golden_file *expected, const char *index, const char *label) {
    foreloop_transformer_weights weights;
    foreloop_transformer_scratch scratch;
    foreloop_error error = {.message = ""};
    if (!CHECK(load(&weights, weights_file, config, &error) == FORELOOP_OK, "%s loads %s", label, error.message))
        return;
    CHECK(open_scratch(&scratch, &weights, &error) == FORELOOP_OK, "%s: scratch", label);
    for (int i = 0; i < (index ? 1 : 10); i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", i);
        const foreloop_tensor *ids_tensor = golden_find(expected, "ids", number);
        if (!ids_tensor)
            break;
        const foreloop_tensor *types_tensor = golden_find(expected, "types", number);
        uint32_t *ids = golden_ids(ids_tensor), *types = types_tensor ? golden_ids(types_tensor) : NULL;
        const foreloop_status status = forward(&weights, &scratch, ids, types, ids_tensor->count, &error);
        const double distance = golden_distance(golden_find(expected, "hidden", index ? index : number),
                                                states(&scratch, ids_tensor->count, config->hidden_size),
                                                ids_tensor->count * config->hidden_size);
        CHECK(status == FORELOOP_OK && distance < 1e-5, "%s: %zu tokens, off by %.1e", label, ids_tensor->count,
              distance);
        free(ids);
        free(types);
    }
    foreloop_transformer_scratch_close(&scratch, &weights.allocator);
    foreloop_transformer_weights_close(&weights);
}

static void test_golden(void) {
    static const struct {
        const char *folder, *weights, *index, *label;
    } cases[] = {
        {"roberta", "model.safetensors", NULL, "RoBERTa"},
        {"bert", "model.safetensors", NULL, "BERT"},
        {"bert", "variants/old_names.safetensors", NULL, "BERT with a prefix, gamma and beta"},
        {"bert", "variants/f16.safetensors", "f16", "BERT in f16"},
        {"bert", "variants/bf16.safetensors", "bf16", "BERT in bf16"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        golden_file weights, expected;
        const foreloop_transformer_config config = golden_config(path(cases[i].folder));
        golden_open(&weights, path(cases[i].folder), cases[i].weights);
        golden_open(&expected, path(cases[i].folder), "expected.safetensors");
        check_sequences(&weights, &config, &expected, cases[i].index, cases[i].label);
        golden_close(&expected);
        golden_close(&weights);
    }
}

/* Renamed copies give the same bits, and so does a sequence after others, at its maximum length too. */
static void test_bits(void) {
    const foreloop_transformer_config config = golden_config(path("bert"));
    const uint32_t ids[21] = {2, 7, 9, 1, 3, 5, 8, 8, 28, 0, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21};
    enum { HIDDEN = 20 };
    float first[5 * HIDDEN];
    static const char *const names[] = {"model.safetensors", "variants/old_names.safetensors"};
    for (size_t i = 0; i < 2; i++) {
        golden_file file;
        foreloop_transformer_weights weights;
        foreloop_transformer_scratch scratch;
        foreloop_error error;
        golden_open(&file, path("bert"), names[i]);
        if (load(&weights, &file, &config, &error) != FORELOOP_OK ||
            open_scratch(&scratch, &weights, &error) != FORELOOP_OK)
            exit(1);
        forward(&weights, &scratch, ids, NULL, 5, &error);
        if (i == 0)
            memcpy(first, states(&scratch, 5, HIDDEN), sizeof first);
        else
            CHECK(memcmp(first, states(&scratch, 5, HIDDEN), sizeof first) == 0, "%s: the same bits", names[i]);
        CHECK(forward(&weights, &scratch, ids, NULL, 21, &error) == FORELOOP_OK, "21 tokens");
        forward(&weights, &scratch, ids, NULL, 5, &error);
        CHECK(memcmp(first, states(&scratch, 5, HIDDEN), sizeof first) == 0, "%s: the same bits after another sequence",
              names[i]);
        foreloop_transformer_scratch_close(&scratch, &weights.allocator);
        foreloop_transformer_weights_close(&weights);
        golden_close(&file);
    }
}

static void test_arguments(void) {
    const foreloop_transformer_config config = golden_config(path("bert"));
    uint32_t ids[22] = {0}, types[22] = {0};
    golden_file file;
    foreloop_transformer_weights weights;
    foreloop_transformer_scratch scratch;
    foreloop_error error;
    golden_open(&file, path("bert"), "model.safetensors");
    if (load(&weights, &file, &config, &error) != FORELOOP_OK ||
        open_scratch(&scratch, &weights, &error) != FORELOOP_OK)
        exit(1);
    CHECK(forward(&weights, &scratch, ids, types, 22, &error) == FORELOOP_ERROR_LIMIT && strstr(error.message, "22") &&
              strstr(error.message, "21"),
          "too long: %s", error.message);
    CHECK(forward(&weights, &scratch, ids, types, 0, &error) == FORELOOP_ERROR_ARGUMENT, "empty: %s", error.message);
    ids[3] = 29;
    CHECK(forward(&weights, &scratch, ids, types, 5, &error) == FORELOOP_ERROR_ARGUMENT &&
              strstr(error.message, "token 3"),
          "id out of range: %s", error.message);
    ids[3] = 0;
    types[4] = 2;
    CHECK(forward(&weights, &scratch, ids, types, 5, &error) == FORELOOP_ERROR_ARGUMENT &&
              strstr(error.message, "token 4"),
          "token type out of range: %s", error.message);
    foreloop_transformer_scratch_close(&scratch, &weights.allocator);
    foreloop_transformer_weights_close(&weights);
    golden_close(&file);
}

/* Writes a float over a tensor's first element, tries to load, and puts the old one back. */
static void check_value(golden_file *file, const foreloop_transformer_config *config, const char *name, float value) {
    const foreloop_tensor *tensor = foreloop_safetensors_find(&file->tensors, name);
    unsigned char *data = (unsigned char *)(uintptr_t)tensor->data; /* read into memory, so writable */
    float old;
    foreloop_transformer_weights weights;
    foreloop_error error = {.message = ""};
    memcpy(&old, data, sizeof old);
    memcpy(data, &value, sizeof value);
    CHECK(load(&weights, file, config, &error) == FORELOOP_ERROR_VALUE && strstr(error.message, name),
          "NaN or infinity is refused: %s", error.message);
    memcpy(data, &old, sizeof old);
}

/* Weights that are finite but out of scale. */
static void check_overflow(golden_file *file, const foreloop_transformer_config *config) {
    const foreloop_tensor *gamma = foreloop_safetensors_find(&file->tensors, "encoder.layer.2.output.LayerNorm.weight");
    unsigned char *data = (unsigned char *)(uintptr_t)gamma->data;
    const uint32_t ids[4] = {2, 7, 9, 3};
    const float huge = 3e38f;
    unsigned char old[80];
    foreloop_transformer_weights weights;
    foreloop_transformer_scratch scratch;
    foreloop_error error = {.message = ""};
    memcpy(old, data, sizeof old);
    for (size_t i = 0; i < sizeof old / sizeof huge; i++)
        memcpy(data + i * sizeof huge, &huge, sizeof huge);
    if (load(&weights, file, config, &error) != FORELOOP_OK || open_scratch(&scratch, &weights, &error) != FORELOOP_OK)
        exit(1);
    CHECK(forward(&weights, &scratch, ids, NULL, 4, &error) == FORELOOP_ERROR_VALUE,
          "a state that overflows is an error, not an infinity: %s", error.message);
    foreloop_transformer_scratch_close(&scratch, &weights.allocator);
    foreloop_transformer_weights_close(&weights);
    memcpy(data, old, sizeof old);
}

static void check_mismatch(const golden_file *file, foreloop_transformer_config config, const char *named) {
    foreloop_transformer_weights weights;
    foreloop_error error = {.message = ""};
    CHECK(load(&weights, file, &config, &error) == FORELOOP_ERROR_MISMATCH && strstr(error.message, named),
          "refused: %s", error.message);
}

static void test_damage(void) {
    const foreloop_transformer_config config = golden_config(path("bert"));
    golden_file file;
    golden_open(&file, path("bert"), "model.safetensors");
    check_value(&file, &config, "embeddings.word_embeddings.weight", NAN);
    check_value(&file, &config, "embeddings.position_embeddings.weight", INFINITY);
    check_value(&file, &config, "encoder.layer.1.attention.self.key.weight", -INFINITY);
    check_value(&file, &config, "encoder.layer.2.output.LayerNorm.bias", NAN);
    check_overflow(&file, &config);

    foreloop_transformer_config other = config;
    other.layer_count = 4;
    check_mismatch(&file, other, "encoder.layer.3.attention.self.query.weight");
    other = config;
    other.hidden_size = 16;
    check_mismatch(&file, other, "embeddings.word_embeddings.weight");
    other = config;
    other.position_count = 22;
    check_mismatch(&file, other, "embeddings.position_embeddings.weight");
    other = config;
    other.intermediate_size = 36;
    check_mismatch(&file, other, "encoder.layer.0.intermediate.dense.weight");
    other = config;
    other.type_count = 1;
    check_mismatch(&file, other, "embeddings.token_type_embeddings.weight");

    /* Every tensor is needed: rename each in turn by its last letter. */
    int missed = 0;
    for (size_t i = 0; i < file.tensors.count; i++) {
        golden_file copy;
        foreloop_transformer_weights weights;
        foreloop_error error = {.message = ""};
        const foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
        const char *name = file.tensors.tensors[i].name;
        char quoted[128];
        copy.file = file.file;
        unsigned char *data = malloc(file.file.size);
        memcpy(data, file.file.data, file.file.size);
        snprintf(quoted, sizeof quoted, "\"%s\"", name);
        for (size_t at = 0; at + strlen(quoted) <= file.file.size; at++)
            if (memcmp(data + at, quoted, strlen(quoted)) == 0) {
                data[at + strlen(quoted) - 2] = '?';
                break;
            }
        if (foreloop_safetensors_open(&copy.tensors, data, file.file.size, "renamed", &allocator, &error) !=
                FORELOOP_OK ||
            load(&weights, &copy, &config, &error) != FORELOOP_ERROR_MISMATCH || !strstr(error.message, name))
            missed++;
        foreloop_safetensors_close(&copy.tensors);
        free(data);
    }
    CHECK(missed == 0, "each of the %zu tensors is missed when it is renamed", file.tensors.count);
    golden_close(&file);
}

static void test_memory(void) {
    const foreloop_transformer_config config = golden_config(path("roberta"));
    golden_file file;
    int leaks = 0, wrong = 0;
    golden_open(&file, path("roberta"), "model.safetensors");
    for (size_t n = 0;; n++) {
        failing_allocator memory = {.fail_at = n};
        const foreloop_allocator allocator = failing_allocator_use(&memory);
        foreloop_transformer_weights weights;
        foreloop_transformer_scratch scratch;
        foreloop_error error;
        foreloop_status status =
            foreloop_transformer_weights_load(&weights, &config, &file.tensors, "", &choice, &allocator, &error);
        if (status == FORELOOP_OK) {
            status = open_scratch(&scratch, &weights, &error);
            if (status == FORELOOP_OK)
                foreloop_transformer_scratch_close(&scratch, &allocator);
            foreloop_transformer_weights_close(&weights);
        }
        leaks += memory.live != 0;
        wrong += status != (memory.failed ? FORELOOP_ERROR_MEMORY : FORELOOP_OK);
        if (!memory.failed) {
            CHECK(n > 30 && !leaks && !wrong, "each of %zu allocations may fail: %d leaks, %d wrong codes", n, leaks,
                  wrong);
            break;
        }
    }
    golden_close(&file);
}

int main(int argc, char **argv) {
    root = argc > 1 ? argv[1] : "tests/golden/transformer";
    for (choice.tier = FORELOOP_TIER_REF; choice.tier <= foreloop_cpu_tier(FORELOOP_TIER_BEST); choice.tier++) {
        test_golden();
        test_bits();
        test_arguments();
        test_damage();
        test_memory();
    }
    return tap_done();
}
