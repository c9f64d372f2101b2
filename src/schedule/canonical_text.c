/* The canonical form of a program's text, rule version 1 (docs/ACTIONS.md says it in words): one pass over the bytes,
 * no memory of its own, never longer than the input. */
#include "common/error.h"
#include <foreloop/foreloop.h>
#include <stdbool.h>
#include <string.h>

/* Deeper levels and brackets stay as they are; TVM's own programs reach about 30. */
enum { MAX_LEVEL = 128, MAX_BRACKET = 64 };

typedef struct writer {
    const char *text;
    size_t length;
    char *buffer; /* NULL: only count */
    size_t size;
    size_t widths[MAX_LEVEL + 1]; /* indentation of the open levels, in characters */
    size_t level;
    size_t bracket;     /* open brackets of any sort */
    uint64_t converted; /* by depth: the bracket was a `T.Buffer[` and has become a parenthesis */
    bool started;       /* a line has been written */
} writer;

static void put(writer *w, const char *data, size_t size) {
    if (w->buffer && size > 0)
        memcpy(w->buffer + w->size, data, size);
    w->size += size;
}

static void put_byte(writer *w, char byte) {
    put(w, &byte, 1);
}

static bool is_blank(char byte) {
    return byte == ' ' || byte == '\t';
}

static bool is_newline(char byte) {
    return byte == '\n' || byte == '\r';
}

static bool is_name_byte(char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           byte == '_' || byte == '.';
}

static bool slice_is(const char *text, size_t length, const char *expected) {
    return length == strlen(expected) && memcmp(text, expected, length) == 0;
}

/* ---- Lines that are dropped -------------------------------------------------------------------------------------- */

/* A place in one line, for matching that ignores blanks. */
typedef struct cursor {
    const char *at;
    const char *end;
} cursor;

static bool accept(cursor *c, const char *expected) {
    cursor here = *c;
    for (; *expected; expected++) {
        while (here.at < here.end && is_blank(*here.at))
            here.at++;
        if (here.at == here.end || *here.at != *expected)
            return false;
        here.at++;
    }
    *c = here;
    return true;
}

/* Nothing but blanks and a comment follows on the line. */
static bool accept_line_end(cursor *c) {
    while (c->at < c->end && is_blank(*c->at))
        c->at++;
    return c->at == c->end || *c->at == '#';
}

/* A string in double quotes without escapes. */
static bool accept_string(cursor *c) {
    cursor here = *c;
    if (!accept(&here, "\""))
        return false;
    while (here.at < here.end && *here.at != '"' && *here.at != '\\')
        here.at++;
    if (here.at == here.end || *here.at != '"' || (here.end - here.at > 1 && here.at[1] == '"'))
        return false;
    here.at++;
    *c = here;
    return true;
}

/* Function attributes that every program has: the symbol's name and the promise that buffers do not overlap. */
static bool is_constant_attribute_line(const char *at, const char *end) {
    cursor c = {at, end};
    if (!accept(&c, "T.func_attr({"))
        return false;
    do {
        if (accept(&c, "\"global_symbol\":")) {
            if (!accept_string(&c))
                return false;
        } else if (accept(&c, "\"tir.noalias\":") || accept(&c, "\"tirx.noalias\":")) {
            if (!accept(&c, "True") && !accept(&c, "T.bool(True)"))
                return false;
        } else {
            return false;
        }
    } while (accept(&c, ","));
    return accept(&c, "})") && accept_line_end(&c);
}

/* The word at the start of the line is `word` and a blank follows. */
static bool starts_with_word(const char *at, size_t length, const char *word) {
    size_t size = strlen(word);
    return length > size && memcmp(at, word, size) == 0 && is_blank(at[size]);
}

/* Import, decorator and class lines. `at` is the line's first byte that is not blank. */
static bool is_wrapper_line(const char *at, const char *end) {
    bool brackets = false;
    const char *stop = at;
    for (; stop < end && *stop != '#'; stop++) {
        if (*stop == '"' || *stop == '\'' || *stop == '\\')
            return false;
        brackets = brackets || strchr("()[]{}", *stop) != NULL; /* a zero byte counts as one: no such wrapper */
    }
    while (stop > at && is_blank(stop[-1]))
        stop--;
    size_t length = (size_t)(stop - at);
    if (length == 0)
        return false;
    if (!brackets)
        return starts_with_word(at, length, "from") || starts_with_word(at, length, "import") ||
               (starts_with_word(at, length, "class") && stop[-1] == ':') || slice_is(at, length, "@I.ir_module") ||
               slice_is(at, length, "@T.prim_func");
    static const char prefix[] = "@T.prim_func(";
    size_t prefix_length = sizeof prefix - 1;
    if (length <= prefix_length || memcmp(at, prefix, prefix_length) != 0 || stop[-1] != ')')
        return false;
    for (const char *inside = at + prefix_length; inside < stop - 1; inside++)
        if (strchr("()[]{}", *inside))
            return false;
    return true;
}

/* ---- The rest of a line ------------------------------------------------------------------------------------------ */

/* Starts an output line whose source was indented by `width` characters. Levels are counted as Python does. */
static void begin_line(writer *w, size_t width) {
    if (!w->started) {
        w->widths[0] = width;
    } else {
        while (w->level > 0 && w->widths[w->level] > width)
            w->level--;
        if (width < w->widths[w->level])
            w->widths[w->level] = width;
        else if (width > w->widths[w->level] && w->level < MAX_LEVEL)
            w->widths[++w->level] = width;
        put_byte(w, '\n');
    }
    w->started = true;
    for (size_t i = 0; i < w->level; i++)
        put_byte(w, ' ');
}

/* Copies a string literal that starts at `i`; returns the offset behind it. One in single marks ends at the end of its
 * line at the latest. */
static size_t copy_string(writer *w, size_t i) {
    const char *text = w->text;
    size_t length = w->length, start = i;
    char mark = text[i];
    if (length - i >= 3 && text[i + 1] == mark && text[i + 2] == mark) {
        for (i += 3; i < length; i++) {
            if (text[i] == '\\' && i + 1 < length) {
                i++;
            } else if (text[i] == mark && length - i >= 3 && text[i + 1] == mark && text[i + 2] == mark) {
                i += 3;
                break;
            }
        }
        put(w, text + start, i - start);
        return i;
    }
    for (i++; i < length && !is_newline(text[i]); i++) {
        if (text[i] == '\\' && i + 1 < length && !is_newline(text[i + 1])) {
            i++;
        } else if (text[i] == mark) {
            i++;
            break;
        }
    }
    if (slice_is(text + start, i - start, "\"tirx.noalias\""))
        put(w, "\"tir.noalias\"", 13);
    else
        put(w, text + start, i - start);
    return i;
}

/* Copies a dotted name that starts at `i`, in the spelling that TVM used first. */
static size_t copy_name(writer *w, size_t i) {
    static const struct {
        const char *from, *to;
    } renamed[] = {
        {"T.sblock", "T.block"},
        {"T.sblock_attr", "T.block_attr"},
        {"T.sblock_alloc_buffer", "T.alloc_buffer"},
    };
    size_t start = i;
    while (i < w->length && is_name_byte(w->text[i]))
        i++;
    const char *name = w->text + start;
    size_t length = i - start;
    for (size_t k = 0; k < sizeof renamed / sizeof renamed[0]; k++) {
        if (slice_is(name, length, renamed[k].from)) {
            put(w, renamed[k].to, strlen(renamed[k].to));
            return i;
        }
    }
    put(w, name, length);
    if (slice_is(name, length, "T.Buffer") && i < w->length && w->text[i] == '[' && w->bracket < MAX_BRACKET) {
        put_byte(w, '(');
        w->converted |= UINT64_C(1) << w->bracket++;
        i++;
    }
    return i;
}

/* Copies one byte that is neither blank nor part of a name or string. */
static void copy_mark(writer *w, char byte) {
    if (byte == '(' || byte == '[' || byte == '{') {
        w->bracket++;
    } else if ((byte == ')' || byte == ']' || byte == '}') && w->bracket > 0) {
        w->bracket--;
        if (w->bracket < MAX_BRACKET) {
            uint64_t bit = UINT64_C(1) << w->bracket;
            if (w->converted & bit) {
                w->converted &= ~bit;
                byte = byte == ']' ? ')' : byte;
            }
        }
    }
    put_byte(w, byte);
}

/* Rewrites the line whose first significant byte is at `i`; returns the offset of its end. */
static size_t copy_line(writer *w, size_t i, size_t width) {
    begin_line(w, width);
    bool blank = false;
    while (i < w->length && !is_newline(w->text[i])) {
        char byte = w->text[i];
        if (byte == '#') {
            while (i < w->length && !is_newline(w->text[i]))
                i++;
            break;
        }
        if (is_blank(byte)) {
            blank = true;
            i++;
            continue;
        }
        if (blank)
            put_byte(w, ' ');
        blank = false;
        if (byte == '"' || byte == '\'') {
            i = copy_string(w, i);
        } else if (is_name_byte(byte)) {
            i = copy_name(w, i);
        } else {
            copy_mark(w, byte);
            i++;
        }
    }
    return i;
}

static size_t rewrite(const char *text, size_t length, char *buffer) {
    writer w = {.text = text, .length = length, .buffer = buffer};
    for (size_t i = 0; i < length;) {
        size_t start = i;
        while (i < length && is_blank(text[i]))
            i++;
        if (i == length)
            break;
        if (is_newline(text[i])) {
            i++;
            continue;
        }
        size_t end = i;
        while (end < length && !is_newline(text[end]))
            end++;
        if (text[i] == '#' || is_wrapper_line(text + i, text + end) || is_constant_attribute_line(text + i, text + end))
            i = end;
        else
            i = copy_line(&w, i, i - start);
    }
    return w.size;
}

foreloop_status foreloop_canonical_text(const char *text, size_t length, char *buffer, size_t capacity, size_t *needed,
                                        foreloop_error *error) {
    if ((!text && length > 0) || (!buffer && capacity > 0) || !needed)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "foreloop_canonical_text: text, needed and a buffer for capacity > 0 must not be NULL");
    /* The result never outgrows the input, so a buffer of the input's length needs no counting pass. */
    size_t size = capacity >= length && capacity > 0 ? 0 : rewrite(text, length, NULL);
    if (capacity > 0 && size > capacity) {
        *needed = size;
        return foreloop_fail(error, FORELOOP_ERROR_LIMIT,
                             "the canonical text needs %zu bytes, but the buffer has %zu; give it that much", size,
                             capacity);
    }
    if (capacity > 0)
        size = rewrite(text, length, buffer);
    *needed = size;
    return FORELOOP_OK;
}
