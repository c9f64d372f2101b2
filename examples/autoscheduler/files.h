/*
 * Files that a run makes: each appears whole or not at all, and whether it can be written is known beforehand. And the
 * folder of those that go again.
 */
#ifndef AUTOSCHEDULER_FILES_H
#define AUTOSCHEDULER_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { MAX_PATH = 1000, FILE_PATH_SIZE = MAX_PATH + 320 /* for the names of files in a given folder */ };

/* The name under which a file is written until it is whole. */
void partial_name(const char *path, char *partial, size_t size);
/* Renames it where all went well, else removes it; false with errno, which is that of the failure. */
bool partial_end(const char *partial, const char *path, bool good);

typedef struct whole_file {
    FILE *out;
    const char *path;
    char partial[FILE_PATH_SIZE + 32];
} whole_file;

/* NULL with errno. `path` is kept by reference. */
FILE *whole_open(whole_file *w, const char *path);
/* False with errno where anything could not be written or `good` is not set; nothing is left of the file then. */
bool whole_close(whole_file *w, bool good);

/* Whether a file of this name can be made or replaced; false with the reason. */
bool can_be_written(const char *path, char *message, size_t message_size);
/* Whether two names are of one file, also of one that is yet to be made. */
bool same_file(const char *a, const char *b);

/* A new folder for generated files. It is locked while it is in use, so that one which a killed run left behind is
 * found out and removed by the next. */
typedef struct scratch_folder {
    char path[FILE_PATH_SIZE];
    int held; /* descriptor, -1: none */
} scratch_folder;

/* `parent` is a folder that exists; NULL: $TMPDIR, else /tmp. False with errno. */
bool scratch_open(scratch_folder *f, const char *parent);
/* Removes it with the files in it. */
void scratch_close(scratch_folder *f);

#endif
