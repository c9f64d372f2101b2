/* Files as bytes: mapped or read, and written whole or not at all. */
#ifndef FORELOOP_COMMON_FILE_H
#define FORELOOP_COMMON_FILE_H

#include <foreloop/foreloop.h>
#include <stdbool.h>

typedef struct foreloop_file {
    const unsigned char *data; /* never NULL after a successful open, also for an empty file */
    size_t size;
    foreloop_allocator allocator;
    bool mapped;
} foreloop_file;

/* Opens a regular file (anything else: ERROR_IO with the reason; directories, FIFOs and devices never block). */
foreloop_status foreloop_file_open(foreloop_file *file, const char *path, const foreloop_allocator *allocator,
                                   bool read_into_memory, foreloop_error *error);
/* A zeroed file may be closed. */
void foreloop_file_close(foreloop_file *file);

/* "directory/name" in allocated memory. */
char *foreloop_path_join(const foreloop_allocator *allocator, const char *directory, const char *name);
bool foreloop_path_exists(const char *path);
bool foreloop_path_is_directory(const char *path);

/* Writes the parts to a temporary file beside `path` and renames it. */
typedef struct foreloop_bytes {
    const void *data;
    size_t size;
} foreloop_bytes;
foreloop_status foreloop_file_write(const char *path, const foreloop_bytes *parts, size_t count,
                                    const foreloop_allocator *allocator, foreloop_error *error);

#endif
