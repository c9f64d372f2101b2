/*
 * Decimal text to numbers and back, correctly rounded and without locale.
 *
 * Parsing tries double arithmetic whose error is known, and where that cannot decide the rounding, divides big integers
 * bit by bit. Formatting is the free-format algorithm of Steele and White (as in Burger and Dybvig's description):
 * digits of a big fraction until what is left is within half the distance to the neighbouring numbers.
 */
#include "common/number.h"
#include <float.h>
#include <math.h>
#include <string.h>

/* ---- Big integers ------------------------------------------------------------------------------------------------ */

/* The largest numbers here: 801 digits, 10^1131 as a denominator, and shifts that align one with the other. */
enum { BIG_WORDS = 128 };

typedef struct big {
    size_t count; /* of used words; the last one is not 0 */
    uint32_t words[BIG_WORDS];
} big;

/* value = value * factor + addend */
static void big_multiply_add(big *value, uint32_t factor, uint32_t addend) {
    uint64_t carry = addend;
    for (size_t i = 0; i < value->count; i++) {
        carry += (uint64_t)value->words[i] * factor;
        value->words[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry > 0)
        value->words[value->count++] = (uint32_t)carry;
}

static void big_set(big *value, uint64_t number) {
    value->count = 0;
    for (; number > 0; number >>= 32)
        value->words[value->count++] = (uint32_t)number;
}

static void big_multiply_power10(big *value, int power) {
    for (; power >= 9; power -= 9)
        big_multiply_add(value, 1000000000, 0);
    for (; power > 0; power--)
        big_multiply_add(value, 10, 0);
}

static void big_shift_left(big *value, int bits) {
    size_t words = (size_t)bits / 32;
    if (value->count == 0)
        return;
    memmove(value->words + words, value->words, value->count * sizeof value->words[0]);
    memset(value->words, 0, words * sizeof value->words[0]);
    value->count += words;
    big_multiply_add(value, UINT32_C(1) << bits % 32, 0);
}

static int big_compare(const big *a, const big *b) {
    if (a->count != b->count)
        return a->count < b->count ? -1 : 1;
    for (size_t i = a->count; i-- > 0;)
        if (a->words[i] != b->words[i])
            return a->words[i] < b->words[i] ? -1 : 1;
    return 0;
}

/* a -= b, for a >= b */
static void big_subtract(big *a, const big *b) {
    uint64_t borrow = 0;
    for (size_t i = 0; i < a->count; i++) {
        uint64_t difference = (uint64_t)a->words[i] - (i < b->count ? b->words[i] : 0) - borrow;
        a->words[i] = (uint32_t)difference;
        borrow = difference >> 63;
    }
    while (a->count > 0 && a->words[a->count - 1] == 0)
        a->count--;
}

/* sum = a + b */
static void big_add(big *sum, const big *a, const big *b) {
    const big *longer = a->count >= b->count ? a : b;
    const big *shorter = longer == a ? b : a;
    uint64_t carry = 0;

    for (size_t i = 0; i < longer->count; i++) {
        carry += (uint64_t)longer->words[i] + (i < shorter->count ? shorter->words[i] : 0);
        sum->words[i] = (uint32_t)carry;
        carry >>= 32;
    }
    sum->count = longer->count;
    if (carry > 0)
        sum->words[sum->count++] = (uint32_t)carry;
}

static int big_bits(const big *value) {
    uint32_t top = value->count > 0 ? value->words[value->count - 1] : 0;
    int bits = value->count > 0 ? (int)(value->count - 1) * 32 : 0;
    for (; top > 0; top >>= 1)
        bits++;
    return bits;
}

/* ---- Reading decimal text ---------------------------------------------------------------------------------------- */

/* A halfway point between two doubles has at most 767 significant digits; digits behind the 800th can only tell whether
 * the number is above it. */
enum { MAX_DIGITS = 800 };
/* Far beyond every exponent that matters, and far from overflow when the digits' places are added. */
#define EXPONENT_LIMIT INT64_C(100000000000000000)

typedef enum decimal_kind { DECIMAL_INVALID, DECIMAL_FINITE, DECIMAL_INFINITE, DECIMAL_NAN } decimal_kind;

/* (-1)^negative x digits x 10^exponent, without leading or trailing zero digits; no digits: zero. */
typedef struct decimal {
    bool negative;
    bool cut; /* digits behind the last one kept were not all 0 */
    int64_t exponent;
    size_t count;
    unsigned char digits[MAX_DIGITS];
} decimal;

static bool is_word(const char *text, size_t length, const char *lower_case) {
    if (length != strlen(lower_case))
        return false;
    for (size_t i = 0; i < length; i++)
        if ((text[i] >= 'A' && text[i] <= 'Z' ? text[i] - 'A' + 'a' : text[i]) != lower_case[i])
            return false;
    return true;
}

static void add_digit(decimal *number, unsigned char digit, bool in_fraction) {
    if (in_fraction)
        number->exponent--;
    if (number->count == 0 && digit == 0)
        return;
    if (number->count < MAX_DIGITS) {
        number->digits[number->count++] = digit;
    } else {
        number->exponent++;
        number->cut = number->cut || digit != 0;
    }
}

/* An exponent with its sign at text[i..length), to be the rest of the text. */
static bool read_exponent(const char *text, size_t i, size_t length, int64_t *exponent) {
    bool negative = i < length && text[i] == '-';
    int64_t value = 0;

    if (i < length && (text[i] == '-' || text[i] == '+'))
        i++;
    if (i == length)
        return false;
    for (; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        if (value < EXPONENT_LIMIT)
            value = value * 10 + (text[i] - '0');
    }
    if (value > EXPONENT_LIMIT)
        value = EXPONENT_LIMIT;
    *exponent = negative ? -value : value;
    return true;
}

static decimal_kind read_decimal(const char *text, size_t length, decimal *number) {
    size_t i = 0;
    bool in_fraction = false, any = false;
    int64_t exponent = 0;

    number->negative = length > 0 && text[0] == '-';
    number->cut = false;
    number->exponent = 0;
    number->count = 0;
    if (length > 0 && (text[0] == '-' || text[0] == '+')) {
        text++;
        length--;
    }
    for (; i < length; i++) {
        if (text[i] >= '0' && text[i] <= '9') {
            add_digit(number, (unsigned char)(text[i] - '0'), in_fraction);
            any = true;
        } else if (text[i] == '.' && !in_fraction) {
            in_fraction = true;
        } else {
            break;
        }
    }
    if (!any) {
        if (is_word(text, length, "nan"))
            return DECIMAL_NAN;
        return is_word(text, length, "inf") || is_word(text, length, "infinity") ? DECIMAL_INFINITE : DECIMAL_INVALID;
    }
    if (i < length && ((text[i] != 'e' && text[i] != 'E') || !read_exponent(text, i + 1, length, &exponent)))
        return DECIMAL_INVALID;
    number->exponent += exponent;
    while (number->count > 0 && number->digits[number->count - 1] == 0 && !number->cut) {
        number->count--;
        number->exponent++;
    }
    return DECIMAL_FINITE;
}

/* ---- Rounding to binary ------------------------------------------------------------------------------------------ */

/* A binary floating-point format, IEEE 754. */
typedef struct binary_format {
    int precision;        /* bits of the significand, with the hidden one */
    int smallest;         /* exponent of the smallest positive number: 2^smallest */
    int exponent_bits;    /* all ones: infinity */
    int decimal_overflow; /* 10^this rounds to infinity */
    int decimal_zero;     /* 10^this rounds to zero */
} binary_format;
static const binary_format FORMAT_FLOAT = {24, -149, 8, 39, -46};
static const binary_format FORMAT_DOUBLE = {53, -1074, 11, 309, -324};

/* numerator / denominator = number, both whole. */
static void make_fraction(const decimal *number, big *numerator, big *denominator) {
    int exponent = (int)number->exponent;

    numerator->count = 0;
    for (size_t i = 0; i < number->count; i++) {
        if (numerator->count == 0)
            big_set(numerator, number->digits[i]);
        else
            big_multiply_add(numerator, 10, number->digits[i]);
    }
    if (number->cut) {
        big_multiply_add(numerator, 10, 1);
        exponent--;
    }
    big_set(denominator, 1);
    if (exponent >= 0)
        big_multiply_power10(numerator, exponent);
    else
        big_multiply_power10(denominator, -exponent);
}

/* The bits, without sign, of the number of the format that is nearest to a finite decimal, ties to even. */
static uint64_t round_to_bits(const decimal *number, const binary_format *format) {
    const uint64_t infinity = ((UINT64_C(1) << format->exponent_bits) - 1) << (format->precision - 1);
    const uint64_t hidden = UINT64_C(1) << (format->precision - 1);
    /* 10^(place - 1) <= number < 10^place */
    const int64_t place = number->exponent + (int64_t)number->count;
    big numerator, denominator;
    uint64_t quotient = 0;
    int exponent, last, order;

    if (number->count == 0 || place <= format->decimal_zero)
        return 0;
    if (place > format->decimal_overflow)
        return infinity;
    make_fraction(number, &numerator, &denominator);

    /* Scale the fraction into [1, 2): number = fraction x 2^exponent. */
    exponent = big_bits(&numerator) - big_bits(&denominator);
    big_shift_left(exponent < 0 ? &numerator : &denominator, exponent < 0 ? -exponent : exponent);
    if (big_compare(&numerator, &denominator) < 0) {
        big_shift_left(&numerator, 1);
        exponent--;
    }
    /* The last bit's exponent: subnormal numbers have fewer bits. */
    last = exponent - format->precision + 1;
    if (last < format->smallest)
        last = format->smallest;
    if (exponent < last - 1)
        return 0; /* below half of the smallest number */
    for (int i = exponent; i >= last; i--) {
        quotient <<= 1;
        if (big_compare(&numerator, &denominator) >= 0) {
            big_subtract(&numerator, &denominator);
            quotient |= 1;
        }
        big_shift_left(&numerator, 1);
    }
    /* The numerator, doubled already, is what is left in halves of the last bit. */
    order = big_compare(&numerator, &denominator);
    if (order > 0 || (order == 0 && (quotient & 1)))
        quotient++;
    if (quotient < hidden)
        return quotient;
    /* Adding the quotient without its hidden bit lets a carry out of it raise the exponent, up to infinity. */
    quotient += ((uint64_t)(last - format->smallest) << (format->precision - 1));
    return quotient < infinity ? quotient : infinity;
}

/* ---- Parsing ----------------------------------------------------------------------------------------------------- */

/* All powers of ten that a double holds exactly. */
static const double POWERS_OF_10[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                      1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
enum { LARGEST_EXACT_POWER = 22, WORD_DIGITS = 19 };

/* The leading digits, at most 19, as an integer; *exponent is that of its last digit. */
static uint64_t leading_digits(const decimal *number, int64_t *exponent) {
    size_t count = number->count < WORD_DIGITS ? number->count : WORD_DIGITS;
    uint64_t value = 0;
    for (size_t i = 0; i < count; i++)
        value = value * 10 + number->digits[i];
    *exponent = number->exponent + (int64_t)(number->count - count);
    return value;
}

/* One rounding of exact operands gives the nearest double. False when the operands are not exact. */
static bool parse_double_exact(const decimal *number, double *value) {
    int64_t exponent;
    uint64_t digits = leading_digits(number, &exponent);

    if (number->count > WORD_DIGITS || digits > UINT64_C(1) << 53 || exponent > LARGEST_EXACT_POWER ||
        exponent < -LARGEST_EXACT_POWER)
        return false;
    *value = exponent < 0 ? (double)digits / POWERS_OF_10[-exponent] : (double)digits * POWERS_OF_10[exponent];
    return true;
}

#if defined(__SIZEOF_INT128__)
/* The double nearest to digits / 10^power for digits > 0, exactly rounded: digits / 5^power is divided to 63 bits or
 * more, the lowest of which is set when something is left, and the powers of two are exact. */
static double divide_by_power10(uint64_t digits, int power) {
    __extension__ typedef unsigned __int128 wide;
    uint64_t divisor = 1, quotient;
    int shift = -power - 63;
    wide dividend;

    for (int i = 0; i < power; i++)
        divisor *= 5;
    /* Both with their highest bit set, so that the quotient has 63 or 64 bits. */
    for (; !(digits >> 63); shift--)
        digits <<= 1;
    for (; !(divisor >> 63); shift++)
        divisor <<= 1;
    dividend = (wide)digits << 63;
    quotient = (uint64_t)(dividend / divisor);
    return ldexp((double)(quotient | (dividend % divisor != 0)), shift);
}

/* Numbers of up to 27 decimal places, whose 5^places fits a word. Digits behind the leading ones do not matter when the
 * bounds that they leave open round alike; false when those differ. */
static bool parse_double_places(const decimal *number, double *value) {
    enum { MOST_PLACES = 27 };
    int64_t exponent;
    uint64_t digits = leading_digits(number, &exponent);

    if (exponent > 0 || exponent < -MOST_PLACES)
        return false;
    *value = divide_by_power10(digits, (int)-exponent);
    return (number->count <= WORD_DIGITS && !number->cut) || *value >= divide_by_power10(digits + 1, (int)-exponent);
}
#else
static bool parse_double_places(const decimal *number, double *value) {
    (void)number;
    (void)value;
    return false;
}
#endif

/* A double a few units of its last place off gives the nearest float unless it lies about that close to the halfway
 * point between two floats. False when it does, and where floats have other halfway points. */
static bool parse_float_approximately(const decimal *number, float *value) {
    enum { DIVISIONS = 3, MARGIN = 16 };
    int64_t exponent;
    double approximation = (double)leading_digits(number, &exponent);
    uint64_t bits, distance;

    if (exponent > LARGEST_EXACT_POWER || exponent < -DIVISIONS * LARGEST_EXACT_POWER)
        return false;
    for (; exponent < -LARGEST_EXACT_POWER; exponent += LARGEST_EXACT_POWER)
        approximation /= POWERS_OF_10[LARGEST_EXACT_POWER];
    if (exponent < 0)
        approximation /= POWERS_OF_10[-exponent];
    else
        approximation *= POWERS_OF_10[exponent];
    if (approximation < (double)FLT_MIN || approximation > (double)FLT_MAX)
        return false;
    memcpy(&bits, &approximation, sizeof bits);
    bits &= (UINT64_C(1) << 29) - 1; /* those that the float lacks */
    distance = bits > UINT64_C(1) << 28 ? bits - (UINT64_C(1) << 28) : (UINT64_C(1) << 28) - bits;
    if (distance < MARGIN)
        return false;
    *value = (float)approximation;
    return true;
}

bool foreloop_parse_float(const char *text, size_t length, float *value) {
    decimal number;
    float magnitude;

    switch (read_decimal(text, length, &number)) {
    case DECIMAL_INVALID:
        return false;
    case DECIMAL_NAN:
        magnitude = NAN;
        break;
    case DECIMAL_INFINITE:
        magnitude = INFINITY;
        break;
    default:
        if (number.count == 0) {
            magnitude = 0.0F;
        } else if (!parse_float_approximately(&number, &magnitude)) {
            uint32_t bits = (uint32_t)round_to_bits(&number, &FORMAT_FLOAT);
            memcpy(&magnitude, &bits, sizeof bits);
        }
    }
    *value = number.negative ? -magnitude : magnitude;
    return true;
}

bool foreloop_parse_double(const char *text, size_t length, double *value) {
    enum { SHORT = 15 };
    decimal number;
    double magnitude;
    uint64_t whole = 0;
    size_t digits = 0;

    for (; digits < length && digits < SHORT && text[digits] >= '0' && text[digits] <= '9'; digits++)
        whole = whole * 10 + (uint64_t)(text[digits] - '0');
    if (digits > 0 && digits == length) {
        *value = (double)whole;
        return true;
    }
    switch (read_decimal(text, length, &number)) {
    case DECIMAL_INVALID:
        return false;
    case DECIMAL_NAN:
        magnitude = (double)NAN;
        break;
    case DECIMAL_INFINITE:
        magnitude = (double)INFINITY;
        break;
    default:
        if (number.count == 0) {
            magnitude = 0.0;
        } else if (!parse_double_exact(&number, &magnitude) && !parse_double_places(&number, &magnitude)) {
            uint64_t bits = round_to_bits(&number, &FORMAT_DOUBLE);
            memcpy(&magnitude, &bits, sizeof bits);
        }
    }
    *value = number.negative ? -magnitude : magnitude;
    return true;
}

bool foreloop_parse_int64(const char *text, size_t length, int64_t *value) {
    decimal number;
    int64_t exponent;
    uint64_t digits, limit;

    if (read_decimal(text, length, &number) != DECIMAL_FINITE)
        return false;
    limit = (uint64_t)INT64_MAX + number.negative;
    digits = leading_digits(&number, &exponent);
    if (number.count == 0)
        exponent = 0;
    if (number.count > WORD_DIGITS || exponent < 0)
        return false; /* 20 digits are too large, or a fraction when the last ones are behind the point */
    for (; exponent > 0; exponent--) {
        if (digits > limit / 10)
            return false;
        digits *= 10;
    }
    if (digits > limit)
        return false;
    /* The smallest integer has no positive counterpart to negate. */
    *value = !number.negative ? (int64_t)digits : digits == limit ? INT64_MIN : -(int64_t)digits;
    return true;
}

/* ---- Formatting -------------------------------------------------------------------------------------------------- */

/* Writes the shortest digits that identify significand x 2^exponent among its neighbours to digits[17] and returns
 * their number; 0.digits x 10^*place is the number. */
static size_t shortest_digits(uint64_t significand, int exponent, const binary_format *format, char digits[17],
                              int *place) {
    /* number = rest / scale; the neighbours are 2 x above / scale and 2 x below / scale away. */
    big rest, scale, above, below, sum;
    const bool even = (significand & 1) == 0; /* then the halfway points themselves round to it */
    const bool uneven =
        significand == UINT64_C(1) << (format->precision - 1) && exponent > format->smallest; /* closer below */
    size_t count = 0;
    int bits;

    big_set(&rest, significand);
    big_set(&scale, 1);
    big_set(&above, 1);
    bits = big_bits(&rest) + exponent;
    big_shift_left(&rest, uneven ? 2 : 1);
    big_shift_left(&scale, uneven ? 2 : 1);
    if (exponent >= 0) {
        big_shift_left(&rest, exponent);
        big_shift_left(&above, exponent);
    } else {
        big_shift_left(&scale, -exponent);
    }
    below = above;
    if (uneven)
        big_shift_left(&above, 1);

    /* log10(2) = 0.30103: an estimate that is right or one too small, never too large. */
    *place = bits > 0 ? (int)((int64_t)(bits - 1) * 30103 / 100000) : -(int)((int64_t)(1 - bits) * 30103 / 100000) - 1;
    if (*place >= 0) {
        big_multiply_power10(&scale, *place);
    } else {
        big_multiply_power10(&rest, -*place);
        big_multiply_power10(&above, -*place);
        big_multiply_power10(&below, -*place);
    }
    for (;;) {
        int order;
        big_add(&sum, &rest, &above);
        order = big_compare(&sum, &scale);
        if (order < 0 || (order == 0 && !even))
            break;
        big_multiply_add(&scale, 10, 0);
        (*place)++;
    }

    for (;;) {
        int digit = 0, order;
        bool low, high;

        big_multiply_add(&rest, 10, 0);
        big_multiply_add(&above, 10, 0);
        big_multiply_add(&below, 10, 0);
        while (big_compare(&rest, &scale) >= 0) {
            big_subtract(&rest, &scale);
            digit++;
        }
        order = big_compare(&rest, &below);
        low = order < 0 || (order == 0 && even);
        big_add(&sum, &rest, &above);
        order = big_compare(&sum, &scale);
        high = order > 0 || (order == 0 && even);
        if (low || high) {
            /* Both neighbours of the last digit will do: take the nearer one. */
            if (low && high) {
                big_add(&sum, &rest, &rest);
                order = big_compare(&sum, &scale);
                high = order > 0 || (order == 0 && (digit & 1));
            }
            digits[count++] = (char)('0' + digit + high);
            return count;
        }
        digits[count++] = (char)('0' + digit);
    }
}

static size_t copy_word(const char *word, char *buffer) {
    size_t length = strlen(word);
    memcpy(buffer, word, length + 1);
    return length;
}

/* Lays out 0.digits x 10^place with an exponent: d.ddde-dd. */
static size_t lay_out_scientific(const char *digits, size_t count, int place, char *buffer) {
    unsigned exponent = (unsigned)(place > 0 ? place - 1 : 1 - place);
    size_t length = 0;

    buffer[length++] = digits[0];
    if (count > 1) {
        buffer[length++] = '.';
        memcpy(buffer + length, digits + 1, count - 1);
        length += count - 1;
    }
    buffer[length++] = 'e';
    if (place <= 0)
        buffer[length++] = '-';
    if (exponent >= 100)
        buffer[length++] = (char)('0' + exponent / 100);
    if (exponent >= 10)
        buffer[length++] = (char)('0' + exponent / 10 % 10);
    buffer[length++] = (char)('0' + exponent % 10);
    return length;
}

/* Lays out 0.digits x 10^place without exponent: 0.00ddd, dd.dd or ddd00. */
static size_t lay_out_plain(const char *digits, size_t count, int place, char *buffer) {
    size_t length = 0;
    size_t whole = place > 0 ? (size_t)place : 0; /* digits before the point */
    size_t zeros = place < 0 ? (size_t)-place : whole > count ? whole - count : 0;

    if (whole >= count) {
        memcpy(buffer, digits, count);
        memset(buffer + count, '0', zeros);
        return whole;
    }
    memcpy(buffer, digits, whole);
    length = whole;
    if (whole == 0)
        buffer[length++] = '0';
    buffer[length++] = '.';
    memset(buffer + length, '0', zeros);
    length += zeros;
    memcpy(buffer + length, digits + whole, count - whole);
    return length + count - whole;
}

/* `bits`: the number's, without sign. */
static size_t format_bits(bool negative, uint64_t bits, const binary_format *format, char *buffer) {
    const uint64_t hidden = UINT64_C(1) << (format->precision - 1);
    const int biased = (int)(bits >> (format->precision - 1));
    uint64_t significand = bits & (hidden - 1);
    char digits[17];
    size_t count, length = negative;
    int place;

    if (biased == (1 << format->exponent_bits) - 1)
        return copy_word(significand ? "nan" : negative ? "-inf" : "inf", buffer);
    if (negative)
        buffer[0] = '-';
    if (bits == 0)
        return length + copy_word("0", buffer + length);
    if (biased > 0)
        significand |= hidden;
    count = shortest_digits(significand, format->smallest + (biased > 0 ? biased - 1 : 0), format, digits, &place);
    length += place > 16 || place < -3 ? lay_out_scientific(digits, count, place, buffer + length)
                                       : lay_out_plain(digits, count, place, buffer + length);
    buffer[length] = '\0';
    return length;
}

size_t foreloop_format_float(float value, char buffer[FORELOOP_NUMBER_TEXT_SIZE]) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return format_bits(bits >> 31, bits & UINT32_C(0x7FFFFFFF), &FORMAT_FLOAT, buffer);
}

size_t foreloop_format_double(double value, char buffer[FORELOOP_NUMBER_TEXT_SIZE]) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return format_bits(bits >> 63, bits & UINT64_C(0x7FFFFFFFFFFFFFFF), &FORMAT_DOUBLE, buffer);
}

/* ---- Small formats ----------------------------------------------------------------------------------------------- */

float foreloop_double_to_float(double value) {
    /* The standard leaves the conversion of a double beyond the range undefined; this is where it rounds to infinity.
     */
    const double overflow = 0x1.ffffffp127;
    if (value >= overflow)
        return INFINITY;
    if (value <= -overflow)
        return -INFINITY;
    if (fabs(value) > (double)FLT_MAX)
        return value > 0 ? FLT_MAX : -FLT_MAX;
    return (float)value;
}
