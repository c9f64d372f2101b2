/* Texts to vectors: checkpoint directories, windows and pooling against PyTorch (tests/golden/make_transformer.py). */
#include "failing_allocator.h"
#include "golden.h"
#include "model/text_encoder.h"
#include "tap.h"
#include <sys/stat.h>
#include <unistd.h>

static const char *root;

static const char *path(const char *name) {
    static char text[512];
    snprintf(text, sizeof text, "%s/%s", root, name);
    return text;
}

/* Checks every text.N of the golden file against the tensors STEM.N. */
static void check_texts(const foreloop_transformer *transformer, const golden_file *expected, const char *stem,
                        const char *label) {
    foreloop_encoder *encoder;
    foreloop_error error = {.message = ""};
    float embedding[64];
    if (!CHECK(foreloop_encoder_create(&encoder, transformer, &error) == FORELOOP_OK, "%s: encoder %s", label,
               error.message))
        return;
    for (int i = 0;; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", i);
        const foreloop_tensor *text = golden_find(expected, "text", number);
        if (!text)
            break;
        const foreloop_status status =
            foreloop_encode_text(encoder, (const char *)text->data, text->size, embedding, &error);
        const double distance = golden_distance(golden_find(expected, stem, number), embedding,
                                                foreloop_transformer_embedding_size(transformer));
        CHECK(status == FORELOOP_OK && distance < 1e-5, "%s: text %d of %zu bytes, off by %.1e", label, i, text->size,
              distance);
    }
    foreloop_encoder_close(encoder);
}

static void test_checkpoints(void) {
    static const char *const folders[] = {"roberta", "bert"};
    for (size_t i = 0; i < 2; i++) {
        golden_file expected;
        foreloop_transformer *transformer;
        foreloop_error error = {.message = ""};
        const foreloop_options options = {.size = sizeof options, .read_into_memory = (int)i};
        golden_open(&expected, path(folders[i]), "expected.safetensors");
        if (!CHECK(foreloop_transformer_open(&transformer, path(folders[i]), &options, &error) == FORELOOP_OK,
                   "%s opens %s", folders[i], error.message))
            continue;
        check_texts(transformer, &expected, "embedding", folders[i]);
        CHECK(foreloop_transformer_hidden_size(transformer) == (i ? 20 : 12) &&
                  foreloop_transformer_embedding_size(transformer) == (i ? 20 : 12),
              "%s: sizes", folders[i]);
        CHECK(foreloop_tokenizer_vocabulary_size(foreloop_transformer_tokenizer(transformer)) == (i ? 13 : 266),
              "%s: tokenizer", folders[i]);
        foreloop_transformer_close(transformer);
        golden_close(&expected);
    }
}

/* A transformer from parts, as a model bundle makes it. */
static foreloop_status create(foreloop_transformer **transformer, const char *folder, const golden_file *weights,
                              const foreloop_pooling *pooling, foreloop_error *error) {
    const foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    const foreloop_transformer_config config = golden_config(path(folder));
    const foreloop_kernel_choice choice = {.tier = FORELOOP_TIER_REF};
    char file[600];
    foreloop_tokenizer *tokenizer;
    snprintf(file, sizeof file, "%s/tokenizer.json", path(folder));
    FORELOOP_TRY(foreloop_tokenizer_open(&tokenizer, file, NULL, error));
    const foreloop_status status = foreloop_transformer_create(transformer, &allocator, &choice, &config,
                                                               &weights->tensors, "", tokenizer, pooling, error);
    if (status != FORELOOP_OK)
        foreloop_tokenizer_close(tokenizer);
    return status;
}

static float *floats_of(const foreloop_tensor *tensor) {
    float *values = malloc(tensor->size);
    memcpy(values, tensor->data, tensor->size);
    return values;
}

static void test_windows(void) {
    static const char *const folders[] = {"roberta", "bert"};
    for (size_t i = 0; i < 2; i++) {
        golden_file weights, expected;
        foreloop_transformer *transformer;
        foreloop_error error = {.message = ""};
        golden_open(&weights, path(folders[i]), "model.safetensors");
        golden_open(&expected, path(folders[i]), "expected.safetensors");
        const foreloop_tensor *projection = foreloop_safetensors_find(&expected.tensors, "projection");
        float *matrix = floats_of(projection);
        float *bias = floats_of(foreloop_safetensors_find(&expected.tensors, "projection_bias"));
        foreloop_pooling pooling = {.window_length = 10, .window_stride = 3, .normalize = true};
        pooling.projection_size = projection->shape[0];
        pooling.projection = matrix;
        pooling.projection_bias = bias;
        if (CHECK(create(&transformer, folders[i], &weights, &pooling, &error) == FORELOOP_OK, "%s with windows %s",
                  folders[i], error.message)) {
            check_texts(transformer, &expected, "windowed", folders[i]);
            foreloop_transformer_close(transformer);
        }

        static const struct { size_t length, stride; } wrong[] = {{2, 1}, {27, 1}, {10, 9}};
        for (size_t k = 0; k < 3; k++) {
            pooling.window_length = wrong[k].length;
            pooling.window_stride = wrong[k].stride;
            CHECK(create(&transformer, folders[i], &weights, &pooling, &error) == FORELOOP_ERROR_VALUE,
                  "windows of %zu by %zu are refused: %s", wrong[k].length, wrong[k].stride, error.message);
        }
        free(matrix);
        free(bias);
        golden_close(&expected);
        golden_close(&weights);
    }
}

/* A text's bits depend neither on what was encoded before it nor on where it lies; ids go the same way. */
static void test_bits(void) {
    static const char text[] = "xxxfor i in range(1024): the body";
    static const char *const others[] = {"", "a", "the inner loop the inner loop the inner loop", "\xff\xfe"};
    foreloop_transformer *transformer;
    foreloop_encoder *encoder;
    foreloop_error error = {.message = ""};
    float alone[12], after[12], hidden[24 * 12];
    int same = 1;
    if (!CHECK(foreloop_transformer_open(&transformer, path("roberta"), NULL, &error) == FORELOOP_OK &&
                   foreloop_encoder_create(&encoder, transformer, &error) == FORELOOP_OK,
               "opens %s", error.message))
        return;
    foreloop_encode_text(encoder, text + 3, sizeof text - 4, alone, &error);
    char moved[64];
    for (size_t i = 0; i < 4; i++) {
        same &= foreloop_encode_text(encoder, others[i], strlen(others[i]), after, &error) == FORELOOP_OK;
        memcpy(moved + i, text + 3, sizeof text - 4);
        same &= foreloop_encode_text(encoder, moved + i, sizeof text - 4, after, &error) == FORELOOP_OK;
        same &= memcmp(alone, after, sizeof alone) == 0;
    }
    CHECK(same, "the same bits after other texts and at another address");

    const uint32_t ids[25] = {0, 70, 71, 2};
    CHECK(foreloop_encode_ids(encoder, ids, NULL, 4, hidden, &error) == FORELOOP_OK, "ids to hidden states");
    CHECK(foreloop_encode_ids(encoder, ids, NULL, 25, hidden, &error) == FORELOOP_ERROR_LIMIT, "too many: %s",
          error.message);
    CHECK(foreloop_encode_ids(encoder, ids, NULL, 0, hidden, &error) == FORELOOP_ERROR_ARGUMENT, "none: %s",
          error.message);
    CHECK(foreloop_encode_ids(encoder, NULL, NULL, 4, hidden, &error) == FORELOOP_ERROR_ARGUMENT &&
              foreloop_encode_text(encoder, NULL, 4, alone, &error) == FORELOOP_ERROR_ARGUMENT &&
              foreloop_encode_text(NULL, "a", 1, alone, &error) == FORELOOP_ERROR_ARGUMENT &&
              foreloop_encoder_create(&encoder, NULL, &error) == FORELOOP_ERROR_ARGUMENT &&
              foreloop_transformer_open(NULL, "x", NULL, &error) == FORELOOP_ERROR_ARGUMENT,
          "NULL is refused");
    foreloop_encoder_close(encoder);
    foreloop_transformer_close(transformer);
    foreloop_encoder_close(NULL);
    foreloop_transformer_close(NULL);
}

static void write_text(const char *folder, const char *name, const void *data, size_t size) {
    char file[600];
    snprintf(file, sizeof file, "%s/%s", folder, name);
    FILE *stream = fopen(file, "wb");
    if (!stream || fwrite(data, 1, size, stream) != size || fclose(stream) != 0) {
        printf("Bail out! cannot write %s\n", file);
        exit(1);
    }
}

static const char *const checkpoint_files[] = {
    "config.json",          "tokenizer.json", "model.safetensors", "modules.json", "sentence_bert_config.json",
    "1_Pooling/config.json"};
enum { FILE_COUNT = sizeof checkpoint_files / sizeof checkpoint_files[0] };

/* Opens a copy of bert/ in which file `name` holds `text` instead (NULL: is absent). */
static foreloop_status open_changed(const char *name, const char *text, foreloop_error *error) {
    char folder[] = "/tmp/foreloop-test-XXXXXX", file[600];
    if (!mkdtemp(folder))
        exit(1);
    snprintf(file, sizeof file, "%s/1_Pooling", folder);
    mkdir(file, 0700);
    const foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    for (size_t i = 0; i < FILE_COUNT; i++) {
        foreloop_file original;
        snprintf(file, sizeof file, "%s/%s", path("bert"), checkpoint_files[i]);
        if (strcmp(checkpoint_files[i], name) == 0) {
            if (text)
                write_text(folder, name, text, strlen(text));
        } else if (foreloop_file_open(&original, file, &allocator, true, error) == FORELOOP_OK) {
            write_text(folder, checkpoint_files[i], original.data, original.size);
            foreloop_file_close(&original);
        }
    }
    foreloop_transformer *transformer;
    const foreloop_status status = foreloop_transformer_open(&transformer, folder, NULL, error);
    if (status == FORELOOP_OK)
        foreloop_transformer_close(transformer);
    for (size_t i = 0; i < FILE_COUNT; i++) {
        snprintf(file, sizeof file, "%s/%s", folder, checkpoint_files[i]);
        unlink(file);
    }
    snprintf(file, sizeof file, "%s/1_Pooling", folder);
    rmdir(file);
    rmdir(folder);
    return status;
}

static void test_settings(void) {
    static const struct {
        const char *name, *text;
        foreloop_status expected;
        const char *named;
    } cases[] = {
        {"config.json", NULL, FORELOOP_ERROR_IO, "config.json"},
        {"tokenizer.json", NULL, FORELOOP_ERROR_IO, "tokenizer.json"},
        {"model.safetensors", NULL, FORELOOP_ERROR_IO, "model.safetensors"},
        {"model.safetensors", "\377\377\377\377\377\377\377\377{}", FORELOOP_ERROR_FORMAT, "model.safetensors"},
        {"1_Pooling/config.json", NULL, FORELOOP_ERROR_IO, "1_Pooling/config.json"},
        {"modules.json", NULL, FORELOOP_OK, ""},
        {"sentence_bert_config.json", NULL, FORELOOP_OK, ""},
        {"sentence_bert_config.json", "{\"max_seq_length\": null}", FORELOOP_OK, ""},
        {"sentence_bert_config.json", "{\"max_seq_length\": 4096}", FORELOOP_OK, ""},
        {"sentence_bert_config.json", "{\"max_seq_length\": 2}", FORELOOP_ERROR_VALUE, "2"},
        {"sentence_bert_config.json", "{\"do_lower_case\": true}", FORELOOP_ERROR_UNSUPPORTED, "do_lower_case"},
        {"1_Pooling/config.json", "{\"pooling_mode\": \"mean\", \"embedding_dimension\": 20}", FORELOOP_OK, ""},
        {"1_Pooling/config.json", "{\"pooling_mode\": \"cls\", \"include_prompt\": true}", FORELOOP_OK, ""},
        {"1_Pooling/config.json", "{\"pooling_mode_cls_token\": true}", FORELOOP_OK, ""},
        {"1_Pooling/config.json", "{\"pooling_mode\": \"lasttoken\"}", FORELOOP_ERROR_UNSUPPORTED, "lasttoken"},
        {"1_Pooling/config.json", "{\"pooling_mode\": [\"cls\", \"mean\"]}", FORELOOP_ERROR_UNSUPPORTED, "list"},
        {"1_Pooling/config.json", "{\"pooling_mode_max_tokens\": true}", FORELOOP_ERROR_UNSUPPORTED,
         "pooling_mode_max_tokens"},
        {"1_Pooling/config.json", "{\"pooling_mode_cls_token\": true, \"pooling_mode_mean_tokens\": true}",
         FORELOOP_ERROR_UNSUPPORTED, "cls and mean"},
        {"1_Pooling/config.json", "{\"word_embedding_dimension\": 21}", FORELOOP_ERROR_MISMATCH, "21"},
        {"modules.json", "[]", FORELOOP_ERROR_FORMAT, "Pooling"},
        {"modules.json", "[{\"path\": \"\", \"type\": \"a.Transformer\"}]", FORELOOP_ERROR_FORMAT, "Pooling"},
        {"modules.json", "[{\"path\": \"\", \"type\": \"a.Transformer\"}, {\"path\": \"2\", \"type\": \"a.Dense\"}]",
         FORELOOP_ERROR_UNSUPPORTED, "Dense"},
        {"modules.json", "[{\"path\": \"\", \"type\": \"a.Pooling\"}]", FORELOOP_ERROR_UNSUPPORTED, "order"},
        {"modules.json", "[{\"path\": \"\"}]", FORELOOP_ERROR_FORMAT, "type"},
        {"modules.json", "{}", FORELOOP_ERROR_FORMAT, "modules.json"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        foreloop_error error = {.message = ""};
        const foreloop_status status = open_changed(cases[i].name, cases[i].text, &error);
        CHECK(status == cases[i].expected && strstr(error.message, cases[i].named), "%s = %s gives %d: %s",
              cases[i].name, cases[i].text ? cases[i].text : "(absent)", (int)status, error.message);
    }
}

static void test_memory(void) {
    int leaks = 0, wrong = 0;
    for (size_t n = 0;; n++) {
        failing_allocator memory = {.fail_at = n};
        const foreloop_allocator allocator = failing_allocator_use(&memory);
        const foreloop_options options = {.size = sizeof options, .allocator = &allocator};
        foreloop_transformer *transformer;
        foreloop_encoder *encoder;
        foreloop_error error;
        float embedding[20];
        foreloop_status status = foreloop_transformer_open(&transformer, path("bert"), &options, &error);
        if (status == FORELOOP_OK) {
            status = foreloop_encoder_create(&encoder, transformer, &error);
            if (status == FORELOOP_OK) {
                status = foreloop_encode_text(encoder, "the inner loop", 14, embedding, &error);
                const size_t calls = memory.calls;
                if (status == FORELOOP_OK)
                    status = foreloop_encode_text(encoder, "the inner loop", 14, embedding, &error);
                wrong += memory.calls != calls; /* warm: nothing more is allocated */
                foreloop_encoder_close(encoder);
            }
            foreloop_transformer_close(transformer);
        }
        leaks += memory.live != 0;
        wrong += status != (memory.failed ? FORELOOP_ERROR_MEMORY : FORELOOP_OK);
        if (!memory.failed) {
            CHECK(n > 60 && !leaks && !wrong, "each of %zu allocations may fail: %d leaks, %d wrong codes", n, leaks,
                  wrong);
            break;
        }
    }
}

int main(int argc, char **argv) {
    root = argc > 1 ? argv[1] : "tests/golden/transformer";
    test_checkpoints();
    test_windows();
    test_bits();
    test_settings();
    test_memory();
    return tap_done();
}
