/* Files as bytes: mapped or read, and written whole or not at all. */
#include "common/file.h"
#include "common/alloc.h"
#include "common/error.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEMPORARY_NAMES = 100 };

/* strerror depends on the locale, so the common reasons are spelled out here. */
static const char *reason(int code) {
    switch (code) {
    case ENOENT:
        return "no such file or directory";
    case EACCES:
    case EPERM:
        return "permission denied";
    case EISDIR:
        return "this is a directory, a file is needed";
    case ENOTDIR:
        return "a part of the path is not a directory";
    case ELOOP:
        return "too many symbolic links";
    case ENAMETOOLONG:
        return "the path is too long";
    case EMFILE:
    case ENFILE:
        return "too many open files";
    case ENOSPC:
    case EDQUOT:
        return "no space left on the device";
    case EFBIG:
        return "the file is too large";
    case EROFS:
        return "the file system is read-only";
    case EIO:
        return "input/output error";
    case ENXIO:
        return "this is not a regular file";
    case ENODEV:
        return "this file system cannot map files, use the read_into_memory option";
    case ENOMEM:
        return "out of memory";
    default:
        return NULL;
    }
}

/* The path comes last, so that a long one does not push the reason out of the message. */
static foreloop_status fail_io(foreloop_error *error, const char *what, int code, const char *path) {
    const char *text = reason(code);
    return text ? foreloop_fail(error, FORELOOP_ERROR_IO, "%s: %s: %s", what, text, path)
                : foreloop_fail(error, FORELOOP_ERROR_IO, "%s: system error %d: %s", what, code, path);
}

static foreloop_status read_all(foreloop_file *file, int descriptor, size_t size, const char *path,
                                foreloop_error *error) {
    unsigned char *data = foreloop_allocate(&file->allocator, size, 1);
    size_t done = 0;

    if (!data)
        return foreloop_fail_memory(error, size, 1, "a file's content");
    while (done < size) {
        ssize_t step = read(descriptor, data + done, size - done);
        if (step < 0 && errno == EINTR)
            continue;
        if (step <= 0) {
            foreloop_status status =
                step < 0 ? fail_io(error, "cannot read", errno, path)
                         : foreloop_fail(error, FORELOOP_ERROR_IO, "cannot read: the file became shorter: %s", path);
            foreloop_release(&file->allocator, data);
            return status;
        }
        done += (size_t)step;
    }
    file->data = data;
    return FORELOOP_OK;
}

static foreloop_status open_descriptor(foreloop_file *file, int descriptor, const char *path, bool read_into_memory,
                                       foreloop_error *error) {
    struct stat status;
    void *mapping;

    if (fstat(descriptor, &status) != 0)
        return fail_io(error, "cannot open", errno, path);
    if (!S_ISREG(status.st_mode))
        return fail_io(error, "cannot open", S_ISDIR(status.st_mode) ? EISDIR : ENXIO, path);
    if ((uintmax_t)status.st_size > SIZE_MAX)
        return fail_io(error, "cannot open", EFBIG, path);
    file->size = (size_t)status.st_size;
    if (file->size == 0) {
        file->data = (const unsigned char *)""; /* nothing can be mapped, and nothing is to be released */
        return FORELOOP_OK;
    }
    if (read_into_memory)
        return read_all(file, descriptor, file->size, path, error);
    mapping = mmap(NULL, file->size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (mapping == MAP_FAILED)
        return fail_io(error, "cannot map", errno, path);
    file->data = mapping;
    file->mapped = true;
    return FORELOOP_OK;
}

foreloop_status foreloop_file_open(foreloop_file *file, const char *path, const foreloop_allocator *allocator,
                                   bool read_into_memory, foreloop_error *error) {
    foreloop_file opened = {NULL, 0, *allocator, false};
    foreloop_status status;
    int descriptor;

    /* O_NONBLOCK: opening a FIFO must not wait for its writer; regular files ignore it. */
    do {
        descriptor = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    } while (descriptor < 0 && errno == EINTR);
    if (descriptor < 0)
        return fail_io(error, "cannot open", errno, path);
    status = open_descriptor(&opened, descriptor, path, read_into_memory, error);
    close(descriptor);
    if (status == FORELOOP_OK)
        *file = opened;
    return status;
}

void foreloop_file_close(foreloop_file *file) {
    if (file->size > 0) {
        void *data;
        memcpy(&data, &file->data, sizeof data); /* sheds the const that readers of the content need */
        if (file->mapped)
            munmap(data, file->size);
        else
            foreloop_release(&file->allocator, data);
    }
    file->data = NULL;
    file->size = 0;
    file->mapped = false;
}

char *foreloop_path_join(const foreloop_allocator *allocator, const char *directory, const char *name) {
    size_t directory_length = strlen(directory);
    size_t name_length = strlen(name);
    size_t slash = directory_length > 0 && directory[directory_length - 1] != '/';
    char *path = foreloop_allocate(allocator, directory_length + slash + name_length + 1, 1);

    if (!path)
        return NULL;
    memcpy(path, directory, directory_length);
    if (slash)
        path[directory_length] = '/';
    memcpy(path + directory_length + slash, name, name_length + 1);
    return path;
}

bool foreloop_path_exists(const char *path) {
    struct stat status;
    return stat(path, &status) == 0;
}

bool foreloop_path_is_directory(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

static foreloop_status write_parts(int descriptor, const foreloop_bytes *parts, size_t count, const char *path,
                                   foreloop_error *error) {
    for (size_t i = 0; i < count; i++) {
        const unsigned char *data = parts[i].data;
        size_t done = 0;
        while (done < parts[i].size) {
            ssize_t step = write(descriptor, data + done, parts[i].size - done);
            if (step < 0 && errno == EINTR)
                continue;
            if (step < 0)
                return fail_io(error, "cannot write", errno, path);
            done += (size_t)step;
        }
    }
    /* Before the rename: otherwise a crash could leave the new name with no content. */
    if (fsync(descriptor) != 0)
        return fail_io(error, "cannot write", errno, path);
    return FORELOOP_OK;
}

/* Creates a file beside `path` that did not exist, and writes its name to temporary[size]. */
static int create_temporary(const char *path, char *temporary, size_t size) {
    int descriptor = -1;
    for (int i = 0; i < TEMPORARY_NAMES; i++) {
        snprintf(temporary, size, "%s.%d.tmp", path, i);
        descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor >= 0 || errno != EEXIST)
            break;
    }
    return descriptor;
}

foreloop_status foreloop_file_write(const char *path, const foreloop_bytes *parts, size_t count,
                                    const foreloop_allocator *allocator, foreloop_error *error) {
    struct stat existing;
    foreloop_status status;
    size_t size = strlen(path) + sizeof ".100.tmp";
    char *temporary;
    int descriptor;

    /* A rename would replace a device or FIFO by a file. */
    if (stat(path, &existing) == 0 && !S_ISREG(existing.st_mode))
        return fail_io(error, "cannot write", S_ISDIR(existing.st_mode) ? EISDIR : ENXIO, path);
    temporary = foreloop_allocate(allocator, size, 1);
    if (!temporary)
        return foreloop_fail_memory(error, size, 1, "a file name");
    descriptor = create_temporary(path, temporary, size);
    if (descriptor < 0) {
        status = errno == EEXIST ? foreloop_fail(error, FORELOOP_ERROR_IO,
                                                 "cannot write: %d temporary files are left over from writers that "
                                                 "ended early, remove them: %s.*.tmp",
                                                 TEMPORARY_NAMES, path)
                                 : fail_io(error, "cannot write", errno, path);
    } else {
        status = write_parts(descriptor, parts, count, path, error);
        if (close(descriptor) != 0 && status == FORELOOP_OK)
            status = fail_io(error, "cannot write", errno, path);
        if (status == FORELOOP_OK && rename(temporary, path) != 0)
            status = fail_io(error, "cannot write", errno, path);
        if (status != FORELOOP_OK)
            unlink(temporary);
    }
    foreloop_release(allocator, temporary);
    return status;
}
