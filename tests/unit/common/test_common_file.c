/* Files: reading mapped and in memory, what is refused without blocking, and writing whole or not at all. */
#include "common/alloc.h"
#include "common/file.h"
#include "failing_allocator.h"
#include "tap.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/foreloop-file-XXXXXX";
static char path_text[128];

static const char *path_of(const char *name) {
    snprintf(path_text, sizeof path_text, "%s/%s", folder, name);
    return path_text;
}

static void make_file(const char *path, const void *data, size_t size) {
    FILE *file = fopen(path, "wb");
    if (file) {
        fwrite(data, 1, size, file);
        fclose(file);
    }
}

static void test_open(void) {
    static char content[100000];

    memset(content, 'a', sizeof content);
    make_file(path_of("content"), content, sizeof content);
    make_file(path_of("empty"), "", 0);
    for (int read_into_memory = 0; read_into_memory < 2; read_into_memory++) {
        failing_allocator memory = {.fail_at = SIZE_MAX};
        foreloop_allocator allocator = failing_allocator_use(&memory);
        foreloop_error error = {0};
        foreloop_file file = {0};

        CHECK(foreloop_file_open(&file, path_of("content"), &allocator, read_into_memory, &error) == FORELOOP_OK &&
                  file.size == sizeof content && !memcmp(file.data, content, file.size) &&
                  memory.live == (size_t)read_into_memory,
              "content, read_into_memory %d", read_into_memory);
        foreloop_file_close(&file);
        foreloop_file_close(&file);
        CHECK(foreloop_file_open(&file, path_of("empty"), &allocator, read_into_memory, &error) == FORELOOP_OK &&
                  file.size == 0 && file.data,
              "empty, read_into_memory %d", read_into_memory);
        foreloop_file_close(&file);
        CHECK(memory.live == 0, "nothing leaks");
    }
    {
        failing_allocator memory = {.fail_at = 0};
        foreloop_allocator allocator = failing_allocator_use(&memory);
        foreloop_error error = {0};
        foreloop_file file = {.size = 42};
        CHECK(foreloop_file_open(&file, path_of("content"), &allocator, true, &error) == FORELOOP_ERROR_MEMORY &&
                  file.size == 42,
              "no memory: %s", error.message);
    }
}

static void test_refused(void) {
    static char long_name[5000];
    const char *const names[] = {"absent", "fifo", ".", "content/x", "loop"};
    foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    foreloop_error error = {0};
    foreloop_file file = {.size = 42};

    CHECK(mkfifo(path_of("fifo"), 0600) == 0, "a FIFO");
    CHECK(symlink("loop", path_of("loop")) == 0, "a symbolic link to itself");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        for (int read_into_memory = 0; read_into_memory < 2; read_into_memory++)
            CHECK(foreloop_file_open(&file, path_of(names[i]), &allocator, read_into_memory, &error) ==
                          FORELOOP_ERROR_IO &&
                      file.size == 42,
                  "%s", error.message);
    CHECK(foreloop_file_open(&file, "/dev/zero", &allocator, true, &error) == FORELOOP_ERROR_IO, "%s", error.message);
    CHECK(foreloop_file_open(&file, "", &allocator, true, &error) == FORELOOP_ERROR_IO, "%s", error.message);
    memset(long_name, 'x', sizeof long_name - 1);
    CHECK(foreloop_file_open(&file, long_name, &allocator, true, &error) == FORELOOP_ERROR_IO &&
              strstr(error.message, "too long"),
          "a long path leaves the reason in the message");
    unlink(path_of("loop"));
}

static void test_paths(void) {
    static const struct {
        const char *directory, *name, *joined;
    } cases[] = {{"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"", "b", "b"}, {"/", "b", "/b"}};
    foreloop_allocator allocator = foreloop_allocator_or_default(NULL);

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *joined = foreloop_path_join(&allocator, cases[i].directory, cases[i].name);
        CHECK(joined && strcmp(joined, cases[i].joined) == 0, "joined as %s", cases[i].joined);
        foreloop_release(&allocator, joined);
    }
    CHECK(foreloop_path_exists(path_of("content")) && !foreloop_path_exists(path_of("absent")) &&
              foreloop_path_is_directory(folder) && !foreloop_path_is_directory(path_of("content")),
          "what a path is");
}

/* The file holds exactly this text. */
static bool holds(const char *path, const char *text) {
    foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    foreloop_file file = {0};
    bool same = foreloop_file_open(&file, path, &allocator, false, NULL) == FORELOOP_OK && file.size == strlen(text) &&
                !memcmp(file.data, text, file.size);
    foreloop_file_close(&file);
    return same;
}

static void test_write(void) {
    const foreloop_bytes parts[] = {{"one ", 4}, {NULL, 0}, {"two", 3}};
    foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    failing_allocator memory = {.fail_at = 0};
    foreloop_allocator failing = failing_allocator_use(&memory);
    foreloop_error error = {0};

    CHECK(foreloop_file_write(path_of("out"), parts, 3, &allocator, &error) == FORELOOP_OK &&
              holds(path_of("out"), "one two"),
          "written %s", error.message);
    CHECK(foreloop_file_write(path_of("out"), parts, 1, &allocator, &error) == FORELOOP_OK &&
              holds(path_of("out"), "one "),
          "replaced");
    CHECK(foreloop_file_write(path_of("out"), parts, 3, &failing, &error) == FORELOOP_ERROR_MEMORY &&
              holds(path_of("out"), "one "),
          "no memory: %s", error.message);
    make_file(path_of("out.0.tmp"), "left over", 9);
    CHECK(foreloop_file_write(path_of("out"), parts, 3, &allocator, &error) == FORELOOP_OK &&
              holds(path_of("out"), "one two") && holds(path_of("out.0.tmp"), "left over"),
          "a left-over temporary file is left alone");
    unlink(path_of("out.0.tmp"));
    CHECK(foreloop_file_write(folder, parts, 3, &allocator, &error) == FORELOOP_ERROR_IO, "%s", error.message);
    CHECK(foreloop_file_write(path_of("absent/out"), parts, 3, &allocator, &error) == FORELOOP_ERROR_IO, "%s",
          error.message);
    CHECK(foreloop_file_write("/dev/null", parts, 3, &allocator, &error) == FORELOOP_ERROR_IO, "%s", error.message);
    CHECK(foreloop_file_write(path_of("fifo"), parts, 3, &allocator, &error) == FORELOOP_ERROR_IO, "%s", error.message);
    if (foreloop_path_exists("/dev/full") && symlink("/dev/full", path_of("full.0.tmp")) == 0) {
        /* O_EXCL does not follow the link that someone else laid there. */
        CHECK(foreloop_file_write(path_of("full"), parts, 3, &allocator, &error) == FORELOOP_OK,
              "a link in the temporary file's place is not followed");
        unlink(path_of("full.0.tmp"));
        unlink(path_of("full"));
    }
}

/* A limit on file sizes stands for a full disk: the write stops in the middle. */
static void test_write_fails(void) {
    static char large[1 << 16];
    const foreloop_bytes parts[] = {{"start", 5}, {large, sizeof large}};
    foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    foreloop_error error = {0};
    struct rlimit before, small;

    make_file(path_of("out"), "old", 3);
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = 4096;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    CHECK(foreloop_file_write(path_of("out"), parts, 2, &allocator, &error) == FORELOOP_ERROR_IO, "%s", error.message);
    setrlimit(RLIMIT_FSIZE, &before);
    CHECK(holds(path_of("out"), "old") && !foreloop_path_exists(path_of("out.0.tmp")),
          "the old file stands and the temporary one is gone");
}

int main(void) {
    if (!CHECK(mkdtemp(folder) != NULL, "a folder for files"))
        return tap_done();
    test_open();
    test_refused();
    test_paths();
    test_write();
    test_write_fails();
    unlink(path_of("content"));
    unlink(path_of("empty"));
    unlink(path_of("fifo"));
    unlink(path_of("out"));
    CHECK(rmdir(folder) == 0, "no temporary files are left");
    return tap_done();
}
