/* What is made of a text's tokens: windows, padding and truncation as the file asks, decoding; strict UTF-8; and the
 * older files that tokenizers come in. */
#include "tokenizer_test.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define LETTERS                                                                                                        \
    "{\"type\":\"BPE\",\"vocab\":{\"[\":0,\"]\":1,\"p\":2,\"a\":3,\"b\":4,\"c\":5,\"d\":6,\"e\":7},\"merges\":[]}"
#define BRACKETS "{\"type\":\"BertProcessing\",\"sep\":[\"]\",1],\"cls\":[\"[\",0]}"

static foreloop_tokenizer *open_sections(const char *truncation, const char *padding) {
    char document[2048];
    snprintf(document, sizeof document,
             "{\"truncation\":%s,\"padding\":%s,\"post_processor\":" BRACKETS ",\"model\":" LETTERS "}", truncation,
             padding);
    return open_document(document);
}

/* The windows as "[ab] [cd]pp", padding as p. */
static void check_windows(const foreloop_tokenizer *tokenizer, const char *text,
                          const foreloop_tokenize_options *options, const char *wanted, const char *name) {
    char found[1024] = "";
    foreloop_encoding *encoding = NULL;
    foreloop_error error = {0};
    size_t used = 0;

    if (!tokenizer || foreloop_encoding_create(&encoding, tokenizer, &error) != FORELOOP_OK)
        return;
    if (foreloop_tokenize_with(encoding, text, strlen(text), options, &error) != FORELOOP_OK)
        used = (size_t)snprintf(found, sizeof found, "error: %.200s", error.message);
    for (size_t i = 0; i < foreloop_encoding_window_count(encoding); i++) {
        foreloop_window window = {.size = sizeof window};
        CHECK(foreloop_encoding_window(encoding, i, &window) == 1, "a window");
        used += (size_t)snprintf(found + used, sizeof found - used, "%s", i ? " " : "");
        for (size_t j = 0; j < window.count; j++) {
            const bool padded = j < window.content_begin || j >= window.content_end;
            const char *token = foreloop_tokenizer_token(tokenizer, window.ids[j]);
            CHECK(!padded || (window.ids[j] == 2 && window.offsets[2 * j] == 0 && window.offsets[2 * j + 1] == 0),
                  "padding");
            used += (size_t)snprintf(found + used, sizeof found - used, "%s", token);
        }
    }
    CHECK(strcmp(found, wanted) == 0, "%s: %s, expected %s", name, found, wanted);
    CHECK(foreloop_encoding_window(encoding, foreloop_encoding_window_count(encoding),
                                   &(foreloop_window){.size = sizeof(foreloop_window)}) == 0,
          "no window behind the last");
    foreloop_encoding_close(encoding);
}

#define TRUNCATION(direction, length, stride, strategy)                                                                \
    "{\"direction\":\"" direction "\",\"max_length\":" length ",\"stride\":" stride ",\"strategy\":\"" strategy "\"}"
#define PADDING(strategy, direction, multiple)                                                                         \
    "{\"strategy\":" strategy ",\"direction\":\"" direction "\",\"pad_to_multiple_of\":" multiple                      \
    ",\"pad_id\":2,\"pad_type_id\":0,\"pad_token\":\"p\"}"

static void test_windows(void) {
    foreloop_tokenize_options options;
    foreloop_tokenizer *tokenizer = open_sections("null", "null");

    foreloop_tokenize_options_init(&options, sizeof options);
    check_windows(tokenizer, "abcde", NULL, "[abcde]", "no options");
    check_windows(tokenizer, "abcde", &options, "[abcde]", "the defaults");
    options.window_length = 4;
    check_windows(tokenizer, "abcde", &options, "[ab] [cd] [e]", "windows");
    check_windows(tokenizer, "", &options, "[]", "a window of nothing");
    options.window_overlap = 1;
    check_windows(tokenizer, "abcde", &options, "[ab] [bc] [cd] [de]", "windows that overlap");
    options.no_special = 1;
    check_windows(tokenizer, "abcde", &options, "abcd de", "windows without special tokens");
    options.window_overlap = 4;
    check_windows(
        tokenizer, "abcde", &options,
        "error: windows of 4 tokens have no room for 0 special tokens and more than the 4 that they share; make "
        "them longer",
        "an overlap as long as the window");
    options.window_overlap = SIZE_MAX;
    check_windows(tokenizer, "abcde", &options,
                  "error: windows of 4 tokens have no room for 0 special tokens and more than the 18446744073709551615 "
                  "that they share; make them longer",
                  "an overlap that no sum may wrap");
    options = (foreloop_tokenize_options){.size = sizeof options, .window_length = SIZE_MAX};
    check_windows(tokenizer, "abc", &options, "[abc]", "the longest window");
    options = (foreloop_tokenize_options){.size = sizeof options, .window_length = 1};
    check_windows(
        tokenizer, "a", &options,
        "error: windows of 1 tokens have no room for 2 special tokens and more than the 0 that they share; make "
        "them longer",
        "no room for the special tokens");
    options.as_file = 1;
    check_windows(tokenizer, "a", &options,
                  "error: foreloop_tokenize_options: as_file and window_length exclude each other", "two rules");
    options.window_length = 0;
    check_windows(tokenizer, "abc", &options, "[abc]", "a file that asks for nothing");
    foreloop_tokenizer_close(tokenizer);
}

static void test_as_file(void) {
    static const struct {
        const char *truncation, *padding, *text, *wanted;
    } cases[] = {
        {TRUNCATION("Right", "4", "0", "LongestFirst"), "null", "abcde", "[ab] [cd] [e]"},
        {TRUNCATION("Left", "4", "1", "OnlyFirst"), "null", "abcde", "[de] [cd] [bc] [ab]"},
        {TRUNCATION("Left", "4", "0", "LongestFirst"), "null", "abcde", "[de] [bc] [a]"},
        {TRUNCATION("Right", "2", "0", "LongestFirst"), "null", "ab", "[] [ab]"},
        {TRUNCATION("Right", "9", "0", "OnlySecond"), "null", "ab", "[ab]"},
        {"null", PADDING("{\"Fixed\":6}", "Right", "null"), "ab", "[ab]pp"},
        {"null", PADDING("{\"Fixed\":6}", "Left", "null"), "ab", "pp[ab]"},
        {"null", PADDING("{\"Fixed\":3}", "Right", "null"), "ab", "[ab]"},
        {"null", PADDING("\"BatchLongest\"", "Right", "8"), "ab", "[ab]pppp"},
        {TRUNCATION("Right", "4", "0", "LongestFirst"), PADDING("\"BatchLongest\"", "Left", "3"), "abc",
         "pp[ab] ppp[c]"},
    };
    const foreloop_tokenize_options options = {.size = sizeof options, .as_file = 1};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        foreloop_tokenizer *tokenizer = open_sections(cases[i].truncation, cases[i].padding);
        check_windows(tokenizer, cases[i].text, &options, cases[i].wanted, cases[i].truncation);
        CHECK_TOKENS(tokenizer, "abcde", "a|b|c|d|e", "0-1 1-2 2-3 3-4 4-5", "off by default");
        foreloop_tokenizer_close(tokenizer);
    }
    foreloop_tokenizer *tokenizer = open_sections(TRUNCATION("Right", "4", "0", "OnlySecond"), "null");
    check_windows(tokenizer, "abc", &options,
                  "error: the truncation strategy OnlySecond needs a second text, and the only one has 3 tokens",
                  "a second text");
    foreloop_tokenizer_close(tokenizer);
    check_refused("{\"truncation\":{\"stride\":1},\"model\":" LETTERS "}", FORELOOP_ERROR_FORMAT, "max_length",
                  "truncation without a length");
    check_refused("{\"truncation\":" TRUNCATION("Up", "4", "0", "OnlyFirst") ",\"model\":" LETTERS "}",
                  FORELOOP_ERROR_UNSUPPORTED, "\"Up\"", "a direction");
    check_refused("{\"padding\":" PADDING("\"Shortest\"", "Left", "null") ",\"model\":" LETTERS "}",
                  FORELOOP_ERROR_UNSUPPORTED, "\"Shortest\"", "a strategy");
}

static void test_strict(void) {
    static const struct {
        const char *text;
        int64_t at; /* -1: none */
    } cases[] = {{"a\xE2\x82", 1}, {"\xED\xA0\x80", 0}, {"ab\xC0\xAF", 2},         {"\xF5\x80\x80\x80", 0},
                 {"\xC3\xA9", -1}, {"12345678\xFF", 8}, {"\xF0\x9F\x91\xA9 ", -1}, {"aaaaaaaaaaaaaaaa\xE4\xB8", 16}};
    foreloop_tokenizer *tokenizer =
        open_document(DOCUMENT("{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}", "null", "null", "null", ""));
    const foreloop_tokenize_options options = {.size = sizeof options, .strict = 1};
    foreloop_encoding *encoding = NULL;
    CHECK(foreloop_encoding_create(&encoding, tokenizer, NULL) == FORELOOP_OK, "an encoding");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        foreloop_error error = {.position = UINT64_MAX};
        foreloop_status status =
            foreloop_tokenize_with(encoding, cases[i].text, strlen(cases[i].text), &options, &error);
        CHECK(cases[i].at < 0 ? status == FORELOOP_OK
                              : status == FORELOOP_ERROR_FORMAT && error.position_kind == FORELOOP_POSITION_BYTE &&
                                    error.position == (uint64_t)cases[i].at,
              "strict case %zu: status %d at %llu", i, (int)status, (unsigned long long)error.position);
    }
    foreloop_encoding_close(encoding);
    foreloop_tokenizer_close(tokenizer);
}

static void check_decoded(const foreloop_tokenizer *tokenizer, const uint32_t *ids, size_t count, int skip_special,
                          const char *wanted) {
    char text[256] = "";
    size_t length = 0;
    foreloop_error error = {0};
    if (foreloop_tokenizer_decode(tokenizer, ids, count, skip_special, text, sizeof text - 1, &length, &error) ==
        FORELOOP_OK)
        text[length] = '\0';
    else
        snprintf(text, sizeof text, "error: %.200s", error.message);
    CHECK(strcmp(text, wanted) == 0, "decoded to \"%s\", expected \"%s\"", text, wanted);
}

static void test_decode(void) {
    static const uint32_t ids[] = {3, 0, 1, 2}, unknown[] = {0, 9}, part[] = {4};
    char document[1024];
    foreloop_tokenizer *tokenizer;
    size_t length = 77;

    snprintf(document, sizeof document,
             "{\"decoder\":{\"type\":\"ByteLevel\"},\"added_tokens\":[" ADDED(
                 "3", "<s>", PLAIN) "],\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"\\u0120b\":1,"
                                    "\"\\u00c3\\u00a9\":2,\"<s>\":3,\"\\u00c3\":4},"
                                    "\"merges\":[]}}");
    tokenizer = open_document(document);
    check_decoded(tokenizer, ids, 4, 0, "<s>a b\xc3\xa9");
    check_decoded(tokenizer, ids, 4, 1, "a b\xc3\xa9");
    check_decoded(tokenizer, ids, 0, 1, "");
    check_decoded(tokenizer, part, 1, 1, "\xef\xbf\xbd");
    check_decoded(tokenizer, unknown, 2, 1, "error: no token has the id 9, item 1 of what is decoded");
    CHECK(foreloop_tokenizer_decode(tokenizer, ids, 4, 1, NULL, 0, &length, NULL) == FORELOOP_OK && length == 5,
          "the length alone");
    char small[4] = "zzzz";
    CHECK(foreloop_tokenizer_decode(tokenizer, ids, 4, 1, small, 4, &length, NULL) == FORELOOP_ERROR_LIMIT &&
              small[0] == 'z' && length == 5,
          "no room");
    foreloop_tokenizer_close(tokenizer);

    tokenizer = open_document("{\"decoder\":{\"type\":\"Metaspace\"},\"model\":" LETTERS "}");
    check_decoded(tokenizer, ids, 1, 1, "error: the decoder \"Metaspace\" is not supported");
    foreloop_tokenizer_close(tokenizer);
    tokenizer = open_document("{\"model\":" LETTERS "}");
    check_decoded(tokenizer, ids, 2, 1, "a [");
    foreloop_tokenizer_close(tokenizer);
    tokenizer =
        open_document("{\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true},\"model\":{\"type\":"
                      "\"WordPiece\",\"unk_token\":\"a\",\"continuing_subword_prefix\":\"##\","
                      "\"max_input_chars_per_word\":9,\"vocab\":{\"a\":0,\"##b\":1,\".\":2,\"c\":3}}}");
    check_decoded(tokenizer, ids, 4, 1, "c ab.");
    foreloop_tokenizer_close(tokenizer);
}

static void test_byte_fallback(void) {
#define FALLBACK(more)                                                                                                 \
    DOCUMENT(                                                                                                          \
        "{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"<0xC3>\":1,\"<0xA9>\":2,\"u\":3,\"<0xC3><0xA9>\":4},\"merges\":[" more \
        "],\"byte_fallback\":true,\"unk_token\":\"u\"}",                                                               \
        "null", "null", "null", "")
    foreloop_tokenizer *tokenizer = open_document(FALLBACK(""));
    CHECK_TOKENS(tokenizer, "a\xc3\xa9", "a|<0xC3>|<0xA9>", "0-1 1-3 1-3", "bytes of an unknown character");
    CHECK_TOKENS(tokenizer,
                 "x\xc3\xa9"
                 "a",
                 "<0xC3>|<0xA9>|u|a", NULL, "an unknown one waits for the next known one");
    foreloop_tokenizer_close(tokenizer);
    tokenizer = open_document(FALLBACK("[\"<0xC3>\",\"<0xA9>\"]"));
    CHECK_TOKENS(tokenizer, "\xc3\xa9", "<0xC3><0xA9>", "0-2", "bytes that merge");
    foreloop_tokenizer_close(tokenizer);
}

static void write_file(const char *path, const char *content) {
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(content, 1, strlen(content), file) != strlen(content) || fclose(file) != 0)
        exit(99);
}

static void test_files(void) {
    char folder[] = "/tmp/foreloop-test-XXXXXX", vocabulary[64], merges[64], lines[64];
    foreloop_vocabulary_options options;
    foreloop_tokenizer *tokenizer = NULL;
    foreloop_error error = {0};
    if (!mkdtemp(folder))
        exit(99);
    snprintf(vocabulary, sizeof vocabulary, "%s/vocab.json", folder);
    snprintf(merges, sizeof merges, "%s/merges.txt", folder);
    snprintf(lines, sizeof lines, "%s/vocab.txt", folder);
    foreloop_vocabulary_options_init(&options, sizeof options);

    write_file(vocabulary, "{\"a\":0,\"b\":1,\"ab\":2,\"\\u0120\":3,\"\\u0120ab\":4,\"<|endoftext|>\":5}");
    write_file(merges, "#version: 0.2\na b\n\xc4\xa0 ab\r\n");
    CHECK(foreloop_tokenizer_open_bpe(&tokenizer, vocabulary, merges, NULL, &error) == FORELOOP_OK, "%s",
          error.message);
    CHECK_TOKENS(tokenizer, "ab ab<|endoftext|>",
                 "ab|\xc4\xa0"
                 "ab|<|endoftext|>",
                 "0-2 2-5 5-18", "as GPT-2");
    foreloop_tokenizer_close(tokenizer);
    options.add_prefix_space = 1;
    CHECK(foreloop_tokenizer_open_bpe(&tokenizer, vocabulary, merges, &options, NULL) == FORELOOP_OK, "a space first");
    CHECK_TOKENS(tokenizer, "ab",
                 "\xc4\xa0"
                 "ab",
                 "0-2", "a space first");
    foreloop_tokenizer_close(tokenizer);
    write_file(merges, "a b\na  b\n");
    CHECK(foreloop_tokenizer_open_bpe(&tokenizer, vocabulary, merges, NULL, &error) == FORELOOP_ERROR_FORMAT &&
              error.position_kind == FORELOOP_POSITION_LINE && error.position == 2,
          "a malformed merge: %s", error.message);
    CHECK(foreloop_tokenizer_open_bpe(&tokenizer, vocabulary, lines, NULL, &error) == FORELOOP_ERROR_IO, "no merges");
    /* Errors of the loader of tokenizer.json name the file and the line or byte in it. */
    write_file(merges, "#version: 0.2\r\n\na b\na x\n");
    CHECK(foreloop_tokenizer_open_bpe(&tokenizer, vocabulary, merges, NULL, &error) == FORELOOP_ERROR_FORMAT &&
              error.position_kind == FORELOOP_POSITION_LINE && error.position == 4 &&
              strstr(error.message, "/merges.txt: line 4: the merge's right part \"x\""),
          "a merge of no token: %s", error.message);
    write_file(merges, "\"\\ b\n");
    CHECK(foreloop_tokenizer_open_bpe(&tokenizer, vocabulary, merges, NULL, &error) == FORELOOP_ERROR_FORMAT &&
              error.position == 1,
          "a merge with quotes: %s", error.message);
    write_file(merges, "a b\n\xff b\n");
    CHECK(foreloop_tokenizer_open_bpe(&tokenizer, vocabulary, merges, NULL, &error) == FORELOOP_ERROR_FORMAT &&
              error.position == 2 && strstr(error.message, "/merges.txt: line 2: invalid UTF-8"),
          "a merge that is not UTF-8: %s", error.message);
    write_file(merges, "");
    write_file(vocabulary, "{\"a\": 0, \"b\": 0}");
    CHECK(foreloop_tokenizer_open_bpe(&tokenizer, vocabulary, merges, NULL, &error) == FORELOOP_ERROR_FORMAT &&
              error.position_kind == FORELOOP_POSITION_BYTE && error.position == 16 &&
              strstr(error.message, "/vocab.json: byte 16: the tokens \"a\" and \"b\" have the same id"),
          "two tokens with one id: %s", error.message);
    CHECK(foreloop_tokenizer_open_bpe(&tokenizer, vocabulary, merges, NULL, NULL) == FORELOOP_ERROR_FORMAT, "untold");

    write_file(lines, "[PAD]\n[UNK]\n[CLS]\n[SEP]\nab\n##c\nAb\n");
    CHECK(foreloop_tokenizer_open_wordpiece(&tokenizer, lines, NULL, &error) == FORELOOP_OK, "%s", error.message);
    CHECK_TOKENS(tokenizer, "ABC Ab", "ab|##c|ab", "0-2 2-3 4-6", "uncased");
    foreloop_tokenizer_close(tokenizer);
    options.keep_case = 1;
    CHECK(foreloop_tokenizer_open_wordpiece(&tokenizer, lines, &options, &error) == FORELOOP_OK, "%s", error.message);
    CHECK_TOKENS(tokenizer, "Ab AB", "Ab|[UNK]", "0-2 3-5", "cased");
    foreloop_tokenizer_close(tokenizer);
    write_file(lines, "a\nb\n");
    CHECK(foreloop_tokenizer_open_wordpiece(&tokenizer, lines, NULL, &error) == FORELOOP_ERROR_MISMATCH &&
              strstr(error.message, "[CLS]"),
          "a vocabulary without special tokens: %s", error.message);
    write_file(lines, "[CLS]\n[SEP]\n\n\xff\nb\n");
    CHECK(foreloop_tokenizer_open_wordpiece(&tokenizer, lines, NULL, &error) == FORELOOP_ERROR_FORMAT &&
              error.position_kind == FORELOOP_POSITION_LINE && error.position == 4 &&
              strstr(error.message, "/vocab.txt: line 4: invalid UTF-8"),
          "a token that is not UTF-8: %s", error.message);
    CHECK(foreloop_tokenizer_open_wordpiece(NULL, lines, NULL, &error) == FORELOOP_ERROR_ARGUMENT, "NULL");
    (void)unlink(vocabulary);
    (void)unlink(merges);
    (void)unlink(lines);
    (void)rmdir(folder);
}

int main(void) {
    test_windows();
    test_as_file();
    test_strict();
    test_decode();
    test_byte_fallback();
    test_files();
    return tap_done();
}
