/* Files written under another name and renamed. */
#include "files.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void partial_name(const char *path, char *partial, size_t size) {
    (void)snprintf(partial, size, "%.*s.%ld.partial", FILE_PATH_SIZE - 1, path, (long)getpid());
}

bool partial_end(const char *partial, const char *path, bool good) {
    const int reason = errno;
    if (good && rename(partial, path) == 0)
        return true;
    errno = good ? errno : reason ? reason : EIO;
    const int kept = errno;
    (void)unlink(partial);
    errno = kept;
    return false;
}

FILE *whole_open(whole_file *w, const char *path) {
    w->path = path;
    partial_name(path, w->partial, sizeof w->partial);
    w->out = fopen(w->partial, "w");
    if (w->out)
        errno = 0; /* what is found there at the end is of a write */
    return w->out;
}

bool whole_close(whole_file *w, bool good) {
    good = fflush(w->out) == 0 && !ferror(w->out) && good;
    const int reason = errno;
    if (fclose(w->out) != 0)
        good = false;
    else
        errno = reason;
    return partial_end(w->partial, w->path, good);
}

bool can_be_written(const char *path, char *message, size_t message_size) {
    static const char SOME[4096] = "";
    struct stat is;
    whole_file w;
    const char *reason = NULL;
    if (stat(path, &is) == 0 && !S_ISREG(is.st_mode))
        reason = S_ISDIR(is.st_mode) ? "it is a folder" : "it is no regular file";
    else if (!whole_open(&w, path))
        reason = strerror(errno);
    else {
        /* A full disk takes empty files, so a page is tried. */
        const bool written = fwrite(SOME, sizeof SOME, 1, w.out) == 1 && fflush(w.out) == 0;
        const int error = errno;
        (void)fclose(w.out);
        (void)unlink(w.partial);
        reason = written ? NULL : strerror(error);
    }
    if (reason)
        (void)snprintf(message, message_size, "cannot write %.200s: %s", path, reason);
    return !reason;
}

bool same_file(const char *a, const char *b) {
    struct stat of_a, of_b;
    return strcmp(a, b) == 0 ||
           (stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino);
}
