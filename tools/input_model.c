/* Opening a model: the one that the caller names, or the default bundle. */
#include "input.h"
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef FORELOOP_DATADIR
#define FORELOOP_DATADIR "/usr/local/share/foreloop"
#endif

enum { PATH_SIZE = 4096 };

static bool exists(const char *path) {
    struct stat status;
    return stat(path, &status) == 0;
}

/* folder/default, when a bundle lies in it, or folder/default.foreloop, into path. */
static bool find_in(const char *folder, char path[PATH_SIZE]) {
    static const struct { const char *bundle, *file; } names[] = {{"default", "/model.json"}, {"default.foreloop", ""}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int length = snprintf(path, PATH_SIZE, "%s/%s%s", folder, names[i].bundle, names[i].file);
        if (length > 0 && length < PATH_SIZE && exists(path)) {
            path[(size_t)length - strlen(names[i].file)] = '\0';
            return true;
        }
    }
    return false;
}

/* The default bundle: installed beside the command, in the checkout that the command was built in, where it was
 * configured to be installed, in the checkout that is the working directory. */
static bool find_default(char path[PATH_SIZE]) {
    static const char *const beside[] = {"../share/foreloop", "../../weights"};
    char executable[PATH_SIZE], folder[PATH_SIZE];
    ssize_t length = readlink("/proc/self/exe", executable, sizeof executable - 1);

    if (length > 0) {
        executable[length] = '\0';
        const char *directory = dirname(executable);
        for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
            int written = snprintf(folder, sizeof folder, "%s/%s", directory, beside[i]);
            if (written > 0 && written < PATH_SIZE && find_in(folder, path))
                return true;
        }
    }
    return find_in(FORELOOP_DATADIR, path) || find_in("weights", path);
}

int input_model_options(foreloop_options *options, const cli_command *command, const char *precision, bool amx) {
    foreloop_options_init(options, sizeof *options);
    options->use_amx = amx;
    if (!precision)
        return CLI_DONE;
    for (int p = FORELOOP_PRECISION_F32; p <= FORELOOP_PRECISION_INT8_ROW; p++)
        if (strcmp(precision, foreloop_precision_name((foreloop_precision)p)) == 0) {
            options->precision = (foreloop_precision)p;
            return CLI_DONE;
        }
    return cli_fail_usage(command, "--precision is f32, bf16, int8 or int8_row, not '%s'", precision);
}

int input_model_open(foreloop_model **model, const char *path, const foreloop_options *options) {
    foreloop_error error = {.code = FORELOOP_OK};
    char found[PATH_SIZE];
    if (!path) {
        if (!find_default(found))
            return cli_fail("no default model bundle was found beside the command, in " FORELOOP_DATADIR
                            " or in ./weights: install it, or name a bundle with -m MODEL");
        path = found;
    }
    if (foreloop_model_open(model, path, options, &error) != FORELOOP_OK)
        return cli_fail_file("cannot open the model", path, error.message);
    return CLI_DONE;
}
