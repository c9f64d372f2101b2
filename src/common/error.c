/* Filling in a foreloop_error: formatting, and cleaning the message to one line of valid UTF-8. */
#include "common/error.h"
#include "common/utf8.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* FULL_SIZE: room for two of the longest paths, before a message is shortened. */
enum { MESSAGE_SIZE = sizeof(((foreloop_error *)0)->message), FULL_SIZE = 9216 };

/* C0, DEL, C1, and the Unicode line and paragraph separators: whatever a terminal or a log may take for a line's end or
 * a command. */
static int is_control(uint32_t code_point) {
    return code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0) || code_point == 0x2028 ||
           code_point == 0x2029;
}

/* Replaces control characters and invalid bytes by '?', and returns the length. When the message was cut to fit, a
 * sequence that the cut left incomplete is dropped. */
static size_t clean_message(char *message, int was_cut) {
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
    return kept;
}

static int is_continuation(char byte) {
    return ((unsigned char)byte & 0xC0) == 0x80;
}

/* Cleans the text and makes it the error's message. What does not fit is left out of the middle: a long path stands at
 * either end of a message, and must push neither what is wrong nor how to mend it out. */
static void set_message(foreloop_error *error, char full[FULL_SIZE], int was_cut) {
    static const char gap[] = " ... ";
    enum { GAP = sizeof gap - 1, ROOM = MESSAGE_SIZE - 1 - GAP };
    size_t length = clean_message(full, was_cut);
    size_t head = ROOM / 2, tail = length;

    if (length < MESSAGE_SIZE) {
        memcpy(error->message, full, length + 1);
        return;
    }
    while (head > 0 && is_continuation(full[head]))
        head--;
    tail -= ROOM - head;
    while (is_continuation(full[tail]))
        tail++;
    memcpy(error->message, full, head);
    memcpy(error->message + head, gap, GAP);
    memcpy(error->message + head + GAP, full + tail, length - tail + 1);
}

static void format_message(foreloop_error *error, const char *format, va_list arguments) {
    char full[FULL_SIZE] = "";
    int length = vsnprintf(full, FULL_SIZE, format, arguments);
    set_message(error, full, length >= FULL_SIZE);
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
        char full[FULL_SIZE] = "";
        va_list arguments;
        va_start(arguments, format);
        /* The message that is there always fits behind the prefix. */
        (void)vsnprintf(full, FULL_SIZE - MESSAGE_SIZE - 2, format, arguments);
        va_end(arguments);
        error->code = code;
        size_t length = strlen(full);
        (void)snprintf(full + length, FULL_SIZE - length, ": %s", error->message);
        set_message(error, full, 0);
    }
    return code;
}
