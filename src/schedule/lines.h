/* Lines of a text file, plain or gzip. */
#ifndef FORELOOP_SCHEDULE_LINES_H
#define FORELOOP_SCHEDULE_LINES_H

#include "common/alloc.h"
#include <foreloop/foreloop.h>
#include <stdbool.h>

/* Longer lines are refused, so that a small compressed file cannot ask for any amount of memory. */
enum { FORELOOP_LINE_MAX = 1 << 26 };

typedef struct foreloop_lines foreloop_lines;

/* `data` is borrowed. Compression is detected by content. */
foreloop_status foreloop_lines_open(foreloop_lines **lines, const void *data, size_t size,
                                    const foreloop_allocator *allocator, foreloop_error *error);
void foreloop_lines_close(foreloop_lines *lines);

/* The next line without its end, valid until the next call, and its number from 0. FORELOOP_END after the last one.
 * FORMAT when the compressed data are damaged, with nothing but FORELOOP_END after that; LIMIT for a line that is too
 * long, which is skipped. */
foreloop_status foreloop_lines_next(foreloop_lines *lines, const char **line, size_t *length, uint64_t *number,
                                    foreloop_error *error);

#endif
