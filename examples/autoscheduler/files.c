/* Files written under another name and renamed; folders that go again. */
#include "files.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
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

static bool same_inode(const char *a, const char *b) {
    struct stat of_a, of_b;
    return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

/* Splits a path; returns the name. */
static const char *split(const char *path, char folder[MAX_PATH + 2]) {
    const char *slash = strrchr(path, '/');
    (void)snprintf(folder, MAX_PATH + 2, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    return slash ? slash + 1 : path;
}

bool same_file(const char *a, const char *b) {
    char of_a[MAX_PATH + 2], of_b[MAX_PATH + 2];
    return same_inode(a, b) || (strcmp(split(a, of_a), split(b, of_b)) == 0 && same_inode(of_a, of_b));
}

/* ---- Folders of generated files ---------------------------------------------------------------------------------- */

static const char SCRATCH[] = "foreloop-autoscheduler-"; /* and six characters */

/* Opens a folder of this user and locks it; -1 when it is another one's, or in use. */
static int hold(int parent, const char *name, int how) {
    struct stat is;
    const int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
        return -1;
    if (fstat(folder, &is) == 0 && is.st_uid == geteuid() && flock(folder, how) == 0)
        return folder;
    (void)close(folder);
    return -1;
}

/* Removes a folder that is held, and the files in it; closes it. */
static void remove_held(int parent, const char *name, int folder) {
    DIR *files = fdopendir(folder);
    for (const struct dirent *file; files && (file = readdir(files));)
        if (strcmp(file->d_name, ".") != 0 && strcmp(file->d_name, "..") != 0)
            (void)unlinkat(folder, file->d_name, 0);
    (void)unlinkat(parent, name, AT_REMOVEDIR);
    if (files)
        (void)closedir(files);
    else
        (void)close(folder);
}

/* Removes what runs that were killed left behind. */
static void sweep(const char *parent) {
    DIR *folders = opendir(parent);
    for (const struct dirent *d; folders && (d = readdir(folders));) {
        if (strncmp(d->d_name, SCRATCH, sizeof SCRATCH - 1) != 0 || strlen(d->d_name) != sizeof SCRATCH - 1 + 6)
            continue;
        const int folder = hold(dirfd(folders), d->d_name, LOCK_EX | LOCK_NB);
        if (folder >= 0)
            remove_held(dirfd(folders), d->d_name, folder);
    }
    if (folders)
        (void)closedir(folders);
}

bool scratch_open(scratch_folder *f, const char *parent) {
    if (!parent)
        parent = getenv("TMPDIR");
    if (!parent || !*parent)
        parent = "/tmp";
    sweep(parent);
    for (;;) {
        struct stat named, open;
        (void)snprintf(f->path, sizeof f->path, "%.*s/%sXXXXXX", MAX_PATH, parent, SCRATCH);
        f->held = -1;
        if (!mkdtemp(f->path))
            return false;
        f->held = hold(AT_FDCWD, f->path, LOCK_EX);
        /* A sweep may have come between; a file system without locks has no sweeps. */
        if (f->held < 0 ? stat(f->path, &named) == 0
                        : fstat(f->held, &open) == 0 && stat(f->path, &named) == 0 && open.st_ino == named.st_ino)
            return true;
        if (f->held >= 0)
            (void)close(f->held);
    }
}

void scratch_close(scratch_folder *f) {
    if (f->held >= 0)
        remove_held(AT_FDCWD, f->path, f->held);
    else
        (void)rmdir(f->path);
    f->held = -1;
}
