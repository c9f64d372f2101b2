/* Files that are wrong, damaged or beyond what the library does, and memory that runs out at every place. */
#include "common/file.h"
#include "common/json.h"
#include "failing_allocator.h"
#include "random.h"
#include "tokenizer_test.h"

#define BPE(fields)                         "{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]" fields "}"
#define WITH_MODEL(model)                   DOCUMENT(model, "null", "null", "null", "")
#define WITH_NORMALIZER(normalizer)         DOCUMENT(BPE(""), normalizer, "null", "null", "")
#define WITH_PRE_TOKENIZER(pre_tokenizer)   DOCUMENT(BPE(""), "null", pre_tokenizer, "null", "")
#define WITH_POST_PROCESSOR(post_processor) DOCUMENT(BPE(""), "null", "null", post_processor, "")

static void test_unsupported(void) {
    static const struct {
        const char *document, *message;
    } cases[] = {
        {WITH_MODEL("{\"type\":\"Unigram\",\"vocab\":[]}"), "Unigram"},
        {WITH_MODEL("{\"type\":\"WordLevel\",\"vocab\":{}}"), "WordLevel"},
        {WITH_MODEL("{\"type\":\"BPE\\u0000\",\"vocab\":{}}"), "BPE"},
        {WITH_MODEL(BPE(",\"byte_fallback\":true,\"end_of_word_suffix\":\"_\"")), "byte_fallback"},
        {WITH_MODEL(BPE(",\"dropout\":0.1")), "dropout"},
        {WITH_NORMALIZER("{\"type\":\"Nmt\"}"), "Nmt"},
        {WITH_NORMALIZER("{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"\"}"), "Precompiled"},
        {WITH_NORMALIZER("{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},{\"type\":\"ByteLevel\"}]}"),
         "ByteLevel"},
        {WITH_NORMALIZER("{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"a+\"},\"content\":\"\"}"), "Regex"},
        {WITH_NORMALIZER("{\"type\":\"Replace\",\"pattern\":{\"String\":\"\"},\"content\":\"\"}"), "empty"},
        {WITH_NORMALIZER("{\"type\":\"Prepend\",\"prepend\":\"\"}"), "Prepend"},
        {WITH_PRE_TOKENIZER("{\"type\":\"Metaspace\",\"replacement\":\"_\"}"), "Metaspace"},
        {WITH_PRE_TOKENIZER("{\"type\":\"UnicodeScripts\"}"), "UnicodeScripts"},
        {WITH_PRE_TOKENIZER("{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\d\"},\"behavior\":\"Isolated\","
                            "\"invert\":false}"),
         "Regex \"\\d\""},
        {WITH_PRE_TOKENIZER("{\"type\":\"Split\",\"pattern\":{\"String\":\"\"},\"behavior\":\"Isolated\","
                            "\"invert\":false}"),
         "empty"},
        {WITH_PRE_TOKENIZER("{\"type\":\"Punctuation\",\"behavior\":\"Other\"}"), "Other"},
        {WITH_POST_PROCESSOR("{\"type\":\"Other\"}"), "Other"},
        {WITH_POST_PROCESSOR("{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"B\"}}],"
                             "\"special_tokens\":{}}"),
         "sequence A"},
        {WITH_POST_PROCESSOR("{\"type\":\"Sequence\",\"processors\":[{\"type\":\"BertProcessing\",\"sep\":[\"a\",0],"
                             "\"cls\":[\"a\",0]},{\"type\":\"ByteLevel\",\"add_prefix_space\":true,"
                             "\"trim_offsets\":true}]}"),
         "behind"},
        {"{\"version\":\"2.0\",\"model\":" BPE("") "}", "2.0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_refused(cases[i].document, FORELOOP_ERROR_UNSUPPORTED, cases[i].message, "unsupported");
}

static void test_malformed(void) {
    static const struct {
        const char *document, *message;
    } cases[] = {
        {"", "object"},
        {"[]", "object"},
        {"{}", "model"},
        {WITH_MODEL("null"), "object"},
        {WITH_MODEL("{\"vocab\":{},\"merges\":[]}"), "type"},
        {WITH_MODEL("{\"type\":\"BPE\",\"merges\":[]}"), "vocab"},
        {WITH_MODEL("{\"type\":\"BPE\",\"vocab\":{}}"), "merges"},
        {WITH_MODEL("{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]}"), "same id"},
        {WITH_MODEL("{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[\"a b\"]}"), "result of the merge"},
        {WITH_MODEL(BPE(",\"merges\":[]")), "twice"},
        {WITH_MODEL("{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"b a\"]}"), "left part \"b\""},
        {WITH_MODEL("{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a b\"]}"), "right part \"b\""},
        {WITH_MODEL("{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a\"]}"), "space"},
        {WITH_MODEL("{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a a a\"]}"), "pair"},
        {WITH_MODEL("{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[[\"a\"]]}"), "two tokens"},
        {WITH_MODEL("{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a a\"],\"continuing_subword_prefix\":\"##\"}"),
         "continuing_subword_prefix"},
        {WITH_MODEL("{\"type\":\"WordPiece\",\"vocab\":{},\"unk_token\":\"a\"}"), "max_input_chars_per_word"},
        {WITH_NORMALIZER("{}"), "type"},
        {WITH_NORMALIZER("{\"type\":\"BertNormalizer\"}"), "clean_text"},
        {WITH_NORMALIZER("{\"type\":\"Strip\",\"strip_left\":true}"), "strip_right"},
        {WITH_NORMALIZER("{\"type\":\"Sequence\"}"), "normalizers"},
        {WITH_NORMALIZER("{\"type\":\"Replace\",\"pattern\":{\"Other\":\"a\"},\"content\":\"\"}"), "pattern"},
        {WITH_PRE_TOKENIZER("{\"type\":\"ByteLevel\"}"), "add_prefix_space"},
        {WITH_PRE_TOKENIZER("{\"type\":\"Digits\"}"), "individual_digits"},
        {WITH_PRE_TOKENIZER("{\"type\":\"Split\",\"behavior\":\"Isolated\",\"invert\":false}"), "pattern"},
        {WITH_POST_PROCESSOR("{\"type\":\"RobertaProcessing\",\"sep\":[\"a\",0],\"cls\":[\"a\",0]}"),
         "add_prefix_space"},
        {WITH_POST_PROCESSOR("{\"type\":\"BertProcessing\",\"sep\":[\"a\",0]}"), "cls"},
        {WITH_POST_PROCESSOR("{\"type\":\"BertProcessing\",\"sep\":[\"a\"],\"cls\":[\"a\",0]}"), "pair"},
        {WITH_POST_PROCESSOR("{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"x\"}}],"
                             "\"special_tokens\":{}}"),
         "\"x\""},
        {DOCUMENT(BPE(""), "null", "null", "null", "{\"id\":3,\"content\":\"x\",\"special\":true}"), "single_word"},
        {DOCUMENT(BPE(""), "null", "null", "null", "{" PLAIN ",\"id\":3}"), "content"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_refused(cases[i].document, FORELOOP_ERROR_FORMAT, cases[i].message, "malformed");
    check_refused(WITH_MODEL("{\"type\":\"BPE\",\"vocab\":{\"a\":4294967296},\"merges\":[]}"), FORELOOP_ERROR_VALUE,
                  "4294967295", "an id that is too large");
    check_refused(WITH_MODEL("{\"type\":\"BPE\",\"vocab\":{\"a\":-1},\"merges\":[]}"), FORELOOP_ERROR_VALUE, "-1",
                  "a negative id");
}

static void test_extreme_ids(void) {
    foreloop_tokenizer *tokenizer =
        open_document(DOCUMENT("{\"type\":\"BPE\",\"vocab\":{\"a\":4294967295,\"\":7},\"merges\":[]}", "null", "null",
                               "null", ADDED("1", "b", PLAIN)));
    CHECK_TOKENS(tokenizer, "ab", "a|b", "0-1 1-2", "the largest id");
    CHECK(foreloop_tokenizer_vocabulary_size(tokenizer) == (size_t)UINT32_MAX + 1, "its vocabulary's size");
    foreloop_tokenizer_close(tokenizer);
}

/* Opens data[size] and tokenises a text; whatever it holds, there must be a status, no leak and no access outside. */
static foreloop_status try_document(const char *data, size_t size, size_t fail_at, int *failed) {
    static const char text[] = "for i in T.grid(12): H\xc3\xa9llo <mask> \xe4\xb8\xad 's\n  x\xff[CLS]";
    failing_allocator memory = {.fail_at = fail_at};
    foreloop_allocator allocator = failing_allocator_use(&memory);
    foreloop_options options = {.size = sizeof options, .allocator = &allocator};
    foreloop_tokenizer *tokenizer = NULL;
    foreloop_encoding *encoding = NULL;
    foreloop_error error = {0};
    char *copy = malloc(size > 0 ? size : 1); /* of this size, so that the sanitizer sees reads beyond it */
    foreloop_status status;

    if (size > 0)
        memcpy(copy, data, size);
    status = foreloop_tokenizer_open_memory(&tokenizer, copy, size, &options, &error);
    free(copy);
    if (status == FORELOOP_OK)
        status = foreloop_encoding_create(&encoding, tokenizer, &error);
    if (status == FORELOOP_OK)
        status = foreloop_tokenize(encoding, text, sizeof text - 1, 1, &error);
    if (status != FORELOOP_OK && (error.code != status || error.message[0] == '\0'))
        status = (foreloop_status)-1;
    if (status == FORELOOP_OK && foreloop_encoding_count(encoding) == 0)
        status = (foreloop_status)-2;
    foreloop_encoding_close(encoding);
    foreloop_tokenizer_close(tokenizer);
    if (failed)
        *failed = memory.failed;
    return memory.live == 0 ? status : (foreloop_status)-3;
}

static void test_damaged(const char *data, size_t size, const char *name) {
    random_source random = {99};
    char *damaged = malloc(size);
    size_t wrong = 0, refused = 0;

    for (size_t length = 0; length < size; length++) {
        foreloop_status status = try_document(data, length, SIZE_MAX, NULL);
        wrong += status != FORELOOP_ERROR_FORMAT;
    }
    CHECK(wrong == 0, "%s: each of %zu truncations is a format error (%zu are not)", name, size, wrong);
    for (int i = 0; i < 4000; i++) {
        memcpy(damaged, data, size);
        for (uint32_t changes = 1 + random_below(&random, 3); changes > 0; changes--)
            damaged[random_below(&random, (uint32_t)size)] = (char)random_below(&random, 256);
        foreloop_status status = try_document(damaged, size, SIZE_MAX, NULL);
        wrong += (int)status < 0;
        refused += status != FORELOOP_OK;
    }
    CHECK(wrong == 0 && refused > 0, "%s: damaged bytes give a status (%zu refused, %zu wrong)", name, refused, wrong);
    free(damaged);
}

static void test_memory(const char *data, size_t size, const char *name) {
    size_t wrong = 0, n = 0;
    for (int failed = 1; failed; n++) {
        foreloop_status status = try_document(data, size, n, &failed);
        wrong += status != (failed ? FORELOOP_ERROR_MEMORY : FORELOOP_OK);
    }
    CHECK(wrong == 0 && n > 10, "%s: each of %zu allocations may fail (%zu wrong)", name, n, wrong);
}

/* A text that needs every kind of scratch: long words, merged block by block, and what is no UTF-8. */
static void fill_long_text(char *text, size_t size) {
    random_source random = {7};
    for (size_t i = 0; i < size; i++)
        text[i] = i < size / 4       ? 'a'
                  : i < size / 2     ? (char)('a' + random_below(&random, 26))
                  : i < 3 * size / 4 ? (char)random_below(&random, 256)
                                     : '\xff';
}

/* An encoding whose allocations failed in the midst of a text does its next text as ever. */
static void test_memory_of_texts(const char *data, size_t size, const char *name) {
    enum { LENGTH = 20000 };
    static char text[LENGTH];
    size_t wrong = 0, n = 0, count = 0;

    fill_long_text(text, LENGTH);
    for (int failed = 1; failed; n++) {
        failing_allocator memory = {.fail_at = SIZE_MAX};
        foreloop_allocator allocator = failing_allocator_use(&memory);
        foreloop_options options = {.size = sizeof options, .allocator = &allocator};
        foreloop_tokenizer *tokenizer = NULL;
        foreloop_encoding *encoding = NULL;
        foreloop_error error = {0};

        if (!CHECK(foreloop_tokenizer_open_memory(&tokenizer, data, size, &options, &error) == FORELOOP_OK &&
                       foreloop_encoding_create(&encoding, tokenizer, &error) == FORELOOP_OK,
                   "%s: opened %s", name, error.message))
            return;
        memory.fail_at = memory.calls + n;
        foreloop_status status = foreloop_tokenize(encoding, text, LENGTH, 1, &error);
        failed = memory.failed;
        wrong += status != (failed ? FORELOOP_ERROR_MEMORY : FORELOOP_OK);
        memory.fail_at = SIZE_MAX;
        wrong += foreloop_tokenize(encoding, text, LENGTH, 1, &error) != FORELOOP_OK;
        wrong += n > 0 && foreloop_encoding_count(encoding) != count;
        count = foreloop_encoding_count(encoding);
        foreloop_encoding_close(encoding);
        foreloop_tokenizer_close(tokenizer);
        wrong += memory.live != 0;
    }
    CHECK(wrong == 0 && n > 3, "%s: each of %zu allocations of a text may fail (%zu wrong)", name, n, wrong);
}

static void test_file(const char *directory, const char *name) {
    const foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    foreloop_file file = {0};
    foreloop_error error = {0};
    char path[4096];

    snprintf(path, sizeof path, "%s/%s", directory, name);
    if (!CHECK(foreloop_file_open(&file, path, &allocator, true, &error) == FORELOOP_OK, "%s %s", path, error.message))
        return;
    test_damaged((const char *)file.data, file.size, name);
    test_memory((const char *)file.data, file.size, name);
    test_memory_of_texts((const char *)file.data, file.size, name);
    foreloop_file_close(&file);
}

/* Every kind of component at once. */
static const char everything[] =
    DOCUMENT("{\"type\":\"BPE\",\"vocab\":{\"u\":0,\"a\":1,\"##b\":2,\"ab\":3,\"##b$\":4},\"merges\":[[\"a\",\"##b\"]],"
             "\"unk_token\":\"u\",\"continuing_subword_prefix\":\"##\",\"end_of_word_suffix\":\"$\",\"fuse_unk\":true}",
             "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFKC\"},{\"type\":\"StripAccents\"},"
             "{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":true},{\"type\":\"Lowercase\"},"
             "{\"type\":\"Replace\",\"pattern\":{\"String\":\"x\"},\"content\":\"yy\"},{\"type\":\"Prepend\","
             "\"prepend\":\"_\"},{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":true,"
             "\"strip_accents\":true,\"lowercase\":true}]}",
             "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"String\":\".\"},"
             "\"behavior\":\"MergedWithNext\",\"invert\":false},{\"type\":\"Digits\",\"individual_digits\":false},"
             "{\"type\":\"Punctuation\",\"behavior\":\"Contiguous\"},{\"type\":\"ByteLevel\",\"add_prefix_space\":true,"
             "\"trim_offsets\":true,\"use_regex\":true}]}",
             "{\"type\":\"Sequence\",\"processors\":[{\"type\":\"ByteLevel\",\"add_prefix_space\":true,"
             "\"trim_offsets\":true,\"use_regex\":true},{\"type\":\"TemplateProcessing\",\"single\":["
             "{\"SpecialToken\":{\"id\":\"s\",\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],"
             "\"special_tokens\":{\"s\":{\"id\":\"s\",\"ids\":[1,2],\"tokens\":[\"a\",\"b\"]}}}]}",
             ADDED("5", "<mask>", FLAGS("true", "true", "true", "false")) "," ADDED(
                 "6", "Grid", FLAGS("false", "false", "false", "true")));

static const char bytes[] =
    DOCUMENT(BPE(""), "null", "{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true}", "null", "");

int main(int argument_count, char **arguments) {
    const char *directory = argument_count > 1 ? arguments[1] : "tests/golden/tokenizer";
    test_unsupported();
    test_malformed();
    test_extreme_ids();
    test_file(directory, "wordpiece.tokenizer.json");
    test_damaged(everything, sizeof everything - 1, "everything");
    test_memory(everything, sizeof everything - 1, "everything");
    test_memory_of_texts(everything, sizeof everything - 1, "everything");
    test_memory_of_texts(bytes, sizeof bytes - 1, "byte level");
    return tap_done();
}
