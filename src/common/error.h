/* Filling in a foreloop_error: every failure in the library goes through foreloop_fail or foreloop_fail_at. */
#ifndef FORELOOP_COMMON_ERROR_H
#define FORELOOP_COMMON_ERROR_H

#include "common/internal_api.h"

#if defined(__GNUC__)
#define FORELOOP_PRINTF(string_index, first) __attribute__((format(printf, string_index, first)))
#else
#define FORELOOP_PRINTF(string_index, first)
#endif

/* Fills `error` (may be NULL) and returns `code`, so that callers write `return foreloop_fail(...)`. The format must
 * not print floating point (%f, %g): its decimal point depends on the locale. Control characters and invalid UTF-8 in
 * the message are replaced by '?', so a message is always one clean line. */
FORELOOP_INTERNAL_API foreloop_status foreloop_fail(foreloop_error *error, foreloop_status code, const char *format,
                                                    ...) FORELOOP_PRINTF(3, 4);
foreloop_status foreloop_fail_at(foreloop_error *error, foreloop_status code, foreloop_position kind, uint64_t position,
                                 const char *format, ...) FORELOOP_PRINTF(5, 6);

/* Puts "prefix: " before the message of an error that a callee filled in (for example the name of the file). Returns
 * `code`. */
FORELOOP_INTERNAL_API foreloop_status foreloop_error_prefix(foreloop_error *error, foreloop_status code,
                                                            const char *format, ...) FORELOOP_PRINTF(3, 4);

/* For messages: FORELOOP_QUOTED(text, length) with the conversion "%.*s" cuts quoted data to 40 bytes. */
#define FORELOOP_QUOTED(text, length) (int)((length) > 40 ? 40 : (length)), (text)

/* Hands a failure on to the caller. */
#define FORELOOP_TRY(expression)                                                                                       \
    do {                                                                                                               \
        foreloop_status try_status_ = (expression);                                                                    \
        if (try_status_ != FORELOOP_OK)                                                                                \
            return try_status_;                                                                                        \
    } while (0)

#endif
