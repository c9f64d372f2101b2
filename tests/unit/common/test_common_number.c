/*
 * Decimal text to numbers and back. The C library's strtof and strtod (correctly rounded in glibc; run in the C locale)
 * are the oracle, on random text and on text that lies at or near the halfway points between two numbers.
 */
#include "common/number.h"
#include "random.h"
#include "tap.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint32_t float_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint64_t double_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double double_of(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Both parsers give the oracle's bits for this text; counts and prints the first differences. */
static int wrong_count;
static void compare(const char *text) {
    size_t length = strlen(text);
    char *exact = malloc(length > 0 ? length : 1);
    float narrow = 0;
    double wide = 0;

    memcpy(exact, text, length);
    if (!foreloop_parse_float(exact, length, &narrow) || float_bits(narrow) != float_bits(strtof(text, NULL)) ||
        !foreloop_parse_double(exact, length, &wide) || double_bits(wide) != double_bits(strtod(text, NULL))) {
        if (wrong_count++ < 5)
            printf("# %s: %08X %016llX\n", text, (unsigned)float_bits(narrow), (unsigned long long)double_bits(wide));
    }
    free(exact);
}

static void test_known(void) {
    static const struct {
        const char *text;
        uint32_t bits;
    } floats[] = {
        {"7.038531e-26", 0x15AE43FD}, /* through double it would be 15AE43FE */
        {"-1.7919981", 0xBFE56032},
        {"0", 0},
        {"-0", 0x80000000},
        {"-0.0e5", 0x80000000},
        {"1", 0x3F800000},
        {"+1.", 0x3F800000},
        {".5", 0x3F000000},
        {"1e-45", 1},
        {"7.006492321624085e-46", 0},  /* half of the smallest, a little less */
        {"7.0064923216240854e-46", 1}, /* a little more */
        {"3.4028235e38", 0x7F7FFFFF},
        {"340282356779733661637539395458142568448", 0x7F800000}, /* halfway to 2^128 */
        {"340282356779733661637539395458142568447.99", 0x7F7FFFFF},
        {"1e39", 0x7F800000},
        {"-1e999999999999999999999", 0xFF800000},
        {"1e-999999999999999999999", 0},
        {"0e999999999999999999999", 0},
        {"Infinity", 0x7F800000},
        {"-inf", 0xFF800000},
        {"INF", 0x7F800000},
        {"16777217", 0x4B800000}, /* ties to even */
        {"16777219", 0x4B800002},
        {"16777217.0000000000000000000000000000000000000000000000000000000000000000000000000001", 0x4B800001},
    };
    for (size_t i = 0; i < sizeof floats / sizeof floats[0]; i++) {
        float value = 0;
        bool parsed = foreloop_parse_float(floats[i].text, strlen(floats[i].text), &value);
        CHECK(parsed && float_bits(value) == floats[i].bits, "%s is %08X, found %08X", floats[i].text,
              (unsigned)floats[i].bits, (unsigned)float_bits(value));
    }
    {
        static const char *const nans[] = {"NaN", "nan", "-nan", "+NAN"};
        char text[90] = "0.";
        double wide = 0;
        float narrow;
        for (size_t i = 0; i < 4; i++)
            CHECK(foreloop_parse_float(nans[i], strlen(nans[i]), &narrow) && isnan(narrow) &&
                      foreloop_parse_double(nans[i], strlen(nans[i]), &wide) && isnan(wide),
                  "%s", nans[i]);
        memset(text + 2, '0', 80);
        text[82] = '1';
        CHECK(foreloop_parse_double(text, 83, &wide) && wide == 1e-81, "0., 80 zeros and 1 is 1e-81");
    }
}

static void test_refused(void) {
    static const char *const texts[] = {"",     " ",     " 1",        "1 ",  "-",        "+",    ".",
                                        "-.",   "e5",    "1e",        "1e+", "1e-",      "1e5x", "1.2.3",
                                        "0x10", "1,5",   "1_0",       "--1", "infi",     "nann", "in",
                                        "na",   "1e5.0", "infinity1", "i",   "\xc2\xb2", "1f",   "1e5e5"};
    static const char zero_inside[] = "1\0"
                                      "2";
    float value = 42;
    double wide = 42;
    int64_t integer = 42;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        CHECK(!foreloop_parse_float(texts[i], strlen(texts[i]), &value) && value == 42 &&
                  !foreloop_parse_double(texts[i], strlen(texts[i]), &wide) && wide == 42 &&
                  !foreloop_parse_int64(texts[i], strlen(texts[i]), &integer) && integer == 42,
              "\"%s\" is no number", texts[i]);
    CHECK(!foreloop_parse_float(zero_inside, 3, &value), "a zero byte is no digit");
}

static void test_integers(void) {
    static const struct {
        const char *text;
        bool valid;
        int64_t value;
    } cases[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"3.0", true, 3},
        {"3e2", true, 300},
        {"-3.00e+2", true, -300},
        {"1200e-2", true, 12},
        {"0.5e1", true, 5},
        {"0e99999999999999999999", true, 0},
        {"9223372036854775807", true, INT64_MAX},
        {"9223372036854775808", false, 0},
        {"-9223372036854775808", true, INT64_MIN},
        {"-9223372036854775809", false, 0},
        {"9223372036854775807.0", true, INT64_MAX},
        {"922337203685477580.7e1", true, INT64_MAX},
        {"18446744073709551616", false, 0},
        {"99999999999999999999", false, 0},
        {"10000000000000000000", false, 0},
        {"1e18", true, INT64_C(1000000000000000000)},
        {"1e19", false, 0},
        {"1e999999999999999999999", false, 0},
        {"0.5", false, 0},
        {"1e-1", false, 0},
        {"9007199254740993", true, INT64_C(9007199254740993)}, /* 2^53 + 1: not through double */
        {"NaN", false, 0},
        {"inf", false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t value = 42;
        bool valid = foreloop_parse_int64(cases[i].text, strlen(cases[i].text), &value);
        CHECK(valid == cases[i].valid && value == (valid ? cases[i].value : 42), "integer %s", cases[i].text);
    }
}

/* Text of every shape: few or many digits, points and exponents anywhere. */
static void test_random_text(void) {
    random_source random = {7};

    wrong_count = 0;
    for (int i = 0; i < 200000; i++) {
        char text[128];
        size_t length = 0;
        uint32_t digits = 1 + random_below(&random, i % 16 == 0 ? 60 : 20);
        uint32_t point = random_below(&random, digits + 4);

        if (random_below(&random, 4) == 0)
            text[length++] = '-';
        for (uint32_t d = 0; d < digits; d++) {
            if (d == point && d > 0)
                text[length++] = '.';
            text[length++] = (char)('0' + random_below(&random, 10));
        }
        if (random_below(&random, 4) > 0)
            length += (size_t)snprintf(text + length, 16, "e%d",
                                       (int)random_below(&random, i % 2 ? 680 : 100) - (i % 2 ? 340 : 60));
        text[length] = '\0';
        compare(text);
    }
    CHECK(wrong_count == 0, "200,000 random texts: %d differ", wrong_count);
}

/* The exact decimal text of a number halfway between two, the texts just beside it, and with its last digits far
 * behind. */
static void compare_around(char *text, size_t size) {
    char *exponent, tail[16];
    size_t length;

    compare(text);
    exponent = strchr(text, 'e');
    snprintf(tail, sizeof tail, "%s", exponent);
    length = (size_t)(exponent - text);
    if (length + 20 > size)
        return;
    memcpy(exponent, "00000000001", 12);
    strcat(text, tail);
    compare(text); /* a little above */
    text[length] = '\0';
    while (text[length - 1] == '0')
        length--;
    if (text[length - 1] != '.') {
        text[length - 1]--;
        memcpy(text + length, "9999999", 8);
        strcat(text, tail);
        compare(text); /* a little below */
    }
}

static void test_halfway(void) {
    static char text[2048];
    random_source random = {11};

    wrong_count = 0;
    for (int i = 0; i < 20000; i++) {
        /* Between two floats of any size, every fourth time subnormal; a double holds it exactly. */
        uint32_t bits = (uint32_t)random_u64(&random) & (i % 4 ? 0x7FFFFFFF : 0x007FFFFF);
        double low = (double)float_of(bits), high = (double)float_of(bits + 1);
        if (!isfinite(high))
            continue;
        snprintf(text, sizeof text, "%.160e", (low + high) / 2);
        compare_around(text, sizeof text);
    }
    CHECK(wrong_count == 0, "halfway points between floats: %d differ", wrong_count);
#if LDBL_MANT_DIG >= 64
    wrong_count = 0;
    for (int i = 0; i < 2000; i++) {
        uint64_t bits = random_u64(&random) & (i % 4 ? UINT64_C(0x7FFFFFFFFFFFFFFF) : UINT64_C(0x000FFFFFFFFFFFFF));
        long double low = (long double)double_of(bits), high = (long double)double_of(bits + 1);
        if (!isfinite(high))
            continue;
        snprintf(text, sizeof text, "%.800Le", (low + high) / 2);
        compare_around(text, sizeof text);
    }
    CHECK(wrong_count == 0, "halfway points between doubles: %d differ", wrong_count);
#else
    tap_skip("halfway points between doubles need a wider type");
#endif
}

/* A digit that decides, 100,000 places behind the point. */
static void test_long_text(void) {
    enum { LENGTH = 100000 };
    static char text[LENGTH + 1];
    static const char halfway[] = "1.000000059604644775390625"; /* between 1 and the next float */
    float value = 0;

    memset(text, '0', LENGTH);
    memcpy(text, halfway, sizeof halfway - 1);
    CHECK(foreloop_parse_float(text, LENGTH, &value) && float_bits(value) == 0x3F800000, "halfway with many zeros");
    text[LENGTH - 1] = '1';
    CHECK(foreloop_parse_float(text, LENGTH, &value) && float_bits(value) == 0x3F800001, "the last digit decides");
    memset(text, '0', LENGTH);
    text[1] = '.';
    memcpy(text + LENGTH - 8, "1e100000", 8);
    compare(text);
    memset(text, '1', LENGTH);
    memcpy(text + LENGTH - 7, "e-99990", 7);
    wrong_count = 0;
    compare(text);
    CHECK(wrong_count == 0, "100,000 digits and an exponent that undoes them");
}

static void count_format_errors(double wide, float narrow, int *wrong) {
    char text[FORELOOP_NUMBER_TEXT_SIZE], shorter[64];
    size_t length = foreloop_format_double(wide, text), digits = 0;
    double back = 0;
    float narrow_back = 0;

    if (length != strlen(text) || !foreloop_parse_double(text, length, &back) ||
        double_bits(back) != double_bits(wide) || double_bits(strtod(text, NULL)) != double_bits(wide))
        ++*wrong;
    length = foreloop_format_float(narrow, text);
    if (length != strlen(text) || !foreloop_parse_float(text, length, &narrow_back) ||
        float_bits(narrow_back) != float_bits(narrow) || float_bits(strtof(text, NULL)) != float_bits(narrow))
        ++*wrong;
    /* One digit fewer would not do. */
    for (const char *c = text; *c && *c != 'e'; c++)
        if (*c >= '0' && *c <= '9' && (digits > 0 || *c != '0'))
            digits++;
    if (!strchr(text, 'e') && !strchr(text, '.'))
        for (const char *c = text + length; c[-1] == '0' && digits > 1; c--)
            digits--;
    if (digits > 1) {
        snprintf(shorter, sizeof shorter, "%.*e", (int)digits - 2, (double)narrow);
        if (strtof(shorter, NULL) == narrow) {
            ++*wrong;
            printf("# %s is not the shortest: %s\n", text, shorter);
        }
    }
}

static void test_format(void) {
    static const struct {
        double value;
        const char *wide, *narrow;
    } cases[] = {
        {0.0, "0", "0"},
        {-0.0, "-0", "-0"},
        {0.25, "0.25", "0.25"},
        {0.1, "0.1", "0.1"},
        {1.0, "1", "1"},
        {-100.0, "-100", "-100"},
        {12345.678, "12345.678", "12345.678"},
        {1e-4, "0.0001", "0.0001"},
        {1e-5, "1e-5", "1e-5"},
        {1.5e-7, "1.5e-7", "1.5e-7"},
        {1e15, "1000000000000000", "1000000000000000"},
        {1e16, "1e16", "1e16"},
        {123456789.0, "123456789", "123456790"},
        {5e-324, "5e-324", "0"},
        {DBL_MAX, "1.7976931348623157e308", "inf"},
        {0x1p-44, "5.684341886080802e-14", "5.684342e-14"},
        {9007199254740993.0, "9007199254740992", "9007199000000000"},
        {FLT_MAX, "3.4028234663852886e38", "3.4028235e38"},
        {-INFINITY, "-inf", "-inf"},
        {NAN, "nan", "nan"},
    };
    random_source random = {13};
    int wrong = 0;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char wide[FORELOOP_NUMBER_TEXT_SIZE], narrow[FORELOOP_NUMBER_TEXT_SIZE];
        size_t wide_length = foreloop_format_double(cases[i].value, wide);
        size_t narrow_length = foreloop_format_float(foreloop_double_to_float(cases[i].value), narrow);
        CHECK(!strcmp(wide, cases[i].wide) && !strcmp(narrow, cases[i].narrow) && wide_length == strlen(wide) &&
                  narrow_length == strlen(narrow),
              "formats %s (%s) as %s (%s)", cases[i].wide, cases[i].narrow, wide, narrow);
    }
    for (int i = 0; i < 60000; i++) {
        double wide = i % 2 ? double_of(random_u64(&random)) : (double)random_below(&random, 1u << 30) / 1024;
        float narrow = i % 2 ? float_of((uint32_t)random_u64(&random)) : (float)wide;
        if (isfinite(wide) && isfinite(narrow))
            count_format_errors(wide, narrow, &wrong);
    }
    for (int exponent = -149; exponent < 128; exponent++)
        count_format_errors(ldexp(1, exponent * 7), ldexpf(1, exponent), &wrong);
    CHECK(wrong == 0, "shortest text that parses back: %d wrong", wrong);
}

static void test_small_formats(void) {
    int wrong = 0;

    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        /* The definition in arithmetic: (-1)^s 2^(e - 15) 1.f, and 2^-14 0.f for e = 0. */
        uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
        float value = foreloop_half_to_float((uint16_t)bits), sign = bits >> 15 ? -1.0F : 1.0F;
        float expected =
            exponent == 0 ? ldexpf((float)fraction, -24) : ldexpf((float)(1024 + fraction), (int)exponent - 25);
        if (exponent == 31)
            wrong += fraction ? !isnan(value) : value != sign * INFINITY;
        else
            wrong += float_bits(value) != float_bits(sign * expected);
        wrong += float_bits(foreloop_bfloat16_to_float((uint16_t)bits)) != bits << 16;
    }
    CHECK(wrong == 0, "half and bfloat16: %d wrong", wrong);
    CHECK(foreloop_double_to_float(0x1.fffffefffffffp127) == FLT_MAX &&
              foreloop_double_to_float(0x1.ffffffp127) == INFINITY && foreloop_double_to_float(-1e300) == -INFINITY &&
              foreloop_double_to_float(-0x1.fffffefffffffp127) == -FLT_MAX && foreloop_double_to_float(0.1) == 0.1F &&
              isnan(foreloop_double_to_float((double)NAN)) && foreloop_double_to_float(1e-60) == 0.0F,
          "double to float at the ends of the range");
}

int main(void) {
    test_known();
    test_refused();
    test_integers();
    test_random_text();
    test_halfway();
    test_long_text();
    test_format();
    test_small_formats();
    return tap_done();
}
