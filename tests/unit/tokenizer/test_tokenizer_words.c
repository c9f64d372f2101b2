/* The words of GPT-2's pattern: the scanner of every tier against the walk by hand, and that on texts with known words.
 */
#include "kernels_cpu/cpu.h"
#include "tap.h"
#include "tokenizer/gpt2_words.h"
#include <stdlib.h>
#include <string.h>

static const char *const tier_names[] = {"best", "ref", "avx2", "avx512"};

static uint32_t random_below(uint64_t *state, uint32_t bound) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33) % bound;
}

/* Pieces that meet every rule, mostly ASCII so that blocks are; `rare` of 1000 are not. */
static size_t make_text(uint64_t *state, char *text, size_t size, uint32_t rare) {
    static const char *const plain[] = {" ",   "  ",  "\n",   "\t",  "a",  "Zed", "7",    "42",
                                        "'",   "'s",  "'re",  "'ll", "'x", "\"",  "(",    "_",
                                        ".\n", " \n", "    ", " '",  "''", "'t'", "\r\n", "\x1c"};
    static const char *const other[] = {"\xc3\xa9", "\xe4\xb8\xad",     "\xe3\x80\x80", "\xc2\xa0",
                                        "\xc2\xb2", "\xf0\x9f\x91\xa9", "\xcc\x81",     "\xe2\x80\x99"};
    size_t length = 0;
    for (;;) {
        const char *piece = random_below(state, 1000) < rare ? other[random_below(state, sizeof other / sizeof *other)]
                                                             : plain[random_below(state, sizeof plain / sizeof *plain)];
        if (length + strlen(piece) > size)
            return length;
        memcpy(text + length, piece, strlen(piece));
        length += strlen(piece);
    }
}

static size_t count_differences(foreloop_classify_ascii *classify, const char *text, size_t begin, size_t end) {
    foreloop_gpt2_scanner scanner;
    size_t differences = 0;
    foreloop_gpt2_scanner_begin(&scanner, classify, text, begin, end);
    while (begin < end) {
        const size_t wanted = foreloop_gpt2_word_end(text, begin, end);
        differences += foreloop_gpt2_scanner_next(&scanner, begin) != wanted || wanted <= begin || wanted > end;
        begin = wanted > begin ? wanted : begin + 1;
    }
    return differences;
}

static void test_random(foreloop_tier tier) {
    uint64_t state = 5;
    size_t differences = 0, texts = 0;
    for (; texts < 4000; texts++) {
        const size_t size = random_below(&state, texts % 50 == 0 ? 5000 : 300);
        const size_t before = random_below(&state, 3);
        char *text = malloc(size + 3); /* as large as it is, so that sanitizers see reads beyond */
        memcpy(text, "a 7", 3);
        size_t length = make_text(&state, text + before, size, texts % 3 == 0 ? 0 : texts % 3 == 1 ? 20 : 500);
        char *exact = malloc(before + length + 1);
        memcpy(exact, text, before + length);
        differences += count_differences(foreloop_classify_ascii_of(tier), exact, before, before + length);
        free(exact);
        free(text);
    }
    CHECK(differences == 0, "%s: the words of %zu texts (%zu differ)", tier_names[tier], texts, differences);
}

static void test_kernels(foreloop_tier tier) {
    uint64_t state = 9;
    size_t wrong = 0;
    for (int run = 0; run < 2000; run++) {
        char text[FORELOOP_CLASSIFY_BYTES];
        foreloop_ascii_masks found, wanted = {0};
        for (size_t i = 0; i < sizeof text; i++) {
            const unsigned char c = (unsigned char)(run < 4 ? run * 64 + (int)i : (int)random_below(&state, 256));
            const uint64_t bit = UINT64_C(1) << i;
            text[i] = (char)c;
            wanted.letters |= (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ? bit : 0;
            wanted.digits |= c >= '0' && c <= '9' ? bit : 0;
            wanted.blanks |= c == ' ' ? bit : 0;
            wanted.spaces |= c == ' ' || (c >= 9 && c <= 13) ? bit : 0;
            wanted.beyond |= c >= 0x80 ? bit : 0;
        }
        foreloop_classify_ascii_of(tier)(text, &found);
        wrong += memcmp(&found, &wanted, sizeof found) != 0;
    }
    CHECK(wrong == 0, "%s: masks of all bytes (%zu wrong)", tier_names[tier], wrong);
}

static void test_known(void) {
    static const char text[] = "  'there I'LL I'll\n =x  \n\n";
    static const size_t ends[] = {1, 3, 8, 10, 11, 13, 15, 18, 19, 21, 22, 26};
    size_t begin = 0, wrong = 0;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        begin = foreloop_gpt2_word_end(text, begin, sizeof text - 1);
        wrong += begin != ends[i];
    }
    CHECK(wrong == 0 && begin == sizeof text - 1, "known words");
}

int main(void) {
    test_known();
    for (foreloop_tier tier = FORELOOP_TIER_REF; tier <= foreloop_cpu_tier(FORELOOP_TIER_BEST);
         tier = (foreloop_tier)(tier + 1)) {
        test_kernels(tier);
        test_random(tier);
    }
    return tap_done();
}
