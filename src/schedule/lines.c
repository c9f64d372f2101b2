/* Lines of a text file, plain (cut out of the caller's bytes) or gzip (inflated piece by piece). */
#include "schedule/lines.h"
#include "common/error.h"
#include <limits.h>
#include <string.h>
#include <zlib.h>

enum { PIECE = 1 << 16 };

static const char OUT_OF_MEMORY[] = "needs more memory";

struct foreloop_lines {
    foreloop_allocator allocator;
    const unsigned char *data;
    size_t size;
    size_t offset; /* of the next unread byte */
    uint64_t number;
    bool compressed;
    bool inflating; /* `stream` is set up */
    bool ended;     /* no more bytes will come out of the stream */
    z_stream stream;
    const char *damage;   /* why the stream ended early; told once, after the whole lines before it */
    unsigned char *piece; /* inflated bytes [piece_offset, piece_size) are still to be read */
    size_t piece_offset;
    size_t piece_size;
    foreloop_buffer line;
};

static voidpf allocate_for_zlib(voidpf user, uInt count, uInt size) {
    return foreloop_allocate(user, count, size);
}

static void release_for_zlib(voidpf user, voidpf pointer) {
    foreloop_release(user, pointer);
}

static bool is_gzip(const unsigned char *data, size_t size) {
    return size >= 2 && data[0] == 0x1f && data[1] == 0x8b;
}

foreloop_status foreloop_lines_open(foreloop_lines **lines, const void *data, size_t size,
                                    const foreloop_allocator *allocator, foreloop_error *error) {
    foreloop_lines *l = foreloop_allocate_zeroed(allocator, 1, sizeof *l);
    if (!l)
        return foreloop_fail_memory(error, 1, sizeof *l, "the reader of a tuning-record file");
    l->allocator = *allocator;
    l->data = data;
    l->size = size;
    l->line.allocator = &l->allocator;
    l->compressed = is_gzip(l->data, size);
    if (l->compressed) {
        l->piece = foreloop_allocate(allocator, PIECE, 1);
        l->stream.zalloc = allocate_for_zlib;
        l->stream.zfree = release_for_zlib;
        l->stream.opaque = &l->allocator;
        l->inflating = l->piece && inflateInit2(&l->stream, 15 + 16) == Z_OK;
        if (!l->inflating) {
            foreloop_lines_close(l);
            return foreloop_fail_memory(error, PIECE, 1, "inflating a gzip file");
        }
    }
    *lines = l;
    return FORELOOP_OK;
}

void foreloop_lines_close(foreloop_lines *lines) {
    if (!lines)
        return;
    if (lines->inflating)
        inflateEnd(&lines->stream);
    foreloop_buffer_close(&lines->line);
    foreloop_release(&lines->allocator, lines->piece);
    foreloop_allocator allocator = lines->allocator;
    foreloop_release(&allocator, lines);
}

static void end_stream(foreloop_lines *l, const char *damage) {
    l->ended = true;
    l->damage = damage;
}

/* After a member's end: another member, zero padding, or the end. */
static void next_member(foreloop_lines *l) {
    const unsigned char *rest = l->data + l->offset;
    size_t size = l->size - l->offset;
    if (is_gzip(rest, size)) {
        if (inflateReset(&l->stream) != Z_OK)
            end_stream(l, "cannot be read on after a member's end");
        return;
    }
    size_t zeros = 0;
    while (zeros < size && rest[zeros] == 0)
        zeros++;
    end_stream(l, zeros == size ? NULL : "has something else behind its compressed data");
}

/* Refills the piece; leaves it empty at the end of the stream. */
static void inflate_piece(foreloop_lines *l) {
    l->piece_offset = l->piece_size = 0;
    while (l->piece_size == 0 && !l->ended) {
        size_t available = l->size - l->offset;
        uInt given = available > UINT_MAX ? UINT_MAX : (uInt)available;
        /* zlib's interface is not const, but it only reads. */
        l->stream.next_in = (Bytef *)(uintptr_t)(l->data + l->offset);
        l->stream.avail_in = given;
        l->stream.next_out = l->piece;
        l->stream.avail_out = PIECE;
        int result = inflate(&l->stream, Z_NO_FLUSH);
        l->offset += given - l->stream.avail_in;
        l->piece_size = PIECE - l->stream.avail_out;
        if (result == Z_STREAM_END)
            next_member(l);
        else if (result == Z_MEM_ERROR)
            end_stream(l, OUT_OF_MEMORY);
        else if (result == Z_BUF_ERROR)
            end_stream(l, "is cut off");
        else if (result != Z_OK)
            end_stream(l, "is damaged");
    }
}

/* Behind the last line of the stream. */
static foreloop_status finish_stream(foreloop_lines *l, foreloop_error *error) {
    const char *damage = l->damage;
    l->damage = NULL;
    if (!damage)
        return FORELOOP_END;
    if (damage == OUT_OF_MEMORY)
        return foreloop_fail_memory(error, PIECE, 1, "inflating a gzip file");
    return foreloop_fail_at(error, FORELOOP_ERROR_IO, FORELOOP_POSITION_LINE, l->number + 1,
                            "line %llu: the gzip file %s; get a whole copy of it", (unsigned long long)l->number + 1,
                            damage);
}

static foreloop_status fail_long_line(uint64_t number, foreloop_error *error) {
    return foreloop_fail_at(error, FORELOOP_ERROR_LIMIT, FORELOOP_POSITION_LINE, number + 1,
                            "line %llu is longer than %d bytes", (unsigned long long)number + 1, FORELOOP_LINE_MAX);
}

static foreloop_status next_plain(foreloop_lines *l, const char **line, size_t *length, uint64_t *number,
                                  foreloop_error *error) {
    if (l->offset == l->size)
        return FORELOOP_END;
    const unsigned char *start = l->data + l->offset;
    const unsigned char *end = memchr(start, '\n', l->size - l->offset);
    size_t size = end ? (size_t)(end - start) : l->size - l->offset;
    l->offset += size + (end ? 1 : 0);
    uint64_t current = l->number++;
    if (size > FORELOOP_LINE_MAX)
        return fail_long_line(current, error);
    *line = (const char *)start;
    *length = size;
    *number = current;
    return FORELOOP_OK;
}

static foreloop_status next_compressed(foreloop_lines *l, const char **line, size_t *length, uint64_t *number,
                                       foreloop_error *error) {
    l->line.size = 0;
    bool any = false, found = false;
    foreloop_status status = FORELOOP_OK;
    while (!found) {
        if (l->piece_offset == l->piece_size) {
            inflate_piece(l);
            if (l->piece_size == 0) {
                if (!any || l->damage)
                    return finish_stream(l, error);
                break;
            }
        }
        any = true;
        const unsigned char *start = l->piece + l->piece_offset;
        size_t left = l->piece_size - l->piece_offset;
        const unsigned char *end = memchr(start, '\n', left);
        size_t size = end ? (size_t)(end - start) : left;
        found = end != NULL;
        l->piece_offset += size + (found ? 1 : 0);
        /* A line that does not fit is read to its end all the same, so that the next one begins where it should. */
        if (status == FORELOOP_OK && size > FORELOOP_LINE_MAX - l->line.size)
            status = fail_long_line(l->number, error);
        if (status == FORELOOP_OK)
            status = foreloop_buffer_append(&l->line, start, size, error);
    }
    uint64_t current = l->number++;
    if (status != FORELOOP_OK)
        return status;
    *line = l->line.data ? l->line.data : "";
    *length = l->line.size;
    *number = current;
    return FORELOOP_OK;
}

foreloop_status foreloop_lines_next(foreloop_lines *lines, const char **line, size_t *length, uint64_t *number,
                                    foreloop_error *error) {
    static const char byte_order_mark[] = "\xef\xbb\xbf";
    FORELOOP_TRY(lines->compressed ? next_compressed(lines, line, length, number, error)
                                   : next_plain(lines, line, length, number, error));
    if (*number == 0 && *length >= 3 && memcmp(*line, byte_order_mark, 3) == 0) {
        *line += 3;
        *length -= 3;
    }
    return FORELOOP_OK;
}
