/* Filling in a foreloop_error: formatting, and cleaning the message to one line of valid UTF-8. */
#include "common/error.h"
#include "common/utf8.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MESSAGE_SIZE = sizeof(((foreloop_error *)0)->message) };

/* C0, DEL, C1, and the Unicode line and paragraph separators: whatever a terminal or a log may take for a line's end or
 * a command. */
static int is_control(uint32_t code_point) {
    return code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0) || code_point == 0x2028 ||
           code_point == 0x2029;
}

/* Replaces control characters and invalid bytes by '?'. When the message was cut to fit, a sequence that the cut left
 * incomplete is dropped. */
static void clean_message(char message[MESSAGE_SIZE], int was_cut) {
    size_t length = strlen(message);
    size_t kept = 0;

    for (size_t i = 0; i < length;) {
        uint32_t code_point;
        size_t step;
        int valid = foreloop_utf8_decode(message + i, length - i, &code_point, &step);
        if (!valid && was_cut && i + step == length)
            break;
        if (!valid || is_control(code_point)) {
            message[kept++] = '?';
        } else {
            memmove(message + kept, message + i, step);
            kept += step;
        }
        i += step;
    }
    message[kept] = '\0';
}

static void format_message(foreloop_error *error, const char *format, va_list arguments) {
    int length = vsnprintf(error->message, MESSAGE_SIZE, format, arguments);
    if (length < 0)
        error->message[0] = '\0';
    clean_message(error->message, length >= MESSAGE_SIZE);
}

foreloop_status foreloop_fail(foreloop_error *error, foreloop_status code, const char *format, ...) {
    if (error) {
        va_list arguments;
        error->code = code;
        error->position_kind = FORELOOP_POSITION_NONE;
        error->position = 0;
        va_start(arguments, format);
        format_message(error, format, arguments);
        va_end(arguments);
    }
    return code;
}

foreloop_status foreloop_fail_at(foreloop_error *error, foreloop_status code, foreloop_position kind, uint64_t position,
                                 const char *format, ...) {
    if (error) {
        va_list arguments;
        error->code = code;
        error->position_kind = kind;
        error->position = position;
        va_start(arguments, format);
        format_message(error, format, arguments);
        va_end(arguments);
    }
    return code;
}

foreloop_status foreloop_error_prefix(foreloop_error *error, foreloop_status code, const char *format, ...) {
    if (error) {
        char message[MESSAGE_SIZE];
        va_list arguments;
        int length;

        memcpy(message, error->message, MESSAGE_SIZE);
        va_start(arguments, format);
        format_message(error, format, arguments);
        va_end(arguments);
        error->code = code;
        length = (int)strlen(error->message);
        length += snprintf(error->message + length, (size_t)(MESSAGE_SIZE - length), ": %s", message);
        clean_message(error->message, length >= MESSAGE_SIZE);
    }
    return code;
}
