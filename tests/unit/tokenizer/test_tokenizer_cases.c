/* Faults that others had (reports of their projects), each as a kind of fault with its value. */
#include "tokenizer_test.h"
#include <stdlib.h>
#include <time.h>

#define BYTE_LEVEL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":false,\"use_regex\":true}"
#define PREFIXED   "{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":false,\"use_regex\":true}"

/* Whether a piece stays whole shows by ignore_merges: words in the vocabulary are taken whole, others fall apart into
 * characters, of which this vocabulary has none. */
static void check_words(const char *words, const char *text, size_t length, const char *expected, const char *name) {
    char document[8192];
    snprintf(document, sizeof document,
             DOCUMENT("{\"type\":\"BPE\",\"vocab\":{\"<unk>\":0,%s},\"merges\":[],\"unk_token\":\"<unk>\","
                      "\"ignore_merges\":true}",
                      "null", BYTE_LEVEL, "null", ""),
             words);
    foreloop_tokenizer *tokenizer = open_document(document);
    check_tokens(tokenizer, text, length, expected, NULL, name);
    foreloop_tokenizer_close(tokenizer);
}
#define CHECK_WORDS(words, text, expected, name) check_words(words, text, sizeof(text) - 1, expected, name)

static void test_merges_as_strings_and_pairs(void) {
    static const char *const merges[] = {"\"a b\"", "[\"a\",\"b\"]", "\"#version: 0.2\",\"a b\""};
    char document[2048];

    for (size_t i = 0; i < 3; i++) {
        snprintf(document, sizeof document,
                 DOCUMENT("{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[%s]}", "null", "null",
                          "null", ""),
                 merges[i]);
        foreloop_tokenizer *tokenizer = open_document(document);
        CHECK_TOKENS(tokenizer, "aabb", "a|ab|b", "0-1 1-3 3-4", merges[i]);
        foreloop_tokenizer_close(tokenizer);
    }
    foreloop_tokenizer *tokenizer =
        open_document(DOCUMENT("{\"merges\":[[\"a \",\"b\"]],\"vocab\":{\"a \":0,\"b\":1,\"a b\":2},\"type\":\"BPE\"}",
                               "null", "null", "null", ""));
    CHECK_TOKENS(tokenizer, "b", "b", "0-1", "a merge with a space in it, before the vocabulary and the type");
    foreloop_tokenizer_close(tokenizer);
}

static void test_gpt2_rules(void) {
    CHECK_WORDS("\"\\u0120\":1,\"\\u0120'\":2,\"there\":3", "  'there", "\xc4\xa0|\xc4\xa0'|there",
                "a space before a quote");
    CHECK_WORDS("\"\\u010a\":1,\"\\u0120=\":2", "\n =", "\xc4\x8a|\xc4\xa0=", "a space after a line");
    CHECK_WORDS("\"I\":1,\"'\":2,\"LL\":3,\"\\u0120I\":4,\"'ll\":5", "I'LL I'll", "I|'|LL|\xc4\xa0I|'ll",
                "contractions are lower case");
    CHECK_WORDS("\"'s\":1,\"'t\":2,\"'re\":3,\"'ve\":4,\"'m\":5,\"'ll\":6,\"'d\":7,\"'S\":8,\"a\":9",
                "'s't're've'm'll'da", "'s|'t|'re|'ve|'m|'ll|'d|a", "every contraction");
    CHECK_WORDS("\"x\":1,\"\\u00c2\\u00b2\\u00c2\\u00bd\\u00e2\\u0127\\u00a7\":2", "x\xc2\xb2\xc2\xbd\xe2\x85\xa7",
                "x|\xc3\x82\xc2\xb2\xc3\x82\xc2\xbd\xc3\xa2\xc4\xa7\xc2\xa7", "numbers beyond digits");
    CHECK_WORDS("\"e\":1,\"\\u00cc\\u0123\":2", "e\xcc\x81", "e|\xc3\x8c\xc4\xa3", "a mark is no letter");
    CHECK_WORDS("\"\\u00e2\\u0122\\u00a9\":1,\"\\u0120\\u00ea\\u0131\\u00a4\":2", "\xe2\x80\xa9 \xea\x8f\xa4",
                "\xc3\xa2\xc4\xa2\xc2\xa9|\xc4\xa0\xc3\xaa\xc4\xb1\xc2\xa4",
                "a separator, and a letter behind a space");
}

static void test_added_tokens(void) {
#define MODEL                                                                                                          \
    "{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"x\":2,\"\\u0120\":3,\"\\u0120b\":4},\"merges\":[\"\\u0120 b\"]}"
    foreloop_tokenizer *tokenizer = open_document(
        DOCUMENT(MODEL, "null", BYTE_LEVEL, "null", ADDED("9", "<mask>", FLAGS("false", "true", "false", "false"))));
    CHECK_TOKENS(tokenizer, "a <mask> b",
                 "a|<mask>|\xc4\xa0"
                 "b",
                 "0-1 1-8 8-10", "lstrip");
    CHECK(foreloop_tokenizer_vocabulary_size(tokenizer) == 6, "an added token is numbered on, whatever the file says");
    foreloop_tokenizer_close(tokenizer);

    tokenizer = open_document(
        DOCUMENT(MODEL, "null", BYTE_LEVEL, "null", ADDED("5", "<mask>", FLAGS("true", "false", "false", "false"))));
    CHECK_TOKENS(tokenizer, "x<mask>", "x|a", NULL, "single_word not inside a word");
    CHECK_TOKENS(tokenizer, "b <mask>", "b|\xc4\xa0|<mask>", "0-1 1-2 2-8", "single_word behind a space");
    foreloop_tokenizer_close(tokenizer);

    tokenizer = open_document(DOCUMENT(MODEL, "{\"type\":\"Lowercase\"}", "null", "null",
                                       ADDED("5", "Ab", FLAGS("false", "false", "true", "true")) "," ADDED(
                                           "6", "AbA", FLAGS("false", "false", "false", "false"))));
    CHECK_TOKENS(tokenizer, "aB aAbA", "Ab|a|AbA", "0-3 3-4 4-7", "normalized, rstrip, and the longest match");
    foreloop_tokenizer_close(tokenizer);
}

static void test_longest_added_token(void) {
    foreloop_tokenizer *tokenizer =
        open_document(DOCUMENT("{\"type\":\"BPE\",\"vocab\":{\"s\":0},\"merges\":[]}", "null", "null", "null",
                               ADDED("1", "<m", PLAIN) "," ADDED("2", "<mask>", PLAIN) "," ADDED("3", "<mas", PLAIN)));
    CHECK_TOKENS(tokenizer, "<mask><mass<m", "<mask>|<mas|s|<m", "0-6 6-10 10-11 11-13", "the longest of several");
    foreloop_tokenizer_close(tokenizer);
}

static void test_normal_forms(void) {
    static const struct {
        const char *normalizer, *text, *expected, *offsets;
    } cases[] = {
        {"{\"type\":\"NFC\"}", "a\xcc\x85\xcc\x81", "a|\xcc\x85|\xcc\x81", "0-1 1-3 3-5"}, /* blocked */
        {"{\"type\":\"NFC\"}", "a\xcc\xa3\xcc\x85", "\xe1\xba\xa1|\xcc\x85", "0-1 3-5"},
        {"{\"type\":\"NFC\"}", "\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8", "\xea\xb0\x81", "0-3"}, /* Hangul */
        {"{\"type\":\"NFD\"}", "\xe1\xba\xa1", "a|\xcc\xa3", "0-3 0-3"},
        {"{\"type\":\"NFD\"}", "a\xcc\x81\xcc\xa3", "a|\xcc\xa3|\xcc\x81", "0-1 1-3 3-5"}, /* reordered */
        {"{\"type\":\"NFKC\"}", "\xef\xac\x81", "f|i", "0-3 0-3"},
        {"{\"type\":\"Lowercase\"}",
         "\xc4\xb0"
         "A",
         "i|\xcc\x87|a", "0-2 0-2 2-3"}, /* one letter to two */
        {"{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":true}",
         " \xc2\xa0"
         "a ",
         "a", "3-4"},
    };
    char document[2048];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(document, sizeof document,
                 DOCUMENT("{\"type\":\"BPE\",\"merges\":[],\"vocab\":{\"a\":0,\"f\":1,\"i\":2,\"\\u0305\":3,"
                          "\"\\u0301\":4,\"\\u0323\":5,\"\\u0307\":6,\"\\u1ea1\":7,\"\\uac01\":8,\" \":9}}",
                          "%s", "null", "null", ""),
                 cases[i].normalizer);
        foreloop_tokenizer *tokenizer = open_document(document);
        check_tokens(tokenizer, cases[i].text, strlen(cases[i].text), cases[i].expected, cases[i].offsets,
                     cases[i].normalizer);
        foreloop_tokenizer_close(tokenizer);
    }
}

/* Offsets leave out a word's white space, but for one space at the beginning where a space would have been put. */
static void test_trimmed_offsets(void) {
    static const char *const offsets[] = {"1-2 3-4 7-8", "0-2 3-4 7-8"};
    char document[2048];
    for (int prefix = 0; prefix < 2; prefix++) {
        snprintf(document, sizeof document,
                 DOCUMENT("{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"\\u0120\":1,\"\\u0120a\":2,\"\\u0120\\u0120\":3,"
                          "\"\\u0120\\u0120\\u0120a\":4},\"merges\":[\"\\u0120 a\",\"\\u0120 \\u0120\","
                          "\"\\u0120\\u0120 \\u0120a\"]}",
                          "null",
                          "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,"
                          "\"use_regex\":false}",
                          "{\"type\":\"RobertaProcessing\",\"sep\":[\"a\",0],\"cls\":[\"a\",0],"
                          "\"trim_offsets\":true,\"add_prefix_space\":%s}",
                          ""),
                 prefix ? "true" : "false");
        foreloop_tokenizer *tokenizer = open_document(document);
        CHECK_TOKENS(tokenizer, " a a   a",
                     "\xc4\xa0"
                     "a|\xc4\xa0"
                     "a|\xc4\xa0\xc4\xa0\xc4\xa0"
                     "a",
                     offsets[prefix], "trimmed offsets");
        foreloop_tokenizer_close(tokenizer);
    }
}

static void test_prefix_space(void) {
    static const char vocabulary[] = "{\"type\":\"BPE\",\"vocab\":{\"t\":0,\"\\u0120\":1,\"\\u0120t\":2},"
                                     "\"merges\":[\"\\u0120 t\"]}";
    char document[2048];
    for (int prefix = 0; prefix < 2; prefix++) {
        snprintf(document, sizeof document,
                 "{\"added_tokens\":[" ADDED("3", "<s>", PLAIN) "],\"pre_tokenizer\":%s,\"model\":%s}",
                 prefix ? PREFIXED : BYTE_LEVEL, vocabulary);
        foreloop_tokenizer *tokenizer = open_document(document);
        CHECK_TOKENS(tokenizer, "<s>t t", prefix ? "<s>|\xc4\xa0t|\xc4\xa0t" : "<s>|t|\xc4\xa0t", "0-3 3-4 4-6",
                     prefix ? "with a prefix space" : "without a prefix space");
        foreloop_tokenizer_close(tokenizer);
    }
}

static void test_ignore_merges(void) {
    static const char *const expected[] = {"ab|c", "abc"};
    char document[2048];
    for (int ignore = 0; ignore < 2; ignore++) {
        snprintf(document, sizeof document,
                 DOCUMENT("{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"c\":2,\"ab\":3,\"abc\":4},"
                          "\"merges\":[\"a b\"],\"ignore_merges\":%s}",
                          "null", "null", "null", ""),
                 ignore ? "true" : "false");
        foreloop_tokenizer *tokenizer = open_document(document);
        CHECK_TOKENS(tokenizer, "abc", expected[ignore], NULL, ignore ? "ignore_merges" : "merges");
        foreloop_tokenizer_close(tokenizer);
    }
}

#define BERT(strip, lowercase)                                                                                         \
    "{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":true,\"strip_accents\":" strip          \
    ",\"lowercase\":" lowercase "}"
#define WORDPIECE(vocab)                                                                                               \
    "{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":\"##\","                            \
    "\"max_input_chars_per_word\":100,\"vocab\":{" vocab "}}"

static void test_bert(void) {
    char word[128];
    foreloop_tokenizer *tokenizer =
        open_document(DOCUMENT(WORDPIECE("\"[UNK]\":0,\"hello\":1,\"[CLS]\":2,\"a\":3,\"##a\":4"), BERT("null", "true"),
                               "{\"type\":\"BertPreTokenizer\"}", "null", ADDED("2", "[CLS]", PLAIN)));
    CHECK_TOKENS(tokenizer, "[CLS] Hello", "[CLS]|hello", "0-5 6-11", "lower case leaves special tokens alone");
    CHECK_TOKENS(tokenizer, "H\xc3\xa9llo", "hello", "0-6", "strip_accents follows lower case");
    memset(word, 'a', sizeof word);
    check_tokens(tokenizer, word, 101, "[UNK]", "0-101", "101 characters");
    memset(word, ' ', sizeof word);
    for (int i = 0; i < 50; i++)
        memcpy(word + 2 * i, "\xc3\xa1", 2);
    check_tokens(tokenizer, word, 6, "a|##a|##a", "0-2 2-4 4-6", "offsets of characters that lost their accents");
    foreloop_tokenizer_close(tokenizer);

    tokenizer = open_document(DOCUMENT(WORDPIECE("\"[UNK]\":0,\"H\":1,\"##\xc3\xa9\":2,\"##llo\":3"),
                                       BERT("null", "false"), "{\"type\":\"BertPreTokenizer\"}", "null", ""));
    CHECK_TOKENS(tokenizer, "H\xc3\xa9llo", "H|##\xc3\xa9|##llo", "0-1 1-3 3-6", "no lower case, no accents stripped");
    foreloop_tokenizer_close(tokenizer);

    tokenizer = open_document(DOCUMENT(WORDPIECE("\"[UNK]\":0,\"un\":1,\"##want\":2,\"##ed\":3"), "null",
                                       "{\"type\":\"BertPreTokenizer\"}", "null", ""));
    CHECK_TOKENS(tokenizer, "unwanted", "un|##want|##ed", "0-2 2-6 6-8", "continuations");
    CHECK_TOKENS(tokenizer, "unwantedX un", "[UNK]|un", "0-9 10-12", "any failure gives one unknown token");
    foreloop_tokenizer_close(tokenizer);

    tokenizer = open_document(DOCUMENT(WORDPIECE("\"a\":0"), "null", "null", "null", ""));
    CHECK_TOKENS(tokenizer, "a", "a", NULL, "a vocabulary without its unknown token serves where that is not needed");
    char message[1024];
    tokens_text(tokenizer, "b", 1, 0, message, sizeof message);
    CHECK(strstr(message, "error: ") && strstr(message, "[UNK]"), "and fails by name where it is: %s", message);
    foreloop_tokenizer_close(tokenizer);
}

static void test_invalid_utf8(void) {
    /* U+FFFD in the byte-level alphabet is EF BF BD. */
    foreloop_tokenizer *tokenizer = open_document(DOCUMENT(
        "{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"\xef\xbf\xbd\":2},\"merges\":[]}", "null", "null", "null", ""));
    CHECK_TOKENS(tokenizer,
                 "a\xE2\x82"
                 "b",
                 "a|\xef\xbf\xbd|b", "0-1 1-3 3-4", "a sequence that is cut off");
    CHECK_TOKENS(tokenizer, "\xED\xA0\x80", "\xef\xbf\xbd|\xef\xbf\xbd|\xef\xbf\xbd", "0-1 1-2 2-3", "a surrogate");
    CHECK_TOKENS(tokenizer, "\xC0\xAF", "\xef\xbf\xbd|\xef\xbf\xbd", "0-1 1-2", "an overlong form");
    CHECK_TOKENS(tokenizer, "\xF5\x80\x80\x80", "\xef\xbf\xbd|\xef\xbf\xbd|\xef\xbf\xbd|\xef\xbf\xbd",
                 "0-1 1-2 2-3 3-4", "beyond U+10FFFF");
    CHECK_TOKENS(tokenizer, "\xF0\x9F\x98", "\xef\xbf\xbd", "0-3", "cut off by the end");
    foreloop_tokenizer_close(tokenizer);
}

/* Processor seconds for `length` letters a in one word, the best of several. */
static double time_word(const foreloop_tokenizer *tokenizer, const char *text, size_t length) {
    foreloop_encoding *encoding = NULL;
    double best = 1e9;
    if (foreloop_encoding_create(&encoding, tokenizer, NULL) != FORELOOP_OK)
        return best;
    for (int i = 0; i < 7; i++) {
        clock_t start = clock();
        if (foreloop_tokenize(encoding, text, length, 0, NULL) != FORELOOP_OK)
            break;
        double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
        best = seconds < best ? seconds : best;
    }
    foreloop_encoding_close(encoding);
    return best;
}

static void test_long_words(void) {
    enum { LONG = 200000 };
    char *text = malloc(LONG);
    foreloop_tokenizer *tokenizer = open_document(
        DOCUMENT("{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"aa\":1,\"aaaa\":2},\"merges\":[\"a a\",\"aa aa\"]}", "null",
                 "null", "null", ""));
    CHECK_TOKENS(tokenizer, "aaaaaaa", "aaaa|aa|a", "0-4 4-6 6-7", "merges from the left");
    memset(text, 'a', LONG);
    double tenth = time_word(tokenizer, text, LONG / 10), whole = time_word(tokenizer, text, LONG);
    CHECK(whole < 25 * tenth, "a word ten times as long takes %.1f times as long", whole / tenth);
    foreloop_tokenizer_close(tokenizer);

    tokenizer = open_document(DOCUMENT(WORDPIECE("\"[UNK]\":0,\"a\":1,\"##a\":2"), "null", "null", "null", ""));
    check_tokens(tokenizer, text, LONG, "[UNK]", "0-200000", "a long word for WordPiece");
    foreloop_tokenizer_close(tokenizer);
    free(text);
}

static void test_reuse(void) {
    foreloop_tokenizer *tokenizer =
        open_document(DOCUMENT("{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}", "null", "null", "null", ""));
    foreloop_encoding *encoding = NULL;
    foreloop_error error = {0};
    uint32_t id = 7;

    CHECK(foreloop_encoding_create(&encoding, tokenizer, &error) == FORELOOP_OK, "an encoding");
    CHECK(foreloop_encoding_count(encoding) == 0, "is empty at first");
    CHECK(foreloop_tokenize(encoding, "aaa", 3, 1, NULL) == FORELOOP_OK && foreloop_encoding_count(encoding) == 3,
          "three tokens");
    CHECK(foreloop_tokenize(encoding, "", 0, 1, NULL) == FORELOOP_OK && foreloop_encoding_count(encoding) == 0, "none");
    CHECK(foreloop_tokenize(encoding, NULL, 0, 1, NULL) == FORELOOP_OK, "no text at all");
    CHECK(foreloop_tokenize(encoding, NULL, 1, 1, &error) == FORELOOP_ERROR_ARGUMENT, "NULL text: %s", error.message);
    CHECK(foreloop_tokenize(NULL, "a", 1, 1, &error) == FORELOOP_ERROR_ARGUMENT, "NULL encoding");
    CHECK(foreloop_encoding_create(NULL, tokenizer, &error) == FORELOOP_ERROR_ARGUMENT, "NULL place");
    CHECK(foreloop_tokenizer_open(&tokenizer, NULL, NULL, &error) == FORELOOP_ERROR_ARGUMENT, "NULL path");
    CHECK(foreloop_tokenizer_find(tokenizer, "a", &id) == 1 && id == 0, "find");
    id = 7;
    CHECK(foreloop_tokenizer_find(tokenizer, "b", &id) == 0 && id == 7, "find nothing");
    CHECK(foreloop_tokenizer_token(tokenizer, 1) == NULL, "an id without a token");
    foreloop_encoding_close(encoding);
    foreloop_tokenizer_close(tokenizer);
    foreloop_encoding_close(NULL);
    foreloop_tokenizer_close(NULL);
}

int main(void) {
    test_merges_as_strings_and_pairs();
    test_gpt2_rules();
    test_added_tokens();
    test_longest_added_token();
    test_normal_forms();
    test_trimmed_offsets();
    test_prefix_space();
    test_ignore_merges();
    test_bert();
    test_invalid_utf8();
    test_long_words();
    test_reuse();
    return tap_done();
}
