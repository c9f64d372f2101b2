/* Decimal text to numbers and back, correctly rounded and without locale. */
#ifndef FORELOOP_COMMON_NUMBER_H
#define FORELOOP_COMMON_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Parses the whole of text[length] as a JSON-like number: sign (+ too), digits, fraction, exponent (any case), also
 * NaN, Infinity, inf with sign in any case. Nearest-even rounding straight to the target type (float32 is never
 * rounded through double); overflow gives infinity. False when the text is not a number. Linear time, any length. */
bool foreloop_parse_float(const char *text, size_t length, float *value);
bool foreloop_parse_double(const char *text, size_t length, double *value);
/* Integers only (also "3.0" and "3e2" when the value is a whole number in range). */
bool foreloop_parse_int64(const char *text, size_t length, int64_t *value);

/* The shortest decimal text that parses back to the same bits; "nan", "inf", "-inf". Returns its length. */
enum { FORELOOP_NUMBER_TEXT_SIZE = 40 };
size_t foreloop_format_float(float value, char buffer[FORELOOP_NUMBER_TEXT_SIZE]);
size_t foreloop_format_double(double value, char buffer[FORELOOP_NUMBER_TEXT_SIZE]);

/* IEEE half and bfloat16 to float32, exact. Without branches, so that loops over it become vectors; subnormal halves go
 * through an integer, since the host may have told the processor to take subnormal floats for zero. */
static inline float foreloop_half_to_float(uint16_t bits) {
    /* Choices by masks, not by branches: a loop of these becomes vectors. */
    const uint32_t sign = (uint32_t)(bits & 0x8000u) << 16, magnitude = bits & 0x7FFFu;
    const uint32_t is_small = 0u - (uint32_t)(magnitude < 0x0400u), is_large = 0u - (uint32_t)(magnitude >= 0x7C00u);
    const uint32_t rebased = (magnitude << 13) + UINT32_C(0x38000000) + (UINT32_C(0x38000000) & is_large);
    const float small = (float)(int32_t)magnitude * 0x1p-24F;
    uint32_t small_bits, result;
    float value;

    memcpy(&small_bits, &small, sizeof small);
    result = sign | (small_bits & is_small) | (rebased & ~is_small);
    memcpy(&value, &result, sizeof value);
    return value;
}
static inline float foreloop_bfloat16_to_float(uint16_t bits) {
    const uint32_t result = (uint32_t)bits << 16;
    float value;

    memcpy(&value, &result, sizeof value);
    return value;
}

/* The nearest float32, infinite beyond its range. */
float foreloop_double_to_float(double value);

#endif
