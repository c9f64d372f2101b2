/* Test Anything Protocol in a header: CHECK(condition, format, ...) prints a line; return tap_done() from main. */
#ifndef FORELOOP_TESTS_TAP_H
#define FORELOOP_TESTS_TAP_H

#include <stdarg.h>
#include <stdio.h>

static int tap_count, tap_failed;

__attribute__((format(printf, 4, 5), unused)) static int tap_check(int condition, const char *file, int line,
                                                                   const char *format, ...) {
    va_list arguments;
    printf("%sok %d - ", condition ? "" : "not ", ++tap_count);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    if (!condition) {
        tap_failed++;
        printf("# failed at %s:%d\n", file, line);
    }
    return condition;
}
#define CHECK(condition, ...) tap_check((condition) ? 1 : 0, __FILE__, __LINE__, __VA_ARGS__)

__attribute__((unused)) static void tap_skip(const char *why) {
    printf("ok %d # SKIP %s\n", ++tap_count, why);
}

__attribute__((unused)) static int tap_done(void) {
    printf("1..%d\n", tap_count);
    return tap_failed ? 1 : 0;
}

#endif
