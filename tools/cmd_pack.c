/* foreloop pack: a bundle directory into one file. */
#include "cli.h"
#include "common/file.h"
#include "output.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct pack_options {
    const char *directory;
    const char *output;
    bool json;
} pack_options;

static const cli_option options[] = {
    {"output", 'o', CLI_TEXT, offsetof(pack_options, output), "FILE",
     "The packed file, outside DIR; replaced whole if it exists."},
    {"json", 0, CLI_FLAG, offsetof(pack_options, json), NULL,
     "Print one object: {\"path\":FILE,\"bytes\":n,\"fingerprint\":f}."},
    {NULL, 0, CLI_FLAG, 0, NULL, NULL},
};

/* Whether the folder of `path` is the directory or lies below it. A folder that cannot be opened is left to the writer,
 * which says why. */
static bool lies_in(const char *path, const char *directory) {
    char *copy = foreloop_copy_text(cli_allocator(), path, strlen(path));
    int folder = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    struct stat wanted, here, last = {.st_ino = 0};
    bool inside = false;
    foreloop_release(cli_allocator(), copy);
    if (stat(directory, &wanted) != 0)
        wanted = last;
    while (folder >= 0 && !inside && fstat(folder, &here) == 0) {
        int parent;
        inside = here.st_dev == wanted.st_dev && here.st_ino == wanted.st_ino;
        if (here.st_dev == last.st_dev && here.st_ino == last.st_ino)
            break; /* the root is its own parent */
        last = here;
        parent = openat(folder, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        (void)close(folder);
        folder = parent;
    }
    if (folder >= 0)
        (void)close(folder);
    return inside;
}

static bool has_manifest(const char *directory) {
    char *path = foreloop_path_join(cli_allocator(), directory, "model.json");
    bool exists = path && foreloop_path_exists(path);
    foreloop_release(cli_allocator(), path);
    return exists;
}

static int check_places(const pack_options *given) {
    struct stat status;
    if (stat(given->directory, &status) != 0)
        return cli_fail("cannot pack %s: %s", given->directory, strerror(errno));
    if (!S_ISDIR(status.st_mode))
        return cli_fail("cannot pack %s: it is a file, name a bundle directory", given->directory);
    if (!has_manifest(given->directory))
        return cli_fail("cannot pack %s: there is no model.json in it, name a bundle directory", given->directory);
    if (foreloop_path_is_directory(given->output))
        return cli_fail("cannot pack into %s: it is a directory, name a file", given->output);
    if (lies_in(given->output, given->directory))
        return cli_fail("cannot pack into %s: it lies in the bundle's own directory, name a file outside",
                        given->output);
    return CLI_DONE;
}

static bool print_json(const char *path, const char *fingerprint) {
    struct stat status;
    cJSON *object = cJSON_CreateObject();
    if (output_json_add(object, "path", cJSON_CreateString(path)) &&
        output_json_add(object, "bytes",
                        stat(path, &status) == 0 ? output_json_count((uint64_t)status.st_size) : cJSON_CreateNull()) &&
        output_json_add(object, "fingerprint", cJSON_CreateString(fingerprint)))
        return output_json_line(object);
    cJSON_Delete(object);
    return false;
}

static int run(int argc, char **argv) {
    pack_options given = {NULL, NULL, false};
    char fingerprint[24];
    foreloop_error error = {.code = FORELOOP_OK};
    foreloop_model_info info = {.size = sizeof info};
    foreloop_model *model;
    int status;

    if (!cli_parse(&command_pack, argc, argv, &given, &status))
        return status;
    if (!given.directory)
        return cli_fail_usage(&command_pack, "name the bundle's directory");
    if (!given.output)
        return cli_fail_usage(&command_pack, "name the file to write with -o FILE");
    status = check_places(&given);
    if (status != CLI_DONE)
        return status;
    if (foreloop_model_pack(given.directory, given.output, NULL, &error) != FORELOOP_OK)
        return cli_fail_file("cannot pack", given.directory, error.message);
    if (foreloop_model_open(&model, given.output, NULL, &error) != FORELOOP_OK)
        return cli_fail_file("cannot open what was packed", given.output, error.message);
    foreloop_model_get_info(model, &info);
    (void)snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, info.fingerprint);
    foreloop_model_close(model);
    if (!given.json)
        printf("%s: packed, fingerprint %s\n", given.output, fingerprint);
    else if (!print_json(given.output, fingerprint))
        return cli_fail_memory();
    return CLI_DONE;
}

const cli_command command_pack = {
    .name = "pack",
    .summary = "Pack a model bundle's directory into one file.",
    .usage = "DIR -o FILE [--json]",
    .description = "Checks the model bundle in the directory DIR and writes it as one file, which opens\n"
                   "faster and has the same fingerprint. A FILE that exists is replaced, whole or not at all.",
    .options = options,
    .takes_operand = true,
    .operand_offset = offsetof(pack_options, directory),
    .run = run,
};
